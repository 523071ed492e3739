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

/// Declares the structs, in the notation of `params.cuh`.
macro_rules! params {
    ($($(#[$attribute:meta])* $name:ident { $($kind:tt $($field:ident),+;)+ })+) => {$(
        #[derive(Clone, Copy, Debug, Pod, Zeroable)]
        $(#[$attribute])*
        #[repr(C)]
        pub struct $name {
            $($(pub $field: $kind),+),+
        }
    )+};
}

params! {
    #[derive(Default)]
    Run { u32 start, end, base; }
    SegmentHead {
        u64 table, keys, offsets, neighbours, dirty, overlay_keys, overlay_starts;
        u32 kind, table_len, first, shift, key_count, edges, dirty_mask, overlay_len;
    }
    SegmentParams { SegmentHead head; [Run; MAX_RUNS] runs; }
    CatalogParams { u64 heads, terms; u32 count, pad; }
    #[derive(PartialEq, Eq)]
    OperandParams { u64 column; u32 constant, pad; }
    Within { u64 table; u32 count, pad, start, end; }
    Clip { u32 start, end, lists, pad; }
    ColumnsParams { u32 count, pad; [u64; MAX_COLUMNS] from, to; }
    Compact { u32 rows, pad; u64 count, counter; ColumnsParams columns; }
    Bits { u64 words; u32 dense, first_tail, tail, pad; }
    RanksParams { u64 pages, ranks, tail_bits; u32 page_count, start, end, first_tail, tail, pad; }
    StartIntervalsParams { u64 intervals, before, out, begin; u32 count, rows; }
    StartKeysParams { SegmentParams segment; u64 out; u32 begin, rows, first_block, blocks; }
    RestrictParams { Compact compact; OperandParams operand; Within within; }
    SameParams { Compact compact; OperandParams left, right; u32 negate, pad; }
    CheckParams { Compact compact; SegmentParams segment; OperandParams anchor, other; }
    CheckAnyParams { Compact compact; CatalogParams catalog; OperandParams anchor, predicate, other; }
    ExpandOneParams { Compact compact; SegmentParams segment; OperandParams anchor; Within within; u64 out; }
    MeasureParams {
        u32 rows, lists; SegmentParams segment; OperandParams anchor; u64 starts, prefix, total, state, ticket, count;
    }
    MeasureAnyParams {
        u32 rows, pad; CatalogParams catalog; OperandParams anchor, predicate;
        u64 lists, prefix, total, state, ticket, count;
    }
    ListRange { u64 neighbours, starts, lengths; u32 start, length; }
    MeasureManyParams {
        u32 rows, lists; u64 prefix, total, state, ticket, count; Clip clip; [OperandParams; MAX_LISTS] anchors;
        [ListRange; MAX_LISTS] ranges; [SegmentParams; MAX_LISTS] segments;
    }
    ExpandParams {
        ColumnsParams columns; u64 prefix, bounds, starts, neighbours, out, counter, count, total, begin, end, room;
        u32 rows, lists; Within within; [ListRange; MAX_LISTS] ranges;
    }
    ExpandAnyParams {
        ColumnsParams columns; u64 prefix, bounds, lists, out, count, total, begin, end, room; u32 rows, pad;
    }
    CompareParams { Compact compact; OperandParams operand; RanksParams ranks; }
    MarkParams { Bits bits; OperandParams operand; u64 prefix; u32 rows, pad; }
    TestParams { Compact compact; Bits bits; OperandParams operand; u32 want, by_row, first, pad; }
    DistinctParams { Compact compact; Bits bits; OperandParams operand; }
    GatherParams { ColumnsParams columns; u64 index; u32 rows, pad; }
    ChecksumParams { u64 sum, count; u32 rows, width; [u64; MAX_COLUMNS] columns; }
    GroupColumnParams { OperandParams operand; u32 first, dense, first_tail, tail; }
    TestedParams { [u64; MAX_TESTED] columns; u32 count, pad; }
    GroupAddParams {
        [GroupColumnParams; MAX_GROUP] by; TestedParams tested; u64 prefix, counts, missed; u32 rows, columns;
    }
    GroupBestParams {
        [GroupColumnParams; MAX_GROUP] by; TestedParams tested; u64 prefix; RanksParams ranks; OperandParams value;
        u64 least, most, unranked; u32 rows, columns;
    }
    GroupEndsParams { u64 least, most, numbers, first, last; u32 rows, pad; }
    GroupSlotsParams { OperandParams left, right; TestedParams tested; u64 keys, out, full; u32 rows, log_slots; }
    GroupRowsParams { u64 counts, counter, number, low, high; u32 begin, rows; }
    GroupKeysParams { u64 keys, slots, left, right; u32 rows, pad; }
    GroupIdsParams {
        [GroupColumnParams; MAX_GROUP] by; u64 numbers; [u64; MAX_GROUP] out; [u64; MAX_TESTED] tested;
        u32 rows, columns, tests, pad;
    }
    SortState { u32 threshold, prefix, wanted, pad; [u32; BINS as usize] bins; }
    SortKeysParams { RanksParams ranks; OperandParams operand; u64 out; u32 rows, last, descending, pad; }
    SortBinsParams { u64 keys, state; u32 rows, shift; }
    SortPickParams { u64 state; u32 last, most; }
    SortKeepParams { Compact compact; u64 keys, state; }
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
