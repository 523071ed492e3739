// The first hour: data that is there is seen, an empty store begins with a drop, names in place of IRIs.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createServer } from "node:http";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { audit, demo, drawn, end, ended, exported, folder, long, run, serve, shot, statusOf, visit, write } from "./setup.mjs";

const TRIG = `@prefix ex: <http://example.org/shop/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . @prefix foaf: <http://xmlns.com/foaf/0.1/> .
ex:people { ex:p1 a ex:Person ; rdfs:label "Ann Example"@en, "Anna Beispiel"@de ; ex:knows ex:p2 . ex:p2 a ex:Person ; rdfs:label "Bob Other"@en ; foaf:depiction <https://images.example/bob.png> .
  ex:Person rdfs:label "person"@en, "Mensch"@de . ex:knows rdfs:label "is acquainted with"@en . }
ex:goods { ex:g1 a ex:Product ; rdfs:label "Red chair"@en ; ex:soldTo ex:p1 . ex:g2 a ex:Product ; rdfs:label "Green chair"@en ; ex:soldTo ex:p2 ; <http://www.w3.org/2003/01/geo/wgs84_pos#lat> 50.7 ; <http://www.w3.org/2003/01/geo/wgs84_pos#long> 7.1 . }
`;
let named;
let trig;
before(async () => {
  trig = join(folder, "shop.trig");
  writeFileSync(trig, TRIG);
  named = await serve({ files: [trig], options: [] });
});
after(end);

/** Files that are dropped somewhere, as a browser drops them. */
async function drop(page, files) {
  const transfer = await page.evaluateHandle((all) => {
    const made = new DataTransfer();
    for (const [name, text] of all) made.items.add(new File([text], name));
    return made;
  }, files);
  await page.dispatchEvent("body", "dragenter", { dataTransfer: transfer });
  assert.ok(await page.evaluate(() => document.body.classList.contains("dropping")));
  await shot(page, "dropping");
  await page.dispatchEvent("body", "drop", { dataTransfer: transfer });
}

test("a store whose data is in named graphs is read as a whole, everywhere", async () => {
  const { page, faults, close } = await visit(named);
  await page.getByText("All of it is in named graphs").waitFor();
  assert.equal(await page.getByLabel("Graphs that are read").inputValue(), "all");
  // The page's own query has rows, by the keyboard alone.
  await page.locator(".cm-content").click();
  await page.keyboard.press("Control+Enter");
  await ended(page);
  assert.match(await statusOf(page), /^1\d rows/);
  assert.match(page.url(), /graphs=all/);
  // Counts, links and connections of Data.
  await page.goto(`${named}#/data`);
  const row = page.locator(".list", { hasText: "Classes" }).locator("tbody tr", { hasText: /person|Person/ });
  await row.getByRole("link", { name: /^Query/ }).click();
  await ended(page);
  assert.match(await statusOf(page), /^2 rows/);
  await page.goto(`${named}#/data`);
  await page.locator(".connections tbody tr").first().waitFor();
  await shot(page, "named-data");
  // The default graph by choice: nothing, and that is explained.
  await page.goto(`${named}#/query`);
  await page.getByLabel("Graphs that are read").selectOption("default");
  await run(page, "SELECT * { ?s ?p ?o }");
  assert.match(await statusOf(page), /^0 rows/);
  await page.locator(".why li", { hasText: "graph" }).first().waitFor();
  await shot(page, "default-empty");
  // The other way round, the same query is run again.
  await page.getByRole("button", { name: "Read all graphs" }).click();
  assert.equal(await page.getByLabel("Graphs that are read").inputValue(), "all");
  await page.waitForFunction(() => /^1\d rows/.test(document.querySelector(".status").textContent));
  // A plan, completion and a download read the same graphs.
  await page.getByRole("button", { name: "Plan", exact: true }).click();
  await page.getByRole("heading", { name: "Profile", exact: true }).waitFor();
  assert.match(await page.locator(".plan").textContent(), /in all graphs/);
  assert.deepEqual(faults, []);
  await close();
});

test("a link carries the graphs it reads", async () => {
  const { page, faults, close } = await visit(named, { hash: `#/query?q=${encodeURIComponent("SELECT * { ?s ?p ?o }")}&graphs=default` });
  await ended(page);
  await page.locator(".why li").first().waitFor();
  assert.equal(await page.getByLabel("Graphs that are read").inputValue(), "default");
  assert.deepEqual(faults, []);
  await close();
});

test("an empty store begins with a drop, a text or an address, and then shows what came", async () => {
  const own = await serve({ empty: true });
  const { page, faults, close } = await visit(own);
  await page.getByRole("heading", { name: /This store is empty/ }).waitFor();
  // It is the first thing below the navigation.
  assert.ok((await page.locator(".drop-zone").boundingBox()).y < (await page.locator(".editor").boundingBox()).y);
  // It is called as its folder.
  await page.locator(".store-name", { hasText: /^s$/ }).waitFor();
  await page.waitForFunction(() => document.title === "Query · s · Jindou");
  assert.deepEqual(await audit(page), []);
  await shot(page, "empty-store");
  await drop(page, [["shop.trig", TRIG]]);
  await page.locator(".examples button").first().waitFor();
  assert.match(await page.locator(".fact-line").textContent(), /1\d triples/);
  assert.equal(await page.getByLabel("Graphs that are read").inputValue(), "all");
  await page.locator(".panel", { hasText: "Largest classes" }).getByRole("link", { name: "person" }).waitFor();
  await shot(page, "after-drop");
  // Dropped again on another view: into a dialog. What the server says of the new data comes late, when the first screen is open.
  await page.route("**/query", async (route) => {
    if (route.request().headers().accept === "application/n-triples") await new Promise((soon) => setTimeout(soon, 1500));
    await route.continue();
  });
  await page.goto(`${own}#/server`);
  await drop(page, [["more.ttl", "<http://example.org/x> a <http://example.org/Other> ."]]);
  await page.locator("dialog", { hasText: "1 quad added" }).waitFor();
  await page.keyboard.press("Escape");
  // What nothing has merged yet is counted, too.
  await page.goto(`${own}#/query`);
  await page.locator(".fact", { hasText: "1 class" }).waitFor();
  await page.getByLabel("Graphs that are read").selectOption("all");
  await page.locator(".fact", { hasText: "3 classes" }).waitFor();
  await page.locator(".panel", { hasText: "Largest classes" }).getByRole("link", { name: "Other" }).waitFor();
  await page.locator(".store-name", { hasText: /^s$/ }).waitFor();
  await page.goto(`${own}#/data`);
  await page.locator(".facts > div", { hasText: "Subjects" }).getByText("7", { exact: true }).waitFor();
  assert.equal(await page.title(), "Data · s · Jindou");
  assert.deepEqual(faults, []);
  await close();
});

test("a malformed statement is refused with its place, or skipped where that is chosen", async () => {
  const own = await serve({ empty: true });
  const { page, faults, close } = await visit(own);
  const text = "<http://e/a> <http://e/p> \"x\" .\n<http://e/a> oops .\n<http://e/b> a <http://e/C> .\n";
  await page.getByText("Paste a text").click();
  await page.getByLabel("RDF text").fill(text);
  await page.getByRole("button", { name: "Load text" }).click();
  const error = page.locator(".uploading .error", { hasText: "pasted text:2:" });
  await error.waitFor();
  assert.match(await error.textContent(), /skip statements that are malformed/);
  await shot(page, "load-refused");
  await page.getByLabel("skip statements that are malformed").check();
  await page.getByRole("button", { name: "Load text" }).click();
  const report = page.locator("dialog", { hasText: "1 malformed statement skipped" });
  await report.locator("li", { hasText: "Line 2, column" }).waitFor();
  assert.match(await report.locator("li code").textContent(), /oops/);
  assert.match(await report.textContent(), /2 quads added/);
  assert.deepEqual(await audit(page), []);
  await shot(page, "load-skipped");
  await page.keyboard.press("Escape");
  await page.locator(".fact-line", { hasText: "2 triples" }).waitFor();
  // The same where it stays on the screen.
  await page.goto(`${own}#/data`);
  await page.getByLabel("skip statements that are malformed").check();
  await drop(page, [["good.ttl", "<http://e/c> a <http://e/C> ."]]);
  await page.locator(".loaded", { hasText: "No statement is malformed" }).waitFor();
  assert.deepEqual(faults, []);
  await close();
});

test("a text is pasted; an address is the server's to fetch", async () => {
  const own = await serve({ empty: true });
  const { page, faults, close } = await visit(own);
  await page.getByText("Paste a text").click();
  await page.getByLabel("RDF text").fill("<http://e/a> <http://e/p> \"x\" .\n<http://e/a> a <http://e/C> .");
  assert.equal(await page.getByLabel("Format of the text").inputValue(), "text/turtle");
  await page.getByRole("button", { name: "Load text" }).click();
  await page.locator(".fact-line", { hasText: "2 triples" }).waitFor();
  await page.goto(`${own}#/data`);
  await page.getByText("Give a URL").click();
  await page.getByLabel("Address of a document").fill("https://example.org/data.ttl");
  await page.getByRole("button", { name: "Load URL" }).click();
  await page.locator(".uploading .error", { hasText: "--load-allow" }).waitFor();
  await shot(page, "load-url");
  assert.deepEqual(faults, []);
  await close();
});

test("a document from a URL replaces a graph where that is asked for", async () => {
  const documents = createServer((_, response) => response.writeHead(200, { "Content-Type": "text/turtle" }).end("<http://e/new> <http://e/p> 1 ."));
  await new Promise((resolve) => documents.listen(0, "127.0.0.1", resolve));
  const { port } = documents.address();
  const own = await serve({ turtle: "<http://e/a> <http://e/p> 1 . <http://e/b> <http://e/p> 2 .", options: ["--writable", "--load-allow", `127.0.0.1:${port}`] });
  const { page, faults, close } = await visit(own, { hash: "#/data" });
  await page.getByText("Give a URL").click();
  await page.getByLabel("Address of a document").fill(`http://127.0.0.1:${port}/data.ttl`);
  await page.getByLabel("replace the graph's contents").check();
  await page.getByLabel("skip statements that are malformed").check();
  await page.getByRole("button", { name: "Load URL" }).click();
  await page.locator(".uploading .error", { hasText: "choose one of the two" }).waitFor();
  await page.getByLabel("skip statements that are malformed").uncheck();
  await page.getByRole("button", { name: "Load URL" }).click();
  await page.getByRole("button", { name: "Replace its 2 triples" }).click();
  await page.getByText("1 quad added, 2 quads removed by 2 operations.").waitFor();
  assert.ok(!(await page.getByLabel("replace the graph's contents").isChecked()));
  assert.equal(await page.getByRole("button", { name: "Undo" }).count(), 0);
  // One that fills a graph can be undone.
  await page.getByLabel("Into graph").fill("http://e/g");
  await page.getByRole("button", { name: "Load URL" }).click();
  await page.getByText("empties http://e/g again").waitFor();
  await page.getByRole("button", { name: "Undo" }).click();
  await page.getByText("Undone: http://e/g is empty again.").waitFor();
  documents.close();
  assert.deepEqual(faults, []);
  await close();
});

test("a server for reading says how it is made to take data", async () => {
  const { page, faults, close } = await visit(named);
  await page.getByText("Read-only: to add data, restart it with --writable").waitFor();
  await drop(page, [["shop.trig", TRIG]]);
  await page.locator("dialog", { hasText: "--token-file" }).waitFor();
  await shot(page, "read-only-drop");
  await page.keyboard.press("Escape");
  await page.goto(`${named}#/data`);
  await page.getByText(/This server is read-only/).waitFor();
  assert.deepEqual(faults, []);
  await close();
});

test("the first screen: every example has an answer", async () => {
  for (const address of [named, await serve({ files: demo })]) {
    const { page, faults, close } = await visit(address);
    await page.locator(".examples button").first().waitFor();
    await shot(page, address === named ? "start-named" : "start");
    const titles = await page.locator(".examples button").allTextContents();
    assert.ok(titles.length >= 5, titles.join());
    for (const title of titles) {
      const fresh = await visit(address);
      await fresh.page.getByRole("button", { name: title }).click();
      await ended(fresh.page);
      assert.match(await statusOf(fresh.page), /^[1-9][\d,]* (?:rows?|triples?)/, title);
      assert.deepEqual(fresh.faults, []);
      await fresh.close();
    }
    assert.deepEqual(faults, []);
    await close();
  }
});

test("labels in the browser's language stand for IRIs, and can be switched off", async () => {
  const { page, faults, close } = await visit(named, { locale: "de-DE" });
  await run(page, "SELECT * { ?s <http://example.org/shop/knows> ?o ; a ?c }");
  const texts = () => page.locator("[role=gridcell] a").allTextContents();
  await page.locator("[role=gridcell]", { hasText: "Anna Beispiel" }).waitFor();
  assert.deepEqual(await texts(), ["Anna Beispiel", "Bob Other", "Mensch"]);
  assert.match(await page.locator("[role=gridcell] a").first().getAttribute("title"), /http:\/\/example\.org\/shop\/p1/);
  await shot(page, "labels");
  await page.getByLabel("Labels").uncheck();
  assert.deepEqual(await texts(), ["ex:p1", "ex:p2", "ex:Person"]);
  await page.reload();
  await ended(page);
  await page.locator("[role=gridcell] a").first().waitFor();
  await page.waitForTimeout(300);
  assert.deepEqual(await texts(), ["ex:p1", "ex:p2", "ex:Person"]);
  await page.getByLabel("Labels").check();
  await page.locator("[role=gridcell]", { hasText: "Mensch" }).waitFor();
  assert.deepEqual(faults, []);
  await close();
});

test("only what is on the screen is asked for a label", async () => {
  const many = Array.from({ length: 5000 }, (_, i) => `<http://e/s${i}> <http://www.w3.org/2000/01/rdf-schema#label> "name ${i}" .`).join("\n");
  const own = await serve({ turtle: many });
  const { page, faults, close } = await visit(own);
  const asked = [];
  await page.route("**/labels?*", (route) => {
    const iris = new URLSearchParams(route.request().postData()).getAll("iri");
    asked.push(iris.length);
    return route.fulfill({ json: { labels: Object.fromEntries(iris.filter((i) => i.includes("/s")).map((i) => [i, { text: `the ${i.slice(9)}`, lang: "" }])) } });
  });
  await run(page, "SELECT ?s { ?s ?p ?o }");
  await page.locator("[role=gridcell]", { hasText: "the s" }).first().waitFor();
  await page.waitForTimeout(300);
  assert.ok(asked.reduce((a, b) => a + b, 0) < 100, asked.join());
  assert.ok(asked.length <= 4, asked.join());
  assert.deepEqual(faults, []);
  await close();
});

test("the search finds by words of labels, from every view, by keys", async () => {
  const { page, faults, close } = await visit(named, { hash: "#/data" });
  await page.locator(".list").first().waitFor();
  await page.locator("h1").click();
  await page.keyboard.press("/");
  await page.keyboard.type("chair gre");
  const option = page.locator("#found [role=option]");
  await option.first().waitFor();
  assert.deepEqual(await option.locator(".found-label").allTextContents(), ["Green chair"]);
  assert.deepEqual(await audit(page), []);
  await shot(page, "search");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.locator("h1", { hasText: "Green chair" }).waitFor();
  // Without a match it says so.
  await page.getByRole("combobox", { name: /Search resources/ }).fill("nothing of the kind");
  await page.getByText(/Nothing has these words/).waitFor();
  assert.deepEqual(faults, []);
  await close();
});

test("the search asks the server's index where there is one", async () => {
  const { page, faults, close } = await visit(named);
  await page.route("**/search?*", (route) => {
    const asked = new URL(route.request().url()).searchParams;
    return route.fulfill({ json: { results: [{ iri: "http://example.org/shop/g1", label: `${asked.get("q")} of ${asked.get("graphs")}`, lang: "en", class: "http://example.org/shop/Product" }], complete: true, ms: 1 } });
  });
  await page.getByRole("combobox", { name: /Search resources/ }).fill("red");
  const option = page.locator("#found [role=option]");
  await option.waitFor();
  assert.match(await option.textContent(), /^red of all/);
  await page.keyboard.press("Enter");
  await page.locator("h1", { hasText: "Red chair" }).waitFor();
  assert.deepEqual(faults, []);
  await close();
});

test("completion has labels, and finds by them", async () => {
  const { page, faults, close } = await visit(named);
  await write(page, "SELECT * WHERE { ?x acquain");
  await page.keyboard.press("Control+Space");
  const item = page.locator(".cm-tooltip-autocomplete li", { hasText: "is acquainted with" });
  await item.waitFor();
  await shot(page, "completion-label");
  await item.click();
  await page.waitForFunction(() => /^PREFIX ex: <http:\/\/example.org\/shop\/>SELECT \* WHERE \{ \?x ex:knows$/.test(document.querySelector(".editor").shadowRoot.querySelector(".cm-content").textContent));
  assert.deepEqual(faults, []);
  await close();
});

test("a browser that was led to the endpoint with a query gets its answer on the page", async () => {
  const { page, faults, close } = await visit(named);
  // Sending the page is the server's part.
  await page.route(/\?query=/, async (route) => route.fulfill({ response: await route.fetch({ url: named, headers: { accept: "text/html" } }) }));
  await page.goto(`${named}query?query=${encodeURIComponent("SELECT * { ?s ?p ?o } LIMIT 4")}`);
  await page.waitForFunction(() => /^4 rows/.test(document.querySelector(".status")?.textContent ?? ""));
  assert.match(page.url(), /\/#\/query\?q=SELECT/);
  assert.deepEqual(faults, []);
  await close();
});

test("prefixes of the data are used, listed and edited", async () => {
  const own = await serve({ files: [trig] });
  const { page, faults, close } = await visit(own, { hash: "#/server" });
  let all = [{ prefix: "acme", iri: "http://example.org/shop/", from: "data" }, { prefix: "foaf", iri: "http://xmlns.com/foaf/0.1/", from: "common" }];
  const sent = [];
  await page.route("**/prefixes**", (route) => {
    const { pathname } = new URL(route.request().url());
    const name = pathname.split("/")[2];
    if (route.request().method() === "GET") return route.fulfill({ json: { prefixes: all } });
    sent.push([route.request().method(), name, route.request().postData()]);
    all = all.filter((p) => p.prefix !== name);
    if (route.request().method() === "PUT") all.push({ prefix: name, iri: route.request().postData(), from: "set" });
    return route.fulfill({ status: 204, body: "" });
  });
  await page.goto(`${own}?fresh#/data`);
  await page.getByLabel("Labels").uncheck();
  await page.locator(".list", { hasText: "Classes" }).getByText("acme:Person").waitFor();
  await page.getByText("1 prefix of the data").click();
  await page.getByRole("textbox", { name: "Prefix", exact: true }).fill("my");
  await page.getByLabel("IRI of the prefix").fill("http://example.org/other/");
  await page.getByRole("button", { name: "Set prefix" }).click();
  await page.getByText("2 prefixes of the data").waitFor();
  await page.locator(".prefixes").scrollIntoViewIfNeeded();
  assert.deepEqual(await audit(page), []);
  await shot(page, "prefixes");
  await page.getByRole("button", { name: "Remove my:" }).click();
  await page.getByText("1 prefix of the data").waitFor();
  assert.deepEqual(sent, [["PUT", "my", "http://example.org/other/"], ["DELETE", "my", null]]);
  assert.deepEqual(faults, []);
  await close();
});

test("a resource in two columns: label, classes, a place, an image when it is asked for", async () => {
  const { page, faults, close } = await visit(named, { hash: `#/resource?iri=${encodeURIComponent("http://example.org/shop/g2")}` });
  await page.locator("h1", { hasText: "Green chair" }).waitFor();
  await page.locator(".badge", { hasText: "Product" }).first().waitFor();
  await page.locator(".place-map svg.map .dot").waitFor({ state: "attached" });
  const heads = await page.locator(".properties th[scope=row]").allTextContents();
  assert.equal(new Set(heads).size, heads.length, heads.join());
  assert.deepEqual(await audit(page), []);
  await shot(page, "resource-place");
  await page.goto(`${named}#/resource?iri=${encodeURIComponent("http://example.org/shop/p2")}`);
  await page.locator("h1", { hasText: "Bob Other" }).waitFor();
  // Nothing is fetched from elsewhere by itself.
  const image = page.getByRole("button", { name: "Show image from images.example" });
  await image.waitFor();
  assert.equal(await page.locator("img").count(), 0);
  await page.getByText("Neighbours:").waitFor();
  await page.locator("section", { hasText: "Referenced by" }).getByRole("link", { name: "Ann Example" }).waitFor();
  await shot(page, "resource-two");
  await page.getByRole("button", { name: "Neighbourhood" }).click();
  const before = await drawn(page);
  await page.locator(".graph-legend .key[data-colour='0']").waitFor();
  // By keys: the node is found, selected, and its neighbours are added.
  await page.getByLabel("Find in the graph").fill("Ann Example");
  await page.keyboard.press("Enter");
  await page.locator(".graph-panel", { hasText: "Ann Example" }).waitFor();
  await page.locator("canvas.graph").focus();
  await page.keyboard.press(" ");
  await drawn(page, before.nodes + 1);
  await page.keyboard.press("Escape");
  await page.getByLabel("Find in the graph").fill("");
  await page.waitForTimeout(500);
  // No caption that is shown lies on another.
  const { texts } = await exported(page);
  assert.ok(texts.some(({ text }) => text.includes("Ann Example")), texts.map(({ text }) => text).join());
  const wide = await page.evaluate((all) => {
    const context = document.createElement("canvas").getContext("2d");
    return all.map(({ text, size }) => ((context.font = `${size}px ${getComputedStyle(document.documentElement).getPropertyValue("--sans")}`), context.measureText(text).width));
  }, texts);
  const overlaps = texts.flatMap((a, i) => texts.slice(i + 1).filter((b, k) => Math.abs(a.x - b.x) < (wide[i] + wide[i + 1 + k]) / 2 - 3 && Math.abs(a.y - b.y) < 8).map((b) => `${a.text} on ${b.text}`));
  assert.deepEqual(overlaps, []);
  await shot(page, "neighbourhood");
  assert.deepEqual(faults, []);
  await close();
});

test("a phone's width and the dark: start, resource, empty store", async () => {
  const blank = await serve({ empty: true });
  for (const colorScheme of ["light", "dark"]) {
    const views = [["start", named, ""], ["resource", named, `#/resource?iri=${encodeURIComponent("http://example.org/shop/g2")}`], ["data", named, "#/data"], ["begin", blank, ""]];
    for (const [name, address, hash] of long || colorScheme === "light" ? views : views.slice(0, 2)) {
      const { page, faults, close } = await visit(address, { hash, colorScheme, viewport: { width: 390, height: 844 } });
      await page.waitForTimeout(1500);
      assert.deepEqual(await audit(page), [], `${name}, ${colorScheme}`);
      const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(over <= 0, `${name} is ${over} pixels too wide`);
      await shot(page, `phone-${name}-${colorScheme}`);
      assert.deepEqual(faults, []);
      await close();
    }
  }
});
