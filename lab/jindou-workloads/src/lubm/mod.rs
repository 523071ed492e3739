//! LUBM, the Lehigh University Benchmark (Guo, Pan, Heflin 2005). Draws the same random numbers as the original
//! generator, UBA 1.7, so the graph is exactly the same.
//!
//! Universities are independent of each other, so workers generate them one at a time, and LUBM(N) is a part of LUBM(M)
//! for every M > N. Statements are delivered as UBA writes them (without its two header statements per file), including
//! duplicates: every statement whose object is a university repeats the university's type. A loader removes duplicates;
//! [`known`] has the counts with and without them.

mod department;
mod inferred;
pub mod known;
mod random;
mod vocabulary;

pub use inferred::Inferred;
pub use random::JavaRandom;
pub use vocabulary::{CLASSES, Class, ONTOLOGY};

use department::DepartmentWriter;
use jindou_model::{Progress, QuadSink, QuadSource, Result};
use std::sync::atomic::{AtomicU32, Ordering};
use vocabulary::TermSpans;

/// LUBM(N): a source of about 138,000 N statements, including duplicates. It delivers each university once; delivering
/// them again needs a new source.
#[derive(Debug)]
pub struct Lubm {
    universities: u32,
    seed: i64,
    next: AtomicU32,
    vocabulary: TermSpans,
}

impl Lubm {
    /// The data of `universities` universities. The published counts are for seed 0.
    pub fn new(universities: u32, seed: i64) -> Self {
        Self {
            universities,
            seed,
            next: AtomicU32::new(0),
            vocabulary: TermSpans::new(),
        }
    }

    /// Number of universities.
    pub fn universities(&self) -> u32 {
        self.universities
    }

    /// The seed of the data.
    pub fn seed(&self) -> i64 {
        self.seed
    }

    /// Number of departments of a university, 15 to 25. Needs one random number.
    pub fn departments(&self, university: u32) -> u32 {
        self.random(university)
            .range(15, vocabulary::MAX_DEPARTMENTS)
    }

    fn random(&self, university: u32) -> JavaRandom {
        // UBA multiplies by `Integer.MAX_VALUE + 1`, which overflows to the smallest int.
        let factor = i64::from(i32::MIN);
        JavaRandom::new(
            self.seed
                .wrapping_mul(factor)
                .wrapping_add(university.into()),
        )
    }

    /// The next university that no worker has taken yet.
    fn take(&self) -> Option<u32> {
        let next = |u| (u < self.universities).then(|| u + 1);
        self.next
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, next)
            .ok()
    }
}

impl QuadSource for Lubm {
    /// Delivers one department per batch: some 5,000 to 9,000 quads, grouped by subject. Progress counts universities.
    /// When a sink fails, the other workers stop at their next university.
    fn run(
        &self,
        _worker: usize,
        _workers: usize,
        sink: &mut dyn QuadSink,
        progress: &Progress,
    ) -> Result<()> {
        let mut writer = DepartmentWriter::new(&self.vocabulary);
        while let Some(university) = self.take() {
            let mut random = self.random(university);
            for department in 0..random.range(15, vocabulary::MAX_DEPARTMENTS) {
                writer.write(&mut random, university, department);
                if let Err(e) = sink.batch(&writer.batch) {
                    self.next.store(self.universities, Ordering::Relaxed);
                    return Err(e);
                }
                progress.add(0, writer.batch.quads.len() as u64);
            }
            progress.add(1, 0);
        }
        Ok(())
    }

    fn size_hint(&self) -> Option<u64> {
        Some(self.universities.into())
    }
}
