//! The cost of a query with and without planning and returning results.

use super::super::measure::{Times, run, serialise};
use jindou::{Database, Error, QueryOptions, Result};
use std::time::Instant;

/// Rows of one query, and its times in milliseconds.
pub struct Cost {
    pub rows: u64,
    /// Parsing and planning, nothing cached.
    pub plan: Times,
    /// Every binding found and folded into a checksum: what the paper times.
    pub exec: Times,
    /// From text to the last byte of TSV, plan not cached.
    pub whole: Times,
}

/// Below this a run is repeated [`MORE`] times as often: the clock and the scheduler weigh more there.
const SHORT_MS: f64 = 1.0;
const MORE: usize = 20;

/// Measures one query `repeat` times after a warm-up, the three kinds of run in turn.
///
/// # Errors
/// [`Error::Unsupported`] for a query that has no native plan; [`Error::Internal`] if two runs differ.
pub fn cost(db: &Database, text: &str, options: &QueryOptions, repeat: usize) -> Result<Cost> {
    let plan = db.plan(text, options)?;
    let seen = run(db, &plan, options)?;
    let start = Instant::now();
    serialise(db, text, options)?;
    let short = start.elapsed().as_secs_f64() * 1e3 < SHORT_MS;
    let repeat = repeat.max(1) * if short { MORE } else { 1 };
    let (mut plans, mut execs, mut wholes) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..repeat {
        let start = Instant::now();
        std::hint::black_box(db.plan_uncached(text, options)?);
        plans.push(start.elapsed());
        let start = Instant::now();
        let again = run(db, &plan, options)?;
        execs.push(start.elapsed());
        if again != seen {
            return Err(Error::Internal(format!(
                "two runs of one query differ: {seen:?}, then {again:?}"
            )));
        }
        // `serialise` finds the plan in the cache, so one is made alongside: some 0.2 µs too much, not too little.
        let start = Instant::now();
        std::hint::black_box(db.plan_uncached(text, options)?);
        serialise(db, text, options)?;
        wholes.push(start.elapsed());
    }
    Ok(Cost {
        rows: seen.rows,
        plan: Times::new(plans),
        exec: Times::new(execs),
        whole: Times::new(wholes),
    })
}
