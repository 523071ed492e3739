// A fake of the NVIDIA driver's library: the functions that src/cuda.rs calls, implemented by callbacks of the test.
// Any call can be made to fail, once or from then on.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>

typedef int Result;
enum : Result { OK = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NO_BINARY_FOR_GPU = 209 };

struct Callbacks {
  uint64_t (*alloc)(size_t);
  void (*free)(uint64_t, size_t);
  int (*launch)(const char *kernel, uint32_t grid, const void *params);
  uint64_t (*reserve)(size_t);
  void (*unreserve)(uint64_t, size_t);
  int (*map)(uint64_t, size_t);
  void (*unmap)(uint64_t, size_t);
};

// State that the test reads and sets.
struct Control {
  int version;        // CUDA version
  uint64_t fail_at;   // number of the call that fails, from 1; 0 for none
  Result code;        // the error code that it returns
  int sticky;         // if not 0, all later calls fail, too, until the context is released
  int no_binary;      // if not 0, the module has no code for this GPU
  // Only read by the test:
  uint64_t calls, calls_after_loss;
  uint64_t device_bytes, reserved_bytes, host_bytes, events, streams, modules, pools, contexts, pages, addresses, handles;
};

static Control control = {13000, 0, OK};
static Callbacks callbacks;
static bool lost;
static std::mutex lock;
struct Range { uint64_t at; size_t bytes; bool operator<(const Range &o) const { return at < o.at; } };
static std::set<Range> ranges, reserved, pages;

// Counts a call. Returns the error code if the call is to fail.
static Result call() {
  if (lost) return control.calls_after_loss++, control.code;
  if (++control.calls != control.fail_at) return OK;
  lost = control.sticky && control.contexts > 0;
  return control.code;
}
#define CALL() std::lock_guard<std::mutex> guard(lock); if (Result r = call()) return r

extern "C" {
Control *fake_control() { return &control; }
void fake_callbacks(const Callbacks *c) { callbacks = *c; }

Result cuDriverGetVersion(int *v) { *v = control.version; return OK; }
Result cuInit(unsigned) { CALL(); return OK; }
Result cuDeviceGetCount(int *n) { CALL(); *n = 1; return OK; }
Result cuDeviceGet(int *device, int) { CALL(); *device = 0; return OK; }
Result cuDeviceGetName(char *name, int room, int) { CALL(); strncpy(name, "Fake GPU", room); return OK; }
Result cuDeviceGetUuid_v2(char *uuid, int) { CALL(); memset(uuid, 7, 16); return OK; }
Result cuDevicePrimaryCtxRetain(void **context, int) { CALL(); *context = &control; control.contexts++; return OK; }
Result cuDevicePrimaryCtxRelease_v2(int) {
  std::lock_guard<std::mutex> guard(lock);
  if (control.contexts == 1) {
    // Everything in the context is freed before the test can see that the context was released.
    lost = false;
    control.fail_at = 0;
    for (const Range &r : ranges) callbacks.free(r.at, r.bytes);
    ranges.clear();
    for (const Range &r : pages) callbacks.unmap(r.at, r.bytes);
    pages.clear();
    for (const Range &r : reserved) callbacks.unreserve(r.at, r.bytes);
    reserved.clear();
    control.pages = control.addresses = control.handles = 0;
    control.device_bytes = control.reserved_bytes = control.events = control.streams = control.modules = control.pools = 0;
  }
  __atomic_fetch_sub(&control.contexts, 1, __ATOMIC_RELEASE);
  return OK;
}
Result cuCtxSetCurrent(void *) { CALL(); return OK; }
Result cuStreamCreate(void **stream, unsigned) { CALL(); *stream = &control; control.streams++; return OK; }
Result cuStreamDestroy_v2(void *) { CALL(); control.streams--; return OK; }
Result cuModuleLoadData(void **module, const void *image) {
  CALL();
  if (control.no_binary) return NO_BINARY_FOR_GPU;
  if (*(const uint32_t *)image != 0xba55ed50) return INVALID_VALUE;
  *module = &control;
  control.modules++;
  return OK;
}
Result cuModuleUnload(void *) { CALL(); control.modules--; return OK; }
Result cuModuleGetFunction(const char **function, void *, const char *name) { CALL(); *function = strdup(name); return OK; }
Result cuMemPoolCreate(void **pool, const void *) { CALL(); *pool = &control; control.pools++; return OK; }
Result cuMemPoolDestroy(void *) { CALL(); control.pools--; return OK; }
Result cuMemPoolTrimTo(void *, size_t keep) {
  CALL();
  uint64_t least = control.device_bytes > keep ? control.device_bytes : keep;
  if (control.reserved_bytes > least) control.reserved_bytes = least;
  return OK;
}
// Attribute 5: bytes reserved now; 7: bytes used now.
Result cuMemPoolGetAttribute(void *, int which, uint64_t *value) {
  CALL();
  *value = which == 5 ? control.reserved_bytes : control.device_bytes;
  return OK;
}
Result cuMemPoolSetAttribute(void *, int, void *) { CALL(); return OK; }
Result cuMemAllocFromPoolAsync(uint64_t *at, size_t bytes, void *, void *) {
  CALL();
  *at = callbacks.alloc(bytes);
  if (*at == 0) return OUT_OF_MEMORY;
  ranges.insert({*at, bytes});
  control.device_bytes += bytes;
  if (control.reserved_bytes < control.device_bytes) control.reserved_bytes = control.device_bytes;
  return OK;
}
Result cuMemFreeAsync(uint64_t at, void *) {
  CALL();
  auto r = ranges.find({at, 0});
  if (r == ranges.end()) return INVALID_VALUE;
  callbacks.free(r->at, r->bytes);
  control.device_bytes -= r->bytes;
  ranges.erase(r);
  return OK;
}
enum : size_t { PAGE = 4096 };
Result cuMemGetAllocationGranularity(size_t *bytes, const void *, int) { CALL(); *bytes = PAGE; return OK; }
Result cuMemAddressReserve(uint64_t *at, size_t bytes, size_t, uint64_t, uint64_t) {
  CALL();
  *at = callbacks.reserve(bytes);
  if (*at == 0) return OUT_OF_MEMORY;
  reserved.insert({*at, bytes});
  control.addresses += bytes;
  return OK;
}
Result cuMemAddressFree(uint64_t at, size_t bytes) {
  CALL();
  if (pages.lower_bound({at, 0}) != pages.lower_bound({at + bytes, 0})) return INVALID_VALUE;
  reserved.erase({at, bytes});
  callbacks.unreserve(at, bytes);
  control.addresses -= bytes;
  return OK;
}
Result cuMemCreate(uint64_t *handle, size_t bytes, const void *, uint64_t) {
  CALL();
  if (bytes != PAGE) return INVALID_VALUE;
  *handle = 7;
  control.handles++;
  return OK;
}
Result cuMemRelease(uint64_t) { CALL(); control.handles--; return OK; }
Result cuMemMap(uint64_t at, size_t bytes, size_t, uint64_t handle, uint64_t) {
  CALL();
  if (handle != 7 || bytes != PAGE) return INVALID_VALUE;
  if (callbacks.map(at, bytes)) return OUT_OF_MEMORY;
  pages.insert({at, bytes});
  control.pages++;
  return OK;
}
Result cuMemSetAccess(uint64_t at, size_t, const void *, size_t) { CALL(); return pages.count({at, 0}) ? OK : INVALID_VALUE; }
Result cuMemUnmap(uint64_t at, size_t bytes) {
  CALL();
  if (!pages.erase({at, 0})) return INVALID_VALUE;
  callbacks.unmap(at, bytes);
  control.pages--;
  return OK;
}
// The length is stored in front of the memory.
Result cuMemHostAlloc(void **at, size_t bytes, unsigned) {
  CALL();
  char *p = (char *)aligned_alloc(4096, (bytes + 4096 + 4095) / 4096 * 4096);
  *(size_t *)p = bytes;
  *at = p + 4096;
  control.host_bytes += bytes;
  return OK;
}
Result cuMemFreeHost(void *at) {
  CALL();
  char *p = (char *)at - 4096;
  control.host_bytes -= *(size_t *)p;
  free(p);
  return OK;
}
Result cuMemGetInfo_v2(size_t *free, size_t *total) { CALL(); *free = 1 << 30, *total = 2ul << 30; return OK; }
Result cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t n, void *) { CALL(); memcpy((void *)to, from, n); return OK; }
Result cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t n, void *) { CALL(); memcpy(to, (void *)from, n); return OK; }
Result cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t n, void *) { CALL(); memcpy((void *)to, (void *)from, n); return OK; }
Result cuMemsetD8Async(uint64_t at, unsigned char v, size_t n, void *) { CALL(); memset((void *)at, v, n); return OK; }
Result cuLaunchKernel(const char *function, unsigned grid, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *,
                      void **params, void **) {
  CALL();
  return callbacks.launch(function, grid, params[0]) ? 719 : OK;
}
Result cuEventCreate(void **event, unsigned) { CALL(); *event = malloc(1); control.events++; return OK; }
Result cuEventDestroy_v2(void *event) { CALL(); free(event); control.events--; return OK; }
Result cuEventRecord(void *, void *) { CALL(); return OK; }
Result cuStreamWaitEvent(void *, void *, unsigned) { CALL(); return OK; }
Result cuEventQuery(void *) { CALL(); return OK; }
#ifndef WITHOUT_ELAPSED
Result cuEventElapsedTime_v2(float *ms, void *, void *) { CALL(); *ms = 0.001f; return OK; }
#endif
}
