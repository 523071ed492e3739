//! The command line of `jindou query` and `jindou shell`.

use super::{DocumentArgs, VerifyArg, parse_threads};
use clap::Args as ClapArgs;
use jindou::service::Allowed;
use jindou::{GpuChoice, ResultFormat};
use jindou_model::units::{parse_duration, parse_size};
use std::path::PathBuf;
use std::time::Duration;

#[derive(ClapArgs, Debug)]
pub struct Query {
    /// The store directory.
    #[arg(long, value_name = "DIR", env = "JINDOU_STORE")]
    pub store: Option<PathBuf>,
    #[command(flatten)]
    pub remote: RemoteArgs,
    #[command(flatten)]
    pub verify: VerifyArg,
    /// The query.
    #[arg(value_name = "TEXT", required_unless_present = "file")]
    pub text: Option<String>,
    /// Read the query from a file (`-`: standard input).
    #[arg(short = 'f', long, value_name = "FILE", conflicts_with = "text")]
    pub file: Option<PathBuf>,
    /// Resolve the query's relative IRIs against this IRI, unless it has a BASE of its own.
    #[arg(long, value_name = "IRI", value_parser = parse_base)]
    pub base: Option<String>,
    /// Require declarations of all prefixes, and write whole IRIs in tables. Without this, some sixty common prefixes (foaf:, skos:) need none.
    #[arg(long, alias = "no-common-prefixes")]
    pub no_prefixes: bool,
    /// How to write the answer: table, tsv, csv, json, ndjson, xml; graphs as nt, nq, ttl, trig, rdf, jsonld, and as rows by csv, tsv and ndjson.
    /// Default: table on a terminal, tsv elsewhere, nt for graphs.
    #[arg(long)]
    pub format: Option<ResultFormat>,
    /// Print the plan instead of running it.
    #[arg(long, conflicts_with = "endpoint")]
    pub explain: bool,
    /// Run, and print each step's rows, time and bytes to standard error.
    #[arg(long, conflicts_with = "endpoint")]
    pub profile: bool,
    /// Print rows and times to standard error.
    #[arg(long)]
    pub time: bool,
    /// Give up after this long, e.g. 500ms, 30s, 2m.
    #[arg(long, value_parser = parse_duration, value_name = "TIME")]
    pub timeout: Option<Duration>,
    /// Memory the query may use, e.g. 2G (default: half of this machine's).
    #[arg(long, value_parser = parse_size, value_name = "SIZE", env = "JINDOU_MEMORY")]
    pub memory: Option<u64>,
    /// Threads a heavy query may use (default: one a core).
    #[arg(long, value_parser = parse_threads, env = "JINDOU_THREADS")]
    pub threads: Option<usize>,
    /// The default graph is the union of all graphs.
    #[arg(long, conflicts_with = "endpoint")]
    pub union_default_graph: bool,
    /// Run graph patterns on a GPU: on, off, auto (where a GPU is expected to take less time).
    #[arg(long, default_value = "auto")]
    pub gpu: GpuChoice,
    /// Memory of each GPU that segments and tables may use, e.g. 8G (default: all that is free there).
    #[arg(long, value_parser = parse_size, value_name = "SIZE", env = "JINDOU_GPU_MEMORY")]
    pub gpu_memory: Option<u64>,
    /// Endpoint that SERVICE may ask, several times: HOST means its ports 80 and 443. One inside this machine or its own
    /// network must be named by its address (or localhost).
    #[arg(long = "service-allow", value_name = "HOST[:PORT]")]
    pub service_allow: Vec<Allowed>,
}

/// An absolute IRI.
fn parse_base(text: &str) -> Result<String, String> {
    match jindou::oxrdf::NamedNode::new(text) {
        Ok(iri) => Ok(iri.into_string()),
        Err(e) => Err(format!(
            "not an absolute IRI such as http://example.org/: {e}"
        )),
    }
}

/// A SPARQL endpoint in place of a store.
#[derive(ClapArgs, Debug)]
pub struct RemoteArgs {
    /// Ask the SPARQL endpoint at this address instead of a store.
    #[arg(long, value_name = "URL")]
    pub endpoint: Option<String>,
    /// Token to send to the endpoint as a Bearer token. Others can see it on the command line; JINDOU_TOKEN or the file of settings
    /// keep it private.
    #[arg(long, value_name = "TOKEN")]
    pub token: Option<String>,
}

#[derive(ClapArgs, Debug)]
pub struct Shell {
    /// The store directory.
    #[arg(long, value_name = "DIR", env = "JINDOU_STORE")]
    pub store: Option<PathBuf>,
    #[command(flatten)]
    pub remote: RemoteArgs,
    /// Accept updates, too. No other process may have the store open for changes.
    #[arg(long)]
    pub write: bool,
    #[command(flatten)]
    pub verify: VerifyArg,
    /// Require declarations of all prefixes, and write whole IRIs in tables. Without this, some sixty common prefixes (foaf:, skos:) need none.
    #[arg(long)]
    pub no_prefixes: bool,
    /// How to write answers (see `jindou query`). Default: table, nt for graphs.
    #[arg(long)]
    pub format: Option<ResultFormat>,
    /// Show only this many rows of an answer.
    #[arg(long, value_name = "ROWS")]
    pub limit: Option<u64>,
    /// Show long answers page by page with this program (default: $PAGER, or less); empty: never.
    #[arg(long, value_name = "COMMAND")]
    pub pager: Option<String>,
    /// Give up a query after this long, e.g. 500ms, 30s, 2m.
    #[arg(long, value_parser = parse_duration, value_name = "TIME")]
    pub timeout: Option<Duration>,
    /// Memory for queries, e.g. 2G (default: half of this machine's).
    #[arg(long, value_parser = parse_size, value_name = "SIZE", env = "JINDOU_MEMORY")]
    pub memory: Option<u64>,
    /// Threads a heavy query may use (default: one a core).
    #[arg(long, value_parser = parse_threads, env = "JINDOU_THREADS")]
    pub threads: Option<usize>,
    /// The default graph is the union of all graphs.
    #[arg(long, conflicts_with = "endpoint")]
    pub union_default_graph: bool,
    /// Run graph patterns on a GPU: on, off, auto (where a GPU is expected to take less time).
    #[arg(long, default_value = "auto")]
    pub gpu: GpuChoice,
    /// Memory of each GPU that segments and tables may use, e.g. 8G (default: all that is free there).
    #[arg(long, value_parser = parse_size, value_name = "SIZE", env = "JINDOU_GPU_MEMORY")]
    pub gpu_memory: Option<u64>,
    #[command(flatten)]
    pub documents: DocumentArgs,
    /// Endpoint that SERVICE may ask, several times: HOST means its ports 80 and 443.
    #[arg(long = "service-allow", value_name = "HOST[:PORT]")]
    pub service_allow: Vec<Allowed>,
}
