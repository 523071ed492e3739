// Sends RDF to the server: a file, a text, or the address of a document.

import { bytes } from "../format.ts";
import { failure, h } from "../dom.ts";
import { isDataset, mediaOf } from "./formats.ts";
import { json, offerToken, type Problem, problemOfDocument, ProblemError, token, unreachable, wantsToken } from "./http.ts";
import { iriText } from "../rdf/term.ts";

/** The server's answer to a change. */
export interface Report {
  added: number;
  removed: number;
  operations: number;
  snapshot: number;
  ms: Record<string, number>;
  /** Present if malformed statements were to be skipped. */
  skipped?: Skipped;
}

export interface Skipped {
  statements: number;
  /** The first malformed statements. */
  first: { document: string; line: number; column: number; message: string; text: string | null }[];
  /** Documents of which the rest after a malformed statement was not read, and the size of these rests. */
  rest?: { documents: number; bytes: number };
}

export interface Target {
  /** The graph's IRI; "": the default graph, or the graphs that the file names. */
  graph: string;
  replace: boolean;
  /** Skip malformed statements. */
  lenient: boolean;
}

/** Media type of a file's RDF. Browsers know few of these types by the name of a file. */
function mediaOfFile(file: File): string | undefined {
  return RDF.includes(file.type) ? file.type : mediaOf(file.name);
}

/** True for a file that names the graphs of its statements. */
export function isDatasetFile(file: File): boolean {
  return isDataset(mediaOfFile(file) ?? "");
}

/** The reason why a file cannot be loaded into the target, if there is one. */
export function objection(file: File, { graph, replace }: Target): string | undefined {
  const media = mediaOfFile(file);
  if (!media) return `${file.name}: cannot tell the RDF format from the name; use .ttl, .nt, .rdf, .jsonld, .nq or .trig`;
  if (replace && graph === "" && isDataset(media)) return `${file.name} contains named graphs: name the one graph to replace`;
  return undefined;
}

/** The parameters of `/store` for a target. `dataset`: the file names the graphs itself. */
function parameters({ graph, lenient }: Target, dataset: boolean): string {
  const made = new URLSearchParams({ ...(graph !== "" ? { graph } : dataset ? {} : { default: "" }), ...(lenient ? { lenient: "true" } : {}) });
  return made.size > 0 ? `?${made}` : "";
}

/**
 * Sends files in one request, which is one transaction, and shows its progress. Returns the report, or `undefined` if the server refused it.
 * Several files must replace a graph.
 */
export async function sendFiles(files: File[], target: Target, line: HTMLElement, started: (x: XMLHttpRequest) => void, view: (r: Report) => HTMLElement): Promise<Report | undefined> {
  const wrong = files.map((file) => objection(file, target)).find((w) => w !== undefined);
  if (wrong !== undefined) {
    line.append(failure(wrong));
    return undefined;
  }
  const name = files.length === 1 ? (files[0]?.name ?? "") : `${files.length} files`;
  const size = files.reduce((sum, file) => sum + file.size, 0);
  const medias = files.map((file) => mediaOfFile(file) ?? "");
  const path = `store${parameters(target, medias.some(isDataset))}`;
  for (;;) {
    const bar = h("progress", { attrs: { max: size || 1, value: 0, "aria-label": name } });
    const said = h("span");
    line.replaceChildren(`${name} `, bar, " ", said);
    try {
      const report = await post(bodyOf(files, medias), path, target.replace ? "PUT" : "POST", (n) => {
        bar.value = n;
        said.textContent = n < size ? `${bytes(n)} of ${bytes(size)}` : "uploaded; the server is reading it…";
      }, started);
      line.replaceChildren(h("strong", {}, name), view(report));
      return report;
    } catch (error) {
      const problem = problemIn(error);
      if (wantsToken(problem) && (await offerToken(problem))) continue;
      line.replaceChildren(h("strong", {}, name), h("pre", { class: "error", attrs: { role: "alert" } }, refusal(problem, target.lenient).replaceAll("<body>", () => name)));
      return undefined;
    }
  }
}

function bodyOf(files: File[], medias: string[]): File | FormData {
  const typed = files.map((file, i) => new File([file], file.name, { type: medias[i] ?? "" }));
  const [first] = typed;
  if (first && typed.length === 1) return first;
  const form = new FormData();
  for (const file of typed) form.append("file", file, file.name);
  return form;
}

/** The message about a document that was refused; it says how to skip malformed statements if that would help. */
export function refusal(problem: Problem, lenient: boolean): string {
  if (problem.kind !== "syntax" || lenient) return problem.detail;
  const lines = problem.detail.split("\n").filter((line) => !line.startsWith("help: "));
  return [...lines, `To load the rest, choose “${SKIP}” and load it again.`].join("\n");
}

/** Label of the checkbox for `lenient`. */
export const SKIP = "skip statements that are malformed";

/** Lets the server fetch a document by LOAD. It allows some hosts only. */
export async function loadAddress(address: string, { graph, replace, lenient }: Target): Promise<Report> {
  if (replace && lenient) throw new ProblemError({ status: 0, kind: "choice", detail: "A document from a URL cannot replace a graph while malformed statements are skipped: choose one of the two." });
  const load = `LOAD ${iriText(address)}${graph === "" ? "" : ` INTO GRAPH ${iriText(graph)}`}`;
  const body = replace ? `CLEAR SILENT ${graph === "" ? "DEFAULT" : `GRAPH ${iriText(graph)}`} ;\n${load}` : load;
  return json<Report>(lenient ? "update?lenient=true" : "update", { method: "POST", headers: { "Content-Type": "application/sparql-update" }, body });
}

export function problemIn(error: unknown): Problem {
  return error instanceof ProblemError ? error.problem : unreachable(error);
}

const RDF = ["text/turtle", "application/n-triples", "application/n-quads", "application/trig", "application/rdf+xml", "application/ld+json"];

/** The media type that a pasted text looks like. */
export function guess(text: string): string {
  // The patterns below take linear time only if each run of white space is one character and each string ends in its line.
  const start = text.trim().replace(/\s+/g, (space) => (space.includes("\n") ? "\n" : " ")).replace(/"(?:[^"\\\n]|\\.)*(?:"|$)/gm, '""');
  if (/^<\?xml|^<rdf:RDF/i.test(start)) return "application/rdf+xml";
  if (/^[[{]/.test(start) && !/^\[\s*\]?\s*(?:a|<|[\w-]*:)/.test(start)) return "application/ld+json";
  if (/^(?:GRAPH\s)?(?:<[^>\s]*>|[\w-]*:[\w-]*)?\s?\{/im.test(start)) return "application/trig";
  // A line of four terms is N-Quads. Anything else is read as Turtle, of which N-Triples is a subset.
  return /^(?:<[^>\s]*>|_:\S+)\s+<[^>\s]*>\s+(?:<[^>\s]*>|_:\S+|""(?:@[\w-]+|\^\^<[^>\s]*>)?)\s+(?:<[^>\s]*>|_:\S+)\s*\.\s*$/m.test(start) ? "application/n-quads" : "text/turtle";
}

/** By XMLHttpRequest, since `fetch` does not report how much of a body was sent. */
function post(body: File | FormData, path: string, method: string, sent: (n: number) => void, started: (x: XMLHttpRequest) => void): Promise<Report> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    const fail = (detail: string) => reject(new ProblemError({ status: 0, kind: "network", detail }));
    request.open(method, path);
    if (body instanceof File) request.setRequestHeader("Content-Type", body.type);
    const bearer = token();
    if (bearer) request.setRequestHeader("Authorization", `Bearer ${bearer}`);
    request.upload.onprogress = (event) => sent(event.loaded);
    request.onabort = () => fail("cancelled: nothing was loaded, unless the server had already read everything");
    request.onerror = () => fail("the server cannot be reached, or refused the upload before its end");
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
    request.send(body);
  });
}
