//! The worker-obliger of OSDI '16, as the papers' figures want it: which worker runs which query next.
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
//! Nothing here knows what a query is: [`TaskSource`] runs tasks. A heavy task is given a [`WorkerPool`](jindou::WorkerPool) whose
//! threads are the scheduler's other workers, so that there never are more threads that compute than workers. A server has the
//! engine's [`Workers`](jindou::Workers) instead; the admission is the server's own.

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
