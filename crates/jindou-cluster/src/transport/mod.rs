//! One-sided reads: how servers read each other's memory.
//!
//! Three properties hold for every implementation:
//!
//! - **Every read has a deadline** and ends by it, either with its bytes or with a [`TransportError`] that gives the
//!   reason. Nothing is written to the caller's buffer after that.
//! - **Registered memory never changes**, so a read needs no agreement with its owner but the region's descriptor. An owner
//!   keeps a region registered until no peer that was given the descriptor still reads it.
//! - **Trust**: there is neither authentication nor encryption. A client that can connect can read all registered
//!   memory, and with UCX's emulated reads any address of the process. Transports are for one administrative domain on a
//!   network that strangers cannot reach.
//!
//! Descriptors, and the address with which a peer connects, are bytes that the caller sends by other means. Those also
//! tell who is dead: files, for example, stay readable.
//!
//! [`files::Files`] is for servers on one machine, [`ucx::UcxTransport`] for RDMA and TCP.

mod error;
pub mod files;
pub mod ucx;

pub use error::{Result, TransportError};

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

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

    /// The file from which all of it is mapped; `None` if it is not a file.
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
    /// The owner's address of the first byte (for others meaningful only as a base).
    pub base: u64,
    /// Length in bytes.
    pub len: u64,
    /// The transport's access key.
    pub key: Vec<u8>,
}

impl RegionDescriptor {
    /// Appends the descriptor to a message: 20 bytes and the key, little-endian.
    pub fn encode(&self, out: &mut Vec<u8>) {
        for n in [self.base, self.len] {
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
        let (base, len) = (number()?, number()?);
        let (n, rest) = bytes.split_first_chunk::<4>()?;
        let (key, rest) = rest.split_at_checked(u32::from_le_bytes(*n) as usize)?;
        *bytes = rest;
        Some(Self {
            base,
            len,
            key: key.to_vec(),
        })
    }
}

/// A peer's region as held by this side; made by [`Link::attach`], valid for that link only.
#[derive(Clone, Copy, Debug)]
pub struct RemoteRegion {
    pub(crate) slot: u32,
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

/// One server's end. All methods may be called from any thread.
pub trait Transport: Send + Sync {
    /// The address that others pass to [`Self::connect`].
    fn address(&self) -> Result<Vec<u8>>;

    /// Lets peers read `memory`, which stays alive until [`Self::release`] or [`Self::close`]. Returns the number of the
    /// region, too.
    fn register(&self, memory: Arc<dyn Memory>) -> Result<(u64, RegionDescriptor)>;

    /// Revokes a region. A read in progress may fail, or (if reads are emulated in software) access unmapped memory: the
    /// caller must have waited until no peer reads it.
    fn release(&self, region: u64);

    /// A link to another end, over which nothing was sent yet.
    fn connect(&self, address: &[u8]) -> Result<Arc<dyn Link>>;

    /// Ends all links; every read in progress ends with [`TransportError::Closed`].
    fn close(&self);
}

/// The way to another server's memory.
pub trait Link: Send + Sync {
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
        deadline: Instant,
    ) -> Result<()>;

    /// Ends it.
    fn close(&self);
}

/// Performs the checks that every implementation needs before a read.
pub(crate) fn check_read(region: RemoteRegion, ranges: &[ByteRange], into: &[u8]) -> Result<()> {
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
