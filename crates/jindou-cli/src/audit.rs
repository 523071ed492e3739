//! The auditor: finds where a query takes memory that no query was charged for, and where a thread works for long without looking
//! at its token. Part of the program only with the feature `audit`, which `make audit` builds and tests run.
//!
//! An allocator around the usual one compares, at every large allocation, what the thread holds for its query with what it
//! has charged since it entered its scope, or left all. Where the allocator itself charges (inside a scope), it must also have
//! allocated as much since it last looked whether the query's memory is used up; what the query holds beyond its limit counts
//! there in any case. A timer on the processor time
//! of every thread looks whether the thread has checked a token since the timer's last ticks. Each finding is a line in the
//! file that `JINDOU_AUDIT` names: its kind, its size, and the addresses of its stack, which `addr2line` turns into names.
//! With `JINDOU_AUDIT_ABORT` the process ends at the first one.
//!
//! [`MEMORY`] and [`TIME`] are the thresholds; the exceptions, with what bounds each, are in `tests/attack/audit/mod.rs`.

use jindou_model::scope::{self, ThreadAccount};
use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::mem::{MaybeUninit, zeroed};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};

/// Most bytes that a query may hold beyond what it was charged, or a thread allocate between two looks.
const MEMORY: i64 = 4 << 20;
/// Longest processor time without a check of the token, in nanoseconds.
const TIME: u64 = 20_000_000;
/// Processor time between two ticks of a thread's timer.
const TICK: i64 = 5_000_000;
/// Bytes that a thread allocates between two comparisons.
const STEP: usize = 256 << 10;
/// Frames of a stack that are kept.
const FRAMES: usize = 48;

/// File of the findings; -1 before it is open, -2 without one.
static FILE: AtomicI32 = AtomicI32::new(-1);
/// Address at which the program is loaded.
static BASE: AtomicU64 = AtomicU64::new(0);
/// True if the first finding ends the process.
static ABORTS: AtomicBool = AtomicBool::new(false);
/// Hashes of the stacks that were written, so that each place is written a few times only.
static WRITTEN: [AtomicU64; 1 << 14] = [const { AtomicU64::new(0) }; 1 << 14];

/// State of a thread.
struct Audited {
    /// Bytes allocated since the last comparison.
    allocated: Cell<usize>,
    stay: Cell<u64>,
    looks: Cell<u64>,
    /// Bytes allocated less those freed and those charged, since that stay began, and since the last look.
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

/// An allocator that compares what queries hold with what they were charged. It wraps the one that counts.
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

// SAFETY: every call goes to the inner allocator as it came, and its answer goes back as it is. Comparing neither
// allocates with this allocator nor unwinds.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Auditing<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps this function's contract, which is the inner one's.
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

/// Processor time of this thread in nanoseconds.
fn processor_time() -> u64 {
    let mut now = MaybeUninit::<libc::timespec>::zeroed();
    // SAFETY: the call writes the time to `now`, which is valid for it.
    let now = unsafe {
        libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, now.as_mut_ptr());
        now.assume_init()
    };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Starts a timer that signals this thread whenever it has used some processor time.
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

/// A tick: only reads cells of this thread, the clock and the stack, and writes to the file.
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
    // SAFETY: the path ends with a zero. The first walk of a stack loads a library, which must not happen in a signal.
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
