//! The synchronisation primitives used by [`super::parts`]. `tests/loom.rs` compiles that file with loom's
//! replacements, which test every interleaving.

pub(super) use std::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};
pub(super) use std::sync::{Mutex, PoisonError};
pub(super) use std::thread::{Thread, current};
