//! A program of its own, since one file of the library is compiled into it again.
//!
//! Calls for help under loom: the file that the library is made of, with loom's atomics and locks, in every interleaving (of at
//! most three preemptions).

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

/// Something that only those may look at who work for its owner.
struct Lent(UnsafeCell<u32>);

// SAFETY: loom's cell finds out whether it is used by two at once.
unsafe impl Sync for Lent {}

impl Lent {
    fn look(&self) -> u32 {
        // SAFETY: a look, which loom compares with what others do to it.
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
        // All visitors have left: the owner is alone with it.
        lent.end();
        let helped = helped.load(loom::sync::atomic::Ordering::Relaxed);
        assert_eq!(helper.join().unwrap(), helped == 1);
        assert!(!calls.are_wanted());
        assert!(!calls.help(|| false));
    });
}
