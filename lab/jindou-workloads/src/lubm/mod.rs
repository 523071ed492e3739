//! LUBM, the Lehigh University Benchmark (Guo, Pan, Heflin 2005), as its generator UBA 1.7 makes it:
//! the same draws of the same random numbers, hence the same graph to the last triple.
//!
//! Universities are independent of each other, so threads take them one at a time, and LUBM(N) is a
//! part of LUBM(M) for every M > N. Statements are delivered raw, as UBA writes them (without its two
//! header statements a file): every statement whose object is a university repeats that university's
//! type. A loader drops the repetitions; [`known`] has the counts of both.

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

/// LUBM(N): a source of about 138,000 N raw statements. It delivers its universities once; make a
/// new one to deliver them again.
#[derive(Debug)]
pub struct Lubm {
    universities: u32,
    seed: i64,
    next: AtomicU32,
    vocabulary: TermSpans,
}

impl Lubm {
    /// The data of `universities` universities. Seed 0 is the one whose counts are published.
    #[must_use]
    pub fn new(universities: u32, seed: i64) -> Self {
        Self {
            universities,
            seed,
            next: AtomicU32::new(0),
            vocabulary: TermSpans::new(),
        }
    }

    /// How many universities it has.
    #[must_use]
    pub fn universities(&self) -> u32 {
        self.universities
    }

    /// The seed it was made with.
    #[must_use]
    pub fn seed(&self) -> i64 {
        self.seed
    }

    /// How many departments a university has, 15 to 25: one draw.
    #[must_use]
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

    /// The next university that is not taken yet.
    fn take(&self) -> Option<u32> {
        let next = |u| (u < self.universities).then(|| u + 1);
        self.next
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, next)
            .ok()
    }
}

impl QuadSource for Lubm {
    /// Delivers one department a batch: some 5,000 to 9,000 quads, each subject's together. Counts
    /// universities as done. When a sink fails, the other workers stop at their next university.
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
