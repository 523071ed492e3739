//! Long, wide and deep query texts: whatever is repeated in a query, the time and memory for planning and running it
//! must grow about linearly, and stay within the query's limits.

mod chains;

use jindou::testing::Store;
use jindou::{CancelToken, Error, MemoryBudget, QueryOptions, ResultFormat, ResultWriter};
use jindou_testing::attack::Recipe;
use jindou_testing::{counted, process_time, turn};
use std::fmt::Write as _;
use std::io;
use std::time::Duration;

/// A store with some edges of three predicates, one of them with numbers, and a named graph.
fn store() -> Store {
    let mut text = String::from("@prefix : <http://e/> .\n");
    for i in 0..40 {
        writeln!(
            text,
            ":s{i} :a :s{} ; :b :s{} ; :n {i} . :g {{ :s{i} :a :s{} }}",
            i + 1,
            (i * 7) % 40,
            i + 2
        )
        .unwrap();
    }
    Store::of_trig(&text)
}

/// A query: the recipe `template`, in which `N` stands for the number `n` of repetitions, and `N/2` for half of it.
fn repeated(template: &str, n: usize) -> String {
    let recipe = template.replace("⟪N/2", &format!("⟪{}", n / 2));
    let recipe = recipe.replace("⟪N", &format!("⟪{n}"));
    let recipe: Recipe = recipe.parse().expect(template);
    PREFIX.to_owned() + &recipe.text(usize::MAX)
}

/// The lines `name: template` of a table.
fn templates(table: &str) -> impl Iterator<Item = (&str, &str)> {
    let lines = table.trim().lines();
    lines.map(|line| line.trim().split_once(": ").expect("a name"))
}

/// Processor time and memory for one text.
#[derive(Clone, Copy)]
struct Cost {
    time: Duration,
    bytes: u64,
    most: usize,
}

impl Cost {
    fn least(self, other: Self) -> Self {
        Self {
            time: self.time.min(other.time),
            bytes: self.bytes.min(other.bytes),
            most: self.most.min(other.most),
        }
    }
}

fn cost(f: impl FnOnce()) -> Cost {
    let (time, taken) = counted(|| {
        let begun = process_time();
        f();
        process_time() - begun
    });
    Cost {
        time,
        bytes: taken.bytes,
        most: taken.most_copied,
    }
}

/// The prefix declaration of all texts.
const PREFIX: &str = "PREFIX : <http://e/> ";
/// Time that periodic background threads may add to a measurement.
const WAKING: Duration = Duration::from_millis(30);
/// Bytes that do not depend on the length of the text.
const SOME: u64 = 1 << 20;
/// Time by which a long text may exceed its time limit in a build without optimisation.
const LATE: Duration = Duration::from_millis(500);
/// Bytes that the process may allocate in addition to what the query's budget counts.
const BESIDE: usize = 64 << 20;

fn limited(memory: u64, time: Duration) -> QueryOptions {
    QueryOptions::default()
        .with_memory(MemoryBudget::new(memory))
        .with_timeout(time)
}

/// Runs a text, which must be answered or exceed a limit. Returns its cost, and the error if there was one.
fn run(store: &Store, text: &str, options: &QueryOptions) -> (Cost, Option<Error>) {
    let mut error = None;
    let cost = cost(|| {
        let mut out = ResultWriter::new(io::sink(), ResultFormat::Tsv);
        error = store.db.run(text, options, &mut out).err();
    });
    if let Some(e) = &error {
        let start = &text[..text.len().min(80)];
        assert!(
            matches!(e, Error::Limit(_) | Error::Timeout(_)),
            "{start}: {e}"
        );
    }
    (cost, error)
}

/// Texts that are tested with different numbers of parts.
const TEXTS: &str = "
    conditions over a union: SELECT * { ⟪N×{?s :a ?o}¦UNION⟫ FILTER(⟪N×?o!=§¦&&⟫) } LIMIT 1
    conditions over alternatives: SELECT * { ?s ⟪N×:a¦|⟫ ?o FILTER(⟪N×?o¦&&⟫)} LIMIT 1
    IN over a union: SELECT * { ⟪N×{?s :a ?o}¦UNION⟫ FILTER(?o IN(⟪N×§¦,⟫))} LIMIT 1
    conditions over sub-selects: SELECT * { ⟪N×{SELECT ?s{?s :a ?o}}⟫ FILTER(⟪N×?s!=§¦&&⟫)} LIMIT 1
    conditions of an OPTIONAL: SELECT * { ?s :b ?k OPTIONAL { ⟪N×{?s :a ?o}¦UNION⟫ FILTER(⟪N×?o!=§¦&&⟫)}} LIMIT 1
    conditions of an EXISTS: ASK { ?s :b ?k FILTER EXISTS { ⟪N×{?s :a ?o}¦UNION⟫ FILTER(⟪N×?o!=§¦&&⟫)}}
    HAVING: SELECT ?s (COUNT(*) AS ?c) {?s :a ?o} GROUP BY ?s HAVING⟪N×(?c!=§)¦ ⟫
    HAVING over keys: SELECT ?s (COUNT(*) AS ?c) {?s :a ?o} GROUP BY ?s HAVING⟪N×(?s!=§)¦ ⟫
    conditions over VALUES: SELECT * {VALUES ?o {1 2} ⟪N×FILTER(?o!=§)⟫}
    conditions over BIND: SELECT * {BIND(1 AS ?o) FILTER(⟪N×?o!=§¦&&⟫)}
    conditions over a sub-select: SELECT * {{SELECT ?o {?s :a ?o} LIMIT 3} FILTER(⟪N×?o!=§¦&&⟫)}
    conditions over a path: SELECT * {?s :a+ ?o FILTER(⟪N×?o!=§¦&&⟫)}
    conditions over graphs: SELECT * {GRAPH ?g {} FILTER(⟪N×?g!=§¦&&⟫)}
    a wide union: SELECT * {⟪N×{?x§ :a ?o}¦UNION⟫} LIMIT 1
    a wide union, distinct: SELECT DISTINCT * {⟪N×{?x§ :a ?o}¦UNION⟫} LIMIT 1
    a wide union, counted: SELECT (COUNT(*) AS ?c) {⟪N×{?x§ :a ?o}¦UNION⟫}
    a wide union, constructed: CONSTRUCT {⟪N×?x§ :p ?o¦.⟫}{⟪N×{?x§ :a ?o}¦UNION⟫} LIMIT 1
    a wide union, described: DESCRIBE * {⟪N×{?x§ :a ?o}¦UNION⟫} LIMIT 1
    a wide union that a join goes on to: SELECT * {?o :b ?k ⟪N×{?x§ :a ?o}¦UNION⟫} LIMIT 1
    a wide union of values: SELECT * {⟪N×{VALUES ?x§ {1}}¦UNION⟫} LIMIT 1
    joined sub-selects: SELECT * {⟪N×{SELECT ?s{?s :a ?o}}⟫} LIMIT 1
    joined unions: SELECT * {⟪N/2×{{?s :a ?o}UNION{?s :b ?o}}⟫} LIMIT 1
    joined values: SELECT * {⟪N×{VALUES ?x {1}}⟫} LIMIT 1
    patterns without connection: ASK {⟪N×?x§ :none ?y§¦.⟫}
    terms of which each is any of many: SELECT * {?s :n ?o FILTER(⟪N×(?o!=§&&?s=§)¦||⟫)}
    sums: SELECT * {?s :n ?o FILTER(⟪N×?o+§>0¦&&⟫)}
";

/// Each text is run with some number of parts and with four times as many. The longer one may allocate six times the
/// memory and take nine times the time; quadratic growth would mean sixteen times.
#[test]
fn what_is_longer_takes_as_much_more() {
    let _turn = turn();
    let store = store();
    for (name, template) in templates(TEXTS) {
        let [short, long] = [300, 1_200].map(|n| costs(&store, name, &repeated(template, n)));
        is_even(name, "planning", (short[0], long[0]));
        is_even(name, "running", (short[1], long[1]));
    }
}

/// The costs of planning a text, and of planning and running it; the lower of two measurements.
fn costs(store: &Store, name: &str, text: &str) -> [Cost; 2] {
    // One thread, since helper threads start at varying times and allocate memory of their own.
    let options = QueryOptions::default().with_threads(1);
    // The lower cost of two runs, because other programs share caches and cores with this one.
    let plan = || {
        let plan = store.db.plan_uncached(text, &options);
        assert!(plan.is_ok(), "{name}: {:?}", plan.err());
    };
    let ask = || {
        let (_, e) = run(store, text, &options);
        assert!(e.is_none(), "{name}: {e:?}");
    };
    let least = |f: &dyn Fn()| cost(f).least(cost(f));
    [least(&plan), least(&ask)]
}

/// Asserts that the costs of a text that is four times as long are not much more than four times as high.
fn is_even(name: &str, what: &str, (short, long): (Cost, Cost)) {
    assert!(
        long.bytes < 6 * short.bytes + SOME,
        "{what} {name}: {} bytes, then {}",
        short.bytes,
        long.bytes
    );
    assert!(
        long.time < 9 * short.time + WAKING,
        "{what} {name}: {:?}, then {:?}",
        short.time,
        long.time
    );
}

#[test]
fn a_union_of_many_columns_takes_what_its_branches_bind() {
    let _turn = turn();
    let store = store();
    let options = limited(256 << 20, Duration::from_secs(60));
    for begin in ["SELECT *", "SELECT DISTINCT *", "DESCRIBE *"] {
        let text = repeated(
            &format!("{begin} {{⟪N×{{?x§ ?p ?o}}¦UNION⟫}} LIMIT 1"),
            4_000,
        );
        let (cost, e) = run(&store, &text, &options);
        assert!(e.is_none(), "{begin}: {e:?}");
        assert!(cost.most < BESIDE, "{begin}: {} bytes", cost.most);
    }
    // Each row has a column for every variable of the union, so ORDER BY exceeds the memory limit.
    let text = repeated("SELECT * {⟪N×{?x§ ?p ?o}¦UNION⟫} ORDER BY ?o", 4_000);
    let (cost, e) = run(&store, &text, &limited(64 << 20, Duration::from_secs(60)));
    assert!(matches!(e, Some(Error::Limit(_))), "{e:?}");
    assert!(cost.most < (64 << 20) + BESIDE, "{} bytes", cost.most);
}

#[test]
fn conditions_take_memory_once_for_all() {
    let _turn = turn();
    let mut text = String::from("@prefix : <http://e/> .\n");
    for i in 0..5_000 {
        writeln!(text, ":s{i} :n {i} .").unwrap();
    }
    let store = Store::of_trig(&text);
    // With one thread, batches are as long as possible.
    let options = limited(256 << 20, Duration::from_secs(300)).with_threads(1);
    for template in [
        "SELECT * {?s :n ?o ⟪N×FILTER(?o!=9§)⟫}",
        "SELECT * {?s :n ?o FILTER(⟪N×(?o!=9§&&?s=§)¦||⟫)}",
    ] {
        let text = repeated(template, 4_000);
        let (cost, e) = run(&store, &text, &options);
        assert!(e.is_none(), "{e:?}");
        println!("{} bytes: {}…", cost.most, &text[..60]);
        assert!(cost.most < BESIDE / 2, "{} bytes", cost.most);
    }
}

/// The planner moves many conditions into the branches of a union only in part, or not at all; the rows must be the
/// same.
#[test]
fn conditions_above_and_inside_a_union_mean_the_same() {
    let _turn = turn();
    let store = store();
    // The values are 0 to 39, and the conditions exclude the first `m` of them.
    for (n, m) in [
        (1, 30),
        (7, 30),
        (700, 30),
        (30, 700),
        (300, 300),
        (3_000, 5),
    ] {
        let union = repeated("SELECT * {⟪N×{?s :n ?o}¦UNION⟫", n).replace(PREFIX, "");
        let text = repeated(&format!("{union} FILTER(⟪N×?o!=§¦&&⟫)}}"), m);
        let rows = store.db.query(&text).unwrap().solutions().len();
        assert_eq!(
            rows,
            n * 40_usize.saturating_sub(m),
            "{n} branches, {m} conditions"
        );
    }
}

#[test]
fn each_branch_of_a_wide_union_binds_its_own() {
    let _turn = turn();
    let store = store();
    let n = 150;
    let text = repeated("SELECT * {⟪N×{?x§ :n ?o}UNION{?y§ :n 3}¦UNION⟫}", n);
    let jindou::Answer::Solutions { variables, rows } = store.db.query(&text).unwrap() else {
        panic!("no solutions");
    };
    assert_eq!(variables.len(), 2 * n + 1);
    let mut bound = std::collections::BTreeMap::new();
    for row in &rows {
        let names = variables.iter().zip(row).filter(|(_, cell)| cell.is_some());
        let names: Vec<&str> = names.map(|(name, _)| name.as_str()).collect();
        *bound.entry(names).or_insert(0) += 1;
    }
    assert_eq!(bound.len(), 2 * n);
    for (names, times) in bound {
        match names[..] {
            [one] => assert!(one.starts_with('y') && times == 1, "{one}: {times}"),
            [a, b] => assert!((a == "o" || b == "o") && times == 40, "{a} {b}: {times}"),
            _ => panic!("{names:?}"),
        }
    }
}

/// Planning is far from done when the time limit is reached or the query is cancelled.
#[test]
fn deadlines_and_cancellation_end_long_texts() {
    let _turn = turn();
    let store = store();
    for (n, template) in [
        (
            15_000,
            "SELECT ?s {?s :a ?o} GROUP BY ?s HAVING⟪N×(COUNT(*)!=§)¦ ⟫",
        ),
        (60_000, "SELECT * {VALUES ?o {1 2} FILTER(⟪N×?o!=§¦&&⟫)}"),
        (
            15_000,
            "SELECT * { ⟪N×{?s :a ?o}¦UNION⟫ FILTER(⟪N×?o!=§¦&&⟫) }",
        ),
        (15_000, "SELECT * {⟪N×{?x§ :a ?o}¦UNION⟫}"),
        (3_750, "SELECT * {⟪N×{SELECT ?s{?s :a ?o}}⟫}"),
        (3_750, "SELECT * {⟪N×{{?s :a ?o}UNION{?s :b ?o}}⟫}"),
    ] {
        let text = repeated(template, n);
        let start = &text[..60];
        let time = Duration::from_secs(1);
        let c = cost(|| {
            let options = limited(1 << 30, time);
            match store.db.plan_uncached(&text, &options) {
                Ok(_) | Err(Error::Timeout(_)) => {}
                Err(e) => panic!("{start}: {e}"),
            }
        });
        // Dropping the text and the algebra takes further time, in proportion to their length.
        assert!(c.time < time + LATE, "{start}: {:?}", c.time);
        let cancel = CancelToken::new();
        let options = QueryOptions::default().with_cancel(cancel.clone());
        let other = std::thread::spawn(move || {
            std::thread::sleep(time);
            cancel.cancel();
        });
        let c = cost(|| match store.db.plan_uncached(&text, &options) {
            Ok(_) | Err(Error::Cancelled) => {}
            Err(e) => panic!("{start}: {e}"),
        });
        other.join().unwrap();
        assert!(c.time < time + LATE, "{start}: {:?}", c.time);
    }
}
