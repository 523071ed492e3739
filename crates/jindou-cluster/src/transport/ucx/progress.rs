//! The progress thread: drives UCX while nothing else does, and answers the requests of other ends.

use super::core::Core;
use super::frame::{GatherRange, Incoming, UcxFrame, outcome, what};
use super::link::UcxLink;
use super::transport::TransportState;
use super::worker::LANDING;
use crate::transport::{Epoch, Message, Peer};
use jindou_graph::segment::prefetch;
use jindou_model::sync::lock;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Progress calls per acquisition of the lock.
const TURNS: u32 = 32;
/// Sleep while another thread drives progress. That thread hands over by a wake-up; this limit covers the case that it
/// fails to.
const KEEP_OUT: Duration = Duration::from_micros(500);
/// Time after the last event before the thread sleeps. Sleeping and waking cost more than a caller's usual pause
/// between two requests. It is short, because if both ends share a core the other one waits for it.
const LINGER: Duration = Duration::from_micros(20);
/// Longest sleep on UCX's events, so that UCX can maintain its endpoints.
const LONGEST: Duration = Duration::from_millis(50);
/// Time for which a thread polls if there is no event but it may not sleep. UCX forbids sleeping while a message waits
/// for space at the other end, and over shared memory that lasts for ever if the other end is dead.
const STUCK: Duration = Duration::from_millis(1);
/// First and longest sleep after that.
const NAPS: [Duration; 2] = [Duration::from_micros(50), Duration::from_millis(5)];

/// Runs until the transport is closed.
pub(super) fn run(shared: &Arc<TransportState>) {
    let core: &Core = &shared.core;
    let mut idle = 0u32;
    let mut busy = core.now();
    let mut nap = NAPS[0];
    while !core.is_closed() {
        let mut some = false;
        if core.options.spin || core.spinning.load(Ordering::Relaxed) == 0 {
            let mut worker = core.worker();
            for _ in 0..TURNS {
                if !core.progress(&mut worker, false) {
                    break;
                }
                some = true;
            }
        }
        some |= serve(shared);
        report_broken(shared);
        if some {
            idle = 0;
            busy = core.now();
            nap = NAPS[0];
            continue;
        }
        if core.options.spin {
            idle += 1;
            if idle.is_multiple_of(64) {
                std::thread::yield_now();
            }
        } else if core.spinning.load(Ordering::Relaxed) > 0 {
            core.sleep(false, KEEP_OUT);
        } else if core.now().since(busy) < LINGER {
            std::hint::spin_loop();
        } else {
            let armed = core.worker().arm();
            if armed {
                core.sleep(true, LONGEST);
            } else if core.now().since(busy) > STUCK {
                core.sleep(true, nap);
                nap = NAPS[1].min(2 * nap);
            }
        }
    }
}

/// Answers everything in the inbox; true if there was anything.
fn serve(shared: &Arc<TransportState>) -> bool {
    let mut some = false;
    loop {
        let Some(incoming) = lock(&shared.core.inbox).pop_front() else {
            return some;
        };
        some = true;
        let Some(link) = shared.link(incoming.frame.connection) else {
            continue;
        };
        let (outcome, payload) = answer(shared, &link, &incoming);
        if incoming.frame.what == what::ONE_WAY {
            continue;
        }
        let frame = UcxFrame {
            what: what::REPLY,
            outcome,
            kind: incoming.frame.kind,
            connection: link.there,
            request: incoming.frame.request,
            epoch: shared.epoch().0,
        };
        // If it cannot be sent, the asking side's deadline or failure detector notices.
        let _ = shared.core.worker().send(link.endpoint, frame, payload);
    }
}

fn answer(shared: &TransportState, link: &Arc<UcxLink>, incoming: &Incoming) -> (u8, Vec<u8>) {
    let frame = &incoming.frame;
    if frame.what == what::PING {
        return (outcome::OK, Vec::new());
    }
    if Epoch(frame.epoch) != shared.epoch() {
        return (outcome::STALE, Vec::new());
    }
    let mut reply = Vec::new();
    let result = match frame.what {
        what::GATHER => gather(shared, &incoming.payload, &mut reply),
        what::REQUEST | what::ONE_WAY => match shared.handler(frame.kind) {
            Some(handler) => {
                let peer: Arc<dyn Peer> = Arc::<UcxLink>::clone(link);
                let message = Message {
                    kind: frame.kind,
                    epoch: Epoch(frame.epoch),
                    from: &link.name,
                    peer: Some(&peer),
                    payload: &incoming.payload,
                };
                // This thread must survive for all others.
                catch_unwind(AssertUnwindSafe(|| handler.handle(&message, &mut reply)))
                    .unwrap_or_else(|_| Err("the handler failed".to_owned()))
            }
            None => Err(format!("no handler for messages of kind {}", frame.kind)),
        },
        n => Err(format!("unknown frame {n}")),
    };
    match result {
        Ok(()) if reply.len() > crate::transport::MAX_MESSAGE => (
            outcome::REFUSED,
            b"the answer is longer than a message may be".to_vec(),
        ),
        Ok(()) => (outcome::OK, reply),
        Err(reason) => (outcome::REFUSED, reason.into_bytes()),
    }
}

fn gather(shared: &TransportState, payload: &[u8], reply: &mut Vec<u8>) -> Result<(), String> {
    let (number, ranges) = payload
        .split_first_chunk::<8>()
        .ok_or("a gathering message is cut short")?;
    let memory = shared
        .memory(u64::from_le_bytes(*number))
        .ok_or("the region was released")?;
    let bytes = memory.bytes();
    // The places are random: this takes all misses at once, not one after the other.
    for r in ranges.chunks_exact(size_of::<GatherRange>()) {
        let r: GatherRange = bytemuck::pod_read_unaligned(r);
        prefetch(bytes, r.offset as usize);
    }
    for r in ranges.chunks_exact(size_of::<GatherRange>()) {
        let r: GatherRange = bytemuck::pod_read_unaligned(r);
        let end = r.offset.checked_add(r.len);
        let part = end.and_then(|end| bytes.get(r.offset as usize..end as usize));
        let part = part.ok_or("a range outside the region")?;
        if reply.len() + part.len() > LANDING {
            return Err("more bytes than one gathering message may carry".to_owned());
        }
        reply.extend_from_slice(part);
    }
    Ok(())
}

fn report_broken(shared: &TransportState) {
    let broken = std::mem::take(&mut *lock(&shared.core.broken));
    for (endpoint, reason) in broken {
        if let Some(link) = shared.link_of_endpoint(endpoint) {
            link.fail(reason);
        }
    }
}
