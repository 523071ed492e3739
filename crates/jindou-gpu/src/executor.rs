//! Implements the engine's interface for executors ([`jindou_engine::Executor`]) for a device.

use crate::compile::{WantedRows, may_run};
use crate::execute::{GpuExecutor, GpuOptions, ResultUse};
use crate::params::MAX_GROUP;
use crate::profile::GpuProfile;
use jindou_engine::{
    ChecksumSink, ExecOptions, ExecutionOutcome, Executor, GroupedRows, NodeProfile, OperatorTask,
    Profile, Sink, StepProfile, Task, columns_after,
};
use jindou_graph::Graph;
use jindou_model::{Error, Result};
use jindou_plan::operator::GroupCount;
use jindou_plan::{Exploration, Operator, Plan, Slot};
use std::fmt::Write as _;
use std::time::Duration;

/// For a COUNT without groups that the device can compute as a single number of rows: which rows to count. That number
/// is then the value of all counts of the operator. `surely` is true for slots that are always bound.
fn counted(count: &GroupCount, surely: impl Fn(Slot) -> bool) -> Option<WantedRows<'static>> {
    if !count.group.is_empty() {
        return None;
    }
    match count.counts.as_slice() {
        [one] => match (one.of, one.distinct) {
            (Some(slot), true) => Some(WantedRows::Different(slot)),
            (Some(slot), false) if !surely(slot) => Some(WantedRows::Bound(slot)),
            (_, false) => Some(WantedRows::Number),
            (None, true) => None,
        },
        all => all
            .iter()
            .all(|c| !c.distinct && c.of.is_none_or(&surely))
            .then_some(WantedRows::Number),
    }
}

/// For a GROUP BY or COUNT that the device can count by combination: its input and columns. `None` for other operators,
/// and for a COUNT that is a single number ([`counted`]).
pub(crate) fn grouped(op: &Operator) -> Option<GroupedRows<'_>> {
    if let Operator::Count(c) = op {
        let sure = explored(&c.input);
        if counted(c, |s| sure.contains(&s)).is_some() {
            return None;
        }
    }
    GroupedRows::of(op).filter(|rows| {
        let is_explored = matches!(rows.input, Operator::Explore(e) if e.empty.is_none());
        rows.ids.len() <= MAX_GROUP && (is_explored || may_run(rows.input))
    })
}

/// The slots that an exploration binds, in all rows; empty for other operators.
fn explored(op: &Operator) -> Vec<Slot> {
    match op {
        Operator::Explore(_) => op.layout(&[]),
        _ => Vec::new(),
    }
}

impl GpuExecutor {
    /// True if the device can execute an operator with everything below it.
    ///
    /// # Errors
    /// Those of the device.
    fn compiles(
        &self,
        snapshot: &dyn Graph,
        op: &Operator,
        wanted: WantedRows<'_>,
    ) -> Result<bool> {
        match self.compile_tree(snapshot, op, wanted) {
            Ok(_) => Ok(true),
            Err(Error::Unsupported(_)) => Ok(false),
            Err(e) => Err(e),
        }
    }
}

impl Executor for GpuExecutor {
    fn name(&self) -> &'static str {
        "gpu"
    }

    fn place(&self) -> String {
        self.device().name()
    }

    fn prefix(&self, task: &Task<'_>) -> Result<usize> {
        Ok(self.compile(task.snapshot, task.steps, true)?.covered)
    }

    fn stream(
        &self,
        task: &Task<'_>,
        sink: &mut dyn Sink,
        profile: &mut Vec<StepProfile>,
    ) -> Result<Vec<Slot>> {
        let mut turn = self.turns.begin(&task.options.cancel)?;
        let slots = columns_after(&[], task.steps, || task.options.cancel.check())?;
        let program = self.compile(task.snapshot, task.steps, true)?.whole()?;
        let options = GpuOptions::from_exec(task.options);
        let output = ResultUse::Blocks(sink);
        let (done, closed) = self.explore(&program, &slots, output, &options, &mut turn)?;
        profile.extend(done.profile.by_plan_step(task.steps.len()));
        match closed {
            Some(e) => Err(e),
            None => Ok(slots),
        }
    }

    fn whole(
        &self,
        plan: &Plan,
        snapshot: &dyn Graph,
        options: &ExecOptions,
        sink: &mut dyn Sink,
    ) -> Result<ExecutionOutcome> {
        let output = ResultUse::Blocks(sink);
        let done = self.execute(plan, snapshot, output, &GpuOptions::from_exec(options))?;
        let mut ran = ExecutionOutcome {
            profile: done.profile.of_plan(plan, done.rows),
            ..ExecutionOutcome::default()
        };
        if options.profile {
            let p = &done.profile;
            let _ = writeln!(
                ran.details,
                "{:.3} ms of it to bring {} bytes of segments\n{}",
                p.bring_seconds * 1e3,
                p.segment_bytes,
                p.table(None)
            );
        }
        Ok(ran)
    }

    fn runs(&self, task: &OperatorTask<'_>) -> Result<bool> {
        if let Some(rows) = grouped(task.op) {
            let wanted = WantedRows::Groups {
                ids: &rows.ids,
                tested: &rows.tested,
                best: None,
            };
            return self.compiles(task.snapshot, rows.input, wanted);
        }
        let (op, wanted) = match task.op {
            Operator::Count(c) => {
                let sure = explored(&c.input);
                match counted(c, |s| sure.contains(&s)) {
                    // An exploration is run as such if only its rows are counted, and no column is needed.
                    Some(WantedRows::Number)
                        if matches!(*c.input, Operator::Explore(_))
                            && c.counts.iter().all(|c| c.of.is_none()) =>
                    {
                        return Ok(false);
                    }
                    Some(wanted) => (&*c.input, wanted),
                    None => return Ok(false),
                }
            }
            Operator::Explore(_) if task.most.is_none() && task.top.is_none() => return Ok(false),
            op => (op, WantedRows::Number),
        };
        if let Some(top) = task.top.filter(|_| !matches!(task.op, Operator::Count(_))) {
            let slots = op.layout(&[]);
            let is_explored = matches!(op, Operator::Explore(e) if e.empty.is_none());
            let wanted = WantedRows::First(&slots, top);
            if (is_explored || may_run(op)) && self.compiles(task.snapshot, op, wanted)? {
                return Ok(true);
            }
            if is_explored && task.most.is_none() {
                return Ok(false);
            }
        }
        let below = match op {
            Operator::Slice(s) => &*s.input,
            op => op,
        };
        let is_sliced = matches!(op, Operator::Slice(_));
        if !matches!(below, Operator::Explore(e) if e.empty.is_none()) && !may_run(below)
            || is_sliced && !matches!(wanted, WantedRows::Number)
        {
            return Ok(false);
        }
        let slots = below.layout(&[]);
        let wanted = match (task.op, wanted) {
            (Operator::Count(_), wanted) => wanted,
            _ => WantedRows::Columns(&slots),
        };
        self.compiles(task.snapshot, below, wanted)
    }

    fn operator(
        &self,
        task: &OperatorTask<'_>,
        sink: &mut dyn Sink,
        profile: &mut Vec<StepProfile>,
    ) -> Result<()> {
        let slots = task.op.layout(&[]);
        let options = GpuOptions::from_exec(task.options);
        let mut run = |wanted| {
            let output = ResultUse::Blocks(&mut *sink);
            self.tree(task.op, task.most, wanted, task.snapshot, output, &options)
        };
        let first = task.top.map(|top| run(WantedRows::First(&slots, top)));
        let done = match first {
            // `Unsupported` is returned before the first row, so the operator can be run without the order.
            None | Some(Err(Error::Unsupported(_))) => run(WantedRows::Columns(&slots))?,
            Some(done) => done?,
        };
        let steps = below(task.op).map_or(0, |e| e.steps.len());
        profile.extend(done.profile.by_plan_step(steps));
        Ok(())
    }

    fn counts(&self, task: &OperatorTask<'_>, profile: &mut Vec<StepProfile>) -> Result<Vec<u64>> {
        let unsupported = || Error::Unsupported("this COUNT on the GPU".into());
        let Operator::Count(count) = task.op else {
            return Err(unsupported());
        };
        let sure = explored(&count.input);
        let wanted = counted(count, |s| sure.contains(&s)).ok_or_else(unsupported)?;
        let options = GpuOptions::from_exec(task.options);
        let output = ResultUse::Count;
        let done = self.tree(&count.input, None, wanted, task.snapshot, output, &options)?;
        let steps = below(task.op).map_or(0, |e| e.steps.len());
        profile.extend(done.profile.by_plan_step(steps));
        Ok(vec![done.rows; count.counts.len()])
    }

    fn groups(
        &self,
        task: &OperatorTask<'_>,
        sink: &mut dyn Sink,
        profile: &mut Vec<StepProfile>,
    ) -> Result<bool> {
        let Some(rows) = grouped(task.op) else {
            return Ok(false);
        };
        let options = GpuOptions::from_exec(task.options);
        let Some(done) = self.grouped(&rows, task.snapshot, sink, &options)? else {
            return Ok(false);
        };
        let steps = below(task.op).map_or(0, |e| e.steps.len());
        profile.extend(done.profile.by_plan_step(steps));
        Ok(true)
    }

    fn checksum(
        &self,
        plan: &Plan,
        snapshot: &dyn Graph,
        options: &ExecOptions,
    ) -> Result<ChecksumSink> {
        let done = self.execute(
            plan,
            snapshot,
            ResultUse::Checksum,
            &GpuOptions::from_exec(options),
        )?;
        Ok(ChecksumSink {
            rows: done.rows,
            checksum: done.checksum.unwrap_or(0),
        })
    }
}

/// The exploration that produces the rows of an operator.
fn below(op: &Operator) -> Option<&Exploration> {
    let mut at = op;
    loop {
        match at {
            Operator::Explore(e) => return Some(e),
            _ => at = *at.inputs().first()?,
        }
    }
}

impl GpuOptions {
    /// The engine's options that concern a device.
    fn from_exec(options: &ExecOptions) -> Self {
        Self {
            cancel: options.cancel.clone(),
            profile: options.profile,
            ..Self::default()
        }
    }
}

impl GpuProfile {
    /// The engine's profile of a plan that was executed completely on a device and returned this many rows.
    fn of_plan(&self, plan: &Plan, rows: u64) -> Profile {
        let steps = below(&plan.root).map_or(0, |e| e.steps.len());
        let steps_there = self.by_plan_step(steps);
        let mut profile = Profile {
            rows,
            elapsed: Duration::from_secs_f64(self.seconds + self.bring_seconds),
            threads: 1,
            ..Profile::default()
        };
        // Operators are listed in depth-first order, inputs from left to right, as profiles have them.
        let mut open = vec![(&plan.root, true)];
        while let Some((op, on_the_way)) = open.pop() {
            let mut node = NodeProfile {
                there: Some((self.device.clone(), 0)),
                ..NodeProfile::default()
            };
            if profile.nodes.is_empty() {
                node.rows_out = rows;
            }
            let inputs = op.inputs();
            if let Operator::Explore(e) = op {
                node.there = Some((self.device.clone(), e.steps.len()));
                node.rows_in = steps_there.first().map_or(0, |s| s.rows_in);
                node.rows_out = steps_there.last().map_or(0, |s| s.rows_out);
                node.time = Duration::from_secs_f64(self.seconds);
                node.steps.clone_from(&steps_there);
                profile.bottom = on_the_way.then_some(profile.nodes.len());
            }
            profile.nodes.push(node);
            let alone = inputs.len() == 1;
            open.extend(inputs.into_iter().rev().map(|i| (i, on_the_way && alone)));
        }
        profile
    }

    /// The profile of each of the plan's `steps` steps, summed over the device steps that belong to it.
    #[must_use]
    pub fn by_plan_step(&self, steps: usize) -> Vec<StepProfile> {
        let mut out = vec![StepProfile::default(); steps];
        let mut seen = vec![false; steps];
        for part in &self.steps {
            let Some(number) = part.plan_step.filter(|&n| n < steps) else {
                continue;
            };
            let s = &mut out[number];
            if !std::mem::replace(&mut seen[number], true) {
                s.rows_in = part.rows_in;
            }
            s.rows_out = part.rows_out;
            for k in &part.kernels {
                s.time += Duration::from_secs_f64(k.seconds.max(0.0));
                s.bytes += k.read as u64;
                s.written += k.written as u64;
            }
        }
        out
    }
}
