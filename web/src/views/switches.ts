// What is chosen for all views: which graphs are read, and whether labels are shown.

import { h } from "../dom.ts";
import { tell } from "../events.ts";
import { choose, graphs, graphsMatter, type Graphs } from "../graphs.ts";
import { labelsOn, switchLabels } from "../labels.ts";

const graphsChoice = h(
  "select", { title: "What patterns outside GRAPH read", attrs: { "aria-label": "Graphs that are read" } },
  h("option", { attrs: { value: "default" } }, "Default graph"), h("option", { attrs: { value: "all" } }, "All graphs"),
);
const labels = h("input", { attrs: { type: "checkbox" } });
const place = h("span", { class: "switches" }, graphsChoice, h("label", { title: "Shows names in place of IRIs; the IRI is seen where the pointer is" }, labels, " Labels"));

graphsChoice.addEventListener("change", () => {
  choose(graphsChoice.value as Graphs);
  tell("graphs");
});
labels.addEventListener("change", () => switchLabels(labels.checked));

/** The switches as they are now. */
export function switches(): HTMLElement {
  graphsChoice.hidden = !graphsMatter();
  graphsChoice.value = graphs();
  labels.checked = labelsOn();
  return place;
}
