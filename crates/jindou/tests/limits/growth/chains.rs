//! Chains: texts of which each part depends on all parts before it.

use super::*;

/// How costs may grow if a chain becomes four times as long.
#[derive(Clone, Copy, PartialEq)]
enum Growth {
    /// Linear costs of planning and running.
    Even,
    /// Linear cost of planning. When running, each row of a part has a column for all parts before it, and each part
    /// holds a batch, so memory is proportional to the number of these cells, which is quadratic.
    Cells,
    /// As `Cells`. In addition, the planner tries groups of 32 to 64 patterns at ten positions each.
    Tried,
}
use Growth::{Cells, Even, Tried};

/// Texts whose parts follow each other in one group or one SELECT.
const CHAINS: [(Growth, &str); 3] = [
    (
        Even,
        "
        optionals that nothing matches: SELECT * {?s :a ?o ⟪N×OPTIONAL{?s :none ?x§}⟫} LIMIT 1
        constants bound: SELECT * {?s :a ?o ⟪N×BIND(§ AS ?x§)⟫} LIMIT 1
        functions bound: SELECT * {?s :a ?o ⟪N×BIND(STR(?o) AS ?x§)⟫} LIMIT 1
        values of the value before: SELECT * {?s :n ?o BIND(?o AS ⟪N×?x§) BIND(?x§+1 AS ⟫?last)} LIMIT 1
        columns of SELECT: SELECT ⟪N×(?o+§ AS ?x§)¦ ⟫{?s :n ?o} LIMIT 1
        keys of ORDER BY: SELECT * {?s :n ?o} ORDER BY ⟪N×(?o+§)¦ ⟫ LIMIT 1
        aggregates: SELECT ⟪N×(COUNT(?o) AS ?x§)¦ ⟫{?s :a ?o} LIMIT 1
        aggregates of values: SELECT ⟪N×(SUM(?o+§) AS ?x§)¦ ⟫{?s :n ?o} LIMIT 1
        paths: SELECT * {⟪N×?s :a+ ?x§¦.⟫} LIMIT 1
        differences: SELECT * {?s :a ?o ⟪N×MINUS{?s :none ?x§}⟫} LIMIT 1
        EXISTS: SELECT * {?s :a ?o ⟪N×FILTER EXISTS{?s :b ?x§}⟫} LIMIT 1
        EXISTS of a UNION under conditions: SELECT * {?s ?p ?o FILTER EXISTS {⟪N×{?s ?p ?o}¦UNION⟫ ⟪N×FILTER(?x§ != §)¦ ⟫}} LIMIT 1
        ",
    ),
    (
        Cells,
        "
        optionals: SELECT * {?s :a ?o ⟪N×OPTIONAL{?s :b ?x§}⟫} LIMIT 1
        optional unions: SELECT * {?s :a ?o ⟪N×OPTIONAL{{?s :b ?x§}UNION{?s :n ?x§}}⟫} LIMIT 1
        optionals with conditions: SELECT * {?s :a ?o ⟪N×OPTIONAL{?s :b ?x§ FILTER(?x§!=?o)}⟫} LIMIT 1
        sub-selects with a column each: SELECT * {⟪N×{SELECT ?s ?x§{?s :n ?x§}}⟫} LIMIT 1
        sub-selects of few rows: SELECT * {⟪N×{SELECT ?s ?x§{?s :n ?x§} LIMIT 3}⟫} LIMIT 1
        unions with a column each: SELECT * {⟪N×{{?s :n ?x§}UNION{?s :n ?x§}}⟫} LIMIT 1
        values: SELECT * {⟪N×VALUES ?x§{1}⟫} LIMIT 1
        ",
    ),
    (
        Tried,
        "
        patterns around one subject: SELECT * {⟪N×?s :n ?x§¦.⟫} LIMIT 1
        graphs: SELECT * {⟪N×GRAPH ?g§{?s :a ?o}⟫} LIMIT 1
        ",
    ),
];

fn chains() -> impl Iterator<Item = (Growth, &'static str, &'static str)> {
    CHAINS.into_iter().flat_map(|(growth, table)| {
        templates(table).map(move |(name, template)| (growth, name, template))
    })
}

/// Bytes that running a chain may allocate per cell. The first batches have 64 rows, since these queries need few rows.
const A_CELL: u64 = 512;

#[test]
fn chains_take_as_much_more() {
    let _turn = turn();
    let store = store();
    let n = 150;
    for (growth, name, template) in chains() {
        let [short, long] = [n, 4 * n].map(|n| costs(&store, name, &repeated(template, n)));
        let [planned, run] = [0, 1].map(|i| (short[i], long[i]));
        println!(
            "{name}: planning {} -> {} bytes, running {} -> {}",
            planned.0.bytes, planned.1.bytes, run.0.bytes, run.1.bytes
        );
        if growth == Tried {
            let (short, long) = planned;
            assert!(
                long.bytes < 12 * short.bytes + SOME,
                "planning {name}: {} bytes, then {}",
                short.bytes,
                long.bytes
            );
        } else {
            is_even(name, "planning", planned);
        }
        if growth == Even {
            is_even(name, "running", run);
        } else {
            let cells = (4 * n * 4 * n) as u64;
            assert!(
                run.1.bytes < A_CELL * cells + SOME,
                "running {name}: {} bytes for {cells} cells",
                run.1.bytes
            );
        }
    }
}

/// Chains about as long as the parser allows are answered, or exceed a limit, and do not overflow the stack.
#[test]
fn chains_as_long_as_they_may_be_fit_their_stacks() {
    let _turn = turn();
    let store = store();
    for (_, name, template) in chains() {
        for n in [600, 4_600] {
            let text = repeated(template, n);
            let options = limited(128 << 20, Duration::from_secs(2)).with_threads(4);
            let (cost, e) = run(&store, &text, &options);
            let why = e.map_or(String::new(), |e| e.to_string());
            println!("{name}, {n}: {:?}, {} bytes {why}", cost.time, cost.most);
            assert!(cost.most < (128 << 20) + BESIDE, "{name}: {}", cost.most);
        }
    }
}
