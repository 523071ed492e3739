//! The command line of `jindou cluster`.

use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use std::path::PathBuf;

#[derive(Subcommand, Debug)]
pub enum Cluster {
    /// Run all servers on this machine, for trying: writes the cluster file and certificates, starts the servers, and stops them
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
    /// Folder for cluster.toml and the certificates (default: `cluster` in the store). Those that are there are used again.
    #[arg(long, value_name = "DIR")]
    pub files: Option<PathBuf>,
    /// The first server's port for clients; the others follow, and then the ports for peers. 0 takes free ones.
    #[arg(long, default_value_t = 7878)]
    pub port: u16,
    /// Carrier of what servers ask one another; it is written into the cluster file.
    #[arg(long, value_enum, default_value_t = FabricArg::Tls)]
    pub fabric: FabricArg,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum FabricArg {
    /// TLS.
    Tls,
    /// UCX's shared memory, without encryption; needs libucx0.
    Ucx,
    /// The same, and servers read nothing out of one another's memory.
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
