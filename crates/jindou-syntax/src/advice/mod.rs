//! Faults in a person's words, and what to do about them.

mod foreign;
mod nearest;
mod place;

pub(crate) use foreign::foreign;
pub use nearest::distance;
pub(crate) use nearest::nearest;
pub(crate) use place::FaultPlace;
