//! The auditor finds places where a query takes memory without charging it to the query's account, and where a thread
//! works for a long time without checking its cancellation token. The program contains it only with the feature
//! `audit`, which `make audit` builds and tests.
//!
//! Memory: [`Auditing`] wraps the usual allocator. After every [`STEP`] bytes that a thread allocates, it computes the
//! memory that the thread has allocated for its query without charging it. Outside of a charging scope it counts from
//! the time at which the thread left its last scope. Inside a scope the allocator charges the memory itself, but only
//! looks now and then at whether the query's limit is exceeded; there the finding is the smaller of the uncharged
//! memory since the thread entered the scope and that since the last look. Memory beyond the query's limit is always a
//! finding.
//!
//! Time: a timer runs on every thread's processor time. It compares the thread's count of token checks with the count
//! at the last tick.
//!
//! A finding is one line in the file named by `JINDOU_AUDIT`: its kind, its size and the addresses of its stack, which
//! `addr2line` turns into names. With `JINDOU_AUDIT_ABORT` the first finding ends the process.
//!
//! [`MEMORY`] and [`TIME`] are the thresholds. `tests/attack/audit/mod.rs` lists the exceptions, each with the reason
//! why it is bounded.

use jindou_model::scope::{self, ThreadAccount};
use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::mem::{MaybeUninit, zeroed};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};

/// Maximum number of bytes that a query may hold without having charged them, and that a thread may allocate between
/// two looks at the query's limit.
const MEMORY: i64 = 4 << 20;
/// Maximum processor time without a check of the token, in nanoseconds.
const TIME: u64 = 20_000_000;
/// Processor time between two ticks of a thread's timer, in nanoseconds.
const TICK: i64 = 5_000_000;
/// Bytes that a thread allocates before its uncharged memory is computed again.
const STEP: usize = 256 << 10;
/// Maximum number of addresses in a finding's stack.
const FRAMES: usize = 48;

/// Descriptor of the findings' file; -1 before it is opened, -2 if there is no file.
static FILE: AtomicI32 = AtomicI32::new(-1);
/// Address at which the program is loaded.
static BASE: AtomicU64 = AtomicU64::new(0);
/// True if the first finding ends the process.
static ABORTS: AtomicBool = AtomicBool::new(false);
/// Hashes of stacks that were already written, so that findings of one place are written only a few times.
static WRITTEN: [AtomicU64; 1 << 14] = [const { AtomicU64::new(0) }; 1 << 14];

/// The auditor's figures for one thread.
struct Audited {
    /// Bytes allocated since the last comparison.
    allocated: Cell<usize>,
    stay: Cell<u64>,
    looks: Cell<u64>,
    /// Bytes allocated minus bytes freed and bytes charged: since the thread entered or left a scope (a "stay"), and
    /// since it last looked at the query's limit.
    since_stay: Cell<i64>,
    since_look: Cell<i64>,
    /// Bytes charged by the thread so far.
    charged: Cell<i64>,
    has_timer: Cell<bool>,
    /// Number of checks at the last tick, and the processor time of the first tick with that number.
    checks: Cell<u64>,
    since: Cell<u64>,
    is_inside: Cell<bool>,
}

thread_local! {
    static THREAD: Audited = const {
        Audited {
            allocated: Cell::new(0),
            stay: Cell::new(0),
            looks: Cell::new(0),
            since_stay: Cell::new(0),
            since_look: Cell::new(0),
            charged: Cell::new(0),
            has_timer: Cell::new(false),
            checks: Cell::new(0),
            since: Cell::new(0),
            is_inside: Cell::new(false),
        }
    };
}

/// An allocator that finds memory which queries hold without having charged it. It wraps the allocator that counts
/// memory.
pub struct Auditing<A>(pub A);

impl<A> Auditing<A> {
    fn changed(&self, grown: usize, shrunk: usize) {
        let account = scope::account();
        if !account.has_token {
            return;
        }
        THREAD.with(|thread| {
            if thread.is_inside.replace(true) {
                return;
            }
            thread.changed(&account, grown, shrunk);
            thread.is_inside.set(false);
        });
    }
}

impl Audited {
    fn changed(&self, account: &ThreadAccount, grown: usize, shrunk: usize) {
        if !self.has_timer.replace(true) {
            start_timer();
        }
        let has_moved = self.stay.replace(account.stay) != account.stay;
        let has_looked = self.looks.replace(account.looks) != account.looks;
        if has_moved {
            self.since_stay.set(0);
            self.charged.set(account.charged_before);
        }
        if has_moved || has_looked {
            self.since_look.set(0);
        }
        let charged = account.charged - self.charged.replace(account.charged);
        let more = grown as i64 - shrunk as i64 - charged;
        self.since_stay.set(self.since_stay.get() + more);
        self.since_look.set(self.since_look.get() + more);
        let allocated = self.allocated.get() + grown;
        self.allocated.set(allocated);
        if allocated < STEP || grown == 0 {
            return;
        }
        self.allocated.set(0);
        let (kind, uncharged): (&[u8], _) = match account.scope {
            Some(_) => (b"unseen ", self.since_stay.get().min(self.since_look.get())),
            None => (b"outside ", self.since_stay.get()),
        };
        if uncharged > MEMORY {
            found(kind, uncharged as u64);
        }
        if let Some(scope) = account.scope
            && scope.beyond_limit > MEMORY
        {
            found(b"beyond ", scope.beyond_limit as u64);
        }
    }
}

// SAFETY: every call is passed unchanged to the inner allocator, and its result is returned unchanged. The auditor's
// own computation neither allocates with this allocator nor unwinds.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Auditing<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller fulfils this function's contract, which is the same as the inner function's.
        let piece = unsafe { self.0.alloc(layout) };
        self.changed(layout.size(), 0);
        piece
    }

    unsafe fn dealloc(&self, piece: *mut u8, layout: Layout) {
        // SAFETY: as above; `piece` came from the inner allocator.
        unsafe { self.0.dealloc(piece, layout) };
        self.changed(0, layout.size());
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        let piece = unsafe { self.0.alloc_zeroed(layout) };
        self.changed(layout.size(), 0);
        piece
    }

    unsafe fn realloc(&self, piece: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: as above; `piece` came from the inner allocator.
        let moved = unsafe { self.0.realloc(piece, layout, new_size) };
        self.changed(new_size, layout.size());
        moved
    }
}

/// Processor time that this thread has used, in nanoseconds.
fn processor_time() -> u64 {
    let mut now = MaybeUninit::<libc::timespec>::zeroed();
    // SAFETY: the call writes the time to `now`, which is valid for it.
    let now = unsafe {
        libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, now.as_mut_ptr());
        now.assume_init()
    };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Starts a timer that signals this thread after every [`TICK`] of processor time.
fn start_timer() {
    open_file();
    // SAFETY: the structures are plain and complete; the handler is async-signal-safe.
    unsafe {
        let mut action: libc::sigaction = zeroed();
        action.sa_sigaction = tick as extern "C" fn(c_int) as usize;
        action.sa_flags = libc::SA_RESTART;
        libc::sigaction(libc::SIGPROF, &raw const action, ptr::null_mut());
        let mut event: libc::sigevent = zeroed();
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = libc::SIGPROF;
        event.sigev_notify_thread_id = libc::gettid();
        let mut timer: libc::timer_t = ptr::null_mut();
        let clock = libc::CLOCK_THREAD_CPUTIME_ID;
        if libc::timer_create(clock, &raw mut event, &raw mut timer) == 0 {
            let each = libc::timespec {
                tv_sec: 0,
                tv_nsec: TICK,
            };
            let setting = libc::itimerspec {
                it_interval: each,
                it_value: each,
            };
            libc::timer_settime(timer, 0, &raw const setting, ptr::null_mut());
        }
    }
}

/// Signal handler of the timer. It only reads this thread's cells, the clock and the stack, and writes to the file, all
/// of which are allowed in a signal handler.
extern "C" fn tick(_: c_int) {
    let account = scope::account();
    THREAD.with(|thread| {
        let now = processor_time();
        let has_checked = thread.checks.replace(account.checks) != account.checks;
        if has_checked || !account.has_token {
            thread.since.set(now);
            return;
        }
        let taken = now.saturating_sub(thread.since.get());
        if taken > TIME && !thread.is_inside.get() {
            found(b"time ", taken);
        }
    });
}

fn open_file() {
    if FILE.load(Ordering::Relaxed) != -1 {
        return;
    }
    let path = std::env::var_os("JINDOU_AUDIT").unwrap_or_else(|| "jindou-audit.txt".into());
    let Ok(path) = std::ffi::CString::new(path.into_encoded_bytes()) else {
        return;
    };
    let mut frames = [ptr::null_mut::<c_void>(); FRAMES];
    // SAFETY: the path ends with a zero. The first call of `backtrace` loads a library, which must not happen in a
    // signal handler, so it is done here.
    unsafe {
        let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_APPEND | libc::O_CLOEXEC;
        let file = libc::open(path.as_ptr(), flags, 0o600);
        libc::backtrace(frames.as_mut_ptr(), FRAMES as c_int);
        let mut object: libc::Dl_info = zeroed();
        libc::dladdr(found as fn(&[u8], u64) as *const c_void, &raw mut object);
        BASE.store(object.dli_fbase as u64, Ordering::Relaxed);
        FILE.store(file, Ordering::Relaxed);
    }
    ABORTS.store(
        std::env::var_os("JINDOU_AUDIT_ABORT").is_some(),
        Ordering::Relaxed,
    );
}

/// Text of a finding, made without allocating.
struct Line {
    bytes: [u8; 2048],
    len: usize,
}

impl Line {
    fn push(&mut self, text: &[u8]) {
        if let Some(to) = self.bytes.get_mut(self.len..self.len + text.len()) {
            to.copy_from_slice(text);
            self.len += text.len();
        }
    }

    fn number(&mut self, mut n: u64, base: u64) {
        let mut digits = [0; 20];
        let mut at = digits.len();
        while at > 0 {
            at -= 1;
            digits[at] = b"0123456789abcdef"[(n % base) as usize];
            n /= base;
            if n == 0 {
                break;
            }
        }
        self.push(&digits[at..]);
    }
}

/// Writes a finding: its kind, its size, the address at which the program is loaded, and those of the stack.
fn found(kind: &[u8], size: u64) {
    let mut frames = [ptr::null_mut::<c_void>(); FRAMES];
    // SAFETY: the call writes at most as many addresses as there is room for.
    let count = unsafe { libc::backtrace(frames.as_mut_ptr(), FRAMES as c_int) };
    let frames = frames.get(..count as usize).unwrap_or(&[]);
    let hash = frames.iter().take(14).fold(u64::from(kind[0]), |h, frame| {
        (h.rotate_left(5) ^ *frame as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    });
    let slot = &WRITTEN[(hash >> 50) as usize];
    if slot.swap(hash, Ordering::Relaxed) == hash {
        return;
    }
    let mut line = Line {
        bytes: [0; 2048],
        len: 0,
    };
    line.push(kind);
    line.number(size, 10);
    line.push(b" ");
    line.number(BASE.load(Ordering::Relaxed), 16);
    for frame in frames {
        line.push(b" ");
        line.number(*frame as u64, 16);
    }
    line.push(b"\n");
    // SAFETY: the bytes are valid, and writing to a closed file is an error that is ignored.
    unsafe {
        libc::write(
            FILE.load(Ordering::Relaxed),
            line.bytes.as_ptr().cast(),
            line.len,
        );
    }
    if ABORTS.load(Ordering::Relaxed) {
        std::process::abort();
    }
}
