// Small parts that several views are made of.

import { button, h } from "./dom.ts";

interface Menu {
  element: HTMLDetailsElement;
  fill(items: Item[]): void;
}

/** A line of a menu: its text, what it does, and what stands after it in a soft colour. */
export type Item = [text: string, act: () => void, aside?: string] | HTMLElement;

/** A button with a list of things to do. */
export function menu(name: string, opened: () => void = () => {}): Menu {
  const list = h("div", { class: "menu-items" });
  const element = h("details", { class: "menu" }, h("summary", { attrs: { role: "button" } }, name), list);
  const elsewhere = (event: Event) => {
    if (event.target instanceof Node && event.target.isConnected && !element.contains(event.target)) element.open = false;
  };
  // The document would keep a closed menu, and what it belongs to, for good.
  element.addEventListener("toggle", () => {
    if (element.open) {
      document.addEventListener("click", elsewhere);
      opened();
    } else document.removeEventListener("click", elsewhere);
  });
  element.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      element.open = false;
      element.querySelector("summary")?.focus();
    }
  });
  element.addEventListener("focusout", (event) => {
    if (event.relatedTarget instanceof Node && !element.contains(event.relatedTarget)) element.open = false;
  });
  const line = (item: Item) => {
    if (item instanceof HTMLElement) return item;
    const [text, act, aside] = item;
    const made = button(text, () => {
      element.open = false;
      act();
    });
    if (aside) made.append(h("span", { class: "aside" }, aside));
    return made;
  };
  return { element, fill: (items) => list.replaceChildren(...items.map(line)) };
}

/** A number as a part of the largest, drawn; for the eye alone. */
export function bar(part: number): HTMLElement {
  const made = h("span", { class: "bar" });
  made.style.width = `${(Math.max(0, Math.min(1, part)) * 100).toFixed(1)}%`;
  return made;
}
