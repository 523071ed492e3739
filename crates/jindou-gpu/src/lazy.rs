//! A GPU that is opened in the background: when the program starts, or when the first query could use it. Only queries
//! that require the GPU wait for that.
//!
//! A GPU can fail at any time: its context is lost, it hangs, or it is removed. A query that runs on it notices this by
//! [`GpuExecutor::failure`]. Then the executor is dropped here, and the GPU is opened again at most once a minute.

use crate::backend::Backend;
use crate::cost::Calibration;
use crate::device::Device;
use crate::execute::{GpuExecutor, IDLE};
use crate::ring::RingOptions;
use jindou_model::{MemoryBudget, sync};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Time after which opening is tried again if the GPU was missing or lost.
const RETRY: Duration = Duration::from_secs(60);

/// Opens a device, or says in one sentence why there is none.
pub type Opener = Box<dyn Fn() -> Result<Arc<dyn Backend>, String> + Send + Sync>;

enum DeviceState {
    /// No attempt has been made to open it.
    Unknown,
    Ready(Arc<GpuExecutor>),
    /// The reason why there is no device, and when that was found.
    Absent(String, Instant),
}

/// A GPU that is opened on first use.
pub struct LazyGpu {
    state: Mutex<DeviceState>,
    /// Held by the thread that is opening the device.
    opening: Mutex<()>,
    /// True while a background thread opens the device.
    in_background: AtomicBool,
    open: Opener,
    retry: Duration,
    /// Largest number of bytes to use of the device's memory.
    memory: u64,
    /// The speeds of the device; `None` if they are to be measured.
    speeds: Option<Calibration>,
    /// The budget to which pinned host memory for the device is charged.
    host: MemoryBudget,
}

impl LazyGpu {
    /// The GPU with this number, from 0.
    #[must_use]
    pub fn numbered(number: usize) -> Self {
        Self::with_opener(Box::new(move || crate::open_number(number)), RETRY)
    }

    /// A device that `open` opens. If that fails, it is tried again after `retry`.
    #[must_use]
    pub fn with_opener(open: Opener, retry: Duration) -> Self {
        Self {
            state: Mutex::new(DeviceState::Unknown),
            opening: Mutex::default(),
            in_background: AtomicBool::new(false),
            open,
            retry,
            memory: u64::MAX,
            speeds: None,
            host: MemoryBudget::unlimited(),
        }
    }

    /// Returns the device with these speeds, which are then not measured.
    #[must_use]
    pub fn with_calibration(mut self, speeds: Calibration) -> Self {
        self.speeds = Some(speeds);
        self
    }

    /// Returns the device with a limit on the bytes of its memory that are used.
    #[must_use]
    pub fn with_memory(mut self, bytes: u64) -> Self {
        self.memory = bytes;
        self
    }

    /// Charges pinned host memory for the device to this budget.
    #[must_use]
    pub fn charged_to(mut self, host: &MemoryBudget) -> Self {
        self.host = host.clone();
        self
    }

    fn state(&self) -> MutexGuard<'_, DeviceState> {
        sync::lock(&self.state)
    }

    /// The executor, or why there is none; `None` if the device must be opened now. Drops a lost device.
    fn known(&self) -> Option<Result<Arc<GpuExecutor>, String>> {
        let mut state = self.state();
        if let DeviceState::Ready(gpu) = &*state
            && let Some(why) = gpu.failure()
        {
            let lost = DeviceState::Absent(format!("the GPU is lost: {why}"), Instant::now());
            let gone = std::mem::replace(&mut *state, lost);
            drop(state);
            // Dropping the last reference closes the device, which may take a while.
            drop(gone);
            state = self.state();
        }
        match &*state {
            DeviceState::Ready(gpu) => Some(Ok(Arc::clone(gpu))),
            DeviceState::Absent(why, since) if since.elapsed() < self.retry => {
                Some(Err(why.clone()))
            }
            DeviceState::Absent(..) | DeviceState::Unknown => None,
        }
    }

    /// The executor. If the device has yet to be opened: waits for it if `wait`, otherwise starts to open it in the
    /// background and returns `None`.
    ///
    /// # Errors
    /// The reason why there is no GPU, in one sentence.
    pub fn look(self: &Arc<Self>, wait: bool) -> Result<Option<Arc<GpuExecutor>>, String> {
        if let Some(known) = self.known() {
            return known.map(Some);
        }
        if wait {
            return self.open_now().map(Some);
        }
        self.open_in_background();
        Ok(None)
    }

    /// Opens the device, unless that was tried recently. If another thread is opening it, waits for that thread and
    /// returns its result.
    fn open_now(&self) -> Result<Arc<GpuExecutor>, String> {
        let _opening = sync::lock(&self.opening);
        if let Some(known) = self.known() {
            return known;
        }
        let opened = (self.open)().map(|b| {
            let ring = RingOptions {
                budget: self.host.clone(),
                ..RingOptions::default()
            };
            let device = Device::with_ring(b, self.memory, ring);
            // If this fails, uploads pin memory when they need it.
            let _ = device.prepare();
            let gpu = GpuExecutor::on(device, IDLE);
            Arc::new(match &self.speeds {
                Some(speeds) => gpu.with_calibration(speeds.clone()),
                None => gpu,
            })
        });
        *self.state() = match &opened {
            Ok(gpu) => DeviceState::Ready(Arc::clone(gpu)),
            Err(why) => DeviceState::Absent(why.clone(), Instant::now()),
        };
        opened
    }

    /// True while a background thread opens the device.
    #[cfg(test)]
    pub(crate) fn is_opening(&self) -> bool {
        self.in_background.load(Ordering::Acquire)
    }

    /// Opens the device and measures its speeds in the background, unless that is done or in progress.
    pub fn open_in_background(self: &Arc<Self>) {
        if self.known().is_some() || self.in_background.swap(true, Ordering::AcqRel) {
            return;
        }
        let gpu = Arc::clone(self);
        let open = move || {
            let opened = gpu.open_now();
            gpu.in_background.store(false, Ordering::Release);
            if let Ok(opened) = opened {
                opened.calibrate_in_background();
            }
        };
        let thread = std::thread::Builder::new().name("gpu-opening".into());
        if thread.spawn(open).is_err() {
            self.in_background.store(false, Ordering::Release);
        }
    }
}

#[cfg(all(test, feature = "shim"))]
mod tests {
    use super::*;
    use crate::shim::{Shim, ShimOptions};
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn shim() -> Arc<dyn Backend> {
        Arc::new(Shim::open(ShimOptions::default()).unwrap())
    }

    /// Polls, without waiting in any call, until the device is open or known to be absent.
    fn soon(device: &Arc<LazyGpu>) -> Result<Arc<GpuExecutor>, String> {
        let began = Instant::now();
        loop {
            if let Some(gpu) = device.look(false)? {
                return Ok(gpu);
            }
            assert!(began.elapsed() < Duration::from_secs(60));
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    #[test]
    fn a_lost_device_is_dropped_and_tried_again_later() {
        let opened = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&opened);
        let open = move || match count.fetch_add(1, Ordering::Relaxed) {
            1 => Err("no GPU is used: it is gone".into()),
            _ => Ok(shim()),
        };
        let device = LazyGpu::with_opener(Box::new(open), Duration::from_millis(200));
        let device = Arc::new(device.with_calibration(Calibration::ideal()));
        let gpu = soon(&device).unwrap();
        assert!(Arc::ptr_eq(&gpu, &device.look(false).unwrap().unwrap()));
        gpu.device().lose("a test");
        // The device counts as lost, and is not opened again at once.
        for _ in 0..3 {
            let why = device.look(true).map(|_| ()).unwrap_err();
            assert!(why.contains("a test"), "{why}");
        }
        // Only the running query still holds the executor.
        assert_eq!(Arc::strong_count(&gpu), 1);
        assert_eq!(opened.load(Ordering::Relaxed), 1);
        std::thread::sleep(Duration::from_millis(250));
        // Opening fails the second time, and succeeds the third time.
        for _ in 0..2 {
            let why = device.look(true).map(|_| ()).unwrap_err();
            assert!(why.contains("it is gone"), "{why}");
        }
        assert_eq!(opened.load(Ordering::Relaxed), 2);
        std::thread::sleep(Duration::from_millis(250));
        assert!(device.look(true).unwrap().is_some());
        assert_eq!(opened.load(Ordering::Relaxed), 3);
    }

    /// A driver that takes 400 ms to open: it is opened once, on a thread of its own.
    #[test]
    fn nobody_waits_for_a_device_to_open_but_who_demands_it() {
        let opened = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&opened);
        let open = move || {
            count.fetch_add(1, Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(400));
            Ok(shim())
        };
        let device = Arc::new(LazyGpu::with_opener(Box::new(open), RETRY));
        device.open_in_background();
        for _ in 0..20 {
            let began = jindou_testing::Stopwatch::start();
            assert!(device.look(false).unwrap().is_none());
            assert!(began.elapsed() < Duration::from_millis(200));
        }
        // A query that requires it waits.
        let gpu = device.look(true).unwrap().unwrap();
        assert!(Arc::ptr_eq(&gpu, &soon(&device).unwrap()));
        assert_eq!(opened.load(Ordering::Relaxed), 1);
        // The device's speeds are measured although nothing requested that.
        let began = Instant::now();
        while gpu.model.get().is_none() {
            assert!(began.elapsed() < Duration::from_secs(60));
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
