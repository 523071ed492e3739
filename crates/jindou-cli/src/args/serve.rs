//! The command line of `jindou serve`.

use super::{
    DocumentArgs, DurabilityArg, GraphsArg, MergeBudget, Place, TempArgs, VerifyArg, parse_memory,
    parse_threads,
};
use clap::Args as ClapArgs;
use jindou::replica::PeerReads;
use jindou::service::Allowed;
use jindou::{GpuChoice, Warm};
use jindou_model::units::{parse_duration, parse_size};
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

#[derive(ClapArgs, Debug)]
pub struct Serve {
    #[command(flatten)]
    pub place: Place,
    /// Log of a store that several servers keep: s3://BUCKET/PREFIX or a shared directory (docs/replicas.md). Each server has a
    /// copy of the store, which is filled if it is empty.
    #[arg(
        long,
        value_name = "PLACE",
        env = "JINDOU_LOG",
        conflicts_with = "backup_to"
    )]
    pub log: Option<String>,
    /// This server's name among those of --log; by default the machine's.
    #[arg(long, value_name = "NAME", requires = "log")]
    pub name: Option<String>,
    /// Address at which the other servers of --log reach this one: HOST:PORT.
    #[arg(long, value_name = "HOST:PORT", requires = "log")]
    pub peer_address: Option<String>,
    /// Address to listen on for the other servers of --log, if it is not --peer-address: 0.0.0.0:7979 behind a forwarded port, say.
    #[arg(long, value_name = "HOST:PORT", requires = "peer_address")]
    pub peer_listen: Option<String>,
    /// With --log, for a sharded store: the shards that this server has, as in 0,3; by default those in its folder.
    #[arg(
        long,
        value_name = "N,…",
        requires = "log",
        value_parser = parse_shard,
        value_delimiter = ',',
        conflicts_with = "part"
    )]
    pub shards: Option<Vec<u32>>,
    /// With --log, for a sharded store: this server is number K, from 0, of N among which the shards are distributed: K/N, or
    /// name/N if the server's name ends with its number.
    #[arg(long, value_name = "K/N", requires = "log", value_parser = parse_part)]
    pub part: Option<(Option<u32>, u32)>,
    /// With --part: number of servers that have each shard.
    #[arg(long, value_name = "N", requires = "part", default_value_t = 1)]
    pub replicas: u32,
    /// With --log, for a sharded store: read lists from the memory of the other servers where that is faster than asking. `files`:
    /// all servers are on this machine; `ucx:DEVICES`, as in ucx:mlx5_0:1,eth0: by UCX, which neither authenticates nor encrypts, over
    /// these devices. The same on all servers (docs/cluster.md).
    #[arg(
        long,
        value_name = "HOW",
        requires = "peer_address",
        default_value = "off"
    )]
    pub peer_reads: PeerReads,
    /// With --log, for a sharded store: longest time for which files that a merge replaced are kept for queries that began
    /// before it.
    #[arg(long, default_value = "10m", value_name = "TIME", value_parser = parse_duration)]
    pub base_patience: Duration,
    /// With --log: longest time for which queries are answered without contact to the log or the other servers.
    #[arg(long, default_value = "10s", value_name = "TIME", value_parser = parse_duration)]
    pub max_staleness: Duration,
    /// With --log: how far back any moment can be restored from the log.
    #[arg(long, default_value = "1d", value_name = "TIME", value_parser = parse_duration)]
    pub keep: Duration,
    /// Address to listen on; other than loopback it needs --token-file.
    #[arg(
        long,
        default_value = "127.0.0.1",
        value_name = "ADDRESS",
        value_parser = parse_host,
        env = "JINDOU_HOST"
    )]
    pub host: IpAddr,
    /// Port; 0 picks a free one.
    #[arg(long, default_value_t = 7878, env = "JINDOU_PORT")]
    pub port: u16,
    /// Unix socket on which to listen as well, without TLS; the umask decides who may connect.
    #[arg(long, value_name = "PATH")]
    pub unix_socket: Option<PathBuf>,
    /// Time limit of a query, unless its request sets one.
    #[arg(long, value_parser = parse_duration, default_value = "60s", value_name = "TIME", env = "JINDOU_TIMEOUT")]
    pub timeout: Duration,
    /// Longest time limit that a request can set.
    #[arg(long, value_parser = parse_duration, default_value = "1h", value_name = "TIME")]
    pub max_timeout: Duration,
    /// Memory limit of all queries together, e.g. 8G (default: half of this machine's).
    #[arg(long, value_parser = parse_memory, value_name = "SIZE", env = "JINDOU_MEMORY")]
    pub memory: Option<u64>,
    /// Memory limit of one query (default: a quarter of --memory).
    #[arg(long, value_parser = parse_memory, value_name = "SIZE")]
    pub query_memory: Option<u64>,
    #[command(flatten)]
    pub temp: TempArgs,
    /// Threads that a heavy query may use (default: one per core).
    #[arg(long, value_parser = parse_threads, env = "JINDOU_THREADS")]
    pub threads: Option<usize>,
    /// Heavy queries computing at a time; others wait (default: one per core, at least two).
    #[arg(long, value_name = "N")]
    pub heavy_slots: Option<usize>,
    /// Light queries computing at a time (default: two per core, at least four).
    #[arg(long, value_name = "N")]
    pub light_slots: Option<usize>,
    /// Heavy queries that may wait; further ones are refused with 503 and Retry-After.
    #[arg(long, default_value_t = 1024, value_name = "N")]
    pub heavy_queue: usize,
    /// Longest expected wait of a light query; one that would wait longer is refused with 503 and Retry-After.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_duration)]
    pub light_wait: Duration,
    /// Queries at a time, including those that wait for a slot or for their reader.
    #[arg(long, default_value_t = 4096, value_name = "N")]
    pub max_queries: usize,
    /// Queries at a time of one client, that is, a token, or an address without one (default: half of --max-queries).
    #[arg(long, value_name = "N")]
    pub max_client_queries: Option<usize>,
    /// Connections at a time.
    #[arg(long, default_value_t = 10_000, value_name = "N")]
    pub max_connections: usize,
    /// Longest request.
    #[arg(long, value_parser = parse_size, default_value = "8M", value_name = "SIZE")]
    pub max_request_bytes: u64,
    /// Most rows (or triples) of one answer.
    #[arg(long, value_name = "N")]
    pub max_result_rows: Option<u64>,
    /// Most bytes of one answer, before compression.
    #[arg(long, value_parser = parse_size, value_name = "SIZE")]
    pub max_result_bytes: Option<u64>,
    /// Log the text of queries that take this long.
    #[arg(long, value_parser = parse_duration, default_value = "10s", value_name = "TIME")]
    pub slow_query: Duration,
    /// PEM certificate chain to serve TLS with.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// PEM private key of the certificate.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// File of tokens, with lines `read TOKEN` and `write TOKEN`; clients send one as Bearer, or as the password of Basic. Reloaded on
    /// SIGHUP, as are the TLS files.
    #[arg(long, value_name = "FILE", env = "JINDOU_TOKEN_FILE")]
    pub token_file: Option<PathBuf>,
    /// Without --token-file: let every program on this machine write. Web pages from other machines may not, whatever --cors-origin
    /// says.
    #[arg(long, conflicts_with_all = ["token_file", "read_only"])]
    pub writable: bool,
    /// Refuse updates, and let another process update the store's directory.
    #[arg(long)]
    pub read_only: bool,
    /// Longest body of an update or a graph.
    #[arg(long, value_parser = parse_size, default_value = "1G", value_name = "SIZE")]
    pub max_update_bytes: u64,
    #[command(flatten)]
    pub documents: DocumentArgs,
    #[command(flatten)]
    pub durability: DurabilityArg,
    #[command(flatten)]
    pub verify: VerifyArg,
    /// When to read the store's files into memory: `background`, while answering; `before-ready`, also answering, but `/ready` says so
    /// only then; `none`, never.
    #[arg(long, default_value = "background", value_name = "WHEN")]
    pub warm: Warm,
    /// Merge changes into segments in the background: auto or off.
    #[arg(long, default_value = "auto", value_parser = ["auto", "off"], value_name = "WHEN")]
    pub merge: String,
    /// Edits that start a merge (default: a million, and at least a twentieth of all quads).
    #[arg(long, value_name = "EDITS")]
    pub merge_at: Option<u64>,
    /// Memory of changes since the last merge that starts a merge; at twice as much, updates wait for it (default: an eighth of
    /// --memory).
    #[arg(long, value_parser = parse_memory, value_name = "SIZE")]
    pub changes_memory: Option<u64>,
    #[command(flatten)]
    pub merge_budget: MergeBudget,
    /// Origin whose pages may read answers, `*` for all; repeatable (default: all with tokens, else this machine's). They
    /// write only with a token.
    #[arg(long = "cors-origin", value_name = "ORIGIN")]
    pub cors_origins: Vec<String>,
    /// How long a shutdown waits for running requests.
    #[arg(long, value_parser = parse_duration, default_value = "30s", value_name = "TIME")]
    pub grace: Duration,
    #[command(flatten)]
    pub graphs: GraphsArg,
    /// Property whose objects are labels of resources; repeatable, the best first (default: rdfs:label, skos:prefLabel, schema:name, foaf:name,
    /// dcterms:title).
    #[arg(long = "label-property", value_name = "IRI", value_parser = super::search::parse_iri)]
    pub label_properties: Vec<String>,
    /// Require queries and updates to declare all prefixes. Otherwise those of the store and some sixty common ones (foaf:, skos:) are known.
    #[arg(long, env = "JINDOU_NO_PREFIXES")]
    pub no_prefixes: bool,
    /// Run graph patterns on a GPU: on, off, or auto (when the GPU is expected to be faster).
    #[arg(long, default_value = "auto")]
    pub gpu: GpuChoice,
    /// Memory of each GPU that segments and tables may use, e.g. 8G (default: all free memory).
    #[arg(long, value_parser = parse_memory, value_name = "SIZE", env = "JINDOU_GPU_MEMORY")]
    pub gpu_memory: Option<u64>,
    /// Endpoint that SERVICE may call; repeatable. HOST means its ports 80 and 443. One on this machine or its local
    /// network must be named by its address (or localhost).
    #[arg(long = "service-allow", value_name = "HOST[:PORT]")]
    pub service_allow: Vec<Allowed>,
    /// Folder for backups made with POST /admin/backup.
    #[arg(long, value_name = "DIR")]
    pub backup_to: Option<String>,
    /// Log as text or json, to standard error.
    #[arg(long, default_value = "text", value_parser = ["text", "json"], env = "JINDOU_LOG_FORMAT")]
    pub log_format: String,
    /// Events to log: error, warn, info, debug, trace, or directives such as `info,jindou_server=debug`.
    #[arg(
        long,
        default_value = "info",
        value_name = "LEVEL",
        env = "JINDOU_LOG_LEVEL"
    )]
    pub log_level: String,
}

/// Parses an address, or a name for one, preferring IPv4 addresses.
pub fn parse_host(s: &str) -> Result<IpAddr, String> {
    use std::net::ToSocketAddrs;
    let bad = |e: &dyn std::fmt::Display| format!("{s} is not an address of this machine: {e}");
    let found: Vec<IpAddr> = match s.parse() {
        Ok(address) => vec![address],
        Err(_) if s == "localhost" => vec![IpAddr::from([127, 0, 0, 1])],
        Err(_) => {
            let found = (s, 0).to_socket_addrs().map_err(|e| bad(&e))?;
            found.map(|a| a.ip()).collect()
        }
    };
    let four = found.iter().find(|a| a.is_ipv4());
    four.or(found.first())
        .copied()
        .ok_or_else(|| bad(&"it has none"))
}

/// Parses a shard's number.
fn parse_shard(text: &str) -> Result<u32, String> {
    let wrong = |_| format!("'{text}' is not a shard: write their numbers, as in 0,3");
    text.parse().map_err(wrong)
}

/// Parses `K/N` or `name/N`.
fn parse_part(text: &str) -> Result<(Option<u32>, u32), String> {
    let wrong = || format!("'{text}' is not a part: write 0/3 for the first of three, or name/3");
    let (number, of) = text.split_once('/').ok_or_else(wrong)?;
    let of = of.parse().map_err(|_| wrong())?;
    match number {
        _ if of == 0 => Err(wrong()),
        "name" => Ok((None, of)),
        number => Ok((Some(number.parse().map_err(|_| wrong())?), of)),
    }
}
