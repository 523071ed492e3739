// Reduces a result to one number, so that every binding is read but none is copied back.
#include "compact.cuh"

// Mixes an id into a row's hash by multiplying and adding the carry, as src/checksum.rs and the CPU engine do.
DEVICE u64 checksum_mix(u64 h, u32 v) {
  u64 t = h ^ (u64)(u32)(v + 0x9e3779b9u);
  return (t & 0xffffffffull) * 0x85ebca77ull + (t >> 32);
}

struct FoldShared { SharedArray<u64, WARPS> sums; };

// The order-independent checksum of src/checksum.rs: the sum over all rows of a hash of the row's ids.
// Bytes: 4 per row and column.
KERNEL(jd_checksum, Checksum, 4) {
  enum : u32 { ITEMS = Wide::ITEMS };
  SHARED(FoldShared, s);
  u64 first = (u64)block_index() * Tile<ITEMS>::SIZE, sum = 0;
  u32 rows = rows_of(p.rows, p.count);
  if (first >= rows) return;
  u64 hash[ITEMS];
  UNROLL for (u32 j = 0; j < ITEMS; j++) hash[j] = 0;
  for (u32 c = 0; c < p.width; c++) {
    u32 v[ITEMS];
    UNROLL for (u32 j = 0; j < ITEMS; j++) {
      u64 row = first + Tile<ITEMS>::row(j);
      v[j] = load_stream_if(row < rows, p.columns[c] + row, 0u);
    }
    UNROLL for (u32 j = 0; j < ITEMS; j++) hash[j] = checksum_mix(hash[j], v[j]);
  }
  UNROLL for (u32 j = 0; j < ITEMS; j++)
    if (first + Tile<ITEMS>::row(j) < rows) sum += hash[j] ^ p.width;
  sum = warp_sum(sum);
  if (lane_index() == 0) s.sums[warp_index()] = sum;
  if (!PLANTED(FOLD_BARRIER)) barrier();
  if (thread_index() == 0) {
    u64 all = 0;
    UNROLL for (u32 w = 0; w < WARPS; w++) all += s.sums[w];
    if (PLANTED(FOLD_NOT_ATOMIC)) {
      u64 seen = load_cached(p.sum);
      relax();
      store(p.sum, seen + all);
    } else {
      atomic_add(p.sum, all);
    }
  }
}
