//! A deterministic simulator: servers, bucket, network and clients in one thread, driven by a seed.
//!
//! [`run`] plays one seed and judges its [`History`] by the four guarantees. The judge (`oracle.rs`) sees requests,
//! answers and the bucket's objects, never a machine. Time is global here; each server has a clock of its own, up to 5 %
//! too fast or too slow.

mod bucket;
mod chaos;
mod clients;
mod counts;
mod fault;
mod oracle;
mod seeds;
mod server;
mod state;
mod world;

pub use counts::{Counted, Counts};
pub use fault::Fault;
pub use oracle::{Ack, History, ReadAnswer, judge};
pub use seeds::{Seeds, seeds};
pub use state::{State, fingerprint};
pub use world::EPOCH;

/// The outcome of a seed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Run {
    /// Hash of everything that happened, in order.
    pub trace: u64,
    /// Numbers of what happened.
    pub counts: Counts,
    /// The first guarantee that does not hold.
    pub violation: Option<String>,
}

/// Plays a seed.
pub fn run(seed: u64, fault: Option<Fault>) -> Run {
    world::World::new(seed, fault, None).play()
}

/// Plays a seed and gives what happened, a line an event and action.
pub fn trace(seed: u64, fault: Option<Fault>) -> (Run, Vec<String>) {
    let mut lines = Vec::new();
    let run = world::World::new(seed, fault, Some(&mut lines)).play();
    (run, lines)
}
