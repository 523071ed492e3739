//! Whether a query may run on a GPU, and the executor that follows from it.

#[cfg(all(test, feature = "gpu"))]
mod faults;

use jindou_engine::{Choice, Executor};
use jindou_model::{Error, Result};
use jindou_plan::{Plan, Weight};
use jindou_store::Graph;
use std::str::FromStr;
use std::sync::Arc;

/// Whether queries may use a GPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum GpuChoice {
    /// Never.
    #[default]
    Off,
    /// Every plan that the GPU's kernels can run; an error where there is no GPU, or where it fails.
    On,
    /// Heavy plans, if there is a GPU; the CPU's answer where it fails.
    Auto,
}

impl FromStr for GpuChoice {
    type Err = String;

    fn from_str(s: &str) -> std::result::Result<Self, String> {
        match s {
            "off" => Ok(Self::Off),
            "on" => Ok(Self::On),
            "auto" => Ok(Self::Auto),
            other => Err(format!("'{other}' is none of on, off, auto")),
        }
    }
}

/// The devices besides this CPU that a runtime has: the machine's GPUs.
#[derive(Default)]
pub(crate) struct Devices {
    #[cfg(feature = "gpu")]
    gpus: jindou_gpu::Fleet,
}

/// An executor, or the reason in one sentence why there is none; `None` while it is being opened.
type Found = std::result::Result<Option<Arc<dyn Executor>>, String>;

impl Devices {
    /// Devices of whose memory at most so many bytes are used, each.
    #[cfg_attr(not(feature = "gpu"), allow(unused_variables))]
    pub(crate) fn limited(memory: u64) -> Self {
        Self {
            #[cfg(feature = "gpu")]
            gpus: jindou_gpu::Fleet::limited(memory),
        }
    }

    /// The executor for this plan.
    ///
    /// # Errors
    /// [`Error::Gpu`], in one sentence, if a GPU was demanded and there is none.
    pub(crate) fn choose(
        &self,
        plan: &Plan,
        snapshot: &dyn Graph,
        choice: GpuChoice,
    ) -> Result<Choice> {
        // A device's memory has segments, and a shard's segments have keys of their own.
        if snapshot.is_sharded() {
            return match choice {
                GpuChoice::On => Err(Error::Gpu("the store is cut into shards".into())),
                GpuChoice::Off | GpuChoice::Auto => Ok(Choice::Here),
            };
        }
        match choice {
            GpuChoice::Off => Ok(Choice::Here),
            GpuChoice::Auto if plan.weight == Weight::Light => Ok(Choice::Here),
            GpuChoice::Auto => Ok(match self.gpu(false) {
                Ok(Some(gpu)) => Choice::Rather(gpu),
                Ok(None) | Err(_) => Choice::Here,
            }),
            GpuChoice::On => match self.gpu(true) {
                Ok(Some(gpu)) => Ok(Choice::Demanded(gpu)),
                Ok(None) => Err(Error::Gpu("it is being opened".into())),
                Err(why) => Err(Error::Gpu(why)),
            },
        }
    }

    #[cfg(feature = "gpu")]
    fn gpu(&self, wait: bool) -> Found {
        let gpu = self.gpus.look(wait)?;
        Ok(gpu.map(|gpu| gpu as Arc<dyn Executor>))
    }

    #[cfg(not(feature = "gpu"))]
    fn gpu(&self, _wait: bool) -> Found {
        Err("this library was built without its feature `gpu`".into())
    }

    #[cfg(all(test, feature = "gpu"))]
    pub(crate) fn with(gpus: Vec<jindou_gpu::LazyGpu>) -> Self {
        Self {
            gpus: jindou_gpu::Fleet::of(gpus),
        }
    }
}
