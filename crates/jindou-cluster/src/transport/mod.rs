//! One-sided reads of another server's memory.
//!
//! Every implementation guarantees three properties:
//!
//! - **Every read has a deadline** by which it ends, either with its bytes or with a [`TransportError`] that gives the
//!   reason. After that nothing is written to the caller's buffer.
//! - **Registered memory never changes**, so a read needs only the region's descriptor and no agreement with the owner.
//!   The owner must keep a region registered until no peer that received the descriptor reads it any more.
//! - **Trust**: there is neither authentication nor encryption. A client that can connect can read all registered
//!   memory, and with UCX's emulated reads any address of the process. Use transports only within one administrative
//!   domain, on a network that strangers cannot reach.
//!
//! Descriptors, and the address with which a peer connects, are bytes that the caller sends over another connection.
//! The caller also detects dead peers by that connection, since files, for example, stay readable after their owner has
//! died.
//!
//! [`files::Files`] is for servers on one machine; [`ucx::UcxTransport`] is for RDMA and TCP.

mod error;
pub mod files;
pub mod ucx;

pub use error::{Result, TransportError};

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// Memory that peers may read while it is registered.
///
/// # Safety
/// Transports pass the memory's address to other processes and to their own threads, which read it without calling this
/// trait again. So every call must return the same address and length, and the bytes at this address must stay
/// unchanged as long as the value lives, wherever the value is moved.
///
/// Implementing this trait requires `unsafe`:
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
    /// The bytes that peers may read.
    fn bytes(&self) -> &[u8];

    /// The file from which all of the memory is mapped; `None` if it is not mapped from a file.
    fn file(&self) -> Option<&Path> {
        None
    }
}

// SAFETY: a vector's bytes lie on the heap, where they stay when the vector is moved; transports hold the vector in a
// shared `Arc`, through which it cannot be changed.
unsafe impl Memory for Vec<u8> {
    fn bytes(&self) -> &[u8] {
        self
    }
}

/// The descriptor that a peer needs to read a registered region. Created by [`Transport::register`], and sent to peers
/// as bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionDescriptor {
    /// Address of the first byte in the owner's process. Peers use it only to compute addresses for reads.
    pub base: u64,
    /// Length in bytes.
    pub len: u64,
    /// The transport's access key for the region.
    pub key: Vec<u8>,
}

impl RegionDescriptor {
    /// Appends the encoded descriptor to a message: 20 bytes and the key, little-endian.
    pub fn encode(&self, out: &mut Vec<u8>) {
        for n in [self.base, self.len] {
            out.extend_from_slice(&n.to_le_bytes());
        }
        out.extend_from_slice(&(self.key.len() as u32).to_le_bytes());
        out.extend_from_slice(&self.key);
    }

    /// Decodes a descriptor from the beginning of `bytes` and advances `bytes`; `None` if it is truncated.
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

/// A peer's region, attached by [`Link::attach`]. Valid for that link only.
#[derive(Clone, Copy, Debug)]
pub struct RemoteRegion {
    pub(crate) slot: u32,
    /// Length in bytes.
    pub len: u64,
}

/// A range of bytes in a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteRange {
    /// Offset of the first byte from the region's start.
    pub offset: u64,
    /// Length in bytes.
    pub len: u32,
}

/// One server's end of a transport. All methods may be called from any thread.
pub trait Transport: Send + Sync {
    /// The address that peers pass to [`Self::connect`].
    fn address(&self) -> Result<Vec<u8>>;

    /// Lets peers read `memory`, which is kept alive until [`Self::release`], or until the transport is dropped. Returns
    /// the number of the region, and its descriptor.
    fn register(&self, memory: Arc<dyn Memory>) -> Result<(u64, RegionDescriptor)>;

    /// Revokes a region. A read in progress may fail or, if reads are emulated in software, access unmapped memory. So
    /// the caller must first wait until no peer reads the region.
    fn release(&self, region: u64);

    /// Creates a link to a peer. Nothing is sent yet.
    fn connect(&self, address: &[u8]) -> Result<Arc<dyn Link>>;
}

/// A connection for reading one peer's memory.
pub trait Link: Send + Sync {
    /// Makes a region readable over this link. Needed once per region, not once per read.
    fn attach(&self, descriptor: &RegionDescriptor) -> Result<RemoteRegion>;

    /// Reads `ranges` of `region` into `into`, one after the other, in one round trip if the transport supports that.
    /// The length of `into` must be the sum of the ranges' lengths, and all ranges must be within the region. After a
    /// failure the content of `into` is arbitrary, but no longer changes. A read that does not need to wait may succeed
    /// although the deadline has passed.
    fn read_many(
        &self,
        region: RemoteRegion,
        ranges: &[ByteRange],
        into: &mut [u8],
        deadline: Instant,
    ) -> Result<()>;

    /// Closes the link.
    fn close(&self);
}

/// Checks the arguments of [`Link::read_many`], for all implementations.
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
