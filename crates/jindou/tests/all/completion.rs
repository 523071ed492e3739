//! Compares completions with counts by nested loops over the statements, for a loaded store (which has characteristic
//! sets) and one in memory (where completions run queries). Also tests the order and the text of items.

use jindou::complete::{Completer, Completion, Counts, Request, Slot};
use jindou::parse::Format;
use jindou::testing::{load_nquads, source};
use jindou::{Database, QueryOptions, UpdateOptions};
use jindou_testing::Rng;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

const PROLOGUE: &str = "PREFIX e: <http://e/> SELECT * WHERE { ";
const TYPE: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type";

type Triple = (String, String, String);

fn triples(rng: &mut Rng) -> BTreeSet<Triple> {
    let name = |kind: &str, n: usize| format!("http://e/{kind}{n}");
    let mut all = BTreeSet::new();
    for s in 0..60 {
        let subject = name("s", s);
        for _ in 0..1 + rng.below(2) {
            all.insert((subject.clone(), TYPE.to_owned(), name("c", rng.below(4))));
        }
        for _ in 0..rng.below(6) {
            let object = if rng.chance(70) {
                name("s", rng.below(60))
            } else {
                name("o", rng.below(5))
            };
            all.insert((subject.clone(), name("p", rng.below(5)), object));
        }
    }
    all
}

fn text(all: &BTreeSet<Triple>) -> String {
    all.iter()
        .map(|(s, p, o)| format!("<{s}> <{p}> <{o}> .\n"))
        .collect()
}

fn in_memory(all: &BTreeSet<Triple>) -> Database {
    let db = Database::in_memory();
    let update = format!("INSERT DATA {{ {} }}", text(all));
    db.update(&update, &UpdateOptions::default()).unwrap();
    db
}

fn loaded(all: &BTreeSet<Triple>, folder: &std::path::Path) -> Database {
    let store = folder.join("store");
    load_nquads(&store, &text(all)).unwrap();
    Database::open(&store).unwrap()
}

fn complete(completer: &Completer, before: &str) -> Completion {
    let before = format!("{PROLOGUE}{before}");
    let request = Request {
        limit: 500,
        patience: Duration::from_secs(20),
        ..Request::new(&before, "")
    };
    completer.complete(&request).unwrap()
}

/// The offered IRIs with their counts.
fn offered(c: &Completion) -> BTreeMap<String, u64> {
    let counted = c
        .items
        .iter()
        .filter_map(|i| Some((i.iri.clone()?, i.count?)));
    counted.collect()
}

fn count(terms: impl Iterator<Item = String>) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for term in terms {
        *counts.entry(term).or_insert(0) += 1;
    }
    counts
}

/// The predicates of these subjects with the number of subjects that have each, by nested loops.
fn predicates(all: &BTreeSet<Triple>, subjects: &BTreeSet<&String>) -> BTreeMap<String, u64> {
    let pairs: BTreeSet<_> = all
        .iter()
        .filter(|t| subjects.contains(&t.0))
        .map(|t| (&t.0, &t.1))
        .collect();
    count(pairs.into_iter().map(|p| p.1.clone()))
}

fn objects(
    all: &BTreeSet<Triple>,
    subjects: &BTreeSet<&String>,
    predicate: &str,
) -> BTreeMap<String, u64> {
    let of = all
        .iter()
        .filter(|t| subjects.contains(&t.0) && t.1 == predicate);
    count(of.map(|t| t.2.clone()))
}

fn having<'t>(all: &'t BTreeSet<Triple>, p: &str, o: Option<&str>) -> BTreeSet<&'t String> {
    let of = all
        .iter()
        .filter(|t| t.1 == p && o.is_none_or(|o| t.2 == o));
    of.map(|t| &t.0).collect()
}

#[test]
fn counts_are_those_of_nested_loops() {
    let mut rng = Rng::new(7);
    for _ in 0..8 {
        let all = triples(&mut rng);
        let folder = tempfile::tempdir().unwrap();
        for (db, is_loaded) in [
            (loaded(&all, folder.path()), true),
            (in_memory(&all), false),
        ] {
            let completer = Completer::new(db);
            for class in 0..4 {
                let iri = format!("http://e/c{class}");
                let students = having(&all, TYPE, Some(&iri));
                let found = complete(&completer, &format!("?x a e:c{class} . ?x "));
                assert_eq!(
                    offered(&found),
                    predicates(&all, &students),
                    "class {class}"
                );
                if is_loaded {
                    assert_eq!(found.counts, Counts::Exact);
                }
                for p in 0..5 {
                    let predicate = format!("http://e/p{p}");
                    let found = complete(&completer, &format!("?x a e:c{class} . ?x e:p{p} "));
                    let expected = objects(&all, &students, &predicate);
                    if !expected.is_empty() {
                        assert_eq!(offered(&found), expected, "class {class}, predicate {p}");
                    }
                    // A class and a predicate: a star of two members.
                    let both: BTreeSet<_> = students
                        .intersection(&having(&all, &predicate, None))
                        .copied()
                        .collect();
                    let found = complete(&completer, &format!("?x a e:c{class} ; e:p{p} ?y ; "));
                    if !both.is_empty() {
                        assert_eq!(
                            offered(&found),
                            predicates(&all, &both),
                            "class {class} with {p}"
                        );
                        let found = complete(&completer, &format!("?x e:p{p} ?y ; a "));
                        let members = having(&all, &predicate, None);
                        assert_eq!(
                            offered(&found),
                            objects(&all, &members, TYPE),
                            "classes of {p}"
                        );
                    }
                    // A join: the objects of `p` as subjects.
                    let reached: BTreeSet<_> = all
                        .iter()
                        .filter(|t| t.1 == predicate && students.contains(&t.0))
                        .map(|t| &t.2)
                        .collect();
                    let expected = predicates(&all, &reached);
                    let found = complete(&completer, &format!("?y a e:c{class} ; e:p{p} ?x . ?x "));
                    if !expected.is_empty() {
                        assert_eq!(offered(&found), expected, "ends of {p}");
                        // The count is exact, since there are fewer subjects than a sample may have.
                        assert_eq!(found.counts, Counts::Exact);
                        let same = complete(&completer, &format!("?y a e:c{class} ; e:p{p}/"));
                        assert_eq!(offered(&same), expected, "path over {p}");
                    }
                }
            }
            // A subject without any constraint.
            let found = complete(&completer, "?x ");
            let statements = count(all.iter().map(|t| t.1.clone()));
            assert_eq!(offered(&found), statements);
            let found = complete(&completer, "?x e:p1 ");
            assert_eq!(
                offered(&found),
                count(
                    all.iter()
                        .filter(|t| t.1 == "http://e/p1")
                        .map(|t| t.2.clone())
                )
            );
            // A constant subject, with its outgoing and incoming predicates.
            let one = "http://e/s3".to_owned();
            let found = complete(&completer, "e:s3 ");
            assert_eq!(offered(&found), predicates(&all, &[&one].into()));
            let into: BTreeSet<_> = all
                .iter()
                .filter(|t| t.2 == one)
                .map(|t| (&t.0, &t.1))
                .collect();
            let expected: BTreeSet<String> = into.iter().map(|t| t.1.clone()).collect();
            let found = complete(&completer, "e:s3 ^");
            if !expected.is_empty() {
                assert_eq!(
                    offered(&found).into_keys().collect::<BTreeSet<_>>(),
                    expected
                );
            }
        }
    }
}

/// The texts of the items.
fn texts(c: &Completion) -> Vec<&str> {
    c.items.iter().map(|i| i.text.as_str()).collect()
}

fn people() -> Completer {
    let db = Database::in_memory();
    let data = r#"PREFIX foaf: <http://xmlns.com/foaf/0.1/> PREFIX e: <http://e/>
        INSERT DATA {
            e:ann a foaf:Person ; foaf:name "Ann" ; foaf:knows e:bob , e:cy ; foaf:age 30 ; e:fooName "x"@en .
            e:bob a foaf:Person ; foaf:name "Bob" ; foaf:knows e:cy .
            e:cy a foaf:Agent ; foaf:name "Cy" .
            GRAPH e:g { e:ann e:only e:there }
        }"#;
    db.update(data, &UpdateOptions::default()).unwrap();
    Completer::new(db)
}

#[test]
fn names_of_the_data_are_offered() {
    let data =
        "@prefix acme: <http://acme.example/terms#> . @prefix f: <http://xmlns.com/foaf/0.1/> .
        <http://e/mars> a acme:Planet ; acme:moons 2 ; f:name 'Mars' .";
    let source = source(data, Format::Turtle);
    let db = Database::in_memory_from(&source, &UpdateOptions::default()).unwrap();
    let completer = Completer::new(db);
    let of = |before: &str, store: bool| {
        let request = Request {
            limit: 9,
            patience: Duration::from_secs(20),
            options: QueryOptions::default().with_store_prefixes(store),
            ..Request::new(before, "")
        };
        completer.complete(&request).unwrap()
    };
    let c = of("SELECT * { ?x mo", true);
    assert_eq!(texts(&c), ["acme:moons"]);
    assert_eq!(c.items[0].declare, None);
    let c = of("SELECT * { ?x mo", false);
    assert_eq!(texts(&c), ["<http://acme.example/terms#moons>"]);
    // If a namespace has several prefixes, the one that the text uses is preferred.
    assert_eq!(texts(&of("SELECT * { ?x f:na", true)), ["f:name"]);
    assert_eq!(texts(&of("SELECT * { ?x na", true)), ["f:name"]);
    assert_eq!(texts(&of("SELECT * { ?x foaf:na", true)), ["foaf:name"]);
    let own = "PREFIX me: <http://acme.example/terms#> SELECT * { ?x mo";
    assert_eq!(texts(&of(own, true)), ["me:moons"]);
}

/// Completes `before`, with at most `limit` items.
fn completed(people: &Completer, before: &str, limit: usize) -> Completion {
    let request = Request {
        limit,
        patience: Duration::from_secs(20),
        ..Request::new(before, "")
    };
    people.complete(&request).unwrap()
}

#[test]
fn items_are_ranked_shortened_and_filtered() {
    let people = people();
    let of = |before: &str, limit| completed(&people, before, limit);
    let c = of("SELECT * { ?x a foaf:Person . ?x ", 3);
    // `rdf:type` is stated already, so it comes last although all subjects have it. An item with an undeclared common
    // prefix contains its declaration.
    assert_eq!(texts(&c), ["foaf:knows", "foaf:name", "<http://e/fooName>"]);
    let foaf = ("foaf".to_owned(), "http://xmlns.com/foaf/0.1/".to_owned());
    assert_eq!(c.items[0].declare, Some(foaf));
    assert_eq!(c.items[0].count, Some(2));
    let c = of(
        "PREFIX e: <http://e/> SELECT * { ?x a foaf:Person . ?x na",
        3,
    );
    // A match at the beginning of a local name ranks before one in its middle.
    assert_eq!(texts(&c), ["foaf:name", "e:fooName"]);
    assert_eq!(
        c.from,
        "PREFIX e: <http://e/> SELECT * { ?x a foaf:Person . ?x ".len()
    );
    for (before, first) in [
        ("SELECT * { ?x foaf:kn", "foaf:knows"),
        ("SELECT * { ?x <http://xmlns.com/foaf/0.1/kn", "foaf:knows"),
        ("SELECT * { ?x a foaf:Person . ?x foaf:age ", "30"),
        ("PREFIX e: <http://e/> SELECT * { ?x e:fooName ", "\"x\"@en"),
        // A variable that SELECT names and no pattern uses yet comes first.
        ("SELECT ?a ?b ?c { ?a foaf:knows ?o . ?o foaf:none ", "?b"),
        // For a subject without constraints, `a` comes first.
        ("SELECT * { ?x ", "a"),
    ] {
        assert_eq!(texts(&of(before, 1)), [first], "{before}");
    }
    // Variables come after the first objects, and first if the word begins with `?`.
    let objects = "SELECT ?who { ?who foaf:knows ?friend . ?other foaf:knows ";
    let variables = format!("{objects}?f");
    for (before, only) in [
        (variables.as_str(), "?friend"),
        ("SELECT * { ?who a ?c FILTER(?w", "?who"),
        ("SELECT * { ?x a ?y . OPT", "OPTIONAL"),
        ("SELECT * { ?x a ?y FILTER(STRST", "STRSTARTS"),
        ("PREFIX foaf", "foaf: <http://xmlns.com/foaf/0.1/>"),
    ] {
        assert_eq!(texts(&of(before, 10)), [only], "{before}");
    }
    for (before, one) in [
        (objects, "?friend"),
        ("SELECT * { GRAPH ", "<http://e/g>"),
        ("SELECT * { ?x skos", "skos:"),
    ] {
        assert!(texts(&of(before, 10)).contains(&one), "{before}");
    }
}

#[test]
fn items_are_of_the_graphs_that_the_query_reads() {
    let people = people();
    let of = |before: &str| completed(&people, before, 50);
    assert!(!texts(&of("SELECT * { ?x a foaf:Person . ?x ")).contains(&"<http://e/only>"));
    for before in [
        "SELECT * { GRAPH <http://e/g> { <http://e/ann> ",
        "SELECT * FROM <http://e/g> { <http://e/ann> ",
    ] {
        assert_eq!(texts(&of(before)), ["<http://e/only>"], "{before}");
    }
    for before in [
        "SELECT * { GRAPH <http://e/unknown> { <http://e/ann> ",
        "SELECT * FROM <http://e/unknown> { ?x ",
        // No subject has both.
        "SELECT * { ?x a foaf:Person ; <http://e/none> ?y . ?x ",
        // There is no graph to look at.
        "SELECT * FROM <http://e/g> { GRAPH ?g { ?x ",
    ] {
        assert_eq!(of(before).counts, Counts::Whole, "{before}");
    }
    // A query with FROM or FROM NAMED is offered no other graphs.
    let from = of("SELECT * FROM <http://e/g> { GRAPH ");
    let unknown = of("SELECT * FROM NAMED <http://e/unknown> { GRAPH ");
    assert_eq!(texts(&from), texts(&unknown));
    let named = of("SELECT * FROM NAMED <http://e/g> { GRAPH ");
    assert!(texts(&named).contains(&"<http://e/g>") && !texts(&from).contains(&"<http://e/g>"));
    // Nothing is offered inside SERVICE, since the other endpoint's data is unknown.
    let c = of("SELECT * { SERVICE <http://other/> { ?x ");
    assert_eq!((c.slot, c.items.len()), (Slot::Nothing, 0));
}

#[test]
fn what_follows_the_cursor_counts() {
    let people = people();
    let request = Request {
        patience: Duration::from_secs(20),
        ..Request::new("SELECT * { ?x ", " . ?x foaf:age ?age . ?x foaf:name ?n }")
    };
    let c = people.complete(&request).unwrap();
    // The patterns after the cursor restrict `?x` to Ann, the only one with an age.
    let counts: Vec<_> = c.items.iter().filter_map(|i| i.count).collect();
    assert!(counts.iter().all(|n| *n == 1), "{c:?}");
    assert_eq!(counts.len(), 5);
}

#[test]
fn any_text_is_answered_in_time() {
    let people = people();
    let mut rng = Rng::new(3);
    let parts: Vec<&str> = "?x ·?y ·a ·foaf:knows ·foaf:Person ·. ·; ·, ·{ ·} ·[ ·] ·( ·) ·/·^·|·*·+·GRAPH ·<http://e/g> ·\
        SELECT ·* ·WHERE ·OPTIONAL ·\"s\"·@en ·^^·_:b ·12 ·FILTER·<<·>>·VALUES ·ü·é:é ·PREFIX x: ·<x> ·\
        BASE ·\\·'·#·\n·!·?·$·FROM ·SERVICE "
        .split('·')
        .collect();
    for _ in 0..3_000 {
        let mut text = String::from("SELECT * { ");
        for _ in 0..rng.below(25) {
            text.push_str(rng.one(&parts));
        }
        let begin = jindou_testing::Stopwatch::start();
        let c = people.complete(&Request::new(&text, "")).unwrap();
        assert!(text.is_char_boundary(c.from) && c.items.len() <= 50);
        assert!(
            begin.elapsed() < Duration::from_secs(2),
            "{text}: {:?}",
            begin.elapsed()
        );
    }
    let long = " ".repeat(jindou::complete::LONGEST_TEXT + 1);
    assert!(people.complete(&Request::new(&long, "")).is_err());
}
