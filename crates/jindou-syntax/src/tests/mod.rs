//! Tests with the W3C's suites, with `spargebra`, and with hostile texts.

mod canonical;
mod compare;
mod constructs;
pub(crate) mod files;
mod hostile;
mod normal;
mod w3c;
