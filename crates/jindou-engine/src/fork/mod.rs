//! Fork-join over the shards of a store (OSDI '16, §5.2): an exploration's steps are sent to all shards once; rows then go to the shard that
//! has the next edges, and from the last step to the query's coordinator.
//!
//! ```text
//! coordinator ── Begin, Start ──► parts (one per shard)
//!                                 start ─► step ─► step ─► … rows whose next edges are elsewhere ── Rows ──► another part
//! coordinator ◄── Report: rows that went through all steps; messages that were worked off and sent ──┘
//! ```
//!
//! | module | job |
//! |---|---|
//! | `message` | messages and their bytes |
//! | `route` | where rows go before a step; sending them or asking for data |
//! | `line` | one worker's way through the steps |
//! | `start` | the first rows that a shard makes |
//! | `part`, `outbox` | a query at one shard: what waits, workers, and what they have for others |
//! | `sieve`, `beyond` | finished rows that cannot be among the first |
//! | `ledger` | when all messages are worked off |
//! | `gather` | the coordinator's side |
//! | `run_now` | light explorations, run as a whole at one shard |
//! | `hub`, `execute` | all parts and coordinated queries of a process; the executor |
//! | `observe` | reports of what threads do, for measurements |

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
