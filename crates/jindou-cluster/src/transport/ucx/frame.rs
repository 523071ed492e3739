//! Messages in transit: a frame and a payload each.

use bytemuck::{Pod, Zeroable};

/// The kinds of frames.
pub(super) mod what {
    /// A message that expects an answer.
    pub const REQUEST: u8 = 1;
    /// A message without an answer.
    pub const ONE_WAY: u8 = 2;
    /// Ranges of a region to send back in one reply.
    pub const GATHER: u8 = 3;
    /// A probe that tests both directions.
    pub const PING: u8 = 4;
    /// The answer to one of these.
    pub const REPLY: u8 = 5;
}

/// The outcome of a request, in a reply's frame.
pub(super) mod outcome {
    /// The payload is the answer.
    pub const OK: u8 = 0;
    /// The payload is the reason.
    pub const REFUSED: u8 = 1;
    /// The frame's epoch is the receiver's.
    pub const STALE: u8 = 2;
}

/// Header of every message. Both ends have the same byte order (the store format is little-endian too).
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(super) struct UcxFrame {
    /// One of [`what`].
    pub what: u8,
    /// One of [`outcome`], in replies only.
    pub outcome: u8,
    /// The application's kind.
    pub kind: u16,
    /// The receiver's number for the connection.
    pub connection: u32,
    /// The sender's number for the request.
    pub request: u64,
    /// The placement epoch.
    pub epoch: u64,
}

/// A received frame and its payload.
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
