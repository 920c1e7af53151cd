// The drawing of the graph: every node and edge once, large and undistorted, coloured by the visits of one design.

function makeGraph(figure, views) {
  const walks = views[views[0].drawing] ?? null;
  if (!walks) return; // too large, or not in the record
  figure.parentElement.hidden = false;
  const scale = visitScale(walks);
  let design = walks.designs.reduce((best, one) => (one.heavyShare > best.heavyShare ? one : best)); // the most telling
  const canvas = element("canvas", {});
  const told = element("p", { class: "note told", role: "status" });
  const draw = readable(canvas, () => walks, () => design, scale, told);
  const show = (label) => {
    design = walks.designs.find((one) => one.label === label);
    figure.dataset.design = label;
    draw();
  };
  const labels = walks.designs.map((one) => [one.label, one.label]);
  const options = labels.length > 1 ? [choice("Design whose visits are shown", labels, design.label, show)] : [];
  const bars = walks.circle ? "Colour and bar length" : "Colour";
  const text = `${walks.graph}. ${bars}: the share of the visits of ${design ? "the chosen design" : "a design"} that a node gets, on a log scale.`;
  figure.querySelector(".mount").append(element("div", { class: "controls" }, ...options), key(scale), element("div", { class: "whole" }, canvas), told, caption(walks, text));
  show(design.label);
}
