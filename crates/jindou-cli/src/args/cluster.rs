//! The command line of `jindou cluster`.

use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use jindou_model::units::parse_duration;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Subcommand, Debug)]
pub enum ClusterCommand {
    /// Run all servers on this machine, for testing, and stop them together on Ctrl-C: over the shards of a store, with a cluster
    /// file and certificates that are written; or over one log (--log).
    Start(StartCluster),
    /// Ask each server of a cluster file whether it is alive, and which shards it holds; or show what is in a log.
    Status {
        /// The cluster file, with the certificate and key of one of its servers.
        #[arg(
            value_name = "FILE",
            required_unless_present = "log",
            conflicts_with = "log"
        )]
        file: Option<PathBuf>,
        /// The log of servers that keep one store: s3://BUCKET/PREFIX or a directory.
        #[arg(long, value_name = "PLACE")]
        log: Option<String>,
    },
    /// Say what a log lacks, if objects of it were lost, and which updates would be given up; with an option, repair it.
    Repair {
        /// The log: s3://BUCKET/PREFIX or a directory.
        #[arg(long, value_name = "PLACE")]
        log: String,
        /// Write log.json again.
        #[arg(long, conflicts_with_all = ["from_store", "give_up_after"])]
        write_log_json: bool,
        /// Upload the store of a server that has ended and that has the missing updates. None is given up.
        #[arg(long, value_name = "DIR", conflicts_with = "give_up_after")]
        from_store: Option<PathBuf>,
        /// Give up all updates after this snapshot, the last one that can be read. Stop the servers first.
        #[arg(long, value_name = "N")]
        give_up_after: Option<u64>,
    },
    /// Take a server out of service and end it: `/ready` answers 503 at once, other servers of its log write in its place,
    /// and requests are answered until it shuts down.
    Drain {
        /// The server's address.
        #[arg(value_name = "URL", default_value = "http://127.0.0.1:7878")]
        url: String,
        /// Time until it shuts down, in which load balancers notice that it is not ready.
        #[arg(long, value_parser = parse_duration, default_value = "10s", value_name = "TIME")]
        wait: Duration,
        /// Token that may write. Other users can see it on the command line; JINDOU_TOKEN keeps it private.
        #[arg(
            long,
            value_name = "TOKEN",
            env = "JINDOU_TOKEN",
            hide_env_values = true
        )]
        token: Option<String>,
    },
}

#[derive(ClapArgs, Debug)]
pub struct StartCluster {
    /// The store, loaded with --shards; with --log that, or the folder for the servers' copies of a store that is not sharded,
    /// one or two or three and so on in it.
    #[arg(long, value_name = "DIR", env = "JINDOU_STORE")]
    pub store: PathBuf,
    /// Servers, at most as many as there are shards.
    #[arg(long, value_name = "N")]
    pub servers: usize,
    /// Log of a store that all servers keep: s3://BUCKET/PREFIX or a directory. They take updates from this machine.
    #[arg(long, value_name = "PLACE", conflicts_with_all = ["files", "fabric"])]
    pub log: Option<String>,
    /// With --log and a store that was loaded with --shards: servers that have each shard.
    #[arg(long, value_name = "N", requires = "log", default_value_t = 1)]
    pub replicas: u32,
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
