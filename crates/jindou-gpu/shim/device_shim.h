// Runs kernels on the CPU: each CUDA thread is a fibre, a few blocks run at a time, and at every barrier, warp
// operation and spin, and with a seed at some memory accesses, another fibre may continue.
//
// It models block barriers and full-mask warp operations (and reports threads that do not reach them), atomics, shared
// memory that initially contains garbage, and blocks in any order. It does not model memory orders weaker than this
// processor's, nor speed. Under ASan, device buffers and shared structs have red zones; under TSan, each thread is a
// TSan fibre and only barriers order memory, since all atomics are relaxed.
#pragma once
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <map>
#include <string>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#define JINDOU_ASAN 1
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#define JINDOU_TSAN 1
#include <sanitizer/tsan_interface.h>
#define UNCHECKED __attribute__((no_sanitize("thread"), noinline))
#define UNCHECKED_BODY __attribute__((no_sanitize("thread")))
#else
#define UNCHECKED inline
#define UNCHECKED_BODY
#endif
#if !defined(__x86_64__) || defined(JINDOU_ASAN) || defined(JINDOU_TSAN)
#define JINDOU_UCONTEXT 1
#include <ucontext.h>
#endif

// Bugs that tests inject to see that the checks find them.
#define JINDOU_BUGS(X)                                                                                   \
  X(START_OFF_BY_ONE) X(RUNS_BASE) X(BITS_HALF) X(RESTRICT_OFF_BY_ONE) X(SAME_NEXT_ROW) X(CHECK_SHORT_LIST) \
  X(RANGE_OFF_BY_ONE) X(DIRTY_IGNORED) X(APPEND_FIRST_BARRIER) X(APPEND_SECOND_BARRIER)                  \
  X(APPEND_NOT_ATOMIC) X(SCAN_NO_WAIT) X(SCAN_FIRST_BARRIER) X(SCAN_SECOND_BARRIER) X(SHORTEST_IS_LAST)  \
  X(PARTITION_OFF_BY_ONE) X(EXPAND_MARK_BARRIER) X(EXPAND_MAX_BARRIER) X(WITHIN_ONE_MORE)                \
  X(INTERSECT_FORGETS_LAST) X(ONE_NEXT_KEY) X(FOLD_BARRIER) X(FOLD_NOT_ATOMIC) X(NEGATE_IGNORED)          \
  X(SETS_NEXT_RUN) X(CATALOG_NEXT) X(CHECK_ANY_FIRST_ONLY) X(LIST_FROM_NEXT) X(ANY_SHORT_ADDRESS)  \
  X(COMPARE_ONE_MORE) X(COMPARE_NO_TAIL) X(MARK_NOT_ATOMIC) X(MARK_EMPTY_LISTS) X(TEST_NEXT_ROW)          \
  X(DISTINCT_NOT_ATOMIC) X(TAIL_AMONG_DENSE) X(GATHER_IN_ORDER) X(CLIP_ONE_LESS)  \
  X(PACK_FIRST_BARRIER) X(PACK_SECOND_BARRIER)      \
  X(GROUP_TAIL_FROM_NEXT) X(GROUP_ALL_LEAD) X(GROUP_NOT_ATOMIC) X(GROUP_LEFT_ONLY) X(GROUP_KEY_NOT_ATOMIC) \
  X(GROUP_KEY_AS_STORED) X(BEST_OF_EMPTY_LISTS) X(BEST_NOT_INVERTED) X(BEST_NOT_ATOMIC) X(ENDS_AS_STORED) \
  X(SORT_DESCENDING_NEXT) X(BINS_FIRST_BARRIER) X(BINS_SECOND_BARRIER) X(PICK_BARRIER) \
  X(PICK_NEXT_BIN) X(UNRANKED_GO) X(COUNT_ONE_MORE) X(ROOM_IGNORED)

namespace shim {

enum Bug : uint32_t {
  NONE,
#define X(name) name,
  JINDOU_BUGS(X)
#undef X
  BUGS
};

enum class State : uint8_t { Ready, AtBarrier, AtWarp, Done };

struct Block;
struct Fibre {
#ifdef JINDOU_UCONTEXT
  ucontext_t context;
#else
  void *sp = nullptr;
#endif
  char *stack = nullptr;
  Block *block = nullptr;
  uint32_t thread = 0;
  State state = State::Done;
  const char *where = nullptr;
  // The value that this lane passes to a warp operation. There are two, used alternately: a lane overwrites one only
  // after all have read it, since between two uses of one, all lanes stop at an operation that uses the other.
  uint64_t slot[2] = {0, 0};
  uint8_t turn = 0;
  bool started = false;
#ifdef JINDOU_ASAN
  void *fake = nullptr;
#endif
#ifdef JINDOU_TSAN
  void *tsan = nullptr;
  uint8_t generation = 0;
#endif
};

// How a kernel accesses global memory.
enum Kind : uint32_t { STREAMED, RANDOM, CACHED, WRITTEN, KINDS };

// What a launch counts: bytes that kernels must move, by kind of access, and random accesses. On request also the
// accesses of whole warps and the sectors of 32 bytes that each touched, as a GPU's memory system would be asked for.
struct Counts { uint64_t streamed, random, random_accesses, written, requests[KINDS], sectors[KINDS], candidates; };

// The lanes of a warp make an access together if they are at the same place in the code, for the same time since they
// last waited for each other. Lanes that skip a load are counted, too; otherwise loops of different lengths would shift
// the others.
struct WarpAccess { uint32_t kind; std::vector<uint64_t> sectors; };
struct WarpAccesses {
  std::map<std::pair<const void *, uint32_t>, WarpAccess> open;
  std::map<std::pair<const void *, uint32_t>, uint32_t> times;
};

// Ranges of live device memory, [start, end), ascending.
struct Live { uint64_t start, end; };

struct Launch {
  const Live *live = nullptr;
  size_t live_count = 0;
  uint32_t grid = 0, threads = 0;
  uint64_t seed = 0;  // 0: ascending order, no yields at memory accesses
  uint32_t bug = NONE;
  bool sectors = false;
  const void *params = nullptr;
  void (*kernel)(const void *) = nullptr;
  Counts counts = {};
  std::string error;
  uint64_t rounds = 0;
};

struct Block {
  Launch *launch = nullptr;
  uint32_t index = 0;
  std::vector<Fibre> fibres;
  void *shared = nullptr;
  size_t shared_size = 0;
  bool busy = false;
  std::vector<WarpAccesses> warps;
#ifdef JINDOU_TSAN
  char barrier_token[2], end_token;
#endif
};

extern thread_local Fibre *current;
extern thread_local Launch *launched;

UNCHECKED uint64_t random_bits() {
  uint64_t &s = launched->seed;
  s ^= s << 13, s ^= s >> 7, s ^= s << 17;
  return s;
}
void yield();
void *shared_memory(size_t size);
void fail(const char *what);
void block_barrier();
uint64_t exchange(uint64_t value, uint32_t lane, const char *where);
uint32_t vote(bool x);
uint32_t match(uint32_t v);

[[noreturn]] void out_of_bounds();

// Checks an access to global memory, as all of them must: it must lie in one live buffer. With a seed, one in 16
// accesses lets another thread go first.
UNCHECKED void access(const void *p, size_t size) {
  uint64_t at = (uint64_t)p;
  size_t low = 0, high = launched->live_count;
  while (low < high) {
    size_t mid = (low + high) / 2;
    if (launched->live[mid].end <= at) low = mid + 1;
    else high = mid;
  }
  if (low == launched->live_count || at < launched->live[low].start || at + size > launched->live[low].end)
    out_of_bounds();
  if (at % (size < 16 ? size : 16) != 0) out_of_bounds();
  if (launched->seed != 0 && (random_bits() & 15) == 0) yield();
}
// Records an access of one lane, or that the lane skips it (`when` is false).
void note(bool when, const void *p, size_t size, uint32_t kind);
template <class T> UNCHECKED uint64_t to_bits(T v) {
  static_assert(sizeof(T) <= 8, "warp operations move at most 8 bytes");
  uint64_t b = 0;
  memcpy(&b, &v, sizeof v);
  return b;
}
template <class T> UNCHECKED T from_bits(uint64_t b) {
  T v;
  memcpy(&v, &b, sizeof v);
  return v;
}
UNCHECKED void count_streamed(size_t n) { launched->counts.streamed += n; }
UNCHECKED void count_written(size_t n) { launched->counts.written += n; }
UNCHECKED void count_random(size_t n) {
  launched->counts.random += n;
  launched->counts.random_accesses++;
}
UNCHECKED void count_candidate() { launched->counts.candidates++; }
UNCHECKED bool planted(uint32_t bug) { return launched->bug == bug; }
UNCHECKED uint32_t thread() { return current->thread; }
UNCHECKED uint32_t block() { return current->block->index; }
UNCHECKED uint32_t grid() { return launched->grid; }

}  // namespace shim

#define DEVICE static inline
#define DEVICE_MEMBER inline
#define KERNEL(name, Params, blocks)                                \
  static void name##_body(const Params &p);                         \
  void name(const void *params) { name##_body(*(const Params *)params); } \
  static void name##_body(const Params &p)
#define SHARED(Type, name) Type &name = *static_cast<Type *>(shim::shared_memory(sizeof(Type)))
#define UNROLL
#define NO_UNROLL
#define PLANTED(bug) shim::planted(shim::bug)

DEVICE u32 thread_index() { return shim::thread(); }
DEVICE u32 block_index() { return shim::block(); }
DEVICE u32 block_count() { return shim::grid(); }
DEVICE void barrier() { shim::block_barrier(); }
DEVICE u32 vote(bool x) { return shim::vote(x); }
DEVICE u32 match(u32 v) { return shim::match(v); }
template <class T> DEVICE T shuffle(T v, u32 lane) { return shim::from_bits<T>(shim::exchange(shim::to_bits(v), lane & 31, "shuffle")); }
template <class T> DEVICE T shuffle_up(T v, u32 by) {
  u32 lane = shim::thread() & 31;
  return shim::from_bits<T>(shim::exchange(shim::to_bits(v), lane >= by ? lane - by : lane, "shuffle_up"));
}
template <class T> DEVICE T shuffle_xor(T v, u32 by) {
  return shim::from_bits<T>(shim::exchange(shim::to_bits(v), (shim::thread() ^ by) & 31, "shuffle_xor"));
}
DEVICE u32 popcount(u32 x) { return (u32)__builtin_popcount(x); }
DEVICE u32 popcount64(u64 x) { return (u32)__builtin_popcountll(x); }
DEVICE u32 first_bit(u32 x) { return (u32)__builtin_ffs((int)x) - 1; }
DEVICE void relax() { shim::yield(); }
DEVICE void walks(bool when) { if (when) shim::count_candidate(); }

// Always inlined, so that each place in the code has its own return address for `note`.
#define ACCESS template <class T> static inline __attribute__((always_inline))
// Makes `when` unknown to the compiler; otherwise it might duplicate the code for both values, with two return
// addresses.
#define NOTE(when, p, kind)                                                        \
  if (shim::launched->sectors) shim::note(when, p, sizeof(T), shim::kind); \
  asm volatile("" : "+r"(when))
ACCESS T load_stream(const T *p) {
  if (shim::launched->sectors) shim::note(true, p, sizeof(T), shim::STREAMED);
  shim::access(p, sizeof(*p));
  shim::count_streamed(sizeof(T));
  return *p;
}
ACCESS T load_cached(const T *p) {
  if (shim::launched->sectors) shim::note(true, p, sizeof(T), shim::CACHED);
  shim::access(p, sizeof(*p));
  return *p;
}
ACCESS T load_once(const T *p, bool counts) {
  if (shim::launched->sectors) shim::note(true, p, sizeof(T), shim::CACHED);
  shim::access(p, sizeof(*p));
  if (counts) shim::count_streamed(sizeof(T));
  return *p;
}
ACCESS T load_random(const T *p) {
  if (shim::launched->sectors) shim::note(true, p, sizeof(T), shim::RANDOM);
  shim::access(p, sizeof(*p));
  shim::count_random(sizeof(T));
  return *p;
}
ACCESS T load_random_if(bool when, const T *p, T otherwise) {
  NOTE(when, p, RANDOM);
  if (!when) return otherwise;
  shim::access(p, sizeof(*p));
  shim::count_random(sizeof(T));
  return *p;
}
ACCESS T load_cached_if(bool when, const T *p, T otherwise) {
  NOTE(when, p, CACHED);
  if (!when) return otherwise;
  shim::access(p, sizeof(*p));
  return *p;
}
ACCESS T load_stream_if(bool when, const T *p, T otherwise) {
  NOTE(when, p, STREAMED);
  if (!when) return otherwise;
  shim::access(p, sizeof(*p));
  shim::count_streamed(sizeof(T));
  return *p;
}
ACCESS void store(T *p, T v) {
  if (shim::launched->sectors) shim::note(true, p, sizeof(T), shim::WRITTEN);
  shim::access(p, sizeof(*p));
  shim::count_written(sizeof(T));
  *p = v;
}
ACCESS void store_if(bool when, T *p, T v) {
  NOTE(when, p, WRITTEN);
  if (!when) return;
  shim::access(p, sizeof(*p));
  shim::count_written(sizeof(T));
  *p = v;
}
DEVICE u32 atomic_add(u32 *p, u32 v) { shim::access(p, sizeof(*p)); return __atomic_fetch_add(p, v, __ATOMIC_RELAXED); }
DEVICE u64 atomic_add(u64 *p, u64 v) { shim::access(p, sizeof(*p)); return __atomic_fetch_add(p, v, __ATOMIC_RELAXED); }
DEVICE void atomic_max(u64 *p, u64 v) {
  shim::access(p, sizeof(*p));
  u64 seen = __atomic_load_n(p, __ATOMIC_RELAXED);
  while (seen < v && !__atomic_compare_exchange_n(p, &seen, v, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
}
DEVICE void add_shared(u32 &at, u32 v) { __atomic_fetch_add(&at, v, __ATOMIC_RELAXED); }
DEVICE u64 atomic_cas(u64 *p, u64 was, u64 v) {
  shim::access(p, sizeof(*p));
  __atomic_compare_exchange_n(p, &was, v, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return was;
}
DEVICE u32 atomic_or(u32 *p, u32 v) { shim::access(p, sizeof(*p)); return __atomic_fetch_or(p, v, __ATOMIC_RELAXED); }
static inline __attribute__((always_inline)) u32 load_relaxed_if(bool when, const u32 *p, u32 otherwise) {
  if (shim::launched->sectors) shim::note(when, p, sizeof(u32), shim::RANDOM);
  asm volatile("" : "+r"(when));
  if (!when) return otherwise;
  shim::access(p, sizeof(*p));
  shim::count_random(sizeof(u32));
  return __atomic_load_n(p, __ATOMIC_RELAXED);
}
DEVICE u64 load_relaxed(const u64 *p) { shim::access(p, sizeof(*p)); return __atomic_load_n(p, __ATOMIC_RELAXED); }
DEVICE void store_relaxed(u64 *p, u64 v) { shim::access(p, sizeof(*p)); __atomic_store_n(p, v, __ATOMIC_RELAXED); }
