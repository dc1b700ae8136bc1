// The view of a run: loss and validation error, kept up to date while it trains.
"use strict";
addEventListener("DOMContentLoaded", () => {
  const box = document.getElementById("loss"), second = document.getElementById("validation");
  const { run, running } = box.dataset;
  let loss = null, validation = null;

  function column(curve, key) {
    const points = curve.filter((point) => point.metrics[key] !== undefined);
    return [points.map((point) => point.step), points.map((point) => point.metrics[key])];
  }

  function show(plot, area, data, y, log) {
    if (plot) { plot.setData(data); return plot; }
    if (!data[0].length) { area.textContent = "No measurement yet."; return null; }
    area.textContent = "";
    const positive = log && data[1].every((value) => value > 0);
    return charts.chart(area, { height: 240, x: "step", y, data, scales: positive ? { y: { distr: 3 } } : {}, series: [{ colour: "--c0", points: { show: data[0].length < 40 } }] });
  }

  async function refresh() {
    try {
      const found = await charts.json(`/api/v1/runs/${run}`);
      loss = show(loss, box, column(found.curve, "loss"), "loss", true);
      validation = show(validation, second, column(found.curve, "validation_cct_ms"), "ms", true);
      if (found.status === "running") setTimeout(refresh, 3000);
    } catch (error) { if (!loss) box.textContent = error.message; else if (running) setTimeout(refresh, 10000); }
  }
  refresh();
});
