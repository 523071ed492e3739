//! For how long servers that are there answer nothing.

use super::clients::update;
use super::{READ, Shared};
use crate::replicas::client::{Client, Request};
use crate::replicas::servers::{PATIENCE, Server};
use jindou::Result;
use jindou_model::sync::lock;
use std::fmt::Write as _;
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Time between requests of a watcher.
const LOOK: Duration = Duration::from_millis(10);
/// Time without an answer after which each refusal is printed.
const LONG: Duration = Duration::from_millis(2800);

/// Sends to one server all the time, and keeps the longest time without an answer while it was there. `moves` are those of what must
/// be there.
fn watch(
    shared: &Shared,
    what: &str,
    longest: &Mutex<Duration>,
    moves: impl Fn() -> u64,
    mut answers: impl FnMut() -> std::result::Result<(), String>,
) {
    let mut before = moves();
    let mut answered = Instant::now();
    while !shared.ended() {
        let said = answers();
        let now = moves();
        if before != now || !now.is_multiple_of(2) {
            (before, answered) = (now, Instant::now());
        }
        let mut longest = lock(longest);
        *longest = answered.elapsed().max(*longest);
        drop(longest);
        if answered.elapsed() > LONG {
            let (away, said) = (answered.elapsed(), said.as_ref().err());
            println!("     {what}: {:.2} s, {said:?}", away.as_secs_f64());
        }
        if said.is_ok() {
            answered = Instant::now();
        }
        std::thread::sleep(LOOK);
    }
}

/// Quads that never change, enough for all shards to have some.
const CONSTANT: u32 = 60;
/// Reads them, and so needs all shards.
pub(super) const EVERYWHERE: &str = "SELECT ?s ?n { ?s <http://e/constant> ?n }";

/// Inserts what [`EVERYWHERE`] reads, and merges it into the base.
pub(super) fn prepare(server: &Server) -> Result<()> {
    let mut text = String::new();
    for n in 0..CONSTANT {
        let _ = write!(text, "<http://e/k{n}> <http://e/constant> {n} . ");
    }
    let mut client = server.client(PATIENCE);
    let insert = Request::update(format!("INSERT DATA {{ {text} }}"));
    for request in [insert, Request::new("POST", "/admin/merge")] {
        client.succeed(&request)?;
    }
    Ok(())
}

/// Reads at one server.
pub(super) fn reads(shared: &Shared, i: usize) {
    let mut client = Client::new(shared.addresses[i].clone(), READ);
    let request = Request::query(EVERYWHERE, None);
    watch(
        shared,
        &format!("reads at server {i}"),
        &shared.reads_away,
        || shared.moves[i].count(),
        || match client.send(&request) {
            Ok(answer) if answer.is_success() => {
                let rows = answer.text().lines().skip(1).count();
                if rows != CONSTANT as usize {
                    shared.bad(format!("{rows} of {CONSTANT} constant quads at server {i}"));
                }
                Ok(())
            }
            Ok(answer) => Err(answer.text()),
            Err(e) => Err(e.to_string()),
        },
    );
}

/// Counts at one server as a client that goes to no other. Gives how far it counted.
pub(super) fn updates(shared: &Shared, client: usize, i: usize) -> u64 {
    let mut connection = Client::new(shared.addresses[i].clone(), READ);
    let (mut n, mut done) = (1, 0);
    // When the first request of update `n` was sent.
    let mut called = None;
    let mut send = || {
        let begun = *called.get_or_insert_with(Instant::now);
        let request = Request::update(update(client, n))
            .with("Idempotency-Key", format!("c{client}-{n}"))
            .with("Accept", "application/json");
        match connection.send(&request) {
            Ok(answer) if answer.is_success() => {
                shared.update_ends(client, n, begun, "ok");
                shared.updates.fetch_add(1, Ordering::Relaxed);
                called = None;
                done = n;
                n += 1;
                Ok(())
            }
            Ok(answer) => {
                if answer.status != 503 {
                    shared.bad(format!("watcher {i}, update {n}: {}", answer.text()));
                }
                Err(answer.text())
            }
            Err(e) => Err(e.to_string()),
        }
    };
    watch(
        shared,
        &format!("updates at server {i}"),
        &shared.updates_away,
        || shared.moves[i].count() + shared.log_moves.count(),
        &mut send,
    );
    // All servers are there: the outcome of the last one is known, too.
    let begun = Instant::now();
    while send().is_err() {
        if begun.elapsed() > READ * 6 {
            let called = called.unwrap_or(begun);
            shared.update_ends(client, n, called, "unknown");
            shared.bad(format!("watcher {i}, update {n} was not made"));
            break;
        }
        std::thread::sleep(LOOK);
    }
    done
}
