// Animated walks: one panel per design, one clock for all.

const MOST_PANELS = 4;
const SPEEDS = [5, 20, 100, 400, 2000]; // updates per second
const TRAIL = 30; // updates
const SHORT_TRAIL = 8; // if moves go across the picture
const WHOLE = 20; // seconds for all updates at the initial speed
const PAUSE = 500; // milliseconds between pictures for readers who prefer reduced motion
const calm = matchMedia("(prefers-reduced-motion: reduce)");

function makeWalk(figure, views) {
  const [walks] = views;
  const mount = figure.querySelector(".mount");
  const designs = walks.designs.filter((one) => one.path);
  const steps = walks.steps;
  const state = { time: 0, playing: false, speed: firstSpeed(steps), last: 0, drawn: 0, chosen: telling(designs), panels: [] };
  const panels = element("div", { class: `panels moving${hasRoomForNames(walks) ? " named" : ""}` });
  const clock = element("output", { class: "clock" });
  const slider = element("input", { type: "range", min: 0, max: steps, step: 1, "aria-label": "Number of updates" });
  const play = element("button", { type: "button", class: "play", "data-action": "play" });
  const parts = { figure, walks, designs, state, panels, clock, slider, play, steps };

  const text = element("div");
  const explain = () => text.replaceChildren(caption(parts.walks, remarks(parts.walks, steps)));
  const go = (time) => { state.time = Math.max(0, Math.min(steps, time)); show(parts); };
  play.addEventListener("click", () => {
    state.playing = !state.playing;
    if (state.playing && state.time >= steps) state.time = 0;
    state.last = 0;
    show(parts);
    if (state.playing) requestAnimationFrame((now) => tick(parts, now));
  });
  slider.addEventListener("input", () => go(Number(slider.value)));
  const button = (name, words, label, act) => {
    const made = element("button", { type: "button", "data-action": name, "aria-label": label, title: label }, words);
    made.addEventListener("click", act);
    return made;
  };
  const speed = element("select", { "aria-label": "Speed" }, ...SPEEDS.map((value) => element("option", { value, ...(value === state.speed ? { selected: "" } : {}) }, `${words(value)} updates/s`)));
  speed.addEventListener("change", () => { state.speed = Number(speed.value); });
  mount.append(
    ...chooseView(views, (chosen) => { parts.walks = chosen; figure.dataset.view = chosen.view; lay(parts); explain(); }),
    chooser(parts),
    element("div", { class: "transport" }, play,
      button("restart", "Restart", "Back to the start", () => go(0)),
      button("back", "−1", "One update back", () => go(Math.floor(state.time) - 1)),
      button("forward", "+1", "One update forward", () => go(Math.floor(state.time) + 1)), speed),
    element("div", { class: "time" }, slider, clock), panels, text);
  explain();
  keepDrawn(panels, () => lay(parts));
}

function remarks(walks, steps) {
  const part = walks.length > steps ? ` The animation shows ${words(steps)} of ${words(walks.length)} updates.` : "";
  const shade = walks.circle ? "The more visits a node has had, the longer its bar (log scale)." : "The more visits a node has had, the stronger its colour.";
  return `${walks.note || "One walk of each design."} The large dot is its present node, with a fading trail.${part} ${shade}`;
}

function firstSpeed(steps) {
  return SPEEDS.find((speed) => steps / speed <= WHOLE) || SPEEDS[SPEEDS.length - 1];
}

// Up to four designs; one with the same path as another shows nothing new.
function telling(designs) {
  const seen = new Set();
  const found = designs.filter((one) => {
    const path = Array.prototype.join.call(one.path.subarray(0, 500));
    return !seen.has(path) && seen.add(path);
  });
  return found.slice(0, MOST_PANELS);
}

function chooser(parts) {
  const { designs, state } = parts;
  const box = element("div", { class: "legend" });
  if (designs.length < 2) return box;
  const group = element("div", { class: "designs", role: "group", "aria-label": `Walks shown, up to ${MOST_PANELS}` });
  const buttons = designs.map((design) => toggle([swatch("mean", design), design.label], state.chosen.includes(design), (on) => {
    if (!on && state.chosen.length === 1) return; // at least one stays
    if (on && state.chosen.length === MOST_PANELS) state.chosen.shift();
    const wanted = on ? [...state.chosen, design] : state.chosen.filter((one) => one !== design);
    state.chosen = designs.filter((one) => wanted.includes(one));
    buttons.forEach((one, place) => one.setAttribute("aria-pressed", state.chosen.includes(designs[place])));
    lay(parts);
  }, { "data-design": design.label }));
  group.append(...buttons);
  box.append(group);
  return box;
}

// Make a panel for each chosen design; the static parts are drawn once, on a hidden canvas.
function lay(parts) {
  const { state, panels, walks } = parts;
  panels.dataset.columns = columns(state.chosen.length, walks);
  state.panels = state.chosen.map((design) => {
    const canvas = element("canvas", { role: "img", "aria-label": `Walk of ${design.label}` });
    const counters = element("dl", { class: "counters" });
    return { design, canvas, counters, box: element("div", { class: "panel", "data-design": design.label }, title(design), canvas, counters) };
  });
  panels.replaceChildren(...state.panels.map((panel) => panel.box));
  for (const panel of state.panels) {
    panel.view = fit(panel.canvas, walks);
    drawGround(panel.view);
    const never = variable("--never");
    for (let node = 0; node < walks.nodes; node++) drawNode(panel.view, node, 0, never);
    ringHeavy(panel.view);
    panel.ground = element("canvas", { width: panel.canvas.width, height: panel.canvas.height });
    panel.ground.getContext("2d").drawImage(panel.canvas, 0, 0);
    panel.colour = solid(panel.design.colour);
    rewind(panel, walks);
  }
  show(parts);
}

function rewind(panel, walks) {
  Object.assign(panel, { counts: new Uint32Array(walks.nodes), seen: [], heavy: 0, newest: 0, done: -1 });
}

function advance(panel, walks, goal) {
  const { path } = panel.design;
  if (goal < panel.done) rewind(panel, walks);
  for (let time = panel.done + 1; time <= goal && time < path.length; time++) {
    const node = path[time];
    if (!panel.counts[node]++) { panel.seen.push(node); panel.newest = time; }
    if (walks.isHeavy.has(node)) panel.heavy++;
    panel.done = time;
  }
}

function tick(parts, now) {
  const { state, steps } = parts;
  if (!state.playing) return;
  const passed = state.last ? Math.min(now - state.last, 100) : 0; // no leap after the tab was in the background
  state.last = now;
  state.time = Math.min(steps, state.time + (passed / 1000) * state.speed);
  if (state.time >= steps) state.playing = false;
  if (!state.playing || !calm.matches || now - state.drawn >= PAUSE) {
    state.drawn = now;
    show(parts);
  }
  if (state.playing) requestAnimationFrame((next) => tick(parts, next));
}

function show(parts) {
  const { figure, state, walks, slider, clock, play, steps } = parts;
  const step = Math.floor(state.time);
  slider.value = step;
  slider.setAttribute("aria-valuetext", `update ${words(step)} of ${words(steps)}`);
  clock.textContent = `${words(step)} / ${words(steps)} updates`;
  play.textContent = state.playing ? "Pause" : "Play";
  Object.assign(figure.dataset, { step, playing: state.playing });
  for (const panel of state.panels) {
    advance(panel, walks, step);
    drawPanel(panel, walks, steps);
  }
}

function drawPanel(panel, walks, steps) {
  const { view, design, counts } = panel;
  const { pen } = view;
  pen.clearRect(0, 0, view.width, view.height);
  pen.drawImage(panel.ground, 0, 0, view.width, view.height);
  const full = Math.log(2 + steps);
  for (const node of panel.seen) {
    const level = Math.log(1 + counts[node]) / full;
    drawNode(view, node, level, panel.colour, walks.circle ? 0.85 : 0.22 + 0.78 * level);
  }
  ringHeavy(view);
  pen.strokeStyle = variable("--ink");
  pen.lineWidth = 2;
  const trail = walks.edges.length ? TRAIL : SHORT_TRAIL;
  for (let time = Math.max(1, panel.done - trail + 1); time <= panel.done; time++) {
    const [a, b] = [design.path[time - 1], design.path[time]];
    if (a === b) continue;
    pen.globalAlpha = 1 - (panel.done - time) / trail;
    pen.beginPath();
    pen.moveTo(view.px[a], view.py[a]);
    pen.lineTo(view.px[b], view.py[b]);
    pen.stroke();
  }
  pen.globalAlpha = 1;
  drawNames(view);
  const here = design.path[panel.done];
  pen.fillStyle = panel.colour;
  pen.strokeStyle = variable("--paper");
  pen.lineWidth = 2;
  disc(view, here, 6.5);
  pen.fill();
  pen.stroke();
  pen.strokeStyle = variable("--ink");
  pen.lineWidth = 1.5;
  disc(view, here, 7.5);
  pen.stroke();
  tellCounters(panel, walks);
}

function tellCounters(panel, walks) {
  const long = (text) => element("span", { class: "long" }, text); // left out on a narrow screen
  const rows = [[["distinct nodes", long(" visited")], words(panel.seen.length)]];
  if (walks.heavy.length) rows.push([[long("time "), "on heavy nodes"], percent(panel.heavy / (panel.done + 1))]);
  rows.push([[long("updates "), "since a new node"], words(panel.done - panel.newest)]);
  const texts = rows.map(([, value]) => value).join("|");
  if (panel.told === texts) return;
  panel.told = texts;
  panel.counters.replaceChildren(...rows.map(([name, value]) => element("div", {}, element("dt", {}, ...name), element("dd", {}, value))));
  Object.assign(panel.box.dataset, { distinct: panel.seen.length, heavy: panel.heavy, node: panel.design.path[panel.done] });
}
