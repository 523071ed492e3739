// Downloads from the store: a graph, or everything, in a format that is asked for first.

import { button, failure, h, save } from "../dom.ts";
import { bytes } from "../format.ts";
import { withParameter } from "../graphs.ts";
import type { Format } from "../net/formats.ts";
import { send } from "../net/http.ts";
import { problemIn } from "../net/upload.ts";
import { dialog } from "../show.ts";

interface Wanted {
  /** What it is called in sentences. */
  name: string;
  /** What the dialog says about it. */
  about: (Node | string)[];
  /** The request's path without its format. */
  path: string;
  /** The file's name without its extension. */
  file: string;
  formats: Format[];
}

/** Milliseconds between two messages about how much has come. */
const PACE = 300;

/** A place for what is said about downloads and changes; finished lines give way to the next one. */
export function board(): HTMLElement {
  return h("div", { class: "board", attrs: { role: "status", tabindex: -1 } });
}

/** A line of a board. */
export function lineOn(place: HTMLElement): { say: (...said: (Node | string)[]) => void; end: (...said: (Node | string)[]) => void } {
  for (const old of place.querySelectorAll(".over")) old.remove();
  const line = h("div");
  place.append(line);
  return {
    say: (...said) => {
      line.replaceChildren(...said);
      line.scrollIntoView({ block: "nearest" });
    },
    end: (...said) => {
      line.className = "over";
      line.replaceChildren(...said);
    },
  };
}

/** Asks for a format, then downloads, and says so on `place`. */
export function offerDownload(wanted: Wanted, place: HTMLElement): void {
  const formats = wanted.formats.map((format) => button(format.label, () => {
    box.close();
    void download(wanted, format, place);
  }));
  const box = dialog(`Download ${wanted.name}`, h("p", {}, ...wanted.about), h("p", { class: "tools" }, ...formats));
  formats[0]?.focus();
}

/** Fetches with the page's own token, which a link could not send; errors come as the server's words, which it could not show. */
async function download({ name, path, file }: Wanted, format: Format, place: HTMLElement): Promise<void> {
  const control = new AbortController();
  const line = lineOn(place);
  const stop = button("Cancel", () => control.abort());
  const said = document.createTextNode(`Downloading ${name} as ${format.label}…`);
  line.say(said, " ", stop);
  try {
    const response = await send(withParameter(path, "format", format.name), { headers: { Accept: "*/*" }, signal: control.signal });
    let size = 0;
    let last = 0;
    const counting = new TransformStream<Uint8Array, Uint8Array>({
      transform(part, on) {
        size += part.length;
        if (performance.now() - last > PACE) {
          last = performance.now();
          said.data = `Downloading ${name} as ${format.label}: ${bytes(size)} so far`;
        }
        on.enqueue(part);
      },
    });
    // The browser collects the parts by itself, on its disk if they are many.
    const content = await new Response(response.body?.pipeThrough(counting), { headers: { "Content-Type": response.headers.get("Content-Type") ?? "" } }).blob();
    const whole = `${file}.${format.extension}`;
    save(content, whole);
    line.end(`Downloaded ${name} as ${format.label}: ${whole}, ${bytes(content.size)}.`);
  } catch (error) {
    if (control.signal.aborted) line.end(`The download of ${name} was cancelled.`);
    else line.end(failure(`${name} was not downloaded: ${problemIn(error).detail}`));
  }
}

/** A name that every system takes for a file, of the end of an IRI or of a title. */
export function fileName(text: string, otherwise: string): string {
  const end = /[^/#:?]+(?=[/#?]*$)/.exec(text)?.[0] ?? "";
  return end.replace(/[^\p{L}\p{N}._-]+/gu, "_").replace(/^[._]+|[._]+$/g, "").slice(0, 80) || otherwise;
}
