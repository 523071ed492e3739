//! The W3C's tests of the SPARQL 1.1 Protocol and of the Graph Store Protocol: the requests of each test are sent to a
//! server of its own, and every response must be as the manifest says.

use crate::{Store, options, serve, store};
use jindou_server::Server;
use jindou_testing::http::request;
use jindou_testing::w3c::requests::{Answer, Test, read};
use jindou_testing::w3c::shared;

fn run(test: &Test, server: &Server) -> Result<(), String> {
    let mut location: Option<(&str, String)> = None;
    for exchange in &test.exchanges {
        let mut path = exchange.path.clone();
        if let Some((name, value)) = &location {
            path = path.replace(name, value);
        }
        let target = exchange.target(&path)?;
        let pairs: Vec<(&str, &str)> = (exchange.headers.iter()).map(|h| (&*h.0, &*h.1)).collect();
        let (method, to) = (&exchange.method, server.address());
        let answer = request(to, method, &target, &pairs, &exchange.body);
        exchange.check(&Answer {
            status: answer.status,
            content_type: answer.header("content-type"),
            body: &answer.body,
        })?;
        if let Some(name) = &exchange.location {
            let value = answer.header("location").to_owned();
            if value.is_empty() {
                return Err("no Location".into());
            }
            location = Some((name, value));
        }
    }
    Ok(())
}

/// Runs all tests of a manifest, each on a server of its own.
fn all_pass(part: &str, kind: &str, data: impl Fn() -> Store) -> usize {
    let Some(path) = shared(&format!("w3c/sparql/sparql11/{part}")) else {
        return 0;
    };
    let tests = read(&path, kind).unwrap();
    let mut failed = vec![];
    for test in &tests {
        let data = data();
        let server = serve(&data, options().with_writable(true));
        if let Err(why) = run(test, &server) {
            failed.push(format!("{}: {why}", test.name));
        }
    }
    println!(
        "{part}: {} of {} passed",
        tests.len() - failed.len(),
        tests.len()
    );
    assert!(failed.is_empty(), "failed: {failed:#?}");
    tests.len()
}

#[test]
fn protocol() {
    let data = || {
        let graphs = (1..=3).map(|i| {
            let data = "http://kasei.us/2009/09/sparql/data/data";
            format!(
                "<{data}{i}.rdf> {{ <{data}{i}.rdf> a <http://xmlns.com/foaf/0.1/Document> }}\n"
            )
        });
        store(&graphs.collect::<String>())
    };
    let n = all_pass("protocol/manifest.ttl", "ProtocolTest", data);
    assert!(n == 0 || n == 34, "{n}");
}

#[test]
fn graph_store_protocol() {
    for (part, tests) in [("manifest-indirect.ttl", 9), ("manifest-direct.ttl", 5)] {
        let n = all_pass(
            &format!("graph-store-protocol/{part}"),
            "GraphStoreProtocolTest",
            || store("<http://e/a> <http://e/b> <http://e/c> ."),
        );
        assert!(n == 0 || n == tests, "{n}");
    }
}
