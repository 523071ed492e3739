//! One-sided reads over UCX: RDMA where the hardware supports it, TCP elsewhere.
//!
//! `libucp.so.0` is loaded only by [`UcxTransport::new`].
//!
//! UCX leaves these tasks to its users:
//!
//! - **A progress thread**: UCX's emulated reads complete only while their *target* makes progress. The thread sleeps
//!   on UCX's event descriptor.
//! - **Naming devices**: they are always given explicitly, because UCX's default is every interface it finds.
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
