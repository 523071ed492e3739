//! The structs of `kernels/params.cuh`, which are the parameters of kernels: `ExpandParams` is `Expand` there. An
//! address is a device address, or 0 if there is none. The fields are documented there; sizes are compared when the
//! kernels are loaded.
#![allow(missing_docs)]

use bytemuck::{Pod, Zeroable};

/// Rows per block of threads in kernels that measure, test or copy rows: 256 threads with eight rows each (see
/// [`crate::Kernel::tile`]).
pub const TILE: u64 = 2048;
/// Units (rows and outputs) per block of threads in kernels that produce rows from lists: 256 threads with four each.
pub const STRIP_TILE: u64 = 1024;
/// Rows per block of threads in the kernel that measures clipped lists: 256 threads with two each.
pub const CUT_TILE: u64 = 512;
/// Largest number of columns that a kernel copies.
pub const MAX_COLUMNS: usize = 16;
/// Largest number of lists of an intersection.
pub const MAX_LISTS: usize = 6;
/// The value of `kind` in [`SegmentParams`] for characteristic sets; smaller ones are those of
/// [`jindou_graph::segment::FinderKind`].
pub const FINDER_SETS: u32 = 4;
/// Largest number of intervals of keys inside [`SegmentParams`]; more are in an array.
pub const MAX_RUNS: usize = 16;
/// Number of ids in a page of [`RanksParams`], as a power of two.
pub const RANK_SHIFT: u32 = 10;
/// Largest number of columns whose ids form the combinations of a GROUP BY.
pub const MAX_GROUP: usize = 3;
/// Largest number of columns of a GROUP BY of which only whether they are bound matters.
pub const MAX_TESTED: usize = 4;
/// Bits of a digit of sort keys, in the radix search for the first rows.
pub const BIN_BITS: u32 = 11;
/// Number of values of a digit.
pub const BINS: u32 = 1 << BIN_BITS;
/// Stands for "no page" and for "no rank".
pub const NO_KEY: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
#[repr(C)]
pub struct Run {
    pub start: u32,
    pub end: u32,
    pub base: u32,
}

#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct SegmentHead {
    pub table: u64,
    pub keys: u64,
    pub offsets: u64,
    pub neighbours: u64,
    pub dirty: u64,
    pub overlay_keys: u64,
    pub overlay_starts: u64,
    pub kind: u32,
    pub table_len: u32,
    pub first: u32,
    pub shift: u32,
    pub key_count: u32,
    pub edges: u32,
    pub dirty_mask: u32,
    pub overlay_len: u32,
}

#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct SegmentParams {
    pub head: SegmentHead,
    pub runs: [Run; MAX_RUNS],
}

impl std::ops::Deref for SegmentParams {
    type Target = SegmentHead;

    fn deref(&self) -> &SegmentHead {
        &self.head
    }
}

impl std::ops::DerefMut for SegmentParams {
    fn deref_mut(&mut self) -> &mut SegmentHead {
        &mut self.head
    }
}

#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct CatalogParams {
    pub heads: u64,
    pub terms: u64,
    pub count: u32,
    pub pad: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct OperandParams {
    pub column: u64,
    pub constant: u32,
    pub pad: u32,
}

impl OperandParams {
    /// The operand is a column of ids at this address.
    #[must_use]
    pub fn column(at: u64) -> Self {
        Self {
            column: at,
            constant: 0,
            pad: 0,
        }
    }

    /// The operand is this id in all rows.
    #[must_use]
    pub fn constant(id: u32) -> Self {
        Self {
            column: 0,
            constant: id,
            pad: 0,
        }
    }
}

#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct Within {
    pub table: u64,
    pub count: u32,
    pub pad: u32,
    pub start: u32,
    pub end: u32,
}

#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct Clip {
    pub start: u32,
    pub end: u32,
    pub lists: u32,
    pub pad: u32,
}

#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct ColumnsParams {
    pub count: u32,
    pub pad: u32,
    pub from: [u64; MAX_COLUMNS],
    pub to: [u64; MAX_COLUMNS],
}

#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct Compact {
    pub rows: u32,
    pub pad: u32,
    pub count: u64,
    pub counter: u64,
    pub columns: ColumnsParams,
}

#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct Bits {
    pub words: u64,
    pub dense: u32,
    pub first_tail: u32,
    pub tail: u32,
    pub pad: u32,
}

#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct RanksParams {
    pub pages: u64,
    pub ranks: u64,
    pub tail_bits: u64,
    pub page_count: u32,
    pub start: u32,
    pub end: u32,
    pub first_tail: u32,
    pub tail: u32,
    pub pad: u32,
}

#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct StartIntervalsParams {
    pub intervals: u64,
    pub before: u64,
    pub out: u64,
    pub begin: u64,
    pub count: u32,
    pub rows: u32,
}

#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct StartKeysParams {
    pub segment: SegmentParams,
    pub out: u64,
    pub begin: u32,
    pub rows: u32,
    pub first_block: u32,
    pub blocks: u32,
}

#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct RestrictParams {
    pub compact: Compact,
    pub operand: OperandParams,
    pub within: Within,
}

#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct SameParams {
    pub compact: Compact,
    pub left: OperandParams,
    pub right: OperandParams,
    pub negate: u32,
    pub pad: u32,
}

#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct CheckParams {
    pub compact: Compact,
    pub segment: SegmentParams,
    pub anchor: OperandParams,
    pub other: OperandParams,
}

#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct CheckAnyParams {
    pub compact: Compact,
    pub catalog: CatalogParams,
    pub anchor: OperandParams,
    pub predicate: OperandParams,
    pub other: OperandParams,
}

#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct ExpandOneParams {
    pub compact: Compact,
    pub segment: SegmentParams,
    pub anchor: OperandParams,
    pub within: Within,
    pub out: u64,
}

#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct MeasureParams {
    pub rows: u32,
    pub lists: u32,
    pub segment: SegmentParams,
    pub anchor: OperandParams,
    pub starts: u64,
    pub prefix: u64,
    pub total: u64,
    pub state: u64,
    pub ticket: u64,
    pub count: u64,
}

#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct MeasureAnyParams {
    pub rows: u32,
    pub pad: u32,
    pub catalog: CatalogParams,
    pub anchor: OperandParams,
    pub predicate: OperandParams,
    pub lists: u64,
    pub prefix: u64,
    pub total: u64,
    pub state: u64,
    pub ticket: u64,
    pub count: u64,
}

#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct ListRange {
    pub neighbours: u64,
    pub starts: u64,
    pub lengths: u64,
    pub start: u32,
    pub length: u32,
}

#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct MeasureManyParams {
    pub rows: u32,
    pub lists: u32,
    pub prefix: u64,
    pub total: u64,
    pub state: u64,
    pub ticket: u64,
    pub count: u64,
    pub clip: Clip,
    pub anchors: [OperandParams; MAX_LISTS],
    pub ranges: [ListRange; MAX_LISTS],
    pub segments: [SegmentParams; MAX_LISTS],
}

#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct ExpandParams {
    pub columns: ColumnsParams,
    pub prefix: u64,
    pub bounds: u64,
    pub starts: u64,
    pub neighbours: u64,
    pub out: u64,
    pub counter: u64,
    pub count: u64,
    pub total: u64,
    pub begin: u64,
    pub end: u64,
    pub room: u64,
    pub rows: u32,
    pub lists: u32,
    pub within: Within,
    pub ranges: [ListRange; MAX_LISTS],
}

#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct ExpandAnyParams {
    pub columns: ColumnsParams,
    pub prefix: u64,
    pub bounds: u64,
    pub lists: u64,
    pub out: u64,
    pub count: u64,
    pub total: u64,
    pub begin: u64,
    pub end: u64,
    pub room: u64,
    pub rows: u32,
    pub pad: u32,
}

#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct CompareParams {
    pub compact: Compact,
    pub operand: OperandParams,
    pub ranks: RanksParams,
}

#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct MarkParams {
    pub bits: Bits,
    pub operand: OperandParams,
    pub prefix: u64,
    pub rows: u32,
    pub pad: u32,
}

#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct TestParams {
    pub compact: Compact,
    pub bits: Bits,
    pub operand: OperandParams,
    pub want: u32,
    pub by_row: u32,
    pub first: u32,
    pub pad: u32,
}

#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct DistinctParams {
    pub compact: Compact,
    pub bits: Bits,
    pub operand: OperandParams,
}

#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct GatherParams {
    pub columns: ColumnsParams,
    pub index: u64,
    pub rows: u32,
    pub pad: u32,
}

#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct ChecksumParams {
    pub sum: u64,
    pub count: u64,
    pub rows: u32,
    pub width: u32,
    pub columns: [u64; MAX_COLUMNS],
}

#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct GroupColumnParams {
    pub operand: OperandParams,
    pub first: u32,
    pub dense: u32,
    pub first_tail: u32,
    pub tail: u32,
}

#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct TestedParams {
    pub columns: [u64; MAX_TESTED],
    pub count: u32,
    pub pad: u32,
}

#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct GroupAddParams {
    pub by: [GroupColumnParams; MAX_GROUP],
    pub tested: TestedParams,
    pub prefix: u64,
    pub counts: u64,
    pub missed: u64,
    pub rows: u32,
    pub columns: u32,
}

#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct GroupBestParams {
    pub by: [GroupColumnParams; MAX_GROUP],
    pub tested: TestedParams,
    pub prefix: u64,
    pub ranks: RanksParams,
    pub value: OperandParams,
    pub least: u64,
    pub most: u64,
    pub unranked: u64,
    pub rows: u32,
    pub columns: u32,
}

#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct GroupEndsParams {
    pub least: u64,
    pub most: u64,
    pub numbers: u64,
    pub first: u64,
    pub last: u64,
    pub rows: u32,
    pub pad: u32,
}

#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct GroupSlotsParams {
    pub left: OperandParams,
    pub right: OperandParams,
    pub tested: TestedParams,
    pub keys: u64,
    pub out: u64,
    pub full: u64,
    pub rows: u32,
    pub log_slots: u32,
}

#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct GroupRowsParams {
    pub counts: u64,
    pub counter: u64,
    pub number: u64,
    pub low: u64,
    pub high: u64,
    pub begin: u32,
    pub rows: u32,
}

#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct GroupKeysParams {
    pub keys: u64,
    pub slots: u64,
    pub left: u64,
    pub right: u64,
    pub rows: u32,
    pub pad: u32,
}

#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct GroupIdsParams {
    pub by: [GroupColumnParams; MAX_GROUP],
    pub numbers: u64,
    pub out: [u64; MAX_GROUP],
    pub tested: [u64; MAX_TESTED],
    pub rows: u32,
    pub columns: u32,
    pub tests: u32,
    pub pad: u32,
}

#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct SortState {
    pub threshold: u32,
    pub prefix: u32,
    pub wanted: u32,
    pub pad: u32,
    pub bins: [u32; BINS as usize],
}

#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct SortKeysParams {
    pub ranks: RanksParams,
    pub operand: OperandParams,
    pub out: u64,
    pub rows: u32,
    pub last: u32,
    pub descending: u32,
    pub pad: u32,
}

#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct SortBinsParams {
    pub keys: u64,
    pub state: u64,
    pub rows: u32,
    pub shift: u32,
}

#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct SortPickParams {
    pub state: u64,
    pub last: u32,
    pub most: u32,
}

#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct SortKeepParams {
    pub compact: Compact,
    pub keys: u64,
    pub state: u64,
}
