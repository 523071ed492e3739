// Requests to the server that the page came from.

interface Suggestion {
  text: string;
  replacement?: { start: number; end: number; with: string };
}

/** One thing that is wrong with a text; places are bytes of its UTF-8. */
export interface Fault {
  message: string;
  kind: string;
  line: number;
  column: number;
  start: number;
  end: number;
  suggestions: Suggestion[];
}

/** An answer that is an error (RFC 9457), or the lack of an answer (status 0). */
export interface Problem {
  status: number;
  /** The last part of the problem's type. */
  kind: string;
  detail: string;
  line?: number;
  column?: number;
  faults?: Fault[];
}

export class ProblemError extends Error {
  constructor(readonly problem: Problem) {
    super(problem.detail);
  }
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

const KEY = "jindou-token";

/** The token of this tab; the browser forgets it with the tab. */
export function token(): string | undefined {
  try {
    return sessionStorage.getItem(KEY) ?? undefined;
  } catch {
    return undefined;
  }
}

export function setToken(value: string): void {
  if (value) sessionStorage.setItem(KEY, value);
  else sessionStorage.removeItem(KEY);
}

/**
 * What each request has in common. With a token of the page's own the browser's memory is left out, so that it does not ask for a
 * password itself when the token is not known.
 */
export function dressed(init: RequestInit, bearer: string | undefined): RequestInit {
  if (!bearer) return init;
  const headers = new Headers(init.headers);
  headers.set("Authorization", `Bearer ${bearer}`);
  return { ...init, headers, credentials: "omit" };
}

/** The problem that an answer is. */
export async function problemOf(response: Response): Promise<Problem> {
  const text = await response.text().catch(() => "");
  if ((response.headers.get("content-type") ?? "").includes("json")) {
    try {
      return problemOfDocument(response.status, JSON.parse(text) as Record<string, unknown>);
    } catch {
      // What says it is JSON and is none is shown as it is.
    }
  }
  return { status: response.status, kind: "", detail: text.trim() || `the server answered with status ${response.status}` };
}

export function problemOfDocument(status: number, document: Record<string, unknown>): Problem {
  const problem: Problem = {
    status,
    kind: String(document["type"] ?? "").replace(/^urn:jindou:problem:/, ""),
    detail: String(document["detail"] ?? document["title"] ?? `status ${status}`),
  };
  if (typeof document["line"] === "number") problem.line = document["line"];
  if (typeof document["column"] === "number") problem.column = document["column"];
  if (Array.isArray(document["faults"])) problem.faults = document["faults"] as Fault[];
  return problem;
}

/** The problem that a failed `fetch` is. */
export function unreachable(error: unknown): Problem {
  const aborted = error instanceof DOMException && error.name === "AbortError";
  return aborted
    ? { status: 0, kind: "aborted", detail: "cancelled" }
    : { status: 0, kind: "network", detail: "the server cannot be reached, or it cut off the answer (then its log has the reason)" };
}

type Asker = (problem: Problem) => Promise<boolean>;
let asker: Asker = async () => false;

/** Who asks the user for a token when the server wants one; true if there is a new one. */
export function askForTokenBy(ask: Asker): void {
  asker = ask;
}

/** True where another token could help. */
export function wantsToken(problem: Problem): boolean {
  return problem.status === 401 || (problem.status === 403 && problem.kind !== "origin" && problem.kind !== "read-only-server");
}

/** Asks the user for a token. True if there is a new one to try with. */
export function offerToken(problem: Problem): Promise<boolean> {
  return asker(problem);
}

/** Sends a request, and again with a token that the user is asked for if one is wanted. Throws a `ProblemError`. */
export async function send(path: string, init: RequestInit = {}): Promise<Response> {
  for (;;) {
    let response: Response;
    try {
      response = await fetch(path, dressed(init, token()));
    } catch (error) {
      throw new ProblemError(unreachable(error));
    }
    if (response.ok) return response;
    const problem = await problemOf(response);
    if (!wantsToken(problem) || !(await offerToken(problem))) throw new ProblemError(problem);
  }
}

/** A query's request, in a format. */
export function query(text: string, accept: string, signal?: AbortSignal): RequestInit {
  const init: RequestInit = {
    method: "POST",
    headers: { "Content-Type": "application/sparql-query", Accept: accept },
    body: text,
  };
  if (signal) init.signal = signal;
  return init;
}

export async function json<T>(path: string, init: RequestInit = {}): Promise<T> {
  const response = await send(path, init);
  return (await response.json()) as T;
}
