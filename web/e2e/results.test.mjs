// Results first: where rows begin, the toolbar, the editor next to the answer; plans.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { audit, demo, end, ended, run, serve, shot, visit, write } from "./setup.mjs";

const SIZES = [[390, 844], [1440, 900], [3840, 2160]];
const LONG = `# A comment
PREFIX v: <http://example.org/sky/vocabulary#>
SELECT ?moon ?planet ?finder ?day WHERE {
  GRAPH ?system {
    ?moon v:orbits ?planet .
    ?moon v:discoveredBy ?p .
    ?moon v:discoveredOn ?day .
  }
  OPTIONAL { ?p rdfs:label ?finder }
  { SELECT ?planet (COUNT(*) AS ?n) WHERE { GRAPH ?g { ?m v:orbits ?planet } } GROUP BY ?planet }
  FILTER(?n > 0)
}
ORDER BY ?day ?moon`;

let address;
before(async () => {
  address = await serve({ files: demo });
});
after(end);

const box = (locator) => locator.evaluate((e) => e.getBoundingClientRect().toJSON());
const over = (page) => page.evaluate(() => document.documentElement.scrollWidth - innerWidth);

for (const [width, height] of SIZES) {
  test(`rows begin in the first quarter of the window, ${width} px`, async () => {
    const { page, faults, close } = await visit(address, { viewport: { width, height } });
    await run(page, LONG);
    const row = await box(page.locator(".grid-body .grid-row").first());
    assert.ok(row.y <= height / 4, `the first row is at ${row.y} of ${height}`);
    const grid = await box(page.locator(".grid"));
    assert.ok(grid.bottom <= height && grid.bottom > height - 40, "the rows have the rest of the window");
    // Download is next to the rows, and the toolbar is one line that begins with Run and Plan.
    assert.ok(Math.abs((await box(page.getByText("Download"))).bottom - grid.y) < 60);
    const tools = await page.locator(".sheet-line .tools").evaluate((e) => [...e.querySelectorAll(":scope > :not([hidden]), .documents > *")].filter((x) => x.getClientRects().length > 0).map((x) => [x.textContent.slice(0, 4), Math.round(x.getBoundingClientRect().y)]));
    assert.deepEqual(tools.slice(0, 2).map(([name]) => name), ["Run", "Plan"]);
    assert.equal(new Set(tools.map(([, y]) => y)).size, 1, JSON.stringify(tools));
    if (width === 3840) assert.ok(grid.width > width * 0.75, "most of a wide window");
    assert.ok((await over(page)) <= 0);
    assert.deepEqual(await audit(page), []);
    await shot(page, `results-${width}`);
    // Whoever writes again sees the text.
    const low = (await box(page.locator(".editor"))).height;
    await page.locator(".editor").click();
    await page.keyboard.press("End");
    await page.keyboard.type(" ");
    const high = (await box(page.locator(".editor"))).height;
    assert.ok(width === 3840 ? high >= low : high > low + 100, `${low}, then ${high}`);
    assert.deepEqual(faults, []);
    await close();
  });
}

test("the editor goes next to the answer, and the choice is remembered", async () => {
  const { page, faults, close } = await visit(address, { viewport: { width: 1440, height: 900 } });
  await run(page, LONG);
  const more = async (name) => {
    await page.locator("summary", { hasText: /^More/ }).click();
    await page.getByRole("button", { name }).click();
  };
  await more("Editor next to the answer");
  const [editor, grid] = [await box(page.locator(".editor")), await box(page.locator(".grid"))];
  assert.ok(editor.right <= grid.x, JSON.stringify([editor, grid]));
  assert.ok(grid.y < 160);
  await shot(page, "side-by-side");
  await page.reload();
  await ended(page);
  await page.locator("#cell-0-0").waitFor();
  assert.ok((await box(page.locator(".editor"))).right <= (await box(page.locator(".grid"))).x);
  assert.deepEqual(await audit(page), []);
  await more("Editor above the answer");
  assert.ok((await box(page.locator(".editor"))).bottom <= (await box(page.locator(".grid"))).y);
  assert.deepEqual(faults, []);
  await close();
});

test("a time limit that is set can be seen while its menu is closed", async () => {
  const { page, faults, close } = await visit(address);
  await page.locator("summary", { hasText: /^More/ }).click();
  await page.getByLabel("Time limit in seconds").fill("7");
  await page.keyboard.press("Escape");
  await page.getByText("More · 7 s").waitFor();
  assert.deepEqual(faults, []);
  await close();
});

test("a plan has prefixes, its slowest step, the scale of its bars, and a flow", async () => {
  for (const [width, height] of SIZES) {
    const { page, faults, close } = await visit(address, { viewport: { width, height } });
    await write(page, LONG);
    await page.getByRole("button", { name: "Plan", exact: true }).click();
    await page.getByRole("heading", { name: "Profile", exact: true }).waitFor();
    await ended(page);
    const said = await page.locator(".plan tbody").textContent();
    assert.match(said, /v:orbits/);
    assert.doesNotMatch(said, /<…orbits>/);
    assert.equal(await page.locator(".plan tr.slow").count(), 1);
    assert.match(await page.locator(".plan .slowest").textContent(), /^slowest: \d+ % of the time$/);
    assert.match(await page.locator(".plan th", { hasText: "Rows" }).first().textContent(), /log scale to [\d,]+$/);
    assert.match(await page.locator(".plan th", { hasText: "Time" }).textContent(), /to [\d.,]+ (?:µs|ms|s)$/);
    // Rows and time are seen on a phone without scrolling.
    const time = await box(page.locator(".plan th", { hasText: "Time" }));
    assert.ok(time.right <= width, `${time.right} of ${width}`);
    if (width < 1600) await page.getByText("Flow", { exact: true }).click();
    await page.locator("svg.flow g.slow").waitFor();
    assert.equal(await page.locator("svg.flow rect").count(), await page.locator(".plan tbody tr").count());
    assert.ok((await over(page)) <= 0);
    assert.deepEqual(await audit(page), []);
    await shot(page, `plan-${width}`);
    // One step after the other is no flow.
    await write(page, "SELECT * { ?s ?p ?o } LIMIT 3");
    await page.getByRole("button", { name: "Plan", exact: true }).click();
    await ended(page);
    await page.locator(".plan tr", { hasText: "?s ?p ?o" }).waitFor();
    assert.equal(await page.locator("svg.flow").count(), 0);
    assert.deepEqual(faults, []);
    await close();
  }
});
