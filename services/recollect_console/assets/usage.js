// Charts of usage, drawn from the table that has the same numbers. Without scripts there is the table alone.

const charts = document.querySelector("[data-charts]");
const rows = [...document.querySelectorAll("tr[data-at]")];
const column = (name) => rows.map((row) => (name in row.dataset ? Number(row.dataset[name]) : null));
const HEIGHT = 120;
const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function short(value) {
  return new Intl.NumberFormat(undefined, { notation: "compact", maximumFractionDigits: 1 }).format(value);
}

function draw(place) {
  const axis = { stroke: style("--soft"), grid: { stroke: style("--line"), width: 1 }, ticks: { show: false } };
  return new uPlot(
    {
      width: place.clientWidth,
      height: HEIGHT,
      tzDate: (at) => uPlot.tzDate(new Date(at * 1000), "UTC"),
      legend: { show: false },
      cursor: { y: false, drag: { x: false, y: false } },
      scales: { y: { range: (plot, low, high) => [0, Math.max(high, 1)] } },
      axes: [{ ...axis, space: 70 }, { ...axis, size: 48, values: (plot, values) => values.map(short) }],
      series: [{}, { stroke: style("--accent"), fill: style("--accent-tint"), width: 1.5, points: { show: place.dataset.chart === "p95", size: 4 } }],
    },
    [column("at"), column(place.dataset.chart)],
    place,
  );
}

let drawn = [];
function drawAll() {
  for (const plot of drawn) plot.destroy();
  drawn = [...charts.querySelectorAll("[data-chart]")].map(draw);
}

if (charts && rows.length) {
  drawAll();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  let width = charts.clientWidth;
  new ResizeObserver(() => {
    if (charts.clientWidth === width) return;
    width = charts.clientWidth;
    drawAll();
  }).observe(charts);
}
