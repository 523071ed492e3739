//! `jindou-cluster-probe`: one process serves a store's segments, another reads neighbour lists out of its
//! memory, checks them and says what they cost.
//!
//! ```text
//! jindou-cluster-probe serve --store DIR --transport shm            prints "listening on ADDRESS"
//! jindou-cluster-probe read  --connect ADDRESS --transport shm --verify DIR
//! ```

mod edits;
mod read;
mod serve;

use clap::{Args, Parser, Subcommand, ValueEnum};
use jindou_cluster::transport::ucx::{Fabric, UcxOptions};
use std::path::PathBuf;

#[derive(Parser)]
#[command(about = "Serves a store's neighbour lists to another process, and measures reading them")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve a store until killed, or until standard input ends.
    Serve(serve::Serve),
    /// Read random lists of a served store.
    Read(read::Read),
}

#[derive(Clone, Copy, ValueEnum)]
enum Carrier {
    /// Another process' memory on this machine.
    Shm,
    /// TCP.
    Tcp,
}

/// Settings of both ends.
#[derive(Args)]
struct Common {
    /// Carrier of the data; the same on both ends.
    #[arg(long, value_enum, default_value = "shm")]
    transport: Carrier,
    /// Network devices for UCX.
    #[arg(long, default_value = "lo")]
    devices: String,
    /// Spin instead of sleeping.
    #[arg(long)]
    spin: bool,
    /// Read shared memory by calls of UCX only, never directly.
    #[arg(long)]
    no_direct: bool,
    /// Edits laid over the store at serving; the reader needs the same number to verify.
    #[arg(long, default_value_t = 0)]
    edits: u32,
    /// Seed of the edits and of the reader's choices.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

impl Common {
    fn options(&self) -> UcxOptions {
        let fabric = match self.transport {
            Carrier::Shm => Fabric::SharedMemory,
            Carrier::Tcp => Fabric::Tcp,
        };
        UcxOptions {
            devices: self.devices.clone(),
            spin: self.spin,
            direct: !self.no_direct,
            ..UcxOptions::loopback(fabric)
        }
    }
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        jindou_model::random::splitmix64(&mut self.0)
    }

    /// Below `n`; 0 for 0.
    fn below(&mut self, n: u64) -> u64 {
        self.next().checked_rem(n).unwrap_or(0)
    }

    /// From `a` to `b`, both included.
    fn between(&mut self, a: u32, b: u32) -> u32 {
        a.saturating_add(self.below(u64::from(b.saturating_sub(a)) + 1) as u32)
    }
}

/// A store directory.
type Directory = PathBuf;

fn main() -> anyhow::Result<()> {
    match Arguments::parse().command {
        Command::Serve(s) => serve::run(&s),
        Command::Read(r) => read::run(&r),
    }
}
