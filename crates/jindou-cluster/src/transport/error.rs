//! Errors of the transport between two servers.

use super::Epoch;
use std::time::Duration;

/// Reason why an operation failed. The kinds are few and differ in the remedy: try elsewhere ([`Self::Deadline`],
/// [`Self::PeerDead`]), fetch the placement again ([`Self::StaleEpoch`]), stop ([`Self::Closed`]), report a bug or a
/// wrong setting ([`Self::Refused`], [`Self::Unavailable`]).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransportError {
    /// No answer in time. The peer may be dead, stopped, cut off or slow: these cannot be told apart.
    #[error("{peer} did not answer in {waited:?}")]
    Deadline {
        /// Address of the peer.
        peer: String,
        /// Time from the operation's start to its end.
        waited: Duration,
    },
    /// The peer is known to be gone, or has been silent for so long that it counts as gone.
    #[error("{peer} is dead: {reason}")]
    PeerDead {
        /// Address of the peer.
        peer: String,
        /// Evidence that it is gone.
        reason: String,
    },
    /// The operation belongs to an epoch that one side has left.
    #[error("the operation has placement epoch {}, but the current one is {}; fetch the placement again", .held.0, .current.0)]
    StaleEpoch {
        /// The operation's epoch.
        held: Epoch,
        /// The epoch of the side that refused it.
        current: Epoch,
    },
    /// This end or this connection was closed.
    #[error("the connection is closed")]
    Closed,
    /// The transport or the peer's handler rejected the operation as invalid.
    #[error("refused: {0}")]
    Refused(String),
    /// The transport cannot be used on this machine, or not with these settings.
    #[error("{0}")]
    Unavailable(String),
}

/// Shorthand used in this module.
pub type Result<T, E = TransportError> = std::result::Result<T, E>;
