// The data at a glance, and ways to add to it.

import { button, failure, h } from "../dom.ts";
import { count, counted } from "../format.ts";
import { graphs, graphsParameter, isFitted } from "../graphs.ts";
import { DATASET_FORMATS, GRAPH_STORE_FORMATS } from "../net/formats.ts";
import type { Description } from "../rdf/description.ts";
import { iriText } from "../rdf/term.ts";
import { queryHash } from "../show.ts";
import { counts, data, listed } from "../state.ts";
import { ClassView } from "./class-view.ts";
import { board, fileName, offerDownload } from "./download.ts";
import { GraphList } from "./graph-list.ts";
import { list } from "./listing.ts";
import { HOW_TO_WRITE, type Loader, loader } from "./load.ts";
import { PrefixList } from "./prefix-list.ts";
import type { View } from "./view.ts";

export class DataView implements View {
  readonly title = "Data";
  readonly element = h("section", { class: "data" });
  private facts = h("div");
  private adding = h("div");
  private graphList = new GraphList();
  /** What is said about downloads of the whole store. */
  private board = board();
  private classView = new ClassView();
  private glance = h("div");
  private prefixList = new PrefixList();
  private loader: Loader | undefined;
  private round = 0;

  constructor() {
    this.element.append(h("h1", {}, "Data"), this.glance, this.classView.element, this.facts, this.adding, this.prefixList.element);
  }

  show(): void {
    void this.fill();
  }

  refresh(): void {
    void this.fill();
  }

  hide(): void {
    this.classView.stop();
  }

  private async fill(): Promise<void> {
    const round = ++this.round;
    const about = await data();
    const found = await counts();
    if (round !== this.round) return;
    if (!about || !found) {
      this.glance.replaceChildren();
      this.facts.replaceChildren(failure("No description of the data: the server requires a token, or cannot be reached."));
      return;
    }
    const which = graphsParameter();
    const link = (text: string) => queryHash(text, which);
    this.glance.replaceChildren(
      h(
        "dl", { class: "facts" },
        fact("Triples", found.triples), fact("Subjects", found.subjects), fact("Predicates", found.predicateCount), fact("Classes", found.classCount), fact("Named graphs", about.graphs),
      ),
      h("p", { class: "soft" }, isFitted()
        ? "The default graph is empty, so the page reads all graphs together."
        : found.ofAll ? "The counts of subjects, predicates and classes are those of all graphs; the default graph is too large to be counted by itself."
        : about.namedQuads > 0 ? (graphs() === "all" ? "All graphs together." : `The default graph alone; ${counted(about.namedQuads, "triple")} are in named graphs.`) : ""),
    );
    this.facts.replaceChildren(
      this.download(about),
      h(
        "div", { class: "columns" },
        list({ title: "Classes", unit: "instances", all: found.classes, whole: found.classCount, query: (iri) => link(`SELECT ?x WHERE {\n  ?x a ${iriText(iri)}\n}\nLIMIT 1000\n`), find: (words) => listed("?s a ?k", { words }) }),
        list({ title: "Predicates", unit: "triples", all: found.predicates, whole: found.predicateCount, query: (iri) => link(`SELECT ?s ?o WHERE {\n  ?s ${iriText(iri)} ?o\n}\nLIMIT 1000\n`), find: (words) => listed("?s ?k ?o", { words }) }),
        this.graphList.element,
      ),
    );
    // What someone is about to load stays as it is.
    if (about.writable) {
      this.loader ??= loader("Load files");
      if (!this.loader.element.isConnected) this.adding.replaceChildren(this.loader.element);
    } else this.adding.replaceChildren(h("h2", {}, "Adding data"), h("p", { class: "soft" }, `This server is read-only. To add data, ${HOW_TO_WRITE}.`));
    void this.prefixList.show(about.writable);
    void this.classView.show(found.classes, found.classCount);
    await this.graphList.show(about);
  }

  /** A way to have everything; where nothing is in named graphs, also in the formats of a single graph. */
  private download(about: Description): HTMLElement {
    const offer = () => offerDownload({
      name: "the store", about: [`All ${counted(about.triples, "triple")}${about.namedQuads > 0 ? ", with the graphs that they are in" : ""}.`], file: fileName(about.name, "store"),
      ...(about.namedQuads > 0 ? { path: "store", formats: DATASET_FORMATS } : { path: "store?default", formats: GRAPH_STORE_FORMATS }),
    }, this.board);
    return h("div", {}, about.triples > 0 ? h("p", {}, button("Download the store", offer)) : null, this.board);
  }
}

function fact(name: string, value: number): HTMLElement {
  return h("div", {}, h("dt", {}, name), h("dd", {}, count(value)));
}
