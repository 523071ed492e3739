//! All memory of a query is charged to its budget: random queries are parsed, planned and run while an allocator counts
//! all allocated bytes, and the budget must have been charged for them.
//!
//! `JINDOU_COUNT` sets the number of texts, `JINDOU_SEED` the seed.

use jindou::testing::Store;
use jindou::{Database, MemoryBudget, QueryOptions};
use jindou_testing::{Rng, counted, from_environment, turn};
use std::fmt::Write as _;
use std::time::Duration;

/// Bytes that a thread allocates before it charges them to its scope, and that are allocated before the scope exists.
const UNTOLD: isize = 72 << 10;

/// A random query text with many constructs that are deep, wide, long or repeated.
fn text(rng: &mut Rng, quads: &[oxrdf::Quad]) -> String {
    let part = |rng: &mut Rng| loop {
        let query = jindou_testing::query(rng, quads).text;
        if query.starts_with("SELECT") {
            return format!("{{ {query} }}");
        }
    };
    let most = 4 << rng.below(7);
    let n = 1 + rng.below(most);
    let list = |unit: &str, between: &str| {
        let units: Vec<String> = (0..n).map(|i| unit.replace('#', &i.to_string())).collect();
        units.join(between)
    };
    let long = "a".repeat(1 << rng.below(14));
    let body = match rng.below(14) {
        0 => (0..n.min(60))
            .map(|_| part(rng))
            .collect::<Vec<_>>()
            .join(" UNION "),
        1 => list("{ ?s ?p ?o# }", " UNION "),
        2 => format!("?s ?p ?o {}", list("FILTER(?o != #)", " ")),
        3 => format!("?s ?p ?o FILTER({})", list("(?o != # && ?s = #)", " || ")),
        4 => format!("VALUES (?a ?b) {{ {} }} ?a ?p ?b", list("(# \"x#\")", " ")),
        5 => format!("?s {} ?o", list("<http://e/p#>", "|")),
        6 => format!("?s ({})+ ?o", list("<http://e/p#>", "/")),
        7 => format!("?s ?p ?o FILTER(?o IN ({}))", list("\"#\"", ", ")),
        8 => list("?s <http://e/{long}#> ?o#", " . ").replace("{long}", &long),
        9 => format!("?s ?p ?o {}", list("OPTIONAL { ?s ?q# ?o# }", " ")),
        10 => format!(
            "?s ?p ?o {}",
            list("BIND(CONCAT(STR(?o), \"#\") AS ?b#)", " ")
        ),
        11 => format!(
            "{}?s ?p ?o{}",
            "{ ".repeat(n.min(100)),
            " }".repeat(n.min(100))
        ),
        12 => format!(
            "?s ?p ?o {}",
            list("FILTER EXISTS { ?s ?q# ?o FILTER(?o > #) }", " ")
        ),
        _ => format!("?s ?p ?o MINUS {{ {} }}", part(rng)),
    };
    match rng.below(6) {
        0 => format!(
            "CONSTRUCT {{ {} }} {{ {body} }}",
            list("?s <http://e/q#> ?o", " . ")
        ),
        1 => format!("SELECT DISTINCT * {{ {body} }} LIMIT 10"),
        2 => format!(
            "SELECT ?s (COUNT(*) AS ?n) {{ {body} }} GROUP BY ?s HAVING(?n > 1) ORDER BY ?s"
        ),
        3 => format!("DESCRIBE ?s {{ {body} }}"),
        _ => format!("SELECT * {{ {body} }}"),
    }
}

fn graph(rng: &mut Rng) -> (Vec<oxrdf::Quad>, Database) {
    let quads = jindou_testing::quads(rng);
    let mut data = String::new();
    for q in &quads {
        let graph = match &q.graph_name {
            oxrdf::GraphName::DefaultGraph => String::new(),
            name => name.to_string(),
        };
        writeln!(
            data,
            "{graph} {{ {} {} {} }}",
            q.subject, q.predicate, q.object
        )
        .unwrap();
    }
    let store = Store::of_trig(&data);
    (quads, store.db)
}

/// Runs a function on a stack as large as that of the server's threads.
fn on_a_server_s_stack(run: fn()) {
    let thread = std::thread::Builder::new().stack_size(64 << 20);
    thread.spawn(run).unwrap().join().unwrap();
}

#[test]
fn what_reading_and_planning_take_is_charged() {
    on_a_server_s_stack(plan_many);
}

fn plan_many() {
    let _turn = turn();
    let mut rng = Rng::new(from_environment("JINDOU_SEED", 1));
    let (quads, db) = graph(&mut rng);
    let (mut large, mut worst) = (0, isize::MIN);
    for case in 0..from_environment("JINDOU_COUNT", 250) {
        let text = text(&mut rng, &quads);
        let limit = if rng.chance(20) { 1 << 20 } else { 1 << 30 };
        let budget = MemoryBudget::new(limit);
        let options = QueryOptions::default()
            .with_memory(budget.clone())
            .with_timeout(Duration::from_secs(60));
        let (planned, taken) = counted(|| db.plan_uncached(&text, &options));
        let (most, kept) = (taken.most as isize, taken.kept);
        let shown = &text[..text.len().min(300)];
        let charged = budget.peak() as isize;
        worst = worst.max(most - charged);
        assert!(
            most <= charged + UNTOLD,
            "case {case}: {most} of {charged}: {shown}"
        );
        large += usize::from(most > 2 * UNTOLD);
        if let Ok(planned) = &planned {
            assert_eq!(budget.used(), planned.charged(), "case {case}: {shown}");
            assert!(
                kept <= budget.used() as isize + (4 << 10),
                "case {case}: {kept} of {}: {shown}",
                budget.used()
            );
        }
        drop(planned);
        assert_eq!(budget.used(), 0, "case {case}: {shown}");
    }
    assert!(large > 10, "{large} large ones, at worst {worst} uncharged");
}

#[test]
fn what_running_takes_is_charged() {
    on_a_server_s_stack(run_many);
}

fn run_many() {
    let _turn = turn();
    let mut rng = Rng::new(from_environment("JINDOU_SEED", 1));
    let (quads, db) = graph(&mut rng);
    let mut large = 0;
    for case in 0..from_environment("JINDOU_COUNT", 250) {
        let text = text(&mut rng, &quads);
        let planning = QueryOptions::default().with_timeout(Duration::from_secs(5));
        let Ok(planned) = db.plan_uncached(&text, &planning) else {
            continue;
        };
        let threads = rng.one(&[1, 1, 3]);
        let limit = rng.one(&[256 << 10, 2 << 20, 1 << 30]);
        let budget = MemoryBudget::new(limit);
        let options = QueryOptions::default()
            .with_memory(budget.clone())
            .with_threads(threads)
            .with_timeout(Duration::from_millis(500));
        let (_, taken) = counted(|| db.checksum(&planned, &options));
        let most = taken.most as isize;
        let shown = &text[..text.len().min(300)];
        let charged = budget.peak() as isize;
        let untold = UNTOLD * threads as isize;
        assert!(
            most <= charged + untold,
            "case {case}: {most} of {charged}, {threads} threads: {shown}"
        );
        large += usize::from(most > untold);
        drop(planned);
        assert_eq!(budget.used(), 0, "case {case}: {shown}");
    }
    assert!(large > 10, "{large} large ones");
}
