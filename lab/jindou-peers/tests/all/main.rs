//! Other engines, where they are installed.

mod engines;
mod values;
