//! A paged segment: its address range, and which pages belong to each of its blocks.

use crate::device::Device;
use crate::params;
use jindou_graph::segment::GraphScope;
use jindou_model::{Direction, PredicateId};
use std::ops::Range;
use std::sync::Arc;

/// Key of a paged segment. It changes with the segment's file, so a merge makes a new one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct SegmentVersion {
    pub(super) epoch: u64,
    pub(super) predicate: PredicateId,
    pub(super) direction: Direction,
    pub(super) generation: u32,
    pub(super) union: bool,
}

impl SegmentVersion {
    pub(super) fn scope(&self) -> GraphScope<'static> {
        if self.union {
            GraphScope::Union
        } else {
            GraphScope::Default
        }
    }
}

/// A reserved address range. It is released on drop, when no page may be mapped in it.
pub(super) struct Addresses {
    pub(super) device: Arc<Device>,
    pub(super) at: u64,
    pub(super) bytes: usize,
}

impl Drop for Addresses {
    fn drop(&mut self) {
        // SAFETY: reserved with this length, once; all of its pages were unmapped.
        unsafe { self.device.unreserve(self.at, self.bytes) };
    }
}

/// A segment of which some or all blocks may be in the device's memory.
pub(crate) struct PagedSegment {
    pub(super) number: u32,
    pub(super) name: SegmentVersion,
    /// The segment in the form of kernel parameters.
    pub params: params::SegmentParams,
    pub(super) addresses: Addresses,
    /// Numbers of pages of the index, which comes first, and of the neighbours.
    pub(super) index: u64,
    pub(super) neighbours: u64,
    pub(super) page: usize,
    pub(super) pairwise: bool,
}

impl PagedSegment {
    pub(super) fn blocks(&self) -> u64 {
        if self.pairwise {
            self.index.max(self.neighbours)
        } else {
            self.index + self.neighbours
        }
    }

    /// The pages of a block, as two ranges: in the index, and in the neighbours.
    pub(super) fn pages_of(&self, number: u32) -> [Range<u64>; 2] {
        let (n, all) = (u64::from(number), self.blocks());
        if !self.pairwise {
            return [n..n + 1, n..n];
        }
        let part = |pages: u64| n * pages / all..(n + 1) * pages / all;
        let neighbours = part(self.neighbours);
        [
            part(self.index),
            self.index + neighbours.start..self.index + neighbours.end,
        ]
    }

    pub(super) fn page_count(&self, number: u32) -> u64 {
        self.pages_of(number).map(|r| r.end - r.start).iter().sum()
    }

    /// Bytes of its pages, mapped or not.
    pub fn bytes(&self) -> u64 {
        (self.index + self.neighbours) * self.page as u64
    }
}
