//! Where a plan's exploration runs: on this CPU, or on a GPU where there is one and the plan is worth the way.

use jindou_gpu::GpuExecutor;
use jindou_model::{Error, Result};
use jindou_plan::{Plan, Weight};
use std::str::FromStr;
use std::sync::OnceLock;

/// Whether queries may use a GPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GpuChoice {
    /// Never.
    #[default]
    Off,
    /// Every plan that the GPU's kernels can run; an error where there is no GPU.
    On,
    /// Heavy plans, if there is a GPU.
    Auto,
}

impl FromStr for GpuChoice {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        match s {
            "off" => Ok(Self::Off),
            "on" => Ok(Self::On),
            "auto" => Ok(Self::Auto),
            other => Err(format!("'{other}' is none of on, off, auto")),
        }
    }
}

/// The machine's GPU, looked for when the first query wants it.
#[derive(Default)]
pub(crate) struct Device {
    opened: OnceLock<Result<GpuExecutor, String>>,
}

impl Device {
    /// The executor to run this plan's exploration with; `None` for the CPU.
    ///
    /// # Errors
    /// `Unsupported`, in one sentence, if a GPU was demanded and there is none.
    pub(crate) fn choose(&self, plan: &Plan, choice: GpuChoice) -> Result<Option<&GpuExecutor>> {
        match choice {
            GpuChoice::Off => return Ok(None),
            GpuChoice::Auto if plan.weight == Weight::Light => return Ok(None),
            GpuChoice::Auto | GpuChoice::On => {}
        }
        let opened = self
            .opened
            .get_or_init(|| jindou_gpu::open().map(GpuExecutor::new));
        match (opened, choice) {
            (Ok(gpu), _) => Ok(Some(gpu)),
            (Err(_), GpuChoice::Auto) => Ok(None),
            (Err(why), _) => Err(Error::Unsupported(format!(
                "a query on a GPU: {why}; leave out --gpu on to run it on the CPU"
            ))),
        }
    }
}
