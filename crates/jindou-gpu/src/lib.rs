//! Exploration on a GPU (ATC '18): segments and the history table are in device memory, and the steps of a plan are
//! kernels.
//!
//! ```text
//! plan ─ compile ─► device steps ─ execute ─► kernels (kernels/*.cu) ─ Device ─ Backend ─► CUDA driver │ CPU shim
//!                     segments uploaded, constants resolved
//! ```
//!
//! The CUDA driver is loaded when a GPU is first needed, not linked. Without a driver, [`open`] returns an error that
//! says so, and everything else works. With the feature `shim`, which needs a C++ compiler, the same kernels run on the
//! CPU, so that tests can check them.

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

pub use backend::{Backend, CopyLane, Kernel};
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

/// Opens the first device of this machine: a GPU, or, with `JINDOU_GPU=shim` in the environment and the feature `shim`,
/// the kernels on the CPU. The error is one sentence for the user.
pub fn open() -> Result<Arc<dyn Backend>, String> {
    open_number(0)
}

/// As [`open`], for the device with this number, from 0.
pub(crate) fn open_number(number: usize) -> Result<Arc<dyn Backend>, String> {
    match std::env::var("JINDOU_GPU").as_deref() {
        Ok("shim") => open_shim(),
        Ok("off") => Err("the GPU is switched off (JINDOU_GPU=off)".into()),
        _ => Cuda::open_number(number).map(|c| Arc::new(c) as Arc<dyn Backend>),
    }
}

/// Number of devices that [`open_number`] may open. It is at least 1 if `JINDOU_GPU` is set to something that explains
/// why there is none.
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
