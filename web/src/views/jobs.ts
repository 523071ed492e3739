// Work on the whole store: what runs, and how the last one of each kind ended.

import { h } from "../dom.ts";
import { count, milliseconds } from "../format.ts";
import { dressed, token } from "../net/http.ts";

export interface Job {
  job: string;
  /** Unavailable: the server was started without a folder for backups. */
  state: "idle" | "running" | "done" | "failed" | "unavailable";
  phase?: string | null;
  permille?: number;
  quads?: number;
  seconds?: number;
  error?: string;
}

const NAMES: Record<string, string> = { backup: "Backup", recluster: "Reclustering" };

/** The jobs that this token may see. No one is asked for another one. */
export async function jobs(): Promise<Job[]> {
  const found = await Promise.all(Object.keys(NAMES).map(async (name): Promise<Job | undefined> => {
    try {
      const response = await fetch(`admin/${name}`, dressed({}, token()));
      return response.ok ? ((await response.json()) as Job) : undefined;
    } catch {
      return undefined;
    }
  }));
  return found.filter((job) => job !== undefined).filter((job) => job.state !== "unavailable");
}

/** What there is to say of a job. */
export function told(job: Job): string {
  const time = job.seconds === undefined ? "" : milliseconds(job.seconds * 1000);
  switch (job.state) {
    case "running": return [job.phase ?? "", `${((job.permille ?? 0) / 10).toFixed(1)} %`, job.quads ? `${count(job.quads)} quads` : "", `for ${time}`].filter(Boolean).join(", ");
    case "done": return `took ${time}`;
    case "failed": return [job.error ?? "", time && `after ${time}`].filter(Boolean).join(", ");
    default: return "none since the server started";
  }
}

/** A table of them; nothing where there is nothing to see. */
export function jobsView(all: Job[]): HTMLElement[] {
  if (all.length === 0) return [];
  const line = (job: Job) => {
    const bar = job.state === "running" ? h("progress", { attrs: { max: 1000, value: job.permille ?? 0, "aria-label": NAMES[job.job] ?? job.job } }) : null;
    return h("tr", {}, h("th", { attrs: { scope: "row" } }, NAMES[job.job] ?? job.job), h("td", {}, job.state), h("td", {}, told(job), " ", bar));
  };
  const heads = ["Job", "State", "What"].map((t) => h("th", { attrs: { scope: "col" } }, t));
  return [h("h2", {}, "Backups and other jobs"), h("div", { class: "wide", attrs: { tabindex: 0, role: "region", "aria-label": "Backups and other jobs" } }, h("table", { class: "jobs" }, h("thead", {}, h("tr", {}, ...heads)), h("tbody", {}, ...all.map(line))))];
}
