//! Tests that terms ascend within each run of ids, and that an interval ends with its run and covers one kind of
//! string.

use super::*;
use jindou_model::VertexId;
use jindou_store::{Snapshot, testing};
use jindou_testing::{Rng, named, quads, triple};
use oxrdf::{Literal, Quad};

/// Checks the order that intervals rely on: within each run, terms ascend by their bytes. Returns the number of pairs
/// compared.
fn ascend(data: &[Quad]) -> usize {
    let (_folder, base) = testing::store_of(data);
    let snapshot = Snapshot::of_base(base);
    let runs = OrderedRuns::of_graph(&snapshot);
    let (mut before, mut pairs) = (None, 0);
    for id in 1..=snapshot.dense_ids() {
        let run = runs.run(id);
        let mut bytes = Vec::new();
        assert!(snapshot.term(VertexId(id), &mut bytes));
        if let (Some(run), Some((last, term))) = (run, before.take())
            && run == last
        {
            assert!(term < bytes, "{id}");
            pairs += 1;
        }
        if let Some(run) = run {
            assert!(run[0] <= id && id < run[1]);
            before = Some((run, bytes));
        }
    }
    assert_eq!(runs.run(snapshot.dense_ids() + 1), None);
    assert_eq!(runs.run(0), None);
    pairs
}

#[test]
fn terms_ascend_in_runs() {
    let mut pairs = 0;
    for seed in 0..40 {
        pairs += ascend(&quads(&mut Rng::new(seed)));
    }
    assert!(pairs > 100, "{pairs}");
    // Classes whose vertices have the same predicates, one after the other.
    let mut data = Vec::new();
    for i in 0..200 {
        let s = format!("n{i}");
        let mut class = triple(&s, "a", named(&format!("C{}", i * 7 % 3)));
        class.predicate = oxrdf::vocab::rdf::TYPE.into_owned();
        let value = Literal::new_simple_literal(format!("v{}", i * 31 % 97));
        data.extend([class, triple(&s, "p", value)]);
    }
    assert_eq!(ascend(&data), 96 + 2 + 1, "values, classes, predicates");
}

#[test]
fn intervals_end_with_their_run_and_kind() {
    let mut data = Vec::new();
    for i in 0..50 {
        let text = Literal::new_simple_literal(format!("v{i:02}"));
        let values = [text, Literal::from(i)];
        data.extend(values.map(|v| triple(&format!("n{i}"), &format!("p{}", i % 2), v)));
    }
    let (_folder, base) = testing::store_of(&data);
    let snapshot = Snapshot::of_base(base);
    let (runs, mut beyond) = (OrderedRuns::of_graph(&snapshot), Beyond::default());
    let id = |i: usize| {
        let term = Literal::new_simple_literal(format!("v{i:02}"));
        let found = snapshot.lookup(&term::encode(&term.into()));
        found.expect("it is there").0
    };
    let mut insert = |i: usize| beyond.insert(&runs, id(i), term::STRING);
    // Strings with an even number are in one run, those with an odd number in another.
    insert(30);
    insert(40);
    for i in 0..50 {
        let is_between = i % 2 == 0 && (30..=40).contains(&i);
        assert_eq!(beyond.has(&runs, id(i)), is_between, "{i}");
    }
    let number = |i: i64| snapshot.lookup(&term::encode(&Literal::from(i).into()));
    for i in 0..50 {
        let number = number(i).expect("it is there").0;
        assert!(!beyond.has(&runs, number));
        beyond.insert(&runs, number, term::FIRST_DATATYPE);
        assert!(!beyond.has(&runs, number), "numbers sort otherwise");
    }
}
