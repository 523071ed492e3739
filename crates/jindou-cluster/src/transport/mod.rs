//! How servers reach each other's memory and send each other messages.
//!
//! Three things hold for every implementation:
//!
//! - **Every operation has a deadline** and ends by it: with its result or with a [`TransportError`] that
//!   says what is wrong. Nothing is written to the caller's buffer after that.
//! - **Every message and every region descriptor carries a placement [`Epoch`].** A message of another epoch
//!   than the receiver's is refused there; a read with a descriptor of an older epoch than the peer is known
//!   to be in is refused here, before anything is sent. Between a peer's step to a new epoch and the moment
//!   this side hears of it (the peer pushes the number at once) a read may still be served from the old
//!   region. That is harmless because registered memory never changes: the reader sees the old epoch's
//!   immutable base, as its query's snapshot promises. So a server must keep an old epoch's regions
//!   registered until the longest deadline given out under it has passed.
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

/// The number of a placement of partitions on servers. Only grows; the coordinator gives it out.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Epoch(pub u64);

/// A point in time on one transport's own clock (real or virtual): the time since the clock's start.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Moment(pub Duration);

impl Moment {
    /// The moment that much later; the last one there is, if that is past it.
    #[must_use]
    pub fn after(self, wait: Duration) -> Self {
        Self(self.0.saturating_add(wait))
    }

    /// The time from `earlier` to here; zero if it is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

/// Memory that others may read while it is registered.
///
/// # Safety
/// Transports hand its address to other processes and to their own threads, which read without asking again. So every call
/// gives the same address and length, and the bytes stay there unchanged as long as the value lives, wherever it is moved.
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

    /// The file that all of it is mapped from; `None` if it is not a file. Readers on the same machine may map it themselves.
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

/// The descriptor that a peer must hold to read a registered region. Made by [`Transport::register`], sent to others as bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionDescriptor {
    /// Number of the region on its owner.
    pub region: u64,
    /// The epoch in which it was registered.
    pub epoch: Epoch,
    /// The owner's address of the first byte (meaningless to others but as a base).
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

    /// Takes a descriptor off the front of a message; `None` if it is cut short.
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

/// A peer's region as this side holds it; made by [`Peer::attach`], valid on that peer only.
#[derive(Clone, Copy, Debug)]
pub struct RemoteRegion {
    pub(crate) slot: u32,
    /// The descriptor's epoch.
    pub epoch: Epoch,
    /// Length in bytes.
    pub len: u64,
}

/// Some bytes of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteRange {
    /// First byte, from the region's start.
    pub offset: u64,
    /// Length in bytes.
    pub len: u32,
}

/// A message as its handler sees it. Its epoch already agreed with the receiver's.
#[derive(Clone, Copy)]
pub struct Message<'a> {
    /// The kind of message; chosen by the application.
    pub kind: u16,
    /// The placement epoch it was sent in.
    pub epoch: Epoch,
    /// The sender's name, for messages to people.
    pub from: &'a str,
    /// The sender, to send to it later, over the connection that the message came on; `None` where the transport has no such way.
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
    /// Appends the answer to `reply` (dropped for one-way messages), or says why not; the sender gets the
    /// reason as [`TransportError::Refused`].
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
    /// Where others can [`Self::connect`] to.
    fn address(&self) -> String;

    /// Now, on this transport's clock.
    fn now(&self) -> Moment;

    /// The moment `wait` from now, as a deadline.
    fn deadline(&self, wait: Duration) -> Moment {
        self.now().after(wait)
    }

    /// The placement epoch this end is in.
    fn epoch(&self) -> Epoch;

    /// Steps to a later epoch: from here on messages of others are refused, and connected peers are told.
    /// Refused for an earlier epoch than the present one.
    fn advance(&self, epoch: Epoch) -> Result<()>;

    /// Lets peers read `memory`, which stays alive until [`Self::release`] or [`Self::close`].
    fn register(&self, memory: Arc<dyn Memory>) -> Result<RegionDescriptor>;

    /// Takes a region back. The caller must have waited for the longest deadline of any reader: a read that
    /// is under way may fail, or (where reads are emulated in software) reach unmapped memory.
    fn release(&self, region: u64) -> Result<()>;

    /// Has messages of `kind` answered by `handler`. Refused if the kind is taken.
    fn handle(&self, kind: u16, handler: Arc<dyn Handler>) -> Result<()>;

    /// Connects to another end.
    fn connect(&self, address: &str, deadline: Moment) -> Result<Arc<dyn Peer>>;

    /// Ends all connections; every operation under way ends with [`TransportError::Closed`].
    fn close(&self);
}

/// Another server as this one sees it.
pub trait Peer: Send + Sync {
    /// Its address.
    fn name(&self) -> &str;

    /// The newest epoch it is known to be in.
    fn epoch(&self) -> Epoch;

    /// Why it is taken for dead, if it is. A dead peer stays dead: connect again.
    fn failure(&self) -> Option<String>;

    /// Makes a region readable. Once a region, not once a read.
    fn attach(&self, descriptor: &RegionDescriptor) -> Result<RemoteRegion>;

    /// Reads `ranges` of `region` into `into`, one after the other, in one round trip where the transport
    /// can. `into` must be as long as all ranges together, and the ranges must lie in the region. When it
    /// fails, `into` holds anything, but is not written to later. What needs no waiting at all may succeed
    /// although the deadline has passed.
    fn read_many(
        &self,
        region: RemoteRegion,
        ranges: &[ByteRange],
        into: &mut [u8],
        deadline: Moment,
    ) -> Result<()>;

    /// Sends a message and waits for the answer, which is appended to `reply`. On a deadline the handler may
    /// have run or not.
    fn call(
        &self,
        kind: u16,
        epoch: Epoch,
        payload: &[u8],
        reply: &mut Vec<u8>,
        deadline: Moment,
    ) -> Result<()>;

    /// Sends a message that wants no answer. Ok means handed over, not handled: it may be lost with the
    /// connection, and two messages may be handled in either order.
    fn send(&self, kind: u16, epoch: Epoch, payload: &[u8], deadline: Moment) -> Result<()>;

    /// Ends this connection.
    fn close(&self);
}

/// Checks what every implementation checks before a read; gives the total length.
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
