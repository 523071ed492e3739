//! Execution of property paths `p+` and `p*` from a constant: a breadth-first search with a bitmap of the reached nodes
//! and a table of the nodes that the last level added.

use crate::buffer::DeviceBuffer;
use crate::compile::{DevicePath, DeviceSource, DeviceStep, DeviceWithin, Owner, StepWork};
use crate::counts::TotalUse;
use crate::run::{ProgramRun, StepStop};
use crate::table::{DeviceTable, TableColumn};
use crate::{backend::Kernel, params};
use jindou_model::{Error, Resource, Result};
use jindou_plan::{Operand, Slot};
use std::sync::Arc;

/// The column of nodes that the last level added.
pub(crate) const FRONT: Slot = Slot::MAX - 3;
/// Smallest capacity of the list of reached nodes, in ids.
const LEAST: u64 = 1 << 10;

/// The nodes that are reachable by a path.
#[derive(Clone)]
pub(crate) struct Reached {
    list: Arc<DeviceBuffer>,
    rows: u64,
}

/// A list of ids on the device that grows.
struct GrowingList {
    buffer: Option<Arc<DeviceBuffer>>,
    room: u64,
    rows: u64,
}

impl ProgramRun<'_, '_, '_> {
    /// The nodes that are reachable by the path of step `k`, computed once per run.
    fn reached(&mut self, k: usize, path: &DevicePath) -> Result<Reached, StepStop> {
        if let Some((_, found)) = self.reaches.iter().find(|(of, _)| *of == k) {
            return Ok(found.clone());
        }
        let found = self.search(k, path)?;
        self.reaches.push((k, found.clone()));
        Ok(found)
    }

    fn search(&mut self, k: usize, path: &DevicePath) -> Result<Reached, StepStop> {
        let begin = DeviceBuffer::with(&self.queue.device, &[path.from])?;
        let mut front = vec![column(FRONT, Arc::new(begin), 0, 1)];
        let mut list = GrowingList {
            buffer: None,
            room: 0,
            rows: 0,
        };
        // Only the new column of an expansion is kept.
        let inner = DeviceStep {
            work: StepWork::EndApply { begin: k },
            keep: vec![FRONT],
            name: String::new(),
            plan_step: k,
        };
        if path.zero {
            for table in &front {
                let new = self.distinct(&inner, table, FRONT, path.set)?;
                self.append(&mut list, &new)?;
            }
        }
        while !front.is_empty() {
            let before = list.rows;
            for table in &front {
                for along in &path.lists {
                    self.cancel.check()?;
                    self.turn.pass()?;
                    self.queue.at_step(k);
                    // While this query had given up its turn, another one may have evicted the step's blocks.
                    self.page_in(k)?;
                    let every = DeviceWithin::every(&self.queue.device)?;
                    let from = DeviceTable {
                        rows: table.rows,
                        count: None,
                        columns: rename(table, NODE),
                    };
                    if along.segment.is_degree_one() {
                        let next = self.expand_one(&inner, &from, FRONT, along, &every)?;
                        let next = self.settled(next)?;
                        let new = self.distinct(&inner, &next, FRONT, path.set)?;
                        self.append(&mut list, &new)?;
                        continue;
                    }
                    let lists = std::slice::from_ref(along);
                    let measured = self.measure_lists(&from, lists, &every, TotalUse::Number)?;
                    self.each_strip(&inner, &from, FRONT, &measured, |run, next| {
                        let new = run.distinct(&inner, next, FRONT, path.set)?;
                        run.append(&mut list, &new)
                    })?;
                }
            }
            front.clear();
            if let Some(all) = list.buffer.as_ref().filter(|_| list.rows > before) {
                let most = self.most_rows;
                let mut at = before;
                while at < list.rows {
                    let rows = (list.rows - at).min(most);
                    front.push(column(FRONT, Arc::clone(all), at, rows as u32));
                    at += rows;
                }
            }
        }
        let list_of = match list.buffer {
            Some(buffer) => buffer,
            None => Arc::new(DeviceBuffer::new(&self.queue.device, 4)?),
        };
        Ok(Reached {
            list: list_of,
            rows: list.rows,
        })
    }

    /// Appends the only column of a table to a list.
    fn append(&mut self, list: &mut GrowingList, table: &DeviceTable) -> Result<(), StepStop> {
        let table = &self.settled(table.clone())?;
        let Some(from) = table.columns.first().filter(|_| table.rows > 0) else {
            return Ok(());
        };
        let rows = u64::from(table.rows);
        if list.rows + rows > list.room {
            let room = (list.rows + rows).max(list.room * 2).max(LEAST);
            let grown = self.memory.alloc(room * 4)?.ok_or_else(|| too_many(room))?;
            if let Some(old) = &list.buffer {
                let bytes = list.rows as usize * 4;
                // SAFETY: both buffers hold as many ids, and the old one is freed after the copy, by the order of the
                // queue.
                unsafe { self.queue.device.copy(grown.at(), old.at(), bytes)? };
            }
            (list.buffer, list.room) = (Some(Arc::new(grown)), room);
        }
        if let Some(to) = &list.buffer {
            let at = to.at() + list.rows * 4;
            // SAFETY: there is room for as many ids after those in the list.
            unsafe { self.queue.device.copy(at, from.at, rows as usize * 4)? };
        }
        list.rows += rows;
        Ok(())
    }

    /// Continues with each row combined with each reachable node; or, if the path only tests a column, with the rows
    /// whose node is reachable.
    pub(crate) fn path(
        &mut self,
        k: usize,
        step: &DeviceStep<'_>,
        table: DeviceTable,
        path: &DevicePath,
    ) -> Result<()> {
        let found = match self.reached(k, path) {
            Ok(found) => found,
            Err(StepStop::Error(e)) => return Err(e),
            Err(StepStop::TooLarge) => {
                return Err(Error::limit(
                    Resource::Device,
                    format!(
                        "the GPU's memory for tables is too small for this path ({} KiB left)",
                        self.memory.left() >> 10
                    ),
                ));
            }
        };
        self.queue.at_step(k);
        if found.rows == 0 {
            self.queue.rows(u64::from(table.rows), 0);
            return Ok(());
        }
        if path.is_test {
            return match self.among(step, &table, path) {
                Ok(next) => {
                    self.received(k, &table);
                    self.made(k, &next);
                    drop(table);
                    self.run(k + 1, next)
                }
                Err(StepStop::Error(e)) => Err(e),
                Err(StepStop::TooLarge) => self.halves(k, &table),
            };
        }
        let source = DeviceSource::Column {
            at: found.list.at(),
            rows: found.rows,
            owner: Owner::Buffer(found.list),
        };
        match self.measure_cross(&table, &source) {
            Ok(m) => {
                let all: params::Within = bytemuck::Zeroable::zeroed();
                self.expand_strips(k, step, table, path.slot, m, all)
            }
            Err(StepStop::Error(e)) => Err(e),
            Err(StepStop::TooLarge) => self.halves(k, &table),
        }
    }

    /// The rows whose node is reachable.
    fn among(
        &mut self,
        step: &DeviceStep<'_>,
        table: &DeviceTable,
        path: &DevicePath,
    ) -> Result<DeviceTable, StepStop> {
        let new = self.kept_table(step, table, None)?;
        let Some((_, bits)) = self.sets.get(path.set) else {
            return Err(Error::Internal("a path without its set".into()).into());
        };
        let bits = *bits;
        let p = params::TestParams {
            compact: self.compact_of(table, &new, &step.keep)?,
            bits,
            operand: table.operand(Operand::Slot(path.slot))?,
            want: 1,
            by_row: 0,
            first: 0,
            pad: 0,
        };
        let bytes = 8.0 * f64::from(table.rows);
        // SAFETY: columns hold `rows` ids, outputs have room for as many; the bitmap has a bit for each id.
        unsafe {
            self.queue
                .launch(Kernel::Test, u64::from(table.rows), &p, bytes, 0.0)?
        };
        Ok(self.finish_compact(new)?)
    }
}

/// The column of nodes whose lists are read, which is not kept.
pub(crate) const NODE: Slot = Slot::MAX - 4;

fn rename(table: &DeviceTable, slot: Slot) -> Vec<TableColumn> {
    let columns = table.columns.iter().cloned();
    columns.map(|c| TableColumn { slot, ..c }).collect()
}

fn column(slot: Slot, buffer: Arc<DeviceBuffer>, from: u64, rows: u32) -> DeviceTable {
    DeviceTable {
        rows,
        count: None,
        columns: vec![TableColumn {
            slot,
            at: buffer.at() + from * 4,
            owner: Owner::Buffer(buffer),
        }],
    }
}

fn too_many(nodes: u64) -> StepStop {
    StepStop::Error(Error::limit(
        Resource::Device,
        format!("the GPU's memory for tables is too small for the {nodes} nodes of a path"),
    ))
}
