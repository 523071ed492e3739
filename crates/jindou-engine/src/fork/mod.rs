//! Fork-join over the shards of a store (OSDI '16, §5.2). The steps of an exploration are sent to all shards once. Rows
//! are then sent to the shard that has the next edges, and after the last step to the query's coordinator.
//!
//! ```text
//! coordinator ── Begin, Start ──► parts (one per shard)
//!                                 start ─► step ─► step ─► … rows with their next edges elsewhere ─ Rows ─► a part
//! coordinator ◄── Report: rows that have passed all steps; numbers of messages processed and sent ──┘
//! ```
//!
//! | module | contents |
//! |---|---|
//! | `message` | messages and their encoding |
//! | `route` | where rows go before a step: sending rows, or requesting data |
//! | `line` | one worker's pipeline of steps |
//! | `start` | the start rows of a shard |
//! | `part`, `outbox` | a query at one shard: queues, workers, and buffered reports and rows |
//! | `sieve`, `beyond` | ORDER BY with LIMIT: finished rows that are not needed |
//! | `ledger` | termination detection |
//! | `gather` | the coordinator's side |
//! | `run_now` | light explorations, executed completely at one shard |
//! | `hub`, `execute` | all parts and coordinated queries of a process; the executor |
//! | `observe` | instrumentation of threads, for measurements |

mod beyond;
mod gather;
mod hub;
mod ledger;
mod line;
mod message;
mod part;
mod route;
mod run_now;
mod sieve;
mod start;

pub use hub::{Activity, ForkExecutor, Hub, LocalShards, Observer, Told};
pub use message::ShardMode;
