// What happened to all views: other data, another choice of graphs, labels on or off.

type Happening = "data" | "graphs" | "labels" | "prefixes";

const target = new EventTarget();

export function tell(what: Happening): void {
  target.dispatchEvent(new Event(what));
}

/** Without a `signal` that ends it, for good. */
export function listen(what: Happening, act: () => void, signal?: AbortSignal): void {
  target.addEventListener(what, act, signal ? { signal } : {});
}
