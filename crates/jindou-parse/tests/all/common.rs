//! Shared test helpers: collecting quads as `oxrdf` terms.

use jindou_model::{Error, Progress, QuadBatch, QuadSink, QuadSource, term};
use jindou_parse::{Format, Sources};
use oxrdf::dataset::CanonicalizationAlgorithm;
use oxrdf::{Dataset, GraphName, NamedOrBlankNode, Quad, Term};
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A sink that decodes and collects quads.
#[derive(Default)]
pub struct Collect(pub Vec<Quad>);

impl QuadSink for Collect {
    fn batch(&mut self, batch: &QuadBatch) -> jindou_model::Result<()> {
        for [s, p, o, g] in &batch.quads {
            let decode = |span| term::decode(batch.term(span)).expect("canonical bytes");
            let node = |t| match t {
                Term::NamedNode(n) => NamedOrBlankNode::from(n),
                Term::BlankNode(b) => b.into(),
                other => panic!("not a node: {other}"),
            };
            let Term::NamedNode(p) = decode(*p) else {
                panic!("predicate is not an IRI")
            };
            let graph = match g.len {
                0 => GraphName::DefaultGraph,
                _ => node(decode(*g)).into(),
            };
            let quad = Quad::new(node(decode(*s)), p, decode(*o), graph);
            self.0.push(quad);
        }
        Ok(())
    }
}

pub fn collect(sources: &Sources) -> Result<Vec<Quad>, Error> {
    let mut sink = Collect::default();
    sources.run(0, 1, &mut sink, &Progress::default())?;
    Ok(sink.0)
}

/// Runs the source on several threads at once.
pub fn collect_on(sources: &Sources, workers: usize) -> Result<Vec<Quad>, Error> {
    let progress = Progress::default();
    let parts: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..workers)
            .map(|w| {
                let progress = &progress;
                scope.spawn(move || {
                    let mut sink = Collect::default();
                    let ran = sources.run(w, workers, &mut sink, progress);
                    ran.map(|()| sink.0)
                })
            })
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    let mut all = Vec::new();
    for part in parts {
        all.extend(part?);
    }
    let [done, quads] = [&progress.done, &progress.quads].map(|n| n.load(Ordering::Relaxed));
    if let Some(size) = sources.size_hint()
        && sources.skipped() == 0
    {
        assert_eq!(done, size);
    }
    assert_eq!(quads, all.len() as u64);
    Ok(all)
}

pub fn parse(text: &[u8], format: Format) -> Result<Vec<Quad>, Error> {
    let sources = Sources::builder().text("text", text, format);
    collect(&sources.build()?)
}

/// A document with a base IRI.
pub fn based(text: &[u8], format: Format, base: &str) -> Sources {
    let sources = Sources::builder().text("text", text, format);
    sources.base_iri(Some(base.to_owned())).build().unwrap()
}

/// The quads with canonical labels of blank nodes.
pub fn canonical(quads: &[Quad]) -> Dataset {
    let mut dataset: Dataset = quads.iter().collect();
    dataset.canonicalize(CanonicalizationAlgorithm::Unstable);
    dataset
}

/// A document that is read leniently.
pub fn lenient(text: impl Into<Arc<[u8]>>, format: Format) -> Sources {
    let sources = Sources::builder().text("text", text, format);
    sources.lenient(true).build().unwrap()
}

/// Compresses bytes in the format with this extension.
pub fn compress(kind: &str, bytes: &[u8]) -> Vec<u8> {
    let written = match kind {
        "gz" => {
            let mut e = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            e.write_all(bytes).and_then(|()| e.finish())
        }
        "bz2" => {
            let mut e = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
            e.write_all(bytes).and_then(|()| e.finish())
        }
        "xz" => {
            let mut e = liblzma::write::XzEncoder::new(Vec::new(), 1);
            e.write_all(bytes).and_then(|()| e.finish())
        }
        _ => zstd::encode_all(bytes, 1),
    };
    written.unwrap()
}
