//! Transports: how servers read each other's memory and send each other messages.
//!
//! Three properties hold for every implementation:
//!
//! - **Every operation has a deadline** and ends by it, either with its result or with a [`TransportError`] that gives
//!   the reason. Nothing is written to the caller's buffer after that.
//! - **Every message and every region descriptor carries a placement [`Epoch`].** A message of another epoch than the
//!   receiver's is refused there; a read with a descriptor of an older epoch than the peer is known to be in is refused
//!   here, before anything is sent. Until this side has heard of a peer's step to a new epoch (the peer pushes the
//!   number at once), a read may still be served from the old region. That is harmless because registered memory never
//!   changes: the reader sees the old epoch's immutable base, as its query's snapshot promises. So a server must keep
//!   an old epoch's regions registered until the longest deadline given out under it has passed.
//! - **Trust**: there is neither authentication nor encryption. A client that can connect can read all registered
//!   memory and call all handlers, and with UCX's emulated reads any address of the process. Transports are
//!   for one administrative domain on a network that strangers cannot reach; they bind to loopback unless
//!   told otherwise.

mod error;
#[cfg(any(test, feature = "testing"))]
pub mod memory;
pub mod ucx;

pub use error::{Result, TransportError};

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The number of a placement of partitions on servers. It only grows, and is assigned by the coordinator.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Epoch(pub u64);

/// A point in time on one transport's own clock (real or virtual): the time since the clock's start.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Moment(pub Duration);

impl Moment {
    /// The moment that much later, or the last possible moment if that is past it.
    #[must_use]
    pub fn after(self, wait: Duration) -> Self {
        Self(self.0.saturating_add(wait))
    }

    /// The time from `earlier` to this moment; zero if that is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

/// Memory that others may read while it is registered.
///
/// # Safety
/// Transports hand its address to other processes and to their own threads, which read without asking again. So every
/// call must return the same address and length, and the bytes must stay there unchanged as long as the value lives,
/// wherever it is moved.
///
/// Only `unsafe` code can implement it:
///
/// ```compile_fail
/// struct Mine;
/// impl jindou_cluster::transport::Memory for Mine {
///     fn bytes(&self) -> &[u8] {
///         &[]
///     }
/// }
/// ```
pub unsafe trait Memory: Send + Sync {
    /// The bytes.
    fn bytes(&self) -> &[u8];

    /// The file from which all of it is mapped; `None` if it is not a file. Readers on the same machine may map it
    /// themselves.
    fn file(&self) -> Option<&Path> {
        None
    }
}

// SAFETY: a vector's bytes lie on the heap, where they stay when it is moved; transports hold it after a shared `Arc`, through
// which it cannot be changed.
unsafe impl Memory for Vec<u8> {
    fn bytes(&self) -> &[u8] {
        self
    }
}

/// The descriptor that a peer needs in order to read a registered region. Made by [`Transport::register`], sent to
/// others as bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionDescriptor {
    /// Number of the region on its owner.
    pub region: u64,
    /// The epoch in which it was registered.
    pub epoch: Epoch,
    /// The owner's address of the first byte (for others meaningful only as a base).
    pub base: u64,
    /// Length in bytes.
    pub len: u64,
    /// The transport's access key.
    pub key: Vec<u8>,
}

impl RegionDescriptor {
    /// Appends the descriptor to a message: 36 bytes and the key, little-endian.
    pub fn encode(&self, out: &mut Vec<u8>) {
        for n in [self.region, self.epoch.0, self.base, self.len] {
            out.extend_from_slice(&n.to_le_bytes());
        }
        out.extend_from_slice(&(self.key.len() as u32).to_le_bytes());
        out.extend_from_slice(&self.key);
    }

    /// Takes a descriptor off the front of a message; `None` if it is truncated.
    #[must_use]
    pub fn decode(bytes: &mut &[u8]) -> Option<Self> {
        let mut number = || {
            let (n, rest) = bytes.split_first_chunk::<8>()?;
            *bytes = rest;
            Some(u64::from_le_bytes(*n))
        };
        let (region, epoch, base, len) = (number()?, number()?, number()?, number()?);
        let (n, rest) = bytes.split_first_chunk::<4>()?;
        let (key, rest) = rest.split_at_checked(u32::from_le_bytes(*n) as usize)?;
        *bytes = rest;
        Some(Self {
            region,
            epoch: Epoch(epoch),
            base,
            len,
            key: key.to_vec(),
        })
    }
}

/// A peer's region as held by this side; made by [`Peer::attach`], valid for that peer only.
#[derive(Clone, Copy, Debug)]
pub struct RemoteRegion {
    pub(crate) slot: u32,
    /// The descriptor's epoch.
    pub epoch: Epoch,
    /// Length in bytes.
    pub len: u64,
}

/// A range of bytes in a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteRange {
    /// First byte, from the region's start.
    pub offset: u64,
    /// Length in bytes.
    pub len: u32,
}

/// A message as its handler sees it. Its epoch has been checked against the receiver's.
#[derive(Clone, Copy)]
pub struct Message<'a> {
    /// The kind of message; chosen by the application.
    pub kind: u16,
    /// The placement epoch in which it was sent.
    pub epoch: Epoch,
    /// The sender's name, for messages to people.
    pub from: &'a str,
    /// The sender, for later messages over the connection on which this one arrived; `None` if the transport does not
    /// support that.
    pub peer: Option<&'a Arc<dyn Peer>>,
    /// Content.
    pub payload: &'a [u8],
}

impl std::fmt::Debug for Message<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Message")
            .field("kind", &self.kind)
            .field("epoch", &self.epoch)
            .field("from", &self.from)
            .field("payload", &self.payload)
            .finish_non_exhaustive()
    }
}

/// Answers messages of one kind. Runs on the transport's own thread: it must not block, and must not wait
/// for another operation of the same transport.
pub trait Handler: Send + Sync {
    /// Appends the answer to `reply` (dropped for one-way messages), or returns an error, which the sender gets as
    /// [`TransportError::Refused`].
    fn handle(&self, message: &Message<'_>, reply: &mut Vec<u8>)
    -> std::result::Result<(), String>;
}

impl<F> Handler for F
where
    F: Fn(&Message<'_>, &mut Vec<u8>) -> std::result::Result<(), String> + Send + Sync,
{
    fn handle(
        &self,
        message: &Message<'_>,
        reply: &mut Vec<u8>,
    ) -> std::result::Result<(), String> {
        self(message, reply)
    }
}

/// Longest payload of a message or reply in bytes.
pub const MAX_MESSAGE: usize = 16 << 20;

/// One server's (or reader's) end. All methods may be called from any thread.
pub trait Transport: Send + Sync {
    /// Address that others pass to [`Self::connect`].
    fn address(&self) -> String;

    /// The current time on this transport's clock.
    fn now(&self) -> Moment;

    /// The moment `wait` from now, as a deadline.
    fn deadline(&self, wait: Duration) -> Moment {
        self.now().after(wait)
    }

    /// The placement epoch of this end.
    fn epoch(&self) -> Epoch;

    /// Steps to a later epoch: from here on messages of other epochs are refused, and connected peers are told. Refused
    /// for an earlier epoch than the present one.
    fn advance(&self, epoch: Epoch) -> Result<()>;

    /// Lets peers read `memory`, which stays alive until [`Self::release`] or [`Self::close`].
    fn register(&self, memory: Arc<dyn Memory>) -> Result<RegionDescriptor>;

    /// Revokes a region. The caller must have waited for the longest deadline of any reader: a read in progress may
    /// fail, or (if reads are emulated in software) access unmapped memory.
    fn release(&self, region: u64) -> Result<()>;

    /// Registers `handler` for messages of `kind`. Refused if the kind is taken.
    fn handle(&self, kind: u16, handler: Arc<dyn Handler>) -> Result<()>;

    /// Connects to another end.
    fn connect(&self, address: &str, deadline: Moment) -> Result<Arc<dyn Peer>>;

    /// Ends all connections; every operation in progress ends with [`TransportError::Closed`].
    fn close(&self);
}

/// Another server as seen by this one.
pub trait Peer: Send + Sync {
    /// Its address.
    fn name(&self) -> &str;

    /// The newest epoch in which it is known to be.
    fn epoch(&self) -> Epoch;

    /// The reason why it counts as dead, if it does. A dead peer stays dead: connect again.
    fn failure(&self) -> Option<String>;

    /// Makes a region readable. Needed once per region, not once per read.
    fn attach(&self, descriptor: &RegionDescriptor) -> Result<RemoteRegion>;

    /// Reads `ranges` of `region` into `into`, one after the other, in one round trip if the transport can do so.
    /// `into` must be as long as all ranges together, and the ranges must lie in the region. After a failure the
    /// content of `into` is arbitrary, but it is not written to later. A read that does not need to wait may succeed
    /// although the deadline has passed.
    fn read_many(
        &self,
        region: RemoteRegion,
        ranges: &[ByteRange],
        into: &mut [u8],
        deadline: Moment,
    ) -> Result<()>;

    /// Sends a message and waits for the answer, which is appended to `reply`. After a timeout the handler may or may
    /// not have run.
    fn call(
        &self,
        kind: u16,
        epoch: Epoch,
        payload: &[u8],
        reply: &mut Vec<u8>,
        deadline: Moment,
    ) -> Result<()>;

    /// Sends a message without an answer. Ok means handed over, not handled: it may be lost with the connection, and
    /// two messages may be handled in either order.
    fn send(&self, kind: u16, epoch: Epoch, payload: &[u8], deadline: Moment) -> Result<()>;

    /// Ends this connection.
    fn close(&self);
}

/// Performs the checks that every implementation needs before a read; returns the total length.
pub(crate) fn check_read(
    peer: &dyn Peer,
    region: RemoteRegion,
    ranges: &[ByteRange],
    into: &[u8],
) -> Result<()> {
    let current = peer.epoch();
    if region.epoch < current {
        return Err(TransportError::StaleEpoch {
            held: region.epoch,
            current,
        });
    }
    let mut total = 0u64;
    for r in ranges {
        if r.offset
            .checked_add(u64::from(r.len))
            .is_none_or(|end| end > region.len)
        {
            return Err(TransportError::Refused(format!(
                "bytes {}..+{} are outside a region of {} bytes",
                r.offset, r.len, region.len
            )));
        }
        total += u64::from(r.len);
    }
    if total != into.len() as u64 {
        return Err(TransportError::Refused(format!(
            "the ranges have {total} bytes, the buffer {}",
            into.len()
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_descriptor_comes_back_and_a_cut_one_does_not() {
        let d = RegionDescriptor {
            region: 7,
            epoch: Epoch(3),
            base: 0xFFFF_0000,
            len: 99,
            key: vec![1, 2, 3],
        };
        let mut bytes = Vec::new();
        d.encode(&mut bytes);
        let mut rest = &bytes[..];
        assert_eq!(RegionDescriptor::decode(&mut rest), Some(d));
        assert!(rest.is_empty());
        for cut in 0..bytes.len() {
            assert_eq!(RegionDescriptor::decode(&mut &bytes[..cut]), None);
        }
    }
}
