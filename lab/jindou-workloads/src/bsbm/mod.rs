//! BSBM, the Berlin SPARQL Benchmark (Bizer and Schultz: The Berlin SPARQL Benchmark, IJSWIS 2009): products of a
//! tree of types, their producers, vendors who offer them, and people who review them.
//!
//! The rules are the published ones as far as they are known, and otherwise fitted to data of the original (100
//! products; `tests/all/bsbm.rs` says how closely) and to its published sizes; the draws are our own. What is fitted:
//! how often optional properties occur together, delivery days, and the bounds of the number of features of a type (about
//! 98 over the depth of the tree). Words are made up, as WatDiv's are. There are no named graphs.
//!
//! Everything follows from the number of products and a seed, on any machine and for any number of workers. A
//! product brings some 353 statements; 28,000 products are 10 million.

mod scale;
mod write;

use crate::date::Day;
use crate::random::SplitMix;
use crate::words::Words;
use jindou_model::{Progress, QuadSink, QuadSource, Result};
use scale::{BsbmLayout, Unit};
use std::sync::atomic::{AtomicU64, Ordering};
use write::BsbmWriter;

/// The day on which the data was published: 2008-06-20. No offer and no review is younger.
pub const TODAY: Day = Day(14_050);

/// Namespace of the instances.
pub const INSTANCES: &str = "http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/instances/";
/// Namespace of the vocabulary.
pub const VOCABULARY: &str = "http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/vocabulary/";
/// Beginning of the IRIs of countries, which end with a two-letter code.
pub const COUNTRIES: &str = "http://downlode.org/rdf/iso-3166/countries#";

/// Countries, how many of 20 people (and companies) are from there, and what language their people write.
pub(crate) const COUNTRY: [(&str, u32, &str); 10] = [
    ("US", 8, "en"),
    ("GB", 2, "en"),
    ("JP", 2, "ja"),
    ("CN", 2, "zh"),
    ("DE", 1, "de"),
    ("FR", 1, "fr"),
    ("ES", 1, "es"),
    ("RU", 1, "ru"),
    ("KR", 1, "ko"),
    ("AT", 1, "de"),
];

/// A place in [`COUNTRY`].
pub(crate) fn country(random: &mut SplitMix) -> usize {
    let mut rest = random.below(20);
    for (i, (_, of_20, _)) in COUNTRY.iter().enumerate() {
        if rest < *of_20 {
            return i;
        }
        rest -= of_20;
    }
    0
}

/// The data of some products, as a source. It delivers its units once; make a new one to deliver them again.
#[derive(Debug)]
pub struct Bsbm {
    layout: BsbmLayout,
    words: Words,
    next: AtomicU64,
}

/// The source of a query's open constants. All numbers count from 0.
impl Bsbm {
    /// The data of `products` products (at least 1). Some 20 ms for the words and 4 bytes a review.
    #[must_use]
    pub fn new(products: u32, seed: u64) -> Self {
        Self {
            layout: BsbmLayout::new(products.max(1), seed),
            words: Words::dictionary(),
            next: AtomicU64::new(0),
        }
    }

    pub(crate) fn layout(&self) -> &BsbmLayout {
        &self.layout
    }

    /// A product's label.
    pub(crate) fn label(&self, product: u32) -> String {
        let mut text = vec![];
        write::push_label(&self.layout, &self.words, product, &mut text);
        String::from_utf8_lossy(&text).into_owned()
    }
}

impl QuadSource for Bsbm {
    /// Delivers some thousand quads a batch, without repetitions. Counts units as done. When a sink fails, the other
    /// workers stop at their next unit.
    fn run(
        &self,
        _worker: usize,
        _workers: usize,
        sink: &mut dyn QuadSink,
        progress: &Progress,
    ) -> Result<()> {
        let mut writer = BsbmWriter::new(&self.layout, &self.words, sink, progress);
        loop {
            let Some(unit) = Unit::at(&self.layout, self.next.fetch_add(1, Ordering::Relaxed))
            else {
                return writer.flush();
            };
            let made = writer.unit(&unit);
            if made.is_err() {
                self.next
                    .store(Unit::count(&self.layout), Ordering::Relaxed);
                return made;
            }
            progress.add(1, 0);
        }
    }

    fn size_hint(&self) -> Option<u64> {
        Some(Unit::count(&self.layout))
    }
}
