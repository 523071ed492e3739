// The scheduler for the fibres of device_shim.h, and its C interface, which src/shim.rs calls.
#define JINDOU_SHIM 1
#include "../kernels/device.cuh"
#include <algorithm>

namespace shim {

thread_local Fibre *current = nullptr;
thread_local Launch *launched = nullptr;

namespace {

constexpr size_t STACK = 64 << 10;
[[maybe_unused]] constexpr size_t MOST_SHARED = 48 << 10;
constexpr uint32_t RESIDENT = 3;         // blocks that run at the same time
constexpr uint64_t MOST_ROUNDS = 1 << 22;  // a launch that needs more waits for something that never happens

struct Machine {
  Block blocks[RESIDENT];
  std::vector<char *> stacks;
#ifdef JINDOU_UCONTEXT
  ucontext_t scheduler;
#else
  void *scheduler = nullptr;
#endif
#ifdef JINDOU_ASAN
  void *fake = nullptr;
  const void *bottom = nullptr;
  size_t size = 0;
#endif
#ifdef JINDOU_TSAN
  void *tsan = nullptr;
  char start_token;
#endif
  ~Machine() {
    for (char *s : stacks) free(s);
  }
};
thread_local Machine *machine = nullptr;

#ifndef JINDOU_UCONTEXT
// Saves the callee-saved registers and the stack pointer, and switches to the other stack.
extern "C" void jindou_shim_switch(void **save, void *load);
asm(R"(
.text
.globl jindou_shim_switch
.hidden jindou_shim_switch
.type jindou_shim_switch,@function
jindou_shim_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size jindou_shim_switch,.-jindou_shim_switch
)");
#endif

UNCHECKED void to_scheduler(bool last) {
  Fibre *me = current;
  (void)last;
#ifdef JINDOU_ASAN
  __sanitizer_start_switch_fiber(last ? nullptr : &me->fake, machine->bottom, machine->size);
#endif
#ifdef JINDOU_TSAN
  __tsan_switch_to_fiber(machine->tsan, __tsan_switch_to_fiber_no_sync);
#endif
#ifdef JINDOU_UCONTEXT
  swapcontext(&me->context, &machine->scheduler);
#else
  jindou_shim_switch(&me->sp, machine->scheduler);
#endif
#ifdef JINDOU_ASAN
  __sanitizer_finish_switch_fiber(me->fake, &machine->bottom, &machine->size);
#endif
}

UNCHECKED void entry() {
#ifdef JINDOU_ASAN
  __sanitizer_finish_switch_fiber(nullptr, &machine->bottom, &machine->size);
#endif
#ifdef JINDOU_TSAN
  __tsan_acquire(&machine->start_token);
#endif
  launched->kernel(launched->params);
#ifdef JINDOU_TSAN
  __tsan_release(&current->block->end_token);
#endif
  current->state = State::Done;
  to_scheduler(true);
  abort();  // a finished fibre is never resumed
}

UNCHECKED void resume(Fibre &f) {
  current = &f;
#ifdef JINDOU_ASAN
  __sanitizer_start_switch_fiber(&machine->fake, f.stack, STACK);
#endif
#ifdef JINDOU_TSAN
  __tsan_switch_to_fiber(f.tsan, __tsan_switch_to_fiber_no_sync);
#endif
#ifdef JINDOU_UCONTEXT
  swapcontext(&machine->scheduler, &f.context);
#else
  jindou_shim_switch(&machine->scheduler, f.sp);
#endif
#ifdef JINDOU_ASAN
  __sanitizer_finish_switch_fiber(machine->fake, nullptr, nullptr);
#endif
}

UNCHECKED void prepare(Fibre &f) {
#ifdef JINDOU_TSAN
  if (f.tsan) __tsan_destroy_fiber(f.tsan);
  f.tsan = __tsan_create_fiber(0);
  f.generation = 0;
#endif
#ifdef JINDOU_UCONTEXT
  getcontext(&f.context);
  f.context.uc_stack.ss_sp = f.stack;
  f.context.uc_stack.ss_size = STACK;
  f.context.uc_link = nullptr;
  makecontext(&f.context, entry, 0);
#else
  // Six registers and the return address. At entry, the stack pointer is 8 below a multiple of 16, as after a call.
  void **top = reinterpret_cast<void **>((reinterpret_cast<uintptr_t>(f.stack) + STACK) & ~uintptr_t(15));
  *--top = nullptr;
  *--top = reinterpret_cast<void *>(entry);
  for (int i = 0; i < 6; i++) *--top = nullptr;
  f.sp = top;
#endif
}

UNCHECKED void begin(Block &b, uint32_t index, uint32_t slot) {
  b.launch = launched;
  b.index = index;
  b.busy = true;
  b.fibres.resize(launched->threads);
  b.warps.assign(launched->threads / 32, {});
#ifdef JINDOU_TSAN
  // Allocated before the block's threads begin; TSan would take an allocation by the first thread for a race.
  b.shared = malloc(MOST_SHARED);
  memset(b.shared, 0xcd, MOST_SHARED);
  __tsan_release(&machine->start_token);
#endif
  for (uint32_t t = 0; t < launched->threads; t++) {
    Fibre &f = b.fibres[t];
    f.block = &b;
    f.thread = t;
    f.state = State::Ready;
    f.where = nullptr;
    f.turn = 0;
    f.stack = machine->stacks[slot * launched->threads + t];
    prepare(f);
  }
}

UNCHECKED void end(Block &b) {
#ifdef JINDOU_TSAN
  __tsan_acquire(&b.end_token);
  for (Fibre &f : b.fibres) {
    if (f.tsan) __tsan_destroy_fiber(f.tsan);
    f.tsan = nullptr;
  }
#endif
  free(b.shared);
  b.shared = nullptr;
  b.busy = false;
}

// Counts the accesses of a warp whose lanes have reached the same warp operation.
UNCHECKED void settle(Block &b, uint32_t warp) {
  if (!launched->sectors) return;
  WarpAccesses &accesses = b.warps[warp];
  for (auto &entry : accesses.open) {
    WarpAccess &a = entry.second;
    std::sort(a.sectors.begin(), a.sectors.end());
    auto end = std::unique(a.sectors.begin(), a.sectors.end());
    launched->counts.requests[a.kind]++;
    launched->counts.sectors[a.kind] += uint64_t(end - a.sectors.begin());
  }
  accesses.open.clear();
  accesses.times.clear();
}

// Runs each thread of one warp up to its next waiting point, and completes a warp operation that all lanes have
// reached. Returns true if anything happened.
UNCHECKED bool run_warp(Block &b, uint32_t first) {
  uint32_t rotate = launched->seed ? uint32_t(random_bits() >> 33) & 31 : 0;
  bool moved = false;
  for (uint32_t i = 0; i < 32; i++) {
    Fibre &f = b.fibres[first + ((i + rotate) & 31)];
    if (f.state != State::Ready) continue;
    resume(f);
    moved = true;
    if (!launched->error.empty()) return false;
  }
  uint32_t waiting = 0, ready = 0;
  const char *where = nullptr;
  for (uint32_t i = 0; i < 32; i++) {
    Fibre &f = b.fibres[first + i];
    ready += f.state == State::Ready;
    if (f.state != State::AtWarp) continue;
    waiting++;
    if (where != nullptr && where != f.where) fail("lanes of a warp wait in different operations");
    where = f.where;
  }
  if (waiting == 0 || ready != 0) return moved;
  if (waiting != 32) {
    fail("a warp operation that not every lane reaches");
    return false;
  }
  for (uint32_t i = 0; i < 32; i++) b.fibres[first + i].state = State::Ready;
  settle(b, first / 32);
  return true;
}

// Runs a block until all of its threads wait for each other or are done, or (with a seed) for a few rounds.
UNCHECKED void run_block(Block &b) {
  uint32_t warps = launched->threads / 32, turns = launched->seed ? 1 + uint32_t(random_bits() & 7) : ~0u;
  while (turns-- != 0 && launched->error.empty()) {
    launched->rounds++;
    uint32_t rotate = launched->seed ? uint32_t(random_bits() >> 33) % warps : 0;
    bool moved = false;
    for (uint32_t w = 0; w < warps; w++) moved |= run_warp(b, (w + rotate) % warps * 32);
    uint32_t done = 0, at = 0;
    for (Fibre &f : b.fibres) done += f.state == State::Done, at += f.state == State::AtBarrier;
    if (!launched->error.empty()) return;
    if (done + at == launched->threads)
      for (uint32_t w = 0; w < warps; w++) settle(b, w);
    if (done == launched->threads) {
      end(b);
      return;
    }
    if (done + at == launched->threads) {
      if (done != 0) return fail("a block barrier that not every thread reaches");
      for (Fibre &f : b.fibres) f.state = State::Ready;
    } else if (!moved) {
      return fail("a block whose threads wait for each other");
    }
    if (launched->rounds > MOST_ROUNDS) return fail("a launch that never ends");
    // A block that spins lets other blocks run.
    if (launched->seed == 0 && (launched->rounds & 63) == 0) return;
  }
}

UNCHECKED void run_all() {
  uint32_t next = 0;
  // With a seed, the order of blocks is shuffled, too: a multiplicative walk over the grid.
  uint32_t step = 1, at = 0;
  if (launched->seed != 0 && launched->grid > 1) {
    auto gcd = [](uint32_t a, uint32_t b) {
      while (b != 0) {
        uint32_t t = a % b;
        a = b, b = t;
      }
      return a;
    };
    step = 1 + uint32_t(random_bits() >> 33) % (launched->grid - 1);
    while (gcd(step, launched->grid) != 1) step++;
    at = uint32_t(random_bits() >> 33) % launched->grid;
  }
  for (;;) {
    bool any = false;
    uint32_t rotate = launched->seed ? uint32_t(random_bits() >> 33) % RESIDENT : 0;
    for (uint32_t i = 0; i < RESIDENT; i++) {
      uint32_t slot = (i + rotate) % RESIDENT;
      Block &b = machine->blocks[slot];
      if (!b.busy && next < launched->grid) {
        begin(b, uint32_t((at + uint64_t(next) * step) % launched->grid), slot);
        next++;
      }
      if (!b.busy) continue;
      any = true;
      run_block(b);
      if (!launched->error.empty()) {
        for (Block &x : machine->blocks)
          if (x.busy) end(x);
        return;
      }
    }
    if (!any) return;
  }
}

}  // namespace

UNCHECKED void yield() { to_scheduler(false); }
UNCHECKED void fail(const char *what) {
  if (launched->error.empty()) launched->error = what;
}
// Stops the thread and fails the launch.
UNCHECKED void out_of_bounds() {
  fail("an access out of bounds or not aligned");
  for (;;) to_scheduler(false);
}
__attribute__((noinline)) UNCHECKED_BODY void note(bool when, const void *p, size_t size, uint32_t kind) {
  const void *place = __builtin_return_address(0);
  Fibre &f = *current;
  WarpAccesses &accesses = f.block->warps[f.thread / 32];
  uint32_t time = accesses.times[{place, f.thread & 31}]++;
  if (!when) return;
  WarpAccess &a = accesses.open[{place, time}];
  a.kind = kind;
  for (uint64_t s = (uint64_t)p / 32; s <= ((uint64_t)p + size - 1) / 32; s++) a.sectors.push_back(s);
}
UNCHECKED void *shared_memory(size_t size) {
  Block &b = *current->block;
  if (b.shared == nullptr) {
    b.shared = malloc(size);
    b.shared_size = size;
    memset(b.shared, 0xcd, size);
  }
  return b.shared;
}
UNCHECKED void block_barrier() {
  Fibre &f = *current;
#ifdef JINDOU_TSAN
  char *token = &f.block->barrier_token[f.generation++ & 1];
  __tsan_release(token);
#endif
  f.state = State::AtBarrier;
  to_scheduler(false);
#ifdef JINDOU_TSAN
  __tsan_acquire(token);
#endif
}
UNCHECKED uint64_t exchange(uint64_t value, uint32_t lane, const char *where) {
  Fibre &f = *current;
  uint8_t turn = f.turn;
  f.turn ^= 1;
  f.slot[turn] = value;
  f.state = State::AtWarp, f.where = where;
  to_scheduler(false);
  return f.block->fibres[(f.thread & ~31u) + lane].slot[turn];
}
UNCHECKED uint32_t vote(bool x) {
  Fibre &f = *current;
  uint8_t turn = f.turn;
  f.turn ^= 1;
  f.slot[turn] = x;
  f.state = State::AtWarp, f.where = "vote";
  to_scheduler(false);
  uint32_t mask = 0;
  for (uint32_t i = 0; i < 32; i++) mask |= uint32_t(f.block->fibres[(f.thread & ~31u) + i].slot[turn] & 1) << i;
  return mask;
}
UNCHECKED uint32_t match(uint32_t v) {
  Fibre &f = *current;
  uint8_t turn = f.turn;
  f.turn ^= 1;
  f.slot[turn] = v;
  f.state = State::AtWarp, f.where = "match";
  to_scheduler(false);
  uint32_t mask = 0;
  for (uint32_t i = 0; i < 32; i++) mask |= uint32_t(f.block->fibres[(f.thread & ~31u) + i].slot[turn] == v) << i;
  return mask;
}

}  // namespace shim

#include "../kernels/all.cu"

namespace {
struct Entry { const char *name; void (*kernel)(const void *); size_t params; };
const Entry ENTRIES[] = {
    {"jd_start_intervals", jd_start_intervals, sizeof(StartIntervals)}, {"jd_start_runs", jd_start_runs, sizeof(StartKeys)},
    {"jd_start_bits", jd_start_bits, sizeof(StartKeys)},       {"jd_restrict", jd_restrict, sizeof(Restrict)},
    {"jd_same", jd_same, sizeof(Same)},                        {"jd_check", jd_check, sizeof(Check)},
    {"jd_measure", jd_measure, sizeof(Measure)},               {"jd_measure_many", jd_measure_many, sizeof(MeasureMany)},
    {"jd_measure_cut", jd_measure_cut, sizeof(MeasureMany)},
    {"jd_expand", jd_expand, sizeof(Expand)},
    {"jd_expand_within", jd_expand_within, sizeof(Expand)},    {"jd_intersect", jd_intersect, sizeof(Expand)},
    {"jd_expand_one", jd_expand_one, sizeof(ExpandOne)},       {"jd_checksum", jd_checksum, sizeof(Checksum)},
    {"jd_check_any", jd_check_any, sizeof(CheckAny)},          {"jd_measure_any", jd_measure_any, sizeof(MeasureAny)},
    {"jd_expand_any", jd_expand_any, sizeof(ExpandAny)},       {"jd_compare", jd_compare, sizeof(Compare)},
    {"jd_mark", jd_mark, sizeof(Mark)},                        {"jd_test", jd_test, sizeof(Test)},
    {"jd_distinct", jd_distinct, sizeof(Distinct)},            {"jd_gather", jd_gather, sizeof(Gather)},
    {"jd_group_add", jd_group_add, sizeof(GroupAdd)},          {"jd_group_slots", jd_group_slots, sizeof(GroupSlots)},
    {"jd_group_rows", jd_group_rows, sizeof(GroupRows)},       {"jd_group_keys", jd_group_keys, sizeof(GroupKeys)},
    {"jd_group_best", jd_group_best, sizeof(GroupBest)},       {"jd_group_ends", jd_group_ends, sizeof(GroupEnds)},
    {"jd_group_ids", jd_group_ids, sizeof(GroupIds)},          {"jd_sort_keys", jd_sort_keys, sizeof(SortKeys)},
    {"jd_sort_bins", jd_sort_bins, sizeof(SortBins)},          {"jd_sort_pick", jd_sort_pick, sizeof(SortPick)},
    {"jd_sort_keep", jd_sort_keep, sizeof(SortKeep)},
};
#define X(name) #name,
const char *const BUG_NAMES[] = {JINDOU_BUGS(X)};
#undef X
}  // namespace

extern "C" {

// Returns the number of a kernel by name, or -1; stores the size of its parameters in `size`.
int jindou_shim_kernel(const char *name, size_t *size) {
  for (size_t i = 0; i < sizeof ENTRIES / sizeof *ENTRIES; i++)
    if (strcmp(ENTRIES[i].name, name) == 0) {
      *size = ENTRIES[i].params;
      return (int)i;
    }
  return -1;
}

// The name of injectable bug `bug`, from 1; null after the last.
const char *jindou_shim_bug(uint32_t bug) {
  return bug >= 1 && bug < shim::BUGS ? BUG_NAMES[bug - 1] : nullptr;
}

// Runs a kernel to its end over the given live device memory. Returns 0, or 1 with a reason in `error` (at most
// `error_len` bytes including the final 0).
int jindou_shim_launch(uint32_t kernel, uint32_t grid, const void *params, uint64_t seed, uint32_t bug, int sectors,
                       const shim::Live *live, size_t live_count, shim::Counts *counts, char *error, size_t error_len) {
  using namespace shim;
  Launch l;
  l.live = live, l.live_count = live_count;
  l.grid = grid, l.threads = THREADS, l.seed = seed, l.bug = bug, l.sectors = sectors != 0, l.params = params;
  l.kernel = ENTRIES[kernel].kernel;
  // Stacks are reused by later launches on the same OS thread.
  static thread_local Machine m;
  while (m.stacks.size() < RESIDENT * THREADS) m.stacks.push_back((char *)malloc(STACK));
  machine = &m, launched = &l;
#ifdef JINDOU_TSAN
  m.tsan = __tsan_get_current_fiber();
  __tsan_release(&m.start_token);
#endif
  run_all();
  machine = nullptr, launched = nullptr, current = nullptr;
  *counts = l.counts;
  if (l.error.empty()) return 0;
  strncpy(error, l.error.c_str(), error_len - 1);
  error[error_len - 1] = 0;
  return 1;
}
}
