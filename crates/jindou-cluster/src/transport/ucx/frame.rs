//! The messages on the wire: a frame and a payload each.

use bytemuck::{Pod, Zeroable};

/// The kinds of frames.
pub(super) mod what {
    /// A message that wants an answer.
    pub const REQUEST: u8 = 1;
    /// One that wants none.
    pub const ONE_WAY: u8 = 2;
    /// Ranges of a region to send back in one reply.
    pub const GATHER: u8 = 3;
    /// "Are you there": proves that both directions work.
    pub const PING: u8 = 4;
    /// The answer to one of those.
    pub const REPLY: u8 = 5;
}

/// How a request went, in a reply's frame.
pub(super) mod outcome {
    /// The payload is the answer.
    pub const OK: u8 = 0;
    /// The payload is the reason.
    pub const REFUSED: u8 = 1;
    /// The frame's epoch is the receiver's.
    pub const STALE: u8 = 2;
}

/// Goes before every message. Both ends have the same byte order (the store format is little-endian too).
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(super) struct UcxFrame {
    /// [`what`].
    pub what: u8,
    /// [`outcome`], replies only.
    pub outcome: u8,
    /// The application's kind.
    pub kind: u16,
    /// The receiver's number of the connection.
    pub connection: u32,
    /// The sender's number of the request.
    pub request: u64,
    /// The placement epoch.
    pub epoch: u64,
}

/// A frame that arrived and its payload.
#[derive(Debug)]
pub(super) struct Incoming {
    pub frame: UcxFrame,
    pub payload: Vec<u8>,
}

/// One range of a [`what::GATHER`], after the region's number.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(super) struct GatherRange {
    pub offset: u64,
    pub len: u64,
}
