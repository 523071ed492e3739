//! Loading of `libucp.so.0`. Only servers that are configured to read each other's memory load the library.

use super::bindings::{LibUcp, UCS_OK, ucs_status_ptr_t, ucs_status_t};
use crate::transport::{Result, TransportError};
use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::OnceLock;

/// File name of the library. All UCX releases with major version 1 have this name and a compatible interface.
const NAME: &str = "libucp.so.0";

/// Signals whose handlers UCX replaces when it is loaded, in order to print a trace and abort the process. SIGBUS is
/// raised when a mapped file cannot be read, which must make a query fail and not end the server.
const FAULTS: [i32; 4] = [libc::SIGILL, libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE];

/// Loads the library, and restores the previous handlers of [`FAULTS`].
fn open() -> std::result::Result<LibUcp, libloading::Error> {
    let before = FAULTS.map(|signal| {
        let mut action = MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: `action` has the size of a `sigaction`, and no new action is passed that would be read.
        let known = unsafe { libc::sigaction(signal, ptr::null(), action.as_mut_ptr()) } == 0;
        // SAFETY: all zeros are a valid `sigaction`, and the call has either filled in `action` or left it unchanged.
        (signal, known.then(|| unsafe { action.assume_init() }))
    });
    // SAFETY: loading runs the library's constructors, which are part of UCX and made to run in any process.
    let found = unsafe { LibUcp::new(NAME) };
    for (signal, action) in before {
        if let Some(action) = action {
            // SAFETY: `action` was this signal's action before the library was loaded.
            unsafe { libc::sigaction(signal, &raw const action, ptr::null_mut()) };
        }
    }
    found
}

/// Ok if UCX can be loaded on this machine. The library is loaded and stays loaded: UCX patches memory functions of the
/// process, so it must never be unloaded.
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
    // Otherwise UCX writes warnings about broken connections to standard output, where query results are written.
    // SAFETY: both arguments are C strings; the call only sets an option.
    unsafe { (lib.ucs_global_opts_set_value)(c"LOG_LEVEL".as_ptr(), c"FATAL".as_ptr()) };
    // If two threads load at once, the second handle is closed; the first one keeps the library loaded.
    Ok(LOADED.get_or_init(|| lib))
}

/// UCX's text for a status.
pub(super) fn text(lib: &LibUcp, status: ucs_status_t) -> String {
    // SAFETY: the function returns a static C string for any number.
    let text = unsafe { CStr::from_ptr((lib.ucs_status_string)(status)) };
    text.to_string_lossy().into_owned()
}

/// Ok, or an error with the failed call and UCX's reason.
pub(super) fn check(lib: &LibUcp, status: ucs_status_t, call: &str) -> Result<()> {
    if status == UCS_OK {
        return Ok(());
    }
    Err(TransportError::Unavailable(format!(
        "UCX: {call}: {}",
        text(lib, status)
    )))
}

/// The outcome of a non-blocking call (`UCS_PTR_IS_ERR` and similar macros of the C headers).
pub(super) enum Started {
    /// Complete; no callback follows.
    Done,
    /// In progress; the callback follows.
    Pending,
    /// Failed; no callback follows.
    Failed(ucs_status_t),
}

/// Interprets a returned pointer: null means done, and the last 100 addresses are error codes.
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
        // Other tests' mapped files install a handler, too, but only once. So install it before the comparison.
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
