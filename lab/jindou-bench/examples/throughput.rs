//! How fast files are parsed: `cargo run --release -p jindou-bench --example throughput -- FILE [WORKERS]`.

use jindou_model::{Progress, QuadBatch, QuadSink, QuadSource};
use jindou_parse::Sources;
use std::hint::black_box;
use std::time::Instant;

#[derive(Default)]
struct Count {
    quads: u64,
    batches: u64,
}

impl QuadSink for Count {
    fn batch(&mut self, batch: &QuadBatch) -> jindou_model::Result<()> {
        self.quads += batch.quads.len() as u64;
        self.batches += 1;
        black_box(&batch.bytes);
        Ok(())
    }
}

fn main() -> jindou_model::Result<()> {
    let mut args = std::env::args().skip(1);
    let Some(path) = args.next() else {
        eprintln!("usage: throughput FILE [WORKERS]");
        return Ok(());
    };
    let workers: usize = args.next().and_then(|n| n.parse().ok()).unwrap_or(1);
    let sources = Sources::builder().path(path).build()?;
    for _ in 0..3 {
        let progress = Progress::default();
        let start = Instant::now();
        let parts: Vec<_> = std::thread::scope(|scope| {
            let run = |w| {
                let (sources, progress) = (&sources, &progress);
                scope.spawn(move || {
                    let mut sink = Count::default();
                    sources.run(w, workers, &mut sink, progress).map(|()| sink)
                })
            };
            let threads: Vec<_> = (0..workers).map(run).collect();
            threads.into_iter().filter_map(|t| t.join().ok()).collect()
        });
        let seconds = start.elapsed().as_secs_f64();
        let (mut quads, mut batches) = (0, 0);
        for part in parts {
            let part = part?;
            quads += part.quads;
            batches += part.batches;
        }
        let bytes = sources.size_hint().unwrap_or(0) as f64;
        println!(
            "{quads} quads in {batches} batches, {seconds:.3} s: {:.0} MB/s, {:.2} M quads/s on {workers} worker(s)",
            bytes / seconds / 1e6,
            quads as f64 / seconds / 1e6,
        );
    }
    Ok(())
}
