// The map of visits: one small graph per design, all on one scale of colours.

function makeVisits(figure, walks) {
  const idle = `Point at a node to read its ${walks.named ? "name" : "number"} and its share.`;
  const mount = figure.querySelector(".mount");
  const positive = walks.designs.flatMap((one) => Array.from(one.visits).filter((share) => share > 0));
  const high = positive.reduce((a, b) => Math.max(a, b), 1e-12);
  // What gets less than a hundredth of an even share is as good as never visited, and takes no colours from the rest.
  const rarest = positive.reduce((a, b) => Math.min(a, b), high);
  const low = Math.min(Math.max(rarest, 0.01 / walks.nodes), high / 2);
  const level = (share) => Math.log(share / low) / Math.log(high / low);
  const told = element("p", { class: "note told", role: "status" }, idle);
  const panels = element("div", { class: `panels${walks.designs.length > 4 ? " many" : ""}${hasRoomForNames(walks) ? " named" : ""}`, "data-columns": columns(walks.designs.length, walks) });
  for (const design of walks.designs) {
    const canvas = element("canvas", { role: "img", "aria-label": `Visits of ${design.label}`, "data-design": design.label });
    const share = design.heavyShare === null ? "" : `${percent(design.heavyShare)} on heavy nodes`;
    panels.append(element("div", { class: "panel" }, title(design), canvas, element("div", { class: "counters" }, share)));
    let view = null;
    keepDrawn(canvas, () => { view = drawVisits(canvas, walks, design, level); });
    const tell = (event) => {
      const node = nodeAt(view, event);
      told.textContent = node === null ? idle : `${design.label}, ${nameOf(walks, node)}: ${percent(design.visits[node])} of the visits, importance ${words(walks.importance[node], 3)}.`;
    };
    canvas.addEventListener("pointermove", tell);
    canvas.addEventListener("pointerdown", tell);
  }
  mount.append(key(low, high, rarest < low), panels, told, caption(walks, walks.circle
    ? "Colour and length of a bar: the share of the visits of all walks that a node gets, on a log scale."
    : "Colour: the share of the visits of all walks that a node gets, on a log scale."));
}

function title(design) {
  const mark = element("span", { class: "mark", "aria-hidden": "true" });
  mark.style.background = paint(design.colour);
  return element("h4", {}, mark, design.label);
}

function caption(walks, first) {
  const ringed = walks.heavy.length ? "Heavy nodes are ringed." : "";
  return element("p", { class: "note" }, [first, ringed, walks.words].filter(Boolean).join(" "));
}

// Rows that are full, or nearly so; names need room.
function columns(count, walks) {
  if (hasRoomForNames(walks)) return Math.min(count, 2);
  return count <= 4 ? count : count <= 6 || count === 9 ? 3 : 4;
}

function key(low, high, cut) {
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
