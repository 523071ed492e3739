//! `jindou bench operators`: measures single operators over rows of known shape, compared with a lower bound of their
//! cost (the floor).
//!
//! The floor is the processor time to produce the operator's input alone, plus that to copy the ids of its input and
//! output once at this machine's speed. Processor time is used since other processes affect it least. Each answer is
//! compared with that of another query. With `--beside duckdb`, comparisons also run in DuckDB over tables of the same
//! rows. With `--only overview`, other questions are asked ([`overview`]).

mod beside;
mod check;
mod overview;
mod questions;

use super::measure::{Times, cpu_time, run as checksum};
use crate::args::BenchOperators;
use crate::measure::{threads_or_all, write_json};
use beside::{Beside, DuckDb};
use jindou::{Database, Error, PlannedQuery, QueryOptions, Result};
use questions::{LUBM, Question, Questions, WATDIV};
use serde_json::json;
use std::process::ExitCode;
use std::time::Instant;

/// Bytes of the block that is copied to measure the machine's speed.
const BLOCK: usize = 64 << 20;
const ID: u64 = 4;

/// Number of rows, and of the ids in them.
#[derive(Clone, Copy, Default)]
struct Moved {
    rows: u64,
    ids: u64,
}

struct Line {
    question: &'static Question,
    exec: Times,
    /// Processor time, all threads together.
    cpu: Times,
    /// Milliseconds of processor time to produce the inputs alone.
    input_ms: f64,
    input: Moved,
    output: Moved,
    floor_ms: f64,
    /// Times of DuckDB, if it was asked.
    beside: Option<Beside>,
    fault: Option<String>,
}

impl Line {
    fn given_up(question: &'static Question, why: &Error) -> Self {
        Self {
            question,
            exec: Times::default(),
            cpu: Times::default(),
            input_ms: f64::NAN,
            input: Moved::default(),
            output: Moved::default(),
            floor_ms: f64::NAN,
            beside: None,
            fault: Some(why.to_string()),
        }
    }

    fn ms(&self) -> f64 {
        self.exec.median()
    }

    /// Nanoseconds of processor time per row of the input or of the output, whichever has more rows.
    fn ns_a_row(&self) -> f64 {
        self.cpu.median() * 1e6 / self.input.rows.max(self.output.rows).max(1) as f64
    }

    /// Millions of rows per second, if this many rows were processed.
    fn speed(&self, rows: u64) -> f64 {
        rows as f64 / 1e3 / self.ms().max(1e-6)
    }

    fn over_floor(&self) -> f64 {
        self.cpu.median() / self.floor_ms.max(1e-6)
    }
}

pub fn run(a: &BenchOperators) -> Result<ExitCode> {
    let threads = threads_or_all(a.threads);
    let db = Database::open(&a.store)?;
    let options = QueryOptions::default()
        .with_threads(threads)
        .with_timeout(a.timeout);
    let mut set = None;
    for s in [&*LUBM, &*WATDIV] {
        let text = format!("{}{}", s.prefixes, s.is_there);
        let there = db.plan(&text, &options)?;
        if checksum(&db, &there, &options)?.rows > 0 {
            set = Some(s);
        }
    }
    let Some(set) = set else {
        return Err(Error::Usage(format!(
            "{} holds neither LUBM nor WatDiv, which the questions are about; `jindou bench lubm -n 160 --store DIR` \
             makes a store",
            a.store.display()
        )));
    };
    if set.data == LUBM.data && a.only.iter().any(|o| o.eq_ignore_ascii_case("overview")) {
        return overview::run(a, &db, set);
    }
    let wanted = |q: &Question| {
        let name = format!("{}: {}", q.operator, q.name).to_ascii_lowercase();
        a.only.is_empty()
            || a.only
                .iter()
                .any(|o| name.contains(&o.to_ascii_lowercase()))
    };
    let duckdb = match &a.duckdb {
        Some(engines) => Some(DuckDb::new(engines, threads, a.timeout)?),
        None => None,
    };
    let copy = copy_speed();
    let mut lines = vec![];
    for q in set.list.iter().filter(|q| wanted(q)) {
        lines.push(
            match line(&db, set, q, &options, a, (copy, duckdb.as_ref())) {
                // A question that exceeds a limit is reported as a line with the reason.
                Err(e @ (Error::Timeout(_) | Error::Limit(_))) => Line::given_up(q, &e),
                other => other?,
            },
        );
        if a.json.is_none()
            && let Some(l) = lines.last()
        {
            if lines.len() == 1 {
                head(&db, set, threads, copy);
            }
            print(l, a.no_check);
        }
    }
    if let Some(to) = &a.json {
        let value = json!({
            "data": set.data, "threads": threads, "triples": db.snapshot().statistics().quads,
            "copy_bytes_a_second": copy, "checked": !a.no_check,
            "questions": lines.iter().map(as_json).collect::<Vec<_>>(),
        });
        write_json(to, &value)?;
    }
    let wrong: Vec<&Line> = lines.iter().filter(|l| l.fault.is_some()).collect();
    for l in &wrong {
        eprintln!(
            "NO RIGHT ANSWER {}: {}: {}",
            l.question.operator,
            l.question.name,
            l.fault.as_deref().unwrap_or("")
        );
    }
    Ok(if wrong.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(3)
    })
}

/// Bytes per second that one thread copies in memory.
fn copy_speed() -> f64 {
    let from = vec![1u8; BLOCK];
    let mut to = vec![0u8; BLOCK];
    let times = Times::new((0..9).map(|_| {
        let start = cpu_time();
        std::hint::black_box(&mut to).copy_from_slice(std::hint::black_box(&from));
        cpu_time().saturating_sub(start)
    }));
    BLOCK as f64 / (times.median() / 1e3)
}

fn columns(query: &PlannedQuery) -> u64 {
    query.plan().output.len() as u64
}

fn line(
    db: &Database,
    set: &Questions,
    q: &'static Question,
    options: &QueryOptions,
    a: &BenchOperators,
    (copy, duckdb): (f64, Option<&DuckDb>),
) -> Result<Line> {
    let plan = |text: &str| db.plan(&format!("{}{text}", set.prefixes), options);
    let whole = plan(q.text)?;
    let inputs = q
        .inputs
        .iter()
        .map(|t| plan(t))
        .collect::<Result<Vec<_>>>()?;
    let (mut input, mut output) = (Moved::default(), Moved::default());
    // Only numbers of rows are compared between runs, since ids that a query creates may differ.
    for p in &inputs {
        let rows = checksum(db, p, options)?.rows;
        input.rows += rows;
        input.ids += rows * columns(p);
    }
    output.rows = checksum(db, &whole, options)?.rows;
    output.ids = output.rows * columns(&whole);
    let (mut exec, mut cpu) = (vec![], vec![]);
    let mut alone = vec![vec![]; inputs.len()];
    // In turn, so that changes in the machine's speed affect all alike.
    for _ in 0..a.repeat.max(1) {
        for (p, times) in inputs.iter().zip(&mut alone) {
            let start = cpu_time();
            checksum(db, p, options)?;
            times.push(cpu_time().saturating_sub(start));
        }
        let (start, cpu_start) = (Instant::now(), cpu_time());
        let rows = checksum(db, &whole, options)?.rows;
        exec.push(start.elapsed());
        cpu.push(cpu_time().saturating_sub(cpu_start));
        if rows != output.rows {
            return Err(Error::Internal(format!(
                "two runs of one query differ: {} rows, then {rows}: {}",
                output.rows, q.text
            )));
        }
    }
    let input_ms: f64 = alone.into_iter().map(|t| Times::new(t).median()).sum();
    let floor_ms = input_ms + ((input.ids + output.ids) * ID) as f64 / copy * 1e3;
    let mut fault = if a.no_check {
        None
    } else {
        check::fault(db, set, q.text, q.check, options)?
    };
    let beside = match duckdb {
        // A timeout of DuckDB is reported in the table and does not end this program.
        Some(duckdb) => match duckdb.ask(db, set, q, options, a.repeat) {
            Err(Error::Timeout(_)) => Some(Beside {
                given_up: true,
                ..Beside::default()
            }),
            other => other?,
        },
        None => None,
    };
    if let Some(b) = beside
        .as_ref()
        .filter(|b| !b.given_up && b.rows != output.rows)
    {
        let differs = format!("{} rows, DuckDB gives {}", output.rows, b.rows);
        fault.get_or_insert(differs);
    }
    Ok(Line {
        question: q,
        exec: Times::new(exec),
        cpu: Times::new(cpu),
        input_ms,
        input,
        output,
        floor_ms,
        beside,
        fault,
    })
}

fn head(db: &Database, set: &Questions, threads: usize, copy: f64) {
    println!(
        "{}: {} triples, {threads} threads; one thread copies {:.1} GB/s",
        set.data,
        db.snapshot().statistics().quads,
        copy / 1e9
    );
    println!(
        "operator                                        rows in   rows out        ms    cpu ms   M/s in  M/s out   ns/row  floor ms  x floor  answer"
    );
}

fn print(l: &Line, unchecked: bool) {
    let verdict = match &l.fault {
        Some(_) if l.ms().is_nan() => "GIVEN UP",
        Some(_) => "WRONG",
        None if unchecked => "not checked",
        None => "right",
    };
    let beside = l.beside.as_ref().map_or(String::new(), |b| {
        if b.given_up {
            return "; DuckDB given up".into();
        }
        let (ms, cpu) = (b.exec.median(), b.cpu.median());
        format!("; DuckDB {ms:.2} ms, cpu {cpu:.2} ms")
    });
    println!(
        "{:<44} {:>10} {:>10} {:>9.2} {:>9.2} {:>8.1} {:>8.1} {:>8.1} {:>9.2} {:>8.1}  {verdict}{beside}",
        format!("{}: {}", l.question.operator, l.question.name),
        l.input.rows,
        l.output.rows,
        l.ms(),
        l.cpu.median(),
        l.speed(l.input.rows),
        l.speed(l.output.rows),
        l.ns_a_row(),
        l.floor_ms,
        l.over_floor(),
    );
}

fn as_json(l: &Line) -> serde_json::Value {
    let ran = l.beside.as_ref().filter(|b| !b.given_up);
    json!({
        "operator": l.question.operator, "name": l.question.name, "query": l.question.text,
        "rows_in": l.input.rows, "rows_out": l.output.rows,
        "ms": l.ms(), "cpu_ms": l.cpu.median(), "min_ms": l.exec.min(), "max_ms": l.exec.max(),
        "rows_in_a_second": l.speed(l.input.rows) * 1e6, "rows_out_a_second": l.speed(l.output.rows) * 1e6,
        "ns_a_row": l.ns_a_row(), "input_ms": l.input_ms, "floor_ms": l.floor_ms, "over_floor": l.over_floor(),
        "duckdb_ms": ran.map(|b| b.exec.median()),
        "duckdb_cpu_ms": ran.map(|b| b.cpu.median()),
        "fault": l.fault,
    })
}
