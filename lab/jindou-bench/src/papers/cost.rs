//! The cost of a query with and without planning and returning results.

use super::super::measure::{Times, run, serialise};
use jindou::{Database, Error, QueryOptions, Result};
use std::time::Instant;

/// Rows of one query, and its times in milliseconds.
pub struct Cost {
    pub rows: u64,
    /// Parsing and planning without caches.
    pub plan: Times,
    /// Execution alone: every row is added to a checksum. This is what the paper measures.
    pub exec: Times,
    /// Everything from the query's text to the last byte of TSV, without cached plan.
    pub whole: Times,
}

/// Runs shorter than this are repeated [`MORE`] times as often, since the clock and the operating system disturb them
/// more.
const SHORT_MS: f64 = 1.0;
const MORE: usize = 20;

/// Measures the three costs of one query `repeat` times each, in turn, after a warm-up.
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
        // `serialise` takes the plan from the cache, so the query is planned separately here; the sum is some 0.2 µs
        // too large.
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
