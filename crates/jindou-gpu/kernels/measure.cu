// How many rows an expansion will produce: the lengths of neighbour lists and their exclusive prefix sum in one pass
// (decoupled look-back, Merrill and Garland 2016).
#include "compact.cuh"

// Number of blocks that a multiprocessor should hold in the kernel that clips lists; NVCC_FLAGS may set others for a
// measurement.
#ifndef CUT_BLOCKS
#define CUT_BLOCKS 4
#endif

// State word of a tile: what it contains in the two high bits, a sum in the others.
#define STATE_SUM (1ull << 62)
#define STATE_PREFIX (2ull << 62)
#define STATE_VALUE ((1ull << 62) - 1)

struct ScanShared { u32 tile; SharedArray<u32, WARPS> warp_sum; SharedArray<u64, WARPS> warp_total; u64 before; };

// The sum of all tiles before `tile`. Run by all lanes of one warp. Tiles are numbered by ticket, in the order in which
// they began, so every tile that is waited for is running or done.
DEVICE u64 look_back(u64 *state, u32 tile, u64 total) {
  if (tile == 0) {
    if (lane_index() == 0) store_relaxed(state, STATE_PREFIX | total);
    return 0;
  }
  if (lane_index() == 0) store_relaxed(state + tile, STATE_SUM | total);
  u64 before = 0;
  long long at = (long long)tile - 1 - lane_index();
  for (;;) {
    u64 word = at >= 0 ? load_relaxed(state + at) : STATE_PREFIX;
    if (vote((word >> 62) == 0) && !PLANTED(SCAN_NO_WAIT)) {
      relax();
      continue;
    }
    u32 prefixes = vote((word >> 62) == 2);
    u64 value = word & STATE_VALUE;
    if (prefixes != 0 && lane_index() > first_bit(prefixes)) value = 0;
    before += warp_sum(value);
    if (prefixes != 0) break;
    at -= 32;
  }
  if (lane_index() == 0) store_relaxed(state + tile, STATE_PREFIX | (before + total));
  return before;
}

// True for a tile without rows, except the first one, which must write that there are none.
DEVICE bool is_beyond(u64 first, u32 rows) { return first >= rows && first > 0; }

// Writes the exclusive prefix sums (modulo 2^32) of the tile's lengths, and the total (64 bits: the host divides the
// table if the total does not fit in 32).
template <u32 ITEMS> DEVICE void scan_tile(ScanShared &s, const u32 (&length)[ITEMS], u32 rows, u32 *prefix, u64 *state, u64 *total) {
  u32 carry = 0, before[ITEMS];
  u64 sum = 0;
  UNROLL for (u32 j = 0; j < ITEMS; j++) {
    u32 inclusive = warp_inclusive_sum(length[j]);
    before[j] = carry + inclusive - length[j];
    carry += shuffle(inclusive, 31);
    sum += length[j];
  }
  sum = warp_sum(sum);
  if (lane_index() == 0) {
    s.warp_sum[warp_index()] = carry;
    s.warp_total[warp_index()] = sum;
  }
  if (!PLANTED(SCAN_FIRST_BARRIER)) barrier();
  u64 all = 0;
  UNROLL for (u32 w = 0; w < WARPS; w++) all += s.warp_total[w];
  if (warp_index() == 0) {
    u64 b = look_back(state, s.tile, all);
    if (lane_index() == 0) s.before = b;
  }
  if (!PLANTED(SCAN_SECOND_BARRIER)) barrier();
  u32 base = (u32)s.before;
  UNROLL for (u32 w = 0; w < WARPS; w++) if (w < warp_index()) base += s.warp_sum[w];
  u64 first = (u64)s.tile * Tile<ITEMS>::SIZE;
  UNROLL for (u32 j = 0; j < ITEMS; j++) {
    u64 row = first + Tile<ITEMS>::row(j);
    store_if(row < rows, prefix + row, base + before[j]);
  }
  // Done by the tile of the last row, or by the first tile if there are no rows.
  if (first + Tile<ITEMS>::SIZE >= rows && thread_index() == 0) {
    store(prefix + rows, (u32)(s.before + all));
    store(total, s.before + all);
  }
}

// Measures one list per row. Bytes per row: 4 for a column anchor, those of the lookup, 8 written; 12 for the whole
// table (last prefix, total).
KERNEL(jd_measure, Measure, 4) {
  enum : u32 { ITEMS = Wide::ITEMS };
  SHARED(ScanShared, s);
  if (thread_index() == 0) s.tile = atomic_add(p.ticket, 1u);
  barrier();
  u64 first = (u64)s.tile * Tile<ITEMS>::SIZE;
  u32 rows = rows_of(p.rows, p.count);
  if (is_beyond(first, rows)) return;
  u32 left = rows - (u32)first;
  u32 lengths[ITEMS];
  One segments = {p.segments[0]};
  UNROLL for (u32 i = 0; i < ITEMS; i += FEW) {
    u32 v[FEW], start[FEW], length[FEW];
    bool there[FEW];
    rows_there<ITEMS>(i, left, there);
    operands_at<ITEMS>(p.anchor, first, i, left, v);
    vertex_ranges(segments, v, there, start, length);
    UNROLL for (u32 j = 0; j < FEW; j++) {
      store_if(there[j], p.starts + first + Tile<ITEMS>::row(i + j), start[j]);
      lengths[i + j] = length[j];
    }
  }
  scan_tile(s, lengths, rows, p.prefix, p.state, p.total);
}

// As jd_measure for an intersection: the length of a row is that of its shortest list, whose ids jd_intersect will
// search for in the others.
// Bytes per row: for each list with a column anchor 4, those of the lookup and of clip_ranges, and 8 written; 4 written
// for the prefix; 12 for the whole table.
template <u32 ITEMS, bool CUTS> DEVICE void measure_many(const MeasureMany &p, ScanShared &s) {
  enum : u32 { BATCH = ITEMS < FEW ? ITEMS : FEW };
  if (thread_index() == 0) s.tile = atomic_add(p.ticket, 1u);
  barrier();
  u64 first = (u64)s.tile * Tile<ITEMS>::SIZE;
  u32 rows = rows_of(p.rows, p.count);
  if (is_beyond(first, rows)) return;
  u32 left = rows - (u32)first;
  u32 shortest[ITEMS];
  UNROLL for (u32 j = 0; j < ITEMS; j++) shortest[j] = Tile<ITEMS>::row(j) < left ? 0xffffffffu : 0;
  for (u32 l = 0; l < p.lists; l++) {
    const ListRange &list = p.ranges[l];
    One segments = {p.segments[l]};
    UNROLL for (u32 i = 0; i < ITEMS; i += BATCH) {
      u32 length[BATCH];
      bool there[BATCH];
      rows_there<ITEMS>(i, left, there);
      UNROLL for (u32 j = 0; j < BATCH; j++) length[j] = list.length;
      if (list.starts != nullptr) {
        u32 v[BATCH], start[BATCH];
        operands_at<ITEMS>(p.anchors[l], first, i, left, v);
        vertex_ranges(segments, v, there, start, length);
        if (CUTS && ((p.clip.lists >> l) & 1)) clip_ranges(list.neighbours, p.clip, start, length);
        UNROLL for (u32 j = 0; j < BATCH; j++) {
          u32 row = Tile<ITEMS>::row(i + j);
          store_if(there[j], list.starts + first + row, start[j]);
          store_if(there[j], list.lengths + first + row, length[j]);
        }
      }
      UNROLL for (u32 j = 0; j < BATCH; j++)
        if (there[j] && (PLANTED(SHORTEST_IS_LAST) || length[j] < shortest[i + j])) shortest[i + j] = length[j];
    }
  }
  scan_tile(s, shortest, rows, p.prefix, p.state, p.total);
}

KERNEL(jd_measure_many, MeasureMany, 3) {
  SHARED(ScanShared, s);
  measure_many<Wide::ITEMS, false>(p, s);
}

// As jd_measure_many with clipped lists. The loads of a search depend on each other, so few rows per thread finish
// soonest.
KERNEL(jd_measure_cut, MeasureMany, CUT_BLOCKS) {
  SHARED(ScanShared, s);
  measure_many<Few::ITEMS, true>(p, s);
}

// As jd_measure for a predicate in a column: each row has a segment of its own, so the address of its list is stored.
// Bytes per row: 4 per column operand, those of the lookup, 12 written; 12 for the whole table.
KERNEL(jd_measure_any, MeasureAny, 2) {
  enum : u32 { ITEMS = Wide::ITEMS };
  SHARED(ScanShared, s);
  if (thread_index() == 0) s.tile = atomic_add(p.ticket, 1u);
  barrier();
  u64 first = (u64)s.tile * Tile<ITEMS>::SIZE;
  u32 rows = rows_of(p.rows, p.count);
  if (is_beyond(first, rows)) return;
  u32 left = rows - (u32)first;
  u32 lengths[ITEMS];
  UNROLL for (u32 i = 0; i < ITEMS; i += FEW) {
    u32 anchor[FEW], predicate[FEW], start[FEW], length[FEW];
    bool there[FEW], found[FEW];
    Each<FEW> segments;
    rows_there<ITEMS>(i, left, there);
    operands_at<ITEMS>(p.anchor, first, i, left, anchor);
    operands_at<ITEMS>(p.predicate, first, i, left, predicate);
    segments_of(p.catalog, predicate, there, segments, found);
    vertex_ranges(segments, anchor, found, start, length);
    UNROLL for (u32 j = 0; j < FEW; j++) {
      u64 list = found[j] ? (u64)(segments[j].neighbours + start[j]) : 0;
      if (PLANTED(LIST_FROM_NEXT) && found[j]) list += 4;
      store_if(there[j], p.lists + first + Tile<ITEMS>::row(i + j), list);
      lengths[i + j] = length[j];
    }
  }
  scan_tile(s, lengths, rows, p.prefix, p.state, p.total);
}
