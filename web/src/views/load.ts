// The panel that loads RDF: files that are dropped or chosen, pasted text, or a URL.

import { button, failure, h } from "../dom.ts";
import { tell } from "../events.ts";
import { bytes, count, counted, milliseconds } from "../format.ts";
import { dressed, send, token } from "../net/http.ts";
import { select } from "../net/select.ts";
import { guess, isDatasetFile, loadAddress, objection, problemIn, refusal, type Report, sendFiles, SKIP, type Skipped, type Target } from "../net/upload.ts";
import { iriText, visible } from "../rdf/term.ts";
import { dialog } from "../show.ts";
import { data, stale } from "../state.ts";

const FORMATS: [string, string][] = [
  ["text/turtle", "Turtle or N-Triples"], ["application/trig", "TriG"], ["application/n-quads", "N-Quads"], ["application/rdf+xml", "RDF/XML"], ["application/ld+json", "JSON-LD"],
];

/** With more files than this, only those that were refused or lost statements are listed. */
const MANY = 5;

/** The end of a sentence about a read-only server. */
export const HOW_TO_WRITE = "restart it with --writable (programs on its own machine may write) or with --token-file FILE (for those that have a token)";

export function reportView(report: Report): HTMLElement {
  const changed = `${counted(report.added, "quad")} added, ${counted(report.removed, "quad")} removed by ${counted(report.operations, "operation")}.`;
  const times = Object.entries(report.ms).map(([name, ms]) => `${name} ${milliseconds(ms)}`).join(", ");
  return h("div", { class: "report", attrs: { role: "status" } }, h("p", {}, h("strong", {}, changed)), h("p", {}, `Snapshot ${report.snapshot} shows it (${times}).`), report.skipped ? skips(report.skipped) : null);
}

/** The malformed statements that were skipped: their number, and the first ones with their positions. */
function skips({ statements, first, rest }: Skipped): HTMLElement {
  if (statements === 0) return h("p", {}, "No statement is malformed.");
  const behind = rest ? `, and the rest of ${counted(rest.documents, "document")} after one of them (${bytes(rest.bytes)})` : "";
  const shown = first.length < statements ? `The first ${count(first.length)}:` : "";
  return h(
    "div", { class: "skipped" }, h("p", {}, h("strong", {}, `${counted(statements, "malformed statement")} skipped${behind}.`), " ", shown),
    h("ol", {}, ...first.map(({ document, line, column, message, text }) => h("li", {}, document === "<body>" ? "" : `${visible(document)}: `, line > 0 ? `Line ${count(line)}, column ${count(column)}: ` : "", message, ...(text === null ? [] : [h("br"), h("code", {}, h("bdi", {}, text))])))),
  );
}

function hasSkips(report: Report): boolean {
  return (report.skipped?.statements ?? 0) > 0;
}

/** Seconds that counting triples may take. */
const PATIENCE = 5;

/** The IRI of a graph; "" is the default graph, `undefined` the whole store. */
type Place = string | undefined;

/** Counts triples, up to `most` if it is given. Resolves to `undefined` if that fails or takes too long. */
async function sizeOf(place: Place, most?: number): Promise<number | undefined> {
  const pattern = place === "" ? "?s ?p ?o" : place === undefined ? "{ ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } }" : `GRAPH ${iriText(place)} { ?s ?p ?o }`;
  try {
    const [row] = await select(`SELECT (COUNT(*) AS ?n) { ${most ? `SELECT * { ${pattern} } LIMIT ${most}` : pattern} }`, { timeout: PATIENCE, graphs: "default" });
    return Number(row?.[0]?.value);
  } catch {
    return undefined;
  }
}

/** Asks the user before a graph that is not empty is replaced. Resolves to true if it is empty, or the user agrees. */
async function mayReplace(graph: string, by: string): Promise<boolean> {
  const size = await sizeOf(graph);
  if (size === 0) return true;
  const triples = size === undefined ? "contents" : counted(size, "triple");
  const name = graph === "" ? "the default graph" : visible(graph);
  return new Promise((resolve) => {
    let replaces = false;
    const go = button(`Replace its ${triples}`, () => {
      replaces = true;
      box.close();
    }, { class: "danger" });
    const keep = button("Keep them", () => box.close());
    const box = dialog(
      "Replace a graph?",
      h("p", {}, `${size === undefined ? "The contents" : triples} of `, graph === "" ? name : h("code", {}, name), ` will be deleted, and replaced by ${by}, in one transaction. This cannot be undone; if you may need them again, download the graph first.`),
      h("p", { class: "tools" }, go, keep),
    );
    box.addEventListener("close", () => resolve(replaces));
    keep.focus();
  });
}

export class Loader {
  readonly element: HTMLElement;
  private files = h("input", { attrs: { type: "file", multiple: true, "aria-label": "RDF files" } });
  private graph = h("input", { attrs: { type: "text", placeholder: "the default graph, or the graphs in the file", spellcheck: "false" } });
  private replace = h("input", { attrs: { type: "checkbox" } });
  private lenient = h("input", { attrs: { type: "checkbox" } });
  private text = h("textarea", { attrs: { rows: 6, "aria-label": "RDF text", spellcheck: "false", placeholder: "<http://example.org/me> <http://xmlns.com/foaf/0.1/name> \"Ann\" ." } });
  private format = h("select", { attrs: { "aria-label": "Format of the text" } }, ...FORMATS.map(([value, name]) => h("option", { attrs: { value } }, name)));
  private address = h("input", { attrs: { type: "url", "aria-label": "Address of a document", placeholder: "https://…/data.ttl", spellcheck: "false" } });
  private log = h("div", { class: "loaded", attrs: { "aria-live": "polite" } });
  /** The button that undoes the last load. The first screen shows it in place of the panel once there is data. */
  readonly undo = h("div", { attrs: { "aria-live": "polite" } });
  private stopButton = button("Cancel", () => {
    this.stopped = true;
    this.running?.abort();
  });
  private go = button("Load", () => void this.choice(), { class: "primary" });
  private running: XMLHttpRequest | undefined;
  private stopped = false;
  private ways: { button: HTMLButtonElement; part: HTMLElement }[];
  private formatChosen = false;

  /** `title` is a heading; `done` is called when something was loaded. */
  constructor(title: string, private done: () => void = () => {}) {
    this.stopButton.hidden = true;
    this.text.addEventListener("input", () => {
      if (!this.formatChosen) this.format.value = guess(this.text.value);
    });
    this.format.addEventListener("change", () => (this.formatChosen = true));
    const files = h(
      "div", {}, h("p", {}, this.files, " ", this.go, " ", this.stopButton),
      h("p", { class: "soft" }, "Turtle, N-Triples, RDF/XML, JSON-LD, N-Quads or TriG, plain or compressed (gz, bz2, xz, zst). Each file is one transaction: it is loaded completely or not at all. Files that replace a graph are one transaction together."),
    );
    const paste = h("div", {}, this.text, h("p", {}, h("label", {}, "Format ", this.format), " ", button("Load text", () => void this.pasted())));
    const url = h(
      "div", {}, h("p", {}, this.address, " ", button("Load URL", () => void this.fetched())),
      h("p", { class: "soft" }, "The server fetches it by itself, from hosts that it was started with --load-allow HOST for."),
    );
    this.ways = ([["Choose files", files], ["Paste a text", paste], ["Give a URL", url]] as const).map(([name, part], i) => ({ part, button: button(name, () => this.turnTo(i)) }));
    this.turnTo(0);
    this.element = h(
      "div", { class: "upload" }, h("h2", {}, title),
      h(
        "div", { class: "drop-zone" },
        h("p", { class: "drop-title" }, "Drop RDF files anywhere on this page, or"),
        h("p", { class: "ways-in", attrs: { role: "group", "aria-label": "Where the data comes from" } }, ...this.ways.map((way) => way.button)),
        ...this.ways.map((way) => way.part),
        h("p", { class: "target" }, h("label", {}, "Into graph ", this.graph), " ", h("label", {}, this.replace, " replace the graph's contents"), " ", h("label", {}, this.lenient, ` ${SKIP}`)),
      ), this.log, this.undo,
    );
  }

  private turnTo(chosen: number): void {
    for (const [i, { button, part }] of this.ways.entries()) {
      part.hidden = i !== chosen;
      button.setAttribute("aria-pressed", String(i === chosen));
    }
  }

  /** Fills in a text or URL that was pasted outside of all fields. */
  offer(text: string): void {
    const isAddress = /^https?:\/\/\S+$/.test(text.trim());
    this.turnTo(isAddress ? 2 : 1);
    if (isAddress) this.address.value = text.trim();
    else {
      this.text.value = text;
      if (!this.formatChosen) this.format.value = guess(text);
    }
    (isAddress ? this.address : this.text).focus();
  }

  private get target(): Target {
    return { graph: this.graph.value.trim(), replace: this.replace.checked, lenient: this.lenient.checked };
  }

  /** Loads files: all of them in one transaction if they replace a graph, else one after the other. */
  async take(files: File[]): Promise<void> {
    const { target } = this;
    this.go.disabled = true;
    this.stopped = false;
    const place = target.graph === "" && files.some(isDatasetFile) ? undefined : target.graph;
    await (target.replace ? this.replaceBy(files, target) : this.undoable(place, () => this.addEach(files, target)));
    this.go.disabled = false;
    this.stopButton.hidden = true;
  }

  /** Replaces a graph by all files in one transaction: none is loaded if one of them is refused. */
  private async replaceBy(files: File[], target: Target): Promise<void> {
    const wrong = files.flatMap((file) => objection(file, target) ?? []);
    if (wrong.length > 0) {
      this.log.replaceChildren(...wrong.map(failure));
      return;
    }
    const by = files.length === 1 ? (files[0]?.name ?? "") : counted(files.length, "file");
    if (!(await this.confirmed(target, by))) return;
    this.stopButton.hidden = false;
    const total = h("p", { attrs: { role: "status" } });
    const line = h("div", { class: "uploading" });
    this.log.replaceChildren(total, line);
    const report = await sendFiles(files, target, line, (x) => (this.running = x), reportView);
    if (!report) {
      total.textContent = "The graph was not changed.";
      return;
    }
    const said = `The graph was replaced by ${by}: ${counted(report.added, "quad")} added, ${counted(report.removed, "quad")} removed.`;
    total.textContent = said;
    this.replaced();
    this.changed();
    if (hasSkips(report)) dialog("Loaded in part", h("p", {}, said), line);
  }

  /** Asks before a graph is replaced, and says so if it will not be. */
  private async confirmed(target: Target, by: string): Promise<boolean> {
    if (await mayReplace(target.graph, by)) return true;
    this.log.replaceChildren(h("p", { attrs: { role: "status" } }, "Nothing was loaded, and the graph was not changed."));
    return false;
  }

  /** After a graph was replaced: the next load does not replace unless that is chosen again, and there is nothing to undo. */
  private replaced(): void {
    this.undo.replaceChildren();
    this.replace.checked = false;
  }

  /** Loads files one after the other; if one is refused, the others are loaded all the same. Resolves to the number of quads added. */
  private async addEach(files: File[], target: Target): Promise<number> {
    this.stopButton.hidden = false;
    const total = h("p", { attrs: { role: "status" } });
    this.log.replaceChildren(total);
    const refused: HTMLElement[] = [];
    const reduced: HTMLElement[] = [];
    let quads = 0;
    let taken = 0;
    for (const [i, file] of files.entries()) {
      if (this.stopped) break;
      const line = h("div", { class: "uploading" });
      if (files.length > 1) total.textContent = `File ${count(i + 1)} of ${count(files.length)}; ${counted(quads, "quad")} so far.`;
      this.log.append(line);
      const report = await sendFiles([file], target, line, (x) => (this.running = x), reportView);
      if (!report) {
        refused.push(line);
        continue;
      }
      taken++;
      quads += report.added;
      if (hasSkips(report)) reduced.push(line);
      else if (files.length > MANY) line.remove();
    }
    const said = `${count(taken)} of ${counted(files.length, "file")} loaded, ${counted(quads, "quad")} added${refused.length > 0 ? `; ${count(refused.length)} refused` : ""}.`;
    if (files.length > 1) total.textContent = said;
    if (taken > 0) this.changed();
    // A dialog, because the first screen of a store with data takes the place of this panel.
    if (reduced.length > 0 || (refused.length > 0 && files.length > 1)) dialog("Loaded in part", h("p", {}, said), ...refused, ...reduced);
    return quads;
  }

  /** Runs a load, and offers to empty the place again if it was empty before and then has exactly what was added. */
  private async undoable(place: Place, load: () => Promise<number>): Promise<void> {
    this.undo.replaceChildren();
    const fills = (await sizeOf(place, 1)) === 0;
    const added = await load();
    if (!fills || added === 0) return;
    const path = place === undefined ? "store" : place === "" ? "store?default" : `store?graph=${encodeURIComponent(place)}`;
    const name = place === undefined ? "the store" : place === "" ? "the default graph" : visible(place);
    const tag = await fetch(path, dressed({ method: "HEAD" }, token())).then((r) => r.headers.get("ETag"), () => null);
    // Changes by others up to this tag are found by the count; after later ones the server rejects the tag.
    if (tag === null || (await sizeOf(place)) !== added) {
      this.undo.replaceChildren(`There is no Undo: ${name} does not have exactly what was loaded, or could not be counted.`);
      return;
    }
    const undo = button("Undo", async () => {
      undo.disabled = true;
      const headers = { "If-Match": tag };
      try {
        await (place === undefined
          ? send("update", { method: "POST", headers: { ...headers, "Content-Type": "application/sparql-update" }, body: "CLEAR ALL" })
          : send(path, { method: "DELETE", headers }));
        line.replaceChildren(`Undone: ${name} is empty again.`);
        this.changed();
      } catch (error) {
        const problem = problemIn(error);
        line.replaceChildren(failure(problem.status === 412 ? `${name} has been changed since, so nothing was undone.` : problem.detail));
      }
    });
    const line = h("p", {}, undo, ` empties ${name} again`);
    this.undo.replaceChildren(line);
  }

  private changed(): void {
    stale();
    tell("data");
    this.done();
  }

  private async choice(): Promise<void> {
    if (!this.files.files?.length) this.log.replaceChildren(failure("Choose a file first."));
    else await this.take([...this.files.files]);
  }

  private async pasted(): Promise<void> {
    if (this.text.value.trim() === "") this.log.replaceChildren(failure("Paste a text first."));
    else await this.take([new File([this.text.value], "pasted text", { type: this.format.value })]);
  }

  private async fetched(): Promise<void> {
    const address = this.address.value.trim();
    if (!/^https?:\/\/./.test(address)) {
      this.log.replaceChildren(failure("Give an address that begins with http:// or https://."));
      return;
    }
    const { target } = this;
    if (!target.replace) return this.undoable(target.graph, () => this.load(address, target));
    if (target.lenient || (await this.confirmed(target, address))) await this.load(address, target);
  }

  /** Lets the server fetch and load a URL. Resolves to the number of quads added. */
  private async load(address: string, target: Target): Promise<number> {
    const line = h("div", { class: "uploading" }, `${address}: the server fetches and reads it…`);
    this.log.replaceChildren(line);
    try {
      const report = await loadAddress(address, target);
      line.replaceChildren(h("strong", {}, address), reportView(report));
      if (target.replace) this.replaced();
      this.changed();
      if (hasSkips(report)) dialog("Loaded in part", line);
      return report.added;
    } catch (error) {
      line.replaceChildren(failure(refusal(problemIn(error), target.lenient)));
      return 0;
    }
  }
}

function visibleLoader(all: Set<Loader>): Loader | undefined {
  return [...all].find((l) => l.element.getClientRects().length > 0);
}

const loaders = new Set<Loader>();

/** A loader that, while it is visible, also loads files that are dropped, and texts that are pasted, anywhere on the page. */
export function loader(title: string, done?: () => void): Loader {
  const made = new Loader(title, done);
  loaders.add(made);
  return made;
}

export function dropAnywhere(): void {
  let depth = 0;
  const over = (on: boolean) => document.body.classList.toggle("dropping", on);
  const hasFiles = (event: DragEvent) => event.dataTransfer?.types.includes("Files") ?? false;
  addEventListener("dragenter", (event) => {
    if (hasFiles(event) && ++depth === 1) over(true);
  });
  addEventListener("dragleave", (event) => {
    if (hasFiles(event) && --depth <= 0) over(false);
  });
  addEventListener("dragover", (event) => {
    if (hasFiles(event)) event.preventDefault();
  });
  addEventListener("paste", (event) => {
    const text = event.clipboardData?.getData("text/plain") ?? "";
    const there = visibleLoader(loaders);
    if (text.trim() === "" || !there || (event.target as Element).closest?.("input, textarea, select, dialog, .editor")) return;
    event.preventDefault();
    there.offer(text);
  });
  addEventListener("drop", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    depth = 0;
    over(false);
    const files = [...(event.dataTransfer?.files ?? [])];
    if (files.length > 0) void dropped(files);
  }, { capture: true });
}

async function dropped(files: File[]): Promise<void> {
  const about = await data();
  if (about && !about.writable) {
    dialog("Read-only server", h("p", {}, `This server takes no files: ${HOW_TO_WRITE}.`));
    return;
  }
  const there = visibleLoader(loaders);
  if (there) {
    await there.take(files);
    return;
  }
  const made = new Loader("Load files");
  dialog("Load", made.element).addEventListener("close", () => loaders.delete(made));
  await made.take(files);
}
