// The cursor of a chart: hovering, touching or arrow keys read the values of every visible curve.

const SHORT = { mean: "mean", exact: "exact", published: "printed", other: "" };
const BESIDE = 620; // pixels; on wider charts the values float beside the cursor

function watch(parts) {
  const { state, view } = parts;
  const move = (event) => {
    const place = event.clientX - view.picture.getBoundingClientRect().left;
    const inside = Math.max(view.frame.left, Math.min(view.frame.right, place));
    readAt(parts, view.x.value(inside));
  };
  view.picture.addEventListener("pointermove", move);
  view.picture.addEventListener("pointerdown", move);
  view.picture.addEventListener("pointerleave", (event) => {
    if (event.pointerType === "mouse") readAt(parts, null);
  });
  view.picture.addEventListener("blur", () => readAt(parts, null));
  view.picture.addEventListener("keydown", (event) => {
    const stops = checkpoints(view, state);
    const here = state.cursor === null ? -1 : nearest(stops, state.cursor);
    const stride = event.shiftKey ? 10 : 1;
    const goal = { ArrowLeft: here - stride, ArrowRight: here + stride, Home: 0, End: stops.length - 1 }[event.key];
    if (event.key === "Escape") readAt(parts, null);
    if (goal === undefined || !stops.length) return;
    event.preventDefault();
    readAt(parts, stops[Math.max(0, Math.min(stops.length - 1, goal))]);
  });
}

// Whether all walks were measured at the same points; if so, only those are read.
function alike(view, state, stops) {
  const known = new Set(stops);
  return view.shown.filter((one) => one.kind === "mean").every((one) => one.x[state.axis].every((value) => known.has(value)));
}

// The measured points of the curve that has most of them.
function checkpoints(view, state) {
  const most = view.shown.reduce((best, one) => (one.x[state.axis].length > best.length ? one.x[state.axis] : best), []);
  return most.filter((value) => value !== null);
}

function nearest(ascending, value) {
  let best = 0;
  ascending.forEach((one, place) => {
    if (Math.abs(one - value) < Math.abs(ascending[best] - value)) best = place;
  });
  return best;
}

// The interpolated value of a curve, or null beyond its ends.
function valueAt(axis, values, where, log) {
  let after = axis.findIndex((value) => value >= where);
  if (after < 0 || (after === 0 && axis[0] > where)) return null;
  if (axis[after] === where || after === 0) return values[after];
  const [a, b] = [values[after - 1], values[after]];
  if (a === null || b === null) return null;
  const part = (where - axis[after - 1]) / (axis[after] - axis[after - 1]);
  return log && a > 0 && b > 0 ? a * (b / a) ** part : a + part * (b - a);
}

function readAt(parts, where) {
  const { state, stage, readout, view } = parts;
  view.cursor.replaceChildren();
  state.cursor = where;
  stage.dataset.cursor = where === null ? "" : where;
  if (where === null || !view.shown.length) {
    view.picture.removeAttribute("aria-valuetext");
    view.picture.setAttribute("aria-valuenow", short(view.x.low));
    readout.className = "readout idle";
    readout.textContent = "Tap the curves, or focus the chart and use the arrow keys, to read values.";
    return;
  }
  const stops = checkpoints(view, state);
  if (alike(view, state, stops)) where = stops[nearest(stops, where)];
  const place = view.x.at(where);
  view.cursor.append(shape("line", { x1: place, x2: place, y1: view.frame.top, y2: view.frame.bottom }));
  const rows = [];
  for (const one of view.shown) {
    const read = (values) => valueAt(one.x[state.axis], values, where, state.yLog);
    const value = read(one.y);
    const band = one.low && value !== null ? [read(one.low), read(one.high)] : null;
    rows.push({ one, value, band });
    if (value === null || (state.yLog && value <= 0)) continue;
    const height = view.y.at(value);
    if (height < view.frame.top || height > view.frame.bottom) continue;
    const dot = shape("circle", { cx: place, cy: height, r: 3.5 });
    dot.style.setProperty("--own", paint(one.colour));
    view.cursor.append(dot);
  }
  rows.sort((a, b) => (b.value ?? -Infinity) - (a.value ?? -Infinity)); // in the order of the curves from top to bottom
  const heading = `${state.axis} ${words(where)}`;
  // One row per design and one column per kind of curve: one row per curve would hide the chart.
  const kinds = Object.keys(KINDS).filter((kind) => rows.some(({ one }) => one.kind === kind));
  const lines = [...new Set(rows.map(({ one }) => one.label))].map((label) => {
    const own = rows.filter(({ one }) => one.label === label);
    const values = kinds.map((kind) => own.filter(({ one }) => one.kind === kind).map(({ value }) => (value === null ? "—" : words(value))).join(" "));
    const band = own.find((row) => row.band)?.band;
    const range = band && band[0] !== null && band[1] !== null && band[1] < 1e100 ? `${words(band[0], 3)} – ${words(band[1], 3)}` : "";
    return { one: (own.find(({ one }) => one.kind === "mean") ?? own[0]).one, name: label, values, range };
  });
  // The band is shown if there is nothing to compare the mean with.
  const alone = kinds.length === 1;
  const head = alone ? [] : [element("tr", {}, element("th", {}), element("th", {}), ...kinds.map((kind) => element("th", {}, SHORT[kind])))];
  const table = element("table", {}, ...head, ...lines.map((line) => element("tr", {},
    element("td", {}, swatch(line.one.kind, line.one)), element("td", {}, line.name),
    ...line.values.map((value) => element("td", {}, value)),
    ...(alone ? [element("td", { class: "range" }, line.range)] : []))));
  readout.replaceChildren(element("strong", {}, heading), table);
  view.picture.setAttribute("aria-valuenow", short(where));
  view.picture.setAttribute("aria-valuetext", `${heading}: ${lines.map((line) => `${line.name} ${line.values.filter(Boolean).join(", ")}`).join("; ")}`);
  const floats = view.width >= BESIDE;
  readout.className = floats ? "readout floating" : "readout";
  readout.style.left = readout.style.right = "";
  readout.style.top = `${stage.offsetTop + view.frame.top}px`;
  if (!floats) return;
  if (place < view.width / 2) readout.style.left = `${place + 14}px`;
  else readout.style.right = `${view.width - place + 14}px`;
}
