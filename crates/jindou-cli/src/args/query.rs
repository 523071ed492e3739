//! The command line of `jindou query` and `jindou shell`.

use super::{
    DocumentArgs, GraphsArg, Place, TempArgs, VerifyArg, parse_answer_format, parse_format,
    parse_memory, parse_threads,
};
use clap::Args as ClapArgs;
use jindou::service::Allowed;
use jindou::{GpuChoice, ResultFormat};
use jindou_model::units::parse_duration;
use jindou_parse::Format;
use std::path::PathBuf;
use std::time::Duration;

#[derive(ClapArgs, Debug)]
pub struct QueryArgs {
    /// The store directory.
    #[arg(long, value_name = "DIR", env = "JINDOU_STORE")]
    pub store: Option<PathBuf>,
    /// Query this RDF file instead of a store; repeatable. It is read into memory, and nothing is written to disk.
    #[arg(long, value_name = "FILE", conflicts_with = "endpoint")]
    pub data: Vec<PathBuf>,
    /// Syntax of the files of --data, instead of by extension: nt, nq, ttl, trig, rdf, jsonld.
    #[arg(long, value_name = "FORMAT", value_parser = parse_format, requires = "data")]
    pub data_format: Option<Format>,
    #[command(flatten)]
    pub remote: RemoteArgs,
    #[command(flatten)]
    pub verify: VerifyArg,
    /// The query. May follow the store directory, an RDF file or an endpoint, instead of --store, --data or --endpoint.
    #[arg(value_name = "TEXT", required_unless_present = "file", num_args = 1..=2)]
    pub text: Vec<String>,
    /// Read the query from a file (`-`: standard input).
    #[arg(short = 'f', long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Base for relative IRIs, unless the query has BASE.
    #[arg(long, value_name = "IRI", value_parser = parse_base)]
    pub base: Option<String>,
    /// Require all prefixes to be declared, and write full IRIs in tables. Otherwise the prefixes of the store and some sixty common ones
    /// (foaf:, skos:) are known.
    #[arg(long)]
    pub no_prefixes: bool,
    /// Format of the answer: table, tsv, csv, json, ndjson, xml; for graphs nt, nq, ttl, trig, rdf, jsonld, or as rows csv, tsv, ndjson.
    /// Default: table on a terminal, tsv elsewhere, nt for graphs.
    #[arg(long, value_parser = parse_answer_format)]
    pub format: Option<ResultFormat>,
    /// On a terminal: show all rows and whole cells, in a pager, instead of the first 40 rows within the terminal's width.
    #[arg(long)]
    pub all: bool,
    /// With --all: write a long answer without a pager.
    #[arg(long)]
    pub no_pager: bool,
    /// Print the plan without running it.
    #[arg(long, conflicts_with = "endpoint")]
    pub explain: bool,
    /// After an answer without rows, say why on standard error. Without this option that is done on a terminal only.
    #[arg(long, conflicts_with = "endpoint")]
    pub explain_empty: bool,
    /// Run, and print each step's rows, time and bytes to standard error.
    #[arg(long, conflicts_with = "endpoint")]
    pub profile: bool,
    /// Print rows and times to standard error.
    #[arg(long)]
    pub time: bool,
    /// Cancel the query after this time, e.g. 500ms, 30s, 2m.
    #[arg(long, value_parser = parse_duration, value_name = "TIME")]
    pub timeout: Option<Duration>,
    /// Memory that the query may use, e.g. 2G (default: half of this machine's).
    #[arg(long, value_parser = parse_memory, value_name = "SIZE", env = "JINDOU_MEMORY")]
    pub memory: Option<u64>,
    #[command(flatten)]
    pub temp: TempArgs,
    /// Threads that a heavy query may use (default: one per core).
    #[arg(long, value_parser = parse_threads, env = "JINDOU_THREADS")]
    pub threads: Option<usize>,
    #[command(flatten)]
    pub graphs: GraphsArg,
    /// Run graph patterns on a GPU: on, or off. auto runs them on the CPU, since a GPU takes longer to open than one query, and
    /// with --explain shows what a server would choose.
    #[arg(long, default_value = "auto")]
    pub gpu: GpuChoice,
    /// Memory of each GPU that segments and tables may use, e.g. 8G (default: all free memory).
    #[arg(long, value_parser = parse_memory, value_name = "SIZE", env = "JINDOU_GPU_MEMORY")]
    pub gpu_memory: Option<u64>,
    /// Endpoint that SERVICE may call; repeatable. HOST means its ports 80 and 443. One on this machine or its local
    /// network must be named by its address (or localhost).
    #[arg(long = "service-allow", value_name = "HOST[:PORT]")]
    pub service_allow: Vec<Allowed>,
}

/// Parses an absolute IRI.
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
    /// SPARQL endpoint to use instead of a store.
    #[arg(long, value_name = "URL")]
    pub endpoint: Option<String>,
    /// Bearer token to send to the endpoint. Other users can see it on the command line; JINDOU_TOKEN or the settings file
    /// keep it private.
    #[arg(long, value_name = "TOKEN")]
    pub token: Option<String>,
}

#[derive(ClapArgs, Debug)]
pub struct Shell {
    #[command(flatten)]
    pub place: Place,
    #[command(flatten)]
    pub remote: RemoteArgs,
    /// Also accept updates. No other process may have the store open for writing.
    #[arg(long)]
    pub write: bool,
    #[command(flatten)]
    pub verify: VerifyArg,
    /// Require all prefixes to be declared, and write full IRIs in tables. Otherwise the prefixes of the store and some sixty common ones
    /// (foaf:, skos:) are known.
    #[arg(long)]
    pub no_prefixes: bool,
    /// Format of answers (see `jindou query`). Default: table, nt for graphs.
    #[arg(long, value_parser = parse_answer_format)]
    pub format: Option<ResultFormat>,
    /// Show only this many rows of an answer.
    #[arg(long, value_name = "ROWS")]
    pub limit: Option<u64>,
    /// Show all rows of answers and whole cells, instead of the first 40 rows within the terminal's width.
    #[arg(long)]
    pub all: bool,
    /// Write long answers without a pager.
    #[arg(long, conflicts_with = "pager")]
    pub no_pager: bool,
    /// Program to page long answers with (default: $PAGER, or less); empty: no paging.
    #[arg(long, value_name = "COMMAND")]
    pub pager: Option<String>,
    /// Cancel a query after this time, e.g. 500ms, 30s, 2m.
    #[arg(long, value_parser = parse_duration, value_name = "TIME")]
    pub timeout: Option<Duration>,
    /// Memory for queries, e.g. 2G (default: half of this machine's).
    #[arg(long, value_parser = parse_memory, value_name = "SIZE", env = "JINDOU_MEMORY")]
    pub memory: Option<u64>,
    /// Threads that a heavy query may use (default: one per core).
    #[arg(long, value_parser = parse_threads, env = "JINDOU_THREADS")]
    pub threads: Option<usize>,
    #[command(flatten)]
    pub graphs: GraphsArg,
    /// Run graph patterns on a GPU: on, off, or auto (when the GPU is expected to be faster).
    #[arg(long, default_value = "auto")]
    pub gpu: GpuChoice,
    /// Memory of each GPU that segments and tables may use, e.g. 8G (default: all free memory).
    #[arg(long, value_parser = parse_memory, value_name = "SIZE", env = "JINDOU_GPU_MEMORY")]
    pub gpu_memory: Option<u64>,
    #[command(flatten)]
    pub documents: DocumentArgs,
    /// Endpoint that SERVICE may call; repeatable. HOST means its ports 80 and 443.
    #[arg(long = "service-allow", value_name = "HOST[:PORT]")]
    pub service_allow: Vec<Allowed>,
}

impl QueryArgs {
    /// Takes the text before the query, or the only text if the query comes from `--file`, as the store, RDF file or
    /// endpoint to query.
    ///
    /// # Errors
    /// [`jindou::Error::Usage`] if a query is given both as a text and in a file.
    pub fn placed(mut self) -> jindou::Result<Self> {
        let place = match (&self.file, self.text.len()) {
            (None, 2) | (Some(_), 1) => self.text.remove(0),
            (Some(_), 2) => {
                return Err(jindou::Error::Usage(
                    "the query is given as text and with -f FILE; leave one of them out".into(),
                ));
            }
            _ => return Ok(self),
        };
        if self.file.is_some() && place.contains(char::is_whitespace) {
            return Err(jindou::Error::Usage(
                "the query is given as text and with -f FILE; leave one of them out".into(),
            ));
        }
        if place.starts_with("http://") || place.starts_with("https://") {
            self.remote.endpoint = Some(place);
        } else if PathBuf::from(&place).is_file() {
            self.data.push(place.into());
        } else {
            self.store = Some(place.into());
        }
        Ok(self)
    }
}
