//! One thread that asks one query after the other, no scheduler between: what the clients' queries cost by themselves.

use super::arrivals::Random;
use super::emulate::{Setup, Task};
use crate::measure::cpu_time;
use jindou::{QueryOptions, Result, Session, Value};
use std::time::{Duration, Instant};

/// Queries a second of one thread that asks one after the other, no scheduler between; by class the mean time, and of the mix.
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

/// How [`alone`] asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// Prepared queries.
    Prepared,
    /// Texts, each parsed and planned unless it was before.
    Text,
}

/// Measurements by [`alone`].
pub struct Alone {
    pub rate: f64,
    /// Queries a second of processor time: the same whatever else the machine does, but for its caches.
    pub of_processor: f64,
    /// Seconds per query, by class.
    pub means: Vec<f64>,
}
