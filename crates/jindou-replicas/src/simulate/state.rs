//! A simple store for the simulation, random numbers, and hashes.

use crate::machine::group::{Blob, Record, RequestKey};
use jindou_model::random::splitmix64;

/// Bit in the first byte of an update that sets a register to one of a few values, whatever it was; 0 is one of them.
pub(super) const CONSTANT: u8 = 16;

/// A store of four registers. Each other update replaces a register by a function of its old value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct State {
    registers: [u64; 4],
    /// Number of updates so far.
    pub(super) count: u64,
    order: u64,
}

impl State {
    /// Evaluates an update. Returns the record, which includes the answer; `None` if the update is rejected.
    pub fn evaluate(&self, key: RequestKey, body: &[u8]) -> Option<Record> {
        let first = *body.first()?;
        let old = *self.registers.get(usize::from(first & 15))?;
        let new = match first & CONSTANT {
            0 => mix(old ^ mix(key.0 as u64)),
            _ => body.len() as u64 % 7,
        };
        let mut bytes = vec![first];
        bytes.extend_from_slice(&new.to_le_bytes());
        // Padding, so that records have different sizes.
        bytes.resize(9 + body.len(), 0);
        Some(Record {
            key,
            fingerprint: 0,
            report: Blob::from(old.to_le_bytes()),
            bytes: bytes.into(),
        })
    }

    /// Applies a record without checks, as a replica does.
    pub fn apply(&mut self, record: &Record) {
        let register = record.bytes.first().map_or(0, |r| usize::from(r & 15));
        let new = record.bytes.get(1..9).and_then(|b| b.try_into().ok());
        let new = u64::from_le_bytes(new.unwrap_or_default());
        if let Some(place) = self.registers.get_mut(register) {
            *place = new;
        }
        self.count += 1;
        self.order = mix(self.order ^ new ^ record.key.0 as u64);
    }

    /// Sets a register.
    pub(super) fn set(&mut self, register: u8, value: u64) {
        if let Some(place) = self.registers.get_mut(usize::from(register)) {
            *place = value;
        }
    }

    /// Encodes the store as a file.
    pub fn bytes(&self) -> [u8; 48] {
        let mut bytes = [0; 48];
        let numbers = self.registers.iter().chain([&self.count, &self.order]);
        for (place, number) in bytes.chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    /// Decodes the store from a file.
    pub fn of_bytes(bytes: &[u8; 48]) -> Self {
        let mut state = Self::default();
        let places = state.registers.iter_mut();
        let places = places.chain([&mut state.count, &mut state.order]);
        for (place, bytes) in places.zip(bytes.as_chunks().0) {
            *place = u64::from_le_bytes(*bytes);
        }
        state
    }

    /// Hash of all updates applied so far.
    pub fn digest(&self) -> u64 {
        let mut sum = mix(self.count ^ self.order);
        for register in self.registers {
            sum = mix(sum ^ register);
        }
        sum
    }
}

/// The fingerprint that simulated clients send with a request.
pub fn fingerprint(key: RequestKey) -> u64 {
    mix(!key.0 as u64) | 1
}

pub(super) fn mix(mut x: u64) -> u64 {
    splitmix64(&mut x)
}

/// Deterministic random number generator, seeded with the simulation's seed.
#[derive(Debug)]
pub(super) struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A random number below `end`. `end` 0 is treated as 1.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    pub fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most.saturating_sub(least) + 1)
    }

    /// True with a probability of `percent` %.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// A random delay, usually close to `least` and rarely close to `most`.
    pub fn delay(&mut self, least: u64, most: u64) -> u64 {
        let range = most.saturating_sub(least) + 1;
        let a = self.below(range);
        least + a * self.below(range) / range
    }
}
