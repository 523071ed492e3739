//! The ugly graph: a generated graph of any size with properties of real graphs that benchmark data usually lacks.
//! `docs/lab/ugly.md` describes it. In short, for `q` quads:
//!
//! | what | how much | at 20 M |
//! |---|---|---|
//! | predicates, `rdf:type` included | q/200, 40 to 14,000; their frequency follows Zipf's law | 14,000 |
//! | characteristic sets | q/200, 20 to 100,000; similar sets in families; frequency by Zipf's law | 100,000 |
//! | classes | q/2000, 10 to 2,000 in a tree; 1 to 5 per entity | 2,000 |
//! | named graphs | q/200, at least 1; half of all quads; one edge in 32 in several graphs | 100,000 |
//! | quads with the same object, the *hub* | q/2 | 10 M |
//! | literals | numbers, dates and strings of 30 languages, ill-typed ones, up to 64 KiB | |
//!
//! The data depends only on the size and the seed, not on the machine or the number of workers. Block `b` of 8192 quads
//! describes the entities from `240 b` on, and each entity has its own random stream. [`Ugly::describe`] can therefore
//! generate any entity without the others.

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

/// The ugly graph as a source. It delivers each block once; delivering them again needs a new source.
#[derive(Debug)]
pub struct Ugly {
    shape: GraphShape,
    next: AtomicU32,
}

/// The graph's quads about one entity, generated without the rest of the graph.
#[derive(Debug, Default)]
pub struct Description {
    /// The quads in order. Quads with another subject are about blank nodes of the entity.
    pub batch: QuadBatch,
    /// Indexes of the quads whose object is an entity, each with the entity's number.
    pub links: Vec<(u32, u32)>,
}

impl Ugly {
    /// A graph of exactly `quads` quads (at most 68 billion), including duplicates, which are fewer than one in a
    /// hundred. Prepares some MB of tables, in milliseconds.
    pub fn new(quads: u64, seed: u64) -> Self {
        Self {
            shape: GraphShape::new(quads, seed),
            next: AtomicU32::new(0),
        }
    }

    /// Number of quads that the source delivers.
    pub fn quads(&self) -> u64 {
        self.shape.quads
    }

    /// Number of entities, which are numbered from 0. Nearly all have statements of their own. A few only occur as
    /// objects, since their block was full, or is the incomplete last one.
    pub fn entities(&self) -> u32 {
        self.shape.entities
    }

    /// Number of predicates that may occur.
    pub fn predicates(&self) -> usize {
        self.shape.predicates.len()
    }

    /// Canonical bytes of predicate `number`; `None` if there are fewer predicates.
    pub fn predicate(&self, number: usize) -> Option<&[u8]> {
        (number < self.predicates()).then(|| self.shape.predicate_iris.get(number))
    }

    /// Number of classes that may occur.
    pub fn classes(&self) -> usize {
        self.shape.class_iris.len()
    }

    /// Number of named graphs that may occur.
    pub fn graphs(&self) -> u32 {
        self.shape.graphs
    }

    /// Canonical bytes of the name of graph `number`.
    pub fn graph(&self, number: u32) -> Vec<u8> {
        let mut out = vec![];
        self.shape.push_graph(number, &mut out);
        out
    }

    /// Canonical bytes of the hub, the object of half of all quads.
    pub fn hub(&self) -> &[u8] {
        self.shape.hub()
    }

    /// Canonical bytes of an entity: an IRI or, for one entity in 20, a blank node.
    pub fn entity(&self, number: u32) -> Vec<u8> {
        let mut out = vec![];
        self.shape.push_entity(number, &mut out);
        out
    }

    /// Generates the statements about entity `number` again. O(predicates), some tens of microseconds.
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
    /// Delivers one block of 8192 quads per batch, not sorted. Progress counts quads. When a sink fails, the other
    /// workers stop at their next block.
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
