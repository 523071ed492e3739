//! Many queries on few cores: which worker runs which query next, and which queries are let in at all.
//!
//! ```text
//! submit ─► admission ─► a light worker's own queue ──┐
//!              │     └─► the heavy queue ─────────────┤
//!   (or drawn  └ refused, with a time to come back    ▼
//!    by workers)
//!                                     worker: help a heavy query or begin one, if few enough work on such;
//!                                             else oblige the next worker if it is stuck (OSDI '16, fig. 11);
//!                                             else its own queue
//! ```
//!
//! Nothing here knows what a query is: [`Work`] runs tasks. A heavy task is given a [`WorkerPool`](jindou_engine::WorkerPool) whose
//! threads are the scheduler's other workers, so that there never are more threads that compute than workers. A program whose
//! queries have threads of their own has [`Workers`] instead: places to compute in, and helpers.

mod admission;
mod counts;
mod job;
mod options;
mod pool;
mod queue;
mod scheduler;
mod sync;
mod worker;
mod workers;

pub use admission::{Admission, Admitted, Limits, Reason, Refused};
pub use counts::Counts;
pub use job::{Drawn, Dropped, Job, Ran, Submit, Work};
pub use options::{Options, Policy};
pub use scheduler::Scheduler;
pub use workers::Workers;

/// How much work a query is expected to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// Microseconds on one thread.
    Light,
    /// The others: cut into morsels and held to few workers.
    Heavy,
}
