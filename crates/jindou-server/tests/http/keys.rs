//! `Idempotency-Key` after restarts, in concurrent requests, and on several servers.

use crate::{UPDATE, get, quads, send, serve, store, writable};
use jindou::Database;
use jindou_server::Server;
use jindou_testing::http::{Answer, request};

const TURTLE: (&str, &str) = ("content-type", "text/turtle");
const INSERT: &str = "INSERT { [] <http://e/c> 1 } WHERE {}";

fn keyed(
    server: &Server,
    method: &str,
    target: &str,
    key: &str,
    media: (&str, &str),
    body: &str,
) -> Answer {
    let headers = [media, ("idempotency-key", key)];
    send(server, method, target, &headers, body)
}

fn update(server: &Server, key: &str, text: &str) -> Answer {
    keyed(server, "POST", "/update", key, UPDATE, text)
}

fn assert_reused(answer: &Answer) {
    assert_eq!(answer.status, 422, "{}", answer.text());
    assert_eq!(answer.problem(), "key-reused");
    assert!(
        answer.text().contains("another request"),
        "{}",
        answer.text()
    );
}

/// A key is still known after restarts: from the log, from the files that a merge wrote, and after a reclustering.
#[test]
fn keys_outlive_restarts() {
    let crate::Store { db, folder } = store("");
    let dir = folder.path().join("store");
    let server = Server::start(db, writable()).unwrap();
    let first = update(&server, "k", INSERT);
    assert_eq!((first.status, &first.json()["added"]), (200, &1.into()));
    assert_eq!(update(&server, "l", INSERT).status, 200);
    drop(server);
    let done = |server: &Server| {
        let again = update(server, "k", INSERT);
        assert_eq!(again.status, 200, "{}", again.text());
        for part in ["snapshot", "operations", "added", "removed"] {
            assert_eq!(again.json()[part], first.json()[part]);
        }
        let text = "INSERT DATA { <http://e/a> <http://e/b> 2 }";
        assert_reused(&update(server, "k", text));
        assert_eq!(quads(server), 2);
    };
    for admin in ["/admin/merge", "/admin/merge", "/admin/recluster"] {
        let server = Server::start(Database::open(&dir).unwrap(), writable()).unwrap();
        done(&server);
        let work = request(server.address(), "POST", admin, &[], b"");
        assert!(work.status < 300, "{}", work.text());
        if admin.ends_with("recluster") {
            crate::until("reclustering", || {
                let state = get(&server, admin);
                !state.text().contains("running")
            });
        }
        done(&server);
    }
}

#[test]
fn requests_with_one_key_at_the_same_time_are_done_once() {
    let data = store("");
    let server = serve(&data, writable());
    std::thread::scope(|scope| {
        for n in 0..8 {
            let server = &server;
            scope.spawn(move || {
                let text = format!("INSERT {{ [] <http://e/c> {} }} WHERE {{}}", n % 2);
                let answer = update(server, "k", &text);
                assert!(matches!(answer.status, 200 | 422), "{}", answer.text());
            });
        }
    });
    assert_eq!(quads(&server), 1);
}

#[test]
fn a_key_belongs_to_its_request_at_all_servers_of_a_log() {
    let folder = tempfile::tempdir().unwrap();
    let servers = crate::conditions::replicas(folder.path());
    let [a, b, c] = &servers[..] else {
        panic!("three servers");
    };
    let text = "INSERT DATA { <http://e/a> <http://e/b> 1 }";
    let first = update(a, "k1", text);
    assert_eq!((first.status, &first.json()["added"]), (200, &1.into()));
    for server in &servers {
        let again = update(server, "k1", text).json();
        for part in ["snapshot", "added"] {
            assert_eq!(again[part], first.json()[part]);
        }
        let other = "INSERT DATA { <http://e/a> <http://e/b> 2 }";
        assert_reused(&update(server, "k1", other));
        let graph = "/store?graph=http://e/g";
        let put = |body| keyed(server, "PUT", graph, "k1", TURTLE, body);
        assert_reused(&put("<http://e/a> <http://e/b> 3 ."));
        assert_eq!(update(server, "k2", INSERT).status, 200);
    }
    assert_eq!(quads(c), 2);
    // The same keys at the same time on two servers.
    std::thread::scope(|scope| {
        for (n, server) in [(1, a), (1, b), (2, b), (2, c)] {
            scope.spawn(move || {
                let text = format!("INSERT {{ [] <http://e/d> {n} }} WHERE {{}}");
                let answer = update(server, "k3", &text);
                assert!(matches!(answer.status, 200 | 422), "{}", answer.text());
            });
        }
    });
    for server in &servers {
        assert_eq!(quads(server), 3);
    }
}
