//! Tests of the server over sockets, as its clients use it.

mod access;
mod admission;
mod bodies;
mod cases;
mod complete;
mod computing;
mod conditions;
mod endpoint;
mod fuzz;
mod keys;
mod lenient;
mod limits;
#[cfg(unix)]
mod local;
mod log;
mod metrics;
mod negotiation;
mod parameters;
mod pipelined;
mod prefixes;
mod prepared;
mod routes;
mod security;
mod service;
mod streams;
mod w3c;
mod warm;
mod writes;
mod xml;

use jindou::parse::{Format, Sources};
use jindou::{Database, LoadOptions, OpenOptions, Progress, Runtime};
use jindou_server::{Server, ServerOptions};
use jindou_testing::http::{Answer, escape, request};
use std::sync::OnceLock;
use tempfile::TempDir;

/// Measures the memory for parsing and planning, as the command's allocator does.
#[global_allocator]
static ALLOCATOR: jindou::Tracked = jindou::Tracked::new();

/// A database of TriG text, with the temporary folder that contains its store.
pub(crate) struct Store {
    pub(crate) db: Database,
    folder: TempDir,
}

impl Store {
    /// The folder that contains the store directory `store`.
    pub(crate) fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }
}

pub(crate) fn store(trig: &str) -> Store {
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path().join("store");
    let sources = Sources::builder()
        .text("test.trig", trig.as_bytes().to_vec(), Format::TriG)
        .build()
        .expect("sources");
    let options = LoadOptions::default().with_threads(1).with_memory(1 << 30);
    Database::load(&dir, &sources, &options, &Progress::default()).expect("a load");
    // Tests share stores and run in parallel: the endless queries of one must not occupy all computing slots.
    // The system's folder for temporary files may be in memory, where queries may not write.
    let runtime = Runtime::builder().threads(16);
    let runtime = runtime.temp_dir(env!("CARGO_TARGET_TMPDIR"));
    let options = OpenOptions::default().with_runtime(runtime.expect("a folder on a disk").build());
    Store {
        db: Database::open_with(&dir, &options).expect("a store"),
        folder,
    }
}

/// A store of a thousand triples, over which `?a e:p ?b . ?c e:p ?d` has a million rows.
pub(crate) fn thousand() -> &'static Store {
    static STORE: OnceLock<Store> = OnceLock::new();
    STORE.get_or_init(|| {
        let lines = (0..1000).map(|i| format!("<http://e/s{i}> <http://e/p> \"value {i}\" .\n"));
        store(&lines.collect::<String>())
    })
}

pub(crate) const MILLION: &str = "SELECT * { ?a <http://e/p> ?b . ?c <http://e/p> ?d }";
/// A query with 10^12 rows, so that it never ends during a test.
pub(crate) const ENDLESS: &str = "SELECT * { ?a <http://e/p> ?b . ?c <http://e/p> ?d . ?e <http://e/p> ?f . ?g <http://e/p> ?h }";

pub(crate) fn options() -> ServerOptions {
    ServerOptions::default()
        .with_port(0)
        .with_threads(2)
        .with_memory(1 << 30)
        .with_query_memory(1 << 28)
}

/// Options of a server that accepts updates.
pub(crate) fn writable() -> ServerOptions {
    options().with_writable(true)
}

pub(crate) fn serve(store: &Store, options: ServerOptions) -> Server {
    Server::start(store.db.clone(), options).expect("a server")
}

/// Sends a query by GET.
pub(crate) fn ask(server: &Server, query: &str, headers: &[(&str, &str)]) -> Answer {
    let target = format!("/query?query={}", escape(query));
    request(server.address(), "GET", &target, headers, b"")
}

/// Sends a query by GET. The answer is CSV.
pub(crate) fn csv(server: &Server, query: &str) -> Answer {
    ask(server, query, &[("accept", "text/csv")])
}

/// Asserts that a light query over [`thousand`] is answered.
pub(crate) fn assert_answers(server: &Server) {
    let answer = csv(server, "ASK { <http://e/s7> ?p ?o }");
    assert_eq!(answer.text(), "true\n");
}

/// Number of quads in all graphs.
pub(crate) fn quads(server: &Server) -> u64 {
    let query = "SELECT (COUNT(*) AS ?n) { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } }";
    let answer = csv(server, query);
    answer.text().lines().nth(1).unwrap().parse().unwrap()
}

/// Sends a request with a body of text.
pub(crate) fn send(
    server: &Server,
    method: &str,
    target: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Answer {
    request(server.address(), method, target, headers, body.as_bytes())
}

pub(crate) fn get(server: &Server, target: &str) -> Answer {
    send(server, "GET", target, &[], "")
}

/// Header of a request with an update.
pub(crate) const UPDATE: (&str, &str) = ("content-type", "application/sparql-update");

pub(crate) fn update(server: &Server, text: &str) -> Answer {
    send(server, "POST", "/update", &[UPDATE], text)
}

/// The value of the first metric whose line begins with this; 0 if there is none.
pub(crate) fn metric(server: &Server, name: &str) -> f64 {
    let answer = get(server, "/metrics");
    let line = answer.text().lines().find(|l| l.starts_with(name));
    line.map_or(0.0, |l| l.rsplit(' ').next().unwrap().parse().unwrap())
}

/// Waits until a condition holds; panics after a while.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = std::time::Instant::now();
    while !holds() {
        assert!(start.elapsed().as_secs() < 60, "never: {what}");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}
