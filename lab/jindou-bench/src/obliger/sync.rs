//! The synchronisation primitives of [`super::queue`] and [`super::pool`]. `tests/loom.rs` compiles those two files
//! with loom's versions instead, which try every interleaving.

pub(crate) use jindou_engine::HelpCalls;
pub(crate) use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering, fence};
pub(crate) use std::sync::{Mutex, MutexGuard, PoisonError};
pub(crate) use std::thread::Thread;
