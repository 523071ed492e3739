//! Exploration on a GPU (ATC '18): segments in device memory, a plan's steps as kernels over a history table
//! that stays there.
//!
//! ```text
//! plan ─ compile ─► device steps ─ execute ─► kernels (kernels/*.cu) ─ Device ─ Backend ─► CUDA driver │ CPU shim
//!                     segments brought, constants resolved
//! ```
//!
//! The driver is loaded when a GPU is asked for, never linked; without one, [`open`] says so in a sentence and nothing
//! else changes. With the feature `shim`, which needs a C++ compiler, the same kernels run on the CPU, which is how
//! tests check them.

pub mod backend;
mod buffer;
mod cache;
pub mod checksum;
mod compile;
mod cost;
mod counts;
mod cuda;
pub mod device;
mod execute;
mod executor;
pub mod faults;
mod fleet;
mod groups;
pub mod index;
mod lazy;
mod pages;
pub mod params;
mod predict;
mod profile;
mod queue;
mod random;
mod ranks;
#[cfg(any(test, feature = "testing"))]
pub mod reference;
#[cfg(any(test, feature = "testing"))]
pub mod replay;
mod resident;
mod results;
mod ring;
mod run;
#[cfg(feature = "shim")]
pub mod shim;
mod steps;
mod table;
mod turns;

pub use backend::{Backend, Kernel};
pub use buffer::{DeviceBuffer, DeviceMemory, HostBuffer};
pub use cache::SegmentCache;
pub use cost::{Calibration, Decision, Prediction};
#[cfg(any(test, feature = "testing"))]
pub use cost::{Chooser, PlanWork, RowsUse};
pub use cuda::{Cuda, FATBIN};
pub use device::Device;
pub use execute::{GpuExecutor, GpuOptions, GpuResult, ResultUse, RowSink};
pub use fleet::Fleet;
pub use lazy::{LazyGpu, Opener};
pub use pages::{PagingOptions, Transfers};
pub use profile::{GpuProfile, GpuStep, KernelUse};
pub use resident::ResidentSegment;
pub use ring::RingOptions;
pub use steps::ReduceOptions;

use std::sync::Arc;

/// The device that this machine offers: a GPU, or with `JINDOU_GPU=shim` in the environment the CPU in its
/// place (feature `shim`). The error is one sentence for the user.
pub fn open() -> Result<Arc<dyn Backend>, String> {
    open_number(0)
}

/// The device with this number, from 0, or the reason why there is none.
pub(crate) fn open_number(number: usize) -> Result<Arc<dyn Backend>, String> {
    match std::env::var("JINDOU_GPU").as_deref() {
        Ok("shim") => open_shim(),
        Ok("off") => Err("the GPU is switched off (JINDOU_GPU=off)".into()),
        _ => Cuda::open_number(number).map(|c| Arc::new(c) as Arc<dyn Backend>),
    }
}

/// Number of devices that this machine may offer. If there is none, opening the first says why.
pub(crate) fn count() -> usize {
    match std::env::var("JINDOU_GPU").as_deref() {
        Ok("shim" | "off") => 1,
        _ => Cuda::count(),
    }
}

#[cfg(feature = "shim")]
fn open_shim() -> Result<Arc<dyn Backend>, String> {
    match shim::Shim::open(shim::ShimOptions::default()) {
        Ok(s) => Ok(Arc::new(s)),
        Err(e) => Err(e.to_string()),
    }
}

#[cfg(not(feature = "shim"))]
fn open_shim() -> Result<Arc<dyn Backend>, String> {
    Err("JINDOU_GPU=shim is for tests: this program was built without the feature `shim` of jindou-gpu".into())
}
