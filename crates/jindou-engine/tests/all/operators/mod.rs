//! Compares random operator trees with a model that computes each operator's definition row by row.

mod maker;
mod model;
mod world;

use crate::support::{Rng, spilling};
use jindou_engine::{CollectSink, ExecOptions, QueryTerms, TermDecoder, execute_streaming};
use jindou_plan::operator;
use jindou_plan::{Form, Operator, Plan, Slot, Weight};
use maker::Maker;
use model::Model;
use std::collections::BTreeSet;
use world::{Row, V, World};

fn plan_of(root: Operator, output: Vec<Slot>, world: &World, weight: Weight) -> Plan {
    let slots = output.iter().max().map_or(0, |m| *m as usize + 1);
    Plan {
        columns: vec![],
        form: Form::Select,
        slots: (0..slots).map(|s| format!("v{s}")).collect(),
        output,
        root,
        cost: 0.0,
        weight,
        validity: jindou_plan::Validity::for_snapshot(&world.snapshot),
        bytes: 0,
    }
}

fn run(world: &World, plan: &Plan, options: &ExecOptions) -> jindou_model::Result<Vec<Row>> {
    let terms = QueryTerms::new();
    let mut sink = CollectSink::default();
    execute_streaming(plan, &world.snapshot, options, &terms, &mut sink)?;
    let mut decoder = TermDecoder::new(&world.snapshot, &terms);
    Ok(sink
        .rows()
        .map(|r| {
            plan.output
                .iter()
                .zip(r)
                .filter(|c| *c.1 != 0)
                .map(|(s, &id)| {
                    let v = match decoder.term(id).unwrap().unwrap() {
                        oxrdf::Term::Literal(l) => match l.value() {
                            "true" => V::Truth(true),
                            "false" => V::Truth(false),
                            n => V::Number(n.parse().unwrap()),
                        },
                        _ => V::Id(id),
                    };
                    (*s, v)
                })
                .collect()
        })
        .collect())
}

/// Weight, threads, rows of a batch, and true to write what can be written to temporary files.
const WAYS: [(Weight, usize, usize, bool); 5] = [
    (Weight::Light, 1, 2048, false),
    (Weight::Light, 1, 16, false),
    (Weight::Heavy, 3, 16, false),
    (Weight::Light, 1, 16, true),
    (Weight::Heavy, 3, 16, true),
];

fn many(from: u64, to: u64) {
    let mut skipped = 0;
    for seed in from..to {
        let world = World::new(seed / 20);
        let mut maker = Maker {
            rng: Rng(seed ^ 0xABCD_EF01),
            world: &world,
            made: BTreeSet::new(),
            next: 9,
        };
        let depth = 1 + maker.rng.below(4);
        let (root, slots) = maker.tree(depth, None, false);
        let output: Vec<Slot> = slots.keys().copied().collect();
        if too_large(&root, &world) {
            skipped += 1;
            continue;
        }
        let mut want = Model { world: &world }.rows(&root, &Row::new());
        want.sort();
        for (weight, threads, batch_rows, spills) in WAYS {
            let options = spilling((threads, batch_rows), 64 << 20, spills);
            let plan = plan_of(root.clone(), output.clone(), &world, weight);
            let mut got = run(&world, &plan, &options)
                .unwrap_or_else(|e| panic!("seed {seed}: {e}\n{root:#?}"));
            got.sort();
            assert!(
                got == want,
                "seed {seed} threads {threads} batch {batch_rows} spills {spills}: got {} rows {:?}\nwant {} rows {:?}\n{root:#?}",
                got.len(),
                got.iter().take(20).collect::<Vec<_>>(),
                want.len(),
                want.iter().take(20).collect::<Vec<_>>(),
            );
            assert_eq!(options.memory.used(), 0, "seed {seed}");
        }
    }
    assert!(skipped * 2 < to - from, "{skipped} trees are too large");
}

/// True for products of products, for which the model would take too long: the engine itself returns too many rows.
fn too_large(root: &Operator, world: &World) -> bool {
    fn parts<'o>(op: &'o Operator, out: &mut Vec<&'o Operator>) {
        out.push(op);
        match op {
            Operator::Steps(operator::Steps { input, .. })
            | Operator::Path(operator::FollowPath { input, .. })
            | Operator::Filter(operator::Filter { input, .. })
            | Operator::Extend(operator::Extend { input, .. })
            | Operator::Group(operator::Group { input, .. })
            | Operator::Count(operator::GroupCount { input, .. })
            | Operator::Distinct(operator::Distinct { input, .. })
            | Operator::Apply(operator::Apply { input, .. }) => parts(input, out),
            Operator::Join(operator::Join { left, right, .. }) => {
                parts(left, out);
                parts(right, out);
            }
            Operator::Union(operator::Union { inputs: list }) => {
                list.iter().for_each(|i| parts(i, out))
            }
            _ => {}
        }
    }
    let mut all = vec![];
    parts(root, &mut all);
    all.iter().rev().any(|op| {
        let limited = Operator::Slice(operator::Slice {
            input: Box::new((*op).clone()),
            offset: 0,
            limit: Some(1500),
        });
        let plan = plan_of(limited, vec![], world, Weight::Light);
        let rows = run(world, &plan, &ExecOptions::default()).map_or(0, |r| r.len());
        rows >= 1500
    })
}

#[test]
fn random_trees_agree_with_the_model() {
    many(0, 400);
}

/// `cargo test --release -p jindou-engine --test all operators:: -- --ignored`
#[test]
#[ignore = "long: 60,000 trees"]
fn many_random_trees_agree_with_the_model() {
    let seed = jindou_testing::from_environment("JINDOU_SEED", 1_000_000);
    many(seed, seed + 60_000);
}
