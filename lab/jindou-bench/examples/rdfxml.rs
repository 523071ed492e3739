//! RDF/XML by `jindou-parse`'s reader and by `oxrdfxml`, in turns: `cargo run --release -p jindou-bench --example rdfxml -- FILE [ROUNDS]`.

use jindou_model::{Progress, QuadBatch, QuadSink, QuadSource, term};
use jindou_parse::{Format, Sources};
use oxrdfxml::RdfXmlParser;
use std::fs::File;
use std::hint::black_box;
use std::io::BufReader;
use std::time::Instant;

#[derive(Default)]
struct Count(u64);

impl QuadSink for Count {
    fn batch(&mut self, batch: &QuadBatch) -> jindou_model::Result<()> {
        self.0 += batch.quads.len() as u64;
        black_box(&batch.bytes);
        Ok(())
    }
}

fn ours(path: &str) -> jindou_model::Result<u64> {
    let sources = Sources::builder()
        .path(path)
        .format(Some(Format::RdfXml))
        .build()?;
    let mut count = Count::default();
    sources.run(0, 1, &mut count, &Progress::default())?;
    Ok(count.0)
}

/// The other parser, with its terms as canonical bytes: what a load needs of either.
fn other(path: &str) -> Result<u64, Box<dyn std::error::Error>> {
    let reader = BufReader::with_capacity(1 << 16, File::open(path)?);
    let parser = RdfXmlParser::new().with_base_iri("http://example.org/")?;
    let (mut count, mut bytes) = (0, Vec::new());
    for triple in parser.for_reader(reader) {
        let t = triple?;
        bytes.clear();
        term::push_term(&t.subject.into(), &mut bytes);
        term::push_term(&t.predicate.into(), &mut bytes);
        term::push_term(&t.object, &mut bytes);
        black_box(&bytes);
        count += 1;
    }
    Ok(count)
}

/// Processor seconds of this thread so far, or none where the system does not tell.
fn computed() -> Option<f64> {
    let said = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanos: u64 = said.split(' ').next()?.parse().ok()?;
    Some(nanos as f64 / 1e9)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let Some(path) = args.next() else {
        eprintln!("usage: rdfxml FILE [ROUNDS]");
        return Ok(());
    };
    let rounds: usize = args.next().and_then(|n| n.parse().ok()).unwrap_or(3);
    let size = std::fs::metadata(&path)?.len() as f64;
    for _ in 0..rounds {
        let mut took = [0.0; 2];
        for (n, took) in took.iter_mut().enumerate() {
            let (start, before) = (Instant::now(), computed());
            let count = if n == 0 { ours(&path)? } else { other(&path)? };
            let wall = start.elapsed().as_secs_f64();
            *took = computed().zip(before).map_or(wall, |(a, b)| a - b);
            let name = ["jindou-parse", "oxrdfxml"][n];
            println!(
                "{name}: {count} statements, {took:.2} s of a processor ({wall:.2} s), {:.0} MB/s",
                size / *took / 1e6
            );
        }
        println!("oxrdfxml / jindou-parse: {:.2}", took[1] / took[0]);
    }
    Ok(())
}
