// The device operations that kernels use, each under one name, so that the same kernels compile with nvcc and, through
// shim/device_shim.h, with g++.
//
// Rules for kernels, on which the shim's model of a GPU depends:
//   - grids and blocks have one dimension, and a block has THREADS threads, in whole warps;
//   - all 32 lanes of a warp reach each warp operation, and all threads of a block reach each barrier: a thread never
//     returns early; only a whole block without rows does, before anything else;
//   - global memory is read and written only through load_*, store* and atomic_*;
//   - a block has one struct in shared memory, declared with SHARED.
//
// A kernel's comment names the bytes of global memory that the kernel must move. Tests compare them with the bytes that
// the shim counts, and measurements on a GPU are judged by them.
#pragma once

typedef unsigned int u32;
typedef unsigned long long u64;

// Threads and warps of a block; how many rows a thread looks up at a time (FEW), and how many lists it clips at a time
// (TWO).
enum : u32 { THREADS = 256, WARPS = THREADS / 32, FEW = 4, TWO = 2 };

#ifdef JINDOU_SHIM
#include "../shim/device_shim.h"
#else

#define DEVICE __device__ __forceinline__
#define DEVICE_MEMBER __device__ __forceinline__
// `blocks`: number of blocks that a multiprocessor should hold at the same time, which limits the registers of a
// thread.
#define KERNEL(name, Params, blocks) extern "C" __global__ void __launch_bounds__(THREADS, blocks) name(const __grid_constant__ Params p)
#define SHARED(Type, name) __shared__ Type name
#define UNROLL _Pragma("unroll")
#define NO_UNROLL _Pragma("unroll 1")
// Injected bugs exist only in the shim's build.
#define PLANTED(bug) false

DEVICE u32 thread_index() { return threadIdx.x; }
DEVICE u32 block_index() { return blockIdx.x; }
DEVICE u32 block_count() { return gridDim.x; }
DEVICE void barrier() { __syncthreads(); }
DEVICE u32 vote(bool x) { return __ballot_sync(0xffffffffu, x); }
template <class T> DEVICE T shuffle(T v, u32 lane) { return __shfl_sync(0xffffffffu, v, lane); }
template <class T> DEVICE T shuffle_up(T v, u32 by) { return __shfl_up_sync(0xffffffffu, v, by); }
template <class T> DEVICE T shuffle_xor(T v, u32 by) { return __shfl_xor_sync(0xffffffffu, v, by); }
// A mask of the lanes with the same value as this lane.
DEVICE u32 match(u32 v) { return __match_any_sync(0xffffffffu, v); }
DEVICE u32 popcount(u32 x) { return __popc(x); }
DEVICE u32 popcount64(u64 x) { return __popcll(x); }
DEVICE u32 first_bit(u32 x) { return __ffs(x) - 1; }
DEVICE void relax() { __nanosleep(20); }
// Marks that an id of a list is examined; the shim counts these.
DEVICE void walks(bool) {}

// For data that is read once, sequentially: it does not evict other data from the cache.
template <class T> DEVICE T load_stream(const T *p) { return __ldcs(p); }
// For random reads.
template <class T> DEVICE T load_random(const T *p) { return __ldg(p); }
// For small tables that stay in the cache; the shim does not count these reads as traffic.
template <class T> DEVICE T load_cached(const T *p) { return __ldg(p); }
// For a value that several threads of a block read; the shim counts only the read for which `counts` is true.
template <class T> DEVICE T load_once(const T *p, bool counts) { (void)counts; return __ldg(p); }
template <class T> DEVICE void store(T *p, T v) { *p = v; }
template <class T> DEVICE void store_if(bool when, T *p, T v) {
  if (when) *p = v;
}
// Predicated loads: a thread for which `when` is false gets `otherwise`. As they are single instructions without a
// branch, the loads of several items are issued back to back; around a branch, the compiler would wait for each.
DEVICE u32 load_random_if(bool when, const u32 *p, u32 otherwise) {
  asm("{ .reg .pred q; setp.ne.u32 q, %2, 0; @q ld.global.nc.u32 %0, [%1]; }" : "+r"(otherwise) : "l"(p), "r"((u32)when));
  return otherwise;
}
DEVICE u64 load_random_if(bool when, const u64 *p, u64 otherwise) {
  asm("{ .reg .pred q; setp.ne.u32 q, %2, 0; @q ld.global.nc.u64 %0, [%1]; }" : "+l"(otherwise) : "l"(p), "r"((u32)when));
  return otherwise;
}
template <class T> DEVICE T load_cached_if(bool when, const T *p, T otherwise) { return load_random_if(when, p, otherwise); }
DEVICE u32 load_stream_if(bool when, const u32 *p, u32 otherwise) {
  asm("{ .reg .pred q; setp.ne.u32 q, %2, 0; @q ld.global.cs.u32 %0, [%1]; }" : "+r"(otherwise) : "l"(p), "r"((u32)when));
  return otherwise;
}
DEVICE u32 atomic_add(u32 *p, u32 v) { return atomicAdd(p, v); }
DEVICE u64 atomic_add(u64 *p, u64 v) { return atomicAdd(p, v); }
DEVICE u32 atomic_or(u32 *p, u32 v) { return atomicOr(p, v); }
DEVICE void atomic_max(u64 *p, u64 v) { atomicMax(p, v); }
// Adds to a word of shared memory, atomically.
DEVICE void add_shared(u32 &at, u32 v) { atomicAdd(&at, v); }
// Compare-and-swap: stores `v` if the word is `was`; returns the old value.
DEVICE u64 atomic_cas(u64 *p, u64 was, u64 v) { return atomicCAS(p, was, v); }
// As load_random_if, for a word in which other threads may set bits concurrently.
DEVICE u32 load_relaxed_if(bool when, const u32 *p, u32 otherwise) {
  asm volatile("{ .reg .pred q; setp.ne.u32 q, %2, 0; @q ld.relaxed.gpu.global.u32 %0, [%1]; }" : "+r"(otherwise) : "l"(p), "r"((u32)when) : "memory");
  return otherwise;
}
// For words that other blocks wait for. Such a word contains everything that is waited for, so no other memory needs to
// be ordered by it; an acquire load would flush the L1 cache at each poll.
DEVICE u64 load_relaxed(const u64 *p) {
  u64 v;
  asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
  return v;
}
DEVICE void store_relaxed(u64 *p, u64 v) {
  asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
}
#endif

// An array in shared memory, whose bounds the shim checks.
template <class T, u32 N> struct SharedArray {
  T values[N];
#ifdef JINDOU_SHIM
  T &operator[](u64 i) {
    if (i >= N) shim::out_of_bounds();
    return values[i];
  }
#else
  __device__ __forceinline__ T &operator[](u32 i) { return values[i]; }
#endif
};

DEVICE u32 lane_index() { return thread_index() & 31u; }
DEVICE u32 warp_index() { return thread_index() >> 5; }
DEVICE u32 lanes_below() { return (1u << lane_index()) - 1u; }

// The rows of a block, ITEMS per thread. Each kernel's first line says how many, and Kernel::tile in src/backend.rs
// tells the host. A warp handles ROWS_A_WARP consecutive rows, and its lane l handles rows l, l + 32, l + 64 …, so that
// every access is coalesced.
template <u32 N> struct Tile {
  enum : u32 { ITEMS = N, ROWS_A_WARP = 32 * N, SIZE = THREADS * N };
  // The row that this thread handles as its item `j`.
  static DEVICE_MEMBER u32 row(u32 j) { return warp_index() * ROWS_A_WARP + j * 32 + lane_index(); }
};
// For kernels that measure, check or copy rows (Wide), and for those that produce rows from lists (Narrow). Chosen by
// measurements on an H200.
typedef Tile<8> Wide;
typedef Tile<4> Narrow;
// For kernels that search in the lists of each row, where each load depends on the one before.
typedef Tile<2> Few;

DEVICE u32 warp_inclusive_sum(u32 v) {
  UNROLL for (u32 d = 1; d < 32; d <<= 1) {
    u32 o = shuffle_up(v, d);
    if (lane_index() >= d) v += o;
  }
  return v;
}
DEVICE u32 warp_inclusive_max(u32 v) {
  UNROLL for (u32 d = 1; d < 32; d <<= 1) {
    u32 o = shuffle_up(v, d);
    if (lane_index() >= d && o > v) v = o;
  }
  return v;
}
DEVICE u64 warp_sum(u64 v) {
  UNROLL for (u32 d = 16; d; d >>= 1) v += shuffle_xor(v, d);
  return v;
}
