//! The synchronisation primitives used by [`super::parts`]. `tests/loom.rs` compiles that file with replacements of the
//! same names, which try every interleaving.

pub(super) use std::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};
pub(super) use std::sync::{Mutex, PoisonError};
pub(super) use std::thread::{Thread, current};
