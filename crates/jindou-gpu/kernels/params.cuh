// Parameters that the host passes to kernels. src/params.rs mirrors every struct, field by field; their sizes are
// compared when the kernels are loaded. Pointers are device addresses.
#pragma once
#include "device.cuh"

enum : u32 { MAX_COLUMNS = 16, MAX_LISTS = 6, MAX_RUNS = 16 };
enum : u32 { FINDER_EMPTY = 0, FINDER_INTERVALS = 1, FINDER_BITMAP = 2, FINDER_DIRECTORY = 3, FINDER_SETS = 4 };
#define NO_KEY 0xffffffffu

struct alignas(16) RankBlock { u64 bits; u32 rank, pad; };
struct Run { u32 start, end, base; };
struct alignas(8) Pair { u32 a, b; };

// A segment's arrays, as in the store's files. With a patch, the merged lists of changed keys follow the last
// neighbour: the list of overlay key i is neighbours[edges + overlay_starts[i] ..].
//
// Characteristic sets have the same form: the key of a vertex is the number of its set (FINDER_SETS: runs of ids with
// the same set), and its neighbours are the terms of its predicates.
struct SegmentHead {
  const void *table;          // Run, RankBlock, u32 bucket starts or u32 run starts
  const u32 *keys;            // directories; FINDER_SETS: the set of each run
  const u32 *offsets;         // null: every key has one neighbour
  const u32 *neighbours;
  const u64 *dirty;           // folded bitmap of changed keys; null: no patch
  const u32 *overlay_keys;
  const u32 *overlay_starts;  // overlay_len + 1 entries
  u32 kind, table_len, first, shift, key_count, edges, dirty_mask, overlay_len;
};
struct Segment : SegmentHead {
  Run runs[MAX_RUNS];         // copy of `table` if it is that short, passed in constant memory
};

// The segments of all predicates in one direction, by ascending term of the predicate, for steps whose predicate is in
// a column.
struct Catalog { const SegmentHead *heads; const u32 *terms; u32 count, pad; };

// The ids of a column, or one id for all rows.
struct Operand { const u32 *column; u32 constant, pad; };

// The ids in any of `count` intervals; with `count` 0, every id. A single interval is in the struct itself.
struct Within { const Pair *table; u32 count, pad, start, end; };

// Lists whose bit in `lists` is set are clipped, when they are measured, to their ids from `start` on and before `end`.
struct Clip { u32 start, end, lists, pad; };

// Columns that a kernel copies to its output rows.
struct Columns { u32 count, pad; const u32 *from[MAX_COLUMNS]; u32 *to[MAX_COLUMNS]; };

// The number of input rows, a counter of output rows (zeroed by the host), and the columns to copy. Here and below, if
// `count` is not null it is the address of the exact number of rows, which an earlier kernel has counted, and `rows` is
// an upper bound on it (see rows_of).
struct Compact { u32 rows, pad; const u32 *count; u32 *counter; Columns columns; };

// A set as a bitmap: of ids, first those below `dense`, then the `tail` ids from `first_tail` on (terms added by
// updates); or of row numbers, which are all below `dense`.
struct Bits { u32 *words; u32 dense, first_tail, tail, pad; };

// Ranks of numbers by id, in pages of RANKS_A_PAGE ids; a page without numbers is not stored (NO_KEY). Terms added by
// updates have no rank: for each of them, a bit says whether the comparison is true.
enum : u32 { RANK_SHIFT = 10, RANKS_A_PAGE = 1 << RANK_SHIFT };
struct Ranks { const u32 *pages, *ranks, *tail_bits; u32 page_count, start, end, first_tail, tail, pad; };

struct StartIntervals { const Pair *intervals; const u64 *before; u32 *out; u64 begin; u32 count, rows; };
struct StartKeys { Segment segment; u32 *out; u32 begin, rows, first_block, blocks; };
struct Restrict { Compact compact; Operand operand; Within within; };
struct Same { Compact compact; Operand left, right; u32 negate, pad; };
struct Check { Compact compact; Segment segment; Operand anchor, other; };
struct CheckAny { Compact compact; Catalog catalog; Operand anchor, predicate, other; };
struct ExpandOne { Compact compact; Segment segment; Operand anchor; Within within; u32 *out; };
struct Measure {
  u32 rows, lists;
  Segment segments[1];
  Operand anchor;
  u32 *starts;    // rows
  u32 *prefix;    // rows + 1, modulo 2^32
  u64 *total;
  u64 *state;     // one word per tile, zeroed
  u32 *ticket;    // zeroed
  const u32 *count;
};
struct MeasureAny {
  u32 rows, pad;
  Catalog catalog;
  Operand anchor, predicate;
  u64 *lists;     // rows: address of each list
  u32 *prefix;    // rows + 1, modulo 2^32
  u64 *total;
  u64 *state;     // one word per tile, zeroed
  u32 *ticket;    // zeroed
  const u32 *count;
};
// One list of an intersection: arrays with a range per row (filled by measure_many), or one range for all rows.
struct ListRange { const u32 *neighbours; u32 *starts; u32 *lengths; u32 start, length; };
struct MeasureMany {
  u32 rows, lists;
  u32 *prefix;
  u64 *total;
  u64 *state;
  u32 *ticket;
  const u32 *count;
  Clip clip;
  Operand anchors[MAX_LISTS];
  ListRange ranges[MAX_LISTS];
  Segment segments[MAX_LISTS];
};
struct Expand {
  Columns columns;
  const u32 *prefix;
  u32 *bounds;      // two words: rows that end before the first unit, and before the end; or null
  const u32 *starts;
  const u32 *neighbours;
  u32 *out;
  u32 *counter;     // appending variants only
  const u32 *count;
  const u64 *total; // null, or the total of the lengths: then all units are meant, and `end` is an upper bound
  u64 begin, end;
  u64 room;         // capacity for outputs; if the total is larger, none are produced
  u32 rows, lists;
  Within within;
  ListRange ranges[MAX_LISTS];  // intersections only
};
struct ExpandAny {
  Columns columns;
  const u32 *prefix;
  u32 *bounds;      // this and the fields below as in Expand
  const u64 *lists;
  u32 *out;
  const u32 *count;
  const u64 *total;
  u64 begin, end;
  u64 room;
  u32 rows, pad;
};
struct Compare { Compact compact; Operand operand; Ranks ranks; };
// `prefix`: null, or rows + 1 prefix sums of lengths; rows of length 0 are then ignored.
struct Mark { Bits bits; Operand operand; const u32 *prefix; u32 rows, pad; };
// With `by_row`, the bit is that of the row's number, counted from `first`.
struct Test { Compact compact; Bits bits; Operand operand; u32 want, by_row, first, pad; };
struct Distinct { Compact compact; Bits bits; Operand operand; };
// A column of the combinations that a GROUP BY counts: 0 for unbound, then `dense` ids from `first` on, then `tail` ids
// of the tail.
enum : u32 { MAX_GROUP = 3, MAX_TESTED = 4, MOST_PROBES = 128 };
struct GroupColumn { Operand operand; u32 first, dense, first_tail, tail; };
// Columns of which only whether they are bound matters.
struct Tested { const u32 *columns[MAX_TESTED]; u32 count, pad; };
// `prefix`: null, or rows + 1 prefix sums of lengths, which are added instead of 1.
struct GroupAdd { GroupColumn by[MAX_GROUP]; Tested tested; const u32 *prefix; u64 *counts; u32 *missed; u32 rows, columns; };
struct GroupBest {
  GroupColumn by[MAX_GROUP];
  Tested tested;
  const u32 *prefix;
  Ranks ranks;
  Operand value;
  u64 *least, *most;
  u32 *unranked;
  u32 rows, columns;
};
struct GroupEnds { const u64 *least, *most; const u32 *numbers; u32 *first, *last; u32 rows, pad; };
struct GroupSlots { Operand left, right; Tested tested; u64 *keys; u32 *out, *full; u32 rows, log_slots; };
struct GroupRows { const u64 *counts; u32 *counter, *number, *low, *high; u32 begin, rows; };
struct GroupKeys { const u64 *keys; const u32 *slots; u32 *left, *right; u32 rows, pad; };
struct GroupIds { GroupColumn by[MAX_GROUP]; const u32 *numbers; u32 *out[MAX_GROUP], *tested[MAX_TESTED]; u32 rows, columns, tests, pad; };
// State of the radix search for the key of the last wanted row: the bound so far, the digits found, the number of
// wanted rows among those whose keys begin with these digits, and how many of these keys have each next digit.
enum : u32 { BIN_BITS = 11, BINS = 1 << BIN_BITS };
struct SortState { u32 threshold, prefix, wanted, pad, bins[BINS]; };
// Keys are the ranks below `last`; in descending order, `last` minus the rank.
struct SortKeys { Ranks ranks; Operand operand; u32 *out; u32 rows, last, descending, pad; };
struct SortBins { const u32 *keys; SortState *state; u32 rows, shift; };
// `most`: the number of wanted rows in the next table. `last`: whether this is the lowest digit.
struct SortPick { SortState *state; u32 last, most; };
struct SortKeep { Compact compact; const u32 *keys; const SortState *state; };
struct Gather { Columns columns; const u32 *index; u32 rows, pad; };
struct Checksum { u64 *sum; const u32 *count; u32 rows, width; const u32 *columns[MAX_COLUMNS]; };

// The number of rows of a table. Grids are large enough for the upper bound; blocks beyond the exact number return at
// once.
DEVICE u32 rows_of(u32 rows, const u32 *count) {
  if (count == nullptr) return rows;
  u32 counted = load_cached(count) + (PLANTED(COUNT_ONE_MORE) ? 1 : 0);
  return counted < rows ? counted : rows;
}
