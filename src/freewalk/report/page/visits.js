// The map of visits: one small graph per design, all on one colour scale.

function makeVisits(figure, views) {
  let [walks] = views;
  const mount = figure.querySelector(".mount");
  const scale = visitScale(walks);
  const told = element("p", { class: "note told", role: "status" });
  const panels = element("div", { class: `panels${walks.designs.length > 4 ? " many" : ""}${hasRoomForNames(walks) ? " named" : ""}`, "data-columns": columns(walks.designs.length, walks) });
  const text = element("div");
  const draws = walks.designs.map((design) => {
    const canvas = element("canvas", { "data-design": design.label });
    const share = design.heavyShare === null ? "" : `${percent(design.heavyShare)} on heavy nodes`;
    panels.append(element("div", { class: "panel" }, title(design), canvas, element("div", { class: "counters" }, share)));
    return readable(canvas, () => walks, () => design, scale, told);
  });
  const explain = () => text.replaceChildren(caption(walks, walks.circle
    ? "Colour and bar length: a node's share of the visits of all walks, on a log scale."
    : "Colour: a node's share of the visits of all walks, on a log scale."));
  const show = (chosen) => {
    walks = chosen;
    figure.dataset.view = chosen.view;
    draws.forEach((draw) => draw());
    explain();
  };
  mount.append(...chooseView(views, show), key(scale), panels, told, text);
  show(walks);
}

// The colours of all designs: a log scale between the rarest and the most visited node.
function visitScale(walks) {
  const positive = walks.designs.flatMap((one) => Array.from(one.visits).filter((share) => share > 0));
  const high = positive.reduce((a, b) => Math.max(a, b), 1e-12);
  // Less than a hundredth of an even share counts as the bottom of the scale, to leave colours for the rest.
  const rarest = positive.reduce((a, b) => Math.min(a, b), high);
  const low = Math.min(Math.max(rarest, 0.01 / walks.nodes), high / 2);
  return { low, high, cut: rarest < low, level: (share) => Math.log(share / low) / Math.log(high / low) };
}

// A canvas of visits whose nodes are read by pointing, or one after the other by keyboard, the most visited first.
function readable(canvas, walksNow, designNow, scale, told) {
  let view = null;
  let order = [];
  let rank = -1;
  const idle = () => `Point at a node to read its ${walksNow().named ? "name" : "number"} and share of visits, or focus a graph and use the arrow keys.`;
  const draw = (focused = null) => {
    const design = designNow();
    view = drawVisits(canvas, walksNow(), design, scale.level);
    order = Array.from(design.visits.keys()).sort((a, b) => design.visits[b] - design.visits[a]);
    const most = order[0];
    const heavy = design.heavyShare === null ? "" : `; ${percent(design.heavyShare)} on heavy nodes`;
    fill(canvas, { tabindex: 0, role: "slider", "aria-label": `Visits of ${design.label}: most visited is ${nameOf(walksNow(), most)} with ${percent(design.visits[most])}${heavy}. Arrow keys read the nodes by rank.`, "aria-valuemin": 1, "aria-valuemax": order.length }, []);
    say(focused);
    if (focused !== null) point(view, focused);
  };
  const say = (node) => {
    const design = designNow();
    const text = node === null ? idle() : `${design.label}, ${nameOf(walksNow(), node)}: ${percent(design.visits[node])} of the visits, importance ${words(walksNow().importance[node], 3)}.`;
    told.textContent = text;
    fill(canvas, { "aria-valuenow": Math.max(rank, 0) + 1, "aria-valuetext": node === null ? "No node selected" : text }, []);
  };
  canvas.addEventListener("pointermove", (event) => say(nodeAt(view, event)));
  canvas.addEventListener("pointerdown", (event) => say(nodeAt(view, event)));
  canvas.addEventListener("keydown", (event) => {
    const goal = { ArrowRight: rank + 1, ArrowUp: rank - 1, ArrowDown: rank + 1, ArrowLeft: rank - 1, Home: 0, End: order.length - 1 }[event.key];
    if (goal === undefined) return;
    event.preventDefault();
    rank = Math.max(0, Math.min(order.length - 1, goal));
    draw(order[rank]);
  });
  canvas.addEventListener("blur", () => {
    if (rank < 0) return;
    rank = -1;
    draw();
  });
  keepDrawn(canvas, () => draw());
  return () => { rank = -1; draw(); };
}

// Mark the node that is being read.
function point(view, node) {
  view.pen.strokeStyle = variable("--accent");
  view.pen.lineWidth = 3;
  disc(view, node, 10);
  view.pen.stroke();
}

function title(design) {
  return element("h4", {}, swatch("mean", design), design.label);
}

function caption(walks, first) {
  const ringed = walks.heavy.length ? "Heavy nodes are ringed." : "";
  return element("p", { class: "note" }, [first, ringed, walks.words].filter(Boolean).join(" "));
}

// Full or nearly full rows; names need room.
function columns(count, walks) {
  if (hasRoomForNames(walks)) return Math.min(count, 2);
  return count <= 4 ? count : count <= 6 || count === 9 ? 3 : 4;
}

function key({ low, high, cut }) {
  return element("div", { class: "key" }, element("span", { class: "never" }), "never", element("span", {}, `${cut ? "≤ " : ""}${percent(low)}`), element("span", { class: "ramp", "aria-hidden": "true" }), element("span", {}, percent(high)));
}

function drawVisits(canvas, walks, design, level) {
  const view = fit(canvas, walks);
  drawGround(view);
  const stops = [0, 1, 2, 3].map((number) => channels(variable(`--ramp${number}`)));
  const never = variable("--never");
  const order = Array.from(design.visits.keys()).sort((a, b) => design.visits[a] - design.visits[b]);
  for (const node of order) { // the most visited last: on top
    const share = design.visits[node];
    const height = share > 0 ? Math.max(0, level(share)) : 0;
    drawNode(view, node, share > 0 ? 0.06 + 0.94 * height : 0, share > 0 ? mixed(stops, height) : never);
  }
  ringHeavy(view);
  drawNames(view);
  return view;
}

function channels(colour) {
  return [1, 3, 5].map((place) => parseInt(colour.slice(place, place + 2), 16));
}

function mixed(stops, level) {
  const place = Math.max(0, Math.min(level, 1)) * (stops.length - 1);
  const first = Math.min(Math.floor(place), stops.length - 2);
  const parts = stops[first].map((value, number) => Math.round(value + (place - first) * (stops[first + 1][number] - value)));
  return `rgb(${parts.join(",")})`;
}
