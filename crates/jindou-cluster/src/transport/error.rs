//! Errors of one-sided reads.

use std::time::Duration;

/// Reason why a read or another operation failed. The data is then requested by message instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransportError {
    /// The bytes did not arrive in time. The peer may be dead, stopped, disconnected or slow; these cannot be
    /// distinguished.
    #[error("no answer in {0:?}")]
    Deadline(Duration),
    /// The peer is known to be dead.
    #[error("the peer is dead: {0}")]
    PeerDead(String),
    /// This end or this link was closed.
    #[error("the connection is closed")]
    Closed,
    /// The transport rejected the operation as invalid, or the peer sent invalid data.
    #[error("refused: {0}")]
    Refused(String),
    /// The transport cannot be used on this machine, or not with these settings.
    #[error("{0}")]
    Unavailable(String),
}

/// Result with a [`TransportError`].
pub type Result<T, E = TransportError> = std::result::Result<T, E>;
