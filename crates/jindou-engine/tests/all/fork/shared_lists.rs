//! Intersections of lists of other shards, some of which are sent as runs of consecutive ids.

use super::{MODES, Shards, cut, hashed};
use jindou_cluster::shards::{Reply, RequestGraphs, ShardClient, ShardRequest};
use jindou_engine::{CollectSink, ExecOptions, Execution, ExecutorChoice, QueryTerms, ShardMode};
use jindou_graph::shard::{EVERYTHING, Sharded, Traffic};
use jindou_model::{CancelToken, Direction};
use jindou_store::shard::Sharding;
use jindou_testing::{Rng, named};
use oxrdf::{GraphName, Literal, NamedNode, Quad};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

type Edges = BTreeSet<(usize, usize)>;

fn node(kind: &str, number: usize) -> NamedNode {
    named(&format!("{kind}{number:05}"))
}

/// Edges from students to their departments, from departments to their universities, and from students to the
/// universities of their degrees.
struct Data {
    member: Edges,
    part: Edges,
    degree: Edges,
}

impl Data {
    /// Departments whose members mostly have consecutive ids, and universities whose graduates do not.
    fn random(rng: &mut Rng) -> Self {
        let universities = 1 + rng.below(8);
        let departments = 1 + rng.below(30);
        let students = 1 + rng.below(1500);
        let spread = [1, 2, 20][rng.below(3)];
        let mut it = Self {
            member: Edges::new(),
            part: Edges::new(),
            degree: Edges::new(),
        };
        for d in 0..departments {
            for _ in 0..1 + rng.below(2) {
                it.part.insert((d, rng.below(universities)));
            }
        }
        for s in 0..students {
            let home = s * departments / students;
            for _ in 0..rng.below(3) {
                let away = rng.below(spread) * rng.below(departments);
                it.member.insert((s, (home + away) % departments));
            }
            for _ in 0..rng.below(4) {
                it.degree.insert((s, rng.below(universities)));
            }
        }
        it
    }

    fn quads(&self, graph: &GraphName) -> Vec<Quad> {
        let each = [
            (&self.member, "s", "member", "d"),
            (&self.part, "d", "part", "u"),
            (&self.degree, "s", "degree", "u"),
        ];
        let quads = each.into_iter().flat_map(|(edges, from, p, to)| {
            edges
                .iter()
                .map(move |&(a, b)| Quad::new(node(from, a), named(p), node(to, b), graph.clone()))
        });
        quads.collect()
    }

    /// Names of all departments, universities and students such that the student is a member of the department and has
    /// a degree from the university of the department.
    fn triangles(&self) -> Vec<String> {
        let mut found = Vec::new();
        for &(s, d) in &self.member {
            for &(_, u) in self.part.range((d, 0)..(d + 1, 0)) {
                if self.degree.contains(&(s, u)) {
                    let names = [node("d", d), node("u", u), node("s", s)];
                    found.push(names.map(|n| n.to_string()).join(" "));
                }
            }
        }
        found.sort();
        found
    }
}

/// Runs a query that fetches the data of other shards. Returns the number of its rows, and what was sent.
fn in_place(shards: &Shards, text: &str) -> (usize, Traffic) {
    let plan = shards.plan(&format!("PREFIX : <http://e/> SELECT * {{ {text} }}"));
    let snapshot = shards.snapshot.for_new_query();
    let (options, mut sink) = (ExecOptions::default(), CollectSink::default());
    snapshot.begin(&options.cancel);
    let execution = Execution {
        plan: &plan,
        snapshot: &*snapshot,
        options: &options,
        terms: &QueryTerms::new(),
        executor: &ExecutorChoice::Shards(Arc::new(shards.hub.executor(ShardMode::InPlace))),
    };
    execution.stream(&mut sink).unwrap();
    (sink.rows, snapshot.as_sharded().unwrap().traffic())
}

const TRIANGLE: &str = "?z :part ?y . ?x :member ?z . ?x :degree ?y";

#[test]
fn shared_lists_over_shards_are_one_store_s() {
    let mut rng = Rng::new(7);
    let (mut found, mut lists) = (0, [0; 2]);
    for round in 0..40 {
        let data = Data::random(&mut rng);
        let graph = GraphName::from(named("g"));
        let mut quads = data.quads(&GraphName::DefaultGraph);
        let other = (rng.below(2) == 0).then(|| Data::random(&mut rng));
        quads.extend(other.iter().flat_map(|o| o.quads(&graph)));
        let (sharding, own) = cut(&mut rng);
        let shards = Shards::new(&quads, sharding, own, 1 + rng.below(3));
        let mut texts = vec![(TRIANGLE.to_owned(), data.triangles())];
        if let Some(other) = other {
            texts.push((format!("GRAPH :g {{ {TRIANGLE} }}"), other.triangles()));
        }
        for (text, want) in texts {
            found += want.len();
            let text = format!("PREFIX : <http://e/> SELECT ?z ?y ?x {{ {text} }}");
            for mode in MODES {
                let got = shards.answer(&text, mode, &ExecOptions::default());
                let of = format!("round {round}, {text}, {mode:?}, {sharding:?} at {own}");
                assert_eq!(got.unwrap().0.bag(), want, "{of}");
            }
        }
        shards.is_left_clean();
        for (sum, n) in lists.iter_mut().zip(&shards.wire.lists) {
            *sum += n.load(Ordering::SeqCst);
        }
    }
    assert!(found > 1000, "{found} triangles");
    // The number of messages is not fixed, since it depends on how long they take.
    assert!(lists.iter().all(|&n| n > 20), "{lists:?} replies");
}

/// The members of a department have consecutive ids, which are sent as one run: few bytes, however many members there
/// are.
#[test]
fn ids_that_follow_one_another_are_sent_as_runs() {
    const MEMBERS: usize = 200;
    let data = Data {
        member: (0..100 * MEMBERS).map(|s| (s, s / MEMBERS)).collect(),
        part: (0..100).map(|d| (d, d % 7)).collect(),
        degree: (0..100 * MEMBERS).map(|s| (s, s * 11 % 7)).collect(),
    };
    let sharding = Sharding::new(3).with_block_shift(Some(0));
    let shards = Shards::new(&data.quads(&GraphName::DefaultGraph), sharding, 1, 2);
    let (rows, members) = in_place(&shards, "?z :part ?y . ?x :member ?z");
    let (_, degrees) = in_place(&shards, "?z :part ?y . ?x :degree ?y");
    assert_eq!(rows, 100 * MEMBERS);
    assert!(members.bytes < 10_000, "{members:?}");
    // The students with degrees of one university have every seventh id, so they cannot be sent as runs.
    assert!(degrees.bytes > 10_000, "{degrees:?}");
}

/// The terms that conditions and expressions read come with a few messages for a batch of rows, not with one for each.
#[test]
fn terms_of_a_batch_are_requested_together() {
    const STUDENTS: usize = 3000;
    let score = |s: usize| {
        Quad::new(
            node("s", s),
            named("score"),
            Literal::from(s as i64),
            GraphName::DefaultGraph,
        )
    };
    let quads: Vec<Quad> = (0..STUDENTS).map(score).collect();
    let shards = Shards::new(&quads, hashed(3), 1, 2);
    let with_7 = (0..STUDENTS)
        .filter(|s| s.to_string().contains('7'))
        .count();
    for (condition, rows) in [
        ("FILTER(CONTAINS(STR(?s), \"7\"))", with_7),
        ("FILTER(REGEX(STR(?v), \"7\"))", with_7),
        ("FILTER(isIRI(?s) && isNUMERIC(?v))", STUDENTS),
        ("FILTER(?v < 50)", 50),
        ("FILTER(?v + ?v < 50)", 25),
        ("BIND(STRLEN(STR(?v)) AS ?n) FILTER(?n = 2)", 90),
    ] {
        let (found, traffic) = in_place(&shards, &format!("?s :score ?v {condition}"));
        assert_eq!(found, rows, "{condition}");
        assert!(traffic.rounds < 100, "{condition}: {traffic:?}");
    }
}

/// Of several lists in a reply, only the first may be longer than requested, even if it is empty; the requesting side
/// rejects replies with more.
#[test]
fn no_list_but_the_first_is_longer_than_was_asked_for() {
    let data = Data {
        member: (0..500).map(|s| (s, s / 100)).collect(),
        part: (0..10).map(|d| (d, 0)).collect(),
        degree: Edges::new(),
    };
    let shards = Shards::new(&data.quads(&GraphName::DefaultGraph), hashed(2), 1, 1);
    let id = |name: &str| shards.snapshot.lookup(name.as_bytes()).unwrap();
    let member = id("<http://e/member");
    let member = shards.snapshot.predicate_of(member).unwrap();
    let blocks = shards.snapshot.as_sharded().map(Sharded::blocks).unwrap();
    let mut asked = 0;
    // The first five departments have members, the others have none.
    for (full, empty) in (0..5).flat_map(|f| (5..10).map(move |e| (f, e))) {
        let [full, empty] = [full, empty].map(|d| id(&format!("<http://e/d{d:05}")).0);
        let [at, other] = [full, empty].map(|d| blocks.place(d).unwrap().shard);
        if at != other {
            continue;
        }
        let request = |keys| ShardRequest::Lists {
            predicate: member.0,
            direction: Direction::In,
            graphs: RequestGraphs::Default,
            merged: true,
            keys,
            within: EVERYTHING,
            most: 3,
        };
        let requests = [vec![empty, full], vec![full, empty]].map(|keys| (at, request(keys)));
        let cancel = CancelToken::default();
        let replies = shards.wire.near.ask(&requests, &cancel).unwrap();
        let lists = |reply: &Reply| match reply {
            Reply::Runs { ends, runs } => (ends.len(), runs.iter().map(|r| r[1]).sum()),
            Reply::Lists {
                ends, neighbours, ..
            } => (ends.len(), neighbours.len() as u32),
            _ => panic!("{reply:?}"),
        };
        assert_eq!(lists(&replies[0]), (1, 0));
        assert_eq!(lists(&replies[1]), (2, 100));
        asked += 1;
    }
    assert!(asked > 3);
}
