//! The command line of `jindou bench replicas`.

use clap::{Args as ClapArgs, Subcommand};
use jindou_model::units::parse_duration;
use std::path::PathBuf;
use std::time::Duration;

/// Several servers of one store over a shared log, each a process of its own on this machine.
#[derive(Subcommand, Debug)]
pub enum BenchReplicas {
    /// The W3C's suites, then random changes and queries, sent to the servers in turn: each answer as expected, or that of one
    /// server without a log.
    Check(ReplicasCheck),
    /// Kill, stop and end servers and take their log away while clients change the store: nothing lost, nothing twice, no answer too
    /// old.
    Faults(ReplicasFaults),
    /// Small transactions of many clients, on one server without a log, and on one and several with it.
    Commits(ReplicasCommits),
    /// Processor time of a light query, on a server without a log and on one of one to three with it.
    Reads(ReplicasReads),
    /// Servers ended and started again in turn under a load of queries and updates.
    Roll(ReplicasRoll),
    /// Time after which updates are seen at the servers that follow, at a steady rate of triples.
    Follow(ReplicasFollow),
    /// Simulated servers, bucket, network and clients, from seeds: the guarantees hold in each, or planted faults are found.
    Simulate(ReplicasSimulate),
    /// Values replaced by new ones all the time, over many merges: files, memory and log stay as they are.
    Soak(ReplicasSoak),
}

/// The servers and their log.
#[derive(ClapArgs, Clone, Debug)]
pub struct ReplicasSetup {
    /// Servers.
    #[arg(long, default_value_t = 3)]
    pub servers: usize,
    /// The log: a directory that is made, or s3://BUCKET/PREFIX; in the temporary folder without it.
    #[arg(long, value_name = "PLACE")]
    pub log: Option<String>,
    /// Folder for the servers' copies; a temporary one without it.
    #[arg(long)]
    pub dir: Option<PathBuf>,
    /// The command `jindou`, if not the one next to this program.
    #[arg(long, value_name = "FILE")]
    pub program: Option<PathBuf>,
    /// Shards of the store, in blocks of one id; without it the store is not sharded, and with `cluster updates` it has 6.
    #[arg(long, value_name = "N")]
    pub shards: Option<u32>,
    /// Servers that have each shard.
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub replicas: u32,
}

#[derive(ClapArgs, Clone, Debug)]
pub struct ReplicasCheck {
    #[command(flatten)]
    pub setup: ReplicasSetup,
    /// Changes that are sent [default: 100000, or 20000 to servers of shards].
    #[arg(long)]
    pub steps: Option<u64>,
    /// Chooses them.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Without the W3C's suites.
    #[arg(long)]
    pub no_suites: bool,
    /// The shards of one process that has its own log, in place of servers of a shared one.
    #[arg(long)]
    pub in_process: bool,
}

#[derive(ClapArgs, Clone, Debug)]
pub struct ReplicasFaults {
    #[command(flatten)]
    pub setup: ReplicasSetup,
    /// Faults, of all kinds in turn.
    #[arg(long, default_value_t = 60)]
    pub rounds: u32,
    /// Clients of each server.
    #[arg(long, default_value_t = 2)]
    pub clients: usize,
    /// Chooses servers and times.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Servers in network namespaces, and on small disks, of their own: links between them are cut, too, and disks become full. Needs
    /// root and `ip`.
    #[arg(long)]
    pub isolated: bool,
    /// Only faults whose names in the table hold one of these texts.
    #[arg(long, value_name = "TEXT", value_delimiter = ',')]
    pub only: Vec<String>,
    /// LUBM's data of this many universities in the store, and L1 to L7 at each server after each fault.
    #[arg(long, short = 'n', value_name = "N")]
    pub universities: Option<u32>,
    /// Writes each update and each strict read as a line of JSON, for scripts/porcupine.sh. Strict reads then read any client's count.
    #[arg(long, value_name = "FILE")]
    pub history: Option<PathBuf>,
    /// Pause between faults.
    #[arg(long, value_parser = parse_duration, default_value = "2s")]
    pub pause: Duration,
}

#[derive(ClapArgs, Clone, Debug)]
pub struct ReplicasCommits {
    #[command(flatten)]
    pub setup: ReplicasSetup,
    /// Numbers of clients, each of which waits for an answer before it sends the next transaction.
    #[arg(long, value_delimiter = ',', default_value = "64,16")]
    pub clients: Vec<usize>,
    /// Time of each run.
    #[arg(long, value_parser = parse_duration, default_value = "10s")]
    pub time: Duration,
}

#[derive(ClapArgs, Debug)]
pub struct ReplicasReads {
    #[command(flatten)]
    pub setup: ReplicasSetup,
    /// Queries of one round.
    #[arg(long, default_value_t = 50_000)]
    pub queries: u64,
    /// Rounds of each server, in turn.
    #[arg(long, default_value_t = 7)]
    pub rounds: usize,
}

#[derive(ClapArgs, Clone, Debug)]
pub struct ReplicasRoll {
    #[command(flatten)]
    pub setup: ReplicasSetup,
    /// Queries a second.
    #[arg(long, default_value_t = 200)]
    pub queries: u32,
    /// Updates a second.
    #[arg(long, default_value_t = 50)]
    pub updates: u32,
    /// Times that each server is ended and started again.
    #[arg(long, default_value_t = 3)]
    pub rounds: u32,
}

#[derive(ClapArgs, Debug)]
pub struct ReplicasFollow {
    #[command(flatten)]
    pub setup: ReplicasSetup,
    /// Triples a second.
    #[arg(long, default_value_t = 50_000)]
    pub triples: u32,
    /// Transactions a second.
    #[arg(long, default_value_t = 100)]
    pub transactions: u32,
    /// Time of the run.
    #[arg(long, value_parser = parse_duration, default_value = "20s")]
    pub time: Duration,
}

#[derive(ClapArgs, Debug)]
pub struct ReplicasSoak {
    #[command(flatten)]
    pub setup: ReplicasSetup,
    /// Quads, whose number stays.
    #[arg(long, default_value_t = 500_000)]
    pub quads: u64,
    /// Merges.
    #[arg(long, default_value_t = 20)]
    pub merges: usize,
    /// Updates between two merges, each of which replaces 20 literals.
    #[arg(long, default_value_t = 7_500)]
    pub updates: u64,
}

#[derive(ClapArgs, Clone, Debug)]
pub struct ReplicasSimulate {
    /// Number of seeds; with --plant, the most for each fault [default: 10000, with --plant 2000].
    #[arg(
        long,
        default_value_t = 10_000,
        default_value_if("plant", clap::builder::ArgPredicate::IsPresent, "2000"),
        hide_default_value = true
    )]
    pub seeds: u64,
    /// The first of them.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Plants each fault in turn, or the one of this name, and says in which seed it is found.
    #[arg(long, value_name = "FAULT", num_args = 0..=1, default_missing_value = "all")]
    pub plant: Option<String>,
    /// Prints all that happens in the first seed, and plays no other.
    #[arg(long)]
    pub trace: bool,
}
