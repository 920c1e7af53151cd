// Graphs on canvases: nodes, edges, heavy nodes ringed; shared by the map of visits and the walks.

const INWARD = 0.56; // how far a bar may go from a circle towards its middle

function readWalks(packed) {
  const scale = 1 / 32767;
  return {
    ...packed,
    x: Float32Array.from(unpack(packed.x, Int16Array), (value) => value * scale),
    y: Float32Array.from(unpack(packed.y, Int16Array), (value) => value * scale),
    edges: unpackIndices(packed.edges),
    importance: unpack(packed.importance, Float32Array),
    isHeavy: new Set(packed.heavy),
    designs: packed.designs.map((one) => ({ ...one, visits: unpack(one.visits, Float32Array), path: one.path && unpackIndices(one.path) })),
  };
}

// Fit a canvas to its width; what comes back knows where each node is, in pixels.
function fit(canvas, walks) {
  const width = Math.max(canvas.clientWidth, 60);
  const pad = Math.max(9, width * 0.045);
  const height = Math.round((width - 2 * pad) * Math.min(walks.height, 1.4) + 2 * pad);
  const sharp = Math.min(devicePixelRatio || 1, 3);
  canvas.width = Math.round(width * sharp);
  canvas.height = Math.round(height * sharp);
  canvas.style.aspectRatio = `${width} / ${height}`;
  const pen = canvas.getContext("2d");
  pen.setTransform(sharp, 0, 0, sharp, 0, 0);
  const [half, tall] = [width / 2 - pad, height / 2 - pad];
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
  return `node ${words(walks.names ? walks.names[node] : node)}${walks.isHeavy.has(node) ? " (heavy)" : ""}`;
}
