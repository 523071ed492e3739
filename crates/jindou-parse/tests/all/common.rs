//! Shared test helpers: collecting quads as `oxrdf` terms.

use jindou_model::{Error, Progress, QuadBatch, QuadSink, QuadSource, term};
use jindou_parse::{Format, Sources};
use oxrdf::{GraphName, NamedOrBlankNode, Quad, Term};

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
            let graph = if g.len == 0 {
                GraphName::DefaultGraph
            } else {
                node(decode(*g)).into()
            };
            self.0
                .push(Quad::new(node(decode(*s)), p, decode(*o), graph));
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
                    sources
                        .run(w, workers, &mut sink, progress)
                        .map(|()| sink.0)
                })
            })
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    let mut all = Vec::new();
    for part in parts {
        all.extend(part?);
    }
    if let Some(size) = sources.size_hint()
        && sources.skipped() == 0
    {
        assert_eq!(
            progress.done.load(std::sync::atomic::Ordering::Relaxed),
            size
        );
    }
    assert_eq!(
        progress.quads.load(std::sync::atomic::Ordering::Relaxed),
        all.len() as u64
    );
    Ok(all)
}

pub fn parse(text: &[u8], format: Format) -> Result<Vec<Quad>, Error> {
    collect(
        &Sources::builder()
            .text("text", text.to_vec(), format)
            .build()?,
    )
}

/// A random number generator (SplitMix64) whose numbers are the same in each run.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        jindou_model::random::splitmix64(&mut self.0)
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}
