//! The worker-obliger of OSDI '16, the scheduler that the papers' figures need: it decides which worker runs which
//! query next.
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
//! The scheduler does not know what a query is; a [`TaskSource`] runs the tasks. A heavy task is given a
//! [`WorkerPool`](jindou::WorkerPool) whose threads are the scheduler's other workers, so that never more threads
//! compute than there are workers. `jindou serve` does not use this scheduler but the engine's
//! [`Workers`](jindou::Workers); admission is the server's.

mod counts;
mod job;
mod options;
mod pool;
mod queue;
mod scheduler;
mod sync;
#[cfg(test)]
mod tests;
mod worker;

pub use counts::Counts;
pub use jindou_server::{AdmissionLimits, Refusal, WorkClass};
pub use job::{Drawn, Dropped, Job, Ran, Submit, TaskSource};
pub use options::{Options, Policy};
pub use scheduler::Scheduler;
