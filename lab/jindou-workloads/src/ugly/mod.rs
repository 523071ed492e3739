//! The ugly graph: what people's graphs have and tidy benchmarks leave out, in one generated graph
//! of any size. `docs/lab/ugly.md` describes it; in short, for `q` quads:
//!
//! | what | how much | at 20 M |
//! |---|---|---|
//! | predicates, `rdf:type` included | q/200, 40 to 14,000; used by Zipf | 14,000 |
//! | characteristic sets | q/200, 20 to 100,000, used by Zipf, near ones in families; some more by chance | 100,000 |
//! | classes | q/2000, 10 to 2,000 in a tree; 1 to 5 an entity | 2,000 |
//! | named graphs | q/200, at least 1; half of all quads; one edge in 32 in several graphs | 100,000 |
//! | quads that point at one vertex, the *hub* | q/2 | 10 M |
//! | literals | numbers, dates and strings of 30 languages, ill-typed ones, up to 64 KiB | |
//!
//! Everything follows from the seed, on any machine and for any number of workers: block `b` of 8192
//! quads describes entities `240 b` and on, and each entity has a random stream of its own. So
//! [`Ugly::describe`] makes any entity again by itself.

mod block;
mod literal;
mod shape;
mod words;

pub use literal::LONGEST_LITERAL;
pub use words::LANGUAGES;

use crate::random::SplitMix;
use block::BlockWriter;
use jindou_model::{Progress, QuadBatch, QuadSink, QuadSource, Result};
use shape::GraphShape;
use std::sync::atomic::{AtomicU32, Ordering};

/// The ugly graph as a source. It delivers its blocks once; make a new one to deliver them again.
#[derive(Debug)]
pub struct Ugly {
    shape: GraphShape,
    next: AtomicU32,
}

/// The graph's quads about one entity, made without the rest of the graph.
#[derive(Debug, Default)]
pub struct Description {
    /// The quads, in order. Those with another subject belong to blank nodes of the entity.
    pub batch: QuadBatch,
    /// Numbers of quads whose object is an entity, with the entity's number.
    pub links: Vec<(u32, u32)>,
}

impl Ugly {
    /// A graph of exactly `quads` quads (at most 68 billion), including duplicates, which are fewer than one in a
    /// hundred. Prepares some MB of tables, in milliseconds.
    #[must_use]
    pub fn new(quads: u64, seed: u64) -> Self {
        Self {
            shape: GraphShape::new(quads, seed),
            next: AtomicU32::new(0),
        }
    }

    /// Quads it delivers.
    #[must_use]
    pub fn quads(&self) -> u64 {
        self.shape.quads
    }

    /// Number of entities; they are numbered `0 .. entities`. Nearly all are described. The few whose block was full,
    /// and those of an incomplete last block, are only mentioned.
    #[must_use]
    pub fn entities(&self) -> u32 {
        self.shape.entities
    }

    /// Predicates that may occur.
    #[must_use]
    pub fn predicates(&self) -> usize {
        self.shape.predicates.len()
    }

    /// Canonical bytes of a predicate, `0 .. predicates`; `None` beyond.
    #[must_use]
    pub fn predicate(&self, number: usize) -> Option<&[u8]> {
        (number < self.predicates()).then(|| self.shape.predicate_iris.get(number))
    }

    /// Classes that may occur.
    #[must_use]
    pub fn classes(&self) -> usize {
        self.shape.class_iris.len()
    }

    /// Named graphs that may occur.
    #[must_use]
    pub fn graphs(&self) -> u32 {
        self.shape.graphs
    }

    /// Canonical bytes of a graph's name, `0 .. graphs`.
    #[must_use]
    pub fn graph(&self, number: u32) -> Vec<u8> {
        let mut out = vec![];
        self.shape.push_graph(number, &mut out);
        out
    }

    /// Canonical bytes of the vertex that half of all quads point at.
    #[must_use]
    pub fn hub(&self) -> &[u8] {
        self.shape.hub()
    }

    /// Canonical bytes of an entity: an IRI, or a blank node in one of 20 cases.
    #[must_use]
    pub fn entity(&self, number: u32) -> Vec<u8> {
        let mut out = vec![];
        self.shape.push_entity(number, &mut out);
        out
    }

    /// Generates the statements about entity `number` again. O(predicates) for the tables of a batch, some tens of
    /// microseconds.
    #[must_use]
    pub fn describe(&self, number: u32) -> Description {
        let mut writer = BlockWriter::new(&self.shape);
        writer.entity(number.min(self.shape.entities - 1));
        Description {
            batch: writer.batch,
            links: writer.links,
        }
    }

    /// The random stream of query `number` over this graph.
    pub(crate) fn query_stream(&self, seed: u64, number: u64) -> SplitMix {
        SplitMix::stream(
            self.shape.seed ^ seed.rotate_left(32),
            shape::stream::QUERY,
            number,
        )
    }

    fn take(&self) -> Option<u32> {
        let next = |b| (b < self.shape.blocks).then(|| b + 1);
        self.next
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, next)
            .ok()
    }
}

impl QuadSource for Ugly {
    /// Delivers one block of 8192 quads a batch, in disorder. Counts quads as done. When a sink
    /// fails, the other workers stop at their next block.
    fn run(
        &self,
        _worker: usize,
        _workers: usize,
        sink: &mut dyn QuadSink,
        progress: &Progress,
    ) -> Result<()> {
        let mut writer = BlockWriter::new(&self.shape);
        while let Some(block) = self.take() {
            writer.block(block);
            if let Err(e) = sink.batch(&writer.batch) {
                self.next.store(self.shape.blocks, Ordering::Relaxed);
                return Err(e);
            }
            let quads = writer.batch.quads.len() as u64;
            progress.add(quads, quads);
        }
        Ok(())
    }

    fn size_hint(&self) -> Option<u64> {
        Some(self.shape.quads)
    }
}
