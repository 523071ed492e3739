// Does what a newcomer does, with a folder of RDF files: an empty folder is served, the files are dropped on the page, classes are
// seen with labels, five links followed, three words searched, a query asked without a prefix's declaration, an empty answer
// explained. Prints the seconds of each step; JINDOU_SHOTS takes a picture of each, JINDOU_BIN and JINDOU_CHROMIUM as in e2e/setup.mjs.
//   node first-hour.mjs FOLDER [WORD WORD WORD]
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { end, ended, serve, shot, visit, write } from "./e2e/setup.mjs";

const [folder, ...words] = process.argv.slice(2);
if (folder === undefined) throw new Error("usage: node first-hour.mjs FOLDER [WORD WORD WORD]");
const files = readdirSync(folder, { recursive: true }).map((f) => join(folder, f)).filter((f) => /\.(?:nq|trig|ttl|nt|rdf|owl|jsonld)(?:\.(?:gz|bz2|xz|zst))?$/.test(f)).sort();
const begun = Date.now();
let before = begun;
const seen = new Set();
let pictures = 0;
let page;
async function step(name) {
  const now = Date.now();
  console.log(`${((now - before) / 1000).toFixed(1).padStart(6)} s  ${name}`);
  await shot(page, `hour-${String(++pictures).padStart(2, "0")}`);
  before = Date.now();
}

try {
  const address = await serve({ empty: true });
  const visited = await visit(address);
  ({ page } = visited);
  await page.getByRole("heading", { name: /This store is empty/ }).waitFor();
  await step("an empty folder is served, and the page says how to begin");
  await page.getByLabel("RDF files").setInputFiles(files);
  await page.getByRole("button", { name: "Load", exact: true }).click();
  await page.locator(".examples button").first().waitFor({ timeout: 300_000 });
  await step(`${files.length} files are loaded: ${await page.locator(".fact-line").textContent()}`);
  const box = page.getByRole("dialog");
  if (await box.count()) {
    console.log(`          ${(await box.locator("p").first().textContent()).trim()}`);
    await page.keyboard.press("Escape");
  }
  await page.locator(".panel", { hasText: "Largest classes" }).locator(".label-text").first().waitFor();
  await step(`classes with labels: ${(await page.locator(".panel", { hasText: "Largest classes" }).locator("td.what").allTextContents()).slice(0, 5).join(", ")}`);
  await page.locator(".panel", { hasText: "Largest classes" }).locator("td.what a").first().click();
  for (let i = 0; i < 5; i++) {
    await page.locator(".resource h1").waitFor();
    await page.waitForFunction(() => !document.querySelector(".resource [aria-busy]"));
    const here = page.url();
    // One that has not been seen yet, whatever there is.
    seen.add(await page.evaluate(() => location.hash));
    const all = await page.locator(".ways-both a.iri").evaluateAll((links) => links.map((link) => link.getAttribute("href")));
    const at = all.findIndex((href) => !seen.has(href));
    await page.locator(".ways-both a.iri").nth(at).click();
    await page.waitForFunction((url) => location.href !== url, here);
    await page.locator(".resource h1").waitFor();
    await step(`link ${i + 1}: ${await page.title()}`);
  }
  for (const word of words.length > 0 ? words : ["concept", "person", "unit length"]) {
    await page.getByRole("combobox", { name: /Search resources/ }).fill(word);
    await page.locator("#found li", { hasText: new RegExp(word.split(" ")[0], "i") }).first().waitFor();
    await step(`search "${word}": ${(await page.locator("#found .found-label").allTextContents()).slice(0, 3).join(", ")}`);
  }
  await page.keyboard.press("Escape");
  await page.goto(`${address}#/query`);
  await write(page, "SELECT ?x ?label WHERE { ?x a skos:ConceptScheme ; rdfs:label ?label }");
  await page.keyboard.press("Control+Enter");
  await ended(page);
  for (let i = 0; i < 3 && (await page.locator(".faults button.help").count()) > 0; i++) {
    await page.locator(".faults button.help").first().click();
    await page.keyboard.press("Control+Enter");
    await ended(page);
  }
  await step(`without a prefix declared: ${await page.locator(".status").textContent()}`);
  await write(page, "PREFIX skos: <http://www.w3.org/2004/02/skos/core#>\nSELECT * WHERE { ?x a skos:Conzept }");
  await page.keyboard.press("Control+Enter");
  await ended(page);
  await page.locator(".why li").first().waitFor();
  await step(`an empty answer: ${await page.locator(".why li").first().textContent()}`);
  console.log(`${((Date.now() - begun) / 1000).toFixed(1).padStart(6)} s  in all`);
  if (visited.faults.length > 0) throw new Error(visited.faults.join("\n"));
} finally {
  await end();
}
