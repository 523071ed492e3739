//! An operation in progress, and the callbacks by which UCX reports on it.

use super::bindings::*;
use super::parts::PendingParts;
use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

/// One read of several ranges.
///
/// It owns the memory that UCX writes to, and every part that UCX still works on holds a reference count, so its
/// starter may abandon it at a deadline.
pub(super) struct UcxOperation {
    lib: &'static LibUcp,
    /// Parts that UCX is still working on.
    parts: PendingParts,
    /// First failure; 0 if there is none.
    failure: AtomicI32,
    /// Written by UCX while there are parts, by nothing after that.
    landing: Box<[UnsafeCell<u64>]>,
}

// SAFETY: `landing` is written by UCX only while there are parts and read by the operation's owner only once there are none
// (`PendingParts::done` acquires what `PendingParts::end` releases); everything else is atomic or behind a lock.
unsafe impl Sync for UcxOperation {}
// SAFETY: nothing in it belongs to a thread.
unsafe impl Send for UcxOperation {}

impl UcxOperation {
    /// An operation with room for `bytes` of data.
    pub(super) fn new(lib: &'static LibUcp, bytes: usize) -> Arc<Self> {
        Arc::new(Self {
            lib,
            parts: PendingParts::default(),
            failure: AtomicI32::new(0),
            landing: (0..bytes.div_ceil(8)).map(|_| UnsafeCell::new(0)).collect(),
        })
    }

    /// True once UCX works on no part of it.
    #[inline]
    pub(super) fn done(&self) -> bool {
        self.parts.done()
    }

    /// Counts one more part.
    pub(super) fn begin_part(&self) {
        self.parts.begin();
    }

    /// Counts one part less, and wakes the thread that sleeps for the last one.
    pub(super) fn end_part(&self, status: ucs_status_t) {
        if status != UCS_OK {
            self.failure.store(i32::from(status), Ordering::Relaxed);
        }
        self.parts.end();
    }

    /// The first failure of its parts.
    pub(super) fn failure(&self) -> Option<ucs_status_t> {
        match self.failure.load(Ordering::Relaxed) {
            0 => None,
            n => Some(n as ucs_status_t),
        }
    }

    /// Sleeps until it is done, for at most `wait`; may return early.
    pub(super) fn park(&self, wait: Duration) {
        self.parts.park(|| std::thread::park_timeout(wait));
    }

    /// Memory that UCX may write.
    pub(super) fn landing(&self) -> *mut u8 {
        self.landing.as_ptr().cast_mut().cast()
    }

    /// Bytes at [`Self::landing`].
    pub(super) fn capacity(&self) -> usize {
        self.landing.len() * 8
    }
}

/// The state that UCX's callbacks write to. Touched only under the worker's lock.
#[derive(Default)]
pub(super) struct Callbacks {
    /// Endpoints that UCX found broken.
    pub broken: Vec<(u32, ucs_status_t)>,
    /// Endpoints that UCX has closed.
    pub closed: Vec<u32>,
}

/// Context to which an endpoint's callbacks report.
pub(super) struct EndpointContext {
    pub lib: &'static LibUcp,
    pub callbacks: *mut Callbacks,
    pub number: u32,
}

/// Called when one part of a read is complete.
pub(super) unsafe extern "C" fn on_part(
    request: *mut c_void,
    status: ucs_status_t,
    user: *mut c_void,
) {
    // SAFETY: `user` is the count of the operation that was leaked for this part.
    let operation = unsafe { Arc::from_raw(user.cast::<UcxOperation>()) };
    // SAFETY: the request is complete and freed nowhere else; UCX allows that inside the callback.
    unsafe { operation.lib.ucp_request_free(request) };
    operation.end_part(status);
}

/// Called when an endpoint is closed.
pub(super) unsafe extern "C" fn on_closed(
    request: *mut c_void,
    _status: ucs_status_t,
    user: *mut c_void,
) {
    // SAFETY: `user` is the endpoint's context, alive until the worker is destroyed or this call was seen; callbacks as in
    // `on_broken`, the request as in `on_part`.
    unsafe {
        let context = &*user.cast::<EndpointContext>();
        (*context.callbacks).closed.push(context.number);
        context.lib.ucp_request_free(request);
    }
}

/// Called when an endpoint has broken.
pub(super) unsafe extern "C" fn on_broken(arg: *mut c_void, _ep: ucp_ep_h, status: ucs_status_t) {
    // SAFETY: `arg` is the endpoint's context, alive until the worker is destroyed; callbacks run inside
    // progress or a posting call, under the worker's lock, whose holder keeps no reference into the
    // callbacks across such calls.
    unsafe {
        let context = &*arg.cast::<EndpointContext>();
        (*context.callbacks).broken.push((context.number, status));
    }
}
