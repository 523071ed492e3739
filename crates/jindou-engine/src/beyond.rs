//! A plan whose first steps another executor runs. Its rows come here batch by batch and go on through the other
//! steps and the operators, in one thread.

use crate::batch::{Batch, View};
use crate::execute::guarded;
use crate::executor::{Executor, Task, columns_after};
use crate::explore::{Consumer, Flow, Halt, Pipeline, Run};
use crate::operators::{self, Output, Stage, chain};
use crate::options::{ExecOptions, Profile, StepProfile};
use crate::sink::Sink;
use crate::terms::QueryTerms;
use jindou_model::{Error, Result};
use jindou_plan::Plan;
use jindou_store::Snapshot;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// The operators, and the sink they end in.
struct Above<'a, 't, 's> {
    run: &'t Run<'a>,
    stages: Vec<Stage<'a>>,
    output: Output<'s>,
}

impl Consumer for Above<'_, '_, '_> {
    fn batch(&mut self, rows: View<'_>) -> Flow {
        operators::push(&mut self.stages, self.run, rows, &mut self.output)
    }
}

/// Takes the executor's rows.
struct Onward<'a, 't, 's> {
    pipeline: Pipeline<'a>,
    above: Above<'a, 't, 's>,
    chunk: Batch,
    /// Nobody wants more rows.
    enough: bool,
}

impl Onward<'_, '_, '_> {
    fn push(&mut self, columns: &[&[u32]], rows: usize) -> Flow {
        let run = self.above.run;
        let steps = 0..self.pipeline.steps();
        if columns.is_empty() {
            let rows = View { columns: &[], rows };
            return self.pipeline.rows(run, rows, steps, &mut self.above);
        }
        for from in (0..rows).step_by(run.batch_rows) {
            let n = run.batch_rows.min(rows - from);
            self.chunk.ensure(n)?;
            for (to, column) in self.chunk.columns.iter_mut().zip(columns) {
                let part = column.get(from..from + n).unwrap_or(&[]);
                to[..part.len()].copy_from_slice(part);
            }
            self.chunk.rows = n;
            self.pipeline
                .rows(run, self.chunk.view(), steps.clone(), &mut self.above)?;
        }
        Ok(())
    }
}

impl Sink for Onward<'_, '_, '_> {
    fn batch(&mut self, columns: &[&[u32]], rows: usize) -> Result<()> {
        match self.push(columns, rows) {
            Ok(()) => Ok(()),
            Err(Halt::Failed(e)) => Err(e),
            Err(Halt::Stop) => {
                self.enough = true;
                // Ends the executor's run; never seen by a user.
                Err(Error::SinkClosed)
            }
        }
    }
}

/// Runs a plan whose first steps `executor` runs, as many as it can, and the rest here, in one thread.
///
/// # Errors
/// `Unsupported`, before the first row, where the executor runs less than two steps of a longer plan; else as
/// [`crate::execute`].
pub fn execute_on(
    plan: &Plan,
    snapshot: &Snapshot,
    options: &ExecOptions,
    terms: &QueryTerms,
    executor: &dyn Executor,
    sink: &mut dyn Sink,
) -> Result<Profile> {
    let begin = Instant::now();
    if plan.epoch != snapshot.base().epoch() || plan.snapshot != snapshot.number() {
        return Err(Error::Internal(
            "the plan was made for another snapshot of the store".into(),
        ));
    }
    options.cancel.check()?;
    let stop = AtomicBool::new(false);
    let run = Run {
        snapshot,
        terms,
        cancel: &options.cancel,
        budget: &options.memory,
        stop: &stop,
        batch_rows: options.batch_rows.clamp(16, 1 << 16),
        profile: options.profile,
    };
    let mut profile = guarded(|| match run_plan(plan, &run, options, executor, sink) {
        Ok(p) => Ok(p),
        Err(Halt::Failed(e)) => Err(e),
        Err(Halt::Stop) => Ok(Profile::default()),
    })?;
    profile.elapsed = begin.elapsed();
    Ok(profile)
}

fn run_plan<'a>(
    plan: &'a Plan,
    run: &Run<'a>,
    options: &ExecOptions,
    executor: &dyn Executor,
    sink: &mut dyn Sink,
) -> Result<Profile, Halt> {
    let exploration = plan.exploration();
    let empty = exploration.empty.is_some();
    let steps: &'a [_] = if empty { &[] } else { &exploration.steps };
    let task = |steps| Task {
        snapshot: run.snapshot,
        steps,
        options,
    };
    let first = executor.prefix(&task(steps))?.min(steps.len());
    if first < steps.len().min(2) {
        return Err(Error::Unsupported(format!("this plan on {}", executor.place())).into());
    }
    let (there, here) = steps.split_at(first);
    let columns = columns_after(&[], there);
    let pipeline = Pipeline::after(&columns, here, run)?;
    let mut layout = pipeline.layout().to_vec();
    let operators = chain(plan);
    let mut stages = Vec::with_capacity(operators.len() + 1);
    for (i, operator) in operators.iter().enumerate() {
        let (stage, out) = Stage::new(operator, &operators[i + 1..], &layout, run)?;
        stages.push(stage);
        layout = out;
    }
    if plan.ask {
        stages.push(Stage::Slice {
            skip: 0,
            left: Some(1),
            rest: Batch::new(layout.len(), run.budget),
        });
    }
    let mut onward = Onward {
        pipeline,
        above: Above {
            run,
            stages,
            output: Output::new(plan, &layout, sink),
        },
        chunk: Batch::new(columns.len(), run.budget),
        enough: false,
    };
    let mut profiles: Vec<StepProfile> = Vec::new();
    if !empty {
        match executor.stream_profiled(&task(there), None, &mut onward, &mut profiles) {
            Ok(given) if given == columns => {}
            Ok(_) => {
                return Err(Error::Internal(
                    "an executor gave other columns than asked for".into(),
                )
                .into());
            }
            Err(_) if onward.enough => {}
            Err(e) => return Err(e.into()),
        }
    }
    let Onward {
        mut pipeline,
        mut above,
        enough,
        ..
    } = onward;
    if !enough {
        let range = 0..pipeline.steps();
        stop_is_fine(pipeline.flush(run, range, &mut above))?;
        let Above { stages, output, .. } = &mut above;
        stop_is_fine(operators::finish(stages, run, output))?;
    }
    profiles.resize(first, StepProfile::default());
    profiles.extend(pipeline.stats().iter().skip(1).map(|s| StepProfile {
        rows_in: s.rows_in,
        rows_out: s.rows_out,
        time: s.time,
        bytes: s.touched,
        written: s.written,
    }));
    Ok(Profile {
        steps: profiles,
        rows: above.output.rows,
        threads: 1,
        elsewhere: Some((executor.place(), first)),
        ..Profile::default()
    })
}

fn stop_is_fine(flow: Flow) -> Flow {
    match flow {
        Err(Halt::Stop) => Ok(()),
        other => other,
    }
}
