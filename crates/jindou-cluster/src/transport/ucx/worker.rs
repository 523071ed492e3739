//! The UCX worker: all calls of UCX are made here, under the lock in [`super::core::Core`]. UCX's callbacks run inside
//! these calls.

use super::bindings::*;
use super::library::{Started, check, started, text};
use super::operation::{Callbacks, EndpointContext, UcxOperation, on_broken, on_closed, on_part};
use crate::transport::{Result, TransportError};
use std::ffi::{CString, c_void};
use std::os::fd::RawFd;
use std::ptr::{self, NonNull};
use std::sync::Arc;

/// Largest number of bytes that one operation reads. Longer reads take several rounds.
pub(super) const MAX_BUFFER: usize = 256 << 10;
/// Buffer size in bytes of pooled operations, enough for most neighbour lists.
const SMALL_BUFFER: usize = 16 << 10;
/// Largest number of pooled operations.
const SPARE: usize = 16;

struct UcxEndpoint {
    handle: ucp_ep_h,
    /// Unpacked access keys, with the base addresses of their regions, by slot.
    keys: Vec<(ucp_rkey_h, u64)>,
    /// Argument of the callbacks. UCX keeps its address until the worker is destroyed.
    context: PinnedAllocation<EndpointContext>,
}

/// A value on the heap whose address foreign code keeps. Not a `Box`, because moving a `Box` asserts that earlier
/// pointers to its value are no longer used.
struct PinnedAllocation<T>(NonNull<T>);

impl<T> PinnedAllocation<T> {
    fn new(value: T) -> Self {
        Self(NonNull::from(Box::leak(Box::new(value))))
    }

    fn as_ptr(&self) -> *mut T {
        self.0.as_ptr()
    }
}

impl<T> Drop for PinnedAllocation<T> {
    fn drop(&mut self) {
        // SAFETY: the pointer comes from `Box::leak` in `new`, and is converted back only here.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

/// One part of a read: offset from the region's start, and number of bytes.
pub(super) struct RemoteRead {
    pub address: u64,
    pub len: usize,
}

/// The handles of UCX: context, worker and endpoints.
pub(super) struct Worker {
    lib: &'static LibUcp,
    context: ucp_context_h,
    /// Null once the worker was destroyed.
    handle: ucp_worker_h,
    /// True once no operation may be started and no progress driven.
    closed: bool,
    callbacks: NonNull<Callbacks>,
    endpoints: Vec<Option<UcxEndpoint>>,
    /// Endpoints that are being closed. Operations in progress may still use their keys.
    closing: Vec<UcxEndpoint>,
    /// Contexts of closed endpoints, kept until the worker is destroyed.
    contexts: Vec<PinnedAllocation<EndpointContext>>,
    /// Pooled operations, each with [`SMALL_BUFFER`] bytes.
    spare: Vec<Arc<UcxOperation>>,
}

// SAFETY: UCX handles may be used from any thread, by one thread at a time (UCS_THREAD_MODE_SERIALIZED), which the
// mutex around the worker ensures. The worker owns `callbacks`.
unsafe impl Send for Worker {}

impl Worker {
    pub(super) fn new(lib: &'static LibUcp, devices: &str) -> Result<Self> {
        let mut config = ptr::null_mut();
        // SAFETY: the out-pointer is to a local variable; null for prefix and file selects UCX's defaults and
        // environment.
        let status = unsafe { (lib.ucp_config_read)(ptr::null(), ptr::null(), &mut config) };
        check(lib, status, "reading the configuration")?;
        for (name, value) in [(c"TLS", "all"), (c"NET_DEVICES", devices)] {
            let value = CString::new(value)
                .map_err(|_| TransportError::Refused("a device name has a zero byte".into()))?;
            // SAFETY: `config` was just read, and both texts are C strings.
            let status = unsafe { (lib.ucp_config_modify)(config, name.as_ptr(), value.as_ptr()) };
            check(lib, status, "setting transports and devices")?;
        }
        // SAFETY: all zeros are valid for this struct of integers and pointers; UCX reads only the fields in
        // `field_mask`.
        let mut params: ucp_params_t = unsafe { std::mem::zeroed() };
        params.field_mask = u64::from(UCP_PARAM_FIELD_FEATURES);
        params.features = u64::from(UCP_FEATURE_RMA | UCP_FEATURE_WAKEUP);
        let mut context = ptr::null_mut();
        // SAFETY: all pointers are to local variables; the version is that of the bindings.
        let status = unsafe {
            let s =
                (lib.ucp_init_version)(UCP_API_MAJOR, UCP_API_MINOR, &params, config, &mut context);
            (lib.ucp_config_release)(config);
            s
        };
        check(lib, status, "starting (do the named devices exist?)")?;
        // SAFETY: as for `params`.
        let mut params: ucp_worker_params_t = unsafe { std::mem::zeroed() };
        params.field_mask = u64::from(UCP_WORKER_PARAM_FIELD_THREAD_MODE);
        params.thread_mode = UCS_THREAD_MODE_SERIALIZED;
        let mut handle = ptr::null_mut();
        // SAFETY: `context` was just created, and all pointers are to local variables.
        let status = unsafe { (lib.ucp_worker_create)(context, &params, &mut handle) };
        if status != UCS_OK {
            // SAFETY: nothing uses the context.
            unsafe { (lib.ucp_cleanup)(context) };
        }
        check(lib, status, "making a worker")?;
        let callbacks = NonNull::from(Box::leak(Box::<Callbacks>::default()));
        Ok(Self {
            lib,
            context,
            handle,
            closed: false,
            callbacks,
            endpoints: Vec::new(),
            closing: Vec::new(),
            contexts: Vec::new(),
            spare: Vec::new(),
        })
    }

    fn callbacks(&mut self) -> &mut Callbacks {
        // SAFETY: the worker owns `callbacks`, which are accessed under its lock only; no UCX call is made while the
        // reference lives, as the reference borrows the worker.
        unsafe { self.callbacks.as_mut() }
    }

    /// Endpoints that UCX reported as broken since the last call.
    pub(super) fn take_broken(&mut self) -> Vec<(u32, ucs_status_t)> {
        std::mem::take(&mut self.callbacks().broken)
    }

    pub(super) fn event_descriptor(&mut self) -> Result<RawFd> {
        let mut fd = -1;
        // SAFETY: the handle is valid, and the pointer is to a local variable.
        let status = unsafe { (self.lib.ucp_worker_get_efd)(self.handle, &mut fd) };
        check(self.lib, status, "getting the event descriptor")?;
        Ok(fd)
    }

    /// Arms the event descriptor for the next event. Returns false if there is already work to do.
    pub(super) fn arm(&mut self) -> bool {
        // SAFETY: the handle is valid while `closed` is false; otherwise the call is skipped.
        !self.closed && unsafe { (self.lib.ucp_worker_arm)(self.handle) } == UCS_OK
    }

    /// The address with which peers create endpoints to this worker.
    pub(super) fn address(&mut self) -> Result<Vec<u8>> {
        self.open()?;
        let (mut address, mut len) = (ptr::null_mut(), 0);
        // SAFETY: the handle is valid, and the pointers are to local variables; the address is copied before it is
        // released.
        unsafe {
            let status = (self.lib.ucp_worker_get_address)(self.handle, &mut address, &mut len);
            check(self.lib, status, "getting the worker's address")?;
            let bytes = std::slice::from_raw_parts(address.cast::<u8>(), len).to_vec();
            (self.lib.ucp_worker_release_address)(self.handle, address);
            Ok(bytes)
        }
    }

    fn open(&self) -> Result<()> {
        if self.closed {
            Err(TransportError::Closed)
        } else {
            Ok(())
        }
    }

    /// Registers memory for reads by peers. Returns the handle, and the key to send to peers. The caller must keep the
    /// memory alive until [`Self::unregister`] or [`Self::destroy`].
    pub(super) fn register(&mut self, bytes: &[u8]) -> Result<(MemoryHandle, Vec<u8>)> {
        self.open()?;
        if bytes.is_empty() {
            return Ok((MemoryHandle(ptr::null_mut()), Vec::new()));
        }
        // SAFETY: as in `new`.
        let mut params: ucp_mem_map_params_t = unsafe { std::mem::zeroed() };
        params.field_mask = u64::from(
            UCP_MEM_MAP_PARAM_FIELD_ADDRESS
                | UCP_MEM_MAP_PARAM_FIELD_LENGTH
                | UCP_MEM_MAP_PARAM_FIELD_PROT,
        );
        params.address = bytes.as_ptr().cast_mut().cast();
        params.length = bytes.len();
        // Without write access, so that a read-only mapping can be registered.
        params.prot = UCP_MEM_MAP_PROT_LOCAL_READ | UCP_MEM_MAP_PROT_REMOTE_READ;
        let mut handle = ptr::null_mut();
        // SAFETY: the memory is alive now and kept so by the caller; UCX only reads it.
        let status = unsafe { (self.lib.ucp_mem_map)(self.context, &params, &mut handle) };
        check(self.lib, status, "registering memory")?;
        match self.pack(handle) {
            Ok(key) => Ok((MemoryHandle(handle), key)),
            Err(e) => {
                // SAFETY: the handle was just created, and nothing else uses it.
                unsafe { (self.lib.ucp_mem_unmap)(self.context, handle) };
                Err(e)
            }
        }
    }

    /// The key of a registration, for peers.
    fn pack(&mut self, handle: ucp_mem_h) -> Result<Vec<u8>> {
        let (mut key, mut len) = (ptr::null_mut(), 0);
        // SAFETY: the handle is valid, and the pointers are to local variables; the key is copied before it is
        // released.
        unsafe {
            let status = (self.lib.ucp_rkey_pack)(self.context, handle, &mut key, &mut len);
            check(self.lib, status, "packing a memory key")?;
            let bytes = std::slice::from_raw_parts(key.cast::<u8>(), len).to_vec();
            (self.lib.ucp_rkey_buffer_release)(key);
            Ok(bytes)
        }
    }

    pub(super) fn unregister(&mut self, handle: &MemoryHandle) {
        if !self.closed && !handle.0.is_null() {
            // SAFETY: the handle was created by `register` on this context, and is unmapped only once, because the
            // caller owns and drops it.
            unsafe { (self.lib.ucp_mem_unmap)(self.context, handle.0) };
        }
    }

    /// Creates an endpoint to a peer's worker address. Returns its number.
    pub(super) fn connect(&mut self, address: &[u8]) -> Result<u32> {
        self.open()?;
        let number = self.endpoints.len() as u32;
        let context = PinnedAllocation::new(EndpointContext {
            lib: self.lib,
            callbacks: self.callbacks.as_ptr(),
            number,
        });
        // SAFETY: as in `new`.
        let mut params: ucp_ep_params_t = unsafe { std::mem::zeroed() };
        params.field_mask = u64::from(
            UCP_EP_PARAM_FIELD_REMOTE_ADDRESS
                | UCP_EP_PARAM_FIELD_ERR_HANDLER
                | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE,
        );
        params.address = address.as_ptr().cast();
        params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
        params.err_handler.cb = Some(on_broken);
        params.err_handler.arg = context.as_ptr().cast();
        let mut handle = ptr::null_mut();
        // SAFETY: the address is copied by UCX; `context` outlives the endpoint.
        let status = unsafe { (self.lib.ucp_ep_create)(self.handle, &params, &mut handle) };
        check(
            self.lib,
            status,
            "connecting (can the devices of both ends reach each other?)",
        )?;
        self.endpoints.push(Some(UcxEndpoint {
            handle,
            keys: Vec::new(),
            context,
        }));
        Ok(number)
    }

    fn endpoint(&mut self, number: u32) -> Result<&mut UcxEndpoint> {
        let slot = self.endpoints.get_mut(number as usize);
        slot.and_then(Option::as_mut).ok_or(TransportError::Closed)
    }

    /// Unpacks a key for reads over an endpoint. Returns the key's slot.
    pub(super) fn attach(&mut self, number: u32, key: &[u8], base: u64) -> Result<u32> {
        let lib = self.lib;
        let endpoint = self.endpoint(number)?;
        let mut handle = ptr::null_mut();
        if !key.is_empty() {
            // SAFETY: the endpoint is open, and the pointers are valid. UCX trusts the key's content; see the trust
            // boundary in the transport's documentation.
            let status = unsafe {
                (lib.ucp_ep_rkey_unpack)(endpoint.handle, key.as_ptr().cast(), &mut handle)
            };
            check(lib, status, "unpacking a memory key")?;
        }
        endpoint.keys.push((handle, base));
        Ok(endpoint.keys.len() as u32 - 1)
    }

    /// An operation for `bytes` of data; from the pool if small.
    pub(super) fn operation(&mut self, bytes: usize) -> Arc<UcxOperation> {
        if bytes <= SMALL_BUFFER {
            self.spare
                .pop()
                .unwrap_or_else(|| UcxOperation::new(self.lib, SMALL_BUFFER))
        } else {
            UcxOperation::new(self.lib, bytes)
        }
    }

    /// Returns an operation to the pool, if nothing else holds a reference to it.
    pub(super) fn recycle(&mut self, operation: Arc<UcxOperation>) {
        if self.spare.len() < SPARE
            && operation.capacity() == SMALL_BUFFER
            && operation.failure().is_none()
            && Arc::strong_count(&operation) == 1
        {
            self.spare.push(operation);
        }
    }

    /// Starts to read `parts` of the region in `slot` (offsets from the region's start) into the operation's memory.
    pub(super) fn read(
        &mut self,
        number: u32,
        slot: u32,
        parts: &[RemoteRead],
        operation: &Arc<UcxOperation>,
    ) -> Result<()> {
        let lib = self.lib;
        let endpoint = self.endpoint(number)?;
        let &(key, base) = endpoint
            .keys
            .get(slot as usize)
            .filter(|k| !k.0.is_null())
            .ok_or_else(|| TransportError::Refused("the region belongs to another peer".into()))?;
        // SAFETY: as in `new`.
        let mut params: ucp_request_param_t = unsafe { std::mem::zeroed() };
        params.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
        params.cb = Some(on_part);
        params.user_data = Arc::as_ptr(operation).cast_mut().cast();
        let mut at = 0;
        for part in parts {
            if at + part.len > operation.capacity() {
                return Err(TransportError::Refused(
                    "more than one round of bytes".into(),
                ));
            }
            // SAFETY: the landing buffer has `part.len` bytes after `at` (just checked), and lives until the callback,
            // which owns the reference that is leaked below; the key belongs to this endpoint.
            let pointer = unsafe {
                (lib.ucp_get_nbx)(
                    endpoint.handle,
                    operation.buffer().add(at).cast::<c_void>(),
                    part.len,
                    base.wrapping_add(part.address),
                    key,
                    &params,
                )
            };
            at += part.len;
            match started(pointer) {
                Started::Done => {}
                Started::Pending => {
                    operation.begin_part();
                    std::mem::forget(Arc::clone(operation));
                }
                Started::Failed(status) => {
                    operation.begin_part();
                    operation.end_part(status);
                    break;
                }
            }
        }
        Ok(())
    }

    /// Drives progress once; returns true if anything happened.
    pub(super) fn progress(&mut self) -> bool {
        // SAFETY: the handle is valid while `closed` is false, otherwise the call is skipped; callbacks write to
        // `callbacks` only, into which no reference is held.
        let some = !self.closed && unsafe { (self.lib.ucp_worker_progress)(self.handle) } != 0;
        if some {
            self.release_closed();
        }
        some
    }

    /// UCX's text for a status.
    pub(super) fn text(&self, status: ucs_status_t) -> String {
        text(self.lib, status)
    }

    /// Force-closes an endpoint: operations in progress on it end with an error. If UCX cannot close the endpoint, it
    /// is no longer used, and destroyed with the worker; operations in progress own their memory.
    pub(super) fn disconnect(&mut self, number: u32) {
        let slot = self.endpoints.get_mut(number as usize);
        let Some(endpoint) = slot.and_then(Option::take) else {
            return;
        };
        // SAFETY: as in `new`.
        let mut params: ucp_request_param_t = unsafe { std::mem::zeroed() };
        params.op_attr_mask =
            UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
        params.flags = UCP_EP_CLOSE_FLAG_FORCE;
        params.cb = Some(on_closed);
        params.user_data = endpoint.context.as_ptr().cast();
        // SAFETY: the endpoint was removed from the table, so it is closed only once and no longer used; its context
        // lives until the callback.
        let closing = unsafe { (self.lib.ucp_ep_close_nbx)(endpoint.handle, &params) };
        match started(closing) {
            Started::Done => self.release(endpoint),
            Started::Pending | Started::Failed(_) => self.closing.push(endpoint),
        }
    }

    /// Destroys the keys of a closed endpoint, and keeps its context.
    fn release(&mut self, endpoint: UcxEndpoint) {
        for (key, _) in endpoint.keys.iter().filter(|k| !k.0.is_null()) {
            // SAFETY: the key was unpacked for this endpoint, on which no operation is in progress any more.
            unsafe { (self.lib.ucp_rkey_destroy)(*key) };
        }
        self.contexts.push(endpoint.context);
    }

    /// Destroys the keys of endpoints that were closed since the last call.
    fn release_closed(&mut self) {
        for number in std::mem::take(&mut self.callbacks().closed) {
            let is_it = |e: &UcxEndpoint| {
                // SAFETY: the context lives as long as its endpoint, and its number never changes.
                unsafe { (*e.context.as_ptr()).number == number }
            };
            if let Some(at) = self.closing.iter().position(is_it) {
                let endpoint = self.closing.swap_remove(at);
                self.release(endpoint);
            }
        }
    }
}

impl Worker {
    /// Force-closes all endpoints.
    pub(super) fn disconnect_all(&mut self) {
        for number in 0..self.endpoints.len() as u32 {
            self.disconnect(number);
        }
    }

    /// Ends registrations, worker and context. Later calls find the worker closed.
    pub(super) fn destroy(&mut self, registrations: &[MemoryHandle]) {
        if self.closed {
            return;
        }
        for r in registrations.iter().filter(|r| !r.0.is_null()) {
            // SAFETY: the handle was created by `register` on this context, and nothing uses it any more.
            unsafe { (self.lib.ucp_mem_unmap)(self.context, r.0) };
        }
        self.end();
    }

    /// Destroys keys, worker and context.
    fn end(&mut self) {
        self.closed = true;
        let handle = std::mem::replace(&mut self.handle, ptr::null_mut());
        if handle.is_null() {
            return;
        }
        self.disconnect_all();
        // Keys are destroyed before the worker, the endpoints' contexts after it.
        for endpoint in std::mem::take(&mut self.closing) {
            self.release(endpoint);
        }
        // SAFETY: this worker created both handles, and nothing uses them any more, since later calls see `closed`. The
        // worker is destroyed before its context.
        unsafe {
            (self.lib.ucp_worker_destroy)(handle);
            (self.lib.ucp_cleanup)(self.context);
        }
    }
}

/// Handle of a registration.
pub(super) struct MemoryHandle(ucp_mem_h);
// SAFETY: used under the worker's lock only.
unsafe impl Send for MemoryHandle {}
// SAFETY: used under the worker's lock only.
unsafe impl Sync for MemoryHandle {}

impl Drop for Worker {
    fn drop(&mut self) {
        self.end();
        // SAFETY: `callbacks` was allocated by `Box` in `new`, and the UCX worker that wrote to it is destroyed.
        drop(unsafe { Box::from_raw(self.callbacks.as_ptr()) });
    }
}
