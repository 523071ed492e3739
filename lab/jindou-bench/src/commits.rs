//! `jindou bench commits`: the cost of updates over HTTP on a disk whose sync takes a known time. First several clients
//! send small transactions, each waiting for the answer before it sends the next; then a few large transactions load
//! N-Triples.
//!
//! Server and clients share the machine's cores. The log is the store's own, but over a file layer in which every sync
//! takes at least the time asked for.

use super::measure::{Times, temporary_folder, write_json};
use crate::args::BenchCommits;
use crate::replicas::client::{Address, Client, Request};
use crate::replicas::commits::transactions;
use jindou::{Database, Error, Journal, LoadOptions, Progress, Result, Ticket};
use jindou_log::{Directory, Durability, File, Files, Log, LogOptions};
use jindou_parse::write::{TagCase, write_source};
use jindou_server::{Server, ServerOptions};
use jindou_workloads::lubm::Lubm;
use serde_json::json;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Longest wait for the answer to a large transaction.
const LIMIT: Duration = Duration::from_secs(600);

pub fn run(a: &BenchCommits) -> Result<ExitCode> {
    let place = temporary_folder(a.dir.as_deref())?;
    let store = place.path().join("store");
    let lubm = Lubm::new(a.universities, 0);
    Database::load(&store, &lubm, &LoadOptions::default(), &Progress::default())?;
    let log = place.path().join("log");
    let syncs = Arc::new(AtomicU64::new(0));
    let files = Slow {
        inner: Directory::create(&log).map_err(|e| Error::io(&log, e))?,
        sync: a.sync,
        syncs: Arc::clone(&syncs),
    };
    let base = Database::open(&store)?.snapshot().clone();
    let before = base.quads();
    let options = LogOptions {
        durability: Durability::Batch,
        ..LogOptions::default()
    };
    let epoch = base.base().epoch();
    let (log, _) = Log::open(
        Arc::new(files),
        epoch,
        base.number(),
        options,
        &mut |_, _| Ok(()),
    )?;
    let db = Database::with_journal(base, Box::new(Kept(log)));
    let server = Server::start(
        db.clone(),
        ServerOptions::default().with_port(0).with_writable(true),
    )
    .map_err(|e| Error::external(e.to_string()))?;
    let address = Address {
        socket: server.address(),
        token: None,
    };

    let start = Instant::now();
    let end = start + a.time;
    let times = transactions(std::slice::from_ref(&address), a.clients, "", end)?;
    let seconds = start.elapsed().as_secs_f64();
    let acknowledged = times.len() as u64;
    let synced = syncs.swap(0, Relaxed);
    let there = db.snapshot().quads() - before;
    if there != 2 * acknowledged {
        return Err(Error::Internal(format!(
            "{acknowledged} transactions of two quads were acknowledged, and {there} quads came"
        )));
    }
    let times = Times::new(times);
    println!(
        "{acknowledged} transactions of two quads from {} clients over HTTP in {seconds:.1} s, a sync takes {:.1} ms: {:.0} a second; median {:.2} ms, 99 % {:.2} ms; {:.1} for each sync",
        a.clients,
        a.sync.as_secs_f64() * 1e3,
        acknowledged as f64 / seconds,
        times.median(),
        times.quantile(0.99),
        acknowledged as f64 / synced.max(1) as f64,
    );
    let mut document = json!({ "clients": a.clients, "sync_ms": a.sync.as_secs_f64() * 1e3, "transactions": acknowledged,
        "seconds": seconds, "a_second": acknowledged as f64 / seconds, "median_ms": times.median(), "p99_ms": times.quantile(0.99) });

    if a.more > 0 {
        let text = bodies(a, &lubm)?;
        let (requests, bytes) = (text.len(), text.iter().map(String::len).sum::<usize>());
        let before = db.snapshot().quads();
        let start = Instant::now();
        let mut client = Client::new(address, LIMIT);
        for body in text {
            let request = Request::new("POST", "/store?default");
            client.succeed(&request.body("application/n-triples", body))?;
        }
        let seconds = start.elapsed().as_secs_f64();
        let triples = db.snapshot().quads() - before;
        println!(
            "{triples} triples as N-Triples ({:.0} MB) over HTTP in {requests} requests, {seconds:.2} s: {:.0} k/s",
            bytes as f64 / 1e6,
            triples as f64 / seconds / 1e3,
        );
        document["text"] =
            json!({ "triples": triples, "bytes": bytes, "requests": requests, "seconds": seconds });
    }
    if let Some(to) = &a.json {
        write_json(to, &document)?;
    }
    server.stop();
    Ok(ExitCode::SUCCESS)
}

/// The universities that follow those of the store, as N-Triples in bodies of some megabytes, cut between lines.
fn bodies(a: &BenchCommits, lubm: &Lubm) -> Result<Vec<String>> {
    let (mut old, mut all) = (vec![], vec![]);
    write_source(lubm, TagCase::Lower, &mut old)?;
    let more = Lubm::new(a.universities + a.more, 0);
    write_source(&more, TagCase::Lower, &mut all)?;
    let mut out = vec![];
    // The generator writes universities in their order, so the old ones are a prefix.
    let mut rest = all.get(old.len()..).unwrap_or(&[]);
    while !rest.is_empty() {
        let at = rest.len().min(a.body << 20);
        let end = rest[at..].iter().position(|&b| b == b'\n');
        let (body, next) = rest.split_at(end.map_or(rest.len(), |e| at + e + 1));
        out.push(String::from_utf8_lossy(body).into_owned());
        rest = next;
    }
    Ok(out)
}

/// The log as a [`Journal`].
struct Kept(Log);

struct Acknowledged(jindou_log::Ticket);

impl Journal for Kept {
    fn append(&self, number: u64, record: Vec<u8>) -> Result<Box<dyn Ticket>> {
        Ok(Box::new(Acknowledged(self.0.append(number, record)?)))
    }

    fn reset(&self, number: u64) -> Result<()> {
        self.0.reset(number + 1)
    }
}

impl Ticket for Acknowledged {
    fn wait(self: Box<Self>) -> Result<()> {
        self.0.wait()
    }
}

/// A directory whose syncs take the time `sync`, or the disk's own time if that is longer.
struct Slow {
    inner: Directory,
    sync: Duration,
    syncs: Arc<AtomicU64>,
}

struct SlowFile {
    inner: Box<dyn File>,
    sync: Duration,
    syncs: Arc<AtomicU64>,
}

impl Slow {
    fn slow(&self, inner: Box<dyn File>) -> Box<dyn File> {
        Box::new(SlowFile {
            inner,
            sync: self.sync,
            syncs: Arc::clone(&self.syncs),
        })
    }
}

/// Calls `f`, and waits until `sync` has passed since the beginning.
fn at_least<T>(sync: Duration, f: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = f();
    std::thread::sleep(sync.saturating_sub(start.elapsed()));
    result
}

impl Files for Slow {
    fn list(&self) -> io::Result<Vec<String>> {
        self.inner.list()
    }

    fn read(&self, name: &str, limit: u64) -> io::Result<Vec<u8>> {
        self.inner.read(name, limit)
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn File>> {
        Ok(self.slow(self.inner.create(name)?))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn File>> {
        Ok(self.slow(self.inner.open(name)?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.inner.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.inner.remove(name)
    }

    fn sync_directory(&self) -> io::Result<()> {
        at_least(self.sync, || self.inner.sync_directory())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.inner.path(name)
    }
}

impl File for SlowFile {
    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }

    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.inner.write_at(at, bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.syncs.fetch_add(1, Relaxed);
        at_least(self.sync, || self.inner.sync())
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.inner.truncate(length)
    }

    fn in_place(&self) -> io::Result<bool> {
        self.inner.in_place()
    }
}
