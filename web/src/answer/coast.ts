// Coastlines: Natural Earth's 1:110m land (public domain), as the package world-atlas (ISC) has it.

import topology from "world-atlas/land-110m.json";

/** Lines of points in degrees, longitude first. */
export function coastlines(): [number, number][][] {
  const { scale: [sx = 1, sy = 1], translate: [tx = 0, ty = 0] } = topology.transform;
  return topology.arcs.map((arc) => {
    let [x, y] = [0, 0];
    return arc.map(([dx = 0, dy = 0]): [number, number] => {
      x += dx;
      y += dy;
      return [x * sx + tx, y * sy + ty];
    });
  });
}
