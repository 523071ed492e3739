// The named graphs: how many triples each has, and ways to download and to remove one.

import { button, failure, h } from "../dom.ts";
import { counted } from "../format.ts";
import { tell } from "../events.ts";
import { GRAPH_STORE_FORMATS } from "../net/formats.ts";
import { json, messageOf } from "../net/http.ts";
import { problemIn, type Report } from "../net/upload.ts";
import type { Counted, Description } from "../rdf/description.ts";
import { iriText, visible } from "../rdf/term.ts";
import { dialog, prefixes, queryHash } from "../show.ts";
import { listed, stale } from "../state.ts";
import { board, fileName, lineOn, offerDownload } from "./download.ts";
import { list } from "./listing.ts";

/** Seconds that counting the triples of all graphs may take. */
const PATIENCE = 20;

export class GraphList {
  readonly element = h("div");
  private board = board();
  private listed = h("div", {}, "…");
  private round = 0;
  /** A graph was removed, and with it the button that had the focus. */
  private removed = false;

  constructor() {
    this.element.append(this.listed, this.board);
  }

  async show(about: Description): Promise<void> {
    const round = ++this.round;
    try {
      const find = (words: string[]) => listed("GRAPH ?k { ?s ?p ?o }", { words, timeout: PATIENCE });
      const all = await find([]);
      if (round !== this.round) return;
      const note = about.unionDefault ? "The default graph is the union of them all." : `${counted(about.defaultTriples, "triple")} in the default graph.`;
      this.listed.replaceChildren(list({
        title: "Named graphs", unit: "triples", all, whole: Math.max(about.graphs, all.length),
        query: (iri) => queryHash(`SELECT * WHERE {\n  GRAPH ${iriText(iri)} { ?s ?p ?o }\n}\nLIMIT 1000\n`),
        note, find,
        // A graph whose name is a blank node cannot be named in a request.
        acts: (one) => (one.blank ? [] : this.acts(one, about.writable)),
      }));
    } catch (error) {
      if (round === this.round) this.listed.replaceChildren(failure(messageOf(error)));
    }
    if (this.removed) this.board.focus();
    this.removed = false;
  }

  private acts(one: Counted, writable: boolean): HTMLElement[] {
    const get = button("Download", () => this.download(one), { class: "link", attrs: { "aria-label": `Download ${one.iri}` } });
    const remove = button("Remove", () => this.askToRemove(one), { class: "link", attrs: { "aria-label": `Remove ${one.iri}` } });
    return writable ? [get, remove] : [get];
  }

  private download({ iri, count: n }: Counted): void {
    offerDownload({
      name: prefixes.shown(iri), about: [h("code", {}, visible(iri)), ` has ${counted(n, "triple")}.`],
      path: `store?graph=${encodeURIComponent(iri)}`, file: fileName(iri, "graph"), formats: GRAPH_STORE_FORMATS,
    }, this.board);
  }

  /** A graph goes when someone says so once more, knowing how much it is. */
  private askToRemove({ iri, count: n }: Counted): void {
    const name = prefixes.shown(iri);
    const go = button(`Remove ${name} and its ${counted(n, "triple")}`, () => {
      box.close();
      void this.remove(iri, name);
    }, { class: "danger" });
    const keep = button("Keep it", () => box.close());
    const box = dialog(
      `Remove ${name}?`,
      h("p", {}, "All triples of the graph ", h("code", {}, visible(iri)), " are deleted. This cannot be undone; if you may need them again, download the graph first."),
      h("p", { class: "tools" }, go, keep),
    );
    keep.focus();
  }

  private async remove(iri: string, name: string): Promise<void> {
    const line = lineOn(this.board);
    line.say(`Removing ${name}…`);
    try {
      const report = await json<Report>(`store?graph=${encodeURIComponent(iri)}`, { method: "DELETE" });
      line.end(`Removed ${name} and its ${counted(report.removed, "triple")}.`);
      this.removed = true;
    } catch (error) {
      const problem = problemIn(error);
      line.end(failure(`${name} was not removed: ${problem.detail}`));
      // Someone else was faster: the list is out of date.
      if (problem.status !== 404) return;
    }
    stale();
    tell("data");
  }
}
