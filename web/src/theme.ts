// Light, dark, or what the system has: an attribute of the root element, which the style sheet reads. This module comes first in the
// page's script, so that the attribute is there before anything is made.

export type Theme = "system" | "light" | "dark";

const KEY = "jindou-theme";

let chosen: Theme = "system";

function read(): void {
  try {
    const value = localStorage.getItem(KEY);
    chosen = value === "light" || value === "dark" ? value : "system";
  } catch {
    // A browser that keeps nothing has what was chosen in this visit.
  }
}

function apply(): void {
  if (chosen === "system") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = chosen;
}

export function theme(): Theme {
  return chosen;
}

export function chooseTheme(to: Theme): void {
  chosen = to;
  apply();
  try {
    if (to === "system") localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, to);
  } catch {
    // It holds for this visit.
  }
}

/** Calls `changed` when another tab of the browser has chosen. */
export function followTheme(changed: () => void): void {
  addEventListener("storage", (event) => {
    // Without a key, everything was cleared.
    if (event.key !== KEY && event.key !== null) return;
    read();
    apply();
    changed();
  });
}

read();
apply();
