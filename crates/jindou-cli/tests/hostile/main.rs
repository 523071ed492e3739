//! Sends hostile texts to a server with a memory limit: each construct of SPARQL repeated up to megabytes, and each
//! construct of RDF's syntaxes up to a hundred megabytes. The system reports the process's peak memory, which must be
//! within the limit. Every request must end in time, other clients must be answered meanwhile, and the process must
//! keep running.
//!
//! `JINDOU_BIN`: another program than the one built next to the test; `JINDOU_SHAPE`: only shapes whose name contains
//! this; `JINDOU_MIB`: size of the documents in MiB (100 by default).

mod beside;
mod server;
mod shapes;

use server::{Outcome, Server, query, send};
use shapes::{Shape, To};
use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Memory that the process may use in addition to `--memory`: for the program itself, its threads' stacks, the store,
/// buffers of sockets, and the body of a request that is being received.
const BESIDE: u64 = 96 << 20;

/// Sends a light query again and again, and keeps the longest time that it took.
struct Reader {
    stop: Arc<AtomicBool>,
    longest: Arc<AtomicU64>,
    failed: Arc<AtomicU64>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Reader {
    fn start(at: SocketAddr) -> Self {
        let (stop, longest, failed) =
            <(Arc<AtomicBool>, Arc<AtomicU64>, Arc<AtomicU64>)>::default();
        let thread = {
            let (stop, longest, failed) = (stop.clone(), longest.clone(), failed.clone());
            std::thread::spawn(move || {
                let mut n = 0u32;
                while !stop.load(Ordering::Relaxed) {
                    n += 1;
                    let text = format!("SELECT * {{ <http://e/s{}> <http://e/n> ?o }}", n % 300);
                    let got = query(at, &text);
                    longest.fetch_max(got.took.as_millis() as u64, Ordering::Relaxed);
                    if got.status != 200 {
                        failed.fetch_add(1, Ordering::Relaxed);
                    }
                    std::thread::sleep(Duration::from_millis(20));
                }
            })
        };
        Self {
            stop,
            longest,
            failed,
            thread: Some(thread),
        }
    }

    fn end(mut self) -> (u64, u64) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        (
            self.longest.load(Ordering::Relaxed),
            self.failed.load(Ordering::Relaxed),
        )
    }
}

const QUERY: &str = "application/sparql-query";

fn throw(at: SocketAddr, shape: &Shape, text: &str) -> Outcome {
    let (method, path, media) = match shape.to {
        To::Query => ("POST", "/query", QUERY),
        To::Prepared => ("POST", "/prepared", QUERY),
        To::Update => ("POST", "/update", "application/sparql-update"),
        To::Store(media) => ("PUT", "/store?graph=http://e/hostile", media),
    };
    let headers = [("content-type", media), ("accept", "*/*")];
    send(at, method, path, &headers, text.as_bytes())
}

/// Limits that the server must keep.
struct Bounds {
    memory: u64,
    timeout: Duration,
    /// Time that a request may take beyond the time limit.
    late: Duration,
    /// Maximum time of a light query.
    wait: Duration,
}

impl Bounds {
    fn new(memory: u64, timeout: Duration) -> Self {
        Self {
            memory,
            timeout,
            late: Duration::from_secs(1),
            wait: Duration::from_secs(1),
        }
    }

    fn most(&self) -> u64 {
        self.memory + self.memory / 10 + BESIDE
    }
}

/// Sends the shapes one after the other. Returns a message for each that exceeded the limits.
fn throw_all(server: &mut Server, shapes: &[Shape], size: usize, bounds: &Bounds) -> Vec<String> {
    let mut faults = vec![];
    for shape in shapes {
        let text = shape.text(size);
        server.reset_peak();
        let before = server.resident();
        let reader = Reader::start(server.address);
        let got = throw(server.address, shape, &text);
        let (longest, failed) = reader.end();
        let (peak, after) = (server.peak(), server.resident());
        let mut why = vec![];
        if !server.is_alive() {
            why.push("the server ended".to_owned());
        }
        if got.status == 0 || got.status == 500 {
            why.push("no answer".to_owned());
        }
        if peak > bounds.most() {
            why.push(format!("{} MiB", peak >> 20));
        }
        if got.took > bounds.timeout + bounds.late {
            why.push("late".to_owned());
        }
        if longest > bounds.wait.as_millis() as u64 || failed > 0 {
            why.push(format!("readers waited {longest} ms, {failed} failed"));
        }
        let said: String = got
            .said
            .chars()
            .take(110)
            .map(|c| if c.is_control() { ' ' } else { c })
            .collect();
        let line = format!(
            "{:32} {:>9} {:>4} {:>7.2}s peak {:>5} before {:>5} after {:>5} MiB reader {longest:>5} ms  {}  {said}",
            shape.name,
            text.len(),
            got.status,
            got.took.as_secs_f64(),
            peak >> 20,
            before >> 20,
            after >> 20,
            why.join(", "),
        );
        println!("{line}");
        if !why.is_empty() {
            faults.push(line);
        }
        if !server.is_alive() {
            break;
        }
    }
    faults
}

fn chosen(shapes: Vec<Shape>) -> Vec<Shape> {
    match std::env::var("JINDOU_SHAPE") {
        Ok(part) => shapes
            .into_iter()
            .filter(|s| s.name.contains(&part))
            .collect(),
        Err(_) => shapes,
    }
}

fn number(name: &str, otherwise: usize) -> usize {
    jindou_testing::from_environment(name, otherwise as u64) as usize
}

fn none(faults: &[String]) {
    assert!(
        faults.is_empty(),
        "{} out of bounds:\n{}",
        faults.len(),
        faults.join("\n")
    );
}

const MEMORY: u64 = 512 << 20;

fn started(more: &[&str]) -> (Server, Bounds) {
    let mut all = vec!["--memory", "512M", "--timeout", "5s"];
    all.extend(more);
    let bounds = Bounds::new(MEMORY, Duration::from_secs(5));
    (Server::start(&all), bounds)
}

/// Sends the chosen shapes at a size of this many bytes.
fn all_in_bounds(shapes: Vec<Shape>, size: usize) {
    let (mut server, bounds) = started(&[]);
    none(&throw_all(&mut server, &chosen(shapes), size, &bounds));
}

#[test]
#[ignore = "some minutes; see docs/testing.md"]
fn queries_of_four_megabytes() {
    all_in_bounds(shapes::queries(), (number("JINDOU_KIB", 4096) << 10) - 64);
}

#[test]
#[ignore = "some minutes; see docs/testing.md"]
fn updates_of_twelve_megabytes() {
    all_in_bounds(shapes::updates(), number("JINDOU_KIB", 12 << 10) << 10);
}

#[test]
#[ignore = "some minutes; see docs/testing.md"]
fn documents_of_a_hundred_megabytes() {
    all_in_bounds(shapes::documents(), number("JINDOU_MIB", 100) << 20);
}

/// Documents on a server with enough memory to read and store them completely.
#[test]
#[ignore = "some minutes; see docs/testing.md"]
fn documents_that_fit() {
    let shapes = chosen(shapes::documents());
    let size = number("JINDOU_MIB", 100) << 20;
    let mut faults = vec![];
    // Stored data stays in the store, so each syntax gets a new one.
    for syntax in ["nt", "nq", "ttl", "trig", "json", "xml"] {
        let some: Vec<Shape> = shapes
            .iter()
            .filter(|s| s.name.starts_with(&format!("{syntax} ")))
            .copied()
            .collect();
        let mut server =
            Server::start(&["--memory", "4G", "--query-memory", "3G", "--timeout", "20s"]);
        let bounds = Bounds::new(4 << 30, Duration::from_secs(20));
        faults.extend(throw_all(&mut server, &some, size, &bounds));
    }
    none(&faults);
}

/// Each of some texts is sent sixteen times at once.
#[test]
#[ignore = "some minutes; see docs/testing.md"]
fn many_at_once() {
    let (mut server, bounds) = started(&[]);
    let mut faults = vec![];
    let wanted = [
        "values integers",
        "values short",
        "values pairs",
        "in integers",
        "prepare values integers",
        "prepare in integers",
        "describe iris",
        "where union",
        "where triples",
        "filter or",
        "path sequence",
        "regex classes",
        "construct",
        "update in",
        "update insert data",
    ];
    let mut all = shapes::queries();
    all.extend(shapes::updates());
    for name in wanted {
        let Some(shape) = all.iter().find(|s| s.name == name) else {
            panic!("no shape is called {name}");
        };
        let text = &shape.text((4 << 20) - 64);
        server.reset_peak();
        let reader = Reader::start(server.address);
        let begun = Instant::now();
        let got: Mutex<Vec<Outcome>> = Mutex::default();
        std::thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| {
                    let one = throw(server.address, shape, text);
                    got.lock().expect("no thread panicked").push(one);
                });
            }
        });
        let (longest, failed) = reader.end();
        let (peak, alive) = (server.peak(), server.is_alive());
        let got = got.into_inner().expect("no thread panicked");
        let statuses: Vec<u16> = got.iter().map(|o| o.status).collect();
        let slowest = got.iter().map(|o| o.took).max().unwrap_or_default();
        let broken = statuses.iter().any(|s| [0, 500].contains(s));
        let line = format!(
            "16 x {name:26} {statuses:?} slowest {:.2} s, all {:.2} s, peak {} MiB, after {} MiB, reader {longest} ms, {failed} failed",
            slowest.as_secs_f64(),
            begun.elapsed().as_secs_f64(),
            peak >> 20,
            server.resident() >> 20
        );
        println!("{line}");
        // The requests share two cores, so they may take longer than one alone.
        let late = slowest > bounds.timeout + bounds.late * 2;
        if !alive || broken || late || peak > bounds.most() || failed > 0 {
            faults.push(line);
        }
    }
    none(&faults);
}

/// Small texts of many kinds, which is quick and does not reach the limits.
#[test]
fn small_texts_of_all_kinds() {
    small_texts(number("JINDOU_STEP", 2));
}

#[test]
#[ignore = "half a minute: each kind"]
fn small_texts_of_each_kind() {
    small_texts(1);
}

/// Sends every `step`-th shape.
fn small_texts(step: usize) {
    let (mut server, bounds) = started(&[]);
    let bounds = Bounds {
        late: Duration::from_secs(5),
        wait: Duration::from_secs(4),
        ..bounds
    };
    let mut all = shapes::queries();
    all.extend(shapes::updates());
    all.extend(shapes::documents());
    let some: Vec<Shape> = chosen(all).into_iter().step_by(step).collect();
    none(&throw_all(&mut server, &some, 20_000, &bounds));
}

/// A compressed body that is one line of a gibibyte when decompressed.
#[test]
#[ignore = "some minutes; see docs/testing.md"]
fn compressed_lines() {
    let mut server = Server::start(&["--memory", "256M", "--timeout", "20s"]);
    let bounds = Bounds::new(256 << 20, Duration::from_secs(20));
    let mut faults = vec![];
    for (media, head, unit, tail) in [
        (
            "application/n-triples",
            "<http://e/s> <http://e/p> \"",
            "a",
            "\" .\n",
        ),
        ("application/n-triples", "#", "a", "\n"),
        ("text/turtle", "<http://e/s> <http://e/p> \"", "a", "\" .\n"),
        ("text/turtle", "#", "a", "\n"),
        ("text/turtle", "<http://e/", "a", "> <http://e/p> 1 .\n"),
        ("application/rdf+xml", "<", "a", "/>"),
        ("application/rdf+xml", "<a>", " ", "</a>"),
        ("application/ld+json", "{\"", "a", "\":1}"),
        ("application/ld+json", "", " ", "{}"),
        ("application/n-triples", "", "\n", ""),
    ] {
        let body = gzip(head, unit, tail, number("JINDOU_MIB", 1024));
        server.reset_peak();
        let reader = Reader::start(server.address);
        let path = "/store?graph=http://e/compressed";
        let got = send(
            server.address,
            "PUT",
            path,
            &[("content-type", media)],
            &body,
        );
        let (longest, failed) = reader.end();
        let line = format!(
            "{media} {head}{unit}… {} bytes: {} in {:.2} s, peak {} MiB, reader {longest} ms, {failed} failed: {}",
            body.len(),
            got.status,
            got.took.as_secs_f64(),
            server.peak() >> 20,
            got.said
        );
        println!("{line}");
        let late = got.took > bounds.timeout + bounds.late;
        if !server.is_alive()
            || [0, 500].contains(&got.status)
            || late
            || server.peak() > bounds.most()
        {
            faults.push(line);
        }
    }
    none(&faults);
}

/// The text `head`, then `unit` repeated to this many mebibytes, then `tail`, compressed by the program gzip.
fn gzip(head: &str, unit: &str, tail: &str, mebibytes: usize) -> Vec<u8> {
    let mut child = std::process::Command::new("gzip")
        .args(["-1", "-c"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("gzip");
    let mut to = child.stdin.take().expect("standard input");
    let piece = unit.repeat((1 << 20) / unit.len());
    let (head, tail) = (head.to_owned(), tail.to_owned());
    let writer = std::thread::spawn(move || {
        let _ = to.write_all(head.as_bytes());
        for _ in 0..mebibytes {
            let _ = to.write_all(piece.as_bytes());
        }
        let _ = to.write_all(tail.as_bytes());
    });
    let out = child.wait_with_output().expect("gzip's output");
    writer.join().expect("the writer");
    out.stdout
}

/// Clients of one address that do not read their answers cannot take all places for queries.
#[test]
fn slow_readers_do_not_take_all_places() {
    let server = Server::start(&[
        "--memory",
        "512M",
        "--max-queries",
        "40",
        "--max-timeout",
        "3600s",
    ]);
    let text = "SELECT * { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i }";
    let mut slow = vec![];
    for _ in 0..60 {
        let Ok(mut stream) = std::net::TcpStream::connect(server.address) else {
            continue;
        };
        let _ = write!(
            stream,
            "POST /query?timeout=3600 HTTP/1.1\r\nHost: {}\r\nContent-Type: application/sparql-query\r\nContent-Length: {}\r\n\r\n{text}",
            server.address,
            text.len()
        );
        slow.push(stream);
    }
    std::thread::sleep(Duration::from_secs(2));
    // A request from another address of this machine counts as another client's.
    let other = from_another_address(server.address, "SELECT * { <http://e/s1> <http://e/n> ?o }");
    assert_eq!(other, 200, "another client is answered");
    drop(slow);
    std::thread::sleep(Duration::from_millis(1500));
    assert_eq!(query(server.address, "ASK { ?s ?p ?o }").status, 200);
}

fn from_another_address(at: SocketAddr, text: &str) -> u16 {
    use std::io::Read;
    let socket = socket2_connect(at);
    let Some(mut stream) = socket else { return 0 };
    let _ = stream.set_read_timeout(Some(Duration::from_secs(20)));
    let _ = write!(
        stream,
        "POST /query HTTP/1.1\r\nHost: {at}\r\nContent-Type: application/sparql-query\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{text}",
        text.len()
    );
    let mut said = String::new();
    let _ = stream.read_to_string(&mut said);
    said.split(' ')
        .nth(1)
        .and_then(|s| s.parse().ok())
        .unwrap_or(0)
}

/// A connection from 127.0.0.2.
fn socket2_connect(at: SocketAddr) -> Option<std::net::TcpStream> {
    use socket2::{Domain, Socket, Type};
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).ok()?;
    let from: SocketAddr = "127.0.0.2:0".parse().ok()?;
    socket.bind(&from.into()).ok()?;
    socket.connect(&at.into()).ok()?;
    Some(socket.into())
}
