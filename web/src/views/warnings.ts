// What someone who runs the server should know at once.

import { bytes, counted, duration, milliseconds } from "../format.ts";
import type { Past, Sample } from "./past.ts";

/** Seconds after which a replica counts as cut off, and days before its end at which a certificate is old. */
const CUT_OFF = 10;
const OLD = 14;
const DAY = 86_400;

interface About {
  /** Why the server is not ready. */
  notReady: string | undefined;
  lastFailure: string | null | undefined;
  /** Servers in contact that hold each shard. */
  holders: Map<string, number>;
  isReplica: boolean;
}

export function warnings({ at, of }: Sample, past: Past, about: About): string[] {
  const all: (string | false)[] = [
    about.notReady !== undefined && `Not ready: ${about.notReady}.`,
    of("jindou_log_failing") > 0 && "The log cannot be written, so updates are refused.",
    of("jindou_merges_failed_total") > 0 && `${counted(of("jindou_merges_failed_total"), "merge")} failed${about.lastFailure ? `: ${about.lastFailure}` : ""}.`,
    of("jindou_panics_total") > 0 && `${counted(of("jindou_panics_total"), "request")} ended with an internal error, which is a bug: the server's log has it.`,
    of("jindou_query_memory_bytes") > 0.9 * of("jindou_query_memory_limit_bytes") && of("jindou_query_memory_limit_bytes") > 0 && "More than nine tenths of the memory for queries are in use.",
    of("jindou_changes_limit_bytes") > 0 && of("jindou_changes_bytes") > 2 * of("jindou_changes_limit_bytes") && `Updates wait for a merge: ${bytes(of("jindou_changes_bytes"))} of changes are not merged.`,
    past.grown("jindou_queries_refused_total") > 0 && `${counted(past.grown("jindou_queries_refused_total"), "query", "queries")} refused in the last minutes: no slot or memory.`,
    past.grown("jindou_authentication_failures_total") > 0 && `${counted(past.grown("jindou_authentication_failures_total"), "request")} without a valid token in the last minutes.`,
    ...replication(of, past, about),
  ];
  const expiry = of("jindou_tls_certificate_expiry_timestamp_seconds");
  if (expiry > 0 && expiry - at < OLD * DAY) all.push(expiry < at ? "The TLS certificate is no longer valid." : `The TLS certificate ends in ${duration(expiry - at)}.`);
  return all.filter((said) => said !== false);
}

function replication(of: Sample["of"], past: Past, { isReplica, holders }: About): (string | false)[] {
  if (!isReplica) return [];
  const age = of("jindou_replica_proof_age_seconds");
  const others = Math.max(0, of("jindou_replica_servers_listed") - 1);
  return [
    age > CUT_OFF && `Cut off: this server last knew to be current ${milliseconds(age * 1000)} ago.`,
    of("jindou_replica_groups_behind") > 0 && `Behind by ${counted(of("jindou_replica_groups_behind"), "group")} of updates.`,
    others > 0 && of("jindou_replica_servers_in_contact") < others && `In contact with ${of("jindou_replica_servers_in_contact")} of ${counted(others, "other server")}; one that has ended is listed for half an hour.`,
    past.grown("jindou_replica_failed_requests_total") > 0 && `${counted(past.grown("jindou_replica_failed_requests_total"), "request")} to the log failed in the last minutes.`,
    ...[...holders].map(([shard, n]) => (n === 0 ? `No server in contact has shard ${shard}: queries that need it fail.` : n === 1 && `Only one server has shard ${shard}: if it is lost, queries fail.`)),
  ];
}
