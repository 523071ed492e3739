//! Options of a server.

use crate::auth::exposed;
use crate::tls;
use jindou::{
    BackupTarget, DocumentSource, Functions, GpuChoice, MergeOptions, QueryOptions, Runtime,
    ServiceCaller, Warm,
};
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Options of a server. By [`Default`], only programs on this machine can reach it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerOptions {
    /// Address to listen on. Any address but loopback requires `token_file`.
    pub host: IpAddr,
    /// Port; 0 means any free one.
    pub port: u16,
    /// Path of a Unix socket on which the server listens as well, without TLS.
    pub unix_socket: Option<PathBuf>,
    /// Time limit of a query whose request does not give one.
    pub timeout: Duration,
    /// Longest time limit that a request may give.
    pub max_timeout: Duration,
    /// Memory limit of all queries together, in bytes; the runtime's limit applies as well.
    pub memory: u64,
    /// Memory limit of one query, in bytes.
    pub query_memory: u64,
    /// Largest number of bytes of temporary files of one query that needs more memory than that; `None` for the
    /// runtime's limit of all queries' files, 0 to end such a query instead.
    pub query_temp: Option<u64>,
    /// Largest number of threads for one heavy query.
    pub threads: usize,
    /// Largest number of heavy queries that run at the same time; further ones wait. At most one per thread of the
    /// runtime.
    pub heavy_slots: usize,
    /// Largest number of light queries that compute at the same time. They never wait for heavy ones.
    pub light_slots: usize,
    /// Largest number of heavy queries that wait or run; further ones are refused.
    pub heavy_queue: usize,
    /// Longest expected wait of a light query; one that would wait longer is refused.
    pub light_wait: Duration,
    /// Largest number of queries that compute, wait for a slot or wait for their reader. Each has a thread.
    pub max_queries: usize,
    /// Largest number of these queries that one client may have; clients are identified by token, or else by address.
    /// `None` means half of them, if there are eight or more.
    pub max_client_queries: Option<usize>,
    /// Largest number of connections; further ones wait in the operating system's queue.
    pub max_connections: usize,
    /// Longest request body in bytes.
    pub max_request_bytes: usize,
    /// Largest number of rows or triples in one answer; `None` for no limit.
    pub max_result_rows: Option<u64>,
    /// Largest number of bytes in one answer, before compression; `None` for no limit.
    pub max_result_bytes: Option<u64>,
    /// Queries that take at least this long are logged with their text; `None` for no such log.
    pub slow_query: Option<Duration>,
    /// TLS files; `None` serves plain HTTP.
    pub tls: Option<TlsFiles>,
    /// File with lines `read TOKEN` and `write TOKEN`. Without it the server listens on loopback addresses only, and
    /// updates are refused unless `writable` is set.
    pub token_file: Option<PathBuf>,
    /// Without `token_file`: whether all programs on this machine may update the store.
    pub writable: bool,
    /// Longest body of an update, or of a graph in a PUT, in bytes. Three times its length must also fit in the query's
    /// memory.
    pub max_update_bytes: usize,
    /// Fetches the documents for LOAD. Without it, LOAD is refused.
    pub documents: Option<Arc<dyn DocumentSource>>,
    /// Origins whose pages may read answers; `*` means all. If empty: all origins with `token_file`, otherwise only
    /// those of this machine.
    pub cors_origins: Vec<String>,
    /// Time that a shutdown waits for running work before it cancels it.
    pub grace: Duration,
    /// True if the default graph of queries is the union of all graphs; `None` means as chosen when the store was
    /// loaded.
    pub union_default: Option<bool>,
    /// True if queries and updates may use the common prefixes without declaring them. True by default.
    pub common_prefixes: bool,
    /// True (the default) if queries and updates may use the store's prefixes without declaring them, and Turtle
    /// answers are written with them.
    pub store_prefixes: bool,
    /// Name of the store, shown in the service description and on the web page.
    pub store_name: Option<String>,
    /// The properties whose objects are labels, best first; if empty, [`jindou::search::LABEL_PROPERTIES`].
    pub label_properties: Vec<String>,
    /// Functions that queries may call by IRI, besides the casts.
    pub functions: Functions,
    /// Permission for queries to run on a GPU.
    pub gpu: GpuChoice,
    /// The client that sends `SERVICE` patterns to other endpoints. Without it, queries with SERVICE are refused.
    pub service: Option<Arc<dyn ServiceCaller>>,
    /// Target of backups requested at `/admin/backup`. Without it, that route reports that backups are unavailable.
    pub backup_to: Option<BackupTarget>,
    /// Options of the merges that `/admin/merge` runs.
    pub merge: MergeOptions,
    /// When the store's files are read into memory.
    pub warm: Warm,
    /// The commit of the program, for `jindou_build_info` at `/metrics`.
    pub commit: String,
}

impl ServerOptions {
    /// Warnings about these options, one sentence each. [`Server::start`](crate::Server::start) logs them.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let mut all = Vec::new();
        if self.tls.is_none() && !self.host.is_loopback() {
            all.push(
                "tokens and answers travel unencrypted: pass --tls-cert and --tls-key, or put a TLS proxy in front".into(),
            );
        }
        let tokens = self.token_file.as_deref();
        all.extend(tokens.and_then(|file| exposed(file, "token file")));
        let key = self.tls.as_ref().map(|tls| &*tls.key);
        all.extend(key.and_then(|file| exposed(file, "TLS key")));
        let cert = self.tls.as_ref().map(|tls| &*tls.cert);
        all.extend(cert.and_then(tls::ending));
        all
    }
}

/// PEM files of a TLS server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TlsFiles {
    /// Certificate chain, the server's own first.
    pub cert: PathBuf,
    /// Private key (PKCS #8, PKCS #1 or SEC 1).
    pub key: PathBuf,
}

impl TlsFiles {
    /// A certificate chain and its private key.
    pub fn new(cert: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        Self {
            cert: cert.into(),
            key: key.into(),
        }
    }
}

impl ServerOptions {
    /// The options of every query, without its limits.
    pub(crate) fn of_queries(&self) -> QueryOptions {
        let mut options = QueryOptions::default()
            .with_threads(self.threads)
            .with_temp(self.query_temp)
            .with_union_default(self.union_default)
            .with_gpu(self.gpu)
            .with_common_prefixes(self.common_prefixes)
            .with_store_prefixes(self.store_prefixes)
            .with_functions(self.functions.clone());
        options.service.clone_from(&self.service);
        options
    }

    /// Largest number of queries that one client may have at the same time.
    pub(crate) fn share(&self) -> usize {
        let half = match self.max_queries {
            0..8 => self.max_queries,
            n => n.div_ceil(2),
        };
        self.max_client_queries.unwrap_or(half)
    }
}

impl ServerOptions {
    jindou::setters! {
        with_host: host = impl Into<IpAddr>;
        with_port: port = u16;
        with_timeout: timeout = Duration;
        with_max_timeout: max_timeout = Duration;
        with_memory: memory = u64;
        with_query_memory: query_memory = u64;
        with_query_temp: query_temp = impl Into<Option<u64>>;
        with_threads: threads = usize;
        with_heavy_slots: heavy_slots = usize;
        with_light_slots: light_slots = usize;
        with_heavy_queue: heavy_queue = usize;
        with_light_wait: light_wait = Duration;
        with_max_queries: max_queries = usize;
        with_max_client_queries: max_client_queries = impl Into<Option<usize>>;
        with_max_connections: max_connections = usize;
        with_max_request_bytes: max_request_bytes = usize;
        with_max_result_rows: max_result_rows = impl Into<Option<u64>>;
        with_max_result_bytes: max_result_bytes = impl Into<Option<u64>>;
        with_slow_query: slow_query = impl Into<Option<Duration>>;
        with_tls: tls = impl Into<Option<TlsFiles>>;
        with_writable: writable = bool;
        with_max_update_bytes: max_update_bytes = usize;
        with_documents: documents = Arc<dyn DocumentSource>;
        with_grace: grace = Duration;
        with_union_default: union_default = impl Into<Option<bool>>;
        with_common_prefixes: common_prefixes = bool;
        with_store_prefixes: store_prefixes = bool;
        with_store_name: store_name = impl Into<Option<String>>;
        with_label_properties: label_properties = Vec<String>;
        with_functions: functions = Functions;
        with_gpu: gpu = GpuChoice;
        with_warm: warm = Warm;
        with_commit: commit = impl Into<String>;
        with_service: service = Arc<dyn ServiceCaller>;
        with_backup_to: backup_to = impl Into<Option<BackupTarget>>;
        with_merge: merge = MergeOptions;
    }

    /// Sets [`unix_socket`](Self::unix_socket).
    #[must_use]
    pub fn with_unix_socket(mut self, unix_socket: impl Into<PathBuf>) -> Self {
        self.unix_socket = Some(unix_socket.into());
        self
    }

    /// Sets [`token_file`](Self::token_file).
    #[must_use]
    pub fn with_token_file(mut self, token_file: impl Into<PathBuf>) -> Self {
        self.token_file = Some(token_file.into());
        self
    }

    /// Sets [`cors_origins`](Self::cors_origins).
    #[must_use]
    pub fn with_cors_origins(
        mut self,
        cors_origins: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        self.cors_origins = cors_origins.into_iter().map(Into::into).collect();
        self
    }
}

impl Default for ServerOptions {
    /// Options for a database with the default runtime of this machine: see [`Self::on`].
    fn default() -> Self {
        Self::on(&Runtime::default())
    }
}

impl ServerOptions {
    /// Options for a database with this runtime: queries may use all of its threads and memory together, and one query
    /// a quarter of the memory.
    #[must_use]
    pub fn on(runtime: &Runtime) -> Self {
        let (threads, memory) = (runtime.threads(), runtime.memory().limit());
        Self {
            host: IpAddr::from([127, 0, 0, 1]),
            port: 7878,
            unix_socket: None,
            timeout: Duration::from_secs(60),
            max_timeout: Duration::from_secs(3600),
            memory,
            query_memory: memory / 4,
            query_temp: None,
            threads,
            heavy_slots: threads,
            light_slots: threads.max(2) * 2,
            heavy_queue: 1024,
            light_wait: Duration::from_secs(1),
            max_queries: 4096,
            max_client_queries: None,
            max_connections: 10_000,
            max_request_bytes: 8 << 20,
            max_result_rows: None,
            max_result_bytes: None,
            slow_query: Some(Duration::from_secs(10)),
            tls: None,
            token_file: None,
            writable: false,
            max_update_bytes: 1 << 30,
            documents: None,
            cors_origins: Vec::new(),
            grace: Duration::from_secs(30),
            union_default: None,
            common_prefixes: true,
            store_prefixes: true,
            store_name: None,
            label_properties: Vec::new(),
            functions: Functions::new(),
            gpu: GpuChoice::Off,
            service: None,
            backup_to: None,
            commit: String::new(),
            merge: MergeOptions::default().with_threads(1),
            warm: Warm::None,
        }
    }
}

/// Reason why a server cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// Other machines can reach the address, and there are no tokens.
    #[error(
        "{0} can be reached from other machines, and without --token-file anyone there could read everything; pass --token-file FILE, or --host 127.0.0.1"
    )]
    Open(IpAddr),
    /// The address cannot be bound.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: String,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A Unix socket cannot be created.
    #[error("cannot listen on the Unix socket {}: {message}", .path.display())]
    Socket {
        /// Path of the socket.
        path: PathBuf,
        /// A message that says what is wrong.
        message: String,
    },
    /// A file that the options name cannot be used.
    #[error("{}: {message}", .path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// A message that says what is wrong with it.
        message: String,
    },
    /// The runtime's threads could not be started.
    #[error("cannot start the server's threads: {0}")]
    Threads(std::io::Error),
}
