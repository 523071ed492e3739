//! Small stores for the tests of other rooms, through the real load.

use crate::{Base, LoadOptions, load, open};
use jindou_model::{Progress, QuadBatch, QuadSink, QuadSource, Result, Span, term};
use oxrdf::{GraphName, Quad};
use std::sync::Arc;
use tempfile::TempDir;

/// Quads as canonical bytes (`jindou_model::term`): subject, predicate, object, graph (empty = default).
pub type TermQuad = [Vec<u8>; 4];

/// A source over quads in memory; worker `w` of `n` delivers every `n`-th batch.
#[derive(Debug)]
pub struct QuadList<'a>(pub &'a [TermQuad]);

/// Quads a batch; small, so that small tests have several.
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
                let spans = quad.each_ref().map(|t| {
                    if t.is_empty() {
                        Span::default()
                    } else {
                        batch.push_term(t)
                    }
                });
                batch.quads.push(spans);
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

/// A store of these quads. It lives in the folder as long as that is kept, and in memory as long as the
/// base is.
///
/// # Panics
/// When the load fails: this is for tests.
#[must_use]
pub fn store_of(quads: &[Quad]) -> (TempDir, Arc<Base>) {
    let terms: Vec<TermQuad> = quads.iter().map(canonical).collect();
    store_of_terms(&terms)
}

/// As [`store_of`], from canonical bytes.
///
/// # Panics
/// When the load fails: this is for tests.
#[must_use]
#[allow(clippy::expect_used)]
pub fn store_of_terms(quads: &[TermQuad]) -> (TempDir, Arc<Base>) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let dir = folder.path().join("store");
    let options = LoadOptions {
        memory: 64 << 20,
        threads: 2,
        ..LoadOptions::default()
    };
    load(&dir, &QuadList(quads), &options, &Progress::default()).expect("a load of small data");
    let base = open(&dir).expect("the store just loaded");
    (folder, base)
}
