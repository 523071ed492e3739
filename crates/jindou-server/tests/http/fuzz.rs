//! Damaged requests: every response is valid HTTP, none has status 500, nothing panics, and the server holds nothing of
//! them afterwards.
//!
//! `JINDOU_SECONDS` sets the duration, `JINDOU_SEED` the seed.

use crate::{assert_answers, get, options, serve, thousand, until};
use jindou_server::Server;
use jindou_testing::http::connect;
use jindou_testing::{Mutator, Rng};
use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

static PANICS: AtomicU64 = AtomicU64::new(0);

const WORDS: &[&str] = &[
    "GET",
    "HEAD",
    "POST",
    "PUT",
    "DELETE",
    "PATCH",
    "OPTIONS",
    "CONNECT",
    "TRACE",
    "HTTP/1.1",
    "HTTP/1.0",
    "HTTP/2.0",
    "/query",
    "/update",
    "/store",
    "/health",
    "/metrics",
    "/admin/queries",
    "/admin/queries/1",
    "*",
    "http://localhost/query",
    "?query=",
    "&query=",
    "&timeout=",
    "&timeout=1ms",
    "&timeout=1e400",
    "&profile=true",
    "&default-graph-uri=",
    "&named-graph-uri=",
    "%00",
    "%ff",
    "%",
    "+",
    "&",
    "=",
    ";",
    "?default",
    "?graph=",
    "\r\n",
    "\r\n\r\n",
    "\n",
    ": ",
    "Host: localhost\r\n",
    "Host: elsewhere\r\n",
    "Content-Length: 0\r\n",
    "Content-Length: 5\r\n",
    "Content-Length: -1\r\n",
    "Content-Length: 99999999999999999999\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Transfer-Encoding: identity\r\n",
    "Expect: 100-continue\r\n",
    "Connection: close\r\n",
    "Connection: upgrade\r\n",
    "Upgrade: h2c\r\n",
    "Accept: */*\r\n",
    "Accept: text/csv;q=0.5, */*;q=0.1\r\n",
    "Accept: application/sparql-results+xml\r\n",
    "Accept: nothing/this\r\n",
    "Accept-Encoding: gzip\r\n",
    "Accept-Encoding: zstd\r\n",
    "Origin: http://localhost:3000\r\n",
    "Origin: null\r\n",
    "Authorization: Bearer x\r\n",
    "X-Jindou-Profile: 1\r\n",
    "Range: bytes=0-1\r\n",
    "Content-Type: application/sparql-query\r\n",
    "Content-Type: application/x-www-form-urlencoded\r\n",
    "Content-Type: application/sparql-query; charset=latin1\r\n",
    "0\r\n\r\n",
    "5\r\nASK{}\r\n",
    "ffffffffffffffff\r\n",
    "SELECT",
    "ASK",
    "{",
    "}",
    "CONSTRUCT",
    "DESCRIBE",
    "LIMIT 1",
];

const SEEDS: &[&str] = &[
    "GET /query?query=ASK%7B%7D HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    "GET /query?query=SELECT+*+%7B+%3Fs+%3Fp+%3Fo+%7D&timeout=1 HTTP/1.1\r\nHost: localhost\r\nAccept: text/csv\r\nAccept-Encoding: gzip, zstd;q=0.5\r\nConnection: close\r\n\r\n",
    "GET /query?query=SELECT+*+%7B+%3Fa+%3Fp+%3Fo+.+%3Fb+%3Fq+%3Fr+%7D HTTP/1.1\r\nHost: localhost\r\nAccept: application/sparql-results+xml\r\n\r\n",
    "GET /query HTTP/1.1\r\nHost: localhost\r\nAccept: text/turtle\r\nConnection: close\r\n\r\n",
    "POST /query HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/sparql-query\r\nContent-Length: 37\r\nConnection: close\r\n\r\nCONSTRUCT { ?s ?p ?o } { ?s ?p ?o } #",
    "POST /query?default-graph-uri=http%3A%2F%2Fe%2Fg HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 30\r\nConnection: close\r\n\r\nquery=ASK%7B%7D&timeout=500ms&",
    "POST /query HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/sparql-query\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n4\r\nASK \r\n2\r\n{}\r\n0\r\n\r\n",
    "POST /query HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Type: application/sparql-query\r\nContent-Length: 5\r\nConnection: close\r\n\r\nASK{}",
    "GET /query?profile=true&query=SELECT+*+%7B+%3Fs+%3Fp+%3Fo+%7D HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    "HEAD /store?default HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    "GET /store?graph=http%3A%2F%2Fe%2Fg HTTP/1.1\r\nHost: localhost\r\nAccept: application/ld+json\r\nConnection: close\r\n\r\n",
    "GET /store HTTP/1.1\r\nHost: localhost\r\nAccept: application/trig\r\nConnection: close\r\n\r\n",
    "PUT /store?default HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/turtle\r\nContent-Length: 3\r\nConnection: close\r\n\r\n# x",
    "POST /update HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/sparql-update\r\nContent-Length: 9\r\nConnection: close\r\n\r\nCLEAR ALL",
    "OPTIONS /query HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost:3000\r\nAccess-Control-Request-Method: POST\r\nConnection: close\r\n\r\n",
    "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n",
    "GET /admin/queries HTTP/1.1\r\nHost: [::1]:80\r\nConnection: close\r\n\r\nGET /health HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "DELETE /admin/queries/1 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
];

/// Queries that are damaged and sent in well-formed requests.
const QUERIES: &[&str] = &[
    "SELECT * { ?s <http://e/p> ?o FILTER(CONTAINS(?o, \"9\")) } ORDER BY DESC(?o) LIMIT 20 OFFSET 3",
    "SELECT ?o (COUNT(*) AS ?n) { ?s ?p ?o } GROUP BY ?o HAVING (COUNT(*) > 0)",
    "CONSTRUCT { ?s <http://e/q> ?o } { ?s <http://e/p> ?o OPTIONAL { ?o <http://e/p> ?z } }",
    "ASK { <http://e/s7> <http://e/p>+ ?o }",
    "DESCRIBE <http://e/s1> <http://e/s2>",
    "SELECT * { ?a <http://e/p> ?b . ?c <http://e/p> ?d }",
];

/// A well-formed request with a damaged query, and with some headers that change the response.
fn well_formed(rng: &mut Rng, queries: &Mutator) -> Vec<u8> {
    let query = queries.text(rng);
    let mut headers = String::from("Host: localhost\r\n");
    for (percent, header) in [
        (
            30,
            "Accept: application/sparql-results+xml, text/csv;q=0.9, */*;q=0.1\r\n",
        ),
        (20, "Accept-Encoding: gzip\r\n"),
        (20, "Accept-Encoding: zstd\r\n"),
        (20, "X-Jindou-Profile: 1\r\n"),
        (60, "Connection: close\r\n"),
    ] {
        if rng.chance(percent) {
            headers += header;
        }
    }
    let target = [
        "/query?timeout=200ms",
        "/query?default-graph-uri=http://e/g",
        "/query?x",
    ];
    let target = rng.one(&target);
    let escaped = query
        .iter()
        .map(|b| format!("%{b:02X}"))
        .collect::<String>();
    let (method, target, kind, body) = match rng.below(3) {
        0 => ("GET", format!("{target}&query={escaped}"), "", Vec::new()),
        1 => ("POST", target.into(), "application/sparql-query", query),
        _ => {
            let body = format!("query={escaped}").into_bytes();
            (
                "POST",
                target.into(),
                "application/x-www-form-urlencoded",
                body,
            )
        }
    };
    if method == "POST" {
        headers += &format!("Content-Type: {kind}\r\nContent-Length: {}\r\n", body.len());
    }
    let mut out = format!("{method} {target} HTTP/1.1\r\n{headers}\r\n").into_bytes();
    out.extend_from_slice(&body);
    out
}

/// If no data arrives for this long, the client closes its sending side.
const SILENT: Duration = Duration::from_millis(100);
/// Number of such intervals without data, after the sending side is closed, after which the server counts as hung. They
/// are counted rather than measured as a total time, since tests may be suspended for a while.
const MOST_SILENCES: usize = 600;
/// Largest number of bytes that are read of an answer.
const READ: usize = 1 << 20;

/// Sends bytes, and returns what is received until the server closes the connection.
fn converse(to: SocketAddr, bytes: &[u8], rng: &mut Rng) -> Result<Vec<u8>, String> {
    let mut stream = connect(to);
    let _ = stream.set_read_timeout(Some(SILENT));
    if rng.chance(20) {
        let cut = rng.below(bytes.len() + 1);
        let _ = stream.write_all(&bytes[..cut]);
        std::thread::sleep(Duration::from_millis(2));
        let _ = stream.write_all(&bytes[cut..]);
    } else {
        let _ = stream.write_all(bytes);
    }
    if rng.chance(5) {
        return Ok(Vec::new());
    }
    let mut answer = Vec::new();
    let mut piece = vec![0; 1 << 16];
    let mut silences = 0;
    while answer.len() < READ {
        match stream.read(&mut piece) {
            Ok(0) => break,
            Ok(n) => answer.extend_from_slice(&piece[..n]),
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                if silences == 0 {
                    let _ = stream.shutdown(std::net::Shutdown::Write);
                }
                silences += 1;
                if silences % 50 == 0 {
                    println!(
                        "silent for {silences}: {}",
                        bytes[..bytes.len().min(1500)].escape_ascii()
                    );
                }
                if silences > MOST_SILENCES {
                    return Err("the connection stays open without a word".into());
                }
            }
            // A server that closes a connection with unread data resets it.
            Err(_) => break,
        }
    }
    Ok(answer)
}

/// The status of the first response other than 100; `None` if there is no response. Checks that responses are
/// well-formed; those to HEAD have lengths but no bodies.
fn status(mut answer: &[u8], has_bodies: bool) -> Result<Option<u16>, String> {
    loop {
        if answer.is_empty() {
            return Ok(None);
        }
        let shown = || String::from_utf8_lossy(&answer[..answer.len().min(300)]).into_owned();
        let end = answer.windows(4).position(|w| w == b"\r\n\r\n");
        let end = end.ok_or_else(|| format!("no head: {}", shown()))?;
        let head = std::str::from_utf8(&answer[..end])
            .map_err(|_| format!("a head of other bytes: {}", shown()))?;
        let mut lines = head.split("\r\n");
        let status = lines.next().unwrap_or_default();
        let code = status
            .strip_prefix("HTTP/1.1 ")
            .or_else(|| status.strip_prefix("HTTP/1.0 "))
            .and_then(|rest| rest.get(..3)?.parse().ok())
            .ok_or_else(|| format!("no status: {}", shown()))?;
        let mut length = None;
        let (mut is_json, mut is_coded) = (false, false);
        for line in lines {
            let (name, value) = line
                .split_once(": ")
                .ok_or_else(|| format!("no header: {line}"))?;
            length = if name == "content-length" {
                value.parse::<usize>().ok()
            } else {
                length
            };
            is_json |= name == "content-type" && value.ends_with("json");
            is_coded |= name == "content-encoding";
        }
        answer = &answer[end + 4..];
        if code == 100 {
            continue;
        }
        if has_bodies
            && is_json
            && !is_coded
            && let Some(body) = length.and_then(|n| answer.get(..n))
            && !body.is_empty()
        {
            serde_json::from_slice::<serde_json::Value>(body)
                .map_err(|e| format!("not JSON: {e}"))?;
        }
        return Ok(Some(code));
    }
}

/// Asserts that no query and no memory of the requests is left, and that other requests are answered.
fn nothing_is_left(server: &Server) {
    until("no query is left", || server.live_queries() == 0);
    assert_answers(server);
    until("no connection is left, and no memory", || {
        let metrics = get(server, "/metrics");
        let text = metrics.text();
        text.lines().any(|l| l == "jindou_connections 1")
            && text.lines().any(|l| l == "jindou_query_memory_bytes 0")
    });
}

struct Found {
    statuses: BTreeMap<Option<u16>, u64>,
    wrong: Vec<String>,
}

fn fuzz(seconds: u64, seed: u64, most: u64) {
    let server = serve(
        thousand(),
        options()
            .with_timeout(Duration::from_millis(300))
            .with_max_timeout(Duration::from_secs(1))
            .with_query_memory(32 << 20)
            .with_max_request_bytes(64 << 10)
            .with_max_result_bytes(4 << 20),
    );
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        PANICS.fetch_add(1, Relaxed);
        usual(info);
    }));
    let seeds: Vec<Vec<u8>> = SEEDS.iter().map(|s| s.as_bytes().to_vec()).collect();
    let found = Mutex::new(Found {
        statuses: BTreeMap::new(),
        wrong: Vec::new(),
    });
    let (start, asked) = (Instant::now(), AtomicU64::new(0));
    let over = || {
        start.elapsed().as_secs() >= seconds
            || asked.load(Relaxed) >= most
            || found.lock().unwrap().wrong.len() >= 20
    };
    let round = |n: u64| {
        std::thread::scope(|scope| {
            for client in 0..8 {
                let (seeds, found, over, asked) = (&seeds, &found, &over, &asked);
                let to = server.address();
                scope.spawn(move || {
                    let mut rng = Rng::new(seed + n * 8 + client);
                    let mut mutator = Mutator::new(seeds.clone(), WORDS);
                    let queries: Vec<_> = QUERIES.iter().map(|q| q.as_bytes().to_vec()).collect();
                    let queries = Mutator::new(queries, WORDS);
                    for _ in 0..500 {
                        if over() {
                            break;
                        }
                        asked.fetch_add(1, Relaxed);
                        let bytes = if rng.chance(40) {
                            well_formed(&mut rng, &queries)
                        } else {
                            mutator.text(&mut rng)
                        };
                        let panics = PANICS.load(Relaxed);
                        let ended = converse(to, &bytes, &mut rng).and_then(|a| {
                            let has_bodies = !bytes.windows(4).any(|w| w == b"HEAD");
                            status(&a, has_bodies)
                        });
                        let wrong = match &ended {
                            Err(e) => Some(e.clone()),
                            Ok(Some(500)) => Some("it is answered with 500".into()),
                            Ok(_) if PANICS.load(Relaxed) > panics => {
                                Some("something panicked about now".into())
                            }
                            Ok(_) => None,
                        };
                        let mut found = found.lock().unwrap();
                        if let Ok(status) = ended {
                            if status.is_some_and(|s| s != 400) {
                                mutator.keep(&mut rng, &bytes);
                            }
                            *found.statuses.entry(status).or_default() += 1;
                        }
                        if let Some(wrong) = wrong {
                            println!("FOUND: {wrong}\n{}\n----", bytes.escape_ascii());
                            found.wrong.push(wrong);
                        }
                    }
                });
            }
        });
        nothing_is_left(&server);
    };
    let mut rounds = 0;
    while !over() {
        round(rounds);
        rounds += 1;
    }
    let found = found.into_inner().unwrap();
    println!(
        "{} requests in {:?}, seed {seed}: {:?}",
        asked.into_inner(),
        start.elapsed(),
        found.statuses
    );
    assert!(
        found.wrong.is_empty(),
        "{} requests went wrong",
        found.wrong.len()
    );
    assert_eq!(PANICS.load(Relaxed), 0);
    assert!(found.statuses.contains_key(&Some(200)) && found.statuses.contains_key(&Some(400)));
}

#[test]
fn some_hundred_requests() {
    fuzz(5, 1, 1000);
}

#[test]
#[ignore = "as long as JINDOU_SECONDS says; see docs/testing.md"]
fn requests_for_an_hour() {
    let number = |name: &str, otherwise: u64| {
        std::env::var(name).ok().map_or(otherwise, |v| {
            v.parse()
                .unwrap_or_else(|_| panic!("{name}={v} is not a number"))
        })
    };
    fuzz(
        number("JINDOU_SECONDS", 60),
        number("JINDOU_SEED", 1),
        u64::MAX,
    );
}
