// What happened to all views: other data, another choice of graphs, labels on or off.

type Happening = "data" | "graphs" | "labels" | "prefixes";

const target = new EventTarget();

export function tell(what: Happening): void {
  target.dispatchEvent(new Event(what));
}

export function listen(what: Happening, act: () => void): void {
  target.addEventListener(what, act);
}
