// The keys of the page, in a dialog that `?` opens.

import { button, h } from "../dom.ts";
import { dialog } from "../show.ts";

const DOCS = "https://github.com/jindou-db/jindou/tree/main/docs";

const KEYS: [string, [string, string][]][] = [
  ["In the editor", [
    ["Ctrl-Enter", "runs the query"], ["Ctrl-Space", "offers what may follow"], ["Ctrl-Shift-F", "formats the query"], ["Ctrl-/", "makes lines comments, and back"],
    ["F8", "goes to the next mistake"], ["Tab", "indents"], ["Esc, Tab", "leaves the editor"],
  ]],
  ["In a table", [["Arrows, Page Up, Page Down", "move; with Ctrl to the first and last row"], ["Enter", "opens the value"], ["s", "sorts by the column"], ["i", "shows statistics of the column"]]],
  ["In a graph", [["Arrows", "select the next node"], ["Enter", "opens it"], ["Space", "adds its neighbours"], ["p, h", "pins or hides it"], ["Ctrl-Z", "undoes"], ["+, -, Home", "zoom, show all"]]],
  ["In a map", [["Arrows", "move"], ["n, p", "select the next and previous point"], ["Enter", "shows its row"], ["+, -, Home", "zoom, show all"]]],
  ["Everywhere", [["/", "searches for a resource"], ["?", "shows these keys"]]],
];

export function showKeys(): void {
  const line = ([key, what]: [string, string]) => h("div", {}, h("dt", {}, h("kbd", {}, key)), h("dd", {}, what));
  dialog(
    "Keys and help", ...KEYS.flatMap(([where, keys]) => [h("h3", {}, where), h("dl", { class: "keys" }, ...keys.map(line))]),
    h("p", {}, h("a", { attrs: { href: DOCS, rel: "noreferrer noopener", target: "_blank" } }, "Documentation ↗")),
  );
}

export function keysButton(): HTMLElement {
  return button("?", showKeys, { title: "Keys and help", attrs: { "aria-label": "Keys and help" } });
}

/** Opens it by its key, except where someone writes. */
export function keysByKey(): void {
  addEventListener("keydown", (event) => {
    const writes = (event.target as HTMLElement).closest("input, textarea, select, dialog, .editor:not([data-offered])");
    if (event.key !== "?" || event.ctrlKey || event.metaKey || event.altKey || writes) return;
    event.preventDefault();
    event.stopPropagation();
    showKeys();
  }, { capture: true });
}
