//! Work on threads that may block.

use std::io;

/// Runs work on a thread that may block. If the work panics, that is an error as well.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(io::Error::other).flatten()
}
