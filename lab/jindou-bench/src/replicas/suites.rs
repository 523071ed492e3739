//! The W3C's suites of SPARQL Update, of the Graph Store Protocol and of the SPARQL Protocol, each request sent to the next server of
//! a shared log. Whatever changes the store is sent to one server; what must be there afterwards is read from all of them, at
//! snapshots that have all that was acknowledged before.

use super::check::Replicas;
use super::client::{Answer, Request};
use super::servers::{Place, wrong};
use crate::args::replicas::ReplicasSetup;
use jindou::Result;
use jindou_testing::w3c::requests::{self, Exchange};
use jindou_testing::w3c::{dataset, find, manifest, quads_of, same, show};
use oxrdf::Dataset;
use oxrdfio::RdfFormat;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Instant;

const NQUADS: &str = "application/n-quads";

/// Result of a test, within that of the run.
type Outcome = Result<std::result::Result<(), String>>;

/// `Err` of a test, not of the run.
macro_rules! held {
    ($outcome:expr) => {
        match $outcome {
            Ok(value) => value,
            Err(why) => return Ok(Err(why)),
        }
    };
}

struct Suites {
    replicas: Replicas,
    /// Requests sent to one server.
    sent: usize,
}

/// Runs all suites; false if a test fails.
pub fn run(setup: &ReplicasSetup) -> Result<bool> {
    let folder = match find("w3c/sparql/sparql11") {
        Ok(folder) => folder,
        Err(why) => {
            println!("not run: the W3C's suites: {why}");
            return Ok(true);
        }
    };
    // The requests' documents are sent, and nothing else is read.
    let place = Place::new(setup)?;
    let servers = place.replicas(setup.servers, &[])?;
    let mut suites = Suites {
        replicas: Replicas::new(servers),
        sent: 0,
    };
    let mut held = suites.updates(&folder)?;
    for (what, part, kind, data) in PROTOCOLS {
        held &= suites.protocol(what, &folder.join(part), kind, data)?;
    }
    Ok(held)
}

/// Suites of requests: name, manifest, kind of tests, and data that is there before each.
const PROTOCOLS: [(&str, &str, &str, &str); 3] = [
    (
        "Graph Store Protocol, graphs named by parameters",
        "graph-store-protocol/manifest-indirect.ttl",
        "GraphStoreProtocolTest",
        "<http://e/a> <http://e/b> <http://e/c> .\n",
    ),
    (
        "Graph Store Protocol, graphs named by paths",
        "graph-store-protocol/manifest-direct.ttl",
        "GraphStoreProtocolTest",
        "<http://e/a> <http://e/b> <http://e/c> .\n",
    ),
    (
        "SPARQL 1.1 Protocol",
        "protocol/manifest.ttl",
        "ProtocolTest",
        DOCUMENTS,
    ),
];

/// The three documents of the protocol's suite.
const DOCUMENTS: &str = "\
<http://kasei.us/2009/09/sparql/data/data1.rdf> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://xmlns.com/foaf/0.1/Document> <http://kasei.us/2009/09/sparql/data/data1.rdf> .
<http://kasei.us/2009/09/sparql/data/data2.rdf> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://xmlns.com/foaf/0.1/Document> <http://kasei.us/2009/09/sparql/data/data2.rdf> .
<http://kasei.us/2009/09/sparql/data/data3.rdf> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://xmlns.com/foaf/0.1/Document> <http://kasei.us/2009/09/sparql/data/data3.rdf> .
";

impl Suites {
    fn servers(&self) -> usize {
        self.replicas.servers.len()
    }

    /// Sends a change to the next server.
    fn change(&mut self, request: &Request) -> Result<Answer> {
        let i = self.sent % self.servers();
        self.sent += 1;
        self.replicas.send(i, request)
    }

    /// A change that must be made.
    fn made(&mut self, request: &Request) -> Outcome {
        let i = self.sent % self.servers();
        let answer = self.change(request)?;
        if !answer.is_success() {
            return Ok(Err(format!(
                "{}: {}",
                self.replicas.servers[i].name,
                answer.text()
            )));
        }
        Ok(self.replicas.seen(i, &answer))
    }

    /// Empties the store, and puts these quads there.
    fn begin(&mut self, quads: &str) -> Outcome {
        held!(self.made(&Request::update("DROP ALL"))?);
        match quads.is_empty() {
            true => Ok(Ok(())),
            false => self.made(&Request::new("POST", "/store").body(NQUADS, quads)),
        }
    }

    /// All quads of a server.
    fn quads(&mut self, i: usize) -> Result<std::result::Result<Dataset, String>> {
        let request = Request::new("GET", "/store").with("Accept", NQUADS);
        let answer = self.replicas.send(i, &request)?;
        if answer.status != 200 {
            return Ok(Err(answer.text()));
        }
        held!(self.replicas.seen(i, &answer));
        Ok(quads_of(&answer.body, RdfFormat::NQuads))
    }

    fn told(&self, what: &str, tests: usize, failed: &[String], begun: Instant) -> bool {
        println!(
            "W3C {what}: {} of {tests} tests, each begun at each of {} servers; {:.1} s",
            tests - failed.len(),
            self.servers(),
            begun.elapsed().as_secs_f64()
        );
        for why in failed {
            println!("  {why}");
        }
        failed.is_empty() && tests > 0
    }

    /// Runs a test once from each server on; gives the first failure.
    fn begun_at_each(
        &mut self,
        name: &str,
        test: impl Fn(&mut Self) -> Outcome,
    ) -> Result<Option<String>> {
        for first in 0..self.servers() {
            self.sent = first;
            if let Err(why) = test(self)? {
                let at = self.replicas.servers[first].name;
                return Ok(Some(format!("{name}, begun at {at}: {why}")));
            }
        }
        Ok(None)
    }

    fn updates(&mut self, folder: &Path) -> Result<bool> {
        let begun = Instant::now();
        let path = folder.join("manifest-sparql11-update.ttl");
        let mut tests = manifest::read(&path).map_err(wrong)?;
        tests.retain(|test| test.kind == "UpdateEvaluationTest");
        let mut failed = Vec::new();
        for test in &tests {
            failed.extend(self.begun_at_each(&test.name, |this| this.update(test))?);
        }
        Ok(self.told("SPARQL 1.1 Update", tests.len(), &failed, begun))
    }

    fn update(&mut self, test: &manifest::Test) -> Outcome {
        let text = std::fs::read_to_string(&test.query);
        let text = held!(text.map_err(|e| format!("{}: {e}", test.query.display())));
        let before = held!(dataset(&test.data, &test.graphs));
        let after = held!(dataset(&test.after.0, &test.after.1));
        let mut lines = String::new();
        for quad in &before {
            let _ = writeln!(lines, "{quad} .");
        }
        held!(self.begin(&lines)?);
        let base = manifest::iri_of(&test.query);
        held!(self.made(&Request::update(format!("BASE <{base}>\n{text}")))?);
        for i in 0..self.servers() {
            let got = held!(self.quads(i)?);
            if !same(&got, &after) {
                return Ok(Err(format!(
                    "{} has {}\n   expected {}",
                    self.replicas.servers[i].name,
                    show(&got),
                    show(&after)
                )));
            }
        }
        Ok(Ok(()))
    }

    fn protocol(&mut self, what: &str, path: &Path, kind: &str, data: &str) -> Result<bool> {
        let begun = Instant::now();
        let tests = requests::read(path, kind).map_err(wrong)?;
        let mut failed = Vec::new();
        for test in &tests {
            failed.extend(self.begun_at_each(&test.name, |this| this.requests(test, data))?);
        }
        Ok(self.told(what, tests.len(), &failed, begun))
    }

    fn requests(&mut self, test: &requests::Test, data: &str) -> Outcome {
        held!(self.begin(data)?);
        let mut location: Option<(&str, String)> = None;
        for exchange in &test.exchanges {
            let mut path = exchange.path.clone();
            if let Some((name, value)) = &location {
                path = path.replace(name, value);
            }
            let mut request = Request::new(&*exchange.method, held!(exchange.target(&path)));
            request.headers.clone_from(&exchange.headers);
            request.body.clone_from(&exchange.body);
            if request.changes_nothing() {
                for i in 0..self.servers() {
                    let answer = self.replicas.send(i, &request)?;
                    held!(self.answered(i, exchange, &answer));
                }
                continue;
            }
            let i = self.sent % self.servers();
            let answer = self.change(&request)?;
            held!(self.answered(i, exchange, &answer));
            if let Some(name) = &exchange.location {
                let value = answer.header("location");
                let value = held!(value.ok_or_else(|| "no Location".to_owned()));
                location = Some((name, value.to_owned()));
            }
        }
        let first = held!(self.quads(0)?);
        for i in 1..self.servers() {
            let got = held!(self.quads(i)?);
            // Labels of blank nodes, too.
            if got != first {
                let (got, first) = (show(&got), show(&first));
                return Ok(Err(format!("servers have {first}\n   and {got}")));
            }
        }
        Ok(Ok(()))
    }

    fn answered(
        &mut self,
        i: usize,
        exchange: &Exchange,
        answer: &Answer,
    ) -> std::result::Result<(), String> {
        let expected = exchange.check(&requests::Answer {
            status: answer.status,
            content_type: answer.header("content-type").unwrap_or_default(),
            body: &answer.body,
        });
        let name = self.replicas.servers[i].name;
        let asked = || format!("{name}: {} {}", exchange.method, exchange.path);
        expected.map_err(|why| format!("{}: {why}", asked()))?;
        match answer.is_success() {
            true => self.replicas.seen(i, answer),
            false => Ok(()),
        }
    }
}
