//! The command line of `jindou bench cluster`.

use super::updates::BenchUpdates;
use clap::{Args as ClapArgs, Subcommand};
use std::path::PathBuf;

/// Measurements of several servers over the shards of one store.
#[derive(Subcommand, Debug)]
pub enum BenchCluster {
    /// Kill servers, stop them and cut their links while clients ask: no answer may be wrong, partial or late.
    Faults(BenchFaults),
    /// Light queries over two servers and over one: times of L4 to L6, and the mix's throughput.
    Light(BenchClusterLight),
    /// LUBM's queries with data asked for, rows sent, or by cost: messages, bytes, rows and processor time compared with one server.
    Modes(BenchClusterModes),
    /// One-step pruning with a final join, as a model, compared with full history: rows and bytes that LUBM's queries send.
    Pruning(BenchClusterPruning),
    /// More servers than this machine has: recorded queries scheduled under cores and networks, after two real servers were compared with
    /// their schedule.
    Projection(BenchClusterProjection),
    /// Servers over one log, each with some shards of a store that changes: random changes, faults, throughput.
    #[command(subcommand)]
    Updates(BenchUpdates),
}

/// The store and its servers.
#[derive(ClapArgs, Debug)]
pub struct ClusterSetup {
    /// Universities of the store that is made.
    #[arg(long, short = 'n', default_value_t = 1)]
    pub universities: u32,
    /// Its shards.
    #[arg(long, default_value_t = 6)]
    pub shards: u32,
    /// Folder for the stores; a temporary one without it.
    #[arg(long)]
    pub dir: Option<PathBuf>,
}

#[derive(ClapArgs, Debug)]
pub struct BenchFaults {
    #[command(flatten)]
    pub setup: ClusterSetup,
    /// Servers, at most 6, each a process of its own.
    #[arg(long, default_value_t = 3)]
    pub servers: usize,
    /// Servers killed, one at a time, each started again.
    #[arg(long, default_value_t = 100)]
    pub kills: u32,
    /// Servers stopped by SIGSTOP for up to four seconds.
    #[arg(long, default_value_t = 100)]
    pub stops: u32,
    /// Times that the way to a server is cut for up to four seconds: half of them closed, half of them silent.
    #[arg(long, default_value_t = 100)]
    pub cuts: u32,
    /// Chooses faults and queries.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

#[derive(ClapArgs, Debug)]
pub struct BenchClusterLight {
    #[command(flatten)]
    pub setup: ClusterSetup,
    /// Times that each query is asked.
    #[arg(long, default_value_t = 2000)]
    pub repeat: usize,
    /// How the two servers read lists from each other's memory (`jindou serve --peer-reads`).
    #[arg(long, default_value = "off")]
    pub peer_reads: String,
}

#[derive(ClapArgs, Debug)]
pub struct BenchClusterModes {
    /// Universities of the stores that are made.
    #[arg(long, short = 'n', default_value_t = 640)]
    pub universities: u32,
    /// Numbers of servers, each with one shard.
    #[arg(long, value_delimiter = ',', default_value = "2,6")]
    pub servers: Vec<u32>,
    /// Threads that compute, of all shards together.
    #[arg(long, default_value_t = 2)]
    pub threads: usize,
    /// Microseconds that a request to another shard takes.
    #[arg(long, default_value_t = 100)]
    pub latency: u64,
    /// Times that a query is measured in each mode; with data asked for, once.
    #[arg(long, default_value_t = 3)]
    pub repeat: usize,
    /// Queries to measure.
    #[arg(long, value_delimiter = ',', default_value = "L1,L2,L3,L4,L5,L6,L7")]
    pub queries: Vec<String>,
    /// Folder for the stores; a temporary one without it.
    #[arg(long)]
    pub dir: Option<PathBuf>,
}

#[derive(ClapArgs, Debug)]
pub struct BenchClusterProjection {
    /// Universities of the stores that are made.
    #[arg(long, short = 'n', default_value_t = 40)]
    pub universities: u32,
    /// Numbers of servers, each with one shard.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "2,4,6,8,10,12,14,16,18,20,22,24"
    )]
    pub servers: Vec<u32>,
    /// Cores of a server that has one query, all of which may run its part.
    #[arg(long, default_value_t = 16)]
    pub cores: usize,
    /// Cores of a server in the mix.
    #[arg(long, default_value_t = 4)]
    pub workers: usize,
    /// Clients of each server in the mix.
    #[arg(long, default_value_t = 16)]
    pub clients: usize,
    /// Instances of each template of the mix.
    #[arg(long, default_value_t = 60)]
    pub instances: usize,
    /// Times that a heavy query is recorded, and measured on two servers; light ones 20 times as often.
    #[arg(long, default_value_t = 9)]
    pub repeat: usize,
    /// Folder for the stores; a temporary one without it.
    #[arg(long)]
    pub dir: Option<PathBuf>,
}

#[derive(ClapArgs, Debug)]
pub struct BenchClusterPruning {
    /// Universities of the stores that are made.
    #[arg(long, short = 'n', default_value_t = 40)]
    pub universities: u32,
    /// Numbers of servers, each with one shard.
    #[arg(long, value_delimiter = ',', default_value = "2,6")]
    pub servers: Vec<u32>,
    /// Folder for the stores; a temporary one without it.
    #[arg(long)]
    pub dir: Option<PathBuf>,
}
