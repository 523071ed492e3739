// Where the editor stands: above the answer, or on a wide screen next to it. What someone chose is remembered.

const KEY = "jindou-editor";
const room = matchMedia("(min-width: 1100px)");
const wide = matchMedia("(min-width: 2000px)");

let chosen: string | null = null;
try {
  chosen = localStorage.getItem(KEY);
} catch {
  // A browser that keeps nothing has what was chosen in this visit.
}

/** True where there is room for both next to each other. */
export function mayBeSideBySide(): boolean {
  return room.matches;
}

export function isSideBySide(): boolean {
  return room.matches && (chosen === null ? wide.matches : chosen === "side");
}

function apply(): void {
  document.body.classList.toggle("side-by-side", isSideBySide());
}

/** Puts the editor to the other place. */
export function turn(): void {
  chosen = isSideBySide() ? "above" : "side";
  apply();
  try {
    localStorage.setItem(KEY, chosen);
  } catch {
    // It holds until the page is left.
  }
}

for (const query of [room, wide]) query.addEventListener("change", apply);
apply();
