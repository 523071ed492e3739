//! Choice between the CPU and a GPU for a query, and the executor that follows from it.

#[cfg(all(test, feature = "gpu"))]
mod choice;
#[cfg(all(test, feature = "gpu"))]
mod faults;

use jindou_engine::{Executor, ExecutorChoice};
use jindou_graph::Graph;
use jindou_model::{Error, MemoryBudget, Result};
use jindou_plan::{Plan, Weight};
use std::str::FromStr;
use std::sync::Arc;
#[cfg(feature = "gpu")]
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Permission for queries to use a GPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum GpuChoice {
    /// Never use a GPU.
    #[default]
    Off,
    /// Use the GPU for every heavy plan that its kernels can run; an error if there is no GPU, or if it fails. Light
    /// plans run on the CPU, which finishes them before a GPU would have begun.
    On,
    /// Use a GPU for heavy plans that are predicted to be faster there; if it fails, the CPU runs them. Until the GPU
    /// is open and its speeds are measured (once, in the background, less than a second), the CPU runs everything.
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

/// The devices of a runtime other than the CPU: the machine's GPUs.
#[derive(Default)]
pub(crate) struct Devices {
    #[cfg(feature = "gpu")]
    gpus: Arc<jindou_gpu::Fleet>,
    /// Number of running plans that could run on a GPU, but were predicted to be faster on the CPU.
    #[cfg(feature = "gpu")]
    here: Arc<AtomicUsize>,
}

/// Counts a plan in [`Devices::here`] while it runs on the CPU by choice.
#[cfg(feature = "gpu")]
struct RunningOnCpu(Arc<AtomicUsize>);

#[cfg(feature = "gpu")]
impl RunningOnCpu {
    fn begin(among: &Arc<AtomicUsize>) -> Self {
        among.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(among))
    }
}

#[cfg(feature = "gpu")]
impl Drop for RunningOnCpu {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(feature = "gpu")]
type Gpu = jindou_gpu::GpuExecutor;
/// Uninhabited type in place of a GPU, for builds without the feature `gpu`.
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

/// A GPU, or the reason in one sentence why there is none; `Ok(None)` while the GPU is being opened.
type Found = std::result::Result<Option<Arc<Gpu>>, String>;

/// The executor chosen for a plan, and the prediction to compare with the measured time.
pub(crate) struct Chosen {
    pub executor: ExecutorChoice,
    // Boxed, so that the value is small for light plans, which are the most frequent and never have a prediction.
    #[cfg(feature = "gpu")]
    predicted: Option<Box<PredictedRun>>,
}

/// A run whose time was predicted.
#[cfg(feature = "gpu")]
struct PredictedRun {
    gpu: Arc<Gpu>,
    prediction: jindou_gpu::Prediction,
    there: bool,
    /// Set if the CPU was chosen for the plan.
    _here: Option<RunningOnCpu>,
}

impl From<ExecutorChoice> for Chosen {
    fn from(executor: ExecutorChoice) -> Self {
        Self {
            executor,
            #[cfg(feature = "gpu")]
            predicted: None,
        }
    }
}

impl Chosen {
    /// True if the time of the run should be passed to [`Self::ran`].
    #[cfg(feature = "gpu")]
    pub(crate) fn is_predicted(&self) -> bool {
        self.predicted.is_some()
    }

    #[cfg(not(feature = "gpu"))]
    pub(crate) fn is_predicted(&self) -> bool {
        false
    }

    /// Records the time and number of rows of a run on the device (`there`) or on the CPU, to improve later
    /// predictions. Ignored if the plan did not run where it was predicted to, for example on the CPU after the device
    /// failed.
    #[cfg(feature = "gpu")]
    pub(crate) fn ran(&self, there: bool, elapsed: Duration, rows: u64) {
        if let Some(run) = self.predicted.as_ref().filter(|r| r.there == there) {
            run.gpu.ran(&run.prediction, there, elapsed, rows);
        }
    }

    #[cfg(not(feature = "gpu"))]
    pub(crate) fn ran(&self, _there: bool, _elapsed: Duration, _rows: u64) {}
}

/// The GPU if it is predicted to be faster, otherwise the CPU.
#[cfg(feature = "gpu")]
fn predict(
    gpu: Arc<Gpu>,
    plan: &Plan,
    snapshot: &dyn Graph,
    threads: usize,
    here: &Arc<AtomicUsize>,
) -> Chosen {
    let Some(prediction) = gpu.predict(plan, snapshot, threads) else {
        gpu.calibrate_in_background();
        return ExecutorChoice::Here.into();
    };
    let there = gpu.decide(&prediction, snapshot).gpu;
    let executor = if there {
        ExecutorChoice::Rather(Arc::clone(&gpu) as Arc<dyn Executor>)
    } else {
        ExecutorChoice::Here
    };
    Chosen {
        executor,
        predicted: Some(Box::new(PredictedRun {
            gpu,
            prediction,
            there,
            _here: (!there).then(|| RunningOnCpu::begin(here)),
        })),
    }
}

/// True if the device's speeds are known, or if it has failed. Otherwise starts to measure them in the background.
#[cfg(feature = "gpu")]
fn is_measured(gpu: &Arc<Gpu>) -> bool {
    gpu.calibrate_in_background();
    gpu.is_calibrated() || gpu.failure().is_some()
}

#[cfg(not(feature = "gpu"))]
fn is_measured(_gpu: &Arc<Gpu>) -> bool {
    true
}

/// Text for `explain` if nothing can be predicted, because of `why`.
fn not_known(why: &str, plan: &Plan, choice: GpuChoice) -> String {
    let chosen = match choice {
        _ if plan.weight == Weight::Light => "the CPU, since the query is light",
        GpuChoice::On => {
            "the GPU, which is required, for everything that it can run; the query waits for it"
        }
        GpuChoice::Off | GpuChoice::Auto => "the CPU, until then",
    };
    format!("gpu: {why}\nchosen: {chosen}\n")
}

#[cfg(feature = "gpu")]
fn predicted(
    gpu: &Arc<Gpu>,
    plan: &Plan,
    snapshot: &dyn Graph,
    choice: GpuChoice,
    threads: usize,
) -> String {
    let Some(p) = gpu.predict(plan, snapshot, threads) else {
        gpu.calibrate_in_background();
        return not_known("its speeds are being measured", plan, choice);
    };
    let text = p.to_string();
    let times = text.split("\nchosen: ").next().unwrap_or(&text);
    match choice {
        _ if plan.weight == Weight::Light => {
            format!("{times}\nchosen: the CPU, since the query is light\n")
        }
        GpuChoice::On => {
            format!("{times}\nchosen: the GPU, which is required, for everything that it can run\n")
        }
        GpuChoice::Off | GpuChoice::Auto => format!("{text}\n"),
    }
}

#[cfg(not(feature = "gpu"))]
fn predicted(
    _gpu: &Arc<Gpu>,
    _plan: &Plan,
    _snapshot: &dyn Graph,
    _choice: GpuChoice,
    _threads: usize,
) -> String {
    String::new()
}

impl Devices {
    /// Devices that use at most `memory` bytes of their own memory each, and charge the host memory that they hold to
    /// `host`.
    #[cfg_attr(not(feature = "gpu"), allow(unused_variables))]
    pub(crate) fn limited(memory: u64, host: &MemoryBudget) -> Self {
        Self {
            #[cfg(feature = "gpu")]
            gpus: Arc::new(jindou_gpu::Fleet::limited(memory).charged_to(host)),
            #[cfg(feature = "gpu")]
            here: Arc::default(),
        }
    }

    /// Opens a GPU in the background, for later queries.
    pub(crate) fn open_in_background(&self) {
        #[cfg(feature = "gpu")]
        self.gpus.open_in_background();
    }

    /// Chooses the executor for this plan, for which the CPU would have this many threads.
    ///
    /// # Errors
    /// [`Error::Gpu`] with a reason in one sentence, if a GPU is required and there is none.
    #[cfg_attr(not(feature = "gpu"), allow(unused_variables))]
    pub(crate) fn choose(
        &self,
        plan: &Plan,
        snapshot: &dyn Graph,
        choice: GpuChoice,
        threads: usize,
    ) -> Result<Chosen> {
        // A device's memory caches segments with global vertex ids as keys; a shard's segments have local keys.
        if snapshot.is_sharded() {
            return match choice {
                GpuChoice::On => Err(Error::Gpu("the store is sharded".into())),
                GpuChoice::Off | GpuChoice::Auto => Ok(ExecutorChoice::Here.into()),
            };
        }
        match choice {
            GpuChoice::Off => Ok(ExecutorChoice::Here.into()),
            GpuChoice::Auto | GpuChoice::On if plan.weight == Weight::Light => {
                Ok(ExecutorChoice::Here.into())
            }
            GpuChoice::Auto => Ok(match self.gpu(false) {
                #[cfg(feature = "gpu")]
                Ok(Some(gpu)) => predict(gpu, plan, snapshot, self.share(threads), &self.here),
                #[cfg(not(feature = "gpu"))]
                Ok(Some(_)) => ExecutorChoice::Here.into(),
                Ok(None) | Err(_) => ExecutorChoice::Here.into(),
            }),
            GpuChoice::On => match self.gpu(true) {
                Ok(Some(gpu)) => Ok(ExecutorChoice::Demanded(gpu as Arc<dyn Executor>).into()),
                Ok(None) => Err(Error::Gpu("it is being opened".into())),
                Err(why) => Err(Error::Gpu(why)),
            },
        }
    }

    /// The predicted times of a plan on a GPU and on the CPU, and the resulting choice, as lines of text. Only the
    /// choice, while the GPU is being opened or measured. Empty if GPUs are off or there is none. Does not wait.
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
        match self.gpu(false) {
            Ok(Some(gpu)) => predicted(&gpu, plan, snapshot, choice, self.share(threads)),
            Ok(None) => not_known("it is being opened, if there is one", plan, choice),
            Err(_) => String::new(),
        }
    }

    /// True if the GPU is open and its speeds are known, or if no GPU can be used. Otherwise starts to open and measure
    /// the GPU in the background.
    pub(crate) fn are_known(&self) -> bool {
        match self.gpu(false) {
            Ok(Some(gpu)) => is_measured(&gpu),
            Ok(None) => false,
            Err(_) => true,
        }
    }

    /// Number of CPU threads for a plan: the threads divided by the number of plans on the CPU, including this one.
    #[cfg(feature = "gpu")]
    fn share(&self, threads: usize) -> usize {
        (threads / (1 + self.here.load(Ordering::Relaxed))).max(1)
    }

    #[cfg(not(feature = "gpu"))]
    fn share(&self, threads: usize) -> usize {
        threads
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
            gpus: Arc::new(jindou_gpu::Fleet::new(gpus)),
            here: Arc::default(),
        }
    }
}
