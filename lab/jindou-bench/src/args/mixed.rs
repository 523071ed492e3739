//! The command line of `jindou bench mixed`.

use crate::mixed::Beside;
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

/// Senders of light queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ClientsOn {
    /// The workers draw them by themselves.
    Workers,
    /// Threads of their own, which need processors as well.
    Threads,
}

#[derive(ClapArgs, Debug)]
pub struct BenchMixed {
    /// The store directory; it is only read.
    #[arg(long, value_name = "DIR")]
    pub store: PathBuf,
    /// Templates of light queries in the form of Wukong's emulator, with `mix_config` (default: A1 to A6 over LUBM).
    #[arg(long, value_name = "DIR")]
    pub templates: Option<PathBuf>,
    /// Another file of that folder in place of `mix_config`; it may have heavy queries as well (mix_config_heavy).
    #[arg(long, value_name = "FILE", requires = "templates")]
    pub mix: Option<String>,
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
    /// Only runs of heavy queries with nothing alongside them (ATC '18, §6.7).
    #[arg(long, conflicts_with = "http")]
    pub heavy_only: bool,
    /// Only runs with heavy queries.
    #[arg(long)]
    pub only_heavy: bool,
    /// Senders of light queries.
    #[arg(long, value_enum, default_value = "workers")]
    pub clients_on: ClientsOn,
    /// Also one worker alongside a thread that does this, with no scheduler between: several to compare.
    #[arg(long, value_enum, value_delimiter = ',')]
    pub beside: Vec<Beside>,
    /// Repeat comparisons of light queries alongside something with light ones alone, in turn.
    #[arg(long, default_value_t = 1)]
    pub rounds: usize,
    /// First measure for this long how often the system interrupts a loop on each core, and print it.
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub stalls: Option<Duration>,
    /// Keep each worker on a core of its own.
    #[arg(long)]
    pub pin: bool,
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
    /// Queries that each client of a closed loop keeps under way.
    #[arg(long, default_value_t = 4)]
    pub window: usize,
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
    /// A worker that takes longer for one query is stuck.
    #[arg(long, value_name = "TIME", default_value = "200us", value_parser = parse_duration)]
    pub stuck_after: Duration,
    /// A worker with nothing to do looks for so long before it sleeps.
    #[arg(long, value_name = "TIME", default_value = "50us", value_parser = parse_duration)]
    pub spin: Duration,
    /// A light query that takes longer is moved to the heavy ones.
    #[arg(long, value_name = "TIME", default_value = "2ms", value_parser = parse_duration)]
    pub light_limit: Duration,
    /// A query that has waited longer is dropped.
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub deadline: Option<Duration>,
    /// Most light queries that wait.
    #[arg(long, default_value_t = 1 << 16)]
    pub queue: usize,
    /// In open loops light queries that would wait longer are refused.
    #[arg(long, value_name = "TIME", default_value = "10ms", value_parser = parse_duration)]
    pub max_wait: Duration,
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
    /// Write the runs' cumulative distributions as a plot.
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Only plot, and write as CSV, the runs that have this in their titles.
    #[arg(long, value_name = "TEXT")]
    pub plot: Option<String>,
    /// Write them as CSV.
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Write the tables as JSON.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}
