//! All quads of a snapshot as a source of a load, by which a store is reclustered.

use crate::Snapshot;
use jindou_dictionary::STRINGS_FILE;
use jindou_graph::Edges;
use jindou_graph::segment::GraphScope;
use jindou_model::sync;
use jindou_model::{
    DEFAULT_GRAPH, Direction, Error, PredicateId, Progress, QuadBatch, QuadSink, QuadSource,
    Resource, Result, Span, VertexId,
};
use std::ops::Range;
use std::sync::Mutex;

/// The quads of one snapshot, base and patches merged, each exactly once, with terms in canonical bytes (blank nodes
/// keep their labels). Workers process parts of a predicate's subjects in turn; [`Progress::done`] counts quads.
///
/// Memory: the subjects of one predicate (4 bytes each), and a batch for each worker.
pub struct SnapshotQuads {
    snapshot: Snapshot,
    size: u64,
    cursor: Mutex<QuadCursor>,
}

/// Position up to which workers have taken the quads.
#[derive(Default)]
struct QuadCursor {
    /// The predicate that is read next.
    next: u32,
    /// The predicate that is being read.
    predicate: u32,
    /// Subjects of that predicate.
    subjects: Vec<u32>,
    taken: usize,
}

/// Number of subjects that a worker processes at a time.
const PART: usize = 2048;
/// Size of a batch, in bytes or quads, at which it is passed on.
const BATCH_BYTES: usize = 1 << 20;
const BATCH_QUADS: usize = 1 << 15;
/// Longest term in bytes that a batch can contain, since positions in a batch have 32 bits.
const SPAN_LIMIT: usize = 1 << 30;

impl SnapshotQuads {
    /// The quads of a snapshot.
    #[must_use]
    pub fn new(snapshot: Snapshot) -> Self {
        let edges = |p| snapshot.edges(PredicateId(p), Direction::Out);
        let size = (0..snapshot.predicate_count())
            .map(|p| edges(p).edge_estimate(GraphScope::Union))
            .sum();
        Self {
            snapshot,
            size,
            cursor: Mutex::default(),
        }
    }

    /// Copies the next subjects into `subjects` and returns their predicate; `None` if all were taken.
    fn take(&self, subjects: &mut Vec<u32>) -> Option<PredicateId> {
        let mut c = sync::lock(&self.cursor);
        while c.taken == c.subjects.len() {
            if c.next == self.snapshot.predicate_count() {
                return None;
            }
            c.predicate = c.next;
            c.next += 1;
            c.taken = 0;
            let c = &mut *c;
            c.subjects.clear();
            self.snapshot
                .edges(PredicateId(c.predicate), Direction::Out)
                .candidate_keys(GraphScope::Union, &mut c.subjects);
        }
        let end = (c.taken + PART).min(c.subjects.len());
        subjects.clear();
        subjects.extend_from_slice(&c.subjects[c.taken..end]);
        c.taken = end;
        Some(PredicateId(c.predicate))
    }
}

impl QuadSource for SnapshotQuads {
    fn run(
        &self,
        _worker: usize,
        _workers: usize,
        sink: &mut dyn QuadSink,
        progress: &Progress,
    ) -> Result<()> {
        let mut out = WorkerBatch {
            snapshot: &self.snapshot,
            batch: QuadBatch::default(),
            graph: None,
            sink,
            progress,
        };
        let mut subjects = Vec::new();
        let (mut objects, mut graphs) = (Vec::new(), Vec::new());
        while let Some(p) = self.take(&mut subjects) {
            let view = self.snapshot.edges(p, Direction::Out);
            if let Some(sharded) = self.snapshot.as_sharded() {
                view.fetch(subjects.iter().map(|&s| (s, GraphScope::Union)));
                let mut ids = subjects.clone();
                for &s in &subjects {
                    view.for_each(s, GraphScope::Union, |o, g| ids.extend([o, g]));
                }
                ids.sort_unstable();
                ids.dedup();
                sharded.fetch_terms(ids.into_iter());
                sharded.check()?;
            }
            let mut predicate = out.term(self.snapshot.vertex_of(p).0)?;
            for &s in &subjects {
                read(&view, s, &mut objects, &mut graphs);
                let mut rest = 0..objects.len();
                while !rest.is_empty() {
                    let subject = out.term(s)?;
                    out.edges([subject, predicate], &objects, &graphs, &mut rest)?;
                    if out.is_full() {
                        out.hand_on()?;
                        predicate = out.term(self.snapshot.vertex_of(p).0)?;
                    }
                }
            }
            out.hand_on()?;
        }
        Ok(())
    }

    fn size_hint(&self) -> Option<u64> {
        Some(self.size)
    }
}

fn read(view: &Edges<'_>, s: u32, objects: &mut Vec<u32>, graphs: &mut Vec<u32>) {
    objects.clear();
    graphs.clear();
    view.read_with_graphs(s, GraphScope::Union, objects, graphs);
}

/// One worker's batch in progress.
struct WorkerBatch<'a> {
    snapshot: &'a Snapshot,
    batch: QuadBatch,
    /// The named graph of the last quad in this batch, and its term.
    graph: Option<(u32, Span)>,
    sink: &'a mut dyn QuadSink,
    progress: &'a Progress,
}

impl WorkerBatch<'_> {
    fn is_full(&self) -> bool {
        self.batch.bytes.len() >= BATCH_BYTES || self.batch.quads.len() >= BATCH_QUADS
    }

    /// Appends a term's bytes to the batch, and returns their location.
    fn term(&mut self, v: u32) -> Result<Span> {
        let start = self.batch.bytes.len();
        if !self.snapshot.term(VertexId(v), &mut self.batch.bytes) {
            return Err(Error::damaged(
                STRINGS_FILE,
                format!(
                    "it lacks the term {v}, of which the store has edges; `jindou check` shows all damage"
                ),
            ));
        }
        let len = self.batch.bytes.len() - start;
        if len > SPAN_LIMIT {
            return Err(Error::limit(
                Resource::Form,
                format!("a term of {len} bytes cannot be read again"),
            ));
        }
        Ok(Span {
            start: start as u32,
            len: len as u32,
        })
    }

    /// Appends edges of one subject, at least one, until the batch is full. `rest` gets the remaining ones.
    fn edges(
        &mut self,
        [subject, predicate]: [Span; 2],
        objects: &[u32],
        graphs: &[u32],
        rest: &mut Range<usize>,
    ) -> Result<()> {
        let mut last: Option<(u32, Span)> = None;
        for at in rest.by_ref() {
            let (o, g) = (objects[at], graphs[at]);
            // Entries of the same object in several graphs are consecutive, so its term is reused.
            let object = match last {
                Some((v, span)) if v == o => span,
                _ => self.term(o)?,
            };
            last = Some((o, object));
            let graph = match self.graph {
                _ if g == DEFAULT_GRAPH => Span::default(),
                Some((v, span)) if v == g => span,
                _ => {
                    let span = self.term(g)?;
                    self.graph = Some((g, span));
                    span
                }
            };
            self.batch.quads.push([subject, predicate, object, graph]);
            if self.is_full() {
                break;
            }
        }
        Ok(())
    }

    fn hand_on(&mut self) -> Result<()> {
        if !self.batch.quads.is_empty() {
            self.sink.batch(&self.batch)?;
            let n = self.batch.quads.len() as u64;
            self.progress.add(n, n);
        }
        self.batch.clear();
        self.graph = None;
        Ok(())
    }
}
