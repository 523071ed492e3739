// GROUP BY: counts rows by combination of columns. If the columns have few possible values, every combination has a
// counter (jd_group_add); otherwise rows look up their combination in a hash table (jd_group_slots), and the number of
// its slot is that of its counter. Finally, the combinations that occurred become rows.
#include "compact.cuh"

// The number, from 0 on, of an id of a column; false for an id outside of the column's numbering.
DEVICE bool group_number(const GroupColumn &c, u32 v, u32 &number) {
  u32 dense = v - c.first, tail = v - c.first_tail;
  bool is_dense = v >= c.first && dense < c.dense, is_tail = !is_dense && v >= c.first_tail && tail < c.tail;
  number = is_dense ? 1 + dense : is_tail ? 1 + c.dense + tail : 0;
  return v == 0 || is_dense || is_tail;
}
DEVICE u32 group_width(const GroupColumn &c) { return 1 + c.dense + c.tail; }
DEVICE u32 group_id(const GroupColumn &c, u32 number) {
  if (number == 0) return 0;
  return number <= c.dense ? c.first + number - 1 : c.first_tail + number - 1 - c.dense - (PLANTED(GROUP_TAIL_FROM_NEXT) ? 1 : 0);
}

// One bit per tested column: whether it is bound in the row.
template <u32 ITEMS> DEVICE void group_bits(const Tested &t, u64 first, u32 rows, u32 (&bits)[ITEMS]) {
  UNROLL for (u32 j = 0; j < ITEMS; j++) bits[j] = 0;
  for (u32 i = 0; i < t.count; i++) {
    u32 v[ITEMS];
    UNROLL for (u32 j = 0; j < ITEMS; j++) {
      u64 row = first + Tile<ITEMS>::row(j);
      v[j] = load_stream_if(row < rows, t.columns[i] + row, 0u);
    }
    UNROLL for (u32 j = 0; j < ITEMS; j++) bits[j] |= (v[j] != 0 ? 1u : 0u) << i;
  }
}

// The numbers of the combinations of a thread's rows. Returns true if an existing row has an id without a number;
// `there` becomes false for such a row.
template <u32 ITEMS, class P> DEVICE bool group_numbers(const P &p, u64 first, u32 rest, bool (&there)[ITEMS], u32 (&number)[ITEMS]) {
  bool missed = false;
  UNROLL for (u32 j = 0; j < ITEMS; j++) number[j] = 0;
  for (u32 c = 0; c < p.columns; c++) {
    u32 v[ITEMS], width = group_width(p.by[c]);
    operands_at<ITEMS>(p.by[c].operand, first, 0, rest, v);
    UNROLL for (u32 j = 0; j < ITEMS; j++) {
      u32 n;
      bool has = group_number(p.by[c], v[j], n);
      missed |= there[j] && !has;
      there[j] = there[j] && has;
      number[j] = number[j] * width + n;
    }
  }
  if (p.tested.count > 0) {
    u32 bits[ITEMS];
    group_bits<ITEMS>(p.tested, first, p.rows, bits);
    UNROLL for (u32 j = 0; j < ITEMS; j++) number[j] = number[j] << p.tested.count | bits[j];
  }
  return missed;
}

// Lengths of the lists of the rows that exist.
template <u32 ITEMS> DEVICE void group_lengths(const u32 *prefix, u64 first, const bool (&there)[ITEMS], u32 (&length)[ITEMS]) {
  u32 from[ITEMS];
  UNROLL for (u32 j = 0; j < ITEMS; j++) {
    from[j] = load_stream_if(there[j], prefix + first + Tile<ITEMS>::row(j), 0u);
    length[j] = load_stream_if(there[j], prefix + first + Tile<ITEMS>::row(j) + 1, 0u);
  }
  UNROLL for (u32 j = 0; j < ITEMS; j++) length[j] -= from[j];
}

// Adds 1, or the length of the row's list, to the counter of each row's combination. Bytes per row: 4 per column, 8
// with lengths. Rows of a warp with the same counter are added up first, so that a few large groups do not contend for
// one word.
KERNEL(jd_group_add, GroupAdd, 4) {
  enum : u32 { ITEMS = Wide::ITEMS };
  u64 first = (u64)block_index() * Tile<ITEMS>::SIZE;
  if (first >= p.rows) return;
  u32 rest = p.rows - (u32)first;
  u32 number[ITEMS], times[ITEMS];
  bool there[ITEMS];
  rows_there<ITEMS>(0, rest, there);
  bool missed = group_numbers<ITEMS>(p, first, rest, there, number);
  UNROLL for (u32 j = 0; j < ITEMS; j++) times[j] = 1;
  if (p.prefix != nullptr) group_lengths<ITEMS>(p.prefix, first, there, times);
  if (missed) atomic_or(p.missed, 1u);
  UNROLL for (u32 j = 0; j < ITEMS; j++) {
    u32 same = match(there[j] ? number[j] : NO_KEY);
    bool leads = first_bit(same) == lane_index();
    u64 sum = times[j];
    if (p.prefix == nullptr) {
      sum = popcount(same);
    } else if (same == 0xffffffffu) {
      sum = warp_sum(sum);
    } else {
      leads = true;
    }
    if (there[j] && sum != 0 && (leads || PLANTED(GROUP_ALL_LEAD))) {
      if (PLANTED(GROUP_NOT_ATOMIC)) {
        u64 seen = load_cached(p.counts + number[j]);
        relax();
        store(p.counts + number[j], seen + sum);
      } else {
        atomic_add(p.counts + number[j], sum);
      }
    }
  }
}

// The smallest and the largest number in each combination: the rank in the high word, the id in the low word. The
// smallest is stored as its complement, so that 0 stands for "none" in both. If there are lists, rows whose list is
// empty do not count. `unranked` is set by a term without a rank.
// Bytes per row: 4 per column, 8 with lengths, 4 for the value, 4 if its page has numbers; the sectors of the results
// are not counted.
KERNEL(jd_group_best, GroupBest, 3) {
  enum : u32 { ITEMS = Wide::ITEMS };
  u64 first = (u64)block_index() * Tile<ITEMS>::SIZE;
  if (first >= p.rows) return;
  u32 rest = p.rows - (u32)first;
  const Ranks &r = p.ranks;
  u32 number[ITEMS], v[ITEMS], page[ITEMS], rank[ITEMS];
  bool there[ITEMS], unranked = false;
  rows_there<ITEMS>(0, rest, there);
  group_numbers<ITEMS>(p, first, rest, there, number);
  if (p.prefix != nullptr && !PLANTED(BEST_OF_EMPTY_LISTS)) {
    u32 length[ITEMS];
    group_lengths<ITEMS>(p.prefix, first, there, length);
    UNROLL for (u32 j = 0; j < ITEMS; j++) there[j] = there[j] && length[j] != 0;
  }
  operands_at<ITEMS>(p.value, first, 0, rest, v);
  UNROLL for (u32 j = 0; j < ITEMS; j++) {
    u32 at = v[j] >> RANK_SHIFT;
    page[j] = load_cached_if(there[j] && at < r.page_count, r.pages + at, NO_KEY);
  }
  UNROLL for (u32 j = 0; j < ITEMS; j++)
    rank[j] = load_random_if(page[j] != NO_KEY, r.ranks + (u64)page[j] * RANKS_A_PAGE + (v[j] & (RANKS_A_PAGE - 1)), NO_KEY);
  UNROLL for (u32 j = 0; j < ITEMS; j++) {
    bool has = there[j] && rank[j] != NO_KEY;
    unranked |= there[j] && !has;
    there[j] = has;
  }
  if (unranked) atomic_or(p.unranked, 1u);
  // Few rows improve the result so far, and reading it is cheaper than an atomic operation.
  u64 key[ITEMS], seen[ITEMS];
  UNROLL for (u32 j = 0; j < ITEMS; j++) {
    if (!there[j]) number[j] = 0;
    key[j] = (u64)rank[j] << 32 | v[j];
  }
  UNROLL for (u32 j = 0; j < ITEMS; j++) seen[j] = load_relaxed(p.most + number[j]);
  UNROLL for (u32 j = 0; j < ITEMS; j++)
    if (there[j] && seen[j] < key[j]) atomic_max(p.most + number[j], key[j]);
  UNROLL for (u32 j = 0; j < ITEMS; j++) seen[j] = load_relaxed(p.least + number[j]);
  UNROLL for (u32 j = 0; j < ITEMS; j++) {
    u64 least = PLANTED(BEST_NOT_INVERTED) ? key[j] : ~key[j];
    if (!there[j] || seen[j] >= least) continue;
    if (PLANTED(BEST_NOT_ATOMIC)) {
      relax();
      store_relaxed(p.least + number[j], least);
    } else {
      atomic_max(p.least + number[j], least);
    }
  }
}

// The ids of the smallest and largest numbers of combinations. Bytes per row: 4 for its number, 16, and 8 written.
KERNEL(jd_group_ends, GroupEnds, 4) {
  enum : u32 { ITEMS = Wide::ITEMS };
  u64 first = (u64)block_index() * Tile<ITEMS>::SIZE;
  if (first >= p.rows) return;
  u32 rest = p.rows - (u32)first;
  u32 number[ITEMS];
  u64 least[ITEMS], most[ITEMS];
  bool there[ITEMS];
  rows_there<ITEMS>(0, rest, there);
  UNROLL for (u32 j = 0; j < ITEMS; j++) number[j] = load_stream_if(there[j], p.numbers + first + Tile<ITEMS>::row(j), 0u);
  UNROLL for (u32 j = 0; j < ITEMS; j++) {
    least[j] = load_random_if(there[j], p.least + number[j], 0ull);
    most[j] = load_random_if(there[j], p.most + number[j], 0ull);
  }
  UNROLL for (u32 j = 0; j < ITEMS; j++) {
    store_if(there[j], p.first + first + Tile<ITEMS>::row(j), PLANTED(ENDS_AS_STORED) ? (u32)least[j] : ~(u32)least[j]);
    store_if(there[j], p.last + first + Tile<ITEMS>::row(j), (u32)most[j]);
  }
}

// The slot of each row's pair of ids in a hash table with 64-bit keys, which are the pair plus one; 0 is an empty slot.
// A new pair takes the first empty slot from its hash on. If there is none within MOST_PROBES, the table is too full
// and the row gets no slot. Bytes per row: 4 per column and 4 written; the table's sectors are not counted.
KERNEL(jd_group_slots, GroupSlots, 4) {
  enum : u32 { ITEMS = Wide::ITEMS };
  u64 first = (u64)block_index() * Tile<ITEMS>::SIZE;
  if (first >= p.rows) return;
  u32 rest = p.rows - (u32)first;
  u32 left[ITEMS], right[ITEMS], at[ITEMS];
  u64 seen[ITEMS];
  bool there[ITEMS], full = false;
  rows_there<ITEMS>(0, rest, there);
  operands_at<ITEMS>(p.left, first, 0, rest, left);
  if (p.tested.count > 0) {
    group_bits<ITEMS>(p.tested, first, p.rows, right);
  } else {
    operands_at<ITEMS>(p.right, first, 0, rest, right);
  }
  u32 last = (1u << p.log_slots) - 1;
  UNROLL for (u32 j = 0; j < ITEMS; j++) {
    u64 h = (u64)left[j] << 32 | right[j];
    h = (h ^ (h >> 32)) * 0x9e3779b97f4a7c15ull;
    h = (h ^ (h >> 29)) * 0xbf58476d1ce4e5b9ull;
    at[j] = (u32)(h >> (64 - p.log_slots));
  }
  // The first probes of all rows are in flight together; most rows need no second one.
  UNROLL for (u32 j = 0; j < ITEMS; j++) seen[j] = load_relaxed(p.keys + at[j]);
  UNROLL for (u32 j = 0; j < ITEMS; j++) {
    u64 key = ((u64)left[j] << 32 | (PLANTED(GROUP_LEFT_ONLY) ? 0 : right[j])) + 1;
    u32 slot = NO_KEY;
    for (u32 probe = 0; there[j] && probe < MOST_PROBES; probe++) {
      if (probe > 0) seen[j] = load_relaxed(p.keys + at[j]);
      if (seen[j] == 0) {
        if (PLANTED(GROUP_KEY_NOT_ATOMIC)) {
          relax();
          store_relaxed(p.keys + at[j], key);
        } else {
          seen[j] = atomic_cas(p.keys + at[j], 0ull, key);
        }
        if (seen[j] == 0) seen[j] = key;
      }
      if (seen[j] == key) {
        slot = at[j];
        break;
      }
      at[j] = (at[j] + 1) & last;
    }
    full |= there[j] && slot == NO_KEY;
    store_if(there[j], p.out + first + Tile<ITEMS>::row(j), slot);
  }
  if (full) atomic_or(p.full, 1u);
}

// The counters `begin .. begin + rows` that are not 0: their numbers, and their low and high words. Bytes: 8 per
// counter, 12 for each that is kept.
KERNEL(jd_group_rows, GroupRows, 4) {
  enum : u32 { ITEMS = Wide::ITEMS };
  SHARED(AppendShared, s);
  u64 first = (u64)block_index() * Tile<ITEMS>::SIZE;
  if (first >= p.rows) return;
  u32 rest = p.rows - (u32)first;
  u64 n[ITEMS];
  u32 at[ITEMS];
  bool keep[ITEMS];
  rows_there<ITEMS>(0, rest, keep);
  UNROLL for (u32 j = 0; j < ITEMS; j++) n[j] = load_random_if(keep[j], p.counts + p.begin + first + Tile<ITEMS>::row(j), 0ull);
  UNROLL for (u32 j = 0; j < ITEMS; j++) keep[j] = n[j] != 0;
  append_positions(s, keep, at, p.counter);
  UNROLL for (u32 j = 0; j < ITEMS; j++) {
    store_if(keep[j], p.number + at[j], p.begin + (u32)first + Tile<ITEMS>::row(j));
    store_if(keep[j], p.low + at[j], (u32)n[j]);
    store_if(keep[j], p.high + at[j], (u32)(n[j] >> 32));
  }
}

// The pairs of ids in slots. Bytes per row: 4 for the slot, 8 for its key, 8 written.
KERNEL(jd_group_keys, GroupKeys, 4) {
  enum : u32 { ITEMS = Wide::ITEMS };
  u64 first = (u64)block_index() * Tile<ITEMS>::SIZE;
  if (first >= p.rows) return;
  u32 rest = p.rows - (u32)first;
  u32 slot[ITEMS];
  u64 key[ITEMS];
  bool there[ITEMS];
  rows_there<ITEMS>(0, rest, there);
  UNROLL for (u32 j = 0; j < ITEMS; j++) slot[j] = load_stream_if(there[j], p.slots + first + Tile<ITEMS>::row(j), 0u);
  UNROLL for (u32 j = 0; j < ITEMS; j++) key[j] = load_random_if(there[j], p.keys + slot[j], 1ull) - (PLANTED(GROUP_KEY_AS_STORED) ? 0 : 1);
  UNROLL for (u32 j = 0; j < ITEMS; j++) {
    store_if(there[j], p.left + first + Tile<ITEMS>::row(j), (u32)(key[j] >> 32));
    store_if(there[j], p.right + first + Tile<ITEMS>::row(j), (u32)key[j]);
  }
}

// The ids and bits that the number of a counter stands for, as jd_group_add computed it. Bytes per row: 4, and 4
// written per column.
KERNEL(jd_group_ids, GroupIds, 4) {
  enum : u32 { ITEMS = Wide::ITEMS };
  u64 first = (u64)block_index() * Tile<ITEMS>::SIZE;
  if (first >= p.rows) return;
  u32 rest = p.rows - (u32)first;
  u32 number[ITEMS];
  bool there[ITEMS];
  rows_there<ITEMS>(0, rest, there);
  UNROLL for (u32 j = 0; j < ITEMS; j++) number[j] = load_stream_if(there[j], p.numbers + first + Tile<ITEMS>::row(j), 0u);
  for (u32 i = 0; i < p.tests; i++)
    UNROLL for (u32 j = 0; j < ITEMS; j++) store_if(there[j], p.tested[i] + first + Tile<ITEMS>::row(j), number[j] >> i & 1);
  UNROLL for (u32 j = 0; j < ITEMS; j++) number[j] >>= p.tests;
  for (u32 c = p.columns; c-- > 0;) {
    u32 width = group_width(p.by[c]);
    UNROLL for (u32 j = 0; j < ITEMS; j++) {
      store_if(there[j], p.out[c] + first + Tile<ITEMS>::row(j), group_id(p.by[c], number[j] % width));
      number[j] /= width;
    }
  }
}
