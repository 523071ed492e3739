//! Stores that are cut into shards, read in place: answers against published counts, `spareval` and what one store says; shards
//! that do not answer, or answer nonsense.

use crate::compare;
use crate::oracle;
use compare::{assert_equal, bag};
use jindou::results::Collector;
use jindou::testing::{Store, source};
use jindou::{
    CancelToken, Database, Error, Placement, QueryOptions, ShardMode, Sharding, parse_query,
};
use jindou_cluster::shards::{
    InProcessShards, Reply, ShardClient, ShardRequest, post, snapshot_of_shard,
};
use jindou_graph::shard::{Blocks, Far};
use jindou_parse::{Format, Sources};
use jindou_store::Snapshot;
use jindou_store::shard::{Cluster, open_shards};
use jindou_workloads::lubm::{Inferred, Lubm};
use jindou_workloads::queries::lubm::QUERIES;
use jindou_workloads::queries::lubm_official;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

fn sharding(shards: u32, placement: Placement) -> Sharding {
    let sharding = Sharding::new(shards).with_placement(placement);
    sharding.with_block_shift(Some(0))
}

/// L1 to L7 and LUBM's official queries over LUBM(1), smallest blocks.
fn lubm(shards: u32, placement: Placement) {
    let cut = Some(sharding(shards, placement));
    let raw = Store::load_sharded(&Lubm::new(1, 0), cut);
    let mut known = 0;
    for q in &QUERIES {
        let options = QueryOptions::default();
        let plan = raw.db.plan(q.text, &options).unwrap();
        let [forked, in_place, rows] = [ShardMode::Fork, ShardMode::InPlace, ShardMode::Dynamic]
            .map(|mode| {
                let options = options.clone().with_shard_mode(mode);
                raw.db.checksum(&plan, &options).unwrap().rows
            });
        assert_eq!([forked, in_place], [rows; 2], "{} over {cut:?}", q.name);
        if let Some(sharded) = plan.snapshot().as_sharded() {
            println!(
                "{} over {shards}, planning: {:?}",
                q.name,
                sharded.traffic()
            );
        }
        if let Some(want) = q.rows(1) {
            assert_eq!(rows, want, "{} over {cut:?}", q.name);
            known += 1;
        }
    }
    assert!(known >= 7, "{known} counts known");
    let inferred = Store::load_sharded(&Inferred::new(Lubm::new(1, 0)), cut);
    for q in &lubm_official::QUERIES {
        let rows = bag(&compare::run(&inferred.db, q.text)).len() as u64;
        let want = lubm_official::inferred_rows(q.name, 1).unwrap();
        assert_eq!(rows, want, "{} over {cut:?}", q.name);
    }
}

#[test]
fn lubm_over_three_shards_has_the_published_counts() {
    lubm(3, Placement::Range);
}

#[test]
fn explain_says_where_steps_are_run_and_why() {
    let store = Store::load_sharded(&Lubm::new(1, 0), Some(sharding(3, Placement::Range)));
    let explain = |query: &str, mode| {
        let options = QueryOptions::default().with_shard_mode(mode);
        store.db.explain(query, &options).unwrap()
    };
    let heavy = QUERIES.iter().find(|q| q.name == "L7").unwrap().text;
    let forked = explain(heavy, ShardMode::Fork);
    assert!(
        forked.contains("matched at all shards: requested by the caller"),
        "{forked}"
    );
    let here = explain(heavy, ShardMode::InPlace);
    assert!(
        here.contains("run here, asking other shards for their data: requested by the caller"),
        "{here}"
    );
    for q in &QUERIES {
        let text = explain(q.text, ShardMode::Dynamic);
        let says = text.contains("matched at all shards: estimated")
            || text.contains("run at shard")
            || text.contains("run here, asking other shards");
        // Of what is known to be empty nothing is run.
        assert!(says || q.rows(1) == Some(0), "{}: {text}", q.name);
    }
}

/// See docs/testing.md.
#[test]
#[ignore = "long: every number of shards and placement"]
fn lubm_over_any_shards_has_the_published_counts() {
    for placement in [Placement::Range, Placement::Hash] {
        for shards in [1, 2, 3, 6, 12] {
            lubm(shards, placement);
            println!("{shards} shards, {}", placement.name());
        }
    }
}

/// Graphs, literals of every kind, chains and cycles.
fn varied_trig() -> String {
    let mut text = String::from("@prefix : <http://e/> .\n");
    for i in 0..40 {
        let (a, b) = ((i * 7 + 3) % 40, (i * 11 + 5) % 40);
        text += &format!(
            ":n{i} a :C{} ; :p :n{a}, :n{b} ; :v {i}, \"t{i}\"@en .\n",
            i % 3
        );
        text += &format!(":g{} {{ :n{i} :q :n{b} . :n{a} :p :n{i} . }}\n", i % 4);
    }
    text
}

fn varied() -> Sources {
    source(&varied_trig(), Format::TriG)
}

/// Terms without value ranks that stand in several sort columns.
#[test]
fn rows_are_ordered_as_one_store_orders_them() {
    let whole = Store::load(&varied());
    let cut = Store::load_sharded(&varied(), Some(sharding(3, Placement::Range)));
    for query in [
        "SELECT * { ?a :p ?b } ORDER BY ?a ?b",
        "SELECT * { ?a :p ?b OPTIONAL { ?b :v ?v FILTER(?v > 12) } } ORDER BY ?v DESC(?b) ?a",
        "SELECT * { ?s ?p ?o } ORDER BY ?p ?o ?s LIMIT 60",
    ] {
        let query = full(query);
        let [got, want] = [&cut, &whole].map(|s| s.db.query(&query).unwrap());
        assert_eq!(got.solutions(), want.solutions(), "{query}");
    }
}

/// Rows of ORDER BY with LIMIT, of which shards give only those that may be shown: each order is that of all columns, so one answer is right.
#[test]
fn the_first_rows_are_those_of_one_store() {
    let mut text = String::from("@prefix : <http://e/> .\n");
    for i in 0..1500u32 {
        let (a, b, v) = ((i * 7 + 3) % 1500, (i * 11 + 5) % 1500, i * 37 % 501);
        text += &format!(":n{i} :p :n{a}, :n{b} ; :v {v}, {v}.5, \"t{v}\"@en, \"{v}\" .\n");
        if i % 3 == 0 {
            text += &format!(":n{i} :w :n{} .\n", i % 100);
        }
    }
    let source = source(&text, Format::Turtle);
    let whole = Store::load(&source);
    let queries = [
        "SELECT ?v ?a ?b { ?a :p ?b . ?b :v ?v } ORDER BY ?v ?a ?b LIMIT 20",
        "SELECT ?v ?a ?b { ?a :p ?b . ?b :v ?v } ORDER BY DESC(?v) ?a ?b LIMIT 20 OFFSET 35",
        "SELECT ?v ?a ?b { ?a :p ?b . ?b :v ?v } ORDER BY ?b DESC(?v) ?a OFFSET 11000 LIMIT 600",
        "SELECT ?v ?a ?b ?w { ?a :p ?b . ?b :v ?v OPTIONAL { ?a :w ?w } } ORDER BY DESC(?a) ?v ?b LIMIT 15",
        "SELECT ?w ?a ?b { ?a :p ?b . ?b :v ?v OPTIONAL { ?a :w ?w } FILTER(?v < 9) } ORDER BY ?w ?a ?b ?v LIMIT 15",
    ];
    let queries = queries.map(full);
    let want = queries.each_ref().map(|q| whole.db.query(q).unwrap());
    for (shards, placement) in [
        (2, Placement::Range),
        (3, Placement::Hash),
        (6, Placement::Range),
        (12, Placement::Hash),
    ] {
        let cut = Store::load_sharded(&source, Some(sharding(shards, placement)));
        for (query, want) in queries.iter().zip(&want) {
            for mode in [ShardMode::Fork, ShardMode::Dynamic, ShardMode::InPlace] {
                let options = QueryOptions::default().with_shard_mode(mode);
                let got = cut.db.query_with(query, &options).unwrap();
                assert_eq!(
                    got.solutions(),
                    want.solutions(),
                    "{shards}, {mode:?}: {query}"
                );
            }
        }
    }
}

/// Queries that read in each way there is: lists, checks, keys, degrees, paths, graphs, terms.
const QUERIES_OF_ALL: [&str; 14] = [
    "SELECT * { ?a :p ?b . ?b :p ?c . ?c :p ?a }",
    "SELECT * { ?a :p ?b . ?b a :C1 . ?a :v ?v FILTER(?v > 20) }",
    "SELECT ?p ?o { :n7 ?p ?o }",
    "SELECT ?s ?p { ?s ?p :n8 }",
    "SELECT * { ?s ?p ?o }",
    "SELECT ?x { :n1 :p+ ?x }",
    "SELECT ?x ?y { ?x (:p|^:q)* ?y . ?y a :C2 }",
    "SELECT ?x ?y { GRAPH ?g { ?x :q ?y } OPTIONAL { ?y :v ?n } }",
    "SELECT * { GRAPH :g1 { ?s ?p ?o } }",
    "SELECT ?g (COUNT(*) AS ?n) { GRAPH ?g { ?s ?p ?o } } GROUP BY ?g ORDER BY ?g",
    "SELECT ?a { ?a a :C0 MINUS { ?a :p ?b . ?b :p ?a } }",
    "SELECT (SUM(?v) AS ?sum) { ?a :v ?v . ?a :p/:p ?b }",
    "ASK { :n1 :p :n2 . :n2 :p :n3 }",
    "DESCRIBE :n5 :g2",
];

fn full(text: &str) -> String {
    format!("PREFIX : <http://e/> {text}")
}

/// How shards treat requests. What the count is:
enum Twist {
    /// The number of requests before those that fail.
    Fails,
    /// The number of requests before those that are answered with something else.
    Nonsense,
    /// The number of rounds in which numbers of edges are asked for.
    Counted,
    /// The number of requests, of which two of three are read, and need no message.
    Readable,
    /// While it is not 0, nothing is answered until the query's token ends the wait.
    Silent,
}

/// Shards in this process, with a twist.
struct Twisted {
    near: InProcessShards,
    twist: Twist,
    count: AtomicUsize,
    /// Replies that claimed more neighbours than there are.
    endless: AtomicUsize,
}

/// A store in shards, its shards with a twist, and what shard number `at` sees through them.
fn twisted(shards: u32, at: usize, twist: Twist, count: usize) -> (Store, Arc<Twisted>, Snapshot) {
    let store = Store::load_sharded(&varied(), Some(sharding(shards, Placement::Hash)));
    let cluster = Cluster::read(&store.dir).unwrap().unwrap();
    let twisted = Arc::new(Twisted {
        near: InProcessShards::new(open_shards(&store.dir, &cluster).unwrap()),
        twist,
        count: AtomicUsize::new(count),
        endless: AtomicUsize::new(0),
    });
    let base = Arc::clone(&twisted.near.shards()[at]);
    let snapshot = snapshot_of_shard(base, Arc::clone(&twisted) as _).unwrap();
    (store, twisted, snapshot)
}

impl Twisted {
    fn nonsense(&self, request: &ShardRequest) -> Reply {
        match request {
            // A few bytes that claim to be the neighbours of everything.
            ShardRequest::Lists { merged: true, .. } => {
                self.endless.fetch_add(1, Ordering::SeqCst);
                Reply::Runs {
                    ends: vec![1],
                    runs: vec![[1, u32::MAX]],
                }
            }
            _ => Reply::Lists {
                ends: vec![9, 3],
                neighbours: vec![1],
                graphs: vec![],
            },
        }
    }
}

impl Far for Twisted {
    fn post(
        &self,
        messages: Vec<(u32, Vec<u8>)>,
        cancel: &CancelToken,
    ) -> jindou::Result<Vec<Vec<u8>>> {
        post(self, messages, cancel)
    }
}

impl ShardClient for Twisted {
    fn ask(
        &self,
        requests: &[(u32, ShardRequest)],
        cancel: &CancelToken,
    ) -> jindou::Result<Vec<Reply>> {
        let take = |n: usize| n.checked_sub(1);
        let is_left = || {
            let taken = self
                .count
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, take);
            taken.is_ok()
        };
        match self.twist {
            Twist::Fails if !is_left() => {
                return Err(Error::shard(requests[0].0, "it is away"));
            }
            Twist::Nonsense if !is_left() => {
                let replies = requests.iter().map(|(_, request)| self.nonsense(request));
                return Ok(replies.collect());
            }
            Twist::Counted => {
                let degrees = |r: &(u32, ShardRequest)| matches!(r.1, ShardRequest::Degrees { .. });
                let are_asked = requests.iter().any(degrees);
                self.count
                    .fetch_add(usize::from(are_asked), Ordering::SeqCst);
            }
            Twist::Silent => {
                while self.count.load(Ordering::SeqCst) > 0 {
                    cancel.park_unless(|| false);
                    cancel.check()?;
                }
            }
            Twist::Fails | Twist::Nonsense | Twist::Readable => {}
        }
        self.near.ask(requests, cancel)
    }

    fn read(
        &self,
        _: &Blocks,
        shard: u32,
        request: &ShardRequest,
        cancel: &CancelToken,
    ) -> Option<Reply> {
        let Twist::Readable = self.twist else {
            return None;
        };
        let number = self.count.fetch_add(1, Ordering::SeqCst);
        let one = [(shard, request.clone())];
        match number % 3 {
            0 => None,
            _ => self.near.ask(&one, cancel).ok()?.pop(),
        }
    }
}

/// Each request of each query fails once: an error that names the shard, never a wrong or shorter answer, and none for the next query.
#[test]
fn a_shard_that_fails_fails_the_query() {
    let mut failures = 0;
    for twist in [Twist::Fails, Twist::Nonsense] {
        let is_nonsense = matches!(twist, Twist::Nonsense);
        let (_store, flaky, snapshot) = twisted(4, 1, twist, usize::MAX);
        for query in QUERIES_OF_ALL {
            let query = full(query);
            let ask = |requests: usize| {
                // No plan is known.
                let db = Database::of_snapshot(snapshot.clone());
                flaky.count.store(requests, Ordering::SeqCst);
                let first = db.query(&query);
                flaky.count.store(usize::MAX, Ordering::SeqCst);
                let again = db.query(&query).unwrap();
                (first, bag(&again))
            };
            let (right, right_again) = ask(usize::MAX);
            let right = bag(&right.unwrap());
            assert_eq!(right, right_again);
            for requests in 0.. {
                let (got, again) = ask(requests);
                assert_eq!(again, right, "{query}");
                match got {
                    Ok(got) => {
                        assert_eq!(bag(&got), right, "{query}");
                        break;
                    }
                    Err(Error::Shard { shard, .. }) => assert!(shard < 4),
                    Err(e) => panic!("{query}: {e}"),
                }
                failures += 1;
            }
        }
        assert_eq!(flaky.endless.load(Ordering::SeqCst) > 0, is_nonsense);
    }
    assert!(failures > 100, "{failures} failures");
}

/// However many constants a query has, the planner asks for the lengths of their lists once.
#[test]
fn a_plan_asks_for_all_lengths_in_one_round() {
    let (_store, far, snapshot) = twisted(6, 0, Twist::Counted, 0);
    for (query, most) in [
        (
            "SELECT * { :n1 :p ?a . ?a :p ?b . ?b :p :n8 . :n2 :p ?b . ?a a :C1 . :n3 :p ?c . ?c :p :n9 }",
            1,
        ),
        ("SELECT * { :n7 ?p ?o }", 1),
        ("SELECT * { ?a :p ?b . ?b :p ?c }", 0),
    ] {
        let db = Database::of_snapshot(snapshot.clone());
        far.count.store(0, Ordering::SeqCst);
        db.plan(&full(query), &QueryOptions::default()).unwrap();
        let rounds = far.count.load(Ordering::SeqCst);
        assert!(rounds <= most, "{query}: {rounds} rounds");
    }
}

#[test]
fn every_way_of_reading_is_right_over_shards() {
    let text = varied_trig();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("v.trig");
    std::fs::write(&path, &text).unwrap();
    let source = |p| Sources::builder().path(p).build().unwrap();
    let whole = Store::load(&source(&path));
    let data = oracle::dataset(std::slice::from_ref(&path), &[]).unwrap();
    for (shards, placement) in [(2, Placement::Range), (6, Placement::Hash)] {
        let store = Store::load_sharded(&source(&path), Some(sharding(shards, placement)));
        for query in QUERIES_OF_ALL {
            let query = full(query);
            let got = compare::run(&store.db, &query);
            assert_equal(&query, &got, &compare::run(&whole.db, &query));
            if !query.contains("DESCRIBE") {
                let want = oracle::answer(&data, &parse_query(&query).unwrap()).unwrap();
                assert_equal(&query, &got, &want);
            }
        }
        // Everything, as `dump` gives it.
        assert_eq!(store.db.quads(), whole.db.quads());
        let changed = Store::load(&source(&path));
        for db in [&store.db, &changed.db] {
            db.update(&full(CHANGE), &Default::default()).unwrap();
        }
        assert_eq!(store.db.quads(), changed.db.quads());
        for merged in [false, true] {
            if merged {
                store
                    .db
                    .merge(&Default::default(), &Default::default())
                    .unwrap();
            }
            for query in QUERIES_OF_ALL {
                let query = full(query);
                let got = compare::run(&store.db, &query);
                assert_equal(&query, &got, &compare::run(&changed.db, &query));
            }
            let report = Database::check(&store.dir).unwrap();
            assert!(report.is_sound(), "{:?}", report.damages);
        }
    }
}

/// Edges of the load and new ones, vertices, a class and a graph; a graph that becomes empty.
const CHANGE: &str = "DELETE { ?a :p ?b } INSERT { ?a :p :new . :new :p ?b . ?a a :C9 . GRAPH :g1 { :new :q ?a } } \
    WHERE { ?a :p ?b . ?a :v ?v FILTER(?v < 12) } ; \
    DELETE WHERE { GRAPH :g2 { ?s ?p ?o } } ; \
    INSERT DATA { GRAPH :g9 { :x :q :n1 . :n3 a :C1 } :n5 a :C2 }";

#[test]
fn what_is_read_and_what_is_asked_for_come_together() {
    let whole = Store::load(&varied());
    for shards in [2, 5] {
        let (_store, far, snapshot) = twisted(shards, 0, Twist::Readable, 0);
        let db = Database::of_snapshot(snapshot);
        for query in QUERIES_OF_ALL {
            let query = full(query);
            let got = compare::run(&db, &query);
            assert_equal(&query, &got, &compare::run(&whole.db, &query));
        }
        assert!(far.count.load(Ordering::SeqCst) > 100);
        let options = QueryOptions::default().with_profile(true);
        let query = full("SELECT ?c { :n1 :p ?a . ?a :p ?b . ?b :p ?c }");
        let mut answer = Collector::new(db.runtime().memory().clone());
        let ran = db.run(&query, &options, &mut answer).unwrap();
        assert!(
            ran.profile.contains("reads of other servers' memory"),
            "{}",
            ran.profile
        );
    }
}

/// Queries, planning, cursors and matches wait for a silent shard as long as their limit or their caller says, and no longer.
#[test]
fn a_wait_for_a_shard_ends_with_its_query() {
    let (_store, silent, snapshot) = twisted(4, 1, Twist::Silent, 1);
    let query = full(QUERIES_OF_ALL[0]);
    let db = Database::of_snapshot(snapshot);
    let limit = Duration::from_millis(30);
    let limited = QueryOptions::default().with_timeout(limit);
    let got = db.query_with(&query, &limited);
    assert!(
        matches!(got, Err(Error::Timeout(l)) if l == limit),
        "{got:?}"
    );

    let token = CancelToken::new();
    let cancelled = QueryOptions::default().with_cancel(token.clone());
    let got = std::thread::scope(|s| {
        let query = s.spawn(|| db.query_with(&query, &cancelled));
        std::thread::sleep(limit);
        token.cancel();
        query.join().unwrap()
    });
    assert!(matches!(got, Err(Error::Cancelled)), "{got:?}");

    // Planned while they answer, run while they do not.
    silent.count.store(0, Ordering::SeqCst);
    let right = bag(&db.query(&query).unwrap());
    silent.count.store(1, Ordering::SeqCst);
    let got = db.query_with(&query, &limited);
    assert!(matches!(got, Err(Error::Timeout(_))), "{got:?}");
    silent.count.store(0, Ordering::SeqCst);
    assert_eq!(bag(&db.query(&query).unwrap()), right);
}
