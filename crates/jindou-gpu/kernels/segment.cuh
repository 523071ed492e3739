// Looking up a vertex in a segment: which key, which range of neighbours. Bounds are checked as on the CPU:
// damaged arrays give empty or wrong lists, never a fault.
#pragma once
#include "params.cuh"

struct Range { u32 start, length; };

#ifndef JINDOU_SHIM
// One 16-byte access a block.
DEVICE RankBlock load_random(const RankBlock *p) {
  ulonglong2 v = __ldg((const ulonglong2 *)p);
  return {v.x, (u32)v.y, (u32)(v.y >> 32)};
}
DEVICE RankBlock load_stream(const RankBlock *p) {
  ulonglong2 v = __ldcs((const ulonglong2 *)p);
  return {v.x, (u32)v.y, (u32)(v.y >> 32)};
}
#endif

// Position of `v` in a sorted list of `n` entries, or NO_KEY. Reads ceil(log2 n) + 1 entries, n > 0.
DEVICE u32 sorted_position(const u32 *list, u32 n, u32 v) {
  if (n == 0) return NO_KEY;
  u32 at = 0;
  while (n > 1) {
    u32 half = n >> 1;
    if (load_random(list + at + half) <= v) at += half;
    n -= half;
  }
  return load_random(list + at) == v ? at : NO_KEY;
}

DEVICE u32 find_in_runs(const SegmentHead &s, u32 v) {
  u32 found = NO_KEY;
  const Run *runs = (const Run *)s.table;
  for (u32 i = 0; i < s.table_len; i++) {
    u32 start = load_cached(&runs[i].start), d = v - start;
    if (d < load_cached(&runs[i].end) - start) found = load_cached(&runs[i].base) + d;
  }
  return found;
}
DEVICE u32 find_in_runs(const Segment &s, u32 v) {
  if (s.table_len > MAX_RUNS) return find_in_runs((const SegmentHead &)s, v);
  u32 found = NO_KEY;
  for (u32 i = 0; i < s.table_len; i++) {
    u32 d = v - s.runs[i].start;
    if (d < s.runs[i].end - s.runs[i].start) found = s.runs[i].base + d;
  }
  return found;
}

// Bytes read: intervals 0; bitmap 16; directory 8 + 4 (ceil(log2 b) + 1) for a bucket of b > 0 keys; sets
// 4 (ceil(log2 r) + 1) for r runs, and 4. Ids outside the range of keys read nothing, or the search alone.
template <class S> DEVICE u32 find_key(const S &s, u32 v) {
  u32 found = NO_KEY;
  if (s.kind == FINDER_INTERVALS) {
    found = find_in_runs(s, v);
  } else if (s.kind == FINDER_SETS) {
    const u32 *starts = (const u32 *)s.table;
    u32 at = 0, n = s.table_len;
    while (n > 1) {
      u32 half = n >> 1;
      if (load_random(starts + at + half) <= v + (PLANTED(SETS_NEXT_RUN) ? 1 : 0)) at += half;
      n -= half;
    }
    if (n == 1 && load_random(starts + at) <= v) found = load_random(s.keys + at);
  } else if (s.kind == FINDER_BITMAP) {
    u32 d = v - s.first;
    if ((d >> 6) < s.table_len) {
      RankBlock b = load_random((const RankBlock *)s.table + (d >> 6));
      if ((b.bits >> (d & 63)) & 1) found = b.rank + popcount64(b.bits & ((1ull << (d & 63)) - 1));
    }
  } else if (s.kind == FINDER_DIRECTORY) {
    u32 bucket = (v - s.first) >> s.shift;
    if (v >= s.first && s.table_len > 0 && bucket < s.table_len - 1) {
      const u32 *starts = (const u32 *)s.table + bucket;
      u32 a = load_random(starts), b = load_random(starts + 1);
      if (a <= b && b <= s.key_count) {
        u32 at = sorted_position(s.keys + a, b - a, v);
        if (at != NO_KEY) found = a + at;
      }
    }
  }
  return found;
}

// The neighbours of key number k. Bytes read: 8, none for keys with one neighbour.
DEVICE Range key_range(const SegmentHead &s, u32 k) {
  Range r = {0, 0};
  if (s.offsets == nullptr) {
    if (k < s.edges) r = {k, 1};
  } else if (k < s.key_count) {
    u32 a = load_random(s.offsets + k), b = load_random(s.offsets + k + (PLANTED(RANGE_OFF_BY_ONE) ? 2 : 1));
    if (a <= b && b <= s.edges) r = {a, b - a};
  }
  return r;
}

// The neighbours of a vertex. With a patch: 8 bytes more (the dirty word), and for dirty words a search of
// the overlay's n keys, 4 (ceil(log2 n) + 1), then 8 for its range.
template <class S> DEVICE Range vertex_range(const S &s, u32 v) {
  if (s.dirty != nullptr && !PLANTED(DIRTY_IGNORED)) {
    u32 bit = v & s.dirty_mask;
    if ((load_random(s.dirty + (bit >> 6)) >> (bit & 63)) & 1) {
      u32 at = sorted_position(s.overlay_keys, s.overlay_len, v);
      if (at != NO_KEY) {
        u32 a = load_random(s.overlay_starts + at), b = load_random(s.overlay_starts + at + 1);
        return {s.edges + a, b - a};
      }
    }
  }
  return key_range(s, find_key(s, v));
}

// The segment of a predicate's term: its arrays in `s`; false for a term that is no predicate. The catalog is
// 92 bytes a predicate and read from cache. Predicates most often have consecutive ids.
DEVICE bool segment_of(const Catalog &c, u32 term, SegmentHead &s) {
  if (c.count == 0) return false;
  u32 at = term - load_cached(c.terms);
  if (at >= c.count || load_cached(c.terms + at) != term) {
    u32 n = c.count;
    at = 0;
    while (n > 1) {
      u32 half = n >> 1;
      if (load_cached(c.terms + at + half) <= term) at += half;
      n -= half;
    }
    if (load_cached(c.terms + at) != term) return false;
  }
  if (PLANTED(CATALOG_NEXT) && at + 1 < c.count) at++;
  const u64 *words = (const u64 *)(c.heads + at);
  UNROLL for (u32 i = 0; i < sizeof(SegmentHead) / 8; i++) {
    u64 word = load_cached(words + i);
    __builtin_memcpy((char *)&s + 8 * i, &word, 8);
  }
  return true;
}

// The id of a row. 4 bytes for a column, none for a constant.
DEVICE u32 operand_at(const Operand &o, u64 row) {
  return o.column == nullptr ? o.constant : load_stream(o.column + row);
}

DEVICE bool is_within(const Within &w, u32 v) {
  if (w.count == 0) return true;
  if (w.count == 1) return v - w.start < w.end - w.start;
  u32 at = 0, n = w.count;
  while (n > 1) {
    u32 half = n >> 1;
    if (load_cached(&w.table[at + half].a) <= v) at += half;
    n -= half;
  }
  u32 start = load_cached(&w.table[at].a);
  return v - start < load_cached(&w.table[at].b) - start;
}
