//! `jindou bench cluster faults`: servers are killed and stopped and their links cut while clients of each server ask LUBM's
//! queries. Right answers are those of one server over the uncut data, whose numbers of rows are the published ones.

use super::servers::{alone, place, start};
use crate::args::cluster::BenchFaults;
use crate::replicas::relay::Link;
use crate::replicas::servers::{Moves, PATIENCE, Server};
use jindou::{Error, Result};
use jindou_model::random::splitmix64;
use jindou_model::sync::lock;
use jindou_peers::http::Endpoint;
use jindou_peers::{Failure, Seen};
use jindou_workloads::queries::lubm::QUERIES;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The promise of 3 s, and half a second for a loaded machine.
const LATE: Duration = Duration::from_millis(3500);
/// The client gives up: the query hangs.
const HANGS: Duration = Duration::from_secs(20);

/// Numbers of answers by their kind.
#[derive(Default)]
struct Counts {
    right: AtomicU64,
    /// An error that names a server.
    named: AtomicU64,
    /// The server that was asked is the one that is away.
    unreachable: AtomicU64,
    /// Rows had been sent when a server was lost, so the transfer was broken off.
    broken_off: AtomicU64,
    wrong: AtomicU64,
    /// An error without a server's name.
    unnamed: AtomicU64,
    /// Errors that came later than they may.
    late: AtomicU64,
    hanging: AtomicU64,
    slowest_answer: Mutex<Duration>,
    slowest_error: Mutex<Duration>,
    first_bad: Mutex<Option<String>>,
}

impl Counts {
    fn add(&self, of: &AtomicU64) {
        of.fetch_add(1, Ordering::Relaxed);
    }

    fn bad(&self, of: &AtomicU64, what: impl FnOnce() -> String) {
        self.add(of);
        lock(&self.first_bad).get_or_insert_with(what);
    }
}

/// The queries whose numbers of rows are published, with their right answers.
fn known(whole: &Server, universities: u32) -> Result<Vec<(&'static str, Seen)>> {
    let mut endpoint = Endpoint::new(whole.url(), &[]);
    let mut all = Vec::new();
    for q in &QUERIES {
        let seen = endpoint.check(q.text, HANGS);
        let seen = seen.map_err(|e| Error::external(format!("{}: {e}", q.name)))?;
        if let Some(rows) = q.rows(universities)
            && rows != seen.rows
        {
            let what = format!(
                "{}: {} rows from one server, {rows} published",
                q.name, seen.rows
            );
            return Err(Error::external(what));
        }
        all.push((q.text, seen));
    }
    Ok(all)
}

/// Asks one server again and again. Nothing is expected of it where its process is stopped or killed while it is asked, even if it is back
/// before its answer is.
fn ask(
    url: &str,
    names: &[String],
    known: &[(&str, Seen)],
    mut state: u64,
    end: &AtomicBool,
    away: &Moves,
    counts: &Counts,
) {
    let mut endpoint = Endpoint::new(url, &[]);
    while !end.load(Ordering::SeqCst) {
        let (text, right) = &known[splitmix64(&mut state) as usize % known.len()];
        let moves = away.count();
        let begun = Instant::now();
        let answer = endpoint.check(text, HANGS);
        let took = begun.elapsed();
        let excused = away.was_away(moves);
        let (right_answer, said) = match &answer {
            Ok(_) => (true, String::new()),
            Err(e) => (false, e.to_string()),
        };
        match answer {
            Ok(seen) if seen == *right => counts.add(&counts.right),
            Ok(seen) => counts.bad(&counts.wrong, || {
                format!("{url}: {seen:?}, not {right:?}: {text}")
            }),
            Err(Failure::Timeout) => {
                counts.bad(&counts.hanging, || format!("{url}: no answer in {HANGS:?}"));
            }
            Err(Failure::Refused(_)) if names.iter().any(|n| said.contains(n)) => {
                counts.add(&counts.named);
            }
            Err(_) if excused => {
                counts.add(&counts.unreachable);
                std::thread::sleep(Duration::from_millis(20));
                continue;
            }
            Err(Failure::Broken(_)) => counts.add(&counts.broken_off),
            Err(_) => counts.bad(&counts.unnamed, || format!("{url}: {said}")),
        }
        if excused {
            continue;
        }
        let mut slowest = lock(if right_answer {
            &counts.slowest_answer
        } else {
            &counts.slowest_error
        });
        *slowest = took.max(*slowest);
        drop(slowest);
        // A right answer may take as long as its query's time limit.
        if took > LATE && !right_answer {
            counts.bad(&counts.late, || {
                format!("{url}: an error after {took:?}: {said}")
            });
        }
    }
}

/// Status 3 if an answer was wrong, late or none.
pub fn run(a: &BenchFaults) -> Result<ExitCode> {
    if a.servers < 2 {
        return Err(Error::Unsupported(
            "faults needs at least two servers".into(),
        ));
    }
    let mut place = place(&a.setup, a.servers)?;
    place.is_relayed = true;
    let known = known(&alone(&place, &a.setup)?, a.setup.universities)?;
    let mut servers = start(&place, a.servers, "off")?;
    let named = |server: &Server| format!("server {}:", server.name);
    let names: Vec<String> = servers.iter().map(named).collect();
    let urls: Vec<String> = servers.iter().map(Server::url).collect();
    println!(
        "LUBM({}) in {} shards, {} servers; {} kills, {} stops, {} cut links; seed {}",
        a.setup.universities, a.setup.shards, a.servers, a.kills, a.stops, a.cuts, a.seed
    );
    let (end, counts) = (AtomicBool::new(false), Counts::default());
    let away: Vec<Moves> = urls.iter().map(|_| Moves::default()).collect();
    let mut state = a.seed;
    let begun = Instant::now();
    let faults = std::thread::scope(|scope| {
        for (i, url) in urls.iter().enumerate() {
            let seed = splitmix64(&mut state);
            let (known, names, end, away, counts) = (&known, &names, &end, &away[i], &counts);
            scope.spawn(move || ask(url, names, known, seed, end, away, counts));
        }
        let done = (|| -> Result<()> {
            for (kind, times) in [
                ("kills", a.kills),
                ("stops", a.stops),
                ("cut links", a.cuts),
            ] {
                for _ in 0..times {
                    one_fault(kind, &mut servers, &away, &mut state)?;
                }
                println!(
                    "{times} {kind} after {:.0} s",
                    begun.elapsed().as_secs_f64()
                );
            }
            Ok(())
        })();
        end.store(true, Ordering::SeqCst);
        done
    });
    faults?;
    let n = |c: &AtomicU64| c.load(Ordering::Relaxed).to_string();
    let seconds = |d: &Mutex<Duration>| format!("{:.2}", lock(d).as_secs_f64());
    for (what, figure) in [
        ("right answers", n(&counts.right)),
        ("errors that name a server", n(&counts.named)),
        (
            "the server asked was killed or stopped",
            n(&counts.unreachable),
        ),
        ("cut off after rows had been sent", n(&counts.broken_off)),
        ("wrong or partial answers", n(&counts.wrong)),
        ("errors without a server's name", n(&counts.unnamed)),
        ("errors after more than 3.5 s", n(&counts.late)),
        ("no answer in 20 s", n(&counts.hanging)),
        ("slowest right answer, s", seconds(&counts.slowest_answer)),
        ("slowest error, s", seconds(&counts.slowest_error)),
    ] {
        println!("{what:<40} {figure:>9}");
    }
    if let Some(bad) = &*lock(&counts.first_bad) {
        println!("first bad answer: {bad}");
        return Ok(ExitCode::from(3));
    }
    Ok(ExitCode::SUCCESS)
}

/// One fault, and then the wait until every server answers.
fn one_fault(kind: &str, servers: &mut [Server], away: &[Moves], state: &mut u64) -> Result<()> {
    let mut up_to = |most: u64| splitmix64(state) % most;
    let i = up_to(away.len() as u64) as usize;
    let pause = Duration::from_millis(up_to(4000));
    match kind {
        "kills" => {
            away[i].add();
            servers[i].kill();
            std::thread::sleep(pause / 4);
            servers[i].start()?;
            servers[i].ready(PATIENCE)?;
            away[i].add();
        }
        "stops" => {
            away[i].add();
            if let Some(process) = &servers[i].process {
                process.stop();
                std::thread::sleep(pause);
                process.go_on();
            }
            servers[i].ready(PATIENCE)?;
            away[i].add();
        }
        _ => {
            let link = if up_to(2) == 0 {
                Link::Closed
            } else {
                Link::Silent
            };
            if let Some(relay) = &servers[i].link {
                relay.set(link);
                std::thread::sleep(pause);
                relay.set(Link::Whole);
            }
        }
    }
    whole_again(servers)
}

/// Waits until every server answers a query to all shards: nothing has to help.
fn whole_again(servers: &[Server]) -> Result<()> {
    let until = Instant::now() + Duration::from_secs(30);
    for server in servers {
        let mut endpoint = Endpoint::new(server.url(), &[]);
        while let Err(e) = endpoint.time(QUERIES[1].text, HANGS) {
            if Instant::now() > until {
                let what = format!("{} does not recover: {e}", server.name);
                return Err(Error::external(what));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    Ok(())
}
