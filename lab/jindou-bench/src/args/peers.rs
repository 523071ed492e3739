//! The command line of everything that has to do with other engines.

use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use jindou_model::units::{parse_duration, parse_size};
use std::path::PathBuf;
use std::time::Duration;

#[derive(Subcommand, Debug)]
pub enum Peers {
    /// Obtain other engines from their registries (pip, apt-get, mvn), in pinned versions.
    Install {
        /// Engines: oxigraph, virtuoso, jena, duckdb.
        #[arg(value_name = "NAME,…", value_delimiter = ',', required = true)]
        names: Vec<String>,
        /// Folder to install them in (default: jindou/peers in your cache folder).
        #[arg(long, alias = "into", value_name = "DIR")]
        engines: Option<PathBuf>,
    },
    /// List the engines that can be installed, and which are.
    List {
        /// Where they are (default: jindou/peers in your cache folder).
        #[arg(long, alias = "into", value_name = "DIR")]
        engines: Option<PathBuf>,
    },
    /// Print a comparison's JSON as a table.
    Show {
        /// File that `bench … --peers … --json FILE` wrote.
        #[arg(value_name = "FILE")]
        json: PathBuf,
    },
}

/// How queries are sent to Jindou itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Reach {
    /// Over HTTP if this command has a server, else inside this process.
    Auto,
    /// Over HTTP, like the other servers.
    Http,
    /// Inside this process: no HTTP round trip; the table says so.
    Inproc,
}

/// A comparison with other engines.
#[derive(ClapArgs, Clone, Debug)]
#[command(next_help_heading = "Comparison with other engines")]
pub struct PeersArgs {
    /// Compare with these: oxigraph, virtuoso, jena, duckdb, duckdb-text (see `jindou peers`), and qlever=DIR, the folder
    /// with the programs of a QLever that you have built.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub peers: Vec<String>,
    /// Where the engines are installed (default: jindou/peers in your cache folder).
    #[arg(long, alias = "into", value_name = "DIR")]
    pub engines: Option<PathBuf>,
    /// Keep data, stores and logs here and use loaded stores again (default: a temporary folder).
    #[arg(long, value_name = "DIR")]
    pub work: Option<PathBuf>,
    /// Timed rounds; four times as many if all engines are fast.
    #[arg(long, default_value_t = 5)]
    pub rounds: usize,
    /// Time limit of a query.
    #[arg(long, value_parser = parse_duration, value_name = "TIME", default_value = "60s")]
    pub limit: Duration,
    /// Memory each engine may use: heaps, buffers, budgets.
    #[arg(long, value_parser = parse_size, value_name = "SIZE", default_value = "3G")]
    pub peer_memory: u64,
    /// How queries are sent to Jindou itself.
    #[arg(long, value_enum, default_value = "auto")]
    pub jindou: Reach,
}

#[derive(ClapArgs, Debug)]
pub struct BenchFiles {
    /// Files and folders of RDF. Named graphs are merged into one.
    #[arg(value_name = "DATA", required = true)]
    pub data: Vec<PathBuf>,
    /// A folder; each *.rq and *.sparql file in it is a query.
    #[arg(long, value_name = "DIR")]
    pub queries: PathBuf,
    /// Skip statements that are not valid.
    #[arg(long)]
    pub lenient: bool,
    /// Threads a query may use (default: one per core).
    #[arg(long)]
    pub threads: Option<usize>,
    /// As JSON, to a file or (without one) to standard output.
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub json: Option<PathBuf>,
    #[command(flatten)]
    pub peers: PeersArgs,
}
