/** One of the page's views. */
export interface View {
  readonly element: HTMLElement;
  readonly title: string;
  /** Shown, with the parameters of its address. */
  show(parameters: URLSearchParams): void;
  /** Another one is shown. */
  hide(): void;
}
