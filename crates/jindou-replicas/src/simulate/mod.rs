//! A deterministic simulator: servers, bucket, network and clients in one thread, driven by a seed.
//!
//! [`run`] simulates one seed and checks its [`History`] against the protocol's four guarantees. The oracle
//! (`oracle.rs`) knows only requests, answers and the bucket's objects, not the machines' state. The simulation has one
//! global time; each server has a clock of its own, which is up to 5 % too fast or too slow.

mod bucket;
mod chaos;
mod clients;
mod counts;
mod fault;
mod oracle;
mod seeds;
mod server;
mod shards;
mod state;
mod world;

pub use counts::{Counted, Counts};
pub use fault::Fault;
pub use oracle::{Ack, History, ReadAnswer, judge};
pub use seeds::{Seeds, seeds};
pub use state::{State, fingerprint};
pub use world::EPOCH;

/// The outcome of simulating one seed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Run {
    /// Hash of the trace of all events.
    pub trace: u64,
    /// Numbers of events by kind.
    pub counts: Counts,
    /// A description of the first violated guarantee; `None` if all hold.
    pub violation: Option<String>,
}

/// The subject of a simulation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Setup {
    /// True if each server has some shards of the store, false if each has the whole store.
    pub shards: bool,
    /// The injected fault.
    pub fault: Option<Fault>,
}

impl From<Fault> for Setup {
    fn from(fault: Fault) -> Self {
        Self {
            shards: Fault::OF_SHARDS.contains(&fault),
            fault: Some(fault),
        }
    }
}

/// Simulates a seed.
pub fn run(seed: u64, setup: Setup) -> Run {
    world::World::new(seed, setup, None).play()
}

/// Simulates a seed and returns its trace, one line per event and action.
pub fn trace(seed: u64, setup: Setup) -> (Run, Vec<String>) {
    let mut lines = Vec::new();
    let run = world::World::new(seed, setup, Some(&mut lines)).play();
    (run, lines)
}
