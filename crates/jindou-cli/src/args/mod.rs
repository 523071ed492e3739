//! The command line: commands on stores are in this file, those of the server in their own files.

mod cluster;
mod examples;
mod graphs;
mod help;
mod query;
mod rdf;
mod search;
mod serve;

pub use cluster::{ClusterCommand, StartCluster};
pub use graphs::{GraphChoice, GraphsArg};
pub use query::{QueryArgs, RemoteArgs, Shell};
use rdf::ContextArgs;
pub use rdf::{Convert, Dump, parse_prefix};
pub use search::{SearchArgs, SearchFormat};
pub use serve::Serve;

use clap::{Args as ClapArgs, CommandFactory, Parser, Subcommand};
use jindou::service::Allowed;
use jindou::{Durability, ResultFormat, Verify};
use jindou_model::units::{parse_duration, parse_size};
use jindou_parse::Format;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The version, and the commit from which it was built.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("JINDOU_COMMIT"), ")");
/// The version and commit with the target, profile and features of the build.
const LONG_VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    " (",
    env!("JINDOU_COMMIT"),
    ")\nbuilt for ",
    env!("JINDOU_TARGET"),
    ", profile ",
    env!("JINDOU_PROFILE"),
    "\nwith ",
    env!("JINDOU_FEATURES"),
    "\nstore format 1, log format 1 (2 from snapshot 2147483648 on), records in it 1 and 2 (3 after prefixes were set)"
);

/// The commands that are run by the program `jindou-bench`.
pub const LABORATORY: [&str; 3] = ["generate", "bench", "peers"];

/// A fast database for RDF (linked data) that answers SPARQL 1.1.
///
/// A store is a folder on disk, which is mapped into memory when it is used. `jindou serve` offers it as a web page for exploring it and
/// as a SPARQL endpoint.
#[derive(Parser, Debug)]
#[command(name = "jindou", version = VERSION, long_version = LONG_VERSION, max_term_width = 100)]
pub struct Args {
    /// Settings file, instead of the one named by JINDOU_CONFIG or the user's own (docs/command.md).
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    #[command(subcommand)]
    pub command: Command,
}

/// The whole command line, with structured help texts.
pub fn command() -> clap::Command {
    let hidden = !crate::commands::has_laboratory();
    LABORATORY
        .iter()
        .fold(help::shaped(Args::command()), |all, command| {
            all.mut_subcommand(command, |c| c.hide(hidden))
        })
}

#[derive(Subcommand, Debug)]
pub enum Command {
    /// Serve a store over HTTP: a page for exploring it, and a SPARQL endpoint (docs/server.md).
    Serve(Box<Serve>),
    /// Load RDF files into a store directory.
    Load(LoadArgs),
    /// Answer a SPARQL query over a store, RDF files or an endpoint.
    Query(QueryArgs),
    /// Query a store or an endpoint interactively, with history, completion and paging.
    Shell(Box<Shell>),
    /// Find resources by words of their labels and IRIs (docs/search.md).
    Search(SearchArgs),
    /// Change a store, or what an endpoint serves, with a SPARQL update request, as one transaction.
    Update(Box<UpdateArgs>),
    /// Verify every byte of a store and list any damage.
    Check(StoreArg),
    /// Print counts, bytes by part, the largest predicates and classes, and how segments find their keys.
    Info(Info),
    /// List, set and remove the prefixes that a store knows: those that its data declares, and those set here (docs/prefixes.md).
    Prefixes(PrefixesArgs),
    /// Write a store's statements, or those of one graph, as an RDF document.
    Dump(Dump),
    /// Convert RDF documents to another format without a store, or only check them.
    Convert(Convert),
    /// Back up a store, even while it is served. Data that an earlier backup in the same folder has is not copied again.
    Backup(Backup),
    /// Restore a store from a backup, or from the log of several servers, as of a time or a snapshot.
    Restore(Restore),
    /// Merge the changes made by updates into the store's segments, so that it opens fast. A store that is being served is merged through its
    /// server (POST /admin/merge), or automatically.
    Merge(Merge),
    /// Renumber a store, including its changes, so that the order of ids suits its current data. A store that is being served is
    /// reclustered through its server (POST /admin/recluster).
    Recluster(Recluster),
    /// Run several servers that keep one store over a log (docs/replicas.md).
    #[command(subcommand)]
    Cluster(ClusterCommand),
    /// Check whether a server is ready, for probes and containers without other clients. Exits with status 1 if it is not ready or does not answer.
    Health(Health),
    /// Print the settings and where they come from: the environment or a file.
    Settings(Settings),
    /// Print a completion script for a shell.
    Completions(Completions),
    /// Write the manual pages of all commands to a folder.
    Man(Man),
    /// Generate a benchmark's data as N-Triples or N-Quads (with `jindou-bench`).
    #[command(disable_help_flag = true)]
    Generate(Laboratory),
    /// Run benchmarks (with the program `jindou-bench`, installed next to this one).
    #[command(disable_help_flag = true)]
    Bench(Laboratory),
    /// Install other engines to compare with, and show comparisons (also with `jindou-bench`).
    #[command(disable_help_flag = true)]
    Peers(Laboratory),
}

#[derive(ClapArgs, Debug)]
pub struct Health {
    /// The server's address (default: the address, port and TLS of `jindou serve` on this machine, as set by JINDOU_HOST, JINDOU_PORT and
    /// JINDOU_TLS_CERT or in the settings file; its certificate is then not verified).
    #[arg(value_name = "URL")]
    pub url: Option<String>,
    /// Stop waiting after this time.
    #[arg(long, value_parser = parse_duration, default_value = "5s", value_name = "TIME")]
    pub timeout: Duration,
}

#[derive(ClapArgs, Debug)]
pub struct Settings {
    /// Also print settings that have their default values.
    #[arg(long)]
    pub all: bool,
    /// Print them as JSON.
    #[arg(long)]
    pub json: bool,
}

#[derive(ClapArgs, Debug)]
pub struct Completions {
    /// The shell.
    #[arg(value_name = "SHELL")]
    pub shell: clap_complete::Shell,
}

#[derive(ClapArgs, Debug)]
pub struct Man {
    /// The folder; created if it does not exist.
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
}

/// Arguments of the program `jindou-bench`, passed on as they are.
#[derive(ClapArgs, Debug)]
pub struct Laboratory {
    /// Arguments of `jindou-bench`, whose own --help describes them.
    #[arg(
        value_name = "ARGUMENT",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    pub arguments: Vec<OsString>,
}

/// The store.
#[derive(ClapArgs, Debug)]
pub struct StoreArg {
    /// The store directory.
    #[arg(long, value_name = "DIR", env = "JINDOU_STORE")]
    pub store: PathBuf,
}

#[derive(ClapArgs, Debug)]
pub struct LoadArgs {
    /// The store directory to create [env: JINDOU_STORE].
    #[arg(long, visible_alias = "to", value_name = "DIR")]
    pub store: Option<PathBuf>,
    /// Split the store into this many shards, one folder each, for at most as many servers.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=255), conflicts_with = "into")]
    pub shards: Option<u32>,
    /// With --shards: how to place data on shards, range (an even part of every class) or hash.
    #[arg(long, value_name = "HOW", requires = "shards")]
    pub placement: Option<jindou::Placement>,
    /// Add to the existing store in this directory, in one transaction, instead of creating one.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["store", "replace", "union_default_graph"])]
    pub into: Option<PathBuf>,
    #[command(flatten)]
    pub durability: DurabilityArg,
    #[command(flatten)]
    pub verify: VerifyArg,
    /// Files and folders; `-` is standard input (with --format). With --allow-url also http and https addresses.
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Syntax of every file, instead of by extension: nt, nq, ttl, trig, rdf, jsonld.
    #[arg(long, value_parser = parse_format)]
    pub format: Option<Format>,
    /// Put the triples into this named graph.
    #[arg(long, value_name = "IRI")]
    pub graph: Option<String>,
    /// Base for relative IRIs (default: the file's own IRI).
    #[arg(long, value_name = "IRI")]
    pub base: Option<String>,
    #[command(flatten)]
    pub contexts: ContextArgs,
    /// Make the union of all graphs the default graph of queries.
    #[arg(long)]
    pub union_default_graph: bool,
    /// Fetch documents that are given as http and https addresses.
    #[arg(long)]
    pub allow_url: bool,
    /// Maximum size of a fetched document, before decompression.
    #[arg(long, value_parser = parse_size, default_value = "64G", value_name = "SIZE")]
    pub max_url_bytes: u64,
    /// Skip invalid statements, count them, and list the first ten.
    #[arg(long)]
    pub lenient: bool,
    /// With --lenient: write all skipped statements to this file.
    #[arg(long, value_name = "FILE", requires = "lenient")]
    pub errors: Option<PathBuf>,
    /// Replace the existing store.
    #[arg(long)]
    pub replace: bool,
    /// Also build the index of the words of labels and IRIs, which makes searches fast on large stores (docs/search.md).
    #[arg(long, conflicts_with = "into")]
    pub text: bool,
    /// Memory to use, e.g. 8G (default: two thirds of this machine's). Larger data goes through files, except for some 40 bytes
    /// of each term.
    #[arg(long, value_parser = parse_memory, value_name = "SIZE", env = "JINDOU_MEMORY")]
    pub memory: Option<u64>,
    /// Worker threads (default: one per core).
    #[arg(long, value_parser = parse_threads, env = "JINDOU_THREADS")]
    pub threads: Option<usize>,
    /// Hide the progress bar.
    #[arg(long, short)]
    pub quiet: bool,
}

#[derive(ClapArgs, Debug)]
pub struct UpdateArgs {
    /// The store directory. No other process may be changing it; a store that is being served is updated through its server
    /// (--endpoint).
    #[arg(long, value_name = "DIR", env = "JINDOU_STORE")]
    pub store: Option<PathBuf>,
    #[command(flatten)]
    pub remote: RemoteArgs,
    /// With --endpoint: key of the update. A server makes an update of one key once, however often it is sent within ten
    /// minutes, and refuses another update with it (docs/updates.md).
    #[arg(long = "idempotency-key", value_name = "KEY", requires = "endpoint")]
    pub key: Option<String>,
    /// The update request.
    #[arg(value_name = "TEXT", required_unless_present = "file")]
    pub text: Option<String>,
    /// Read the request from a file (`-`: standard input).
    #[arg(short = 'f', long, value_name = "FILE", conflicts_with = "text")]
    pub file: Option<PathBuf>,
    /// Require all prefixes to be declared. Otherwise those of the store and some sixty common ones (foaf:, skos:) are known.
    #[arg(long)]
    pub no_prefixes: bool,
    /// Base for relative IRIs, unless the request has BASE.
    #[arg(long, value_name = "IRI")]
    pub base: Option<String>,
    /// Cancel the update after this time, e.g. 500ms, 30s, 2m; nothing is changed then.
    #[arg(long, value_parser = parse_duration, value_name = "TIME")]
    pub timeout: Option<Duration>,
    /// Memory that the update may use, e.g. 2G (default: half of this machine's).
    #[arg(long, value_parser = parse_memory, value_name = "SIZE", env = "JINDOU_MEMORY")]
    pub memory: Option<u64>,
    /// Threads (default: one per core).
    #[arg(long, value_parser = parse_threads, env = "JINDOU_THREADS")]
    pub threads: Option<usize>,
    #[command(flatten)]
    pub documents: DocumentArgs,
    #[command(flatten)]
    pub durability: DurabilityArg,
    #[command(flatten)]
    pub verify: VerifyArg,
    /// Endpoint that SERVICE may call; repeatable. HOST means its ports 80 and 443.
    #[arg(long = "service-allow", value_name = "HOST[:PORT]")]
    pub service_allow: Vec<Allowed>,
    /// Print the result as JSON.
    #[arg(long)]
    pub json: bool,
}

#[derive(ClapArgs, Debug)]
pub struct PrefixesArgs {
    /// The store directory. To change prefixes of a store that is being served, ask its server (PUT /prefixes/NAME).
    #[arg(long, value_name = "DIR", env = "JINDOU_STORE", global = true)]
    pub store: Option<PathBuf>,
    /// Also list the common prefixes, which are known everywhere.
    #[arg(long)]
    pub all: bool,
    /// List them as JSON.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub durability: DurabilityArg,
    #[command(flatten)]
    pub verify: VerifyArg,
    #[command(subcommand)]
    pub command: Option<PrefixCommand>,
}

#[derive(Subcommand, Debug)]
pub enum PrefixCommand {
    /// Set a prefix for all queries of the store. It wins over one that the data declares.
    Set {
        /// Its name, without the colon; '' for the empty prefix.
        #[arg(value_name = "NAME")]
        name: String,
        /// Its IRI.
        #[arg(value_name = "IRI")]
        iri: String,
    },
    /// Remove the prefix that was set, or else the data's.
    Remove {
        /// Its name, without the colon.
        #[arg(value_name = "NAME")]
        name: String,
    },
}

#[derive(ClapArgs, Debug)]
pub struct Recluster {
    /// The store directory. No other process may be changing it.
    #[arg(long, value_name = "DIR", env = "JINDOU_STORE")]
    pub store: PathBuf,
    /// Build the index of the words of labels and IRIs (docs/search.md); a store that has one keeps it without this option.
    #[arg(long)]
    pub text: bool,
    #[command(flatten)]
    pub verify: VerifyArg,
    /// Memory to use, e.g. 8G (default: two thirds of this machine's). Larger data goes through files.
    #[arg(long, value_parser = parse_memory, value_name = "SIZE", env = "JINDOU_MEMORY")]
    pub memory: Option<u64>,
    /// Threads (default: one per core).
    #[arg(long, value_parser = parse_threads, env = "JINDOU_THREADS")]
    pub threads: Option<usize>,
    /// Hide the progress bar.
    #[arg(long, short)]
    pub quiet: bool,
}

#[derive(ClapArgs, Debug)]
pub struct Backup {
    /// The store directory.
    #[arg(long, value_name = "DIR", env = "JINDOU_STORE")]
    pub store: Option<PathBuf>,
    /// Folder of backups; created with the folders above it.
    #[arg(long, value_name = "DIR")]
    pub to: String,
    /// Afterwards remove all backups in the folder but the last N, and the files that only they need.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub keep: Option<u32>,
    /// List the backups.
    #[arg(long, conflicts_with = "keep")]
    pub list: bool,
}

#[derive(ClapArgs, Debug)]
pub struct Restore {
    /// Folder of backups; or the log of a store that several servers keep, s3://BUCKET/PREFIX or its directory (docs/replicas.md). The log is
    /// only read.
    #[arg(long, value_name = "PLACE")]
    pub from: String,
    /// The store directory to create; it must not exist.
    #[arg(long, value_name = "DIR")]
    pub store: PathBuf,
    /// Restore this backup, whatever the others are (`jindou backup --list` lists them). Otherwise a backup whose list is damaged keeps
    /// older ones from being used.
    #[arg(long, value_name = "NAME")]
    pub backup: Option<String>,
    /// Restore everything committed up to this time, e.g. 2026-11-22T07:42:15Z, and nothing later. In a log times are those of its bucket's
    /// clock.
    #[arg(long, value_parser = jindou::parse_time, value_name = "TIME", conflicts_with = "snapshot")]
    pub at: Option<u64>,
    /// Restore up to this snapshot.
    #[arg(long, value_name = "NUMBER")]
    pub snapshot: Option<u64>,
}

#[derive(ClapArgs, Debug)]
pub struct Merge {
    /// The store directory. No other process may be changing it.
    #[arg(long, value_name = "DIR", env = "JINDOU_STORE")]
    pub store: PathBuf,
    #[command(flatten)]
    pub verify: VerifyArg,
    #[command(flatten)]
    pub budget: MergeBudget,
    /// Threads (default: one per core, at most four are used).
    #[arg(long, value_parser = parse_threads, env = "JINDOU_THREADS")]
    pub threads: Option<usize>,
    /// Print the result as JSON.
    #[arg(long)]
    pub json: bool,
}

/// Limits on a merge's memory and write rate.
#[derive(ClapArgs, Debug)]
pub struct MergeBudget {
    /// Memory that a merge may use for keys; each key of a predicate takes 16 bytes.
    #[arg(long, value_parser = parse_memory, default_value = "1G", value_name = "SIZE")]
    pub merge_memory: u64,
    /// Bytes that a merge may write per second (default: no limit).
    #[arg(long, value_parser = parse_size, value_name = "SIZE")]
    pub merge_rate: Option<u64>,
}

/// Where LOAD finds documents.
#[derive(ClapArgs, Debug)]
pub struct DocumentArgs {
    /// Folder whose files LOAD may read (`LOAD <file:///…>`); repeatable.
    #[arg(long = "load-from", value_name = "DIR")]
    pub load_from: Vec<PathBuf>,
    /// Host that LOAD may read from; repeatable. HOST means its ports 80 and 443. One on this machine or its local
    /// network must be named by its address (or localhost).
    #[arg(long = "load-allow", value_name = "HOST[:PORT]")]
    pub load_allow: Vec<Allowed>,
}

/// The time at which the store's bytes are compared with their checksums.
#[derive(ClapArgs, Debug, Clone, Copy)]
pub struct VerifyArg {
    /// When to compare the store's files with their checksums: `eager`, before the first answer;
    /// `background`, while answering (answers given before damage is found may be wrong); `off`, never.
    #[arg(
        long,
        default_value = "eager",
        value_name = "WHEN",
        env = "JINDOU_VERIFY"
    )]
    pub verify: Verify,
}

/// The point at which an update counts as done.
#[derive(ClapArgs, Debug, Clone, Copy)]
pub struct DurabilityArg {
    /// When to acknowledge an update: `batch`, once it is on disk, together with concurrent ones;
    /// `interval=MS`, once the operating system has it, and it is synced within this many milliseconds (a power failure loses that much);
    /// `none`, once the operating system has it (a power failure loses what is not written yet). The end of the process loses
    /// nothing in any case.
    #[arg(long, value_parser = parse_durability, default_value = "batch", value_name = "WHEN")]
    pub durability: Durability,
}

/// A store that is named by its path on the command line, or by an option.
#[derive(ClapArgs, Debug)]
pub struct Place {
    /// The store directory, as --store names it.
    #[arg(value_name = "STORE")]
    at: Option<PathBuf>,
    /// The store directory.
    #[arg(long, value_name = "DIR", env = "JINDOU_STORE")]
    store: Option<PathBuf>,
}

impl Place {
    /// The directory, if one is named on the command line or by a setting.
    pub fn path(&self) -> Option<&Path> {
        self.at.as_deref().or(self.store.as_deref())
    }

    /// The directory.
    ///
    /// # Errors
    /// [`jindou::Error::Usage`] if none is named.
    pub fn required(&self, command: &str) -> jindou::Result<&Path> {
        self.path().ok_or_else(|| {
            jindou::Error::Usage(format!(
                "no store: name it, as in jindou {command} my.store (or --store DIR, or JINDOU_STORE)"
            ))
        })
    }
}

/// Temporary files of queries that need more memory than they may use.
#[derive(ClapArgs, Clone, Debug)]
pub struct TempArgs {
    /// Folder for temporary files of queries that need more memory than they may use, on a disk (default: the store's own).
    #[arg(long, value_name = "DIR", env = "JINDOU_TEMP_DIR")]
    pub temp_dir: Option<PathBuf>,
    /// Largest size of all queries' temporary files together (default: half of the free space).
    #[arg(long, value_parser = parse_memory, value_name = "SIZE", env = "JINDOU_TEMP_LIMIT")]
    pub temp_limit: Option<u64>,
    /// Largest size of one query's temporary files; 0 ends a query that needs more memory than it may use (default:
    /// --temp-limit).
    #[arg(long, value_parser = parse_memory, value_name = "SIZE", env = "JINDOU_QUERY_TEMP")]
    pub query_temp: Option<u64>,
}

/// Parses a size of memory. A bare number of a few bytes is refused, since a unit was probably forgotten.
fn parse_memory(text: &str) -> Result<u64, String> {
    let bytes = parse_size(text)?;
    match text.trim().parse::<u32>() {
        Ok(n @ 1..=9999) => Err(format!("that is {n} bytes; did you mean {n}G or {n}M?")),
        _ => Ok(bytes),
    }
}

/// Parses the format of an answer.
fn parse_answer_format(text: &str) -> Result<ResultFormat, String> {
    text.parse().map_err(|_| {
        let names = ResultFormat::NAMES;
        let near = |name: &&str| strsim::damerau_levenshtein(&text.to_ascii_lowercase(), name);
        let nearest = names.iter().min_by_key(|name| near(name));
        match nearest.filter(|name| near(name) <= 1) {
            Some(name) => format!("did you mean {name}?"),
            None => format!("the formats are {}", names.join(", ")),
        }
    })
}

/// Parses a number of threads. The maximum is larger than the number of cores of any machine.
fn parse_threads(text: &str) -> Result<usize, String> {
    const MOST: usize = 4096;
    match text.parse() {
        Ok(n @ 1..=MOST) => Ok(n),
        _ => Err(format!(
            "'{text}' is not a number of threads; write one from 1 to {MOST}"
        )),
    }
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
            .ok_or_else(|| format!("'{text}' is not one of batch, interval=MILLISECONDS and none")),
    }
}

#[derive(ClapArgs, Debug)]
pub struct Info {
    #[command(flatten)]
    pub place: Place,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// Number of predicates and classes to list.
    #[arg(long, default_value_t = 20)]
    pub top: usize,
}

fn parse_format(s: &str) -> Result<Format, String> {
    Format::from_extension(s.trim_start_matches('.')).ok_or_else(|| {
        format!("unknown format '{s}'; expected one of nt, nq, ttl, trig, rdf, jsonld")
    })
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
