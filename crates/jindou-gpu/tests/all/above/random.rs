//! Random stores and queries.

use jindou_gpu::reference::XorShift;
use jindou_store::Snapshot;
use jindou_store::testing::{changed, store_of};
use jindou_testing::{named, triple};
use oxrdf::{Literal, Term};

const PREDICATES: [&str; 4] = ["p", "q", "r", "v"];

/// A value of `:v`: a number of one of several types, an ill-typed number, or a string.
fn number(r: &mut XorShift, new: bool) -> Term {
    let n = i64::from(r.below(30)) + if new { 100 } else { 0 };
    match r.below(12) {
        0 => Literal::new_simple_literal(format!("w{n}")).into(),
        1 => Literal::new_typed_literal(format!("x{n}"), oxrdf::vocab::xsd::INTEGER).into(),
        2..5 => Literal::new_typed_literal(format!("{n}.25"), oxrdf::vocab::xsd::DECIMAL).into(),
        _ => Literal::from(n).into(),
    }
}

/// A random graph of few nodes. If `patched`, with edits by updates, and with nodes and numbers that only updates
/// added.
pub(super) fn store(r: &mut XorShift, patched: bool) -> (tempfile::TempDir, Snapshot) {
    let nodes = 8 + r.below(20);
    let mut quads = vec![];
    for (predicate, many) in [("p", 3), ("q", 1), ("r", 2)] {
        for s in 0..nodes {
            for _ in 0..r.below(many + 1) {
                let o = named(&format!("n{}", r.below(nodes)));
                quads.push(triple(&format!("n{s}"), predicate, o));
            }
        }
    }
    for s in 0..nodes {
        for _ in 0..1 + r.below(2) {
            quads.push(triple(&format!("n{s}"), "v", number(r, false)));
        }
    }
    let (folder, base) = store_of(&quads);
    let plain = Snapshot::of_base(base);
    if !patched {
        return (folder, plain);
    }
    let mut changes = vec![];
    let mut change = |p: &str, subject: &Term, object: &Term, comes: bool| {
        let p = jindou_model::term::encode(&named(p).into());
        let known = plain.lookup(&p).and_then(|p| plain.predicate_of(p));
        if known.is_some() {
            let [s, o] = [subject, object].map(jindou_model::term::encode);
            changes.push(([s, p, o, vec![]], comes));
        }
    };
    for _ in 0..4 + r.below(12) {
        let node = |r: &mut XorShift| -> Term {
            let name = match r.below(3) {
                0 => format!("new{}", r.below(4)),
                _ => format!("n{}", r.below(nodes)),
            };
            named(&name).into()
        };
        let predicate = PREDICATES[r.below(4) as usize];
        let new = r.below(2) == 0;
        let object = match predicate {
            "v" => number(r, new),
            _ => node(r),
        };
        change(predicate, &node(r), &object, true);
    }
    for q in &quads {
        if r.below(12) == 0 {
            let p = q.predicate.as_str().rsplit('/').next().unwrap();
            change(p, &q.subject.clone().into(), &q.object, false);
        }
    }
    (folder, changed(plain.clone(), changes))
}

/// A triple pattern between a known variable and the variable `new`.
fn pattern(r: &mut XorShift, known: &[&str], new: &str) -> String {
    let a = known[r.below(known.len() as u32) as usize];
    match r.below(6) {
        0 => format!("?{new} :p ?{a} . "),
        1 => format!("?{a} :r ?{new} . "),
        2 => format!("?{a} :q ?{new} . "),
        3 => format!("?{new} :q ?{a} . "),
        _ => format!("?{a} :p ?{new} . "),
    }
}

/// The text of a random group of patterns, and its variables.
fn group(r: &mut XorShift) -> (String, Vec<&'static str>) {
    let mut body = String::from(["?a :p ?b . ", "?a :q ?b . ", "?b :r ?a . "][r.below(3) as usize]);
    let mut known = vec!["a", "b"];
    if r.below(2) == 0 {
        body += &pattern(r, &known, "c");
        known.push("c");
    }
    if r.below(2) == 0 {
        let of = known[r.below(known.len() as u32) as usize];
        let relation = ["<", "<=", ">", ">=", "="][r.below(5) as usize];
        let bound = match r.below(4) {
            0 => format!("{}.25", r.below(30)),
            1 => format!("{}.0e0", r.below(120)),
            _ => r.below(120).to_string(),
        };
        body += &format!("?{of} :v ?x FILTER(?x {relation} {bound}) ");
        known.push("x");
    }
    let node = r.below(9);
    let path = r.below(14);
    body += &match path {
        0 => format!(":n{node} :p+ ?w . "),
        1 => format!("?w (:r|^:q)* :n{node} . "),
        2 => format!("?a :p+ :n{node} . "),
        3 => format!(":n{node} (:q|:r)* ?b . "),
        _ => String::new(),
    };
    if path < 2 {
        known.push("w");
    }
    add_above(r, &mut body, &mut known);
    (body, known)
}

/// Appends operators above the patterns: EXISTS, MINUS, OPTIONAL.
fn add_above(r: &mut XorShift, body: &mut String, known: &mut Vec<&str>) {
    let resources: Vec<&str> = known.iter().copied().filter(|k| *k != "x").collect();
    let mut optional = false;
    for _ in 0..r.below(3) {
        let inner = |r: &mut XorShift, new: [&str; 2]| {
            let mut inner = pattern(r, &resources, new[0]);
            match r.below(4) {
                0 => inner += &pattern(r, &[new[0]], new[1]),
                1 => inner += &format!("FILTER(?{} != ?{}) ", new[0], resources[0]),
                2 => inner += &format!("?{} :p ?{} . ", resources[0], new[0]),
                _ => {}
            }
            inner
        };
        match r.below(5) {
            0 => *body += &format!("FILTER EXISTS {{ {}}} ", inner(r, ["d", "e"])),
            1 => *body += &format!("FILTER NOT EXISTS {{ {}}} ", inner(r, ["d", "e"])),
            2 => *body += &format!("MINUS {{ {}}} ", inner(r, ["f", "g"])),
            _ if !optional => {
                optional = true;
                *body += &format!("OPTIONAL {{ {}}} ", inner(r, ["o", "oo"]));
                match r.below(5) {
                    0 => *body += "FILTER(!BOUND(?o)) ",
                    1 => *body += "FILTER(BOUND(?o)) ",
                    2 => *body += "FILTER(?o != ?a) ",
                    _ => {}
                }
            }
            _ => {}
        }
    }
    if optional {
        known.push("o");
    }
}

fn count(r: &mut XorShift, known: &[&str], n: &str) -> String {
    let of = known[r.below(known.len() as u32) as usize];
    match r.below(3) {
        0 => format!("(COUNT(*) AS ?{n})"),
        _ => format!("(COUNT(?{of}) AS ?{n})"),
    }
}

fn group_by(r: &mut XorShift, known: &[&str]) -> String {
    let mut by = Vec::new();
    for _ in 0..1 + r.below(3) {
        let one = known[r.below(known.len() as u32) as usize];
        if !by.contains(&one) {
            by.push(one);
        }
    }
    format!("?{}", by.join(" ?"))
}

/// A query for the first rows of a group in some order.
fn ordered(r: &mut XorShift, body: &str, known: &[&str], one: &str) -> String {
    // Ordered by all variables, so that the first rows are uniquely determined.
    let all = format!("?{}", known.join(" ?"));
    let by = if known.contains(&"x") { "x" } else { one };
    let (limit, offset) = (r.below(12), r.below(3));
    let by = match r.below(2) {
        0 => format!("?{by}"),
        _ => format!("DESC(?{by})"),
    };
    format!("SELECT {all} {{ {body}}} ORDER BY {by} {all} LIMIT {limit} OFFSET {offset}")
}

fn grouped(r: &mut XorShift, body: &str, known: &[&str], one: &str) -> String {
    let value = if known.contains(&"x") { "x" } else { one };
    let by = match r.below(4) {
        0 => String::new(),
        _ => group_by(r, known),
    };
    let end = match by.is_empty() {
        true => String::new(),
        false => format!("GROUP BY {by}"),
    };
    let heads = match r.below(6) {
        0 | 1 => count(r, known, "n"),
        2 => format!("{} {}", count(r, known, "n"), count(r, known, "m")),
        3 => format!("{} (COUNT(DISTINCT ?{one}) AS ?m)", count(r, known, "n")),
        4 => {
            let function = ["SUM", "AVG", "MIN", "MAX"][r.below(4) as usize];
            format!("({function}(?{value}) AS ?n) {}", count(r, known, "m"))
        }
        _ => format!("(MIN(?{value}) AS ?n) (MAX(?{value}) AS ?m) (SUM(?{value}) AS ?s)"),
    };
    format!("SELECT {by} {heads} {{ {body}}} {end}")
}

/// A random query without LIMIT, and the LIMIT and OFFSET that a caller may append.
pub(super) fn query(r: &mut XorShift) -> (String, Option<(u64, u64)>) {
    let (body, known) = group(r);
    let one = known[r.below(known.len() as u32) as usize];
    if r.below(5) == 0 {
        return (ordered(r, &body, &known, one), None);
    }
    if r.below(2) == 0 {
        return (grouped(r, &body, &known, one), None);
    }
    let head = match r.below(7) {
        0 | 1 => format!("SELECT DISTINCT ?{one}"),
        2 => format!("SELECT (COUNT(DISTINCT ?{one}) AS ?n)"),
        3 => "SELECT (COUNT(*) AS ?n)".into(),
        4 => format!("SELECT (COUNT(?{one}) AS ?n)"),
        _ => format!("SELECT ?{}", known.join(" ?")),
    };
    let limit = (!head.contains("COUNT") && r.below(4) == 0)
        .then(|| (u64::from(r.below(20)), u64::from(r.below(6))));
    (format!("{head} {{ {body}}}"), limit)
}
