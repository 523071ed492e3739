// Coastlines: Natural Earth's 1:110m land (public domain), as the package world-atlas (ISC) has it and build.mjs writes it.

import coast from "world-atlas/land-110m.json";

/** Lines of points in degrees, longitude first. */
export function coastlines(): [number, number][][] {
  const { scale: [sx = 1, sy = 1], translate: [tx = 0, ty = 0] } = coast;
  return coast.lines.split(" ").map((line) => {
    const numbers = differences(line);
    let [x, y] = [0, 0];
    return Array.from({ length: numbers.length / 2 }, (_, i): [number, number] => {
      x += numbers[2 * i] ?? 0;
      y += numbers[2 * i + 1] ?? 0;
      // Rounded to the grid, the edge of the map is a little beyond it.
      return [Math.max(-180, Math.min(180, x * sx + tx)), y * sy + ty];
    });
  });
}

/** Numbers of any size in digits of base 46, the lowest first; even ones stand for numbers from zero on. */
function differences(line: string): number[] {
  const all: number[] = [];
  let [sum, place] = [0, 1];
  for (let i = 0; i < line.length; i++) {
    const code = line.charCodeAt(i);
    sum += (code >= 80 ? code - 80 : code - 33) * place;
    place *= 46;
    if (code >= 80) continue;
    all.push(sum % 2 === 1 ? -(sum + 1) / 2 : sum / 2);
    [sum, place] = [0, 1];
  }
  return all;
}
