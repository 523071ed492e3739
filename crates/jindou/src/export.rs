//! Export of a snapshot's quads, sorted by graph and then by subject, as RDF documents need them.

use crate::database::{Database, guarded, watching};
use crate::update::GraphName;
use jindou_dictionary::STRINGS_FILE;
use jindou_graph::Graph;
use jindou_graph::segment::GraphScope;
use jindou_model::{
    CancelToken, DEFAULT_GRAPH, Direction, Error, FIRST_TAIL_ID, PredicateId, Progress, QuadBatch,
    QuadSink, QuadSource, Resource, Result, Span, VertexId, term,
};
use jindou_store::Snapshot;

/// Size in bytes or quads at which a batch is passed on.
const BATCH_BYTES: usize = 1 << 20;
const BATCH_QUADS: usize = 1 << 14;
/// Number of subjects between two checks of the cancel token.
const CHECK_EVERY: u32 = 1 << 16;
/// Number of subjects whose lists and terms are fetched together from other shards.
const PAGE: usize = 2048;

/// The quads of the snapshot that was current when [`Database::export`] was called: the default graph first, then each
/// named graph. Within a graph, statements with the same subject are adjacent. Blank nodes keep their labels.
///
/// As a [`QuadSource`], its first worker delivers all quads. It takes memory for the subjects of one named graph (4
/// bytes each) and one batch. [`Progress::done`] counts quads.
pub struct Export {
    db: Database,
    snapshot: Snapshot,
    /// Ids of the graphs to export.
    graphs: Vec<u32>,
    cancel: CancelToken,
}

impl Database {
    /// The current snapshot's quads as a source: of one graph, or of all.
    ///
    /// ```
    /// use jindou::{Database, UpdateOptions};
    ///
    /// let db = Database::in_memory();
    /// let text = "INSERT DATA { <http://e/mars> <http://e/moons> 2 GRAPH <http://e/g> { <http://e/mars> a <http://e/Planet> } }";
    /// db.update(text, &UpdateOptions::default())?;
    /// // Another database with the same quads.
    /// let copy = Database::in_memory_from(&db.export(None)?, &UpdateOptions::default())?;
    /// assert_eq!(copy.quads(), 2);
    /// # Ok::<(), jindou::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Conflict`] for a named graph that the database does not have.
    pub fn export(&self, only: Option<&GraphName>) -> Result<Export> {
        let snapshot = self.snapshot();
        self.inner.check_for_faults(&snapshot)?;
        let graphs = match only {
            Some(GraphName::Default) => vec![DEFAULT_GRAPH],
            Some(GraphName::Named(iri)) => {
                let mut name = Vec::new();
                term::push_iri(iri, &mut name);
                let found = Graph::lookup(&snapshot, &name).filter(|g| snapshot.has_graph(g.0));
                let graph = found
                    .ok_or_else(|| Error::Conflict(format!("the store has no graph <{iri}>")))?;
                vec![graph.0]
            }
            None => {
                let mut all = vec![DEFAULT_GRAPH];
                all.extend(Graph::named_graphs(&snapshot).iter());
                all
            }
        };
        let cancel = watching(CancelToken::new(), &snapshot);
        Ok(Export {
            db: self.clone(),
            snapshot,
            graphs,
            cancel,
        })
    }
}

impl Export {
    /// Ends the export when this token is cancelled.
    #[must_use]
    pub fn with_cancel(mut self, cancel: CancelToken) -> Self {
        self.cancel = watching(cancel, &self.snapshot);
        self
    }

    fn read(&self, sink: &mut dyn QuadSink, progress: &Progress) -> Result<()> {
        for (number, (name, iri, _)) in (0..).zip(self.snapshot.prefixes().iter()) {
            sink.prefix([0, number], name, iri)?;
        }
        let mut out = ExportBatch {
            export: self,
            batch: QuadBatch::default(),
            objects: vec![],
            sink,
            progress,
        };
        for &graph in &self.graphs {
            if graph == DEFAULT_GRAPH {
                let base = 1..=self.snapshot.dense_ids();
                let tail = FIRST_TAIL_ID..FIRST_TAIL_ID + self.snapshot.tail().len();
                out.subjects(base.chain(tail), graph)?;
            } else {
                out.subjects(self.subjects(graph).into_iter(), graph)?;
            }
            out.write_piece()?;
        }
        Ok(())
    }

    /// Vertices that may be subjects in a named graph, ascending.
    fn subjects(&self, graph: u32) -> Vec<u32> {
        let mut all = Vec::new();
        let mut some = Vec::new();
        let mut distinct = 0;
        for p in self.snapshot.graph_predicates(graph) {
            Graph::graph_subjects(&self.snapshot, graph, PredicateId(p), &mut some);
            all.extend_from_slice(&some);
            // Duplicates are removed whenever the list has grown enough, since most subjects occur with several
            // predicates.
            if all.len() > 2 * distinct + (1 << 20) {
                all.sort_unstable();
                all.dedup();
                distinct = all.len();
            }
        }
        all.sort_unstable();
        all.dedup();
        all
    }
}

impl QuadSource for Export {
    /// Passes the quads to `sink`.
    ///
    /// # Errors
    /// The sink's errors; [`Error::Cancelled`]; [`Error::Damaged`] when a file of the store is damaged or cannot be
    /// read, in which case the delivered quads are invalid.
    fn run(
        &self,
        worker: usize,
        _workers: usize,
        sink: &mut dyn QuadSink,
        progress: &Progress,
    ) -> Result<()> {
        if worker > 0 {
            return Ok(());
        }
        self.db
            .inner
            .computed_from(&self.snapshot, || guarded(|| self.read(sink, progress)))
    }

    fn size_hint(&self) -> Option<u64> {
        (self.graphs.len() == 1 + self.snapshot.named_graphs().len()).then(|| self.snapshot.quads())
    }
}

/// The sink, and the batch that is being filled.
struct ExportBatch<'a> {
    export: &'a Export,
    batch: QuadBatch,
    /// Reused buffer for the objects of one subject and predicate.
    objects: Vec<u32>,
    sink: &'a mut dyn QuadSink,
    progress: &'a Progress,
}

impl<'a> ExportBatch<'a> {
    fn term(&mut self, v: u32) -> Result<Span> {
        let start = self.batch.bytes.len();
        if !Graph::term(&self.export.snapshot, VertexId(v), &mut self.batch.bytes) {
            return Err(Error::damaged(
                STRINGS_FILE,
                format!(
                    "it lacks the term {v}, of which the store has edges; `jindou check` shows all damage"
                ),
            ));
        }
        let len = self.batch.bytes.len() - start;
        if self.batch.bytes.len() > u32::MAX as usize {
            return Err(Error::limit(
                Resource::Form,
                format!("a term of {len} bytes cannot be read out"),
            ));
        }
        Ok(Span {
            start: start as u32,
            len: len as u32,
        })
    }

    /// Appends the statements about subjects in a graph.
    fn subjects(&mut self, mut subjects: impl Iterator<Item = u32>, graph: u32) -> Result<()> {
        let mut page = Vec::with_capacity(PAGE);
        loop {
            page.clear();
            page.extend(subjects.by_ref().take(PAGE));
            if page.is_empty() {
                return Ok(());
            }
            self.fetch(&page, graph);
            for &subject in &page {
                self.subject(subject, graph)?;
            }
        }
    }

    /// Fetches the edge lists and terms of these subjects from other shards in one round.
    fn fetch(&self, subjects: &[u32], graph: u32) {
        let (snapshot, scope) = (&self.export.snapshot, GraphScope::of(graph));
        let Some(sharded) = snapshot.as_sharded() else {
            return;
        };
        let out = Direction::Out;
        let mut lists = Vec::new();
        for &v in subjects {
            let predicates = Graph::predicates_of(snapshot, v, out);
            lists.extend(predicates.iter().map(|&p| (PredicateId(p), out, v, scope)));
        }
        sharded.fetch(lists.iter().copied());
        let mut ids = Vec::new();
        for (p, _, v, _) in lists {
            let edges = snapshot.edges(p, out);
            edges.for_each(v, scope, |o, _| ids.extend([v, o]));
        }
        ids.sort_unstable();
        ids.dedup();
        sharded.fetch_terms(ids.into_iter());
    }

    /// Appends the statements about a subject in a graph.
    fn subject(&mut self, v: u32, graph: u32) -> Result<()> {
        if v.is_multiple_of(CHECK_EVERY) {
            self.export.cancel.check()?;
        }
        let snapshot: &'a Snapshot = &self.export.snapshot;
        let scope = GraphScope::of(graph);
        // Positions of the subject's, predicate's and graph's terms in the current batch; `None` until they are added
        // to it.
        let mut subject = None;
        for &p in Graph::predicates_of(snapshot, v, Direction::Out).iter() {
            let p = PredicateId(p);
            let edges = snapshot.edges(p, Direction::Out);
            let mut scratch = std::mem::take(&mut self.objects);
            scratch.clear();
            let objects = edges.read(v, scope, &mut scratch);
            let mut predicate = None;
            for &o in objects {
                let (s, g) = match subject {
                    Some(known) => known,
                    None => {
                        let s = self.term(v)?;
                        let g = match graph {
                            DEFAULT_GRAPH => Span::default(),
                            g => self.term(g)?,
                        };
                        *subject.insert((s, g))
                    }
                };
                let p = match predicate {
                    Some(known) => known,
                    None => *predicate.insert(self.term(snapshot.vertex_of(p).0)?),
                };
                let o = self.term(o)?;
                self.batch.quads.push([s, p, o, g]);
                if self.batch.bytes.len() >= BATCH_BYTES || self.batch.quads.len() >= BATCH_QUADS {
                    self.write_piece()?;
                    (subject, predicate) = (None, None);
                }
            }
            self.objects = scratch;
        }
        Ok(())
    }

    fn write_piece(&mut self) -> Result<()> {
        self.export.cancel.check()?;
        if !self.batch.quads.is_empty() {
            self.sink.batch(&self.batch)?;
            let n = self.batch.quads.len() as u64;
            self.progress.add(n, n);
        }
        self.batch.clear();
        Ok(())
    }
}
