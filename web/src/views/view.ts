/** One of the page's views. */
export interface View {
  readonly element: HTMLElement;
  readonly title: string;
  /** Shown, with the parameters of its address. */
  show(parameters: URLSearchParams): void;
  /** Other data, other graphs, labels on or off: what is seen is made again. */
  refresh?(): void;
  /** Another one is shown. */
  hide(): void;
}
