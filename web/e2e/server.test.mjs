// The server's view: groups, charts, warnings, running and slow queries with their plans, shards.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { audit, demo, end, serve, shot, stop, visit } from "./setup.mjs";

const numbers = (n) => Array.from({ length: n }, (_, i) => i).join(" ");
/** Runs for long, and gives no row before its end. */
const LONG = `SELECT (COUNT(*) AS ?n) { VALUES ?a { ${numbers(500)} } VALUES ?b { ${numbers(500)} } VALUES ?c { ${numbers(500)} } FILTER(STRLEN(CONCAT(STR(?a), STR(?b), STR(?c))) > 2) }`;

let address;
before(async () => {
  address = await serve({ files: demo });
});
after(end);

const over = (page) => page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
const send = (server, query, parameters = "") => fetch(`${server}query${parameters}`, { method: "POST", headers: { "content-type": "application/sparql-query" }, body: query }).catch(() => undefined);

for (const [width, height, options] of [[390, 844, { colorScheme: "dark" }], [1440, 900, {}], [3840, 2160, { forcedColors: "active" }]]) {
  test(`groups with charts, a slow query and its plan, ${width} px`, async () => {
    const { page, faults, close } = await visit(address, { hash: "#/server", viewport: { width, height }, ...options });
    await page.getByText(/^Jindou \d.* · running for /).waitFor();
    await page.getByText("No warnings.").waitFor();
    const asked = send(address, LONG, "?watch=true&timeout=4");
    for (const name of ["Memory", "Traffic", "Store"]) await page.getByRole("region", { name, exact: true }).locator("svg").first().waitFor();
    const row = page.getByRole("region", { name: "Running queries" }).getByRole("row").filter({ hasText: "VALUES ?a" });
    await row.waitFor();
    await page.waitForTimeout(1500);
    await row.getByRole("button", { name: /^Plan of query/ }).click();
    const dialog = page.getByRole("dialog", { name: "Plan" });
    await dialog.getByRole("heading", { name: "Profile (running)" }).waitFor();
    assert.match(await dialog.locator(".plan tbody").textContent(), /STRLEN/);
    assert.deepEqual(await audit(page), []);
    await shot(page, `server-plan-${width}`);
    await page.keyboard.press("Escape");
    await asked;
    // It ended, and stays in the server's list of slow ones with its plan.
    const slow = page.getByRole("region", { name: "Slow queries" }).getByRole("row").filter({ hasText: "VALUES ?a" }).first();
    await slow.waitFor();
    assert.match(await slow.textContent(), /timeout/);
    await slow.getByRole("button", { name: /^Plan of query/ }).click();
    await dialog.locator(".plan tr.slow").waitFor();
    await page.keyboard.press("Escape");
    // The charts say their figures to those who do not see them.
    assert.match(await page.getByRole("img", { name: /^Queries a second: [\d.]+; at most [\d.]+ in the last/ }).getAttribute("aria-label"), /min/);
    assert.doesNotMatch(await page.locator(".small-charts").first().evaluate((e) => e.outerHTML), /NaN|Infinity/);
    assert.ok((await over(page)) <= 0, `${await over(page)} too wide`);
    assert.deepEqual(await audit(page), []);
    await shot(page, `server-${width}`);
    assert.deepEqual(faults, []);
    await close();
  });
}

test("warnings, shards and their servers, as the metrics have them", async () => {
  const { page, faults, close } = await visit(address);
  await page.route("**/metrics", async (route) => {
    const answer = await route.fetch();
    const more = [
      'jindou_replica_info{server="\u202Enorth",writer="south"} 1', "jindou_replica_groups_behind 7", "jindou_replica_proof_age_seconds 42", "jindou_replica_servers_listed 3", "jindou_replica_servers_in_contact 1",
      'jindou_replica_contact_age_seconds{server="south"} 0.25', 'jindou_replica_server_group{server="south"} 7', 'jindou_replica_contact_age_seconds{server="west"} -1', 'jindou_replica_server_group{server="west"} 0', "jindou_replica_group 9",
      'jindou_shard_holder{shard="0",server="south"} 1', 'jindou_shard_holder{shard="0",server="\u202Enorth"} 1',
      ...["0", "1", "2"].flatMap((shard, i) => [`jindou_shard_holders{shard="${shard}"} ${2 - i}`, `jindou_shard_bases{shard="${shard}"} ${i === 0 ? 1 : 0}`, `jindou_shard_bytes{shard="${shard}"} ${i === 0 ? 2048 : 0}`]),
    ];
    await route.fulfill({ response: answer, body: `${await answer.text()}${more.join("\n")}\n` });
  });
  await page.goto(`${address}#/server`);
  const log = page.getByRole("region", { name: "Shared log" });
  await log.getByText("7 groups").waitFor();
  const fact = (name) => log.locator(".facts > div", { hasText: name }).locator("dd").textContent();
  assert.equal(await fact("This server"), "\\u202Enorth");
  assert.equal(await fact("Writer"), "south");
  assert.equal(await fact("Other servers in contact"), "1 of 2");
  const others = page.getByRole("region", { name: "Other servers" }).locator("tbody tr");
  assert.deepEqual(await others.evaluateAll((all) => all.map((tr) => [...tr.children].map((cell) => cell.textContent))), [["south", "250 ms ago", "2 groups"], ["west", "never", "–"]]);
  assert.match(await fact("Known to be current"), /^42\.0?0? s ago$/);
  const said = await page.locator(".warnings li").allTextContents();
  assert.deepEqual(said.map((text) => text.split(/[:;.]/)[0]), ["Cut off", "Behind by 7 groups of updates", "In contact with 1 of 2 other servers", "Only one server has shard 1", "No server in contact has shard 2"]);
  const shards = page.getByRole("region", { name: "Shards and their servers" }).locator("tbody tr");
  assert.deepEqual(await shards.evaluateAll((all) => all.map((tr) => [...tr.children].slice(0, 3).map((cell) => cell.textContent))), [["0", "\\u202Enorth, south", "2.0 KiB"], ["1", "1 server", "not here"], ["2", "0 servers", "not here"]]);
  assert.deepEqual(await audit(page), []);
  await shot(page, "server-shards");
  assert.deepEqual(faults, []);
  await close();
});

test("a server that stops in the middle is said to be gone, and its figures stay", async () => {
  const own = await serve({ files: demo });
  const { page, close } = await visit(own, { hash: "#/server" });
  await page.getByRole("region", { name: "Memory", exact: true }).locator("svg").first().waitFor();
  await stop(own);
  await page.getByText("the server cannot be reached").waitFor();
  assert.ok(await page.getByRole("region", { name: "Memory", exact: true }).locator("svg").first().isVisible());
  assert.deepEqual(await audit(page), []);
  await close();
});
