"use strict";
// Draws the charts from `data`, again when the colour scheme or the width changes.
(() => {
  const probe = document.body.appendChild(document.createElement("i")); // a canvas knows no CSS variables
  probe.hidden = true;
  const colour = (name) => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };
  const height = 280;
  const grouped = (v) => v.toLocaleString("en-US", { maximumFractionDigits: 0 });
  const whole = Array.from({ length: 30 }, (_, n) => [1, 2, 5][n % 3] * 10 ** Math.floor(n / 3)); // steps of an axis that counts
  const seconds = (v) => +v.toFixed(6) + " s";
  const milliseconds = (v) => (v == null ? "" : v.toFixed(2) + " ms");
  const end = Math.max(data.seconds, data.series.interval_seconds) || 1;

  // An axis is as wide as its longest label: uPlot clips what has no room.
  const size = (chart, labels, index, cycle) => {
    const axis = chart.axes[index];
    if (cycle > 1) return axis._size;
    const longest = (labels || []).reduce((longest, label) => (label && label.length > longest.length ? label : longest), "");
    chart.ctx.font = axis.font[0];
    return Math.ceil(axis.ticks.size + axis.gap + chart.ctx.measureText(longest).width / devicePixelRatio) + 4;
  };
  // The instant from which nothing was left, as a dashed line with its name.
  function soldOut(chart) {
    if (data.sold_out == null) return;
    const { ctx, bbox } = chart;
    const x = Math.round(chart.valToPos(data.sold_out, "x", true));
    if (x < bbox.left || x > bbox.left + bbox.width) return;
    ctx.save();
    ctx.strokeStyle = ctx.fillStyle = colour("text");
    ctx.lineWidth = devicePixelRatio;
    ctx.setLineDash([4 * devicePixelRatio, 4 * devicePixelRatio]);
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    ctx.font = `600 ${12 * devicePixelRatio}px system-ui, sans-serif`;
    const left = x > bbox.left + bbox.width / 2;
    ctx.textAlign = left ? "right" : "left";
    ctx.textBaseline = "top";
    ctx.fillText("sold out", x + (left ? -6 : 6) * devicePixelRatio, bbox.top + 4 * devicePixelRatio);
    ctx.restore();
  }

  const axis = (values, more) => ({
    stroke: colour("quiet"), grid: { stroke: colour("grid"), width: 1 }, ticks: { stroke: colour("grid"), width: 1 },
    font: "12px system-ui, sans-serif", values: (_, splits) => splits.map((v) => (v == null ? "" : values(v))), ...more,
  });
  const options = (element, more) => ({
    width: element.clientWidth, height, cursor: { points: { size: 7 }, y: false },
    scales: { x: { time: false, range: [0, more.end || end] }, ...more.scales },
    bands: more.bands || [],
    axes: [axis(seconds, { space: 64, size: 38 }), axis(more.values, { size, ...more.axis })], hooks: more.hooks || {},
    series: [{ label: "at", value: (_, v) => (v == null ? "" : seconds(v)) }, ...more.series],
  });

  // One outcome stands on the other: a series is drawn as the sum of those up to
  // it, the highest sum first, and its legend has its own value.
  function claims(element) {
    const { at, per_second: rates } = data.series;
    const names = data.outcomes;
    const sums = [];
    const step = (values, last) => [...values, last]; // the last interval is drawn to its end
    names.forEach((name, n) => sums.push(rates[name].map((v, i) => v + (n ? sums[n - 1][i] : 0))));
    const order = names.map((_, n) => n).reverse();
    return new uPlot(options(element, {
      values: grouped, axis: { incrs: whole }, scales: { y: { range: (_, low, high) => [0, Math.max(1, high * 1.15)] } },
      hooks: { draw: [soldOut] },
      series: order.map((n) => ({
        label: names[n], stroke: colour(names[n]), fill: colour(names[n]), width: 0, points: { show: false },
        paths: uPlot.paths.stepped({ align: 1 }), value: (_, v, series, i) => (i == null ? "" : grouped(rates[names[n]][Math.min(i, at.length - 1)])),
      })),
    }), [step(at, end), ...order.map((n) => step(sums[n], sums[n].at(-1)))], element);
  }

  function decades(_, axis, low, high) {
    const all = [];
    for (let n = Math.ceil(Math.log10(low) - 1e-9); n <= Math.log10(high) + 1e-9; n++) all.push(+(10 ** n).toPrecision(1));
    return all;
  }

  function latency(element) {
    const s = data.series;
    const line = (name) => ({
      label: name, stroke: colour(name), width: 2, spanGaps: true, points: { show: s.at.length < 3 }, value: (_, v) => milliseconds(v),
    });
    return new uPlot(options(element, {
      values: (v) => v.toLocaleString("en-US") + " ms", scales: { y: { distr: 3 } }, axis: { splits: decades }, hooks: { draw: [soldOut] },
      series: [line("p50"), line("p95"), line("p99")],
    }), [s.at, s.p50_ms, s.p95_ms, s.p99_ms], element);
  }

  function numbers(element) {
    const all = data.numbers; // in the order of their issue
    return new uPlot(options(element, {
      end: all.at(-1).at * 1.01 || data.series.interval_seconds,
      values: grouped, axis: { incrs: whole }, scales: { y: { range: (_, low, high) => [0, Math.max(1, high * 1.05)] } },
      series: [{
        label: "number", stroke: colour("issued"), paths: () => null,
        points: { show: true, size: 4, width: 0, fill: colour("issued") }, value: (_, v) => (v == null ? "" : grouped(v)),
      }],
    }), [all.map((n) => n.at), all.map((n) => n.number)], element);
  }

  // Who has joined the line and who has been served: the space between is the line.
  function tickets(element) {
    const { at, given, served } = data.line.tickets;
    const line = (label, name) => ({
      label, stroke: colour(name), width: 2, points: { show: false }, value: (_, v) => (v == null ? "" : grouped(v)),
    });
    return new uPlot(options(element, {
      end: at.at(-1), values: grouped, axis: { incrs: whole }, hooks: { draw: [soldOut] },
      scales: { y: { range: (_, low, high) => [0, Math.max(1, high * 1.1)] } },
      series: [line("joined", "waiting"), line("served", "issued")], bands: [{ series: [1, 2], fill: colour("line") }],
    }), [at, given, served], element);
  }

  // How long it took at each place, and what was told of it.
  function places(element) {
    const all = [...data.line.places].sort((x, y) => x.ahead - y.ahead);
    const dots = (label, name, size) => ({
      label, stroke: colour(name), paths: () => null, points: { show: true, size, width: 0, fill: colour(name) },
      value: (_, v) => (v == null ? "" : seconds(v)),
    });
    const told = all.some((p) => p.eta_seconds != null);
    const chart = options(element, {
      end: Math.max(1, all.at(-1).ahead * 1.01), values: seconds,
      scales: { y: { range: (_, low, high) => [0, Math.max(0.1, high * 1.1)] } },
      series: [...(told ? [dots("told", "told", 3)] : []), dots("took", "issued", 4)],
    });
    chart.axes[0] = axis((v) => grouped(v) + " ahead", { space: 90, size: 38, incrs: whole });
    chart.series[0] = { label: "place", value: (_, v) => (v == null ? "" : grouped(v) + " ahead") };
    const took = all.map((p) => p.took_seconds);
    return new uPlot(chart, [all.map((p) => p.ahead), ...(told ? [all.map((p) => p.eta_seconds)] : []), took], element);
  }

  const draws = data.line ? { tickets, places, claims, latency, numbers } : { claims, latency, numbers };
  const shown = { numbers: () => data.numbers, tickets: () => data.line.tickets.at, places: () => data.line.places };
  const nothing = (id) => !((shown[id] || (() => data.series.at))() || []).length;
  let charts = [];
  function draw() {
    charts.forEach((chart) => chart.destroy());
    charts = [];
    for (const [id, make] of Object.entries(draws)) {
      const element = document.getElementById(id);
      if (nothing(id)) element.parentElement.hidden = true;
      else charts.push(make(element));
    }
  }
  draw();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  addEventListener("resize", () => charts.forEach((chart) => {
    chart.setSize({ width: chart.root.parentElement.clientWidth, height });
  }));
})();
