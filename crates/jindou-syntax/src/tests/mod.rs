//! Tests against the W3C's suites and against `spargebra`.

mod canonical;
mod compare;
mod files;
mod normal;
mod w3c;
