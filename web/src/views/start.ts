// The first screen below the editor: the store at a glance, queries that its data answers, and how to go on. An empty store begins
// with ways to load something.

import { DEMO } from "jindou:demo";
import { button, h } from "../dom.ts";
import { type Example, examples, telling } from "../examples.ts";
import { count, counted } from "../format.ts";
import { graphs, isFitted } from "../graphs.ts";
import { bar } from "../pieces.ts";
import type { Description } from "../rdf/description.ts";
import { iriLink } from "../show.ts";
import { type Counts, counts, data } from "../state.ts";
import { HOW_TO_WRITE, type Loader, loader } from "./load.ts";

/** Classes that are listed. */
const CLASSES = 10;
export class Start {
  readonly element = h("div", { class: "start" });
  private loader: Loader | undefined;
  private round = 0;

  /** `run` runs a text; `empty` says whether the store is. */
  constructor(private run: (example: Example) => void, private empty: (is: boolean) => void) {}

  async show(): Promise<void> {
    const round = ++this.round;
    const [about, found] = await Promise.all([data(), counts()]);
    if (round !== this.round) return;
    if (!about || !found) {
      this.empty(false);
      this.element.replaceChildren();
      return;
    }
    const isEmpty = about.triples === 0;
    this.empty(isEmpty);
    if (isEmpty) {
      this.element.replaceChildren(h("header", { class: "store" }, name(about)), about.writable ? this.begin() : closed());
      return;
    }
    const offered = h("ul", { class: "examples", attrs: { "aria-busy": true } });
    this.element.replaceChildren(
      h("header", { class: "store" }, name(about), facts(found, about.graphs), h("p", { class: "soft" }, which(about.namedQuads, about.defaultTriples), about.writable ? "" : `Read-only: to add data, ${HOW_TO_WRITE}.`), this.loader?.undo),
      h(
        "div", { class: "panels" },
        h("section", { class: "panel" }, h("h3", {}, "Examples from this data"), offered),
        found.classes.length > 0 ? classes(found) : null,
      ),
    );
    const made = await examples(found);
    if (round !== this.round) return;
    offered.removeAttribute("aria-busy");
    offered.replaceChildren(...made.map((e) => this.offer(e)));
  }

  private offer(one: Example): HTMLElement {
    return h("li", {}, button(one.title, () => this.run(one), { class: "example", title: one.text }));
  }

  private begin(): HTMLElement {
    const made = (this.loader ??= loader("This store is empty. Load something into it"));
    made.element.append(made.undo);
    const demo = button("Load the demo data", () => {
      demo.disabled = true;
      void made.take(DEMO.map(([name, text]) => new File([text], name))).finally(() => (demo.disabled = false));
    }, { class: "primary" });
    if (!made.element.querySelector(".demo")) made.element.querySelector("h2")?.after(h("p", { class: "demo" }, demo, h("span", { class: "soft" }, "planets, moons, missions and people, in five small files")));
    return made.element;
  }
}

/** The store's name. One without a name, such as a store in memory, is called by its server's address. */
function name(about: Description): HTMLElement {
  return h("h2", { class: "store-name" }, about.name || location.host);
}

function closed(): HTMLElement {
  return h("div", { class: "upload" }, h("h2", {}, "This store is empty, and its server is read-only"), h("p", {}, `To load data, ${HOW_TO_WRITE}. Or load files into the store before the server is started:`), h("pre", {}, "jindou load --into STORE FILE…"));
}

/** Which graphs the page reads, if there are named graphs. */
function which(named: number, own: number): string {
  if (named === 0) return "";
  if (isFitted()) return "All of it is in named graphs, so the page reads all graphs together. ";
  if (graphs() === "all") return "The page reads all graphs together. ";
  return own === 0 ? "The default graph is empty: choose “All graphs” above. " : `The page reads the default graph; ${counted(named, "more triple")} are in named graphs. `;
}

function facts(found: Counts, named: number): HTMLElement {
  const one = (n: number, name: string, many?: string) => h("a", { class: "fact", attrs: { href: "#/data" } }, h("strong", {}, count(n)), ` ${n === 1 ? name : (many ?? `${name}s`)}`);
  return h("p", { class: "fact-line" }, one(found.triples, "triple"), one(found.classCount, "class", "classes"), one(found.predicateCount, "predicate"), named > 0 ? one(named, "named graph") : null);
}

function classes(found: Counts): HTMLElement {
  const listed = found.classes.slice(0, CLASSES);
  const most = Math.max(1, ...listed.map((c) => c.count));
  const first = telling(found);
  const rows = listed.map((c) => h(
    "tr", { class: c.iri === first ? "first" : "" }, h("td", { class: "what" }, iriLink(c.iri)), h("td", { class: "n" }, count(c.count)), h("td", { class: "bar-cell", attrs: { "aria-hidden": true } }, bar(c.count / most)),
  ));
  const more = found.classCount > listed.length ? h("p", {}, h("a", { attrs: { href: "#/data" } }, `All ${count(found.classCount)} classes, predicates and graphs`)) : h("p", {}, h("a", { attrs: { href: "#/data" } }, "All of the data at a glance"));
  return h("section", { class: "panel" }, h("h3", {}, "Largest classes"), h("table", {}, h("tbody", {}, ...rows)), more);
}
