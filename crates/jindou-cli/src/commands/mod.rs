//! Commands, one file each.

mod backup;
mod check;
mod cluster;
mod completions;
mod convert;
mod data;
mod dump;
mod info;
mod laboratory;
mod load;
pub mod merge;
mod prefixes;
mod query;
mod recluster;
mod search;
mod serve;
pub mod update;

use crate::args::{Args, Command, DocumentArgs, GraphsArg, TempArgs};
use jindou::service::{Allowed, HttpCaller};
use jindou::{
    CancelToken, Database, DocumentSource, Documents, Error, Indexes, Result, Runtime,
    RuntimeBuilder, ServiceCaller,
};
use jindou_parse::ContextFiles;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

/// True if `jindou-bench` is installed, which runs `generate`, `bench` and `peers`.
pub fn has_laboratory() -> bool {
    laboratory::program().is_ok_and(|program| program.is_file())
}

/// The process's runtime, with the requested numbers of threads and bytes of memory or with this machine's defaults.
pub fn runtime(threads: Option<usize>, memory: Option<u64>) -> Runtime {
    builder(threads, memory).build()
}

fn builder(threads: Option<usize>, memory: Option<u64>) -> RuntimeBuilder {
    let mut builder = Runtime::builder();
    if let Some(threads) = threads {
        builder = builder.threads(threads);
    }
    if let Some(memory) = memory {
        builder = builder.memory(memory);
    }
    builder
}

/// As [`runtime`], for commands that may use a GPU.
pub fn runtime_with_gpu(
    threads: Option<usize>,
    memory: Option<u64>,
    gpu_memory: Option<u64>,
) -> Runtime {
    with_gpu(threads, memory, gpu_memory).build()
}

/// A builder for [`runtime_with_gpu`].
pub fn with_gpu(
    threads: Option<usize>,
    memory: Option<u64>,
    gpu_memory: Option<u64>,
) -> RuntimeBuilder {
    let builder = builder(threads, memory);
    match gpu_memory {
        Some(bytes) => builder.gpu_memory(bytes),
        None => builder,
    }
}

/// The builder with the folder and the limit of queries' temporary files.
///
/// # Errors
/// Those of [`RuntimeBuilder::temp_dir`].
pub fn with_temp(mut builder: RuntimeBuilder, temp: &TempArgs) -> Result<RuntimeBuilder> {
    if let Some(folder) = &temp.temp_dir {
        builder = builder.temp_dir(folder)?;
    }
    Ok(match temp.temp_limit {
        Some(bytes) => builder.temp_limit(bytes),
        None => builder,
    })
}

/// Runs the command of the command line.
pub fn run(args: Args) -> Result<ExitCode> {
    match args.command {
        Command::Load(a) => load::run(&load::placed(a)),
        Command::Query(a) => query::run(&a.placed()?),
        Command::Search(a) => search::run(&a),
        Command::Update(a) => update::run(&a),
        Command::Recluster(a) => recluster::run(&a),
        Command::Backup(a) => backup::run(&a),
        Command::Restore(a) => backup::restore(&a),
        Command::Prefixes(a) => prefixes::run(&a),
        Command::Merge(a) => merge::run(&a),
        Command::Serve(a) => serve::run(&a),
        Command::Cluster(a) => cluster::run(&a),
        Command::Check(a) => check::run(&a),
        Command::Info(a) => info::run(&a),
        Command::Shell(a) => crate::shell::run(&a),
        Command::Completions(a) => completions::run(&a),
        Command::Man(a) => completions::man(&a),
        // `main` has already run these commands, which need the settings file.
        Command::Settings(_) | Command::Health(_) => Ok(ExitCode::SUCCESS),
        Command::Dump(a) => dump::run(&a),
        Command::Convert(a) => convert::run(&a),
        Command::Generate(a) => laboratory::run(Some("generate"), &a.arguments),
        Command::Bench(a) => laboratory::run(None, &a.arguments),
        Command::Peers(a) => laboratory::run(Some("peers"), &a.arguments),
    }
}

/// The kinds of indexes that this program can read and build. The index of words is built only on request.
pub fn indexes() -> Result<Indexes> {
    Indexes::new().with(jindou::search::Text)
}

/// A client for SERVICE that may call the endpoints of `--service-allow`; `None` without such endpoints.
pub fn service(allowed: &[Allowed]) -> Option<Arc<dyn ServiceCaller>> {
    if allowed.is_empty() {
        return None;
    }
    Some(Arc::new(HttpCaller::new(allowed.iter().cloned().collect())))
}

/// The source of documents for LOAD; `None` if neither a folder nor a host is allowed.
pub fn documents(args: &DocumentArgs) -> Result<Option<Arc<dyn DocumentSource>>> {
    if args.load_from.is_empty() && args.load_allow.is_empty() {
        return Ok(None);
    }
    let mut all = Documents::new();
    for folder in &args.load_from {
        all = all.folder(folder)?;
    }
    if !args.load_allow.is_empty() {
        let hosts = args.load_allow.iter().cloned().collect();
        all = all.others(Arc::new(HttpCaller::new(hosts)));
    }
    Ok(Some(Arc::new(all)))
}

/// The source of contexts for JSON-LD documents.
pub fn contexts(named: &[(String, PathBuf)]) -> Option<Arc<dyn DocumentSource>> {
    Some(Arc::new(ContextFiles::new(named)))
}

/// If the store is a server's copy of a store with a shared log, prints on standard error that its newest updates are
/// in the log.
pub fn tell_copy(store: &std::path::Path) {
    if jindou::Database::is_copy_of_log(store) {
        eprintln!(
            "jindou: note: {} is a server's copy of a store with a shared log, as of its last merge; ask a server for later updates (docs/replicas.md)",
            store.display()
        );
    }
}

/// The error if neither a store nor an endpoint was named.
pub fn no_store() -> Error {
    Error::Usage("nothing to query: pass a store with --store DIR (or JINDOU_STORE), RDF files with --data FILE, or an endpoint with --endpoint URL".into())
}

/// Returns an error if graphs were chosen for an endpoint, since the endpoint chooses its default graph itself.
pub fn no_graphs(graphs: GraphsArg) -> Result<()> {
    match graphs.union_default() {
        None => Ok(()),
        Some(_) => Err(Error::Usage(
            "--graphs is for stores: an endpoint chooses its default graph itself; name graphs with FROM <…>".into(),
        )),
    }
}

/// The text of a query or an update, from the command line, a file or standard input.
pub fn request_text(
    command: &str,
    text: Option<&String>,
    file: Option<&PathBuf>,
) -> Result<String> {
    match (text, file) {
        (Some(t), _) => match meant_as_file(command, t) {
            Some(said) => Err(Error::Usage(said)),
            None => Ok(t.clone()),
        },
        (None, Some(f)) if f.as_os_str() == "-" => {
            let mut text = String::new();
            std::io::stdin()
                .read_to_string(&mut text)
                .map_err(|e| Error::io("<stdin>", e))?;
            Ok(unmarked(text))
        }
        (None, Some(f)) => std::fs::read_to_string(f)
            .map(unmarked)
            .map_err(|e| Error::io(f, e)),
        (None, None) => Err(Error::Usage(
            "no request; pass it as text or with -f".into(),
        )),
    }
}

/// Advice if the text is the name of a file, which is never valid SPARQL.
fn meant_as_file(command: &str, text: &str) -> Option<String> {
    if text.contains(char::is_whitespace) || text.len() > 4096 {
        return None;
    }
    let path = Path::new(text);
    if path.is_file() {
        return Some(format!("{text} is a file: jindou {command} … -f {text}"));
    }
    let extension = path.extension().and_then(|e| e.to_str());
    matches!(extension, Some("rq" | "ru" | "sparql")).then(|| {
        format!("{text} is not SPARQL, and there is no file of that name; queries in files are named with -f FILE")
    })
}

/// The text without a leading byte order mark, which some editors add.
fn unmarked(text: String) -> String {
    match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    }
}

/// The number with its noun in singular or plural: `1 quad`, `2 quads`.
pub fn counted(n: u64, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// Prints the findings of reading the store's log, if there is anything to report.
pub fn show_recovery(db: &Database) {
    if let Some(r) = db.recovery()
        && (r.records > 0 || r.cut.is_some() || r.read_only.is_some())
    {
        eprintln!("jindou: {r}");
    }
}

/// A token that Ctrl-C cancels; a second Ctrl-C ends the process at once.
pub fn cancel_on_interrupt() -> CancelToken {
    let token = CancelToken::new();
    let handle = token.clone();
    // If the handler cannot be installed, Ctrl-C ends the process.
    let _ = ctrlc::set_handler(move || {
        if handle.is_cancelled() {
            std::process::exit(130);
        }
        handle.cancel();
    });
    token
}
