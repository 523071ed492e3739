// Kernels for operators above patterns: comparisons by rank, bitmaps of ids and of rows, and gathering of columns by
// row number.
#include "compact.cuh"

// Word and bit of each item for which `look` is true. `there` becomes false for the other items, and for ids without a
// bit.
template <u32 ITEMS>
DEVICE void bits_of(const Bits &b, const u32 (&v)[ITEMS], const bool (&look)[ITEMS], u32 (&word)[ITEMS], u32 (&mask)[ITEMS], bool (&there)[ITEMS]) {
  UNROLL for (u32 j = 0; j < ITEMS; j++) {
    u32 tail = v[j] - b.first_tail;
    bool dense = v[j] < b.dense, late = !dense && v[j] >= b.first_tail && tail < b.tail;
    u32 bit = dense ? v[j] : tail + (PLANTED(TAIL_AMONG_DENSE) ? 0 : b.dense);
    there[j] = look[j] && (dense || late);
    word[j] = bit >> 5;
    mask[j] = 1u << (bit & 31);
  }
}

// Keeps rows whose number satisfies a comparison: its rank lies in start .. end. Bytes per row: 4 for a column operand,
// and 4 if the id's page has numbers. The table of pages has 4 bytes per 1024 ids and is read from the cache.
KERNEL(jd_compare, Compare, 4) {
  enum : u32 { ITEMS = Wide::ITEMS };
  SHARED(AppendShared, s);
  u64 first = (u64)block_index() * Tile<ITEMS>::SIZE;
  u32 rows = rows_of(p.compact.rows, p.compact.count);
  if (first >= rows) return;
  u32 left = rows - (u32)first;
  const Ranks &r = p.ranks;
  u32 v[ITEMS], page[ITEMS], rank[ITEMS], word[ITEMS];
  bool keep[ITEMS];
  rows_there<ITEMS>(0, left, keep);
  operands_at<ITEMS>(p.operand, first, 0, left, v);
  UNROLL for (u32 j = 0; j < ITEMS; j++) {
    u32 at = v[j] >> RANK_SHIFT;
    page[j] = load_cached_if(keep[j] && at < r.page_count, r.pages + at, NO_KEY);
  }
  UNROLL for (u32 j = 0; j < ITEMS; j++)
    rank[j] = load_random_if(page[j] != NO_KEY, r.ranks + (u64)page[j] * RANKS_A_PAGE + (v[j] & (RANKS_A_PAGE - 1)), NO_KEY);
  UNROLL for (u32 j = 0; j < ITEMS; j++) {
    u32 tail = v[j] - r.first_tail;
    bool late = keep[j] && v[j] >= r.first_tail && tail < r.tail && !PLANTED(COMPARE_NO_TAIL);
    word[j] = load_cached_if(late, r.tail_bits + (tail >> 5), 0u);
  }
  u32 width = r.end - r.start + (PLANTED(COMPARE_ONE_MORE) ? 1 : 0);
  UNROLL for (u32 j = 0; j < ITEMS; j++)
    keep[j] = keep[j] && (rank[j] - r.start < width || ((word[j] >> ((v[j] - r.first_tail) & 31)) & 1));
  compact_tile(p.compact, s, first, keep);
}

// Sets the bits of the operands of all rows, or of those whose lists are not empty. Bytes per row: 4 for a column
// operand, 4 for its word, and 8 with lengths.
KERNEL(jd_mark, Mark, 4) {
  enum : u32 { ITEMS = Wide::ITEMS };
  u64 first = (u64)block_index() * Tile<ITEMS>::SIZE;
  u32 v[ITEMS], word[ITEMS], mask[ITEMS], seen[ITEMS];
  u32 left = p.rows - (u32)first;
  bool look[ITEMS], there[ITEMS];
  rows_there<ITEMS>(0, left, look);
  operands_at<ITEMS>(p.operand, first, 0, left, v);
  if (p.prefix != nullptr && !PLANTED(MARK_EMPTY_LISTS)) {
    u32 from[ITEMS], to[ITEMS];
    UNROLL for (u32 j = 0; j < ITEMS; j++) {
      from[j] = load_stream_if(look[j], p.prefix + first + Tile<ITEMS>::row(j), 0u);
      to[j] = load_stream_if(look[j], p.prefix + first + Tile<ITEMS>::row(j) + 1, 0u);
    }
    UNROLL for (u32 j = 0; j < ITEMS; j++) look[j] = look[j] && from[j] != to[j];
  }
  bits_of(p.bits, v, look, word, mask, there);
  // Most bits are set already, and reading is cheaper than an atomic operation.
  UNROLL for (u32 j = 0; j < ITEMS; j++) seen[j] = load_relaxed_if(there[j], p.bits.words + word[j], 0u);
  UNROLL for (u32 j = 0; j < ITEMS; j++) {
    bool set = there[j] && (seen[j] & mask[j]) == 0;
    if (PLANTED(MARK_NOT_ATOMIC)) {
      if (set) {
        u32 old = load_cached(p.bits.words + word[j]);
        relax();
        store(p.bits.words + word[j], old | mask[j]);
      }
    } else if (set) {
      atomic_or(p.bits.words + word[j], mask[j]);
    }
  }
}

// Keeps rows in which the bit of the operand, or of the row's number, has the wanted value; an id without a bit counts
// as not set. Bytes per row: 4 for a column operand, 4 for its word.
KERNEL(jd_test, Test, 4) {
  enum : u32 { ITEMS = Wide::ITEMS };
  SHARED(AppendShared, s);
  u64 first = (u64)block_index() * Tile<ITEMS>::SIZE;
  u32 rows = rows_of(p.compact.rows, p.compact.count);
  if (first >= rows) return;
  u32 left = rows - (u32)first;
  u32 v[ITEMS], word[ITEMS], mask[ITEMS], seen[ITEMS];
  bool keep[ITEMS], there[ITEMS];
  rows_there<ITEMS>(0, left, keep);
  if (p.by_row) {
    UNROLL for (u32 j = 0; j < ITEMS; j++) v[j] = p.first + (u32)first + Tile<ITEMS>::row(j) + (PLANTED(TEST_NEXT_ROW) ? 1 : 0);
  } else {
    operands_at<ITEMS>(p.operand, first, 0, left, v);
  }
  bits_of(p.bits, v, keep, word, mask, there);
  UNROLL for (u32 j = 0; j < ITEMS; j++) seen[j] = load_random_if(there[j], (const u32 *)p.bits.words + word[j], 0u);
  UNROLL for (u32 j = 0; j < ITEMS; j++) keep[j] = keep[j] && ((seen[j] & mask[j]) != 0) == (p.want != 0);
  compact_tile(p.compact, s, first, keep);
}

// Keeps rows whose operand occurred in no earlier row: of several equal ones, the row that sets the bit first. A row
// whose operand has no bit is dropped. Bytes per row: 4 for a column operand, 4 for its word.
KERNEL(jd_distinct, Distinct, 4) {
  enum : u32 { ITEMS = Wide::ITEMS };
  SHARED(AppendShared, s);
  u64 first = (u64)block_index() * Tile<ITEMS>::SIZE;
  u32 rows = rows_of(p.compact.rows, p.compact.count);
  if (first >= rows) return;
  u32 left = rows - (u32)first;
  u32 v[ITEMS], word[ITEMS], mask[ITEMS], seen[ITEMS];
  bool keep[ITEMS], there[ITEMS];
  rows_there<ITEMS>(0, left, keep);
  operands_at<ITEMS>(p.operand, first, 0, left, v);
  bits_of(p.bits, v, keep, word, mask, there);
  UNROLL for (u32 j = 0; j < ITEMS; j++) seen[j] = load_relaxed_if(there[j], p.bits.words + word[j], 0u);
  UNROLL for (u32 j = 0; j < ITEMS; j++) {
    keep[j] = there[j] && (seen[j] & mask[j]) == 0;
    if (PLANTED(DISTINCT_NOT_ATOMIC)) {
      if (keep[j]) {
        relax();
        atomic_or(p.bits.words + word[j], mask[j]);
      }
    } else if (keep[j]) {
      keep[j] = (atomic_or(p.bits.words + word[j], mask[j]) & mask[j]) == 0;
    }
  }
  compact_tile(p.compact, s, first, keep);
}

// Copies columns by row number. Bytes per row: 4 for its number, and 4 + 4 written per column.
KERNEL(jd_gather, Gather, 4) {
  enum : u32 { ITEMS = Wide::ITEMS };
  u64 first = (u64)block_index() * Tile<ITEMS>::SIZE;
  u32 index[ITEMS];
  u32 left = p.rows - (u32)first;
  bool there[ITEMS];
  rows_there<ITEMS>(0, left, there);
  UNROLL for (u32 j = 0; j < ITEMS; j++) index[j] = load_stream_if(there[j], p.index + first + Tile<ITEMS>::row(j), 0u);
  for (u32 c = 0; c < p.columns.count; c++) {
    u32 v[ITEMS];
    UNROLL for (u32 j = 0; j < ITEMS; j++) v[j] = load_random_if(there[j], p.columns.from[c] + (PLANTED(GATHER_IN_ORDER) ? index[0] : index[j]), 0u);
    UNROLL for (u32 j = 0; j < ITEMS; j++) store_if(there[j], p.columns.to[c] + first + Tile<ITEMS>::row(j), v[j]);
  }
}
