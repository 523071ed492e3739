//! The part of UCX's C interface that is called here, with the names of its headers (version 1.13.1, BSD-3-Clause). All
//! releases with major version 1 keep it. Structs have all fields of the headers, so that each is where UCX expects it.
#![allow(non_camel_case_types)]

use libc::{sockaddr, socklen_t};
use libloading::{Error, Library};
use std::ffi::{c_char, c_int, c_uint, c_ulong, c_void};

pub const UCP_API_MAJOR: c_uint = 1;
pub const UCP_API_MINOR: c_uint = 13;

pub type ucs_status_t = i8;
/// Null if the operation is complete; the address of a request; or an error, whose (negative) status is cast to an
/// address.
pub type ucs_status_ptr_t = *mut c_void;
pub const UCS_OK: ucs_status_t = 0;
pub const UCS_ERR_NO_MEMORY: ucs_status_t = -4;
pub const UCS_ERR_INVALID_PARAM: ucs_status_t = -5;
pub const UCS_ERR_UNSUPPORTED: ucs_status_t = -22;
pub const UCS_ERR_LAST: ucs_status_t = -100;

pub const UCP_FEATURE_RMA: c_uint = 2;
pub const UCP_FEATURE_WAKEUP: c_uint = 16;
pub const UCP_PARAM_FIELD_FEATURES: c_uint = 1;
pub const UCP_WORKER_PARAM_FIELD_THREAD_MODE: c_uint = 1;
pub const UCS_THREAD_MODE_SERIALIZED: c_uint = 1;
pub const UCP_EP_PARAM_FIELD_REMOTE_ADDRESS: c_uint = 1;
pub const UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE: c_uint = 2;
pub const UCP_EP_PARAM_FIELD_ERR_HANDLER: c_uint = 4;
pub const UCP_ERR_HANDLING_MODE_PEER: c_uint = 1;
pub const UCP_EP_CLOSE_FLAG_FORCE: c_uint = 1;
pub const UCP_MEM_MAP_PARAM_FIELD_ADDRESS: c_uint = 1;
pub const UCP_MEM_MAP_PARAM_FIELD_LENGTH: c_uint = 2;
pub const UCP_MEM_MAP_PARAM_FIELD_PROT: c_uint = 8;
pub const UCP_MEM_MAP_PROT_LOCAL_READ: c_uint = 1;
pub const UCP_MEM_MAP_PROT_REMOTE_READ: c_uint = 256;
pub const UCP_OP_ATTR_FIELD_CALLBACK: c_uint = 2;
pub const UCP_OP_ATTR_FIELD_USER_DATA: c_uint = 4;
pub const UCP_OP_ATTR_FIELD_FLAGS: c_uint = 16;

// Objects of UCX, of which only addresses are known here.
#[repr(C)]
pub struct ucp_config_t([u8; 0]);
#[repr(C)]
pub struct ucp_address_t([u8; 0]);
#[repr(C)]
pub struct ucp_context([u8; 0]);
pub type ucp_context_h = *mut ucp_context;
#[repr(C)]
pub struct ucp_worker([u8; 0]);
pub type ucp_worker_h = *mut ucp_worker;
#[repr(C)]
pub struct ucp_ep([u8; 0]);
pub type ucp_ep_h = *mut ucp_ep;
#[repr(C)]
pub struct ucp_mem([u8; 0]);
pub type ucp_mem_h = *mut ucp_mem;
#[repr(C)]
pub struct ucp_rkey([u8; 0]);
pub type ucp_rkey_h = *mut ucp_rkey;

#[repr(C)]
pub struct ucp_params_t {
    pub field_mask: u64,
    pub features: u64,
    pub request_size: usize,
    pub request_init: Option<unsafe extern "C" fn(*mut c_void)>,
    pub request_cleanup: Option<unsafe extern "C" fn(*mut c_void)>,
    pub tag_sender_mask: u64,
    pub mt_workers_shared: c_int,
    pub estimated_num_eps: usize,
    pub estimated_num_ppn: usize,
    pub name: *const c_char,
}

#[repr(C)]
pub struct ucp_worker_params_t {
    pub field_mask: u64,
    pub thread_mode: c_uint,
    pub cpu_mask: [c_ulong; 16],
    pub events: c_uint,
    pub user_data: *mut c_void,
    pub event_fd: c_int,
    pub flags: u64,
    pub name: *const c_char,
    pub am_alignment: usize,
    pub client_id: u64,
}

#[repr(C)]
pub struct ucp_mem_map_params_t {
    pub field_mask: u64,
    pub address: *mut c_void,
    pub length: usize,
    pub flags: c_uint,
    pub prot: c_uint,
    pub memory_type: c_uint,
}

#[repr(C)]
pub struct ucp_err_handler_t {
    pub cb: Option<unsafe extern "C" fn(arg: *mut c_void, ep: ucp_ep_h, status: ucs_status_t)>,
    pub arg: *mut c_void,
}

#[repr(C)]
pub struct ucs_sock_addr_t {
    pub addr: *const sockaddr,
    pub addrlen: socklen_t,
}

#[repr(C)]
pub struct ucp_ep_params_t {
    pub field_mask: u64,
    pub address: *const ucp_address_t,
    pub err_mode: c_uint,
    pub err_handler: ucp_err_handler_t,
    pub user_data: *mut c_void,
    pub flags: c_uint,
    pub sockaddr: ucs_sock_addr_t,
    pub conn_request: *mut c_void,
    pub name: *const c_char,
    pub local_sockaddr: ucs_sock_addr_t,
}

/// In the headers, `cb` and `recv_info` are unions of pointers.
#[repr(C)]
pub struct ucp_request_param_t {
    pub op_attr_mask: u32,
    pub flags: u32,
    pub request: *mut c_void,
    pub cb: Option<
        unsafe extern "C" fn(request: *mut c_void, status: ucs_status_t, user_data: *mut c_void),
    >,
    pub datatype: u64,
    pub user_data: *mut c_void,
    pub reply_buffer: *mut c_void,
    pub memory_type: c_uint,
    pub recv_info: *mut c_void,
    pub memh: ucp_mem_h,
}

/// The loaded library.
pub struct LibUcp {
    pub ucs_status_string: unsafe extern "C" fn(ucs_status_t) -> *const c_char,
    pub ucs_global_opts_set_value:
        unsafe extern "C" fn(name: *const c_char, value: *const c_char) -> ucs_status_t,
    pub ucp_config_read: unsafe extern "C" fn(
        env_prefix: *const c_char,
        filename: *const c_char,
        config: *mut *mut ucp_config_t,
    ) -> ucs_status_t,
    pub ucp_config_modify: unsafe extern "C" fn(
        *mut ucp_config_t,
        name: *const c_char,
        value: *const c_char,
    ) -> ucs_status_t,
    pub ucp_config_release: unsafe extern "C" fn(*mut ucp_config_t),
    pub ucp_init_version: unsafe extern "C" fn(
        major: c_uint,
        minor: c_uint,
        *const ucp_params_t,
        *const ucp_config_t,
        context: *mut ucp_context_h,
    ) -> ucs_status_t,
    pub ucp_cleanup: unsafe extern "C" fn(ucp_context_h),
    pub ucp_worker_create: unsafe extern "C" fn(
        ucp_context_h,
        *const ucp_worker_params_t,
        worker: *mut ucp_worker_h,
    ) -> ucs_status_t,
    pub ucp_worker_destroy: unsafe extern "C" fn(ucp_worker_h),
    pub ucp_worker_get_address: unsafe extern "C" fn(
        ucp_worker_h,
        address: *mut *mut ucp_address_t,
        length: *mut usize,
    ) -> ucs_status_t,
    pub ucp_worker_release_address: unsafe extern "C" fn(ucp_worker_h, *mut ucp_address_t),
    pub ucp_worker_progress: unsafe extern "C" fn(ucp_worker_h) -> c_uint,
    pub ucp_worker_get_efd: unsafe extern "C" fn(ucp_worker_h, fd: *mut c_int) -> ucs_status_t,
    pub ucp_worker_arm: unsafe extern "C" fn(ucp_worker_h) -> ucs_status_t,
    pub ucp_ep_create: unsafe extern "C" fn(
        ucp_worker_h,
        *const ucp_ep_params_t,
        ep: *mut ucp_ep_h,
    ) -> ucs_status_t,
    pub ucp_ep_close_nbx:
        unsafe extern "C" fn(ucp_ep_h, *const ucp_request_param_t) -> ucs_status_ptr_t,
    pub ucp_mem_map: unsafe extern "C" fn(
        ucp_context_h,
        *const ucp_mem_map_params_t,
        memh: *mut ucp_mem_h,
    ) -> ucs_status_t,
    pub ucp_mem_unmap: unsafe extern "C" fn(ucp_context_h, ucp_mem_h) -> ucs_status_t,
    pub ucp_rkey_pack: unsafe extern "C" fn(
        ucp_context_h,
        ucp_mem_h,
        buffer: *mut *mut c_void,
        size: *mut usize,
    ) -> ucs_status_t,
    pub ucp_rkey_buffer_release: unsafe extern "C" fn(*mut c_void),
    pub ucp_ep_rkey_unpack: unsafe extern "C" fn(
        ucp_ep_h,
        buffer: *const c_void,
        rkey: *mut ucp_rkey_h,
    ) -> ucs_status_t,
    pub ucp_rkey_destroy: unsafe extern "C" fn(ucp_rkey_h),
    pub ucp_get_nbx: unsafe extern "C" fn(
        ucp_ep_h,
        buffer: *mut c_void,
        count: usize,
        remote_addr: u64,
        ucp_rkey_h,
        *const ucp_request_param_t,
    ) -> ucs_status_ptr_t,
    pub ucp_request_free: unsafe extern "C" fn(*mut c_void),
    /// The functions are valid as long as this.
    _library: Library,
}

/// The function with this name.
///
/// # Safety
/// `T` must be the function's type, and the result must not outlive the library.
unsafe fn function<T: Copy>(library: &Library, name: &str) -> Result<T, Error> {
    // SAFETY: as the caller promises.
    unsafe { library.get(name.as_bytes()).map(|symbol| *symbol) }
}

impl LibUcp {
    /// Loads the library with this file name.
    ///
    /// # Safety
    /// The file must be UCX.
    pub unsafe fn new(name: &str) -> Result<Self, Error> {
        // SAFETY: the caller promises that this is UCX, whose constructors may run in any process. The types of the
        // functions are those of its headers.
        unsafe {
            let library = Library::new(name)?;
            let of = &library;
            Ok(Self {
                ucs_status_string: function(of, "ucs_status_string")?,
                ucs_global_opts_set_value: function(of, "ucs_global_opts_set_value")?,
                ucp_config_read: function(of, "ucp_config_read")?,
                ucp_config_modify: function(of, "ucp_config_modify")?,
                ucp_config_release: function(of, "ucp_config_release")?,
                ucp_init_version: function(of, "ucp_init_version")?,
                ucp_cleanup: function(of, "ucp_cleanup")?,
                ucp_worker_create: function(of, "ucp_worker_create")?,
                ucp_worker_destroy: function(of, "ucp_worker_destroy")?,
                ucp_worker_get_address: function(of, "ucp_worker_get_address")?,
                ucp_worker_release_address: function(of, "ucp_worker_release_address")?,
                ucp_worker_progress: function(of, "ucp_worker_progress")?,
                ucp_worker_get_efd: function(of, "ucp_worker_get_efd")?,
                ucp_worker_arm: function(of, "ucp_worker_arm")?,
                ucp_ep_create: function(of, "ucp_ep_create")?,
                ucp_ep_close_nbx: function(of, "ucp_ep_close_nbx")?,
                ucp_mem_map: function(of, "ucp_mem_map")?,
                ucp_mem_unmap: function(of, "ucp_mem_unmap")?,
                ucp_rkey_pack: function(of, "ucp_rkey_pack")?,
                ucp_rkey_buffer_release: function(of, "ucp_rkey_buffer_release")?,
                ucp_ep_rkey_unpack: function(of, "ucp_ep_rkey_unpack")?,
                ucp_rkey_destroy: function(of, "ucp_rkey_destroy")?,
                ucp_get_nbx: function(of, "ucp_get_nbx")?,
                ucp_request_free: function(of, "ucp_request_free")?,
                _library: library,
            })
        }
    }
}
