// Texts, links and data that were not meant kindly, or are only large: nothing is lost, renamed, frozen or left out by them.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { audit, demo, end, ended, folder, run, serve, shot, statusOf, visit, write } from "./setup.mjs";

let address;
before(async () => {
  address = await serve({ files: demo });
});
after(end);

const tabs = (page) => page.getByRole("tablist", { name: "Queries" }).getByRole("tab");
const focused = (page) => page.evaluate(() => document.activeElement.textContent);

test("20 tabs and a new one: the first one's query that nobody saved is still there, also after loading again", async () => {
  const { page, faults, close } = await visit(address);
  await write(page, "SELECT ?first { }");
  for (let i = 1; i <= 20; i++) {
    await page.getByRole("button", { name: "New query" }).click();
    await write(page, `ASK { ?tab ?number ${i} }`);
  }
  const all = ["SELECT ?first { }", ...Array.from({ length: 20 }, (_, i) => `ASK { ?tab ?number ${i + 1} }`)];
  await page.waitForFunction((last) => JSON.parse(sessionStorage.getItem("jindou-sheets") ?? "{}").texts?.at(-1) === last, all.at(-1));
  assert.deepEqual(await tabs(page).evaluateAll((made) => made.map((tab) => tab.textContent)), all.map((text) => text.slice(0, 28)));
  await shot(page, "many-tabs");
  await page.reload();
  await tabs(page).first().waitFor();
  assert.equal(await tabs(page).count(), 21);
  await tabs(page).first().click();
  assert.equal((await page.locator(".cm-line").allTextContents()).join("\n"), all[0]);
  assert.deepEqual(faults, []);
  await close();
});

test("a button that is pressed when the names of the tabs should change is clicked all the same", async () => {
  const { page, faults, close } = await visit(address);
  await write(page, "ASK { ?held ?down 1 }");
  await page.getByRole("button", { name: "New query" }).hover();
  await page.mouse.down();
  await page.waitForTimeout(1000);
  await page.mouse.up();
  await tabs(page).nth(1).waitFor();
  assert.equal(await tabs(page).count(), 2);
  assert.deepEqual(faults, []);
  await close();
});

test("a pasted text with thousands of blank lines is looked at like any other", async (t) => {
  const own = await serve({ empty: true });
  const { page, faults, close } = await visit(own);
  await page.getByText("Paste a text").click();
  const field = page.getByLabel("RDF text");
  const paste = (text) => field.evaluate((element, value) => {
    const started = performance.now();
    element.value = value;
    element.dispatchEvent(new InputEvent("input", { inputType: "insertFromPaste" }));
    return performance.now() - started;
  }, text);
  const line = "<http://e/a> <http://e/p> 1 .\n";
  const plain = await paste(line.repeat(5000));
  for (const [what, text] of [
    ["blank lines", `${line}${"\n".repeat(5000)}${line}`], ["spaces", `${line}${" ".repeat(100_000)}${line}`], ["a bracket and blank lines", `[${"\n".repeat(20_000)}`],
    ["open quotes", `${line}"${'\\"'.repeat(50_000)}`], ["names", `${line}${"a".repeat(100_000)}`],
  ]) {
    const took = await paste(text);
    t.diagnostic(`${what}: ${took.toFixed(1)} ms; 5,000 written lines: ${plain.toFixed(1)} ms`);
    assert.ok(took < 100 || took < 10 * plain, `${what}: ${took} ms`);
  }
  // Their format is still told.
  await paste(`@prefix e: <http://e/> .${"\n".repeat(5000)}e:g {\n e:a e:p 1 }`);
  assert.equal(await page.getByLabel("Format of the text").inputValue(), "application/trig");
  assert.deepEqual(faults, []);
  await close();
});

test("an address that names no view shows the queries, and the page goes on", async () => {
  const { page, faults, close } = await visit(address, { hash: "#/constructor" });
  for (const name of ["toString", "__proto__", "constructor"]) {
    await page.goto(`${address}#/${name}`);
    await page.locator(".editor").waitFor();
    await page.goto(`${address}#/data`);
    await page.getByRole("heading", { name: "Data", exact: true }).waitFor();
  }
  await page.goto(`${address}#/query`);
  await run(page, "SELECT * { ?s ?p ?o } LIMIT 2");
  assert.match(await statusOf(page), /^2 rows/);
  assert.deepEqual(faults, []);
  await close();
});

test("a link's prefixes name its own answer alone", async () => {
  const own = await serve({ turtle: "<http://e/a> <http://xmlns.com/foaf/0.1/name> <http://evil.example/b> ." });
  const link = "PREFIX foaf: <http://evil.example/> PREFIX nice: <http://xmlns.com/foaf/0.1/> SELECT ?p ?o { ?s ?p ?o }";
  const { page, faults, close } = await visit(own, { hash: `#/query?q=${encodeURIComponent(link)}` });
  await ended(page);
  const row = async () => Promise.all([0, 1].map((c) => page.locator(`#cell-0-${c}`).textContent()));
  await page.locator("#cell-0-1").waitFor();
  assert.deepEqual(await row(), ["nice:name", "foaf:b"]);
  await page.getByRole("button", { name: "New query" }).click();
  await run(page, "SELECT ?p ?o { ?s ?p ?o }");
  await page.locator("#cell-0-1").waitFor();
  // The prefix of the other namespace is the page's own, and says so.
  assert.deepEqual(await row(), ["foaf:name", "evil:b"]);
  assert.match(await page.locator("#cell-0-1 a").getAttribute("title"), /^http:\/\/evil\.example\/b\nevil: is a prefix of this page's own$/);
  // Back in its tab, the link's answer has the names that are written there; other views have none of them.
  await tabs(page).first().click();
  await page.waitForFunction(() => document.querySelector("#cell-0-1")?.textContent === "foaf:b");
  await page.goto(`${own}#/data`);
  await page.locator(".list", { hasText: "Predicates" }).getByText("foaf:name").waitFor();
  assert.deepEqual(faults, []);
  await close();
});

test("of 2,000 columns those that are seen are elements", async () => {
  const { page, faults, close } = await visit(address);
  const names = Array.from({ length: 2000 }, (_, i) => `?c${i}`).join(" ");
  const row = Array.from({ length: 2000 }, (_, i) => i).join(" ");
  await run(page, `SELECT * { VALUES (${names}) { ${`(${row})`.repeat(40)} } }`);
  await page.locator("#cell-0-0").waitFor();
  const grid = page.locator(".grid");
  const nodes = () => grid.evaluate((g) => g.querySelectorAll("*").length);
  assert.ok((await nodes()) < 3000, `${await nodes()} elements`);
  assert.equal(await grid.getAttribute("aria-colcount"), "2001");
  await grid.focus();
  await page.keyboard.press("End");
  const last = page.locator("#cell-0-1999");
  await last.waitFor();
  assert.equal(await last.textContent(), "1999");
  const inside = async (cell) => {
    const [box, outer] = await Promise.all([cell.boundingBox(), grid.boundingBox()]);
    return box.x >= outer.x - 1 && box.x + box.width <= outer.x + outer.width + 1;
  };
  assert.ok(await inside(last));
  // A heading stands above its cells.
  const head = page.locator('[role=columnheader][aria-colindex="2001"]');
  assert.equal((await head.boundingBox()).x, (await last.boundingBox()).x);
  assert.equal(await page.locator("#cell-0-0").count(), 0);
  await shot(page, "many-columns");
  assert.ok((await nodes()) < 3000, `${await nodes()} elements`);
  await page.keyboard.press("ArrowLeft");
  assert.equal(await page.locator(".grid .active").getAttribute("id"), "cell-0-1998");
  await page.keyboard.press("Home");
  await page.locator("#cell-0-0.active").waitFor();
  await grid.evaluate((g) => (g.scrollLeft = g.scrollWidth / 2));
  await page.waitForFunction(() => {
    const seen = [...document.querySelectorAll("#row-0 [role=gridcell]")].map((c) => Number(c.textContent));
    return seen[0] > 800 && seen.at(-1) < 1200;
  });
  assert.deepEqual(await audit(page), []);
  // Each of them can be drawn.
  await page.getByRole("tab", { name: "Chart" }).click();
  await page.getByLabel("Kind").selectOption("bars");
  await page.getByLabel("Vertical").selectOption("c1999");
  await page.locator(".plot-bars thead", { hasText: "c1999" }).waitFor();
  assert.equal(await page.locator(".plot-bars td.n").first().textContent(), "1,999");
  assert.deepEqual(faults, []);
  await close();
});

test("the filter over 10,000 graphs finds those that are not listed", async () => {
  const quads = Array.from({ length: 10_000 }, (_, i) => `<http://e/a> <http://e/p> ${i < 1000 ? "1, 2" : "1"}`.split(", ").map((_, k) => `<http://e/a> <http://e/p> "${k}" <http://e/graph/${i}> .`).join("\n")).join("\n");
  const file = join(folder, "graphs.nq");
  writeFileSync(file, quads);
  const own = await serve({ files: [file] });
  const { page, faults, close } = await visit(own, { hash: "#/data" });
  const list = page.locator(".list", { hasText: "Named graphs" });
  await list.getByText("The 1,000 most frequent of 10,000.").waitFor();
  const rows = list.locator("tbody tr");
  await list.getByLabel("Filter named graphs").fill("graph/9876");
  await page.waitForFunction(() => document.querySelectorAll("[aria-label='Named graphs'] tbody tr").length === 1);
  assert.match(await rows.first().textContent(), /9876/);
  await list.getByLabel("Filter named graphs").fill("");
  assert.equal(await rows.count(), 1000);
  await list.getByLabel("Filter named graphs").fill("graph/99");
  // 99 is listed; 990 to 999 are, too; 9,900 to 9,999 are not.
  await page.waitForFunction(() => document.querySelectorAll("[aria-label='Named graphs'] tbody tr").length === 111);
  assert.deepEqual(await audit(page), []);
  assert.deepEqual(faults, []);
  await close();
});

test("with the browser's own few colours, the current view and tab can be told", async () => {
  const { page, faults, close } = await visit(address, { forcedColors: "active" });
  await run(page, "SELECT * { ?s ?p ?o } LIMIT 2");
  const outline = (locator) => locator.evaluate((e) => getComputedStyle(e).outlineStyle);
  const view = (name) => page.locator("nav").getByRole("link", { name, exact: true });
  assert.equal(await outline(view("Query")), "solid");
  assert.equal(await outline(view("Data")), "none");
  assert.equal(await outline(page.locator("#tab-table")), "solid");
  assert.equal(await outline(page.locator("#tab-plan")), "none");
  await shot(page, "forced-colours");
  assert.deepEqual(faults, []);
  await close();
});

test("all graphs are offered for what they have, and not for a term that occurs nowhere", async () => {
  const own = await serve({ turtle: "<http://e/a> <http://e/p> 1 ." });
  await fetch(`${own}store?graph=http://e/g`, { method: "PUT", headers: { "content-type": "text/turtle" }, body: "<http://e/b> <http://e/other> 2 ." });
  const { page, faults, close } = await visit(own);
  const offer = page.getByRole("button", { name: "Read all graphs" });
  await run(page, "SELECT * { ?s <http://e/nowhere> ?o }");
  await page.locator(".why li").first().waitFor();
  assert.equal(await offer.count(), 0);
  await run(page, "SELECT * { ?s <http://e/other> ?o }");
  await offer.click();
  await page.waitForFunction(() => /^1 row/.test(document.querySelector(".status").textContent));
  assert.deepEqual(faults, []);
  await close();
});

test("a title shows characters that turn the writing around", async () => {
  const label = "abc\u202Egnp.exe";
  const own = await serve({ turtle: `<http://e/a> <http://www.w3.org/2000/01/rdf-schema#label> "${label}" .` });
  const { page, faults, close } = await visit(own, { hash: `#/resource?iri=${encodeURIComponent("http://e/a")}` });
  await page.getByRole("heading", { name: "abc\\u202Egnp.exe" }).waitFor();
  await page.waitForFunction(() => document.title.startsWith("abc\\u202Egnp.exe"));
  await page.keyboard.press("/");
  await page.keyboard.type("abc");
  await page.locator(".found-label").waitFor();
  assert.equal(await page.locator(".found-label").textContent(), "abc\\u202Egnp.exe");
  assert.deepEqual(faults, []);
  await close();
});

test("a query with quotes of all kinds is the same text in Python", async () => {
  const { page, faults, close } = await visit(address, { permissions: ["clipboard-read", "clipboard-write"] });
  for (const query of ['SELECT ("""a"b""" AS ?x) # """" \\\n{ } # "', 'ASK { } # """', "ASK { } # '''\n\"\"\"\"\"\"\"", 'ASK { } # \\"""\n# \\\\"']) {
    await write(page, query);
    await page.getByText("More", { exact: true }).click();
    await page.getByRole("button", { name: "Copy as Python" }).click();
    await page.getByText("Copied.").waitFor();
    const program = await page.evaluate(() => navigator.clipboard.readText());
    const text = execFileSync("python3", ["-c", `${program.split("request = ")[0]}\nprint(query, end="")`], { encoding: "utf8" });
    assert.equal(text, query);
    await write(page, "");
  }
  assert.deepEqual(faults, []);
  await close();
});

test("a file's name is said as it is, and so is its type", async () => {
  const own = await serve({ empty: true });
  const { page, faults, close } = await visit(own);
  const load = async (name) => {
    await page.getByLabel("RDF files").setInputFiles([{ name, mimeType: "", buffer: Buffer.from("<http://e/a> oops .") }]);
    await page.getByRole("button", { name: "Load", exact: true }).click();
  };
  await load("a$&b$1.ttl");
  await page.locator(".uploading .error", { hasText: "a$&b$1.ttl:1:" }).waitFor();
  await load("a.constructor");
  await page.getByText("a.constructor: cannot tell the RDF format from the name").waitFor();
  assert.deepEqual(faults, []);
  await close();
});

test("a page that opens this one has no hold on it", async () => {
  const { page, faults, close } = await visit(address);
  const response = await page.goto(address);
  assert.equal(response.headers()["cross-origin-opener-policy"], "same-origin");
  assert.deepEqual(faults, []);
  await close();
});

test("what clears graphs says how much goes, and waits at Cancel", async () => {
  const own = await serve({ turtle: "<http://e/a> <http://e/p> 1, 2, 3 ." });
  await fetch(`${own}store?graph=http://e/g`, { method: "PUT", headers: { "content-type": "text/turtle" }, body: "<http://e/b> <http://e/p> 4 ." });
  const { page, faults, close } = await visit(own);
  const ask = async (text) => {
    await write(page, text);
    await page.getByRole("button", { name: "Run", exact: true }).click();
    await page.locator(".ask").waitFor();
    return page.locator(".ask").textContent();
  };
  for (const [text, said] of [
    ["DROP ALL", "all 4 triples of the store, in all its graphs"], ["clear silent default", "all 3 triples of the default graph"],
    ["PREFIX e: <http://e/> CLEAR GRAPH e:g ; DROP NAMED", "the 1 triple of the graph e:g, and the 1 triple of all named graphs"],
    ["COPY DEFAULT TO <http://e/g>", "the 1 triple of the graph <http://e/g>"],
  ]) {
    assert.ok((await ask(text)).includes(`This update deletes ${said}. This cannot be undone.`), await page.locator(".ask").textContent());
    assert.equal(await focused(page), "Cancel");
  }
  assert.deepEqual(await audit(page), []);
  await shot(page, "drop-all");
  await page.keyboard.press("Enter");
  assert.equal(await page.locator(".ask").count(), 0);
  // What adds is asked for as before.
  await ask("INSERT DATA { <http://e/clear> <http://e/p> 'DROP ALL' }");
  assert.equal(await focused(page), "Run the update");
  await ask("DROP ALL");
  await page.getByRole("button", { name: "Run the update" }).click();
  await page.getByText("0 quads added, 4 quads removed by 1 operation.").waitFor();
  assert.deepEqual(faults, []);
  await close();
});
