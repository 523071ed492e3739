//! Descriptions of errors for people, with remedies.

mod foreign;
mod nearest;
mod place;

pub(crate) use foreign::foreign;
pub use nearest::distance;
pub(crate) use nearest::nearest;
pub(crate) use place::FaultPlace;
