// What is shown of the data is all of it, and can be told apart: labels, blank nodes, charts, diagrams, counts, history.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { mkdtempSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { audit, demo, drawn, end, ended, exported, folder, run, serve, shot, statusOf, visit, write } from "./setup.mjs";

let address;
before(async () => {
  address = await serve({ files: demo });
});
after(end);

const RDFS = "http://www.w3.org/2000/01/rdf-schema#";

test("two things with the same label show their short names, wherever they stand", async () => {
  const own = await serve({ turtle: `@prefix rdfs: <${RDFS}> . @prefix owl: <http://www.w3.org/2002/07/owl#> . @prefix e: <http://e/> .
    rdfs:Class rdfs:label "Class" . owl:Class rdfs:label "Class" . e:only rdfs:label "Alone" . e:a e:p rdfs:Class, owl:Class, e:only .` });
  const { page, faults, close } = await visit(own);
  await run(page, "SELECT ?o { <http://e/a> <http://e/p> ?o } ORDER BY ?o");
  const cells = () => page.locator("[role=gridcell]").allTextContents();
  await page.waitForFunction(() => document.querySelectorAll(".grid .label-of").length === 2);
  assert.deepEqual((await cells()).sort(), ["Alone", "Class owl:Class", "Class rdfs:Class"]);
  await shot(page, "same-label");
  await page.goto(`${own}#/resource?iri=${encodeURIComponent("http://e/a")}`);
  await page.waitForFunction(() => document.querySelectorAll(".values .label-of").length === 2);
  await page.getByRole("button", { name: "Neighbourhood" }).click();
  await drawn(page);
  await page.waitForTimeout(800);
  assert.deepEqual((await exported(page)).texts.map(({ text }) => text).filter((text) => text.startsWith("Class")).sort(), ["Class (owl:Class)", "Class (rdfs:Class)"]);
  assert.deepEqual(await audit(page), []);
  // Switched off, they are short names alone.
  await page.getByLabel("Labels").uncheck();
  assert.equal(await page.locator(".values .label-of").count(), 0);
  assert.deepEqual(faults, []);
  await close();
});

test("blank nodes of a resource are followed, there and on", async () => {
  const own = await serve({ turtle: `@prefix e: <http://e/> . e:a e:address [ e:city "Bonn" ; e:place [ e:lat 50 ] ], [ e:city "Kiel" ] . [ e:of e:a ; e:name "about a" ] e:more 1 .` });
  const { page, faults, close } = await visit(own, { hash: `#/resource?iri=${encodeURIComponent("http://e/a")}` });
  const section = (name) => page.locator(".ways-both > section", { hasText: name });
  const links = section("Properties").locator("a.blank");
  await links.nth(1).waitFor();
  const cities = [];
  for (const i of [0, 1]) {
    await links.nth(i).click();
    await page.getByRole("heading", { name: /^Blank node _:/ }).waitFor();
    cities.push(await section("Properties").locator("tr", { hasText: "city" }).locator(".values").textContent());
    await page.goBack();
    await links.nth(1).waitFor();
  }
  assert.deepEqual(cities.sort(), ["Bonn", "Kiel"]);
  await links.nth(cities.length > 0 && (await links.nth(0).getAttribute("href")) ? 0 : 1).click();
  await page.getByRole("heading", { name: /^Blank node _:/ }).waitFor();
  if ((await section("Properties").getByText("Bonn").count()) === 0) {
    await page.goBack();
    await links.nth(1).click();
    await section("Properties").getByText("Bonn").waitFor();
  }
  // One behind it, and back to the resource that refers to it.
  await section("Referenced by").getByRole("link", { name: /a$/ }).waitFor();
  assert.deepEqual(await audit(page), []);
  await shot(page, "blank-node");
  await section("Properties").locator("a.blank").click();
  await section("Properties").getByText("50").waitFor();
  await page.getByRole("link", { name: "Query", exact: true }).last().click();
  await ended(page);
  assert.match(await statusOf(page), /^1 row/);
  // And one that refers to the resource.
  await page.goto(`${own}#/resource?iri=${encodeURIComponent("http://e/a")}`);
  await section("Referenced by").locator("a.blank").click();
  await section("Properties").getByText("about a").waitFor();
  assert.deepEqual(faults, []);
  await close();
});

test("Recent has queries that failed and were cancelled, and says so", async () => {
  const { page, faults, close } = await visit(address);
  await run(page, "SELECT * { ?failed ?is wrong }");
  await write(page, "SELECT (COUNT(*) AS ?cancelled) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l FILTER(?a != ?l) }");
  await page.getByRole("button", { name: "Run", exact: true }).click();
  await page.getByText(/^Running · /).waitFor();
  await page.getByRole("button", { name: "Cancel", exact: true }).click();
  await ended(page);
  await run(page, "ASK { ?a ?b ?c }");
  await page.getByText("Recent", { exact: true }).click();
  const line = (name) => page.locator(".menu-items button", { hasText: name });
  assert.match(await line("?failed").textContent(), / · failed · /);
  assert.match(await line("?cancelled").textContent(), / · cancelled · /);
  assert.doesNotMatch(await line("ASK").textContent(), /failed|cancelled/);
  assert.deepEqual(await audit(page), []);
  assert.deepEqual(faults, []);
  await close();
});

test("a replica's page has its name, the writer, contact and lag", async () => {
  const place = mkdtempSync(join(folder, "replica-"));
  const own = await serve({ empty: true, options: ["--writable", "--log", join(place, "log"), "--name", "north"] });
  const { page, faults, close } = await visit(own, { hash: "#/server" });
  await page.getByRole("heading", { name: "Shared log" }).waitFor();
  const fact = (name) => page.locator(".facts > div", { has: page.getByText(name, { exact: true }) }).locator("dd").first().textContent();
  await fetch(`${own}update`, { method: "POST", headers: { "content-type": "application/sparql-update" }, body: "INSERT DATA { <http://e/a> <http://e/p> 1 }" });
  await page.locator(".facts > div", { hasText: "Writer" }).getByText("this server").waitFor();
  assert.equal(await page.locator(".facts > div:has(dt:text-is('This server')) dd").textContent(), "north");
  assert.equal(await fact("Other servers in contact"), "0 of 0");
  assert.equal(await fact("Updates to catch up with"), "none");
  assert.match(await fact("Known to be current"), / ago$/);
  assert.deepEqual(await audit(page), []);
  await shot(page, "replica");
  assert.deepEqual(faults, []);
  await close();
});

test("the drawing of an empty graph says so", async () => {
  const { page, faults, close } = await visit(address, { hash: `#/query?q=${encodeURIComponent("CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o FILTER(false) }")}&view=graph` });
  await ended(page);
  await page.getByText("There are no triples to draw.").waitFor();
  assert.deepEqual(faults, []);
  await close();
});

test("/ goes to the search from where the page begins, and is a character where someone writes", async () => {
  const { page, faults, close } = await visit(address);
  const at = () => page.evaluate(() => document.activeElement.getAttribute("aria-label") ?? document.activeElement.className);
  await page.waitForFunction(() => document.activeElement.classList.contains("editor"));
  await page.keyboard.press("/");
  assert.equal(await at(), "Search resources by label or IRI");
  assert.equal(await page.getByRole("combobox", { name: /^Search resources/ }).inputValue(), "");
  await page.goto(`${address}#/data`);
  await page.getByRole("heading", { name: "Data", exact: true }).waitFor();
  await page.evaluate(() => document.activeElement.blur());
  await page.keyboard.press("/");
  assert.equal(await at(), "Search resources by label or IRI");
  // The page that a link leads to.
  await page.goto(`${address}#/query?q=${encodeURIComponent("ASK { ?s ?p 3 }")}`);
  await page.locator(".truth").waitFor();
  await page.keyboard.press("/");
  assert.equal(await at(), "Search resources by label or IRI");
  await write(page, "SELECT * { ?s <http://e/a>");
  await page.keyboard.press("/");
  assert.equal((await page.locator(".cm-line").allTextContents()).join(""), "SELECT * { ?s <http://e/a>/");
  assert.deepEqual(faults, []);
  await close();
});

test("the diagram of classes has no rdf:type, and their tree stands next to it", async () => {
  const own = await serve({ turtle: `@prefix rdfs: <${RDFS}> . @prefix owl: <http://www.w3.org/2002/07/owl#> . @prefix e: <http://e/> .
    e:Dog a owl:Class ; rdfs:subClassOf e:Animal . e:Cat a owl:Class ; rdfs:subClassOf e:Animal . e:Animal a owl:Class ; rdfs:subClassOf e:Thing . e:Loop rdfs:subClassOf e:Loop2 . e:Loop2 rdfs:subClassOf e:Loop .
    e:rex a e:Dog ; e:chases e:tom . e:tom a e:Cat .` });
  const { page, faults, close } = await visit(own, { hash: "#/data" });
  const table = page.getByRole("region", { name: "Connections between classes" });
  await table.locator("tbody tr").first().waitFor();
  assert.deepEqual(await table.locator("tbody tr td:nth-child(2)").allTextContents(), ["rdfs:subClassOf", "e:chases"]);
  const tree = page.getByRole("region", { name: "Class tree" });
  await tree.locator("[aria-level='3']").first().waitFor();
  const lines = await tree.locator("li").evaluateAll((all) => all.map((li) => `${li.ariaLevel} ${/\w+:(\w+)/.exec(li.textContent)[1]}`));
  assert.deepEqual(lines.slice(lines.indexOf("1 Thing"), lines.indexOf("1 Thing") + 4), ["1 Thing", "2 Animal", "3 Cat1", "3 Dog1"]);
  assert.ok((await tree.locator("button", { hasText: "Loop" }).count()) >= 2);
  const [picture, beside] = await Promise.all([page.locator(".diagram .graph").boundingBox(), tree.boundingBox()]);
  assert.ok(picture.x >= beside.x + beside.width, "next to it");
  assert.deepEqual(await audit(page), []);
  await shot(page, "class-tree");
  assert.deepEqual(faults, []);
  await close();
});

test("the example that is a graph opens as one", async () => {
  const { page, faults, close } = await visit(address);
  await page.getByRole("button", { name: /Five instances of .* as a graph$/ }).click();
  await ended(page);
  await drawn(page);
  assert.equal(await page.locator("#tab-graph").getAttribute("aria-selected"), "true");
  assert.deepEqual(faults, []);
  await close();
});

test("under Default graph, all counts are of that graph", async () => {
  const file = join(folder, "both.trig");
  writeFileSync(file, "@prefix e: <http://e/> . e:a a e:C ; e:p 1 . e:g { e:b a e:D ; e:q 2 . e:c a e:D . e:d a e:E . }");
  const own = await serve({ files: [file] });
  const { page, faults, close } = await visit(own, { hash: "#/data" });
  const fact = (name) => page.locator(".facts > div", { hasText: name }).locator("dd").textContent();
  await page.locator(".list", { hasText: "Classes" }).locator("tbody tr").first().waitFor();
  assert.equal(await page.getByLabel("Graphs that are read").inputValue(), "default");
  assert.deepEqual(await Promise.all(["Triples", "Subjects", "Predicates", "Classes"].map(fact)), ["2", "1", "2", "1"]);
  await page.getByLabel("Graphs that are read").selectOption("all");
  await page.locator(".facts > div", { hasText: "Subjects" }).getByText("4", { exact: true }).waitFor();
  assert.deepEqual(await Promise.all(["Triples", "Subjects", "Predicates", "Classes"].map(fact)), ["6", "4", "3", "3"]);
  assert.deepEqual(faults, []);
  await close();
});

test("namespaces of instances get short names that are shown as the page's own, and declared where a query takes them", async () => {
  const uni = "http://www.Department0.University0.edu/";
  const own = await serve({ turtle: `@prefix u: <http://u.example/onto#> . <${uni}Student1> a u:Student ; u:name "Student1" ; u:advisor <${uni}Professor1> . <${uni}Professor1> u:name "Ada" . <http://x.example/a/b/only> u:name "Only" .` });
  const { page, faults, close } = await visit(own);
  await run(page, "SELECT ?x { ?x ?p ?o } ORDER BY ?x LIMIT 2");
  await page.getByLabel("Labels").uncheck();
  const cell = page.locator("[role=gridcell] a.iri.made").first();
  await cell.waitFor();
  assert.equal(await cell.textContent(), "department0.university0:Professor1");
  assert.equal(await cell.getAttribute("title"), `${uni}Professor1\ndepartment0.university0: is a prefix of this page's own`);
  // Names that the data's own properties give are labels.
  await page.getByLabel("Labels").check();
  await page.locator("[role=gridcell]", { hasText: "Ada" }).first().waitFor();
  // Written into a query, the prefix is declared.
  await write(page, "SELECT * { ");
  await page.locator(".cm-content").click();
  await page.keyboard.press("Control+End");
  await page.keyboard.type("department0.university0:");
  await shot(page, "own-prefix");
  await page.locator(".cm-line", { hasText: `PREFIX department0.university0: <${uni}>` }).waitFor();
  // A resource's page has its IRI once.
  for (const iri of [`${uni}Professor1`, "http://x.example/a/b/only", "urn:no:label"]) {
    await page.goto(`${own}#/resource?iri=${encodeURIComponent(iri)}`);
    await page.waitForFunction(() => !document.querySelector(".resource [aria-busy]"));
    await page.waitForTimeout(300);
    const text = await page.locator(".resource").evaluate((e) => [...e.querySelectorAll("h1, .resource-iri")].map((one) => one.textContent).join(" "));
    assert.equal(text.split(iri).length - 1, 1, text);
  }
  await page.goto(`${own}#/data`);
  await page.locator(".prefixes summary").click();
  await page.locator(".prefixes tr", { hasText: "department0.university0:" }).getByText("made up by this page").waitFor();
  assert.deepEqual(await audit(page), []);
  assert.deepEqual(faults, []);
  await close();
});
