//! Prepared queries: compared with `spareval`'s answers to the text with the terms inserted, and used across updates.

use jindou::testing::{Store, load_nquads};
use jindou::{Database, Error, QueryOptions, UpdateOptions, Value};
use jindou_testing::{Answer, Rng, answer};
use oxrdf::{Literal, NamedNode, Quad, Term};
use std::fmt::Write as _;

fn database(data: &[Quad], dir: &std::path::Path) -> Database {
    let text: String = data.iter().map(|q| format!("{q} .\n")).collect();
    load_nquads(dir, &text).unwrap();
    Database::open(dir).unwrap()
}

fn iri(name: &str) -> Term {
    NamedNode::new_unchecked(format!("http://e/{name}")).into()
}

/// A random term; one in some is not in the data.
fn value(rng: &mut Rng) -> Term {
    match rng.below(10) {
        0 => iri("nowhere"),
        1 => Literal::from(rng.below(4) as i64).into(),
        2 => Literal::new_language_tagged_literal_unchecked("a", "en").into(),
        3 => iri(&format!("c{}", rng.below(3))),
        4 => iri(&format!("p{}", rng.below(3))),
        _ => iri(&format!("v{}", rng.below(5))),
    }
}

/// Writes random queries with the parameters `$p0` and `$p1`.
struct Writer<'a> {
    rng: &'a mut Rng,
}

impl Writer<'_> {
    fn end(&mut self) -> String {
        match self.rng.below(9) {
            0 | 1 => "$p0".into(),
            2 => "$p1".into(),
            3 => format!("<http://e/v{}>", self.rng.below(5)),
            _ => format!("?x{}", self.rng.below(4)),
        }
    }

    fn triples(&mut self, out: &mut String) {
        for _ in 0..1 + self.rng.below(3) {
            let s = self.end();
            // Rarely a pattern without variables, since the planner evaluates those itself.
            let o = if s.starts_with('?') || self.rng.chance(10) {
                self.end()
            } else {
                format!("?x{}", self.rng.below(4))
            };
            let p = match self.rng.below(12) {
                0 => "?x3".to_owned(),
                1 | 2 => "a".to_owned(),
                // No paths of length zero, since `spareval` loses rows of such paths next to OPTIONAL.
                3 => format!("<http://e/p{}>+", self.rng.below(3)),
                _ => format!("<http://e/p{}>", self.rng.below(3)),
            };
            let _ = write!(out, "{s} {p} {o} . ");
        }
    }

    fn group(&mut self, depth: usize, out: &mut String) {
        self.triples(out);
        if depth == 0 {
            return;
        }
        let (open, close) = match self.rng.below(7) {
            0 => ("OPTIONAL { ", "} "),
            1 => ("MINUS { ", "} "),
            2 => ("FILTER EXISTS { ", "} "),
            3 => ("{ ?x0 <http://e/p0> ?x1 } UNION { ", "} "),
            4 => ("GRAPH ?g { ", "} "),
            5 => ("FILTER(?x0 != $p0) ", ""),
            _ => return,
        };
        out.push_str(open);
        if !close.is_empty() {
            self.group(depth - 1, out);
        }
        out.push_str(close);
    }

    fn query(&mut self) -> String {
        let mut body = String::new();
        self.group(2, &mut body);
        match self.rng.below(6) {
            0 => format!("ASK {{ {body} }}"),
            1 => format!("SELECT (COUNT(*) AS ?n) {{ {body} }}"),
            2 => format!("SELECT DISTINCT ?x0 ?x1 {{ {body} }}"),
            _ => format!("SELECT ?x0 ?x1 ?x2 {{ {body} }}"),
        }
    }
}

fn bag(answer: jindou::Answer) -> Vec<String> {
    match answer {
        jindou::Answer::Boolean(b) => Answer::Boolean(b).bag(),
        jindou::Answer::Solutions { variables, rows } => Answer::Rows(variables, rows).bag(),
        jindou::Answer::Graph(_) => panic!("a graph"),
    }
}

#[test]
fn random_queries_answer_like_the_text_with_the_terms_in_it() {
    let options = QueryOptions::default().with_threads(1);
    let (mut compared, mut planned, mut rows) = (0, 0, 0);
    for seed in 0..40 {
        let mut rng = Rng::new(seed);
        let data = jindou_testing::quads(&mut rng);
        let dir = tempfile::tempdir().unwrap();
        let db = database(&data, &dir.path().join("store"));
        for _ in 0..25 {
            let text = Writer { rng: &mut rng }.query();
            let names: Vec<&str> = ["p0", "p1"]
                .into_iter()
                .filter(|n| text.contains(&format!("${n}")))
                .collect();
            let prepared = db
                .prepare(&text, &names, &options)
                .unwrap_or_else(|e| panic!("{text}: {e}"));
            planned += usize::from(prepared.is_planned());
            let mut session = prepared.session();
            for _ in 0..4 {
                let values: Vec<Term> = names.iter().map(|_| value(&mut rng)).collect();
                let mut written = text.clone();
                for (n, v) in names.iter().zip(&values) {
                    written = written.replace(&format!("${n}"), &v.to_string());
                }
                // Skips texts with a literal as a subject, which are not valid SPARQL; as a parameter such a literal
                // matches nothing.
                let Ok(expected) = answer(&data, &written) else {
                    continue;
                };
                let given: Vec<Value<'_>> = values.iter().map(Value::Term).collect();
                let got = session
                    .query(&given, &options)
                    .unwrap_or_else(|e| panic!("{text} {values:?}: {e}"));
                let got = bag(got);
                assert_eq!(got, expected.bag(), "seed {seed}: {written}");
                compared += 1;
                rows += got.len();
                let nodes: Vec<Value<'_>> = values.iter().map(Value::Node).collect();
                assert_eq!(bag(session.query(&nodes, &options).unwrap()), got);
            }
        }
    }
    println!("{compared} compared, {planned} planned once, {rows} rows");
    assert!(compared > 2_000 && planned > 150 && rows > 1_500);
}

#[test]
fn updates_are_seen_and_new_terms_found() {
    let store = Store::of_trig(
        "<http://e/v0> <http://e/p0> <http://e/v1> . <http://e/v1> <http://e/p0> <http://e/v2> .",
    );
    let db = &store.db;
    let options = QueryOptions::default();
    let text = "SELECT ?o { $s <http://e/p0> ?o }";
    let prepared = db.prepare(text, &["s"], &options).unwrap();
    assert!(prepared.is_planned());
    let mut session = prepared.session();
    let mut rows = |name: &str| {
        let term = iri(name);
        let answer = session.query(&[Value::Term(&term)], &options).unwrap();
        answer.solutions().len()
    };
    assert_eq!((rows("v0"), rows("v9")), (1, 0));
    let update = |text: &str| db.update(text, &UpdateOptions::default()).unwrap();
    update("INSERT DATA { <http://e/v9> <http://e/p0> 1, 2, <http://e/v0> }");
    assert_eq!((rows("v0"), rows("v9")), (1, 3));
    // A new predicate changes what plans depend on, so the query is planned again.
    update("INSERT DATA { <http://e/v9> <http://e/new> 1 }");
    update("DELETE DATA { <http://e/v0> <http://e/p0> <http://e/v1> }");
    assert_eq!((rows("v0"), rows("v9"), rows("v1")), (0, 3, 1));
    // A query that is prepared before its predicate exists.
    let text = "SELECT ?s { ?s <http://e/later> $o }";
    let later = db.prepare(text, &["o"], &options).unwrap();
    let mut session = later.session();
    let one: Term = Literal::from(1).into();
    let count = |s: &mut jindou::Session| {
        let answer = s.query(&[Value::Term(&one)], &options).unwrap();
        answer.solutions().len()
    };
    assert_eq!(count(&mut session), 0);
    update("INSERT DATA { <http://e/v3> <http://e/later> 1 }");
    assert_eq!(count(&mut session), 1);
    assert!(later.is_planned());
}

#[test]
fn parameters_may_be_columns_predicates_graphs_and_parts_of_expressions() {
    let store = Store::of_trig("@prefix : <http://e/> . :a :p 5 . :b :p 7 . :g { :a :q :b }");
    let db = &store.db;
    let options = QueryOptions::default();
    let ask = |text: &str, names: &[&str], values: &[Term]| -> Vec<String> {
        let values: Vec<Value<'_>> = values.iter().map(Value::Term).collect();
        let mut session = db.prepare(text, names, &options).unwrap().session();
        bag(session.query(&values, &options).unwrap())
    };
    let six = Term::from(Literal::from(6));
    let more = "SELECT ?s { ?s <http://e/p> ?o FILTER(?o > ?least) }";
    assert_eq!(ask(more, &["least"], &[six]), ["<http://e/b>"]);
    let column = "SELECT ?s ?o { ?s <http://e/p> ?o }";
    assert_eq!(
        ask(column, &["s"], &[iri("a")]),
        ["<http://e/a> \"5\"^^<http://www.w3.org/2001/XMLSchema#integer>"]
    );
    let anything = "SELECT ?s { GRAPH $g { ?s $p $o } }";
    let values = [iri("g"), iri("q"), iri("b")];
    assert_eq!(ask(anything, &["g", "p", "o"], &values), ["<http://e/a>"]);
    let group = "SELECT ?s (COUNT(*) AS ?n) { ?s ?p ?o } GROUP BY ?s";
    assert_eq!(ask(group, &["s"], &[iri("a")]).len(), 1);
    let zero = "SELECT ?o { $s <http://e/p>* ?o FILTER(isIRI(?o)) }";
    for name in ["a", "nowhere"] {
        assert_eq!(
            ask(zero, &["s"], &[iri(name)]),
            [format!("<http://e/{name}>")]
        );
    }
    // The dataset of the preparation applies, not that of the run.
    let named = QueryOptions::default().with_dataset(jindou::DatasetChoice {
        default: vec!["http://e/g".into()],
        named: vec![],
    });
    let a = iri("a");
    for text in [
        "SELECT ?o { $s <http://e/q> ?o }",
        "SELECT ?s { $s <http://e/q> ?o }",
    ] {
        for (at, rows) in [(&options, 0), (&named, 1), (&options, 0)] {
            let mut session = db.prepare(text, &["s"], at).unwrap().session();
            let answer = session.query(&[Value::Term(&a)], &options).unwrap();
            assert_eq!(answer.solutions().len(), rows, "{text}");
        }
    }
    let class = "ASK { $s a $c }";
    assert_eq!(ask(class, &["s", "c"], &[iri("a"), iri("b")]), ["false"]);
}

#[test]
fn what_cannot_be_is_said() {
    let store = Store::of_trig("<http://e/a> <http://e/p> <http://e/b> .");
    let db = &store.db;
    let options = QueryOptions::default();
    let text = "SELECT ?s { ?s ?p ?o BIND(1 AS ?one) }";
    for (names, why) in [
        (&["x"][..], "no variable ?x"),
        (&["one"], "assigns it a value"),
        (&["s", "s"], "twice"),
        (&["not a name"], "not a variable"),
    ] {
        let refused = db.prepare(text, names, &options).err().unwrap();
        assert!(refused.to_string().contains(why), "{refused}");
        assert!(matches!(refused, Error::Query(_)));
    }
    let prepared = db.prepare(text, &["p"], &options).unwrap();
    let literal: Term = Literal::from(1).into();
    let blank: Term = oxrdf::BlankNode::default().into();
    for (values, why) in [
        (&[][..], "was given 0"),
        (&[Value::Term(&literal)], "must be an IRI"),
        (&[Value::Term(&blank)], "blank node"),
        (&[Value::Iri("no iri")], "not an IRI"),
        (&[Value::Node(&blank)], "blank node"),
    ] {
        let refused = prepared.session().query(values, &options).unwrap_err();
        assert!(refused.to_string().contains(why), "{refused}");
        assert!(matches!(refused, Error::Query(_)));
    }
}
