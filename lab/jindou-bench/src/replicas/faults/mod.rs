//! `jindou bench replicas faults`: clients of each server count in the store and read their counts everywhere, while servers are
//! killed, stopped and ended and their log is taken away. A client knows what it must read, since it alone changes its count: one
//! less is lost, one more was made twice, and a read that begins after an acknowledgement may not be older. It writes the same
//! count to two vertices, and no read may see two.

mod clients;
mod history;
mod shards;
mod watch;

use super::client::{Address, Client, Request};
use super::lubm::wrong_rows;
use super::servers::{Moves, PATIENCE, Place, Server};
use crate::args::replicas::ReplicasFaults;
use clients::{all_there, count};
use history::History;
use jindou::{Error, Result};
use jindou_model::random::splitmix64;
use jindou_model::sync::lock;
use jindou_workloads::lubm::Lubm;
use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Longest wait of a read, and of a watcher's update.
const READ: Duration = Duration::from_secs(10);

/// Time after which a server that others could not tell has seen an update that was acknowledged (docs/replicas.md).
const FOUND_OUT: Duration = Duration::from_millis(3500);

/// Time after which a server that goes on is counted by the others: two beats.
const COUNTED: Duration = Duration::from_secs(1);

/// Edits that start a merge of servers of shards, so that some merges run by themselves.
const MERGE_AT: u32 = 100_000;

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
    CutLink,
    CutOneWay,
    CutServer,
    CutWriter,
    FullStore,
    FullLog,
    KillMerging,
    KillMerged,
    KillUploading,
    KillDownloading,
    KillHolders,
    EmptyShard,
    ChangeByte,
}

/// Names, and the bound on the time without reads at servers of shards that were there, in seconds.
const KINDS: [(Kind, &str, Option<f64>); 21] = [
    (Kind::KillWriter, "writer killed", Some(0.3)),
    (Kind::StopWriter, "writer stopped for 1 to 20 s", Some(2.5)),
    (Kind::KillAny, "server killed", Some(0.3)),
    (Kind::StopAny, "server stopped for 1 to 20 s", Some(2.5)),
    (Kind::Terminate, "server ended by SIGTERM", Some(0.3)),
    (
        Kind::EmptyFolder,
        "server killed, its folder emptied",
        Some(0.3),
    ),
    (Kind::LogAway, "log away for 1 to 8 s", None),
    (Kind::KillAll, "all killed", None),
    (Kind::CutLink, "link cut for 1 to 20 s", Some(2.5)),
    (Kind::CutOneWay, "link cut in one direction", Some(2.5)),
    (Kind::CutServer, "server cut from the others", Some(2.5)),
    (Kind::CutWriter, "writer cut from the others", Some(2.5)),
    (Kind::FullStore, "a server's disk full", None),
    (Kind::FullLog, "the log's disk full", None),
    (
        Kind::KillMerging,
        "holder killed while it merges",
        Some(0.3),
    ),
    (
        Kind::KillMerged,
        "holder killed between merge and commit",
        Some(0.3),
    ),
    (
        Kind::KillUploading,
        "holder killed while it uploads",
        Some(0.3),
    ),
    (
        Kind::KillDownloading,
        "holder killed while it downloads",
        Some(0.3),
    ),
    (Kind::KillHolders, "all holders of a shard killed", None),
    (
        Kind::EmptyShard,
        "holder killed, a shard's folder emptied",
        Some(0.3),
    ),
    (
        Kind::ChangeByte,
        "holder killed, one byte changed",
        Some(0.3),
    ),
];

impl Kind {
    fn needs_isolation(self) -> bool {
        (Self::CutLink..=Self::FullLog).contains(&self)
    }

    fn needs_shards(self) -> bool {
        self >= Self::KillMerging
    }
}

/// A kind with its name and bound.
type Named = (Kind, &'static str, Option<f64>);

/// State of all threads.
struct Shared {
    addresses: Vec<Address>,
    end: AtomicBool,
    /// By server.
    moves: Vec<Moves>,
    log_moves: Moves,
    /// By server: stops and cuts; it is away while it may be out of contact with another server.
    apart: Vec<Moves>,

    updates: AtomicU64,
    repeated: AtomicU64,
    reads: AtomicU64,
    /// Reads refused, or not answered, by servers that are not away.
    reads_refused: AtomicU64,
    /// Longest time for which a server that was not away acknowledged no update, while the log was there.
    updates_away: Mutex<Duration>,
    /// Longest time for which a server that is not away did not answer a read.
    reads_away: Mutex<Duration>,
    bad: Mutex<Vec<String>>,
    history: Option<History>,
}

impl Shared {
    fn new(servers: &[Server], history: Option<History>) -> Self {
        let moves = || servers.iter().map(|_| Moves::default()).collect();
        Self {
            addresses: servers.iter().map(|s| s.address.clone()).collect(),
            end: AtomicBool::new(false),
            moves: moves(),
            log_moves: Moves::default(),
            apart: moves(),
            updates: AtomicU64::new(0),
            repeated: AtomicU64::new(0),
            reads: AtomicU64::new(0),
            reads_refused: AtomicU64::new(0),
            updates_away: Mutex::default(),
            reads_away: Mutex::default(),
            bad: Mutex::default(),
            history,
        }
    }

    fn bad(&self, what: String) {
        let mut bad = lock(&self.bad);
        if bad.len() < 20 {
            println!("bad: {what}");
        }
        bad.push(what);
    }

    /// Adds an update of a client that ended just now to the history.
    fn update_ends(&self, client: usize, n: u64, called: Instant, outcome: &str) {
        if let Some(history) = &self.history {
            history.add((client, client), ("update", Some(n)), called, outcome);
        }
    }

    /// Adds a strict read of a count that ended just now to the history: what it read, or that it failed.
    fn read_ends(&self, client: usize, of: usize, called: Instant, read: Option<Option<u64>>) {
        if let Some(history) = &self.history {
            let outcome = if read.is_some() { "ok" } else { "failed" };
            history.add((client, of), ("read", read.flatten()), called, outcome);
        }
    }

    fn clients(&self, limit: Duration) -> Vec<Client> {
        (self.addresses.iter().cloned())
            .map(|a| Client::new(a, limit))
            .collect()
    }

    fn ended(&self) -> bool {
        self.end.load(Ordering::SeqCst)
    }
}

/// The server that writes, by what the servers say.
fn writer(servers: &[Server]) -> Option<usize> {
    servers.iter().position(|server| {
        let metrics = server.client(READ).send(&Request::new("GET", "/metrics"));
        metrics.is_ok_and(|a| a.text().lines().any(|l| l == "jindou_replica_writes 1"))
    })
}

/// One fault of isolated servers. Gives the moment at which it ended.
fn isolated_fault(
    kind: Kind,
    (i, other): (usize, usize),
    place: &Place,
    shared: &Shared,
    long: Duration,
) -> Result<Instant> {
    let Some(isolated) = place.isolation() else {
        return Ok(Instant::now());
    };
    let others = || (0..shared.addresses.len()).filter(move |&o| o != i);
    let links: Vec<(usize, usize)> = match kind {
        Kind::CutOneWay => vec![(i, other)],
        Kind::CutLink => vec![(i, other), (other, i)],
        Kind::CutServer | Kind::CutWriter => others().flat_map(|o| [(i, o), (o, i)]).collect(),
        _ => Vec::new(),
    };
    let disk = match kind {
        Kind::FullStore => Some(&isolated.stores[i]),
        Kind::FullLog => Some(&isolated.log),
        _ => None,
    };
    if kind == Kind::FullLog {
        shared.log_moves.add();
    }
    let ends: BTreeSet<usize> = links.iter().flat_map(|&(from, to)| [from, to]).collect();
    // With some shards alone, a server that is cut off can answer no query.
    let is_away = matches!(kind, Kind::CutServer | Kind::CutWriter) && place.shards.is_some();
    let change_contact = || {
        ends.iter().for_each(|&end| shared.apart[end].add());
        if is_away {
            shared.moves[i].add();
        }
    };
    change_contact();
    for &(from, to) in &links {
        isolated.network.cut(from, to)?;
    }
    disk.map_or(Ok(()), |d| d.fill())?;
    std::thread::sleep(if kind == Kind::FullLog {
        long.mul_f64(8.0 / 20.0)
    } else {
        long
    });
    disk.map_or(Ok(()), |d| d.free())?;
    for &(from, to) in &links {
        isolated.network.mend(from, to)?;
    }
    if !links.is_empty() {
        // Until the servers have found one another.
        std::thread::sleep(FOUND_OUT);
        change_contact();
    }
    if kind == Kind::FullLog {
        shared.log_moves.add();
    }
    Ok(Instant::now())
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
        Kind::KillWriter | Kind::StopWriter | Kind::CutWriter => writer(servers).unwrap_or(any),
        _ => any,
    };
    let other = (i + 1 + up_to(servers.len() as u64 - 1) as usize) % servers.len();
    let short = Duration::from_millis(up_to(2000));
    let long = Duration::from_millis(1000 + up_to(19_000));
    let begun;
    match kind {
        Kind::KillAny | Kind::KillWriter | Kind::EmptyFolder | Kind::Terminate => {
            shared.moves[i].add();
            if kind == Kind::Terminate && !servers[i].end() {
                shared.bad(format!("server {i} does not end"));
            }
            servers[i].kill();
            if kind == Kind::EmptyFolder {
                servers[i].empty_folder()?;
            }
            std::thread::sleep(short);
            begun = Instant::now();
            servers[i].start()?;
            servers[i].ready(PATIENCE)?;
            shared.moves[i].add();
        }
        Kind::StopAny | Kind::StopWriter => {
            shared.moves[i].add();
            shared.apart[i].add();
            if let Some(process) = &servers[i].process {
                process.stop();
                std::thread::sleep(long);
                process.go_on();
            }
            begun = Instant::now();
            servers[i].ready(PATIENCE)?;
            shared.moves[i].add();
            // Until the others count it again.
            std::thread::sleep(COUNTED);
            shared.apart[i].add();
        }
        Kind::LogAway => {
            let Some(log) = place.log_folder() else {
                return Ok(Duration::ZERO);
            };
            let away = log.with_extension("away");
            shared.log_moves.add();
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
            shared.log_moves.add();
            begun = Instant::now();
        }
        Kind::KillAll => {
            shared.moves.iter().for_each(Moves::add);
            servers.iter_mut().for_each(Server::kill);
            begun = Instant::now();
            for server in servers.iter_mut() {
                server.start()?;
            }
            for server in servers.iter_mut() {
                server.ready(PATIENCE)?;
            }
            shared.moves.iter().for_each(Moves::add);
        }
        _ if kind.needs_shards() => {
            begun = shards::fault(kind, (i, other), servers, place, shared, state)?;
        }
        _ => begun = isolated_fault(kind, (i, other), place, shared, long)?,
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
    /// Reads refused by servers that were there, of all rounds.
    refused: u64,
    updates: Duration,
    reads: Duration,
    back: Duration,
}

/// Causes the faults one after the other while the clients run, and prints how long each lasted.
fn cause_faults(
    a: &ReplicasFaults,
    kinds: &[Named],
    servers: &mut [Server],
    place: &Place,
    shared: &Shared,
    state: &mut u64,
) -> Result<BTreeMap<Kind, Worst>> {
    let mut worst: BTreeMap<Kind, Worst> = BTreeMap::new();
    std::thread::sleep(a.pause);
    for round in 0..a.rounds {
        let (kind, name, _) = kinds[round as usize % kinds.len()];
        *lock(&shared.updates_away) = Duration::ZERO;
        *lock(&shared.reads_away) = Duration::ZERO;
        let refused = shared.reads_refused.load(Ordering::Relaxed);
        let back = one_fault(kind, servers, place, shared, state)?;
        std::thread::sleep(a.pause);
        let updates = *lock(&shared.updates_away);
        let reads = *lock(&shared.reads_away);
        let refused = shared.reads_refused.load(Ordering::Relaxed) - refused;
        println!(
            "{:>4} {name:<40} updates away {:.2} s; reads away {:.2} s, {refused} refused; ready after {:.2} s",
            round + 1,
            updates.as_secs_f64(),
            reads.as_secs_f64(),
            back.as_secs_f64(),
        );
        if let Some(universities) = a.universities {
            let wrong = servers.iter().flat_map(|s| wrong_rows(s, universities));
            wrong.for_each(|what| shared.bad(what));
        }
        let worst = worst.entry(kind).or_default();
        worst.rounds += 1;
        worst.refused += refused;
        worst.updates = worst.updates.max(updates);
        worst.reads = worst.reads.max(reads);
        worst.back = worst.back.max(back);
    }
    Ok(worst)
}

fn print_worst(worst: &BTreeMap<Kind, Worst>, has_shards: bool) {
    println!("at worst, in seconds:");
    println!(
        "fault                                     times  no update  no read  bound  refused  ready"
    );
    for (kind, name, bound) in KINDS {
        if let Some(w) = worst.get(&kind) {
            let bound = bound.filter(|_| has_shards);
            println!(
                "{name:<40} {:>6} {:>10.2} {:>8.2} {:>6} {:>8} {:>6.2}",
                w.rounds,
                w.updates.as_secs_f64(),
                w.reads.as_secs_f64(),
                bound.map_or_else(|| "-".into(), |b| format!("{b:.1}")),
                w.refused,
                w.back.as_secs_f64()
            );
        }
    }
}

/// The kinds of faults that can be caused.
fn chosen_kinds(a: &ReplicasFaults) -> Result<Vec<Named>> {
    let only = |name: &str| a.only.is_empty() || a.only.iter().any(|o| name.contains(o));
    let mut kinds = KINDS.to_vec();
    kinds.retain(|(kind, name, _)| {
        (a.isolated || !kind.needs_isolation())
            && (a.setup.shards.is_some() || !kind.needs_shards())
            && only(name)
    });
    match kinds.is_empty() {
        true => Err(Error::Usage("--only: no fault has these words".into())),
        false => Ok(kinds),
    }
}

/// Status 3 if something was lost, made twice, or wrong.
pub fn run(a: &ReplicasFaults) -> Result<ExitCode> {
    if a.setup.servers < 2 {
        return Err(Error::Usage("faults needs at least two servers".into()));
    }
    let kinds = chosen_kinds(a)?;
    let registers = a.setup.servers * (a.clients + 1);
    let history = a
        .history
        .as_ref()
        .map(|path| History::create(path, registers));
    let history = history.transpose()?;
    let place = match a.isolated {
        true => Place::isolated(&a.setup)?,
        false => Place::new(&a.setup)?,
    };
    if let Some(universities) = a.universities {
        place.load_log(&Lubm::new(universities, 0))?;
    }
    let has_shards = a.setup.shards.is_some();
    let more: &[String] = match has_shards {
        true => &["--merge-at".into(), MERGE_AT.to_string()],
        false => &[],
    };
    let mut servers = place.replicas(a.setup.servers, more)?;
    watch::prepare(&servers[0])?;
    let shared = Shared::new(&servers, history);
    let mut state = a.seed;
    let begun = Instant::now();
    let (done, counted) = std::thread::scope(|scope| {
        let mut clients: Vec<_> = (0..servers.len() * a.clients)
            .map(|c| {
                let (shared, seed) = (&shared, splitmix64(&mut state));
                let home = c % servers.len();
                scope.spawn(move || count(shared, c, home, seed))
            })
            .collect();
        for i in 0..servers.len() {
            let (shared, client) = (&shared, clients.len());
            scope.spawn(move || watch::reads(shared, i));
            clients.push(scope.spawn(move || watch::updates(shared, client, i)));
        }
        let done = cause_faults(a, &kinds, &mut servers, &place, &shared, &mut state);
        shared.end.store(true, Ordering::SeqCst);
        let counted: Vec<u64> = clients
            .into_iter()
            .map(|c| c.join().unwrap_or_default())
            .collect();
        (done, counted)
    });
    let worst = done?;
    for server in &servers {
        for what in all_there(server, &shared, &counted)? {
            shared.bad(what);
        }
    }
    // What the log alone holds.
    servers.iter_mut().for_each(Server::kill);
    let needed = if has_shards { servers.len() } else { 1 };
    for last in &mut servers[..needed] {
        last.empty_folder()?;
        last.start()?;
    }
    for last in &mut servers[..needed] {
        last.ready(PATIENCE)?;
        for what in all_there(last, &shared, &counted)? {
            shared.bad(format!("from the log alone: {what}"));
        }
    }
    shared.history.as_ref().map_or(Ok(()), History::finish)?;
    print_worst(&worst, has_shards);
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
