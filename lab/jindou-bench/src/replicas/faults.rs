//! `jindou bench replicas faults`: clients of each server count in the store and read their counts everywhere, while servers are
//! killed, stopped and ended and their log is taken away. A client knows what it must read, since it alone changes its count: one
//! less is lost, one more was made twice, and a read that begins after an acknowledgement may not be older.

use super::client::{Client, Request};
use super::servers::{PATIENCE, Place, Server, wrong};
use crate::args::replicas::ReplicasFaults;
use jindou::{Error, Result};
use jindou_model::random::splitmix64;
use jindou_model::sync::lock;
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A client tries another server after so long without an answer.
const NEXT: Duration = Duration::from_secs(6);
/// An update that no server takes for so long is an error.
const HOPELESS: Duration = Duration::from_secs(90);
/// Longest wait of a read.
const READ: Duration = Duration::from_secs(10);
/// Time between reads of the watchers.
const LOOK: Duration = Duration::from_millis(10);

/// Kinds of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    KillAny,
    KillWriter,
    StopAny,
    StopWriter,
    Terminate,
    EmptyFolder,
    LogAway,
    KillAll,
}

const KINDS: [(Kind, &str); 8] = [
    (Kind::KillWriter, "writer killed"),
    (Kind::StopWriter, "writer stopped for 1 to 20 s"),
    (Kind::KillAny, "server killed"),
    (Kind::StopAny, "server stopped for 1 to 20 s"),
    (Kind::Terminate, "server ended by SIGTERM"),
    (Kind::EmptyFolder, "server killed, its folder emptied"),
    (Kind::LogAway, "log away for 1 to 8 s"),
    (Kind::KillAll, "all killed"),
];

/// State of all threads.
struct Shared {
    ports: Vec<u16>,
    end: AtomicBool,
    /// By server: moves away and back; odd while it is away.
    moves: Vec<AtomicU64>,

    updates: AtomicU64,
    repeated: AtomicU64,
    reads: AtomicU64,
    /// Reads refused, or not answered, by servers that are not away.
    reads_refused: AtomicU64,
    /// Last acknowledgement of any client, longest time between two, longest wait of one update.
    acknowledged: Mutex<(Instant, Duration, Duration)>,
    /// Longest time for which a server that is not away did not answer a read.
    reads_away: Mutex<Duration>,
    bad: Mutex<Vec<String>>,
}

impl Shared {
    fn moves(&self, i: usize) -> u64 {
        self.moves[i].load(Ordering::SeqCst)
    }

    /// True if a server was away at any time since it had made this many moves.
    fn was_away(&self, i: usize, moves: u64) -> bool {
        !moves.is_multiple_of(2) || self.moves(i) != moves
    }

    fn goes(&self, i: usize) {
        self.moves[i].fetch_add(1, Ordering::SeqCst);
    }

    fn bad(&self, what: String) {
        let mut bad = lock(&self.bad);
        if bad.len() < 20 {
            println!("bad: {what}");
        }
        bad.push(what);
    }

    fn clients(&self, limit: Duration) -> Vec<Client> {
        self.ports.iter().map(|&p| Client::new(p, limit)).collect()
    }

    fn ended(&self) -> bool {
        self.end.load(Ordering::SeqCst)
    }
}

fn count_of(client: usize) -> String {
    format!("SELECT ?n {{ <http://e/c{client}> <http://e/count> ?n }}")
}

/// Adds a number and one to the client's count.
fn update(client: usize, n: u64) -> String {
    format!(
        "INSERT DATA {{ <http://e/c{client}> <http://e/n> {n} }} ; DELETE {{ ?c <http://e/count> ?old }} INSERT {{ ?c <http://e/count> ?new }} WHERE {{ BIND(<http://e/c{client}> AS ?c) OPTIONAL {{ ?c <http://e/count> ?old }} BIND(COALESCE(?old, 0) + 1 AS ?new) }}"
    )
}

/// The only number in an answer as TSV.
fn number(text: &str) -> Option<u64> {
    let mut rows = text.lines().skip(1);
    let row = rows.next()?;
    let digits = row.trim_start_matches('"').split('"').next()?;
    rows.next().is_none().then(|| digits.parse().ok())?
}

/// One client. Gives how far it counted.
fn count(shared: &Shared, client: usize, home: usize, mut state: u64) -> u64 {
    let mut servers = shared.clients(NEXT);
    let mut readers = shared.clients(READ);
    let (mut n, mut at, mut newest) = (0, home, 0);
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
                    shared.bad(format!("client {client}, update {n}: {}", answer.text()));
                    return n - 1;
                }
                Err(e) => said.push(e.to_string()),
            }
            if begun.elapsed() > HOPELESS {
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
        shared.updates.fetch_add(1, Ordering::Relaxed);
        {
            let mut acknowledged = lock(&shared.acknowledged);
            let now = Instant::now();
            acknowledged.1 = acknowledged.1.max(now.duration_since(acknowledged.0));
            acknowledged.2 = acknowledged.2.max(begun.elapsed());
            acknowledged.0 = now;
        }
        if snapshot < newest {
            shared.bad(format!(
                "client {client}, update {n}: snapshot {snapshot} after {newest}"
            ));
        }
        newest = newest.max(snapshot);
        let i = splitmix64(&mut state) as usize % readers.len();
        let at_least = format!("at-least={newest}");
        let consistency = match splitmix64(&mut state) % 4 {
            0 => Some("strict"),
            1 => Some(at_least.as_str()),
            _ => None,
        };
        let request = Request::query(count_of(client), consistency);
        let moves = shared.moves(i);
        shared.reads.fetch_add(1, Ordering::Relaxed);
        match readers[i].send(&request) {
            Ok(answer) if answer.is_success() => {
                let read = number(&answer.text());
                let from = answer.snapshot().unwrap_or_default();
                if read != Some(n) || from < newest {
                    shared.bad(format!(
                        "client {client} reads {:?} of snapshot {from} at server {i} ({consistency:?}, moves {moves}) after {n} was acknowledged as snapshot {snapshot}",
                        answer.text()
                    ));
                }
            }
            Ok(answer) if answer.status == 503 => {
                if !shared.was_away(i, moves) {
                    shared.reads_refused.fetch_add(1, Ordering::Relaxed);
                }
            }
            Ok(answer) => shared.bad(format!("client {client}, a read: {}", answer.text())),
            Err(_) if shared.was_away(i, moves) => {}
            Err(e) => shared.bad(format!("client {client}: server {i} does not answer: {e}")),
        }
        // Back to its own server, once that is there again.
        if shared.moves(home).is_multiple_of(2) {
            at = home;
        }
    }
    n
}

/// Reads at one server all the time, and keeps for how long it gave no answer.
fn watch(shared: &Shared, i: usize) {
    let mut client = Client::new(shared.ports[i], READ);
    let request = Request::query("ASK { <http://e/c0> ?p ?o }", None);
    let mut moves = shared.moves(i);
    let mut answered = Instant::now();
    while !shared.ended() {
        let begun = Instant::now();
        let answer = client.send(&request);
        let is_right = answer.is_ok_and(|a| a.is_success());
        if shared.was_away(i, moves) {
            (moves, answered) = (shared.moves(i), Instant::now());
        }
        let mut longest = lock(&shared.reads_away);
        *longest = answered.max(begun).elapsed().max(*longest);
        if is_right {
            answered = Instant::now();
        } else {
            *longest = answered.elapsed().max(*longest);
        }
        drop(longest);
        std::thread::sleep(LOOK);
    }
}

/// The server that writes, by what the servers say.
fn writer(servers: &[Server]) -> Option<usize> {
    servers.iter().position(|server| {
        let metrics = server.client(READ).send(&Request::new("GET", "/metrics"));
        metrics.is_ok_and(|a| a.text().lines().any(|l| l == "jindou_replica_writes 1"))
    })
}

/// One fault, and the wait until all servers are ready again. Gives how long that took for the server that was away.
fn one_fault(
    kind: Kind,
    servers: &mut [Server],
    place: &Place,
    shared: &Shared,
    state: &mut u64,
) -> Result<Duration> {
    let mut up_to = |most: u64| splitmix64(state) % most;
    let any = up_to(servers.len() as u64) as usize;
    let i = match kind {
        Kind::KillWriter | Kind::StopWriter => writer(servers).unwrap_or(any),
        _ => any,
    };
    let short = Duration::from_millis(up_to(2000));
    let long = Duration::from_millis(1000 + up_to(19_000));
    let begun;
    match kind {
        Kind::KillAny | Kind::KillWriter | Kind::EmptyFolder | Kind::Terminate => {
            shared.goes(i);
            if kind == Kind::Terminate
                && let Some(process) = &mut servers[i].process
            {
                process.terminate();
                if !process.ends_within(PATIENCE) {
                    shared.bad(format!("server {i} does not end"));
                }
            }
            servers[i].kill();
            if kind == Kind::EmptyFolder {
                let store = &servers[i].store;
                std::fs::remove_dir_all(store).map_err(|e| Error::io(store, e))?;
            }
            std::thread::sleep(short);
            begun = Instant::now();
            servers[i].start()?;
            servers[i].ready(PATIENCE)?;
            shared.goes(i);
        }
        Kind::StopAny | Kind::StopWriter => {
            shared.goes(i);
            if let Some(process) = &servers[i].process {
                process.stop();
                std::thread::sleep(long);
                process.go_on();
            }
            begun = Instant::now();
            servers[i].ready(PATIENCE)?;
            shared.goes(i);
        }
        Kind::LogAway => {
            let Some(log) = place.log_folder() else {
                return Ok(Duration::ZERO);
            };
            let away = log.with_extension("away");
            std::fs::rename(log, &away).map_err(|e| Error::io(log, e))?;
            std::thread::sleep(long.mul_f64(8.0 / 20.0));
            if log.exists() {
                let names = std::fs::read_dir(log).map(|d| d.flatten().count());
                shared.bad(format!(
                    "a log that is away was made again: {names:?} entries"
                ));
                std::fs::remove_dir_all(log).map_err(|e| Error::io(log, e))?;
            }
            std::fs::rename(&away, log).map_err(|e| Error::io(log, e))?;
            begun = Instant::now();
        }
        Kind::KillAll => {
            (0..servers.len()).for_each(|i| shared.goes(i));
            servers.iter_mut().for_each(Server::kill);
            begun = Instant::now();
            for server in servers.iter_mut() {
                server.start()?;
            }
            for server in servers.iter_mut() {
                server.ready(PATIENCE)?;
            }
            (0..servers.len()).for_each(|i| shared.goes(i));
        }
    }
    for server in servers.iter_mut() {
        server.ready(PATIENCE)?;
    }
    Ok(begun.elapsed())
}

/// The worst of all rounds of one kind.
#[derive(Default)]
struct Worst {
    rounds: u32,
    between: Duration,
    update: Duration,
    reads: Duration,
    back: Duration,
}

/// Reads everything at one server: each client's numbers and its count.
fn all_there(server: &Server, counted: &[u64]) -> Result<Vec<String>> {
    let mut wrongs = Vec::new();
    let mut client = server.client(PATIENCE);
    for (c, &n) in counted.iter().enumerate() {
        let failed = |e: std::io::Error| wrong(format!("{}: {e}", server.name));
        let answer = client.send(&Request::query(count_of(c), Some("strict")));
        let answer = answer.map_err(failed)?;
        let count = number(&answer.text()).unwrap_or_default();
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

/// Status 3 if something was lost, made twice, or wrong.
pub fn run(a: &ReplicasFaults) -> Result<ExitCode> {
    if a.setup.servers < 2 {
        return Err(Error::Usage("faults needs at least two servers".into()));
    }
    let place = Place::new(&a.setup)?;
    let mut servers = place.replicas(a.setup.servers, &[])?;
    let shared = Shared {
        ports: servers.iter().map(|s| s.port).collect(),
        end: AtomicBool::new(false),
        moves: servers.iter().map(|_| AtomicU64::new(0)).collect(),
        updates: AtomicU64::new(0),
        repeated: AtomicU64::new(0),
        reads: AtomicU64::new(0),
        reads_refused: AtomicU64::new(0),
        acknowledged: Mutex::new((Instant::now(), Duration::ZERO, Duration::ZERO)),
        reads_away: Mutex::default(),
        bad: Mutex::default(),
    };
    let mut state = a.seed;
    let mut worst: BTreeMap<Kind, Worst> = BTreeMap::new();
    let begun = Instant::now();
    let (done, counted) = std::thread::scope(|scope| {
        for i in 0..servers.len() {
            let shared = &shared;
            scope.spawn(move || watch(shared, i));
        }
        let clients: Vec<_> = (0..servers.len() * a.clients)
            .map(|c| {
                let (shared, seed) = (&shared, splitmix64(&mut state));
                let home = c % servers.len();
                scope.spawn(move || count(shared, c, home, seed))
            })
            .collect();
        let mut rounds = || -> Result<()> {
            std::thread::sleep(a.pause);
            for round in 0..a.rounds {
                let (kind, name) = KINDS[round as usize % KINDS.len()];
                {
                    let mut acknowledged = lock(&shared.acknowledged);
                    (acknowledged.1, acknowledged.2) = Default::default();
                }
                *lock(&shared.reads_away) = Duration::ZERO;
                let back = one_fault(kind, &mut servers, &place, &shared, &mut state)?;
                std::thread::sleep(a.pause);
                let (last, between, update) = *lock(&shared.acknowledged);
                let between = between.max(last.elapsed());
                let reads = *lock(&shared.reads_away);
                println!(
                    "{:>4} {name:<34} updates away {:.2} s, longest {:.2} s; reads away {:.2} s; ready after {:.2} s",
                    round + 1,
                    between.as_secs_f64(),
                    update.as_secs_f64(),
                    reads.as_secs_f64(),
                    back.as_secs_f64(),
                );
                let worst = worst.entry(kind).or_default();
                worst.rounds += 1;
                worst.between = worst.between.max(between);
                worst.update = worst.update.max(update);
                worst.reads = worst.reads.max(reads);
                worst.back = worst.back.max(back);
            }
            Ok(())
        };
        let done = rounds();
        shared.end.store(true, Ordering::SeqCst);
        let counted: Vec<u64> = clients
            .into_iter()
            .map(|c| c.join().unwrap_or_default())
            .collect();
        (done, counted)
    });
    done?;
    for server in &servers {
        for what in all_there(server, &counted)? {
            shared.bad(what);
        }
    }
    // What the log alone holds.
    servers.iter_mut().for_each(Server::kill);
    let last = &mut servers[0];
    std::fs::remove_dir_all(&last.store).map_err(|e| Error::io(&last.store, e))?;
    last.start()?;
    last.ready(PATIENCE)?;
    for what in all_there(last, &counted)? {
        shared.bad(format!("from the log alone: {what}"));
    }
    println!("at worst, in seconds:");
    println!("fault                               times  no update  one update  no read  ready");
    for (kind, name) in KINDS {
        if let Some(w) = worst.get(&kind) {
            println!(
                "{name:<34} {:>6} {:>10.2} {:>11.2} {:>8.2} {:>6.2}",
                w.rounds,
                w.between.as_secs_f64(),
                w.update.as_secs_f64(),
                w.reads.as_secs_f64(),
                w.back.as_secs_f64()
            );
        }
    }
    let n = |c: &AtomicU64| c.load(Ordering::Relaxed);
    let bad = lock(&shared.bad).len();
    println!(
        "{} updates acknowledged, {} sent again; {} reads, {} refused by servers that were not away; {bad} lost, repeated, wrong or too old; {:.0} s; seed {}",
        n(&shared.updates),
        n(&shared.repeated),
        n(&shared.reads),
        n(&shared.reads_refused),
        begun.elapsed().as_secs_f64(),
        a.seed
    );
    Ok(ExitCode::from(if bad > 0 { 3 } else { 0 }))
}
