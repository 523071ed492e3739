//! The command line of `jindou bench parallel`, and of its workers.

use clap::{Args as ClapArgs, ValueEnum};
use std::fmt;
use std::path::PathBuf;

/// Kind of parallelism.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Model {
    /// Different queries at the same time, each on the whole store.
    Task,
    /// One query at a time, on parts of the graph.
    Data,
    /// One after the other.
    Both,
}

/// How the graph is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Partition {
    /// Triples by a hash of their subject.
    Hash,
    /// Subjects by the beginnings of their IRIs, so that what belongs together stays together.
    Star,
    /// METIS: as few edges between parts as it can find.
    Mincut,
}

impl fmt::Display for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Hash => "hash",
            Self::Star => "star",
            Self::Mincut => "mincut",
        })
    }
}

/// How partial results come together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Gather {
    /// Each worker sends to the master when it is done.
    Point,
    /// Workers pass their results on along a tree; the master gets all of them as one message.
    #[value(name = "gather")]
    Tree,
    /// One after the other.
    Both,
}

impl fmt::Display for Gather {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Point => "point",
            Self::Tree => "gather",
            Self::Both => "both",
        })
    }
}

#[derive(ClapArgs, Debug)]
pub struct BenchParallel {
    /// LUBM of this many universities: L1 to L7, the official 14, the emulator's templates.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), conflicts_with_all = ["watdiv", "queries"])]
    pub lubm: Option<u32>,
    /// WatDiv of this scale: its 20 basic templates.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), conflicts_with = "queries")]
    pub watdiv: Option<u32>,
    /// A folder of queries, a file each; `counts.tsv` in it has the right numbers of rows.
    #[arg(long, value_name = "DIR", required_unless_present_any = ["lubm", "watdiv"])]
    pub queries: Option<PathBuf>,
    /// Where the store is or goes; an existing one is used as it is (default: in the work folder).
    #[arg(long, value_name = "DIR")]
    pub store: Option<PathBuf>,
    /// Data to load if there is no store: RDF files or folders (default: what --lubm or --watdiv generate).
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub files: Vec<PathBuf>,
    /// Folder where stores of partitions are kept and found again (default: a temporary one).
    #[arg(long, value_name = "DIR")]
    pub work: Option<PathBuf>,
    /// Kind of parallelism.
    #[arg(long, value_enum, default_value = "both")]
    pub model: Model,
    /// Worker processes: several to compare.
    #[arg(long, value_delimiter = ',', default_value = "1,2", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub workers: Vec<u32>,
    /// How the graph is cut: several to compare.
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "hash,star,mincut"
    )]
    pub partition: Vec<Partition>,
    /// Replicate this many hops around what a worker owns (never for hash): several to compare.
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1,2", value_parser = clap::value_parser!(u32).range(..=3))]
    pub hops: Vec<u32>,
    /// How partial results come together.
    #[arg(long, value_enum, default_value = "both")]
    pub gather: Gather,
    /// A query has a large footprint from this part of the store's bytes on.
    #[arg(long, value_name = "SHARE", default_value_t = 0.02)]
    pub large: f64,
    /// How often the small and the large queries are in the task pool.
    #[arg(
        long,
        value_name = "N,N",
        value_delimiter = ',',
        default_value = "100,33"
    )]
    pub times: Vec<usize>,
    /// The same for cold runs; 0 for none.
    #[arg(long, value_name = "N,N", value_delimiter = ',', default_value = "5,5")]
    pub cold_times: Vec<usize>,
    /// Runs of each query with data parallelism; medians count.
    #[arg(long, default_value_t = 10)]
    pub rounds: usize,
    /// The same for cold runs; 0 for none.
    #[arg(long, default_value_t = 2)]
    pub cold_rounds: usize,
    /// Instances of each template in the task pool.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    pub instances: u32,
    /// Seed of all draws.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Project to this many cores.
    #[arg(long, default_value_t = 48)]
    pub project: u32,
    /// Speed-up and efficiency as plots.
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Every measured line as CSV.
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
}

/// A worker process. Only the benchmark starts it.
#[derive(ClapArgs, Debug)]
pub struct ParallelWorker {
    /// The folder with the sockets.
    #[arg(long)]
    pub sockets: PathBuf,
    /// Its number, from 0.
    #[arg(long)]
    pub number: u32,
    /// Workers in all.
    #[arg(long)]
    pub workers: u32,
}
