// Expansion: turns each row into as many rows as its neighbour list is long.
//
// Work is divided by merge path: each row and each output is one unit, and each block takes TILE units, so neither one
// huge list nor millions of empty ones unbalance the blocks. Unit d belongs to row r if r rows end before it; row r
// ends at unit prefix[r + 1] + r.
#include "compact.cuh"

enum : u32 { TILE = Narrow::SIZE };

// Number of blocks that a multiprocessor should hold; NVCC_FLAGS may set others for a measurement. Turing holds four.
#ifndef EXPAND_BLOCKS
#define EXPAND_BLOCKS 4
#endif
#ifndef INTERSECT_BLOCKS
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#define INTERSECT_BLOCKS 4
#else
#define INTERSECT_BLOCKS 5
#endif
#endif

// The number of rows that end before unit d. A whole warp searches for it, and divides the range by 32 in each round: 5
// rounds for 2^24 rows, where a single thread would need 24 dependent loads.
DEVICE u32 rows_before(const u32 *prefix, u32 rows, u64 d) {
  u32 low = 0, n = d == 0 ? 0 : rows;
  while (n > 0) {
    u32 step = (n + 31) / 32, last = (lane_index() + 1) * step;
    u32 at = low + (last < n ? last : n) - 1;
    u32 ended = popcount(vote((u64)load_cached(prefix + at + 1) + at < d));
    // The row that lane `ended` tested is the first one that may not have ended.
    u32 from = ended * step, to = (ended + 1) * step - 1;
    if (from >= n) from = n;
    if (to >= n) to = ended < 32 ? n - 1 : n;
    low += from;
    n = to > from ? to - from : 0;
  }
  return low;
}

struct SpreadShared {
  // Number of rows that end before the tile's first unit, before the unit after its last, and before the strip's first
  // unit.
  SharedArray<u32, 3> ends;
  SharedArray<u32, TILE> row;
  SharedArray<u32, WARPS> warp_max;
};
// `delta` of a row is the start of its list minus the number of its first output: index of the neighbour = delta +
// output.
struct ExpandShared {
  SpreadShared spread;
  SharedArray<u32, TILE + 1> delta;
  AppendShared append;
};
// As above for lists at any address: a neighbour's address is delta + 4 · output.
struct ExpandAnyShared {
  SpreadShared spread;
  SharedArray<u64, TILE + 1> delta;
};
struct IntersectShared {
  ExpandShared expand;
  SharedArray<unsigned char, TILE + 1> driver;
  SharedArray<u32, 2 * WARPS> packed;
};

struct Piece { u32 rows, row0, row1; u64 out0, out1, origin; };

// Determines the tile's rows and outputs; false for a tile without units. One warp searches for each bound. The first
// and the last block of a strip write the number of rows that end before the strip and before its end.
template <class P> DEVICE bool piece_of(const P &p, SpreadShared &s, Piece &w) {
  w.rows = rows_of(p.rows, p.count);
  u64 end = p.end;
  if (p.total != nullptr) {
    u64 total = load_cached(p.total);
    // The bound that the host assumed is exceeded. The host will notice that and repeat the run, so nothing is
    // produced.
    if (total > p.room && !PLANTED(ROOM_IGNORED)) return false;
    end = w.rows + total;
  }
  u64 d0 = p.begin + (u64)block_index() * TILE, d1 = d0 + TILE < end ? d0 + TILE : end;
  if (d0 >= end) return false;
  if (warp_index() < 3) {
    u64 d = warp_index() == 0 ? d0 : warp_index() == 1 ? d1 : p.begin;
    u32 before = rows_before(p.prefix, w.rows, d - (PLANTED(PARTITION_OFF_BY_ONE) && d > 0 ? 1 : 0));
    if (lane_index() == 0) s.ends[warp_index()] = before;
  }
  barrier();
  w.row0 = s.ends[0];
  w.row1 = s.ends[1];
  w.out0 = d0 - w.row0;
  w.out1 = d1 - w.row1;
  w.origin = p.begin - s.ends[2];
  if (w.out1 > w.origin + p.room) w.out1 = w.origin + p.room;
  if (p.bounds != nullptr && thread_index() == 0) {
    if (block_index() == 0) store(p.bounds, w.row0);
    if (block_index() == block_count() - 1) store(p.bounds + 1, w.row1);
  }
  return true;
}

// Determines which row each output of the tile belongs to: each row marks its first output, and a running maximum
// propagates the marks. `begin(row, local, first, counts)` stores where the list of a row starts whose first output is
// `first`.
template <class P, u32 ITEMS, class Begin>
DEVICE void spread_rows(const P &p, const Piece &w, SpreadShared &s, u32 (&row)[ITEMS], Begin begin) {
  for (u32 x = thread_index(); x < TILE; x += THREADS) s.row[x] = 0;
  barrier();
  for (u32 local = thread_index(); local <= w.row1 - w.row0; local += THREADS) {
    u32 r = w.row0 + local;
    if (r >= w.rows) break;
    u32 from = load_cached(p.prefix + r), to = load_cached(p.prefix + r + 1);
    // A row is counted by the block that contains its first unit.
    bool counts = from >= w.out0 && (r < w.row1 || from < w.out1);
    from = load_once(p.prefix + r, counts);
    begin(r, local, from, counts);
    u64 at = from > w.out0 ? from : w.out0;
    if (to > at && at < w.out1) s.row[(u32)(at - w.out0)] = local;
  }
  if (!PLANTED(EXPAND_MARK_BARRIER)) barrier();
  u32 carry = 0;
  UNROLL for (u32 j = 0; j < ITEMS; j++) {
    u32 m = warp_inclusive_max(s.row[Tile<ITEMS>::row(j)]);
    row[j] = m > carry ? m : carry;
    carry = shuffle(row[j], 31);
  }
  if (lane_index() == 0) s.warp_max[warp_index()] = carry;
  if (!PLANTED(EXPAND_MAX_BARRIER)) barrier();
  u32 before = 0;
  UNROLL for (u32 k = 0; k < WARPS; k++) {
    u32 m = s.warp_max[k];
    if (k < warp_index() && m > before) before = m;
  }
  UNROLL for (u32 j = 0; j < ITEMS; j++) if (before > row[j]) row[j] = before;
}

// Copies the carried columns to an output: read once per row with outputs, written once per output.
template <class P, u32 ITEMS>
DEVICE void spread_columns(const P &p, const Piece &w, const u32 (&row)[ITEMS], const bool (&keep)[ITEMS], const u32 (&at)[ITEMS]) {
  NO_UNROLL for (u32 c = 0; c < p.columns.count; c++) {
    u32 v[ITEMS];
    UNROLL for (u32 j = 0; j < ITEMS; j++) v[j] = load_cached_if(keep[j], p.columns.from[c] + w.row0 + row[j], 0u);
    UNROLL for (u32 j = 0; j < ITEMS; j++) store_if(keep[j], p.columns.to[c] + at[j], v[j]);
  }
}

// Expands lists without a test. Every output is kept, so its number is its position.
// Bytes: 8 per row (prefix, start); 4 per output read, 4 + 4 per column written. Columns are read from the cache, since
// the rows of a tile are adjacent: 4 per column and row from memory.
KERNEL(jd_expand, Expand, EXPAND_BLOCKS) {
  enum : u32 { ITEMS = Narrow::ITEMS };
  SHARED(ExpandShared, s);
  Piece w;
  if (!piece_of(p, s.spread, w)) return;
  u32 row[ITEMS], at[ITEMS], v[ITEMS];
  bool keep[ITEMS];
  spread_rows(p, w, s.spread, row, [&](u32 r, u32 local, u32 first, bool counts) { s.delta[local] = load_once(p.starts + r, counts) - first; });
  UNROLL for (u32 j = 0; j < ITEMS; j++) {
    u64 out = w.out0 + Tile<ITEMS>::row(j);
    keep[j] = out < w.out1;
    at[j] = (u32)(out - w.origin);
    walks(keep[j]);
    v[j] = load_stream_if(keep[j], p.neighbours + (keep[j] ? s.delta[row[j]] + (u32)out : 0), 0u);
  }
  UNROLL for (u32 j = 0; j < ITEMS; j++) store_if(keep[j], p.out + at[j], v[j]);
  spread_columns(p, w, row, keep, at);
}

// As jd_expand for lists of many segments. Bytes: 12 per row (prefix, address); 4 per output read, 4 + 4 per column
// written; columns as in jd_expand.
KERNEL(jd_expand_any, ExpandAny, EXPAND_BLOCKS) {
  enum : u32 { ITEMS = Narrow::ITEMS };
  SHARED(ExpandAnyShared, s);
  Piece w;
  if (!piece_of(p, s.spread, w)) return;
  u32 row[ITEMS], at[ITEMS], v[ITEMS];
  bool keep[ITEMS];
  spread_rows(p, w, s.spread, row, [&](u32 r, u32 local, u32 first, bool counts) {
    s.delta[local] = load_once(p.lists + r, counts) - 4 * (u64)first;
  });
  UNROLL for (u32 j = 0; j < ITEMS; j++) {
    u64 out = w.out0 + Tile<ITEMS>::row(j);
    keep[j] = out < w.out1;
    at[j] = (u32)(out - w.origin);
    u64 delta = keep[j] ? s.delta[row[j]] : 0;
    if (PLANTED(ANY_SHORT_ADDRESS)) delta = (u32)delta;
    walks(keep[j]);
    v[j] = load_stream_if(keep[j], (const u32 *)(delta + 4 * out), 0u);
  }
  UNROLL for (u32 j = 0; j < ITEMS; j++) store_if(keep[j], p.out + at[j], v[j]);
  spread_columns(p, w, row, keep, at);
}

// As jd_expand, but keeps only neighbours in intervals, which are appended to the output.
// Bytes: 8 per row; 4 per output before the test; 4 + 4 per column written for each output that is kept.
KERNEL(jd_expand_within, Expand, EXPAND_BLOCKS) {
  enum : u32 { ITEMS = Narrow::ITEMS };
  SHARED(ExpandShared, s);
  Piece w;
  if (!piece_of(p, s.spread, w)) return;
  u32 row[ITEMS], at[ITEMS], v[ITEMS];
  bool keep[ITEMS];
  spread_rows(p, w, s.spread, row, [&](u32 r, u32 local, u32 first, bool counts) { s.delta[local] = load_once(p.starts + r, counts) - first; });
  UNROLL for (u32 j = 0; j < ITEMS; j++) {
    u64 out = w.out0 + Tile<ITEMS>::row(j);
    keep[j] = out < w.out1 + (PLANTED(WITHIN_ONE_MORE) && out < w.out0 + TILE ? 1 : 0);
    walks(keep[j]);
    v[j] = load_stream_if(keep[j], p.neighbours + (keep[j] ? s.delta[row[j]] + (u32)out : 0), 0u);
  }
  keep_within(p.within, v, keep);
  append_positions(s.append, keep, at, p.counter);
  UNROLL for (u32 j = 0; j < ITEMS; j++) store_if(keep[j], p.out + at[j], v[j]);
  spread_columns(p, w, row, keep, at);
}

// The range of list `l` in row r.
DEVICE Range list_range(const ListRange &l, u32 r, bool counts) {
  if (l.starts == nullptr) return {l.start, l.length};
  return {load_once((const u32 *)l.starts + r, counts), load_once((const u32 *)l.lengths + r, counts)};
}

// Packs the candidates for which `keep` is true, of which each thread has `rounds`, if they then need fewer rounds:
// those of all warps become consecutive, and the last warps may have none. Ids and rows are exchanged through the
// shared memory of the marks and lists, which are no longer read. Returns the new number of rounds; `pass` numbers the
// calls.
template <u32 ITEMS>
DEVICE u32 pack_candidates(IntersectShared &s, u32 pass, u32 rounds, u32 (&row)[ITEMS], u32 (&v)[ITEMS], bool (&keep)[ITEMS]) {
  u32 at[ITEMS], kept = 0;
  UNROLL for (u32 j = 0; j < ITEMS; j++) {
    u32 mask = vote(keep[j]);
    at[j] = kept + popcount(mask & lanes_below());
    kept += popcount(mask);
  }
  // Two arrays of counts, used alternately: before a warp overwrites one, all have passed the barrier of the pass in
  // between.
  u32 mine = (pass & 1) * WARPS;
  if (lane_index() == 0) s.packed[mine + warp_index()] = kept;
  if (!PLANTED(PACK_FIRST_BARRIER)) barrier();
  u32 before = 0, all = 0;
  UNROLL for (u32 k = 0; k < WARPS; k++) {
    u32 n = s.packed[mine + k];
    if (k < warp_index()) before += n;
    all += n;
  }
  u32 needed = (all + THREADS - 1) / THREADS;
  if (needed < rounds) {
    UNROLL for (u32 j = 0; j < ITEMS; j++) {
      if (keep[j]) {
        s.expand.spread.row[before + at[j]] = v[j];
        s.expand.delta[before + at[j]] = row[j];
      }
    }
    if (!PLANTED(PACK_SECOND_BARRIER)) barrier();
    UNROLL for (u32 j = 0; j < ITEMS; j++) {
      u32 i = j * THREADS + thread_index();
      keep[j] = i < all;
      v[j] = keep[j] ? s.expand.spread.row[i] : 0;
      row[j] = keep[j] ? s.expand.delta[i] : 0;
    }
    rounds = needed;
  }
  return rounds;
}

// Searches for each of a thread's first N candidates for which `keep` is true, in list number `pass` of its row, not
// counting the shortest list, which the candidates come from.
template <u32 N, class P, u32 ITEMS>
DEVICE void search_others(const P &p, const Piece &w, IntersectShared &s, u32 pass, const u32 (&row)[ITEMS], const u32 (&v)[ITEMS], bool (&keep)[ITEMS]) {
  const u32 *list[N];
  u32 start[N], length[N], at[N];
  bool look[N];
  UNROLL for (u32 j = 0; j < N; j++) {
    look[j] = keep[j];
    u32 driver = look[j] ? s.driver[row[j]] : 0;
    const ListRange &l = p.ranges[pass + (pass >= driver ? 1 : 0)];
    bool listed = look[j] && l.starts != nullptr;
    start[j] = load_cached_if(listed, (const u32 *)l.starts + w.row0 + row[j], l.start);
    length[j] = load_cached_if(listed, (const u32 *)l.lengths + w.row0 + row[j], l.length);
    list[j] = l.neighbours;
  }
  UNROLL for (u32 j = 0; j < N; j++) list[j] += start[j];
  sorted_positions([&](u32 j) { return list[j]; }, length, [&](u32 j) { return v[j]; }, look, at);
  UNROLL for (u32 j = 0; j < N; j++) keep[j] = at[j] != NO_KEY;
}

// Keeps neighbours that are in all lists of a row: each id of the shortest list is searched for in each other list, and
// after each list the remaining candidates are packed. Adjacent threads search for adjacent ids, so their probes share
// cache lines.
// Bytes: 4 per row (prefix), 8 per row and list with a column anchor; per candidate 4, and 4 (ceil(log2 d) + 1) for
// each other list of d ids until one does not contain it; 4 + 4 per column written for each output that is kept.
KERNEL(jd_intersect, Expand, INTERSECT_BLOCKS) {
  enum : u32 { ITEMS = Narrow::ITEMS };
  SHARED(IntersectShared, s);
  Piece w;
  if (!piece_of(p, s.expand.spread, w)) return;
  u32 row[ITEMS], at[ITEMS], v[ITEMS];
  bool keep[ITEMS];
  spread_rows(p, w, s.expand.spread, row, [&](u32 r, u32 local, u32 first, bool counts) {
    u32 best = 0, start = 0, length = 0;
    for (u32 l = 0; l < p.lists; l++) {
      Range x = list_range(p.ranges[l], r, counts);
      if (l == 0 || x.length < length) {
        best = l;
        start = x.start;
        length = x.length;
      }
    }
    s.driver[local] = (unsigned char)best;
    s.expand.delta[local] = start - first;
  });
  UNROLL for (u32 j = 0; j < ITEMS; j++) {
    u64 out = w.out0 + Tile<ITEMS>::row(j);
    keep[j] = out < w.out1;
    u32 from = keep[j] ? s.expand.delta[row[j]] + (u32)out : 0;
    walks(keep[j]);
    v[j] = load_random_if(keep[j], p.ranges[keep[j] ? s.driver[row[j]] : 0].neighbours + from, 0u);
  }
  keep_within(p.within, v, keep);
  u32 rounds = ITEMS;
  NO_UNROLL for (u32 pass = 0; pass + (PLANTED(INTERSECT_FORGETS_LAST) ? 2 : 1) < p.lists; pass++) {
    if (pass > 0 || p.within.count != 0) rounds = pack_candidates(s, pass, rounds, row, v, keep);
    if (rounds > 2) search_others<ITEMS>(p, w, s, pass, row, v, keep);
    else if (rounds == 2) search_others<2>(p, w, s, pass, row, v, keep);
    else if (rounds == 1) search_others<1>(p, w, s, pass, row, v, keep);
  }
  append_positions(s.expand.append, keep, at, p.counter);
  UNROLL for (u32 j = 0; j < ITEMS; j++) store_if(keep[j], p.out + at[j], v[j]);
  spread_columns(p, w, row, keep, at);
}

// Expands segments whose keys have one neighbour each: lookup, test and append in one pass.
// Bytes per row: 4 for a column anchor, those of the lookup, 4 if the key exists; for a row that is kept 4 written, and
// 8 per carried column.
KERNEL(jd_expand_one, ExpandOne, 3) {
  enum : u32 { ITEMS = Wide::ITEMS };
  SHARED(AppendShared, s);
  u64 first = (u64)block_index() * Tile<ITEMS>::SIZE;
  u32 rows = rows_of(p.compact.rows, p.compact.count);
  if (first >= rows) return;
  u32 left = rows - (u32)first;
  One segments = {p.segment};
  u32 v[ITEMS], key[ITEMS], at[ITEMS];
  bool keep[ITEMS];
  rows_there<ITEMS>(0, left, keep);
  operands_at<ITEMS>(p.anchor, first, 0, left, v);
  find_keys(segments, v, keep, key);
  UNROLL for (u32 j = 0; j < ITEMS; j++) {
    keep[j] = key[j] < p.segment.edges;
    v[j] = load_random_if(keep[j], p.segment.neighbours + key[j] + (PLANTED(ONE_NEXT_KEY) ? 1 : 0), 0u);
  }
  keep_within(p.within, v, keep);
  append_positions(s, keep, at, p.compact.counter);
  UNROLL for (u32 j = 0; j < ITEMS; j++) store_if(keep[j], p.out + at[j], v[j]);
  carry_columns(p.compact.columns, first, keep, at);
}
