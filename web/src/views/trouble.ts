// What went wrong, in words for those who asked: which state it is, why, and what can be done.

import { button, h } from "../dom.ts";
import { count, milliseconds } from "../format.ts";
import type { Problem } from "../net/http.ts";
import { HOW_TO_WRITE } from "./load.ts";

/** Seconds between two looks for a server that does not answer. */
const WAIT = 3;

interface Words {
  title: string;
  text: string;
  /** Nothing went wrong. */
  calm?: boolean;
}

/** Names the state that a problem is; `undefined` where its own sentence says all. */
export function wordsFor(problem: Problem, rows = 0, ms = 0): Words | undefined {
  const sofar = rows > 0 ? ` ${count(rows)} rows had come; they stay below, and are not the whole answer.` : "";
  switch (problem.kind) {
    case "network":
      return rows > 0
        ? { title: "The answer was cut off", text: `The server ended it after ${milliseconds(ms)}: its log has the reason.${sofar}` }
        : { title: "The server does not answer", text: "It was stopped, or cannot be reached from here." };
    case "timeout":
      return { title: "Time limit reached", text: `${sentence(problem.detail)}${sofar} A longer limit goes into the field next to Run, up to the server's own.` };
    case "cancelled":
      return { title: "Cancelled", text: `${sentence(problem.detail)}${sofar}` };
    case "limit":
      return { title: /memory/i.test(problem.detail) ? "Out of memory" : "A limit of the server is reached", text: `${sentence(problem.detail)}${sofar} Ask for less: with LIMIT, fewer columns, or without DISTINCT and ORDER BY of everything.` };
    case "busy":
      return { title: "The server is busy", text: `${sentence(problem.detail)} Run the query again in a moment.` };
    case "disk":
      return { title: "The server's disk", text: sentence(problem.detail) };
    case "internal":
      return { title: "A bug in Jindou", text: `${sentence(problem.detail)} Please report it with the query.` };
    case "read-only":
      return /server is read-only/.test(problem.detail) ? { title: "The server is read-only", text: `To change data, ${HOW_TO_WRITE}.` } : undefined;
    case "worker":
      return { title: "A part of the page is missing", text: "Its script worker.js could not be loaded. Reload the page; if that does not help, the server's log says why." };
    default:
      return undefined;
  }
}

function sentence(text: string): string {
  const first = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(first) ? first : `${first}.`;
}

/** A problem's own words in a box. */
export function trouble({ title, text, calm = false }: Words, ...actions: Node[]): HTMLElement {
  return h("div", { class: calm ? "trouble calm" : "trouble", attrs: { role: "alert" } }, h("p", {}, h("strong", {}, title), h("br"), text), actions.length > 0 ? h("p", {}, ...actions) : null);
}

/** Waits for a server that does not answer, and calls `back` when it does. */
export class Waiting {
  readonly element: HTMLElement;
  private said = h("span");
  private timer: ReturnType<typeof setInterval> | undefined;
  private left = WAIT;
  private tried = 0;

  constructor(private back: () => void) {
    const stop = button("Stop trying", () => {
      this.stop();
      this.said.textContent = "Not trying any more. ";
      stop.hidden = true;
    });
    const now = button("Try now", () => void this.look());
    this.element = h("div", { class: "trouble", attrs: { role: "alert" } }, h("p", {}, h("strong", {}, "The server does not answer"), h("br"), this.said), h("p", {}, now, " ", stop));
    this.say();
    this.timer = setInterval(() => {
      this.left--;
      if (this.left <= 0) void this.look();
      else this.say();
    }, 1000);
  }

  private say(): void {
    this.said.textContent = `Retrying in ${this.left} s${this.tried > 0 ? ` (tried ${this.tried === 1 ? "once" : `${count(this.tried)} times`})` : ""}. It was stopped, or cannot be reached from here.`;
  }

  private async look(): Promise<void> {
    this.left = WAIT;
    try {
      // Any answer is one: even of a server that wants a token.
      await fetch("health", { cache: "no-store", signal: AbortSignal.timeout(5000) });
    } catch {
      this.tried++;
      this.say();
      return;
    }
    if (this.timer === undefined) return;
    this.stop();
    this.element.remove();
    this.back();
  }

  stop(): void {
    clearInterval(this.timer);
    this.timer = undefined;
  }
}
