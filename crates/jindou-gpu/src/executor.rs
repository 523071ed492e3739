//! The engine's executor boundary, for a device: tables stay in device memory, in as many parts as the run that
//! made them was cut into.

use crate::device::DeviceBuffer;
use crate::execute::{End, GpuExecutor, GpuOptions, Output};
use crate::profile::GpuProfile;
use crate::table::{NewTable, Table as DeviceTable};
use jindou_engine::{Executor, Sink, StepProfile, Table, Task, columns_after};
use jindou_model::{Error, Result};
use jindou_plan::Slot;
use std::sync::Arc;
use std::time::Duration;

/// Rows of an uploaded part at most.
const PART_ROWS: usize = 1 << 30;

/// A table in a device's memory. The device goes with it: another's addresses mean nothing here.
struct Parts {
    device: usize,
    parts: Vec<DeviceTable>,
}

/// The results of running a task.
struct Done {
    slots: Vec<Slot>,
    rows: u64,
    profile: GpuProfile,
    /// The sink's error, if it wanted no more rows.
    closed: Option<Error>,
}

impl GpuExecutor {
    /// Tells this device from others.
    fn identity(&self) -> usize {
        Arc::as_ptr(self.device()).cast::<()>() as usize
    }

    fn parts_of<'t>(&self, task: &Task<'_>, table: &'t Table) -> Result<&'t [DeviceTable]> {
        table.belongs_to(task.snapshot)?;
        table
            .body::<Parts>()
            .filter(|p| p.device == self.identity())
            .map(|p| &p.parts[..])
            .ok_or_else(|| Error::Internal("a history table of another executor".into()))
    }

    /// Runs all steps of the task; `Unsupported` before the first row where the device cannot.
    fn steps(&self, task: &Task<'_>, input: Option<&Table>, end: End<'_, '_>) -> Result<Done> {
        let _turn = self.turns.begin();
        let before: &[Slot] = input.map_or(&[], |t| &t.slots);
        let slots = columns_after(before, task.steps);
        let parts = input.map(|t| self.parts_of(task, t)).transpose()?;
        let program = self
            .compile(task.snapshot, task.steps, input.map(|_| before), true)?
            .whole()?;
        let options = GpuOptions {
            cancel: task.options.cancel.clone(),
            profile: task.options.profile,
            ..GpuOptions::default()
        };
        let (r, closed) = self.explore(&program, parts, &slots, end, &options)?;
        Ok(Done {
            slots,
            rows: r.rows,
            profile: r.profile,
            closed,
        })
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
        Ok(self.compile(task.snapshot, task.steps, None, true)?.covered)
    }

    fn load(
        &self,
        task: &Task<'_>,
        slots: &[Slot],
        columns: &[&[u32]],
        rows: usize,
    ) -> Result<Table> {
        let mut parts = Vec::new();
        for from in (0..rows).step_by(PART_ROWS) {
            let n = PART_ROWS.min(rows - from);
            let bytes = NewTable::bytes(slots.len(), n as u64) as usize;
            let new = NewTable {
                buffer: Arc::new(DeviceBuffer::new(self.device(), bytes)?),
                slots: slots.to_vec(),
                room: n as u64,
            };
            for (i, column) in columns.iter().enumerate().take(slots.len()) {
                let part = column
                    .get(from..from + n)
                    .ok_or_else(|| Error::Internal("a column shorter than its table".into()))?;
                let at = (new.at(i) - new.buffer.at()) as usize;
                new.buffer.write(at, bytemuck::cast_slice(part))?;
            }
            parts.push(new.finish(n as u32));
        }
        let device = self.identity();
        let body = Box::new(Parts { device, parts });
        Ok(Table::new(task.snapshot, slots.to_vec(), rows as u64, body))
    }

    fn run(&self, task: &Task<'_>, input: Option<&Table>) -> Result<Table> {
        let mut parts = Vec::new();
        let done = self.steps(task, input, End::Keep(&mut parts))?;
        let device = self.identity();
        let body = Box::new(Parts { device, parts });
        Ok(Table::new(task.snapshot, done.slots, done.rows, body))
    }

    fn stream(
        &self,
        task: &Task<'_>,
        input: Option<&Table>,
        sink: &mut dyn Sink,
    ) -> Result<Vec<Slot>> {
        self.stream_profiled(task, input, sink, &mut Vec::new())
    }

    fn stream_profiled(
        &self,
        task: &Task<'_>,
        input: Option<&Table>,
        sink: &mut dyn Sink,
        profile: &mut Vec<StepProfile>,
    ) -> Result<Vec<Slot>> {
        let mut rows = |columns: &[&[u32]], n: usize| sink.batch(columns, n);
        let done = self.steps(task, input, End::Output(Output::Rows(&mut rows)))?;
        profile.extend(done.profile.by_plan_step(task.steps.len()));
        match done.closed {
            Some(e) => Err(e),
            None => Ok(done.slots),
        }
    }
}

impl GpuProfile {
    /// The profile of each step of a plan of `steps` steps, its parts added up.
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
