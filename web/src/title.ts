// The title of the browser's tab: what is shown, and of which store.

let view = "";
let store = "";

/** What is shown. */
export function entitle(title: string): void {
  view = title;
  write();
}

/** The store's name; empty: it has none, or is not known yet. */
export function ofStore(name: string): void {
  store = name;
  write();
}

function write(): void {
  document.title = [view, store, "Jindou"].filter(Boolean).join(" · ");
}
