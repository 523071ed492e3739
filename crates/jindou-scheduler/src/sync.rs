//! The means of synchronisation that [`crate::queue`] and [`crate::pool`] are made of. `tests/loom.rs` compiles these two files with
//! others of the same names, which try every interleaving.

pub(crate) use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering, fence};
pub(crate) use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
pub(crate) use std::thread::Thread;
