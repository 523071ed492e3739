//! In place of `gpu` where the library is built without that feature: there is no device, so nothing ever runs on one.

use crate::database::Checksum;
use crate::device::GpuChoice;
use crate::execute::{Consumer, Job, Measured};
use jindou_engine::Profile;
use jindou_model::{Error, Result};
use jindou_plan::Plan;

/// No device.
#[derive(Default)]
pub(crate) struct Device;

/// An executor that cannot be.
pub(crate) enum Gpu {}

impl Device {
    /// Always the CPU.
    ///
    /// # Errors
    /// [`Error::Gpu`] if a GPU was demanded.
    pub(crate) fn choose(&self, _plan: &Plan, choice: GpuChoice) -> Result<Option<Gpu>> {
        match choice {
            GpuChoice::Off | GpuChoice::Auto => Ok(None),
            GpuChoice::On => Err(Error::Gpu(
                "this library was built without its feature `gpu`".into(),
            )),
        }
    }
}

pub(crate) fn checksum(gpu: &Gpu, _job: &Job) -> Result<Result<Checksum, String>> {
    match *gpu {}
}

pub(crate) fn ask(gpu: &Gpu, _job: &Job) -> Result<Result<(bool, Profile), String>> {
    match *gpu {}
}

pub(crate) fn solutions(
    gpu: &Gpu,
    _job: &Job,
    _out: &mut dyn Consumer,
) -> Result<Result<(u64, Measured), String>> {
    match *gpu {}
}
