//! The executor boundary: a plan's steps on the device, on the CPU, and handed over between the two at any step.

mod common;

use common::{ring, shim};
use jindou_engine::{
    CollectSink, CpuExecutor, ExecOptions, Executor, QueryTerms, Table, Task, execute_on,
    execute_streaming,
};
use jindou_gpu::GpuExecutor;
use jindou_model::{CancelToken, Error, VertexId};
use jindou_plan::{Plan, PlanOptions, Step, parse, plan};
use jindou_store::Snapshot;

const QUERIES: [&str; 5] = [
    "SELECT ?a ?b ?c WHERE { ?a :p ?b . ?b :p ?c . ?a :p ?c }",
    "SELECT ?a ?b ?c WHERE { ?a :p ?b . ?b ?x ?c . ?c :q ?d }",
    "SELECT ?x ?a ?y WHERE { :n7 ?x ?a . ?a ?y ?b }",
    "SELECT ?s ?p ?o WHERE { ?s ?p ?o }",
    "SELECT ?a ?c WHERE { ?a :p ?b . ?b :q ?c FILTER(?c != :n3 && ?c != ?b) }",
];

fn native(snapshot: &Snapshot, text: &str) -> Plan {
    let text = format!("PREFIX : <http://e/> {text}");
    plan(&parse(&text).unwrap(), snapshot, &PlanOptions::default()).unwrap()
}

fn task<'a>(snapshot: &'a Snapshot, steps: &'a [Step], options: &'a ExecOptions) -> Task<'a> {
    Task {
        snapshot,
        steps,
        options,
    }
}

/// The rows in the plan's columns, sorted.
fn sorted(rows: &CollectSink, order: &[usize]) -> Vec<Vec<u32>> {
    let mut out: Vec<Vec<u32>> = rows
        .rows()
        .map(|r| order.iter().map(|&c| r[c]).collect())
        .collect();
    out.sort_unstable();
    out
}

/// Brings a table from one executor to another.
fn hand_over(
    from: &dyn Executor,
    to: &dyn Executor,
    table: &Table,
    snapshot: &Snapshot,
    options: &ExecOptions,
) -> Table {
    let none = task(snapshot, &[], options);
    let mut rows = CollectSink::default();
    let slots = from.stream(&none, Some(table), &mut rows).unwrap();
    assert_eq!(slots, table.slots);
    assert_eq!(rows.rows as u64, table.rows);
    let columns: Vec<Vec<u32>> = (0..slots.len())
        .map(|c| rows.rows().map(|r| r[c]).collect())
        .collect();
    let columns: Vec<&[u32]> = columns.iter().map(Vec::as_slice).collect();
    to.load(&none, &slots, &columns, rows.rows).unwrap()
}

#[test]
fn a_plan_changes_executors_at_any_step() {
    let (_folder, snapshot) = ring(60, 5);
    let gpu = GpuExecutor::new(shim(3));
    let options = ExecOptions {
        batch_rows: 32,
        ..ExecOptions::default()
    };
    let places: [&dyn Executor; 2] = [&gpu, &CpuExecutor];
    for text in QUERIES {
        let plan = native(&snapshot, text);
        let steps = &plan.exploration().unwrap().steps;
        let mut whole = CollectSink::default();
        execute_streaming(&plan, &snapshot, &options, &QueryTerms::new(), &mut whole).unwrap();
        let all: Vec<usize> = (0..plan.output.len()).collect();
        let want = sorted(&whole, &all);
        assert!(!want.is_empty(), "{text}");
        assert_eq!(
            gpu.prefix(&task(&snapshot, steps, &options)).unwrap(),
            steps.len()
        );
        // Every way to give each step to one of the two.
        for choice in 0..1u32 << steps.len().min(4) {
            let place = |i: usize| places[(choice >> i.min(3) & 1) as usize];
            let mut table = place(0)
                .run(&task(&snapshot, &steps[..1], &options), None)
                .unwrap();
            for (i, step) in steps.iter().enumerate().skip(1) {
                if !std::ptr::addr_eq(place(i), place(i - 1)) {
                    table = hand_over(place(i - 1), place(i), &table, &snapshot, &options);
                }
                let step = std::slice::from_ref(step);
                table = place(i)
                    .run(&task(&snapshot, step, &options), Some(&table))
                    .unwrap();
            }
            let mut rows = CollectSink::default();
            let slots = place(steps.len() - 1)
                .stream(&task(&snapshot, &[], &options), Some(&table), &mut rows)
                .unwrap();
            let order: Vec<usize> = plan
                .output
                .iter()
                .map(|s| slots.iter().position(|t| t == s).unwrap())
                .collect();
            assert_eq!(sorted(&rows, &order), want, "{text}, choice {choice:b}");
        }
    }
    assert_eq!(options.memory.used(), 0);
}

/// Operators above the exploration, and conditions that the device does not do, run on the CPU over its rows.
#[test]
fn what_the_device_does_not_do_runs_on_the_cpu_over_its_rows() {
    let (_folder, snapshot) = ring(60, 5);
    let gpu = GpuExecutor::new(shim(0));
    let mut mixed = 0;
    let options = ExecOptions {
        profile: true,
        ..ExecOptions::default()
    };
    for (text, ordered, all_there) in [
        (
            "SELECT (COUNT(*) AS ?n) WHERE { ?a :p ?b . ?b :q ?c }",
            false,
            true,
        ),
        (
            "SELECT DISTINCT ?c WHERE { ?a :p ?b . ?b :q ?c }",
            false,
            true,
        ),
        (
            "SELECT ?b ?v WHERE { ?a :p ?b . ?b :v ?v } ORDER BY DESC(?v) ?b LIMIT 7",
            true,
            true,
        ),
        (
            "SELECT ?a ?x WHERE { ?a :p ?b . ?b ?x ?c . ?c :v ?v FILTER(?v != 40) }",
            false,
            false,
        ),
        (
            "SELECT ?a WHERE { ?a :p ?b . ?b :v ?v FILTER(STRLEN(STR(?v)) = 1) . ?b :q ?c }",
            false,
            false,
        ),
        ("ASK { ?a :p ?b . ?b :p ?c . ?a :p ?c }", false, true),
    ] {
        let plan = native(&snapshot, text);
        let mut want = CollectSink::default();
        execute_streaming(&plan, &snapshot, &options, &QueryTerms::new(), &mut want).unwrap();
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
        assert!(place.contains("shim"), "{place}");
        assert!(
            there == steps || !all_there,
            "{text}: {there} of {steps} steps"
        );
        assert_eq!(profile.steps().len(), steps);
        // A start may be a column that lies there already, which writes nothing.
        let written: u64 = profile.steps()[..there].iter().map(|s| s.written).sum();
        assert!(profile.steps()[0].rows_out > 0 && written > 0, "{text}");
        mixed += u32::from(there < steps);
        let columns: Vec<usize> = (0..plan.output.len()).collect();
        if ordered {
            let rows = |s: &CollectSink| s.rows().map(<[u32]>::to_vec).collect::<Vec<_>>();
            assert_eq!(rows(&got), rows(&want), "{text}");
        } else if plan.is_ask() {
            assert_eq!(got.rows, want.rows, "{text}");
        } else if text.contains("COUNT") {
            // 5 edges `:p` of each of 60 nodes, and one `:q` after each.
            let mut bytes = vec![];
            terms.term(VertexId(got.ids[0]), &mut bytes);
            let text = String::from_utf8_lossy(&bytes);
            assert!(got.rows == 1 && text.contains("300"), "{text}");
        } else {
            assert_eq!(sorted(&got, &columns), sorted(&want, &columns), "{text}");
        }
    }
    assert!(mixed > 0, "no plan was split");
}

#[test]
fn strangers_and_cancelled_queries_are_refused() {
    let (_folder, snapshot) = ring(20, 3);
    let (gpu, other) = (GpuExecutor::new(shim(0)), GpuExecutor::new(shim(0)));
    let options = ExecOptions::default();
    let plan = native(&snapshot, QUERIES[0]);
    let steps = &plan.exploration().unwrap().steps;
    let mut table = gpu
        .run(&task(&snapshot, &steps[..1], &options), None)
        .unwrap();
    let none = task(&snapshot, &[], &options);
    assert!(matches!(
        other.run(&none, Some(&table)),
        Err(Error::Internal(_))
    ));
    assert!(matches!(
        CpuExecutor.run(&none, Some(&table)),
        Err(Error::Internal(_))
    ));
    let cpu = CpuExecutor
        .run(&task(&snapshot, &steps[..1], &options), None)
        .unwrap();
    assert!(matches!(
        gpu.run(&none, Some(&cpu)),
        Err(Error::Internal(_))
    ));
    table.epoch ^= 1;
    assert!(matches!(
        gpu.run(&none, Some(&table)),
        Err(Error::Internal(_))
    ));
    let cancel = CancelToken::new();
    cancel.cancel();
    let cancelled = ExecOptions {
        cancel,
        ..ExecOptions::default()
    };
    let all = task(&snapshot, steps, &cancelled);
    assert!(matches!(gpu.run(&all, None), Err(Error::Cancelled)));
}
