//! The command line of `jindou bench mixed`.

use crate::obliger::Policy;
use clap::{Args as ClapArgs, ValueEnum};
use jindou_model::units::parse_duration;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// How many queries come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rate {
    /// Queries a second.
    Absolute(f64),
    /// A multiple of the rate that the closed loop reached.
    OfPeak(f64),
}

fn parse_rate(text: &str) -> Result<Rate, String> {
    let (number, of_peak) = match text.strip_suffix('x') {
        Some(n) => (n, true),
        None => (text, false),
    };
    match number.parse::<f64>() {
        Ok(n) if n.is_finite() && n > 0.0 => Ok(if of_peak {
            Rate::OfPeak(n)
        } else {
            Rate::Absolute(n)
        }),
        _ => Err("a rate is queries per second (50000) or a fraction of the peak (0.8x)".into()),
    }
}

/// Scheduling of queries on the workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Scheduling {
    /// Worker-obliger (OSDI '16, fig. 11).
    Oblige,
    /// Each worker its own queue.
    Private,
    /// Its own, or any other.
    Stealing,
    /// One queue for all.
    Shared,
    /// Half of the workers for heavy queries only, worker-obliger among the others.
    Isolation,
}

impl Scheduling {
    pub fn policy(self) -> Policy {
        match self {
            Self::Oblige | Self::Isolation => Policy::Oblige,
            Self::Private => Policy::Private,
            Self::Stealing => Policy::Stealing,
            Self::Shared => Policy::Shared,
        }
    }

    pub fn isolates(self) -> bool {
        self == Self::Isolation
    }
}

impl fmt::Display for Scheduling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Oblige => "oblige",
            Self::Private => "private",
            Self::Stealing => "stealing",
            Self::Shared => "shared",
            Self::Isolation => "isolation",
        })
    }
}

#[derive(ClapArgs, Debug)]
pub struct BenchMixed {
    /// The store directory; it is only read.
    #[arg(long, value_name = "DIR")]
    pub store: PathBuf,
    /// Shares by the reciprocal of each class' mean latency, instead of the mix' own.
    #[arg(long)]
    pub reciprocal: bool,
    /// Start points a class at most.
    #[arg(long, default_value_t = 20_000)]
    pub starts: usize,
    /// Heavy queries to send alongside: names of LUBM's (L1, L7) or files.
    #[arg(long, value_name = "QUERY", value_delimiter = ',')]
    pub heavy: Vec<String>,
    /// Clients that send heavy queries, each one after the other.
    #[arg(long, default_value_t = 1)]
    pub heavy_clients: usize,
    /// Clients send light and heavy queries as the shares have it (ATC '18, §6.6); heavy ones have no clients of their own.
    #[arg(long, requires = "reciprocal", conflicts_with = "http")]
    pub freely: bool,
    /// Only runs with heavy queries.
    #[arg(long)]
    pub only_heavy: bool,
    /// Repeat comparisons of light queries alongside something with light ones alone, in turn.
    #[arg(long, default_value_t = 1)]
    pub rounds: usize,
    /// First measure for this long how often the system interrupts a loop on each core, and print it.
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub stalls: Option<Duration>,
    /// Clients of light queries.
    #[arg(long, default_value_t = 4)]
    pub clients: usize,
    /// Over HTTP on loopback, a connection for each client: scheduled as `jindou serve` does.
    #[arg(long)]
    pub http: bool,
    /// Over HTTP also this many queries in a request to /batch.
    #[arg(long, default_value_t = 1, requires = "http")]
    pub batch: usize,
    /// Over HTTP also this many requests before the first answer is read.
    #[arg(long, default_value_t = 1, requires = "http")]
    pub pipeline: usize,
    /// Open loops as well, at this many queries a second or at a part of the closed loop's (0.8x).
    #[arg(long, value_name = "RATE", value_delimiter = ',', value_parser = parse_rate)]
    pub rates: Vec<Rate>,
    /// Worker threads, several to compare.
    #[arg(long, value_delimiter = ',', default_value = "2")]
    pub workers: Vec<usize>,
    /// Workers that may be at heavy queries, and threads of one: several to compare.
    #[arg(long, value_delimiter = ',', default_value = "1")]
    pub mt_threshold: Vec<usize>,
    /// Scheduling of queries: several to compare.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "oblige")]
    pub scheduling: Vec<Scheduling>,
    /// Time before it counts.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_duration)]
    pub warm_up: Duration,
    /// Time that counts.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = parse_duration)]
    pub duration: Duration,
    /// Answers a class that are compared with plain execution beforehand.
    #[arg(long, default_value_t = 50)]
    pub check: usize,
    /// Seed of all draws.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}
