//! The progress thread: drives UCX while no caller does, for reads in which this server's processor has to take part.

use super::core::Core;
use super::transport::TransportState;
use jindou_model::sync::lock;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Number of progress calls for each acquisition of the lock.
const TURNS: u32 = 32;
/// Sleep while a caller drives progress. The caller wakes up this thread when it stops; this limit covers the case that
/// the caller fails to do so.
const KEEP_OUT: Duration = Duration::from_micros(500);
/// Time after the last event before the thread sleeps. Sleeping and waking up cost more than a caller's usual pause
/// between two requests. The time is short because, if both ends share a core, the other end waits for it.
const LINGER: Duration = Duration::from_micros(20);
/// Longest sleep while waiting for UCX's events, so that UCX can maintain its endpoints.
const LONGEST: Duration = Duration::from_millis(50);
/// Time for which the thread polls if there is no event but it may not sleep. UCX forbids sleeping while a message
/// waits for space at the peer, and over shared memory that lasts forever if the peer is dead.
const STUCK: Duration = Duration::from_millis(1);
/// Shortest and longest sleep after [`STUCK`].
const NAPS: [Duration; 2] = [Duration::from_micros(50), Duration::from_millis(5)];

/// Runs until the transport is closed.
pub(super) fn run(shared: &Arc<TransportState>) {
    let core: &Core = &shared.core;
    let mut busy = Instant::now();
    let mut nap = NAPS[0];
    while !core.is_closed() {
        let mut some = false;
        if core.spinning.load(Ordering::Relaxed) == 0 {
            let mut worker = core.worker();
            for _ in 0..TURNS {
                if !core.progress(&mut worker) {
                    break;
                }
                some = true;
            }
        }
        report_broken(shared);
        if some {
            busy = Instant::now();
            nap = NAPS[0];
            continue;
        }
        if core.spinning.load(Ordering::Relaxed) > 0 {
            core.sleep(false, KEEP_OUT);
        } else if busy.elapsed() < LINGER {
            std::hint::spin_loop();
        } else {
            let armed = core.worker().arm();
            if armed {
                core.sleep(true, LONGEST);
            } else if busy.elapsed() > STUCK {
                core.sleep(true, nap);
                nap = NAPS[1].min(2 * nap);
            }
        }
    }
}

fn report_broken(shared: &TransportState) {
    let broken = std::mem::take(&mut *lock(&shared.core.broken));
    for (endpoint, reason) in broken {
        if let Some(link) = shared.link_of_endpoint(endpoint) {
            link.fail(reason);
        }
    }
}
