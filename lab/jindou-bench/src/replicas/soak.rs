//! `jindou bench replicas soak`: constant data, whose values are replaced all the time, until all servers have merged many
//! times. Files, memory and log must not grow: the terms that no quad uses any more give their ids to new ones.

use super::client::{Client, Request};
use super::servers::{Place, Server, turtle, wrong};
use crate::args::replicas::ReplicasSoak;
use crate::measure::{bytes_in, size_in};
use jindou::Result;
use std::fmt::Write;
use std::process::ExitCode;
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(120);
/// Values of a subject; an update replaces them all.
const VALUES: u64 = 20;
/// Subjects whose values are compared after each merge.
const COMPARED: u64 = 40;
/// Merges at the beginning and at the end whose figures are compared, and what the last may be of the first.
const SHARE: usize = 5;
const MOST: f64 = 1.2;

fn value(update: u64, n: u64) -> String {
    format!("value {n} of update {update}")
}

fn values(update: u64) -> String {
    let mut text = String::new();
    for n in 0..VALUES {
        let _ = write!(text, " <http://e/p{n}> \"{}\" ;", value(update, n));
    }
    text
}

/// The update that replaced a subject's values last, of those up to `done`; 0 is the load.
fn last_of(subject: u64, done: u64, subjects: u64) -> u64 {
    let round = (done + subjects - 1 - subject) / subjects;
    round
        .checked_sub(1)
        .map_or(0, |round| round * subjects + subject + 1)
}

/// Bytes of memory that only a process has: pages of mapped files do not count.
fn memory_of(server: &Server) -> Result<u64> {
    let id = server.process.as_ref().map(crate::process::Process::id);
    let path = format!("/proc/{}/status", id.unwrap_or_default());
    size_in(&path, "RssAnon:").ok_or_else(|| wrong(format!("{path} has no RssAnon")))
}

/// Figures after a merge: the most of all servers, and the log's.
#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    files: u64,
    memory: u64,
    log: u64,
}

type Figure = fn(&Sample) -> u64;

struct Soak<'a> {
    a: &'a ReplicasSoak,
    place: Place,
    servers: Vec<Server>,
    clients: Vec<Client>,
    /// Updates so far.
    done: u64,
}

impl Soak<'_> {
    fn subjects(&self) -> u64 {
        (self.a.quads / VALUES).max(1)
    }

    fn update(&mut self) -> Result<()> {
        let subject = self.done % self.subjects();
        let before = last_of(subject, self.done, self.subjects());
        self.done += 1;
        let s = format!("<http://e/s{subject}>");
        let text = format!(
            "DELETE DATA {{ {s} {} }} ; INSERT DATA {{ {s} {} }}",
            values(before),
            values(self.done)
        );
        let at = self.done as usize % self.servers.len();
        self.clients[at].succeed(&Request::update(text)).map(drop)
    }

    /// Compares the number of quads, and the values of some subjects, at each server.
    fn compare(&mut self) -> Result<()> {
        let (subjects, done) = (self.subjects(), self.done);
        let count = Request::query("SELECT (COUNT(*) AS ?n) { ?s ?p ?o }", Some("strict"));
        for (server, client) in self.servers.iter().zip(&mut self.clients) {
            let found = client.succeed(&count)?.text();
            if !found.contains(&(subjects * VALUES).to_string()) {
                return Err(wrong(format!("{} counts {found}", server.name)));
            }
            for n in 0..COMPARED {
                let subject = (done + n * 7_919) % subjects;
                let text = format!("SELECT ?p ?o {{ <http://e/s{subject}> ?p ?o }}");
                let query = Request::query(text, Some("strict"));
                let found = client.succeed(&query)?.text();
                let mut found: Vec<&str> = found.lines().skip(1).collect();
                let update = last_of(subject, done, subjects);
                let mut want: Vec<String> = (0..VALUES)
                    .map(|n| format!("<http://e/p{n}>\t\"{}\"", value(update, n)))
                    .collect();
                found.sort_unstable();
                want.sort_unstable();
                if found != want {
                    return Err(wrong(format!(
                        "{}: {found:?} instead of {want:?}",
                        server.name
                    )));
                }
            }
        }
        Ok(())
    }

    fn merge(&mut self) -> Result<Sample> {
        let request = Request::new("POST", "/admin/merge");
        let mut sample = Sample::default();
        for client in &mut self.clients {
            client.succeed(&request)?;
        }
        self.compare()?;
        for server in &self.servers {
            sample.files = sample.files.max(bytes_in(&server.store));
            sample.memory = sample.memory.max(memory_of(server)?);
        }
        sample.log = self.place.log_folder().map_or(0, bytes_in);
        Ok(sample)
    }
}

/// The mean of some merges.
fn mean(samples: &[Sample], of: Figure) -> f64 {
    samples.iter().map(|s| of(s) as f64).sum::<f64>() / samples.len().max(1) as f64
}

pub fn run(a: &ReplicasSoak) -> Result<ExitCode> {
    let place = Place::new(&a.setup)?;
    let subjects = (a.quads / VALUES).max(1);
    let mut data = String::new();
    for s in 0..subjects {
        let _ = writeln!(
            data,
            "<http://e/s{s}> {} .",
            values(0).trim_end_matches(';')
        );
    }
    place.load_log(&turtle(&data)?)?;
    let more = ["--merge", "off", "--keep", "1m"].map(str::to_owned);
    let servers = place.replicas(a.setup.servers, &more)?;
    let clients = servers.iter().map(|s| s.client(LIMIT)).collect();
    let mut soak = Soak {
        a,
        place,
        servers,
        clients,
        done: 0,
    };
    let begun = Instant::now();
    let mut samples: Vec<Sample> = Vec::new();
    println!("merge   updates   seconds   MiB of files   of memory   of the log");
    while samples.len() < a.merges {
        for _ in 0..a.updates {
            soak.update()?;
        }
        let sample = soak.merge()?;
        samples.push(sample);
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        println!(
            "{:>5} {:>9} {:>9.1} {:>14.1} {:>11.1} {:>12.1}",
            samples.len(),
            soak.done,
            begun.elapsed().as_secs_f64(),
            mib(sample.files),
            mib(sample.memory),
            mib(sample.log)
        );
    }
    let share = SHARE.min(samples.len() / 2);
    let (first, last) = (&samples[..share], &samples[samples.len() - share..]);
    let mut grown = false;
    let figures: [(&str, Figure); 3] = [
        ("files", |s| s.files),
        ("memory", |s| s.memory),
        ("log", |s| s.log),
    ];
    for (what, of) in figures {
        let ratio = mean(last, of) / mean(first, of).max(1.0);
        println!("{what}: the last {share} merges have {ratio:.2} times what the first had");
        grown |= ratio > MOST;
    }
    Ok(ExitCode::from(if grown { 3 } else { 0 }))
}
