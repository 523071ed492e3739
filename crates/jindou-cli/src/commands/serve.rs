//! `jindou serve`.

use super::merge;
use super::{documents, runtime, service};
use crate::args::Serve;
use crate::log::{self, OneLine};
use jindou::{Access, BackupTarget, Database, Error, MergePolicy, OpenOptions, Result, Verify};
use jindou_server::{Server, ServerOptions, TlsFiles};
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::time::Instant;
use tracing_subscriber::EnvFilter;

pub fn run(a: &Serve) -> Result<ExitCode> {
    jindou::set_up_allocator();
    let filter = EnvFilter::try_new(&a.log).map_err(|e| {
        Error::Unsupported(format!("--log {}: {e}; write it like info or debug", a.log))
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
    let writes = !a.read_only && (a.writable || a.token_file.is_some());
    let begun = Instant::now();
    let runtime = runtime(a.threads, a.memory);
    let db = Database::open_with(
        &a.store,
        &OpenOptions {
            access: if writes { Access::Write } else { Access::Read },
            durability: a.durability.durability,
            verify: a.verify.verify,
            runtime: Some(runtime.clone()),
        },
    )?;
    if let Some(recovery) = db.recovery() {
        tracing::info!("{recovery}");
    }
    match (a.verify.verify, db.trust().verified()) {
        (Verify::Off, _) => tracing::warn!(
            "the store's files are not verified (--verify off): damaged ones may give wrong answers"
        ),
        (Verify::Eager, Some(bytes)) => {
            let seconds = begun.elapsed().as_secs_f64();
            tracing::info!("opened, and {bytes} bytes verified, in {seconds:.3} s");
        }
        _ => tracing::info!("the store's files are verified while queries are answered"),
    }
    let following = if writes {
        None
    } else {
        let told = |outcome: &Result<u32>| match outcome {
            Ok(snapshot) => tracing::info!("following the store again, at snapshot {snapshot}"),
            Err(e) => tracing::error!(
                "what another process changes in the store cannot be followed, and answers are as of before: {e}"
            ),
        };
        Some(db.follow_in_background(told)?)
    };
    let standard = ServerOptions::on(&runtime);
    let memory = standard.memory;
    let options = ServerOptions {
        host: a.host,
        port: a.port,
        timeout: a.timeout.min(a.max_timeout),
        max_timeout: a.max_timeout,
        memory,
        query_memory: a.query_memory.unwrap_or(memory / 4),
        threads: standard.threads,
        heavy_slots: a.heavy_slots.unwrap_or(standard.heavy_slots),
        light_slots: a.light_slots.unwrap_or(standard.light_slots),
        heavy_queue: a.heavy_queue,
        light_wait: a.light_wait,
        max_queries: a.max_queries,
        max_client_queries: a.max_client_queries,
        max_connections: a.max_connections,
        max_request_bytes: usize::try_from(a.max_request_bytes).unwrap_or(usize::MAX),
        max_result_rows: a.max_result_rows,
        max_result_bytes: a.max_result_bytes,
        slow_query: Some(a.slow_query),
        tls: match (&a.tls_cert, &a.tls_key) {
            (Some(cert), Some(key)) => Some(TlsFiles {
                cert: cert.clone(),
                key: key.clone(),
            }),
            _ => None,
        },
        token_file: a.token_file.clone(),
        writable: a.writable,
        max_update_bytes: usize::try_from(a.max_update_bytes).unwrap_or(usize::MAX),
        documents: documents(&a.documents)?,
        cors_origins: a.cors_origins.clone(),
        grace: a.grace,
        union_default: a.union_default_graph.then_some(true),
        common_prefixes: a.common_prefixes,
        functions: standard.functions.clone(),
        gpu: a.gpu,
        service: service(&a.service_allow),
        backup_to: a
            .backup_to
            .as_deref()
            .map(BackupTarget::folder)
            .transpose()?,
        merge: merge::options(&a.merge_budget),
    };
    let scheme = if options.tls.is_some() {
        "https"
    } else {
        "http"
    };
    if !tracing::enabled!(tracing::Level::WARN) {
        // What endangers an operator's secrets is said even if the log is to be quiet.
        for warning in options.warnings() {
            eprintln!("jindou: warning: {warning}");
        }
    }
    raise_descriptor_limit();
    let merges = if writes && a.merge == "auto" {
        let policy = MergePolicy {
            edits: a.merge_at,
            options: merge::options(&a.merge_budget),
            ..MergePolicy::default()
        };
        let told = |outcome: &Result<jindou::MergeReport>| match outcome {
            Ok(report) => tracing::info!("{report}"),
            Err(e) => tracing::warn!("merging failed, and is tried again: {e}"),
        };
        Some(db.merge_in_background(policy, told)?)
    } else {
        None
    };
    let server = Server::start(db, options).map_err(|e| Error::Store(e.to_string()))?;
    // Whoever started the server may not care for this line.
    let _ = writeln!(
        std::io::stdout(),
        "serving {}{} at {scheme}://{}/query",
        a.store.display(),
        if writes { "" } else { " read-only" },
        server.address()
    );
    server.run_until_signal();
    drop((merges, following));
    Ok(ExitCode::SUCCESS)
}

/// A connection is a file descriptor, and many systems allow a process 1,024 of them until it asks for more.
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
