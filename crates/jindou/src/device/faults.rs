//! Tests of queries on a device with a fault: every call of the device, at any position, may be the one that fails.

use super::{Devices, GpuChoice};
use crate::default_graph::DefaultGraph;
use crate::execute::PlanExecution;
use crate::results::Collector;
use crate::{QueryOptions, Runtime};
use jindou_gpu::faults::{DeviceFault, DeviceFaults};
use jindou_gpu::shim::{Shim, ShimOptions};
use jindou_gpu::{Backend, Calibration, LazyGpu, Opener};
use jindou_model::{CancelToken, Error, MemoryBudget, Result};
use jindou_plan::{Plan, PlanOptions, Weight, parse, plan};
use jindou_store::Snapshot;
use jindou_store::testing::store_of;
use oxrdf::{GraphName, Literal, NamedNode, Quad};
use std::sync::Arc;
use std::time::Duration;

/// A runtime whose GPU is opened by `open`.
fn runtime(open: Opener) -> Runtime {
    let gpu = LazyGpu::with_opener(open, Duration::from_secs(60));
    // With these speeds every heavy plan runs on the device.
    Runtime::with_devices(Devices::with(vec![
        gpu.with_calibration(Calibration::ideal()),
    ]))
}

/// A ring of `n` nodes: `:p` leads to the next three nodes, `:q` to the seventh one, `:v` to the node's number.
pub(super) fn ring(n: u32) -> (tempfile::TempDir, Snapshot) {
    let iri = |name: String| NamedNode::new_unchecked(format!("http://e/{name}"));
    let mut quads = vec![];
    for i in 0..n {
        let mut add = |p: &str, object: oxrdf::Term| {
            let (s, p) = (iri(format!("n{i}")), iri(p.into()));
            quads.push(Quad::new(s, p, object, GraphName::DefaultGraph));
        };
        for d in 1..=3 {
            add("p", iri(format!("n{}", (i + d) % n)).into());
        }
        add("q", iri(format!("n{}", (i + 7) % n)).into());
        add("v", Literal::from(i64::from(i)).into());
    }
    let (folder, base) = store_of(&quads);
    (folder, Snapshot::of_base(base))
}

fn options(gpu: GpuChoice) -> QueryOptions {
    QueryOptions::default()
        .with_gpu(gpu)
        .with_threads(1)
        .with_memory(MemoryBudget::new(64 << 20))
}

/// The rows (or the boolean) of the answer as sorted text, and the number of rows reported.
fn answer(
    runtime: &Runtime,
    plan: &Plan,
    snapshot: &Snapshot,
    options: &QueryOptions,
) -> Result<(Vec<String>, u64)> {
    let mut sink = Collector::new(MemoryBudget::unlimited());
    let execution = PlanExecution {
        plan,
        snapshot,
        options: &runtime.settle(options),
        cancel: CancelToken::new(),
    };
    let (rows, _) = execution.into_sink(&DefaultGraph::Own, &mut sink)?;
    let answer = sink.into_answer();
    let mut lines: Vec<String> = match &answer {
        crate::Answer::Boolean(b) => vec![b.to_string()],
        other => other.solutions().iter().map(|r| format!("{r:?}")).collect(),
    };
    lines.sort_unstable();
    Ok((lines, rows))
}

const QUERIES: [&str; 12] = [
    // Two plans that run completely on the device or with their aggregation on the CPU; one whose last steps run on the
    // CPU; one with two explorations; and an ASK.
    "SELECT ?a ?b ?c { ?a :p ?b . ?b :p ?c . ?a :p ?c }",
    "SELECT ?b (COUNT(*) AS ?n) { ?a :p ?b . ?b :q ?c } GROUP BY ?b",
    "SELECT ?a ?d { ?a :p ?b . ?b :p ?c . ?c :q ?d FILTER(STR(?a) < STR(?d)) }",
    "SELECT ?a ?b { { ?a :p ?b . ?b :p ?c } UNION { ?a :q ?b . ?b :q ?c } }",
    "ASK { ?a :p ?b . ?b :q ?c }",
    // Plans whose aggregation or LIMIT runs on the device, and one of which only a part does.
    "SELECT ?b (SUM(?v) AS ?n) (COUNT(*) AS ?m) { ?a :p ?b . ?b :q ?c . ?c :v ?v } GROUP BY ?b",
    "SELECT ?a ?v { ?a :p ?b . ?b :v ?v } ORDER BY DESC(?v) ?a LIMIT 7",
    "SELECT ?x ?y { :n0 :p+ ?x . ?x :q ?y }",
    "SELECT (COUNT(DISTINCT ?c) AS ?n) { ?a :p ?b . ?b :p ?c . ?c :v ?v FILTER(?v > 11) }",
    "SELECT (COUNT(*) AS ?n) { { SELECT ?a { ?a :p ?b . ?b :q ?c } LIMIT 17 } }",
    "SELECT (COUNT(?c) AS ?n) { ?a :p ?b OPTIONAL { ?b :q ?c FILTER NOT EXISTS { ?c :q ?a } } }",
    "SELECT ?b (COUNT(?c) AS ?n) { ?a :p ?b FILTER EXISTS { ?a :v ?v FILTER(?v < 9) } OPTIONAL { ?b :q ?c } } GROUP BY ?b",
];

#[test]
fn a_fault_at_many_calls_leaves_the_answer_right_or_is_one_sentence() {
    faults(4);
}

#[test]
#[ignore = "half a minute; see docs/testing.md"]
fn a_fault_at_any_call_leaves_the_answer_right_or_is_one_sentence() {
    faults(1);
}

/// Injects a fault at every `every`-th call of the device. The first of these calls differs between queries and kinds
/// of faults, so that together they cover most positions.
fn faults(every: usize) {
    let (_folder, snapshot) = ring(30);
    let mut first = 0;
    let (mut runs, mut fell_back, mut said) = (0, 0, 0);
    for text in QUERIES {
        let text = format!("PREFIX : <http://e/> {text}");
        let parsed = parse(&text).unwrap();
        let mut plan = plan(&parsed, &snapshot, &PlanOptions::default()).unwrap();
        plan.weight = Weight::Heavy;
        let here = Runtime::default();
        let want = answer(&here, &plan, &snapshot, &options(GpuChoice::Off)).unwrap();
        assert!(!want.0.is_empty(), "{text}");
        // Opens a new device whose call number `at` fails; 0 means that none fails.
        let broken = |fault, at| {
            let shim = Arc::new(Shim::open(ShimOptions::default()).unwrap());
            let faults = Arc::new(DeviceFaults::new(shim.clone(), fault, at));
            let opened = faults.clone();
            let open = move || Ok(opened.clone() as Arc<dyn Backend>);
            (shim, faults, runtime(Box::new(open)))
        };
        let calls = {
            let (_, faults, device) = broken(DeviceFault::Error, 0);
            let got = answer(&device, &plan, &snapshot, &options(GpuChoice::On)).unwrap();
            assert_eq!(got, want, "{text}");
            faults.calls()
        };
        assert!(calls > 10, "{text}: {calls} calls");
        let mut cases = vec![];
        for fault in DeviceFault::ALL {
            cases.extend(
                (1 + first % every as u64..=calls)
                    .step_by(every)
                    .map(|at| (fault, at)),
            );
            first += 1;
        }
        for (fault, at) in cases {
            for choice in [GpuChoice::Auto, GpuChoice::On] {
                let case = format!("{text}: {fault:?} at call {at} of {calls}, {choice:?}");
                let (shim, faults, device) = broken(fault, at);
                let options = options(choice);
                // Waits until the device is open, or opening it has failed.
                let _ = device.devices().gpu(true);
                runs += 1;
                // The second run finds a device that works, or one that is known to be lost.
                for _ in 0..2 {
                    match answer(&device, &plan, &snapshot, &options) {
                        Ok(got) => assert_eq!(got, want, "{case}"),
                        Err(e) => {
                            assert_eq!(choice, GpuChoice::On, "{case}: {e}");
                            assert!(matches!(e, Error::Gpu(_)), "{case}: {e}");
                            let e = e.to_string();
                            assert!(!e.contains('\n') && !e.contains("report it"), "{case}: {e}");
                            said += 1;
                        }
                    }
                    let used = options.memory.as_ref().map(MemoryBudget::used);
                    assert_eq!(used, Some(0), "{case}");
                }
                fell_back += u32::from(choice == GpuChoice::Auto && faults.failure().is_some());
                drop((device, faults));
                let held = shim.holdings();
                assert_eq!((held.device, held.pinned, held.marks), (0, 0, 0), "{case}");
            }
        }
    }
    println!("{runs} runs, {fell_back} lost devices under auto, {said} sentences");
    assert!(fell_back > runs / 8 && said > runs / 4);
}

/// If the rows do not fit in the memory of the device or of the query, the CPU computes all of them.
#[test]
fn what_cannot_be_held_runs_on_the_cpu() {
    let (_folder, snapshot) = ring(300);
    let text = "PREFIX : <http://e/> SELECT ?a ?b { ?a :q ?x . ?b :q ?y }";
    let mut plan = plan(&parse(text).unwrap(), &snapshot, &PlanOptions::default()).unwrap();
    plan.weight = Weight::Heavy;
    let shim: Arc<dyn Backend> = Arc::new(Shim::open(ShimOptions::default()).unwrap());
    let runtime = runtime(Box::new(move || Ok(shim.clone())));
    assert!(runtime.devices().gpu(true).is_ok());
    for memory in [64 << 20, 500 << 10] {
        let options = options(GpuChoice::Auto)
            .with_memory(MemoryBudget::new(memory))
            .with_profile(true);
        let mut sink = Collector::new(MemoryBudget::unlimited());
        let execution = PlanExecution {
            plan: &plan,
            snapshot: &snapshot,
            options: &runtime.settle(&options),
            cancel: CancelToken::new(),
        };
        let (rows, m) = execution.into_sink(&DefaultGraph::Own, &mut sink).unwrap();
        assert_eq!(rows, 90_000);
        assert_eq!(sink.into_answer().solutions().len(), 90_000);
        // The ids take 720 kB, which only the larger budget allows.
        let here = m.text.contains("on the CPU: ");
        assert_eq!(here, memory < 1 << 20, "{}", m.text);
    }
}
