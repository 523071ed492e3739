//! The XML processor: the W3C's suite, and arbitrary input.

mod common;
mod conformance;
mod robust;
