//! WatDiv, the Waterloo SPARQL Diversity Test Suite (Aluç, Hartig, Özsu, Daudjee: Diversified Stress Testing
//! of RDF Data Management Systems, ISWC 2014): data drawn from a model of kinds, attributes and associations.
//!
//! The rules are the original generator's, the draws are not: it seeds from the clock, and its strings come
//! from the machine's dictionary. So what a scale gives agrees in distribution (`tests/all/watdiv.rs` says how
//! closely, against data of the original), down to its habits: statements may repeat, and the first and last
//! of the things drawn from get half or more than their due. Strings are of made-up words, and dates without
//! a range end at a fixed day.
//!
//! Everything follows from model, scale and seed, on any machine and for any number of workers: the graph is
//! cut into units, some thousand statements about neighbouring subjects, and each has a random stream of its
//! own. Scale 1 is about 109,500 statements, 104,500 different ones; it grows in proportion.

mod compile;
mod draw;
mod model;
mod parse;
mod standard;
mod write;

pub use crate::date::Day;
pub use model::{
    Association, AttributeGroup, AttributeValues, Distribution, EntityKind, LiteralProperty,
    RDF_TYPE, WatdivModel,
};

pub(crate) use draw::{PlaceDraw, Zipf};

use compile::CompiledModel;
use jindou_model::{Progress, QuadSink, QuadSource, Result};
use std::sync::atomic::{AtomicU64, Ordering};
use write::WatdivWriter;

/// A model's data at a scale, as a source. It delivers its units once; make a new one to deliver them again.
#[derive(Debug)]
pub struct Watdiv {
    compiled: CompiledModel,
    next: AtomicU64,
}

impl Watdiv {
    /// The data of a model at a scale. Draws who is an instance of which class: some 10 ns an entity.
    ///
    /// # Errors
    /// [`jindou_model::Error::Limit`] when the scale gives more than 2²⁸ entities of a kind, or when
    /// the model draws literals by Zipf's law from more than 2²⁴.
    pub fn new(model: &WatdivModel, scale: u32, seed: u64) -> Result<Self> {
        Ok(Self {
            compiled: CompiledModel::new(model, scale, seed)?,
            next: AtomicU64::new(0),
        })
    }
}

impl QuadSource for Watdiv {
    /// Delivers some thousand quads a batch, with repetitions. Counts units as done. When a sink fails, the other
    /// workers stop at their next unit.
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
            let made = if unit < self.compiled.units {
                writer.unit(unit)
            } else {
                return writer.flush();
            };
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
