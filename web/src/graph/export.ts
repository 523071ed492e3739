// A drawing as a file: SVG, or PNG at twice the size.

import { save } from "../dom.ts";
import { paint, penOf, type Scene, SvgPen } from "./paint.ts";

/** Most pixels of a PNG's side. */
const MOST_PIXELS = 8000;

/** Saves the visible part of the drawing as a file. Returns the problem if the browser could not. */
export async function saveDrawing(format: "png" | "svg", scene: Scene, family: string): Promise<string | undefined> {
  if (format === "svg") {
    const pen = new SvgPen(family);
    paint(pen, scene);
    save(new Blob([pen.text(scene.width, scene.height)], { type: "image/svg+xml" }), "graph.svg");
    return undefined;
  }
  const canvas = document.createElement("canvas");
  const scale = Math.min(2, MOST_PIXELS / Math.max(scene.width, scene.height));
  [canvas.width, canvas.height] = [Math.round(scene.width * scale), Math.round(scene.height * scale)];
  const context = canvas.getContext("2d");
  const failed = "The browser could not make a picture of this size.";
  if (!context) return failed;
  context.scale(scale, scale);
  paint(penOf(context, family), scene);
  const made = await new Promise<Blob | null>((resolve) => canvas.toBlob(resolve, "image/png"));
  if (!made) return failed;
  save(made, "graph.png");
  return undefined;
}
