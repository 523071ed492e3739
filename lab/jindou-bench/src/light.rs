//! Measures light queries with random constants: L4, L5, L6 on one thread, with hot and with cold processor caches.

use super::measure::{Times, run};
use jindou::{Database, Error, PlannedQuery, QueryOptions, Result};
use jindou_workloads::queries::lubm::{Constants, LIGHT};
use std::time::{Duration, Instant};

/// One template's times, in microseconds.
#[derive(Debug)]
pub struct Light {
    pub name: &'static str,
    pub constants: usize,
    pub rows: u64,
    /// The second run of each query.
    pub hot: Times,
    /// The first run of each query, when the plans of all have been made.
    pub first: Times,
    /// Runs after the processor's caches were swept and one query with another constant was run. The data is cold, the
    /// program's code is not, as in a server. Fewer constants are measured, since a sweep takes long.
    pub cold: Times,
    /// Runs straight after the sweep, when data, code and page tables are cold.
    pub all_cold: Times,
}

/// Number of constants with which cold runs are measured.
const COLD: usize = 200;
/// Bytes read between cold runs, more than any last-level cache holds.
const SWEEP: usize = 512 << 20;

/// Runs each template with `n` constants of its type. Plans are made, and so cached, before.
pub fn run_all(db: &Database, universities: u32, n: usize) -> Result<Vec<Light>> {
    let options = QueryOptions::default().with_threads(1);
    let mut sweep = vec![1u64; SWEEP / 8];
    let mut out = Vec::new();
    for (i, template) in LIGHT.iter().enumerate() {
        let mut constants = Constants::new(universities, 0, i as u64 + 1);
        let mut plans: Vec<PlannedQuery> = Vec::with_capacity(n);
        while plans.len() < n {
            let Some(iri) = constants.draw(template.class) else {
                break;
            };
            plans.push(db.plan_uncached(&template.with(&iri), &options)?);
        }
        let mut rows = 0;
        let (mut first, mut hot, mut cold) = (Vec::new(), Vec::new(), Vec::new());
        for p in &plans {
            let start = Instant::now();
            let seen = run(db, p, &options)?;
            first.push(start.elapsed() * 1000);
            rows += seen.rows;
            let start = Instant::now();
            let again = run(db, p, &options)?;
            hot.push(start.elapsed() * 1000);
            if again != seen {
                return Err(Error::Internal(format!(
                    "two runs of one query differ: {seen:?}, then {again:?}"
                )));
            }
        }
        let step = (n / COLD).max(1);
        let mut all_cold = Vec::new();
        for (i, p) in plans.iter().enumerate().step_by(step) {
            sweep_caches(&mut sweep);
            all_cold.push(timed(db, p, &options)?);
            sweep_caches(&mut sweep);
            // A run with a constant half of the list away, which is of another university and so shares no data.
            run(db, &plans[(i + n / 2) % plans.len()], &options)?;
            cold.push(timed(db, p, &options)?);
        }
        out.push(Light {
            name: template.name,
            constants: plans.len(),
            rows,
            hot: Times::new(hot),
            first: Times::new(first),
            cold: Times::new(cold),
            all_cold: Times::new(all_cold),
        });
    }
    Ok(out)
}

/// The time of one run, multiplied by 1000, since [`Times`] holds milliseconds and [`Light`] wants microseconds.
fn timed(db: &Database, plan: &PlannedQuery, options: &QueryOptions) -> Result<Duration> {
    let start = Instant::now();
    run(db, plan, options)?;
    Ok(start.elapsed() * 1000)
}

fn sweep_caches(sweep: &mut [u64]) {
    for line in sweep.chunks_mut(8) {
        line[0] = line[0].wrapping_add(1);
    }
    std::hint::black_box(sweep);
}

/// Geometric mean of medians.
fn mean(l: &[Light], f: impl Fn(&Light) -> &Times) -> f64 {
    (l.iter().map(|x| f(x).median().ln()).sum::<f64>() / l.len().max(1) as f64).exp()
}

pub fn print(l: &[Light]) {
    println!(
        "light queries on one thread, random constants, microseconds (median, 99th of a hundred):"
    );
    println!(
        "query constants      rows       hot      p99     first      p99  cold data      p99  all cold      p99"
    );
    for x in l {
        println!(
            "{:<5} {:>9} {:>9}  {:>8.2} {:>8.2}  {:>8.2} {:>8.2}  {:>9.2} {:>8.2}  {:>8.2} {:>8.2}",
            x.name,
            x.constants,
            x.rows,
            x.hot.median(),
            x.hot.quantile(0.99),
            x.first.median(),
            x.first.quantile(0.99),
            x.cold.median(),
            x.cold.quantile(0.99),
            x.all_cold.median(),
            x.all_cold.quantile(0.99)
        );
    }
    println!(
        "geometric mean of medians: hot {:.2}, first {:.2}, cold data {:.2}, all cold {:.2}",
        mean(l, |x| &x.hot),
        mean(l, |x| &x.first),
        mean(l, |x| &x.cold),
        mean(l, |x| &x.all_cold)
    );
}

impl Light {
    pub fn json(&self) -> serde_json::Value {
        serde_json::json!({
            "name": self.name, "constants": self.constants, "rows": self.rows,
            "hot_us": self.hot.median(), "hot_p99_us": self.hot.quantile(0.99),
            "first_us": self.first.median(), "cold_us": self.cold.median(),
            "cold_p99_us": self.cold.quantile(0.99), "all_cold_us": self.all_cold.median(),
        })
    }
}
