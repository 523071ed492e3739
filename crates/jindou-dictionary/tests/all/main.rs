//! The dictionary: building it, reading it, damaged files.

#[path = "../common/mod.rs"]
mod common;

mod damage;
mod pipeline;
mod ranks;
mod values;
