//! BSBM, the Berlin SPARQL Benchmark (Bizer and Schultz: The Berlin SPARQL Benchmark, IJSWIS 2009): products with a
//! tree of product types, their producers, vendors who offer them, and people who review them.
//!
//! The generator follows the published rules as far as they are known. Other parameters are fitted to data of the
//! original generator (100 products; `tests/all/bsbm.rs` tests how closely) and to its published sizes: how often
//! optional properties occur together, delivery days, and the limits of the number of features of a type (about 98
//! divided by the depth of the tree). The random numbers differ from the original's. Words are made up, as WatDiv's
//! are. There are no named graphs.
//!
//! The data depends only on the number of products and a seed, not on the machine or the number of workers. A product
//! has about 353 statements; 28,000 products are 10 million.

mod scale;
mod write;

use crate::date::Day;
use crate::random::SplitMix;
use crate::words::Words;
use jindou_model::{Progress, QuadSink, QuadSource, Result};
use scale::{BsbmLayout, Unit};
use std::sync::atomic::{AtomicU64, Ordering};
use write::BsbmWriter;

/// The day on which the data was published: 2008-06-20. Offers and reviews are not newer.
pub const TODAY: Day = Day(14_050);

/// Namespace of the instances.
pub const INSTANCES: &str = "http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/instances/";
/// Namespace of the vocabulary.
pub const VOCABULARY: &str = "http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/vocabulary/";
/// Prefix of the IRIs of countries; a two-letter code follows.
pub const COUNTRIES: &str = "http://downlode.org/rdf/iso-3166/countries#";

/// Countries, the number of people (and companies) out of 20 that are from there, and the language that they write.
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

/// Draws an index in [`COUNTRY`].
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

/// A source with the data of some number of products. It delivers each unit once; delivering them again needs a new
/// source.
#[derive(Debug)]
pub struct Bsbm {
    layout: BsbmLayout,
    words: Words,
    next: AtomicU64,
}

/// Also used to draw the constants of query templates. All numbers of things count from 0.
impl Bsbm {
    /// The data of `products` products (at least 1). Takes about 20 ms for the words, and 4 bytes per review.
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
    /// Delivers batches of some thousand quads, without duplicates. Progress counts units. When a sink fails, the other
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
