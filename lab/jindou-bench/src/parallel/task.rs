//! Task parallelism (algorithm 1 of the paper): the master hands the queries of a pool, one at a time, to any worker
//! that is free. Each worker opens the whole store, and all share its pages in the page cache.

use super::processes::{WorkerProcesses, unexpected};
use super::wire::{Message, Ran};
use super::workload::Workload;
use jindou::{Error, Result};
use std::time::{Duration, Instant};

/// Size of the right answer to one query: rows, and bytes of TSV.
pub type Right = (u64, u64);

/// Measurements of one pass over a pool.
#[derive(Clone, Debug, Default)]
pub struct Pass {
    /// Seconds from the first query handed out to the last result.
    pub seconds: f64,
    /// The workers' measurements of each query, with its index in the pool.
    pub ran: Vec<Ran>,
    /// Number of queries that each worker ran.
    pub tasks: Vec<u64>,
    /// Seconds in which each worker computed.
    pub busy: Vec<f64>,
    /// Seconds in which the master worked and did not wait.
    pub master: f64,
}

impl Pass {
    /// Seconds of all workers together.
    pub fn compute(&self) -> f64 {
        self.busy.iter().sum()
    }

    /// Processor time of the workers divided by the time in which they computed.
    pub fn processor_share(&self) -> f64 {
        let cpu: u64 = self.ran.iter().map(|r| r.cpu).sum();
        cpu as f64 / 1e9 / self.compute().max(1e-9)
    }
}

/// Starts workers, and opens the workload's store in each.
pub fn processes(workload: &Workload, workers: u32) -> Result<WorkerProcesses> {
    let mut processes = WorkerProcesses::start(workers)?;
    let store = workload.store.to_string_lossy().into_owned();
    processes.open(std::iter::repeat((store, String::new())))?;
    Ok(processes)
}

/// Runs the whole pool on one worker, which gets it at once: the serial time.
pub fn serial(
    processes: &mut WorkerProcesses,
    pool: &[&str],
    right: &[Right],
    cold: bool,
) -> Result<Pass> {
    let queries = pool.iter().map(|q| (*q).to_owned()).collect();
    let start = Instant::now();
    processes.tell(0, &Message::Run { cold, queries })?;
    let ran = match processes.hear(0)? {
        Message::Outcomes(ran) => ran,
        m => return Err(unexpected(0, &m)),
    };
    let seconds = start.elapsed().as_secs_f64();
    check(pool, right, &ran)?;
    Ok(Pass {
        seconds,
        tasks: vec![ran.len() as u64],
        busy: vec![ran.iter().map(|r| r.wall).sum::<u64>() as f64 / 1e9],
        ran,
        master: 0.0,
    })
}

/// Runs the pool on all workers, handing out one query at a time.
pub fn parallel(
    processes: &mut WorkerProcesses,
    pool: &[&str],
    right: &[Right],
    cold: bool,
) -> Result<Pass> {
    let workers = processes.len();
    let mut pass = Pass {
        tasks: vec![0; workers],
        busy: vec![0.0; workers],
        ..Pass::default()
    };
    let mut next = 0;
    let mut at: Vec<Option<usize>> = vec![None; workers];
    let mut waited = Duration::ZERO;
    let start = Instant::now();
    let hand_out = |processes: &mut WorkerProcesses,
                    worker: usize,
                    at: &mut Option<usize>,
                    next: &mut usize| {
        *at = pool.get(*next).map(|_| *next);
        let Some(text) = pool.get(*next) else {
            return Ok(());
        };
        *next += 1;
        let queries = vec![(*text).to_owned()];
        processes.tell(worker, &Message::Run { cold, queries })
    };
    for (worker, at) in at.iter_mut().enumerate() {
        hand_out(processes, worker, at, &mut next)?;
    }
    while at.iter().any(Option::is_some) {
        let wait = Instant::now();
        let (worker, message) = processes.hear_any()?;
        waited += wait.elapsed();
        let Message::Outcomes(outcomes) = message else {
            return Err(unexpected(worker, &message));
        };
        for mut ran in outcomes {
            ran.query = at[worker].unwrap_or(0) as u32;
            pass.tasks[worker] += 1;
            pass.busy[worker] += ran.wall as f64 / 1e9;
            pass.ran.push(ran);
        }
        hand_out(processes, worker, &mut at[worker], &mut next)?;
    }
    pass.seconds = start.elapsed().as_secs_f64();
    pass.master = pass.seconds - waited.as_secs_f64();
    check(pool, right, &pass.ran)?;
    Ok(pass)
}

fn check(pool: &[&str], right: &[Right], ran: &[Ran]) -> Result<()> {
    if ran.len() != pool.len() {
        return Err(Error::Internal(format!(
            "{} of {} queries were answered",
            ran.len(),
            pool.len()
        )));
    }
    for r in ran {
        let at = r.query as usize;
        if right.get(at) != Some(&(r.rows, r.bytes)) {
            return Err(Error::external(format!(
                "a worker found {:?} (rows, bytes) where {:?} are right: {}",
                (r.rows, r.bytes),
                right.get(at),
                pool.get(at).unwrap_or(&"")
            )));
        }
    }
    Ok(())
}
