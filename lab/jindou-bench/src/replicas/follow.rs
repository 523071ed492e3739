//! `jindou bench replicas follow`: how long after an update's acknowledgement the other servers show it to queries that wait for
//! nothing (`consistency=any`), at a steady rate of triples.

use super::client::{Address, Client, Request};
use super::servers::{Place, wrong};
use crate::args::replicas::ReplicasFollow;
use crate::measure::Times;
use jindou::Result;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(30);
/// Clients that write: one alone would wait for each answer.
const WRITERS: u32 = 4;
/// Time between looks at a server.
const LOOK: Duration = Duration::from_micros(500);

/// The snapshots that a server showed, each with the time at which it was first seen.
fn watch(address: Address, end: &AtomicBool) -> Result<Vec<(u64, Instant)>> {
    let mut client = Client::new(address, LIMIT);
    let request = Request::query("ASK { <http://e/nothing> ?p ?o }", Some("any"));
    let mut seen: Vec<(u64, Instant)> = Vec::new();
    while !end.load(Ordering::Relaxed) {
        let answer = client.succeed(&request)?;
        let now = Instant::now();
        let number = answer.snapshot().ok_or_else(|| wrong(answer.text()))?;
        if seen.last().is_none_or(|(last, _)| *last < number) {
            seen.push((number, now));
        }
        std::thread::sleep(LOOK);
    }
    Ok(seen)
}

/// Sends every [`WRITERS`]th transaction, beginning with the one of this number, at its time. Gives each one's snapshot, with the time of its
/// acknowledgement.
fn write(
    address: Address,
    a: &ReplicasFollow,
    begun: Instant,
    first: u32,
) -> Result<Vec<(u64, Instant)>> {
    let mut client = Client::new(address, LIMIT);
    let every = Duration::from_secs(1) / a.transactions.max(1);
    let of_each = a.triples / a.transactions.max(1);
    let mut done = Vec::new();
    for n in (first..).step_by(WRITERS as usize) {
        let due = begun + every * n;
        if due >= begun + a.time {
            break;
        }
        let triples: String = (0..of_each)
            .map(|i| format!("<http://e/{n}/{i}> <http://e/number> {i} . "))
            .collect();
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        let update = Request::update(format!("INSERT DATA {{ {triples} }}"));
        let answer = client.succeed(&update)?;
        let number = answer.snapshot().ok_or_else(|| wrong(answer.text()))?;
        done.push((number, Instant::now()));
    }
    Ok(done)
}

pub fn run(a: &ReplicasFollow) -> Result<ExitCode> {
    let place = Place::new(&a.setup)?;
    let servers = place.replicas(a.setup.servers, &[])?;
    let end = AtomicBool::new(false);
    let begun = Instant::now();
    let (done, seen) = std::thread::scope(|scope| {
        let watches: Vec<_> = (servers[1..].iter())
            .map(|server| {
                let (address, end) = (server.address.clone(), &end);
                scope.spawn(move || watch(address, end))
            })
            .collect();
        let writers: Vec<_> = (0..WRITERS)
            .map(|first| {
                let address = servers[0].address.clone();
                scope.spawn(move || write(address, a, begun, first))
            })
            .collect();
        let done: Vec<_> = writers.into_iter().map(|w| w.join()).collect();
        std::thread::sleep(Duration::from_secs(1));
        end.store(true, Ordering::Relaxed);
        let seen: Vec<_> = watches.into_iter().map(|w| w.join()).collect();
        (done, seen)
    });
    let mut all = Vec::new();
    for writer in done {
        all.extend(writer.map_err(|_| wrong("a writer ended"))??);
    }
    let done = all;
    let seconds = (begun.elapsed() - Duration::from_secs(1)).as_secs_f64();
    let triples = done.len() as f64 * f64::from(a.triples / a.transactions.max(1));
    println!(
        "{} transactions, {:.0} triples/s",
        done.len(),
        triples / seconds
    );
    println!("server  median, ms  99 %, ms  longest, ms");
    for (server, seen) in servers[1..].iter().zip(seen) {
        let seen = seen.map_err(|_| wrong("a watcher ended"))??;
        let mut behind = Vec::new();
        for (number, acknowledged) in &done {
            let shown = seen.get(seen.partition_point(|(n, _)| n < number));
            let (_, at) = shown
                .ok_or_else(|| wrong(format!("{} does not show snapshot {number}", server.name)))?;
            behind.push(at.saturating_duration_since(*acknowledged));
        }
        let times = Times::new(behind);
        println!(
            "{:<7} {:>10.2} {:>9.2} {:>12.2}",
            server.name,
            times.median(),
            times.quantile(0.99),
            times.max()
        );
    }
    Ok(ExitCode::SUCCESS)
}
