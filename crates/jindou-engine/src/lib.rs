//! The CPU engine: runs a plan by exploring the graph, batch by batch.
//!
//! | module | job |
//! |---|---|
//! | `execute` | runs a plan |
//! | `alone` | runs a plan that is one exploration, on one thread |
//! | `compile` | operators to pipelines: leaves, stages, ends |
//! | `worker` | cuts a pipeline's leaves into morsels, gives them to workers, puts their parts together |
//! | `explore` | the exploration steps, pushed through a pipeline of batches |
//! | `filter` | conditions on ids and value ranks, by value for the rest |
//! | `operators` | stages of pipelines and their ends: joins, OPTIONAL, grouping, sorting, … |
//! | `path` | property paths |
//! | `values` | expressions, computed terms, aggregates |
//! | `held`, `table`, `key_table` | rows in memory, sets and hash tables of ids |
//! | `values` | expressions: values of rows as ids; aggregates |
//! | `sink` | where rows go |
//! | `terms` | ids to terms; terms that a query makes |
//! | `executor` | the boundary behind which a CPU, a GPU or another server runs steps |
//! | `beyond` | a plan whose first steps another executor runs |

mod alone;
mod batch;
mod beyond;
mod compile;
mod execute;
mod executor;
mod explore;
mod filter;
mod held;
mod intersect;
mod key_table;
mod operators;
mod options;
mod path;
mod sink;
mod table;
mod terms;
mod tree;
mod values;
mod within;
mod worker;

pub use beyond::execute_on;
pub use execute::{execute, execute_streaming};
pub use executor::{CpuExecutor, Executor, Table, Task, columns_after};
pub use options::{
    Crew, DEFAULT_BATCH_ROWS, ExecOptions, Main, NodeProfile, Profile, ServiceCaller, Spawned,
    StepProfile, TakeRow,
};
pub use sink::{ChecksumSink, CollectSink, CountSink, ParallelSink, Sink, Streaming, Summed};
pub use terms::{QueryTerms, TermDecoder};
