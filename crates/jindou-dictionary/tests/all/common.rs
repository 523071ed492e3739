//! Builds dictionaries for tests.
#![allow(dead_code)]

use jindou_dictionary::{
    ClosedRun, Dictionary, Interner, LOCAL_DEFAULT_GRAPH, MergedVocabulary, StringsWriter,
    merge_runs, write_dictionary,
};
use jindou_model::spill::SpillDir;
use jindou_model::{QuadBatch, Span};
use std::path::Path;

/// A quad of canonical bytes; an empty graph is the default graph.
pub type Quad = [Vec<u8>; 4];

/// A batch of quads; terms that repeat the row above reuse its span when `reuse` is set.
pub fn batch(quads: &[Quad], reuse: bool) -> QuadBatch {
    let mut b = QuadBatch::default();
    for q in quads {
        let mut spans = [Span::default(); 4];
        for place in 0..4 {
            if q[place].is_empty() {
                continue;
            }
            let above = b.quads.last().map(|s| s[place]).filter(|s| s.len > 0);
            spans[place] = match above {
                Some(s) if reuse && b.term(s) == q[place] => s,
                _ => b.push_term(&q[place]),
            };
        }
        b.quads.push(spans);
    }
    b
}

/// Output of one worker: its runs, and its quads by run in local ids.
#[derive(Default)]
pub struct Worker {
    pub runs: Vec<ClosedRun>,
    pub quads: Vec<Vec<[u32; 4]>>,
}

/// Interns a worker's quads in batches of `size`.
pub fn intern(quads: &[Quad], size: usize, max_bytes: usize, spill: &SpillDir) -> Worker {
    let mut worker = Worker::default();
    let mut interner = Interner::new(max_bytes);
    let mut out = vec![];
    for (i, part) in quads.chunks(size).enumerate() {
        let b = batch(part, i % 2 == 0);
        if !interner.intern(&b, &mut out) {
            worker.runs.push(interner.close(spill).unwrap());
            worker.quads.push(std::mem::take(&mut out));
            assert!(interner.intern(&b, &mut out));
        }
    }
    worker.runs.push(interner.close(spill).unwrap());
    worker.quads.push(out);
    worker
}

/// Merges all runs; returns the vocabulary and every quad in lex indexes (`u32::MAX` = no graph), in
/// the order given.
pub fn merge(
    workers: Vec<Worker>,
    dir: &Path,
    threads: usize,
) -> (MergedVocabulary, Vec<[u32; 4]>) {
    let (mut runs, mut positions, mut locals) = (vec![], vec![], vec![]);
    for w in workers {
        for (closed, quads) in w.runs.into_iter().zip(w.quads) {
            runs.push(closed.run);
            positions.push(closed.position);
            locals.push(quads);
        }
    }
    let merged = merge_runs(runs, StringsWriter::create(dir).unwrap(), threads).unwrap();
    let mut quads = vec![];
    for (run, local) in locals.iter().enumerate() {
        for q in local {
            quads.push(q.map(|id| match id {
                LOCAL_DEFAULT_GRAPH => u32::MAX,
                id => merged.maps[run][positions[run][id as usize] as usize],
            }));
        }
    }
    (merged, quads)
}

/// A permutation of `1..=n` that depends only on `n`.
pub fn permutation(n: u32) -> Vec<u32> {
    let mut ids: Vec<u32> = (1..=n).collect();
    let mut x = 88_172_645_463_325_252u64;
    for i in (1..n as usize).rev() {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        ids.swap(i, (x % (i as u64 + 1)) as usize);
    }
    ids
}

/// A whole dictionary of some terms; returns it with the id of every term in sorted order.
pub fn dictionary(terms: &[Vec<u8>], dir: &Path) -> (Dictionary, Vec<u32>) {
    let quad = |t: &Vec<u8>| [t.clone(), t.clone(), t.clone(), vec![]];
    let quads: Vec<Quad> = terms.iter().map(quad).collect();
    let worker = intern(&quads, 100, 1 << 30, &SpillDir::in_memory());
    let (merged, _) = merge(vec![worker], dir, 1);
    let ids = permutation(merged.terms);
    write_dictionary(dir, &ids, 2).unwrap();
    (Dictionary::open(dir).unwrap(), ids)
}
