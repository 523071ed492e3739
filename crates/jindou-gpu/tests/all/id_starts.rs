//! Explorations on the device that start from a list of ids in a condition, scattered over the base. Compared with the
//! CPU's rows, and with rows computed from how the data was made.

use crate::common::{
    demanded, device, edited, ids_of, native, rather, ring, rows_here, rows_on, sorted,
};
use jindou_engine::{
    CollectSink, ExecOptions, Execution, Executor, QueryTerms, Task, columns_after,
};
use jindou_gpu::{GpuExecutor, GpuOptions};
use jindou_model::term;
use jindou_plan::{Exploration, Operator, Plan, StartSource, StepKind, Weight};
use jindou_store::Snapshot;
use std::sync::Arc;

const NODES: u32 = 600;

/// The numbers of the nodes that the query lists.
fn starts() -> impl Iterator<Item = u32> {
    (7..NODES).step_by(50)
}

/// For each node of a list: the next node along `:p`, and that node's neighbour by `:q`.
fn planned(snapshot: &Snapshot) -> Plan {
    let names: Vec<String> = starts().map(|i| format!(":n{i}")).collect();
    let text = format!(
        "SELECT ?s ?n ?k {{ ?s :p ?n . ?n :q ?k FILTER(?s IN ({})) }}",
        names.join(", ")
    );
    let mut plan = native(snapshot, &text);
    plan.weight = Weight::Heavy;
    plan
}

fn exploration(plan: &mut Plan) -> &mut Exploration {
    match &mut plan.root {
        Operator::Explore(e) => e,
        other => panic!("{}", other.name()),
    }
}

/// The expected rows if `next` returns the neighbours of a node by `:p`.
fn wanted(snapshot: &Snapshot, next: &dyn Fn(u32) -> Vec<u32>) -> Vec<Vec<u32>> {
    let id = |number: u32| {
        let iri = jindou_testing::named(&format!("n{}", number % NODES));
        snapshot.lookup(&term::encode(&iri.into())).unwrap().0
    };
    let rows = starts().flat_map(|i| next(i).into_iter().map(move |n| [i, n, n + 7]));
    sorted(rows.map(|row| row.map(id).to_vec()).collect())
}

fn compare(snapshot: &Snapshot, want: &[Vec<u32>]) {
    let mut plan = planned(snapshot);
    assert_eq!(rows_here(&plan, snapshot), want);
    let steps = exploration(&mut plan).steps.clone();
    let StepKind::Start { source, within, .. } = &steps[0].kind else {
        panic!("{:?}", steps[0].kind)
    };
    assert!(matches!(source, StartSource::IdFilter), "{source:?}");
    assert!(within.as_ref().is_some_and(|w| w.intervals.len() >= 2));
    let (options, terms) = (ExecOptions::default(), QueryTerms::new());
    for seed in 0..3 {
        let gpu = Arc::new(GpuExecutor::new(device(seed)));
        for executor in [rather(&gpu), demanded(&gpu)] {
            let execution = Execution {
                plan: &plan,
                snapshot,
                options: &options,
                terms: &terms,
                executor: &executor,
            };
            let mut rows = CollectSink::default();
            execution.stream(&mut rows).unwrap();
            assert_eq!(sorted(ids_of(&rows)), want);
            let (sum, ..) = execution.checksum().unwrap();
            assert_eq!(sum.rows, want.len() as u64);
        }
        let task = |steps| Task {
            snapshot,
            steps,
            options: &options,
        };
        assert_eq!(gpu.prefix(&task(&steps)).unwrap(), steps.len());
        let rows = rows_on(&gpu, &plan, snapshot, &GpuOptions::default()).unwrap();
        assert_eq!(rows, want);
        // The rows of the start alone, on the device and on the CPU.
        let mut start = plan.clone();
        start.output = columns_after(&[], &steps[..1], || Ok(())).unwrap();
        exploration(&mut start).steps.truncate(1);
        let mut there = CollectSink::default();
        let slots = gpu.stream(&task(&steps[..1]), &mut there, &mut Vec::new());
        assert_eq!(slots.unwrap(), start.output);
        assert_eq!(there.rows, rows_here(&start, snapshot).len());
        assert!(there.rows >= starts().count());
    }
}

#[test]
fn the_device_starts_at_the_ids_of_a_list() {
    let (_folder, snapshot) = ring(NODES, 1);
    compare(&snapshot, &wanted(&snapshot, &|i| vec![i + 1]));
    // Edges added and removed by updates.
    let edits = [
        (7, "p", 100, true),
        (57, "p", 58, false),
        (107, "p", 7, true),
        (1, "p", 7, true),
    ];
    let later = edited(&snapshot, &edits);
    let next = |i: u32| match i {
        7 => vec![8, 100],
        57 => vec![],
        107 => vec![108, 7],
        i => vec![i + 1],
    };
    compare(&later, &wanted(&later, &next));
}
