//! Reads all quads of a database.

use jindou::Database;
pub use jindou_testing::w3c::same;
use oxrdf::{Dataset, GraphName, NamedNode, NamedOrBlankNode, Quad, Term};

/// All quads of a database, read by queries.
pub fn all_quads(db: &Database) -> Dataset {
    let mut out = Dataset::new();
    let options = jindou::QueryOptions::default()
        .with_union_default(false)
        .with_threads(1);
    for text in [
        "SELECT ?s ?p ?o { ?s ?p ?o }",
        "SELECT ?s ?p ?o ?g { GRAPH ?g { ?s ?p ?o } }",
    ] {
        let answer = db.query_with(text, &options).expect("all quads");
        for row in answer.solutions() {
            let subject: NamedOrBlankNode = match row[0].clone().expect("a subject") {
                Term::NamedNode(n) => n.into(),
                Term::BlankNode(b) => b.into(),
                other => panic!("{other} is a subject"),
            };
            let predicate: NamedNode = match row[1].clone().expect("a predicate") {
                Term::NamedNode(n) => n,
                other => panic!("{other} is a predicate"),
            };
            let graph: GraphName = match row.get(3).cloned().flatten() {
                None => GraphName::DefaultGraph,
                Some(Term::NamedNode(n)) => n.into(),
                Some(Term::BlankNode(b)) => b.into(),
                Some(other) => panic!("{other} names a graph"),
            };
            let object = row[2].clone().expect("an object");
            assert!(
                out.insert(&Quad::new(subject, predicate, object, graph)),
                "a quad is given twice"
            );
        }
    }
    out
}
