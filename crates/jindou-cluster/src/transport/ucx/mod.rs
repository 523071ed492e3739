//! The transport over UCX: RDMA where the hardware supports it, shared memory within a machine, TCP elsewhere.
//!
//! `libucp.so.0` is loaded only by [`UcxTransport::new`], through bindings that are generated once
//! (`scripts/ucx-bindings.sh`) and committed.
//!
//! The tasks that UCX leaves to its users are done here:
//!
//! - **A control connection** (plain TCP) accompanies every UCX endpoint. It exchanges addresses and carries heartbeats
//!   with the epoch. UCX reports a killed TCP peer in milliseconds, but never a silent one, and a dead shared-memory
//!   peer's memory stays readable. So a peer that closes its control connection, or is silent on it for
//!   [`UcxOptions::suspect_after`], counts as dead: its endpoint is force-closed, and all operations in progress on it
//!   end.
//! - **A progress thread**: UCX's emulated reads complete only while their *target* makes progress. The thread sleeps
//!   on UCX's event descriptor, or spins if [`UcxOptions::spin`] is set.
//! - **Gathering**: over TCP, UCX emulates each read with a message of its own, so that 64 reads cost 34 times as much
//!   as one. In that case `read_many` sends one message with all ranges, which the peer's progress thread answers with
//!   one message; the peer checks epoch and bounds.
//! - **Direct reads**: if UCX maps the peer's segment into this process (shared memory), or a region is a file that
//!   this process maps as well, a read is a copy, without a lock or a call of UCX, after the same checks as any other.
//! - **Devices** are always named explicitly (UCX's default is every interface it finds).
//!
//! Nothing here is authenticated; see [`crate::transport`] for the trust boundary.

mod bare;
mod bindings;
mod control;
mod core;
mod direct;
mod frame;
mod library;
mod link;
mod mapped;
mod operation;
mod parts;
mod progress;
mod sync;
mod transport;
mod worker;

pub use library::available;
pub use transport::UcxTransport;

use std::time::Duration;

/// The carrier of the data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fabric {
    /// Shared memory: both ends on one machine, under one user. UCX reads other processes' memory directly only in
    /// segments that it made itself, so registered memory is **copied** into one, and takes twice the space. Memory
    /// that is a whole file is not copied: its readers map the file themselves, if they find it.
    SharedMemory,
    /// TCP.
    Tcp,
    /// The fastest carrier that UCX finds, RDMA first.
    Best,
}

impl Fabric {
    /// UCX's `TLS` setting.
    pub(crate) fn ucx_transports(self) -> &'static str {
        match self {
            Self::SharedMemory => "sm,self",
            Self::Tcp => "tcp,self",
            Self::Best => "all",
        }
    }

    /// True if UCX notices dead peers. Over shared memory it cannot; there only the control connection does.
    pub(crate) fn reports_death(self) -> bool {
        self != Self::SharedMemory
    }

    /// See [`Self::SharedMemory`].
    pub(crate) fn copies_memory(self) -> bool {
        self == Self::SharedMemory
    }

    /// Number of ranges in a read from which one gathering message is cheaper than single reads: measured on loopback
    /// (`docs/internals/layout.md`, Remote reads). Real one-sided reads need no help at the far end.
    pub(crate) fn gather_from(self) -> usize {
        match self {
            Self::Tcp => 2,
            Self::SharedMemory | Self::Best => usize::MAX,
        }
    }

    /// The number that both ends compare.
    pub(crate) fn code(self) -> u32 {
        self as u32
    }
}

/// Settings of one end.
#[derive(Clone, Debug)]
pub struct UcxOptions {
    /// The carrier of the data; must be the same on both ends.
    pub fabric: Fabric,
    /// UCX's `NET_DEVICES`: comma-separated, for example `lo` or `mlx5_0:1`.
    pub devices: String,
    /// Address and port on which the control connection listens; port 0 picks a free one.
    pub listen: String,
    /// True to let threads spin instead of sleep: about 10 µs faster over TCP, at the cost of a core each.
    pub spin: bool,
    /// True to read the peer's memory with plain loads instead of calls of UCX, if the fabric maps it. (Off for
    /// measurements, and to test the other way.)
    pub direct: bool,
    /// Time between heartbeats.
    pub heartbeat: Duration,
    /// Silence after which a peer counts as dead; several heartbeats.
    pub suspect_after: Duration,
}

impl UcxOptions {
    /// Options for loopback: heartbeats every 100 ms, dead after 500 ms.
    #[must_use]
    pub fn loopback(fabric: Fabric) -> Self {
        Self {
            fabric,
            devices: "lo".to_owned(),
            listen: "127.0.0.1:0".to_owned(),
            spin: false,
            direct: true,
            heartbeat: Duration::from_millis(100),
            suspect_after: Duration::from_millis(500),
        }
    }
}
