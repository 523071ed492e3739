//! Functions that a program registers under IRIs, and calls of IRIs that are not registered. This follows the example
//! in `docs/adding.md`: the function `ex:soundex` computes the Soundex codes of the US National Archives.

use jindou::testing::Store;
use jindou::{Argument, Database, Error, Function, Functions, QueryOptions, UpdateOptions, Value};
use oxrdf::{Literal, Term};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tempfile::TempDir;

const PREFIXES: &str = "PREFIX ex: <http://e/fn#> PREFIX : <http://e/> ";

/// The Soundex code of a name: its first letter, and the sounds of the next consonants.
struct Soundex;

impl Function for Soundex {
    fn arguments(&self) -> RangeInclusive<usize> {
        1..=1
    }

    fn call(&self, arguments: &[Option<Argument<'_>>]) -> Option<Term> {
        let [Some(name)] = arguments else { return None };
        let mut letters = name.text()?.chars().filter(char::is_ascii_alphabetic);
        let sound = |c: char| match c.to_ascii_lowercase() {
            'b' | 'f' | 'p' | 'v' => Some('1'),
            'c' | 'g' | 'j' | 'k' | 'q' | 's' | 'x' | 'z' => Some('2'),
            'd' | 't' => Some('3'),
            'l' => Some('4'),
            'm' | 'n' => Some('5'),
            'r' => Some('6'),
            _ => None,
        };
        let first = letters.next()?;
        let mut code = String::from(first.to_ascii_uppercase());
        let mut last = sound(first);
        for c in letters {
            let this = sound(c);
            if let Some(s) = this
                && this != last
                && code.len() < 4
            {
                code.push(s);
            }
            // Equal codes separated by a vowel are both written; separated by h or w they are one.
            if !matches!(c.to_ascii_lowercase(), 'h' | 'w') {
                last = this;
            }
        }
        while code.len() < 4 {
            code.push('0');
        }
        Some(Literal::from(code).into())
    }
}

/// A function that returns the number of its calls so far.
struct Ticket(AtomicU64);

impl Function for Ticket {
    fn arguments(&self) -> RangeInclusive<usize> {
        0..=1
    }

    fn call(&self, _: &[Option<Argument<'_>>]) -> Option<Term> {
        let n = self.0.fetch_add(1, Ordering::Relaxed);
        Some(Literal::from(n).into())
    }

    fn is_deterministic(&self) -> bool {
        false
    }
}

fn functions() -> Functions {
    let mut functions = Functions::new()
        .with("http://e/fn#panic", 0..=0, |_| panic!("out of cheese"))
        .unwrap()
        .with("http://e/fn#second", 2..=2, |a| match a {
            [_, Some(second)] => second.to_term(),
            _ => None,
        })
        .unwrap();
    functions
        .register("http://e/fn#soundex", Arc::new(Soundex))
        .unwrap();
    functions
        .register("http://e/fn#ticket", Arc::new(Ticket(AtomicU64::new(0))))
        .unwrap();
    functions
}

/// A store of names, and options with the functions.
fn named() -> (TempDir, Database, QueryOptions) {
    // Names with the codes that https://www.archives.gov/research/census/soundex gives.
    let names = [
        ("Washington", "W252"),
        ("Lee", "L000"),
        ("Gutierrez", "G362"),
        ("Pfister", "P236"),
        ("Jackson", "J250"),
        ("Tymczak", "T522"),
        ("Ashcraft", "A261"),
    ];
    let mut text = String::new();
    for (i, (name, code)) in names.into_iter().enumerate() {
        text += &format!("<http://e/p{i}> <http://e/name> \"{name}\" .\n");
        text += &format!("<http://e/p{i}> <http://e/code> \"{code}\" .\n");
    }
    let Store { folder, db, .. } = Store::of_trig(&text);
    let options = QueryOptions::default().with_threads(2);
    (folder, db, options.with_functions(functions()))
}

fn rows(db: &Database, text: &str, options: &QueryOptions) -> Vec<Vec<Option<Term>>> {
    db.query_with(&format!("{PREFIXES}{text}"), options)
        .unwrap_or_else(|e| panic!("{text}: {e}"))
        .solutions()
        .to_vec()
}

fn error(db: &Database, text: &str, options: &QueryOptions) -> Error {
    db.query_with(&format!("{PREFIXES}{text}"), options)
        .map(|_| ())
        .expect_err(text)
}

#[test]
fn registered_functions_have_values_everywhere() {
    let (_folder, db, with) = named();
    // In a FILTER, for all names, and then in BIND, ORDER BY and GROUP BY.
    let all = "SELECT * { ?p :name ?n ; :code ?c FILTER(ex:soundex(?n) = ?c) }";
    assert_eq!(rows(&db, all, &with).len(), 7);
    let none = "SELECT * { ?p :name ?n ; :code ?c FILTER(ex:soundex(?n) != ?c) }";
    assert_eq!(rows(&db, none, &with), [] as [Vec<_>; 0]);
    let bound = "SELECT ?c { :p1 :name ?n BIND(ex:soundex(?n) AS ?c) }";
    assert_eq!(
        rows(&db, bound, &with),
        [[Some(Literal::from("L000").into())]]
    );
    let ordered = "SELECT ?n { ?p :name ?n } ORDER BY DESC(ex:soundex(?n)) LIMIT 1";
    assert_eq!(
        rows(&db, ordered, &with),
        [[Some(Literal::from("Washington").into())]]
    );
    let grouped = "SELECT (COUNT(*) AS ?n) { ?p :name ?x } GROUP BY (STRLEN(ex:soundex(?x)))";
    assert_eq!(rows(&db, grouped, &with), [[Some(Literal::from(7).into())]]);
    // An IRI has no code: the call is an error, so the variable stays unbound, and COALESCE takes its next argument.
    // Unbound arguments are passed on as `None`.
    let failed = "SELECT ?c { BIND(ex:soundex(:p1) AS ?c) }";
    assert_eq!(rows(&db, failed, &with), [[None]]);
    let second = "SELECT ?c { BIND(ex:second(?nowhere, COALESCE(ex:soundex(1), \"else\")) AS ?c) }";
    assert_eq!(
        rows(&db, second, &with),
        [[Some(Literal::from("else").into())]]
    );
    let update = UpdateOptions::default().with_functions(with.functions.clone());
    let insert = "INSERT { ?p :sounds ?s } WHERE { ?p :name ?n BIND(ex:soundex(?n) AS ?s) }";
    db.update(&format!("{PREFIXES}{insert}"), &update).unwrap();
    let same = "SELECT * { ?p :sounds ?c ; :code ?c }";
    assert_eq!(rows(&db, same, &QueryOptions::default()).len(), 7);
}

#[test]
fn a_function_that_varies_is_called_for_each_row() {
    let (_folder, db, with) = named();
    for text in [
        "SELECT DISTINCT ?t { ?p :name ?n BIND(ex:ticket() AS ?t) }",
        "SELECT DISTINCT ?t { ?p :name ?n BIND(ex:ticket(1) AS ?t) }",
        "SELECT DISTINCT (ex:ticket() AS ?t) { ?p :name ?n }",
    ] {
        assert_eq!(rows(&db, text, &with).len(), 7, "{text}");
    }
}

#[test]
fn an_iri_that_nobody_registered_is_the_querys_error() {
    let (_folder, db, with) = named();
    let call = "SELECT (ex:soundex(?n) AS ?c) { ?p :name ?n }";
    // Alternately without and with the functions, since plans are cached for each set of functions.
    for _ in 0..2 {
        let e = error(&db, call, &QueryOptions::default());
        let says = e.to_string();
        assert!(
            matches!(e, Error::Sparql(_)) && says.contains("<http://e/fn#soundex>"),
            "{says}"
        );
        assert_eq!(rows(&db, call, &with).len(), 7);
    }
    for (text, why) in [
        (
            "ASK { FILTER(ex:soundex(1, 2)) }",
            "<http://e/fn#soundex> takes 1 argument, but is given 2",
        ),
        (
            "ASK { FILTER(ex:ticket(1, 2)) }",
            "<http://e/fn#ticket> takes 0 to 1 arguments, but is given 2",
        ),
        // An unknown function is an error even if no row would call it.
        (
            "SELECT * { ?x :none ?y FILTER EXISTS { ?y :none ?z FILTER(ex:nobody(?z)) } }",
            "unknown function <http://e/fn#nobody>",
        ),
        (
            "SELECT (ex:nobody(COUNT(*)) AS ?n) { ?x ?y ?z }",
            "unknown function <http://e/fn#nobody>",
        ),
    ] {
        let e = error(&db, text, &with);
        assert!(matches!(e, Error::Sparql(_)), "{text}: {e}");
        assert!(e.to_string().contains(why), "{text}: {e}");
        assert!(
            e.to_string()
                .starts_with("the query cannot be run\nline 1, "),
            "{e}"
        );
    }
    let e = db
        .update(
            "DELETE WHERE { ?x ?y ?z } ; INSERT { ?x ?y ?z } WHERE { ?x ?y ?z FILTER(<http://e/fn#f>(?z)) }",
            &UpdateOptions::default(),
        )
        .map(|_| ())
        .unwrap_err();
    assert!(e.to_string().contains("<http://e/fn#f>"), "{e}");
    // The request failed before its first operation was executed.
    assert_eq!(rows(&db, "SELECT * { ?p :name ?n }", &with).len(), 7);
}

/// `«` and `»` enclose each call of an unknown function, or with a wrong number of arguments.
#[test]
fn faults_of_calls_have_their_places() {
    let (_folder, db, with) = named();
    let base = "BASE <http://e/> PREFIX e: <http://e/> PREFIX ex: <http://e/fn#>\n";
    for (marked, iri) in [
        ("ASK { FILTER(«<http://e/nobody>»(1)) }", "http://e/nobody"),
        (
            "# <http://e/nobody>(1)\nASK { ?s ?p '<http://e/nobody>(1)', <http://e/nobody> FILTER(1 = 1 &&\n\t«e:nobody»(1)) }",
            "http://e/nobody",
        ),
        (
            "SELECT (\"é\" AS ?x) («ex:no\\-body» (1) AS ?y) {}",
            "http://e/fn#no-body",
        ),
        ("ASK {} HAVING «<nobody>»()", "http://e/nobody"),
        (
            "ASK { BIND(«<http://e/no\\u0062ody>»() AS ?x) }",
            "http://e/nobody",
        ),
        (
            "ASK { BI\\u004eD(«e:no\\u0062ody»() AS ?x) }",
            "http://e/nobody",
        ),
        (
            "SELECT * { ?s ?p ?o } ORDER BY «e:a»(«<b>»(?s), ex:soundex(?p), «ex:soundex»()) LIMIT 1",
            "http://e/a",
        ),
    ] {
        let marked = format!("{base}{marked}");
        let text = marked.replace(['«', '»'], "");
        let mut ranges = vec![];
        for (n, (from, _)) in marked.match_indices('«').enumerate() {
            // Each mark takes two bytes in UTF-8.
            let to = from + marked[from..].find('»').unwrap();
            ranges.push((from - n * 4, to - n * 4 - 2));
        }
        let e = db.query_with(&text, &with).map(|_| ()).unwrap_err();
        let Error::Sparql(faults) = &e else {
            panic!("{text}: {e}")
        };
        let mut found: Vec<_> = faults.all().iter().map(|f| (f.start, f.end)).collect();
        found.sort_unstable();
        ranges.sort_unstable();
        assert_eq!(found, ranges, "{text}: {e}");
        let first = faults.first();
        assert_eq!(first.kind, jindou::DiagnosticKind::Function);
        assert!(first.message.contains(&format!("<{iri}>")), "{e}");
        let line = text[..first.start].lines().count();
        let column = text[..first.start].lines().last().unwrap().chars().count() + 1;
        let place = format!("line {line}, column {column}: ");
        assert!(e.to_string().contains(&place), "{place}: {e}");
    }
    // In an update, the error comes before any operation is executed.
    let text = "PREFIX e: <http://e/> INSERT DATA { e:x e:y e:z } ;\nINSERT { ?x ?y 1 } WHERE { ?x ?y ?z FILTER(e:f(?z)) }";
    let e = db.update(text, &UpdateOptions::default()).map(|_| ());
    let e = e.unwrap_err().to_string();
    assert!(
        e.contains("line 2, column 44: unknown function <http://e/f>"),
        "{e}"
    );
    // If there is a syntax error, unknown functions are not reported, since its repair may change which ones are meant.
    let e = error(&db, "ASK { FILTER(nobody:f(1) && nobody:g(2)) }", &with).to_string();
    assert!(
        e.starts_with("not valid SPARQL\n") && !e.contains("unknown function"),
        "{e}"
    );
    // A query that was not parsed from a text here has no positions to report.
    let parsed = jindou::parse_query("ASK { FILTER(<http://e/f>(1)) }").unwrap();
    let e = db.plan_parsed(&parsed, &with).map(|_| ()).unwrap_err();
    assert!(matches!(e, Error::Query(_)), "{e}");
}

#[test]
fn a_panic_ends_its_query_alone() {
    let (_folder, db, with) = named();
    let e = error(&db, "SELECT (ex:panic() AS ?x) { ?p :name ?n }", &with).to_string();
    assert!(
        e.contains("<http://e/fn#panic> panicked: out of cheese"),
        "{e}"
    );
    assert_eq!(
        rows(&db, "SELECT (ex:soundex(?n) AS ?c) { ?p :name ?n }", &with).len(),
        7
    );
}

#[test]
fn a_prepared_query_keeps_its_functions() {
    let (_folder, db, with) = named();
    let text = format!("{PREFIXES}SELECT (ex:soundex(?n) AS ?c) {{ $p :name ?n }}");
    let prepared = db.prepare(&text, &["p"], &with).unwrap();
    let term: Term = oxrdf::NamedNode::new_unchecked("http://e/p0").into();
    let mut session = prepared.session();
    // The options of a run do not contain the functions; those of the preparation apply.
    let answer = session
        .query(&[Value::Term(&term)], &QueryOptions::default())
        .unwrap();
    assert_eq!(answer.solutions(), [[Some(Literal::from("W252").into())]]);
}

/// The examples in docs/functions.md. Each value was taken from the specification, or derived from it by hand.
#[test]
fn examples_of_definitions_have_their_values() {
    let db = Database::in_memory();
    let mut asked = 0;
    for definition in jindou_plan::sparql::Function::all() {
        for (call, value) in definition.examples {
            let text = format!("ASK {{ FILTER(sameTerm({call}, {value})) }}");
            let answer = db.query_with(&text, &QueryOptions::default()).unwrap();
            assert!(
                matches!(answer, jindou::Answer::Boolean(true)),
                "{call} is not {value}"
            );
            asked += 1;
        }
    }
    assert!(asked > 50, "{asked}");
}
