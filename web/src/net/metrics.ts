// Prometheus' text, as far as a glance needs it.

/** Gives the sum of a metric's values, of those that have the labels. */
export function metrics(text: string): (name: string, labels?: string) => number {
  const all = new Map<string, { labels: string; value: number }[]>();
  for (const line of text.split("\n")) {
    const found = /^([A-Za-z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)/.exec(line);
    if (!found) continue;
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
