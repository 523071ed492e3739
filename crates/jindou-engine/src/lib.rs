//! The CPU engine: runs a plan by exploring the graph, batch by batch.
//!
//! | module | job |
//! |---|---|
//! | `execute` | cuts a plan's start into morsels, gives them to workers, puts their parts together |
//! | `explore` | the exploration steps, pushed through a pipeline of batches |
//! | `filter` | conditions on ids and value ranks; `spareval` for the rest |
//! | `operators` | DISTINCT, COUNT, ORDER BY, LIMIT above the exploration |
//! | `sink` | where rows go |
//! | `terms` | ids to terms; terms that a query makes |
//! | `executor` | the boundary behind which a CPU, a GPU or another server runs steps |
//! | `beyond` | a plan whose first steps another executor runs |

mod batch;
mod beyond;
mod execute;
mod executor;
mod explore;
mod filter;
mod intersect;
mod operators;
mod options;
mod sink;
mod table;
mod terms;
mod within;

pub use beyond::execute_on;
pub use execute::{execute, execute_streaming};
pub use executor::{CpuExecutor, Executor, Table, Task, columns_after};
pub use options::{DEFAULT_BATCH_ROWS, ExecOptions, Profile, StepProfile};
pub use sink::{ChecksumSink, CollectSink, CountSink, ParallelSink, Sink, Streaming, Summed};
pub use terms::{QueryTerms, TermDecoder};
