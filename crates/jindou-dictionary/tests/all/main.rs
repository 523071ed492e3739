//! The dictionary: building it, reading it, damaged files.

mod common;
mod damage;
mod pipeline;
mod ranks;
mod values;
