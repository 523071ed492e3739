//! All GPUs of the machine, each with its own memory, segments and queue of queries.

use crate::execute::GpuExecutor;
use crate::lazy::LazyGpu;
use jindou_model::MemoryBudget;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// The machine's GPUs. A query runs on the first idle one, or on the one with the fewest queries if all are busy. So a
/// second GPU is opened only when the first one is busy.
pub struct Fleet {
    gpus: OnceLock<Vec<Arc<LazyGpu>>>,
    /// True while a thread counts the devices.
    counting: AtomicBool,
    /// Largest number of bytes to use of each device's memory.
    memory: u64,
    /// The budget to which pinned host memory for the devices is charged.
    host: MemoryBudget,
}

impl Default for Fleet {
    fn default() -> Self {
        Self::limited(u64::MAX)
    }
}

impl Fleet {
    /// All GPUs of the machine, using at most `memory` bytes of device memory on each.
    #[must_use]
    pub fn limited(memory: u64) -> Self {
        Self {
            gpus: OnceLock::new(),
            counting: AtomicBool::new(false),
            memory,
            host: MemoryBudget::unlimited(),
        }
    }

    /// Charges pinned host memory to this budget, for devices that are opened from now on.
    #[must_use]
    pub fn charged_to(self, host: &MemoryBudget) -> Self {
        Self {
            host: host.clone(),
            ..self
        }
    }

    /// A fleet of these devices only.
    #[must_use]
    pub fn new(gpus: Vec<LazyGpu>) -> Self {
        Self {
            gpus: OnceLock::from(gpus.into_iter().map(Arc::new).collect::<Vec<_>>()),
            counting: AtomicBool::new(false),
            memory: u64::MAX,
            host: MemoryBudget::unlimited(),
        }
    }

    fn gpus(&self) -> &[Arc<LazyGpu>] {
        self.gpus.get_or_init(|| {
            (0..crate::count().max(1))
                .map(|n| {
                    let gpu = LazyGpu::numbered(n).with_memory(self.memory);
                    Arc::new(gpu.charged_to(&self.host))
                })
                .collect()
        })
    }

    /// Opens the first GPU and measures its speeds in the background. Counting the devices is done there, too, because
    /// it loads the driver.
    pub fn open_in_background(self: &Arc<Self>) {
        if self.counting.swap(true, Ordering::AcqRel) {
            return;
        }
        let fleet = Arc::clone(self);
        let open = move || {
            if let Some(first) = fleet.gpus().first() {
                first.open_in_background();
            }
            fleet.counting.store(false, Ordering::Release);
        };
        let thread = std::thread::Builder::new().name("gpu-count".into());
        if thread.spawn(open).is_err() {
            self.counting.store(false, Ordering::Release);
        }
    }

    /// The executor for the next query. If a GPU has yet to be opened: waits for it if `wait`, otherwise returns `None`
    /// and opens it in the background.
    ///
    /// # Errors
    /// The reason why the first GPU is not available, in one sentence.
    pub fn look(
        self: &Arc<Self>,
        wait: bool,
    ) -> std::result::Result<Option<Arc<GpuExecutor>>, String> {
        let mut least: Option<(u64, Arc<GpuExecutor>)> = None;
        let (mut opening, mut why) = (false, None);
        let gpus = match self.gpus.get() {
            Some(gpus) => gpus,
            None if wait => self.gpus(),
            None => {
                self.open_in_background();
                return Ok(None);
            }
        };
        for gpu in gpus {
            // If one GPU is available, callers do not wait for another one to be opened.
            match gpu.look(wait && least.is_none()) {
                Ok(Some(gpu)) => {
                    let queries = gpu.queries();
                    if least.as_ref().is_none_or(|(n, _)| queries < *n) {
                        least = Some((queries, gpu));
                    }
                    if queries == 0 {
                        break;
                    }
                }
                Ok(None) => opening = true,
                Err(e) => why = why.or(Some(e)),
            }
        }
        match (least, why) {
            (Some((_, gpu)), _) => Ok(Some(gpu)),
            (None, Some(why)) if !opening => Err(why),
            (None, _) => Ok(None),
        }
    }
}

#[cfg(all(test, feature = "shim"))]
mod tests {
    use super::*;
    use crate::backend::Backend;
    use crate::cost::Calibration;
    use crate::shim::{Shim, ShimOptions};
    use jindou_model::CancelToken;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    #[test]
    fn queries_go_to_the_device_with_the_fewest_and_lost_ones_get_none() {
        let opened = Arc::new(AtomicUsize::new(0));
        let gpus = (0..3).map(|_| {
            let opened = Arc::clone(&opened);
            let open = move || {
                opened.fetch_add(1, Ordering::Relaxed);
                let shim = Shim::open(ShimOptions::default()).map_err(|e| e.to_string())?;
                Ok(Arc::new(shim) as Arc<dyn Backend>)
            };
            let gpu = LazyGpu::with_opener(Box::new(open), Duration::from_secs(60));
            gpu.with_calibration(Calibration::ideal())
        });
        let fleet = Arc::new(Fleet::new(gpus.collect()));
        // Further devices are opened in the background; the test waits for them.
        let next = || {
            let _ = fleet.look(true).unwrap();
            while fleet.gpus().iter().any(|g| g.is_opening()) {
                std::thread::sleep(Duration::from_millis(1));
            }
            fleet.look(true).unwrap().unwrap()
        };
        let none = CancelToken::new();
        // A single user needs one device.
        let first = next();
        assert!(Arc::ptr_eq(&first, &next()));
        assert_eq!(opened.load(Ordering::Relaxed), 1);
        let busy = first.turns.begin(&none).unwrap();
        let second = next();
        assert!(!Arc::ptr_eq(&first, &second));
        let also_busy = second.turns.begin(&none).unwrap();
        let third = next();
        let busy_too = third.turns.begin(&none).unwrap();
        assert_eq!(opened.load(Ordering::Relaxed), 3);
        // All three have one query, so the first is chosen again.
        assert!(Arc::ptr_eq(&first, &next()));
        drop(also_busy);
        assert!(Arc::ptr_eq(&second, &next()));
        second.device().lose("a test");
        drop(busy_too);
        assert!(Arc::ptr_eq(&third, &next()));
        first.device().lose("a test");
        third.device().lose("a test");
        let why = fleet.look(true).map(|_| ()).unwrap_err();
        assert!(why.contains("a test"), "{why}");
        drop(busy);
    }

    /// Counting the devices may load a driver, which takes long. `look(false)` must not wait for that.
    #[test]
    fn a_look_returns_before_devices_are_counted() {
        let fleet = Arc::new(Fleet::limited(u64::MAX));
        assert!(matches!(fleet.look(false), Ok(None)));
    }
}
