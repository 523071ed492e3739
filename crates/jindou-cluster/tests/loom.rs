//! A program of its own, since one file of the library is compiled into it again.
//!
//! The wake-up of an operation's owner under loom: the library's own file, with loom's atomics and locks, in every
//! interleaving (with at most three preemptions). A lost wake-up is a deadlock here, since there are no timeouts.

#![cfg(not(sanitized))]

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;
use parts::PendingParts;

mod sync {
    pub(super) use loom::sync::Mutex;
    pub(super) use loom::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};
    pub(super) use loom::thread::{Thread, current};
    pub(super) use std::sync::PoisonError;
}

#[path = "../src/transport/ucx/parts.rs"]
mod parts;

/// Parts, and the data written while they are in progress.
#[derive(Default)]
struct Operation {
    parts: PendingParts,
    landing: [Landing; 2],
}

struct Landing(UnsafeCell<u32>);

impl Default for Landing {
    fn default() -> Self {
        Self(UnsafeCell::new(0))
    }
}

// SAFETY: loom's cells find out whether they are used by two at once.
unsafe impl Sync for Landing {}

#[test]
fn the_last_part_wakes_who_waits_for_all() {
    for parts in [1, 2] {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(move || {
            let operation = Arc::new(Operation::default());
            for _ in 0..parts {
                operation.parts.begin();
            }
            let enders: Vec<_> = (0..parts)
                .map(|i| {
                    let operation = Arc::clone(&operation);
                    thread::spawn(move || {
                        // SAFETY: each part has its own cell, which nothing reads before the part ends; loom checks that.
                        operation.landing[i]
                            .0
                            .with_mut(|value| unsafe { *value = 7 });
                        operation.parts.end();
                    })
                })
                .collect();
            // On a thread of its own that waits for nothing else: loom takes `unpark` for the end of any wait.
            let owner = thread::spawn(move || {
                while !operation.parts.done() {
                    operation.parts.park(thread::park);
                }
                for landing in &operation.landing[..parts] {
                    // SAFETY: as above.
                    assert_eq!(landing.0.with(|value| unsafe { *value }), 7);
                }
            });
            owner.join().unwrap();
            for ender in enders {
                ender.join().unwrap();
            }
        });
    }
}
