//! Operators: stages, of which each worker has its own, and the ends of pipelines, which get all rows.
//!
//! ```text
//! leaf ─► stage ─► stage ─┐
//! leaf ─► stage ──────────┴► stage ─► end (part of a worker, merged when all are done)
//! ```
//!
//! The stages of a pipeline are in one array, each before the stage that gets its rows. So the part of the array after
//! a stage is the rest of the pipeline, and no list of pointers is needed.

mod alternatives;
mod apply;
mod count;
mod distinct;
mod each;
mod end;
mod extend;
mod filter;
mod group;
mod group_files;
mod join;
mod join_table;
mod leaves;
mod order;
mod partners;
mod path;
mod slice;
mod stage;
mod steps;
mod union;

pub(crate) use each::OuterRow;
pub(crate) use end::{EndSpec, OutputEnd, ToAny, ToBuffer, ToSinks};
pub(crate) use order::Sorter;
pub(crate) use slice::SliceState;
pub(crate) use stage::{CountedStage, END, Link, Overflow, StageSpec, StageStats, finish, push};

use crate::compile::PipelineBuilder;
use crate::explore::Halt;
use jindou_plan::{Operator, Slot};

/// Number of rows in a batch that an operator produces.
const BATCH: usize = 2048;

impl<'a> PipelineBuilder<'_, 'a> {
    /// Adds an operator to the pipeline. Its own file determines what runs beforehand, and which leaf or stage it
    /// becomes. Returns the slots of its rows.
    pub(crate) fn op(&mut self, op: &'a Operator, node: usize) -> Result<Vec<Slot>, Halt> {
        if let Some(offload) = self.exec.offload
            && let Some((source, slots)) = offload.operator(self.exec, op, node)?
        {
            self.leaf(source, node);
            return Ok(slots);
        }
        match op {
            Operator::Explore(op) => self.exploration(op, node),
            Operator::Outer(op) => self.outer_row(op, node),
            Operator::Values(op) => self.values(op, node),
            Operator::Service(op) => self.service(op, node),
            Operator::Steps(op) => self.steps(op, node),
            Operator::Path(op) => self.path(op, node),
            Operator::Join(op) => self.join(op, node),
            Operator::Apply(op) => self.apply(op, node),
            Operator::Union(op) => self.union(op, node),
            Operator::Extend(op) => self.extend(op, node),
            Operator::Group(group) => self.group(op, group, node),
            Operator::Reduced(op) => self.reduced(op, node),
            Operator::Filter(op) => self.filter(op, node),
            Operator::Distinct(op) => self.distinct(op, node),
            Operator::Count(count) => self.count(op, count, node),
            Operator::OrderBy(op) => self.order_by(op, node),
            Operator::Slice(op) => self.slice(op, node),
        }
    }
}
