//! `libucp.so.0`, loaded when a cluster is configured and not before.

use super::bindings::{LibUcp, UCS_OK, ucs_status_ptr_t, ucs_status_t};
use crate::transport::{Result, TransportError};
use std::ffi::CStr;
use std::sync::OnceLock;

/// The library's name; major version 1 of UCX keeps its interface stable under it.
const NAME: &str = "libucp.so.0";

/// Whether UCX can be loaded here. Loads it (and keeps it: UCX patches memory functions of the process, so
/// it must never be unloaded).
pub fn available() -> Result<()> {
    load().map(|_| ())
}

/// Loads UCX, once a process.
pub(super) fn load() -> Result<&'static LibUcp> {
    static LOADED: OnceLock<LibUcp> = OnceLock::new();
    if let Some(lib) = LOADED.get() {
        return Ok(lib);
    }
    // SAFETY: loading runs the library's constructors, which are UCX's own and made for that.
    let lib = unsafe { LibUcp::new(NAME) }.map_err(|e| {
        TransportError::Unavailable(format!(
            "{NAME} is not installed or too old ({e}); a cluster needs UCX 1.13 or later (Debian: apt-get install libucx0)"
        ))
    })?;
    // UCX writes warnings of broken connections to standard output, where results go.
    // SAFETY: both arguments are C strings; the call sets a number.
    unsafe { lib.ucs_global_opts_set_value(c"LOG_LEVEL".as_ptr(), c"FATAL".as_ptr()) };
    // Of two threads that load at once the second one's handle is closed; the first one's keeps the library where it is.
    Ok(LOADED.get_or_init(|| lib))
}

/// UCX's text for a status.
pub(super) fn text(lib: &LibUcp, status: ucs_status_t) -> String {
    // SAFETY: the function returns a static C string for any number.
    let text = unsafe { CStr::from_ptr(lib.ucs_status_string(status)) };
    text.to_string_lossy().into_owned()
}

/// Ok, or which call failed and why.
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
    /// Under way; the callback follows.
    Pending,
    /// Failed; no callback follows.
    Failed(ucs_status_t),
}

/// Takes a returned pointer apart: null is done, the last 100 addresses are error numbers.
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
