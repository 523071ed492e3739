//! A program of its own, since it compiles a file of the library a second time.
//!
//! Tests calls for help under loom: compiles the library's file with loom's atomics and locks, and runs every
//! interleaving of its threads with at most three preemptions.

#![cfg(not(sanitized))]

use help::HelpCalls;
use jindou_engine::{Main, WorkerPool};
use loom::cell::UnsafeCell;
use loom::model::Builder;
use loom::sync::Arc;
use loom::thread;

mod sync {
    pub(crate) use loom::sync::atomic::{AtomicUsize, Ordering};
    pub(crate) use loom::sync::{Arc, Condvar, Mutex, MutexGuard};
    pub(crate) use std::sync::PoisonError;
}

#[allow(dead_code, missing_docs)]
#[path = "../src/places/help.rs"]
mod help;

fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

/// A value that only its owner, and the helpers while the owner waits for them, may read.
struct Lent(UnsafeCell<u32>);

// SAFETY: loom's cell panics if two threads use it at the same time.
unsafe impl Sync for Lent {}

impl Lent {
    fn look(&self) -> u32 {
        // SAFETY: a read, which loom checks against writes of other threads.
        self.0.with(|value| unsafe { *value })
    }

    fn end(&self) {
        // SAFETY: as above.
        self.0.with_mut(|value| unsafe { *value = 2 });
    }
}

#[test]
fn nobody_helps_who_has_returned() {
    check(|| {
        let calls = Arc::new(HelpCalls::default());
        let helper = {
            let calls = Arc::clone(&calls);
            thread::spawn(move || calls.help(|| false))
        };
        let lent = Lent(UnsafeCell::new(1));
        let helped = loom::sync::atomic::AtomicUsize::new(0);
        calls.work(
            &|| {
                assert_eq!(lent.look(), 1);
                helped.fetch_add(1, loom::sync::atomic::Ordering::Relaxed);
            },
            &mut |ask| {
                ask(1);
                ask(0);
            },
        );
        // All helpers have returned, so the owner may write to it.
        lent.end();
        let helped = helped.load(loom::sync::atomic::Ordering::Relaxed);
        assert_eq!(helper.join().unwrap(), helped == 1);
        assert!(!calls.are_wanted());
        assert!(!calls.help(|| false));
    });
}
