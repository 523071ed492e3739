// Steps that keep some rows: Restrict, Same, Check. Their bytes are those of the test per row, plus 8 per carried
// column and kept row.
#include "compact.cuh"

// Keeps rows whose id lies in the intervals. Bytes: 4 per row.
KERNEL(jd_restrict, Restrict, 4) {
  enum : u32 { ITEMS = Wide::ITEMS };
  SHARED(AppendShared, s);
  u64 first = (u64)block_index() * Tile<ITEMS>::SIZE;
  u32 rows = rows_of(p.compact.rows, p.compact.count);
  if (first >= rows) return;
  u32 left = rows - (u32)first;
  u32 v[ITEMS];
  bool keep[ITEMS];
  rows_there<ITEMS>(0, left, keep);
  operands_at<ITEMS>(p.operand, first, 0, left, v);
  UNROLL for (u32 j = 0; j < ITEMS; j++) v[j] += PLANTED(RESTRICT_OFF_BY_ONE) ? 1 : 0;
  keep_within(p.within, v, keep);
  compact_tile(p.compact, s, first, keep);
}

// Keeps rows whose two operands are the same id, or those where they differ. Bytes: 4 per row and column operand.
KERNEL(jd_same, Same, 4) {
  enum : u32 { ITEMS = Wide::ITEMS };
  SHARED(AppendShared, s);
  u64 first = (u64)block_index() * Tile<ITEMS>::SIZE;
  u32 rows = rows_of(p.compact.rows, p.compact.count);
  if (first >= rows) return;
  u32 left = rows - (u32)first;
  u32 one[ITEMS], other[ITEMS];
  bool keep[ITEMS];
  rows_there<ITEMS>(0, left, keep);
  operands_at<ITEMS>(p.left, first + (PLANTED(SAME_NEXT_ROW) ? 1 : 0), 0, left, one);
  operands_at<ITEMS>(p.right, first, 0, left, other);
  UNROLL for (u32 j = 0; j < ITEMS; j++) keep[j] = keep[j] && (one[j] == other[j]) != (p.negate != 0 && !PLANTED(NEGATE_IGNORED));
  compact_tile(p.compact, s, first, keep);
}

// Keeps rows for which the edge between anchor and other exists. Bytes per row: 4 per column operand, those of the
// lookup (find_keys, key_ranges), and 4 (ceil(log2 d) + 1) for a list of d > 0 neighbours.
KERNEL(jd_check, Check, 3) {
  enum : u32 { ITEMS = Wide::ITEMS };
  SHARED(AppendShared, s);
  u64 first = (u64)block_index() * Tile<ITEMS>::SIZE;
  u32 rows = rows_of(p.compact.rows, p.compact.count);
  if (first >= rows) return;
  u32 left = rows - (u32)first;
  u32 anchor[ITEMS], other[ITEMS], start[ITEMS], length[ITEMS], at[ITEMS];
  bool keep[ITEMS];
  rows_there<ITEMS>(0, left, keep);
  operands_at<ITEMS>(p.anchor, first, 0, left, anchor);
  operands_at<ITEMS>(p.other, first, 0, left, other);
  ranges_of(p.segment, anchor, keep, start, length);
  UNROLL for (u32 j = 0; j < ITEMS; j++) if (PLANTED(CHECK_SHORT_LIST) && length[j] > 1) length[j]--;
  sorted_positions([&](u32 j) { return p.segment.neighbours + start[j]; }, length, [&](u32 j) { return other[j]; }, keep, at);
  UNROLL for (u32 j = 0; j < ITEMS; j++) keep[j] = at[j] != NO_KEY;
  compact_tile(p.compact, s, first, keep);
}

// As jd_check for a predicate in a column. Bytes per row: 4 per column operand, then as jd_check in the predicate's
// segment; nothing more for a term that is not a predicate.
KERNEL(jd_check_any, CheckAny, 2) {
  enum : u32 { ITEMS = Wide::ITEMS };
  SHARED(AppendShared, s);
  u64 first = (u64)block_index() * Tile<ITEMS>::SIZE;
  u32 rows = rows_of(p.compact.rows, p.compact.count);
  if (first >= rows) return;
  u32 left = rows - (u32)first;
  bool keep[ITEMS];
  // Only a few rows' segments are held at a time, since their heads take most of the registers.
  UNROLL for (u32 i = 0; i < ITEMS; i += FEW) {
    u32 anchor[FEW], other[FEW], predicate[FEW], start[FEW], length[FEW], at[FEW];
    bool there[FEW], found[FEW];
    Each<FEW> segments;
    rows_there<ITEMS>(i, left, there);
    operands_at<ITEMS>(p.anchor, first, i, left, anchor);
    operands_at<ITEMS>(p.other, first, i, left, other);
    operands_at<ITEMS>(p.predicate, first, i, left, predicate);
    segments_of(p.catalog, predicate, there, segments, found);
    vertex_ranges(segments, anchor, found, start, length);
    UNROLL for (u32 j = 0; j < FEW; j++) if (PLANTED(CHECK_ANY_FIRST_ONLY) && length[j] > 1) length[j] = 1;
    sorted_positions([&](u32 j) { return segments[j].neighbours + start[j]; }, length, [&](u32 j) { return other[j]; }, found, at);
    UNROLL for (u32 j = 0; j < FEW; j++) keep[i + j] = at[j] != NO_KEY;
  }
  compact_tile(p.compact, s, first, keep);
}
