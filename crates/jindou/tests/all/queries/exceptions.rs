//! A load makes each class and each predicate's keys intervals of ids; updates add exceptions to them. After few and
//! after many updates, a store must answer as one that is loaded from the same quads.

use jindou::{Database, LoadOptions, Progress, QueryOptions, UpdateOptions};
use jindou_store::SnapshotQuads;
use jindou_workloads::lubm::Lubm;
use jindou_workloads::queries::lubm::QUERIES;
use std::path::Path;

const UB: &str = "PREFIX ub: <http://swat.cse.lehigh.edu/onto/univ-bench.owl#>";

/// Updates that affect more and more vertices: the first ones cause few exceptions, the last ones thousands.
const CHANGES: [&str; 8] = [
    "DELETE { ?x a ?c } WHERE { ?x a ?c FILTER(STRENDS(STR(?x), \"Student77\")) }",
    "INSERT { ?x a ub:GraduateStudent } WHERE { ?x a ub:UndergraduateStudent FILTER(STRENDS(STR(?x), \"33\")) }",
    "INSERT { ?x a ub:UndergraduateStudent } WHERE { ?x a ub:Publication FILTER(STRENDS(STR(?x), \"5\")) }",
    "INSERT { ?x ub:undergraduateDegreeFrom <http://www.University0.edu> } WHERE { ?x a ub:UndergraduateStudent FILTER(STRENDS(STR(?x), \"9\")) }",
    "DELETE { ?x a ?c } INSERT { ?x a ub:FullProfessor } WHERE { ?x a ?c ; ub:worksFor ?d FILTER(STRENDS(STR(?x), \"3\")) }",
    "DELETE { ?x ub:memberOf ?y } INSERT { ?x ub:memberOf <http://www.Department0.University0.edu> } WHERE { ?x ub:memberOf ?y FILTER(STRENDS(STR(?x), \"5\")) }",
    "DELETE { ?x a ub:Course } INSERT { ?x ub:name \"none\" ; ub:takesCourse ?x } WHERE { ?x a ub:Course FILTER(STRENDS(STR(?x), \"1\")) }",
    "INSERT { GRAPH <http://example.org/g> { ?x a ub:Department . ?y ub:name \"named\" } } WHERE { ?x a ub:ResearchGroup . ?y a ub:GraduateStudent FILTER(STRENDS(STR(?y), \"2\")) } ;
     INSERT { ?new a ub:UndergraduateStudent ; ub:advisor ?a ; ub:takesCourse ?z } WHERE { ?a a ub:FullProfessor ; ub:teacherOf ?z BIND(IRI(CONCAT(STR(?z), \"/new\")) AS ?new) }",
];

const MORE: [&str; 6] = [
    "SELECT ?x ?n { ?x a ub:Course ; ub:name ?n }",
    "SELECT ?x ?y { ?x a ub:UndergraduateStudent ; ub:undergraduateDegreeFrom ?y }",
    "SELECT ?x { ?x a ub:GraduateStudent , ub:UndergraduateStudent }",
    "SELECT (COUNT(*) AS ?n) { ?x a ub:UndergraduateStudent ; ub:memberOf ?d . ?d a ub:Department }",
    "SELECT ?x { ?x a ub:FullProfessor FILTER NOT EXISTS { ?x ub:worksFor ?d } }",
    "SELECT ?x ?d { ?x a ub:Course OPTIONAL { ?y ub:takesCourse ?x . ?y a ub:GraduateStudent ; ub:memberOf ?d } }",
];

fn rows(db: &Database, text: &str, union: bool, threads: usize) -> Vec<String> {
    let options = QueryOptions::default()
        .with_union_default(union)
        .with_threads(threads);
    let answer = db.query_with(text, &options).expect(text);
    let mut rows: Vec<String> = answer
        .solutions()
        .iter()
        .map(|r| format!("{r:?}"))
        .collect();
    rows.sort();
    rows
}

fn reloaded(db: &Database, dir: &Path) -> Database {
    let quads = SnapshotQuads::new(db.snapshot().clone());
    Database::load(dir, &quads, &LoadOptions::default(), &Progress::default()).expect("a load");
    Database::open(dir).expect("the store")
}

#[test]
fn touched_classes_and_keys_answer_as_loaded_ones() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    let lubm = Lubm::new(1, 0);
    Database::load(&store, &lubm, &LoadOptions::default(), &Progress::default()).unwrap();
    let db = Database::open(&store).unwrap();
    let queries: Vec<String> = QUERIES
        .iter()
        .map(|q| q.text.to_owned())
        .chain(MORE.iter().map(|q| format!("{UB} {q}")))
        .collect();
    let mut differ = 0;
    for (i, change) in CHANGES.iter().enumerate() {
        let before: Vec<usize> = queries
            .iter()
            .map(|q| rows(&db, q, false, 1).len())
            .collect();
        let text = format!("{UB} {change}");
        db.update(&text, &UpdateOptions::default()).expect(change);
        let loaded = reloaded(&db, &dir.path().join(format!("loaded{i}")));
        assert_eq!(db.snapshot().quads(), loaded.snapshot().quads());
        for (q, before) in queries.iter().zip(before) {
            for (union, threads) in [(false, 1), (false, 2), (true, 1)] {
                let (got, want) = (
                    rows(&db, q, union, threads),
                    rows(&loaded, q, union, threads),
                );
                assert!(
                    got == want,
                    "after change {i}, union {union}: {} rows in place of {} of\n{q}",
                    got.len(),
                    want.len()
                );
                differ += usize::from(want.len() != before);
            }
        }
    }
    assert!(
        differ > 20,
        "the changes hardly changed an answer: {differ}"
    );
}
