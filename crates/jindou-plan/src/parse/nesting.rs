//! However texts nest, they are read quickly or refused.

use super::*;
use std::time::{Duration, Instant};

/// What a value can be inside of, with `·` where it stands.
const VALUES: &str = "( ·) ¦ ! ( ·) ¦ - ( ·) ¦ 1 + ( ·) ¦ 1 * ( ·) ¦ 1 = ( ·) ¦ 1 < ( ·) ¦ 1 || ( ·) ¦ 1 && ( ·) ¦ 1 IN ( ·) ¦ 1 NOT IN (2, ·) ¦
    STR( ·) ¦ ! STR( ·) ¦ LANGMATCHES('a', ·) ¦ IF( ·, 1, 2) ¦ ! IF( ·, 1, 2) ¦ IF(1, ·, 2) ¦ IF(1, 2, ·) ¦ COALESCE( ·) ¦ COALESCE(1, ·) ¦
    CONCAT( ·, 'a') ¦ CONTAINS( ·, 'a') ¦ REPLACE( ·, 'a', 'b') ¦ REPLACE('a', ·, 'b') ¦ ! REPLACE( ·, 'a', 'b') ¦ REGEX( ·, 'a') ¦
    REGEX('a', ·, 'i') ¦ SUBSTR( ·, 1) ¦ SUBSTR('a', ·) ¦ SUBSTR( ·, 1, 2) ¦ :f( ·) ¦ :f(1, ·) ¦ :f(DISTINCT ·) ¦ ! :f( ·) ¦ <f>( ·) ¦
    COUNT( ·) ¦ COUNT(DISTINCT ·) ¦ SUM( ·) ¦ ! SUM( ·) ¦ GROUP_CONCAT( ·) ¦ GROUP_CONCAT( · ; SEPARATOR = ',') ¦ GROUP_CONCAT(DISTINCT ·) ¦
    TRIPLE( ·, :p, :o) ¦ STRLANGDIR( ·, 'a', 'ltr') ¦ EXISTS { FILTER( ·) } ¦ NOT EXISTS { FILTER( ·) } ¦ ! EXISTS { FILTER( ·) } ¦
    ! NOT EXISTS { FILTER( ·) } ¦ EXISTS { BIND( · AS ?x) } ¦ EXISTS { { SELECT ( · AS ?x) { } } } ¦ EXISTS { FILTER :f( ·) } ¦
    EXISTS { SELECT * { } HAVING ( ·) } ¦ EXISTS { ?s :p :o ~ {| :p :o |} FILTER( ·) }";
/// What patterns can be inside of.
const GROUPS: &str = "{ ·} ¦ { } UNION { ·} ¦ OPTIONAL { ·} ¦ MINUS { ·} ¦ GRAPH ?g { ·} ¦ SERVICE <a> { ·} ¦ SERVICE SILENT ?s { ·} ¦
    { SELECT * { ·} } ¦ { SELECT DISTINCT ?s { ·} GROUP BY ?s } ¦ FILTER EXISTS { ·} ¦ FILTER NOT EXISTS { ·} ¦ FILTER(! EXISTS { ·}) ¦
    FILTER(!(EXISTS { ·})) ¦ FILTER(IF(EXISTS { ·}, 1, 2)) ¦ BIND(EXISTS { ·} AS ?x) ¦ FILTER(SUBSTR(EXISTS { ·}, 1)) ¦ FILTER(1 IN (EXISTS { ·}))";
/// What an object can be inside of.
const TERMS: &str = "[ :p ·] ¦ ( ·) ¦ ( 1 · ) ¦ << :s :p ·>> ¦ << :s :p · ~ :i >> ¦ <<( :s :p ·)>> ¦ :o ~ :i {| :p ·|} ¦ :o ~ {| :p ·|} ¦ :o {| :p ·|} ¦
    :o {| ?p ·|} ¦ :o {| :p/:q ·|} ¦ :o ~ :i ~ :j {| :p ·|} ¦ :o ~ :i {| :p :o |} {| :p ·|} ¦ [ :p :o ; :q ·] ¦ [ :p :o , ·]";
/// What a path can be inside of.
const PATHS: &str =
    "( ·) ¦ ^( ·) ¦ ( :p/ ·) ¦ ( :p| ·) ¦ !( ·) ¦ ( ·)* ¦ ( ·)/:p ¦ ^( ·)? ¦ ( :p|^ ·)";

#[test]
fn allowed_depths_end_quickly() {
    for (open, inner, close) in [
        ("{", "?s ?p ?o", "}"),
        ("{", "?s ?p", "}"),
        ("FILTER(1 = ", "1", ")"),
        ("[ <http://e/p> ", "1", "] ."),
    ] {
        let n = 60;
        let text = format!("ASK {{ {} {inner} {} }}", open.repeat(n), close.repeat(n));
        let start = Instant::now();
        let _ = parse(&text);
        assert!(start.elapsed() < Duration::from_secs(2), "{open}");
    }
    let annotations = "~ :i {| :p :o ".repeat(14);
    for (block, inner) in [
        // Both kinds of what is read twice.
        ("FILTER(SUBSTR(EXISTS { :s :p :o ", annotations.as_str()),
        (
            "FILTER(:f(EXISTS { :s :p :o ~ {| :p :o |} ",
            annotations.as_str(),
        ),
        ("~ :i {| :p :o ", "%%"),
        ("~ ?i {| ?p ?o ", ""),
        ("{| :p [ :q :o ~ {| :p :o |} ] ~ {| :p :o ", ">="),
        ("~ {| <http://e/#> ')' ~ {| :p ')' ", ">="),
    ] {
        for n in [1, 8, 12, 16, 20, 60] {
            let start = Instant::now();
            let text = format!("PREFIX : <> ASK {{ :s :p :o {} {inner}", block.repeat(n));
            assert!(parse(&text).is_err());
            let took = start.elapsed();
            assert!(took < Duration::from_secs(4), "{n} {block}: {took:?}");
        }
    }
    let nested = |n: usize| {
        let (open, close) = ("~ :i {| :p :o ".repeat(n), "|} ".repeat(n));
        parse(&format!(
            "PREFIX : <http://e/> ASK {{ :s :p :o {open} {close} }}"
        ))
    };
    assert!(nested(10).is_ok());
    assert!(matches!(nested(30), Err(Error::Limit(_))));
    let n = MAX_NESTING - 4;
    let text = format!("ASK {{ FILTER({}1{}) }}", "(".repeat(n), ")".repeat(n));
    assert!(parse(&text).is_ok());
    let text = format!("ASK {{ FILTER({}1) }}", "!".repeat(n));
    assert!(parse(&text).is_ok());
    let text = format!("ASK {{ FILTER({}1) }}", "1 || ".repeat(MAX_CHAINED - 10));
    assert!(parse(&text).is_ok());
}

/// Any two of what can be nested, in turn, right or wrong, are read in about a second or refused.
#[test]
fn some_pairs_of_nestings_end_quickly() {
    pairs_of_nestings_end_quickly(131);
}

#[test]
#[ignore = "long: 25 minutes"]
fn all_pairs_of_nestings_end_quickly() {
    pairs_of_nestings_end_quickly(1);
}

/// Of all pairs, each so many-th.
fn pairs_of_nestings_end_quickly(each: usize) {
    let mut slow = vec![];
    for (head, list, inner, foot) in [
        ("SELECT * { FILTER( ", VALUES, ["1", "1 2", "%"], " ) }"),
        ("SELECT * { ", GROUPS, ["?s ?p ?o", "?s ?p", "%"], " }"),
        ("SELECT * { ?s :p ", TERMS, [":o", ":o :o :o", "%"], " }"),
        ("SELECT * { ?s ", PATHS, [":p", ":p :p :p :p", "%"], " ?o }"),
    ] {
        let shapes: Vec<(&str, &str)> = list
            .split('¦')
            .map(|shape| shape.trim().split_once('·').expect("a place inside"))
            .collect();
        let pairs = shapes
            .iter()
            .flat_map(|a| shapes.iter().map(move |b| (a, b)));
        for (a, b) in pairs.step_by(each) {
            for inner in inner {
                let open = format!("{} {} ", a.0, b.0).repeat(14);
                let close = format!(" {} {}", b.1, a.1).repeat(14);
                for text in [
                    format!("PREFIX : <http://e/> {head}{open}{inner}{close}{foot}"),
                    format!("PREFIX : <http://e/> {head}{open}{inner}"),
                ] {
                    let start = Instant::now();
                    let _ = parse(&text);
                    let took = start.elapsed();
                    if took > Duration::from_secs(10) {
                        slow.push((took, text));
                    }
                }
            }
        }
    }
    assert!(slow.is_empty(), "{slow:#?}");
}

/// Whatever is nested in whatever, right or wrong, is read in about a second or refused.
#[test]
fn random_nestings_end_quickly() {
    const GROUP: [(&str, &str); 12] = [
        ("{ ", " }"),
        ("OPTIONAL { ", " }"),
        ("{ SELECT * { ", " } }"),
        ("{ } UNION { ", " }"),
        ("GRAPH ?g { ", " }"),
        ("FILTER(1 + ", ")"),
        ("FILTER(SUBSTR(", "))"),
        ("FILTER EXISTS { ", " }"),
        ("?s :p :o ~ {| :q ", " |}"),
        ("?s (:p/", ") ?o ."),
        ("?s :p [ :p ", " ] ."),
        ("<< :s :p ", " >> :p :o ."),
    ];
    const TERM: [(&str, &str); 6] = [
        (":o ~ :i {| :p ", " |}"),
        (":o {| ?p ", " |}"),
        ("[ :p ", " ]"),
        ("( ", " )"),
        ("<< :s :p ", " >>"),
        ("<<( :s :p ", " )>>"),
    ];
    const VALUE: [(&str, &str); 9] = [
        ("(", ")"),
        ("1 * (", ")"),
        ("!", ""),
        ("REPLACE(", ", 'a', 'b')"),
        ("SUBSTR(", ", 2)"),
        ("IF(1, ", ", 2)"),
        (":f(", ")"),
        ("1 IN (2, ", ")"),
        ("EXISTS { ?s :p :o ~ :i {| :p ", " |} }"),
    ];
    let mut rng = jindou_testing::Rng::new(5);
    for case in 0..3000 {
        let (mut open, mut close) = (String::new(), vec![]);
        let mut shapes: &[(&str, &str)] = &GROUP;
        for _ in 0..1 + rng.below(40) {
            let (o, c) = rng.one(shapes);
            open += o;
            close.push(c);
            shapes = match o {
                o if o.ends_with("{| :q ") || o.ends_with(":p ") || o.ends_with("?p ") => &TERM,
                o if o.contains('{') => &GROUP,
                o if o.contains(":p/") => &GROUP[9..10],
                o if o.ends_with('(')
                    || o.ends_with('!')
                    || o.ends_with(", ")
                    || o.ends_with("+ ") =>
                {
                    &VALUE
                }
                _ => &TERM,
            };
        }
        let inner = rng.one(&["", " :o ", " 1 ", " ?s ?p ?o ", " >= ", " ~ ; "]);
        close.reverse();
        let mut close = close.concat();
        if rng.chance(30) {
            close.truncate(rng.below(close.len() + 1));
        }
        let text = format!("PREFIX : <http://e/> SELECT * {{ {open}{inner}{close} }}");
        let start = Instant::now();
        let _ = parse(&text);
        let took = start.elapsed();
        assert!(took < Duration::from_secs(10), "case {case}: {text}");
    }
}
