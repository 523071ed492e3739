//! Operators: stages that every worker has for itself, and the ends of pipelines that see all rows.
//!
//! ```text
//! leaf ─► stage ─► stage ─┐
//! leaf ─► stage ──────────┴► stage ─► end (part of a worker, put together when all are done)
//! ```
//!
//! Stages lie in one array, each before the one it gives its rows to, so that a batch is pushed through without a list of
//! pointers: the part of the array behind a stage is what comes after it.

mod apply;
mod count;
mod distinct;
mod each;
mod end;
mod equal;
mod extend;
mod group;
mod join;
mod join_table;
mod order;
mod order_keys;
mod path;
mod slice;
mod stage;

pub(crate) use apply::{ApplySpec, Attach};
pub(crate) use distinct::SharedDistinct;
pub(crate) use each::{EachSpec, OuterRow};
pub(crate) use end::{End, EndSpec};
pub(crate) use equal::EqualSpec;
pub(crate) use join_table::{JoinTable, Shape};
pub(crate) use order::Sorter;
pub(crate) use order_keys::Places;
pub(crate) use slice::SliceState;
pub(crate) use stage::{END, Link, Spec, Stage, StageStats, finish, push};

/// Rows in a batch that an operator makes.
const BATCH: usize = 2048;
