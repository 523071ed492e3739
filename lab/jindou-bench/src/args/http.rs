//! The command line of `jindou bench http`.

use clap::Args as ClapArgs;
use std::path::PathBuf;

#[derive(ClapArgs, Debug)]
pub struct BenchHttp {
    /// Requests of each measurement without pauses; those with pauses have a tenth of it.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(160..))]
    pub requests: u32,
    /// Rounds; each measures all servers in turn, and medians are reported.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: u32,
    /// Another `jindou` to compare with, such as one of an earlier version.
    #[arg(long, value_name = "PROGRAM")]
    pub before: Option<PathBuf>,
    /// Compare with Oxigraph, too. It is in this folder, where `jindou peers install oxigraph` put it (default: jindou/peers in
    /// your cache folder).
    #[arg(long, value_name = "DIR", num_args = 0..=1, default_missing_value = "")]
    pub oxigraph: Option<PathBuf>,
    /// As JSON, to a file or (without one) to standard output.
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub json: Option<PathBuf>,
}
