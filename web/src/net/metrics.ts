// Prometheus' text, as far as a glance needs it.

/** The labels of a metric's first sample; `undefined` without one. */
export function labelsIn(text: string, metric: string): Map<string, string> | undefined {
  const found = new RegExp(`^${metric}\\{(.*)\\} `, "m").exec(text);
  return found ? new Map([...(found[1] ?? "").matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, name = "", value = ""]) => [name, value.replace(/\\(.)/g, (_, c) => (c === "n" ? "\n" : String(c)))])) : undefined;
}

/** A metric's samples by the value of one of their labels. */
export function samplesBy(text: string, metric: string, label: string): Map<string, number> {
  const all = new Map<string, number>();
  for (const [, labels = "", value = ""] of text.matchAll(new RegExp(`^${metric}\\{(.*)\\} (\\S+)`, "gm"))) {
    const found = new RegExp(`(?:^|,)${label}="([^"]*)"`).exec(labels);
    if (found) all.set(found[1] ?? "", Number(value));
  }
  return all;
}

/** Gives the sum of a metric's values, of those that have the labels. */
export function metrics(text: string): (name: string, labels?: string) => number {
  const all = new Map<string, { labels: string; value: number }[]>();
  for (const line of text.split("\n")) {
    const found = /^([A-Za-z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)/.exec(line);
    // Of histograms, their sums and counts are enough.
    if (!found || found[1]?.endsWith("_bucket")) continue;
    const [, name = "", labels = "", value = ""] = found;
    const list = all.get(name) ?? [];
    list.push({ labels, value: Number(value) });
    all.set(name, list);
  }
  return (name, labels) => {
    let sum = 0;
    for (const sample of all.get(name) ?? []) if (!labels || sample.labels.includes(labels)) sum += sample.value;
    return sum;
  };
}
