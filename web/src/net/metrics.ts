// Prometheus' text, as far as a glance needs it.

/** The labels of each sample of a metric, and its value as `=`. */
export function samples(text: string, metric: string): Map<string, string>[] {
  const found = [...text.matchAll(new RegExp(`^${metric}\\{(.*)\\} (\\S+)`, "gm"))];
  return found.map(([, labels = "", value = ""]) => {
    const pairs = [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)];
    const plain = (text: string) => text.replace(/\\(.)/g, (_, c) => (c === "n" ? "\n" : String(c)));
    return new Map([...pairs.map(([, name = "", of = ""]) => [name, plain(of)] as [string, string]), ["=", value]]);
  });
}

/** A metric's samples by the value of one of their labels. */
export function samplesBy(text: string, metric: string, label: string): Map<string, number> {
  return new Map(samples(text, metric).map((sample) => [sample.get(label) ?? "", Number(sample.get("="))]));
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
