//! Groups of patterns that only `?a = ?b` or `sameTerm(?a, ?b)` connects, compared with `spareval`, with every kind of
//! value.

use crate::support::{in_batches, parts, plan_of, run};
use jindou_plan::Weight;
use jindou_store::{Snapshot, testing};
use jindou_testing::{Rng, answer, comparable as terms, named, triple};
use oxrdf::vocab::xsd;
use oxrdf::{Literal, Quad, Term};

fn quad(s: &str, n: usize, p: &str, o: impl Into<Term>) -> Quad {
    triple(&format!("{s}{n}"), p, o)
}

struct Data {
    quads: Vec<Quad>,
    snapshot: Snapshot,
    _folder: tempfile::TempDir,
}

impl Data {
    fn load(quads: Vec<Quad>) -> Self {
        let (folder, base) = testing::store_of(&quads);
        Self {
            quads,
            snapshot: Snapshot::of_base(base),
            _folder: folder,
        }
    }

    /// Compares the answers with `spareval`, and returns the plan's EXPLAIN.
    fn compare(&self, query: &str) -> String {
        let query = format!("PREFIX : <http://e/> {query}");
        let want = answer(&self.quads, &query)
            .unwrap_or_else(|e| panic!("{e}\n{query}"))
            .bag();
        let mut plan = plan_of(&self.snapshot, &query);
        let text = jindou_plan::explain(&plan, &self.snapshot);
        for (weight, threads, batch_rows) in [
            (plan.weight, 1, 2048),
            (Weight::Light, 1, 3),
            (Weight::Heavy, 3, 16),
        ] {
            plan.weight = weight;
            let got = run(&self.snapshot, &plan, &in_batches(threads, batch_rows))
                .unwrap_or_else(|e| panic!("{e}\n{query}\n{text}"))
                .bag();
            let missing: Vec<&String> = want.iter().filter(|r| !got.contains(r)).take(9).collect();
            let extra: Vec<&String> = got.iter().filter(|r| !want.contains(r)).take(9).collect();
            assert!(
                got == want,
                "{query}\n{text}\n{} rows, not {}\nmissing {missing:#?}\nextra {extra:#?}",
                got.len(),
                want.len()
            );
        }
        text
    }
}

/// Each term as the object of one triple with `:p`, and of one with `:q`.
fn all_pairs() -> Data {
    pairs(terms())
}

fn pairs(terms: impl IntoIterator<Item = Term>) -> Data {
    let mut quads = vec![];
    for (n, t) in terms.into_iter().enumerate() {
        quads.push(quad("s", n, "p", t.clone()));
        quads.push(quad("t", n, "q", t));
    }
    Data::load(quads)
}

#[test]
fn every_value_against_every_other() {
    let data = all_pairs();
    let plan = data.compare("SELECT ?s ?t { ?s :p ?x . ?t :q ?y FILTER(?x = ?y) }");
    assert!(
        plan.contains("hash join on ?x = ?y") || plan.contains("hash join on ?y = ?x"),
        "{plan}"
    );
    let plan = data.compare("SELECT ?s ?t { ?s :p ?x . ?t :q ?y FILTER(sameTerm(?x, ?y)) }");
    assert!(
        !plan.contains("product") && !plan.contains("cross"),
        "{plan}"
    );
    // The comparison reversed, with a second filter, below DISTINCT, and in an ASK.
    data.compare("SELECT ?s ?t { ?s :p ?x . ?t :q ?y FILTER(?y = ?x && ISLITERAL(?y)) }");
    data.compare("SELECT ?s ?t { ?s :p ?x . ?t :q ?y FILTER(?y = ?x) FILTER(!sameTerm(?x, ?y)) }");
    data.compare("SELECT DISTINCT ?s { ?s :p ?x . ?t :q ?y FILTER(?x = ?y && !ISIRI(?x)) }");
    data.compare("SELECT DISTINCT ?t { ?s :p ?x . ?t :q ?y FILTER(?x = ?y) }");
    data.compare(
        "ASK { ?s :p ?x . ?t :q ?y FILTER(?x = ?y) FILTER(!sameTerm(?x, ?y) && ISNUMERIC(?x)) }",
    );
}

/// Comparisons between the two sides of a join become its keys, wherever they are written, so that no other pairs are
/// tested.
#[test]
fn joins_match_by_comparisons() {
    let quads = (0..150)
        .flat_map(|n| {
            let datatype = [xsd::INTEGER, xsd::DECIMAL, xsd::DOUBLE][n % 3];
            let number = Literal::new_typed_literal(format!("{}", n % 90), datatype);
            let name = Literal::new_simple_literal(format!("name {}", n % 70));
            [
                quad("s", n, "p", name.clone()),
                quad("t", n, "q", name),
                quad("s", n, "n", number.clone()),
                quad("t", n, "m", number),
            ]
        })
        .collect();
    let data = Data::load(quads);
    for line in [
        "hash join on ? | ?s :n ?x . ?t :m ?y FILTER(?x = ?y)",
        "hash join on sameTerm((key STR(? | ?s :n ?x . ?t :m ?y FILTER(STR(?x) = STR(?y))",
        "hash join on ? | ?s :n ?x . ?t :m ?y FILTER(?x IN (?y))",
        "= ? | ?s :n ?x . ?t :m ?y FILTER(!(?x != ?y) && DATATYPE(?x) = DATATYPE(?y))",
        "hash join on ? | ?s :n ?x . ?t :m ?y BIND(?y AS ?z) FILTER(?x = ?z)",
        "hash join on (key  | ?s :n ?x . ?t :m ?y FILTER(?x + 1 = ?y * 2)",
        "hash left join on ?x = ?y | ?s :n ?x OPTIONAL { ?t :m ?y FILTER(?x = ?y) }",
        "hash left join on sameTerm( | ?s :p ?x OPTIONAL { ?t :q ?y FILTER(LCASE(?x) = LCASE(?y)) }",
        "hash semi-join on ?x = (y inside | ?s :n ?x FILTER EXISTS { ?t :m ?y FILTER(?x = ?y && ?t != ?s) }",
        "hash anti-join on ?x = (key  | ?s :n ?x FILTER NOT EXISTS { ?t :m ?y FILTER(?x = ?y + 1) }",
        "hash anti-join on ?x = (key | ?s :n ?x FILTER NOT EXISTS \
         { { ?t :m ?y FILTER(?x = ?y) } UNION { ?t :q ?z FILTER(?x = STRLEN(?z)) } }",
        "range anti-join on ?x < (y inside | ?s :p ?x FILTER NOT EXISTS { ?t :q ?y FILTER(?x < ?y) }",
        "range join on | ?s :n ?x . ?t :m ?y FILTER(?x + 85 < ?y)",
        "hash join on ? | { ?s :p ?z OPTIONAL { ?s :n ?x } } { ?t :m ?y } FILTER(?x = ?y)",
        "hash join on ? | { SELECT ?s (STRLEN(?z) AS ?x) { ?s :p ?z } } { ?t :m ?y } FILTER(?x = ?y)",
    ] {
        let [matched, pattern] = parts(line);
        let plan = data.compare(&format!("SELECT ?s ?t {{ {pattern} }}"));
        assert!(plan.contains(matched), "{matched}\n{pattern}\n{plan}");
        assert!(!plan.contains("product"), "{pattern}\n{plan}");
    }
    // One row on the left: its partners are looked up from its term instead of a hash table.
    let plan = data.compare("SELECT ?t ?x ?y { :s1 :p ?x OPTIONAL { ?t :q ?y FILTER(?x = ?y) } }");
    assert!(!plan.contains("hash"), "{plan}");
}

#[test]
fn subjects_and_predicates() {
    let data = all_pairs();
    data.compare("SELECT ?s ?t { ?s :p ?x . ?t :q ?y FILTER(?x = ?t) }");
    data.compare("SELECT ?s ?t { ?s :p ?x . ?t :q ?y FILTER(?s = ?y) }");
    data.compare("SELECT ?s ?r { ?s ?r ?x . ?t :q ?y . ?y :p ?z FILTER(?r = ?x) }");
    data.compare("SELECT ?a ?b { :s1 ?a ?x . :t2 ?b ?y FILTER(?a = ?b) }");
    data.compare("SELECT * { ?s :p ?x . ?x :p ?z . ?t :q ?y . ?y :q ?w FILTER(?s = ?t) }");
}

/// Groups other than patterns: with unbound values, computed values, sub-queries.
#[test]
fn parts_of_every_kind() {
    let data = all_pairs();
    for line in [
        "{ SELECT ?s ?x { ?s :p ?x } } | { SELECT ?t ?y { ?t :q ?y } }",
        "{ ?s :p ?x } UNION { ?s :q ?x } | { ?t :q ?y }",
        "{ ?s :q ?z OPTIONAL { ?s :p ?x } } | { ?t :q ?y }",
        "{ ?s :p ?z BIND(?z + 1 AS ?x) } | { SELECT ?t ?y { ?t :q ?y } }",
        "VALUES ?x { 1 1.0 1e0 'a' 'a'@en true UNDEF :s1 :none } | { ?t :q ?y }",
        "VALUES ?x { 1 1.0 1e0 'new' } | VALUES (?t ?y) { (1 1) (2 01.0) (3 'new') (4 2) }",
        "{ SELECT (COUNT(*) AS ?x) { ?a :p 1 } } | { SELECT ?t ?y { ?t :q ?y } }",
    ] {
        let [left, right] = parts(line);
        for filter in ["?x = ?y", "?y = ?x", "sameTerm(?x, ?y)"] {
            // `spareval` writes large computed floats differently ("16777217" for 1.6777217E7).
            if filter.starts_with("sameTerm") && left.contains("?z + 1") {
                continue;
            }
            data.compare(&format!(
                "SELECT ?s ?t {{ {left} {right} FILTER({filter}) }}"
            ));
            data.compare(&format!(
                "SELECT DISTINCT ?t {{ {right} {left} FILTER({filter}) }}"
            ));
        }
    }
    // With few terms, since the oracle tries all triples of them.
    let data = pairs(terms().into_iter().step_by(3));
    data.compare(
        "SELECT ?s { ?s :p ?x FILTER EXISTS { ?t :q ?y . ?u :p ?z FILTER(?y = ?z && ?x = ?z) } }",
    );
    data.compare(
        "SELECT ?s ?t { ?s :p ?x OPTIONAL { ?t :q ?y . ?u :p ?z FILTER(?y = ?z && ?x = ?y) } }",
    );
}

#[test]
fn random_groups() {
    let all = terms();
    for seed in 1..40 {
        let mut rng = Rng::new(seed);
        let mut quads = vec![];
        for n in 0..10 + rng.below(20) {
            let p = rng.one(&["p", "q", "r"]);
            let t = all[rng.below(all.len())].clone();
            quads.push(quad("v", rng.below(6) + n % 2, p, t));
            if rng.chance(40) {
                let o = named(&format!("v{}", rng.below(7)));
                quads.push(quad("v", rng.below(7), "q", o));
            }
        }
        quads.sort_by_key(ToString::to_string);
        quads.dedup();
        let data = Data::load(quads);
        for _ in 0..12 {
            let mut text = String::new();
            for group in 0..2 + rng.below(2) {
                let (p, q) = (
                    rng.one(&[":p", ":q", ":r"]),
                    rng.one(&[":p", ":q", ":r", "?p"]),
                );
                text += &format!("?a{group} {p} ?b{group} . ");
                match rng.below(4) {
                    0 => text += &format!("?a{group} {q} ?c{group} . "),
                    1 => text += &format!("OPTIONAL {{ ?a{group} {q} ?c{group} }} "),
                    2 => {
                        text += &format!(
                            "{{ ?b{group} {q} ?c{group} }} UNION {{ ?a{group} {p} ?c{group} }} "
                        )
                    }
                    _ => {}
                }
            }
            for _ in 0..1 + rng.below(3) {
                let mut var =
                    || format!("?{}{}", rng.one(&["a", "b", "b", "b", "c"]), rng.below(3));
                let (x, y) = (var(), var());
                text += &match rng.below(4) {
                    0 => format!("FILTER(sameTerm({x}, {y})) "),
                    _ => format!("FILTER({x} = {y}) "),
                };
            }
            let columns = rng.one(&[
                "?a0 ?a1",
                "DISTINCT ?a0",
                "DISTINCT ?a1 ?a0",
                "(COUNT(*) AS ?n)",
            ]);
            data.compare(&format!("SELECT {columns} {{ {text}}}"));
        }
    }
}
