//! For how long servers that are there answer nothing.

use super::clients::update;
use super::{READ, Shared};
use crate::replicas::client::{Client, Request};
use jindou_model::sync::lock;
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Time between requests of a watcher.
const LOOK: Duration = Duration::from_millis(10);

/// Sends to one server all the time, and keeps the longest time without an answer while it was there. `moves` are those of what must
/// be there.
fn watch(
    shared: &Shared,
    longest: &Mutex<Duration>,
    moves: impl Fn() -> u64,
    mut answers: impl FnMut() -> bool,
) {
    let mut before = moves();
    let mut answered = Instant::now();
    while !shared.ended() {
        let is_right = answers();
        let now = moves();
        if before != now || !now.is_multiple_of(2) {
            (before, answered) = (now, Instant::now());
        }
        let mut longest = lock(longest);
        *longest = answered.elapsed().max(*longest);
        drop(longest);
        if is_right {
            answered = Instant::now();
        }
        std::thread::sleep(LOOK);
    }
}

/// Reads at one server.
pub(super) fn reads(shared: &Shared, i: usize) {
    let mut client = Client::new(shared.addresses[i].clone(), READ);
    let request = Request::query("ASK { <http://e/c0> ?p ?o }", None);
    watch(
        shared,
        &shared.reads_away,
        || shared.moves(i),
        || client.send(&request).is_ok_and(|a| a.is_success()),
    );
}

/// Counts at one server as a client that goes to no other. Gives how far it counted.
pub(super) fn updates(shared: &Shared, client: usize, i: usize) -> u64 {
    let mut connection = Client::new(shared.addresses[i].clone(), READ);
    let (mut n, mut done) = (1, 0);
    let mut send = || {
        let request = Request::update(update(client, n))
            .with("Idempotency-Key", format!("c{client}-{n}"))
            .with("Accept", "application/json");
        match connection.send(&request) {
            Ok(answer) if answer.is_success() => {
                shared.updates.fetch_add(1, Ordering::Relaxed);
                done = n;
                n += 1;
                true
            }
            Ok(answer) if answer.status == 503 => false,
            Ok(answer) => {
                shared.bad(format!("watcher {i}, update {n}: {}", answer.text()));
                false
            }
            Err(_) => false,
        }
    };
    watch(
        shared,
        &shared.updates_away,
        || shared.moves(i) + shared.log_moves.load(Ordering::SeqCst),
        &mut send,
    );
    // All servers are there: the outcome of the last one is known, too.
    let begun = Instant::now();
    while !send() {
        if begun.elapsed() > READ * 6 {
            shared.bad(format!("watcher {i}, update {n} was not made"));
            break;
        }
        std::thread::sleep(LOOK);
    }
    done
}
