//! `jindou bench cluster updates live`: L1 to L7 at every server while triples arrive (OSDI '16 §7.5, Table 4). Each answer has the
//! rows of its snapshot. The processor time of a query is that of all servers, less what the arriving triples take by themselves.

use super::outcome;
use crate::args::updates::UpdatesLive;
use crate::replicas::client::{Client, Request};
use crate::replicas::reads::used;
use crate::replicas::servers::{Place, Server, wrong};
use jindou::Result;
use jindou_model::sync::lock;
use jindou_workloads::lubm::Lubm;
use jindou_workloads::queries::lubm::{LubmQuery, QUERIES};
use std::fmt::Write as _;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Longest wait for an answer.
const LIMIT: Duration = Duration::from_secs(120);
/// Time in which the arriving triples' own processor time is measured.
const ALONE: Duration = Duration::from_secs(5);
const UB: &str = "http://swat.cse.lehigh.edu/onto/univ-bench.owl#";

/// Queries with the rows that each transaction adds.
fn queries() -> impl Iterator<Item = (&'static LubmQuery, u64)> {
    let all = QUERIES.iter().filter(|q| q.name.starts_with('L'));
    all.map(|q| (q, u64::from(matches!(q.name, "L2" | "L7"))))
}

/// An answer: its query, snapshot and rows.
struct Answered(&'static str, u64, u64);

/// Asks a server. Gives the snapshot, and the cells of each row.
fn ask(client: &mut Client, text: &str) -> Result<(u64, Vec<String>)> {
    let answer = client.succeed(&Request::query(text, None))?;
    let snapshot = answer.snapshot().ok_or_else(|| wrong(answer.text()))?;
    Ok((
        snapshot,
        answer.text().lines().skip(1).map(str::to_owned).collect(),
    ))
}

/// Makes transactions.
struct Stream {
    /// A professor with a course, tab-separated, and vertices that the store has.
    taught: String,
    vertices: Vec<String>,
    /// The snapshots that show the transactions, ascending.
    shown: Mutex<Vec<u64>>,
    end: AtomicBool,
}

impl Stream {
    fn new(server: &Server) -> Result<Self> {
        let mut client = server.client(LIMIT);
        let taught = format!(
            "SELECT ?Y ?Z {{ ?Y a <{UB}FullProfessor> ; <{UB}teacherOf> ?Z . ?Z a <{UB}Course> }} LIMIT 1"
        );
        let vertices = format!("SELECT ?X {{ ?X a <{UB}UndergraduateStudent> }} LIMIT 50000");
        let (_, taught) = ask(&mut client, &taught)?;
        Ok(Self {
            taught: taught.first().cloned().unwrap_or_default(),
            vertices: ask(&mut client, &vertices)?.1,
            shown: Mutex::default(),
            end: AtomicBool::new(false),
        })
    }

    /// One course for L2, one student for L7, and edges between vertices, every fourth of which is new.
    fn transaction(&self, n: u64, triples: u64) -> String {
        let (professor, course) = self.taught.split_once('\t').unwrap_or_default();
        let mut text = format!(
            "INSERT DATA {{ <http://e/course{n}> a <{UB}Course> ; <{UB}name> \"course {n}\" . <http://e/student{n}> a <{UB}UndergraduateStudent> ; <{UB}advisor> {professor} ; <{UB}takesCourse> {course} . "
        );
        let known = |n: u64| &self.vertices[(n * 7919) as usize % self.vertices.len()];
        for i in (n * triples..(n + 1) * triples).skip(5) {
            let _ = match i % 4 {
                0 => write!(text, "<http://e/v{i}> <http://e/knows> {} . ", known(i)),
                1 => write!(
                    text,
                    "{} <http://e/knows> <http://e/v{}> . ",
                    known(i),
                    i - 1
                ),
                _ => write!(
                    text,
                    "{} <http://e/p{}> {} . ",
                    known(i),
                    i % 8,
                    known(i / 3)
                ),
            };
        }
        text + "}"
    }

    /// Sends transactions at a rate until the end. Gives how many triples came, and in which time.
    fn send(&self, servers: &[Server], a: &UpdatesLive) -> Result<(u64, Duration)> {
        let mut clients: Vec<Client> = servers.iter().map(|s| s.client(LIMIT)).collect();
        let triples = u64::from(a.triples / a.transactions.max(1));
        let every = Duration::from_secs(1) / a.transactions.max(1);
        let begun = Instant::now();
        let mut n = 0;
        while !self.end.load(Ordering::Relaxed) {
            let due = begun + every * n as u32;
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            let i = n as usize % clients.len();
            let answer = clients[i].succeed(&Request::update(self.transaction(n, triples)))?;
            let number = answer.snapshot().ok_or_else(|| wrong(answer.text()))?;
            lock(&self.shown).push(number);
            n += 1;
        }
        Ok((n * triples, begun.elapsed()))
    }
}

fn used_by_all(servers: &[Server]) -> Result<Duration> {
    servers.iter().map(used).sum()
}

/// Processor time a second of what goes on without queries.
fn alone(servers: &[Server]) -> Result<f64> {
    let before = used_by_all(servers)?;
    std::thread::sleep(ALONE);
    Ok((used_by_all(servers)? - before).as_secs_f64() / ALONE.as_secs_f64())
}

/// Asks each query for some time at all servers in turn. Gives processor milliseconds of each.
fn pass(
    servers: &[Server],
    a: &UpdatesLive,
    besides: f64,
    answers: &mut Vec<Answered>,
) -> Result<Vec<f64>> {
    let mut clients: Vec<Client> = servers.iter().map(|s| s.client(LIMIT)).collect();
    let mut all = Vec::new();
    for (query, _) in queries() {
        let (begun, before) = (Instant::now(), used_by_all(servers)?);
        let mut count = 0_usize;
        while begun.elapsed() < a.time || !count.is_multiple_of(clients.len()) {
            let i = count % clients.len();
            let (snapshot, rows) = ask(&mut clients[i], query.text)?;
            answers.push(Answered(query.name, snapshot, rows.len() as u64));
            count += 1;
        }
        let spent = (used_by_all(servers)? - before).as_secs_f64();
        let own = spent - besides * begun.elapsed().as_secs_f64();
        all.push(own * 1e3 / count as f64);
    }
    Ok(all)
}

/// Answers whose rows are not those of their snapshots.
fn mistakes(answers: &[Answered], shown: &[u64], universities: u32) -> Vec<String> {
    let mut all = Vec::new();
    for (query, of_each) in queries() {
        let mut of = answers.iter().filter(|a| a.0 == query.name).peekable();
        // Without a published number the first answer is that of the loaded data.
        let first = of.peek().map_or(0, |a| a.2);
        let loaded = query.rows(universities).unwrap_or(first);
        for Answered(name, snapshot, rows) in of {
            let came = shown.partition_point(|s| s <= snapshot) as u64;
            if *rows != loaded + of_each * came {
                let want = loaded + of_each * came;
                all.push(format!(
                    "{name}: {rows} rows in snapshot {snapshot} instead of {want}"
                ));
            }
        }
    }
    all.truncate(20);
    all
}

fn mean(of: &[f64], to: &[f64]) -> f64 {
    let logs = of.iter().zip(to).map(|(a, b)| (a / b).max(1e-3).ln());
    (logs.sum::<f64>() / of.len().max(1) as f64).exp()
}

/// Status 3 if an answer was wrong.
pub fn run(a: &UpdatesLive) -> Result<ExitCode> {
    let place = Place::new(&a.setup)?;
    place.load_log(&Lubm::new(a.universities, 0))?;
    let servers = place.replicas(a.setup.servers, &["--merge-at".into(), "1000000000".into()])?;
    let stream = Stream::new(&servers[0])?;
    let mut answers = Vec::new();
    pass(&servers, a, 0.0, &mut answers)?;
    let idle = pass(&servers, a, 0.0, &mut answers)?;
    let (live, came) = std::thread::scope(|scope| {
        let sending = scope.spawn(|| stream.send(&servers, a));
        let mut measured = || -> Result<(Vec<f64>, f64)> {
            let before = alone(&servers)?;
            let live = pass(&servers, a, before, &mut answers)?;
            Ok((live, (before + alone(&servers)?) / 2.0))
        };
        let live = measured();
        stream.end.store(true, Ordering::Relaxed);
        (live, sending.join().map_err(|_| wrong("the stream ended")))
    });
    let ((live, besides), (triples, time)) = (live?, came??);
    let changed = pass(&servers, a, 0.0, &mut answers)?;
    let begun = Instant::now();
    let merge = Request::new("POST", "/admin/merge");
    servers[0].client(LIMIT).succeed(&merge)?;
    let merging = begun.elapsed();
    let merged = pass(&servers, a, 0.0, &mut answers)?;
    let shown = lock(&stream.shown).clone();
    println!(
        "{triples} triples came at {:.0} a second, which took {besides:.2} s of processor time a second; they were merged in {:.1} s",
        triples as f64 / time.as_secs_f64(),
        merging.as_secs_f64()
    );
    println!("query   idle, CPU ms  live, CPU ms  ratio  changed  merged");
    for (i, (query, _)) in queries().enumerate() {
        println!(
            "{:<6} {:>13.3} {:>13.3} {:>6.2} {:>8.2} {:>7.2}",
            query.name,
            idle[i],
            live[i],
            live[i] / idle[i],
            changed[i] / idle[i],
            merged[i] / idle[i]
        );
    }
    println!(
        "mean ratio: live {:.2} (bound: 1.25), with the changes and no more coming {:.2}, merged {:.2} (bound: 1.10); OSDI '16, Table 4: 1.103 and 1.055",
        mean(&live, &idle),
        mean(&changed, &idle),
        mean(&merged, &idle)
    );
    let wrong = mistakes(&answers, &shown, a.universities);
    println!("{} answers, {} wrong", answers.len(), wrong.len());
    Ok(outcome(&wrong))
}
