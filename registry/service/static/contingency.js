// The view of one contingency: boundary and swing curves, both of which follow the sliders.
"use strict";
addEventListener("DOMContentLoaded", () => {
  const box = document.getElementById("contingency");
  const { name, head } = box.dataset;
  const [tF, low, high] = [box.dataset.tF, box.dataset.low, box.dataset.high].map(Number);
  const required = box.dataset.required ? Number(box.dataset.required) : null;
  const alpha = document.getElementById("alpha"), clearing = document.getElementById("t_c");
  const verdict = document.getElementById("verdict"), more = document.getElementById("verdict-more");
  const base = `/api/v1/contingencies/${encodeURIComponent(name)}`;
  const palette = [...Array(10).keys()].map((k) => `--c${k}`);
  const conditions = [...box.querySelectorAll("input[data-condition]")];
  const area = document.getElementById("boundary"), slopes = document.getElementById("slope");
  const words = document.getElementById("boundary-words");
  let boundary = null, slope = null, swing = null, underway = null, asking = null, shown = { t_c: Number(clearing.value) };

  // Conditions that were set here or in the address; the others are the case's own, which the answers tell.
  const given = new Map();
  const address = new URLSearchParams(location.search);
  if (address.get("alpha")) alpha.value = address.get("alpha");
  conditions.forEach((slider) => {
    const text = address.get(slider.dataset.condition);
    if (text !== null && text !== "") { slider.value = text; given.set(slider.dataset.condition, slider.value); }
  });
  const point = () => [...given].map(([key, value]) => `&${encodeURIComponent(key)}=${value}`).join("");

  function showPoint(values) {
    conditions.forEach((slider) => {
      const { condition, unit } = slider.dataset;
      if (!given.has(condition) && values[condition] !== undefined) slider.value = values[condition];
      const text = Number(slider.value).toFixed(unit ? 1 : 3) + (unit ? ` ${unit}` : "");
      const told = given.has(condition) || values[condition] !== undefined;
      slider.parentElement.querySelector("output").textContent = told ? text : "as in the case";
      slider.setAttribute("aria-valuetext", told ? text : "as in the case");
    });
  }

  // What the curve cannot show: that there is none, and where the points would be.
  function say(curve) {
    const only = curve.alpha.length ? null : new Set(curve.censored.map((one) => one.status));
    if (only && only.size === 1) words.textContent = `At this operating point every severity is ${charts.words([...only][0])}.`;
    else if (conditions.length) words.textContent = "The boundary at the operating point of the sliders. The head was measured all over their ranges, not along this curve.";
    else words.textContent = "";
  }

  async function drawBoundary() {
    if (!head) return;
    if (asking) asking.abort();
    asking = new AbortController();
    const curve = await charts.json(`${base}/boundary?${point().slice(1)}`, asking.signal);
    [boundary, slope].forEach((plot) => { if (plot) charts.remove(plot); });
    area.textContent = slopes.textContent = "";
    area.dataset.drawn = point();
    showPoint(curve.conditions);
    say(curve);
    const points = new Map();
    const put = (a, key, value) => { if (!points.has(a)) points.set(a, {}); points.get(a)[key] = value; };
    curve.alpha.forEach((a, k) => { put(a, "d", 1e3 * curve.duration_s[k]); put(a, "s", 10 * curve.slope_s[k]); put(a, "b", 1e3 * (curve.bound_s[k] || 0)); });
    curve.strict.forEach((one) => { if (one.duration_s !== null) put(one.alpha, "strict", 1e3 * one.duration_s); });
    curve.breaks.forEach((at) => { if (at > 0) put((curve.alpha[at - 1] + curve.alpha[at]) / 2, "gap", true); });
    const xs = [...points.keys()].sort((a, b) => a - b);
    const column = (key, bounds = 0) => xs.map((a) => {
      const at = points.get(a);
      return at[key] === undefined ? (at.gap ? null : undefined) : at[key] + (bounds && bounds * at.b);
    });
    const censored = (plot) => curve.censored.forEach(({ low: from, high: to, status }) => charts.hatch(plot, from, to, "--line", charts.words(status)));
    const marks = (plot) => {
      charts.mark(plot, "x", Number(alpha.value), "--soft", [4, 3]);
      if (required !== null) charts.mark(plot, "y", 1e3 * required, "--below", [8, 4]);
    };
    const x = "severity", range = { x: { time: false, range: [low, high] } };
    boundary = charts.chart(area, {
      height: 270, x, y: "duration, ms", scales: range,
      data: [xs, column("d", 1), column("d", -1), column("d"), column("strict")],
      series: [{ colour: "--c0", width: 0 }, { colour: "--c0", width: 0 }, { colour: "--c0", width: 2 },
        { colour: "--c1", width: 0, points: { show: true, size: 8, width: 2, space: 0, stroke: () => charts.colour("--c1"), fill: () => charts.colour("--back") }, paths: () => null }],
      bands: [{ series: [1, 2], fill: () => charts.colour("--c0") + "40" }],
      hooks: { drawClear: [censored], draw: [marks] },
    });
    slope = charts.chart(slopes, {
      height: 150, x, y: "ms per 0.01", scales: Object.assign({ y: { range: slopeRange(column("s")) } }, range),
      data: [xs, column("s")], series: [{ colour: "--c4" }], hooks: { drawClear: [censored] },
    });
  }

  // The slope is unbounded at a censoring edge: show the part that most of the curve has.
  function slopeRange(values) {
    const sorted = values.filter((v) => v !== null && v !== undefined).sort((a, b) => a - b);
    if (!sorted.length || sorted.every((v) => Math.abs(v) < 1e-9)) return [-1, 1];
    const least = sorted[Math.floor(0.15 * sorted.length)], most = Math.max(0, sorted[sorted.length - 1]);
    return [1.3 * Math.min(least, 0), most || 0.05 * Math.abs(least)];
  }

  async function simulate() {
    document.getElementById("alpha-value").textContent = Number(alpha.value).toFixed(3);
    document.getElementById("t_c-value").textContent = `${(1e3 * (clearing.value - tF)).toFixed(0)} ms`;
    if (boundary) boundary.redraw(false);
    box.dataset.point = point();
    if (underway) underway.abort();
    underway = new AbortController();
    try {
      const found = await charts.json(`${base}/simulate?alpha=${alpha.value}&t_c=${clearing.value}${point()}`, underway.signal);
      showPoint(found.conditions);
      verdict.textContent = found.sentence;
      verdict.className = `verdict ${found.stable ? "stable" : "unstable"}`;
      const critical = found.cct_s === null ? charts.words(found.status) : `critical after ${(1e3 * (found.cct_s - tF)).toFixed(1)} ms`;
      more.textContent = `${critical} · largest separation ${found.separation_rad.toFixed(2)} rad at ${found.at_s.toFixed(2)} s, limit ${found.max_separation_rad.toFixed(2)} rad`;
      shown = { t_c: found.t_c_s };
      drawSwing(found);
    } catch (error) {
      if (error.name === "AbortError") return;
      verdict.textContent = error.message;
      verdict.className = "verdict";
    }
  }

  function drawSwing(found) {
    const data = [found.t_s, ...found.delta_rad];
    document.getElementById("swing").dataset.drawn = `${found.alpha} ${found.t_c_s}${point()}`;
    if (swing) { swing.setData(data); return; }
    const list = document.getElementById("machines");
    found.machines.slice(0, 10).forEach((bus, k) => {
      const item = list.appendChild(document.createElement("li")), line = item.appendChild(document.createElement("span"));
      line.className = `swatch c${k}`;
      item.append(`bus ${bus}`);
    });
    if (found.machines.length > 10) list.appendChild(document.createElement("li")).append("the colours repeat for the others");
    swing = charts.chart(document.getElementById("swing"), {
      height: 300, x: "time, s", y: "angle, rad", data,
      series: found.machines.map((bus, k) => ({ label: `machine at bus ${bus}`, colour: palette[k % 10] })),
      hooks: { drawClear: [(plot) => charts.shade(plot, tF, shown.t_c, "--below-wash")] },
    });
  }

  let waiting = null;
  const soon = () => { clearTimeout(waiting); waiting = setTimeout(simulate, 40); };
  const moved = () => {
    showPoint({});
    soon();
    drawBoundary().catch((error) => { if (error.name !== "AbortError") words.textContent = error.message; });
    const told = new URLSearchParams(given).toString();
    history.replaceState(null, "", told ? `?${told}` : location.pathname);
  };
  [alpha, clearing].forEach((slider) => slider.addEventListener("input", soon));
  conditions.forEach((slider) => slider.addEventListener("input", () => { given.set(slider.dataset.condition, slider.value); moved(); }));
  document.getElementById("own-point")?.addEventListener("click", () => { given.clear(); moved(); });
  drawBoundary().catch((error) => { area.textContent = error.message; });
  simulate();
});
