//! Cancellation, deadlines, memory limits, early ends, threads, panics, and errors of sinks.

use crate::support::{in_batches, in_memory, parts, plan_of, with_threads, within};
use jindou_engine::{
    ChecksumSink, CollectSink, CountSink, ExecOptions, QueryTerms, Sink, Summed, execute,
    execute_streaming,
};
use jindou_model::{Error, MemoryBudget, Result};
use jindou_plan::{Plan, Weight};
use jindou_store::Snapshot;
use jindou_store::testing::store_of;
use jindou_testing::{Stopwatch, named, triple};
use oxrdf::Quad;
use std::time::Duration;

/// A ring of `n` vertices, each with edges to the next `degree` vertices.
pub fn ring(n: usize, degree: usize) -> (tempfile::TempDir, Snapshot) {
    let quads: Vec<Quad> = (0..n)
        .flat_map(|i| (1..=degree).map(move |d| [i, i + d]))
        .map(|ends| ends.map(|i| format!("n{}", i % n)))
        .map(|[a, b]| triple(&a, "p", named(&b)))
        .collect();
    let (folder, base) = store_of(&quads);
    (folder, Snapshot::of_base(base))
}

pub fn native(snapshot: &Snapshot, text: &str) -> Plan {
    plan_of(snapshot, &format!("PREFIX : <http://e/> {text}"))
}

const PATH: &str =
    "SELECT ?a ?b ?c ?d WHERE { ?a :p ?b . ?b :p ?c . ?c :p ?d . ?d :p ?e . ?e :p ?f }";

fn count(plan: &Plan, snapshot: &Snapshot, options: &ExecOptions) -> Result<u64> {
    let mut sink = CountSink::default();
    execute_streaming(plan, snapshot, options, &QueryTerms::new(), &mut sink)?;
    Ok(sink.rows)
}

/// A filter with too many conditions for its deadline ends in time. Its memory depends on how deeply conditions are
/// nested, not on how many there are.
#[test]
fn filters_of_many_conditions_end_in_time_and_in_little_memory() {
    let (_folder, snapshot) = ring(3000, 2);
    let many = vec!["(isBlank(?a) && isBlank(?b))"; 20_000].join(" || ");
    let filtered = |by: String| native(&snapshot, &format!("SELECT * {{ ?a :p ?b FILTER({by}) }}"));
    let plan = filtered(many);
    let begin = Stopwatch::start();
    let options = ExecOptions {
        threads: 1,
        ..within(Duration::from_millis(50))
    };
    let end = count(&plan, &snapshot, &options);
    assert!(matches!(end, Err(Error::Timeout(_))), "{end:?}");
    let time = begin.elapsed();
    assert!(time < Duration::from_secs(2), "{time:?}");
    // Many members in one list, then a deep nesting in which each level holds its values while inner levels are
    // computed.
    let few = vec!["(isBlank(?a) && isBlank(?b))"; 200].join(" || ");
    let deep = (0..60).fold("isIRI(?a)".to_owned(), |inside, i| match i % 2 {
        0 => format!("(isIRI(?b) && !({inside} && isIRI(?a)))"),
        _ => format!("(isBlank(?b) || !({inside} || isBlank(?a)))"),
    });
    for (condition, rows) in [(few, 0), (deep, 6000)] {
        let options = ExecOptions {
            threads: 1,
            ..in_memory(4 << 20)
        };
        assert_eq!(
            count(&filtered(condition), &snapshot, &options).unwrap(),
            rows
        );
        // Two bytes for each row of the batch and level of nesting, and the batches, which are larger.
        let memory = &options.memory;
        assert!(memory.peak() < 1 << 20, "{}", memory.peak());
        assert_eq!(memory.used(), 0);
    }
}

/// Checks that a deadline and a cancellation after `time` end a query `soon`, and that it gives its memory back.
fn ends(plan: &mut Plan, snapshot: &Snapshot, time: Duration, soon: Duration, text: &str) {
    for (threads, weight) in [(1, Weight::Light), (3, Weight::Heavy)] {
        plan.weight = weight;
        let begin = Stopwatch::start();
        let options = ExecOptions {
            threads,
            ..within(time)
        };
        let e = count(plan, snapshot, &options).unwrap_err();
        assert!(matches!(e, Error::Timeout(_)), "{text}: {e}");
        assert!(begin.elapsed() < soon, "{text}");
        assert_eq!(options.memory.used(), 0, "{text}");

        let options = with_threads(threads);
        std::thread::scope(|s| {
            s.spawn(|| {
                std::thread::sleep(time);
                options.cancel.cancel();
            });
            let e = count(plan, snapshot, &options).unwrap_err();
            assert!(matches!(e, Error::Cancelled), "{text}: {e}");
        });
        assert_eq!(options.memory.used(), 0, "{text}");
    }
}

#[test]
fn cancelling_and_deadlines_end_a_query_soon() {
    let (_folder, snapshot) = ring(400, 40);
    let mut plan = native(&snapshot, PATH);
    let (time, soon) = (Duration::from_millis(25), Duration::from_secs(2));
    ends(&mut plan, &snapshot, time, soon, PATH);
}

#[test]
fn memory_is_bounded_and_given_back() {
    let (_folder, snapshot) = ring(400, 30);
    for text in [
        "SELECT DISTINCT ?a ?b ?c WHERE { ?a :p ?b . ?b :p ?c }",
        "SELECT ?a ?b ?c WHERE { ?a :p ?b . ?b :p ?c } ORDER BY ?c",
        "SELECT ?a ?c (COUNT(*) AS ?n) WHERE { ?a :p ?b . ?b :p ?c } GROUP BY ?a ?c",
        "SELECT (COUNT(DISTINCT *) AS ?n) WHERE { ?a :p ?b . ?b :p ?c }",
    ] {
        let mut plan = native(&snapshot, text);
        for (threads, weight) in [(1, Weight::Light), (2, Weight::Heavy)] {
            plan.weight = weight;
            for (limit, is_enough) in [(600 << 10, false), (64 << 20, true)] {
                let options = ExecOptions {
                    threads,
                    ..in_memory(limit)
                };
                match count(&plan, &snapshot, &options) {
                    Ok(rows) => assert!(is_enough && rows > 0, "{text}"),
                    Err(Error::Limit(_)) => assert!(!is_enough, "{text}"),
                    Err(e) => panic!("{text}: {e}"),
                }
                assert_eq!(options.memory.used(), 0, "{text}");
            }
        }
    }
}

/// Queries with operators that hold or produce many rows: an operator that the plan must contain, the holders of which
/// an error about memory must name one, and the query. All queries take long on [`ring`]`(400, 40)`.
const OPERATORS: [&str; 11] = [
    "Join | hash join | SELECT ?a ?b ?c ?x { ?a :p ?b . ?b :p ?c \
     { SELECT ?c ?x { ?c :p ?y . ?y :p ?x } LIMIT 300000 } }",
    "Join | hash join | SELECT ?a ?d ?x { ?a :p ?b . ?b :p ?c . ?c :p ?d \
     OPTIONAL { { SELECT ?d ?x { ?d :p ?y . ?y :p ?x } LIMIT 300000 } } }",
    "Apply |  | SELECT ?a ?d { ?a :p ?b . ?b :p ?c . ?c :p ?d \
     FILTER EXISTS { SELECT ?d { ?d :p ?e . ?e :p ?f } ORDER BY ?e LIMIT 3 } }",
    "by: Order( | hash join, terms that the query creates | \
     SELECT ?x ?e { { SELECT ?x { ?a :p ?b . ?b :p ?x } LIMIT 300000 } \
     { SELECT ?e { ?c :p ?d . ?d :p ?e } LIMIT 300000 } FILTER(STR(?x) < STR(?e)) }",
    "by: Value | hash join, terms that the query creates | \
     SELECT ?a ?c { ?a :p ?b . ?b :p ?x . ?c :p ?d . ?d :p ?e FILTER(STRLEN(STR(?x)) = STRLEN(STR(?e))) }",
    "by: Term | hash join, terms that the query creates | \
     SELECT ?a { ?a :p ?b . ?b :p ?x FILTER NOT EXISTS { ?c :p ?d . ?d :p ?e FILTER(LCASE(STR(?x)) = STR(?e)) } }",
    "Path | property path | SELECT ?a ?c { ?a ((:p/:p)|^:p)+ ?c }",
    "Group | GROUP BY | \
     SELECT ?a ?b ?c (SAMPLE(?d) AS ?n) { ?a :p ?b . ?b :p ?c . ?c :p ?d } GROUP BY ?a ?b ?c",
    "OrderBy | ORDER BY | SELECT ?a ?d { ?a :p ?b . ?b :p ?c . ?c :p ?d } ORDER BY ?d ?a",
    "OrderBy | ORDER BY | \
     SELECT ?a ?b ?c ?d { ?a :p ?b . ?b :p ?c . ?c :p ?d } ORDER BY ?d DESC(?a) ?b LIMIT 200000",
    "OrderBy | ORDER BY | \
     SELECT ?a ?d { ?a :p ?b . ?b :p ?c . ?c :p ?d } ORDER BY RAND() CONCAT(STR(?d), STR(?a))",
];

fn operator_plan(snapshot: &Snapshot, operator: &str, text: &str) -> Plan {
    let plan = native(snapshot, text);
    let tree = format!("{:?}", plan.root);
    assert!(tree.contains(operator), "no {operator} in {tree}");
    plan
}

#[test]
fn operators_end_at_their_deadline_and_when_cancelled() {
    let (_folder, snapshot) = ring(400, 40);
    for line in OPERATORS {
        let [operator, _, text] = parts(line);
        let mut plan = operator_plan(&snapshot, operator, text);
        let (time, soon) = (Duration::from_millis(5), Duration::from_secs(20));
        ends(&mut plan, &snapshot, time, soon, text);
    }
}

#[test]
fn operators_end_at_their_memory_limit_and_say_who_held_too_much() {
    let (_folder, snapshot) = ring(400, 40);
    for line in OPERATORS {
        let [operator, holder, text] = parts(line);
        let mut plan = operator_plan(&snapshot, operator, text);
        for (threads, weight) in [(1, Weight::Light), (2, Weight::Heavy)] {
            plan.weight = weight;
            // An operator that holds nothing but batches must already fail to allocate the first one.
            let limit = if holder.is_empty() {
                8 << 10
            } else {
                500 << 10
            };
            let options = ExecOptions {
                memory: MemoryBudget::new(limit),
                ..in_batches(threads, 1024)
            };
            match count(&plan, &snapshot, &options) {
                Err(Error::Limit(m)) => {
                    // The error may name the terms that the query creates, or the rows that are held with them.
                    let is_named = holder.split(", ").any(|h| m.to_string().contains(h));
                    assert!(is_named, "{text}: {m}");
                }
                other => panic!("{text}: {other:?}"),
            }
            assert_eq!(options.memory.used(), 0, "{text}");
        }
    }
}

/// The canonical bytes of all collected values.
pub fn texts(snapshot: &Snapshot, terms: &QueryTerms, sink: &CollectSink) -> Vec<Vec<u8>> {
    let mut decoder = jindou_engine::TermDecoder::new(snapshot, terms);
    let text = |&id: &u32| decoder.canonical(id).unwrap().unwrap().to_vec();
    sink.ids.iter().map(text).collect()
}

/// Rows that several workers have sorted and merged are in the same order as those of one worker.
#[test]
fn rows_sorted_by_several_workers_are_in_order() {
    let (_folder, snapshot) = ring(300, 9);
    for text in [
        "SELECT ?a ?b ?c { ?a :p ?b . ?b :p ?c } ORDER BY ?c DESC(?a) ?b",
        "SELECT ?a ?b ?c { ?a :p ?b . ?b :p ?c } ORDER BY DESC(?c) ?b ?a",
        "SELECT ?c ?a { ?a :p ?b . ?b :p ?c } ORDER BY DESC(?c) ?a",
        "SELECT ?c ?a { ?a :p ?b . ?b :p ?c } ORDER BY ?c DESC(?a) OFFSET 100 LIMIT 5000",
        "SELECT ?c ?n { { SELECT ?c (STRLEN(STR(?c)) * 1000 AS ?n) { ?a :p ?b . ?b :p ?c } } } ORDER BY DESC(?n) ?c LIMIT 6000",
    ] {
        let mut plan = native(&snapshot, text);
        plan.weight = Weight::Heavy;
        let rows = |threads| {
            let (mut sink, terms) = (CollectSink::default(), QueryTerms::new());
            let options = in_batches(threads, 64);
            execute_streaming(&plan, &snapshot, &options, &terms, &mut sink).unwrap();
            (sink.width, texts(&snapshot, &terms, &sink))
        };
        let (width, one) = rows(1);
        assert!(one.len() > 4000, "{text}");
        assert_eq!(rows(4).1, one, "{text}");
        // If the query creates no terms, the order is that of the terms' bytes.
        if text.contains("ORDER BY ?c DESC(?a) ?b") {
            let key = |r: &[Vec<u8>]| (r[2].clone(), std::cmp::Reverse(r[0].clone()), r[1].clone());
            let keys: Vec<_> = one.chunks(width).map(key).collect();
            assert!(keys.is_sorted());
        }
        if text.ends_with("5000") {
            let all = native(&snapshot, "SELECT ?c ?a { ?a :p ?b . ?b :p ?c }");
            let mut sink = CollectSink::default();
            let terms = QueryTerms::new();
            execute_streaming(&all, &snapshot, &ExecOptions::default(), &terms, &mut sink).unwrap();
            let key = |r: &[Vec<u8>]| (r[0].clone(), std::cmp::Reverse(r[1].clone()));
            let all = texts(&snapshot, &terms, &sink);
            let mut want: Vec<_> = all.chunks(width).map(key).collect();
            want.sort();
            let got: Vec<_> = one.chunks(width).map(key).collect();
            assert_eq!(got, want[100..5100]);
        }
    }
}

#[test]
fn a_limit_stops_the_pipeline_early() {
    let (_folder, snapshot) = ring(400, 40);
    let mut plan = native(&snapshot, &format!("{PATH} LIMIT 7"));
    for weight in [Weight::Light, Weight::Heavy] {
        plan.weight = weight;
        let options = with_threads(2);
        let begin = Stopwatch::start();
        assert_eq!(count(&plan, &snapshot, &options).unwrap(), 7);
        assert!(begin.elapsed() < Duration::from_secs(2));
    }
    let ask = native(&snapshot, "ASK { ?a :p ?b . ?b :p ?c }");
    assert_eq!(count(&ask, &snapshot, &ExecOptions::default()).unwrap(), 1);
}

/// Getting the first of a million rows must not produce many rows: whether rows have columns or not, also with
/// operators above.
#[test]
fn the_first_row_comes_before_the_others() {
    let (_folder, snapshot) = ring(400, 40);
    for text in [
        "ASK { ?a :p ?b . ?b :p ?c . ?c :p ?d }",
        "SELECT ?a { ?a :p ?b . ?b :p ?c . ?c :p ?d } LIMIT 1",
        "SELECT ?a ?d { { ?a :p ?b } { ?b :p ?c . ?c :p ?d } UNION { ?b :p ?c . ?c :p ?d } } LIMIT 1",
        "ASK { ?a :p ?b . ?b :p ?c OPTIONAL { ?c :p ?d . ?d :p ?e FILTER(?e != ?a) } }",
    ] {
        for threads in [1, 2] {
            let options = with_threads(threads);
            let (mut sink, plan) = (CountSink::default(), native(&snapshot, text));
            let terms = QueryTerms::new();
            let profile = execute_streaming(&plan, &snapshot, &options, &terms, &mut sink).unwrap();
            assert_eq!(sink.rows, 1, "{text}");
            let steps = profile.nodes.iter().flat_map(|n| &n.steps);
            let most = steps.map(|s| s.rows_out).max();
            assert!(most < Some(20_000), "{text}: {most:?}");
        }
    }
}

#[test]
fn every_number_of_threads_gives_the_same_checksum() {
    let (_folder, snapshot) = ring(33, 12);
    for text in [
        "SELECT ?a ?b ?c WHERE { ?a :p ?b . ?b :p ?c . ?c :p ?a }",
        "SELECT ?a ?b ?c WHERE { ?a :p ?b . ?b :p ?c . ?a :p ?c }",
        "SELECT ?a ?x ?c WHERE { ?a ?x ?b . ?b :p ?c }",
        "SELECT * WHERE { ?a ?x ?b }",
        "SELECT ?c ?d WHERE { :n7 :p ?a . ?a :p ?b . ?b :p ?c . ?c :p ?d }",
        "SELECT DISTINCT ?c ?d WHERE { ?a :p ?b . ?b :p ?c . ?c :p ?d }",
    ] {
        let mut plan = native(&snapshot, text);
        plan.weight = Weight::Heavy;
        let mut first = None;
        for threads in [1, 2, 5] {
            for batch_rows in [16, 100, 4096] {
                let options = in_batches(threads, batch_rows);
                let sink = Summed::<ChecksumSink>::default();
                execute(&plan, &snapshot, &options, &QueryTerms::new(), &sink).unwrap();
                let sum = sink.into_inner();
                assert!(sum.rows > 0, "{text}");
                let first = first.get_or_insert_with(|| sum.clone());
                assert_eq!(*first, sum, "{text} {threads}");
            }
        }
    }
}

#[test]
fn bare_counts_add_lists_up() {
    let (_folder, snapshot) = ring(300, 12);
    let plan = native(
        &snapshot,
        "SELECT (COUNT(*) AS ?n) WHERE { ?a :p ?b . ?b :p ?c . ?c :p ?d }",
    );
    let mut sink = CollectSink::default();
    let terms = QueryTerms::new();
    execute_streaming(&plan, &snapshot, &ExecOptions::default(), &terms, &mut sink).unwrap();
    let mut text = vec![];
    terms.term(jindou_model::VertexId(sink.ids[0]), &mut text);
    assert_eq!(&text[1..], (300u64 * 12 * 12 * 12).to_string().as_bytes());
}

struct Failing(u32);

impl Sink for Failing {
    fn batch(&mut self, _: &[&[u32]], _: usize) -> Result<()> {
        self.0 += 1;
        match self.0 {
            1 | 2 => Ok(()),
            3 => Err(Error::SinkClosed),
            _ => panic!("a batch after the error"),
        }
    }
}

struct Panicking;

impl Sink for Panicking {
    fn batch(&mut self, _: &[&[u32]], _: usize) -> Result<()> {
        panic!("on purpose")
    }
}

#[test]
fn errors_and_panics_of_a_sink_end_the_query() {
    let (_folder, snapshot) = ring(300, 12);
    let mut plan = native(&snapshot, "SELECT ?a ?c WHERE { ?a :p ?b . ?b :p ?c }");
    for (threads, weight) in [(1, Weight::Light), (1, Weight::Heavy)] {
        plan.weight = weight;
        let (options, terms) = (in_batches(threads, 64), QueryTerms::new());
        let e = execute_streaming(&plan, &snapshot, &options, &terms, &mut Failing(0));
        assert!(matches!(e, Err(Error::SinkClosed)));
        let e = execute_streaming(&plan, &snapshot, &options, &terms, &mut Panicking);
        assert!(matches!(e, Err(Error::Internal(_))));
    }
    plan.validity.epoch ^= 1;
    let e = count(&plan, &snapshot, &ExecOptions::default());
    assert!(matches!(e, Err(Error::Internal(_))));
}
