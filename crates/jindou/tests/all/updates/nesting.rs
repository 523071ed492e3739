//! Nested triple terms: those that are stored can be read back, and those nested too deeply are refused.

use jindou::{Database, Error, QuadPattern, QueryOptions, Resource, UpdateOptions};
use oxrdf::Term;

/// Largest number of nested triple terms that can be stored.
const MOST: usize = 64;

/// A triple term with this many levels of nesting.
fn nested(levels: usize) -> String {
    let open = "<<( <http://e/a> <http://e/b> ".repeat(levels);
    format!("{open}1{}", " )>>".repeat(levels))
}

fn levels(term: &Term) -> usize {
    match term {
        Term::Triple(t) => 1 + levels(&t.object),
        _ => 0,
    }
}

/// Reads all terms, and returns the nesting levels of the quads' objects, ascending.
fn stored(db: &Database) -> Vec<usize> {
    let matches = db
        .quads_matching(&QuadPattern::default(), &QueryOptions::default())
        .expect("quads");
    let mut quads = vec![];
    matches.read(0..matches.len(), &mut quads).expect("terms");
    let mut all: Vec<usize> = quads.iter().map(|q| levels(&q.object)).collect();
    all.sort_unstable();
    all
}

fn refused(db: &Database, update: &str) -> String {
    let e = db
        .update(update, &UpdateOptions::default())
        .expect_err(update);
    assert!(
        matches!(&e, Error::Limit(l) if l.resource == Resource::Form),
        "{e}"
    );
    e.to_string()
}

#[test]
fn deeper_terms_than_can_be_read_are_neither_written_nor_made() {
    let (_dir, store) = super::empty();
    let db = super::opened(&store);
    let options = UpdateOptions::default();
    let insert = |levels| {
        format!(
            "INSERT DATA {{ <http://e/s> <http://e/p> {} }}",
            nested(levels)
        )
    };
    db.update(&insert(MOST), &options)
        .expect("as deep as may be");
    assert_eq!(stored(&db), [MOST]);
    let said = refused(&db, &insert(MOST + 1));
    assert!(
        said.contains("line 1, column ") && said.contains("64"),
        "{said}"
    );

    // A template that would nest one level deeper is an error, and the whole request changes nothing.
    let deeper = "INSERT DATA { <http://e/t> <http://e/p> 2 } ; INSERT { ?s ?p <<( ?s ?p ?o )>> } WHERE { ?s ?p ?o }";
    let said = refused(&db, deeper);
    assert!(said.contains("65 levels"), "{said}");
    assert_eq!(stored(&db), [MOST]);
    // An expression that would nest one level deeper is an error, which leaves the variable unbound.
    let computed =
        "INSERT { ?s <http://e/q> ?t } WHERE { ?s ?p ?o BIND(TRIPLE(?s, ?p, ?o) AS ?t) }";
    db.update(computed, &options).expect("nothing");
    assert_eq!(stored(&db), [MOST]);

    // Nests one level deeper with each request, until the next one is refused.
    db.update(
        "CLEAR ALL ; INSERT DATA { <http://e/s> <http://e/p> 1 }",
        &options,
    )
    .expect("one quad");
    let step = "DELETE { ?s ?p ?o } INSERT { ?s ?p <<( ?s ?p ?o )>> } WHERE { ?s ?p ?o }";
    for level in 1..=MOST {
        db.update(step, &options).expect("a level");
        assert_eq!(stored(&db), [level]);
    }
    refused(&db, step);
    assert_eq!(stored(&db), [MOST]);
}
