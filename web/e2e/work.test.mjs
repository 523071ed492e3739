// Working with queries: what runs, what went wrong, several at once, and what is kept.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { audit, demo, end, ended, limit, run, serve, shot, statusOf, stop, visit, write } from "./setup.mjs";

const SKY = "http://example.org/sky/vocabulary#";
const numbers = (n) => Array.from({ length: n }, (_, i) => i).join(" ");
/** Runs for minutes, and gives no row before its end. */
const LONG = `SELECT (COUNT(*) AS ?n) { VALUES ?a { ${numbers(700)} } VALUES ?b { ${numbers(700)} } VALUES ?c { ${numbers(700)} } FILTER(STRLEN(CONCAT(STR(?a), STR(?b), STR(?c))) > 2) }`;
let address;
before(async () => {
  address = await serve({ files: demo });
});
after(end);

const start = (page) => page.getByRole("button", { name: "Run", exact: true }).click();
const text = (page) => page.locator(".cm-line").allTextContents().then((lines) => lines.join("\n"));

test("a query that runs says how long, how far, and by which plan; Cancel says what it did", async () => {
  const { page, faults, close } = await visit(address);
  await write(page, "SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l FILTER(?a != ?l) }");
  await start(page);
  await page.locator(".plan .step-number", { hasText: "2." }).first().waitFor();
  assert.match(await statusOf(page), /^Running · .* · 0 rows so far/);
  const seconds = async () => (await statusOf(page)).split(" · ")[1];
  const first = await seconds();
  await page.waitForFunction((before) => document.querySelector(".status").textContent.split(" · ")[1] !== before, first);
  assert.match(await page.locator(".running").textContent(), /The planner expects about/);
  assert.deepEqual(await audit(page), []);
  await shot(page, "running");
  await page.getByRole("button", { name: "Cancel", exact: true }).click();
  await ended(page);
  assert.match(await statusOf(page), /^Cancelled after .*no row had come/);
  await shot(page, "cancelled");
  // With rows: they stay, and are said to be a part.
  await write(page, "SELECT * { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l }");
  await start(page);
  await page.locator("#cell-0-0").waitFor();
  await page.getByRole("button", { name: "Cancel", exact: true }).click();
  await ended(page);
  await page.getByText(/You ended the query after/).waitFor();
  await shot(page, "cancelled-rows");
  assert.deepEqual(faults, []);
  await close();
});

test("the live plan of a query that runs shows its measured steps", async () => {
  const { page, faults, close } = await visit(address);
  await write(page, LONG);
  await start(page);
  await page.getByRole("heading", { name: "Profile (running)" }).waitFor();
  await page.getByRole("button", { name: "Cancel", exact: true }).click();
  await ended(page);
  assert.deepEqual(faults, []);
  await close();
});

test("the plan of an answer keeps the answer; estimates that are far off are marked", async () => {
  // Every subject has the two predicates or none of them, which no statistics say.
  const odd = Array.from({ length: 3000 }, (_, i) => `<http://e/s${i}> <http://e/a> ${i % 3 === 0 ? 1 : i} ; <http://e/b> ${i % 3 === 0 ? 1 : -i} .`).join("\n");
  const own = await serve({ turtle: odd });
  const { page, faults, close } = await visit(own);
  await run(page, "SELECT * { ?x <http://e/a> 1 . ?x <http://e/b> ?v . ?y <http://e/b> ?v . ?y <http://e/a> ?w } LIMIT 2000000");
  const rows = /^[\d,]+ rows/.exec(await statusOf(page))[0];
  await page.getByRole("tab", { name: "Plan" }).click();
  await page.getByRole("heading", { name: "Profile", exact: true }).waitFor();
  const off = page.locator(".plan tr.far .off");
  assert.ok((await off.count()) > 0);
  assert.match(await off.first().textContent(), /times (?:more|fewer) than expected/);
  assert.deepEqual(await page.locator(".plan .step-number").allTextContents(), ["1.", "2.", "3.", "4."].slice(0, await page.locator(".plan .step-number").count()));
  assert.deepEqual(await audit(page), []);
  await shot(page, "plan-off");
  await page.getByRole("tab", { name: "Table" }).click();
  await page.locator("#cell-0-0").waitFor();
  assert.ok(rows.length > 0);
  assert.deepEqual(faults, []);
  await close();
});

test("what is typed takes a long selection's place at once, and a bracket goes around it", async () => {
  const { page, faults, close } = await visit(address);
  const lines = () => page.locator(".cm-line").allTextContents();
  await write(page, LONG);
  await page.keyboard.press("ControlOrMeta+a");
  const before = Date.now();
  await page.keyboard.press("A");
  await page.waitForFunction(() => document.querySelector(".editor").shadowRoot.querySelector(".cm-content").textContent === "A");
  // The browser itself takes a minute, and more on a busy machine.
  assert.ok(Date.now() - before < 30_000, `${Date.now() - before} ms`);
  await page.keyboard.insertText("SK {}");
  await page.keyboard.press("ControlOrMeta+a");
  await page.keyboard.press("{");
  assert.deepEqual(await lines(), ["{ASK {}}"]);
  await page.keyboard.press("ControlOrMeta+z");
  assert.deepEqual(await lines(), ["ASK {}"]);
  assert.deepEqual(faults, []);
  await close();
});

test("each state has its own words: time, memory, a server that is gone and comes back", async () => {
  const own = await serve({ files: demo, options: ["--writable", "--query-memory", "48M"] });
  const { page, faults, close } = await visit(own);
  await limit(page, "1");
  await run(page, LONG);
  await page.locator(".trouble", { hasText: "Time limit reached" }).waitFor();
  await shot(page, "time-limit");
  await limit(page, "");
  await run(page, "SELECT (GROUP_CONCAT(CONCAT(STR(?a), STR(?b), STR(?c), STR(?d), STR(?e), STR(?f))) AS ?all) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i }");
  await page.locator(".trouble", { hasText: "Out of memory" }).waitFor();
  assert.deepEqual(await audit(page), []);
  await shot(page, "out-of-memory");
  // What was wrong goes as soon as another text is written.
  await write(page, "SELECT * { ?s ?p ?o } LIMIT 5");
  assert.equal(await page.locator(".trouble").count(), 0);
  // The server goes.
  let gone = true;
  const reached = (route) => (gone ? route.abort("connectionrefused") : route.continue());
  await page.context().route(/\/(?:query|health|complete|labels|admin)/, reached);
  await start(page);
  await page.locator(".trouble", { hasText: /Retrying in [123] s/ }).waitFor();
  assert.match(await page.locator(".trouble").textContent(), /The server does not answer/);
  assert.ok(!/worker\.js/.test(await page.locator("main").textContent()));
  await page.getByText(/tried once/).waitFor();
  await shot(page, "server-down");
  gone = false;
  // It comes back, and the query is run by itself.
  await page.waitForFunction(() => /^5 rows/.test(document.querySelector(".status").textContent), undefined, { timeout: 15_000 });
  assert.equal(await page.locator(".trouble").count(), 0);
  assert.deepEqual(faults.filter((f) => !/Failed to load resource|ERR_CONNECTION/.test(f)), []);
  await close();
});

test("a server that was stopped after the page was opened", async () => {
  const own = await serve({ files: demo });
  const { page, close } = await visit(own);
  await page.locator(".examples button").first().waitFor();
  await stop(own);
  await write(page, "SELECT * { ?s ?p ?o } LIMIT 5");
  await start(page);
  await page.locator(".trouble", { hasText: "The server does not answer" }).waitFor();
  await page.getByRole("button", { name: "Stop trying" }).click();
  await page.getByText("Not trying any more.").waitFor();
  await close();
});

test("several queries side by side, each with its answer; names; what was open comes back", async () => {
  const { page, faults, close } = await visit(address);
  await run(page, "# all planets\nSELECT ?x { ?x a <http://example.org/sky/vocabulary#Planet> }");
  assert.match(await statusOf(page), /^8 rows/);
  await page.getByRole("button", { name: "New query" }).click();
  await run(page, "ASK {}");
  assert.equal(await page.getByRole("tablist", { name: "Queries" }).getByRole("tab").count(), 2);
  await page.getByRole("tab", { name: /all planets/ }).click();
  assert.match(await statusOf(page), /^8 rows/);
  await page.getByRole("tab", { name: /all planets/ }).click();
  await page.getByRole("textbox", { name: "Name of this query" }).fill("Planets");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  assert.deepEqual(await audit(page), []);
  await shot(page, "tabs");
  await page.reload();
  await page.getByRole("tab", { name: "Planets" }).waitFor();
  await page.getByRole("tab", { name: "ASK {}" }).click();
  assert.match(await text(page), /ASK/);
  // What was written and not run is not lost to a link.
  await write(page, "SELECT ?mine { }");
  await page.goto(`${address}#/query?q=${encodeURIComponent("SELECT * { ?s ?p ?o } LIMIT 3")}`);
  await page.waitForFunction(() => /^3 rows/.test(document.querySelector(".status")?.textContent ?? ""));
  await page.getByRole("tab", { name: /mine/ }).click();
  assert.equal(await text(page), "SELECT ?mine { }");
  await page.getByRole("button", { name: "Close this query" }).click();
  assert.equal(await page.getByRole("tab", { name: /mine/ }).count(), 0);
  assert.deepEqual(faults, []);
  await close();
});

test("history tells queries apart; saved ones have names", async () => {
  const { page, faults, close } = await visit(address);
  const prologue = `PREFIX sky: <${SKY}>\n`;
  await run(page, `${prologue}SELECT ?moon { GRAPH ?g { ?moon sky:orbits ?planet } }`);
  await run(page, `${prologue}SELECT ?planet { ?planet a sky:Planet }`);
  await page.getByText("Recent", { exact: true }).click();
  // The list is filled once the menu is open.
  await page.locator("details[open] .menu-items button").nth(1).waitFor();
  const items = await page.locator("details[open] .menu-items button").allTextContents();
  assert.match(items[0], /^SELECT \?planet .*8 rows · /);
  assert.match(items[1], /^SELECT \?moon .*14 rows · /);
  await shot(page, "recent");
  await page.keyboard.press("Escape");
  await page.getByText("Saved", { exact: true }).click();
  await page.getByRole("button", { name: "Save this query…" }).click();
  await page.getByRole("textbox", { name: "Save this query as" }).fill("My planets");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.getByRole("button", { name: "New query" }).click();
  await page.getByText("Saved", { exact: true }).click();
  await page.getByRole("button", { name: "My planets", exact: true }).click();
  assert.match(await text(page), /\?planet a sky:Planet/);
  await page.getByText("Saved", { exact: true }).click();
  await page.getByRole("button", { name: "Remove My planets" }).click();
  assert.equal(await page.evaluate(() => localStorage.getItem("jindou-saved")), "[]");
  assert.deepEqual(faults, []);
  await close();
});

test("keys of the editor: format, comment, and the way out", async () => {
  const { page, faults, close } = await visit(address);
  await write(page, "select ?x where { ?x a ?c ; ?p ?o . optional { ?x ?q 4 } } order by ?x");
  await page.keyboard.press("Control+Shift+F");
  assert.equal(await text(page), "SELECT ?x WHERE {\n  ?x a ?c ;\n    ?p ?o .\n  OPTIONAL { ?x ?q 4 }\n}\nORDER BY ?x\n");
  await page.keyboard.press("Control+z");
  assert.match(await text(page), /^select/);
  await page.keyboard.press("Control+/");
  assert.match(await text(page), /^# select/);
  await page.keyboard.press("Control+/");
  assert.match(await text(page), /^select/);
  assert.ok(await page.getByText("Esc, then Tab leaves the editor").isVisible());
  await page.keyboard.press("Escape");
  await page.keyboard.press("Shift+Tab");
  assert.ok(await page.evaluate(() => document.activeElement.closest(".tools") !== null), "back to the buttons, which stand before the editor");
  assert.deepEqual(faults, []);
  await close();
});

test("a column has a width, statistics and Markdown; line ends are seen", async () => {
  const own = await serve({ turtle: `<http://e/a> <http://e/p> """\nbegins with a line end""" ; <http://e/n> 1, 2, 9 . <http://e/b> <http://e/p> "a|b" ; <http://e/n> 4 .` });
  const { page, faults, close } = await visit(own, { permissions: ["clipboard-read", "clipboard-write"] });
  await run(page, "SELECT ?x ?p ?n { ?x <http://e/p> ?p ; <http://e/n> ?n } ORDER BY ?x ?n");
  await page.locator("#cell-0-1", { hasText: "↵begins with a line end" }).waitFor();
  const width = () => page.locator("#cell-0-0").evaluate((c) => c.getBoundingClientRect().width);
  const before = await width();
  const handle = await page.locator(".handle").first().boundingBox();
  await page.mouse.move(handle.x + 4, handle.y + 10);
  await page.mouse.down();
  await page.mouse.move(handle.x + 104, handle.y + 10, { steps: 4 });
  await page.mouse.up();
  assert.ok(Math.abs((await width()) - before - 100) < 3, `${before} ${await width()}`);
  await page.getByRole("button", { name: "Statistics of n" }).click();
  const box = page.getByRole("dialog", { name: "Column n" });
  await box.waitFor();
  const facts = Object.fromEntries(await box.locator(".facts > div").evaluateAll((all) => all.map((d) => [d.children[0].textContent, d.children[1].textContent])));
  assert.deepEqual([facts.Rows, facts["Different values"], facts.Least, facts.Median, facts.Mean, facts.Greatest], ["4", "4", "1", "3", "4", "9"]);
  assert.deepEqual(await audit(page), []);
  await shot(page, "statistics");
  await page.keyboard.press("Escape");
  await page.getByText("Download").click();
  await page.getByRole("button", { name: /Markdown/ }).click();
  await page.getByText("Copied.").waitFor();
  const lines = (await page.evaluate(() => navigator.clipboard.readText())).split("\n");
  assert.equal(lines[0], "| x | p | n |");
  assert.match(lines[2], /\| <br>begins with a line end \| 1 \|$/);
  assert.match(lines[5], /\| a\\\|b \| 4 \|$/);
  assert.deepEqual(faults, []);
  await close();
});

test("a link keeps the view", async () => {
  const { page, faults, close } = await visit(address, { permissions: ["clipboard-read", "clipboard-write"] });
  await run(page, `PREFIX sky: <${SKY}>\nSELECT ?planet ?radius { ?planet a sky:Planet ; sky:radiusKm ?radius }`);
  await page.getByRole("tab", { name: "Chart" }).click();
  await page.getByText("More", { exact: true }).click();
  await page.getByRole("button", { name: "Copy link" }).click();
  await page.getByText("Copied.").waitFor();
  const link = await page.evaluate(() => navigator.clipboard.readText());
  assert.match(link, /&view=chart$/);
  const again = await visit(address, { hash: link.slice(link.indexOf("#")) });
  await again.page.locator(".plot-bars .plot-bar").first().waitFor();
  assert.deepEqual([...faults, ...again.faults], []);
  await again.close();
  await close();
});
