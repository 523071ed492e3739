//! `jindou load`.

use super::{cancel_on_interrupt, counted, indexes, runtime, show_recovery};
use crate::args::LoadArgs;
use crate::overlooked;
use crate::progress::Bar;
use crate::remote;
use crate::say::say;
use jindou::{
    Access, CancelToken, CancellableSource, Database, Error, LoadOptions, LoadReport, MemoryBudget,
    MergeOptions, OpenOptions, Progress, QuadSource, QueryOptions, Result, Sharding, UpdateOptions,
    UpdateReport,
};
use jindou_parse::{Format, Input, Limits, Replacement, Sources, SourcesBuilder};
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

/// Takes the first of several names as the store if no option names the store and the name cannot be a document, as in
/// `jindou load my.store a.ttl`.
pub fn placed(mut a: LoadArgs) -> LoadArgs {
    let is_store = |path: &Path| {
        let is_new = !path.exists() && web_address(path).is_none() && path.as_os_str() != "-";
        let is_known =
            Format::from_extension(path.extension().and_then(|e| e.to_str()).unwrap_or(""));
        let files = ["manifest.jd", "current.jd", "cluster.jd"];
        (is_new && is_known.is_none()) || files.iter().any(|name| path.join(name).exists())
    };
    if a.store.is_none() && a.into.is_none() && a.files.len() > 1 && is_store(&a.files[0]) {
        a.store = Some(a.files.remove(0));
    }
    a
}

pub fn run(a: &LoadArgs) -> Result<ExitCode> {
    let runtime = runtime(a.threads, a.memory);
    let mut options =
        runtime
            .load_options()
            .with_replace(a.replace)
            .with_union_default(a.union_default_graph)
            .with_sharding(a.shards.map(|shards| {
                Sharding::new(shards).with_placement(a.placement.unwrap_or_default())
            }));
    if a.text {
        options = options.with_indexes(indexes()?);
    }
    let progress = Arc::new(Progress::default());
    let cancel = cancel_on_interrupt();
    let to = match (&a.into, &a.store) {
        (Some(dir), _) => {
            let db = Database::open_with(
                dir,
                &OpenOptions::default()
                    .with_access(Access::Write)
                    .with_durability(a.durability.durability)
                    .with_verify(a.verify.verify)
                    .with_runtime(runtime.clone()),
            )?;
            show_recovery(&db);
            let update = UpdateOptions::default()
                .with_cancel(cancel.clone())
                .with_memory(MemoryBudget::new(options.memory));
            LoadTarget::Into(db, Box::new(update))
        }
        (None, Some(dir)) => LoadTarget::New(dir, &options),
        (None, None) => {
            return Err(Error::Usage(
                "no destination: name it first, as in jindou load my.store a.ttl, or with --store DIR (new) or --into DIR (existing)"
                    .into(),
            ));
        }
    };
    let quads_before = to.quads();
    let sources = sources(a, &to, &options, &cancel)?;
    for w in sources.warnings() {
        eprintln!("jindou: {w}");
    }
    if let Some(to) = &a.errors {
        let file = File::create(to).map_err(|e| Error::io(to, e))?;
        sources.write_errors_to(BufWriter::new(file));
    }
    let source = CancellableSource::new(&sources, &cancel);
    let report = {
        let _bar = Bar::start(Arc::clone(&progress), sources.size_hint(), a.quiet);
        match a.replace && a.store.as_ref().is_some_and(|dir| dir.exists()) {
            true => to.put(&Replacement::new(&source, &sources, "the store"), &progress)?,
            false => to.put(&source, &progress)?,
        }
    };
    sources.flush_errors()?;
    show_skipped(&sources, a.errors.as_deref());
    match report {
        Done::New(report) => {
            print(&a.store, &report, a.memory);
            if let (Some(dir), false) = (&a.store, a.union_default_graph) {
                // The load has succeeded, so errors of opening the store for the hint are ignored.
                let options = OpenOptions::default().with_access(Access::Read);
                Database::open_with(dir, &options)
                    .iter()
                    .for_each(tell_graphs);
            }
        }
        Done::Into(report) => {
            super::update::print(&report);
            if let LoadTarget::Into(db, update) = &to {
                fold_in(db, &report, quads_before, update)?;
                if !db.is_union_default(&QueryOptions::default()) {
                    tell_graphs(db);
                }
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The documents to load.
fn sources(
    a: &LoadArgs,
    to: &LoadTarget,
    options: &LoadOptions,
    cancel: &CancelToken,
) -> Result<Sources> {
    let mut builder = Sources::builder()
        .lenient(a.lenient)
        .base_iri(a.base.clone())
        .format(a.format)
        .contexts(super::contexts(&a.contexts.context))
        .limits(Limits {
            cancel: cancel.clone(),
            memory: MemoryBudget::new(options.memory),
        });
    if let LoadTarget::Into(..) = to {
        // Blank nodes of the loaded documents must differ from those in the store.
        builder = builder.documents_from(Database::document_number());
    }
    for path in &a.files {
        if let Some(url) = web_address(path) {
            builder = fetched(builder, url, a, cancel)?;
            continue;
        }
        builder = builder.input(Input {
            path: path.clone(),
            format: a.format,
            graph: a.graph.clone(),
        });
    }
    builder.build()
}

/// Prints a hint if queries without GRAPH find nothing, since all data is in named graphs.
fn tell_graphs(db: &Database) {
    let counts = db.graph_counts();
    if counts.only_named() {
        say!("{}", overlooked::capitalised(&counts, "--graphs all"));
    }
}

/// The text of `path` if it is a web address.
fn web_address(path: &Path) -> Option<&str> {
    let name = path.to_str()?;
    let scheme = name.split_once("://")?.0;
    let web = ["http", "https"]
        .iter()
        .any(|s| scheme.eq_ignore_ascii_case(s));
    web.then_some(name)
}

/// Adds a document from the web, which is parsed while it arrives.
fn fetched(
    builder: SourcesBuilder,
    url: &str,
    a: &LoadArgs,
    cancel: &CancelToken,
) -> Result<SourcesBuilder> {
    if !a.allow_url {
        return Err(Error::Usage(format!(
            "{url} is a web address; pass --allow-url to fetch it"
        )));
    }
    let limits = remote::DocumentLimits {
        bytes: a.max_url_bytes,
        cancel: cancel.clone(),
    };
    let found = remote::fetch(url, a.format, &limits)?;
    let graph = a.graph.clone();
    let builder = builder.stream(found.url, found.reader, found.size, found.format, graph);
    Ok(builder.charset(found.charset))
}

/// Number of new quads from which a load merges them into the segments. Reading this many from the log would take a
/// third of a second each time the store is opened.
const MANY: u64 = 100_000;
/// Number of new quads from which a load merges them if they are more than a tenth of the store.
const MANY_OF_FEW: u64 = 10_000;

/// Merges newly loaded quads into the segments of an existing store if there are many of them. If the merge fails, the
/// quads stay loaded.
fn fold_in(
    db: &Database,
    report: &UpdateReport,
    before: u64,
    update: &UpdateOptions,
) -> Result<()> {
    let many = report.added >= MANY || (report.added >= MANY_OF_FEW && report.added > before / 10);
    if !many {
        return Ok(());
    }
    let options = MergeOptions::default()
        .with_threads(db.runtime().threads())
        .with_cancel(update.cancel.clone());
    match db.merge(&options, &Progress::default()) {
        Ok(report) => say!("{report}"),
        Err(e) => eprintln!(
            "jindou: everything is loaded, but merging it into the store's segments failed, so every \
                opening reads it from the log ({e}); retry with `jindou merge`"
        ),
    }
    Ok(())
}

/// Prints the number of statements that a lenient load skipped, and the first few of them.
pub fn show_skipped(sources: &Sources, errors: Option<&Path>) {
    if sources.skipped() == 0 {
        return;
    }
    let first = sources.first_skipped();
    let rest = sources.rest();
    let behind = match (rest.documents, rest.elements) {
        (0, _) => String::new(),
        (n, 0) => format!(
            ", and the rest of {} after an error: {} bytes",
            counted(n, "document"),
            rest.bytes
        ),
        (n, elements) => format!(
            ", and the rest of {} after an error: {} bytes with {} of XML",
            counted(n, "document"),
            rest.bytes,
            counted(elements, "element")
        ),
    };
    let where_all = match errors {
        Some(file) => format!("all are in {}", file.display()),
        None => "--errors FILE lists all".into(),
    };
    let shown = match sources.skipped() > first.len() as u64 {
        true => format!("the first {} ({where_all})", first.len()),
        false => "that is".into(),
    };
    eprintln!(
        "jindou: skipped {} that {} not valid{behind}; {shown}:",
        counted(sources.skipped(), "statement"),
        if sources.skipped() == 1 { "is" } else { "are" },
    );
    for b in first {
        eprintln!("  {b}");
    }
}

/// The store into which quads are loaded: a new one, or an existing one.
enum LoadTarget<'a> {
    New(&'a Path, &'a LoadOptions),
    Into(Database, Box<UpdateOptions>),
}

enum Done {
    New(LoadReport),
    Into(UpdateReport),
}

impl LoadTarget<'_> {
    /// Number of quads in the store before the load.
    fn quads(&self) -> u64 {
        match self {
            Self::New(..) => 0,
            Self::Into(db, _) => db.quads(),
        }
    }

    fn put(&self, source: &dyn QuadSource, progress: &Progress) -> Result<Done> {
        Ok(match self {
            Self::New(dir, options) => Done::New(Database::load(dir, source, options, progress)?),
            Self::Into(db, options) => Done::Into(db.insert(source, options, progress)?),
        })
    }
}

fn print(store: &Option<PathBuf>, report: &LoadReport, memory: Option<u64>) {
    let seconds: f64 = report.seconds.iter().map(|p| p.1).sum();
    let each = match report.quads_stored {
        0 => String::new(),
        n => format!(", {:.1} bytes a quad", report.store_bytes as f64 / n as f64),
    };
    say!(
        "{}: {} ({} read, {}) in {:.2} s, {:.2} M/s; {:.1} MiB on disk{each}; peak memory {:.0} MiB",
        store.as_deref().unwrap_or(Path::new("")).display(),
        counted(report.quads_stored, "quad"),
        report.quads_read,
        counted(report.terms, "term"),
        seconds,
        report.quads_read as f64 / 1e6 / seconds.max(1e-9),
        report.store_bytes as f64 / (1 << 20) as f64,
        report.peak_bytes as f64 / (1 << 20) as f64,
    );
    if report.prefixes_left_out {
        eprintln!(
            "jindou: warning: the data declares more prefixes than a store keeps; it knows the first {}",
            report.prefixes
        );
    }
    if let Some(memory) = memory
        && report.peak_bytes > memory + memory / 10
    {
        eprintln!(
            "note: this exceeds --memory ({} MiB), since about 40 bytes for each of the {} must be in memory",
            memory >> 20,
            counted(report.terms, "term"),
        );
    }
}
