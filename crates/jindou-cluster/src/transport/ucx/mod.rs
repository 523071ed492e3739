//! Reads over UCX: RDMA where the hardware supports it, TCP elsewhere.
//!
//! `libucp.so.0` is loaded only by [`UcxTransport::new`], through bindings that are generated once
//! (`scripts/ucx-bindings.sh`) and committed.
//!
//! The tasks that UCX leaves to its users are done here:
//!
//! - **A progress thread**: UCX's emulated reads complete only while their *target* makes progress. The thread sleeps
//!   on UCX's event descriptor.
//! - **Devices** are always named explicitly (UCX's default is every interface it finds).
//!
//! Nothing here is authenticated; see [`crate::transport`] for the trust boundary.

mod bindings;
mod core;
mod library;
mod link;
mod operation;
mod parts;
mod progress;
mod sync;
mod transport;
mod worker;

pub use library::available;
pub use transport::UcxTransport;
