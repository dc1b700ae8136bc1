// Charts in the colours of the style sheet: a small layer over uPlot, used by all views.
"use strict";
const charts = (() => {
  const made = [];
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const width = (box) => Math.max(280, box.clientWidth);

  function axis(label, extra) {
    return Object.assign({
      label, labelSize: 18, font: "11px system-ui", labelFont: "11px system-ui", size: 46,
      stroke: () => colour("--soft"), grid: { stroke: () => colour("--faint"), width: 1 },
      ticks: { stroke: () => colour("--line"), width: 1, size: 4 },
    }, extra || {});
  }

  // A chart in a box; `series` have label, colour name and uPlot's options. Returns the uPlot object.
  function chart(box, { height = 260, x, y, series, data, hooks = {}, scales = {}, bands = [] }) {
    const options = {
      width: width(box), height, cursor: { y: false, points: { size: 6 } }, legend: { show: false },
      scales: Object.assign({ x: { time: false } }, scales),
      axes: [axis(x, { size: 28, labelSize: 16 }), axis(y)],
      series: [{}, ...series.map((one) => Object.assign({ width: 1.6, points: { show: false } }, one, {
        stroke: () => colour(one.colour),
      }))],
      bands, hooks,
    };
    const plot = new uPlot(options, data, box);
    made.push([plot, box, height]);
    return plot;
  }

  function remove(plot) {
    made.splice(made.findIndex(([other]) => other === plot), 1);
    plot.destroy();
  }

  window.addEventListener("resize", () => made.forEach(([plot, box, height]) => plot.setSize({ width: width(box), height })));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => made.forEach(([plot]) => plot.redraw(false)));

  // Two values of x as places inside the plot.
  function within(plot, from, to) {
    const { left, width: wide } = plot.bbox;
    return [from, to].map((value) => Math.min(Math.max(plot.valToPos(value, "x", true), left), left + wide));
  }

  // Hatched rectangle between two values of x, over the whole height.
  function hatch(plot, from, to, name, label) {
    const { ctx } = plot, [left, right] = within(plot, from, to);
    const { top, height } = plot.bbox, step = 7 * devicePixelRatio;
    ctx.save();
    ctx.beginPath(); ctx.rect(left, top, right - left, height); ctx.clip();
    ctx.strokeStyle = colour(name); ctx.lineWidth = devicePixelRatio; ctx.beginPath();
    for (let at = left - height; at < right; at += step) { ctx.moveTo(at, top + height); ctx.lineTo(at + height, top); }
    ctx.stroke();
    if (label && right - left > 100 * devicePixelRatio) {
      ctx.font = `${11 * devicePixelRatio}px system-ui`; ctx.fillStyle = colour("--soft"); ctx.textAlign = "center";
      const middle = (left + right) / 2, wide = ctx.measureText(label).width + 10 * devicePixelRatio;
      ctx.fillStyle = colour("--back"); ctx.fillRect(middle - wide / 2, top + height / 2 - 10 * devicePixelRatio, wide, 18 * devicePixelRatio);
      ctx.fillStyle = colour("--soft"); ctx.fillText(label, middle, top + height / 2 + 3 * devicePixelRatio);
    }
    ctx.restore();
  }

  function shade(plot, from, to, name) {
    const { ctx } = plot, [left, right] = within(plot, from, to);
    ctx.save(); ctx.fillStyle = colour(name); ctx.fillRect(left, plot.bbox.top, right - left, plot.bbox.height); ctx.restore();
  }

  function mark(plot, scale, value, name, dash) {
    const { ctx } = plot, at = plot.valToPos(value, scale, true), { left, top, width: w, height: h } = plot.bbox;
    ctx.save(); ctx.strokeStyle = colour(name); ctx.lineWidth = 1.5 * devicePixelRatio;
    ctx.setLineDash((dash || []).map((part) => part * devicePixelRatio));
    ctx.beginPath(); ctx.rect(left, top, w, h); ctx.clip(); ctx.beginPath();
    if (scale === "x") { ctx.moveTo(at, top); ctx.lineTo(at, top + h); } else { ctx.moveTo(left, at); ctx.lineTo(left + w, at); }
    ctx.stroke(); ctx.restore();
  }

  async function json(address, signal) {
    const response = await fetch(address, { headers: { Accept: "application/json" }, signal });
    const content = await response.json();
    if (!response.ok) throw new Error(content.detail || response.statusText);
    return content;
  }

  // A status as people are told it.
  const words = (status) => ({ "right-censored": "stable throughout", "left-censored": "unstable at once", "out-of-domain": "not covered by the head" }[status] || status);

  return { words, chart, remove, hatch, shade, mark, json, colour };
})();
