//! Tests against the W3C's suites, against `spargebra`, and against hostile texts.

mod canonical;
mod compare;
mod constructs;
pub(crate) mod files;
mod hostile;
mod normal;
mod w3c;
