//! The machine: seeds of its simulator, and cases that were found.

mod pauses;
mod refused;
mod replaced;
mod seeds;

use jindou_replicas::{Machine, Settings, Time, Writer};

const EPOCH: u64 = 1;

fn writer(name: &str) -> Writer {
    Writer {
        server: name.into(),
        start: 1,
    }
}

fn machine(name: &str) -> Machine {
    Machine::new(Settings::default(), EPOCH, writer(name), 1, Time(0))
}
