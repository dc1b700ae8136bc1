// The view of one contingency: its boundary, and swing curves that follow the sliders.
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
  let boundary = null, swing = null, underway = null, shown = { t_c: Number(clearing.value) };

  async function drawBoundary() {
    const area = document.getElementById("boundary");
    if (!head) { area.textContent = "No head is deployed."; document.getElementById("slope").textContent = ""; return; }
    const curve = await charts.json(`${base}/boundary`);
    const points = new Map();
    const put = (a, key, value) => { if (!points.has(a)) points.set(a, {}); points.get(a)[key] = value; };
    curve.alpha.forEach((a, k) => { put(a, "d", 1e3 * curve.duration_s[k]); put(a, "s", 10 * curve.slope_s[k]); });
    curve.strict.forEach((one) => { if (one.duration_s !== null) put(one.alpha, "strict", 1e3 * one.duration_s); });
    curve.breaks.forEach((at) => { if (at > 0) put((curve.alpha[at - 1] + curve.alpha[at]) / 2, "gap", true); });
    const xs = [...points.keys()].sort((a, b) => a - b), bound = 1e3 * (curve.error_bound_s || 0);
    const column = (key, shift = 0) => xs.map((a) => {
      const at = points.get(a);
      return at[key] === undefined ? (at.gap ? null : undefined) : at[key] + shift;
    });
    const censored = (plot) => curve.censored.forEach(({ low: from, high: to, status }) => charts.hatch(plot, from, to, "--line", status));
    const marks = (plot) => {
      charts.mark(plot, "x", Number(alpha.value), "--soft", [4, 3]);
      if (required !== null) charts.mark(plot, "y", 1e3 * required, "--below", [8, 4]);
    };
    const x = "severity", range = { x: { time: false, range: [low, high] } };
    boundary = charts.chart(area, {
      height: 270, x, y: "duration, ms", scales: range,
      data: [xs, column("d", bound), column("d", -bound), column("d"), column("strict")],
      series: [{ colour: "--c0", width: 0 }, { colour: "--c0", width: 0 }, { colour: "--c0", width: 2 },
        { colour: "--c1", width: 0, points: { show: true, size: 8, width: 2, space: 0, stroke: () => charts.colour("--c1"), fill: () => charts.colour("--back") }, paths: () => null }],
      bands: [{ series: [1, 2], fill: () => charts.colour("--c0") + "40" }],
      hooks: { drawClear: [censored], draw: [marks] },
    });
    charts.chart(document.getElementById("slope"), {
      height: 150, x, y: "ms per 0.01", scales: Object.assign({ y: { range: slopeRange(column("s")) } }, range),
      data: [xs, column("s")], series: [{ colour: "--c4" }], hooks: { drawClear: [censored] },
    });
  }

  // The slope is unbounded at a censoring edge: show the part that most of the curve has.
  function slopeRange(values) {
    const sorted = values.filter((v) => v !== null && v !== undefined).sort((a, b) => a - b);
    if (!sorted.length) return [-1, 1];
    const least = sorted[Math.floor(0.15 * sorted.length)], most = Math.max(0, sorted[sorted.length - 1]);
    return [1.3 * Math.min(least, 0), most || 0.05 * Math.abs(least)];
  }

  async function simulate() {
    document.getElementById("alpha-value").textContent = Number(alpha.value).toFixed(3);
    document.getElementById("t_c-value").textContent = `${(1e3 * (clearing.value - tF)).toFixed(0)} ms`;
    if (boundary) boundary.redraw(false);
    if (underway) underway.abort();
    underway = new AbortController();
    try {
      const found = await charts.json(`${base}/simulate?alpha=${alpha.value}&t_c=${clearing.value}`, underway.signal);
      verdict.textContent = found.sentence;
      verdict.className = `verdict ${found.stable ? "stable" : "unstable"}`;
      const critical = found.cct_s === null ? found.status : `critical after ${(1e3 * (found.cct_s - tF)).toFixed(1)} ms`;
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
    document.getElementById("swing").dataset.drawn = `${found.alpha} ${found.t_c_s}`;
    if (swing) { swing.setData(data); return; }
    swing = charts.chart(document.getElementById("swing"), {
      height: 300, x: "time, s", y: "angle, rad", data,
      series: found.machines.map((bus, k) => ({ label: `machine at bus ${bus}`, colour: palette[k % 10] })),
      hooks: { drawClear: [(plot) => charts.shade(plot, tF, shown.t_c, "--below-wash")] },
    });
  }

  let waiting = null;
  const soon = () => { clearTimeout(waiting); waiting = setTimeout(simulate, 40); };
  [alpha, clearing].forEach((slider) => slider.addEventListener("input", soon));
  drawBoundary().catch((error) => { document.getElementById("boundary").textContent = error.message; });
  simulate();
});
