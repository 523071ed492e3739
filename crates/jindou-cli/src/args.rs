//! The command line.

use crate::args_mixed::BenchMixed;
use crate::args_peers::{BenchFiles, Peers, PeersArgs};
use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use jindou::{Durability, GpuChoice, ResultFormat};
use jindou_parse::Format;
use jindou_service::Allowed;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

/// An in-memory RDF store that answers SPARQL by exploring the graph.
#[derive(Parser, Debug)]
#[command(name = "jindou", version, max_term_width = 100)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand, Debug)]
pub enum Command {
    /// Load RDF files into a store directory.
    Load(Load),
    /// Answer a SPARQL query.
    Query(Query),
    /// Change a store by a SPARQL update request: all of its operations, or none.
    Update(Box<Update>),
    /// Number a store anew, changes included, so that the order of its ids suits the data as it is now. A store that is served is
    /// reclustered through its server (POST /admin/recluster).
    Recluster(Recluster),
    /// Back a store up, also while it is served. What an earlier backup in the same place has is not copied again.
    Backup(Backup),
    /// Make a store of a backup, as it was at a time or a snapshot.
    Restore(Restore),
    /// Fold what updates changed into the store's segments, so that it opens fast. A store that is served is merged through its
    /// server (POST /admin/merge), or by itself.
    Merge(Merge),
    /// Answer SPARQL over HTTP: /query, /store, /health, /metrics, /admin/queries (docs/server.md).
    Serve(Box<Serve>),
    /// Verify every byte of a store and name what is damaged.
    Check(StoreArg),
    /// Print counts, bytes by part, the largest predicates and classes, and how segments find their keys.
    Info(Info),
    /// Generate a benchmark's data as N-Triples or N-Quads.
    #[command(subcommand)]
    Generate(Generate),
    /// Measure.
    #[command(subcommand)]
    Bench(Bench),
    /// Other engines to compare with.
    #[command(subcommand)]
    Peers(Peers),
}

/// The store.
#[derive(ClapArgs, Debug)]
pub struct StoreArg {
    /// The store directory.
    #[arg(long, value_name = "DIR")]
    pub store: PathBuf,
}

#[derive(ClapArgs, Debug)]
pub struct Load {
    /// The store directory to make.
    #[arg(long, value_name = "DIR", required_unless_present = "into")]
    pub store: Option<PathBuf>,
    /// Add to the store that is in this directory, in one transaction, instead of making one.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["store", "replace", "union_default_graph"])]
    pub into: Option<PathBuf>,
    #[command(flatten)]
    pub durability: DurabilityArg,
    /// Files and folders; `-` is standard input (with --format).
    #[arg(value_name = "FILE", required_unless_present = "source")]
    pub files: Vec<PathBuf>,
    /// Load a generated graph without a file: `lubm:UNIVERSITIES`, `watdiv:SCALE`, `bsbm:PRODUCTS`,
    /// `sp2b:TRIPLES` or `ugly:QUADS`.
    #[arg(long, value_name = "KIND:SIZE", conflicts_with = "files")]
    pub source: Option<String>,
    /// Syntax of every file, instead of by extension: nt, nq, ttl, trig, rdf, jsonld.
    #[arg(long, value_parser = parse_format)]
    pub format: Option<Format>,
    /// Put the triples into this named graph.
    #[arg(long, value_name = "IRI")]
    pub graph: Option<String>,
    /// Base IRI for relative ones (default: the file's own).
    #[arg(long, value_name = "IRI")]
    pub base: Option<String>,
    /// Queries of this store see all graphs merged as their default graph.
    #[arg(long)]
    pub union_default_graph: bool,
    /// Skip what is not valid, count it, and list the first few.
    #[arg(long)]
    pub lenient: bool,
    /// Take the place of the store that is there.
    #[arg(long)]
    pub replace: bool,
    /// Memory to use, e.g. 8G (default: two thirds of this machine's). What is larger goes through files.
    #[arg(long, value_parser = parse_size, value_name = "SIZE")]
    pub memory: Option<u64>,
    /// Worker threads (default: one a core).
    #[arg(long)]
    pub threads: Option<usize>,
    /// No progress bar.
    #[arg(long, short)]
    pub quiet: bool,
}

#[derive(ClapArgs, Debug)]
pub struct Query {
    /// The store directory.
    #[arg(long, value_name = "DIR")]
    pub store: PathBuf,
    /// The query.
    #[arg(value_name = "TEXT", required_unless_present = "file")]
    pub text: Option<String>,
    /// Read the query from a file (`-`: standard input).
    #[arg(short = 'f', long, value_name = "FILE", conflicts_with = "text")]
    pub file: Option<PathBuf>,
    /// How to write the answer: table, tsv, csv, json, xml; graphs as nt, nq, ttl, trig, rdf, jsonld.
    /// Default: table on a terminal, tsv elsewhere.
    #[arg(long)]
    pub format: Option<ResultFormat>,
    /// Print the plan instead of running it.
    #[arg(long)]
    pub explain: bool,
    /// Run, and print each step's rows, time and bytes to standard error.
    #[arg(long)]
    pub profile: bool,
    /// Print rows and times to standard error.
    #[arg(long)]
    pub time: bool,
    /// Give up after this long, e.g. 500ms, 30s, 2m.
    #[arg(long, value_parser = parse_duration, value_name = "TIME")]
    pub timeout: Option<Duration>,
    /// Memory the query may use, e.g. 2G (default: half of this machine's).
    #[arg(long, value_parser = parse_size, value_name = "SIZE")]
    pub memory: Option<u64>,
    /// Threads a heavy query may use (default: one a core).
    #[arg(long)]
    pub threads: Option<usize>,
    /// The default graph is the union of all graphs.
    #[arg(long)]
    pub union_default_graph: bool,
    /// Run graph patterns on a GPU: on, off, auto (heavy ones, if there is a GPU).
    #[arg(long, default_value = "auto")]
    pub gpu: GpuChoice,
    /// Endpoint that SERVICE may ask, several times: HOST means its ports 80 and 443. One inside this machine or its own
    /// network must be named by its address (or localhost).
    #[arg(long = "service-allow", value_name = "HOST[:PORT]")]
    pub service_allow: Vec<Allowed>,
}

#[derive(ClapArgs, Debug)]
pub struct Update {
    /// The store directory. No other process may be changing it: one that is served is updated through its server.
    #[arg(long, value_name = "DIR")]
    pub store: PathBuf,
    /// The update request.
    #[arg(value_name = "TEXT", required_unless_present = "file")]
    pub text: Option<String>,
    /// Read the request from a file (`-`: standard input).
    #[arg(short = 'f', long, value_name = "FILE", conflicts_with = "text")]
    pub file: Option<PathBuf>,
    /// What relative IRIs stand under where the request has no BASE.
    #[arg(long, value_name = "IRI")]
    pub base: Option<String>,
    /// Give up after this long, e.g. 500ms, 30s, 2m; nothing is changed then.
    #[arg(long, value_parser = parse_duration, value_name = "TIME")]
    pub timeout: Option<Duration>,
    /// Memory the update may use, e.g. 2G (default: half of this machine's).
    #[arg(long, value_parser = parse_size, value_name = "SIZE")]
    pub memory: Option<u64>,
    /// Threads (default: one a core).
    #[arg(long)]
    pub threads: Option<usize>,
    #[command(flatten)]
    pub documents: DocumentArgs,
    #[command(flatten)]
    pub durability: DurabilityArg,
    /// Endpoint that SERVICE may ask, several times: HOST means its ports 80 and 443.
    #[arg(long = "service-allow", value_name = "HOST[:PORT]")]
    pub service_allow: Vec<Allowed>,
    /// Print what was done as JSON.
    #[arg(long)]
    pub json: bool,
}

#[derive(ClapArgs, Debug)]
pub struct Recluster {
    /// The store directory. No other process may be changing it.
    #[arg(long, value_name = "DIR")]
    pub store: PathBuf,
    /// Memory to use, e.g. 8G (default: two thirds of this machine's). What is larger goes through files.
    #[arg(long, value_parser = parse_size, value_name = "SIZE")]
    pub memory: Option<u64>,
    /// Threads (default: one a core).
    #[arg(long)]
    pub threads: Option<usize>,
    /// No progress bar.
    #[arg(long, short)]
    pub quiet: bool,
}

#[derive(ClapArgs, Debug)]
pub struct Backup {
    /// The store directory.
    #[arg(long, value_name = "DIR", required_unless_present = "list")]
    pub store: Option<PathBuf>,
    /// Folder of backups.
    #[arg(long, value_name = "DIR")]
    pub to: String,
    /// List the backups that are there.
    #[arg(long)]
    pub list: bool,
}

#[derive(ClapArgs, Debug)]
pub struct Restore {
    /// Folder of backups.
    #[arg(long, value_name = "DIR")]
    pub from: String,
    /// The store directory to make; nothing may be there.
    #[arg(long, value_name = "DIR")]
    pub store: PathBuf,
    /// With all that was committed up to this time, e.g. 2026-11-22T07:42:15Z, and nothing later.
    #[arg(long, value_parser = jindou::parse_time, value_name = "TIME", conflicts_with = "snapshot")]
    pub at: Option<u64>,
    /// Up to this snapshot.
    #[arg(long, value_name = "NUMBER")]
    pub snapshot: Option<u32>,
}

#[derive(ClapArgs, Debug)]
pub struct Merge {
    /// The store directory. No other process may be changing it.
    #[arg(long, value_name = "DIR")]
    pub store: PathBuf,
    #[command(flatten)]
    pub budget: MergeBudget,
    /// Threads (default: one a core, at most four are used).
    #[arg(long)]
    pub threads: Option<usize>,
    /// Print what was done as JSON.
    #[arg(long)]
    pub json: bool,
}

/// What a merge may use.
#[derive(ClapArgs, Debug)]
pub struct MergeBudget {
    /// Memory that a merge may use for keys, 16 bytes each of a predicate's.
    #[arg(long, value_parser = parse_size, default_value = "1G", value_name = "SIZE")]
    pub merge_memory: u64,
    /// Bytes that a merge may write in a second (default: as fast as it goes).
    #[arg(long, value_parser = parse_size, value_name = "SIZE")]
    pub merge_rate: Option<u64>,
}

/// Where LOAD finds documents.
#[derive(ClapArgs, Debug)]
pub struct DocumentArgs {
    /// Folder whose files LOAD may read (`LOAD <file:///…>`), several times.
    #[arg(long = "load-from", value_name = "DIR")]
    pub load_from: Vec<PathBuf>,
    /// Host that LOAD may read from, several times: HOST means its ports 80 and 443. One inside this machine or its own
    /// network must be named by its address (or localhost).
    #[arg(long = "load-allow", value_name = "HOST[:PORT]")]
    pub load_allow: Vec<Allowed>,
}

/// When an update counts as done.
#[derive(ClapArgs, Debug, Clone, Copy)]
pub struct DurabilityArg {
    /// When an update is acknowledged: `batch`, once it is on the disk, together with those that came at the same time;
    /// `interval=MS`, once the system has it, which writes it within so many milliseconds (a power failure loses that much);
    /// `none`, once the system has it (a power failure loses what it had not written yet). The end of the process loses
    /// nothing in any case.
    #[arg(long, value_parser = parse_durability, default_value = "batch", value_name = "WHEN")]
    pub durability: Durability,
}

fn parse_durability(text: &str) -> Result<Durability, String> {
    match text {
        "batch" => Ok(Durability::Batch),
        "none" => Ok(Durability::None),
        _ => text
            .strip_prefix("interval=")
            .map(|ms| ms.strip_suffix("ms").unwrap_or(ms))
            .and_then(|ms| ms.parse().ok())
            .filter(|&ms: &u64| ms > 0)
            .map(|ms| Durability::Interval(Duration::from_millis(ms)))
            .ok_or_else(|| format!("'{text}' is none of batch, interval=MILLISECONDS and none")),
    }
}

#[derive(ClapArgs, Debug)]
pub struct Serve {
    /// The store directory.
    #[arg(long, value_name = "DIR")]
    pub store: PathBuf,
    /// Address to listen on; anything but this machine's own needs --token-file.
    #[arg(long, default_value = "127.0.0.1", value_name = "ADDRESS")]
    pub host: IpAddr,
    /// Port; 0 takes a free one.
    #[arg(long, default_value_t = 7878)]
    pub port: u16,
    /// Time limit of a query whose request names none.
    #[arg(long, value_parser = parse_duration, default_value = "60s", value_name = "TIME")]
    pub timeout: Duration,
    /// The longest limit that a request can ask for.
    #[arg(long, value_parser = parse_duration, default_value = "1h", value_name = "TIME")]
    pub max_timeout: Duration,
    /// Memory of all queries together, e.g. 8G (default: half of this machine's).
    #[arg(long, value_parser = parse_size, value_name = "SIZE")]
    pub memory: Option<u64>,
    /// Memory of one query (default: a quarter of --memory).
    #[arg(long, value_parser = parse_size, value_name = "SIZE")]
    pub query_memory: Option<u64>,
    /// Threads a heavy query may use (default: one a core).
    #[arg(long)]
    pub threads: Option<usize>,
    /// Heavy queries that compute at once; the others wait (default: one a core, at least two).
    #[arg(long, value_name = "N")]
    pub heavy_slots: Option<usize>,
    /// Light queries that compute at once (default: two a core, at least four).
    #[arg(long, value_name = "N")]
    pub light_slots: Option<usize>,
    /// Heavy queries that wait; further ones are refused with 503 and Retry-After.
    #[arg(long, default_value_t = 1024, value_name = "N")]
    pub heavy_queue: usize,
    /// Light queries that would wait longer are refused likewise.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_duration)]
    pub light_wait: Duration,
    /// Queries that exist at once, those that wait for a slot or for their reader included.
    #[arg(long, default_value_t = 4096, value_name = "N")]
    pub max_queries: usize,
    /// Connections at once.
    #[arg(long, default_value_t = 10_000, value_name = "N")]
    pub max_connections: usize,
    /// Longest request.
    #[arg(long, value_parser = parse_size, default_value = "8M", value_name = "SIZE")]
    pub max_request_bytes: u64,
    /// Most rows (or triples) of one answer.
    #[arg(long, value_name = "N")]
    pub max_result_rows: Option<u64>,
    /// Most bytes of one answer, before compression.
    #[arg(long, value_parser = parse_size, value_name = "SIZE")]
    pub max_result_bytes: Option<u64>,
    /// Log the text of queries that take this long.
    #[arg(long, value_parser = parse_duration, default_value = "10s", value_name = "TIME")]
    pub slow_query: Duration,
    /// Serve TLS with this PEM certificate chain.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// Its PEM private key.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Bearer tokens: lines `read TOKEN` and `write TOKEN`.
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Without --token-file: let every program on this machine write.
    #[arg(long, conflicts_with_all = ["token_file", "read_only"])]
    pub writable: bool,
    /// Take no updates, and leave the store's directory to another process that does.
    #[arg(long)]
    pub read_only: bool,
    /// Longest body of an update or a graph.
    #[arg(long, value_parser = parse_size, default_value = "1G", value_name = "SIZE")]
    pub max_update_bytes: u64,
    #[command(flatten)]
    pub documents: DocumentArgs,
    #[command(flatten)]
    pub durability: DurabilityArg,
    /// Whether changes are merged into segments in the background: auto or off.
    #[arg(long, default_value = "auto", value_parser = ["auto", "off"], value_name = "WHEN")]
    pub merge: String,
    /// Merge with so many edits (default: a million, and at least a twentieth of all quads).
    #[arg(long, value_name = "EDITS")]
    pub merge_at: Option<u64>,
    #[command(flatten)]
    pub merge_budget: MergeBudget,
    /// Origin whose pages may read answers, `*` for all; several times (default: all with tokens, else this machine's).
    #[arg(long = "cors-origin", value_name = "ORIGIN")]
    pub cors_origins: Vec<String>,
    /// How long a shutdown waits for what runs.
    #[arg(long, value_parser = parse_duration, default_value = "30s", value_name = "TIME")]
    pub grace: Duration,
    /// The default graph is the union of all graphs.
    #[arg(long)]
    pub union_default_graph: bool,
    /// Run graph patterns on a GPU: on, off, auto (heavy ones, if there is a GPU).
    #[arg(long, default_value = "auto")]
    pub gpu: GpuChoice,
    /// Endpoint that SERVICE may ask, several times: HOST means its ports 80 and 443. One inside this machine or its own
    /// network must be named by its address (or localhost).
    #[arg(long = "service-allow", value_name = "HOST[:PORT]")]
    pub service_allow: Vec<Allowed>,
    /// Folder that POST /admin/backup backs the store up to.
    #[arg(long, value_name = "DIR")]
    pub backup_to: Option<String>,
    /// Log as text or json, to standard error.
    #[arg(long, default_value = "text", value_parser = ["text", "json"])]
    pub log_format: String,
    /// What to log: error, warn, info, debug, trace, or directives such as `info,jindou_server=debug`.
    #[arg(long, default_value = "info", value_name = "LEVEL")]
    pub log: String,
}

#[derive(ClapArgs, Debug)]
pub struct Info {
    /// The store directory.
    #[arg(long, value_name = "DIR")]
    pub store: PathBuf,
    /// As JSON.
    #[arg(long)]
    pub json: bool,
    /// How many predicates and classes to list.
    #[arg(long, default_value_t = 20)]
    pub top: usize,
}

#[derive(Subcommand, Debug)]
pub enum Generate {
    /// The Lehigh University Benchmark, as the original generator draws it.
    Lubm {
        /// Number of universities.
        #[arg(long, short = 'n')]
        universities: u32,
        /// Base seed of the generator.
        #[arg(long, default_value_t = 0)]
        seed: i64,
        /// Where to write N-Triples (`-`: standard output).
        #[arg(long, default_value = "-")]
        out: PathBuf,
    },
    /// The Waterloo SPARQL Diversity Test Suite: products, users and offers, drawn by the original's rules.
    Watdiv {
        /// Scale: 1 is some 109,500 statements.
        #[arg(long, short = 'n')]
        scale: u32,
        /// Seed.
        #[arg(long, default_value_t = 0)]
        seed: u64,
        /// Where to write N-Triples (`-`: standard output).
        #[arg(long, default_value = "-")]
        out: PathBuf,
        /// Another model, in the original's language.
        #[arg(long, value_name = "FILE")]
        model: Option<PathBuf>,
    },
    /// The Berlin SPARQL Benchmark: products, offers and reviews, after the original's rules.
    Bsbm {
        /// Number of products: 1 is some 353 statements.
        #[arg(long, short = 'n')]
        products: u32,
        /// Seed.
        #[arg(long, default_value_t = 0)]
        seed: u64,
        /// Where to write N-Triples (`-`: standard output).
        #[arg(long, default_value = "-")]
        out: PathBuf,
    },
    /// Bibliography after SP²Bench's published rules.
    Sp2b {
        /// Number of statements.
        #[arg(long, short = 'n')]
        triples: u64,
        /// Seed.
        #[arg(long, default_value_t = 0)]
        seed: u64,
        /// Where to write N-Triples (`-`: standard output).
        #[arg(long, default_value = "-")]
        out: PathBuf,
    },
    /// Instances of WatDiv's templates, a file each: L1-0.rq, L1-1.rq …
    WatdivQueries(WatdivQueries),
    /// A graph with everything real graphs hurt with: see docs/ugly.md.
    Ugly {
        /// Number of quads.
        #[arg(long, default_value_t = 20_000_000)]
        quads: u64,
        /// Seed.
        #[arg(long, default_value_t = 0)]
        seed: u64,
        /// Where to write N-Quads (`-`: standard output).
        #[arg(long, default_value = "-")]
        out: PathBuf,
    },
}

#[derive(ClapArgs, Debug)]
pub struct WatdivQueries {
    /// Scale of the data that the queries are asked of.
    #[arg(long, short = 'n')]
    pub scale: u32,
    /// Seed.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Instances of each template (one of those that leave nothing open).
    #[arg(long, default_value_t = 5)]
    pub instances: u32,
    /// The folder to write to; made when it is not there.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Another model, in the original's language.
    #[arg(long, value_name = "FILE")]
    pub model: Option<PathBuf>,
    /// Other templates: every .txt file of this folder, in the original's form.
    #[arg(long, value_name = "DIR")]
    pub templates: Option<PathBuf>,
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
    /// Reprint the single-server tables and figures of Wukong's paper (OSDI '16) beside our own: see docs/papers.md.
    Papers(BenchPapers),
    /// Load your data and run your queries, beside other engines.
    Files(BenchFiles),
    /// Time single operators over a store of LUBM or WatDiv, each beside its floor, answers checked.
    Operators(BenchOperators),
    /// Serve a store and read one large answer over loopback: bytes and rows a second, and the server's memory meanwhile.
    Stream(BenchStream),
    /// Change a store of LUBM in memory: triples a second, bytes a triple, and the queries beside a merged store.
    Updates(BenchUpdates),
    /// Ask L1 to L7 while parsed batches come at a steady rate, beside the same store merged.
    Live(BenchLive),
    /// Send small transactions and N-Triples text to a server whose log is on a disk of a known sync time.
    Commits(BenchCommits),
    /// Merging: a copy of a store is changed, merged and opened again.
    Merge(BenchMerge),
    /// Many light queries at once, alone and beside heavy ones: throughput and latencies by how they are scheduled.
    Mixed(Box<BenchMixed>),
}

#[derive(ClapArgs, Debug)]
pub struct BenchStream {
    /// The store directory.
    #[arg(long, value_name = "DIR")]
    pub store: PathBuf,
    /// Rows of the answer: all triples, as often as needed.
    #[arg(long, default_value_t = 100_000_000)]
    pub rows: u64,
    /// Another query.
    #[arg(long, conflicts_with = "rows")]
    pub query: Option<String>,
    /// Formats, each with a server of its own.
    #[arg(long, value_name = "FORMAT", value_delimiter = ',', default_value = "tsv,json", value_parser = ["tsv", "csv", "json", "xml"])]
    pub formats: Vec<String>,
    /// Ask for a compressed answer: gzip or zstd.
    #[arg(long, value_name = "CODING", value_parser = ["gzip", "zstd"])]
    pub encoding: Option<String>,
    /// Threads of the query (default: one a core).
    #[arg(long)]
    pub threads: Option<usize>,
    /// As JSON, to a file or (without one) to standard output.
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub json: Option<PathBuf>,
}

#[derive(ClapArgs, Debug)]
pub struct BenchLive {
    /// The store directory, of LUBM; it is only read.
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
    /// Threads of the second column of each query (default: one a core).
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
    /// What a sync of the disk takes at least.
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
    /// Threads of transactions and of the merge (default: one a core).
    #[arg(long)]
    pub threads: Option<usize>,
    #[command(flatten)]
    pub budget: MergeBudget,
}

#[derive(ClapArgs, Debug)]
pub struct BenchUpdates {
    /// The store directory, of LUBM; it is only read.
    #[arg(long, value_name = "DIR")]
    pub store: PathBuf,
    /// Random single changes before the queries are asked; 0: none.
    #[arg(long, default_value_t = 1_000_000)]
    pub edits: usize,
    /// How many universities the store holds: those behind them are added, in transactions of each size.
    #[arg(long, short = 'n')]
    pub universities: Option<u32>,
    /// Universities to add.
    #[arg(long, default_value_t = 10)]
    pub more: u32,
    /// Triples a transaction.
    #[arg(long, value_delimiter = ',', default_value = "10000,100000")]
    pub batches: Vec<usize>,
    /// Queries, e.g. L1,q8,count (default: all).
    #[arg(long, value_delimiter = ',')]
    pub queries: Vec<String>,
    /// Runs of each query.
    #[arg(long, default_value_t = 9)]
    pub repeat: usize,
    /// Threads of transactions (default: one a core).
    #[arg(long)]
    pub threads: Option<usize>,
    /// Threads of a query.
    #[arg(long, default_value_t = 1)]
    pub query_threads: usize,
    /// Print both plans of each query.
    #[arg(long)]
    pub explain: bool,
    /// As JSON as well, to a file.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

#[derive(ClapArgs, Debug)]
pub struct BenchLubm {
    /// Number of universities.
    #[arg(long, short = 'n')]
    pub universities: u32,
    /// Queries, e.g. L1,L2,q8 (default: all).
    #[arg(long, value_delimiter = ',')]
    pub queries: Vec<String>,
    /// Run the 14 official queries, O1 to O14, instead.
    #[arg(long)]
    pub official: bool,
    /// With --official: load what follows from the data by the ontology too, as those queries expect.
    #[arg(long, requires = "official")]
    pub inferred: bool,
    /// Threads for heavy queries and for the load (default: one a core).
    #[arg(long)]
    pub threads: Option<usize>,
    /// Runs of each query; medians are reported.
    #[arg(long, default_value_t = 7)]
    pub repeat: usize,
    /// Where the store is or goes; an existing one of this scale is used as it is (default: a temporary one).
    #[arg(long, value_name = "DIR")]
    pub store: Option<PathBuf>,
    /// Also run L4, L5, L6 with this many random constants each, on one thread.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub light: usize,
    /// Memory for the load, e.g. 16G.
    #[arg(long, value_parser = parse_size, value_name = "SIZE")]
    pub memory: Option<u64>,
    /// Run the queries on a GPU: on, off, auto.
    #[arg(long, default_value = "off")]
    pub gpu: GpuChoice,
    /// As JSON, to a file or (without one) to standard output.
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub json: Option<PathBuf>,
    #[command(flatten)]
    pub peers: PeersArgs,
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
    /// Templates, e.g. L1,C3 (default: all).
    #[arg(long, value_delimiter = ',')]
    pub queries: Vec<String>,
    /// Threads for heavy queries and for the load (default: one a core).
    #[arg(long)]
    pub threads: Option<usize>,
    /// Runs of each instance.
    #[arg(long, default_value_t = 7)]
    pub repeat: usize,
    /// Where the store is or goes; an existing one of this scale and seed is used as it is (default: a temporary one).
    #[arg(long, value_name = "DIR")]
    pub store: Option<PathBuf>,
    /// Write the data to this file of N-Triples first, and load that.
    #[arg(long, value_name = "FILE")]
    pub data: Option<PathBuf>,
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
pub struct BenchBsbm {
    /// Number of products: 1 is some 353 statements.
    #[arg(long, short = 'n')]
    pub products: u32,
    /// Which queries.
    #[arg(long, value_enum, default_value = "explore")]
    pub mix: BsbmMix,
    /// Instances of each query.
    #[arg(long, default_value_t = 5)]
    pub instances: u32,
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
    #[command(flatten)]
    pub common: BenchMix,
}

/// What the benchmarks of generated data have in common.
#[derive(ClapArgs, Clone, Debug)]
pub struct BenchMix {
    /// Seed of data and queries.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Queries by name (default: all).
    #[arg(long, value_delimiter = ',')]
    pub queries: Vec<String>,
    /// Threads for heavy queries and for the load (default: one a core).
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
    /// Threads (default: one a core).
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
    /// Threads a query may use (default: one a core).
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
    /// Threads for loads and heavy queries; the most of figure 14 (default: one a core).
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

fn parse_format(s: &str) -> Result<Format, String> {
    Format::from_extension(s.trim_start_matches('.'))
        .ok_or_else(|| format!("unknown format '{s}': one of nt, nq, ttl, trig, rdf, jsonld"))
}

/// `512M`, `8G`, `8GiB`, `1.5g`, `1000000`.
pub fn parse_size(s: &str) -> Result<u64, String> {
    let lower = s.trim().to_ascii_lowercase();
    let t = lower.trim_end_matches("ib").trim_end_matches('b');
    let (number, shift) = match t.as_bytes().last() {
        Some(b'k') => (&t[..t.len() - 1], 10),
        Some(b'm') => (&t[..t.len() - 1], 20),
        Some(b'g') => (&t[..t.len() - 1], 30),
        Some(b't') => (&t[..t.len() - 1], 40),
        _ => (t, 0),
    };
    match number.trim().parse::<f64>() {
        Ok(n) if n >= 0.0 && n.is_finite() => Ok((n * (1u64 << shift) as f64) as u64),
        _ => Err(format!("'{s}' is not a size; write it like 512M or 8G")),
    }
}

/// `500ms`, `30s`, `2m`, `10` (seconds).
pub fn parse_duration(s: &str) -> Result<Duration, String> {
    let t = s.trim();
    let (number, scale) = if let Some(n) = t.strip_suffix("us") {
        (n, 1e-6)
    } else if let Some(n) = t.strip_suffix("ms") {
        (n, 1e-3)
    } else if let Some(n) = t.strip_suffix('s') {
        (n, 1.0)
    } else if let Some(n) = t.strip_suffix('m') {
        (n, 60.0)
    } else if let Some(n) = t.strip_suffix('h') {
        (n, 3600.0)
    } else {
        (t, 1.0)
    };
    number
        .trim()
        .parse::<f64>()
        .ok()
        .and_then(|n| Duration::try_from_secs_f64(n * scale).ok())
        .ok_or_else(|| format!("'{s}' is not a time; write it like 500ms, 30s or 2m"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn sizes_and_times() {
        assert_eq!(parse_size("8G"), Ok(8 << 30));
        assert_eq!(parse_size("1.5KiB"), Ok(1536));
        assert!(parse_size("-1").is_err() && parse_size("much").is_err());
        assert_eq!(parse_duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse_duration("2m"), Ok(Duration::from_secs(120)));
        assert!(parse_duration("-1").is_err() && parse_duration("1e30").is_err());
    }
}
