//! Bare reads as a baseline for measurements.

use super::core::Core;
use super::operation::UcxOperation;
use super::worker::{LANDING, RemoteRead};
use crate::transport::{ByteRange, Result, TransportError};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Times one UCX read per range: post, drive progress, done. The worker's lock is held throughout, and the data stays
/// where UCX put it.
pub(super) fn reads(
    core: &Core,
    endpoint: u32,
    slot: u32,
    ranges: &[ByteRange],
    limit: Duration,
) -> Result<Vec<Duration>> {
    let mut times = Vec::with_capacity(ranges.len());
    let mut worker = core.worker();
    // A pooled operation if that is enough: making and clearing a large one would empty the caches just before the
    // clock starts.
    let longest = ranges.iter().map(|r| (r.len as usize).min(LANDING)).max();
    let operation: std::sync::Arc<UcxOperation> = worker.operation(longest.unwrap_or(0));
    core.spinning.fetch_add(1, Ordering::Relaxed);
    let mut result = Ok(());
    'ranges: for r in ranges {
        let part = RemoteRead {
            address: r.offset,
            len: (r.len as usize).min(LANDING),
        };
        let start = Instant::now();
        result = worker.read(endpoint, slot, &[part], &operation);
        if result.is_err() {
            break;
        }
        let mut turns = 0u32;
        while !operation.done() {
            worker.progress();
            turns += 1;
            if turns.is_multiple_of(1 << 16) && start.elapsed() > limit {
                result = Err(TransportError::Deadline {
                    peer: "the probe's peer".to_owned(),
                    waited: start.elapsed(),
                });
                break 'ranges;
            }
        }
        times.push(start.elapsed());
    }
    core.spinning.fetch_sub(1, Ordering::Relaxed);
    if operation.failure().is_some() {
        result = Err(TransportError::PeerDead {
            peer: "the probe's peer".to_owned(),
            reason: "a read failed".to_owned(),
        });
    }
    worker.recycle(operation);
    result.map(|()| times)
}
