// node axes.mjs holds that the axes of firstcome load's report have room for their labels, at any value and at any
// density of pixels: uPlot cuts what has none, and 10,000 ms were 0,000 ms.
import assert from "node:assert";
import { readFileSync } from "node:fs";
import vm from "node:vm";

const text = readFileSync(new URL("../internal/load/report/charts.js", import.meta.url), "utf8");
const pixels = (label) => 8 * label.length; // wider than a digit of 12 px in any font

// charts draws a report of a run of such a length at such a density, and returns what uPlot is asked for, by its place.
function charts(devicePixelRatio, seconds) {
  const drawn = {};
  class uPlot {
    static paths = { stepped: () => () => null };
    constructor(options, _, element) {
      drawn[element.id] = options;
    }
  }
  const element = (id) => ({ id, clientWidth: 300, parentElement: {} });
  const at = [0, seconds / 2];
  const data = {
    outcomes: ["issued"], seconds, sold_out: null, numbers: [{ at: 0, number: 1 }, { at: seconds, number: 2 }],
    series: { at, interval_seconds: seconds / 2, per_second: { issued: at }, p50_ms: at, p95_ms: at, p99_ms: at },
  };
  vm.runInNewContext(text, {
    uPlot, data, devicePixelRatio, document: { getElementById: element, documentElement: {} }, addEventListener() {},
    getComputedStyle: () => ({ getPropertyValue: () => "" }), matchMedia: () => ({ addEventListener() {} }),
  });
  return drawn;
}

for (const density of [1, 1.5, 3]) {
  const drawn = charts(density, 1000);
  assert.deepEqual(Object.keys(drawn), ["claims", "latency", "numbers"]);
  for (const [id, { axes }] of Object.entries(drawn)) {
    const y = { ticks: { size: 10 }, gap: 5, font: ["12px sans-serif"] }; // uPlot's own, but for what is named
    const labels = axes[1].values(null, [0, 0.001, 10_000, 1_000_000]);
    const chart = { axes: [{}, y], ctx: { measureText: (label) => ({ width: density * pixels(label) }) } };
    const longest = Math.max(...labels.map(pixels));
    const has = typeof axes[1].size === "function" ? axes[1].size(chart, labels, 1, 0) : (axes[1].size ?? 50);
    assert(has >= longest + y.ticks.size + y.gap, `${id} at a density of ${density}: ${has} px are too few for ${labels}`);
  }
}
console.log("the report's axes: ok");
