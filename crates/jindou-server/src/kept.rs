//! Free memory that the allocator keeps while many queries run.
//!
//! A query that ends has its memory returned to the system ([`Admitted`](crate::admission::Admitted)). While others run on, their
//! freed pieces lie among used ones, and the process can hold half as much again as its queries are charged for. So memory is
//! returned while they run, too, but only where the process comes near its limit: this takes tens of milliseconds for a gigabyte, in
//! which threads may wait for the allocator.

use jindou::MemoryBudget;
use std::time::Duration;

/// Interval of checks.
const EVERY: Duration = Duration::from_millis(100);
/// Fourths of the limit that the process holds before anything is returned.
const NEAR: u64 = 3;
/// Divisor for the limit: the share that is kept for nothing and is worth returning.
const SHARE: u64 = 16;

/// Watches the process for as long as it is polled; never ends.
pub(crate) async fn watch(memory: &MemoryBudget) {
    // Bytes beyond those charged that were left after memory was returned: what else the process holds.
    let mut beyond = 0;
    loop {
        tokio::time::sleep(EVERY).await;
        let (limit, used) = (memory.limit(), memory.used());
        if used < limit / SHARE {
            continue;
        }
        let Some(held) = own() else { break };
        let more = held.saturating_sub(used);
        if is_worth_returning(limit, held, more, beyond) {
            // A query's end may have returned memory just now: what is left then may still be returned at the next look.
            if tokio::task::spawn_blocking(jindou::trim)
                .await
                .unwrap_or(false)
            {
                beyond = own().map_or(more, |held| held.saturating_sub(memory.used()));
            }
        } else {
            beyond = beyond.min(more);
        }
    }
    // Only Linux says how much it is.
    std::future::pending().await
}

/// True if so much is held that some should be returned: `held` bytes, `more` than are charged, where `beyond` could not be returned
/// the last time.
fn is_worth_returning(limit: u64, held: u64, more: u64, beyond: u64) -> bool {
    held >= limit / 4 * NEAR && more > beyond.saturating_add(limit / SHARE)
}

/// Resident bytes of the process that are not mapped files, if the system says.
fn own() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("RssAnon:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_returned_near_the_limit_and_not_for_what_cannot_be_returned() {
        let m = 1 << 20;
        assert!(is_worth_returning(1024 * m, 1100 * m, 300 * m, 0));
        assert!(!is_worth_returning(1024 * m, 500 * m, 300 * m, 0));
        assert!(!is_worth_returning(1024 * m, 1100 * m, 300 * m, 290 * m));
        assert!(!is_worth_returning(1024 * m, 1100 * m, 60 * m, 0));
        assert!(!is_worth_returning(u64::MAX, 1 << 40, 1 << 39, 0));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn memory_that_is_written_to_is_counted() {
        let before = own().expect("the system says");
        let piece = std::hint::black_box(vec![1u8; 64 << 20]);
        let after = own().expect("the system says");
        assert!(after >= before + (32 << 20), "{before} {after}");
        drop(piece);
    }
}
