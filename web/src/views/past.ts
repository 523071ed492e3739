// The last minutes of a server's figures, and small charts of them.

import { h, svg } from "../dom.ts";
import { duration } from "../format.ts";

/** Seconds that are kept. */
const WINDOW = 300;
/** Seconds between two samples that are kept. */
const STEP = 1.9;
/** Seconds without a sample beyond which a line is broken: nobody looked. */
const GAP = 10;

/** The metrics at one time. */
export interface Sample {
  /** Seconds. */
  at: number;
  of: (name: string, labels?: string) => number;
}

interface Point {
  at: number;
  value: number;
}

export class Past {
  private samples: Sample[] = [];
  private began = 0;

  add(sample: Sample): void {
    // Another start of the server: its counters began again.
    const began = sample.of("process_start_time_seconds");
    if (began !== this.began) this.samples = [];
    this.began = began;
    if (this.last && sample.at - this.last.at < STEP) return;
    this.samples.push(sample);
    while (this.samples[0] && this.samples[0].at < sample.at - WINDOW) this.samples.shift();
  }

  get last(): Sample | undefined {
    return this.samples.at(-1);
  }

  /** A gauge over time. */
  values(read: (of: Sample["of"]) => number): Point[] {
    return this.samples.map(({ at, of }) => ({ at, value: read(of) }));
  }

  /** How much a counter grew each second. */
  rates(read: (of: Sample["of"]) => number): Point[] {
    return this.samples.slice(1).map(({ at, of }, i) => {
      const before = this.samples[i] as Sample;
      return { at, value: at - before.at > GAP ? NaN : Math.max(0, read(of) - read(before.of)) / Math.max(0.1, at - before.at) };
    });
  }

  /** How much a counter grew in the time that is kept. */
  grown(name: string, labels?: string): number {
    const [first, last] = [this.samples[0], this.last];
    return first && last ? last.of(name, labels) - first.of(name, labels) : 0;
  }
}

const WIDE = 280;
const HIGH = 54;

/** A line of the last five minutes, with the latest and the greatest value in words. */
export function smallChart(title: string, points: Point[], show: (value: number) => string): HTMLElement {
  const known = points.filter(({ value }) => Number.isFinite(value));
  const now = known.at(-1);
  const most = known.reduce((n, { value }) => Math.max(n, value), 0);
  const end = points.at(-1)?.at ?? 0;
  const span = Math.min(WINDOW, Math.max(60, end - (points[0]?.at ?? end)));
  let path = "";
  let before: Point | undefined;
  for (const point of known) {
    const x = WIDE - ((end - point.at) / span) * WIDE;
    path += `${before && point.at - before.at <= GAP ? "L" : "M"}${x.toFixed(1)} ${(HIGH - 2 - (most > 0 ? point.value / most : 0) * (HIGH - 6)).toFixed(1)}`;
    before = point;
  }
  const said = `${title}: ${now ? show(now.value) : "–"}; at most ${show(most)} in the last ${duration(span)}`;
  return h(
    "figure", { class: "small-chart" },
    h("figcaption", {}, title, " ", h("strong", {}, now ? show(now.value) : "–")),
    svg("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, preserveAspectRatio: "none", role: "img", "aria-label": said }, svg("title", {}, said), svg("path", { d: path || "M0 0" })),
    h("div", { class: "soft" }, h("span", {}, `${duration(span)} ago`), h("span", {}, `to ${show(most)}`)),
  );
}
