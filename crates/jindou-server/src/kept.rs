//! Returns free memory that the allocator holds to the system while many queries run.
//!
//! When a large query ends, its memory is returned at once ([`Admitted`](crate::admission::Admitted)). But if other
//! queries are running, freed blocks lie between used ones, and the process may hold half as much again as its queries
//! are charged for. So memory is also returned while queries run, but only if the process is near its memory limit:
//! returning takes tens of milliseconds per gigabyte, during which other threads may wait for the allocator.

use jindou::MemoryBudget;
use std::time::Duration;

/// Time between two checks.
const EVERY: Duration = Duration::from_millis(100);
/// Memory is returned only if the process holds at least this many fourths of the limit.
const NEAR: u64 = 3;
/// Memory is returned only if at least the limit divided by this number is held without being charged.
const SHARE: u64 = 16;

/// Checks the process's memory periodically; never completes.
pub(crate) async fn watch(memory: &MemoryBudget) {
    // Bytes that were held without being charged after memory was last returned, and so cannot be returned.
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
            // `trim` does nothing if a query that ended has just returned memory; then the next check tries again.
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
    // Only Linux reports how much memory the process holds; elsewhere nothing is checked.
    std::future::pending().await
}

/// True if memory should be returned. The process holds `held` bytes, of which `more` are not charged, and of these
/// `beyond` could not be returned the last time.
fn is_worth_returning(limit: u64, held: u64, more: u64, beyond: u64) -> bool {
    held >= limit / 4 * NEAR && more > beyond.saturating_add(limit / SHARE)
}

/// Resident bytes of the process without mapped files; `None` if the system does not report them.
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
