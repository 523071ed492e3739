// The Data view: graphs and the whole store are downloaded, and graphs removed.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { audit, demo, end, folder, serve, shot, visit } from "./setup.mjs";

after(end);

const MARS = "http://example.org/systems/Mars";
const graphs = (page) => page.getByRole("region", { name: "Named graphs" });
const fact = (page, name) => page.locator(".facts > div", { hasText: name }).locator("dd");
/** Opens a dialog by a button, chooses a format there, and gives the name and text of what comes. */
async function download(page, opener, format) {
  await page.getByRole("button", { name: opener, exact: true }).click();
  const [came] = await Promise.all([page.waitForEvent("download"), page.getByRole("dialog").getByRole("button", { name: format, exact: true }).click()]);
  return [came.suggestedFilename(), readFileSync(await came.path(), "utf8")];
}

test("a graph is downloaded in each format, and so is the whole store", async () => {
  const own = await serve({ files: demo });
  const { page, faults, close } = await visit(own, { hash: "#/data" });
  await graphs(page).waitFor();
  const [name, turtle] = await download(page, `Download ${MARS}`, "Turtle");
  assert.equal(name, "Mars.ttl");
  assert.match(turtle, /Phobos/);
  assert.doesNotMatch(turtle, /Titan/);
  await page.getByText(/^Downloaded .* as Turtle: Mars\.ttl, [\d,]+ B\.$/).waitFor();
  await shot(page, "graph-downloaded");
  const [lines, triples] = await download(page, `Download ${MARS}`, "N-Triples");
  assert.equal(lines, "Mars.nt");
  assert.match(triples, /^(<\S+> <\S+> .+ \.\n)+$/);
  assert.equal((await download(page, `Download ${MARS}`, "JSON-LD"))[0], "Mars.jsonld");
  assert.match((await download(page, `Download ${MARS}`, "RDF/XML"))[1], /^<\?xml/);
  // What was said before is gone: one line is left, and what it says is so.
  assert.deepEqual(await page.locator(".board .over").count(), 1);
  const [whole, quads] = await download(page, "Download the store", "N-Quads");
  assert.match(whole, /\.nq$/);
  assert.ok(quads.includes(`<${MARS}> .`) && quads.includes("Titan"), quads.slice(0, 300));
  const total = Number((await fetch(`${own}query?query=${encodeURIComponent("SELECT (COUNT(*) AS ?n) { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } }")}&graphs=default&format=csv`).then((r) => r.text())).split("\n")[1]);
  assert.equal(quads.trim().split("\n").length, total);
  await page.getByRole("button", { name: "Download the store", exact: true }).click();
  assert.deepEqual(await page.getByRole("dialog").locator(".tools button").allTextContents(), ["N-Quads", "TriG", "JSON-LD"]);
  assert.deepEqual(await audit(page), []);
  await page.keyboard.press("Escape");
  assert.deepEqual(faults, []);
  await close();
});

test("a download is cancelled, and one that fails says why", async () => {
  const own = await serve({ files: demo });
  const { page, faults, close } = await visit(own, { hash: "#/data" });
  let answer;
  await page.route("**/store?*", (route) => new Promise((resolve) => (answer = (how) => resolve(how(route)))));
  const begin = async () => {
    await page.getByRole("button", { name: `Download ${MARS}`, exact: true }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Turtle", exact: true }).click();
    await page.getByText(/^Downloading .* as Turtle/).waitFor();
  };
  await begin();
  await page.locator(".board").getByRole("button", { name: "Cancel" }).click();
  await page.getByText(/^The download of .* was cancelled\.$/).waitFor();
  await answer((route) => route.abort().catch(() => {}));
  const asked = page.waitForRequest(/store\?graph=/);
  await begin();
  await asked;
  await answer((route) => route.fulfill({ status: 503, contentType: "application/problem+json", body: JSON.stringify({ type: "urn:jindou:problem:busy", status: 503, detail: "all slots are taken" }) }));
  await page.locator(".board [role=alert]", { hasText: /was not downloaded: all slots are taken$/ }).waitFor();
  assert.deepEqual(faults, []);
  await close();
});

test("a graph is removed by a second button that says what goes; counts follow", async () => {
  const own = await serve({ files: demo });
  const { page, faults, close } = await visit(own, { hash: "#/data" });
  await graphs(page).waitFor();
  const rows = graphs(page).locator("tbody tr");
  const before = await rows.count();
  assert.equal(await fact(page, "Named graphs").textContent(), String(before));
  const remove = page.getByRole("button", { name: `Remove ${MARS}`, exact: true });
  // Who does not mean it removes nothing; the focus is where it was.
  await remove.click();
  const box = page.getByRole("dialog");
  await box.getByText(MARS).waitFor();
  assert.deepEqual(await audit(page), []);
  await shot(page, "graph-remove");
  await box.getByRole("button", { name: "Keep it" }).click();
  assert.ok(await remove.evaluate((b) => b === document.activeElement));
  assert.equal(await rows.count(), before);
  await remove.click();
  const confirm = box.getByRole("button", { name: /^Remove / });
  assert.match(await confirm.textContent(), /^Remove \S*Mars and its 10 triples$/);
  await confirm.click();
  await page.getByText(/^Removed \S*Mars and its 10 triples\.$/).waitFor();
  await page.waitForFunction((n) => document.querySelectorAll("[aria-label='Named graphs'] tbody tr").length === n, before - 1);
  await page.waitForFunction((n) => [...document.querySelectorAll(".facts > div")].find((d) => d.textContent.startsWith("Named graphs")).lastChild.textContent === String(n), before - 1);
  assert.equal(await remove.count(), 0);
  // Someone else was faster: the server's words, and a list that is up to date.
  const saturn = "http://example.org/systems/Saturn";
  assert.equal((await fetch(`${own}store?graph=${encodeURIComponent(saturn)}`, { method: "DELETE" })).status, 200);
  await page.getByRole("button", { name: `Remove ${saturn}`, exact: true }).click();
  await box.getByRole("button", { name: /^Remove / }).click();
  await page.locator(".board [role=alert]", { hasText: `was not removed: no graph <${saturn}>` }).waitFor();
  await page.waitForFunction((n) => document.querySelectorAll("[aria-label='Named graphs'] tbody tr").length === n, before - 2);
  assert.deepEqual(faults, []);
  await close();
});

test("a server for reading offers downloads and no removal; tokens go along where there are some", async () => {
  const closed = await serve({ files: demo, options: [] });
  const first = await visit(closed, { hash: "#/data" });
  await first.page.getByRole("button", { name: `Download ${MARS}`, exact: true }).waitFor();
  assert.equal(await first.page.getByRole("button", { name: /^Remove http/ }).count(), 0);
  const file = join(folder, "graph-tokens");
  const [reader, writer] = ["reader-0123456789abcdef", "writer-0123456789abcdef"];
  writeFileSync(file, `read ${reader}\nwrite ${writer}\n`, { mode: 0o600 });
  const own = await serve({ files: demo, options: ["--token-file", file] });
  const { page, faults, close } = await visit(own, { hash: "#/data", httpCredentials: { username: "any", password: reader } });
  await page.getByRole("button", { name: `Remove ${MARS}`, exact: true }).click();
  await page.getByRole("dialog").getByRole("button", { name: /^Remove / }).click();
  await page.getByRole("textbox", { name: "Token" }).fill(writer);
  await page.getByRole("button", { name: "Use token" }).click();
  await page.getByText(/^Removed /).waitFor();
  const sent = page.waitForRequest(/store\?graph=/);
  await download(page, "Download http://example.org/systems/Earth", "Turtle");
  assert.equal((await sent).headers().authorization, `Bearer ${writer}`);
  assert.deepEqual([...first.faults, ...faults], []);
  await first.close();
  await close();
});
