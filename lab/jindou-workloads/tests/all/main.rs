//! Tests of the generators and queries of the published benchmarks.

mod bsbm;
mod lubm;
mod lubm_queries;
mod sp2b;
mod ugly;
mod watdiv;
mod watdiv_statistics;

use jindou_model::{Progress, QuadSink, QuadSource};

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
