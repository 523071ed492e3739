//! The synchronisation primitives that [`super::help`] uses. `tests/loom.rs` compiles that file with loom's primitives
//! in their place, to test every interleaving of its threads.

pub(crate) use std::sync::atomic::{AtomicUsize, Ordering};
pub(crate) use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
