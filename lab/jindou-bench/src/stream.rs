//! `jindou bench stream`: measures how fast a server sends a large answer, and its memory meanwhile.
//!
//! The server is a process of its own, as users run it. The client only reads its socket, so that the figures are the
//! server's; still, on a machine with few cores the client's reads compete with the server.

use super::measure::{Times, write_json};
use crate::args::BenchStream;
use jindou::{Database, Error, Result};
use jindou_testing::Served;
use serde_json::json;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Interval between two samples of the server's memory.
const LOOK: Duration = Duration::from_millis(100);
/// Bytes that are read from the socket at once.
const PIECE: usize = 1 << 20;
/// Formats, each with its media type and a server of its own.
const FORMATS: [(&str, &str); 2] = [
    ("tsv", "text/tab-separated-values"),
    ("json", "application/sparql-results+json"),
];
/// Query parameter with the timeout of an answer in seconds.
const LIMIT: &str = "timeout=3600";

pub fn run(a: &BenchStream) -> Result<ExitCode> {
    let query = everything(Database::info(&a.store)?.quads, a.rows);
    let mut results = Vec::new();
    for (format, media) in FORMATS {
        // A new server for each format, so that its memory does not include that of earlier ones.
        let server = start(a)?;
        let one = measure(&server, &query, format, media)?;
        if a.json.is_none() {
            print(&one);
        }
        results.push(one);
    }
    if let Some(to) = &a.json {
        let value =
            json!({ "query": query, "streams": results.iter().map(document).collect::<Vec<_>>() });
        write_json(to, &value)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A query that returns all triples, repeated often enough for this many rows.
fn everything(quads: u64, rows: u64) -> String {
    let times = rows.div_ceil(quads.max(1)).clamp(1, 1000);
    let all = ["{ ?s ?p ?o }"; 1].repeat(times as usize).join(" UNION ");
    format!("SELECT ?s ?p ?o {{ {all} }} LIMIT {rows}")
}

/// Measurements of one answer.
struct Stream {
    format: String,
    rows: u64,
    bytes: u64,
    seconds: f64,
    first_byte_ms: f64,
    memory: Vec<Memory>,
}

/// A server's resident memory in bytes: anonymous, and of the store's mapped files.
#[derive(Clone, Copy, Default)]
struct Memory {
    own: u64,
    mapped: u64,
}

impl Stream {
    /// The largest anonymous memory in a range of the samples.
    fn own(&self, part: std::ops::Range<usize>) -> u64 {
        let samples = self.memory.get(part).unwrap_or(&[]);
        samples.iter().map(|m| m.own).max().unwrap_or(0)
    }

    /// Largest anonymous memory in the first tenth of the time, in the last tenth, and in all of it.
    fn growth(&self) -> (u64, u64, u64) {
        let n = self.memory.len();
        let tenth = n.div_ceil(10);
        (self.own(0..tenth), self.own(n - tenth..n), self.own(0..n))
    }
}

fn mb(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

fn print(s: &Stream) {
    let (early, late, most) = s.growth();
    let mapped = s.memory.iter().map(|m| m.mapped).max().unwrap_or(0);
    println!(
        "{:<5} {:>11} rows, {:>8.1} MB in {:>7.2} s: {:>7.1} MB/s, {:>6.2} M rows/s; first byte after {:.1} ms; server's own memory {:.1} MB in the first tenth, {:.1} MB in the last, {:.1} MB at most; store mapped {:.0} MB",
        s.format,
        s.rows,
        mb(s.bytes),
        s.seconds,
        mb(s.bytes) / s.seconds,
        s.rows as f64 / 1e6 / s.seconds,
        s.first_byte_ms,
        mb(early),
        mb(late),
        mb(most),
        mb(mapped),
    );
}

fn document(s: &Stream) -> serde_json::Value {
    let (early, late, most) = s.growth();
    let own = Times::new(s.memory.iter().map(|m| Duration::from_micros(m.own)));
    json!({
        "format": s.format, "rows": s.rows, "bytes": s.bytes, "seconds": s.seconds,
        "mb_per_second": mb(s.bytes) / s.seconds, "rows_per_second": s.rows as f64 / s.seconds,
        "first_byte_ms": s.first_byte_ms, "own_memory_first_tenth": early, "own_memory_last_tenth": late,
        "own_memory_most": most, "own_memory_median": own.median() * 1e3, "memory_samples": s.memory.len(),
    })
}

fn start(a: &BenchStream) -> Result<Served> {
    let mut command = Command::new(crate::jindou_program()?);
    command
        .args(["serve", "--port", "0", "--gpu", "off"])
        .args(["--timeout", "1h", "--log-level", "warn", "--store"])
        .arg(&a.store)
        .stdin(Stdio::null());
    if let Some(threads) = a.threads {
        command.args(["--threads", &threads.to_string()]);
    }
    Served::try_start(&mut command).map_err(|why| {
        Error::external(format!(
            "the server did not start; what it said is above ({why})"
        ))
    })
}

/// Anonymous and mapped resident memory; 0 if the system does not tell (other than Linux).
fn memory(server: &Served) -> Memory {
    let status = server.proc("status");
    let of = |name: &str| {
        let line = status.lines().find_map(|l| l.strip_prefix(name));
        let kib = line.and_then(|l| l.split_whitespace().next()?.parse::<u64>().ok());
        kib.unwrap_or(0) << 10
    };
    Memory {
        own: of("RssAnon:"),
        mapped: of("RssFile:"),
    }
}

/// Rows of all queries so far. Waits until the server has finished counting them, which may be after the client has
/// read the last byte.
fn rows(server: &Served) -> Result<u64> {
    let alive = ["running", "queued", "sending"].map(|s| format!("jindou_queries_{s}"));
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(10) {
        let counts = alive.iter().map(|name| metric(server, name));
        if counts.sum::<Result<u64>>()? == 0 {
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    metric(server, "jindou_result_rows_total")
}

/// The value of a counter in `/metrics`.
fn metric(server: &Served, name: &str) -> Result<u64> {
    let mut text = Vec::new();
    get(server.address, "/metrics", "*/*", |piece| {
        text.extend_from_slice(piece)
    })?;
    let text = String::from_utf8_lossy(&text);
    let line = text
        .lines()
        .find_map(|l| l.strip_prefix(name)?.strip_prefix(' '));
    line.and_then(|n| n.parse().ok())
        .ok_or_else(|| Error::Internal(format!("the server has no metric {name}")))
}

fn measure(server: &Served, query: &str, format: &str, media: &str) -> Result<Stream> {
    let escaped: String = query.bytes().map(|b| format!("%{b:02X}")).collect();
    let target = format!("/query?{LIMIT}&query={escaped}");
    let done = AtomicBool::new(false);
    let start = Instant::now();
    let mut first = None;
    let mut bytes = 0u64;
    let (memory, ended) = std::thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let mut samples = Vec::new();
            while !done.load(Ordering::Relaxed) {
                samples.push(memory(server));
                std::thread::park_timeout(LOOK);
            }
            samples
        });
        let ended = get(server.address, &target, media, |piece| {
            first.get_or_insert_with(|| start.elapsed());
            bytes += piece.len() as u64;
        });
        done.store(true, Ordering::Relaxed);
        watch.thread().unpark();
        (watch.join().unwrap_or_default(), ended)
    });
    let seconds = start.elapsed().as_secs_f64();
    ended?;
    Ok(Stream {
        format: format.into(),
        rows: rows(server)?,
        bytes,
        seconds,
        first_byte_ms: first.unwrap_or_default().as_secs_f64() * 1e3,
        memory,
    })
}

/// Sends a GET request, and calls `each` with every piece of the answer. An error unless the status is 200.
fn get(to: SocketAddr, target: &str, accept: &str, mut each: impl FnMut(&[u8])) -> Result<()> {
    let failed = |e| Error::io(format!("http://{to}"), e);
    let broken = |what: &str| Error::external(format!("http://{to}: {what}"));
    let mut socket = TcpStream::connect(to).map_err(failed)?;
    let head = format!(
        "GET {target} HTTP/1.1\r\nHost: localhost\r\nAccept: {accept}\r\nConnection: close\r\n\r\n"
    );
    socket.write_all(head.as_bytes()).map_err(failed)?;
    let mut reader = BufReader::with_capacity(PIECE, socket);
    let (mut status, mut chunked, mut length) = (String::new(), false, None);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).map_err(failed)? == 0 {
            return Err(broken("the server closed the connection"));
        }
        let line = line.trim_end().to_ascii_lowercase();
        if status.is_empty() {
            status = line;
        } else if line.is_empty() {
            break;
        } else if let Some(n) = line.strip_prefix("content-length: ") {
            length = n.parse().ok();
        } else {
            chunked |= line == "transfer-encoding: chunked";
        }
    }
    if !status.contains(" 200") {
        let mut said = String::new();
        let _ = reader.take(2000).read_to_string(&mut said);
        return Err(broken(&format!("{status}: {said}")));
    }
    let mut body = |left: &mut u64, reader: &mut BufReader<TcpStream>| -> Result<()> {
        while *left > 0 {
            let there = reader.fill_buf().map_err(failed)?;
            if there.is_empty() {
                return Err(broken("the answer broke off; the server's log says why"));
            }
            let n = there
                .len()
                .min(usize::try_from(*left).unwrap_or(usize::MAX));
            each(&there[..n]);
            reader.consume(n);
            *left -= n as u64;
        }
        Ok(())
    };
    if !chunked {
        return body(&mut length.unwrap_or(0), &mut reader);
    }
    let mut line = String::new();
    loop {
        line.clear();
        reader.read_line(&mut line).map_err(failed)?;
        let size = u64::from_str_radix(line.trim_end(), 16)
            .map_err(|_| broken("the answer broke off; the server's log says why"))?;
        body(&mut { size }, &mut reader)?;
        line.clear();
        reader.read_line(&mut line).map_err(failed)?;
        if size == 0 {
            return Ok(());
        }
    }
}
