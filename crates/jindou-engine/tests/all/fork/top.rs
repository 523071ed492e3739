//! ORDER BY with LIMIT over shards, which do not send rows that cannot be among the first ones. Compares the rows with
//! those of the same data in one store, and checks how many rows are sent.

use super::{MODES, Shards, cut, hashed};
use crate::support::{in_memory, parts, plan_of, run};
use jindou_engine::{ExecOptions, ExecutionOutcome, ShardMode};
use jindou_graph::shard::Posts;
use jindou_model::{Error, term};
use jindou_plan::wire::put_steps;
use jindou_plan::{Operator, Walk};
use jindou_store::{Base, Snapshot, testing};
use jindou_testing::{Answer, Rng, answer, from_environment, named, triple};
use oxrdf::vocab::xsd;
use oxrdf::{BlankNode, Literal, NamedNode, Quad, Term};
use std::collections::HashMap;
use std::sync::Arc;

type Row = Vec<Option<Term>>;

fn node(i: usize) -> NamedNode {
    named(&format!("n{i}"))
}

fn quad(s: usize, p: &str, o: impl Into<Term>) -> Quad {
    triple(&format!("n{s}"), p, o)
}

/// A random value of any kind; many are equal. Their texts are canonical, since `spareval` does not preserve other
/// texts.
fn value(rng: &mut Rng, spread: usize) -> Term {
    let n = rng.below(spread) as i64 - spread as i64 / 3;
    let text = format!(
        "{}{n}",
        rng.one(&["", "a", "b", "the same beginning of a text: "])
    );
    match rng.below(14) {
        0..=2 => Literal::from(n).into(),
        3 => Literal::new_typed_literal(format!("{n}.5"), xsd::DECIMAL).into(),
        4 => Literal::from(n as f64 / 4.0).into(),
        5 => Literal::new_typed_literal(rng.one(&["NaN", "INF", "-INF"]), xsd::DOUBLE).into(),
        6 => Literal::new_simple_literal(text).into(),
        7 => Literal::new_language_tagged_literal_unchecked(text, rng.one(&["en", "de"])).into(),
        8 => {
            let day = 1 + n.unsigned_abs() % 28;
            let zone = rng.one(&["", "Z", "+02:00"]);
            Literal::new_typed_literal(
                format!("2020-03-{day:02}T0{}:00:00{zone}", n.unsigned_abs() % 10),
                xsd::DATE_TIME,
            )
            .into()
        }
        9 => {
            Literal::new_typed_literal(format!("P{}D", 1 + n.unsigned_abs()), xsd::DURATION).into()
        }
        10 => Literal::from(n % 2 == 0).into(),
        11 => {
            Literal::new_typed_literal(text, rng.one(&[xsd::INTEGER, xsd::HEX_BINARY, xsd::DATE]))
                .into()
        }
        12 => BlankNode::new_unchecked(format!("b{}", rng.below(spread))).into(),
        _ => node(rng.below(spread)).into(),
    }
}

/// Nodes with edges `p`, with values `v`, and some of them with values `w`.
fn data(rng: &mut Rng, nodes: usize) -> Vec<Quad> {
    let spread = rng.one(&[3, 40, 2000]);
    let numbers_only = rng.chance(30);
    let mut out = Vec::new();
    for i in 0..nodes {
        for _ in 0..rng.below(5) {
            out.push(quad(i, "p", node(rng.below(nodes))));
        }
        for _ in 0..1 + rng.below(2) {
            let v = match numbers_only {
                true => Literal::from(rng.below(spread) as i64).into(),
                false => value(rng, spread),
            };
            out.push(quad(i, "v", v));
        }
        if rng.chance(40) {
            out.push(quad(i, "w", value(rng, spread)));
        }
    }
    out
}

/// The same data in a store without shards, for the expected answers.
struct One {
    _folder: tempfile::TempDir,
    base: Arc<Base>,
}

impl One {
    fn new(data: &[Quad]) -> Self {
        let (_folder, base) = testing::store_of(data);
        Self { _folder, base }
    }

    fn answer(&self, text: &str) -> Vec<Row> {
        let snapshot = Snapshot::of_base(Arc::clone(&self.base));
        let plan = plan_of(&snapshot, text);
        let Answer::Rows(_, rows) = run(&snapshot, &plan, &ExecOptions::default()).unwrap() else {
            panic!("{text}")
        };
        rows
    }

    /// True if ORDER BY does not sort one of the two terms before the other.
    fn is_equal(&self, a: &Option<Term>, b: &Option<Term>) -> bool {
        let (Some(x), Some(y)) = (a, b) else {
            return a.is_none() && b.is_none();
        };
        let dictionary = self.base.dictionary();
        let id = |t: &Term| dictionary.lookup(&term::encode(t));
        let key = |t: &Term| id(t).map(|id| dictionary.sort_key(id));
        match (key(x), key(y)) {
            (Some(x), Some(y)) => x == y,
            _ => x == y,
        }
    }
}

/// A query with ORDER BY and LIMIT, the same query without them, and the columns that it sorts by.
struct Sorted {
    text: String,
    whole: String,
    by: Vec<usize>,
}

fn sorted(rng: &mut Rng, rows: usize) -> Sorted {
    // The columns, the pattern, and choices of columns to sort by.
    let [select, pattern, by] = parts(rng.one(&[
        "?x ?a | ?a :p ?b . ?b :v ?x | 0, 0 1, 1",
        "?x ?a ?b | ?a :p ?b . ?b :v ?x | 0, 1 0, 2, 0 2 1",
        "?x ?a | ?a :p ?b . ?b :p ?c . ?c :v ?x | 0, 1, 0 1",
        "?x ?b ?y | ?a :p ?b . ?b :v ?x OPTIONAL { ?b :w ?y } | 0, 2, 0 2, 2 0, 1",
        "?x ?y ?z | ?a :p ?b . ?b :v ?x OPTIONAL { ?b :w ?y OPTIONAL { ?y :p ?z } } | 0, 1, 2 0",
        "?x ?y | ?a :p ?b . ?b :v ?x BIND(STR(?x) AS ?y) | 0, 1, 1 0",
        "?x ?b | ?a :p ?b . ?b :v ?x FILTER(?x < 5) | 0, 0 1",
        "?x ?b | ?a :p ?b . ?b :v ?x FILTER(STRLEN(STR(?x)) > 2) | 0",
        "?x ?b | ?a :p ?b . ?b :v ?x MINUS { ?b :w ?y } | 0",
        "?x ?b | ?a :p ?b . ?b :v ?x FILTER EXISTS { ?b :w ?y } | 0",
        "?x ?b | ?a :p ?b . { ?b :v ?x } UNION { ?b :w ?x } | 0, 0 1",
        "?x ?b | { SELECT ?b ?x { ?a :p ?b . ?b :v ?x } } ?b :p ?d | 0",
        "DISTINCT ?x | ?a :p ?b . ?b :v ?x | 0",
        "DISTINCT ?x ?b | ?a :p ?b . ?b :v ?x | 0, 1 0",
    ]));
    let choices: Vec<&str> = by.split(", ").collect();
    let by = rng.one(&choices).split(' ');
    let by: Vec<usize> = by.map(|n| n.parse().unwrap()).collect();
    let names: Vec<&str> = select.split(' ').filter(|c| c.starts_with('?')).collect();
    let each: Vec<String> = by
        .iter()
        .map(|&c| match rng.chance(50) {
            true => format!("DESC({})", names[c]),
            false => names[c].to_owned(),
        })
        .collect();
    let whole = format!("PREFIX : <http://e/> SELECT {select} {{ {pattern} }}");
    let mut text = format!("{whole} ORDER BY {}", each.join(" "));
    let limit = rng.one(&[0, 1, 2, 10, 100, rows / 2, 2 * rows]);
    text += &format!(" LIMIT {limit}");
    if rng.chance(40) {
        text += &format!(" OFFSET {}", rng.one(&[0, 1, 7, 300, rows]));
    }
    Sorted { text, whole, by }
}

/// Number of rows that were not sent, as the profile says.
pub fn held(ran: &ExecutionOutcome) -> u64 {
    let line = ran.details.lines().find(|l| l.contains("rows held back"));
    line.map_or(0, |l| {
        let number = l.split(' ').find_map(|w| w.parse().ok());
        number.expect("a number of rows")
    })
}

/// Checks that the rows have the same sort keys as those of an unsharded store, and that each is a row of the query
/// without LIMIT (`whole`), at most as often as there.
fn is_right(one: &One, query: &Sorted, got: &[Row], whole: &Answer, context: &str) {
    let want = one.answer(&query.text);
    assert_eq!(got.len(), want.len(), "{context}");
    for (at, (got, want)) in got.iter().zip(&want).enumerate() {
        for &c in &query.by {
            let same = one.is_equal(&got[c], &want[c]);
            assert!(same, "{context}\nrow {at}: {:?} for {:?}", got[c], want[c]);
        }
    }
    let Answer::Rows(_, rows) = whole else {
        panic!("{context}")
    };
    let mut left: HashMap<&Row, usize> = HashMap::new();
    for row in rows {
        *left.entry(row).or_default() += 1;
    }
    for row in got {
        let n = left.get_mut(row).filter(|n| **n > 0);
        *n.unwrap_or_else(|| panic!("{context}\n{row:?} comes too often")) -= 1;
    }
}

/// Runs random queries. Returns how many were compared, and in how many of them shards did not send some rows.
fn random(seeds: std::ops::Range<u64>, queries: usize) -> [usize; 2] {
    let mut counts = [0; 2];
    for seed in seeds {
        let mut rng = Rng::new(seed);
        let nodes = rng.one(&[60, 400, 1500, 1500, 1500]);
        let data = data(&mut rng, nodes);
        let one = One::new(&data);
        let (sharding, own) = cut(&mut rng);
        let shards = Shards::new(&data, sharding, own, 1 + rng.below(3));
        for _ in 0..queries {
            let query = sorted(&mut rng, 3 * nodes);
            let whole = answer(&data, &query.whole).unwrap();
            for mode in [ShardMode::Fork, MODES[rng.below(3)]] {
                let context = format!(
                    "seed {seed}, {mode:?}, {sharding:?} at {own}:\n{}",
                    query.text
                );
                let (got, ran) = shards
                    .answer(&query.text, mode, &ExecOptions::default())
                    .unwrap_or_else(|e| panic!("{context}\n{e}"));
                let Answer::Rows(_, got) = got else {
                    panic!("{context}")
                };
                is_right(&one, &query, &got, &whole, &context);
                counts[0] += 1;
                counts[1] += usize::from(held(&ran) > 0);
            }
        }
        shards.is_left_clean();
    }
    counts
}

#[test]
fn the_first_rows_over_shards_are_those_of_one_store() {
    let seed = from_environment("JINDOU_SEED", 1);
    let found = random(seed..seed + 15, 16);
    println!("answers, with rows that were held back: {found:?}");
    assert!(found[0] == 15 * 16 * 2 && found[1] > 20, "{found:?}");
}

/// A long test; docs/testing.md describes how to run it.
#[test]
#[ignore = "long: 10,000 random queries"]
fn the_first_rows_of_many_random_queries() {
    let seed = from_environment("JINDOU_SEED", 5000);
    let found = random(seed..seed + 250, 20);
    println!("answers, with rows that were held back: {found:?}");
    assert!(found[0] == 250 * 20 * 2 && found[1] > 500, "{found:?}");
}

/// As many distinct values as nodes, in random order; each is the end of `EDGES * EDGES` paths.
const EDGES: usize = 5;

fn ways(nodes: usize) -> Vec<Quad> {
    let mut rng = Rng::new(11);
    let mut values: Vec<usize> = (0..nodes).collect();
    for i in (1..nodes).rev() {
        values.swap(i, rng.below(i + 1));
    }
    let mut out = Vec::new();
    for (i, &value) in values.iter().enumerate() {
        for j in 0..EDGES {
            out.push(quad(i, "p", node((i * 7 + j * 13) % nodes)));
        }
        out.push(quad(i, "v", Literal::from(value as i64)));
    }
    out
}

const THREADS: usize = 2;
const WAYS: &str = "PREFIX : <http://e/> SELECT ?x ?a { ?a :p ?b . ?b :p ?c . ?c :v ?x }";

fn ways_shards(nodes: usize, shards: u32) -> Shards {
    Shards::new(&ways(nodes), hashed(shards), 1, THREADS)
}

/// Sum of the numbers before a word in the profile's lines of all shards.
pub fn sum(ran: &ExecutionOutcome, word: &str) -> u64 {
    let lines = ran.details.lines().filter(|l| l.starts_with("shard "));
    let before = |l: &str| {
        let (head, _) = l.split_once(word)?;
        head.rsplit(' ').next()?.parse::<u64>().ok()
    };
    lines.filter_map(before).sum()
}

/// Of n rows in random order, a worker sends about `k (1 + ln(n / k))`, in addition to the rows before it compares
/// terms, and those in batches that are too small to compare, of which there is at most one per message.
#[test]
fn few_of_many_rows_are_given() {
    const FEW: f64 = 32.0;
    const NODES: usize = 6000;
    let shards = ways_shards(NODES, 4);
    let rows = (NODES * EDGES * EDGES) as u64;
    for (k, way) in [(10, "?x"), (10, "DESC(?x)"), (100, "?x")] {
        let text = format!("{WAYS} ORDER BY {way} LIMIT {} OFFSET 5", k - 5);
        let (got, ran) = shards.forked(&text);
        let Answer::Rows(_, got) = got else { panic!() };
        // Each value occurs in this many rows.
        let value = |place: usize| match way {
            "?x" => (place / EDGES / EDGES) as i64,
            _ => (NODES - 1 - place / EDGES / EDGES) as i64,
        };
        let want: Vec<Option<Term>> = (5..k)
            .map(|place| Some(Literal::from(value(place)).into()))
            .collect();
        let got: Vec<Option<Term>> = got.into_iter().map(|r| r[0].clone()).collect();
        assert_eq!(got, want, "{text}");
        let given = (rows - held(&ran)) as f64;
        let (workers, k) = (4.0 * THREADS as f64, k as f64);
        let early = (4.0 * k).max(256.0);
        let each = rows as f64 / workers;
        let looked = k * (1.0 + (each / k).ln());
        // Six standard deviations above the mean of a sum whose variance is below its mean.
        let looked = workers * looked + 6.0 * (workers * looked).sqrt();
        let bound = looked + workers * early + FEW * sum(&ran, " messages") as f64;
        println!(
            "{text}: {given} of {rows} rows given, at most {bound:.0}\n{}",
            ran.details
        );
        assert!(given >= k && given < bound, "{given} of {bound}");
        assert!(bound < rows as f64 / 4.0, "{bound} says nothing");
    }
    shards.is_left_clean();
}

/// If all rows are needed, all are sent, and no terms are requested to compare them.
#[test]
fn all_rows_are_given_where_all_are_shown() {
    let shards = ways_shards(400, 3);
    let rows = 400 * EDGES * EDGES;
    for limit in ["", " LIMIT 10000", " LIMIT 100000"] {
        let text = format!("{WAYS} ORDER BY ?x{limit}");
        let (got, ran) = shards.forked(&text);
        assert_eq!(got.bag().len(), rows);
        assert_eq!(held(&ran), 0);
        assert_eq!(sum(&ran, " rounds"), 0, "{}", ran.details);
    }
    shards.is_left_clean();
}

/// A memory limit makes the query fail, or more rows pass, but never makes the answer wrong.
#[test]
fn the_first_rows_within_limits_of_memory() {
    let shards = ways_shards(1000, 3);
    let text = format!("{WAYS} ORDER BY DESC(?x) LIMIT 3000");
    let [mut refused, mut done] = [0; 2];
    for kib in [16, 64, 256, 1024, 4096, 65_536] {
        match shards.answer(&text, ShardMode::Fork, &in_memory(kib << 10)) {
            Ok((Answer::Rows(_, got), _)) => {
                let value = |place: usize| (999 - place / EDGES / EDGES) as i64;
                let want = (0..3000).map(|p| Some(Literal::from(value(p)).into()));
                assert!(got.into_iter().map(|r| r[0].clone()).eq(want));
                done += 1;
            }
            Ok(_) => panic!("no rows"),
            Err(Error::Limit(_)) => refused += 1,
            Err(e) => panic!("{kib} KiB: {e}"),
        }
        shards.is_left_clean();
    }
    assert!(refused > 0 && done > 0, "{refused} refused, {done} done");
}

/// A part whose rows are to be sorted by a column that they do not have is rejected; with a valid column, it begins.
#[test]
fn a_column_that_is_not_there_is_refused() {
    let shards = ways_shards(60, 3);
    let plan = shards.plan(WAYS);
    let mut steps = Vec::new();
    plan.root.walk(&mut |op| {
        if let Operator::Explore(e) = op {
            put_steps(&e.steps, &mut steps).unwrap();
        }
        Walk::Independent
    });
    let begin = |number: u64, column: u32| {
        let mut out = Vec::new();
        out.extend(1u32.to_le_bytes());
        out.extend(number.to_le_bytes());
        out.push(0);
        out.extend((steps.len() as u64).to_le_bytes());
        out.extend(&steps);
        // The shard as it was loaded, no choice of servers, and no time limit.
        out.extend([0u64, 0].map(u64::to_le_bytes).as_flattened());
        out.extend(u64::MAX.to_le_bytes());
        out.extend((1u64 << 20).to_le_bytes());
        // Rows are always sent, with duplicates; the first ten by the column, ascending, which is the only sort key; no
        // profile.
        out.extend([2, 0, 1]);
        out.extend(column.to_le_bytes());
        out.extend([0, 1]);
        out.extend(10u32.to_le_bytes());
        out.push(0);
        let answer = shards.hub.take(2, &out).unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    };
    let refused = begin(1 << 40, 90);
    assert!(refused.contains("the first rows by a column"), "{refused}");
    assert_eq!(shards.hub.parts(), 0);
    begin((1 << 40) + 1, 0);
    assert_eq!(shards.hub.parts(), 1, "it is begun");
}
