//! The cost of a query with and without planning and returning results.

use crate::measure::{Measured, measure, run, serialise};
use jindou::{Database, QueryOptions, Result};
use std::time::Instant;

/// Runs shorter than this are repeated [`MORE`] times as often, since the clock and the operating system disturb them
/// more.
const SHORT_MS: f64 = 1.0;
const MORE: usize = 20;

/// Measures one query `repeat` times, or more often if it is short.
pub fn cost(db: &Database, text: &str, options: &QueryOptions, repeat: usize) -> Result<Measured> {
    run(db, &db.plan(text, options)?, options)?;
    let start = Instant::now();
    serialise(db, text, options)?;
    let short = start.elapsed().as_secs_f64() * 1e3 < SHORT_MS;
    let repeat = repeat.max(1) * if short { MORE } else { 1 };
    measure(db, text, options, repeat)
}
