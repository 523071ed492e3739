// Stores with several graphs: a graph is replaced by several files, and the search looks in all graphs.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { gzipSync } from "node:zlib";
import { audit, end, folder, serve, shot, visit } from "./setup.mjs";

after(end);

const LABEL = "<http://www.w3.org/2000/01/rdf-schema#label>";
const GRAPH = "http://e/graph";

/** Serves a store that was loaded from a TriG text. */
async function serveTrig(text) {
  const file = join(folder, `${Math.random().toString(36).slice(2)}.trig`);
  writeFileSync(file, text);
  return serve({ files: [file] });
}

const file = (name, text) => ({ name, mimeType: "", buffer: Buffer.from(text) });

/** The triples of a graph (`default`, or `graph=IRI`), a sorted line each. */
async function triples(address, graph) {
  const response = await fetch(`${address}store?${graph}`, { headers: { accept: "application/n-triples" } });
  return response.status === 404 ? [] : (await response.text()).split("\n").filter((line) => line !== "").sort();
}

const named = `graph=${encodeURIComponent(GRAPH)}`;
const replaceBox = (page) => page.getByLabel("replace the graph's contents");
const load = (page) => page.getByRole("button", { name: "Load", exact: true }).click();

test("two files replace a graph together, in one transaction, once someone has agreed", async () => {
  const own = await serveTrig(`<http://e/a> <http://e/p> 1 . <${GRAPH}> { <http://e/old> <http://e/p> 1 , 2 . }`);
  const { page, faults, close } = await visit(own, { hash: "#/data" });
  const sent = [];
  page.on("request", (request) => request.method() === "PUT" && sent.push(request.url()));
  const before = await triples(own, named);
  assert.equal(before.length, 2);
  await page.getByLabel("RDF files").setInputFiles([file("first.ttl", "<http://e/b> <http://e/p> 3 ."), { ...file("second.nt.gz", ""), buffer: gzipSync("<http://e/c> <http://e/p> \"4\" .\n") }]);
  await page.getByLabel("Into graph").fill(GRAPH);
  await replaceBox(page).check();
  await load(page);
  const box = page.getByRole("dialog", { name: "Replace a graph?" });
  await box.getByText(`2 triples of ${GRAPH} will be deleted, and replaced by 2 files`).waitFor();
  assert.deepEqual(await audit(page), []);
  await shot(page, "graph-replace");
  // Someone who does not agree changes nothing, and can still choose.
  await box.getByRole("button", { name: "Keep them" }).click();
  await page.getByText("Nothing was loaded, and the graph was not changed.").waitFor();
  assert.deepEqual(await triples(own, named), before);
  assert.ok(await replaceBox(page).isChecked());
  await load(page);
  await box.getByRole("button", { name: "Replace its 2 triples" }).click();
  await page.getByText("The graph was replaced by 2 files: 2 quads added, 2 quads removed.").waitFor();
  const integer = "^^<http://www.w3.org/2001/XMLSchema#integer>";
  assert.deepEqual(await triples(own, named), [`<http://e/b> <http://e/p> "3"${integer} .`, '<http://e/c> <http://e/p> "4" .']);
  assert.equal(sent.length, 1, sent.join());
  assert.equal((await triples(own, "default")).length, 1);
  // The next load adds.
  assert.ok(!(await replaceBox(page).isChecked()));
  await load(page);
  await page.getByText("2 of 2 files loaded, 0 quads added.").waitFor();
  assert.deepEqual(faults, []);
  await close();
});

test("a file that is refused keeps a graph as it was; an empty graph is replaced without a question", async () => {
  const own = await serveTrig("<http://e/a> <http://e/p> 1 .");
  const { page, faults, close } = await visit(own, { hash: "#/data" });
  await page.getByLabel("RDF files").setInputFiles([file("good.ttl", "<http://e/b> <http://e/p> 3 ."), file("bad.ttl", "<http://e/c> oops .")]);
  await replaceBox(page).check();
  await load(page);
  await page.getByRole("button", { name: "Replace its 1 triple" }).click();
  await page.getByText("The graph was not changed.").waitFor();
  assert.match(await page.locator(".uploading .error").textContent(), /bad\.ttl:1:/);
  assert.equal((await triples(own, "default")).length, 1);
  assert.ok(await replaceBox(page).isChecked());
  // What cannot be loaded is refused before anyone is asked.
  await page.getByLabel("RDF files").setInputFiles([file("good.ttl", "<http://e/b> <http://e/p> 3 ."), file("named.nq", "<http://e/b> <http://e/p> <http://e/c> <http://e/g> .")]);
  await load(page);
  await page.locator(".loaded .error", { hasText: "named.nq contains named graphs: name the one graph to replace" }).waitFor();
  await page.getByLabel("RDF files").setInputFiles([file("good.ttl", "<http://e/b> <http://e/p> 3 ."), file("more.ttl", "<http://e/c> <http://e/p> 4 .")]);
  await page.getByLabel("Into graph").fill("http://e/new");
  await load(page);
  await page.getByText("The graph was replaced by 2 files: 2 quads added, 0 quads removed.").waitFor();
  assert.equal((await triples(own, `graph=${encodeURIComponent("http://e/new")}`)).length, 2);
  // A text that is pasted replaces as a file does.
  await page.getByLabel("Into graph").fill("");
  await page.getByText("Paste a text").click();
  await page.getByLabel("RDF text").fill("<http://e/d> <http://e/p> 5 .");
  await replaceBox(page).check();
  await page.getByRole("button", { name: "Load text" }).click();
  await page.getByRole("button", { name: "Replace its 1 triple" }).click();
  await page.getByText("The graph was replaced by pasted text: 1 quad added, 1 quad removed.").waitFor();
  assert.deepEqual(faults, []);
  await close();
});

test("the search looks in the default graph and in named graphs, unless the default graph was chosen", async () => {
  const own = await serveTrig(`<http://e/d> ${LABEL} "Red dwarf" . <${GRAPH}> { <http://e/n> ${LABEL} "Red giant" . }`);
  const { page, faults, close } = await visit(own);
  const field = page.getByRole("combobox", { name: /Search resources/ });
  const options = page.locator("#found [role=option]");
  const labels = async (n) => {
    await page.waitForFunction((n) => document.querySelectorAll("#found [role=option]").length === n, n);
    return (await options.locator(".found-label").allTextContents()).sort();
  };
  assert.equal(await page.getByLabel("Graphs that are read").inputValue(), "default");
  await field.fill("red");
  assert.deepEqual(await labels(2), ["Red dwarf", "Red giant"]);
  await shot(page, "search-graphs");
  // The resource's page has its label from the same graphs.
  await options.filter({ hasText: "Red giant" }).click();
  await page.locator("h1", { hasText: "Red giant" }).waitFor();
  await page.getByLabel("Graphs that are read").selectOption("all");
  await page.getByLabel("Graphs that are read").selectOption("default");
  await field.fill("red");
  assert.deepEqual(await labels(1), ["Red dwarf"]);
  await page.getByText("Only the default graph was searched").waitFor();
  assert.deepEqual(faults, []);
  await close();
});

test("a search that did not look at everything says so, and what helps", async () => {
  const own = await serveTrig(`<http://e/d> ${LABEL} "Red dwarf" .`);
  const { page, faults, close } = await visit(own);
  const asked = [];
  let soon;
  await page.route("**/search?*", async (route) => {
    asked.push(new URL(route.request().url()).searchParams);
    await new Promise((resolve) => (soon = resolve));
    await route.fulfill({ json: { results: [], complete: false, indexed: false, hint: "Build an index with `jindou recluster --text`.", ms: 2000 } });
  });
  await page.getByRole("combobox", { name: /Search resources/ }).fill("red");
  await page.getByText("Searching…").waitFor();
  soon();
  const note = page.locator(".found-note", { hasText: "as far as was searched. A search ends after 2 seconds. Build an index with jindou recluster --text." });
  await note.waitFor();
  assert.equal(await note.locator("code").textContent(), "jindou recluster --text");
  assert.deepEqual(asked.map((a) => a.get("timeout")), ["2"]);
  assert.deepEqual(await audit(page), []);
  assert.deepEqual(faults, []);
  await close();
});
