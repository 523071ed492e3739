// Clients of JavaScript: Comunica, sparql-http-client, fetch-sparql-endpoint, and the requests that YASGUI makes. Arguments: a server
// that all may write to, one with tokens, a token. Run it where their packages are.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import path from "node:path";

const [open, guarded, token] = process.argv.slice(2);
const require = createRequire(path.join(process.cwd(), "package.json"));
const load = (name) => import(require.resolve(name));
const v = "http://example.org/sky/vocabulary#";
const moons = `SELECT ?m WHERE { GRAPH <http://example.org/systems/Mars> { ?m a <${v}Moon> } } ORDER BY ?m`;
const expected = ["http://example.org/sky/Deimos", "http://example.org/sky/Phobos"];
const construct = `CONSTRUCT { ?m a <${v}Moon> } WHERE { GRAPH ?g { ?m a <${v}Moon> } }`;
const insert = (name) => `INSERT DATA { GRAPH <http://example.org/clients/${name}> { <http://example.org/a> <http://example.org/b> 1 } }`;
const there = (name) => `ASK { GRAPH <http://example.org/clients/${name}> { ?s ?p 1 } }`;
const all = async (stream) => { const rows = []; for await (const row of stream) rows.push(row); return rows; };

async function comunica() {
  const { QueryEngine } = await load("@comunica/query-sparql");
  for (const end of ["/sparql", "/query"]) {
    const engine = new QueryEngine();
    const context = { sources: [{ type: "sparql", value: open + end }] };
    const rows = await (await engine.queryBindings(moons, context)).toArray();
    assert.deepEqual(rows.map((r) => r.get("m").value), expected);
    assert.equal(await engine.queryBoolean("ASK { ?s ?p ?o }", context), true);
    assert.equal((await (await engine.queryQuads(construct, context)).toArray()).length, 14);
  }
  const writer = new QueryEngine();
  const place = { type: "sparql", value: `${open}/sparql` };
  await writer.queryVoid(insert("comunica"), { sources: [place], destination: place });
  assert.equal(await writer.queryBoolean(there("comunica"), { sources: [place] }), true);
  // It finds out by itself that this is an endpoint.
  const engine = new QueryEngine();
  const found = await (await engine.queryBindings(moons, { sources: [`${open}/sparql`] })).toArray();
  assert.equal(found.length, 2);
  const wrong = { sources: [{ type: "sparql", value: `${guarded}/sparql` }] };
  await assert.rejects(async () => (await engine.queryBindings(moons, wrong)).toArray());
  await assert.rejects(async () => (await engine.queryBindings("SELECT * {", { sources: [place] })).toArray());
  await assert.rejects(writer.queryVoid("INSERT DATA {", { sources: [place], destination: place }));
  const login = { ...wrong, httpAuth: `anybody:${token}` };
  assert.equal((await (await new QueryEngine().queryBindings(moons, login)).toArray()).length, 2);
}

async function sparqlHttpClient() {
  const { default: StreamClient } = await load("sparql-http-client");
  const { default: ParsingClient } = await import(path.join(path.dirname(require.resolve("sparql-http-client")), "ParsingClient.js"));
  const ends = { endpointUrl: `${open}/sparql`, updateUrl: `${open}/sparql`, storeUrl: `${open}/store` };
  const parsing = new ParsingClient(ends);
  for (const operation of ["get", "postUrlencoded", "postDirect"]) {
    const rows = await parsing.query.select(moons, { operation });
    assert.deepEqual(rows.map((r) => r.m.value), expected);
    assert.equal(await parsing.query.ask("ASK { ?s ?p ?o }", { operation }), true);
    assert.equal([...(await parsing.query.construct(construct, { operation }))].length, 14);
  }
  // Directly it sends updates as application/sparql-query, which only an address for updates alone could understand.
  await parsing.query.update(insert("sparql-http-client"), { operation: "postUrlencoded" });
  assert.equal(await parsing.query.ask(there("sparql-http-client")), true);
  const stream = new StreamClient(ends);
  assert.equal((await all(stream.query.select(moons))).length, 2);
  const graph = stream.factory.namedNode("http://example.org/systems/Mars");
  assert.ok((await all(stream.store.get(graph))).length === 10);
  await assert.rejects(parsing.query.select("SELECT * {"));
  await assert.rejects(parsing.query.update("INSERT DATA {", { operation: "postUrlencoded" }));
  const guest = new ParsingClient({ endpointUrl: `${guarded}/sparql`, user: "anybody", password: token });
  assert.equal((await guest.query.select(moons)).length, 2);
  await assert.rejects(new ParsingClient({ endpointUrl: `${guarded}/sparql` }).query.select(moons));
}

async function fetchSparqlEndpoint() {
  const { SparqlEndpointFetcher } = await load("fetch-sparql-endpoint");
  for (const method of ["GET", "POST"]) {
    const fetcher = new SparqlEndpointFetcher({ method });
    const rows = await all(await fetcher.fetchBindings(`${open}/sparql`, moons));
    assert.deepEqual(rows.map((r) => r.m.value), expected);
    assert.equal(await fetcher.fetchAsk(`${open}/sparql`, "ASK { ?s ?p ?o }"), true);
    assert.equal((await all(await fetcher.fetchTriples(`${open}/sparql`, construct))).length, 14);
    await fetcher.fetchUpdate(`${open}/sparql`, insert("fetch-sparql-endpoint"));
    assert.equal(await fetcher.fetchAsk(`${open}/sparql`, there("fetch-sparql-endpoint")), true);
    await assert.rejects(fetcher.fetchBindings(`${open}/sparql`, "SELECT * {"));
    await assert.rejects(fetcher.fetchUpdate(`${open}/sparql`, "INSERT DATA {"));
  }
}

// The requests that YASGUI makes from a page of another origin, as a browser would let them through: its own code needs a browser.
async function yasgui() {
  const source = readFileSync(path.join(process.cwd(), "node_modules/@triply/yasgui/build/yasgui.min.js"), "utf8");
  const accept = "application/sparql-results+json,*/*;q=0.9";
  assert.ok(source.includes(accept), "YASGUI asks for other formats than it did");
  const origin = "https://yasgui.example";
  const page = { Origin: origin, "Sec-Fetch-Site": "cross-site" };
  const form = "application/x-www-form-urlencoded; charset=UTF-8";
  const send = (base, method, body, more = {}) =>
    fetch(`${base}/sparql`, { method, headers: { ...page, Accept: accept, "Content-Type": form, ...more }, body });
  const readable = (answer) => ["*", origin].includes(answer.headers.get("access-control-allow-origin"));
  const asked = { "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization,content-type" };
  const before = await fetch(`${guarded}/sparql`, { method: "OPTIONS", headers: { ...page, ...asked } });
  assert.ok(before.ok && readable(before));
  assert.ok(before.headers.get("access-control-allow-methods").includes("POST"));
  assert.ok(before.headers.get("access-control-allow-headers").includes("authorization"));
  const bearer = { Authorization: `Bearer ${token}` };
  const query = (text) => new URLSearchParams({ query: text }).toString();
  const answer = await send(guarded, "POST", query(moons), bearer);
  assert.ok(answer.ok && readable(answer));
  assert.equal((await answer.json()).results.bindings.length, 2);
  assert.equal((await (await send(guarded, "POST", query("ASK { ?s ?p ?o }"), bearer)).json()).boolean, true);
  const graph = await send(guarded, "POST", query(construct), { ...bearer, Accept: "text/turtle,*/*;q=0.9" });
  assert.ok(graph.headers.get("content-type").startsWith("text/turtle"));
  const update = new URLSearchParams({ update: insert("yasgui") }).toString();
  assert.ok((await send(guarded, "POST", update, bearer)).ok);
  const bad = await send(guarded, "POST", query("SELECT * {"), bearer);
  assert.ok(bad.status === 400 && readable(bad));
  // No page elsewhere writes to a server without tokens.
  assert.equal((await send(open, "POST", update)).status, 403);
}

const version = (name) => JSON.parse(readFileSync(path.join(process.cwd(), "node_modules", name, "package.json"))).version;
let failed = false;
for (const [check, name, note] of [
  [comunica, "@comunica/query-sparql", ""],
  [sparqlHttpClient, "sparql-http-client", ""],
  [fetchSparqlEndpoint, "fetch-sparql-endpoint", ""],
  [yasgui, "@triply/yasgui", " (its requests, without a browser)"],
]) {
  try {
    await check();
    console.log(`ok      ${name} ${version(name)}${note}`);
  } catch (error) {
    console.error(error);
    console.log(`FAILED  ${name} ${version(name)}`);
    failed = true;
  }
}
process.exit(failed ? 1 : 0);
