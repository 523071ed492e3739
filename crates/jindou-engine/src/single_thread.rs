//! Execution of a plan that is one exploration on one thread, without morsels and shared state. Most light queries have
//! this form, and setting up several workers would take longer than running them.

use crate::explore::{Pipeline, QueryContext, unhalted};
use crate::operators::OutputEnd;
use crate::options::{NodeProfile, Profile, StepProfile};
use crate::sink::SinkFactory;
use jindou_model::Result;
use jindou_plan::{Exploration, Plan};
use std::time::{Duration, Instant};

/// Runs a plan that consists of this exploration. `begin` is the time at which the execution began.
pub(crate) fn run<'a>(
    plan: &'a Plan,
    exploration: &'a Exploration,
    ctx: &QueryContext<'a>,
    sinks: &dyn SinkFactory,
    begin: Instant,
) -> Result<Profile> {
    let mut pipeline = Pipeline::new(exploration, ctx)?;
    pipeline.watch(ctx, 0);
    let source = Pipeline::source(exploration, ctx);
    let steps = pipeline.steps();
    let mut output = OutputEnd::new(&plan.output, pipeline.layout(), sinks.worker());
    unhalted(pipeline.morsel(ctx, &source, 0..source.len(), steps, &mut output))?;
    unhalted(pipeline.flush(ctx, 0..steps, &mut output))?;
    let rows = output.done()?;
    let stats = pipeline.stats();
    let node = NodeProfile {
        rows_in: stats.first().map_or(0, |s| s.rows_in),
        rows_out: stats.last().map_or(0, |s| s.rows_out),
        time: stats.iter().map(|s| s.time).sum::<Duration>(),
        threads: 1,
        steps: stats
            .iter()
            .map(|s| StepProfile {
                rows_in: s.rows_in,
                rows_out: s.rows_out,
                time: s.time,
                bytes: s.touched,
                written: s.written,
            })
            .collect(),
        ..NodeProfile::default()
    };
    Ok(Profile {
        spilled: 0,
        nodes: vec![node],
        bottom: Some(0),
        rows,
        elapsed: begin.elapsed(),
        threads: 1,
    })
}
