//! An operation in progress, and the callbacks by which UCX reports its completion.

use super::bindings::*;
use super::parts::PendingParts;
use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

/// A read of several parts.
///
/// The operation owns the memory that UCX writes to, and each part that UCX still works on holds a reference to the
/// operation. So its caller may abandon it at a deadline.
pub(super) struct UcxOperation {
    lib: &'static LibUcp,
    /// Number of parts that UCX still works on.
    parts: PendingParts,
    /// Status of the first failed part; 0 if none has failed.
    failure: AtomicI32,
    /// Receives the data. Written by UCX while parts are pending, and not written after that.
    buffer: Box<[UnsafeCell<u64>]>,
}

// SAFETY: `buffer` is written by UCX only while there are parts and read by the operation's owner only once there are
// none (`PendingParts::done` acquires what `PendingParts::end` releases); everything else is atomic or behind a lock.
unsafe impl Sync for UcxOperation {}
// SAFETY: no field is bound to the thread that created it.
unsafe impl Send for UcxOperation {}

impl UcxOperation {
    /// Creates an operation for `bytes` of data.
    pub(super) fn new(lib: &'static LibUcp, bytes: usize) -> Arc<Self> {
        Arc::new(Self {
            lib,
            parts: PendingParts::default(),
            failure: AtomicI32::new(0),
            buffer: (0..bytes.div_ceil(8)).map(|_| UnsafeCell::new(0)).collect(),
        })
    }

    /// True once UCX works on no part of the operation.
    #[inline]
    pub(super) fn done(&self) -> bool {
        self.parts.done()
    }

    /// Counts another pending part.
    pub(super) fn begin_part(&self) {
        self.parts.begin();
    }

    /// Records the completion of a part. If it was the last one, wakes up the waiting thread.
    pub(super) fn end_part(&self, status: ucs_status_t) {
        if status != UCS_OK {
            self.failure.store(i32::from(status), Ordering::Relaxed);
        }
        self.parts.end();
    }

    /// Status of a failed part, if there is one.
    pub(super) fn failure(&self) -> Option<ucs_status_t> {
        match self.failure.load(Ordering::Relaxed) {
            0 => None,
            n => Some(n as ucs_status_t),
        }
    }

    /// Sleeps until the operation is complete, for at most `wait`. May return early.
    pub(super) fn park(&self, wait: Duration) {
        self.parts.park(|| std::thread::park_timeout(wait));
    }

    /// Address of the memory that UCX writes to.
    pub(super) fn buffer(&self) -> *mut u8 {
        self.buffer.as_ptr().cast_mut().cast()
    }

    /// Size in bytes of the memory at [`Self::buffer`].
    pub(super) fn capacity(&self) -> usize {
        self.buffer.len() * 8
    }
}

/// State that UCX's callbacks write to. Accessed only under the worker's lock.
#[derive(Default)]
pub(super) struct Callbacks {
    /// Numbers of endpoints that UCX reported as broken, with the status.
    pub broken: Vec<(u32, ucs_status_t)>,
    /// Numbers of endpoints that UCX has closed.
    pub closed: Vec<u32>,
}

/// Argument of an endpoint's callbacks.
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
    // SAFETY: `user` is a reference to the operation, leaked when this part was started, and taken back only here.
    let operation = unsafe { Arc::from_raw(user.cast::<UcxOperation>()) };
    // SAFETY: the request is complete and freed nowhere else; UCX allows that inside the callback.
    unsafe { (operation.lib.ucp_request_free)(request) };
    operation.end_part(status);
}

/// Called when an endpoint is closed.
pub(super) unsafe extern "C" fn on_closed(
    request: *mut c_void,
    _status: ucs_status_t,
    user: *mut c_void,
) {
    // SAFETY: `user` is the endpoint's context, which lives until the worker is destroyed or has handled this call. For
    // `callbacks` see `on_broken`, for the request see `on_part`.
    unsafe {
        let context = &*user.cast::<EndpointContext>();
        (*context.callbacks).closed.push(context.number);
        (context.lib.ucp_request_free)(request);
    }
}

/// Called when an endpoint has broken.
pub(super) unsafe extern "C" fn on_broken(arg: *mut c_void, _ep: ucp_ep_h, status: ucs_status_t) {
    // SAFETY: `arg` is the endpoint's context, which lives until the worker is destroyed. UCX calls this inside a call
    // that drives progress or starts an operation, under the worker's lock, and the lock's holder keeps no reference
    // into `callbacks` across such calls.
    unsafe {
        let context = &*arg.cast::<EndpointContext>();
        (*context.callbacks).broken.push((context.number, status));
    }
}
