//! Table 2 and figures 14, 16 and 21: LUBM.

use super::super::measure::{Times, resident_memory, run};
use super::cost::cost;
use super::fit;
use super::published::{FIGURE_14, FIGURE_16, FIGURE_21, HARDWARE, TABLE_2, UNIVERSITIES};
use super::sheet::{Cell, Sheet, geometric_mean};
use super::stores::Stores;
use jindou::{Database, QueryOptions, Result};
use jindou_graph::segment::FinderKind;
use jindou_workloads::queries::lubm::{LubmQuery, QUERIES};
use std::path::Path;
use std::time::Instant;

/// The seven queries that the paper runs.
fn queries() -> &'static [LubmQuery] {
    &QUERIES[..7]
}

/// True for the queries of group (I) of §7.4, whose results grow with the data.
fn is_heavy(name: &str) -> bool {
    !matches!(name, "L4" | "L5" | "L6")
}

fn options(threads: usize) -> QueryOptions {
    QueryOptions::default().with_threads(threads)
}

/// Notes an error if the query's number of rows is known and differs.
fn checked(sheet: &mut Sheet, q: &LubmQuery, universities: u32, rows: u64) {
    match q.rows(universities) {
        Some(want) if want != rows => sheet.wrong.push(format!(
            "{} on LUBM-{universities}: {rows} rows, {want} are right",
            q.name
        )),
        Some(_) => {}
        None => sheet.notes.push(format!(
            "{}: no count of LUBM-{universities} is published, {rows} rows",
            q.name
        )),
    }
}

/// Adds a note if the data has another size than the paper's.
fn other_size(sheet: &mut Sheet, universities: u32) {
    if universities != UNIVERSITIES {
        sheet.notes.push(format!(
            "the paper's columns are LUBM-{UNIVERSITIES}, ours LUBM-{universities}, so they cannot be compared; run with -n {UNIVERSITIES}"
        ));
    }
}

pub fn table_2(dir: &Path, universities: u32, threads: usize, repeat: usize) -> Result<Sheet> {
    let mut columns = vec![
        "query", "rows", "exec ms", "min", "max", "plan ms", "whole ms",
    ];
    columns.extend(TABLE_2.systems);
    let mut sheet = Sheet::new(
        format!(
            "Table 2 ({}): one server, {}, milliseconds. Ours: LUBM-{universities}, {threads} threads",
            TABLE_2.section, TABLE_2.data
        ),
        &columns,
    );
    let db = Database::open(dir)?;
    let (mut exec, mut whole) = (Vec::new(), Vec::new());
    for q in queries() {
        let c = cost(&db, q.text, &options(threads), repeat)?;
        checked(&mut sheet, q, universities, c.seen.rows);
        exec.push(c.exec.median());
        whole.push(c.whole.median());
        let mut row: Vec<Cell> = vec![
            q.name.into(),
            c.seen.rows.into(),
            c.exec.median().into(),
            c.exec.min().into(),
            c.exec.max().into(),
            c.plan.median().into(),
            c.whole.median().into(),
        ];
        let paper = TABLE_2.row(q.name).unwrap_or(&[]);
        row.extend(paper.iter().map(|&x| x.into()));
        sheet.rows.push(row);
    }
    let mut mean: Vec<Cell> = vec!["Geo. M".into(), Cell::None, geometric_mean(exec).into()];
    mean.extend([
        Cell::None,
        Cell::None,
        Cell::None,
        geometric_mean(whole).into(),
    ]);
    mean.extend(TABLE_2.mean.iter().map(|&x| x.into()));
    sheet.rows.push(mean);
    other_size(&mut sheet, universities);
    sheet.notes.push(
        "exec: every binding found, nothing decoded: what the paper times; whole: text to the last byte of TSV, plan not cached"
            .into(),
    );
    Ok(sheet)
}

/// 1, 2, 4 … below `most`, then `most`.
fn thread_counts(most: usize) -> Vec<usize> {
    let mut out: Vec<usize> = std::iter::successors(Some(1), |t| Some(t * 2))
        .take_while(|&t| t < most)
        .collect();
    out.push(most.max(1));
    out
}

pub fn figure_14(dir: &Path, universities: u32, most: usize, repeat: usize) -> Result<Sheet> {
    let counts = thread_counts(most);
    let mut columns = vec!["query".to_owned()];
    columns.extend(
        counts
            .iter()
            .map(|t| format!("{t} {} ms", if *t == 1 { "thread" } else { "threads" })),
    );
    columns.push("speed-up".into());
    columns.push("of minima".into());
    let names: Vec<&str> = columns.iter().map(String::as_str).collect();
    let mut sheet = Sheet::new(
        format!("Figure 14 (§7.4): latency by number of threads, LUBM-{universities}, exec ms"),
        &names,
    );
    let db = Database::open(dir)?;
    for q in queries() {
        let plan = db.plan(q.text, &options(1))?;
        let first = run(&db, &plan, &options(1))?;
        checked(&mut sheet, q, universities, first.rows);
        // A run of a light query is as short as the clock's resolution, so more runs are made.
        let repeat = repeat.max(1) * if is_heavy(q.name) { 1 } else { 20 };
        let mut times = vec![Vec::new(); counts.len()];
        for _ in 0..repeat {
            // In turn, so that changes in the machine's speed affect all alike.
            for (t, out) in counts.iter().zip(&mut times) {
                let options = options(*t);
                let start = Instant::now();
                let again = run(&db, &plan, &options)?;
                out.push(start.elapsed());
                if again != first {
                    sheet
                        .wrong
                        .push(format!("{} gives another answer with {t} threads", q.name));
                }
            }
        }
        let times: Vec<Times> = times.into_iter().map(Times::new).collect();
        let (one, all) = (&times[0], &times[times.len() - 1]);
        let mut row: Vec<Cell> = vec![q.name.into()];
        row.extend(times.iter().map(|t| Cell::from(t.median())));
        row.push((one.median() / all.median()).into());
        row.push((one.min() / all.min()).into());
        sheet.rows.push(row);
    }
    sheet
        .notes
        .push(format!("paper, LUBM-10240, six servers: {FIGURE_14}"));
    sheet.notes.push(
        "speed-up: from one thread to the most, of medians and of minima; a busy machine shows in the first".into(),
    );
    sheet.notes.push(
        "threads are what a query may take at most: the engine gives light ones a single thread"
            .into(),
    );
    if counts.len() == 1 {
        sheet
            .notes
            .push("one core only: no speed-up to see here".into());
    }
    Ok(sheet)
}

/// Sizes with known answers: those of the paper (from 40 on) and the sizes between them.
const STEPS: [u32; 11] = [1, 5, 10, 20, 40, 160, 320, 640, 1_280, 2_560, 10_240];

/// The steps below `largest`, from the paper's smallest size on if `largest` is beyond 160; then `largest` itself.
fn sizes(largest: u32) -> Vec<u32> {
    let first = if largest > 160 { 40 } else { 1 };
    let steps = STEPS.into_iter();
    let mut out: Vec<u32> = steps.filter(|&n| n >= first && n < largest).collect();
    out.push(largest);
    out
}

pub fn figure_16(stores: &Stores, largest: u32, threads: usize, repeat: usize) -> Result<Sheet> {
    let mut left_out = Vec::new();
    let (mut done, mut triples) = (Vec::new(), Vec::new());
    let mut times: Vec<Vec<f64>> = vec![Vec::new(); queries().len()];
    let mut rows: Vec<Vec<u64>> = times.iter().map(|_| Vec::new()).collect();
    let mut checks = Sheet::default();
    for n in sizes(largest) {
        if let Some(why) = stores.too_large(n) {
            left_out.push(why);
            continue;
        }
        let dir = stores.lubm(n)?;
        triples.push(Database::info(&dir)?.quads as f64);
        done.push(n);
        let db = Database::open(&dir)?;
        for (i, q) in queries().iter().enumerate() {
            let c = cost(&db, q.text, &options(threads), repeat)?;
            checked(&mut checks, q, n, c.seen.rows);
            times[i].push(c.exec.median());
            rows[i].push(c.seen.rows);
        }
        drop(db);
        // The largest store is needed by the other figures.
        if n != largest {
            stores.done_with(&dir);
        }
    }
    let mut columns = vec!["query".to_owned()];
    columns.extend(done.iter().map(|n| format!("LUBM-{n}")));
    columns
        .extend(["slope of time", "± (standard error)", "slope of rows", "so"].map(str::to_owned));
    let names: Vec<&str> = columns.iter().map(String::as_str).collect();
    let mut sheet = Sheet::new(
        format!("Figure 16 (§7.4): latency by data size, {threads} threads, exec ms"),
        &names,
    );
    for (i, q) in queries().iter().enumerate() {
        let slope = fit::slope(&triples, &times[i]);
        // A size with an empty answer has no logarithm, so such a query has no slope.
        let counts: Vec<f64> = rows[i].iter().map(|&r| r as f64).collect();
        let of_rows = fit::slope(&triples, &counts);
        let mut row: Vec<Cell> = vec![q.name.into()];
        row.extend(times[i].iter().map(|&t| Cell::from(t)));
        row.push(slope.map(|s| s.slope).into());
        row.push(slope.and_then(|s| s.error).into());
        row.push(of_rows.map(|s| s.slope).into());
        row.push(slope.map_or("-", |s| fit::verdict(s.slope)).into());
        sheet.rows.push(row);
    }
    sheet.notes = checks.notes;
    sheet.wrong = checks.wrong;
    sheet.notes.push(
        "slopes: least squares of log time (log rows) on log triples: 0 is constant, 1 linear; under 0.15 is called constant"
            .into(),
    );
    sheet.notes.push(
        "sizes are measured one after another, so the slopes include variations of the machine; short times grow with cache misses too"
            .into(),
    );
    sheet.notes.push(format!("paper, six servers: {FIGURE_16}"));
    sheet.notes.extend(left_out);
    Ok(sheet)
}

pub fn figure_21(dir: &Path, universities: u32, threads: usize) -> Result<Sheet> {
    let mut sheet = Sheet::new(
        format!("Figure 21(a) (§7.6): memory by part, LUBM-{universities}"),
        &["part", "bytes", "GB (10^9)", "bytes a triple"],
    );
    let info = Database::info(dir)?;
    let db = Database::open(dir)?;
    for q in queries() {
        let plan = db.plan(q.text, &options(threads))?;
        let seen = run(&db, &plan, &options(threads))?;
        checked(&mut sheet, q, universities, seen.rows);
    }
    let (own, mapped) = resident_memory();
    let of_parts = |wanted: &dyn Fn(&str) -> bool| -> u64 {
        let parts = info.parts.iter().filter(|p| wanted(&p.0));
        parts.map(|p| p.1).sum()
    };
    let is_string = |p: &str| matches!(p, "dictionary: strings" | "dictionary: string offsets");
    let strings = of_parts(&is_string);
    let dictionary = of_parts(&|p| p.starts_with("dictionary: ") && !is_string(p));
    let index = of_parts(&|p| p.starts_with("index: "));
    let statistics = of_parts(&|p| p == "statistics");
    let mut add = |part: &str, bytes: u64| {
        sheet.rows.push(vec![
            part.into(),
            bytes.into(),
            (bytes as f64 / 1e9).into(),
            (bytes as f64 / info.quads.max(1) as f64).into(),
        ]);
    };
    add("strings", strings);
    add("dictionary (ids, hash, values)", dictionary);
    let mut graph = index + statistics;
    for (direction, name) in ["out", "in"].into_iter().enumerate() {
        for kind in [
            FinderKind::Intervals,
            FinderKind::Bitmap,
            FinderKind::Directory,
        ] {
            let of_kind = || {
                let all = info.predicates.iter();
                all.filter(|p| p.finders[direction] == kind)
            };
            let bytes: u64 = of_kind().map(|p| p.bytes[direction]).sum();
            graph += bytes;
            add(
                &format!("segments {name}: {} by {}", of_kind().count(), kind.name()),
                bytes,
            );
        }
    }
    add("index (sets, classes, graphs)", index);
    add("statistics", statistics);
    let counted = strings + dictionary + graph;
    add("heads, padding", info.bytes.saturating_sub(counted));
    if !db.snapshot().is_patched() {
        add("patch (nothing was updated)", 0);
    }
    add("= all files", info.bytes);
    add("= without strings and dictionary", graph);
    add("resident after L1-L7: own", own);
    add("resident after L1-L7: mapped files", mapped);
    for (system, gb) in FIGURE_21 {
        sheet.rows.push(vec![
            format!("paper, LUBM-2560: {system}").as_str().into(),
            Cell::None,
            gb.into(),
            Cell::None,
        ]);
    }
    other_size(&mut sheet, universities);
    sheet.notes.push(
        "the paper's systems had their strings on a server of its own (§7.1): compare them with the graph, without strings and dictionary"
            .into(),
    );
    sheet.notes.push(format!(
        "the paper's machine: {HARDWARE}; its six-server breakdown, figure 21(b), has no counterpart here"
    ));
    Ok(sheet)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_end_with_what_was_asked_for() {
        assert_eq!(sizes(2560), [40, 160, 320, 640, 1280, 2560]);
        assert_eq!(sizes(200), [40, 160, 200]);
        assert_eq!(sizes(40), [1, 5, 10, 20, 40]);
        assert_eq!(sizes(1), [1]);
        assert_eq!(thread_counts(1), [1]);
        assert_eq!(thread_counts(2), [1, 2]);
        assert_eq!(thread_counts(12), [1, 2, 4, 8, 12]);
    }
}
