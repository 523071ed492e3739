//! `jindou bench replicas check`: the W3C's suites sent to the servers in turn (`suites.rs`), then random changes and queries, which one
//! server without a shared log gets as well.
//! Statuses, counts and answers must be equal; labels of blank nodes and unique strings are equal among the servers of the log,
//! and compared with the other's by their places only.

use super::client::{Answer, Client, Request};
use super::servers::{Place, Server, wrong};
use super::steps::{DOCUMENTS, Steps, document};
use super::suites;
use crate::args::replicas::{ReplicasCheck, ReplicasSetup};
use jindou::{Error, Result};
use serde_json::Value;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// No answer takes as long.
const LIMIT: Duration = Duration::from_secs(30);
/// Changes after which whole stores are compared.
const WHOLE: u64 = 100;
const LOADED: &str = "@prefix e: <http://e/> . e:s1 e:p1 e:s2 , \"loaded\" . e:s2 e:p0 7 .";

/// The servers of the log and what was seen of them.
pub struct Replicas {
    pub servers: Vec<Server>,
    clients: Vec<Client>,
    /// The newest snapshot that an answer named.
    newest: u64,
}

impl Replicas {
    pub fn new(servers: Vec<Server>) -> Self {
        Self {
            clients: servers.iter().map(|s| s.client(LIMIT)).collect(),
            servers,
            newest: 0,
        }
    }

    pub fn send(&mut self, i: usize, request: &Request) -> Result<Answer> {
        let answer = self.clients[i].send(request);
        answer.map_err(|e| {
            let said = std::fs::read_to_string(&self.servers[i].said).unwrap_or_default();
            wrong(format!(
                "{}: {e}: {request:?}: {said}",
                self.servers[i].name
            ))
        })
    }

    /// Takes the snapshot of an answer, which must not be older than the newest that was seen.
    pub fn seen(&mut self, i: usize, answer: &Answer) -> std::result::Result<(), Difference> {
        let Some(snapshot) = answer.snapshot() else {
            return Err("an answer without Jindou-Snapshot".into());
        };
        if snapshot < self.newest {
            return Err(format!(
                "{} answers from snapshot {snapshot} after {} was seen",
                self.servers[i].name, self.newest
            ));
        }
        self.newest = snapshot;
        Ok(())
    }
}

/// Random steps, sent to them and to one server without a log.
struct Check {
    replicas: Replicas,
    oracle: Client,
    steps: Steps,
    refused: u64,
    queries: u64,
    repeated: u64,
    merges: u64,
}

/// A difference found; the run ends with it.
type Difference = String;

/// Parts of an answer to a change that must be equal.
fn essence(answer: &Answer) -> (u16, Vec<Value>) {
    let document: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let members = ["added", "removed", "operations", "type"];
    let members = members.map(|m| document.get(m).cloned().unwrap_or_default());
    (answer.status, members.into())
}

fn sorted(answer: &Answer) -> Vec<String> {
    let mut lines: Vec<String> = answer.text().lines().map(str::to_owned).collect();
    lines.sort_unstable();
    lines
}

/// Quads without the labels of blank nodes and without unique strings.
fn anonymous(lines: &[String]) -> Vec<String> {
    let nameless = |word: &str| match word.starts_with("_:") {
        true => "_:b".to_owned(),
        false => word.to_owned(),
    };
    let mut all: Vec<String> = lines
        .iter()
        .map(|line| {
            let mut words: Vec<String> = line.split(' ').map(nameless).collect();
            if words.get(1).is_some_and(|p| p == "<http://e/unique>") {
                words[2] = "\"unique\"".to_owned();
            }
            words.join(" ")
        })
        .collect();
    all.sort_unstable();
    all
}

fn first_difference(a: &[String], b: &[String]) -> String {
    let missing = |of: &[String], other: &[String]| -> Vec<String> {
        let there: std::collections::HashSet<&String> = other.iter().collect();
        of.iter()
            .filter(|l| !there.contains(l))
            .take(3)
            .cloned()
            .collect()
    };
    format!(
        "{} and {} lines; only the first: {:?}; only the second: {:?}",
        a.len(),
        b.len(),
        missing(a, b),
        missing(b, a)
    )
}

impl Check {
    fn ask_oracle(&mut self, request: &Request) -> Result<Answer> {
        let answer = self.oracle.send(request);
        answer.map_err(|e| wrong(format!("the server without a log: {e}: {request:?}")))
    }

    fn any(&mut self) -> usize {
        self.steps.below(self.replicas.clients.len() as u64) as usize
    }

    /// One change at one server, sometimes again at another with the same key.
    fn change(&mut self, i: usize) -> Result<Option<Difference>> {
        let mut request = self.steps.change();
        let keyed = self.steps.below(8) == 0;
        if keyed {
            let key = format!("key-{}", self.steps.below(1 << 60));
            request = request.with("Idempotency-Key", key);
        }
        let got = self.replicas.send(i, &request)?;
        let want = self.ask_oracle(&request)?;
        if essence(&got) != essence(&want) {
            return Ok(Some(format!(
                "{} says {} {} and the server without a log {} {}: {request:?}",
                self.replicas.servers[i].name,
                got.status,
                got.text(),
                want.status,
                want.text()
            )));
        }
        if got.is_success() {
            if let Err(what) = self.replicas.seen(i, &got) {
                return Ok(Some(format!("{what}: {request:?}")));
            }
        } else {
            self.refused += 1;
        }
        if keyed && got.is_success() {
            self.repeated += 1;
            let j = self.any();
            let again = self.replicas.send(j, &request)?;
            if essence(&again) != essence(&got) || again.snapshot() != got.snapshot() {
                return Ok(Some(format!(
                    "the same key: {} says {} {}, {} {} {}: {request:?}",
                    self.replicas.servers[i].name,
                    got.status,
                    got.text(),
                    self.replicas.servers[j].name,
                    again.status,
                    again.text()
                )));
            }
        }
        Ok(None)
    }

    fn query(&mut self) -> Result<Option<Difference>> {
        self.queries += 1;
        let (i, text) = (self.any(), self.steps.query());
        let at_least = format!("at-least={}", self.replicas.newest);
        let consistency = match self.steps.below(6) {
            0 => Some("strict"),
            1 | 2 => Some(at_least.as_str()),
            _ => None,
        };
        let request = Request::query(text, consistency);
        let got = self.replicas.send(i, &request)?;
        let want = self.ask_oracle(&request)?;
        if (got.status, sorted(&got)) != (want.status, sorted(&want)) {
            return Ok(Some(format!(
                "{} answers {} {} and the server without a log {} {}: {request:?}",
                self.replicas.servers[i].name,
                got.status,
                got.text(),
                want.status,
                want.text()
            )));
        }
        let seen = self.replicas.seen(i, &got);
        Ok(seen.err().map(|what| format!("{what}: {request:?}")))
    }

    /// All quads and prefixes, of all servers.
    fn whole(&mut self) -> Result<Option<Difference>> {
        let quads = Request::new("GET", "/store").with("Accept", "application/n-quads");
        let prefixes = Request::new("GET", "/prefixes");
        let want = sorted(&self.ask_oracle(&quads)?);
        let known = sorted(&self.ask_oracle(&prefixes)?);
        let mut first: Option<Vec<String>> = None;
        for i in 0..self.replicas.clients.len() {
            let name = self.replicas.servers[i].name;
            let got = sorted(&self.replicas.send(i, &quads)?);
            let (got_less, want_less) = (anonymous(&got), anonymous(&want));
            if got_less != want_less {
                let what = first_difference(&got_less, &want_less);
                return Ok(Some(format!("{name} and the server without a log: {what}")));
            }
            let first = first.get_or_insert_with(|| got.clone());
            if *first != got {
                let what = first_difference(&got, first);
                return Ok(Some(format!(
                    "{name} and {}: {what}",
                    self.replicas.servers[0].name
                )));
            }
            let got = sorted(&self.replicas.send(i, &prefixes)?);
            if got != known {
                let what = first_difference(&got, &known);
                return Ok(Some(format!("{name}: prefixes: {what}")));
            }
        }
        Ok(None)
    }
}

/// Status 3 if an answer differed.
pub fn run(a: &ReplicasCheck) -> Result<ExitCode> {
    // Each part has a log of its own.
    let part = |name: &str| ReplicasSetup {
        log: a.setup.log.as_ref().map(|log| format!("{log}/{name}")),
        ..a.setup.clone()
    };
    if !a.no_suites && !suites::run(&part("suites"))? {
        return Ok(ExitCode::from(3));
    }
    match a.steps {
        0 => Ok(ExitCode::SUCCESS),
        _ => random_steps(a, &part("steps")),
    }
}

fn random_steps(a: &ReplicasCheck, setup: &ReplicasSetup) -> Result<ExitCode> {
    let place = Place::new(setup)?;
    let documents = place.path("documents");
    std::fs::create_dir(&documents).map_err(|e| Error::io(&documents, e))?;
    for n in 0..DOCUMENTS {
        let file = documents.join(format!("{n}.ttl"));
        std::fs::write(&file, document(n)).map_err(|e| Error::io(&file, e))?;
    }
    let more = ["--load-from".into(), documents.display().to_string()];
    place.load("alone", LOADED)?;
    place.load("one", LOADED)?;
    let alone = place.alone("alone", &more)?;
    let mut check = Check {
        replicas: Replicas::new(place.replicas(a.setup.servers, &more)?),
        oracle: alone.client(LIMIT),
        steps: Steps::new(a.seed, documents),
        refused: 0,
        queries: 0,
        repeated: 0,
        merges: 0,
    };
    let begun = Instant::now();
    for step in 0..a.steps {
        let mut found = check.change(step as usize % a.setup.servers)?;
        if found.is_none() && check.steps.below(2) == 0 {
            found = check.query()?;
        }
        if found.is_none() && (step % WHOLE == WHOLE - 1 || step + 1 == a.steps) {
            found = check.whole()?;
        }
        if check.steps.below(2000) == 0 {
            let i = check.any();
            check
                .replicas
                .send(i, &Request::new("POST", "/admin/merge"))?;
            check.merges += 1;
        }
        if let Some(what) = found {
            println!("step {step} of seed {}: {what}", a.seed);
            return Ok(ExitCode::from(3));
        }
        if step % 10_000 == 9_999 {
            println!(
                "{} changes after {:.0} s",
                step + 1,
                begun.elapsed().as_secs_f64()
            );
        }
    }
    println!(
        "{} changes sent to {} servers in turn, {} of them refused, {} sent again; {} queries, {} merges, all as of one server without a log; snapshot {}; {:.1} s; seed {}",
        a.steps,
        a.setup.servers,
        check.refused,
        check.repeated,
        check.queries,
        check.merges,
        check.replicas.newest,
        begun.elapsed().as_secs_f64(),
        a.seed
    );
    Ok(ExitCode::SUCCESS)
}
