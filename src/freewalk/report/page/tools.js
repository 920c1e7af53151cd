// Shared helpers: elements, numbers as text, packed arrays, colours.

const NAMESPACE = document.getElementById("freewalk-probe").namespaceURI;

function element(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

function shape(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(NAMESPACE, tag), attributes, children);
}

function fill(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children); // texts become text nodes: nothing in a label is markup
  return made;
}

// A button that is on or off; `change` gets the new state.
function toggle(children, pressed, change, attributes = {}) {
  const button = element("button", { type: "button", "aria-pressed": pressed, ...attributes }, ...children);
  button.addEventListener("click", () => change(button.getAttribute("aria-pressed") !== "true"));
  return button;
}

// Buttons of which exactly one is pressed.
function choice(name, options, current, change) {
  const group = element("div", { class: "group", role: "group", "aria-label": name });
  const buttons = options.map(([value, words]) =>
    toggle([words], value === current, () => {
      buttons.forEach((one, place) => one.setAttribute("aria-pressed", options[place][0] === value));
      change(value);
    }, { "data-choice": value }));
  group.append(...buttons);
  return group;
}

function unpack(text, Type) {
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let place = 0; place < raw.length; place++) bytes[place] = raw.charCodeAt(place);
  return new Type(bytes.buffer);
}

function unpackIndices(packed) {
  return unpack(packed.data, packed.bytes === 2 ? Uint16Array : Uint32Array);
}

// A colour of the data: a number in the palette, or itself.
function paint(colour) {
  return typeof colour === "number" ? `var(--c${colour})` : colour;
}

// A canvas cannot use CSS variables, so it gets their present values: light, dark or print.
function variable(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function solid(colour) {
  return typeof colour === "number" ? variable(`--c${colour}`) : colour;
}

const redraws = [];

// Draw now, and again whenever the width of the element or the colours change.
function keepDrawn(host, draw) {
  let width = 0;
  redraws.push(draw);
  new ResizeObserver(() => {
    if (host.clientWidth && host.clientWidth !== width) {
      width = host.clientWidth;
      draw();
    }
  }).observe(host);
  draw();
}

for (const query of ["(prefers-color-scheme: dark)", "print"]) {
  matchMedia(query).addEventListener("change", () => redraws.forEach((draw) => draw()));
}

const SUPERSCRIPTS = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };

// A number as text: 40,000, 0.0134, 2 × 10⁻⁵.
function words(value, digits = 4) {
  const size = Math.abs(value);
  if (size && (size < 1e-4 || size >= 1e9)) {
    const [front, power] = value.toExponential(digits - 1).split("e");
    const raised = [...String(Number(power))].map((sign) => SUPERSCRIPTS[sign]).join("");
    return Number(front) === 1 ? `10${raised}` : `${Number(front)} × 10${raised}`;
  }
  const wanted = size >= 1000 ? { maximumFractionDigits: 0 } : { maximumSignificantDigits: digits };
  return value.toLocaleString("en-US", wanted);
}

// A number for an attribute.
function short(value) {
  return Number(value.toPrecision(6));
}

// A number as text, short enough for a tick.
function tickWords(value) {
  if (Math.abs(value) >= 1e6 && Math.abs(value) < 1e9) return `${words(value / 1e6)} M`;
  return words(value);
}

function percent(share) {
  const value = 100 * share;
  return `${value >= 99.95 || value === 0 ? Math.round(value) : words(value, value >= 10 ? 3 : 2)} %`;
}
