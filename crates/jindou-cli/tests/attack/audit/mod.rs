//! Runs the auditor (`make audit`): sends texts of every kind to a program that was built with the feature `audit`. The
//! program writes down where a query took memory without charging it, and where a thread worked for a long time without
//! checking its token. This test groups these findings by place.
//!
//! `JINDOU_BIN`: the audited program; `JINDOU_AUDIT`: the file of findings; `JINDOU_TEXTS`: number of random texts;
//! `JINDOU_QUERIES=list`: only those texts of this folder whose names contain `list`.

mod texts;

use crate::campaign::{Campaign, number};
use crate::server::{Server, Setting, TOKEN, Template};
use crate::volley::Slack;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use texts::{corpus, listed, literals};

/// A place in the program whose findings are accepted up to a size.
struct Exception {
    kind: &'static str,
    /// Text that the name of one of the [`NEAR`] innermost functions contains.
    frame: &'static str,
    /// Maximum size of an accepted finding, in bytes or nanoseconds.
    most: u64,
    /// The reason why the memory or the time is bounded.
    bound: &'static str,
}

/// Number of innermost functions among which an exception's name is searched. Functions in [`PLAIN`] are not counted.
const NEAR: usize = 3;

/// The accepted places: below each reason, lines of a kind (`any` for all), the maximum size, and a function. Computed
/// strings in these texts have ten megabytes, stored ones two or four.
const EXCEPTIONS: &str = include_str!("exceptions.txt");

fn exceptions() -> Vec<Exception> {
    let (mut all, mut bound) = (vec![], "");
    for line in EXCEPTIONS.lines() {
        if let Some(reason) = line.strip_prefix("== ") {
            bound = reason;
            continue;
        }
        let words: Vec<&str> = line.splitn(4, ' ').collect();
        let [kind, number, unit, frame] = words[..] else {
            panic!("an exception has four parts: {line}");
        };
        let number: u64 = number.parse().expect(line);
        let most = match unit {
            "ms" => number * 1_000_000,
            "MiB" => number << 20,
            _ => panic!("an exception's unit is ms or MiB: {line}"),
        };
        all.push(Exception {
            kind,
            frame,
            most,
            bound,
        });
    }
    all
}

/// Sends a request and reads its answer to the end.
fn send(
    server: &Server,
    method: &str,
    path: &str,
    (media, accept): (&str, &str),
    body: &[u8],
) -> (u16, usize) {
    let exchange = || -> std::io::Result<(u16, usize)> {
        let mut stream = TcpStream::connect_timeout(&server.address, Duration::from_secs(5))?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {TOKEN}\r\nConnection: close\r\nAccept: {accept}\r\n\
             Content-Type: {media}\r\nContent-Length: {}\r\n\r\n",
            server.address,
            body.len()
        )?;
        let _ = stream.write_all(body);
        let (mut piece, mut read, mut status) = (vec![0; 1 << 18], 0, 0);
        loop {
            let n = stream.read(&mut piece)?;
            if read == 0 {
                let head = String::from_utf8_lossy(&piece[..n.min(20)]).into_owned();
                status = head
                    .split(' ')
                    .nth(1)
                    .and_then(|s| s.parse().ok())
                    .unwrap_or(0);
            }
            read += n;
            if n == 0 {
                return Ok((status, read));
            }
        }
    };
    exchange().unwrap_or((0, 0))
}

const TABLES: [&str; 5] = [
    "application/sparql-results+json",
    "application/sparql-results+xml",
    "text/csv",
    "text/tab-separated-values",
    "application/x-ndjson",
];
const GRAPHS: [&str; 7] = [
    "text/turtle",
    "application/n-triples",
    "application/rdf+xml",
    "application/ld+json",
    "application/trig",
    "text/csv",
    "application/x-ndjson",
];
const QUERY: &str = "application/sparql-query";
const UPDATE: &str = "application/sparql-update";

/// Beginnings of the names of functions that do not identify a place: the auditor's own, and those of the standard
/// library, the allocator and the server's runtime.
const PLAIN: &str = include_str!("plain.txt");

/// Names of the functions at addresses of the program. Inlined functions come before the ones that contain them.
fn names(program: &Path, addresses: &BTreeSet<u64>) -> BTreeMap<u64, Vec<String>> {
    let mut command = Command::new("addr2line");
    command.args(["-a", "-f", "-C", "-i", "-e"]).arg(program);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("addr2line, of binutils");
    let mut input = child.stdin.take().expect("standard input");
    // The addresses on a stack follow the calls, so 1 is subtracted to get an address within the call.
    let text = addresses.iter().fold(String::new(), |all, a| {
        all + &format!("{:x}\n", a.wrapping_sub(1))
    });
    let writer = std::thread::spawn(move || input.write_all(text.as_bytes()));
    let out = child.wait_with_output().expect("addr2line");
    let _ = writer.join();
    let (mut found, mut at, mut is_name) = (BTreeMap::new(), 0, true);
    for line in String::from_utf8_lossy(&out.stdout).lines() {
        if let Some(address) = line
            .strip_prefix("0x")
            .and_then(|a| u64::from_str_radix(a, 16).ok())
        {
            (at, is_name) = (address + 1, true);
            continue;
        }
        if is_name {
            let hash = line.rfind("::h").filter(|at| line.len() == at + 19);
            let all: &mut Vec<String> = found.entry(at).or_default();
            all.push(line[..hash.unwrap_or(line.len())].to_owned());
        }
        is_name = !is_name;
    }
    found
}

/// A finding, as read from a line of the file.
struct Finding {
    kind: String,
    size: u64,
    stack: Vec<u64>,
}

impl Finding {
    fn read(line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        let (kind, size) = (words.next()?.to_owned(), words.next()?.parse().ok()?);
        let mut numbers = words.filter_map(|w| u64::from_str_radix(w, 16).ok());
        let base = numbers.next()?;
        Some(Self {
            kind,
            size,
            stack: numbers.map(|n| n.wrapping_sub(base)).collect(),
        })
    }
}

/// The findings, grouped by kind and place, with the largest size and the number of different stacks of each group. The
/// first map has the findings that no exception accepts, the second the accepted ones by exception.
fn findings(program: &Path, file: &Path) -> [BTreeMap<String, (u64, usize)>; 2] {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let all: Vec<Finding> = text.lines().filter_map(Finding::read).collect();
    let addresses: BTreeSet<u64> = all.iter().flat_map(|f| f.stack.iter().copied()).collect();
    let names = names(program, &addresses);
    let (exceptions, frames) = (exceptions(), number("JINDOU_FRAMES", 6));
    let [mut found, mut excepted] = [BTreeMap::new(), BTreeMap::new()];
    for Finding { kind, size, stack } in all {
        let stack = stack.iter().filter_map(|a| names.get(a)).flatten();
        let is_plain = |name: &str| PLAIN.lines().any(|plain| name.starts_with(plain));
        let stack = stack.filter(|name| name.contains("drop_in_place") || !is_plain(name));
        let stack: Vec<&str> = stack.map(String::as_str).collect();
        let near = &stack[..stack.len().min(NEAR)];
        let exception = exceptions.iter().find(|e| {
            (e.kind == "any" || e.kind == kind)
                && size <= e.most
                && near.iter().any(|name| name.contains(e.frame))
        });
        let (list, place) = match exception {
            Some(e) => (&mut excepted, format!("{kind}: {} ({})", e.frame, e.bound)),
            None => {
                let shown = &stack[..stack.len().min(frames)];
                (&mut found, format!("{kind}: {}", shown.join(" < ")))
            }
        };
        let seen: &mut (u64, usize) = list.entry(place).or_default();
        *seen = (seen.0.max(size), seen.1 + 1);
    }
    [found, excepted]
}

/// Prints the places, in descending order of size.
fn print(places: &BTreeMap<String, (u64, usize)>) {
    let mut largest: Vec<_> = places.iter().collect();
    largest.sort_by_key(|(_, seen)| std::cmp::Reverse(seen.0));
    for (place, (size, stacks)) in &largest {
        println!("{size:>12} {stacks:>4}  {place}");
    }
}

fn listed_texts(server: &Server) {
    let only = std::env::var("JINDOU_QUERIES").unwrap_or_default();
    for path in ["/store?graph=http://e/literals", "/store?default"] {
        let put = send(
            server,
            "POST",
            path,
            ("text/turtle", "*/*"),
            literals().as_bytes(),
        );
        println!("{path}: {put:?}");
    }
    let wanted = listed().into_iter().filter(|t| t.name.contains(&only));
    for (i, text) in wanted.enumerate() {
        let formats = if text.is_graph() {
            &GRAPHS[..]
        } else {
            &TABLES[..]
        };
        let formats = match text.is_for_every_format() {
            true => formats,
            false => &formats[i % formats.len()..][..1],
        };
        let (path, media) = match text.is_update() {
            true => ("/update", UPDATE),
            false => ("/query", QUERY),
        };
        let ask =
            |path: &str, accept| send(server, "POST", path, (media, accept), text.text.as_bytes());
        let mut got: Vec<_> = formats.iter().map(|accept| ask(path, *accept)).collect();
        if i % 7 == 0 && !text.is_update() {
            got.push(ask("/query?profile=true", "*/*"));
            got.push(ask("/query?explain=true", "*/*"));
        }
        println!("{}: {got:?}", text.name);
    }
    if only.is_empty() {
        for accept in GRAPHS {
            send(server, "GET", "/store?default", ("", accept), b"");
        }
        let complete = "/complete?text=SELECT%20*%20{%20?s%20";
        for path in [
            "/search?q=text",
            "/search?q=yyy",
            "/labels?iri=http://e/s1",
            "/describe?iri=http://e/s1",
            complete,
        ] {
            send(server, "GET", path, ("", "*/*"), b"");
        }
    }
}

/// No place takes memory without charging it, or works for a long time without checking the token.
#[test]
#[ignore = "needs a program of its own: make audit"]
fn audited_texts() {
    let (Some(program), Some(file)) = (
        std::env::var_os("JINDOU_BIN"),
        std::env::var_os("JINDOU_AUDIT"),
    ) else {
        println!("skipped: no JINDOU_BIN and JINDOU_AUDIT; make audit");
        return;
    };
    let (program, file) = (PathBuf::from(program), PathBuf::from(file));
    let setting = Setting {
        memory: 1 << 30,
        query_memory: 256 << 20,
        timeout: Duration::from_secs(number("JINDOU_SECONDS", 2) as u64),
        more: &[],
    };
    let server = Server::start(&Template::new(5000), &setting);
    listed_texts(&server);
    if std::env::var_os("JINDOU_QUERIES").is_none() {
        let corpus = corpus();
        println!(
            "{} queries and updates of suites, benchmarks and cases",
            corpus.len()
        );
        for (is_update, text) in &corpus {
            let (path, media) = if *is_update {
                ("/update", UPDATE)
            } else {
                ("/query", QUERY)
            };
            send(&server, "POST", path, (media, "*/*"), text.as_bytes());
        }
    }
    drop(server);
    let texts = number("JINDOU_TEXTS", 300);
    if texts > 0 {
        let mut campaign = Campaign::new(&[setting], 5000, Slack(Duration::from_secs(20)));
        campaign.most = 2 << 20;
        campaign.texts(number("JINDOU_SEED", 54), 0, texts);
        campaign.end();
    }
    let [found, excepted] = findings(&program, &file);
    println!("accepted:");
    print(&excepted);
    println!("found:");
    print(&found);
    assert!(found.is_empty(), "{} places", found.len());
}
