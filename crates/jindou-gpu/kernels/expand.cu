// Expansion: every row becomes as many rows as its neighbour list is long.
//
// Work is cut by merge path: a row costs one unit and every output one unit, and each block takes TILE units,
// so neither one huge list nor millions of empty ones leave a block behind. Unit d belongs to row r if r rows
// end before it; a row's end lies at prefix[r + 1] + r.
#include "compact.cuh"

// Rows that end before unit d.
DEVICE u32 rows_before(const u32 *prefix, u32 rows, u64 d) {
  u32 low = 0, high = rows;
  while (low < high) {
    u32 mid = low + (high - low) / 2;
    if ((u64)load_cached(prefix + mid + 1) + mid < d) low = mid + 1;
    else high = mid;
  }
  return low;
}

// Finds the row at the first unit of each tile, and of the end. Bytes: 4 a tile written, and one more.
KERNEL(jd_partition, Partition) {
  UNROLL for (u32 j = 0; j < ITEMS; j++) {
    u64 tile = (u64)block_index() * TILE + tile_row(j);
    if (tile <= p.tiles) {
      u64 d = p.begin + tile * TILE;
      if (d > p.end) d = p.end;
      store(p.rows_at + tile, rows_before(p.prefix, p.rows, d - (PLANTED(PARTITION_OFF_BY_ONE) && d > 0 ? 1 : 0)));
    }
  }
}

struct SpreadShared {
  SharedArray<u32, TILE> row;
  SharedArray<u32, WARPS> warp_max;
};
// `delta` of a row is its list's start less its first output: neighbour index = delta + output.
struct ExpandShared {
  SpreadShared spread;
  SharedArray<u32, TILE + 1> delta;
  AppendShared append;
};
// The same for lists anywhere: address of a neighbour = delta + 4 output.
struct ExpandAnyShared {
  SpreadShared spread;
  SharedArray<u64, TILE + 1> delta;
};
struct IntersectShared {
  ExpandShared expand;
  SharedArray<unsigned char, TILE + 1> driver;
};

struct Piece { u32 row0, row1; u64 out0, out1, origin; };

template <class P> DEVICE Piece piece_of(const P &p) {
  u64 d0 = p.begin + (u64)block_index() * TILE, d1 = d0 + TILE < p.end ? d0 + TILE : p.end;
  Piece w;
  w.row0 = load_cached(p.rows_at + block_index());
  w.row1 = load_cached(p.rows_at + block_index() + 1);
  w.out0 = d0 - w.row0;
  w.out1 = d1 - w.row1;
  w.origin = p.begin - load_cached(p.rows_at);
  return w;
}

// Which row each output of the tile belongs to: rows mark their first output, a running maximum spreads the
// mark. `begin(row, local, first, counts)` keeps where the list of a row lies whose first output is `first`.
template <class P, class Begin> DEVICE void spread_rows(const P &p, const Piece &w, SpreadShared &s, u32 (&row)[ITEMS], Begin begin) {
  for (u32 x = thread_index(); x < TILE; x += THREADS) s.row[x] = 0;
  barrier();
  for (u32 local = thread_index(); local <= w.row1 - w.row0; local += THREADS) {
    u32 r = w.row0 + local;
    if (r >= p.rows) break;
    u32 from = load_cached(p.prefix + r), to = load_cached(p.prefix + r + 1);
    // A row is counted by the block that holds its first unit.
    bool counts = from >= w.out0 && (r < w.row1 || from < w.out1);
    from = load_once(p.prefix + r, counts);
    begin(r, local, from, counts);
    u64 at = from > w.out0 ? from : w.out0;
    if (to > at && at < w.out1) s.row[(u32)(at - w.out0)] = local;
  }
  if (!PLANTED(EXPAND_MARK_BARRIER)) barrier();
  u32 carry = 0;
  UNROLL for (u32 j = 0; j < ITEMS; j++) {
    u32 m = warp_inclusive_max(s.row[tile_row(j)]);
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

// Carried columns of an output: read once a row that has outputs, written once an output.
template <class P> DEVICE void spread_columns(const P &p, const Piece &w, const u32 (&row)[ITEMS], const bool (&keep)[ITEMS], const u32 (&at)[ITEMS]) {
  for (u32 c = 0; c < p.columns.count; c++) {
    u32 v[ITEMS];
    UNROLL for (u32 j = 0; j < ITEMS; j++) {
      v[j] = 0;
      if (keep[j]) v[j] = load_cached(p.columns.from[c] + w.row0 + row[j]);
    }
    UNROLL for (u32 j = 0; j < ITEMS; j++) if (keep[j]) store(p.columns.to[c] + at[j], v[j]);
  }
}

// Every output is kept, so outputs lie where their number says.
// Bytes: 8 a row (prefix, start); 4 an output read, 4 + 4 a column written. Columns are read from cache: the
// rows of a tile are neighbours, 4 a column and row from memory.
KERNEL(jd_expand, Expand) {
  SHARED(ExpandShared, s);
  Piece w = piece_of(p);
  u32 row[ITEMS], at[ITEMS], v[ITEMS];
  bool keep[ITEMS];
  spread_rows(p, w, s.spread, row, [&](u32 r, u32 local, u32 first, bool counts) { s.delta[local] = load_once(p.starts + r, counts) - first; });
  UNROLL for (u32 j = 0; j < ITEMS; j++) {
    u64 out = w.out0 + tile_row(j);
    keep[j] = out < w.out1;
    at[j] = (u32)(out - w.origin);
    v[j] = keep[j] ? load_stream(p.neighbours + (s.delta[row[j]] + (u32)out)) : 0;
  }
  UNROLL for (u32 j = 0; j < ITEMS; j++) if (keep[j]) store(p.out + at[j], v[j]);
  spread_columns(p, w, row, keep, at);
}

// As jd_expand for lists of many segments. Bytes: 12 a row (prefix, address); 4 an output read, 4 + 4 a column
// written; columns as in jd_expand.
KERNEL(jd_expand_any, ExpandAny) {
  SHARED(ExpandAnyShared, s);
  Piece w = piece_of(p);
  u32 row[ITEMS], at[ITEMS], v[ITEMS];
  bool keep[ITEMS];
  spread_rows(p, w, s.spread, row, [&](u32 r, u32 local, u32 first, bool counts) {
    s.delta[local] = load_once(p.lists + r, counts) - 4 * (u64)first;
  });
  UNROLL for (u32 j = 0; j < ITEMS; j++) {
    u64 out = w.out0 + tile_row(j);
    keep[j] = out < w.out1;
    at[j] = (u32)(out - w.origin);
    u64 delta = keep[j] ? s.delta[row[j]] : 0;
    if (PLANTED(ANY_SHORT_ADDRESS)) delta = (u32)delta;
    v[j] = keep[j] ? load_stream((const u32 *)(delta + 4 * out)) : 0;
  }
  UNROLL for (u32 j = 0; j < ITEMS; j++) if (keep[j]) store(p.out + at[j], v[j]);
  spread_columns(p, w, row, keep, at);
}

// As jd_expand for neighbours in intervals: outputs that stay are appended.
// Bytes: 8 a row; 4 an output before the test; 4 + 4 a column written for an output that stays.
KERNEL(jd_expand_within, Expand) {
  SHARED(ExpandShared, s);
  Piece w = piece_of(p);
  u32 row[ITEMS], at[ITEMS], v[ITEMS];
  bool keep[ITEMS];
  spread_rows(p, w, s.spread, row, [&](u32 r, u32 local, u32 first, bool counts) { s.delta[local] = load_once(p.starts + r, counts) - first; });
  UNROLL for (u32 j = 0; j < ITEMS; j++) {
    u64 out = w.out0 + tile_row(j);
    keep[j] = out < w.out1 + (PLANTED(WITHIN_ONE_MORE) && out < w.out0 + TILE ? 1 : 0);
    v[j] = keep[j] ? load_stream(p.neighbours + (s.delta[row[j]] + (u32)out)) : 0;
  }
  UNROLL for (u32 j = 0; j < ITEMS; j++) keep[j] = keep[j] && is_within(p.within, v[j]);
  append_positions(s.append, keep, at, p.counter);
  UNROLL for (u32 j = 0; j < ITEMS; j++) if (keep[j]) store(p.out + at[j], v[j]);
  spread_columns(p, w, row, keep, at);
}

// The range of list l in row r.
DEVICE Range list_range(const ListRange &l, u32 r, bool counts) {
  if (l.starts == nullptr) return {l.start, l.length};
  return {load_once((const u32 *)l.starts + r, counts), load_once((const u32 *)l.lengths + r, counts)};
}

// Neighbours in all lists of a row: each of the shortest list is searched in the others. Threads side by side
// look for neighbours side by side, so a search's probes share cache lines.
// Bytes: 4 a row (prefix) and 8 a row and list with a column anchor; for each candidate 4, and 4 (ceil(log2 d)
// + 1) for each other list of d entries until one misses; 4 + 4 a column written for an output that stays.
KERNEL(jd_intersect, Expand) {
  SHARED(IntersectShared, s);
  Piece w = piece_of(p);
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
    u64 out = w.out0 + tile_row(j);
    keep[j] = out < w.out1;
    v[j] = 0;
    if (keep[j]) {
      u32 driver = s.driver[row[j]], at_list = s.expand.delta[row[j]] + (u32)out;
      for (u32 l = 0; l < p.lists; l++)
        if (l == driver) v[j] = load_random(p.ranges[l].neighbours + at_list);
      keep[j] = is_within(p.within, v[j]);
      for (u32 l = 0; l < p.lists - (PLANTED(INTERSECT_FORGETS_LAST) ? 1 : 0); l++) {
        if (keep[j] && l != driver) {
          Range x = list_range(p.ranges[l], w.row0 + row[j], false);
          keep[j] = sorted_position(p.ranges[l].neighbours + x.start, x.length, v[j]) != NO_KEY;
        }
      }
    }
  }
  append_positions(s.expand.append, keep, at, p.counter);
  UNROLL for (u32 j = 0; j < ITEMS; j++) if (keep[j]) store(p.out + at[j], v[j]);
  spread_columns(p, w, row, keep, at);
}

// Segments whose keys have one neighbour each: lookup, test and append in one pass.
// Bytes a row: 4 for a column anchor, the lookup's, 4 if the key is there; for a row that stays 4 written, and 8 a
// carried column.
KERNEL(jd_expand_one, ExpandOne) {
  SHARED(AppendShared, s);
  u64 first = (u64)block_index() * TILE;
  u32 v[ITEMS], key[ITEMS], at[ITEMS];
  bool keep[ITEMS];
  UNROLL for (u32 j = 0; j < ITEMS; j++) {
    u64 row = first + tile_row(j);
    v[j] = row < p.compact.rows ? operand_at(p.anchor, row) : 0;
  }
  UNROLL for (u32 j = 0; j < ITEMS; j++) key[j] = first + tile_row(j) < p.compact.rows ? find_key(p.segment, v[j]) : NO_KEY;
  UNROLL for (u32 j = 0; j < ITEMS; j++) {
    keep[j] = key[j] < p.segment.edges;
    v[j] = keep[j] ? load_random(p.segment.neighbours + key[j] + (PLANTED(ONE_NEXT_KEY) ? 1 : 0)) : 0;
  }
  UNROLL for (u32 j = 0; j < ITEMS; j++) keep[j] = keep[j] && is_within(p.within, v[j]);
  append_positions(s, keep, at, p.compact.counter);
  UNROLL for (u32 j = 0; j < ITEMS; j++) if (keep[j]) store(p.out + at[j], v[j]);
  carry_columns(p.compact.columns, first, keep, at);
}
