//! Plans that another executor is asked to run first, and that fail there.

use crate::support::plan_of;
use jindou_engine::{
    CollectSink, ExecOptions, Execution, ExecutionOutcome, Executor, ExecutorChoice, ParallelSink,
    QueryTerms, Sink, StepProfile, Task, columns_after, execute_streaming,
};
use jindou_graph::Graph;
use jindou_model::{Error, Resource, Result};
use jindou_plan::{Exploration, Operator, Plan, Slot};
use jindou_store::Snapshot;
use jindou_store::testing::store_of;
use jindou_testing::{named, triple};
use oxrdf::Quad;
use std::sync::{Arc, Mutex};

/// An executor that runs plans on the CPU, and fails after some rows.
struct Failing {
    /// A plan of which it is asked to run the steps.
    plan: Plan,
    rows: usize,
    error: fn() -> Error,
    /// True if it runs whole plans.
    whole: bool,
}

/// A sink that passes on this many rows, and then fails.
struct First<'s> {
    left: usize,
    error: fn() -> Error,
    sink: &'s mut dyn Sink,
}

impl Sink for First<'_> {
    fn batch(&mut self, columns: &[&[u32]], rows: usize) -> Result<()> {
        let n = rows.min(self.left);
        let part: Vec<&[u32]> = columns.iter().map(|c| &c[..n]).collect();
        self.sink.batch(&part, n)?;
        self.left -= n;
        if n < rows {
            Err((self.error)())
        } else {
            Ok(())
        }
    }
}

impl Executor for Failing {
    fn name(&self) -> &'static str {
        "failing"
    }

    fn stream(
        &self,
        task: &Task<'_>,
        sink: &mut dyn Sink,
        _profile: &mut Vec<StepProfile>,
    ) -> Result<Vec<Slot>> {
        let (steps, slots) = steps_alone(&self.plan, task)?;
        let mut first = First {
            left: self.rows,
            error: self.error,
            sink,
        };
        let (options, terms) = (task.options, QueryTerms::new());
        execute_streaming(&steps, task.snapshot, options, &terms, &mut first)?;
        Ok(slots)
    }

    fn whole(
        &self,
        plan: &Plan,
        snapshot: &dyn Graph,
        options: &ExecOptions,
        sink: &mut dyn Sink,
    ) -> Result<ExecutionOutcome> {
        if !self.whole {
            return Err(Error::Unsupported("whole plans".into()));
        }
        let mut first = First {
            left: self.rows,
            error: self.error,
            sink,
        };
        let profile = execute_streaming(plan, snapshot, options, &QueryTerms::new(), &mut first)?;
        Ok(ExecutionOutcome {
            profile,
            details: "there".into(),
            ..ExecutionOutcome::default()
        })
    }
}

/// The plan of a task's steps alone, and the slots of its rows.
pub fn steps_alone(plan: &Plan, task: &Task<'_>) -> Result<(Plan, Vec<Slot>)> {
    let slots = columns_after(&[], task.steps, || task.options.cancel.check())?;
    let mut steps = plan.clone();
    steps.output.clone_from(&slots);
    steps.root = Operator::Explore(Exploration {
        steps: task.steps.to_vec(),
        empty: None,
    });
    Ok((steps, slots))
}

pub fn execution<'a>(
    plan: &'a Plan,
    snapshot: &'a Snapshot,
    options: &'a ExecOptions,
    terms: &'a QueryTerms,
    executor: &'a ExecutorChoice,
) -> Execution<'a> {
    Execution {
        plan,
        snapshot,
        options,
        terms,
        executor,
    }
}

/// A sink that collects the rows of all workers.
#[derive(Default)]
pub struct All(pub Mutex<Vec<Vec<u32>>>);

impl ParallelSink for All {
    type Local = CollectSink;

    fn local(&self) -> CollectSink {
        CollectSink::default()
    }

    fn merge(&self, local: CollectSink) -> Result<()> {
        let mut all = self.0.lock().unwrap();
        all.extend(local.rows().map(<[u32]>::to_vec));
        Ok(())
    }
}

/// A store of 200 nodes in a ring, and a plan for the pairs of nodes two steps apart.
pub fn ring() -> (tempfile::TempDir, Snapshot, Plan) {
    let node = |i: u32| format!("n{}", i % 200);
    let quads: Vec<Quad> = (0..200)
        .map(|i| triple(&node(i), "p", named(&node(i + 1))))
        .collect();
    let (folder, base) = store_of(&quads);
    let snapshot = Snapshot::of_base(base);
    let text = "SELECT ?a ?c { ?a <http://e/p> ?b . ?b <http://e/p> ?c }";
    let plan = plan_of(&snapshot, text);
    (folder, snapshot, plan)
}

#[test]
fn rows_come_once_whenever_the_other_executor_fails() {
    let (_folder, snapshot, plan) = ring();
    let options = ExecOptions::default();
    let errors: [fn() -> Error; 3] = [
        || Error::Internal("it broke".into()),
        || Error::limit(Resource::Memory, "it is full"),
        || Error::Unsupported("this".into()),
    ];
    for (error, whole) in errors.iter().flat_map(|e| [(*e, false), (*e, true)]) {
        for rows in [0, 1, 150, 200, 1000] {
            let fails = rows < 200;
            let other: Arc<dyn Executor> = Arc::new(Failing {
                plan: plan.clone(),
                rows,
                error,
                whole,
            });
            for executor in [
                ExecutorChoice::Here,
                ExecutorChoice::Rather(Arc::clone(&other)),
                ExecutorChoice::Demanded(other),
            ] {
                let terms = QueryTerms::new();
                let execution = execution(&plan, &snapshot, &options, &terms, &executor);
                let (sink, mut streamed) = (All::default(), CollectSink::default());
                let demanded = matches!(executor, ExecutorChoice::Demanded(_));
                // An executor that is demanded must not fail, except by rejecting the plan before the first row.
                if demanded && fails && !matches!(error(), Error::Unsupported(_)) {
                    let e = execution.run(&sink).map(|_| ()).unwrap_err();
                    assert!(
                        matches!(&e, Error::Gpu(why) if why.starts_with("it ")),
                        "{e}"
                    );
                    continue;
                }
                if demanded && fails {
                    continue;
                }
                let ran = execution.run(&sink).unwrap();
                let mut got = sink.0.into_inner().unwrap();
                got.sort_unstable();
                got.dedup();
                assert_eq!((got.len(), ran.profile.rows), (200, 200));
                let here = matches!(executor, ExecutorChoice::Rather(_)) && fails;
                assert_eq!(ran.why_here.is_some(), here, "{:?}", ran.why_here);
                let there = ran.profile.offloaded().is_some() || !ran.details.is_empty();
                assert_eq!(there, !matches!(executor, ExecutorChoice::Here) && !fails);
                let ran = execution.stream(&mut streamed).unwrap();
                assert_eq!((streamed.rows, ran.profile.rows), (200, 200));
                let (sum, elsewhere, _) = execution.checksum().unwrap();
                assert_eq!(sum.rows, 200);
                assert_eq!(elsewhere, there);
                assert_eq!(options.memory.used(), 0);
            }
        }
    }
}

#[test]
fn rows_that_are_not_taken_are_made_once() {
    let (_folder, snapshot, plan) = ring();
    let (options, terms) = (ExecOptions::default(), QueryTerms::new());
    let error: fn() -> Error = || Error::Internal("it broke".into());
    let other = |whole| -> Arc<dyn Executor> {
        Arc::new(Failing {
            plan: plan.clone(),
            rows: 1000,
            error,
            whole,
        })
    };
    for executor in [
        ExecutorChoice::Here,
        ExecutorChoice::Rather(other(false)),
        ExecutorChoice::Rather(other(true)),
        ExecutorChoice::Demanded(other(false)),
        ExecutorChoice::Demanded(other(true)),
    ] {
        let mut kept = CollectSink::default();
        let mut full = First {
            left: 17,
            error: || Error::limit(Resource::Memory, "no room for rows"),
            sink: &mut kept,
        };
        let execution = execution(&plan, &snapshot, &options, &terms, &executor);
        let e = execution.stream(&mut full).map(|_| ()).unwrap_err();
        assert!(matches!(e, Error::Limit(_)), "{e}");
        assert_eq!(kept.rows, 17);
    }
}
