// The first rows of a table: ids of intervals, or keys of a segment. The list of a constant and the keys of a directory
// need no kernel, since they are stored as columns.
#include "compact.cuh"

// Row i is the (begin + i)th id of the intervals; before[k] ids precede interval k.
// Bytes: 4 per row written.
KERNEL(jd_start_intervals, StartIntervals, 4) {
  enum : u32 { ITEMS = Wide::ITEMS };
  UNROLL for (u32 j = 0; j < ITEMS; j++) {
    u64 row = (u64)block_index() * Tile<ITEMS>::SIZE + Tile<ITEMS>::row(j);
    if (row < p.rows) {
      u64 number = p.begin + row;
      u32 at = 0, n = p.count;
      while (n > 1) {
        u32 half = n >> 1;
        if (load_cached(p.before + at + half) <= number + (PLANTED(START_OFF_BY_ONE) ? 1 : 0)) at += half;
        n -= half;
      }
      store(p.out + row, load_cached(&p.intervals[at].a) + (u32)(number - load_cached(p.before + at)));
    }
  }
}

// The keys with numbers begin .. begin + rows of a segment whose finder is intervals or a bitmap.
// Intervals: one thread per row. Bytes: 4 per row written.
KERNEL(jd_start_runs, StartKeys, 4) {
  enum : u32 { ITEMS = Wide::ITEMS };
  const Run *runs = (const Run *)p.segment.table;
  UNROLL for (u32 j = 0; j < ITEMS; j++) {
    u64 row = (u64)block_index() * Tile<ITEMS>::SIZE + Tile<ITEMS>::row(j);
    if (row < p.rows) {
      u32 number = p.begin + (u32)row, at = 0, n = p.segment.table_len;
      while (n > 1) {
        u32 half = n >> 1;
        if (load_cached(&runs[at + half].base) <= number) at += half;
        n -= half;
      }
      u32 base = load_cached(&runs[at].base);
      store(p.out + row, load_cached(&runs[at].start) + number - (PLANTED(RUNS_BASE) ? 0 : base));
    }
  }
}

// Bitmap: a warp takes 32 blocks and distributes the bits of each over its lanes, so that it writes whole cache lines.
// Bytes: 16 per block of 64 ids read, 4 per row written.
KERNEL(jd_start_bits, StartKeys, 4) {
  const RankBlock *blocks = (const RankBlock *)p.segment.table;
  u32 mine = (block_index() * WARPS + warp_index()) * 32 + lane_index();
  RankBlock b = {0, 0, 0};
  if (mine < p.blocks) b = load_stream(blocks + p.first_block + mine);
  u32 id = p.segment.first + (p.first_block + (mine & ~31u)) * 64;
  for (u32 k = 0; k < 32; k++, id += 64) {
    u64 bits = shuffle(b.bits, k);
    u32 rank = shuffle(b.rank, k);
    UNROLL for (u32 half = 0; half < 2; half++) {
      u32 bit = lane_index() + 32 * half;
      u32 row = rank + popcount64(bits & ((1ull << bit) - 1)) - p.begin;
      // Ranks in a damaged file may be anything, so `row` is checked.
      if (((bits >> (PLANTED(BITS_HALF) ? lane_index() : bit)) & 1) && row < p.rows) store(p.out + row, id + bit);
    }
  }
}
