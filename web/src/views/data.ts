// The data at a glance, and ways to add to it.

import { button, failure, h } from "../dom.ts";
import { bytes, count, counted } from "../format.ts";
import { isDataset, mediaOf } from "../net/formats.ts";
import { offerToken, type Problem, problemOfDocument, ProblemError, token, wantsToken } from "../net/http.ts";
import { select } from "../net/select.ts";
import type { Counted } from "../rdf/description.ts";
import { iriText } from "../rdf/term.ts";
import { iriLink, queryHash } from "../show.ts";
import { data, stale } from "../state.ts";
import { Connections } from "./connections.ts";
import { reportView } from "./query.ts";
import type { View } from "./view.ts";

/** Graphs that are listed. */
const GRAPHS = 1000;

export class DataView implements View {
  readonly title = "Data";
  readonly element = h("section", { class: "data" });
  private facts = h("div");
  private adding = h("div");
  private connections = new Connections();

  constructor() {
    this.element.append(h("h1", {}, "Data"), this.facts, this.connections.element, this.adding);
  }

  show(): void {
    void this.fill();
  }

  hide(): void {
    this.connections.stop();
  }

  private async fill(): Promise<void> {
    const about = await data();
    if (!about) {
      this.facts.replaceChildren(failure("No description of the data: the server requires a token, or cannot be reached."));
      return;
    }
    const graphs = h("div", {}, "…");
    this.facts.replaceChildren(
      h(
        "dl", { class: "facts" },
        fact("Triples", about.triples), fact("Subjects", about.subjects), fact("Predicates", about.properties), fact("Classes", about.classes),
      ),
      h(
        "div", { class: "columns" },
        list("Classes", "instances", about.classList, about.classes, (iri) => `SELECT ?x WHERE {\n  ?x a ${iriText(iri)}\n}\nLIMIT 1000\n`),
        list("Predicates", "triples", about.predicates, about.properties, (iri) => `SELECT ?s ?o WHERE {\n  ?s ${iriText(iri)} ?o\n}\nLIMIT 1000\n`),
        graphs,
      ),
    );
    // No one chose a file yet, or the last one's report is still of use.
    if (about.writable && this.adding.childElementCount === 0) this.adding.replaceChildren(this.upload());
    if (!about.writable) this.adding.replaceChildren();
    void this.connections.show(about.classList);
    try {
      const named = await select(`SELECT ?g (COUNT(*) AS ?n) { GRAPH ?g { ?s ?p ?o } } GROUP BY ?g ORDER BY DESC(?n) LIMIT ${GRAPHS}`, { timeout: 20 });
      const all = named.flatMap(([g, n]): Counted[] => (g ? [{ iri: g.value, count: Number(n?.value ?? 0) }] : []));
      graphs.replaceWith(h(
        "div", {},
        list("Named graphs", "triples", all, all.length, (iri) => `SELECT * WHERE {\n  GRAPH ${iriText(iri)} { ?s ?p ?o }\n}\nLIMIT 1000\n`, `${counted(about.defaultTriples, "triple")} in the default graph.${all.length === GRAPHS ? ` The ${count(GRAPHS)} largest named ones are listed.` : ""}`),
      ));
    } catch (error) {
      graphs.replaceChildren(failure(error instanceof ProblemError ? error.problem.detail : String(error)));
    }
  }

  private upload(): HTMLElement {
    const files = h("input", { attrs: { type: "file", multiple: true, "aria-label": "RDF files" } });
    const graph = h("input", { attrs: { type: "text", placeholder: "the default graph, or the graphs in the file", spellcheck: "false" } });
    const replace = h("input", { attrs: { type: "checkbox" } });
    const log = h("div", { attrs: { "aria-live": "polite" } });
    let running: XMLHttpRequest | undefined;
    const stop = button("Cancel", () => running?.abort());
    stop.hidden = true;
    const go = button("Load", () => void begin(), { class: "primary" });
    const begin = async () => {
      if (!files.files?.length) {
        log.replaceChildren(failure("Choose a file first."));
        return;
      }
      go.disabled = true;
      stop.hidden = false;
      log.replaceChildren();
      for (const file of files.files) {
        const line = h("div", { class: "uploading" });
        log.append(line);
        if (!(await one(file, graph.value.trim(), replace.checked, line, (x) => (running = x)))) break;
      }
      go.disabled = false;
      stop.hidden = true;
      stale();
      void this.fill();
    };
    const box = h(
      "div", { class: "upload" },
      h("h2", {}, "Load files"),
      h("p", {}, "Turtle, N-Triples, RDF/XML, JSON-LD, N-Quads or TriG, by the file's name, plain or compressed (gz, bz2, xz, zst). Each file is one transaction: it is loaded completely or not at all."),
      h("p", {}, files),
      h("p", {}, h("label", {}, "Into graph ", graph), " ", h("label", {}, replace, " replace the graph's contents")),
      h("p", {}, go, " ", stop), log,
    );
    box.addEventListener("dragover", (event) => event.preventDefault());
    box.addEventListener("drop", (event) => {
      event.preventDefault();
      if (event.dataTransfer?.files.length) files.files = event.dataTransfer.files;
    });
    return box;
  }
}

function fact(name: string, value: number): HTMLElement {
  return h("div", {}, h("dt", {}, name), h("dd", {}, count(value)));
}

function list(title: string, unit: string, all: Counted[], whole: number, query: (iri: string) => string, note = ""): HTMLElement {
  const most = Math.max(1, ...all.map((c) => c.count));
  const rows = all.map(({ iri, count: n }) => {
    const bar = h("span", { class: "bar" });
    bar.style.width = `${((n / most) * 100).toFixed(1)}%`;
    return h("tr", {}, h("td", { class: "what" }, iriLink(iri)), h("td", { class: "n" }, count(n)), h("td", { class: "bar-cell", attrs: { "aria-hidden": true } }, bar), h("td", {}, h("a", { title: "Query", attrs: { href: queryHash(query(iri)), "aria-label": `Query ${iri}` } }, "→")));
  });
  const listed = whole > all.length ? `The ${count(all.length)} most frequent of ${count(whole)}.` : "";
  return h(
    "div", { class: "list" },
    h("h2", {}, title, " ", h("span", { class: "count" }, count(whole))),
    note || listed ? h("p", { class: "soft" }, [note, listed].filter(Boolean).join(" ")) : null,
    all.length > 0
      ? h("div", { class: "wide tall", attrs: { tabindex: 0, role: "region", "aria-label": title } }, h("table", {}, h("thead", {}, h("tr", {}, h("th", { attrs: { scope: "col" } }, title), h("th", { attrs: { scope: "col" } }, unit), h("td"), h("td"))), h("tbody", {}, ...rows)))
      : h("p", { class: "soft" }, "None."),
  );
}

/** Sends a file and shows how far it is; false if it was not taken. */
async function one(file: File, graph: string, replace: boolean, line: HTMLElement, started: (x: XMLHttpRequest) => void): Promise<boolean> {
  const media = mediaOf(file.name);
  if (!media) {
    line.append(failure(`${file.name}: cannot tell the RDF format from the name; use .ttl, .nt, .rdf, .jsonld, .nq or .trig`));
    return false;
  }
  if (replace && graph === "" && isDataset(media)) {
    line.append(failure(`${file.name} contains named graphs: name the one graph to replace`));
    return false;
  }
  const target = graph !== "" ? `?graph=${encodeURIComponent(graph)}` : isDataset(media) ? "" : "?default";
  for (;;) {
    const bar = h("progress", { attrs: { max: file.size || 1, value: 0, "aria-label": file.name } });
    const said = h("span");
    line.replaceChildren(`${file.name} `, bar, " ", said);
    try {
      const report = await sendFile(file, media, `store${target}`, replace ? "PUT" : "POST", (n) => {
        bar.value = n;
        said.textContent = n < file.size ? `${bytes(n)} of ${bytes(file.size)}` : "uploaded; the server is reading it…";
      }, started);
      line.replaceChildren(h("strong", {}, file.name), reportView(report));
      return true;
    } catch (error) {
      const problem: Problem = error instanceof ProblemError ? error.problem : { status: 0, kind: "", detail: String(error) };
      if (wantsToken(problem) && (await offerToken(problem))) continue;
      line.replaceChildren(h("strong", {}, file.name), h("pre", { class: "error", attrs: { role: "alert" } }, problem.detail.replaceAll("<body>", file.name)));
      return false;
    }
  }
}

type Report = Parameters<typeof reportView>[0];

/** `fetch` does not say how much of a body was sent. */
function sendFile(file: File, media: string, path: string, method: string, sent: (n: number) => void, started: (x: XMLHttpRequest) => void): Promise<Report> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    const fail = (detail: string) => reject(new ProblemError({ status: 0, kind: "network", detail }));
    request.open(method, path);
    request.setRequestHeader("Content-Type", media);
    const bearer = token();
    if (bearer) request.setRequestHeader("Authorization", `Bearer ${bearer}`);
    request.upload.onprogress = (event) => sent(event.loaded);
    request.onabort = () => fail("cancelled: nothing was loaded, unless the server had already read the whole file");
    request.onerror = () => fail("the server cannot be reached, or refused the file before its end");
    request.onload = () => {
      try {
        const document = JSON.parse(request.responseText) as Record<string, unknown>;
        if (request.status < 300) resolve(document as unknown as Report);
        else reject(new ProblemError(problemOfDocument(request.status, document)));
      } catch {
        fail(request.responseText || `the server answered with status ${request.status}`);
      }
    };
    started(request);
    request.send(file);
  });
}
