//! The command line of `jindou bench cluster updates`.

use super::replicas::{
    ReplicasCheck, ReplicasCommits, ReplicasFaults, ReplicasRoll, ReplicasSetup, ReplicasSimulate,
};
use clap::{Args as ClapArgs, Subcommand};
use jindou_model::units::parse_duration;
use std::time::Duration;

/// Servers over one log, each with some shards of a store that changes, each a process of its own on this machine.
#[derive(Subcommand, Clone, Debug)]
pub enum BenchUpdates {
    /// The W3C's suites, then random changes, queries and merges, sent to the servers in turn while these are killed and ended: each
    /// answer as expected, or that of one server whose store is not sharded.
    Check(ReplicasCheck),
    /// Kill, stop and end servers, cut them off, damage and lose their files, also while they merge, upload and download, while
    /// clients write each number to two shards: nothing lost, nothing twice, no half of an update, no answer too old.
    Faults(ReplicasFaults),
    /// Small transactions of many clients, on servers that have all data and on servers of shards.
    Commits(ReplicasCommits),
    /// LUBM's queries at all servers while triples arrive on existing and new vertices, and after their merge: rows, and processor time
    /// compared with that before.
    Live(UpdatesLive),
    /// Processor time and memory with which a server applies a change, compared with a server that has all data.
    Bounds(UpdatesBounds),
    /// A merge of many changes under a load of queries and updates: none fails, and all copies of a shard are equal.
    Merge(UpdatesMerge),
    /// Another server takes over two shards, and the first one ends, under a load of queries and updates.
    Move(UpdatesMove),
    /// Servers ended and started again in turn under a load of queries and updates.
    Roll(ReplicasRoll),
    /// The store comes back from the log alone, as it is and as it was at a moment.
    Restore(UpdatesRestore),
    /// Seeds of a simulator of servers with some shards each: merges, uploads, downloads, requests for bases, freed ids. Time, network and
    /// bucket are simulated.
    Simulate(ReplicasSimulate),
}

#[derive(ClapArgs, Clone, Debug)]
pub struct UpdatesLive {
    #[command(flatten)]
    pub setup: ReplicasSetup,
    /// Universities of LUBM's data in the store.
    #[arg(long, short = 'n', default_value_t = 160)]
    pub universities: u32,
    /// Triples a second.
    #[arg(long, default_value_t = 10_000)]
    pub triples: u32,
    /// Transactions a second.
    #[arg(long, default_value_t = 50)]
    pub transactions: u32,
    /// Time for which each query is asked, in each of four passes.
    #[arg(long, value_parser = parse_duration, default_value = "4s")]
    pub time: Duration,
}

#[derive(ClapArgs, Clone, Debug)]
pub struct UpdatesBounds {
    #[command(flatten)]
    pub setup: ReplicasSetup,
    /// Quads that are inserted.
    #[arg(long, default_value_t = 500_000)]
    pub changes: u64,
}

#[derive(ClapArgs, Clone, Debug)]
pub struct UpdatesMerge {
    #[command(flatten)]
    pub setup: ReplicasSetup,
    /// Universities of LUBM's data in the store.
    #[arg(long, short = 'n', default_value_t = 10)]
    pub universities: u32,
    /// Quads that are inserted before the merge.
    #[arg(long, default_value_t = 1_000_000)]
    pub changes: u64,
    /// Queries a second.
    #[arg(long, default_value_t = 50)]
    pub queries: u32,
    /// Updates a second.
    #[arg(long, default_value_t = 50)]
    pub updates: u32,
}

#[derive(ClapArgs, Clone, Debug)]
pub struct UpdatesMove {
    #[command(flatten)]
    pub setup: ReplicasSetup,
    /// Universities of LUBM's data in the store.
    #[arg(long, short = 'n', default_value_t = 40)]
    pub universities: u32,
    /// Queries a second.
    #[arg(long, default_value_t = 100)]
    pub queries: u32,
    /// Updates a second.
    #[arg(long, default_value_t = 50)]
    pub updates: u32,
}

#[derive(ClapArgs, Clone, Debug)]
pub struct UpdatesRestore {
    #[command(flatten)]
    pub setup: ReplicasSetup,
    /// Updates before the moment that is restored, and as many after it.
    #[arg(long, default_value_t = 2000)]
    pub updates: u64,
}

impl BenchUpdates {
    /// The setup, whose store is sharded; `None` without servers.
    pub fn setup(&mut self) -> Option<&mut ReplicasSetup> {
        Some(match self {
            Self::Check(a) => &mut a.setup,
            Self::Faults(a) => &mut a.setup,
            Self::Commits(a) => &mut a.setup,
            Self::Bounds(a) => &mut a.setup,
            Self::Live(a) => &mut a.setup,
            Self::Merge(a) => &mut a.setup,
            Self::Move(a) => &mut a.setup,
            Self::Roll(a) => &mut a.setup,
            Self::Restore(a) => &mut a.setup,
            Self::Simulate(_) => return None,
        })
    }
}
