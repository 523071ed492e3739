//! The means of synchronisation that [`super::queue`] and [`super::pool`] are made of. `tests/loom.rs` compiles these two files
//! with others of the same names, which try every interleaving.

pub(crate) use jindou_engine::HelpCalls;
pub(crate) use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering, fence};
pub(crate) use std::sync::{Mutex, MutexGuard, PoisonError};
pub(crate) use std::thread::Thread;
