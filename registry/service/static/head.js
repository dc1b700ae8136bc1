// The view of a head: its boundary, or how two heads differ.
"use strict";
addEventListener("DOMContentLoaded", async () => {
  const box = document.getElementById("compare");
  const { name, head, other } = box.dataset;
  try {
    const base = `/api/v1/contingencies/${encodeURIComponent(name)}/boundary?head=${head}`;
    const curve = await charts.json(other ? `${base}&other=${other}` : base);
    const censored = (plot) => curve.censored.forEach(({ low: from, high: to, status }) => charts.hatch(plot, from, to, "--line", charts.words(status)));
    let y = "duration, ms", values = curve.duration_s.map((d) => 1e3 * d), scales = {};
    if (other) {
      y = "difference, ms";
      values = curve.duration_s.map((d, k) => (curve.other_duration_s[k] === null ? null : 1e3 * (d - curve.other_duration_s[k])));
      const most = Math.max(1e-3, ...values.map((value) => Math.abs(value || 0)));
      scales = { y: { range: [-1.1 * most, 1.1 * most] } };
    }
    const [low, high] = [Number(box.dataset.low), Number(box.dataset.high)];
    scales.x = { time: false, range: [low, high] };
    charts.chart(box, { height: 220, x: "severity", y, scales, data: [curve.alpha, values], series: [{ colour: "--c0", width: 2 }], hooks: { drawClear: [censored] } });
  } catch (error) { box.textContent = error.message; }
});
