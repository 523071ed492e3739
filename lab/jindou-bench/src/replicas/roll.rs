//! `jindou bench replicas roll`: every server is ended by SIGTERM and started again in turn, under queries and updates at a steady rate.
//! A client whose server is away tries another one once.

use super::client::{Address, Client, Request};
use super::servers::{PATIENCE, Place, Server};
use crate::args::replicas::ReplicasRoll;
use crate::measure::Times;
use jindou::Result;
use jindou_model::sync::lock;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A request that takes longer has failed.
const LIMIT: Duration = Duration::from_secs(10);
/// Clients for queries, and as many for updates.
const CLIENTS: u32 = 10;
/// Time between the restarts of two servers.
const PAUSE: Duration = Duration::from_secs(2);

/// Observations of the clients.
#[derive(Default)]
struct Seen {
    times: Mutex<Vec<Duration>>,
    second: AtomicU64,
    failed: Mutex<Vec<String>>,
}

/// Sends requests at a rate, each to the next server in turn.
fn send(
    addresses: &[Address],
    first: usize,
    every: Duration,
    end: &AtomicBool,
    seen: &Seen,
    make: impl Fn(u64) -> Request,
) {
    let mut servers: Vec<Client> = (addresses.iter().cloned())
        .map(|a| Client::new(a, LIMIT))
        .collect();
    let begun = Instant::now();
    for n in 0.. {
        let due = begun + every * n;
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        if end.load(Ordering::SeqCst) {
            break;
        }
        let (request, sent) = (make(u64::from(n)), Instant::now());
        let mut said = String::new();
        let done = (0..2).any(|attempt| {
            if attempt == 1 {
                seen.second.fetch_add(1, Ordering::Relaxed);
            }
            let i = (first + n as usize + attempt) % servers.len();
            match servers[i].send(&request) {
                Ok(answer) if answer.is_success() => true,
                Ok(answer) => {
                    said += &format!("server {i}: {} ", answer.text().trim_end());
                    false
                }
                Err(e) => {
                    said += &format!("server {i}: {e} ");
                    false
                }
            }
        });
        match done {
            true => lock(&seen.times).push(sent.elapsed()),
            false => lock(&seen.failed).push(said),
        }
    }
}

/// Outcome of [`under_load`].
pub struct Load {
    pub failed: usize,
    pub longest_update: Duration,
}

/// Does something while clients send queries and updates at these rates a second, and prints what they saw.
pub fn under_load(
    addresses: &[Address],
    (a_second, updates_a_second): (u32, u32),
    act: impl FnOnce() -> Result<()>,
) -> Result<Load> {
    let end = AtomicBool::new(false);
    let (queries, updates) = (Seen::default(), Seen::default());
    let every =
        |a_second: u32| Duration::from_secs_f64(f64::from(CLIENTS) / f64::from(a_second.max(1)));
    std::thread::scope(|scope| {
        for c in 0..CLIENTS {
            let (end, queries, updates) = (&end, &queries, &updates);
            let first = c as usize;
            scope.spawn(move || {
                send(addresses, first, every(a_second), end, queries, |_| {
                    Request::query(
                        format!("SELECT ?n {{ <http://e/c{c}> <http://e/n> ?n }} LIMIT 10"),
                        None,
                    )
                });
            });
            scope.spawn(move || {
                let every = every(updates_a_second);
                send(addresses, first, every, end, updates, |n| {
                    Request::update(format!(
                        "INSERT DATA {{ <http://e/c{c}> <http://e/n> {n} }}"
                    ))
                    .with("Idempotency-Key", format!("c{c}-{n}"))
                });
            });
        }
        std::thread::sleep(PAUSE);
        let done = act();
        end.store(true, Ordering::SeqCst);
        done
    })?;
    let mut load = Load {
        failed: 0,
        longest_update: Duration::ZERO,
    };
    for (name, seen) in [("queries", &queries), ("updates", &updates)] {
        let all = std::mem::take(&mut *lock(&seen.times));
        load.longest_update = all.iter().copied().max().unwrap_or_default();
        let (times, wrong) = (Times::new(all), lock(&seen.failed));
        println!(
            "{name}: {} failed, {} sent to a second server; median {:.2} ms, 99 % {:.2} ms, longest {:.2} ms",
            wrong.len(),
            seen.second.load(Ordering::Relaxed),
            times.median(),
            times.quantile(0.99),
            times.max()
        );
        for what in wrong.iter().take(3) {
            println!("  {what}");
        }
        load.failed += wrong.len();
    }
    Ok(load)
}

/// Ends a server by SIGTERM.
pub fn end(server: &mut Server) {
    if !server.end() {
        println!("server {} does not end", server.name);
    }
}

/// Status 3 if a request failed.
pub fn run(a: &ReplicasRoll) -> Result<ExitCode> {
    let place = Place::new(&a.setup)?;
    let mut servers = place.replicas(a.setup.servers, &[])?;
    let addresses: Vec<Address> = servers.iter().map(|s| s.address.clone()).collect();
    let load = under_load(&addresses, (a.queries, a.updates), || {
        for _ in 0..a.rounds {
            for server in &mut servers {
                let begun = Instant::now();
                end(server);
                let ended = begun.elapsed();
                server.start()?;
                server.ready(PATIENCE)?;
                println!(
                    "server {} ended after {:.2} s and was ready after {:.2} s",
                    server.name,
                    ended.as_secs_f64(),
                    begun.elapsed().as_secs_f64()
                );
                std::thread::sleep(PAUSE);
            }
        }
        Ok(())
    })?;
    Ok(ExitCode::from(if load.failed > 0 { 3 } else { 0 }))
}
