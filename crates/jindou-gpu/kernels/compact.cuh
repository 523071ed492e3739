// Stream compaction: appends the rows of a tile that are kept to an output, with one atomic addition per tile. The
// order of rows is preserved within a tile, but tiles are appended in about the order in which they ran.
#pragma once
#include "segment.cuh"

struct AppendShared { SharedArray<u32, WARPS> counts; u32 base; };

// The output position of each kept item of this thread. Ends after a barrier of the whole block.
template <u32 ITEMS> DEVICE void append_positions(AppendShared &s, const bool (&keep)[ITEMS], u32 (&at)[ITEMS], u32 *counter) {
  u32 kept = 0;
  UNROLL for (u32 j = 0; j < ITEMS; j++) {
    u32 mask = vote(keep[j]);
    at[j] = kept + popcount(mask & lanes_below());
    kept += popcount(mask);
  }
  if (lane_index() == 0) s.counts[warp_index()] = kept;
  if (!PLANTED(APPEND_FIRST_BARRIER)) barrier();
  if (thread_index() == 0) {
    u32 all = 0;
    UNROLL for (u32 w = 0; w < WARPS; w++) all += s.counts[w];
    if (PLANTED(APPEND_NOT_ATOMIC)) {
      u32 seen = load_cached(counter);
      relax();
      s.base = seen;
      store(counter, seen + all);
    } else {
      s.base = all ? atomic_add(counter, all) : 0;
    }
  }
  if (!PLANTED(APPEND_SECOND_BARRIER)) barrier();
  u32 before = s.base;
  UNROLL for (u32 w = 0; w < WARPS; w++) if (w < warp_index()) before += s.counts[w];
  UNROLL for (u32 j = 0; j < ITEMS; j++) at[j] += before;
}

// Copies the carried columns of kept rows. Bytes: 8 per column and kept row.
template <u32 ITEMS> DEVICE void carry_columns(const Columns &c, u64 first, const bool (&keep)[ITEMS], const u32 (&at)[ITEMS]) {
  for (u32 i = 0; i < c.count; i++) {
    u32 v[ITEMS];
    UNROLL for (u32 j = 0; j < ITEMS; j++) v[j] = load_stream_if(keep[j], c.from[i] + first + Tile<ITEMS>::row(j), 0u);
    UNROLL for (u32 j = 0; j < ITEMS; j++) store_if(keep[j], c.to[i] + at[j], v[j]);
  }
}

// For N of a thread's rows of a tile, from item `item` on: whether they exist. The table has `left` rows from the
// tile's first row on.
template <u32 ITEMS, u32 N> DEVICE void rows_there(u32 item, u32 left, bool (&there)[N]) {
  UNROLL for (u32 j = 0; j < N; j++) there[j] = Tile<ITEMS>::row(item + j) < left;
}

// Keeps the rows of this block's tile for which `keep` is true and that exist in the table.
template <u32 ITEMS> DEVICE void compact_tile(const Compact &c, AppendShared &s, u64 first, const bool (&keep)[ITEMS]) {
  u32 at[ITEMS];
  append_positions(s, keep, at, c.counter);
  carry_columns(c.columns, first, keep, at);
}
