// What is chosen for all views: which graphs are read, whether labels are shown, and the colours.

import { h } from "../dom.ts";
import { tell } from "../events.ts";
import { choose, graphs, graphsMatter, type Graphs } from "../graphs.ts";
import { labelsOn, switchLabels } from "../labels.ts";
import { menu } from "../pieces.ts";
import { chooseTheme, followTheme, type Theme, theme } from "../theme.ts";
import { keysButton, showKeys } from "./keys.ts";

const graphsChoice = h(
  "select", { title: "What patterns outside GRAPH read", attrs: { "aria-label": "Graphs that are read" } },
  h("option", { attrs: { value: "default" } }, "Default graph"), h("option", { attrs: { value: "all" } }, "All graphs"),
);
const labels = h("input", { attrs: { type: "checkbox" } });
const themeChoice = h(
  "select", { title: "Theme: the page's colours", attrs: { "aria-label": "Theme" } },
  h("option", { attrs: { value: "system" } }, "System"), h("option", { attrs: { value: "light" } }, "Light"), h("option", { attrs: { value: "dark" } }, "Dark"),
);
const place = h("span", { class: "switches" }, graphsChoice, h("label", { title: "Shows names in place of IRIs; the IRI is seen where the pointer is" }, labels, " Labels"), h("span", {}, h("span", { class: "theme-mark", attrs: { "aria-hidden": true } }, "◐ "), themeChoice));
/** On a phone they stand behind one button. */
const small = menu("⋯");
small.element.classList.add("end");
small.element.querySelector("summary")?.setAttribute("aria-label", "Settings");
const narrow = matchMedia("(max-width: 44rem)");
const holder = h("span", { class: "switches" });
const put = () => {
  if (narrow.matches) small.fill([place, ["Keys and help", showKeys]]);
  holder.replaceChildren(...(narrow.matches ? [small.element] : [place, keysButton()]));
};
narrow.addEventListener("change", put);
put();

graphsChoice.addEventListener("change", () => {
  choose(graphsChoice.value as Graphs);
  tell("graphs");
});
labels.addEventListener("change", () => switchLabels(labels.checked));
themeChoice.addEventListener("change", () => chooseTheme(themeChoice.value as Theme));
followTheme(() => (themeChoice.value = theme()));

/** The switches as they are now. */
export function switches(): HTMLElement {
  graphsChoice.hidden = !graphsMatter();
  graphsChoice.value = graphs();
  labels.checked = labelsOn();
  themeChoice.value = theme();
  return holder;
}
