//! Synchronisation primitives of [`super::help`]. `tests/loom.rs` compiles that file with others of the same names,
//! which try every interleaving.

pub(crate) use std::sync::atomic::{AtomicUsize, Ordering};
pub(crate) use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
