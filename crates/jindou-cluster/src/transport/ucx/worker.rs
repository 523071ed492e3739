//! The UCX worker: the only place from which UCX is called. All calls are made under the lock that
//! [`super::core::Core`] keeps around it; UCX's callbacks run inside them.

use super::bindings::*;
use super::frame::{Incoming, UcxFrame};
use super::library::{Started, check, started, text};
use super::operation::{
    Callbacks, EndpointContext, Sending, UcxOperation, on_broken, on_closed, on_message, on_part,
    on_sent,
};
use super::{Fabric, UcxOptions};
use crate::transport::{Result, TransportError};
use std::ffi::{CString, c_void};
use std::os::fd::RawFd;
use std::ptr::{self, NonNull};
use std::sync::Arc;

/// Most bytes that one operation reads; longer reads go in rounds.
pub(super) const LANDING: usize = 256 << 10;
/// Landing size of pooled operations, enough for most neighbour lists.
const SMALL_LANDING: usize = 16 << 10;
/// Most pooled operations.
const SPARE: usize = 16;
/// The active-message id of all our messages.
const MESSAGE_ID: u32 = 1;

struct UcxEndpoint {
    handle: ucp_ep_h,
    /// True if UCX can close it without asking the peer.
    closable: bool,
    /// Unpacked access keys and their regions' base addresses, by slot.
    keys: Vec<(ucp_rkey_h, u64)>,
    /// Error context, whose address UCX holds until the worker is gone.
    _context: Fixed<EndpointContext>,
}

/// A value on the heap whose address foreign code holds. It is not a box: moving a box promises the compiler that
/// earlier pointers to it are not used any more.
struct Fixed<T>(NonNull<T>);

impl<T> Fixed<T> {
    fn new(value: T) -> Self {
        Self(NonNull::from(Box::leak(Box::new(value))))
    }

    fn as_ptr(&self) -> *mut T {
        self.0.as_ptr()
    }
}

impl<T> Drop for Fixed<T> {
    fn drop(&mut self) {
        // SAFETY: leaked in `new`, and taken back once.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

/// One read to start: the peer's address and the number of bytes.
pub(super) struct RemoteRead {
    pub address: u64,
    pub len: usize,
}

/// UCX's handles.
pub(super) struct Worker {
    lib: &'static LibUcp,
    context: ucp_context_h,
    /// Null once destroyed.
    handle: ucp_worker_h,
    /// True once nothing may be started or driven any more.
    closed: bool,
    /// True if a pointer of [`Self::pointer`] may be in use: keys and worker stay until the worker is dropped.
    mapped: bool,
    callbacks: NonNull<Callbacks>,
    endpoints: Vec<Option<UcxEndpoint>>,
    /// Closed endpoints: their keys are destroyed with the worker, when no operation is in progress any more.
    graveyard: Vec<UcxEndpoint>,
    /// Pooled operations, each with [`SMALL_LANDING`].
    spare: Vec<Arc<UcxOperation>>,
    next_request: u64,
}

// SAFETY: UCX handles may be used from any thread, one at a time (UCS_THREAD_MODE_SERIALIZED); the mutex
// around the worker sees to that. The worker owns `callbacks`.
unsafe impl Send for Worker {}

impl Worker {
    pub(super) fn new(lib: &'static LibUcp, options: &UcxOptions) -> Result<Self> {
        let mut config = ptr::null_mut();
        // SAFETY: out-pointers to locals; null prefix and file mean UCX's defaults and environment.
        let status = unsafe { lib.ucp_config_read(ptr::null(), ptr::null(), &mut config) };
        check(lib, status, "reading the configuration")?;
        for (name, value) in [
            (c"TLS", options.fabric.ucx_transports()),
            (c"NET_DEVICES", options.devices.as_str()),
        ] {
            let value = CString::new(value)
                .map_err(|_| TransportError::Refused("a device name has a zero byte".into()))?;
            // SAFETY: a configuration just read, and C strings.
            let status = unsafe { lib.ucp_config_modify(config, name.as_ptr(), value.as_ptr()) };
            check(lib, status, "setting transports and devices")?;
        }
        // SAFETY: all-zero is valid for this struct of integers and pointers; `field_mask` says what counts.
        let mut params: ucp_params_t = unsafe { std::mem::zeroed() };
        params.field_mask = u64::from(UCP_PARAM_FIELD_FEATURES);
        params.features = u64::from(UCP_FEATURE_RMA | UCP_FEATURE_AM | UCP_FEATURE_WAKEUP);
        let mut context = ptr::null_mut();
        // SAFETY: pointers to locals; the version is the bindings' own.
        let status = unsafe {
            let s =
                lib.ucp_init_version(UCP_API_MAJOR, UCP_API_MINOR, &params, config, &mut context);
            lib.ucp_config_release(config);
            s
        };
        check(lib, status, "starting (do the named devices exist?)")?;
        // SAFETY: as for `params`.
        let mut params: ucp_worker_params_t = unsafe { std::mem::zeroed() };
        params.field_mask = u64::from(UCP_WORKER_PARAM_FIELD_THREAD_MODE);
        params.thread_mode = UCS_THREAD_MODE_SERIALIZED;
        let mut handle = ptr::null_mut();
        // SAFETY: a context just made, pointers to locals.
        let status = unsafe { lib.ucp_worker_create(context, &params, &mut handle) };
        if status != UCS_OK {
            // SAFETY: nothing uses the context.
            unsafe { lib.ucp_cleanup(context) };
        }
        let call = match options.fabric {
            Fabric::SharedMemory => "making a worker (does /dev/shm have 8 MiB free?)",
            Fabric::Tcp | Fabric::Best => "making a worker",
        };
        check(lib, status, call)?;
        let callbacks = NonNull::from(Box::leak(Box::<Callbacks>::default()));
        let worker = Self {
            lib,
            context,
            handle,
            closed: false,
            mapped: false,
            callbacks,
            endpoints: Vec::new(),
            graveyard: Vec::new(),
            spare: Vec::new(),
            next_request: 1,
        };
        // SAFETY: as for `params`.
        let mut params: ucp_am_handler_param_t = unsafe { std::mem::zeroed() };
        params.field_mask = u64::from(
            UCP_AM_HANDLER_PARAM_FIELD_ID
                | UCP_AM_HANDLER_PARAM_FIELD_CB
                | UCP_AM_HANDLER_PARAM_FIELD_ARG,
        );
        params.id = MESSAGE_ID;
        params.cb = Some(on_message);
        params.arg = callbacks.as_ptr().cast();
        // SAFETY: `callbacks` lives as long as the worker's handle.
        let status = unsafe { lib.ucp_worker_set_am_recv_handler(worker.handle, &params) };
        check(lib, status, "setting the message handler")?;
        Ok(worker)
    }

    fn callbacks(&mut self) -> &mut Callbacks {
        // SAFETY: owned by the worker and touched under its lock only; no UCX call is made while the
        // reference lives, as it borrows the worker.
        unsafe { self.callbacks.as_mut() }
    }

    pub(super) fn take_arrived(&mut self) -> (Vec<Incoming>, Vec<(u32, ucs_status_t)>) {
        let c = self.callbacks();
        (
            std::mem::take(&mut c.arrived),
            std::mem::take(&mut c.broken),
        )
    }

    pub(super) fn event_descriptor(&mut self) -> Result<RawFd> {
        let mut fd = -1;
        // SAFETY: valid handle, pointer to a local.
        let status = unsafe { self.lib.ucp_worker_get_efd(self.handle, &mut fd) };
        check(self.lib, status, "getting the event descriptor")?;
        Ok(fd)
    }

    /// Makes the event descriptor signal the next event; false if there is work already.
    pub(super) fn arm(&mut self) -> bool {
        // SAFETY: valid handle or skipped.
        !self.closed && unsafe { self.lib.ucp_worker_arm(self.handle) } == UCS_OK
    }

    /// The address with which others make endpoints to this worker.
    pub(super) fn address(&mut self) -> Result<Vec<u8>> {
        self.open()?;
        let (mut address, mut len) = (ptr::null_mut(), 0);
        // SAFETY: valid handle, pointers to locals; the address is copied before it is released.
        unsafe {
            let status = self
                .lib
                .ucp_worker_get_address(self.handle, &mut address, &mut len);
            check(self.lib, status, "getting the worker's address")?;
            let bytes = std::slice::from_raw_parts(address.cast::<u8>(), len).to_vec();
            self.lib.ucp_worker_release_address(self.handle, address);
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

    /// Registers memory for reading by others: returns the handle, the address from which they read, and the key to
    /// send them. The caller keeps the memory alive until [`Self::unregister`] or [`Self::destroy`]. With `copy` UCX
    /// makes a shared segment with the same content, and the address is the segment's.
    pub(super) fn register(
        &mut self,
        bytes: &[u8],
        copy: bool,
    ) -> Result<(MemoryHandle, u64, Vec<u8>)> {
        self.open()?;
        if bytes.is_empty() {
            return Ok((MemoryHandle(ptr::null_mut()), 0, Vec::new()));
        }
        // SAFETY: as in `new`.
        let mut params: ucp_mem_map_params_t = unsafe { std::mem::zeroed() };
        params.length = bytes.len();
        params.field_mask = u64::from(UCP_MEM_MAP_PARAM_FIELD_LENGTH);
        if copy {
            params.field_mask |= u64::from(UCP_MEM_MAP_PARAM_FIELD_FLAGS);
            params.flags = UCP_MEM_MAP_ALLOCATE;
        } else {
            params.field_mask |=
                u64::from(UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_PROT);
            params.address = bytes.as_ptr().cast_mut().cast();
            // Read-only, so that a mapped file can be registered.
            params.prot = UCP_MEM_MAP_PROT_LOCAL_READ | UCP_MEM_MAP_PROT_REMOTE_READ;
        }
        let mut handle = ptr::null_mut();
        // SAFETY: the memory is alive now and kept so by the caller; UCX only reads it.
        let status = unsafe { self.lib.ucp_mem_map(self.context, &params, &mut handle) };
        check(self.lib, status, "registering memory")?;
        match self.export(bytes, copy, handle) {
            Ok((address, key)) => Ok((MemoryHandle(handle), address, key)),
            Err(e) => {
                // SAFETY: just made, used by nothing else.
                unsafe { self.lib.ucp_mem_unmap(self.context, handle) };
                Err(e)
            }
        }
    }

    /// Fills a segment that UCX made, and packs the key.
    fn export(&mut self, bytes: &[u8], copy: bool, handle: ucp_mem_h) -> Result<(u64, Vec<u8>)> {
        let mut address = bytes.as_ptr() as u64;
        if copy {
            // SAFETY: as in `new`.
            let mut attributes: ucp_mem_attr = unsafe { std::mem::zeroed() };
            attributes.field_mask = u64::from(UCP_MEM_ATTR_FIELD_ADDRESS);
            // SAFETY: a handle just made, pointer to a local.
            let status = unsafe { self.lib.ucp_mem_query(handle, &mut attributes) };
            check(self.lib, status, "finding a shared segment")?;
            let to = attributes.address.cast::<u8>();
            // SAFETY: UCX allocated at least as many bytes, which nothing else knows of yet.
            unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
            address = to as u64;
        }
        let (mut key, mut len) = (ptr::null_mut(), 0);
        // SAFETY: a live handle, pointers to locals; the key is copied before it is released.
        unsafe {
            let status = self
                .lib
                .ucp_rkey_pack(self.context, handle, &mut key, &mut len);
            check(self.lib, status, "packing a memory key")?;
            let bytes = std::slice::from_raw_parts(key.cast::<u8>(), len).to_vec();
            self.lib.ucp_rkey_buffer_release(key);
            Ok((address, bytes))
        }
    }

    /// Ends a registration.
    pub(super) fn unregister(&mut self, handle: &MemoryHandle) {
        if !self.closed && !handle.0.is_null() {
            // SAFETY: made by `register` on this context and unmapped once: the caller owns and drops it.
            unsafe { self.lib.ucp_mem_unmap(self.context, handle.0) };
        }
    }

    /// Makes an endpoint to a peer's worker address; returns its number.
    pub(super) fn connect(&mut self, address: &[u8], fabric: Fabric) -> Result<u32> {
        self.open()?;
        let number = self.endpoints.len() as u32;
        let context = Fixed::new(EndpointContext {
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
        params.err_mode = if fabric.reports_death() {
            UCP_ERR_HANDLING_MODE_PEER
        } else {
            UCP_ERR_HANDLING_MODE_NONE
        };
        params.err_handler.cb = Some(on_broken);
        params.err_handler.arg = context.as_ptr().cast();
        let mut handle = ptr::null_mut();
        // SAFETY: the address is copied by UCX; `context` outlives the endpoint.
        let status = unsafe { self.lib.ucp_ep_create(self.handle, &params, &mut handle) };
        check(
            self.lib,
            status,
            "connecting (do both ends use the same transport?)",
        )?;
        self.endpoints.push(Some(UcxEndpoint {
            handle,
            closable: fabric.reports_death(),
            keys: Vec::new(),
            _context: context,
        }));
        Ok(number)
    }

    fn endpoint(&mut self, number: u32) -> Result<&mut UcxEndpoint> {
        let slot = self.endpoints.get_mut(number as usize);
        slot.and_then(Option::as_mut).ok_or(TransportError::Closed)
    }

    /// Unpacks a key for reading over an endpoint; returns its slot.
    pub(super) fn attach(&mut self, number: u32, key: &[u8], base: u64) -> Result<u32> {
        let lib = self.lib;
        let endpoint = self.endpoint(number)?;
        let mut handle = ptr::null_mut();
        if !key.is_empty() {
            // SAFETY: a live endpoint, pointers to live memory. UCX trusts the key's content, see the
            // trust boundary in the transport's documentation.
            let status = unsafe {
                lib.ucp_ep_rkey_unpack(endpoint.handle, key.as_ptr().cast(), &mut handle)
            };
            check(lib, status, "unpacking a memory key")?;
        }
        endpoint.keys.push((handle, base));
        Ok(endpoint.keys.len() as u32 - 1)
    }

    /// The address of a slot's region in this process, if the fabric maps it: readable as long as the worker lives,
    /// even after the peer's death, a disconnect and [`Self::destroy`].
    pub(super) fn pointer(&mut self, number: u32, slot: u32) -> Option<*const u8> {
        let lib = self.lib;
        let endpoint = self.endpoint(number).ok()?;
        let &(key, base) = endpoint
            .keys
            .get(slot as usize)
            .filter(|k| !k.0.is_null())?;
        let mut pointer = ptr::null_mut();
        // SAFETY: a live key of this endpoint, pointer to a local.
        let status = unsafe { lib.ucp_rkey_ptr(key, base, &mut pointer) };
        (status == UCS_OK && !pointer.is_null()).then(|| {
            self.mapped = true;
            pointer.cast_const().cast()
        })
    }

    /// An operation with room for `bytes`, pooled if small.
    pub(super) fn operation(&mut self, bytes: usize) -> Arc<UcxOperation> {
        if bytes <= SMALL_LANDING {
            self.spare
                .pop()
                .unwrap_or_else(|| UcxOperation::new(self.lib, SMALL_LANDING))
        } else {
            UcxOperation::new(self.lib, bytes)
        }
    }

    /// Takes an operation back into the pool if nothing else holds it.
    pub(super) fn recycle(&mut self, operation: Arc<UcxOperation>) {
        if self.spare.len() < SPARE
            && operation.capacity() == SMALL_LANDING
            && operation.failure().is_none()
            && Arc::strong_count(&operation) == 1
        {
            self.spare.push(operation);
        }
    }

    /// Starts reading `parts` of the region in a slot (offsets from its start) into the operation's landing.
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
        params.cb.send = Some(on_part);
        params.user_data = Arc::as_ptr(operation).cast_mut().cast();
        let mut at = 0;
        for part in parts {
            if at + part.len > operation.capacity() {
                return Err(TransportError::Refused(
                    "more than one round of bytes".into(),
                ));
            }
            // SAFETY: the landing has room after `at` (just checked) and lives until the callback, which
            // holds the count added below; the key belongs to this endpoint.
            let pointer = unsafe {
                lib.ucp_get_nbx(
                    endpoint.handle,
                    operation.landing().add(at).cast::<c_void>(),
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

    /// Starts sending a message; true if UCX still holds a part of it, which is sent with later progress.
    pub(super) fn send(&mut self, number: u32, frame: UcxFrame, payload: Vec<u8>) -> Result<bool> {
        let lib = self.lib;
        let endpoint = self.endpoint(number)?.handle;
        let sending = Box::into_raw(Box::new(Sending {
            lib,
            frame,
            payload,
        }));
        // SAFETY: as in `new`.
        let mut params: ucp_request_param_t = unsafe { std::mem::zeroed() };
        params.op_attr_mask =
            UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
        // Eager, so that a message needs only progress from the peer; large data is transferred by reads.
        params.flags = UCP_AM_SEND_FLAG_EAGER;
        params.cb.send = Some(on_sent);
        params.user_data = sending.cast();
        // SAFETY: `sending` lives until the callback frees it, or until it is freed below because no
        // callback follows.
        let pointer = unsafe {
            lib.ucp_am_send_nbx(
                endpoint,
                MESSAGE_ID,
                ptr::from_ref(&(*sending).frame).cast(),
                size_of::<UcxFrame>(),
                (*sending).payload.as_ptr().cast(),
                (*sending).payload.len(),
                &params,
            )
        };
        match started(pointer) {
            Started::Pending => Ok(true),
            outcome => {
                // SAFETY: complete or failed without a callback, so the box is ours again.
                drop(unsafe { Box::from_raw(sending) });
                match outcome {
                    Started::Failed(status) => Err(TransportError::PeerDead {
                        peer: String::new(),
                        reason: text(lib, status),
                    }),
                    _ => Ok(false),
                }
            }
        }
    }

    /// Numbers a request and lets its reply end `operation`.
    pub(super) fn await_reply(&mut self, operation: &Arc<UcxOperation>) -> u64 {
        let request = self.next_request;
        self.next_request += 1;
        operation.begin_part();
        self.callbacks()
            .awaited
            .insert(request, Arc::clone(operation));
        request
    }

    /// Stops awaiting a reply; a late one is dropped.
    pub(super) fn forget_reply(&mut self, request: u64) {
        self.callbacks().awaited.remove(&request);
    }

    /// Drives progress once; true if anything happened.
    pub(super) fn progress(&mut self) -> bool {
        // SAFETY: valid handle or skipped; callbacks touch `callbacks` only, into which no reference is held.
        !self.closed && unsafe { self.lib.ucp_worker_progress(self.handle) } != 0
    }

    /// UCX's text for a status.
    pub(super) fn text(&self, status: ucs_status_t) -> String {
        text(self.lib, status)
    }

    /// Force-closes an endpoint: operations in progress on it end with an error. (If UCX cannot close it, the endpoint
    /// is no longer used and is destroyed with the worker; operations in progress own their memory.)
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
        params.cb.send = Some(on_closed);
        params.user_data = ptr::from_ref(self.lib).cast_mut().cast();
        if endpoint.closable {
            // SAFETY: the endpoint was taken out of the table, so it is closed once and used no more.
            let _ = unsafe { self.lib.ucp_ep_close_nbx(endpoint.handle, &params) };
        }
        self.graveyard.push(endpoint);
    }
}

impl Worker {
    /// Force-closes all endpoints.
    pub(super) fn disconnect_all(&mut self) {
        for number in 0..self.endpoints.len() as u32 {
            self.disconnect(number);
        }
    }

    /// Ends registrations, worker and context; every later call finds the worker closed. If pointers into peers' memory
    /// were given out, everything but the registrations stays until the worker is dropped.
    pub(super) fn destroy(&mut self, registrations: &[MemoryHandle]) {
        if self.closed {
            return;
        }
        self.closed = true;
        for r in registrations.iter().filter(|r| !r.0.is_null()) {
            // SAFETY: made by `register` on this context, and used by nothing any more.
            unsafe { self.lib.ucp_mem_unmap(self.context, r.0) };
        }
        if !self.mapped {
            self.end();
        }
    }

    /// Ends keys, worker and context.
    fn end(&mut self) {
        self.closed = true;
        let handle = std::mem::replace(&mut self.handle, ptr::null_mut());
        if handle.is_null() {
            return;
        }
        self.disconnect_all();
        let graveyard = std::mem::take(&mut self.graveyard);
        // SAFETY: handles made by us and used by nothing any more (`closed` keeps all who come later out);
        // keys before the worker, the worker before the context, the endpoints' contexts after it.
        unsafe {
            for (key, _) in graveyard.iter().flat_map(|e| &e.keys) {
                if !key.is_null() {
                    self.lib.ucp_rkey_destroy(*key);
                }
            }
            self.lib.ucp_worker_destroy(handle);
            self.lib.ucp_cleanup(self.context);
        }
    }
}

/// A registration.
pub(super) struct MemoryHandle(ucp_mem_h);
// SAFETY: used under the worker's lock only.
unsafe impl Send for MemoryHandle {}
// SAFETY: as above.
unsafe impl Sync for MemoryHandle {}

impl Drop for Worker {
    fn drop(&mut self) {
        self.end();
        // SAFETY: the worker that called back into it is destroyed; allocated by `Box` in `new`.
        drop(unsafe { Box::from_raw(self.callbacks.as_ptr()) });
    }
}
