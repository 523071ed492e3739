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
const CHAINS: [(&str, Growth, Make); 21] = [
    ("optionals", Cells, |n| {
        repeat(
            "SELECT * {?s :a ?o ",
            "OPTIONAL{?s :b ?x#}",
            "",
            "} LIMIT 1",
            n,
        )
    }),
    ("optionals that nothing matches", Even, |n| {
        repeat(
            "SELECT * {?s :a ?o ",
            "OPTIONAL{?s :none ?x#}",
            "",
            "} LIMIT 1",
            n,
        )
    }),
    ("optional unions", Cells, |n| {
        let unit = "OPTIONAL{{?s :b ?x#}UNION{?s :n ?x#}}";
        repeat("SELECT * {?s :a ?o ", unit, "", "} LIMIT 1", n)
    }),
    ("optionals with conditions", Cells, |n| {
        let unit = "OPTIONAL{?s :b ?x# FILTER(?x#!=?o)}";
        repeat("SELECT * {?s :a ?o ", unit, "", "} LIMIT 1", n)
    }),
    ("constants bound", Even, |n| {
        repeat("SELECT * {?s :a ?o ", "BIND(# AS ?x#)", "", "} LIMIT 1", n)
    }),
    ("functions bound", Even, |n| {
        repeat(
            "SELECT * {?s :a ?o ",
            "BIND(STR(?o) AS ?x#)",
            "",
            "} LIMIT 1",
            n,
        )
    }),
    ("values of the value before", Even, |n| {
        let mut text = String::from("SELECT * {?s :n ?x0 ");
        for i in 0..n {
            write!(text, "BIND(?x{i}+1 AS ?x{})", i + 1).unwrap();
        }
        text + "} LIMIT 1"
    }),
    ("columns of SELECT", Even, |n| {
        repeat("SELECT ", "(?o+# AS ?x#)", " ", "{?s :n ?o} LIMIT 1", n)
    }),
    ("keys of ORDER BY", Even, |n| {
        repeat(
            "SELECT * {?s :n ?o} ORDER BY ",
            "(?o+#)",
            " ",
            " LIMIT 1",
            n,
        )
    }),
    ("aggregates", Even, |n| {
        repeat(
            "SELECT ",
            "(COUNT(?o) AS ?x#)",
            " ",
            "{?s :a ?o} LIMIT 1",
            n,
        )
    }),
    ("aggregates of values", Even, |n| {
        repeat(
            "SELECT ",
            "(SUM(?o+#) AS ?x#)",
            " ",
            "{?s :n ?o} LIMIT 1",
            n,
        )
    }),
    ("sub-selects with a column each", Cells, |n| {
        let unit = "{SELECT ?s ?x#{?s :n ?x#}}";
        repeat("SELECT * {", unit, "", "} LIMIT 1", n)
    }),
    ("sub-selects of few rows", Cells, |n| {
        let unit = "{SELECT ?s ?x#{?s :n ?x#} LIMIT 3}";
        repeat("SELECT * {", unit, "", "} LIMIT 1", n)
    }),
    ("patterns around one subject", Tried, |n| {
        repeat("SELECT * {", "?s :n ?x#", ".", "} LIMIT 1", n)
    }),
    ("unions with a column each", Cells, |n| {
        let unit = "{{?s :n ?x#}UNION{?s :n ?x#}}";
        repeat("SELECT * {", unit, "", "} LIMIT 1", n)
    }),
    ("graphs", Tried, |n| {
        repeat("SELECT * {", "GRAPH ?g#{?s :a ?o}", "", "} LIMIT 1", n)
    }),
    ("paths", Even, |n| {
        repeat("SELECT * {", "?s :a+ ?x#", ".", "} LIMIT 1", n)
    }),
    ("differences", Even, |n| {
        repeat(
            "SELECT * {?s :a ?o ",
            "MINUS{?s :none ?x#}",
            "",
            "} LIMIT 1",
            n,
        )
    }),
    ("EXISTS", Even, |n| {
        repeat(
            "SELECT * {?s :a ?o ",
            "FILTER EXISTS{?s :b ?x#}",
            "",
            "} LIMIT 1",
            n,
        )
    }),
    ("EXISTS of a UNION under conditions", Even, |n| {
        let branches = repeat("{", "{?s ?p ?o}", "UNION", "", n);
        let conditions = repeat("", "FILTER(?x# != #)", " ", "}", n);
        format!("SELECT * {{?s ?p ?o FILTER EXISTS {branches} {conditions}}} LIMIT 1")
    }),
    ("values", Cells, |n| {
        repeat("SELECT * {", "VALUES ?x#{1}", "", "} LIMIT 1", n)
    }),
];

/// Bytes that running a chain may allocate per cell. The first batches have 64 rows, since these queries need few rows.
const A_CELL: u64 = 512;

#[test]
fn chains_take_as_much_more() {
    let _turn = turn();
    let store = store();
    let n = 150;
    for (name, growth, make) in CHAINS {
        let [short, long] = [n, 4 * n].map(|n| {
            let text = format!("{PREFIX}{}", make(n));
            costs(&store, name, &text)
        });
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
    for (name, _, make) in CHAINS {
        for n in [600, 4_600] {
            let text = format!("{PREFIX}{}", make(n));
            let options = limited(128 << 20, Duration::from_secs(2)).with_threads(4);
            let (cost, e) = run(&store, &text, &options);
            let why = e.map_or(String::new(), |e| e.to_string());
            println!("{name}, {n}: {:?}, {} bytes {why}", cost.time, cost.most);
            assert!(cost.most < (128 << 20) + BESIDE, "{name}: {}", cost.most);
        }
    }
}
