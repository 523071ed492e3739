//! The results of a run.

use super::emulate::Setup;
use super::histogram::Histogram;
use super::machine::Taken;
use crate::obliger::Counts;
use jindou::{Error, QueryOptions, Result};
use std::time::Duration;

/// How long recovery from an overload is recorded, and the length and number of the steps in which it is.
pub const AFTER: Duration = Duration::from_secs(2);
pub const STEP: Duration = Duration::from_millis(100);
pub const STEPS: usize = (AFTER.as_millis() / STEP.as_millis()) as usize;

/// The step in which a time `since` the overload lies.
pub fn step_of(since: Duration) -> usize {
    (since.as_nanos() / STEP.as_nanos()) as usize
}

/// One query in this many is compared with plain execution after the run, at most `MOST_SAMPLES` per worker.
pub const SAMPLE: u64 = 512;
pub const MOST_SAMPLES: usize = 256;

/// One worker's figures of a run.
#[derive(Default)]
pub struct Stats {
    pub latencies: Vec<Histogram>,
    /// Latencies after the overload, by steps.
    pub after: Vec<Histogram>,
    /// Queries that admission refused during the recording.
    pub refused: u64,
    /// Queries that admission refused after the overload, by steps.
    pub refused_after: Vec<u64>,
    /// The longest `retry_after` of the refusals.
    pub retry: Duration,
    /// Queries that an open loop's client skipped because it was too far behind.
    pub unsent: u64,
    /// Jobs that were admitted but neither run nor answered.
    pub unfinished: u64,
    /// Sampled queries for the comparison: class, start point, number of rows.
    pub samples: Vec<(u16, u32, u64)>,
    pub error: Option<Error>,
    pub turn: u64,
}

impl Stats {
    /// Empty figures for this many kinds of queries.
    pub fn new(kinds: usize) -> Self {
        Self {
            latencies: vec![Histogram::default(); kinds],
            after: vec![Histogram::default(); STEPS],
            refused_after: vec![0; STEPS],
            ..Self::default()
        }
    }
}

/// The results of a run.
#[derive(Default)]
pub struct Outcome {
    pub seconds: f64,
    /// For each light class, then for each heavy query.
    pub latencies: Vec<Histogram>,
    pub light: Histogram,
    pub heavy: Histogram,
    pub refused: u64,
    /// The longest `retry_after` of the refusals.
    pub retry: Duration,
    /// Queries that an open loop's clients skipped because they were too far behind.
    pub unsent: u64,
    /// For each step after an overload: latencies, and the number of refused queries.
    pub after: Vec<(Histogram, u64)>,
    pub unfinished: u64,
    pub counts: Counts,
    /// Processor time of all threads, clients included, in seconds.
    pub processor: f64,
    /// Light queries per second in the 90th percentile of the 10 ms windows: the rate while no other process takes the
    /// cores.
    pub best_tenth: f64,
    /// Interference from other processes and the host meanwhile.
    pub taken: Taken,
    /// Resident anonymous memory in bytes at the beginning, at the end, and the largest sample between.
    pub memory: [u64; 3],
    /// Rounds of work per second of the [`Neighbour`](super::machine::Neighbour), if there is one.
    pub beside: Option<f64>,
    pub checked: usize,
}

impl Outcome {
    pub fn light_rate(&self) -> f64 {
        self.light.count() as f64 / self.seconds
    }

    /// Time after an overload from which no query is refused and 99 % take less than `limit`; `None` if that is not
    /// reached.
    pub fn recovered(&self, limit: Duration) -> Option<Duration> {
        let bad = |s: &(Histogram, u64)| s.1 > 0 || s.0.quantile(0.99) > limit;
        let steps = self.after.iter().rposition(bad).map_or(0, |at| at + 1);
        (steps < self.after.len()).then(|| STEP * steps as u32)
    }

    /// Adds the figures of one worker or client, and compares its samples with plain execution.
    pub fn add(&mut self, setup: &Setup, s: Stats) -> Result<()> {
        if let Some(e) = s.error {
            return Err(e);
        }
        let kinds = setup.names().count();
        self.latencies.resize(kinds, Histogram::default());
        self.after.resize(STEPS, (Histogram::default(), 0));
        for (i, (all, own)) in self.latencies.iter_mut().zip(&s.latencies).enumerate() {
            all.merge(own);
            if i < setup.classes.len() {
                self.light.merge(own);
            } else {
                self.heavy.merge(own);
            }
        }
        let after = s.after.iter().zip(&s.refused_after);
        for (all, (own, refused)) in self.after.iter_mut().zip(after) {
            all.0.merge(own);
            all.1 += refused;
        }
        self.refused += s.refused;
        self.retry = self.retry.max(s.retry);
        self.unsent += s.unsent;
        self.unfinished += s.unfinished;
        let options = QueryOptions::default().with_threads(1);
        for (class, start, rows) in s.samples {
            let text = setup.classes[usize::from(class)].text(start as usize);
            let plan = setup.db.plan_uncached(&text, &options)?;
            let plain = setup.db.checksum(&plan, &options)?;
            if plain.rows != rows {
                return Err(Error::Internal(format!(
                    "{rows} rows under load, {} alone: {text}",
                    plain.rows
                )));
            }
            self.checked += 1;
        }
        Ok(())
    }
}
