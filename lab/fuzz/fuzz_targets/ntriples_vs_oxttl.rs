//! Our tokeniser of N-Triples and N-Quads and `oxttl` must accept the same texts and read the same
//! terms from them. The first byte chooses the format.
#![no_main]

use jindou_model::{Progress, QuadBatch, QuadSink, QuadSource, term};
use jindou_parse::{Format, Sources};
use libfuzzer_sys::fuzz_target;
use oxrdf::{GraphName, Quad};

#[derive(Default)]
struct Collect(Vec<[Vec<u8>; 4]>);

impl QuadSink for Collect {
    fn batch(&mut self, batch: &QuadBatch) -> jindou_model::Result<()> {
        for quad in &batch.quads {
            self.0.push(quad.map(|span| batch.term(span).to_vec()));
        }
        Ok(())
    }
}

fn encode(q: &Quad) -> [Vec<u8>; 4] {
    let graph = match &q.graph_name {
        GraphName::DefaultGraph => Vec::new(),
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

fuzz_target!(|data: &[u8]| {
    let Some((&choice, text)) = data.split_first() else { return };
    // Labels that look like ours are renamed, and nesting is bounded: both by design.
    if text.windows(3).filter(|w| w == b"<<(").count() >= 64 || text.windows(3).any(|w| w == b"_:d") {
        return;
    }
    let quads = choice & 1 == 1;
    let theirs: Result<Vec<_>, _> = if quads {
        oxttl::NQuadsParser::new().for_slice(text).map(|q| q.map(|q| encode(&q))).collect()
    } else {
        oxttl::NTriplesParser::new()
            .for_slice(text)
            .map(|t| t.map(|t| encode(&t.in_graph(GraphName::DefaultGraph))))
            .collect()
    };
    let format = if quads { Format::NQuads } else { Format::NTriples };
    let sources = Sources::builder().text("fuzz", text.to_vec(), format).build().unwrap();
    let mut ours = Collect::default();
    match (sources.run(0, 1, &mut ours, &Progress::default()), theirs) {
        (Ok(()), Ok(theirs)) => assert_eq!(ours.0, theirs),
        (Err(_), Err(_)) => {}
        (Ok(()), Err(e)) => panic!("we accept what oxttl refuses: {e}"),
        // Text that starts like a compressed file is decompressed, which is an error of its own.
        (Err(e @ jindou_model::Error::Io { .. }), Ok(_)) => drop(e),
        (Err(e), Ok(_)) => panic!("we refuse what oxttl accepts: {e}"),
    }
});
