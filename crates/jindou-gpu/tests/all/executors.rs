//! The executor interface: the first steps of a plan run on the device, and the CPU runs the rest of the plan over
//! their rows.

use crate::common::{device, ids_of, native, ring, rows_here, sorted, streamed};
use jindou_engine::{
    CollectSink, ExecOptions, Executor, ExecutorChoice, QueryTerms, Task, columns_after, execute_on,
};
use jindou_gpu::GpuExecutor;
use jindou_model::{CancelToken, Error, VertexId};
use jindou_plan::{Exploration, Operator, Plan, Step};
use jindou_store::Snapshot;

const QUERIES: [&str; 5] = [
    "SELECT ?a ?b ?c WHERE { ?a :p ?b . ?b :p ?c . ?a :p ?c }",
    "SELECT ?a ?b ?c WHERE { ?a :p ?b . ?b ?x ?c . ?c :q ?d }",
    "SELECT ?x ?a ?y WHERE { :n7 ?x ?a . ?a ?y ?b }",
    "SELECT ?s ?p ?o WHERE { ?s ?p ?o }",
    "SELECT ?a ?c WHERE { ?a :p ?b . ?b :q ?c FILTER(?c != :n3 && ?c != ?b) }",
];

fn task<'a>(snapshot: &'a Snapshot, steps: &'a [Step], options: &'a ExecOptions) -> Task<'a> {
    Task {
        snapshot,
        steps,
        options,
    }
}

/// A plan that consists of the first steps of another plan and returns all of their columns.
fn first_steps(plan: &Plan, steps: usize) -> Plan {
    let steps = plan.exploration().unwrap().steps[..steps].to_vec();
    let mut first = plan.clone();
    first.output = columns_after(&[], &steps, || Ok(())).unwrap();
    first.root = Operator::Explore(Exploration { steps, empty: None });
    first
}

#[test]
fn any_first_steps_give_the_cpus_rows() {
    let (_folder, snapshot) = ring(60, 5);
    let gpu = GpuExecutor::new(device(3));
    let options = ExecOptions {
        batch_rows: 32,
        ..ExecOptions::default()
    };
    for text in QUERIES {
        let plan = native(&snapshot, text);
        let steps = &plan.exploration().unwrap().steps;
        let task = |n: usize| task(&snapshot, &steps[..n], &options);
        assert_eq!(gpu.prefix(&task(steps.len())).unwrap(), steps.len());
        for n in 1..=steps.len() {
            let here = first_steps(&plan, n);
            let want = rows_here(&here, &snapshot);
            let (mut rows, mut profile) = (CollectSink::default(), Vec::new());
            let slots = gpu.stream(&task(n), &mut rows, &mut profile);
            assert_eq!(slots.unwrap(), here.output, "{text}, {n} steps");
            assert_eq!(profile.len(), n);
            assert!(!want.is_empty(), "{text}, {n} steps");
            assert_eq!(sorted(ids_of(&rows)), want, "{text}, {n} steps");
        }
    }
    assert_eq!(options.memory.used(), 0);
}

/// Operators above the exploration, and conditions that the device does not support, run on the CPU over the device's
/// rows.
#[test]
fn what_the_device_does_not_do_runs_on_the_cpu_over_its_rows() {
    let (_folder, snapshot) = ring(60, 5);
    let gpu = GpuExecutor::new(device(0));
    let mut mixed = 0;
    let options = ExecOptions {
        profile: true,
        ..ExecOptions::default()
    };
    for text in [
        "SELECT (COUNT(*) AS ?n) WHERE { ?a :p ?b . ?b :q ?c }",
        "SELECT DISTINCT ?c WHERE { ?a :p ?b . ?b :q ?c }",
        "SELECT ?b ?v WHERE { ?a :p ?b . ?b :v ?v } ORDER BY DESC(?v) ?b LIMIT 7",
        "SELECT ?a ?x WHERE { ?a :p ?b . ?b ?x ?c . ?c :v ?v FILTER(?v != 40) }",
        "SELECT ?a WHERE { ?a :p ?b . ?b :v ?v FILTER(STRLEN(STR(?v)) = 1) . ?b :q ?c }",
        "ASK { ?a :p ?b . ?b :p ?c . ?a :p ?c }",
    ] {
        let (ordered, all_there) = (text.contains("ORDER"), !text.contains("FILTER"));
        let plan = native(&snapshot, text);
        let (want, _, _) = streamed(&plan, &snapshot, &ExecutorChoice::Here);
        let (terms, mut got) = (QueryTerms::new(), CollectSink::default());
        let profile = match execute_on(&plan, &snapshot, &options, &terms, &gpu, &mut got) {
            Ok(p) => p,
            Err(Error::Unsupported(why)) if !all_there => {
                println!("{text}: {why}");
                continue;
            }
            Err(e) => panic!("{text}: {e}"),
        };
        let steps = plan.exploration().unwrap().steps.len();
        let (place, there) = profile.offloaded().unwrap();
        assert_eq!(place, gpu.device().name());
        assert!(there == steps || !all_there, "{text}: {there} of {steps}");
        assert_eq!(profile.steps().len(), steps);
        // A start may be a column that exists on the device already, so that nothing is written.
        let written: u64 = profile.steps()[..there].iter().map(|s| s.written).sum();
        assert!(profile.steps()[0].rows_out > 0 && written > 0, "{text}");
        mixed += u32::from(there < steps);
        if ordered {
            assert_eq!(ids_of(&got), ids_of(&want), "{text}");
        } else if plan.is_ask() {
            assert_eq!(got.rows, want.rows, "{text}");
        } else if text.contains("COUNT") {
            // There are 5 edges `:p` for each of 60 nodes, and after each one edge `:q`.
            let mut bytes = vec![];
            terms.term(VertexId(got.ids[0]), &mut bytes);
            let text = String::from_utf8_lossy(&bytes);
            assert!(got.rows == 1 && text.contains("300"), "{text}");
        } else {
            assert_eq!(sorted(ids_of(&got)), sorted(ids_of(&want)), "{text}");
        }
    }
    assert!(mixed > 0, "no plan was split");
}

#[test]
fn cancelled_steps_are_not_run() {
    let (_folder, snapshot) = ring(20, 3);
    let gpu = GpuExecutor::new(device(0));
    let plan = native(&snapshot, QUERIES[0]);
    let steps = &plan.exploration().unwrap().steps;
    let cancel = CancelToken::new();
    cancel.cancel();
    let cancelled = ExecOptions {
        cancel,
        ..ExecOptions::default()
    };
    let all = task(&snapshot, steps, &cancelled);
    let ran = gpu.stream(&all, &mut CollectSink::default(), &mut Vec::new());
    assert!(matches!(ran, Err(Error::Cancelled)));
}
