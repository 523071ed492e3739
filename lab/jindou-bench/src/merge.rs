//! `jindou bench merge`: costs and gains of merging. A copy of a store is changed, merged and opened again, and queries
//! are timed at each stage.

use super::measure::{Times, cpu_time, run as run_query, temporary_folder};
use super::updates::Draw;
use crate::args::BenchMerge;
use crate::measure::{copy, threads_or_all};
use jindou::{
    Access, Batch, Database, Durability, Error, MergeOptions, OpenOptions, Progress, QueryOptions,
    Result, UpdateOptions, decode_term,
};
use jindou_model::{PredicateId, VertexId};
use jindou_store::Snapshot;
use jindou_workloads::queries::lubm::QUERIES;
use oxrdf::{GraphNameRef, NamedNode, NamedOrBlankNode, QuadRef, Term};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

pub fn run(a: &BenchMerge) -> Result<ExitCode> {
    let folder = temporary_folder(None)?;
    let store = folder.path().join("store");
    // Checked before the copy is made, since an error about the copy would name a path that users do not know.
    jindou_store::directory::current(&a.store)?;
    copy(&a.store, &store).map_err(|e| Error::io(&a.store, e))?;
    let options = UpdateOptions::default().with_threads(threads_or_all(a.threads));
    let db = open(&store)?.0;
    let plain = db.snapshot();
    let mut columns = vec![("loaded", ask(a, &db)?)];
    let mut draw = Draw::new(&plain);
    let begun = Instant::now();
    let mut asked = 0;
    while asked < a.edits {
        let mut batch = Batch::new();
        for _ in 0..a.batch.max(1).min(a.edits - asked) {
            push(&mut draw, &plain, &mut batch);
        }
        asked += a.batch.max(1);
        db.apply(&batch, &options)?;
    }
    let seconds = begun.elapsed().as_secs_f64();
    let edited = db.snapshot();
    println!(
        "{} quads, {} edits in transactions of {} ({:.0} k/s); {:.1} MB of memory over the base",
        edited.quads(),
        edited.edit_count(),
        a.batch,
        a.edits as f64 / seconds / 1e3,
        edited.delta_bytes() as f64 / 1e6
    );
    columns.push(("edited", ask(a, &db)?));
    let want = edited.quads();
    drop((plain, edited, db));

    let (db, replayed) = open(&store)?;
    columns.push(("opened", ask(a, &db)?));
    let log = db.log_status().map_or(0, |s| s.bytes);
    let cpu = cpu_time();
    let report = db.merge(
        &MergeOptions::default()
            .with_memory(1 << 30)
            .with_threads(threads_or_all(a.threads)),
        &Progress::default(),
    )?;
    let cpu = (cpu_time() - cpu).as_secs_f64();
    println!("{report}");
    println!(
        "{:.0} MB/s, {:.0} MB for each second of processor time, {:.2} M edges/s",
        report.bytes as f64 / report.time.as_secs_f64() / 1e6,
        report.bytes as f64 / cpu / 1e6,
        report.edges as f64 / report.time.as_secs_f64() / 1e6
    );
    println!(
        "memory over the base {:.1} MB, log {} bytes before, {} after",
        db.snapshot().delta_bytes() as f64 / 1e6,
        log,
        db.log_status().map_or(0, |s| s.bytes)
    );
    columns.push(("merged", ask(a, &db)?));
    drop(db);
    let (db, at_once) = open(&store)?;
    columns.push(("opened again", ask(a, &db)?));
    if db.snapshot().quads() != want {
        return Err(Error::Internal(format!(
            "{} quads after merging, {want} before",
            db.snapshot().quads()
        )));
    }
    println!(
        "opening: {:.1} ms with the log, {:.1} ms merged",
        replayed.as_secs_f64() * 1e3,
        at_once.as_secs_f64() * 1e3
    );
    let names: Vec<&str> = columns.iter().map(|c| c.0).collect();
    println!("query (ms of processor time) {names:>14?}");
    for (i, (name, rows, _)) in columns[0].1.iter().enumerate() {
        let times: Vec<String> = columns
            .iter()
            .map(|c| format!("{:>14.3}", c.1[i].2))
            .collect();
        // The changes change the answers; merging and opening again must not.
        let edited = columns[1].1[i].1;
        if columns[2..].iter().any(|c| c.1[i].1 != edited) {
            return Err(Error::Internal(format!("{name}: other rows after merging")));
        }
        println!("{name:<8} {rows:>9} {edited:>9} {}", times.join(" "));
    }
    Ok(ExitCode::SUCCESS)
}

/// Opens a store directory for writing, and returns how long that took.
pub(super) fn open(store: &Path) -> Result<(Database, Duration)> {
    let begun = Instant::now();
    let options = OpenOptions::default()
        .with_access(Access::Write)
        .with_durability(Durability::None);
    let db = Database::open_with(store, &options)?;
    Ok((db, begun.elapsed()))
}

/// Adds one random change to the batch.
pub(super) fn push(draw: &mut Draw, plain: &Snapshot, batch: &mut Batch) {
    let Some(drawn) = draw.next(plain) else {
        return;
    };
    let term = |v: u32| -> Option<Term> {
        let mut bytes = Vec::new();
        plain.term(VertexId(v), &mut bytes).then_some(())?;
        decode_term(&bytes)
    };
    let subject: Option<NamedOrBlankNode> = match &drawn.new {
        Some(name) => Some(NamedNode::new_unchecked(name.as_str()).into()),
        None => match term(drawn.subject) {
            Some(Term::NamedNode(n)) => Some(n.into()),
            Some(Term::BlankNode(b)) => Some(b.into()),
            _ => None,
        },
    };
    let predicate = term(plain.vertex_of(PredicateId(drawn.predicate)).0);
    let (Some(s), Some(Term::NamedNode(p)), Some(o)) = (subject, predicate, term(drawn.object))
    else {
        return;
    };
    let quad = QuadRef::new(&s, &p, &o, GraphNameRef::DefaultGraph);
    if drawn.insert {
        batch.insert(quad);
    } else {
        batch.remove(quad);
    }
}

/// Name, rows, and median milliseconds of processor time of each query.
fn ask(a: &BenchMerge, db: &Database) -> Result<Vec<(&'static str, u64, f64)>> {
    let options = QueryOptions::default().with_threads(1);
    let mut out = Vec::new();
    for query in QUERIES {
        let plan = db.plan(query.text, &options)?;
        let mut times = Vec::new();
        let mut rows = 0;
        for _ in 0..a.repeat.max(1) {
            let begun = cpu_time();
            rows = run_query(db, &plan, &options)?.rows;
            times.push(cpu_time().saturating_sub(begun));
        }
        out.push((query.name, rows, Times::new(times).median()));
    }
    Ok(out)
}
