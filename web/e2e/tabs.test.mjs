// The tabs with queries: what was open comes back in another tab of the browser, and closing is undone.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { audit, demo, end, ended, run, serve, shot, statusOf, visit, write } from "./setup.mjs";

let address;
before(async () => {
  address = await serve({ files: demo });
});
after(end);

const text = (page) => page.locator(".cm-line").allTextContents().then((lines) => lines.join("\n"));
const tabs = (page) => page.getByRole("tablist", { name: "Queries" }).getByRole("tab");
/** Another tab of the same browser. */
async function another(page, hash = "") {
  const made = await page.context().newPage();
  await made.goto(address + hash);
  await tabs(made).first().waitFor();
  return made;
}
/** Waits until the browser keeps these texts. */
const kept = (page, texts) => page.waitForFunction((all) => JSON.stringify(JSON.parse(localStorage.getItem("jindou-sheets") ?? "{}").texts) === all, JSON.stringify(texts));

test("queries that were open come back in a new tab of the browser, each tab keeps its own, and a link replaces none", async () => {
  const { page, faults, close } = await visit(address);
  await run(page, "ASK { ?a ?b 1 }");
  await page.getByRole("button", { name: "New query" }).click();
  await write(page, "SELECT ?unfinished { }");
  await kept(page, ["ASK { ?a ?b 1 }", "SELECT ?unfinished { }"]);
  const second = await another(page);
  assert.equal(await tabs(second).count(), 2);
  assert.equal(await text(second), "SELECT ?unfinished { }");
  // What the second does stays out of the first, also when that is loaded again.
  await second.getByRole("tab", { name: /^ASK/ }).click();
  await write(second, "ASK { ?of ?the ?second }");
  await kept(second, ["ASK { ?of ?the ?second }", "SELECT ?unfinished { }"]);
  await page.reload();
  await tabs(page).first().waitFor();
  assert.deepEqual(await tabs(page).allTextContents(), ["ASK { ?a ?b 1 }", "SELECT ?unfinished { }"]);
  assert.equal(await text(page), "SELECT ?unfinished { }");
  // A link in a new tab has a place of its own; one to a query that is open leads there.
  const third = await another(page, `#/query?q=${encodeURIComponent("SELECT * {?s ?p ?o} LIMIT 3")}`);
  await third.waitForFunction(() => /^3 rows/.test(document.querySelector(".status")?.textContent ?? ""));
  assert.deepEqual(await tabs(third).allTextContents(), ["ASK { ?of ?the ?second }", "SELECT ?unfinished { }", "SELECT * {?s ?p ?o} LIMIT 3"]);
  const fourth = await another(page, `#/query?q=${encodeURIComponent("ASK { ?of ?the ?second }")}`);
  await fourth.locator(".truth").waitFor();
  assert.equal(await tabs(fourth).count(), 3);
  assert.equal(await tabs(fourth).first().getAttribute("aria-selected"), "true");
  assert.deepEqual(faults, []);
  await close();
});

test("an example takes a tab of its own where a text was written", async () => {
  const { page, faults, close } = await visit(address);
  await write(page, "SELECT ?mine { }");
  await page.locator(".examples button").first().click();
  await ended(page);
  assert.equal(await tabs(page).count(), 2);
  await page.getByRole("tab", { name: /mine/ }).click();
  assert.equal(await text(page), "SELECT ?mine { }");
  assert.deepEqual(faults, []);
  await close();
});

test("loaded again, the page shows the tab that was seen, with its query", async () => {
  const { page, faults, close } = await visit(address);
  await run(page, "SELECT * {?s ?p ?o} LIMIT 4");
  await page.getByRole("button", { name: "New query" }).click();
  await run(page, "SELECT * {?s ?p ?o} LIMIT 5");
  await tabs(page).first().click();
  await page.reload();
  await page.waitForFunction(() => /^4 rows/.test(document.querySelector(".status")?.textContent ?? ""));
  assert.deepEqual(await tabs(page).allTextContents(), ["SELECT * {?s ?p ?o} LIMIT 4", "SELECT * {?s ?p ?o} LIMIT 5"]);
  assert.deepEqual(faults, []);
  await close();
});

test("closing a tab is undone by a button and by a key, once", async () => {
  const { page, faults, close } = await visit(address);
  const again = page.getByRole("button", { name: "Reopen closed tab" });
  await run(page, "ASK { ?a ?b 1 }");
  await page.getByRole("button", { name: "New query" }).click();
  await write(page, "SELECT ?second { }");
  assert.equal(await again.count(), 0);
  await page.getByRole("tab", { name: /^ASK/ }).click();
  await page.getByRole("button", { name: "Close this query" }).click();
  assert.equal(await tabs(page).count(), 1);
  assert.deepEqual(await audit(page), []);
  await shot(page, "tab-closed");
  await again.click();
  assert.equal(await again.count(), 0);
  assert.deepEqual(await tabs(page).allTextContents(), ["ASK { ?a ?b 1 }", "SELECT ?second { }"]);
  assert.equal(await text(page), "ASK { ?a ?b 1 }");
  // The same by keys, for the last tab, too.
  await tabs(page).first().focus();
  await page.keyboard.press("Delete");
  await page.keyboard.press("Delete");
  assert.equal(await text(page), "");
  await page.keyboard.press("ControlOrMeta+z");
  assert.deepEqual(await tabs(page).allTextContents(), ["SELECT ?second { }"]);
  assert.equal(await again.count(), 0);
  assert.equal(await text(page), "SELECT ?second { }");
  assert.ok(await tabs(page).first().evaluate((t) => t === document.activeElement));
  assert.deepEqual(faults, []);
  await close();
});

test("a browser that keeps nothing loses nothing else", async () => {
  const { page, faults, close } = await visit(address);
  await page.addInitScript(() => {
    for (const name of ["localStorage", "sessionStorage"]) Object.defineProperty(globalThis, name, { get: () => { throw new DOMException("forbidden", "SecurityError"); } });
  });
  await page.reload();
  await run(page, "SELECT * {?s ?p ?o} LIMIT 2");
  assert.match(await statusOf(page), /^2 rows/);
  await page.getByRole("button", { name: "New query" }).click();
  await page.getByRole("tab", { name: /LIMIT 2/ }).click();
  await page.getByRole("button", { name: "Close this query" }).click();
  await page.getByRole("button", { name: "Reopen closed tab" }).click();
  assert.match(await text(page), /LIMIT 2/);
  assert.deepEqual(faults, []);
  await close();
});

test("a long text comes back as a whole, and one that is too long is said to be", async () => {
  const { page, faults, close } = await visit(address);
  // Longer than what was once cut.
  const long = `ASK { } # ${"x".repeat(300_000)} END`;
  await write(page, long);
  await page.waitForFunction(() => (sessionStorage.getItem("jindou-sheets") ?? "").includes("END"));
  await page.reload();
  await tabs(page).first().waitFor();
  assert.equal(await page.evaluate(() => JSON.parse(sessionStorage.getItem("jindou-sheets")).texts[0].length), long.length);
  await page.getByRole("button", { name: "New query" }).click();
  await write(page, `SELECT ?endless { } # ${"y".repeat(2_100_000)}`);
  await page.getByText(/“SELECT \?endless.*” is too long for this browser to keep: save it/).waitFor();
  await page.reload();
  await page.getByText(/“SELECT \?endless.*” is too long for this browser to keep, and did not come back/).waitFor();
  assert.deepEqual(await audit(page), []);
  await shot(page, "text-too-long");
  assert.equal(await tabs(page).count(), 1);
  await page.getByRole("button", { name: "Dismiss" }).click();
  assert.equal(await page.getByText("did not come back").isVisible(), false);
  assert.deepEqual(faults, []);
  await close();
});
