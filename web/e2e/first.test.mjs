// The first minutes with an empty store: the demo, the panel to load, undoing a load, and the list of keys.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { audit, end, run, serve, shot, statusOf, visit } from "./setup.mjs";

after(end);

const over = (page) => page.evaluate(() => document.documentElement.scrollWidth - innerWidth);

for (const [width, height] of [[390, 844], [1440, 900], [3840, 2160]]) {
  test(`an empty store takes the demo's data by one button, ${width} px`, async () => {
    const own = await serve({ empty: true });
    const { page, faults, close } = await visit(own, { viewport: { width, height } });
    const demo = page.getByRole("button", { name: "Load the demo data" });
    await demo.waitFor();
    assert.ok((await demo.boundingBox()).y < height / 2);
    assert.ok((await over(page)) <= 0);
    assert.deepEqual(await audit(page), []);
    await shot(page, `empty-${width}`);
    await demo.click();
    await page.locator(".examples button").first().waitFor();
    await run(page, "PREFIX v: <http://example.org/sky/vocabulary#> SELECT * { ?x a v:Planet }");
    assert.match(await statusOf(page), /^8 rows/);
    assert.deepEqual(faults, []);
    await close();
  });
}

const quads = async (own) => Number((await (await fetch(`${own}query?query=${encodeURIComponent("SELECT (COUNT(*) AS ?n) { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } }")}&graphs=default&format=csv`)).text()).split("\n")[1]);
const insert = (own, quad) => fetch(`${own}update`, { method: "POST", headers: { "content-type": "application/sparql-update" }, body: `INSERT DATA { ${quad} }` });

test("the demo's data is removed again by Undo, unless the store has been changed since", async () => {
  const own = await serve({ empty: true });
  const { page, faults, close } = await visit(own);
  const demo = page.getByRole("button", { name: "Load the demo data" });
  const undo = page.getByRole("button", { name: "Undo" });
  await demo.click();
  await page.getByText("empties the store again").waitFor();
  await page.locator(".examples button").first().waitFor();
  assert.ok(await undo.isVisible());
  assert.deepEqual(await audit(page), []);
  await shot(page, "undo");
  await undo.dblclick();
  await page.getByText("Undone: the store is empty again.").waitFor();
  await demo.waitFor();
  assert.equal(await quads(own), 0);
  await demo.click();
  await page.getByText("empties the store again").waitFor();
  const loaded = await quads(own);
  await insert(own, "GRAPH <http://e/other> { <http://e/c> <http://e/p> 3 }");
  await undo.click();
  await page.getByText("the store has been changed since, so nothing was undone").waitFor();
  assert.equal(await quads(own), loaded + 1);
  assert.deepEqual(faults, []);
  await close();
});

test("a pasted text is undone on the first screen; what others add while it loads is kept", async () => {
  const own = await serve({ empty: true });
  const { page, faults, close } = await visit(own);
  const load = async () => {
    await page.getByRole("button", { name: "Paste a text" }).click();
    await page.getByLabel("RDF text").fill("<http://e/a> <http://e/p> 1, 2 .");
    await page.getByRole("button", { name: "Load text" }).click();
  };
  await load();
  await page.getByText("empties the default graph again").waitFor();
  await page.getByRole("button", { name: "Undo" }).click();
  await page.getByText("Undone: the default graph is empty again.").waitFor();
  assert.equal(await quads(own), 0);
  // Between the check before the load and the tag.
  await page.route("**/store?default", async (route) => {
    if (route.request().method() === "HEAD") await insert(own, "<http://e/c> <http://e/p> 3");
    await route.continue();
  });
  await load();
  await page.getByText("There is no Undo: the default graph does not have exactly what was loaded").waitFor();
  assert.equal(await page.getByRole("button", { name: "Undo" }).count(), 0);
  assert.equal(await quads(own), 3);
  assert.deepEqual(faults, []);
  await close();
});

test("what is pasted where no field is goes to the panel", async () => {
  const own = await serve({ empty: true });
  const { page, faults, close } = await visit(own);
  await page.locator(".drop-zone").waitFor();
  const paste = (text) => page.evaluate((text) => {
    const data = new DataTransfer();
    data.setData("text/plain", text);
    document.body.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
  }, text);
  await paste("https://example.org/data.ttl");
  assert.equal(await page.getByLabel("Address of a document").inputValue(), "https://example.org/data.ttl");
  await paste("<http://e/g> {\n <http://e/a> <http://e/p> 1 }");
  assert.equal(await page.getByLabel("Format of the text").inputValue(), "application/trig");
  assert.equal(await page.getByRole("button", { name: "Paste a text" }).getAttribute("aria-pressed"), "true");
  assert.deepEqual(await audit(page), []);
  await page.getByRole("button", { name: "Load text" }).click();
  await page.locator(".fact-line", { hasText: "1 triple" }).waitFor();
  assert.deepEqual(faults, []);
  await close();
});

test("a load into a new graph is undone, unless the graph has been changed since", async () => {
  const own = await serve({ turtle: "<http://e/a> <http://e/p> 1 ." });
  const { page, faults, close } = await visit(own, { hash: "#/data" });
  const graph = "http://e/new graph?".replace(" ", "-");
  const size = async () => (await (await fetch(`${own}query?query=${encodeURIComponent(`SELECT ?s { GRAPH <${graph}> { ?s ?p ?o } }`)}&format=csv`)).text()).trim().split("\n").length - 1;
  const load = async () => {
    await page.getByLabel("RDF files").setInputFiles({ name: "two.ttl", mimeType: "text/turtle", buffer: Buffer.from("<http://e/b> <http://e/p> 1, 2 .") });
    await page.getByLabel("Into graph").fill(graph);
    await page.getByRole("button", { name: "Load", exact: true }).click();
  };
  await load();
  await page.getByRole("button", { name: "Undo" }).click();
  await page.getByText("is empty again.").waitFor();
  assert.equal(await size(), 0);
  // Someone else has changed it.
  await load();
  await page.getByRole("button", { name: "Undo" }).waitFor();
  await fetch(`${own}update`, { method: "POST", headers: { "content-type": "application/sparql-update" }, body: `INSERT DATA { GRAPH <${graph}> { <http://e/c> <http://e/p> 3 } }` });
  await page.getByRole("button", { name: "Undo" }).click();
  await page.getByText("has been changed since, so nothing was undone").waitFor();
  assert.equal(await size(), 3);
  // A graph that had something is not offered to be emptied.
  await load();
  await page.getByText("0 quads added").waitFor();
  assert.equal(await page.getByRole("button", { name: "Undo" }).count(), 0);
  assert.deepEqual(await audit(page), []);
  assert.deepEqual(faults, []);
  await close();
});

test("? lists the keys, by its button and by its key, and is a character where someone writes", async () => {
  const own = await serve({ turtle: "<http://e/a> <http://e/p> 1 ." });
  const { page, faults, close } = await visit(own, { hash: "#/server" });
  await page.getByRole("heading", { name: "Server", exact: false }).first().waitFor();
  await page.evaluate(() => document.activeElement.blur());
  await page.keyboard.press("?");
  const dialog = page.getByRole("dialog", { name: "Keys and help" });
  await dialog.getByText("Ctrl-Enter").waitFor();
  assert.deepEqual(await audit(page), []);
  await page.keyboard.press("Escape");
  assert.equal(await dialog.count(), 0);
  await page.getByRole("button", { name: "Keys and help" }).click();
  await dialog.waitFor();
  await page.keyboard.press("Escape");
  await page.goto(`${own}#/query`);
  await page.locator(".editor").click();
  await page.keyboard.press("End");
  await page.keyboard.type("?x");
  assert.equal(await dialog.count(), 0);
  assert.match(await page.locator(".cm-content").textContent(), /\?x/);
  assert.deepEqual(faults, []);
  await close();
});
