// The start: every figure gets its part of the data.

const sections = JSON.parse(document.getElementById("freewalk-data").textContent);

for (const figure of document.querySelectorAll("figure.chart")) {
  makeChart(figure, sections[figure.dataset.section].charts[figure.dataset.chart]);
}

const read = new Map(); // the map and the animation of a section share their arrays

function walksOf(figure) {
  const number = figure.dataset.section;
  if (!read.has(number)) read.set(number, readWalks(sections[number].walks));
  return read.get(number);
}

for (const figure of document.querySelectorAll("figure.visits")) makeVisits(figure, walksOf(figure));
for (const figure of document.querySelectorAll("figure.walk")) makeWalk(figure, walksOf(figure));

// The bar of links shows which section is being read.
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
