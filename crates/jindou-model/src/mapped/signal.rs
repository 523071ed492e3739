//! The handler of SIGBUS.

use super::table;
use crate::{Error, Result};
use std::mem::MaybeUninit;
use std::path::Path;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

static LEFT_ALONE: AtomicBool = AtomicBool::new(false);
/// The previous action for SIGBUS, or the error number for which it could not be read.
static BEFORE: OnceLock<std::result::Result<libc::sigaction, i32>> = OnceLock::new();

/// Prevents the installation of a handler for SIGBUS from now on, in the whole process. Must be called before any file
/// is mapped.
///
/// Such a program should have a handler of its own that calls [`handle_fault`] first; otherwise a store's file that
/// shrinks or cannot be read ends the process.
pub fn leave_signal_alone() {
    LEFT_ALONE.store(true, Ordering::Relaxed);
}

/// Size of a page of this system, in bytes.
pub(crate) fn page_size() -> usize {
    static SIZE: OnceLock<usize> = OnceLock::new();
    *SIZE.get_or_init(|| {
        // SAFETY: the call takes no pointers.
        let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        usize::try_from(size).map_or(4096, |s| s.max(1))
    })
}

/// Installs the handler, once per process. `path` is the file that needs it, for errors.
pub(crate) fn install(path: &Path) -> Result<()> {
    // Computed here and cached, since the call is not allowed in a signal handler.
    page_size();
    if LEFT_ALONE.load(Ordering::Relaxed) {
        return Ok(());
    }
    let installed = BEFORE.get_or_init(|| {
        let failed = || std::io::Error::last_os_error().raw_os_error().unwrap_or(0);
        let mut before = MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: `before` has space for a `sigaction`, and a null pointer means that no action is set.
        if unsafe { libc::sigaction(libc::SIGBUS, ptr::null(), before.as_mut_ptr()) } != 0 {
            return Err(failed());
        }
        // SAFETY: a `sigaction` of zeros is valid, and the call has filled it in.
        Ok(unsafe { before.assume_init() })
    });
    if let Err(code) = installed {
        return Err(Error::io(path, std::io::Error::from_raw_os_error(*code)));
    }
    static INSTALLED: OnceLock<i32> = OnceLock::new();
    // The handler reads `BEFORE`, so it is installed after that is set.
    let code = INSTALLED.get_or_init(|| {
        // SAFETY: a `sigaction` of zeros is valid.
        let mut ours: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
        ours.sa_sigaction = on_fault as extern "C" fn(_, _, _) as usize;
        // The handler runs on the thread's signal stack, which all Rust threads have: this handler also receives the
        // signal when a stack has overflowed, and then that stack has no space.
        ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        // SAFETY: `ours` is complete; its handler has the signature that SA_SIGINFO requires and is async-signal-safe.
        if unsafe { libc::sigaction(libc::SIGBUS, &raw const ours, ptr::null_mut()) } != 0 {
            return std::io::Error::last_os_error().raw_os_error().unwrap_or(-1);
        }
        0
    });
    if *code != 0 {
        return Err(Error::io(path, std::io::Error::from_raw_os_error(*code)));
    }
    Ok(())
}

/// Values of `si_code` for faults at an address: pages beyond a file's end and failed reads (`BUS_ADRERR`), failed
/// devices (`BUS_OBJERR`), and memory errors at the accessed address (`BUS_MCEERR_AR`, Linux).
const CODES: std::ops::RangeInclusive<i32> = 2..=4;

/// Handles a SIGBUS whose address is in a mapped file: marks the file as failed and maps zero pages in place of those
/// that cannot be read. Returns true if it did so; then the calling handler should return, and the read continues.
/// Returns false for any other cause of the signal. Async-signal-safe.
///
/// # Safety
/// `info` must be the argument of a handler of SIGBUS that was installed with `SA_SIGINFO`, on the thread that faulted.
pub unsafe fn handle_fault(info: *const libc::siginfo_t) -> bool {
    // SAFETY: the caller's promise.
    let Some(info) = (unsafe { info.as_ref() }) else {
        return false;
    };
    // A signal sent by a process (`kill`) has no address.
    if !CODES.contains(&info.si_code) {
        return false;
    }
    // SAFETY: for these codes the system sets the address.
    let address = unsafe { info.si_addr() }.addr();
    let Some(end) = table::fail_at(address, table::Failure::Unreadable) else {
        return false;
    };
    let page = address / page_size() * page_size();
    // The rest of the file is replaced at once: after a truncation all of it is missing, and replacing single pages
    // could exceed the limit on the number of mappings.
    // SAFETY: the pages belong to a mapping of this module that is being read, so it stays mapped meanwhile. They are
    // replaced by readable pages, and nothing is written to them.
    let zeros = unsafe {
        libc::mmap(
            ptr::without_provenance_mut(page),
            end - page,
            libc::PROT_READ,
            libc::MAP_PRIVATE | libc::MAP_ANON | libc::MAP_FIXED | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    zeros != libc::MAP_FAILED
}

extern "C" fn on_fault(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let errno = Errno::save();
    // SAFETY: `info` is the argument that the system passed.
    if !unsafe { handle_fault(info) } {
        before(signal, info, context);
    }
    errno.restore();
}

/// Passes the signal to the previous handler. If there was none, restores the signal's default action; the read then
/// faults again and ends the process.
fn before(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    if let Some(Ok(action)) = BEFORE.get() {
        let handler = action.sa_sigaction;
        if handler != libc::SIG_DFL && handler != libc::SIG_IGN {
            if action.sa_flags & libc::SA_SIGINFO != 0 {
                // SAFETY: the handler was installed with SA_SIGINFO, so it has this signature.
                let handler: extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) =
                    unsafe { std::mem::transmute(handler) };
                handler(signal, info, context);
            } else {
                // SAFETY: the handler was installed without SA_SIGINFO, so it has this signature.
                let handler: extern "C" fn(i32) = unsafe { std::mem::transmute(handler) };
                handler(signal);
            }
            return;
        }
        // SAFETY: `info` is the argument that the system passed.
        let sent = unsafe { info.as_ref() }.is_none_or(|i| i.si_code <= 0);
        if handler == libc::SIG_IGN && sent {
            return;
        }
        // SAFETY: both calls are async-signal-safe; a `sigaction` of zeros is the default action.
        unsafe {
            let default: libc::sigaction = MaybeUninit::zeroed().assume_init();
            libc::sigaction(signal, &raw const default, ptr::null_mut());
            // A signal that a process sent, unlike a fault, does not recur by itself.
            if sent {
                libc::raise(signal);
            }
        }
    }
}

/// Saves and restores `errno`, which the interrupted code may be about to read and the handler may change.
struct Errno(i32);

impl Errno {
    fn place() -> *mut i32 {
        // SAFETY: the call takes no arguments, and returns the address of the thread's own `errno`.
        #[cfg(not(target_vendor = "apple"))]
        let place = unsafe { libc::__errno_location() };
        // SAFETY: as above.
        #[cfg(target_vendor = "apple")]
        let place = unsafe { libc::__error() };
        place
    }

    fn save() -> Self {
        let place = Self::place();
        // SAFETY: the address of the thread's own `errno`.
        Self(unsafe { place.as_ref() }.copied().unwrap_or(0))
    }

    fn restore(self) {
        let place = Self::place();
        // SAFETY: as above.
        if let Some(errno) = unsafe { place.as_mut() } {
            *errno = self.0;
        }
    }
}
