// What a browser keeps of the queries that are open.
import assert from "node:assert/strict";
import { test } from "node:test";
import { begin, keepOpen, openBefore, openOf, portion, whole } from "../src/open-queries.ts";

const set = (texts: string[], current = 0) => ({ names: texts.map((_, i) => `n${i}`), texts, current });

test("long texts and blank ones are left out, and the one that is shown comes first", () => {
  assert.deepEqual(portion(set(["a", " ", "c"], 2)), { names: ["n0", "n2"], texts: ["a", "c"], current: 1 });
  assert.deepEqual(portion(set(["a", "x".repeat(100_001)], 1)), { names: ["n0"], texts: ["a"], current: 0 });
  // Six texts of 90,000 characters are too many; the current one is kept, and then what has room.
  const long = Array.from({ length: 6 }, (_, i) => String(i).repeat(90_000));
  assert.deepEqual(portion(set(long, 5)).names, ["n0", "n1", "n2", "n3", "n5"]);
  assert.deepEqual(portion(set([""])), { names: [], texts: [], current: 0 });
});

test("what is no set is not taken for one", () => {
  for (const wrong of [null, 3, [], {}, { texts: [], names: [] }, { texts: [1], names: [] }, { texts: "a", names: "b" }]) assert.equal(openOf(wrong), undefined);
  assert.deepEqual(openOf({ texts: ["a", "b"], names: [7], current: 9 }), { names: ["7", ""], texts: ["a", "b"], current: 1 });
  assert.equal(openOf({ texts: Array.from({ length: 50 }, String), names: [], current: "x" })?.texts.length, 50);
});

/** A storage that may be full, or forbidden. */
class Store extends Map<string, string> {
  room = true;
  most = Number.POSITIVE_INFINITY;
  getItem = (key: string) => this.get(key) ?? null;
  setItem = (key: string, value: string) => {
    if (!this.room || value.length > this.most) throw new DOMException("full", "QuotaExceededError");
    this.set(key, value);
  };
  removeItem = (key: string) => void this.delete(key);
}

test("a tab keeps whole texts or none", () => {
  const long = "x".repeat(300_000);
  assert.deepEqual(whole(set([long, " ", "c"], 2)), set([long, " ", "c"], 2));
  const over = "SELECT".padEnd(2_000_001, "y");
  assert.deepEqual(whole(set(["a", over, "c"], 2)), { names: ["n0", "n2"], texts: ["a", "c"], current: 1, lost: ["n1"] });
  const browser = new Store();
  const session = new Store();
  Object.assign(globalThis, { sessionStorage: session, localStorage: browser });
  begin(set(["a"]));
  assert.deepEqual(keepOpen(set([long])), []);
  assert.deepEqual(openBefore(), set([long]));
  // Nothing is left of the set but that it was there.
  assert.deepEqual(keepOpen({ names: [""], texts: [over], current: 0 }), [over.slice(0, 40)]);
  assert.deepEqual(openBefore(), { names: [""], texts: [""], current: 0, lost: [over.slice(0, 40)] });
  // A tab with less room keeps what fits.
  session.most = 400_000;
  assert.deepEqual(keepOpen(set(["small", long, long], 0)), ["n2"]);
  assert.deepEqual(openBefore()?.texts, ["small", long]);
  session.most = 1000;
  keepOpen(set([long]));
  assert.deepEqual(openBefore(), { names: [""], texts: [""], current: 0, lost: ["n0"] });
});

test("two tabs: each keeps its own; what changed last is what a new one begins with", () => {
  const browser = new Store();
  const [first, second] = [new Store(), new Store()];
  const at = (session: Store) => Object.assign(globalThis, { sessionStorage: session, localStorage: browser });
  at(first);
  assert.equal(openBefore(), undefined);
  begin(set(["FIRST"]));
  // Nobody has written anything.
  keepOpen(set(["FIRST"]));
  assert.equal(browser.size, 0);
  keepOpen(set(["of the first"]));
  at(second);
  assert.deepEqual(openBefore()?.texts, ["of the first"]);
  begin(set(["of the first"]));
  keepOpen(set(["of the second"]));
  // Reloaded, the first has its own, and what the second wrote stays in the browser.
  at(first);
  assert.deepEqual(openBefore()?.texts, ["of the first"]);
  begin(set(["of the first"]));
  keepOpen(set(["of the first"]));
  at(new Store());
  assert.deepEqual(openBefore()?.texts, ["of the second"]);
  // A browser without room keeps what it has.
  browser.room = false;
  keepOpen(set(["more"]));
  at(new Store());
  assert.deepEqual(openBefore()?.texts, ["of the second"]);
  // All closed: nothing comes back.
  keepOpen(set([""]));
  assert.equal(browser.size, 0);
  // Forbidden.
  for (const name of ["sessionStorage", "localStorage"]) Object.defineProperty(globalThis, name, { configurable: true, get: () => { throw new DOMException("no", "SecurityError"); } });
  assert.equal(openBefore(), undefined);
  keepOpen(set(["nowhere"]));
});
