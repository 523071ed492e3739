//! `jindou bench updates`: measures the cost of changes to a live store, and how they slow its readers.
//!
//! Transactions make snapshots in memory, and no log is written. Queries run on the edited store and, in turn, on a
//! store that was loaded from the edited store's quads, so that changes in the machine's speed affect both alike.

use super::lookup::Random;
use super::measure::{Times, cpu_time, run as run_query, temporary_folder, write_json};
use crate::args::BenchUpdates;
use crate::measure::threads_or_all;
use jindou::{
    Database, Error, LoadOptions, Progress, QuadBatch, QuadSink, QuadSource, QueryOptions, Result,
};
use jindou_model::{Direction, PredicateId};
use jindou_store::{ChangeTerm, Changes, Snapshot, SnapshotQuads};
use jindou_workloads::lubm::Lubm;
use jindou_workloads::queries::lubm::QUERIES;
use serde_json::json;
use std::process::ExitCode;
use std::time::Instant;

/// Changes per transaction while the store is edited.
const BATCH: usize = 1_000;
/// Number of transactions of one quad that are timed.
const SINGLE: usize = 5_000;

pub fn run(a: &BenchUpdates) -> Result<ExitCode> {
    let threads = threads_or_all(a.threads);
    let plain = Snapshot::of_base(jindou_store::open(&a.store)?);
    let mut document = json!({});
    if let Some(universities) = a.universities {
        for size in &a.batches {
            let r = ingest(&plain, universities, a.more, *size, threads)?;
            println!(
                "{} triples in transactions of {}: {:.2} M triples/s ({:.2} M for each second of processor time; {:.0} % of it waiting for collected terms), {:.1} bytes a triple, records {:.1} bytes a triple",
                r.triples,
                size,
                r.triples as f64 / r.seconds / 1e6,
                r.triples as f64 / r.cpu / 1e6,
                100.0 * r.waiting / r.seconds,
                r.bytes,
                r.record_bytes
            );
            document["ingest"][size.to_string()] = json!({ "triples": r.triples, "seconds": r.seconds, "cpu_seconds": r.cpu, "bytes_a_triple": r.bytes });
        }
    }
    if a.edits > 0 {
        let edited = edit(&plain, a.edits, threads, &mut document)?;
        compare(a, &edited, threads, &mut document)?;
    }
    if let Some(to) = &a.json {
        write_json(to, &document)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A sink that keeps the batches after the first `skip`.
struct Keep {
    skip: usize,
    batches: Vec<QuadBatch>,
}

impl QuadSink for Keep {
    fn batch(&mut self, batch: &QuadBatch) -> Result<()> {
        if self.skip > 0 {
            self.skip -= 1;
            return Ok(());
        }
        self.batches.push(QuadBatch {
            bytes: batch.bytes.clone(),
            quads: batch.quads.clone(),
        });
        Ok(())
    }
}

struct Ingested {
    triples: usize,
    seconds: f64,
    cpu: f64,
    waiting: f64,
    bytes: f64,
    record_bytes: f64,
}

/// Adds the universities that follow those of the store, from parsed batches.
fn ingest(
    plain: &Snapshot,
    universities: u32,
    more: u32,
    size: usize,
    threads: usize,
) -> Result<Ingested> {
    let lubm = Lubm::new(universities + more, 0);
    let mut keep = Keep {
        skip: (0..universities)
            .map(|u| lubm.departments(u) as usize)
            .sum(),
        batches: vec![],
    };
    lubm.run(0, 1, &mut keep, &Progress::default())?;
    let triples = keep.batches.iter().map(|b| b.quads.len()).sum();
    let mut now = plain.clone();
    let (mut record_bytes, mut waiting) = (0, 0.0);
    let (start, cpu) = (Instant::now(), cpu_time());
    std::thread::scope(|scope| -> Result<()> {
        let batches = &keep.batches;
        // One thread collects the changes that the other applies.
        let (send, ready) = std::sync::mpsc::sync_channel::<Changes>(1);
        scope.spawn(move || {
            let mut changes = Changes::new();
            for (i, batch) in batches.iter().enumerate() {
                for q in &batch.quads {
                    let [s, p, o, g] = q.map(|span| ChangeTerm::Bytes(batch.term(span)));
                    changes.insert(s, p, o, (q[3].len > 0).then_some(g));
                }
                if changes.len() >= size || i + 1 == batches.len() {
                    // The receiver is dropped only after an error, which it reports.
                    let _ = send.send(std::mem::take(&mut changes));
                }
            }
        });
        loop {
            let begin = Instant::now();
            let Ok(changes) = ready.recv() else { break };
            waiting += begin.elapsed().as_secs_f64();
            let applied = now.apply(&changes, threads)?;
            record_bytes += applied.record.len();
            now = applied.snapshot;
        }
        Ok(())
    })?;
    let seconds = start.elapsed().as_secs_f64();
    let cpu = (cpu_time() - cpu).as_secs_f64();
    let edits = now.edit_count().max(1) as f64;
    Ok(Ingested {
        triples,
        seconds,
        cpu,
        waiting,
        bytes: now.delta_bytes() as f64 / edits,
        record_bytes: record_bytes as f64 / edits,
    })
}

/// Draws random changes: half of them inserts, half removals. Half concern `rdf:type` and predicates with one value per
/// subject; a tenth have a new subject.
pub(super) struct Draw {
    random: Random,
    one_valued: Vec<u32>,
    all: Vec<u32>,
    made: usize,
}

/// One change.
pub(super) struct Drawn {
    /// The name of a new subject, used instead of `subject`.
    pub new: Option<String>,
    pub subject: u32,
    pub predicate: u32,
    pub object: u32,
    pub insert: bool,
}

impl Draw {
    pub(super) fn new(plain: &Snapshot) -> Self {
        let s = plain.statistics();
        let all: Vec<u32> = (0..s.predicates.len() as u32).collect();
        let edges = |p: u32| {
            let edges = plain.edges(PredicateId(p), Direction::Out);
            edges.here().map_or(0, |view| view.default.edge_count())
        };
        // Each predicate occurs about in proportion to its edges.
        let weighted = |list: Vec<u32>| -> Vec<u32> {
            let sum: u64 = list.iter().map(|&p| edges(p)).sum();
            list.into_iter()
                .flat_map(|p| {
                    let times = edges(p) * 1000 / sum.max(1);
                    std::iter::repeat_n(p, times as usize)
                })
                .collect()
        };
        let one = |p: &u32| {
            Some(*p) == s.rdf_type
                || s.predicates
                    .get(*p as usize)
                    .is_some_and(|x| x.max_out == 1)
        };
        Self {
            random: Random(11),
            one_valued: weighted(all.iter().copied().filter(one).collect()),
            all: weighted(all),
            made: 0,
        }
    }

    /// A random edge of the predicate `p` in the base store.
    fn edge(&mut self, plain: &Snapshot, p: u32) -> Option<(u32, u32)> {
        let edges = plain.edges(PredicateId(p), Direction::Out);
        let segment = edges.here()?.default;
        let k = self.random.below(u64::from(segment.key_count)) as u32;
        let mut key = vec![];
        segment.keys_into(k, k + 1, &mut key);
        let list = segment.list(k);
        let o = list.get(self.random.below(list.len() as u64) as usize)?;
        Some((*key.first()?, *o))
    }

    pub(super) fn next(&mut self, plain: &Snapshot) -> Option<Drawn> {
        self.made += 1;
        let list = if self.made.is_multiple_of(2) || self.one_valued.is_empty() {
            &self.all
        } else {
            &self.one_valued
        };
        let &p = list.get(self.random.below(list.len() as u64) as usize)?;
        let (s, o) = self.edge(plain, p)?;
        let mut drawn = Drawn {
            new: None,
            subject: s,
            predicate: p,
            object: o,
            insert: true,
        };
        if self.random.below(10) == 0 {
            drawn.new = Some(format!("http://example.org/new/{}", self.made));
        } else if self.random.below(9) < 5 {
            drawn.insert = false;
        } else {
            drawn.object = self.edge(plain, p)?.1;
        }
        Some(drawn)
    }

    fn push(&mut self, plain: &Snapshot, changes: &mut Changes) {
        let Some(drawn) = self.next(plain) else {
            return;
        };
        let name = drawn.new.map(|n| format!("<{n}"));
        let subject = match &name {
            Some(name) => ChangeTerm::Bytes(name.as_bytes()),
            None => ChangeTerm::Id(drawn.subject),
        };
        let predicate = ChangeTerm::Id(plain.vertex_of(PredicateId(drawn.predicate)).0);
        let object = ChangeTerm::Id(drawn.object);
        if drawn.insert {
            changes.insert(subject, predicate, object, None);
        } else {
            changes.remove(subject, predicate, object, None);
        }
    }
}

fn edit(
    plain: &Snapshot,
    edits: usize,
    threads: usize,
    document: &mut serde_json::Value,
) -> Result<Snapshot> {
    let mut draw = Draw::new(plain);
    let mut now = plain.clone();
    let start = Instant::now();
    let mut asked = 0;
    while asked < edits {
        let mut changes = Changes::new();
        for _ in 0..BATCH.min(edits - asked) {
            draw.push(plain, &mut changes);
        }
        asked += BATCH;
        now = now.apply(&changes, threads)?.snapshot;
    }
    let seconds = start.elapsed().as_secs_f64();
    let count = now.edit_count();
    let bytes = now.delta_bytes() as f64 / count.max(1) as f64;
    let mut times = vec![];
    for _ in 0..SINGLE {
        let mut changes = Changes::new();
        draw.push(plain, &mut changes);
        let start = Instant::now();
        let next = now.apply(&changes, 1)?.snapshot;
        times.push(start.elapsed());
        now = next;
    }
    let times = Times::new(times);
    println!(
        "{edits} random changes in transactions of {BATCH}: {:.0} k/s; {count} edits, {bytes:.1} bytes each; one more quad: median {:.1} µs, 99 % {:.1} µs",
        edits as f64 / seconds / 1e3,
        times.median() * 1e3,
        times.quantile(0.99) * 1e3,
    );
    document["edits"] = json!({ "edits": count, "bytes_each": bytes, "single_us": times.median() * 1e3, "single_us_99": times.quantile(0.99) * 1e3 });
    Ok(now)
}

fn compare(
    a: &BenchUpdates,
    edited: &Snapshot,
    threads: usize,
    document: &mut serde_json::Value,
) -> Result<()> {
    let folder = temporary_folder(None)?;
    let dir = folder.path().join("merged");
    let options = LoadOptions::default().with_threads(threads);
    let quads = SnapshotQuads::new(edited.clone());
    Database::load(&dir, &quads, &options, &Progress::default())?;
    let merged = Database::open(&dir)?;
    let loaded = merged.snapshot().statistics().quads;
    if loaded != edited.quads() {
        return Err(Error::Internal(format!(
            "the edited store counts {} quads, reading them gave {loaded}",
            edited.quads()
        )));
    }
    let base = Database::of_snapshot(Snapshot::of_base(edited.base().clone()));
    let edited = Database::of_snapshot(edited.clone());
    let options = QueryOptions::default().with_threads(1);
    println!(
        "query       rows    merged ms    edited ms   ratio   planned ms, edited (queries: processor time)"
    );
    let counted = [(
        "count",
        "SELECT (COUNT(*) AS ?n) { ?s <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> ?o }",
    )];
    let all = QUERIES.iter().map(|q| (q.name, q.text)).chain(counted);
    for (name, text) in all {
        let plans = [&merged, &edited, &base].map(|db| db.plan(text, &options));
        let [of_merged, of_edited, of_base] = plans;
        let (of_merged, of_edited, of_base) = (of_merged?, of_edited?, of_base?);
        let (mut times, mut planning) = ([vec![], vec![], vec![]], vec![]);
        let mut rows = [0; 2];
        for _ in 0..a.repeat.max(1) {
            let dbs = [
                (&merged, &of_merged),
                (&edited, &of_edited),
                (&base, &of_base),
            ];
            for (i, (db, plan)) in dbs.into_iter().enumerate() {
                // Processor time, since other processes affect it least.
                let start = cpu_time();
                let seen = run_query(db, plan, &options)?;
                times[i].push(cpu_time().saturating_sub(start));
                if let Some(r) = rows.get_mut(i) {
                    *r = seen.rows;
                }
            }
            let start = Instant::now();
            std::hint::black_box(edited.plan_uncached(text, &options)?);
            planning.push(start.elapsed());
        }
        if rows[0] != rows[1] {
            return Err(Error::Internal(format!(
                "{name}: {} rows edited, {} merged",
                rows[1], rows[0]
            )));
        }
        let [m, e, b] = times.map(|t| Times::new(t).median());
        let planning = Times::new(planning).median();
        println!(
            "{name:<8} {:>8} {m:>12.3} {e:>12.3} {:>7.2} {planning:>10.3}   (before the edits {b:.3})",
            rows[0],
            e / m
        );
        document["queries"][name] = json!({ "rows": rows[0], "merged_ms": m, "edited_ms": e, "ratio": e / m, "plan_ms": planning });
    }
    Ok(())
}
