//! The machine: seeds of its simulator, and cases that were found.

mod pauses;
mod refused;
mod replaced;
mod seeds;
