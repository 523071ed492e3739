//! The cost of the clients' queries without a scheduler: one thread runs them one after the other.

use super::arrivals::Random;
use super::emulate::{Setup, Task};
use crate::measure::cpu_time;
use jindou::{QueryOptions, Result, Session, Value};
use std::time::{Duration, Instant};

/// Runs random queries of the mix on one thread, one after the other and without a scheduler, for `duration`.
pub fn alone(setup: &Setup, how: How, duration: Duration, seed: u64) -> Result<Alone> {
    let mut sessions: Vec<Session> = setup.classes.iter().map(|c| c.prepared.session()).collect();
    let options = QueryOptions::default().with_threads(1);
    let mut random = Random::new(seed);
    let mut times = vec![(Duration::ZERO, 0u64); setup.classes.len()];
    let mut count = 0u64;
    let (begin, processor) = (Instant::now(), cpu_time());
    let mut last = begin;
    while let Task::Light { class, start } = setup.draw(&mut random) {
        let (class, start) = (usize::from(class), start as usize);
        let c = &setup.classes[class];
        let ran = match how {
            How::Prepared => {
                let start = Value::Term(&c.starts[start]);
                sessions[class].checksum(&[start], &options)?
            }
            How::Text => {
                let planned = setup.db.plan(&c.text(start), &options)?;
                setup.db.checksum(&planned, &options)?
            }
        };
        std::hint::black_box(ran);
        count += 1;
        let now = Instant::now();
        times[class].0 += now - last;
        times[class].1 += 1;
        last = now;
        if now - begin >= duration {
            break;
        }
    }
    Ok(Alone {
        rate: count as f64 / begin.elapsed().as_secs_f64(),
        of_processor: count as f64 / cpu_time().saturating_sub(processor).as_secs_f64().max(1e-9),
        means: times
            .iter()
            .map(|(t, n)| t.as_secs_f64() / (*n).max(1) as f64)
            .collect(),
    })
}

/// The way in which [`alone`] runs queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// Prepared queries.
    Prepared,
    /// Query texts, each parsed and planned unless its plan is cached.
    Text,
}

/// Measurements of [`alone`].
pub struct Alone {
    pub rate: f64,
    /// Queries per second of processor time, which hardly depends on other processes.
    pub of_processor: f64,
    /// Mean seconds per query for each class.
    pub means: Vec<f64>,
}
