// Charts: bars with whole captions and exact values, lines, points, a second column, and what is left out.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { audit, demo, end, run, serve, shot, visit } from "./setup.mjs";

let address;
before(async () => {
  address = await serve({ files: demo });
});
after(end);

const over = (page) => page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
const numbers = (n) => Array.from({ length: n }, (_, i) => i).join(" ");
const chart = async (page, query) => {
  await run(page, query);
  await page.getByRole("tab", { name: "Chart" }).click();
};

for (const [width, height, colorScheme] of [[390, 844, "dark"], [1440, 900, "light"], [3840, 2160, "light"]]) {
  test(`bars keep the largest values and their captions, and say what the others have, ${width} px`, async () => {
    const { page, faults, close } = await visit(address, { viewport: { width, height }, colorScheme });
    const name = "a caption that has many more letters than sixteen";
    const long = `${"a very long caption ".repeat(500)}`;
    const rows = Array.from({ length: 1000 }, (_, i) => `("${i === 501 ? name : i === 502 ? long : i === 503 ? "\u202Eevil" : `n${i}`}" ${i === 501 ? 100_000 : i === 502 ? 90_000 : i === 503 ? 80_000 : i % 7} ${i / 10})`).join(" ");
    await chart(page, `SELECT * { VALUES (?name ?value ?other) { ${rows} } }`);
    await page.locator(".plot-bars .plot-bar").first().waitFor();
    assert.equal(await page.locator(".plot-bars tbody tr").count(), 40);
    // The largest first; a caption is whole, and within the page.
    const first = page.locator(".plot-bars tbody tr").first();
    assert.equal(await first.locator("th").textContent(), name);
    assert.match(await first.textContent(), /100,000$/);
    assert.match(await page.locator(".plot-bars tbody th").nth(1).textContent(), /…$/);
    assert.match(await page.locator(".plot-bars tbody th").nth(2).textContent(), /^\\u202Eevil$/);
    const box = await first.locator("th").evaluate((e) => [e.scrollWidth, e.clientWidth]);
    assert.ok(box[0] <= box[1], String(box));
    // 142 of each 7 rows have 0 to 6; the 37 with the most are drawn.
    await page.getByText("The 40 rows with the greatest value of 1,000; the others have 6 or less, or no number.").waitFor();
    await page.getByLabel("Second column").selectOption("other");
    await page.locator(".plot-bars tbody tr").first().locator(".plot-bar").nth(1).waitFor();
    assert.deepEqual(await page.locator(".series .legend-item bdi").allTextContents(), ["value", "other"]);
    assert.ok((await over(page)) <= 0);
    assert.deepEqual(await audit(page), []);
    await shot(page, `bars-${width}`);
    for (const kind of ["lines", "points"]) {
      await page.getByLabel("Kind").selectOption(kind);
      await page.locator(`.plot .${kind} .point, .plot .${kind} path`).first().waitFor();
      const plot = await page.locator(".plot").boundingBox();
      assert.ok(plot.width > (width - 40) * (width > 2000 ? 0.8 : 1), `the whole width: ${plot.width}`);
      assert.ok((await over(page)) <= 0);
      assert.deepEqual(await audit(page), []);
      await shot(page, `${kind}-${width}`);
    }
    assert.deepEqual(faults, []);
    await close();
  });
}

test("points and lines: of many thousands the single large one is drawn", async () => {
  const { page, faults, close } = await visit(address);
  await chart(page, `SELECT ?i (IF(?i = 13333, 1000000, 1) AS ?v) { VALUES ?a { ${numbers(200)} } VALUES ?b { ${numbers(100)} } BIND(?a * 100 + ?b AS ?i) }`);
  await page.locator(".plot .point").first().waitFor();
  assert.equal(await page.locator(".plot .point title", { hasText: /: 1,000,000$/ }).count(), 1);
  await page.getByLabel("Kind").selectOption("lines");
  await page.locator(".plot .lines path").waitFor();
  assert.doesNotMatch(await page.locator(".plot").evaluate((e) => e.outerHTML), /NaN|Infinity/);
  assert.deepEqual(faults, []);
  await close();
});

test("values are those of the rows, whatever their length; columns that are bound late can be drawn, and rows without numbers are counted", async () => {
  const { page, faults, close } = await visit(address);
  const exact = ["1234567", "12345678901234567890", "3.14159265358979323846"];
  const said = ["1,234,567", "12,345,678,901,234,567,890", "3.14159265358979323846"];
  await chart(page, `SELECT ?name ?v { VALUES (?name ?v) { ${exact.map((v, i) => `("n${i}" ${v})`).join(" ")} } }`);
  await page.locator(".plot-bars .n").nth(3).waitFor();
  assert.deepEqual(await page.locator(".plot-bars td.n").allTextContents(), said);
  await page.getByLabel("Kind").selectOption("points");
  await page.locator(".plot .point").first().waitFor();
  assert.deepEqual(await page.locator(".plot .point title").allTextContents(), said.map((v, i) => `n${i}: ${v}`));
  await chart(page, `SELECT ?i ?v { { VALUES ?a { ${numbers(30)} } VALUES ?b { ${numbers(30)} } BIND(STR(?a) AS ?i) } UNION { VALUES (?i ?v) { ("x" 5) ("y" 7) } } }`);
  await page.getByLabel("Vertical").waitFor();
  assert.deepEqual(await page.getByLabel("Vertical").locator("option").allTextContents(), ["v"]);
  await page.getByText("The 2 rows with the greatest v of 902; the others have no number.").waitFor();
  await page.getByLabel("Kind").selectOption("lines");
  await page.getByText("2 of 902 rows are drawn; rows without a finite number are left out.").waitFor();
  assert.deepEqual(faults, []);
  await close();
});

test("a chart of odd numbers: none, one, negative, endless", async () => {
  const { page, faults, close } = await visit(address);
  for (const [values, kinds] of [["1", 1], ["-3 -2 -1", 3], ['"INF"^^<http://www.w3.org/2001/XMLSchema#double> "NaN"^^<http://www.w3.org/2001/XMLSchema#double> 5 -5', 4]]) {
    await chart(page, `SELECT ?v { VALUES ?v { ${values} } }`);
    for (const kind of ["bars", "lines", "points"]) {
      await page.getByLabel("Kind").selectOption(kind);
      await page.waitForFunction((k) => document.querySelector(k === "bars" ? ".plot-bars" : `.plot .${k}`), kind);
      if (kind === "bars") assert.equal(await page.locator(".plot-bars tbody tr").count(), kinds);
      else assert.doesNotMatch(await page.locator(".plot").evaluate((e) => e.outerHTML), /NaN|Infinity/);
    }
  }
  await chart(page, "SELECT ?s { ?s ?p ?o } LIMIT 3");
  await page.getByText("No column of this answer has numbers").waitFor();
  assert.deepEqual(faults, []);
  await close();
});
