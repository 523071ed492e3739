//! The handler of SIGBUS.

use super::table;
use crate::{Error, Result};
use std::mem::MaybeUninit;
use std::path::Path;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

static LEFT_ALONE: AtomicBool = AtomicBool::new(false);
/// The action that was there before, or the number of the error that kept ours out.
static BEFORE: OnceLock<std::result::Result<libc::sigaction, i32>> = OnceLock::new();

/// Leaves SIGBUS to the program: no handler is installed from here on. Must be called before anything is opened.
/// Applies to the whole process.
///
/// Such a program should call [`handle_fault`] first in a handler of its own; otherwise a store's file that shrinks or
/// cannot be read ends the process.
pub fn leave_signal_alone() {
    LEFT_ALONE.store(true, Ordering::Relaxed);
}

/// Bytes of a page of this system.
pub(crate) fn page_size() -> usize {
    static SIZE: OnceLock<usize> = OnceLock::new();
    *SIZE.get_or_init(|| {
        // SAFETY: the call takes no pointers.
        let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        usize::try_from(size).map_or(4096, |s| s.max(1))
    })
}

/// Installs the handler, once a process.
pub(crate) fn install(path: &Path) -> Result<()> {
    // Computed and kept here, since a signal handler may not compute it.
    page_size();
    if LEFT_ALONE.load(Ordering::Relaxed) {
        return Ok(());
    }
    let installed = BEFORE.get_or_init(|| {
        let failed = || std::io::Error::last_os_error().raw_os_error().unwrap_or(0);
        let mut before = MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: `before` is a place for a `sigaction`, and there is no new one to read.
        if unsafe { libc::sigaction(libc::SIGBUS, ptr::null(), before.as_mut_ptr()) } != 0 {
            return Err(failed());
        }
        // SAFETY: all zeros are a `sigaction`, and the call has filled it in.
        Ok(unsafe { before.assume_init() })
    });
    if let Err(code) = installed {
        return Err(Error::io(path, std::io::Error::from_raw_os_error(*code)));
    }
    static INSTALLED: OnceLock<i32> = OnceLock::new();
    // After `BEFORE` is set, which the handler reads.
    let code = INSTALLED.get_or_init(|| {
        // SAFETY: all zeros are a `sigaction`.
        let mut ours: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
        ours.sa_sigaction = on_fault as extern "C" fn(_, _, _) as usize;
        // On the stack for signals where a thread has one, as all of Rust's have: a stack that overflowed has no room.
        ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        // SAFETY: `ours` is whole, its handler has the signature that SA_SIGINFO asks for and is async-signal-safe.
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

/// The signal's codes for addresses that cannot be had: pages beyond a file's end and failed reads (`BUS_ADRERR`), failed
/// devices (`BUS_OBJERR`), failed memory that is needed now (`BUS_MCEERR_AR`, Linux).
const CODES: std::ops::RangeInclusive<i32> = 2..=4;

/// Handles a SIGBUS whose address is in a mapped file: marks the file as failed and maps zero pages in place of those
/// that cannot be read. Returns true if it did; then the handler should return, and the read continues. Returns false
/// for every other signal. Async-signal-safe.
///
/// # Safety
/// `info` must be the argument of a handler of SIGBUS that was installed with `SA_SIGINFO`, on the thread that faulted.
pub unsafe fn handle_fault(info: *const libc::siginfo_t) -> bool {
    // SAFETY: the caller's promise.
    let Some(info) = (unsafe { info.as_ref() }) else {
        return false;
    };
    // One that something sent has no address.
    if !CODES.contains(&info.si_code) {
        return false;
    }
    // SAFETY: with these codes the system has set the address.
    let address = unsafe { info.si_addr() }.addr();
    let Some(end) = table::fail_at(address, table::Failure::Unreadable) else {
        return false;
    };
    let page = address / page_size() * page_size();
    // The rest of the file at once: after a cut all of it is gone, and page by page there would be too many mappings.
    // SAFETY: the pages belong to a mapping of ours that something is reading, so it stays mapped meanwhile. They are replaced by
    // pages that can be read, and nothing is written to them.
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
    // SAFETY: what the system gave.
    if !unsafe { handle_fault(info) } {
        before(signal, info, context);
    }
    errno.restore();
}

/// Hands the signal to the previous handler. Where that is the system, the signal's default is set again; the read that faulted then
/// ends the process, as it would have.
fn before(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    if let Some(Ok(action)) = BEFORE.get() {
        let handler = action.sa_sigaction;
        if handler != libc::SIG_DFL && handler != libc::SIG_IGN {
            if action.sa_flags & libc::SA_SIGINFO != 0 {
                // SAFETY: it was installed with SA_SIGINFO, so this is its signature.
                let handler: extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) =
                    unsafe { std::mem::transmute(handler) };
                handler(signal, info, context);
            } else {
                // SAFETY: it was installed without SA_SIGINFO, so this is its signature.
                let handler: extern "C" fn(i32) = unsafe { std::mem::transmute(handler) };
                handler(signal);
            }
            return;
        }
        // SAFETY: the caller hands on what the system gave.
        let sent = unsafe { info.as_ref() }.is_none_or(|i| i.si_code <= 0);
        if handler == libc::SIG_IGN && sent {
            return;
        }
        // SAFETY: both calls are async-signal-safe; all zeros are a `sigaction` with the default.
        unsafe {
            let default: libc::sigaction = MaybeUninit::zeroed().assume_init();
            libc::sigaction(signal, &raw const default, ptr::null_mut());
            // One that something sent does not come again by itself.
            if sent {
                libc::raise(signal);
            }
        }
    }
}

/// Saves and restores `errno`, which the interrupted code may be about to read.
struct Errno(i32);

impl Errno {
    fn place() -> *mut i32 {
        // SAFETY: the call gives the thread's own place.
        #[cfg(not(target_vendor = "apple"))]
        let place = unsafe { libc::__errno_location() };
        // SAFETY: as above.
        #[cfg(target_vendor = "apple")]
        let place = unsafe { libc::__error() };
        place
    }

    fn save() -> Self {
        let place = Self::place();
        // SAFETY: the thread's own place.
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
