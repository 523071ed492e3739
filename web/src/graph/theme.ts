// The page's colours as a canvas wants them.

import type { Palette } from "./paint.ts";

/** Classes that have a colour of their own. */
export const COLOURS = 8;

export function palette(): Palette {
  const style = getComputedStyle(document.documentElement);
  const of = (name: string) => style.getPropertyValue(name).trim();
  const colours = Array.from({ length: COLOURS }, (_, i) => of(`--class-${i}`));
  // The browser's own few colours, where someone has chosen them.
  if (matchMedia("(forced-colors: active)").matches) return { ink: "CanvasText", soft: "CanvasText", paper: "Canvas", accent: "Highlight", colours, literal: "GrayText" };
  return { ink: of("--ink"), soft: of("--soft"), paper: of("--field"), accent: of("--accent"), colours, literal: of("--code-string") };
}

export function family(): string {
  return getComputedStyle(document.documentElement).getPropertyValue("--sans").trim() || "sans-serif";
}

/** Calls `changed` when the colours are others. */
export function followColours(changed: () => void, signal: AbortSignal): void {
  for (const query of ["(prefers-color-scheme: dark)", "(forced-colors: active)"]) matchMedia(query).addEventListener("change", changed, { signal });
  const observer = new MutationObserver(changed);
  observer.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
  signal.addEventListener("abort", () => observer.disconnect());
}
