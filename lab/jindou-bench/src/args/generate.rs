//! The command line of `jindou generate`, which the command `jindou` passes on.

use clap::{Args as ClapArgs, Subcommand};
use std::path::PathBuf;

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
        /// Scale: 1 is about 109,500 statements.
        #[arg(long, short = 'n')]
        scale: u32,
        /// Seed.
        #[arg(long, default_value_t = 0)]
        seed: u64,
        /// Where to write N-Triples (`-`: standard output).
        #[arg(long, default_value = "-")]
        out: PathBuf,
    },
    /// The Berlin SPARQL Benchmark: products, offers and reviews, after the original's rules.
    Bsbm {
        /// Number of products: 1 is about 353 statements.
        #[arg(long, short = 'n')]
        products: u32,
        /// Seed.
        #[arg(long, default_value_t = 0)]
        seed: u64,
        /// Where to write N-Triples (`-`: standard output).
        #[arg(long, default_value = "-")]
        out: PathBuf,
    },
    /// SP²Bench: a bibliography, by its published rules.
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
    /// Instances of WatDiv's templates, one file each: L1-0.rq, L1-1.rq …
    WatdivQueries(WatdivQueries),
    /// A graph with the irregularities of real data (docs/lab/ugly.md).
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
    /// Scale of the data to query.
    #[arg(long, short = 'n')]
    pub scale: u32,
    /// Seed.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Instances of each template (one of templates without parameters).
    #[arg(long, default_value_t = 5)]
    pub instances: u32,
    /// The folder to write to; created if it does not exist.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
}
