//! Light queries while the server works on hostile texts, and the shutdown of such a server.

use super::server::{Server, query};
use jindou_testing::attack::Recipe;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Number of hostile texts at once, or of threads that only compute.
const AT_ONCE: usize = 4;
/// Maximum difference between the time of a light query while the server works on hostile texts, and its time while the
/// same number of threads compute.
const LONGER: Duration = Duration::from_millis(2);
/// Number of rounds of each kind. The kinds alternate.
const ROUNDS: usize = 5;
const ROUND: Duration = Duration::from_secs(2);
const SPARQL: &str = "application/sparql-query";
const LIGHT: &str = "SELECT * { <http://e/s1> <http://e/p1> ?o }";

/// Texts of over a megabyte each that take long to parse and to plan.
const TEXTS: [&str; 4] = [
    "SELECT * {⟪40000×{?s ?p ?o}¦UNION⟫FILTER(⟪80000×?o!=§¦&&⟫)} LIMIT 1",
    "SELECT ?s (COUNT(*) AS ?c) {?s ?p ?o} GROUP BY ?s HAVING⟪100000×(?c!=§)¦ ⟫",
    "SELECT * {?s ?p ?o FILTER(⟪60000×(?o!=§&&?s=§)¦||⟫)}",
    "SELECT * {⟪60000×{?x§ ?p ?o}¦UNION⟫} LIMIT 1",
];

fn texts() -> [String; 4] {
    TEXTS.map(|recipe| recipe.parse::<Recipe>().expect(recipe).text(usize::MAX))
}

/// Sends light queries over one connection for the duration, and returns their times.
fn light(at: SocketAddr, during: Duration) -> Vec<Duration> {
    let mut stream = TcpStream::connect(at).expect("a connection");
    stream.set_nodelay(true).expect("an option");
    let request = format!(
        "POST /query HTTP/1.1\r\nHost: {at}\r\nContent-Type: {SPARQL}\r\nAccept: text/csv\r\nContent-Length: {}\r\n\r\n{LIGHT}",
        LIGHT.len()
    );
    let (begun, mut times) = (Instant::now(), vec![]);
    let mut said = vec![0; 1 << 16];
    while begun.elapsed() < during {
        let clock = Instant::now();
        stream.write_all(request.as_bytes()).expect("a request");
        let mut got = stream.read(&mut said).expect("an answer");
        times.push(clock.elapsed());
        // The answer may arrive in several pieces.
        while !said[..got].ends_with(b"\r\n") {
            got = stream.read(&mut said).expect("an answer");
            assert!(got > 0, "the connection was closed");
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    times
}

/// The 90th percentile of the times.
fn most(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() * 9 / 10]
}

/// The 90th percentile of the times of light queries while `AT_ONCE` threads repeat `work`.
fn beside(at: SocketAddr, work: impl Fn(usize) + Sync) -> Duration {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for i in 0..AT_ONCE {
            let (stop, work) = (&stop, &work);
            scope.spawn(move || {
                while !stop.load(Relaxed) {
                    work(i);
                }
            });
        }
        std::thread::sleep(Duration::from_millis(300));
        let times = light(at, ROUND);
        stop.store(true, Relaxed);
        most(times)
    })
}

#[test]
#[ignore = "measures times; see docs/testing.md"]
fn light_queries_wait_for_no_hostile_text() {
    let server = Server::start(&["--memory", "2G", "--timeout", "1s"]);
    let texts = texts();
    assert!(texts.iter().all(|t| t.len() > 1_000_000));
    let thrown = AtomicUsize::new(0);
    let mut rounds = [vec![], vec![]];
    for _ in 0..ROUNDS {
        rounds[0].push(beside(server.address, |_| {
            let clock = Instant::now();
            while clock.elapsed() < Duration::from_millis(20) {
                std::hint::spin_loop();
            }
        }));
        rounds[1].push(beside(server.address, |i| {
            let got = query(server.address, &texts[i]);
            assert_ne!(got.status, 0, "no answer");
            thrown.fetch_add(1, Relaxed);
        }));
    }
    println!("{rounds:?}, {} texts", thrown.load(Relaxed));
    let [computing, hostile] = rounds.map(|mut r| {
        r.sort_unstable();
        r[ROUNDS / 2]
    });
    assert!(
        hostile <= computing + LONGER,
        "nine of ten light queries took {hostile:?} at most, and {computing:?} beside threads that compute"
    );
}

/// The server's time for running requests before it exits (`--grace`).
const GRACE: Duration = Duration::from_secs(1);
/// Time allowed after the grace, in which the running texts are freed.
const LATE: Duration = Duration::from_secs(20);

#[test]
fn a_server_that_reads_hostile_texts_ends_when_it_is_told_to() {
    for text in texts() {
        let mut server = Server::start(&["--memory", "2G", "--timeout", "60s", "--grace", "1s"]);
        let at = server.address;
        let text = &text;
        std::thread::scope(|scope| {
            for _ in 0..AT_ONCE {
                // The answer may be that of a server which is shutting down, or missing.
                scope.spawn(|| query(at, text));
            }
            std::thread::sleep(Duration::from_millis(500));
            let took = server.end();
            assert!(
                took < GRACE + LATE,
                "it ended after {took:?}: {}…",
                &text[..60]
            );
        });
    }
}
