//! Rows per second of single operators over a made-up graph: `operator_bench [--vertices N] [--threads T] [--repeat R] [NAME…]`.
//!
//! The floor of an operator is what making its input alone takes (`scan`), which is subtracted in the last column: the
//! nanoseconds that the operator adds to each input row.

use jindou_engine::{CountSink, ExecOptions, QueryTerms, execute_streaming};
use jindou_plan::operator;
use jindou_plan::{
    Aggregate, AggregateFunction, Cell, Form, JoinKey, JoinKind, Operator, Plan, PlanOptions, Slot,
    Weight, parse, plan,
};
use jindou_store::Snapshot;
use jindou_store::testing::store_of;
use oxrdf::{GraphName, NamedNode, Quad};
use std::time::{Duration, Instant};

/// Edges a vertex.
const DEGREE: usize = 5;

fn main() {
    if let Err(e) = run() {
        eprintln!("{e}");
        std::process::exit(1);
    }
}

/// `from` –p→ `to` in random order, and each vertex in one of 20 groups.
fn graph(vertices: usize) -> (tempfile::TempDir, Snapshot) {
    let node = |i: usize| NamedNode::new_unchecked(format!("http://e/n{i}"));
    let iri = |s: &str| NamedNode::new_unchecked(format!("http://e/{s}"));
    let mut seed = 1u64;
    let mut random = move |n: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) as usize % n
    };
    let mut quads = Vec::with_capacity(vertices * (DEGREE + 1));
    for i in 0..vertices {
        for _ in 0..DEGREE {
            let to = node(random(vertices));
            quads.push(Quad::new(node(i), iri("p"), to, GraphName::DefaultGraph));
        }
        let group = iri(&format!("g{}", random(20)));
        quads.push(Quad::new(
            node(i),
            iri("in"),
            group,
            GraphName::DefaultGraph,
        ));
    }
    let (folder, base) = store_of(&quads);
    (folder, Snapshot::of_base(base))
}

fn run() -> jindou_model::Result<()> {
    let mut args = std::env::args().skip(1);
    let (mut vertices, mut threads, mut repeat, mut names) = (200_000, 1, 5, Vec::new());
    while let Some(a) = args.next() {
        let mut number = |d: usize| args.next().and_then(|t| t.parse().ok()).unwrap_or(d);
        match a.as_str() {
            "--vertices" => vertices = number(vertices),
            "--threads" => threads = number(threads),
            "--repeat" => repeat = number(repeat),
            _ => names.push(a),
        }
    }
    let (_folder, snapshot) = graph(vertices);
    // Slots are given by hand: 0 and 1 of one pattern, 0 and 2 (or 1 and 2) of another.
    let pattern = |text: &str, slots: [Slot; 2]| -> jindou_model::Result<Operator> {
        let query = parse(&format!("PREFIX : <http://e/> SELECT ?a ?b {{ {text} }}"))?;
        let p = plan(&query, &snapshot, &PlanOptions::default())?;
        Ok(renamed(p, slots))
    };
    let edges = || pattern("?a :p ?b", [0, 1]);
    let more = || pattern("?a :p ?b", [1, 2]);
    let groups = || pattern("?a :in ?b", [0, 3]);
    let one = |slot: Slot| {
        Operator::Values(operator::Values {
            slots: vec![slot],
            rows: vec![vec![Cell::Id(1)]],
        })
    };
    let join = |kind, left, right, slot| {
        Operator::Join(operator::Join {
            kind,
            left: Box::new(left),
            right: Box::new(right),
            on: vec![JoinKey {
                slot,
                left_bound: true,
                right_bound: true,
            }],
            condition: None,
            matches: vec![],
            either: vec![],
        })
    };
    let group = |input, by: Vec<Slot>, function| {
        Operator::Group(operator::Group {
            input: Box::new(input),
            by,
            aggregates: vec![Aggregate {
                to: 9,
                function,
                of: Some(0),
                distinct: false,
                row: vec![],
            }],
        })
    };
    let sorted = |by: Slot| -> jindou_model::Result<Operator> {
        Ok(Operator::OrderBy(operator::OrderBy {
            input: Box::new(edges()?),
            keys: vec![(by, false), (0, true)],
        }))
    };
    let cases: Vec<(&str, usize, Operator)> = vec![
        ("scan", DEGREE, edges()?),
        (
            "join build",
            DEGREE,
            join(JoinKind::Inner, one(1), edges()?, 1),
        ),
        (
            "join probe, few",
            DEGREE,
            join(JoinKind::Inner, edges()?, one(1), 1),
        ),
        (
            "join probe, unique keys",
            DEGREE,
            join(JoinKind::Inner, edges()?, groups()?, 0),
        ),
        (
            "join many to many",
            DEGREE,
            join(JoinKind::Inner, edges()?, more()?, 1),
        ),
        (
            "left join",
            DEGREE,
            join(JoinKind::Left, edges()?, groups()?, 0),
        ),
        (
            "semi join",
            DEGREE,
            join(JoinKind::Semi, edges()?, more()?, 1),
        ),
        (
            "minus",
            DEGREE,
            join(JoinKind::Minus, edges()?, groups()?, 0),
        ),
        (
            "union",
            2 * DEGREE,
            Operator::Union(operator::Union {
                inputs: vec![edges()?, more()?],
            }),
        ),
        (
            "distinct, one column",
            DEGREE,
            Operator::Distinct(operator::Distinct {
                input: Box::new(edges()?),
                slots: vec![1],
            }),
        ),
        (
            "distinct, two columns",
            DEGREE,
            Operator::Distinct(operator::Distinct {
                input: Box::new(edges()?),
                slots: vec![0, 1],
            }),
        ),
        (
            "group, few",
            1,
            group(groups()?, vec![3], AggregateFunction::Count),
        ),
        (
            "group, many",
            DEGREE,
            group(edges()?, vec![1], AggregateFunction::Count),
        ),
        (
            "group, pairs",
            DEGREE,
            group(edges()?, vec![0, 1], AggregateFunction::Count),
        ),
        (
            "group, one",
            DEGREE,
            group(edges()?, vec![], AggregateFunction::Count),
        ),
        ("order by", DEGREE, sorted(1)?),
        (
            "top 10",
            DEGREE,
            Operator::Slice(operator::Slice {
                input: Box::new(sorted(1)?),
                offset: 0,
                limit: Some(10),
            }),
        ),
    ];
    println!(
        "{:<24} {:>10} {:>10} {:>9} {:>9} {:>9}",
        "operator", "rows in", "rows out", "min ms", "M rows/s", "own ns"
    );
    let mut floor = 0.0;
    for (name, a_vertex, root) in cases {
        if !names.is_empty()
            && !names.iter().any(|n| name.starts_with(n.as_str()))
            && name != "scan"
        {
            continue;
        }
        let rows_in = a_vertex * vertices;
        let output = vec![0, 1, 2, 3, 9];
        let plan = Plan {
            columns: vec![],
            form: Form::Select,
            slots: (0..10).map(|s| format!("v{s}")).collect(),
            output,
            root,
            cost: 0.0,
            weight: if threads > 1 {
                Weight::Heavy
            } else {
                Weight::Light
            },
            validity: jindou_plan::Validity::for_snapshot(&snapshot),
            bytes: 0,
        };
        let options = ExecOptions {
            threads,
            ..ExecOptions::default()
        };
        let mut best = Duration::MAX;
        let mut rows = 0;
        for _ in 0..repeat {
            let mut sink = CountSink::default();
            let clock = Instant::now();
            execute_streaming(&plan, &snapshot, &options, &QueryTerms::new(), &mut sink)?;
            best = best.min(clock.elapsed());
            rows = sink.rows;
        }
        let ns = best.as_secs_f64() * 1e9 / rows_in as f64;
        if name == "scan" {
            floor = ns;
        }
        println!(
            "{name:<24} {rows_in:>10} {rows:>10} {:>9.2} {:>9.1} {:>9.1}",
            best.as_secs_f64() * 1e3,
            1e3 / ns,
            ns - floor
        );
    }
    Ok(())
}

/// A plan's operators with other slots for its two columns.
fn renamed(plan: Plan, to: [Slot; 2]) -> Operator {
    use jindou_plan::{Operand, StepKind};
    let old = plan.output.clone();
    let new = |s: Slot| {
        old.iter()
            .position(|o| *o == s)
            .map_or(s + 100, |at| to[at])
    };
    let Operator::Explore(mut e) = plan.root.clone() else {
        panic!("a pattern is an exploration")
    };
    for step in &mut e.steps {
        step.live = step.live.iter().map(|s| new(*s)).collect();
        match &mut step.kind {
            StepKind::Start { to, .. } => *to = to.map(new),
            StepKind::Expand { to, lists, .. } => {
                *to = new(*to);
                for l in lists {
                    if let Operand::Slot(s) = &mut l.anchor {
                        *s = new(*s);
                    }
                }
            }
            other => panic!("a pattern has no {other:?}"),
        }
    }
    Operator::Explore(e)
}
