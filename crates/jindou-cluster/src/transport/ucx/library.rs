//! `libucp.so.0`, loaded only by servers that are told to read each other's memory.

use super::bindings::{LibUcp, UCS_OK, ucs_status_ptr_t, ucs_status_t};
use crate::transport::{Result, TransportError};
use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::OnceLock;

/// The library's name; major version 1 of UCX keeps its interface stable under it.
const NAME: &str = "libucp.so.0";

/// Fault signals that UCX takes over when it is loaded, in order to print a trace and end the process. SIGBUS signals
/// that a mapped file cannot be read, which must end a query and not the server.
const FAULTS: [i32; 4] = [libc::SIGILL, libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE];

/// Loads the library, and restores the handlers of the fault signals.
fn open() -> std::result::Result<LibUcp, libloading::Error> {
    let before = FAULTS.map(|signal| {
        let mut action = MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: `action` is a place for a `sigaction`, and there is no new one to read.
        let known = unsafe { libc::sigaction(signal, ptr::null(), action.as_mut_ptr()) } == 0;
        // SAFETY: all zeros are a `sigaction`, and the call has filled it in or left it.
        (signal, known.then(|| unsafe { action.assume_init() }))
    });
    // SAFETY: loading runs the library's constructors, which are UCX's own and made for that.
    let found = unsafe { LibUcp::new(NAME) };
    for (signal, action) in before {
        if let Some(action) = action {
            // SAFETY: an action that was the signal's a moment ago.
            unsafe { libc::sigaction(signal, &raw const action, ptr::null_mut()) };
        }
    }
    found
}

/// Ok if UCX can be loaded on this machine. Loads it and keeps it: UCX patches memory functions of the process, so it
/// must never be unloaded.
pub fn available() -> Result<()> {
    load().map(|_| ())
}

/// Loads UCX once per process.
pub(super) fn load() -> Result<&'static LibUcp> {
    static LOADED: OnceLock<LibUcp> = OnceLock::new();
    if let Some(lib) = LOADED.get() {
        return Ok(lib);
    }
    let lib = open().map_err(|e| {
        TransportError::Unavailable(format!(
            "{NAME} is not installed or too old ({e}); servers that read each other's memory need its version 1.13 or later (Debian: apt-get install libucx0)"
        ))
    })?;
    // UCX writes warnings of broken connections to standard output, where results go.
    // SAFETY: both arguments are C strings; the call sets a number.
    unsafe { lib.ucs_global_opts_set_value(c"LOG_LEVEL".as_ptr(), c"FATAL".as_ptr()) };
    // If two threads load at once, the second one's handle is closed; the first one keeps the library loaded.
    Ok(LOADED.get_or_init(|| lib))
}

/// UCX's text for a status.
pub(super) fn text(lib: &LibUcp, status: ucs_status_t) -> String {
    // SAFETY: the function returns a static C string for any number.
    let text = unsafe { CStr::from_ptr(lib.ucs_status_string(status)) };
    text.to_string_lossy().into_owned()
}

/// Ok, or an error with the failed call and the reason.
pub(super) fn check(lib: &LibUcp, status: ucs_status_t, call: &str) -> Result<()> {
    if status == UCS_OK {
        return Ok(());
    }
    Err(TransportError::Unavailable(format!(
        "UCX: {call}: {}",
        text(lib, status)
    )))
}

/// The result of a non-blocking call (`UCS_PTR_IS_ERR` and friends of the C headers).
pub(super) enum Started {
    /// Complete; no callback follows.
    Done,
    /// In progress; the callback follows.
    Pending,
    /// Failed; no callback follows.
    Failed(ucs_status_t),
}

/// Interprets a returned pointer: null means done, the last 100 addresses are error numbers.
pub(super) fn started(pointer: ucs_status_ptr_t) -> Started {
    let n = pointer as isize;
    if n == 0 {
        Started::Done
    } else if (super::bindings::UCS_ERR_LAST as isize..0).contains(&n) {
        Started::Failed(n as ucs_status_t)
    } else {
        Started::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handlers() -> [usize; 4] {
        FAULTS.map(|signal| {
            let mut action = MaybeUninit::<libc::sigaction>::zeroed();
            // SAFETY: as in `open`.
            unsafe {
                libc::sigaction(signal, ptr::null(), action.as_mut_ptr());
                action.assume_init().sa_sigaction
            }
        })
    }

    #[test]
    fn signals_for_faults_stay_as_they_were() {
        // Mapped files of other tests set one, too, but only once.
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "x").unwrap();
        let _mapped = jindou_model::mapped::MappedFile::open(file.path()).unwrap();
        let before = handlers();
        if let Err(e) = load() {
            println!("skipped: {e}");
            return;
        }
        let _end = super::super::UcxTransport::new("lo").unwrap();
        assert_eq!(handlers(), before);
    }
}
