//! Work on several threads.

/// Runs `work(n)` for each number below `threads`, each on a thread of its own, or the only one on the caller's. Returns
/// the results in order; a panic of a thread is passed on to the caller.
pub(crate) fn on_threads<T: Send>(threads: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    if threads <= 1 {
        return vec![work(0)];
    }
    std::thread::scope(|scope| {
        let work = &work;
        let running: Vec<_> = (0..threads).map(|n| scope.spawn(move || work(n))).collect();
        running
            .into_iter()
            .map(|t| {
                t.join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
            .collect()
    })
}
