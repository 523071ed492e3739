//! The command line of `jindou-bench`.

pub mod cluster;
pub mod generate;
pub mod gpu;
pub mod http;
pub mod mixed;
pub mod parallel;
pub mod peers;
pub mod replicas;
pub mod updates;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use cluster::BenchCluster;
use generate::Generate;
use gpu::BenchGpu;
use http::BenchHttp;
use jindou::GpuChoice;
use jindou_model::units::{parse_duration, parse_size};
use mixed::BenchMixed;
use parallel::{BenchParallel, ParallelWorker};
use peers::{BenchFiles, Peers, PeersArgs};
use replicas::BenchReplicas;
use std::path::PathBuf;
use std::time::Duration;

/// Measurements of Jindou that check their answers, and other engines to compare with.
#[derive(Parser, Debug)]
#[command(name = "jindou-bench", version, max_term_width = 100)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand, Debug)]
pub enum Command {
    #[command(flatten)]
    Bench(Box<Bench>),
    /// Other engines to compare with.
    #[command(subcommand)]
    Peers(Peers),
    /// A benchmark's data as N-Triples or N-Quads, or its queries.
    #[command(subcommand)]
    Generate(Generate),
}

#[derive(Subcommand, Debug)]
pub enum Bench {
    /// Load LUBM and run L1 to L7 and q8 to q12, counts checked.
    Lubm(BenchLubm),
    /// Load WatDiv and run instances of its 20 templates.
    Watdiv(BenchWatdiv),
    /// Load BSBM and run instances of the queries of a mix: explore (E1 to E12) or business intelligence (B1 to B8).
    Bsbm(BenchBsbm),
    /// Load a bibliography after SP²Bench and run its 17 queries.
    Sp2b(BenchSp2b),
    /// Plan and run random queries over the ugly graph, and look up random vertices.
    Ugly(BenchUgly),
    /// Reprint the single-server tables and figures of Wukong's paper (OSDI '16) next to our own: see docs/lab/papers.md.
    Papers(BenchPapers),
    /// Load your data and run your queries, alongside other engines.
    Files(BenchFiles),
    /// Time single operators over a store of LUBM or WatDiv, each compared with its floor, answers checked.
    Operators(BenchOperators),
    /// Serve a store and read one large answer over loopback: bytes and rows a second, and the server's memory meanwhile.
    Stream(BenchStream),
    /// Change a store of LUBM in memory: triples a second, bytes a triple, and the queries compared with a merged store.
    Updates(BenchUpdates),
    /// Ask L1 to L7 while parsed batches come at a steady rate, compared with the same store merged.
    Live(BenchLive),
    /// Send small transactions and N-Triples text to a server whose log is on a disk of a known sync time.
    Commits(BenchCommits),
    /// The fixed cost of an HTTP request, next to a bare hyper server and Oxigraph.
    Http(BenchHttp),
    /// Light queries on a store of LUBM that is not in the page cache, second by second, with and without reading it meanwhile.
    Warm(BenchWarm),
    /// Complete queries at places drawn from LUBM's, WatDiv's, BSBM's and TED's: times, and how often the next token is offered.
    Complete(BenchComplete),
    /// Merging: a copy of a store is changed, merged and opened again.
    Merge(BenchMerge),
    /// Many light queries at once, alone and alongside heavy ones: throughput and latencies by how they are scheduled.
    Mixed(Box<BenchMixed>),
    /// Task and data parallelism by worker processes: speed-up, efficiency, balance. See docs/lab/parallel.md.
    Parallel(Box<BenchParallel>),
    /// Servers with some shards of one store each: faults and light queries. See docs/cluster.md.
    #[command(subcommand)]
    Cluster(BenchCluster),
    /// Several servers of one store over a shared log: random changes, faults, throughput. See docs/replicas.md.
    #[command(subcommand)]
    Replicas(BenchReplicas),
    /// Decisions of `--gpu auto`, judged by runs that were recorded on a card.
    #[command(subcommand)]
    Gpu(BenchGpu),
    /// The bare server of `bench http`.
    #[command(hide = true)]
    HttpBare,
    /// A worker of `bench parallel`.
    #[command(hide = true)]
    ParallelWorker(ParallelWorker),
}

#[derive(ClapArgs, Debug)]
pub struct BenchComplete {
    /// A set of queries and a store of its data: lubm=DIR, watdiv=DIR, bsbm=DIR, ted=DIR; several times.
    #[arg(long = "set", value_name = "NAME=DIR", required = true)]
    pub sets: Vec<String>,
    /// Places, of all sets together: each has the same share of them.
    #[arg(long, default_value_t = 200)]
    pub positions: usize,
    /// Chooses the places.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// The scale of WatDiv's store, for the constants of its queries.
    #[arg(long, default_value_t = 10)]
    pub watdiv_scale: u32,
    /// The products of BSBM's store, likewise.
    #[arg(long, default_value_t = 1000)]
    pub bsbm_products: u32,
    /// As JSON, to a file or (without one) to standard output.
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub json: Option<PathBuf>,
}

#[derive(ClapArgs, Debug)]
pub struct BenchStream {
    /// The store directory.
    #[arg(long, value_name = "DIR")]
    pub store: PathBuf,
    /// Rows of the answer: all triples, as often as needed.
    #[arg(long, default_value_t = 100_000_000)]
    pub rows: u64,
    /// Threads of the query (default: one per core).
    #[arg(long)]
    pub threads: Option<usize>,
    /// As JSON, to a file or (without one) to standard output.
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub json: Option<PathBuf>,
}

#[derive(ClapArgs, Debug)]
pub struct BenchLive {
    /// The store directory, of LUBM; a copy of it in the temporary folder is changed.
    #[arg(long, value_name = "DIR")]
    pub store: PathBuf,
    /// How many universities it holds.
    #[arg(long, short = 'n')]
    pub universities: u32,
    /// Triples a second that come.
    #[arg(long, default_value_t = 100_000)]
    pub rate: usize,
    /// Triples a transaction.
    #[arg(long, default_value_t = 10_000)]
    pub batch: usize,
    /// How long they come, and how long the queries are measured without them.
    #[arg(long, value_parser = parse_duration, default_value = "20s", value_name = "TIME")]
    pub time: Duration,
    /// Threads of the second column of each query (default: one per core).
    #[arg(long)]
    pub threads: Option<usize>,
    /// As JSON as well, to a file.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

#[derive(ClapArgs, Debug)]
pub struct BenchCommits {
    /// Universities of the store that is made and changed.
    #[arg(long, short = 'n', default_value_t = 1)]
    pub universities: u32,
    /// Clients that send small transactions, each one at a time.
    #[arg(long, default_value_t = 16)]
    pub clients: usize,
    /// How long they do.
    #[arg(long, value_parser = parse_duration, default_value = "10s", value_name = "TIME")]
    pub time: Duration,
    /// Least time that a sync of the disk takes.
    #[arg(long, value_parser = parse_duration, default_value = "4ms", value_name = "TIME")]
    pub sync: Duration,
    /// Universities that are then added as N-Triples; 0: none.
    #[arg(long, default_value_t = 20)]
    pub more: u32,
    /// Megabytes of text a request.
    #[arg(long, default_value_t = 16)]
    pub body: usize,
    /// Where the store and its log are made (default: the system's temporary folder).
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// As JSON as well, to a file.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

#[derive(ClapArgs, Debug)]
pub struct BenchMerge {
    /// The store directory, of LUBM; a copy of it in the system's temporary folder is changed.
    #[arg(long, value_name = "DIR")]
    pub store: PathBuf,
    /// Random changes.
    #[arg(long, default_value_t = 125_000)]
    pub edits: usize,
    /// Changes a transaction.
    #[arg(long, default_value_t = 100)]
    pub batch: usize,
    /// Runs of each query.
    #[arg(long, default_value_t = 9)]
    pub repeat: usize,
    /// Threads of transactions and of the merge (default: one per core).
    #[arg(long)]
    pub threads: Option<usize>,
}

#[derive(ClapArgs, Debug)]
pub struct BenchUpdates {
    /// The store directory, of LUBM; it is only read.
    #[arg(long, value_name = "DIR")]
    pub store: PathBuf,
    /// Random single changes before the queries are asked; 0: none.
    #[arg(long, default_value_t = 1_000_000)]
    pub edits: usize,
    /// How many universities the store holds: those after them are added, in transactions of each size.
    #[arg(long, short = 'n')]
    pub universities: Option<u32>,
    /// Universities to add.
    #[arg(long, default_value_t = 10)]
    pub more: u32,
    /// Triples a transaction.
    #[arg(long, value_delimiter = ',', default_value = "10000,100000")]
    pub batches: Vec<usize>,
    /// Runs of each query.
    #[arg(long, default_value_t = 9)]
    pub repeat: usize,
    /// Threads of transactions (default: one per core).
    #[arg(long)]
    pub threads: Option<usize>,
    /// As JSON as well, to a file.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

#[derive(ClapArgs, Debug)]
pub struct BenchLubm {
    /// Number of universities.
    #[arg(long, short = 'n')]
    pub universities: u32,
    /// Run the 14 official queries, O1 to O14, instead.
    #[arg(long)]
    pub official: bool,
    /// With --official: load what follows from the data by the ontology too, as those queries expect.
    #[arg(long, requires = "official")]
    pub inferred: bool,
    /// Also run L4, L5, L6 with this many random constants each, on one thread.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub light: usize,
    /// Run the queries on a GPU: on, off, auto.
    #[arg(long, default_value = "off")]
    pub gpu: GpuChoice,
    #[command(flatten)]
    pub common: BenchMix,
}

#[derive(ClapArgs, Debug)]
pub struct BenchWatdiv {
    /// Scale: 1 is some 109,500 statements.
    #[arg(long, short = 'n')]
    pub scale: u32,
    /// Seed of data and queries.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Instances of each template.
    #[arg(long, default_value_t = 5)]
    pub instances: u32,
    #[command(flatten)]
    pub common: BenchMix,
}

#[derive(ClapArgs, Debug)]
pub struct BenchBsbm {
    /// Number of products: 1 is some 353 statements.
    #[arg(long, short = 'n')]
    pub products: u32,
    /// Set of queries.
    #[arg(long, value_enum, default_value = "explore")]
    pub mix: BsbmMix,
    /// Instances of each query.
    #[arg(long, default_value_t = 5)]
    pub instances: u32,
    /// Seed of data and queries.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    #[command(flatten)]
    pub common: BenchMix,
}

/// A set of BSBM's queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BsbmMix {
    /// E1 to E12: look for a product.
    Explore,
    /// B1 to B8: analyse offers and reviews.
    Bi,
    /// Both.
    All,
}

#[derive(ClapArgs, Debug)]
pub struct BenchSp2b {
    /// Number of statements.
    #[arg(long, short = 'n')]
    pub triples: u64,
    /// Seed of data and queries.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    #[command(flatten)]
    pub common: BenchMix,
}

/// Options common to the benchmarks of generated data.
#[derive(ClapArgs, Debug)]
pub struct BenchMix {
    /// Queries or templates by name, e.g. L1,L2,q8 (default: all).
    #[arg(long, value_delimiter = ',')]
    pub queries: Vec<String>,
    /// Threads for heavy queries and for the load (default: one per core).
    #[arg(long)]
    pub threads: Option<usize>,
    /// Runs of each instance.
    #[arg(long, default_value_t = 7)]
    pub repeat: usize,
    /// Where the store is or goes; an existing one is used as it is (default: a temporary one).
    #[arg(long, value_name = "DIR")]
    pub store: Option<PathBuf>,
    /// Memory for the load, e.g. 16G.
    #[arg(long, value_parser = parse_size, value_name = "SIZE")]
    pub memory: Option<u64>,
    /// As JSON, to a file or (without one) to standard output.
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub json: Option<PathBuf>,
    #[command(flatten)]
    pub peers: PeersArgs,
}

#[derive(ClapArgs, Debug)]
pub struct BenchUgly {
    /// Number of quads.
    #[arg(long, default_value_t = 20_000_000)]
    pub quads: u64,
    /// Number of random queries.
    #[arg(long, default_value_t = 1_000)]
    pub queries: usize,
    /// Where the store is or goes (default: a temporary one).
    #[arg(long, value_name = "DIR")]
    pub store: Option<PathBuf>,
    /// Threads (default: one per core).
    #[arg(long)]
    pub threads: Option<usize>,
}

#[derive(ClapArgs, Debug)]
pub struct BenchOperators {
    /// A store of LUBM or of WatDiv, as `jindou bench lubm` and `bench watdiv` make it.
    #[arg(long, value_name = "DIR")]
    pub store: PathBuf,
    /// Only lines whose title contains one of these, e.g. path,"order by" (default: all).
    #[arg(long, value_delimiter = ',', value_name = "TEXT")]
    pub only: Vec<String>,
    /// Threads a query may use (default: one per core).
    #[arg(long)]
    pub threads: Option<usize>,
    /// Runs of each question; medians are reported.
    #[arg(long, default_value_t = 5)]
    pub repeat: usize,
    /// Give a query up after this long, e.g. 30s.
    #[arg(long, value_parser = parse_duration, value_name = "TIME")]
    pub timeout: Option<Duration>,
    /// Do not compare answers with another formulation's.
    #[arg(long)]
    pub no_check: bool,
    /// Ask DuckDB the questions about comparisons, too, over tables of the same rows. It is in this folder, where `jindou peers
    /// install duckdb` put it (default: jindou/peers in your cache folder).
    #[arg(long, value_name = "DIR", num_args = 0..=1, default_missing_value = "")]
    pub duckdb: Option<PathBuf>,
    /// As JSON, to a file or (without one) to standard output.
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub json: Option<PathBuf>,
}

/// Without --table and --figure: everything for which there is data.
#[derive(ClapArgs, Debug)]
pub struct BenchPapers {
    /// Tables: 2 (LUBM), 7 (WatDiv), 8 (DBPSB), 9 (YAGO2). The last three need --data and --queries.
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = ["2", "7", "8", "9"])]
    pub table: Vec<String>,
    /// Figures: 14 (latency by threads), 16 (latency by data size), 21 (memory by part).
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = ["14", "16", "21"])]
    pub figure: Vec<String>,
    /// LUBM's universities; the largest size of figure 16. The paper has 2560.
    #[arg(long, short = 'n', default_value_t = 40, value_parser = clap::value_parser!(u32).range(1..))]
    pub universities: u32,
    /// RDF files or folders of table 7, 8 or 9.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub data: Vec<PathBuf>,
    /// Skip what is not valid in --data, and say how much.
    #[arg(long)]
    pub lenient: bool,
    /// Folder of their queries, a file each. Table 7: C1.rq, or C1-0.rq, C1-1.rq for instances of one template;
    /// tables 8 and 9: in the order of their names.
    #[arg(long, value_name = "DIR")]
    pub queries: Option<PathBuf>,
    /// Their row counts, tab-separated: query, or template and instance, then rows; a first line of titles.
    #[arg(long, value_name = "FILE")]
    pub counts: Option<PathBuf>,
    /// Threads for loads and heavy queries; the most of figure 14 (default: one per core).
    #[arg(long)]
    pub threads: Option<usize>,
    /// Runs of each query; medians are reported.
    #[arg(long, default_value_t = 5)]
    pub repeat: usize,
    /// Folder where stores are kept and found again (default: a temporary one).
    #[arg(long, value_name = "DIR")]
    pub store: Option<PathBuf>,
    /// Memory for loads, e.g. 16G.
    #[arg(long, value_parser = parse_size, value_name = "SIZE")]
    pub memory: Option<u64>,
    /// As JSON.
    #[arg(long)]
    pub json: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }
}

#[derive(ClapArgs, Debug)]
pub struct BenchWarm {
    /// The store, of LUBM with seed 0.
    #[arg(long, value_name = "DIR")]
    pub store: PathBuf,
    /// Its universities.
    #[arg(long, default_value_t = 2560)]
    pub universities: u32,
    /// Threads that send queries.
    #[arg(long, default_value_t = 2)]
    pub threads: usize,
    /// Time after a start for which they do.
    #[arg(long, value_parser = parse_duration, default_value = "60s")]
    pub time: Duration,
}
