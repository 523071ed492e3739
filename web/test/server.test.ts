import assert from "node:assert/strict";
import { test } from "node:test";
import { duration } from "../src/format.ts";
import { metrics, samples, samplesBy } from "../src/net/metrics.ts";
import { Past } from "../src/views/past.ts";
import { warnings } from "../src/views/warnings.ts";

const sample = (at: number, text: string) => ({ at, of: metrics(text) });
const about = { notReady: undefined, lastFailure: undefined, holders: new Map<string, number>(), isReplica: false };

test("a server's past: rates, gaps, another start, five minutes", () => {
  const past = new Past();
  for (const [at, n] of [[0, 0], [2, 10], [4, 30], [60, 30], [62, 20]] as const) past.add(sample(at, `a_total ${n}\nprocess_start_time_seconds 5`));
  // A counter does not go down; while nobody looked, nothing is known.
  assert.deepEqual(past.rates((of) => of("a_total")).map(({ value }) => value), [5, 10, NaN, 0]);
  assert.deepEqual(past.values((of) => of("a_total")).map(({ value }) => value), [0, 10, 30, 30, 20]);
  past.add(sample(62.5, "a_total 99\nprocess_start_time_seconds 5"));
  assert.equal(past.last?.at, 62, "too soon");
  past.add(sample(361, "a_total 50\nprocess_start_time_seconds 5"));
  assert.equal(past.grown("a_total"), 30, "from the first that is not too old");
  past.add(sample(363, "a_total 1\nprocess_start_time_seconds 300"));
  assert.equal(past.values((of) => of("a_total")).length, 1, "another start");
});

test("a server's warnings", () => {
  const said = (text: string, more = {}) => warnings(sample(1000, text), new Past(), { ...about, ...more });
  assert.deepEqual(said("jindou_query_memory_bytes 5\njindou_query_memory_limit_bytes 100"), []);
  assert.match(said("jindou_log_failing 1")[0] ?? "", /log cannot be written/);
  assert.match(said("", { notReady: "the server is draining" })[0] ?? "", /^Not ready: the server is draining/);
  assert.match(said("jindou_merges_failed_total 2", { lastFailure: "no space" })[0] ?? "", /2 merges failed: no space/);
  assert.match(said(`jindou_tls_certificate_expiry_timestamp_seconds ${1000 + 86400}`)[0] ?? "", /ends in 1 d\.$/);
  const replica = "jindou_replica_proof_age_seconds 42\njindou_replica_groups_behind 3\njindou_replica_servers_listed 3\njindou_replica_servers_in_contact 1";
  assert.deepEqual(said(replica), [], "of another kind of server");
  assert.deepEqual(said(replica, { isReplica: true, holders: new Map([["0", 2], ["1", 1], ["2", 0]]) }).map((text) => text.split(/[:;.]/)[0]), [
    "Cut off", "Behind by 3 groups of updates", "In contact with 1 of 2 other servers", "Only one server has shard 1", "No server in contact has shard 2",
  ]);
});

test("metrics by a label, and long times", () => {
  const text = 'jindou_shard_holders{shard="0"} 2\njindou_shard_holders{shard="10"} 1\nother{shard="0"} 9\nx_bucket{le="1"} 3\nx_count 3';
  assert.deepEqual([...samplesBy(text, "jindou_shard_holders", "shard")], [["0", 2], ["10", 1]]);
  assert.equal(metrics(text)("x_count"), 3);
  assert.deepEqual(samples('a{server="x,\\"y\\\\",shard="1"} 1\na{server="z",shard="2"} 0', "a").map((of) => [of.get("server"), of.get("shard"), of.get("=")]), [['x,"y\\', "1", "1"], ["z", "2", "0"]]);
  assert.deepEqual(samples(text, "none"), []);
  assert.deepEqual([0, 0.4, 59, 61, 3600, 3725, 90_000, 10 * 86_400].map(duration), ["0 s", "0 s", "59 s", "1 min 1 s", "1 h", "1 h 2 min", "1 d 1 h", "10 d"]);
});
