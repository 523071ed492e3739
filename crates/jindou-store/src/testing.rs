//! Small stores for the tests of other crates, made by a real load.

pub mod agreement;

use crate::directory::{CHECKSUMS, Checksums, MANIFEST, Manifest};
use crate::{
    Base, ChangeTerm, Changes, LoadOptions, MergeOptions, Merging, Snapshot, info, load, open,
};
use agreement::{integer, iri};
use jindou_graph::segment::GraphScope;
use jindou_log::Directory;
use jindou_model::{
    Direction, Error, PredicateId, Progress, QuadBatch, QuadSink, QuadSource, Result, VertexId,
    term,
};
use oxrdf::{GraphName, Quad};
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;
use xxhash_rust::xxh3::xxh3_64;

/// A quad as canonical bytes (`jindou_model::term`): subject, predicate, object, graph (empty for the default graph).
pub type TermQuad = [Vec<u8>; 4];

/// Adds to changes that a quad comes, or goes.
pub fn edit(changes: &mut Changes, quad: &TermQuad, comes: bool) {
    let [s, p, o, g] = quad.each_ref().map(|term| ChangeTerm::Bytes(term));
    let g = (!quad[3].is_empty()).then_some(g);
    match comes {
        true => changes.insert(s, p, o, g),
        false => changes.remove(s, p, o, g),
    }
}

/// The snapshot after these changes, each of which adds or removes a quad in a transaction of its own.
///
/// # Panics
/// When a change cannot be made.
#[must_use]
#[allow(clippy::expect_used)]
pub fn changed(
    snapshot: Snapshot,
    changes: impl IntoIterator<Item = (TermQuad, bool)>,
) -> Snapshot {
    changes
        .into_iter()
        .fold(snapshot, |snapshot, (quad, comes)| {
            let mut change = Changes::new();
            edit(&mut change, &quad, comes);
            snapshot.apply(&change, 1).expect("a change").snapshot
        })
}

/// The content of `now` after the edits of `then`, an earlier snapshot of the same base, were merged in the store
/// directory.
///
/// # Panics
/// When the merge fails.
#[must_use]
#[allow(clippy::expect_used)]
pub fn merged(dir: &Path, then: &Snapshot, now: &Snapshot) -> Snapshot {
    if then.number() == then.base().number() {
        return now.clone();
    }
    let files = Directory::open(dir).expect("the store's folder");
    let (options, progress) = (MergeOptions::default(), Progress::default());
    let merging = Merging::write(dir, &files, then, &options, &progress).expect("a merge");
    merging.rebase(now).expect("a snapshot of the merged base")
}

/// A source of quads in memory; worker `w` of `n` delivers every `n`-th batch.
#[derive(Debug)]
pub struct QuadList<'a>(pub &'a [TermQuad]);

/// Quads per batch; small, so that small tests have several batches.
const BATCH: usize = 64;

impl QuadSource for QuadList<'_> {
    fn run(
        &self,
        worker: usize,
        workers: usize,
        sink: &mut dyn QuadSink,
        progress: &Progress,
    ) -> Result<()> {
        let mut batch = QuadBatch::default();
        for part in self.0.chunks(BATCH).skip(worker).step_by(workers) {
            batch.clear();
            for quad in part {
                batch.push_quad(quad.each_ref().map(Vec::as_slice));
            }
            sink.batch(&batch)?;
            progress.add(part.len() as u64, part.len() as u64);
        }
        Ok(())
    }
}

/// The canonical bytes of a quad.
#[must_use]
pub fn canonical(q: &Quad) -> TermQuad {
    let graph = match &q.graph_name {
        GraphName::DefaultGraph => vec![],
        GraphName::NamedNode(n) => term::encode(&n.clone().into()),
        GraphName::BlankNode(b) => term::encode(&b.clone().into()),
    };
    [
        term::encode(&q.subject.clone().into()),
        term::encode(&q.predicate.clone().into()),
        term::encode(&q.object),
        graph,
    ]
}

/// A store of these quads. Its files exist as long as the folder's handle is kept; the mapped base stays usable.
///
/// # Panics
/// When the load fails.
#[must_use]
pub fn store_of(quads: &[Quad]) -> (TempDir, Arc<Base>) {
    let terms: Vec<TermQuad> = quads.iter().map(canonical).collect();
    store_of_terms(&terms)
}

/// As [`store_of`], from canonical bytes.
///
/// # Panics
/// When the load fails.
#[must_use]
#[allow(clippy::expect_used)]
pub fn store_of_terms(quads: &[TermQuad]) -> (TempDir, Arc<Base>) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let dir = folder.path().join("store");
    let options = LoadOptions::default().with_memory(64 << 20).with_threads(2);
    load(&dir, &QuadList(quads), &options, &Progress::default()).expect("a load of small data");
    let base = open(&dir).expect("the store just loaded");
    (folder, base)
}

/// A few kilobytes of quads that use every kind of index and value column, for tests of damaged files.
#[must_use]
pub fn varied_quads() -> Vec<TermQuad> {
    let mut out = vec![];
    for i in 0..60u32 {
        let s = iri(&format!("http://e/s{i}"));
        let g = if i % 3 == 0 {
            iri(&format!("http://e/g{}", i % 4))
        } else {
            vec![]
        };
        out.push([
            s.clone(),
            term::rdf_type(),
            iri(&format!("http://e/C{}", i % 3)),
            g.clone(),
        ]);
        for j in 0..i % 7 {
            let p = iri(&format!("http://e/p{}", (i * j) % 11));
            out.push([
                s.clone(),
                p,
                iri(&format!("http://e/s{}", (i * 7 + j) % 60)),
                g.clone(),
            ]);
        }
        out.push([s, iri("http://e/n"), integer(i % 9), vec![]]);
    }
    out
}

/// Reads some data of every kind that queries read. The values do not matter; the test is that reading returns.
pub fn read_all(dir: &Path) {
    let _ = info(dir);
    let Ok(base) = open(dir) else { return };
    let d = base.dictionary();
    let mut buffer = vec![];
    for id in 0..200 {
        buffer.clear();
        d.term(VertexId(id), &mut buffer);
        let _ = d.lookup(&buffer);
        let _ = (
            d.lex(VertexId(id)),
            d.sort_key(VertexId(id)),
            d.kind(VertexId(id)),
        );
        let _ = d.numeric_value(VertexId(id));
        let _ = base.statistics().classes.get(&id);
    }
    let snapshot = Snapshot::of_base(base);
    let (mut keys, mut scratch, mut found) = (vec![], vec![], vec![]);
    for p in 0..snapshot.predicate_count() {
        for direction in [Direction::Out, Direction::In] {
            let view = snapshot.local_edges(PredicateId(p), direction);
            keys.clear();
            view.candidate_keys(GraphScope::Union, &mut keys);
            keys.truncate(300);
            keys.extend([0, 1, 77, u32::MAX]);
            view.default.finder.find_many(&keys, &mut found);
            for &key in &keys {
                view.read(key, GraphScope::Union, &mut scratch);
                view.read(key, GraphScope::AnyNamed, &mut scratch);
                let _ = view.contains(key, 5, GraphScope::Union);
                let _ = snapshot.predicates_of(key, direction);
                let _ = snapshot.class_intervals(VertexId(key));
            }
        }
    }
    for g in snapshot.named_graphs().iter().copied().take(20) {
        for p in snapshot.graph_predicates(g).into_iter().take(50) {
            snapshot.graph_subjects(g, PredicateId(p), &mut scratch);
        }
    }
}

/// All copies of a file in which one bit is changed, or which are cut.
pub fn damaged(good: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    (0..good.len()).flat_map(move |at| {
        let flipped = (0..8).map(move |bit| {
            let mut bad = good.to_vec();
            bad[at] ^= 1 << bit;
            bad
        });
        flipped.chain([good[..at].to_vec()])
    })
}

/// Makes checksums and manifest match the present files, so that damage is not noticed by hashes.
///
/// # Errors
/// [`Error`] when the store has no valid manifest or files cannot be read or written.
pub fn reseal(dir: &Path) -> Result<()> {
    let mut manifest = Manifest::of_store(dir)?;
    for f in &mut manifest.files {
        let path = dir.join(&f.0);
        f.1 = std::fs::metadata(&path)
            .map_err(|e| Error::io(path, e))?
            .len();
    }
    let sums = Checksums::compute(dir, &manifest.files, 1)?.to_bytes();
    manifest.checksums = xxh3_64(&sums);
    let write = |name: &str, bytes: &[u8]| {
        let path = dir.join(name);
        std::fs::write(&path, bytes).map_err(|e| Error::io(path, e))
    };
    write(CHECKSUMS, &sums)?;
    write(MANIFEST, manifest.to_text().as_bytes())
}
