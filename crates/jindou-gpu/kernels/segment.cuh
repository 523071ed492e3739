// Looking up a vertex in a segment: which key it is, and which range of neighbours it has. Bounds are checked as on the
// CPU: damaged arrays lead to empty or wrong lists, never to a fault.
#pragma once
#include "params.cuh"

struct Range { u32 start, length; };

#ifndef JINDOU_SHIM
// Reads a block of a bitmap by one access of 16 bytes.
DEVICE RankBlock load_stream(const RankBlock *p) {
  ulonglong2 v = __ldcs((const ulonglong2 *)p);
  return {v.x, (u32)v.y, (u32)(v.y >> 32)};
}
// If `when` is false, reads what is at `safe` instead, which must be device memory: keeping another value in four
// registers would make the compiler wait for each load.
DEVICE RankBlock load_random_or(bool when, const RankBlock *p, const void *safe) {
  ulonglong2 v = __ldg(when ? (const ulonglong2 *)p : (const ulonglong2 *)safe);
  return {v.x, (u32)v.y, (u32)(v.y >> 32)};
}
#else
DEVICE RankBlock load_random_or(bool when, const RankBlock *p, const void *) { return load_random_if(when, p, RankBlock{0, 0, 0}); }
#endif

// Lookups are done for N items at a time, in stages: all loads of a stage are issued before the first one is used, so
// that N are in flight together. `segments[j]` is the segment of item j: the same for all (`One`), or one per item
// (`Each`).
struct One {
  const Segment &segment;
  DEVICE_MEMBER const Segment &operator[](u32) const { return segment; }
  DEVICE_MEMBER bool any(u32 kind) const { return segment.kind == kind; }
  DEVICE_MEMBER bool patched() const { return segment.dirty != nullptr; }
  // For a bitmap, its first block.
  DEVICE_MEMBER const void *safe() const { return segment.table; }
};
template <u32 N> struct Each {
  SegmentHead heads[N];
  const SegmentHead *catalog;  // of at least one segment, or with space for one
  DEVICE_MEMBER const SegmentHead &operator[](u32 j) const { return heads[j]; }
  DEVICE_MEMBER bool any(u32) const { return true; }
  DEVICE_MEMBER bool patched() const { return true; }
  DEVICE_MEMBER const void *safe() const { return catalog; }
};

// The key numbers of vertices in a finder of intervals. The intervals of one segment are the same for all threads, so a
// few of them are passed with the parameters.
template <u32 N> DEVICE void find_in_runs(const One &segments, const u32 (&v)[N], const bool (&look)[N], u32 (&key)[N]) {
  const Segment &s = segments.segment;
  const Run *runs = (const Run *)s.table;
  for (u32 i = 0; i < s.table_len; i++) {
    Run run;
    if (s.table_len <= MAX_RUNS) run = s.runs[i];
    else run = {load_cached(&runs[i].start), load_cached(&runs[i].end), load_cached(&runs[i].base)};
    UNROLL for (u32 j = 0; j < N; j++) {
      u32 d = v[j] - run.start;
      if (look[j] && d < run.end - run.start) key[j] = run.base + d;
    }
  }
}
template <u32 N> DEVICE void find_in_runs(const Each<N> &segments, const u32 (&v)[N], const bool (&look)[N], u32 (&key)[N]) {
  u32 n[N], most = 0;
  UNROLL for (u32 j = 0; j < N; j++) {
    n[j] = look[j] && segments[j].kind == FINDER_INTERVALS ? segments[j].table_len : 0;
    most = n[j] > most ? n[j] : most;
  }
  for (u32 i = 0; i < most; i++) {
    Run run[N];
    UNROLL for (u32 j = 0; j < N; j++) {
      const Run *at = (const Run *)segments[j].table + i;
      run[j].start = load_cached_if(i < n[j], &at->start, 0u);
      run[j].end = load_cached_if(i < n[j], &at->end, 0u);
      run[j].base = load_cached_if(i < n[j], &at->base, 0u);
    }
    UNROLL for (u32 j = 0; j < N; j++) {
      u32 d = v[j] - run[j].start;
      if (d < run[j].end - run[j].start) key[j] = run[j].base + d;
    }
  }
}

// The positions of values in sorted lists (`list(j)` with `n[j]` entries), for items for which `look` is true; NO_KEY
// if a value is not in its list. Bytes per item: 4 (ceil(log2 n) + 1), none for an empty list.
template <u32 N, class List, class Value>
DEVICE void sorted_positions(List list, u32 (&n)[N], Value value, const bool (&look)[N], u32 (&at)[N]) {
  u32 left = 0;
  UNROLL for (u32 j = 0; j < N; j++) {
    at[j] = 0;
    if (!look[j]) n[j] = 0;
    left = n[j] > left ? n[j] : left;
  }
  // The loop ends when the longest list has one entry left.
  for (; left > 1; left -= left >> 1) {
    u32 probe[N];
    UNROLL for (u32 j = 0; j < N; j++) probe[j] = load_random_if(n[j] > 1, list(j) + at[j] + (n[j] >> 1), 0u);
    UNROLL for (u32 j = 0; j < N; j++) {
      u32 half = n[j] >> 1;
      if (n[j] > 1 && probe[j] <= value(j)) at[j] += half;
      n[j] -= half;
    }
  }
  u32 last[N];
  UNROLL for (u32 j = 0; j < N; j++) last[j] = load_random_if(n[j] != 0, list(j) + at[j], 0u);
  UNROLL for (u32 j = 0; j < N; j++) if (n[j] == 0 || last[j] != value(j)) at[j] = NO_KEY;
}

// The key numbers of vertices for which `look` is true; NO_KEY for the others and for vertices that are not keys.
//
// Bytes per item: intervals 0; bitmap 16; directory 8 + 4 (ceil(log2 b) + 1) for a bucket of b > 0 keys; sets 4
// (ceil(log2 r) + 1) for r runs, and 4. For ids outside the range of keys, nothing is read, or only the search.
template <u32 N, class Segments>
DEVICE void find_keys(const Segments &segments, const u32 (&v)[N], const bool (&look)[N], u32 (&key)[N]) {
  UNROLL for (u32 j = 0; j < N; j++) key[j] = NO_KEY;
  if (segments.any(FINDER_INTERVALS)) find_in_runs(segments, v, look, key);
  if (segments.any(FINDER_BITMAP)) {
    RankBlock block[N];
    bool there[N];
    UNROLL for (u32 j = 0; j < N; j++) {
      const SegmentHead &s = segments[j];
      u32 at = (v[j] - s.first) >> 6;
      there[j] = look[j] && s.kind == FINDER_BITMAP && at < s.table_len;
      block[j] = load_random_or(there[j], (const RankBlock *)s.table + at, segments.safe());
    }
    UNROLL for (u32 j = 0; j < N; j++) {
      u32 bit = (v[j] - segments[j].first) & 63;
      if (there[j] && ((block[j].bits >> bit) & 1)) key[j] = block[j].rank + popcount64(block[j].bits & ((1ull << bit) - 1));
    }
  }
  if (segments.any(FINDER_DIRECTORY)) {
    bool there[N];
    u32 from[N], to[N], at[N];
    UNROLL for (u32 j = 0; j < N; j++) {
      const SegmentHead &s = segments[j];
      u32 bucket = (v[j] - s.first) >> s.shift;
      there[j] = look[j] && s.kind == FINDER_DIRECTORY && v[j] >= s.first && s.table_len > 0 && bucket < s.table_len - 1;
      const u32 *starts = (const u32 *)s.table + bucket;
      from[j] = load_random_if(there[j], starts, 0u);
      to[j] = load_random_if(there[j], starts + 1, 0u);
    }
    UNROLL for (u32 j = 0; j < N; j++) to[j] = there[j] && from[j] <= to[j] && to[j] <= segments[j].key_count ? to[j] - from[j] : 0;
    sorted_positions([&](u32 j) { return segments[j].keys + from[j]; }, to, [&](u32 j) { return v[j]; }, there, at);
    UNROLL for (u32 j = 0; j < N; j++) if (there[j] && at[j] != NO_KEY) key[j] = from[j] + at[j];
  }
  if (segments.any(FINDER_SETS)) {
    // The last run that begins at or before a vertex.
    u32 at[N], n[N], left = 0;
    UNROLL for (u32 j = 0; j < N; j++) {
      at[j] = 0;
      n[j] = look[j] && segments[j].kind == FINDER_SETS ? segments[j].table_len : 0;
      left = n[j] > left ? n[j] : left;
    }
    for (; left > 1; left -= left >> 1) {
      u32 probe[N];
      UNROLL for (u32 j = 0; j < N; j++) probe[j] = load_random_if(n[j] > 1, (const u32 *)segments[j].table + at[j] + (n[j] >> 1), 0u);
      UNROLL for (u32 j = 0; j < N; j++) {
        u32 half = n[j] >> 1;
        if (n[j] > 1 && probe[j] <= v[j] + (PLANTED(SETS_NEXT_RUN) ? 1 : 0)) at[j] += half;
        n[j] -= half;
      }
    }
    u32 start[N];
    UNROLL for (u32 j = 0; j < N; j++) start[j] = load_random_if(n[j] == 1, (const u32 *)segments[j].table + at[j], NO_KEY);
    UNROLL for (u32 j = 0; j < N; j++)
      key[j] = load_random_if(n[j] == 1 && start[j] <= v[j], segments[j].keys + at[j], key[j]);
  }
}

// The neighbours of key numbers. Bytes per item: 8, none for segments whose keys have one neighbour.
template <u32 N, class Segments>
DEVICE void key_ranges(const Segments &segments, const u32 (&key)[N], u32 (&start)[N], u32 (&length)[N]) {
  u32 from[N], to[N];
  UNROLL for (u32 j = 0; j < N; j++) {
    const SegmentHead &s = segments[j];
    bool listed = s.offsets != nullptr && key[j] < s.key_count;
    from[j] = load_random_if(listed, s.offsets + key[j], 1u);
    to[j] = load_random_if(listed, s.offsets + key[j] + (PLANTED(RANGE_OFF_BY_ONE) ? 2 : 1), 0u);
  }
  UNROLL for (u32 j = 0; j < N; j++) {
    const SegmentHead &s = segments[j];
    if (s.offsets == nullptr) {
      bool there = key[j] < s.edges;
      start[j] = there ? key[j] : 0;
      length[j] = there ? 1 : 0;
    } else {
      // An inconsistent range in a damaged file counts as empty.
      bool there = from[j] <= to[j] && to[j] <= s.edges;
      start[j] = there ? from[j] : 0;
      length[j] = there ? to[j] - from[j] : 0;
    }
  }
}

// The neighbours of vertices for which `look` is true; empty for the others. With a patch, 8 bytes more per item (the
// word of the bitmap of changed keys), and if its bit is set, a search of the overlay's n keys, 4 (ceil(log2 n) + 1),
// then 8 for the range.
template <u32 N, class Segments>
DEVICE void vertex_ranges(const Segments &segments, const u32 (&v)[N], const bool (&look)[N], u32 (&start)[N], u32 (&length)[N]) {
  bool base[N], merged[N];
  u32 key[N], at[N];
  UNROLL for (u32 j = 0; j < N; j++) {
    base[j] = look[j];
    merged[j] = false;
    at[j] = NO_KEY;
  }
  if (segments.patched() && !PLANTED(DIRTY_IGNORED)) {
    u64 word[N];
    u32 n[N];
    bool dirty[N], some = false;
    UNROLL for (u32 j = 0; j < N; j++) {
      const SegmentHead &s = segments[j];
      word[j] = load_random_if(look[j] && s.dirty != nullptr, s.dirty + ((v[j] & s.dirty_mask) >> 6), (u64)0);
    }
    UNROLL for (u32 j = 0; j < N; j++) {
      dirty[j] = (word[j] >> (v[j] & segments[j].dirty_mask & 63)) & 1;
      n[j] = segments[j].overlay_len;
      some = some || dirty[j];
    }
    // Few vertices have changed, so most threads have none to search for.
    if (some) {
      sorted_positions([&](u32 j) { return segments[j].overlay_keys; }, n, [&](u32 j) { return v[j]; }, dirty, at);
      UNROLL for (u32 j = 0; j < N; j++) {
        merged[j] = at[j] != NO_KEY;
        base[j] = base[j] && !merged[j];
      }
    }
  }
  find_keys(segments, v, base, key);
  key_ranges(segments, key, start, length);
  if (segments.patched() && !PLANTED(DIRTY_IGNORED)) {
    u32 from[N], to[N];
    UNROLL for (u32 j = 0; j < N; j++) {
      from[j] = load_random_if(merged[j], segments[j].overlay_starts + at[j], 0u);
      to[j] = load_random_if(merged[j], segments[j].overlay_starts + at[j] + 1, 0u);
    }
    UNROLL for (u32 j = 0; j < N; j++) {
      start[j] = merged[j] ? segments[j].edges + from[j] : start[j];
      length[j] = merged[j] ? to[j] - from[j] : length[j];
    }
  }
}

// As vertex_ranges for all items of a thread in one segment, FEW at a time. That takes half the registers, so more
// warps fit on a multiprocessor, and still has enough loads in flight to cover the latency of memory.
template <u32 ITEMS>
DEVICE void ranges_of(const Segment &segment, const u32 (&v)[ITEMS], const bool (&look)[ITEMS], u32 (&start)[ITEMS], u32 (&length)[ITEMS]) {
  One segments = {segment};
  UNROLL for (u32 i = 0; i < ITEMS; i += FEW) {
    u32 few[FEW], from[FEW], n[FEW];
    bool wanted[FEW];
    UNROLL for (u32 j = 0; j < FEW; j++) {
      few[j] = v[i + j];
      wanted[j] = look[i + j];
    }
    vertex_ranges(segments, few, wanted, from, n);
    UNROLL for (u32 j = 0; j < FEW; j++) {
      start[i + j] = from[j];
      length[i + j] = n[j];
    }
  }
}

// Clips sorted lists, at `neighbours + start[j]`, to ids from `clip.start` on and before `clip.end`: TWO lists at a
// time, both ends of each together. Bytes per item: none for an empty list, otherwise 8 for its first and last id, and
// 4 ceil(log2 n) for each end of the n ids that lies outside.
template <u32 N> DEVICE void clip_ranges(const u32 *neighbours, const Clip &clip, u32 (&start)[N], u32 (&length)[N]) {
  UNROLL for (u32 i = 0; i < N; i += TWO) {
    // The number of ids before each bound: none or all of a list, or found by a search.
    u32 low[TWO], high[TWO], n[TWO], m[TWO], left = 0;
    UNROLL for (u32 j = 0; j < TWO; j++) {
      const u32 *list = neighbours + start[i + j];
      bool some = length[i + j] != 0;
      low[j] = load_random_if(some, list, 0u);
      high[j] = load_random_if(some, list + length[i + j] - 1, 0u);
    }
    UNROLL for (u32 j = 0; j < TWO; j++) {
      u32 all = length[i + j], first = low[j], last = high[j];
      bool late = all != 0 && first < clip.start, early = all != 0 && last >= clip.end;
      low[j] = 0;
      high[j] = early ? 0 : all;
      n[j] = late ? all : 0;
      m[j] = early && first < clip.end ? all : 0;
      left = n[j] + m[j] != 0 && all > left ? all : left;
    }
    // Searches for the last id before a bound; if a search is needed, the first id is before it.
    for (; left > 1; left -= left >> 1) {
      u32 below[TWO], above[TWO];
      UNROLL for (u32 j = 0; j < TWO; j++) {
        const u32 *list = neighbours + start[i + j];
        below[j] = load_random_if(n[j] > 1, list + low[j] + (n[j] >> 1), 0u);
        above[j] = load_random_if(m[j] > 1, list + high[j] + (m[j] >> 1), 0u);
      }
      UNROLL for (u32 j = 0; j < TWO; j++) {
        u32 half = n[j] >> 1;
        if (n[j] > 1 && below[j] < clip.start) low[j] += half;
        n[j] -= half;
        half = m[j] >> 1;
        if (m[j] > 1 && above[j] < clip.end) high[j] += half;
        m[j] -= half;
      }
    }
    UNROLL for (u32 j = 0; j < TWO; j++) {
      u32 from = low[j] + n[j], to = high[j] + (PLANTED(CLIP_ONE_LESS) ? 0 : m[j]);
      start[i + j] += from;
      length[i + j] = to > from ? to - from : 0;
    }
  }
}

// The segments of predicates' terms; an empty one, and false in `found`, for a term that is not a predicate. The
// catalog has 92 bytes per predicate and is read from the cache. Predicates usually have consecutive ids, so the
// position is guessed first.
template <u32 N>
DEVICE void segments_of(const Catalog &c, const u32 (&term)[N], const bool (&look)[N], Each<N> &segments, bool (&found)[N]) {
  segments.catalog = c.heads;
  u32 first = load_cached_if(c.count != 0, c.terms, 0u), at[N], there[N];
  UNROLL for (u32 j = 0; j < N; j++) {
    at[j] = term[j] - first;
    there[j] = load_cached_if(look[j] && at[j] < c.count, c.terms + at[j], ~term[j]);
  }
  UNROLL for (u32 j = 0; j < N; j++) {
    found[j] = look[j] && there[j] == term[j];
    if (look[j] && !found[j] && c.count != 0) {
      u32 n = c.count;
      at[j] = 0;
      while (n > 1) {
        u32 half = n >> 1;
        if (load_cached(c.terms + at[j] + half) <= term[j]) at[j] += half;
        n -= half;
      }
      found[j] = load_cached(c.terms + at[j]) == term[j];
    }
    if (PLANTED(CATALOG_NEXT) && at[j] + 1 < c.count) at[j]++;
  }
  UNROLL for (u32 i = 0; i < sizeof(SegmentHead) / 8; i++) {
    UNROLL for (u32 j = 0; j < N; j++) {
      u64 word = load_cached_if(found[j], (const u64 *)(c.heads + at[j]) + i, (u64)0);
      __builtin_memcpy((char *)&segments.heads[j] + 8 * i, &word, 8);
    }
  }
}

// The ids of N of a thread's rows, from item `item` on, in the tile at `first`, after which the table has `left` rows;
// 0 for rows that do not exist. Bytes per row: 4 for a column, none for a constant.
template <u32 ITEMS, u32 N> DEVICE void operands_at(const Operand &o, u64 first, u32 item, u32 left, u32 (&v)[N]) {
  if (o.column == nullptr) {
    UNROLL for (u32 j = 0; j < N; j++) v[j] = o.constant;
  } else {
    const u32 *column = o.column + first;
    UNROLL for (u32 j = 0; j < N; j++) {
      u32 row = Tile<ITEMS>::row(item + j);
      v[j] = load_stream_if(row < left, column + row, 0u);
    }
  }
}

// Sets `keep` to false for ids outside of the intervals.
template <u32 N> DEVICE void keep_within(const Within &w, const u32 (&v)[N], bool (&keep)[N]) {
  if (w.count == 0) return;
  u32 start[N], end[N], at[N];
  UNROLL for (u32 j = 0; j < N; j++) {
    start[j] = w.start;
    end[j] = w.end;
    at[j] = 0;
  }
  if (w.count > 1) {
    u32 n = w.count;
    while (n > 1) {
      u32 half = n >> 1, probe[N];
      UNROLL for (u32 j = 0; j < N; j++) probe[j] = load_cached_if(keep[j], &w.table[at[j] + half].a, 0u);
      UNROLL for (u32 j = 0; j < N; j++) if (probe[j] <= v[j]) at[j] += half;
      n -= half;
    }
    UNROLL for (u32 j = 0; j < N; j++) {
      start[j] = load_cached_if(keep[j], &w.table[at[j]].a, 0u);
      end[j] = load_cached_if(keep[j], &w.table[at[j]].b, 0u);
    }
  }
  UNROLL for (u32 j = 0; j < N; j++) keep[j] = keep[j] && v[j] - start[j] < end[j] - start[j];
}
