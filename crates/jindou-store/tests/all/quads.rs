//! The quads that a snapshot sees, loaded again, give the same graph.

use jindou_model::{Progress, QuadBatch, QuadSink, QuadSource, Result};
use jindou_store::testing::{TermQuad, edit, store_of_terms, varied_quads};
use jindou_store::{Changes, LoadOptions, Snapshot, SnapshotQuads, load, open};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

/// How often each quad was delivered.
#[derive(Default)]
struct Counted(BTreeMap<TermQuad, u32>);

impl QuadSink for Counted {
    fn batch(&mut self, batch: &QuadBatch) -> Result<()> {
        for q in &batch.quads {
            let quad = q.map(|span| batch.term(span).to_vec());
            *self.0.entry(quad).or_default() += 1;
        }
        Ok(())
    }
}

/// All quads as several workers deliver them.
fn delivered(snapshot: &Snapshot, workers: usize) -> BTreeMap<TermQuad, u32> {
    let source = SnapshotQuads::new(snapshot.clone());
    let progress = Progress::default();
    let mut all: BTreeMap<TermQuad, u32> = BTreeMap::new();
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..workers)
            .map(|w| {
                let (source, progress) = (&source, &progress);
                scope.spawn(move || {
                    let mut sink = Counted::default();
                    source.run(w, workers, &mut sink, progress).unwrap();
                    sink.0
                })
            })
            .collect();
        for r in running {
            for (quad, n) in r.join().unwrap() {
                *all.entry(quad).or_default() += n;
            }
        }
    });
    let n: u32 = all.values().sum();
    assert_eq!(progress.quads.load(Ordering::Relaxed), u64::from(n));
    all
}

fn once(quads: impl IntoIterator<Item = TermQuad>) -> BTreeMap<TermQuad, u32> {
    quads.into_iter().map(|q| (q, 1)).collect()
}

/// Quads of several shapes: a subject with more edges than a batch has, more subjects than a part has, blank nodes,
/// the same triple in several graphs.
fn start() -> Vec<TermQuad> {
    let mut quads = varied_quads();
    for i in 0..40_000 {
        let object = format!("\"{i}").into_bytes();
        quads.push([
            b"<http://e/hub".to_vec(),
            b"<http://e/many".to_vec(),
            object,
            vec![],
        ]);
    }
    for i in 0..5_000 {
        let subject = format!("<http://e/s{i}").into_bytes();
        for graph in [&b""[..], b"<http://e/g1", b"<http://e/g2"] {
            quads.push([
                subject.clone(),
                b"<http://e/p".to_vec(),
                subject.clone(),
                graph.to_vec(),
            ]);
        }
    }
    quads
}

#[test]
fn every_quad_is_delivered_once() {
    let quads = start();
    let (_folder, base) = store_of_terms(&quads);
    let snapshot = Snapshot::of_base(base);
    for workers in [1, 3] {
        assert_eq!(delivered(&snapshot, workers), once(quads.iter().cloned()));
    }
}

#[test]
fn a_changed_snapshot_loads_as_what_it_sees() {
    let quads = start();
    let (folder, base) = store_of_terms(&quads);
    let epoch = base.epoch();
    let before = Snapshot::of_base(base);
    let mut truth = once(quads.iter().cloned());
    let mut changes = Changes::new();
    for q in quads.iter().step_by(7) {
        edit(&mut changes, q, false);
        truth.remove(q);
    }
    for i in 0..3_000 {
        let q: TermQuad = [
            format!("_new{}", i % 100).into_bytes(),
            format!("<http://e/new{}", i % 3).into_bytes(),
            format!("\"late {i}").into_bytes(),
            if i % 2 == 0 {
                vec![]
            } else {
                b"<http://e/g9".to_vec()
            },
        ];
        edit(&mut changes, &q, true);
        truth.insert(q, 1);
    }
    let after = before.apply(&changes, 2).unwrap().snapshot;
    assert_eq!(delivered(&after, 2), truth);
    let dir = folder.path().join("again");
    let options = LoadOptions::default().with_threads(2);
    let report = load(
        &dir,
        &SnapshotQuads::new(after),
        &options,
        &Progress::default(),
    )
    .unwrap();
    assert_eq!(report.quads_stored, truth.len() as u64);
    let again = open(&dir).unwrap();
    assert_ne!(again.epoch(), epoch);
    assert_eq!(delivered(&Snapshot::of_base(again), 2), truth);
    // Earlier content is unchanged.
    assert_eq!(delivered(&before, 2), once(quads));
}
