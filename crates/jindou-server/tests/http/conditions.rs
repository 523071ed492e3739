//! Entity tags, `If-Match` and `If-None-Match` of graphs (RFC 9110), alone and over a shared log.

use crate::{options, serve, store};
use jindou::parse::{Format, Sources};
use jindou::replica::{Bucket, BucketLimits, SharedLog};
use jindou::{Database, LoadOptions, OpenOptions, Progress, Sharding};
use jindou_server::{Server, ServerOptions};
use jindou_testing::http::{Answer, request};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

const TURTLE: (&str, &str) = ("content-type", "text/turtle");
const LINES: (&str, &str) = ("accept", "application/n-triples");
const GRAPH: &str = "/store?graph=http://e/g";

fn writable() -> ServerOptions {
    options().with_writable(true)
}

/// A client of one server.
struct Client<'s>(&'s Server);

impl Client<'_> {
    fn send(&self, method: &str, target: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        request(self.0.address(), method, target, headers, body.as_bytes())
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
fn writes_are_made_only_if_their_conditions_hold() {
    let data = store("");
    let server = serve(&data, writable());
    let c = Client(&server);
    assert_eq!(c.put(GRAPH, 1, &[]).status, 201);
    let patch = [("content-type", "application/sparql-update")];
    let insert = "INSERT DATA { <http://e/a> <http://e/b> 5 }";
    let other = [("if-match", "\"other\"")];
    assert_failed(&c.put(GRAPH, 2, &[("if-none-match", "*")]));
    assert_failed(&c.put(GRAPH, 3, &other));
    let post = c.send(
        "POST",
        GRAPH,
        &[TURTLE, other[0]],
        "<http://e/a> <http://e/b> 4 .",
    );
    assert_failed(&post);
    assert_failed(&c.send("PATCH", GRAPH, &[patch[0], other[0]], insert));
    assert_failed(&c.put("/store?graph=http://e/none", 6, &[("if-match", "*")]));
    assert_failed(&c.send("DELETE", GRAPH, &other, ""));
    let (lines, tag) = c.lines(GRAPH);
    assert!(
        lines.contains("\"1\"") && lines.lines().count() == 1,
        "{lines}"
    );
    assert_eq!(
        c.send("GET", "/store?graph=http://e/none", &[], "").status,
        404
    );

    // A write of another graph changes nothing about this one.
    assert_eq!(c.put("/store?graph=http://e/h", 1, &[]).status, 201);
    assert_failed(&c.send("DELETE", "/store?default", &other, ""));
    assert_failed(&c.put("/store?default", 1, &[("if-none-match", "*")]));
    assert_eq!(c.put("/store?default", 1, &[("if-match", "*")]).status, 201);
    assert_eq!(c.lines(GRAPH).1, tag);
    // The same content put again is the same content.
    let again = c.put(GRAPH, 1, &[("if-match", &tag)]);
    assert_eq!(again.status, 200);
    let content = again.header("etag").to_owned();
    assert_eq!(content.trim_matches('"'), &tag[1..17]);
    // Every representation of the content will do, weak tags will not.
    let turtle = c.send("HEAD", GRAPH, &[("accept", "text/turtle")], "");
    let turtle = turtle.header("etag").to_owned();
    assert_ne!(turtle, tag);
    assert_failed(&c.put(GRAPH, 2, &[("if-match", &format!("W/{turtle}"))]));
    assert_failed(&c.put(
        GRAPH,
        2,
        &[("if-none-match", &format!("\"x\", W/{turtle}"))],
    ));
    let two = c.put(GRAPH, 2, &[("if-match", &format!("\"x\", {turtle}"))]);
    assert_eq!(two.status, 200);
    let two = two.header("etag").to_owned();
    assert_failed(&c.put(GRAPH, 3, &[("if-match", &tag)]));
    assert_failed(&c.put(GRAPH, 3, &[("if-match", &two), ("if-none-match", &two)]));
    let three = c.send("PATCH", GRAPH, &[patch[0], ("if-match", &two)], insert);
    assert_eq!(three.status, 200);
    let four = [
        TURTLE,
        ("if-match", three.header("etag")),
        ("if-none-match", &two),
    ];
    let four = c.send("POST", GRAPH, &four, "<http://e/a> <http://e/b> 7 .");
    assert_eq!(
        (four.status, &*four.json()["added"].to_string()),
        (200, "1")
    );
    assert_eq!(c.lines(GRAPH).0.lines().count(), 3);
    // A graph that is gone has no tag, and one that comes back has a new one.
    let gone = c.send("DELETE", GRAPH, &[("if-match", four.header("etag"))], "");
    assert_eq!((gone.status, gone.header("etag")), (200, ""));
    assert_eq!(
        c.send("DELETE", GRAPH, &[("if-match", "*")], "").status,
        404
    );
    let new = c.put(GRAPH, 1, &[("if-none-match", "*")]);
    assert_eq!(new.status, 201);
    assert_ne!(new.header("etag"), content);
    for wrong in ["x", "\"x", "*, \"x\"", "\"x\" \"y\""] {
        for name in ["if-match", "if-none-match"] {
            let refused = c.put(GRAPH, 9, &[(name, wrong)]);
            assert_eq!(refused.status, 400, "{name}: {wrong}");
            assert!(refused.text().contains("entity tags"), "{}", refused.text());
        }
    }
}

#[test]
fn conditions_of_the_whole_store_are_on_all_graphs() {
    let data = store("<http://e/a> <http://e/b> 0 .");
    let server = serve(&data, writable());
    let c = Client(&server);
    let tag = || c.send("HEAD", "/store", &[], "").header("etag").to_owned();
    let before = tag();
    assert_eq!(tag(), before);
    c.put(GRAPH, 1, &[]);
    let now = tag();
    assert_ne!(now, before);
    let update = |target: &str, if_match: &str| {
        let headers = [
            ("content-type", "application/sparql-update"),
            ("if-match", if_match),
        ];
        c.send(
            "POST",
            target,
            &headers,
            "INSERT DATA { <http://e/a> <http://e/b> 2 }",
        )
    };
    assert_failed(&update("/update", &before));
    assert_failed(&update("/sparql", &before));
    assert_eq!(update("/update", &now).status, 200);
    assert_failed(&update("/update", &now));
    let new = |if_match: &str| {
        c.send(
            "POST",
            "/store",
            &[TURTLE, ("if-match", if_match)],
            "<x> <y> 1 .",
        )
    };
    assert_failed(&new(&now));
    let made = new(&tag());
    assert_eq!((made.status, made.header("etag")), (201, ""));
    let quads = [
        ("content-type", "application/n-quads"),
        ("if-none-match", "*"),
    ];
    assert_failed(&c.send("POST", "/store", &quads, "<u:a> <u:b> <u:c> ."));
    // Nothing else has a tag.
    let refused = c.send("PUT", "/prefixes/e", &[("if-none-match", "*")], "http://e/");
    assert_eq!(refused.status, 400, "{}", refused.text());
    let part = c.put(GRAPH, 1, &[("content-range", "bytes 0-3/8")]);
    assert_eq!(part.status, 400, "{}", part.text());
    let twice = c.send("PUT", GRAPH, &[TURTLE, TURTLE], "");
    assert_eq!(twice.status, 400, "{}", twice.text());
    let both = c.put("/store/g?graph=http://e/g", 1, &[]);
    assert_eq!(both.status, 400, "{}", both.text());
}

#[test]
fn reads_are_answered_with_304_where_the_client_has_the_answer() {
    let data = store(&format!(
        "<http://e/g> {{ {} }}",
        (0..200)
            .map(|n| format!("<http://e/s{n}> <http://e/p> \"value {n}\" . "))
            .collect::<String>()
    ));
    let server = serve(&data, writable());
    let c = Client(&server);
    let get = |headers: &[(&str, &str)]| c.send("GET", GRAPH, headers, "");
    let plain = get(&[LINES]).header("etag").to_owned();
    let gzip = [LINES, ("accept-encoding", "gzip")];
    let coded = get(&gzip).header("etag").to_owned();
    assert_eq!(coded, plain.replace("-nt\"", "-nt-gzip\""));
    for (headers, tags, status) in [
        (&[LINES][..], plain.clone(), 304),
        (&[LINES], format!("W/{plain}"), 304),
        (&[LINES], format!("\"x\", {plain}"), 304),
        (&[LINES], "*".into(), 304),
        (&[LINES], "\"x\"".into(), 200),
        // In another format or coding.
        (&[LINES], coded.clone(), 200),
        (&[], plain.clone(), 200),
        (&gzip, coded.clone(), 304),
        (&gzip, plain.clone(), 304),
        // What a write answered with names the content.
        (&[], format!("{}\"", &plain[..17]), 304),
    ] {
        let answer = get(&[headers, &[("if-none-match", &*tags)]].concat());
        assert_eq!(answer.status, status, "{tags}");
        if status == 304 {
            assert!(answer.body.is_empty());
            assert!(tags == "*" || tags.contains(answer.header("etag")));
            assert!(answer.header("vary").contains("accept"));
        }
    }
    assert_eq!(get(&[LINES, ("if-match", &plain)]).status, 200);
    assert_eq!(get(&[LINES, ("if-match", "\"x\"")]).status, 412);
    let head = c.send("HEAD", GRAPH, &[LINES, ("if-none-match", &plain)], "");
    assert_eq!(head.status, 304);
    // Turtle declares the store's prefixes.
    let turtle = || c.send("HEAD", GRAPH, &[], "").header("etag").to_owned();
    let without = turtle();
    assert_eq!(c.send("PUT", "/prefixes/e", &[], "http://e/").status, 200);
    assert_ne!(turtle(), without);
    assert_eq!(get(&[LINES]).header("etag"), plain);
    // Pages may see tags and send conditions.
    let origin = ("origin", "http://localhost:1");
    let answer = get(&[origin]);
    assert!(
        answer
            .header("access-control-expose-headers")
            .contains("etag")
    );
    let allowed = c.send("OPTIONS", GRAPH, &[origin], "");
    for name in ["if-match", "if-none-match", "idempotency-key"] {
        assert!(
            allowed
                .header("access-control-allow-headers")
                .contains(name)
        );
    }
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
    // Two lines of changes to copies of one store: the same numbers of snapshots, other contents.
    copied(&dir, &copy);
    let line = |dir: &Path, first: usize| {
        let server = Server::start(Database::open(dir).unwrap(), writable()).unwrap();
        let c = Client(&server);
        assert_eq!(tags(&c), now);
        c.put(GRAPH, first, &[]);
        let one = tags(&c);
        // The last change is the same in both.
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

/// Clients that count upwards in one graph: each reads the number, writes the next one if the graph is still as it was
/// read, and begins again if it is not. A lost update would be a number that two of them wrote.
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
                    // Another graph changes all the time.
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

/// Number of swaps; of the tests that take long the variable says how many.
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
