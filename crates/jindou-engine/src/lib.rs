//! The CPU engine: runs a plan by exploring the graph, batch by batch.
//!
//! | module | job |
//! |---|---|
//! | `execute` | runs a plan |
//! | `single_thread` | runs a plan that is one exploration, on one thread |
//! | `compile` | operators to pipelines: leaves, stages, ends |
//! | `worker` | cuts a pipeline's leaves into morsels, gives them to workers, puts their parts together |
//! | `eval` | what expressions and filters need of a running query |
//! | `explore` | the exploration steps, pushed through a pipeline of batches |
//! | `filter` | conditions on ids and value ranks, by value for the rest |
//! | `operators` | stages of pipelines and their ends: joins, OPTIONAL, grouping, sorting, … |
//! | `path` | property paths |
//! | `row_buffer`, `table`, `key_table` | rows in memory, sets and hash tables of ids |
//! | `values` | expressions: values of rows as ids, computed terms; aggregates |
//! | `sink` | where rows go |
//! | `places` | places to compute in, one per core, and threads that help heavy queries in those that are free |
//! | `live` | counts that others read while a plan runs |
//! | `terms` | ids to terms; terms that a query makes |
//! | `executor` | the boundary behind which a CPU, a GPU or another server runs steps |
//! | `fork` | explorations that run at the shards that have their data |
//! | `offload` | plans that another executor runs, wholly or their first steps; falling back to this CPU |

mod batch;
mod compile;
mod eval;
mod execute;
mod executor;
mod explore;
mod filter;
mod fork;
mod id_test;
mod intersect;
mod key_table;
mod live;
mod morsels;
mod offload;
mod operators;
mod options;
mod path;
mod places;
#[cfg(target_arch = "x86_64")]
mod processor;
mod row_buffer;
mod single_thread;
mod sink;
mod table;
mod terms;
mod tree;
mod values;
mod worker;

pub use execute::{Execution, ExecutionOutcome, ExecutorChoice, execute, execute_streaming};
pub use executor::{
    Executor, GroupedRows, Needs, OperatorTask, Poll, PulledRows, Repeats, RowBlock, ShardWork,
    Task, Top, columns_after,
};
pub use fork::{Activity, ForkExecutor, Hub, LocalShards, Observer, ShardMode, Told};
pub use live::LiveProfile;
pub use offload::execute_on;
pub use options::{
    DEFAULT_BATCH_ROWS, ExecOptions, HELPERS_STACK, Main, NodeProfile, Profile, ServiceCaller,
    Spawned, StepProfile, TakeRow, WorkerPool,
};
pub use places::{HelpCalls, Workers};
pub use sink::{ChecksumSink, CollectSink, CountSink, ParallelSink, Sink, Streaming, Summed};
pub use terms::{QueryTerms, TermDecoder};
