// Draws docs/pictures/page.png: the page over the demo's data, after a question has been answered. `node picture.mjs [FILE]`;
// JINDOU_BIN and JINDOU_CHROMIUM as in e2e/setup.mjs.
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { demo, end, run, serve, visit } from "./e2e/setup.mjs";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const file = process.argv[2] ?? join(root, "docs/pictures/page.png");
const question = `PREFIX v: <http://example.org/sky/vocabulary#>
# Moons found before 1700, and who found them
SELECT ?moon ?planet ?finder ?day WHERE {
  GRAPH ?system { ?moon v:orbits ?planet ; v:discoveredBy ?p ; v:discoveredOn ?day }
  ?p rdfs:label ?finder
  FILTER(YEAR(?day) < 1700)
} ORDER BY ?day ?moon`;

try {
  const address = await serve({ files: demo, options: [] });
  const { page, faults } = await visit(address, { viewport: { width: 1080, height: 1300 }, colorScheme: "light" });
  await run(page, question);
  await page.waitForTimeout(300);
  const bottom = await page.evaluate(() => Math.max(...[...document.querySelectorAll('[role="row"], tr')].map((e) => e.getBoundingClientRect().bottom)));
  await page.screenshot({ path: file, clip: { x: 0, y: 0, width: 1080, height: Math.min(700, Math.ceil(bottom) + 12) } });
  if (faults.length > 0) throw new Error(faults.join("\n"));
  console.log(`wrote ${file}`);
} finally {
  await end();
}
