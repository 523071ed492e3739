// The graph as a tool: any rows with resources are drawn, searched, expanded, hidden, pinned, undone and exported.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { audit, drawn, end, exported, long, run, serve, shot, visit } from "./setup.mjs";

const PREFIXES = "@prefix e: <http://e/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .";
let address;
before(async () => {
  const students = Array.from({ length: 120 }, (_, i) => `e:s${i} a e:Student ; rdfs:label "Student ${i}" ; e:advisor e:p${i % 3} ; e:code "C${i}" .`).join("\n");
  address = await serve({ turtle: `${PREFIXES}\n${students}\ne:p0 a e:Professor ; rdfs:label "Ada" ; e:cites e:p0, e:p1 . e:p1 a e:Professor ; rdfs:label "Bob" ; e:cites e:p0 . e:p2 a e:Professor ; rdfs:label "${"long ".repeat(2000)}\u202Eend" .` });
});
after(end);

const note = (page) => page.locator(".graph-note").textContent();
const canvas = (page) => page.locator("canvas.graph");
const PAIRS = "PREFIX e: <http://e/> SELECT ?student ?professor { ?student e:advisor ?professor } ORDER BY ?student LIMIT 6";

async function graphOf(page, query, least) {
  await run(page, query);
  await page.getByRole("tab", { name: "Graph" }).click();
  return drawn(page, least);
}

for (const width of [390, 1440, 3840]) {
  test(`the rows of a SELECT are a graph, ${width} pixels wide`, async () => {
    const schemes = width === 1440 ? [{ colorScheme: "light" }, { colorScheme: "dark" }, { forcedColors: "active" }] : [{ colorScheme: "light" }];
    for (const scheme of schemes) {
      const { page, faults, close } = await visit(address, { viewport: { width, height: width === 390 ? 844 : width * 0.6 }, ...scheme });
      const { nodes, edges } = await graphOf(page, PAIRS);
      assert.deepEqual([nodes, edges], [9, 6]);
      assert.equal(await note(page), "9 nodes, 6 edges.");
      await page.getByLabel("Find in the graph").fill("Ada");
      await page.keyboard.press("Enter");
      await page.locator(".way-item").first().waitFor();
      assert.deepEqual(await audit(page), []);
      const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(over <= 0, `${over} pixels too wide`);
      await shot(page, `graph-${width}-${Object.values(scheme)[0]}`);
      assert.deepEqual(faults, []);
      await close();
    }
  });
}

test("a node is found, expanded by predicate with counts, hidden, pinned; each step is undone", async () => {
  const { page, faults, close } = await visit(address);
  const start = await graphOf(page, PAIRS);
  await page.getByLabel("Find in the graph").fill("ada");
  assert.match(await page.locator(".found-in-graph").textContent(), /^1 found/);
  await page.keyboard.press("Enter");
  const students = page.locator(".way-item", { hasText: "advisor" });
  await students.waitFor();
  // Two of the six students drawn are hers, of forty.
  assert.match(await students.textContent(), /of 40$/);
  await students.click();
  await page.waitForFunction(() => Number(document.querySelector("canvas.graph").dataset.nodes) > 40);
  await page.locator(".way-item", { hasText: "40 of 40" }).waitFor();
  assert.ok(await students.isDisabled());
  const grown = await drawn(page);
  const undo = page.getByRole("button", { name: "Undo" });
  await undo.click();
  assert.equal((await drawn(page)).nodes, start.nodes);
  assert.ok(await undo.isDisabled());
  await students.click();
  await page.waitForFunction((n) => Number(document.querySelector("canvas.graph").dataset.nodes) === n, grown.nodes);
  // By keys alone.
  await canvas(page).focus();
  await page.keyboard.press("p");
  await page.getByRole("button", { name: "Unpin" }).waitFor();
  await page.keyboard.press("h");
  await page.getByText("1 node is hidden.").waitFor();
  assert.equal((await drawn(page)).nodes, grown.nodes - 1);
  await page.getByRole("button", { name: "Show hidden" }).click();
  await canvas(page).focus();
  for (let i = 0; i < 3; i++) await page.keyboard.press("Control+z");
  assert.equal((await drawn(page)).nodes, grown.nodes);
  await page.keyboard.press("ArrowRight");
  await page.locator(".graph-panel").waitFor();
  const first = await page.locator(".graph-panel strong").textContent();
  await page.keyboard.press("ArrowLeft");
  await page.waitForFunction((t) => document.querySelector(".graph-panel strong").textContent !== t, first);
  await page.keyboard.press("Escape");
  assert.equal(await page.locator(".graph-panel").isVisible(), false);
  assert.deepEqual(faults, []);
  await close();
});

test("the legend hides, colours and captions a class", async () => {
  const { page, faults, close } = await visit(address);
  const { nodes } = await graphOf(page, PAIRS);
  const item = page.locator(".legend-item", { hasText: "Student" });
  await item.waitFor();
  assert.equal(await item.textContent(), "Student6");
  await item.click();
  await page.getByText("6 nodes are hidden.").waitFor();
  assert.equal((await drawn(page)).nodes, nodes - 6);
  await page.getByRole("button", { name: "Undo" }).click();
  await drawn(page, nodes);
  await page.getByLabel("Caption and colour of Student").click();
  await page.getByLabel("Caption of Student").locator("option", { hasText: "code" }).waitFor({ state: "attached" });
  await page.getByLabel("Caption of Student").selectOption({ label: await page.getByLabel("Caption of Student").locator("option", { hasText: "code" }).textContent() });
  await page.waitForTimeout(800);
  assert.ok((await exported(page)).texts.some(({ text }) => /^C\d+$/.test(text)));
  assert.deepEqual(await audit(page), []);
  await shot(page, "graph-legend");
  assert.deepEqual(faults, []);
  await close();
});

test("self-loops, edges in both directions and long labels are drawn; the drawing is exported", async () => {
  const { page, faults, close } = await visit(address);
  const { nodes, edges } = await graphOf(page, "PREFIX e: <http://e/> CONSTRUCT { ?a e:cites ?b . ?c a e:Professor } WHERE { { ?a e:cites ?b } UNION { ?c a e:Professor } }");
  assert.deepEqual([nodes, edges], [3, 3]);
  assert.equal(await note(page), "3 nodes, 3 edges. 3 triples of rdf:type are shown as colours.");
  await page.waitForTimeout(800);
  const svg = await exported(page);
  assert.equal(svg.name, "graph.svg");
  // The loop is a circle, and the two edges between two nodes are bent.
  assert.match(svg.text, /A[\d. ]+ 0 1 1/);
  assert.match(svg.text, /Q-?[\d.]+ /);
  assert.equal(svg.texts.filter(({ size }) => size === 10).length, 3);
  assert.ok(svg.texts.every(({ text }) => text.length < 40 && !text.includes("\u202E")), JSON.stringify(svg.texts));
  await page.locator(".graph-box").getByText("Export").click();
  const [png] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "PNG" }).click()]);
  assert.equal(png.suggestedFilename(), "graph.png");
  assert.deepEqual([...readFileSync(await png.path()).subarray(0, 4)], [0x89, 0x50, 0x4e, 0x47]);
  await shot(page, "graph-loop");
  assert.deepEqual(faults, []);
  await close();
});

test("a dragged node stays where it was put; a server that stopped leaves the drawing", async () => {
  const own = await serve({ turtle: `${PREFIXES} e:a e:p e:b, e:c . e:b e:p e:d .` });
  const { page, faults, close } = await visit(own);
  await graphOf(page, "SELECT ?x ?y { ?x <http://e/p> ?y }");
  await canvas(page).focus();
  await page.keyboard.press("ArrowUp");
  await page.route("**/query*", (route) => route.abort());
  await page.keyboard.press(" ");
  await page.getByText("the server cannot be reached").first().waitFor();
  assert.equal((await drawn(page)).nodes, 4);
  const box = await canvas(page).boundingBox();
  // From the middle outwards there is some node.
  const at = await exported(page);
  const { x, y } = at.texts.find(({ size }) => size === 12);
  await page.mouse.move(box.x + x, box.y + y + 18);
  await page.mouse.down();
  await page.mouse.move(box.x + x + 60, box.y + y + 60, { steps: 5 });
  await page.mouse.up();
  assert.deepEqual(faults.filter((f) => !/Failed to fetch|ERR_FAILED/.test(f)), []);
  await close();
});

test("twenty thousand nodes do not freeze the page, and what is left out is counted", async () => {
  const others = Array.from({ length: 300 }, (_, i) => `e:z${i}`).join(", ");
  const own = await serve({ turtle: `@prefix e: <http://e/> .\ne:n10000 e:q ${others} .\n${Array.from({ length: 21_000 }, (_, i) => `e:n${i} e:p e:n${i >> 1} .`).join("\n")}` });
  const { page, faults, close } = await visit(own);
  await page.evaluate(() => {
    globalThis.longest = 0;
    const real = globalThis.requestAnimationFrame;
    globalThis.requestAnimationFrame = (act) => real((t) => {
      const begun = performance.now();
      act(t);
      globalThis.longest = Math.max(globalThis.longest, performance.now() - begun);
    });
  });
  await graphOf(page, "CONSTRUCT WHERE { ?s <http://e/p> ?o }");
  const said = /^20,000 nodes, ([\d,]+) edges\. ([\d,]+) triples of 21,000 are not shown: the drawing is limited to 20,000 nodes\./.exec(await note(page));
  assert.ok(said, await note(page));
  const [edges, left] = said.slice(1).map((n) => Number(n.replaceAll(",", "")));
  assert.equal(edges + left, 21_000);
  await shot(page, "graph-20000");
  if (long) assert.ok((await page.evaluate(() => globalThis.longest)) < 400, "a frame");
  // More neighbours than there is room for: one request, and what it did not add is said next to what the answer has left.
  await page.getByLabel("Find in the graph").fill("http://e/n10000");
  assert.match(await page.locator(".found-in-graph").textContent(), /^1 found by IRIs and the labels read so far/);
  await page.keyboard.press("Enter");
  const way = page.locator(".way-item", { hasText: "q" });
  await way.waitFor();
  const asked = [];
  page.on("request", (request) => /ORDER BY \?x/.test(request.postData() ?? "") && asked.push(request.postData()));
  await way.click();
  await page.getByText("100 triples were not added: the drawing is limited to 20,000 nodes.").waitFor();
  assert.ok((await note(page)).startsWith(said[0]));
  assert.equal(asked.length, 1);
  assert.deepEqual(faults, []);
  await close();
});

test("neighbours are added again after Undo; what is cut is said until it is undone; keys keep the focus", async () => {
  const ways = Array.from({ length: 70 }, (_, i) => `e:hub e:p${i} e:o${i} . e:s${i} e:near e:hub .`).join("\n");
  const own = await serve({ turtle: `${PREFIXES}\n${ways}\ne:hub e:p1 e:a, e:b, e:c .` });
  const { page, faults, close } = await visit(own);
  const start = await graphOf(page, "PREFIX e: <http://e/> SELECT ?x ?y { ?x e:p0 ?y }");
  assert.deepEqual(start, { nodes: 2, edges: 1 });
  await page.getByLabel("Find in the graph").fill("hub");
  await page.keyboard.press("Enter");
  const predicates = page.getByText("The 60 most frequent predicates of each direction are listed.");
  await predicates.waitFor();
  const cut = page.locator(".graph-note", { hasText: "hub has more triples than the 40 from it and 20 to it that were read." });
  const focused = () => page.evaluate(() => document.activeElement.textContent || document.activeElement.className);
  for (let i = 0; i < 2; i++) {
    await page.getByRole("button", { name: "Add neighbours" }).press("Enter");
    await cut.waitFor();
    assert.ok((await drawn(page, 50)).nodes <= 62);
    assert.equal(await focused(), "Add neighbours");
    await page.getByRole("button", { name: "Pin", exact: true }).press("Enter");
    await page.getByRole("button", { name: "Unpin" }).waitFor();
    assert.equal(await focused(), "Unpin");
    assert.deepEqual([await cut.isVisible(), await predicates.isVisible()], [true, true]);
    const undo = page.getByRole("button", { name: "Undo" });
    await undo.press("Enter");
    await undo.press("Enter");
    await page.waitForFunction(() => document.querySelector("canvas.graph").dataset.nodes === "2");
    assert.equal(await cut.count(), 0);
    // The button has nothing more to undo.
    assert.equal(await focused(), "graph");
  }
  // The predicate that was chosen has no more neighbours: the next one has the focus.
  await page.locator(".way-item", { hasText: "p1" }).first().press("Enter");
  await page.locator(".way-item", { hasText: "4 of 4" }).waitFor();
  assert.ok(await page.evaluate(() => document.activeElement.matches(".way-item:enabled")));
  await page.getByRole("button", { name: "Close" }).press("Enter");
  assert.equal(await focused(), "graph");
  await page.keyboard.press("?");
  const dialog = page.getByRole("dialog", { name: "Keys and help" });
  await dialog.getByText("adds its neighbours").waitFor();
  await dialog.getByRole("heading", { name: "In a map" }).waitFor();
  assert.deepEqual(faults, []);
  await close();
});

test("the legend counts classes only, and the note says when some could not be read", async () => {
  const own = await serve({ turtle: `${PREFIXES}\n${Array.from({ length: 13 }, (_, i) => `e:x${i} a e:Class${i} ; e:p e:y, "x" .`).join("\n")}\ne:x5 a e:Class6 .` });
  const { page, faults, close } = await visit(own);
  await page.route("**/query*", (route) => (/VALUES \?x .* LIMIT 5000/.test(decodeURIComponent(route.request().postData() ?? "").replaceAll("+", " ")) ? route.abort() : route.continue()));
  await graphOf(page, "CONSTRUCT WHERE { ?s ?p ?o }");
  await page.locator(".graph-note", { hasText: "14 triples of rdf:type are shown as colours, one of each node. The classes of some nodes could not be read." }).waitFor();
  assert.equal(await page.locator(".legend-item").count(), 14);
  assert.deepEqual((await page.locator(".graph-legend li").allTextContents()).slice(-3).map((t) => t.replace("⋯", "")), ["Values13", "No class1", "and 1 more class"]);
  // The settings of a class stay open, and so does the focus.
  await page.getByLabel("Caption and colour of Class3").press("Enter");
  await page.getByLabel("Colour 5").press("Enter");
  assert.equal(await page.evaluate(() => document.activeElement.getAttribute("aria-label")), "Colour 5");
  assert.deepEqual(faults.filter((f) => !/Failed to fetch|ERR_FAILED/.test(f)), []);
  await close();
});

test("long literals that begin alike are told apart, and are not added twice", async () => {
  const own = await serve({ turtle: `${PREFIXES} e:a e:text "${"long ".repeat(1000)}1", "${"long ".repeat(1000)}2" .` });
  const { page, faults, close } = await visit(own);
  assert.deepEqual(await graphOf(page, "CONSTRUCT WHERE { ?s <http://e/text> ?o }"), { nodes: 3, edges: 2 });
  await page.getByLabel("Find in the graph").fill("http://e/a");
  await page.keyboard.press("Enter");
  await page.locator(".way-item", { hasText: "2 of 2" }).waitFor();
  await page.getByRole("button", { name: "Add neighbours" }).click();
  await page.getByText("No new nodes").waitFor({ state: "attached" });
  assert.deepEqual(await drawn(page), { nodes: 3, edges: 2 });
  assert.deepEqual(faults, []);
  await close();
});

test("graphs that were drawn before take no memory", async () => {
  const { page, close } = await visit(address);
  const devtools = await page.context().newCDPSession(page);
  const heap = async () => {
    for (let i = 0; i < 3; i++) await devtools.send("HeapProfiler.collectGarbage");
    return (await devtools.send("Runtime.getHeapUsage")).usedSize / 1e6;
  };
  const draw = async (times) => {
    for (let i = 0; i < times; i++) await graphOf(page, `CONSTRUCT WHERE { ?s ?p ?o } # ${i}`);
  };
  await draw(2);
  const before = await heap();
  await draw(6);
  const more = (await heap()) - before;
  assert.ok(more < 1, `${more} MB more after 6 graphs`);
  await close();
});
