//! The command line of `jindou cluster`.

use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use std::path::PathBuf;

#[derive(Subcommand, Debug)]
pub enum ClusterCommand {
    /// Run all servers on this machine, for testing: write the cluster file and certificates, start the servers, and stop them
    /// together on Ctrl-C.
    Start(StartCluster),
    /// Ask each server of a cluster file whether it is alive, and which shards it holds.
    Status {
        /// The cluster file, with the certificate and key of one of its servers.
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
}

#[derive(ClapArgs, Debug)]
pub struct StartCluster {
    /// The store, loaded with --shards.
    #[arg(long, value_name = "DIR", env = "JINDOU_STORE")]
    pub store: PathBuf,
    /// Servers, at most as many as there are shards.
    #[arg(long, value_name = "N")]
    pub servers: usize,
    /// Folder for cluster.toml and the certificates (default: `cluster` in the store). Existing ones are reused.
    #[arg(long, value_name = "DIR")]
    pub files: Option<PathBuf>,
    /// Client port of the first server; the other servers' follow, then the ports for peers. 0 picks free ports.
    #[arg(long, default_value_t = 7878)]
    pub port: u16,
    /// Transport between the servers, written into the cluster file.
    #[arg(long, value_enum, default_value_t = FabricArg::Tls)]
    pub fabric: FabricArg,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum FabricArg {
    /// TLS.
    Tls,
    /// UCX's shared memory, without encryption; needs libucx0.
    Ucx,
    /// UCX, without reading from other servers' memory.
    UcxAsking,
}

impl FabricArg {
    /// Its lines in a cluster file.
    pub fn settings(self) -> &'static str {
        match self {
            Self::Tls => "fabric = \"tls\"",
            Self::Ucx => "fabric = \"ucx\"",
            Self::UcxAsking => "fabric = \"ucx\"\nreads = false",
        }
    }
}
