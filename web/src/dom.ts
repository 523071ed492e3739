// Elements. Text from data enters the page here and by `textContent` only; nothing makes markup of a text.

type Child = Node | string | null | undefined | false;

interface Props {
  class?: string;
  id?: string;
  title?: string;
  on?: Partial<{ [K in keyof HTMLElementEventMap]: (event: HTMLElementEventMap[K]) => void }>;
  /** Attributes by their names; none of them may come from data but `value`, `title` and those of ARIA. */
  attrs?: Record<string, string | number | boolean>;
}

export function h<K extends keyof HTMLElementTagNameMap>(
  name: K,
  props: Props = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(name);
  dress(made, props);
  add(made, children);
  return made;
}

const SVG = "http://www.w3.org/2000/svg";

export function svg<K extends keyof SVGElementTagNameMap>(
  name: K,
  attrs: Record<string, string | number> = {},
  ...children: Child[]
): SVGElementTagNameMap[K] {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attrs)) made.setAttribute(key, String(value));
  add(made, children);
  return made;
}

function dress(made: HTMLElement, props: Props): void {
  if (props.class) made.className = props.class;
  if (props.id) made.id = props.id;
  if (props.title !== undefined) made.title = props.title;
  for (const [key, value] of Object.entries(props.attrs ?? {})) {
    if (value === true) made.setAttribute(key, "");
    else if (value !== false) made.setAttribute(key, String(value));
  }
  for (const [type, listener] of Object.entries(props.on ?? {})) {
    made.addEventListener(type, listener as EventListener);
  }
}

function add(to: Element, children: Child[]): void {
  for (const child of children) {
    if (child !== null && child !== undefined && child !== false) to.append(child);
  }
}

/** A button that does something. */
export function button(text: string, act: () => void, props: Props = {}): HTMLButtonElement {
  const made = h("button", { ...props, attrs: { type: "button", ...props.attrs } }, text);
  made.addEventListener("click", act);
  return made;
}

/** Draws the content of an element anew. Its focused control keeps the focus, or the next one that is enabled gets it. */
export function redrawn(element: HTMLElement, draw: () => void): void {
  const controls = () => [...element.querySelectorAll<HTMLElement>("a, button, select, summary")];
  const at = controls().findIndex((one) => one === document.activeElement);
  draw();
  if (at >= 0) [...controls().slice(at), ...controls()].find((one) => !one.matches(":disabled"))?.focus();
}

/** A field's text when there is one thing to say: who is wrong, and what to do. */
export function failure(message: string): HTMLElement {
  return h("p", { class: "error", attrs: { role: "alert" } }, message);
}

export function byId<T extends HTMLElement = HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no #${id}`);
  return found as T;
}

/** Gives the user a text or a file to keep. */
export function save(content: Blob, name: string): void {
  const address = URL.createObjectURL(content);
  const link = h("a", { attrs: { href: address, download: name } });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}
