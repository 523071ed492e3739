//! Explorations on the device that start at the ids listed by an index of terms: against the CPU's rows, and against
//! rows derived from the data's construction.

mod common;

use common::{device, edited, rows_here, rows_on};
use jindou_dictionary::index::Indexes;
use jindou_engine::{
    CollectSink, ExecOptions, Execution, Executor, ExecutorChoice, QueryTerms, Task, columns_after,
    execute_streaming,
};
use jindou_gpu::{GpuExecutor, GpuOptions};
use jindou_model::{Progress, VertexId};
use jindou_parse::{Format, Sources};
use jindou_plan::{
    Condition, Exploration, Operator, Plan, PlanOptions, StartSource, StepKind, Weight, explain,
    parse, plan,
};
use jindou_store::{LoadOptions, Snapshot, load};
use jindou_words::Words;
use std::fmt::Write as _;
use std::sync::Arc;

const NODES: u32 = 600;
/// One text in this many has the same word.
const WORDS: u32 = 50;

fn next(i: u32) -> u32 {
    (i * 7 + 1) % NODES
}

/// `n0` to `n599` with a text each, which contains the word of its number, and an edge to the next one.
fn store() -> (tempfile::TempDir, Snapshot) {
    let mut text = String::from("@prefix : <http://e/> .\n");
    for i in 0..NODES {
        writeln!(
            text,
            ":n{i} :text \"number {i} has word{} in it\" ; :next :n{} ; :kind :k{} .",
            i % WORDS,
            next(i),
            i % 3
        )
        .unwrap();
    }
    let sources = Sources::builder()
        .text("test.ttl", text.into_bytes(), Format::Turtle)
        .build()
        .unwrap();
    let indexes = Indexes::new().with(Words).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("store");
    let options = LoadOptions::default()
        .with_memory(64 << 20)
        .with_threads(2)
        .with_indexes(indexes.clone());
    load(&dir, &sources, &options, &Progress::default()).unwrap();
    let (base, _) = jindou_store::directory::open_at(&dir, &indexes).unwrap();
    (folder, Snapshot::of_base(base))
}

/// Terms with the word 7, the next of each, and the next one's kind.
const QUERY: &str = "PREFIX : <http://e/> SELECT ?s ?n ?k { ?s :text ?t ; :next ?n . ?n :kind ?k FILTER(CONTAINS(?t, \" word7 \")) }";

fn planned(snapshot: &Snapshot) -> Plan {
    let options = PlanOptions::default();
    let mut plan = plan(&parse(QUERY).unwrap(), snapshot, &options).unwrap();
    plan.weight = Weight::Heavy;
    plan
}

fn exploration(plan: &mut Plan) -> &mut Exploration {
    match &mut plan.root {
        Operator::Explore(e) => e,
        other => panic!("{}", other.name()),
    }
}

/// The expected rows, over these edges `:next`.
fn wanted(snapshot: &Snapshot, next: &dyn Fn(u32) -> Vec<u32>) -> Vec<Vec<u32>> {
    let id = |name: String| {
        let iri = oxrdf::NamedNode::new_unchecked(format!("http://e/{name}"));
        let VertexId(id) = snapshot
            .lookup(&jindou_model::term::encode(&iri.into()))
            .unwrap();
        id
    };
    let mut rows = vec![];
    for i in (7..NODES).step_by(WORDS as usize) {
        for n in next(i) {
            rows.push(vec![
                id(format!("n{i}")),
                id(format!("n{n}")),
                id(format!("k{}", n % 3)),
            ]);
        }
    }
    rows.sort_unstable();
    rows
}

fn compare(snapshot: &Snapshot, want: &[Vec<u32>]) {
    let mut plan = planned(snapshot);
    assert_eq!(rows_here(&plan, snapshot), want);
    let told = explain(&plan, snapshot);
    assert!(told.contains("is one by index words: 12 of"), "{told}");
    // The device does not read texts, so a plan whose start tests one is left to the CPU from there on.
    let (options, terms) = (ExecOptions::default(), QueryTerms::new());
    for seed in 0..3 {
        let gpu: Arc<dyn Executor> = Arc::new(GpuExecutor::new(device(seed)));
        for executor in [
            ExecutorChoice::Rather(Arc::clone(&gpu)),
            ExecutorChoice::Demanded(gpu),
        ] {
            let execution = Execution {
                plan: &plan,
                snapshot,
                options: &options,
                terms: &terms,
                executor: &executor,
            };
            let mut rows = CollectSink::default();
            execution.stream(&mut rows).unwrap();
            let mut rows: Vec<_> = rows.rows().map(<[u32]>::to_vec).collect();
            rows.sort_unstable();
            assert_eq!(rows, want);
            let (sum, ..) = execution.checksum().unwrap();
            assert_eq!(sum.rows, want.len() as u64);
        }
    }
    // Each text that the index lists has the word with spaces around it, so nothing need be tested: then all of it runs
    // on the device, which starts at the ids.
    let steps = &mut exploration(&mut plan).steps;
    let StepKind::Start { source, within, .. } = &steps[0].kind else {
        panic!("{:?}", steps[0].kind)
    };
    assert!(matches!(source, StartSource::IdFilter), "{source:?}");
    assert!(within.as_ref().is_some_and(|w| w.intervals.len() >= 2));
    let mut tests = 0;
    for step in steps.iter_mut() {
        step.filters.retain(|c| {
            let reads = matches!(c, Condition::General(_));
            tests += u32::from(reads);
            !reads
        });
    }
    assert_eq!(tests, 1);
    let steps = exploration(&mut plan).steps.clone();
    for seed in 0..3 {
        let gpu = GpuExecutor::new(device(seed));
        let task = |steps| Task {
            snapshot,
            steps,
            options: &options,
        };
        assert_eq!(gpu.prefix(&task(&steps)).unwrap(), steps.len());
        let rows = rows_on(&gpu, &plan, snapshot, &GpuOptions::default()).unwrap();
        assert_eq!(rows, want);
        // The rows of the start alone, as both have them.
        let mut start = plan.clone();
        start.output = columns_after(&[], &steps[..1], || Ok(())).unwrap();
        exploration(&mut start).steps.truncate(1);
        let (mut there, mut here) = (CollectSink::default(), CollectSink::default());
        let slots = gpu
            .stream(&task(&steps[..1]), &mut there, &mut Vec::new())
            .unwrap();
        execute_streaming(&start, snapshot, &options, &QueryTerms::new(), &mut here).unwrap();
        assert_eq!((there.rows, slots), (here.rows, start.output.clone()));
        assert!(there.rows >= 12);
    }
}

#[test]
fn the_device_starts_at_the_ids_of_an_index() {
    let (_folder, snapshot) = store();
    compare(&snapshot, &wanted(&snapshot, &|i| vec![next(i)]));
    // Edges added and removed by updates.
    let edits = [
        (7, "next", 8, true),
        (57, "next", next(57), false),
        (107, "next", 7, true),
        (1, "next", 7, true),
    ];
    let later = edited(&snapshot, &edits);
    let next = |i: u32| match i {
        7 => vec![next(7), 8],
        57 => vec![],
        107 => vec![next(107), 7],
        i => vec![next(i)],
    };
    compare(&later, &wanted(&later, &next));
}
