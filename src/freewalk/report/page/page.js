// Entry point: every figure gets its part of the data.

const sections = JSON.parse(document.getElementById("freewalk-data").textContent);

for (const figure of document.querySelectorAll("figure.chart")) {
  makeChart(figure, sections[figure.dataset.section].charts[figure.dataset.chart]);
}

const read = new Map(); // the figures of a section share their arrays

function walksOf(figure) {
  const number = figure.dataset.section;
  if (!read.has(number)) read.set(number, readWalks(sections[number].walks));
  return read.get(number);
}

for (const figure of document.querySelectorAll("figure.visits")) makeVisits(figure, walksOf(figure));
for (const figure of document.querySelectorAll("figure.walk")) makeWalk(figure, walksOf(figure));
for (const figure of document.querySelectorAll("figure.graph")) makeGraph(figure, walksOf(figure));

// Tables that are wider than the screen say so, and show on which side there is more.
for (const box of document.querySelectorAll(".scroll")) {
  const hint = element("p", { class: "hint" }, "Scroll the table sideways to see all columns.");
  const look = () => {
    const rest = box.scrollWidth - box.clientWidth;
    box.dataset.left = box.scrollLeft > 1;
    box.dataset.right = rest - box.scrollLeft > 1;
    hint.hidden = rest <= 1;
  };
  box.before(hint);
  box.addEventListener("scroll", look, { passive: true });
  new ResizeObserver(look).observe(box);
  look();
}

// The navigation bar shows which section is being read.
const links = new Map([...document.querySelectorAll("nav a")].map((link) => [link.hash.slice(1), link]));
if (links.size) {
  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      links.forEach((link) => link.removeAttribute("aria-current"));
      const link = links.get(entry.target.id);
      link.setAttribute("aria-current", "true");
      const bar = link.closest("ul");
      bar.scrollLeft = link.offsetLeft - bar.offsetLeft - 24;
    }
  }, { rootMargin: "-20% 0px -70% 0px" });
  links.forEach((_, anchor) => watcher.observe(document.getElementById(anchor)));
}

document.documentElement.dataset.ready = "true";
