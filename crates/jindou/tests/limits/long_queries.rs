//! Long query texts: they stay within limits of memory and time, and are answered as short ones are.

use jindou::testing::Store;
use jindou::{CancelToken, Error, MemoryBudget, QueryOptions, UpdateOptions};
use jindou_testing::{Stopwatch, turn};
use std::fmt::Write as _;
use std::time::Duration;

fn options(memory: u64) -> QueryOptions {
    QueryOptions::default()
        .with_memory(MemoryBudget::new(memory))
        .with_timeout(Duration::from_secs(20))
}

/// Values of all kinds.
const VALUES: &[&str] = &[
    "1",
    "1.0",
    "1e0",
    "\"1\"^^<http://www.w3.org/2001/XMLSchema#float>",
    "\"01\"^^<http://www.w3.org/2001/XMLSchema#integer>",
    "\"x\"^^<http://www.w3.org/2001/XMLSchema#integer>",
    "\"NaN\"^^<http://www.w3.org/2001/XMLSchema#double>",
    "-0.0e0",
    "0",
    "16777217",
    "\"16777216\"^^<http://www.w3.org/2001/XMLSchema#float>",
    "9007199254740993",
    "9007199254740992.0e0",
    "123456789012345678901234567890",
    "\"1\"",
    "\"a\"",
    "\"a\"@en",
    "\"a\"@EN",
    "\"a\"^^<http://e/d>",
    "true",
    "\"1\"^^<http://www.w3.org/2001/XMLSchema#boolean>",
    "\"2001-01-01\"^^<http://www.w3.org/2001/XMLSchema#date>",
    "\"2001-01-01Z\"^^<http://www.w3.org/2001/XMLSchema#date>",
    "\"2001-01-01T00:00:00Z\"^^<http://www.w3.org/2001/XMLSchema#dateTime>",
    "<http://e/a>",
    "<http://e/b>",
];

/// A long IN has the same result for each value as a chain of `=`: true, false or an error.
#[test]
fn a_long_in_is_a_chain_of_equals() {
    let _turn = turn();
    let mut text = String::new();
    for (i, v) in VALUES.iter().enumerate() {
        writeln!(text, "<http://e/s{i}> <http://e/p> {v} .").unwrap();
    }
    let store = Store::of_trig(&text);
    // Members that equal none of the values, of one kind or of several; then some of the values are added.
    let strangers = |what: usize| -> Vec<String> {
        (0..40)
            .map(|i| match what {
                0 => format!("{}", 1000 + i),
                1 => format!("\"stranger {i}\""),
                2 => format!("<http://e/stranger{i}>"),
                _ => match i % 3 {
                    0 => format!("{}", 1000 + i),
                    1 => format!("\"stranger {i}\"@fr"),
                    _ => format!("<http://e/stranger{i}>"),
                },
            })
            .collect()
    };
    for what in 0..4 {
        for some in 0..VALUES.len() {
            let mut list = strangers(what);
            list.push(VALUES[some].to_owned());
            if some % 3 == 0 {
                list.push(VALUES[(some + 7) % VALUES.len()].to_owned());
            }
            let long = format!("?o IN ({})", list.join(", "));
            let chain: Vec<String> = list.iter().map(|v| format!("?o = {v}")).collect();
            let chain = chain.join(" || ");
            let answer = |e: &str| {
                let text =
                    format!("SELECT ?s ?r {{ ?s <http://e/p> ?o BIND(COALESCE({e}, 7) AS ?r) }}");
                let answer = store.db.query(&text).unwrap();
                let mut rows: Vec<String> = answer
                    .solutions()
                    .iter()
                    .map(|r| format!("{r:?}"))
                    .collect();
                rows.sort();
                rows
            };
            assert_eq!(answer(&long), answer(&chain), "{long}");
        }
    }
}

fn budget(options: &QueryOptions) -> &MemoryBudget {
    options.memory.as_ref().expect("a budget of its own")
}

/// All memory for a text is charged, and released afterwards.
#[test]
fn long_texts_are_within_the_budget() {
    let _turn = turn();
    let store = Store::of_trig("<http://e/a> <http://e/p> 1 .");
    let long = |n: usize| -> Vec<String> {
        let repeat = |unit: &str| {
            (0..n)
                .map(|i| unit.replace('#', &i.to_string()))
                .collect::<String>()
        };
        vec![
            format!("SELECT * {{ VALUES ?v {{ {} }} }}", repeat("# ")),
            format!("SELECT * {{ ?s ?p ?o FILTER(?o IN (0{})) }}", repeat(",#")),
            format!(
                "CONSTRUCT {{ {} }} {{ ?s ?p ?o }}",
                repeat("?s <http://e/p#> ?o . ")
            ),
        ]
    };
    for text in long(50_000) {
        let small = options(4 << 20);
        let refused = store.db.query_with(&text, &small).map(drop);
        assert!(matches!(refused, Err(Error::Limit(_))), "{refused:?}");
        assert_eq!(budget(&small).used(), 0, "{}", &text[..40]);
        let large = options(512 << 20);
        store.db.query_with(&text, &large).unwrap();
        assert!(budget(&large).peak() > text.len() as u64);
        assert_eq!(budget(&large).used(), 0, "{}", &text[..40]);
        let prepared = store.db.prepare(&text, &[] as &[&str], &small).map(drop);
        assert!(matches!(prepared, Err(Error::Limit(_))), "{prepared:?}");
        let kept = store.db.prepare(&text, &[] as &[&str], &large).unwrap();
        assert!(kept.bytes() > text.len() as u64 && budget(&large).used() >= kept.bytes());
        drop(kept);
        assert_eq!(budget(&large).used(), 0);
    }
    let update = format!(
        "DELETE {{ ?s ?p ?o }} WHERE {{ ?s ?p ?o FILTER(?o IN (0{})) }}",
        (0..50_000).map(|i| format!(",{i}")).collect::<String>()
    );
    let limited = UpdateOptions::default().with_memory(MemoryBudget::new(4 << 20));
    let refused = store.db.update(&update, &limited).map(drop);
    assert!(matches!(refused, Err(Error::Limit(_))), "{refused:?}");
    assert_eq!(limited.memory.as_ref().unwrap().used(), 0);
}

/// Plans with many IRIs can be dropped from the cache without recursion, and each IRI is described once.
#[test]
fn many_iris_are_described() {
    let _turn = turn();
    let mut text = String::new();
    for i in 0..500 {
        writeln!(text, "<http://e/s{i}> <http://e/p> {i} .").unwrap();
    }
    let store = Store::of_trig(&text);
    let iris: String = (0..5_000).map(|i| format!(" <http://e/s{i}>")).collect();
    for (query, found) in [
        (format!("DESCRIBE{iris}"), 500),
        (format!("DESCRIBE{iris} ?s {{ ?s ?p 1 }}"), 500),
        (format!("DESCRIBE{iris} ?s {{ ?s ?p -1 }}"), 0),
        (format!("DESCRIBE{iris} {{ ?s ?p ?o }} LIMIT 0"), 0),
        ("DESCRIBE <http://e/s1> <http://e/s2>".into(), 2),
    ] {
        let answer = store.db.query_with(&query, &options(256 << 20)).unwrap();
        let jindou::Answer::Graph(triples) = answer else {
            panic!("DESCRIBE gives a graph");
        };
        assert_eq!(triples.len(), found, "{}", &query[query.len() - 20..]);
    }
}

/// A template of thousands of triples ends at the time limit, and the query does not count as light.
#[test]
fn a_long_template_ends_in_time() {
    let _turn = turn();
    let mut text = String::new();
    for i in 0..2000 {
        writeln!(text, "<http://e/s{i}> <http://e/p> {i} .").unwrap();
    }
    let store = Store::of_trig(&text);
    let template: String = (0..20_000)
        .map(|i| format!("?s <http://e/q{i}> ?o . "))
        .collect();
    let query = format!("CONSTRUCT {{ {template} }} {{ ?s <http://e/p> ?o }}");
    let limited = options(1 << 30)
        .with_timeout(Duration::from_secs(2))
        .with_cancel(CancelToken::new());
    let begun = Stopwatch::start();
    let ended = store.db.query_with(&query, &limited).map(drop);
    // A fast machine makes so many of the 40 million triples within the time limit that the memory limit ends the query
    // first.
    assert!(
        matches!(ended, Err(Error::Timeout(_) | Error::Limit(_))),
        "{ended:?}"
    );
    assert!(
        begun.elapsed() < Duration::from_secs(12),
        "{:?}",
        begun.elapsed()
    );
    assert!(!store.db.plan(&query, &options(1 << 30)).unwrap().is_light());
}

/// Each of many different IRIs would contain a long prefix or base. Their memory is refused before it is allocated.
#[test]
fn different_names_of_a_long_prefix_are_refused_before_they_are_made() {
    let _turn = turn();
    const ROOM: u64 = 64 << 20;
    let store = Store::of_trig("@prefix : <http://e/> . :s :p 1 .");
    let long = format!("http://e/{}", "x".repeat(1 << 20));
    let head = format!("PREFIX : <http://e/> PREFIX l: <{long}> BASE <{long}/> ");
    let often = |part: &str| -> String {
        (0..1000)
            .map(|i| part.replace('#', &i.to_string()))
            .collect()
    };
    for (what, text) in [
        (
            "prefixed names",
            format!("ASK {{ {} }}", often(":s l:a# ?o . ")),
        ),
        (
            "relative names",
            format!("ASK {{ {} }}", often(":s <a#> ?o . ")),
        ),
        (
            "literals",
            format!("ASK {{ {} }}", often(":s :p '#'^^l:d . ")),
        ),
        (
            "triple terms",
            format!("ASK {{ {} }}", often(":s :p <<( l:a :p # )>> . ")),
        ),
        ("bases", often("BASE <a#/> ") + "ASK {}"),
        ("prefixes", often("PREFIX p#: <a#> ") + "ASK {}"),
    ] {
        let memory = MemoryBudget::new(ROOM);
        let options = QueryOptions::default().with_memory(memory.clone());
        let done = store.db.query_with(&format!("{head}{text}"), &options);
        let refused = matches!(&done, Err(Error::Limit(_) | Error::Busy(_)));
        assert!(refused, "{what}: {done:?}");
        assert!(
            memory.peak() < ROOM + (8 << 20),
            "{what}: {}",
            memory.peak()
        );
    }
}
