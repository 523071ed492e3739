//! The XML processor: the W3C's suite, and whatever comes.

mod common;
mod conformance;
mod robust;
