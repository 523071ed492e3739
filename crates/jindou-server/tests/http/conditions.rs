//! Entity tags of graphs across restarts, copies of a store, shards and replicas; and clients that update a graph
//! conditionally.

use crate::{send, serve, store, writable};
use jindou::parse::{Format, Sources};
use jindou::replica::{Bucket, BucketLimits, SharedLog};
use jindou::{Database, LoadOptions, OpenOptions, Progress, Sharding};
use jindou_server::Server;
use jindou_testing::http::Answer;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

const TURTLE: (&str, &str) = ("content-type", "text/turtle");
const LINES: (&str, &str) = ("accept", "application/n-triples");
const GRAPH: &str = "/store?graph=http://e/g";

/// A client that sends requests to one server.
struct Client<'s>(&'s Server);

impl Client<'_> {
    fn send(&self, method: &str, target: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        send(self.0, method, target, headers, body)
    }

    fn put(&self, target: &str, n: usize, headers: &[(&str, &str)]) -> Answer {
        let body = format!("<http://e/a> <http://e/b> {n} .");
        self.send("PUT", target, &[&[TURTLE][..], headers].concat(), &body)
    }

    fn lines(&self, target: &str) -> (String, String) {
        let answer = self.send("GET", target, &[LINES], "");
        assert_eq!(answer.status, 200, "{}", answer.text());
        let tag = answer.header("etag").to_owned();
        assert!(tag.starts_with('"') && tag.ends_with("-nt\""), "{tag}");
        (answer.text().to_owned(), tag)
    }

    fn merge(&self) {
        let merged = self.send("POST", "/admin/merge", &[], "");
        assert_eq!(merged.status, 200, "{}", merged.text());
    }
}

fn assert_failed(answer: &Answer) {
    assert_eq!(answer.status, 412, "{}", answer.text());
    assert_eq!(answer.problem(), "precondition");
    assert!(
        answer.text().contains("nothing was changed"),
        "{}",
        answer.text()
    );
}

#[test]
fn tags_survive_restarts_and_merges_and_are_never_used_again() {
    let data = store(
        "<http://e/g> { <http://e/a> <http://e/b> 1 . } <http://e/h> { <http://e/a> <http://e/b> 1 . }",
    );
    let dir = data.folder().join("store");
    let reopened = || Database::open(&dir).unwrap();
    let copy = data.folder().join("copy");
    drop(data.db.clone());
    let tags =
        |c: &Client<'_>| [GRAPH, "/store?graph=http://e/h", "/store?default"].map(|g| c.lines(g).1);
    let server = serve(&data, writable());
    let c = Client(&server);
    let loaded = tags(&c);
    c.put(GRAPH, 2, &[]);
    let now = tags(&c);
    assert_eq!((now[0] == loaded[0], &now[1..]), (false, &loaded[1..]));
    c.merge();
    assert_eq!(tags(&c), now);
    c.put("/store?default", 3, &[]);
    let now = tags(&c);
    drop(server);
    let crate::Store { db, folder } = data;
    drop(db);
    for merges in [false, true, false] {
        let server = Server::start(reopened(), writable()).unwrap();
        let c = Client(&server);
        assert_eq!(tags(&c), now, "after a restart");
        if merges {
            c.merge();
        }
    }
    // Two copies of a store are changed differently: they have the same snapshot numbers, but must have different tags.
    copied(&dir, &copy);
    let line = |dir: &Path, first: usize| {
        let server = Server::start(Database::open(dir).unwrap(), writable()).unwrap();
        let c = Client(&server);
        assert_eq!(tags(&c), now);
        c.put(GRAPH, first, &[]);
        let one = tags(&c);
        // The last change is the same in both copies.
        let done = c.send("POST", GRAPH, &[TURTLE], "<http://e/z> <http://e/z> 1 .");
        assert_eq!(done.status, 200);
        [one, tags(&c)].map(|tags| tags[0].clone())
    };
    let (one, two) = (line(&dir, 7), line(&copy, 8));
    assert!(one.iter().all(|tag| !two.contains(tag)), "{one:?} {two:?}");
    drop(folder);
}

#[test]
fn stores_in_shards_have_tags() {
    let folder = tempfile::tempdir().unwrap();
    let text = "<http://e/a> <http://e/b> 0 . <http://e/g> { <http://e/a> <http://e/b> 1 . }";
    let sources = Sources::builder().text("d.trig", text.as_bytes().to_vec(), Format::TriG);
    let options = LoadOptions::default()
        .with_threads(1)
        .with_sharding(Some(Sharding::new(2)));
    let dir = folder.path().join("store");
    Database::load(
        &dir,
        &sources.build().unwrap(),
        &options,
        &Progress::default(),
    )
    .unwrap();
    let server = || Server::start(Database::open(&dir).unwrap(), writable()).unwrap();
    let (one, two) = (server(), server());
    for target in [GRAPH, "/store?default", "/store"] {
        let headers = [("accept", "application/n-quads, application/n-triples;q=0.1")];
        let tag = |server: &Server| {
            let answer = Client(server).send("GET", target, &headers, "");
            assert_eq!(answer.status, 200, "{}", answer.text());
            answer.header("etag").to_owned()
        };
        assert_eq!(tag(&one), tag(&two));
        let headers = [headers[0], ("if-none-match", &tag(&one))];
        assert_eq!(Client(&two).send("GET", target, &headers, "").status, 304);
    }
}

fn copied(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copied(&entry.path(), &to),
            false => drop(std::fs::copy(entry.path(), to).unwrap()),
        }
    }
}

/// Clients count upwards in one graph: each reads the number, writes the next one if the graph has not changed since,
/// and tries again if it has. If two clients could write the same number, an update would be lost.
fn swap(servers: &[Server], swaps: usize) {
    let target = "/store?graph=http://e/counter";
    let made = Client(&servers[0]).put(target, 0, &[("if-none-match", "*")]);
    assert_eq!(made.status, 201, "{}", made.text());
    let (done, failed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let value = |text: &str| text.split('"').nth(1).unwrap().parse::<usize>().unwrap();
    std::thread::scope(|scope| {
        for client in 0..8 {
            let (done, failed) = (&done, &failed);
            scope.spawn(move || {
                let mut turn = client;
                while done.load(Ordering::SeqCst) < swaps {
                    turn += 1;
                    let read = Client(&servers[turn % servers.len()]);
                    let write = Client(&servers[turn / 3 % servers.len()]);
                    let (text, tag) = read.lines(target);
                    let seen = value(&text);
                    // Another graph changes at the same time, which must not matter.
                    let own = format!("/store?graph=http://e/client{client}");
                    assert!(write.put(&own, seen, &[]).status < 300);
                    let swapped = write.put(target, seen + 1, &[("if-match", &tag)]);
                    match swapped.status {
                        200 => done.fetch_add(1, Ordering::SeqCst),
                        412 => failed.fetch_add(1, Ordering::SeqCst),
                        _ => panic!("{}", swapped.text()),
                    };
                }
            });
        }
    });
    let (done, failed) = (done.into_inner(), failed.into_inner());
    for server in servers {
        let path = format!("{target}&consistency=strict");
        assert_eq!(value(&Client(server).lines(&path).0), done);
    }
    eprintln!(
        "{done} swaps, {failed} of them again, on {} servers",
        servers.len()
    );
}

pub(crate) fn replicas(folder: &Path) -> Vec<Server> {
    let open = |name: &str| {
        let bucket = Bucket::directory(&folder.join("log"), BucketLimits::default()).unwrap();
        let mut log = SharedLog::new(bucket, name);
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        log.peer_address = Some(free.local_addr().unwrap().to_string());
        log.queries_wait = false;
        drop(free);
        let options = OpenOptions::default().with_log(log);
        let db = Database::open_with(folder.join(name), &options).unwrap();
        Server::start(db, writable()).unwrap()
    };
    ["one", "two", "three"].map(open).into()
}

/// Number of conditional updates; `JINDOU_SWAPS` sets it for the long tests.
fn swaps() -> usize {
    let swaps = std::env::var("JINDOU_SWAPS").ok();
    swaps.map_or(10_000, |n| n.parse().unwrap())
}

#[test]
fn no_swap_is_lost() {
    let data = store("");
    swap(&[serve(&data, writable())], 200);
}

#[test]
fn no_swap_is_lost_on_three_replicas() {
    let folder = tempfile::tempdir().unwrap();
    swap(&replicas(folder.path()), 100);
}

#[test]
#[ignore = "takes minutes"]
fn ten_thousand_swaps() {
    let data = store("");
    swap(&[serve(&data, writable())], swaps());
}

#[test]
#[ignore = "takes minutes"]
fn ten_thousand_swaps_on_three_replicas() {
    let folder = tempfile::tempdir().unwrap();
    swap(&replicas(folder.path()), swaps());
}

#[test]
fn replicas_agree_on_tags_and_conditions() {
    let folder = tempfile::tempdir().unwrap();
    let servers = replicas(folder.path());
    let all = || servers.iter().map(Client);
    let made = Client(&servers[1]).put(GRAPH, 1, &[("if-none-match", "*")]);
    assert_eq!(made.status, 201, "{}", made.text());
    let tag = made.header("etag").to_owned();
    for c in all() {
        assert_failed(&c.put(GRAPH, 2, &[("if-none-match", "*")]));
        assert_failed(&c.put(GRAPH, 2, &[("if-match", "\"x\"")]));
        assert_eq!(c.lines(GRAPH).1[1..17], tag[1..17]);
        c.merge();
    }
    let mut tag = tag;
    for (n, c) in all().enumerate() {
        let done = c.put(GRAPH, 10 + n, &[("if-match", &tag)]);
        assert_eq!(done.status, 200, "{}", done.text());
        assert_failed(&c.send("DELETE", GRAPH, &[("if-match", &tag)], ""));
        tag = done.header("etag").to_owned();
    }
}
