//! The CPU engine: runs a plan by exploring the graph, batch by batch.
//!
//! | module | job |
//! |---|---|
//! | `execute` | runs a plan |
//! | `single_thread` | runs a plan that is one exploration, on one thread |
//! | `compile` | operators to pipelines: leaves, stages, ends |
//! | `worker` | runs a pipeline: workers take morsels of its leaves; their results are merged |
//! | `eval` | the part of a running query's state that expressions and filters need |
//! | `explore` | the exploration steps, pushed through a pipeline of batches |
//! | `filter` | conditions on rows, decided by ids and value ranks if possible, otherwise by values |
//! | `operators` | stages of pipelines and their ends: joins, OPTIONAL, grouping, sorting, … |
//! | `path` | property paths |
//! | `partitions` | rows in temporary files, divided by hash |
//! | `row_buffer`, `table`, `key_table` | buffered rows; sets and hash tables of ids |
//! | `values` | expressions: ids of their values in rows, computed terms; aggregates |
//! | `sink` | receivers of result rows |
//! | `places` | one place per core for threads that compute, and threads that help heavy queries in free places |
//! | `live` | counts that other threads read while a plan runs |
//! | `terms` | decoding of ids; terms that a query creates |
//! | `executor` | the interface of a CPU, a GPU or other servers that run steps |
//! | `fork` | explorations that run at the shards that have their data |
//! | `offload` | plans of which another executor runs all, or the first steps; falling back to this CPU |

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
mod partitions;
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
