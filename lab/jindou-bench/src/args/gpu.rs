//! Arguments of `jindou bench gpu`.

use clap::{Args as ClapArgs, Subcommand};
use std::path::PathBuf;

/// Measurements about GPUs.
#[derive(Subcommand, Debug)]
pub enum BenchGpu {
    /// Decide as `--gpu auto` would on a card of which speeds were measured, and judge that by runs that were recorded on an H200. No card is needed.
    Choose(BenchChoose),
}

#[derive(ClapArgs, Debug)]
pub struct BenchChoose {
    /// The speeds of a card, as JINDOU_GPU_CALIBRATION names them; of several, the first.
    #[arg(long, value_name = "FILE")]
    pub calibration: PathBuf,
    /// Threads of the CPU, for WatDiv and BSBM.
    #[arg(long, default_value_t = 16)]
    pub threads: usize,
    /// WatDiv's scale; 0: none of its queries.
    #[arg(long, default_value_t = 10)]
    pub watdiv: u32,
    /// BSBM's products; 0: none of its queries.
    #[arg(long, default_value_t = 1000)]
    pub bsbm: u32,
    /// As JSON as well, to a file.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}
