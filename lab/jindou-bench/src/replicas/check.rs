//! `jindou bench replicas check`: the W3C's suites sent to the servers in turn (`suites.rs`), then random changes and queries, which one
//! server without a shared log gets as well.
//! Statuses, counts and answers must be equal; labels of blank nodes and unique strings are equal among the servers of the log,
//! and compared with the other's by their places only.

use super::client::{Answer, Client, Request};
use super::queries::{Queries, ROUND};
use super::servers::{LOADED as IN_SHARDS, PATIENCE, Place, Server, turtle, wrong};
use super::steps::{DOCUMENTS, Steps, document};
use super::suites;
use super::upset::Upset;
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
    /// False for a server without a log, whose answers name no snapshots.
    have_log: bool,
    clients: Vec<Client>,
    /// The newest snapshot that an answer named.
    newest: u64,
}

impl Replicas {
    pub fn new(servers: Vec<Server>) -> Self {
        Self {
            clients: servers.iter().map(|s| s.client(LIMIT)).collect(),
            servers,
            have_log: true,
            newest: 0,
        }
    }

    /// Starts a server that has ended.
    pub fn start_again(&mut self, i: usize) -> Result<()> {
        self.servers[i].start()?;
        self.servers[i].ready(PATIENCE)?;
        self.clients[i] = self.servers[i].client(LIMIT);
        Ok(())
    }

    fn connect_again(&mut self) {
        self.clients = self.servers.iter().map(|s| s.client(LIMIT)).collect();
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
        if !self.have_log {
            return Ok(());
        }
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
    upset: Upset,
}

/// A difference found; the run ends with it.
pub type Difference = String;

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

    /// A server that is not away.
    fn any(&mut self) -> usize {
        loop {
            let i = self.steps.below(self.replicas.clients.len() as u64) as usize;
            if !self.upset.is_away(i) {
                return i;
            }
        }
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

    /// One change, sometimes a query, and what happens to the servers meanwhile.
    fn step(&mut self, step: u64, last: bool) -> Result<Option<Difference>> {
        let found = self
            .upset
            .act(step, last, &mut self.steps, &mut self.replicas)?;
        if found.is_some() {
            return Ok(found);
        }
        let at = step as usize % self.replicas.servers.len();
        let at = if self.upset.is_away(at) {
            self.any()
        } else {
            at
        };
        let mut found = self.change(at)?;
        if found.is_none() && self.steps.below(2) == 0 {
            found = self.query()?;
        }
        if found.is_none() && (step % WHOLE == WHOLE - 1 || last) {
            found = self.whole()?;
        }
        Ok(found)
    }

    /// Removes strings that are not the same in both stores, and adds quads that random queries find, half of the time merged.
    fn prepare_queries(&mut self) -> Result<()> {
        let unique = "DELETE WHERE { ?s <http://e/unique> ?u } ; DELETE WHERE { GRAPH ?g { ?s <http://e/unique> ?u } }";
        let mut requests = vec![Request::update(unique)];
        requests.extend((0..30).map(|_| Request::update(self.steps.insertion())));
        if self.steps.below(2) == 0 {
            requests.insert(20, Request::new("POST", "/admin/merge"));
        }
        for request in requests {
            let at = self.any();
            self.replicas.send(at, &request)?;
            self.ask_oracle(&request)?;
        }
        Ok(())
    }

    /// All quads and prefixes, of all servers.
    fn whole(&mut self) -> Result<Option<Difference>> {
        let quads = Request::new("GET", "/store").with("Accept", "application/n-quads");
        let prefixes = Request::new("GET", "/prefixes");
        let want = sorted(&self.ask_oracle(&quads)?);
        let known = sorted(&self.ask_oracle(&prefixes)?);
        let mut first: Option<Vec<String>> = None;
        let all = 0..self.replicas.clients.len();
        for i in all.filter(|&i| !self.upset.is_away(i)) {
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
    if a.in_process && a.setup.shards.is_none() {
        return Err(Error::Usage("--in-process needs --shards".into()));
    }
    // Each part has a log of its own.
    let part = |name: &str| ReplicasSetup {
        log: a.setup.log.as_ref().map(|log| format!("{log}/{name}")),
        ..a.setup.clone()
    };
    if !a.no_suites && !a.in_process && !suites::run(&part("suites"))? {
        return Ok(ExitCode::from(3));
    }
    let usual = match a.setup.shards {
        Some(_) if !a.in_process => 20_000,
        _ => 100_000,
    };
    match a.steps.unwrap_or(usual) {
        0 => Ok(ExitCode::SUCCESS),
        steps => random_steps(a, steps, &part("steps")),
    }
}

fn random_steps(a: &ReplicasCheck, steps: u64, setup: &ReplicasSetup) -> Result<ExitCode> {
    let place = Place::new(setup)?;
    let documents = place.path("documents");
    std::fs::create_dir(&documents).map_err(|e| Error::io(&documents, e))?;
    for n in 0..DOCUMENTS {
        let file = documents.join(format!("{n}.ttl"));
        std::fs::write(&file, document(n)).map_err(|e| Error::io(&file, e))?;
    }
    let more = ["--load-from".into(), documents.display().to_string()];
    place.load("alone", LOADED)?;
    place.load_log(&turtle(LOADED)?)?;
    let alone = place.alone("alone", &more)?;
    let servers = match a.in_process {
        true => vec![place.alone(IN_SHARDS, &more)?],
        false => place.replicas(setup.servers, &more)?,
    };
    let mut queries = match setup.shards {
        Some(shards) => Some(Queries::new(&place, shards, !a.in_process, a.seed)?),
        None => None,
    };
    let mut replicas = Replicas::new(servers);
    replicas.have_log = !a.in_process;
    let mut check = Check {
        replicas,
        oracle: alone.client(LIMIT),
        steps: Steps::new(a.seed, documents),
        refused: 0,
        queries: 0,
        repeated: 0,
        upset: Upset::new(setup.shards.is_some()),
    };
    let begun = Instant::now();
    for step in 0..steps {
        let last = step + 1 == steps;
        let found = check.step(step, last)?;
        let found = match (&mut queries, found) {
            (Some(queries), None) if last || step % ROUND == ROUND - 1 => {
                check.prepare_queries()?;
                let found = queries.compare(&alone.store, &check.replicas.servers[0].store)?;
                // Servers close connections that are idle for as long.
                check.oracle = alone.client(LIMIT);
                check.replicas.connect_again();
                found
            }
            (_, found) => found,
        };
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
        "{steps} changes sent to {} servers in turn, {} of them refused, {} sent again; {} queries, {}, all as of one server without a log; snapshot {}; {:.1} s; seed {}",
        check.replicas.servers.len(),
        check.refused,
        check.repeated,
        check.queries,
        check.upset,
        check.replicas.newest,
        begun.elapsed().as_secs_f64(),
        a.seed
    );
    if let Some(queries) = &queries {
        println!("{queries}");
    }
    Ok(ExitCode::SUCCESS)
}
