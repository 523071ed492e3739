//! LOAD, and quads from any source.

use super::target::GraphName;
use super::transaction::{Transaction, applying};
use super::{QuadChange, UpdateOptions};
use crate::Database;
use crate::runtime::Settled;
use jindou_engine::WorkerPool;
use jindou_model::prefixes::{DeclaredPrefixes, PrefixPlace};
use jindou_model::sync;
use jindou_model::{
    CancelToken, Charge, Error, Holder, MemoryBudget, Progress, QuadBatch, QuadSink, QuadSource,
    Result, Span, term,
};
use jindou_parse::{Document, DocumentSource, Input, Limits, SkipReport, Sources, file_path};
use jindou_store::{ChangeTerm, Changes};
use std::borrow::Cow;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A document that takes longer than this to read counts as heavy work and needs a slot.
const SMALL: Duration = Duration::from_millis(5);

/// Document source that reads files below given folders. IRIs with a scheme other than `file:` are passed to another
/// source (a web client).
#[derive(Clone, Debug, Default)]
pub struct Documents {
    folders: Vec<PathBuf>,
    others: Option<Arc<dyn DocumentSource>>,
}

impl Documents {
    /// A source without folders: `file:` IRIs are refused.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Allows reading files below a folder. Symbolic links are followed, and their targets must be below an allowed
    /// folder as well.
    ///
    /// # Errors
    /// [`Error::Io`] if `folder` is not a folder.
    pub fn folder(mut self, folder: impl AsRef<Path>) -> Result<Self> {
        let folder = folder.as_ref();
        let whole = folder.canonicalize().map_err(|e| Error::io(folder, e))?;
        if !whole.is_dir() {
            let no = std::io::Error::from(std::io::ErrorKind::NotADirectory);
            return Err(Error::io(folder, no));
        }
        self.folders.push(whole);
        Ok(self)
    }

    /// Sets the source for IRIs that are not files.
    #[must_use]
    pub fn others(mut self, source: Arc<dyn DocumentSource>) -> Self {
        self.others = Some(source);
        self
    }

    fn file(&self, iri: &str, path: &str) -> Result<Document> {
        let refused = || Error::Document {
            iri: iri.to_owned(),
            message: "it is not in a folder that documents may be loaded from".into(),
            allowed: false,
        };
        if self.folders.is_empty() {
            return Err(refused());
        }
        let path = file_path(path).ok_or_else(refused)?;
        // A missing file gives the same error as a forbidden one, so that a client cannot find out which files exist
        // elsewhere.
        let path = path.canonicalize().map_err(|_| refused())?;
        if !self.folders.iter().any(|f| path.starts_with(f)) {
            return Err(refused());
        }
        if !path.is_file() {
            return Err(Error::document(iri, "it is not a file"));
        }
        Ok(Document::File(path))
    }
}

impl DocumentSource for Documents {
    fn fetch(&self, iri: &str, cancel: &CancelToken, memory: &MemoryBudget) -> Result<Document> {
        match (iri.strip_prefix("file:"), &self.others) {
            (Some(path), _) => self.file(iri, path),
            (None, Some(others)) => others.fetch(iri, cancel, memory),
            (None, None) => Err(Error::Document {
                iri: iri.to_owned(),
                message: "only files can be loaded here".into(),
                allowed: false,
            }),
        }
    }
}

/// Reads the quads of a LOAD's document. Its blank nodes are distinct from all others.
pub(super) fn load(
    iri: &str,
    into: Option<&str>,
    options: &Settled<'_, UpdateOptions>,
    cancel: &CancelToken,
) -> Result<GatheredQuads> {
    let Some(documents) = options.documents.as_deref() else {
        return Err(Error::Document {
            iri: iri.to_owned(),
            message: "LOAD is not allowed here".into(),
            allowed: false,
        });
    };
    let memory = &options.memory;
    let document = documents.fetch(iri, cancel, memory)?;
    let graph = into.map(str::to_owned);
    let builder = Sources::builder()
        .base_iri(Some(iri.to_owned()))
        .lenient(options.lenient)
        .contexts(options.documents.clone())
        .documents_from(Database::document_number());
    let builder = match document {
        Document::File(path) => builder.input(Input {
            path,
            format: None,
            graph,
        }),
        Document::Text(text, format, charset) => builder
            .graph(graph)
            .text(iri, text, format)
            .charset(charset),
    };
    let limits = Limits {
        cancel: cancel.clone(),
        memory: memory.clone(),
    };
    let source = builder.limits(limits).build()?;
    let only = into.map(|iri| GraphName::Named(iri.to_owned()));
    let mut gathered = read_quads(
        &source,
        only.as_ref(),
        options,
        cancel,
        &Progress::default(),
    )?;
    gathered.skipped = source.skip_report();
    Ok(gathered)
}

/// Quads of a source that are to be inserted. They are read before the transaction begins, so that a slow parser does
/// not delay other writers.
pub(super) struct GatheredQuads {
    changes: Changes,
    prefixes: DeclaredPrefixes,
    /// Statements that LOAD skipped.
    pub(super) skipped: SkipReport,
    charge: Charge,
    cancel: CancelToken,
}

impl GatheredQuads {
    /// Converts the quads to a change. With `replaced`, the change also removes all earlier quads of that graph.
    pub(super) fn into_change(
        self,
        replaced: Option<GraphName>,
        reported_graph: Option<GraphName>,
    ) -> QuadChange<'static> {
        QuadChange {
            changes: Cow::Owned(self.changes),
            replaced,
            reported_graph,
            prefixes: self.prefixes.into_changes(),
            charge: Some(self.charge),
        }
    }

    /// Adds the quads to the changes of a transaction.
    pub(super) fn add_to(self, tx: &mut Transaction) -> Result<()> {
        self.into_change(None, None).run(tx)
    }

    fn check(&mut self) -> Result<()> {
        self.cancel.check()?;
        let bytes = (self.changes.bytes() + self.prefixes.bytes()) as u64 + applying(&self.changes);
        self.charge.set(bytes.next_multiple_of(1 << 16))
    }
}

/// Reads all quads of a source. With `only`, a quad of another graph is an error.
pub(super) fn read_quads(
    source: &dyn QuadSource,
    only: Option<&GraphName>,
    options: &Settled<'_, UpdateOptions>,
    cancel: &CancelToken,
    progress: &Progress,
) -> Result<GatheredQuads> {
    let (workers, memory) = (options.threads, &options.memory);
    let only = match only {
        Some(GraphName::Named(iri)) => {
            Some(term::encode(&oxrdf::NamedNode::new_unchecked(iri).into()))
        }
        Some(GraphName::Default) => Some(Vec::new()),
        None => None,
    };
    let shared = Mutex::new(GatheredQuads {
        changes: Changes::new(),
        prefixes: DeclaredPrefixes::default(),
        skipped: SkipReport::default(),
        charge: Charge::new(Holder::Rest, memory),
        cancel: cancel.clone(),
    });
    let work = |worker: usize| {
        let pool = &**options.pool;
        let mut sink = IntoChanges {
            gathered: &shared,
            only: only.as_deref(),
            pool,
            cancel,
            begun: Instant::now(),
            entered: false,
        };
        let done = source.run(worker, workers, &mut sink, progress);
        if sink.entered {
            pool.leave();
        }
        done
    };
    let outcome = std::thread::scope(|scope| {
        let work = &work;
        let others: Vec<_> = (1..workers).map(|w| scope.spawn(move || work(w))).collect();
        let mut outcome = work(0);
        for other in others {
            let other = other.join();
            outcome = outcome.and(other.unwrap_or_else(|panic| resume_unwind(panic)));
        }
        outcome
    });
    outcome?;
    Ok(shared.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// Bytes of terms between two checks of the deadline and the memory.
const WORK: usize = 8 << 20;

struct IntoChanges<'a> {
    gathered: &'a Mutex<GatheredQuads>,
    only: Option<&'a [u8]>,
    pool: &'a dyn WorkerPool,
    cancel: &'a CancelToken,
    begun: Instant,
    /// True once reading has acquired a slot.
    entered: bool,
}

impl QuadSink for IntoChanges<'_> {
    fn batch(&mut self, batch: &QuadBatch) -> Result<()> {
        if !self.entered && self.begun.elapsed() > SMALL {
            self.entered = self.pool.enter(self.cancel)?;
        }
        if let Some(only) = self.only
            && let Some(other) = batch.quads.iter().find(|q| batch.term(q[3]) != only)
        {
            let graph = term::decode(batch.term(other[3]));
            return Err(Error::Conflict(format!(
                "the document has statements of the graph {}, but the request names a single graph to load into; without a name the document's own graphs are kept",
                graph.map_or_else(|| "?".into(), |g| g.to_string())
            )));
        }
        let mut gathered = sync::lock(self.gathered);
        let mut since = 0;
        for quad in &batch.quads {
            push(&mut gathered.changes, batch, *quad);
            since += quad.iter().map(|span| span.len as usize).sum::<usize>();
            // A term of megabytes that every quad repeats is stored once in the batch, but hashed for each quad. So
            // count bytes, not quads.
            if since >= WORK {
                since = 0;
                gathered.check()?;
            }
        }
        gathered.check()
    }

    fn prefix(&mut self, place: PrefixPlace, name: &str, iri: &str) -> Result<()> {
        let mut gathered = sync::lock(self.gathered);
        gathered.prefixes.declare(place, name, iri);
        gathered.check()
    }
}

/// Adds an insertion for each quad of a batch.
pub(super) fn push_all(changes: &mut Changes, batch: &QuadBatch) {
    for quad in &batch.quads {
        push(changes, batch, *quad);
    }
}

/// Adds an insertion for one quad of a batch.
fn push(changes: &mut Changes, batch: &QuadBatch, quad: [Span; 4]) {
    let [s, p, o, g] = quad.map(|span| batch.term(span));
    changes.insert(
        ChangeTerm::Bytes(s),
        ChangeTerm::Bytes(p),
        ChangeTerm::Bytes(o),
        (!g.is_empty()).then_some(ChangeTerm::Bytes(g)),
    );
}
