//! Tests of the generators and queries of the published benchmarks.

mod bsbm;
mod lubm;
mod lubm_queries;
mod sp2b;
mod ugly;
mod watdiv;
mod watdiv_statistics;

use jindou_model::{Progress, QuadBatch, QuadSink, QuadSource, Result};
use sha2::{Digest, Sha256};
use std::collections::HashSet;

/// Counts quads without storing them. With `distinct`, stores a hash of every triple to count distinct ones.
#[derive(Default)]
struct Counting {
    quads: u64,
    distinct: Option<HashSet<u128>>,
}

impl QuadSink for Counting {
    fn batch(&mut self, batch: &QuadBatch) -> Result<()> {
        self.quads += batch.quads.len() as u64;
        if let Some(seen) = &mut self.distinct {
            for [s, p, o, _] in &batch.quads {
                let mut hash = Sha256::new();
                for term in [s, p, o] {
                    hash.update(batch.term(*term));
                    hash.update([0]);
                }
                seen.insert(u128::from_le_bytes(
                    hash.finalize()[..16].try_into().unwrap(),
                ));
            }
        }
        Ok(())
    }
}

/// Delivers all of a source to a sink.
fn delivered<S: QuadSink>(source: &dyn QuadSource, mut sink: S) -> S {
    let progress = Progress::default();
    source.run(0, 1, &mut sink, &progress).unwrap();
    sink
}

/// Delivers a source by several workers, each to a sink of its own.
fn by_workers<S: QuadSink + Default + Send>(
    source: &dyn QuadSource,
    workers: usize,
    progress: &Progress,
) -> Vec<S> {
    let one = |worker: usize| {
        let mut sink = S::default();
        source.run(worker, workers, &mut sink, progress).unwrap();
        sink
    };
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..workers)
            .map(|worker| scope.spawn(move || one(worker)))
            .collect();
        all.into_iter().map(|w| w.join().unwrap()).collect()
    })
}
