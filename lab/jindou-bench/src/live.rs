//! `jindou bench live`: queries while the graph grows (OSDI '16 §7.5, Table 4). Parsed batches arrive at a steady rate
//! while L1 to L7 run. Their times are compared with those before the stream, those on the same store after a merge,
//! and those on a store loaded from all of the data.

use super::measure::{Times, run as run_query};
use super::merge;
use crate::args::BenchLive;
use crate::measure::{copy, threads_or_all};
use jindou::{
    Batch, Database, Error, LoadOptions, MergeOptions, Progress, QuadBatch, QuadSink, QuadSource,
    QueryOptions, Result, UpdateOptions,
};
use jindou_store::SnapshotQuads;
use jindou_workloads::lubm::Lubm;
use jindou_workloads::queries::lubm::QUERIES;
use serde_json::json;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A stream that falls this far behind its rate has failed to hold it.
const LATE: Duration = Duration::from_secs(1);

pub fn run(a: &BenchLive) -> Result<ExitCode> {
    let threads = threads_or_all(a.threads);
    let folder = tempfile::tempdir().map_err(|e| Error::io("a temporary folder", e))?;
    let store = folder.path().join("live");
    // Checked before the copy is made, since an error about the copy would name a path that users do not know.
    jindou_store::directory::current(&a.store)?;
    copy(&a.store, &store).map_err(|e| Error::io(&a.store, e))?;
    let live = merge::open(&store)?.0;
    let before = Database::of_snapshot(live.snapshot());
    let batches = batches(a)?;
    let sum: usize = batches.iter().map(|b| b.quads.len()).sum();
    println!(
        "{} universities, {} quads; {sum} triples come in batches of {} at {} triples/s",
        a.universities,
        live.snapshot().quads(),
        a.batch,
        a.rate
    );
    let mut counts = vec![1];
    counts.extend((threads > 1).then_some(threads));
    let idle = pass(a, &before, &counts, &|| true)?;
    let over = AtomicBool::new(false);
    let (busy, stream) = std::thread::scope(|scope| {
        let stream = scope.spawn(|| {
            let done = feed(a, &live, &batches);
            over.store(true, Ordering::Relaxed);
            done
        });
        let busy = pass(a, &live, &counts, &|| !over.load(Ordering::Relaxed));
        let stream = stream
            .join()
            .map_err(|_| Error::Internal("the stream".into()));
        (busy, stream)
    });
    let (busy, stream) = (busy?, stream??);
    if over.load(Ordering::Relaxed) && stream.late > LATE {
        println!(
            "the stream fell {:.1} s behind its rate",
            stream.late.as_secs_f64()
        );
    }
    println!(
        "{} triples came in {:.1} s: {:.0} k/s; a batch took {:.2} ms (median), {:.2} ms (99 %)",
        stream.triples,
        stream.seconds,
        stream.triples as f64 / stream.seconds / 1e3,
        stream.times.median(),
        stream.times.quantile(0.99)
    );
    let dir = folder.path().join("loaded");
    let quads = SnapshotQuads::new(live.snapshot().clone());
    let options = LoadOptions::default().with_threads(threads);
    Database::load(&dir, &quads, &options, &Progress::default())?;
    let loaded = pass(a, &Database::open(&dir)?, &counts, &|| true)?;
    let last = pass(a, &live, &counts, &|| true)?;
    let options = MergeOptions::default().with_threads(threads);
    let report = live.merge(&options, &Progress::default())?;
    println!("{report}");
    let merged = pass(a, &live, &counts, &|| true)?;

    let passes = Passes {
        idle,
        busy,
        merged,
        loaded,
        last,
    };
    let mut document = json!({ "triples": stream.triples, "rate": a.rate, "batch": a.batch });
    passes.print(&mut document)?;
    for threads in counts {
        passes.print_means(threads);
    }
    if let Some(to) = &a.json {
        std::fs::write(to, format!("{document:#}\n")).map_err(|e| Error::io(to, e))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Times of the queries at each stage.
struct Passes {
    /// Before the stream.
    idle: Vec<One>,
    /// While the stream came.
    busy: Vec<One>,
    /// After the stream: in the store when merged, and (`loaded`) in a store that was loaded from all data.
    merged: Vec<One>,
    loaded: Vec<One>,
    /// After the stream, before the merge.
    last: Vec<One>,
}

impl Passes {
    /// Prints the times of each query, and checks that all stores have the same answers.
    fn print(&self, document: &mut serde_json::Value) -> Result<()> {
        println!(
            "query threads   before ms   live ms   merged ms   loaded ms   live / merged   live / loaded   rows then"
        );
        let before = self.idle.iter().zip(&self.busy);
        let after = self.merged.iter().zip(&self.loaded).zip(&self.last);
        for ((b, l), ((m, f), end)) in before.zip(after) {
            if end.rows != m.rows || end.rows != f.rows {
                return Err(Error::Internal(format!(
                    "{}: {} rows live, {} merged, {} loaded",
                    l.name, end.rows, m.rows, f.rows
                )));
            }
            println!(
                "{:<5} {:>7} {:>11.3} {:>9.3} {:>11.3} {:>11.3} {:>15.2} {:>15.2} {:>11}",
                l.name,
                l.threads,
                b.times.median(),
                l.times.median(),
                m.times.median(),
                f.times.median(),
                l.times.median() / m.times.median(),
                l.times.median() / f.times.median(),
                end.rows
            );
            document["queries"][l.name][l.threads.to_string()] = json!({ "before_ms": b.times.median(), "live_ms": l.times.median(), "merged_ms": m.times.median(), "loaded_ms": f.times.median(), "runs": l.runs });
        }
        Ok(())
    }

    /// Prints the geometric means of the times with this many threads.
    fn print_means(&self, threads: usize) {
        let of = |list: &[One]| {
            let logs: Vec<f64> = list
                .iter()
                .filter(|o| o.threads == threads)
                .map(|o| o.times.median().ln())
                .collect();
            (logs.iter().sum::<f64>() / logs.len().max(1) as f64).exp()
        };
        println!(
            "geometric mean, threads {threads}: before {:.3} ms, live {:.3} ms, merged {:.3} ms, loaded {:.3} ms: live / merged {:.3}, live / loaded {:.3}",
            of(&self.idle),
            of(&self.busy),
            of(&self.merged),
            of(&self.loaded),
            of(&self.busy) / of(&self.merged),
            of(&self.busy) / of(&self.loaded)
        );
    }
}

/// A query's results with this number of threads.
struct One {
    name: &'static str,
    threads: usize,
    times: Times,
    runs: usize,
    rows: u64,
}

/// Runs the queries in turn while `goes_on` returns true, so that each query meets all stages of the stream.
fn pass(
    a: &BenchLive,
    db: &Database,
    counts: &[usize],
    goes_on: &dyn Fn() -> bool,
) -> Result<Vec<One>> {
    let queries: Vec<_> = QUERIES.iter().filter(|q| q.name.starts_with('L')).collect();
    let mut times = vec![vec![]; queries.len() * counts.len()];
    let mut rows = vec![0; times.len()];
    let end = Instant::now() + a.time;
    let mut first = true;
    while first || (Instant::now() < end && goes_on()) {
        for (i, q) in queries.iter().enumerate() {
            for (j, &threads) in counts.iter().enumerate() {
                let options = QueryOptions::default().with_threads(threads);
                let plan = db.plan(q.text, &options)?;
                let start = Instant::now();
                let seen = run_query(db, &plan, &options)?;
                let took = start.elapsed();
                rows[i * counts.len() + j] = seen.rows;
                // The first round fills the caches and is not counted.
                if !first {
                    times[i * counts.len() + j].push(took);
                }
            }
        }
        first = false;
    }
    let mut out = vec![];
    for (at, times) in times.into_iter().enumerate() {
        out.push(One {
            name: queries[at / counts.len()].name,
            threads: counts[at % counts.len()],
            runs: times.len(),
            times: Times::new(times),
            rows: rows[at],
        });
    }
    Ok(out)
}

struct Streamed {
    triples: usize,
    seconds: f64,
    late: Duration,
    times: Times,
}

/// Applies the batches, each in one transaction, at the rate asked for.
fn feed(a: &BenchLive, db: &Database, batches: &[QuadBatch]) -> Result<Streamed> {
    let options = UpdateOptions::default().with_threads(1);
    let start = Instant::now();
    let (mut triples, mut late, mut times) = (0, Duration::ZERO, vec![]);
    for b in batches {
        let due = Duration::from_secs_f64(triples as f64 / a.rate as f64);
        match due.checked_sub(start.elapsed()) {
            Some(wait) => std::thread::sleep(wait),
            None => late = late.max(start.elapsed() - due),
        }
        let begun = Instant::now();
        let mut batch = Batch::new();
        batch.insert_all(b);
        db.apply(&batch, &options)?;
        times.push(begun.elapsed());
        triples += b.quads.len();
    }
    Ok(Streamed {
        triples,
        seconds: start.elapsed().as_secs_f64(),
        late,
        times: Times::new(times),
    })
}

/// Batches of the universities that follow those of the store, as many as the stream's time needs.
fn batches(a: &BenchLive) -> Result<Vec<QuadBatch>> {
    struct Cut {
        skip: usize,
        size: usize,
        most: usize,
        sum: usize,
        now: QuadBatch,
        out: Vec<QuadBatch>,
    }
    impl QuadSink for Cut {
        fn batch(&mut self, batch: &QuadBatch) -> Result<()> {
            if self.skip > 0 {
                self.skip -= 1;
                return Ok(());
            }
            for q in &batch.quads {
                if self.sum >= self.most {
                    return Ok(());
                }
                let quad = q.map(|span| match span.len {
                    0 => span,
                    _ => self.now.push_term(batch.term(span)),
                });
                self.now.quads.push(quad);
                self.sum += 1;
                if self.now.quads.len() == self.size {
                    self.out.push(std::mem::take(&mut self.now));
                }
            }
            Ok(())
        }
    }
    let most = (a.rate as f64 * a.time.as_secs_f64()) as usize;
    // A university has some 130,000 triples.
    let more = (most / 100_000) as u32 + 2;
    let lubm = Lubm::new(a.universities + more, 0);
    let mut cut = Cut {
        skip: (0..a.universities)
            .map(|u| lubm.departments(u) as usize)
            .sum(),
        size: a.batch.max(1),
        most,
        sum: 0,
        now: QuadBatch::default(),
        out: vec![],
    };
    lubm.run(0, 1, &mut cut, &Progress::default())?;
    let last = std::mem::take(&mut cut.now);
    if !last.quads.is_empty() {
        cut.out.push(last);
    }
    Ok(cut.out)
}
