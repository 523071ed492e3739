//! Checks the worker-obliger's hand-made synchronisation under loom. This is a separate test program, since it compiles
//! files of the library and the laboratory once more, with loom's atomics and locks, and tries every interleaving (with
//! at most three preemptions if there are three threads). A lost wake-up shows as a deadlock, since no thread wakes by
//! a timeout.
//!
//! The thread that is woken waits for nothing but its wake-up, since loom takes `unpark` for the end of any wait.

#![cfg(not(sanitized))]

use jindou::{Main, WorkerPool};
use jindou_server::{Refusal, WorkClass};
use job::Job;
use loom::model::Builder;
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;
use pool::Heavy;
use queue::Queue;
use std::time::Instant;

mod sync {
    pub(crate) use crate::help::HelpCalls;
    pub(crate) use loom::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering, fence};
    pub(crate) use loom::sync::{Arc, Condvar, Mutex, MutexGuard};
    pub(crate) use loom::thread::Thread;
    pub(crate) use std::sync::PoisonError;
}

#[allow(dead_code, missing_docs)]
#[path = "../../../crates/jindou-engine/src/places/help.rs"]
mod help;
#[allow(dead_code)]
#[path = "../src/obliger/job.rs"]
mod job;
#[allow(dead_code)]
#[path = "../src/obliger/pool.rs"]
mod pool;
#[allow(dead_code)]
#[path = "../src/obliger/queue.rs"]
mod queue;

fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

fn queue(worker: usize) -> Arc<Queue<usize>> {
    Arc::new(Queue::new(worker, Instant::now()))
}

fn job(n: usize) -> Job<usize> {
    Job::new(n, WorkClass::Light, 0)
}

/// The loop of a worker until `find` returns something. `own` is its queue, and `is_there` its last check before it
/// sleeps.
fn serve<T>(own: &Queue<usize>, find: impl Fn() -> Option<T>, is_there: impl Fn() -> bool) -> T {
    own.set_thread(thread::current());
    loop {
        if let Some(found) = find() {
            return found;
        }
        own.lie_down();
        if !is_there() {
            thread::park();
        }
        own.get_up();
    }
}

#[test]
fn who_lies_down_is_woken_for_what_is_pushed() {
    check(|| {
        let own = queue(0);
        let worker = {
            let own = Arc::clone(&own);
            thread::spawn(move || serve(&own, || own.take(), || !own.is_empty()).task)
        };
        own.push(job(7));
        own.wake();
        assert_eq!(worker.join().unwrap(), 7);
    });
}

#[test]
fn who_watches_is_woken_for_its_own_queue() {
    check(|| {
        let own = queue(0);
        let worker = {
            let own = Arc::clone(&own);
            thread::spawn(move || {
                own.set_thread(thread::current());
                loop {
                    if let Some(job) = own.take() {
                        return job.task;
                    }
                    own.lie_down();
                    if own.is_empty() {
                        // A job waits elsewhere, for which a real worker would wake after some time.
                        own.watch();
                        thread::park();
                    }
                    own.get_up();
                }
            })
        };
        own.push(job(7));
        own.wake();
        assert_eq!(worker.join().unwrap(), 7);
    });
}

#[test]
fn who_was_woken_once_is_woken_again() {
    check(|| {
        let own = queue(0);
        let worker = {
            let own = Arc::clone(&own);
            thread::spawn(move || {
                let take = || serve(&own, || own.take(), || !own.is_empty()).task;
                take() + take()
            })
        };
        for n in [1, 2] {
            own.push(job(n));
            own.wake();
        }
        assert_eq!(worker.join().unwrap(), 3);
    });
}

#[test]
fn an_idle_worker_is_called_for_the_queue_of_a_busy_one() {
    check(|| {
        let (busy, own) = (queue(0), queue(1));
        let worker = {
            let (busy, own) = (Arc::clone(&busy), Arc::clone(&own));
            thread::spawn(move || serve(&own, || busy.take(), || !busy.is_empty()).task)
        };
        busy.push(job(7));
        assert!(!busy.wake());
        own.call();
        assert_eq!(worker.join().unwrap(), 7);
    });
}

#[test]
fn a_heavy_job_waits_no_longer_than_for_a_place() {
    check(|| {
        let (heavy, jobs, own) = (Arc::new(Heavy::new(1)), queue(0), queue(1));
        assert!(heavy.enter());
        let worker = {
            let (heavy, jobs, own) = (Arc::clone(&heavy), Arc::clone(&jobs), Arc::clone(&own));
            thread::spawn(move || {
                let find = || {
                    let entered = !jobs.is_empty() && heavy.enter();
                    let job = if entered { jobs.take() } else { None };
                    if entered {
                        heavy.leave();
                    }
                    job
                };
                serve(&own, find, || heavy.has_place() && !jobs.is_empty()).task
            })
        };
        let pusher = {
            let (heavy, jobs, own) = (Arc::clone(&heavy), Arc::clone(&jobs), Arc::clone(&own));
            thread::spawn(move || {
                jobs.push(job(7));
                if heavy.has_place() {
                    own.wake();
                }
            })
        };
        // The last steps of a worker's job.
        heavy.leave();
        if !jobs.is_empty() {
            own.wake();
        }
        pusher.join().unwrap();
        assert_eq!(worker.join().unwrap(), 7);
    });
}

#[test]
fn who_sleeps_is_woken_to_help() {
    check(|| {
        let (heavy, own) = (Arc::new(Heavy::new(2)), queue(0));
        {
            let own = Arc::clone(&own);
            heavy.on_wanted(Box::new(move |_| {
                own.wake();
            }));
        }
        let helper = {
            let (heavy, own) = (Arc::clone(&heavy), Arc::clone(&own));
            thread::spawn(move || {
                let find = || (heavy.is_wanted() && heavy.help()).then_some(());
                serve(&own, find, || heavy.is_wanted());
            })
        };
        let came = (Mutex::new(false), Condvar::new());
        let come = || {
            *came.0.lock().unwrap() = true;
            came.1.notify_all();
        };
        heavy.work(&come, &mut |ask| {
            ask(1);
            let mut here = came.0.lock().unwrap();
            while !*here {
                here = came.1.wait(here).unwrap();
            }
        });
        helper.join().unwrap();
    });
}
