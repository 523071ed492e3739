//! Errors of reads between two servers.

use std::time::Duration;

/// Reason why an operation failed. In each case data is requested by message instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransportError {
    /// The bytes did not come in time. The peer may be dead, stopped, cut off or slow: these cannot be told apart.
    #[error("no answer in {0:?}")]
    Deadline(Duration),
    /// The peer is known to be gone.
    #[error("the peer is dead: {0}")]
    PeerDead(String),
    /// This end or this connection was closed.
    #[error("the connection is closed")]
    Closed,
    /// The transport rejected the operation as invalid, or the peer has sent invalid data.
    #[error("refused: {0}")]
    Refused(String),
    /// The transport cannot be used on this machine, or not with these settings.
    #[error("{0}")]
    Unavailable(String),
}

/// Shorthand used in this module.
pub type Result<T, E = TransportError> = std::result::Result<T, E>;
