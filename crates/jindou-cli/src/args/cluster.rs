//! The command line of `jindou cluster`.

use clap::{Args as ClapArgs, Subcommand};
use jindou_model::units::parse_duration;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Subcommand, Debug)]
pub enum ClusterCommand {
    /// Run the servers of a log on this machine, for testing, and stop them together on Ctrl-C.
    Start(StartCluster),
    /// Show what is in a log, and which servers follow it.
    Status {
        /// The log: s3://BUCKET/PREFIX or a directory.
        #[arg(long, value_name = "PLACE")]
        log: String,
    },
    /// Begin a log with a store, and upload the store, without serving it. Servers with empty folders are then filled from the log.
    Begin {
        /// The store.
        #[arg(long, value_name = "DIR", env = "JINDOU_STORE")]
        store: PathBuf,
        /// A new place for the log: s3://BUCKET/PREFIX or a directory.
        #[arg(long, value_name = "PLACE")]
        log: String,
        /// Create the log alone: copies of the store, or of its shards, are given to the servers by other means.
        #[arg(long)]
        no_upload: bool,
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
    /// A store that was loaded with --shards; or the folder for the servers' copies of one that is not sharded, one or two or three
    /// and so on in it.
    #[arg(long, value_name = "DIR", env = "JINDOU_STORE")]
    pub store: PathBuf,
    /// Number of servers.
    #[arg(long, value_name = "N")]
    pub servers: usize,
    /// Log of the store that all servers keep: s3://BUCKET/PREFIX or a directory. They take updates from this machine.
    #[arg(long, value_name = "PLACE")]
    pub log: String,
    /// With a store that was loaded with --shards: servers that have each shard.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub replicas: u32,
    /// Client port of the first server; the other servers' follow, then the ports for peers. 0 picks free ports.
    #[arg(long, default_value_t = 7878)]
    pub port: u16,
}
