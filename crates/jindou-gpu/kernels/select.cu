// ORDER BY with LIMIT: finds the rows that may be among the first ones. Rows get a key by the rank of their number; a
// radix search finds the key of the last wanted row, digit by digit from the highest, and rows with greater keys are
// dropped. Rows whose term has no rank are kept, since only the CPU can order them.
#include "compact.cuh"

// The key of each row: its rank, or in descending order the largest rank minus it. NaN sorts after all numbers. Bytes
// per row: 4 for a column operand, 4 if the id's page has numbers, 4 written.
KERNEL(jd_sort_keys, SortKeys, 4) {
  enum : u32 { ITEMS = Wide::ITEMS };
  u64 first = (u64)block_index() * Tile<ITEMS>::SIZE;
  if (first >= p.rows) return;
  u32 rest = p.rows - (u32)first;
  const Ranks &r = p.ranks;
  u32 v[ITEMS], page[ITEMS], rank[ITEMS];
  bool there[ITEMS];
  rows_there<ITEMS>(0, rest, there);
  operands_at<ITEMS>(p.operand, first, 0, rest, v);
  UNROLL for (u32 j = 0; j < ITEMS; j++) {
    u32 at = v[j] >> RANK_SHIFT;
    page[j] = load_cached_if(there[j] && at < r.page_count, r.pages + at, NO_KEY);
  }
  UNROLL for (u32 j = 0; j < ITEMS; j++)
    rank[j] = load_random_if(page[j] != NO_KEY, r.ranks + (u64)page[j] * RANKS_A_PAGE + (v[j] & (RANKS_A_PAGE - 1)), NO_KEY);
  UNROLL for (u32 j = 0; j < ITEMS; j++) {
    // Only NaN's rank is not below `last`; it becomes the largest key.
    u32 key = rank[j] < p.last ? rank[j] : p.last;
    if (p.descending) key = p.last - key - (PLANTED(SORT_DESCENDING_NEXT) && key < p.last ? 1 : 0);
    store_if(there[j], p.out + first + Tile<ITEMS>::row(j), rank[j] == NO_KEY ? NO_KEY : key);
  }
}

struct BinsShared { SharedArray<u32, BINS> bins; };

// Counts the next digit of the keys that begin with the digits found so far. Bytes per row: 4.
KERNEL(jd_sort_bins, SortBins, 4) {
  enum : u32 { ITEMS = Wide::ITEMS };
  SHARED(BinsShared, s);
  u64 first = (u64)block_index() * Tile<ITEMS>::SIZE;
  if (first >= p.rows) return;
  u32 rest = p.rows - (u32)first;
  u32 key[ITEMS];
  if (PLANTED(BINS_FIRST_BARRIER) && warp_index() == WARPS - 1) for (u32 i = 0; i < 99; i++) relax();
  for (u32 b = thread_index(); b < BINS; b += THREADS) s.bins[b] = 0;
  u32 threshold = load_cached(&p.state->threshold), prefix = load_cached(&p.state->prefix);
  if (!PLANTED(BINS_FIRST_BARRIER)) barrier();
  UNROLL for (u32 j = 0; j < ITEMS; j++) {
    u32 row = Tile<ITEMS>::row(j);
    key[j] = load_stream_if(row < rest, p.keys + first + row, NO_KEY);
  }
  UNROLL for (u32 j = 0; j < ITEMS; j++) {
    bool counts = key[j] != NO_KEY && key[j] <= threshold && (key[j] >> p.shift) >> BIN_BITS == prefix;
    u32 bin = counts ? key[j] >> p.shift & (BINS - 1) : NO_KEY;
    // Many rows have the same digit, so each warp adds equal ones up first.
    u32 same = match(bin);
    if (counts && first_bit(same) == lane_index()) add_shared(s.bins[bin], popcount(same));
  }
  if (!PLANTED(BINS_SECOND_BARRIER)) barrier();
  for (u32 b = thread_index(); b < BINS; b += THREADS) {
    u32 n = s.bins[b];
    if (n != 0) atomic_add(&p.state->bins[b], n);
  }
}

struct PickShared { SharedArray<u32, WARPS> sums; SharedArray<u32, 2> found; };

// One block: finds the digit of the last wanted row, and the number of wanted rows whose keys begin with it. After the
// last digit, lowers the bound. If there are fewer rows than wanted, there is no last one, and the bound stays.
KERNEL(jd_sort_pick, SortPick, 4) {
  SHARED(PickShared, s);
  enum : u32 { EACH = BINS / THREADS };
  if (block_index() != 0) return;
  SortState *state = p.state;
  u32 wanted = load_cached(&state->wanted), prefix = load_cached(&state->prefix), threshold = load_cached(&state->threshold);
  u32 own[EACH], sum = 0;
  UNROLL for (u32 i = 0; i < EACH; i++) {
    own[i] = load_cached(&state->bins[thread_index() * EACH + i]);
    sum += own[i];
  }
  if (PLANTED(PICK_BARRIER) && warp_index() == 0) for (u32 i = 0; i < 99; i++) relax();
  u32 upto = warp_inclusive_sum(sum);
  if (lane_index() == 31) s.sums[warp_index()] = upto;
  if (thread_index() == 0) s.found[0] = NO_KEY;
  if (!PLANTED(PICK_BARRIER)) barrier();
  UNROLL for (u32 w = 0; w < WARPS; w++) if (w < warp_index()) upto += s.sums[w];
  u32 before = upto - sum;
  if (before < wanted && wanted <= upto) {
    u32 i = 0;
    for (; i + 1 < EACH && before + own[i] < wanted + (PLANTED(PICK_NEXT_BIN) ? 1 : 0); i++) before += own[i];
    s.found[0] = thread_index() * EACH + i;
    s.found[1] = wanted - before;
  }
  UNROLL for (u32 i = 0; i < EACH; i++) store(&state->bins[thread_index() * EACH + i], 0u);
  barrier();
  if (thread_index() == 0) {
    // A prefix that no key has, so that the next digits count nothing.
    u32 next = s.found[0] == NO_KEY ? NO_KEY : prefix << BIN_BITS | s.found[0];
    bool done = p.last != 0;
    if (done && next != NO_KEY && next < threshold) store(&state->threshold, next);
    store(&state->prefix, done ? 0u : next);
    store(&state->wanted, done ? p.most : next == NO_KEY ? 1u : s.found[1]);
  }
}

// Keeps rows whose key is not above the bound. Bytes per row: 4.
KERNEL(jd_sort_keep, SortKeep, 4) {
  enum : u32 { ITEMS = Wide::ITEMS };
  SHARED(AppendShared, s);
  u64 first = (u64)block_index() * Tile<ITEMS>::SIZE;
  u32 rows = rows_of(p.compact.rows, p.compact.count);
  if (first >= rows) return;
  u32 rest = rows - (u32)first;
  u32 threshold = load_cached(&p.state->threshold);
  u32 key[ITEMS];
  bool keep[ITEMS];
  rows_there<ITEMS>(0, rest, keep);
  UNROLL for (u32 j = 0; j < ITEMS; j++) key[j] = load_stream_if(keep[j], p.keys + first + Tile<ITEMS>::row(j), NO_KEY);
  UNROLL for (u32 j = 0; j < ITEMS; j++) keep[j] = keep[j] && (key[j] <= threshold || (key[j] == NO_KEY && !PLANTED(UNRANKED_GO)));
  compact_tile(p.compact, s, first, keep);
}
