//! Choice between the CPU and a GPU for a query, and the resulting executor.

#[cfg(all(test, feature = "gpu"))]
mod choice;
#[cfg(all(test, feature = "gpu"))]
mod faults;

use jindou_engine::{Executor, ExecutorChoice};
use jindou_graph::Graph;
use jindou_model::{Error, Result};
use jindou_plan::{Plan, Weight};
use std::str::FromStr;
use std::sync::Arc;

/// Permission for queries to use a GPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum GpuChoice {
    /// Never.
    #[default]
    Off,
    /// Every plan that the GPU's kernels can run; an error if there is no GPU, or if it fails.
    On,
    /// Heavy plans that are expected to take less time there, if there is a GPU; the CPU takes over if it fails. Until
    /// the GPU's speeds are measured (once, in the background, some 150 ms), the CPU is used.
    Auto,
}

impl FromStr for GpuChoice {
    type Err = String;

    fn from_str(s: &str) -> std::result::Result<Self, String> {
        match s {
            "off" => Ok(Self::Off),
            "on" => Ok(Self::On),
            "auto" => Ok(Self::Auto),
            other => Err(format!("'{other}' is not one of on, off, auto")),
        }
    }
}

/// A runtime's devices in addition to this CPU: the machine's GPUs.
#[derive(Default)]
pub(crate) struct Devices {
    #[cfg(feature = "gpu")]
    gpus: jindou_gpu::Fleet,
}

#[cfg(feature = "gpu")]
type Gpu = jindou_gpu::GpuExecutor;
/// Stands for a device in a build without any.
#[cfg(not(feature = "gpu"))]
enum Gpu {}

#[cfg(not(feature = "gpu"))]
impl Executor for Gpu {
    fn name(&self) -> &'static str {
        match *self {}
    }

    fn stream(
        &self,
        _task: &jindou_engine::Task<'_>,
        _sink: &mut dyn jindou_engine::Sink,
        _profile: &mut Vec<jindou_engine::StepProfile>,
    ) -> Result<Vec<jindou_plan::Slot>> {
        match *self {}
    }
}

/// A GPU, or the reason in one sentence why there is none; `None` while it is being opened.
type Found = std::result::Result<Option<Arc<Gpu>>, String>;

/// The GPU, if it is expected to take less time.
#[cfg(feature = "gpu")]
fn worth_it(gpu: Arc<Gpu>, plan: &Plan, snapshot: &dyn Graph, threads: usize) -> ExecutorChoice {
    match gpu.predict(plan, snapshot, threads) {
        Some(p) if p.is_worth_it() => ExecutorChoice::Rather(gpu),
        Some(p) => {
            gpu.refused(&p, snapshot);
            ExecutorChoice::Here
        }
        None => {
            gpu.calibrate_in_background();
            ExecutorChoice::Here
        }
    }
}

#[cfg(not(feature = "gpu"))]
fn worth_it(
    _gpu: Arc<Gpu>,
    _plan: &Plan,
    _snapshot: &dyn Graph,
    _threads: usize,
) -> ExecutorChoice {
    ExecutorChoice::Here
}

#[cfg(feature = "gpu")]
fn predicted(
    gpu: &Gpu,
    plan: &Plan,
    snapshot: &dyn Graph,
    choice: GpuChoice,
    threads: usize,
) -> String {
    use std::fmt::Write;
    if let Err(e) = gpu.calibrate(&jindou_model::CancelToken::new()) {
        return format!("gpu: cannot measure its speed: {e}\n");
    }
    let mut out = String::new();
    if let Some(p) = gpu.predict(plan, snapshot, threads) {
        let _ = writeln!(out, "{p}");
    }
    if choice == GpuChoice::On {
        out.push_str("a GPU is required: it runs everything it can, at any cost\n");
    } else if plan.weight == Weight::Light {
        out.push_str("light query: always on the CPU\n");
    }
    out
}

#[cfg(not(feature = "gpu"))]
fn predicted(
    _gpu: &Gpu,
    _plan: &Plan,
    _snapshot: &dyn Graph,
    _choice: GpuChoice,
    _threads: usize,
) -> String {
    String::new()
}

impl Devices {
    /// Devices with at most this many bytes of memory used on each.
    #[cfg_attr(not(feature = "gpu"), allow(unused_variables))]
    pub(crate) fn limited(memory: u64) -> Self {
        Self {
            #[cfg(feature = "gpu")]
            gpus: jindou_gpu::Fleet::limited(memory),
        }
    }

    /// The executor for this plan, which could use this many threads of the CPU.
    ///
    /// # Errors
    /// [`Error::Gpu`], in one sentence, if a GPU was demanded and there is none.
    pub(crate) fn choose(
        &self,
        plan: &Plan,
        snapshot: &dyn Graph,
        choice: GpuChoice,
        threads: usize,
    ) -> Result<ExecutorChoice> {
        // A device's memory holds segments, and a shard's segments use local keys.
        if snapshot.is_sharded() {
            return match choice {
                GpuChoice::On => Err(Error::Gpu("the store is sharded".into())),
                GpuChoice::Off | GpuChoice::Auto => Ok(ExecutorChoice::Here),
            };
        }
        match choice {
            GpuChoice::Off => Ok(ExecutorChoice::Here),
            GpuChoice::Auto if plan.weight == Weight::Light => Ok(ExecutorChoice::Here),
            GpuChoice::Auto => Ok(match self.gpu(false) {
                Ok(Some(gpu)) => worth_it(gpu, plan, snapshot, threads),
                Ok(None) | Err(_) => ExecutorChoice::Here,
            }),
            GpuChoice::On => match self.gpu(true) {
                Ok(Some(gpu)) => Ok(ExecutorChoice::Demanded(gpu as Arc<dyn Executor>)),
                Ok(None) => Err(Error::Gpu("it is being opened".into())),
                Err(why) => Err(Error::Gpu(why)),
            },
        }
    }

    /// The times that a plan would take on a GPU and on the CPU, as lines of text, and the resulting choice. Empty if
    /// no GPU is requested or there is none. Opens the GPU and waits for its measured speeds.
    pub(crate) fn explain(
        &self,
        plan: &Plan,
        snapshot: &dyn Graph,
        choice: GpuChoice,
        threads: usize,
    ) -> String {
        if choice == GpuChoice::Off || snapshot.is_sharded() {
            return String::new();
        }
        match self.gpu(true) {
            Ok(Some(gpu)) => predicted(&gpu, plan, snapshot, choice, threads),
            Ok(None) | Err(_) => String::new(),
        }
    }

    #[cfg(feature = "gpu")]
    fn gpu(&self, wait: bool) -> Found {
        self.gpus.look(wait)
    }

    #[cfg(not(feature = "gpu"))]
    fn gpu(&self, _wait: bool) -> Found {
        Err("this library was built without its feature `gpu`".into())
    }

    #[cfg(all(test, feature = "gpu"))]
    pub(crate) fn with(gpus: Vec<jindou_gpu::LazyGpu>) -> Self {
        Self {
            gpus: jindou_gpu::Fleet::new(gpus),
        }
    }
}
