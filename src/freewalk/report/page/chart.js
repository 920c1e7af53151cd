// One chart: buttons, curves, and a cursor that reads values.

const KINDS = { mean: "mean of the walks", exact: "exact", published: "printed", other: "other" };
const MARGIN = { top: 30, right: 26, bottom: 44, left: 62 };
const MARKERS = [ // one shape per design, so that curves differ in more than their colour
  "M-3.6 0a3.6 3.6 0 1 0 7.2 0a3.6 3.6 0 1 0 -7.2 0Z", // circle
  "M-3.2 -3.2H3.2V3.2H-3.2Z", // square
  "M0 -4.2L3.9 3H-3.9Z", // triangle
  "M0 -4.4L4.4 0L0 4.4L-4.4 0Z", // diamond
  "M0 4.2L3.9 -3H-3.9Z", // triangle down
  "M-3.2 -3.2L3.2 3.2M-3.2 3.2L3.2 -3.2", // cross
  "M-4.2 0H4.2M0 -4.2V4.2", // plus
  "M-4.2 -2.2H4.2V2.2H-4.2Z", // bar
];
const MARKED = 7; // markers per curve
const FEW = 2 * MARKED; // up to this many points, as of a sweep, all are marked
const EXPLODED = [10, 1e6]; // times its first value, a curve has exploded; one of few points may grow more
const FAR = 10; // a line is not shown if all curves are above this multiple of it

function makeChart(figure, chart) {
  const designs = [...new Set(chart.series.map((one) => one.label))];
  for (const one of chart.series) one.marker = designs.indexOf(one.label) % MARKERS.length;
  const state = { axis: chart.axes[0], xLog: chart.xLog, yLog: chart.yLog, hidden: new Set(), without: new Set(), cursor: null };
  const mount = figure.querySelector(".mount");
  const stage = element("div", { class: "stage" });
  const readout = element("div", { class: "readout", "aria-hidden": "true" });
  const absent = element("p", { class: "note absent" });
  const parts = { figure, chart, state, stage, readout, absent, view: null };
  const redraw = () => drawChart(parts);
  mount.append(controls(parts, redraw), legend(parts, redraw), stage, readout, absent, coincidences(chart));
  keepDrawn(stage, redraw);
}

function controls({ chart, state }, redraw) {
  const set = (name) => (value) => { state[name] = value; state.cursor = null; redraw(); };
  const bar = element("div", { class: "controls" });
  if (chart.axes.length > 1) bar.append(choice("Horizontal axis", chart.axes.map((name) => [name, name]), state.axis, set("axis")));
  const scales = [["log", "log"], ["linear", "linear"]];
  const log = (name) => (value) => set(name)(value === "log");
  bar.append(element("span", { class: "scales" },
    element("span", { class: "pair" }, "x ", choice("Scale of the horizontal axis", scales, state.xLog ? "log" : "linear", log("xLog"))),
    element("span", { class: "pair" }, "y ", choice("Scale of the vertical axis", scales, state.yLog ? "log" : "linear", log("yLog"))),
  ));
  return bar;
}

function legend({ chart, state }, redraw) {
  const switcher = (set, key) => function (on) {
    if (on) set.delete(key); else set.add(key);
    this.setAttribute("aria-pressed", on);
    redraw();
  };
  const button = (children, set, key, attributes) => {
    const made = toggle(children, true, (on) => switcher(set, key).call(made, on), attributes);
    return made;
  };
  const box = element("div", { class: "legend" });
  const designs = element("div", { class: "designs", role: "group", "aria-label": "Designs" });
  for (const label of new Set(chart.series.map((one) => one.label))) {
    const own = chart.series.filter((one) => one.label === label);
    const notes = own.map((one) => one.note).filter(Boolean);
    const name = notes.length ? `${label} (${notes.join("; ")})` : label;
    designs.append(button([swatch(own[0].kind, own[0]), name], state.hidden, label, { "data-design": label }));
  }
  box.append(designs);
  const kinds = Object.keys(KINDS).filter((kind) => chart.series.some((one) => one.kind === kind));
  if (kinds.length > 1) {
    const group = element("div", { class: "kinds", role: "group", "aria-label": "Kinds of curves" });
    group.append(...kinds.map((kind) => button([swatch(kind, null), KINDS[kind]], state.without, kind, { "data-kind": kind })));
    box.append(group);
  }
  return box;
}

function coincidences({ covers = [] }) {
  const told = covers.map(([upper, lower]) => `“${upper}” coincides with “${lower}” and is drawn dashed on top of it.`);
  return element("p", { class: "note covers" }, told.join(" "));
}

function swatch(kind, series) {
  const line = shape("path", { d: "M1 6H25", class: `curve ${kind}`, "stroke-dasharray": kind === "mean" && series ? series.dash || null : null });
  line.style.setProperty("--own", series ? paint(series.colour) : "var(--ink)");
  const mark = series && series.marker !== undefined && hasMarkers(series) ? [markerAt(series, 13, 6)] : [];
  return shape("svg", { class: "swatch", width: 26, height: 12, viewBox: "0 0 26 12", "aria-hidden": "true" }, line, ...mark);
}

function drawChart(parts) {
  const { figure, chart, state, stage, absent } = parts;
  const chosen = chart.series.filter((one) => !state.hidden.has(one.label) && !state.without.has(one.kind));
  const shown = chosen.filter((one) => one.x[state.axis]);
  const width = Math.max(stage.clientWidth, 240);
  const height = Math.round(Math.min(430, Math.max(270, width * 0.5)));
  const frame = { left: MARGIN.left, right: width - MARGIN.right, top: MARGIN.top, bottom: height - MARGIN.bottom };
  const x = horizontal(shown, state, frame);
  const y = vertical(shown, chart, state, frame);
  const picture = shape("svg", { width, height, viewBox: `0 0 ${width} ${height}`, tabindex: 0, role: "slider", "aria-label": `${chart.title}: cursor along ${state.axis}`, "aria-valuemin": short(x.low), "aria-valuemax": short(x.high) });
  const clip = `freewalk-clip-${figure.dataset.section}-${figure.dataset.chart}`;
  picture.append(shape("clipPath", { id: clip }, shape("rect", { x: frame.left, y: frame.top, width: frame.right - frame.left, height: frame.bottom - frame.top })));
  drawAxes(picture, x, y, frame, state.axis, chart.yLabel);
  const plot = shape("g", { "clip-path": `url(#${clip})` });
  for (const one of shown) if (one.low) plot.append(band(one, state, x, y));
  drawLines(plot, chart.lines, state, y, frame);
  // Exact and published curves lie on top: they are thin, and the mean is compared with them.
  for (const kind of Object.keys(KINDS)) for (const one of shown) if (one.kind === kind) plot.append(curve(one, state, x, y));
  const marks = shown.filter(hasMarkers).map((one) => markers(one, state, x, y, frame));
  const cursor = shape("g", { class: "cursor" });
  picture.append(plot, ...marks, cursor);
  const focused = stage.contains(document.activeElement);
  stage.replaceChildren(picture);
  parts.view = { picture, cursor, shown, x, y, frame, width };
  watch(parts);
  if (focused) picture.focus({ preventScroll: true });
  const missing = chosen.filter((one) => !one.x[state.axis]).map((one) => `${one.label} (${KINDS[one.kind]})`);
  const below = chart.lines.filter(([, value]) => y.at(value) > frame.bottom + 1).map(([name, value]) => `${name} (${words(value)}) lies below the chart.`);
  absent.textContent = [missing.length ? `Not shown, because there are no values against ${state.axis}: ${missing.join(", ")}.` : "", ...below].filter(Boolean).join(" ");
  Object.assign(figure.dataset, { axis: state.axis, xScale: state.xLog ? "log" : "linear", yScale: state.yLog ? "log" : "linear", shown: shown.length });
  readAt(parts, state.cursor);
}

function horizontal(shown, state, frame) {
  const values = shown.flatMap((one) => one.x[state.axis]).filter((value) => value !== null);
  const high = Math.max(...values, 0) || 1;
  const first = Math.min(...values.filter((value) => value > 0), high);
  return makeScale({ low: 0, high, from: frame.left, to: frame.right, log: state.xLog && first < high, first });
}

// The range of all finite values, except those of diverged walks.
function vertical(shown, { lines, yLog }, state, frame) {
  const usable = (value) => value !== null && (!state.yLog || value > 0);
  const lows = [];
  const highs = [];
  for (const one of shown) {
    const seen = one.y.filter(usable);
    if (!seen.length) continue;
    const least = Math.min(...seen);
    const most = Math.max(...seen);
    const under = one.low ? Math.min(...one.low.filter(usable), least) : least;
    const over = one.high ? Math.max(...one.high.filter(usable), most) : most;
    // The lower end of a band may leave the chart, and so may a loss that explodes; a measure on a linear axis may not.
    lows.push(least, state.yLog ? Math.max(under, least / 10) : under);
    highs.push(yLog ? Math.min(over, Math.max(EXPLODED[Number(seen.length <= FEW)] * Math.abs(seen[0]), least)) : over);
  }
  const ends = { from: frame.bottom, to: frame.top, log: state.yLog };
  // A line more than a decade below all curves would leave the chart half empty.
  const lowest = Math.min(...lows);
  const near = lines.map(([, value]) => value).filter((value) => usable(value) && (!lows.length || !state.yLog || value > lowest / FAR));
  lows.push(...near);
  highs.push(...near);
  if (!lows.length) return makeScale({ low: state.yLog ? 0.1 : 0, high: 10, ...ends });
  const low = Math.min(...lows);
  const high = Math.max(...highs);
  const below = Math.max(0.08, 24 / (frame.bottom - frame.top)); // room for the name of a line below it
  if (state.yLog) {
    const [bottom, top] = [Math.log10(low), Math.log10(high)];
    const span = top - bottom || 0.4; // decades
    const [under, over] = [below * span, 0.04 * span];
    return makeScale({ low: 10 ** Math.max(-300, bottom - under), high: 10 ** Math.min(300, top + over), ...ends }); // the range of numbers
  }
  const room = 0.05 * (high - low || Math.abs(high) || 1);
  const base = low >= 0 && low < 0.5 * high ? 0 : low - room;
  return makeScale({ low: base, high: high + room, ...ends });
}

function drawAxes(picture, x, y, frame, axis, yLabel) {
  const grid = shape("g", { class: "axes" });
  for (const value of y.ticks(Math.max(3, Math.floor((frame.bottom - frame.top) / 40)))) {
    const place = y.at(value);
    if (place > frame.bottom + 1 || place < frame.top - 1) continue;
    grid.append(
      shape("line", { x1: frame.left, x2: frame.right, y1: place, y2: place, class: "grid" }),
      shape("text", { x: frame.left - 8, y: place + 4, "text-anchor": "end" }, tickWords(value)),
    );
  }
  for (const value of y.minor()) grid.append(shape("line", { x1: frame.left - 4, x2: frame.left, y1: y.at(value), y2: y.at(value), class: "minor" }));
  let last = -Infinity;
  for (const value of x.ticks(Math.max(3, Math.min(10, Math.floor((frame.right - frame.left) / 58))))) {
    const place = x.at(value);
    const half = 3.6 * tickWords(value).length;
    grid.append(shape("line", { x1: place, x2: place, y1: frame.bottom, y2: frame.bottom + 5, class: "tick" }));
    if (place - half < last + 6) continue; // labels must not overlap
    last = place + half;
    grid.append(shape("text", { x: place, y: frame.bottom + 19, "text-anchor": "middle" }, tickWords(value)));
  }
  for (const value of x.minor()) grid.append(shape("line", { x1: x.at(value), x2: x.at(value), y1: frame.bottom, y2: frame.bottom + 3, class: "minor" }));
  grid.append(
    shape("line", { x1: frame.left, x2: frame.right, y1: frame.bottom, y2: frame.bottom, class: "edge" }),
    shape("line", { x1: frame.left, x2: frame.left, y1: frame.top, y2: frame.bottom, class: "edge" }),
    shape("text", { x: frame.right, y: frame.bottom + 37, "text-anchor": "end", class: "name" }, axis),
    shape("text", { x: 4, y: 14, class: "name" }, yLabel),
  );
  picture.append(grid);
}

function drawLines(plot, lines, state, y, frame) {
  let taken = [];
  for (const [name, value] of lines) {
    if (state.yLog && value <= 0) continue;
    const place = y.at(value);
    const below = taken.every((other) => Math.abs(other - place - 14) > 14) && place + 16 < frame.bottom;
    taken.push(below ? place + 14 : place - 5);
    plot.append(
      shape("line", { x1: frame.left, x2: frame.right, y1: place, y2: place, class: "level" }),
      shape("text", { x: frame.left + 8, y: below ? place + 14 : place - 5, class: "level" }, `${name} ${words(value)}`),
    );
  }
}

function points(series, values, state, x, y) {
  const axis = series.x[state.axis];
  return values.map((value, place) => {
    if (value === null || axis[place] === null || (state.yLog && value <= 0)) return null;
    return [x.at(axis[place]), Math.max(-1e4, Math.min(1e4, y.at(value)))];
  });
}

function curve(series, state, x, y) {
  let d = "";
  let drawing = false;
  for (const point of points(series, series.y, state, x, y)) {
    if (point) d += `${drawing ? "L" : "M"}${point[0].toFixed(1)} ${point[1].toFixed(1)}`;
    drawing = point !== null;
  }
  if (/^M[^ML]*$/.test(d)) d += "h0.1"; // a single point is a dot
  const made = shape("path", { d, class: `curve ${series.kind}`, "data-label": series.label, "data-kind": series.kind, "stroke-dasharray": series.kind === "mean" && series.dash ? series.dash : null });
  made.style.setProperty("--own", paint(series.colour));
  return made;
}

function hasMarkers(series) {
  return series.kind === "mean" || series.kind === "other";
}

function markerAt(series, across, down) {
  const made = shape("path", { d: MARKERS[series.marker], class: "marker", transform: `translate(${across} ${down})` });
  made.style.setProperty("--own", paint(series.colour));
  return made;
}

// Markers stand at points that were measured: at those nearest to even intervals of the width, shifted from design to
// design so that they do not cover each other.
function markers(series, state, x, y, frame) {
  const group = shape("g", { "data-markers": series.label });
  const known = points(series, series.y, state, x, y).filter((point) => point && point[1] >= frame.top && point[1] <= frame.bottom);
  const gap = (frame.right - frame.left) / MARKED;
  const shift = 0.15 + (0.7 * series.marker) / (MARKERS.length - 1);
  const near = (_, count) => known[nearest(known.map((point) => point[0]), frame.left + gap * (count + shift))];
  const marked = known.length > FEW ? new Set(Array.from({ length: MARKED }, near)) : known;
  for (const [across, down] of marked) group.append(markerAt(series, across.toFixed(1), down.toFixed(1)));
  return group;
}

function band(series, state, x, y) {
  const text = (point) => `${point[0].toFixed(1)} ${point[1].toFixed(1)}`;
  // A log axis has no place for a lower end of 0 or less: the band continues to the frame.
  const lows = series.low.map((value) => (value !== null && state.yLog && value <= 0 ? y.low / 10 : value));
  const low = points(series, lows, state, x, y);
  const high = points(series, series.high, state, x, y);
  const whole = low.map((point, place) => [point, high[place]]).filter(([a, b]) => a && b);
  const d = whole.length > 1 ? `M${whole.map(([, b]) => text(b)).join("L")}L${whole.map(([a]) => text(a)).reverse().join("L")}Z` : "";
  const made = shape("path", { d, class: "band" });
  made.style.setProperty("--own", paint(series.colour));
  return made;
}
