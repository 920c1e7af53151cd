// Graphs on canvases, with heavy nodes ringed: shared by the map of visits, the drawing of the graph and the walks.

const INWARD = 0.56; // the longest bar, from a circle towards its middle
const MOST_NAMED = 60; // nodes; in a larger graph only the heavy ones are named
const LONGEST_NAME = 18;
const NAME_SIZE = 11; // pixels, and the width of a letter of that size:
const LETTER = 6;

// All views of the walks of a section: the same data, with the nodes in different places.
function readWalks(packed) {
  const scale = 1 / 32767;
  const shared = {
    ...packed,
    importance: unpack(packed.importance, Float32Array),
    isHeavy: new Set(packed.heavy),
    designs: packed.designs.map((one, place) => ({ ...one, marker: place % MARKERS.length, kind: "mean", visits: unpack(one.visits, Float32Array), path: one.path && unpackIndices(one.path) })),
  };
  return [packed, ...packed.others].map((one) => ({
    ...shared,
    ...one,
    importance: shared.importance,
    designs: shared.designs,
    x: Float32Array.from(unpack(one.x, Int16Array), (value) => value * scale),
    y: Float32Array.from(unpack(one.y, Int16Array), (value) => value * scale),
    edges: unpackIndices(one.edges ?? packed.edges),
  }));
}

// Buttons for the views, if there are several.
function chooseView(views, change) {
  if (views.length < 2) return [];
  const group = choice("View of the graph", views.map((one, place) => [place, one.view]), 0, (place) => change(views[place]));
  return [element("div", { class: "controls" }, element("span", { class: "pair" }, "view ", group))];
}

// Fit a canvas to its width; returns the pixel positions of all nodes.
function fit(canvas, walks) {
  const width = Math.max(canvas.clientWidth, 60);
  const plain = Math.max(9, width * 0.045);
  const outside = walks.circle && hasRoomForNames(walks); // bars occupy the inside of a circle
  const pad = outside ? Math.max(plain, Math.min(width * 0.3, 14 + LETTER * longestName(walks))) : plain;
  const rise = outside ? 2.2 * NAME_SIZE : plain;
  const height = Math.round((width - 2 * pad) * Math.min(walks.height, 1.4) + 2 * rise);
  const sharp = Math.min(devicePixelRatio || 1, 3);
  canvas.width = Math.round(width * sharp);
  canvas.height = Math.round(height * sharp);
  canvas.style.aspectRatio = `${width} / ${height}`;
  const pen = canvas.getContext("2d");
  pen.setTransform(sharp, 0, 0, sharp, 0, 0);
  const [half, tall] = [width / 2 - pad, height / 2 - rise];
  const scale = Math.min(half, tall / Math.min(walks.height, 1.4));
  const px = walks.x.map((value) => width / 2 + value * scale);
  const shift = walks.circle ? 0 : middleOf(walks.y);
  const py = walks.y.map((value) => height / 2 - (value - shift) * scale);
  const radius = walks.circle ? 1.6 : Math.max(1.1, Math.min(7, walks.spacing * scale * 0.42));
  return { canvas, pen, width, height, sharp, scale, px, py, radius, walks };
}

function middleOf(values) {
  return (values.reduce((a, b) => Math.max(a, b), -1) + values.reduce((a, b) => Math.min(a, b), 1)) / 2;
}

function disc(view, node, radius) {
  view.pen.beginPath();
  view.pen.arc(view.px[node], view.py[node], radius, 0, 2 * Math.PI);
}

function drawGround(view) {
  const { pen, walks, px, py } = view;
  pen.clearRect(0, 0, view.width, view.height);
  pen.strokeStyle = variable("--edge");
  const chords = walks.circle && walks.edges.length > 2 * walks.nodes;
  pen.globalAlpha = chords || walks.edges.length > 4000 ? 0.35 : 1;
  pen.lineWidth = chords ? 0.6 : 1;
  pen.beginPath();
  for (let place = 0; place < walks.edges.length; place += 2) {
    const [a, b] = [walks.edges[place], walks.edges[place + 1]];
    pen.moveTo(px[a], py[a]);
    pen.lineTo(px[b], py[b]);
  }
  pen.stroke();
  pen.globalAlpha = 1;
}

// One node with a level from 0 to 1: a disc, and on a circle also a bar towards the middle.
function drawNode(view, node, level, colour, opacity = 1) {
  const { pen, walks, px, py, scale } = view;
  pen.globalAlpha = opacity;
  pen.fillStyle = pen.strokeStyle = colour;
  if (walks.circle && level > 0) {
    const inner = 1 - INWARD * level;
    pen.lineWidth = Math.max(1.6, Math.min(3.5, 0.7 * walks.spacing * scale));
    pen.beginPath();
    pen.moveTo(px[node], py[node]);
    pen.lineTo(view.width / 2 + walks.x[node] * scale * inner, py[node] + walks.y[node] * scale * (1 - inner));
    pen.stroke();
  }
  disc(view, node, walks.circle && walks.nodes <= 60 ? 4 : view.radius);
  pen.fill();
  pen.globalAlpha = 1;
}

function ringHeavy(view) {
  if (view.walks.heavy.length > 200) return;
  const rim = view.walks.circle ? 5 : Math.max(view.radius + 2, 4);
  view.pen.strokeStyle = variable("--ink");
  view.pen.lineWidth = 1.5;
  for (const node of view.walks.heavy) {
    disc(view, node, rim);
    view.pen.stroke();
  }
}

// The node under the pointer, or null.
function nodeAt(view, event) {
  const box = view.canvas.getBoundingClientRect();
  const [x, y] = [event.clientX - box.left, event.clientY - box.top];
  let [best, least] = [null, 14 * 14];
  for (let node = 0; node < view.walks.nodes; node++) {
    const distance = (view.px[node] - x) ** 2 + (view.py[node] - y) ** 2;
    if (distance < least) [best, least] = [node, distance];
  }
  return best;
}

function nameOf(walks, node) {
  const name = walks.named ? walks.names[node] : `node ${words(walks.names ? walks.names[node] : node)}`;
  return `${name}${walks.isHeavy.has(node) ? " (heavy)" : ""}`;
}

function hasRoomForNames(walks) {
  return walks.named && walks.nodes <= MOST_NAMED;
}

function longestName(walks) {
  return Math.min(LONGEST_NAME, walks.names.reduce((most, name) => Math.max(most, name.length), 0));
}

// The positions of names: beside their nodes, the heavy ones first. A name without room is left out.
function placeNames(view) {
  const { pen, walks } = view;
  const every = hasRoomForNames(walks);
  const taken = every ? Array.from(view.px, (x, node) => boxAround(x, view.py[node], view.radius + 1, view.radius + 1)) : [];
  const first = (node) => (walks.isHeavy.has(node) ? 0 : 1);
  const nodes = every ? Array.from({ length: walks.nodes }, (_, node) => node) : walks.heavy.slice(0, MOST_NAMED);
  nodes.sort((a, b) => first(a) - first(b) || walks.importance[b] - walks.importance[a]);
  const found = [];
  for (const node of nodes) {
    const name = walks.names[node].length > LONGEST_NAME ? `${walks.names[node].slice(0, LONGEST_NAME - 1)}…` : walks.names[node];
    const box = roomFor(view, node, pen.measureText(name).width, taken);
    if (!box) continue;
    taken.push(box);
    found.push([name, box[0] + 1, (box[1] + box[3]) / 2]);
  }
  return found;
}

function drawNames(view) {
  const { pen, walks } = view;
  if (!walks.named) return;
  pen.font = `${NAME_SIZE}px system-ui, sans-serif`;
  pen.textBaseline = "middle";
  pen.lineJoin = "round";
  pen.lineWidth = 3;
  view.names ??= placeNames(view);
  pen.strokeStyle = variable("--paper"); // a halo, so that names are readable on top of edges
  pen.fillStyle = variable("--ink");
  for (const [name, x, y] of view.names) {
    pen.strokeText(name, x, y);
    pen.fillText(name, x, y);
  }
}

function boxAround(x, y, wide, high) {
  return [x - wide, y - high, x + wide, y + high];
}

// The first free position beside a node and inside the picture, beginning on the right, or outside of a circle.
function roomFor(view, node, width, taken) {
  const { walks } = view;
  const [x, y, half, tall] = [view.px[node], view.py[node], width / 2 + 1, NAME_SIZE / 2 + 1];
  const gap = (walks.isHeavy.has(node) ? view.radius + 4 : view.radius) + 3;
  const outward = (far) => [far * walks.x[node] * gap + Math.max(-1, Math.min(1, 4 * walks.x[node])) * half, -walks.y[node] * (far * gap + tall)];
  const beside = ([across, down]) => [across * (gap + half), down * (gap + tall)];
  const spots = walks.circle ? [...[1, 1.7, 2.4].map(outward), beside([Math.sign(walks.x[node]) || 1, 0])]
    : [[1, 0], [-1, 0], [0, -1], [0, 1], [0.7, -0.9], [-0.7, -0.9], [0.7, 0.9], [-0.7, 0.9]].map(beside);
  for (const [across, down] of spots) {
    const box = boxAround(x + across, y + down, half, tall);
    const inside = box[0] >= 0 && box[1] >= 0 && box[2] <= view.width && box[3] <= view.height;
    if (inside && taken.every((other) => box[2] < other[0] || box[0] > other[2] || box[3] < other[1] || box[1] > other[3])) return box;
  }
  return null;
}
