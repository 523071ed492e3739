//! `jindou serve`.

use super::merge;
use super::{documents, indexes, service, with_gpu, with_temp};
use crate::advice;
use crate::args::{GraphsArg, Serve};
use crate::log::{self, OneLine};
use crate::overlooked;
use jindou::replica::{Bucket, BucketLimits, HeldShards, OperatorLog, Replica, SharedLog};
use jindou::{
    Access, BackgroundMerges, BackupTarget, Database, Durability, Error, Following, MergePolicy,
    OpenOptions, QueryOptions, Result, UpdateOptions, Verify,
};
use jindou_model::program::exit_status;
use jindou_server::{Server, ServerOptions, TlsFiles};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tracing_subscriber::EnvFilter;

/// Delay in milliseconds after which mimalloc returns free pages: `mi_option_purge_delay` of version 3's `mimalloc.h`.
const PURGE_DELAY: libmimalloc_sys::mi_option_t = 15;

/// Maximum time for which a server of a shared log accepts no connections while it catches up with the log. After it
/// the server answers requests even if it is behind, so that operators can ask for its state.
const JOINING: Duration = Duration::from_secs(3);

/// Least value of --changes-memory: every predicate with changes takes some hundred bytes.
const LEAST_CHANGES: u64 = 1 << 20;

pub fn run(a: &Serve) -> Result<ExitCode> {
    jindou::set_up_allocator();
    // Hundreds of megabytes that a query's plan has used must be returned to the system at once. With a delay they
    // would be returned only at the next allocation of the thread that freed them, and an idle server would keep them.
    // SAFETY: the call sets one of the allocator's numbers, which any thread may do at any time.
    unsafe { libmimalloc_sys::mi_option_set(PURGE_DELAY, 0) };
    let filter = EnvFilter::try_new(&a.log_level).map_err(|e| {
        Error::Unsupported(format!(
            "--log-level {}: {e}; write a level such as info or debug",
            a.log_level
        ))
    })?;
    let json = a.log_format == "json";
    let ansi = !json && std::io::stderr().is_terminal();
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(move || OneLine::new(std::io::stderr(), ansi));
    if json {
        log.json().init();
    } else {
        log.with_ansi(ansi).init();
    }
    log::panics();
    match serve(a) {
        // Log collectors expect only JSON, so the error is logged instead of printed.
        Err(e) if json => {
            tracing::error!("{}", advice::told(&e, "serve"));
            Ok(ExitCode::from(exit_status(&e)))
        }
        done => done,
    }
}

fn serve(a: &Serve) -> Result<ExitCode> {
    check_exclusions(a)?;
    let store = a.place.path().ok_or_else(|| {
        Error::Usage("nothing to serve: name a store, as in jindou serve my.store (or --store DIR, or JINDOU_STORE)".into())
    })?;
    let accepts = !a.read_only && (a.writable || a.token_file.is_some());
    // A server of a shared log writes its copy of the store, even if it accepts no updates.
    let writes = accepts || a.log.is_some();
    let begun = Instant::now();
    let runtime = with_temp(with_gpu(a.threads, a.memory, a.gpu_memory), &a.temp)?.build();
    let changes_memory = a.changes_memory.unwrap_or(runtime.memory().limit() / 8);
    let changes_memory = changes_memory.max(LEAST_CHANGES);
    let options = OpenOptions::default()
        .with_access(if writes { Access::Write } else { Access::Read })
        .with_durability(a.durability.durability)
        .with_verify(a.verify.verify)
        .with_create(writes)
        .with_indexes(indexes()?)
        .with_changes_memory(changes_memory)
        .with_runtime(runtime.clone());
    check_port(a)?;
    let tls = match (&a.tls_cert, &a.tls_key) {
        (Some(cert), Some(key)) => Some(TlsFiles::new(cert, key)),
        _ => None,
    };
    let standard = ServerOptions::on(&runtime).with_host(a.host).with_tls(tls);
    let mut served = standard.clone();
    served.token_file.clone_from(&a.token_file);
    // Checked here, so that wrong options create no store and no log.
    served.check().map_err(|e| Error::Usage(e.to_string()))?;
    let was_there = store.exists();
    let db = open(a, store, options, writes)?;
    log_opened(a, &db, store, was_there, accepts);
    log_verification(a, &db, was_there, begun);
    tell_graphs(&db, a.graphs);
    let following = match writes || db.is_sharded() {
        true => None,
        false => Some(follow_changes(&db)?),
    };
    let options = server_options(a, standard, store)?;
    let scheme = if options.tls.is_some() {
        "https"
    } else {
        "http"
    };
    if !tracing::enabled!(tracing::Level::WARN) {
        // Warnings about an operator's secrets are printed even if the log level hides warnings.
        for warning in options.warnings() {
            eprintln!("jindou: warning: {warning}");
        }
    }
    raise_descriptor_limit();
    let merges = match writes && a.merge == "auto" {
        true => Some(merge_automatically(a, &db)?),
        false => None,
    };
    if let Some(replica) = db.replica() {
        wait_until_ready(replica, a.log.as_deref().unwrap_or_default());
    }
    let server = Server::start(db, options).map_err(|e| Error::Usage(e.to_string()))?;
    let mut serving = format!(
        "serving {}{} at {scheme}://{}/query",
        store.display(),
        if accepts { "" } else { " read-only" },
        server.address()
    );
    if let Some(socket) = &a.unix_socket {
        let _ = write!(serving, " and at the Unix socket {}", socket.display());
    }
    if a.log_format == "json" {
        tracing::info!("{serving}");
    } else {
        // The program that started the server may not read this line, so an error of writing it is ignored.
        let _ = writeln!(std::io::stdout(), "{serving}");
    }
    server.run_until_signal();
    drop((merges, following));
    Ok(ExitCode::SUCCESS)
}

/// Returns an error if settings exclude each other, or one lacks another that it needs. clap checks this only on the
/// command line, but settings may also come from the environment or a file.
fn check_exclusions(a: &Serve) -> Result<()> {
    if a.writable && a.token_file.is_some() {
        return Err(Error::Unsupported(
            "writable (any program may write) and token-file (only holders of a token may) exclude each other: set only one".into(),
        ));
    }
    if a.tls_cert.is_some() != a.tls_key.is_some() {
        return Err(Error::Unsupported(
            "TLS needs both tls-cert and tls-key: set the other one as well".into(),
        ));
    }
    if let Some(bytes) = a.changes_memory.filter(|b| *b < LEAST_CHANGES) {
        return Err(Error::Usage(format!(
            "changes-memory of {bytes} bytes: give it 1M or more"
        )));
    }
    Ok(())
}

fn open(a: &Serve, store: &Path, options: OpenOptions, writes: bool) -> Result<Database> {
    let options = match &a.log {
        Some(place) => options.with_log(shared_log(a, place)?),
        None => options,
    };
    Database::open_with(store, &options).map_err(|e| unmade(e, writes))
}

fn log_opened(a: &Serve, db: &Database, store: &Path, was_there: bool, accepts: bool) {
    if a.log.is_some() {
        tracing::info!(
            "opened {}, the copy here: {} quads at snapshot {}; later updates in the log are applied next",
            store.display(),
            db.quads(),
            db.snapshot_number()
        );
        if !accepts {
            tracing::info!(
                "this server takes no updates itself, since neither --token-file nor --writable is given"
            );
        }
    } else if !was_there {
        tracing::info!("made the empty store {}", store.display());
    }
    if let Some(recovery) = db.recovery() {
        tracing::info!("{recovery}");
    }
}

fn log_verification(a: &Serve, db: &Database, was_there: bool, begun: Instant) {
    match (a.verify.verify, db.trust().verified()) {
        // The folder was empty and has been filled from the log with verified files.
        _ if a.log.is_some() && !was_there => {}
        (Verify::Off, _) => tracing::warn!(
            "the store's files are not verified (--verify off): damage may cause wrong answers"
        ),
        (Verify::Eager, Some(bytes)) => {
            let seconds = begun.elapsed().as_secs_f64();
            tracing::info!("opened, and {bytes} bytes verified, in {seconds:.3} s");
        }
        _ => tracing::info!("the store's files are verified while queries are answered"),
    }
}

/// Keeps applying the changes that another process makes to the store, until the returned value is dropped.
fn follow_changes(db: &Database) -> Result<Following> {
    db.follow_in_background(|outcome| match outcome {
        Ok(snapshot) => tracing::info!("following the store again, at snapshot {snapshot}"),
        Err(e) => tracing::error!(
            "cannot follow another process's changes to the store; answers do not include them: {e}"
        ),
    })
}

/// Keeps merging changes into the store's segments in the background, until the returned value is dropped.
fn merge_automatically(a: &Serve, db: &Database) -> Result<BackgroundMerges> {
    let policy = MergePolicy::default()
        .with_edits(a.merge_at)
        .with_options(merge::options(&a.merge_budget));
    db.merge_in_background(policy, |outcome| match outcome {
        Ok(report) => tracing::info!("{report}"),
        Err(e) => tracing::warn!("merging failed and will be retried: {e}"),
    })
}

/// The server's options: `standard`, which has the host, the TLS files and this machine's limits, with those of the
/// command line.
fn server_options(a: &Serve, standard: ServerOptions, store: &Path) -> Result<ServerOptions> {
    let memory = standard.memory;
    let (heavy_slots, light_slots) = (standard.heavy_slots, standard.light_slots);
    let backup_to = a.backup_to.as_deref().map(BackupTarget::folder);
    let mut options = standard
        .with_port(a.port)
        .with_timeout(a.timeout.min(a.max_timeout))
        .with_max_timeout(a.max_timeout)
        .with_query_memory(a.query_memory.unwrap_or(memory / 4))
        .with_query_temp(a.temp.query_temp)
        .with_heavy_slots(a.heavy_slots.unwrap_or(heavy_slots))
        .with_light_slots(a.light_slots.unwrap_or(light_slots))
        .with_heavy_queue(a.heavy_queue)
        .with_light_wait(a.light_wait)
        .with_max_queries(a.max_queries)
        .with_max_client_queries(a.max_client_queries)
        .with_max_connections(a.max_connections)
        .with_max_request_bytes(usize::try_from(a.max_request_bytes).unwrap_or(usize::MAX))
        .with_max_result_rows(a.max_result_rows)
        .with_max_result_bytes(a.max_result_bytes)
        .with_slow_query(a.slow_query)
        .with_writable(a.writable)
        .with_max_update_bytes(usize::try_from(a.max_update_bytes).unwrap_or(usize::MAX))
        .with_cors_origins(&a.cors_origins)
        .with_grace(a.grace)
        .with_union_default(a.graphs.union_default())
        .with_common_prefixes(!a.no_prefixes)
        .with_store_prefixes(!a.no_prefixes)
        .with_store_name(name_of(store))
        .with_gpu(a.gpu)
        .with_warm(a.warm)
        .with_commit(env!("JINDOU_COMMIT"))
        .with_backup_to(backup_to.transpose()?)
        .with_merge(merge::options(&a.merge_budget));
    options.token_file.clone_from(&a.token_file);
    options.unix_socket.clone_from(&a.unix_socket);
    options.label_properties.clone_from(&a.label_properties);
    options.documents = documents(&a.documents)?;
    options.service = service(&a.service_allow);
    Ok(options)
}

/// Waits until this server has caught up with the shared log, but at most [`JOINING`]. Before that, requests to this
/// server would have to wait, while another server would answer them at once.
fn wait_until_ready(replica: &Replica, place: &str) {
    let ready = replica.wait_until_ready(JOINING);
    let snapshot = replica.figures().committed;
    match ready {
        true => tracing::info!("following {place}, up to date at snapshot {snapshot}"),
        false => tracing::warn!(
            "following {place}, at snapshot {snapshot} and not up to date yet; /ready says why"
        ),
    }
}

/// The shared log that this server follows, with the server's name, address and shards.
fn shared_log(a: &Serve, place: &str) -> Result<SharedLog> {
    // Before shared logs existed, `--log` set the level of messages.
    if ["error", "warn", "info", "debug", "trace", "off"].contains(&place) {
        return Err(Error::Usage(format!(
            "invalid --log value \"{place}\": expected s3://BUCKET/PREFIX or a directory; --log-level {place} sets the level of log messages, and --log ./{place} names a directory"
        )));
    }
    if a.durability.durability != Durability::default() {
        return Err(Error::Usage(
            "--durability cannot be combined with --log: an update is acknowledged when it is in the shared log".into(),
        ));
    }
    let bucket = Bucket::open(place, BucketLimits::default()).map_err(Error::Usage)?;
    let name = match &a.name {
        Some(name) => name.clone(),
        None => host_name()?,
    };
    let shards = held_shards(a, &name)?;
    let mut log = SharedLog::new(bucket, name);
    log.shards = shards;
    log.peer_reads = a.peer_reads.clone();
    log.keep_replaced_bases = a.base_patience;
    log.peer_address.clone_from(&a.peer_address);
    log.peer_listen.clone_from(&a.peer_listen);
    log.settings.max_staleness = a.max_staleness;
    log.settings.keep = a.keep;
    log.queries_wait = false;
    log.report = told();
    log.updates = UpdateOptions::default().with_timeout(a.max_timeout);
    log.updates.documents = documents(&a.documents)?;
    log.updates.service = service(&a.service_allow);
    Ok(log)
}

/// The shards of which this server has copies.
fn held_shards(a: &Serve, name: &str) -> Result<HeldShards> {
    let Some((number, of)) = a.part else {
        let listed = a.shards.clone();
        return Ok(listed.map_or(HeldShards::InFolder, HeldShards::Listed));
    };
    let digits = name.rsplit(|c: char| !c.is_ascii_digit()).next();
    let of_name = || digits.and_then(|d| d.parse().ok());
    let number = number.or_else(of_name).ok_or_else(|| {
        Error::Usage(format!(
            "--part name/{of} takes the number at the end of the server's name, and \"{name}\" ends with none"
        ))
    })?;
    Ok(HeldShards::Part {
        number,
        of,
        replicas: a.replicas,
    })
}

/// A function that logs a message of the shared log, unless the same message was logged in the last [`REPEATED`].
fn told() -> OperatorLog {
    let last: Mutex<HashMap<String, Instant>> = Mutex::default();
    Arc::new(move |text: &str| {
        let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        last.retain(|_, at| now.duration_since(*at) < REPEATED);
        if !last.contains_key(text) {
            last.insert(text.to_owned(), now);
            tracing::warn!("{text}");
        }
    })
}

/// Minimum time between two equal messages of the shared log.
const REPEATED: Duration = Duration::from_secs(10);

fn host_name() -> Result<String> {
    let mut name = [0u8; 256];
    // SAFETY: the pointer and the length are those of this function's own array.
    let failed = unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len()) } != 0;
    let end = name.iter().position(|b| *b == 0).filter(|_| !failed);
    let name = end.and_then(|end| std::str::from_utf8(&name[..end]).ok());
    name.map(str::to_owned)
        .ok_or_else(|| Error::Usage("the machine has no name: pass --name NAME".into()))
}

/// Turns the error for a missing store into one with advice on creating a store.
fn unmade(e: Error, writes: bool) -> Error {
    match e {
        Error::NoStore { path } if !writes => Error::Usage(format!(
            "no store at {0}; create one with `jindou load --store {0} FILE…`, or add --writable to begin with an empty one",
            path.display()
        )),
        e => e,
    }
}

/// The store's name that clients see: the name of its folder, without the path, which would reveal something about the
/// machine.
fn name_of(store: &Path) -> Option<String> {
    let named = |path: &Path| Some(path.file_name()?.to_string_lossy().into_owned());
    // `.` and `..` are not names, so the real path is used for them.
    named(store).or_else(|| named(&store.canonicalize().ok()?))
}

/// Returns an error if another program uses the port. Called before the store is opened, which may take long.
fn check_port(a: &Serve) -> Result<()> {
    if a.port == 0 {
        return Ok(());
    }
    match std::net::TcpListener::bind((a.host, a.port)) {
        Err(e) if e.kind() == std::io::ErrorKind::AddrInUse => Err(Error::Usage(format!(
            "port {} of {} is in use by another program; choose another with --port, or a free one with --port 0",
            a.port, a.host
        ))),
        // Other errors are reported when the server begins to listen.
        _ => Ok(()),
    }
}

/// Prints a warning if queries without GRAPH find nothing, since all data is in named graphs.
fn tell_graphs(db: &Database, graphs: GraphsArg) {
    let counts = db.graph_counts();
    let options = QueryOptions::default().with_union_default(graphs.union_default());
    if counts.only_named() && !db.is_union_default(&options) {
        tracing::warn!(
            "the default graph is empty: {}",
            overlooked::sentence(&counts, "--graphs all")
        );
    }
}

/// Raises the limit on open file descriptors to the maximum. Each connection needs a descriptor, and many systems allow
/// only 1,024 of them unless the process asks for more.
fn raise_descriptor_limit() {
    #[cfg(unix)]
    {
        let mut limit = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        // SAFETY: both calls read or write this one structure, which lives until they return.
        unsafe {
            if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) == 0 {
                limit.rlim_cur = limit.rlim_max;
                libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::name_of;
    use std::path::Path;

    #[test]
    fn a_store_is_named_as_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("my.store");
        std::fs::create_dir(&store).unwrap();
        for path in [
            store.clone(),
            store.join(""),
            store.join("."),
            store.join("inner/.."),
        ] {
            std::fs::create_dir_all(store.join("inner")).unwrap();
            assert_eq!(name_of(&path).as_deref(), Some("my.store"), "{path:?}");
        }
        assert_eq!(name_of(Path::new("/")), None);
    }
}
