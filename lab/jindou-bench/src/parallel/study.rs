//! The study itself: classifies the queries, then runs each model.

use super::build::{Parts, parts};
use super::data::{How, Prepared, Round, estimate, prepare};
use super::decompose::Rules;
use super::fit::{Line, mean_and_deviation};
use super::processes::{WorkerProcesses, unexpected};
use super::report;
use super::task::{self, Pass, Right};
use super::wire::Message;
use super::worker::{options, size_of_answer};
use super::workload::{Query, Workload};
use crate::args::parallel::{BenchParallel, Gather, Partition};
use crate::measure::{bytes_in, median};
use jindou::{Database, Error, Result};
use std::path::Path;

/// A query with its answer's size, footprint and serial times.
pub struct Classified {
    pub query: Query,
    /// Rows and bytes of the right answer to each text.
    pub right: Vec<Right>,
    /// Bytes of the store's files that its first text accesses.
    pub touched: u64,
    pub is_large: bool,
    /// Median seconds of its first text on one worker, with warm files.
    pub warm: f64,
    pub cold: Option<f64>,
    /// Processor time divided by elapsed time.
    pub processor: f64,
}

/// Results of one query on one partition.
pub struct Asked {
    pub name: String,
    pub is_large: bool,
    pub parts: usize,
    pub rows: u64,
    /// Bytes of ids that the workers return in one round, or of text if the query is a single part.
    pub bytes: u64,
    /// Matches of its BGPs in the whole graph; `naive` counts those that the paper's form finds.
    pub matches: u64,
    pub naive: u64,
}

/// Number of runs for the serial time of one query.
const RUNS: usize = 5;
/// Number of passes over a pool, of which the median counts.
const PASSES: usize = 3;

/// Computes the right answers on the whole store in this process, and measures footprints and serial times in a worker.
pub fn classify(workload: &Workload, a: &BenchParallel) -> Result<Vec<Classified>> {
    let mut out = vec![];
    {
        let db = Database::open(&workload.store)?;
        let options = options();
        for query in &workload.queries {
            let right = query
                .texts
                .iter()
                .map(|t| size_of_answer(&db, t, &options))
                .collect::<Result<Vec<Right>>>()?;
            if let Some(rows) = query.rows
                && right[0].0 != rows
            {
                return Err(Error::external(format!(
                    "{}: {} rows, {rows} are right",
                    query.name, right[0].0
                )));
            }
            out.push(Classified {
                query: query.clone(),
                right,
                touched: 0,
                is_large: false,
                warm: 0.0,
                cold: None,
                processor: 0.0,
            });
        }
        // The database is closed before any cold run, since pages that this process has mapped would stay in memory.
    }
    let bytes = bytes_in(&workload.store);
    let mut processes = task::processes(workload, 1)?;
    let queries = out.iter().map(|q| q.query.texts[0].clone()).collect();
    processes.tell(0, &Message::Touch { queries })?;
    let touched = match processes.hear(0)? {
        Message::Touched(t) => t,
        m => return Err(unexpected(0, &m)),
    };
    for (q, touched) in out.iter_mut().zip(touched) {
        q.touched = touched;
        q.is_large = touched as f64 >= a.large * bytes as f64;
        let pool = [q.query.texts[0].as_str(); RUNS];
        let right = [q.right[0]; RUNS];
        let pass = task::serial(&mut processes, &pool, &right, false)?;
        q.warm = median(pass.ran.iter().map(|r| r.wall as f64 / 1e9));
        q.processor = pass.processor_share();
        if a.cold_rounds > 0 {
            let n = a.cold_rounds.min(RUNS);
            let cold = task::serial(&mut processes, &pool[..n], &right[..n], true)?;
            q.cold = Some(median(cold.ran.iter().map(|r| r.wall as f64 / 1e9)));
        }
    }
    report::footprints(&out, bytes, a.large);
    Ok(out)
}

/// Runs the models ST and LT: task parallelism with queries of small and large footprint.
pub fn tasks(
    workload: &Workload,
    queries: &[Classified],
    a: &BenchParallel,
    lines: &mut Vec<Line>,
) -> Result<()> {
    for (cold, times) in [(false, &a.times), (true, &a.cold_times)] {
        for (large, model) in [(false, "ST"), (true, "LT")] {
            let times = times.get(usize::from(large)).copied().unwrap_or(0);
            let (pool, right) = pool(queries, large, times);
            if pool.is_empty() {
                continue;
            }
            let passes = if cold {
                cold_passes(workload, a, &pool, &right)?
            } else {
                warm_passes(workload, a, &pool, &right)?
            };
            let serial = passes[0].seconds;
            for pass in &passes[1..] {
                let workers = pass.tasks.len();
                lines.push(Line {
                    model,
                    cold,
                    way: String::new(),
                    workers: workers as u32,
                    serial,
                    seconds: pass.seconds,
                    compute: pass.compute() / workers as f64,
                    master: pass.master,
                    balance: mean_and_deviation(pass.tasks.iter().map(|&t| t as f64)),
                    processor: pass.processor_share(),
                });
            }
        }
    }
    Ok(())
}

/// All texts of the small or of the large queries, repeated `times` times, as in the paper.
fn pool(queries: &[Classified], large: bool, times: usize) -> (Vec<&str>, Vec<Right>) {
    let of_class = || queries.iter().filter(|q| q.is_large == large);
    let mut pool = vec![];
    let mut right = vec![];
    for _ in 0..times {
        for q in of_class() {
            pool.extend(q.query.texts.iter().map(String::as_str));
            right.extend(&q.right);
        }
    }
    (pool, right)
}

/// Passes on one worker that gets all queries at once, then on each number of workers. The passes of different numbers
/// take turns; each result is the median, without the first pass.
fn warm_passes(
    workload: &Workload,
    a: &BenchParallel,
    pool: &[&str],
    right: &[Right],
) -> Result<Vec<Pass>> {
    let mut alone = task::processes(workload, 1)?;
    let mut crews = a
        .workers
        .iter()
        .map(|&w| task::processes(workload, w))
        .collect::<Result<Vec<WorkerProcesses>>>()?;
    // Every worker runs every query once before the passes that count.
    let mut distinct: Vec<String> = pool.iter().map(|q| (*q).to_owned()).collect();
    distinct.sort();
    distinct.dedup();
    for processes in crews.iter_mut().chain([&mut alone]) {
        for worker in 0..processes.len() {
            let queries = distinct.clone();
            processes.tell(
                worker,
                &Message::Run {
                    cold: false,
                    queries,
                },
            )?;
            processes.hear(worker)?;
        }
    }
    let mut all: Vec<Vec<Pass>> = vec![vec![]; crews.len() + 1];
    for _ in 0..PASSES {
        all[0].push(task::serial(&mut alone, pool, right, false)?);
        for (processes, passes) in crews.iter_mut().zip(&mut all[1..]) {
            passes.push(task::parallel(processes, pool, right, false)?);
        }
    }
    Ok(middles(all, |pass| pass.seconds))
}

/// The same passes with cold files, each once. No other worker processes run meanwhile, since they would keep pages in
/// memory.
fn cold_passes(
    workload: &Workload,
    a: &BenchParallel,
    pool: &[&str],
    right: &[Right],
) -> Result<Vec<Pass>> {
    let mut out = vec![task::serial(
        &mut task::processes(workload, 1)?,
        pool,
        right,
        true,
    )?];
    for &w in &a.workers {
        out.push(task::parallel(
            &mut task::processes(workload, w)?,
            pool,
            right,
            true,
        )?);
    }
    Ok(out)
}

/// Runs the models SD and LD: data parallelism with queries of small and large footprint.
pub fn data(
    workload: &Workload,
    queries: &[Classified],
    work: &Path,
    a: &BenchParallel,
    lines: &mut Vec<Line>,
) -> Result<()> {
    let db = Database::open(&workload.store)?;
    let mut alone = task::processes(workload, 1)?;
    for &how in &a.partition {
        let hops: &[u32] = match how {
            Partition::Hash => &[0],
            _ => &a.hops,
        };
        for &hops in hops {
            for &workers in &a.workers {
                let parts = parts(&db, work, how, workers, hops)?;
                report::partition(&parts);
                let asked = one_partition(&db, queries, &parts, a, &mut alone, lines)?;
                if Some(&workers) == a.workers.last() {
                    report::asked(&asked);
                }
            }
        }
    }
    Ok(())
}

fn ways(a: &BenchParallel) -> Vec<Gather> {
    match a.gather {
        Gather::Both => vec![Gather::Point, Gather::Tree],
        one => vec![one],
    }
}

fn one_partition(
    db: &Database,
    queries: &[Classified],
    parts: &Parts,
    a: &BenchParallel,
    alone: &mut WorkerProcesses,
    lines: &mut Vec<Line>,
) -> Result<Vec<Asked>> {
    let rules = Rules::new(parts);
    let mut processes = WorkerProcesses::start(parts.workers)?;
    processes.open(parts.stores())?;
    let mut asked = vec![];
    let mut ready: Vec<(&Classified, Prepared)> = vec![];
    for q in queries {
        let text = &q.query.texts[0];
        let prepared = match prepare(text, &rules, |part| estimate(db, part)) {
            Err(Error::Unsupported(why)) => {
                println!("{}: not asked of partitions: {why}", q.query.name);
                continue;
            }
            p => p?,
        };
        let right = prepared.right(db, text)?;
        let checked = How {
            check: true,
            ..How::default()
        };
        let round = prepared.round(db, &mut processes, checked)?;
        // Which rows a LIMIT without ORDER BY returns is undefined, so only their number is compared.
        let upper = text.to_ascii_uppercase();
        let is_open = upper.contains("LIMIT") && !upper.contains("ORDER BY");
        if round.answer.0 != right.0 || !is_open && round.answer != right {
            return Err(unequal(q, parts, round.answer.0, right.0));
        }
        let (matches, naive) = prepared.missed(db, &mut processes)?;
        asked.push(Asked {
            name: q.query.name.clone(),
            is_large: q.is_large,
            parts: prepared.parts(),
            rows: right.0,
            bytes: round.bytes,
            matches,
            naive,
        });
        ready.push((q, prepared));
    }
    for (cold, rounds) in [(false, a.rounds), (true, a.cold_rounds)] {
        for (large, model) in [(false, "SD"), (true, "LD")] {
            let mine: Vec<_> = ready.iter().filter(|r| r.0.is_large == large).collect();
            if mine.is_empty() || rounds == 0 {
                continue;
            }
            let mut serial = 0.0;
            // For each way of gathering, each query's round of median time.
            let mut of_way: Vec<Vec<Round>> = vec![vec![]; ways(a).len()];
            for (q, prepared) in &mine {
                let (alone_took, took) =
                    measure(db, q, prepared, (&mut processes, alone), a, cold)?;
                serial += alone_took;
                for (round, list) in took.into_iter().zip(&mut of_way) {
                    let right = q.right[0];
                    if round.answer.0 != right.0 || prepared.is_pattern() && round.answer != right {
                        return Err(unequal(q, parts, round.answer.0, q.right[0].0));
                    }
                    list.push(round);
                }
            }
            for (way, rounds) in ways(a).iter().zip(&of_way) {
                let way = format!("{} {}h, {way}", parts.how, parts.hops);
                lines.push(line(model, cold, way, parts.workers, serial, rounds));
            }
        }
    }
    Ok(asked)
}

/// One query's serial time and, for each way of gathering, the round of median time. Serial runs and rounds alternate.
fn measure(
    db: &Database,
    q: &Classified,
    prepared: &Prepared,
    (processes, alone): (&mut WorkerProcesses, &mut WorkerProcesses),
    a: &BenchParallel,
    cold: bool,
) -> Result<(f64, Vec<Round>)> {
    let rounds = if cold { a.cold_rounds } else { a.rounds };
    let mut serial = vec![];
    let mut of_way: Vec<Vec<Round>> = vec![vec![]; ways(a).len()];
    for _ in 0..rounds {
        serial.push(match (cold, q.cold) {
            (true, Some(seconds)) => seconds,
            _ => {
                let pool = [q.query.texts[0].as_str()];
                task::serial(alone, &pool, &q.right[..1], false)?.compute()
            }
        });
        for (way, list) in ways(a).iter().zip(&mut of_way) {
            let how = How {
                gather: *way == Gather::Tree,
                cold,
                check: false,
            };
            list.push(prepared.round(db, processes, how)?);
        }
    }
    Ok((median(serial), middles(of_way, |round| round.seconds)))
}

/// The run of median time of each list; none for a list without runs.
fn middles<T>(lists: Vec<Vec<T>>, seconds: fn(&T) -> f64) -> Vec<T> {
    let middle = |mut list: Vec<T>| {
        list.sort_by(|a, b| seconds(a).total_cmp(&seconds(b)));
        let at = list.len() / 2;
        list.into_iter().nth(at)
    };
    lists.into_iter().filter_map(middle).collect()
}

fn unequal(q: &Classified, parts: &Parts, rows: u64, right: u64) -> Error {
    Error::external(format!(
        "{} on {} partitions by {}: {rows} rows where the single store has {right}, or others",
        q.query.name, parts.workers, parts.how
    ))
}

fn line(
    model: &'static str,
    cold: bool,
    way: String,
    workers: u32,
    serial: f64,
    rounds: &[Round],
) -> Line {
    let sum = |f: fn(&Round) -> f64| rounds.iter().map(f).sum::<f64>();
    let balances = rounds
        .iter()
        .map(|r| mean_and_deviation(r.workers.iter().map(|w| w.1 as f64)));
    let n = rounds.len().max(1) as f64;
    let balance = balances.fold([0.0; 2], |s, b| [s[0] + b[0] / n, s[1] + b[1] / n]);
    let busy = sum(|r| r.workers.iter().map(|w| w.0).sum());
    let processor = sum(|r| r.processor);
    Line {
        model,
        cold,
        way,
        workers,
        serial,
        seconds: sum(|r| r.seconds),
        compute: sum(|r| r.compute),
        master: sum(|r| r.merge),
        balance,
        processor: processor / busy.max(1e-12),
    }
}
