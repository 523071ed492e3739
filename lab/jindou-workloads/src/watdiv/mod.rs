//! WatDiv, the Waterloo SPARQL Diversity Test Suite (Aluç, Hartig, Özsu, Daudjee: Diversified Stress Testing of RDF
//! Data Management Systems, ISWC 2014): data drawn from a model of kinds of entities, attributes and associations.
//!
//! The rules are those of the original generator. The random numbers differ, since the original is seeded from the
//! clock, and takes strings from the machine's dictionary. So the data agrees in distribution (`tests/all/watdiv.rs`
//! tests how closely, against data of the original). This includes its peculiarities: statements may occur more than
//! once, and the first and last entities to be drawn have half or one and a half times the probability of others.
//! Strings consist of made-up words, and dates without a range end at a fixed day.
//!
//! The data depends only on model, scale and seed, not on the machine or the number of workers. The graph is divided
//! into units of some thousand statements about consecutive subjects, each with its own random stream. Scale 1 has
//! about 109,500 statements, of which 104,500 are distinct; the number grows in proportion to the scale.

mod compile;
mod draw;
mod model;
mod parse;
mod write;

pub use crate::date::Day;
pub use model::{
    Association, AttributeGroup, AttributeValues, Distribution, EntityKind, LiteralProperty,
    RDF_TYPE, WatdivModel,
};

pub(crate) use draw::PlaceDraw;

use compile::CompiledModel;
use jindou_model::{Progress, QuadSink, QuadSource, Result};
use std::sync::atomic::{AtomicU64, Ordering};
use write::WatdivWriter;

/// A source with a model's data at a scale. It delivers each unit once; delivering them again needs a new source.
#[derive(Debug)]
pub struct Watdiv {
    compiled: CompiledModel,
    next: AtomicU64,
}

impl Watdiv {
    /// Creates the source. Draws the instances of classes in advance, which takes about 10 ns per entity.
    ///
    /// # Errors
    /// [`jindou_model::Error::Limit`] if a kind has more than 2²⁸ entities at this scale.
    pub fn new(model: &WatdivModel, scale: u32, seed: u64) -> Result<Self> {
        Ok(Self {
            compiled: CompiledModel::new(model, scale, seed)?,
            next: AtomicU64::new(0),
        })
    }
}

impl QuadSource for Watdiv {
    /// Delivers batches of some thousand quads, including duplicates. Progress counts units. When a sink fails, the
    /// other workers stop at their next unit.
    fn run(
        &self,
        _worker: usize,
        _workers: usize,
        sink: &mut dyn QuadSink,
        progress: &Progress,
    ) -> Result<()> {
        let mut writer = WatdivWriter::new(&self.compiled, sink, progress);
        loop {
            let unit = self.next.fetch_add(1, Ordering::Relaxed);
            if unit >= self.compiled.units {
                return writer.flush();
            }
            let made = writer.unit(unit);
            if made.is_err() {
                self.next.store(self.compiled.units, Ordering::Relaxed);
                return made;
            }
            progress.add(1, 0);
        }
    }

    fn size_hint(&self) -> Option<u64> {
        Some(self.compiled.units)
    }
}
