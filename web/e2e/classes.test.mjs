// The classes at a glance: tree, diagram, properties of the chosen one; with what data may have in the way.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { audit, drawn, end, ended, exported, serve, shot, statusOf, visit } from "./setup.mjs";

after(end);

const RDFS = "@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . @prefix e: <http://e/> .";
const people = Array.from({ length: 30 }, (_, i) => `e:s${i} a e:Student ; e:name "S${i}" ; e:knows e:s${(i + 1) % 30} ; e:advisor e:p${i % 2} .`).join("\n");
const small = `${RDFS} ${people} e:p0 a e:Professor ; e:name "P0" ; e:age 40 . e:p1 a e:Professor ; e:name "P1" . e:x a e:Dog . e:y a e:dog . e:z a e:hasOwnProperty .`;
const tree = (page) => page.getByRole("region", { name: "Class tree" });
const details = (page) => page.getByRole("region", { name: "Chosen class" });

for (const width of [390, 1440, 3840]) {
  test(`a class is chosen in the tree and in the diagram, ${width} pixels wide`, async () => {
    const own = await serve({ turtle: small });
    const schemes = width === 1440 ? [{ colorScheme: "light" }, { colorScheme: "dark" }, { forcedColors: "active" }] : [{ colorScheme: "light" }];
    for (const scheme of schemes) {
      const { page, faults, close } = await visit(own, { hash: "#/data", viewport: { width, height: width === 390 ? 844 : width * 0.6 }, ...scheme });
      await drawn(page, 2);
      // The classes come first, the largest first, and self-loops are drawn.
      assert.equal(await page.locator("h2").first().textContent(), "Classes");
      assert.match(await tree(page).locator("li").first().textContent(), /Student30$/);
      assert.deepEqual((await drawn(page)).edges, 2);
      assert.deepEqual((await exported(page)).texts.filter(({ size }) => size === 10), []);
      await tree(page).getByRole("button", { name: /Student/ }).click();
      await details(page).getByText("Counted in all 30 instances.").waitFor();
      assert.deepEqual((await details(page).locator("tbody tr").allTextContents()), ["e:advisor3030", "e:knows3030", "e:name3030"]);
      await page.waitForTimeout(600);
      // The chosen class names its edges.
      assert.deepEqual((await exported(page)).texts.filter(({ size }) => size === 10).map(({ text }) => text).sort(), ["e:advisor", "e:knows"]);
      assert.deepEqual(await audit(page), []);
      const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(over <= 0, `${over} pixels too wide`);
      await shot(page, `classes-${width}-${Object.values(scheme)[0]}`);
      // In the diagram, by keys.
      await page.locator("canvas.graph").focus();
      await page.keyboard.press("Escape");
      await details(page).getByText("No class is chosen.").waitFor();
      for (const key of ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"]) await page.keyboard.press(key);
      await details(page).locator("h3").waitFor();
      await tree(page).getByRole("button", { name: /Professor/ }).click();
      await details(page).getByText("Counted in all 2 instances.").waitFor();
      const text = await details(page).locator("pre").textContent();
      assert.match(text, /^PREFIX e: <http:\/\/e\/>\n/);
      await details(page).getByRole("link", { name: "Run it" }).click();
      await ended(page);
      await page.waitForFunction(() => /^2 rows/.test(document.querySelector(".status")?.textContent ?? ""));
      assert.match(await statusOf(page), /^2 rows/);
      assert.deepEqual(faults, []);
      await close();
    }
  });
}

test("a chain of thousands of subclasses is a list that says where it is cut, and queries that take too long are said", async () => {
  const chain = Array.from({ length: 2000 }, (_, i) => `e:C${i + 1} rdfs:subClassOf e:C${i} .`).join("\n");
  const own = await serve({ turtle: `${RDFS} ${chain} e:a a e:C5 ; e:p e:b . e:b a e:C6 .` });
  const { page, faults, close } = await visit(own, { hash: "#/server" });
  // All that the diagram asks takes too long.
  await page.route("**/query?*", (route) => (route.request().postData() ?? "").includes("?y a ?to") ? route.fulfill({ status: 503, contentType: "application/problem+json", body: JSON.stringify({ type: "urn:jindou:problem:timeout", status: 503, detail: "the time limit was reached" }) }) : route.continue());
  await page.goto(`${own}#/data`);
  await tree(page).getByText("The tree is cut after 1,500 lines, with 1,500 of 2,001 classes.").waitFor();
  assert.equal(await tree(page).locator("li").count(), 1500);
  await page.getByText("2 of 2 took too long and are left out.").waitFor();
  assert.equal(await page.getByText("is connected").count(), 0);
  await tree(page).getByRole("button", { name: /:C5\b/ }).click();
  await details(page).getByText("Counted in its one instance.").waitFor();
  assert.equal(await tree(page).locator("[aria-current]").count(), 1);
  const over = await tree(page).evaluate((e) => e.scrollWidth - e.clientWidth);
  assert.ok(over <= 0, `${over} pixels too wide`);
  assert.deepEqual(await audit(page), []);
  assert.deepEqual(faults, []);
  await close();
});

test("a thousand classes, circles of subclasses and names that differ in case are listed and filtered", async () => {
  const many = Array.from({ length: 1000 }, (_, i) => `e:x${i} a e:Class${i} . e:Class${i} rdfs:subClassOf e:Class${i % 7 === 0 ? (i + 1) % 1000 : i - 1} .`).join("\n");
  const own = await serve({ turtle: `${RDFS} ${many} e:a1 a e:dog . e:a2 a e:dog . e:b1 a e:Dog, <urn:nothing> . e:b2 a e:Dog, <urn:nothing> . e:c1 a <http://e/${"long".repeat(400)}> . e:c2 a <http://e/${"long".repeat(400)}> .` });
  const { page, faults, close } = await visit(own, { hash: "#/data" });
  await tree(page).locator("[aria-level=\"2\"]").first().waitFor();
  assert.ok((await tree(page).locator(".class-item").count()) >= 1000);
  // The page lists a thousand, and says how many there are.
  await tree(page).getByText("The 1,000 largest of 1,004.").waitFor();
  const dogs = tree(page).locator(".class-item", { hasText: /:dog/i });
  assert.deepEqual((await dogs.allTextContents()).sort(), ["e:Dog http://e/Dog2", "e:dog http://e/dog2"]);
  await tree(page).getByLabel("Filter classes of the tree").fill("urn:nothing");
  assert.equal(await tree(page).locator("li:visible").count(), 1);
  await tree(page).getByRole("button", { name: /urn:nothing/ }).click();
  await details(page).getByText("Its instances have no other property than their class.").waitFor();
  assert.deepEqual(await audit(page), []);
  await shot(page, "classes-1000");
  assert.deepEqual(faults, []);
  await close();
});
