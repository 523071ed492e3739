//! Queries that must not need a large stack, and regular expressions that would take exponential time.

use jindou::Answer;
use jindou::testing::Store;
use oxrdf::{Literal, Term};

fn store() -> Store {
    Store::of_trig("@prefix : <http://e/> . :a :price 1 . :g1 { :x :p :y . :y :q :z }")
}

#[test]
fn many_triple_terms_are_planned_and_run_on_a_small_stack() {
    let s = store();
    let some = "<< :a :q ?O ~ :iri >> . ".repeat(400);
    for query in [
        format!("PREFIX : <http://e/> SELECT * {{ {some} }}"),
        format!("PREFIX : <http://e/> SELECT * {{ OPTIONAL {{ {some} }} }}"),
    ] {
        std::thread::scope(|scope| {
            let small = std::thread::Builder::new().stack_size(1 << 20);
            let rows = || s.db.query(&query).expect(&query).solutions().len();
            let run = small.spawn_scoped(scope, rows);
            assert!(run.unwrap().join().unwrap() < 2);
        });
    }
}

/// A search that would take exponential time ends with an error that names the limit.
#[test]
fn references_to_groups_have_their_limits() {
    let s = store();
    let text = "a".repeat(5_000);
    let query = format!(
        r#"SELECT ?x {{ BIND(REGEX("{text}", "^(.*)(.*)(.*)(.*)\\4\\3\\2\\1b$") AS ?x) }}"#
    );
    // Here the automaton finds at once that the text has no `b` at its end.
    let answer = s.db.query(&query).expect(&query);
    let no = Some(Term::from(Literal::from(false)));
    assert!(matches!(answer, Answer::Solutions { rows, .. } if rows == [[no]]));
    let query =
        format!(r#"SELECT ?x {{ BIND(REGEX("{text}b", "^(.*)(.*)(.*)\\3\\2\\1ab$") AS ?x) }}"#);
    match s.db.query(&query) {
        Ok(answer) => assert_eq!(answer.solutions().len(), 1),
        Err(e) => assert!(e.to_string().contains("back-references"), "{e}"),
    };
}
