//! Clients that count in the store, and what must be there in the end.

use super::{FOUND_OUT, READ, Shared};
use crate::replicas::client::Request;
use crate::replicas::servers::{PATIENCE, Server, wrong};
use jindou::Result;
use jindou_model::random::splitmix64;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// A client tries another server after so long without an answer.
const NEXT: Duration = Duration::from_secs(6);
/// An update that no server takes for so long is an error.
const HOPELESS: Duration = Duration::from_secs(90);

/// The client's number, or both that were written to its two vertices, which may be in two shards.
pub(super) fn count_of(client: usize) -> String {
    format!(
        "SELECT (IF(?n = ?m, ?n, CONCAT(STR(?n), ' and ', STR(?m))) AS ?both) {{ <http://e/c{client}> <http://e/count> ?n . <http://e/d{client}> <http://e/count> ?m }}"
    )
}

/// Adds a number, and one to the client's count at both vertices.
pub(super) fn update(client: usize, n: u64) -> String {
    format!(
        "INSERT DATA {{ <http://e/c{client}> <http://e/n> {n} }} ; DELETE {{ ?c <http://e/count> ?old }} INSERT {{ ?c <http://e/count> ?new }} WHERE {{ VALUES ?c {{ <http://e/c{client}> <http://e/d{client}> }} OPTIONAL {{ ?c <http://e/count> ?old }} BIND(COALESCE(?old, 0) + 1 AS ?new) }}"
    )
}

/// The only number in an answer as TSV; 0 if nothing was counted yet.
pub(super) fn number(text: &str) -> Option<u64> {
    let mut rows = text.lines().skip(1);
    let Some(row) = rows.next() else {
        return Some(0);
    };
    let digits = row.trim_start_matches('"').split('"').next()?;
    rows.next().is_none().then(|| digits.parse().ok())?
}

/// One client. Gives how far it counted.
pub(super) fn count(shared: &Shared, client: usize, home: usize, mut state: u64) -> u64 {
    let mut servers = shared.clients(NEXT);
    let mut readers = shared.clients(READ);
    let (mut n, mut at, mut newest) = (0, home, 0);
    // When each update was acknowledged.
    let mut acknowledged = Vec::new();
    while !shared.ended() {
        n += 1;
        let request = Request::update(update(client, n))
            .with("Idempotency-Key", format!("c{client}-{n}"))
            .with("Accept", "application/json");
        let begun = Instant::now();
        let mut said = Vec::new();
        let snapshot = loop {
            match servers[at].send(&request) {
                Ok(answer) if answer.is_success() => break answer.snapshot().unwrap_or_default(),
                Ok(answer) if answer.status == 503 => said.push(answer.text()),
                Ok(answer) => {
                    let is_certain = said.is_empty() && (400..500).contains(&answer.status);
                    let outcome = if is_certain { "failed" } else { "unknown" };
                    shared.update_ends(client, n, begun, outcome);
                    shared.bad(format!("client {client}, update {n}: {}", answer.text()));
                    return n - 1;
                }
                Err(e) => said.push(e.to_string()),
            }
            if begun.elapsed() > HOPELESS {
                shared.update_ends(client, n, begun, "unknown");
                said.dedup();
                shared.bad(format!(
                    "client {client}, update {n} was not made: {said:?}"
                ));
                return n - 1;
            }
            at = (at + 1) % servers.len();
            shared.repeated.fetch_add(1, Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(5));
        };
        shared.update_ends(client, n, begun, "ok");
        shared.updates.fetch_add(1, Ordering::Relaxed);
        if snapshot < newest {
            shared.bad(format!(
                "client {client}, update {n}: snapshot {snapshot} after {newest}"
            ));
        }
        newest = newest.max(snapshot);
        acknowledged.push(Instant::now());
        let i = splitmix64(&mut state) as usize % readers.len();
        let at_least = format!("at-least={newest}");
        let consistency = match splitmix64(&mut state) % 4 {
            0 => Some("strict"),
            1 => Some(at_least.as_str()),
            _ => None,
        };
        let is_strict = consistency == Some("strict");
        // A strict read of another client's count is checked by the history alone.
        let of = match &shared.history {
            Some(history) if is_strict => splitmix64(&mut state) as usize % history.registers,
            _ => client,
        };
        let request = Request::query(count_of(of), consistency);
        // One that is stopped or cut off when it is asked may answer from what is this old (docs/replicas.md, the third guarantee).
        let (moves, may_be_old) = (shared.moves[i].count(), shared.apart[i].is_away());
        shared.reads.fetch_add(1, Ordering::Relaxed);
        let asked = Instant::now();
        let sent = readers[i].send(&request);
        let answered = sent.as_ref().ok().filter(|a| a.is_success());
        let read = answered.map(|a| number(&a.text()));
        if is_strict {
            shared.read_ends(client, of, asked, read);
        }
        match sent {
            Ok(answer) if answer.is_success() => {
                let read = read.flatten();
                let from = answer.snapshot().unwrap_or_default();
                let least = match may_be_old && consistency.is_none() {
                    true => acknowledged.partition_point(|&at| at + FOUND_OUT <= asked) as u64,
                    false => n,
                };
                let is_right = read.is_some_and(|read| of != client || (least..=n).contains(&read))
                    && (from >= newest || least < n);
                if !is_right {
                    shared.bad(format!(
                        "client {client} reads {:?} of {of} of snapshot {from} at server {i} ({consistency:?}, moves {moves}) after {n} was acknowledged as snapshot {snapshot}",
                        answer.text()
                    ));
                }
            }
            Ok(answer) if answer.status == 503 => {
                if !shared.moves[i].was_away(moves) {
                    shared.reads_refused.fetch_add(1, Ordering::Relaxed);
                }
            }
            Ok(answer) => shared.bad(format!("client {client}, a read: {}", answer.text())),
            Err(_) if shared.moves[i].was_away(moves) => {}
            Err(e) => shared.bad(format!("client {client}: server {i} does not answer: {e}")),
        }
        // Back to its own server, once that is there again.
        if !shared.moves[home].is_away() {
            at = home;
        }
    }
    n
}

/// Reads everything at one server: each client's numbers and its count.
pub(super) fn all_there(server: &Server, shared: &Shared, counted: &[u64]) -> Result<Vec<String>> {
    let mut wrongs = Vec::new();
    let mut client = server.client(PATIENCE);
    for (c, &n) in counted.iter().enumerate() {
        let failed = |e: std::io::Error| wrong(format!("{}: {e}", server.name));
        let asked = Instant::now();
        let answer = client.send(&Request::query(count_of(c), Some("strict")));
        let answer = answer.map_err(failed)?;
        let read = answer.is_success().then(|| number(&answer.text()));
        shared.read_ends(counted.len(), c, asked, read);
        let count = read.flatten().unwrap_or_default();
        let text = format!("SELECT ?n {{ <http://e/c{c}> <http://e/n> ?n }}");
        let answer = client.send(&Request::query(text, Some("strict")));
        let mut numbers: Vec<u64> = answer
            .map_err(failed)?
            .text()
            .lines()
            .skip(1)
            .filter_map(|l| l.parse().ok())
            .collect();
        numbers.sort_unstable();
        if count != n || !numbers.iter().copied().eq(1..=n) {
            wrongs.push(format!(
                "{}: client {c} was acknowledged {n} updates; {} are there, counted {count}",
                server.name,
                numbers.len()
            ));
        }
    }
    Ok(wrongs)
}
