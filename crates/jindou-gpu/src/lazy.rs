//! The machine's GPU, opened when a query first needs it.
//!
//! A GPU can fail at any time: its context is lost, it hangs, it is removed. A query that runs there learns of it from
//! [`GpuExecutor::failure`]; it is then dropped here and looked for again once a minute.

use crate::backend::Backend;
use crate::cost::Calibration;
use crate::execute::{GpuExecutor, IDLE};
use jindou_model::sync;
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::time::{Duration, Instant};

/// Time for which a missing or lost GPU is not looked for again.
const RETRY: Duration = Duration::from_secs(60);

/// Opens a device, or says in one sentence why there is none.
pub type Opener = Box<dyn Fn() -> Result<Arc<dyn Backend>, String> + Send + Sync>;

enum DeviceState {
    /// Not asked for yet.
    Unknown,
    Ready(Arc<GpuExecutor>),
    /// The reason why there is none, and the time of that finding.
    Absent(String, Instant),
}

/// The machine's GPU, probed on first use.
pub struct LazyGpu {
    state: Mutex<DeviceState>,
    /// Held by the thread that is opening it.
    opening: Mutex<()>,
    open: Opener,
    retry: Duration,
    /// Most bytes of its memory.
    memory: u64,
    /// The speeds of the device, if they need not be measured.
    speeds: Option<Calibration>,
}

impl Default for LazyGpu {
    fn default() -> Self {
        Self::numbered(0)
    }
}

impl LazyGpu {
    /// The machine's GPU with this number, from 0.
    #[must_use]
    pub fn numbered(number: usize) -> Self {
        Self::with_opener(Box::new(move || crate::open_number(number)), RETRY)
    }

    /// A device that is opened by `open`, and looked for again after `retry`.
    #[must_use]
    pub fn with_opener(open: Opener, retry: Duration) -> Self {
        Self {
            state: Mutex::new(DeviceState::Unknown),
            opening: Mutex::default(),
            open,
            retry,
            memory: u64::MAX,
            speeds: None,
        }
    }

    /// The same device with these speeds.
    #[must_use]
    pub fn with_calibration(mut self, speeds: Calibration) -> Self {
        self.speeds = Some(speeds);
        self
    }

    /// The same device with at most this many bytes of memory used.
    #[must_use]
    pub fn with_memory(mut self, bytes: u64) -> Self {
        self.memory = bytes;
        self
    }

    fn state(&self) -> MutexGuard<'_, DeviceState> {
        sync::lock(&self.state)
    }

    /// The executor, or the reason why there is none, as far as that is known; `None` if nothing is known, or nothing
    /// recent.
    fn known(&self) -> Option<Result<Arc<GpuExecutor>, String>> {
        let mut state = self.state();
        if let DeviceState::Ready(gpu) = &*state
            && let Some(why) = gpu.failure()
        {
            let lost = DeviceState::Absent(format!("the GPU is lost: {why}"), Instant::now());
            let gone = std::mem::replace(&mut *state, lost);
            drop(state);
            // The last holder closes it on drop, which may take a while.
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

    /// The executor, opened if it is time to; `None` while it is being opened elsewhere, unless `wait`.
    ///
    /// # Errors
    /// The reason why there is no GPU, in one sentence.
    pub fn look(&self, wait: bool) -> Result<Option<Arc<GpuExecutor>>, String> {
        if let Some(known) = self.known() {
            return known.map(Some);
        }
        let _opening = match self.opening.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(p)) => p.into_inner(),
            Err(TryLockError::WouldBlock) if wait => sync::lock(&self.opening),
            Err(TryLockError::WouldBlock) => return Ok(None),
        };
        if let Some(known) = self.known() {
            return known.map(Some);
        }
        let opened = (self.open)().map(|b| {
            let gpu = GpuExecutor::limited(b, self.memory, IDLE);
            Arc::new(match &self.speeds {
                Some(speeds) => gpu.with_calibration(speeds.clone()),
                None => gpu,
            })
        });
        *self.state() = match &opened {
            Ok(gpu) => DeviceState::Ready(Arc::clone(gpu)),
            Err(why) => DeviceState::Absent(why.clone(), Instant::now()),
        };
        opened.map(Some)
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

    #[test]
    fn a_lost_device_is_dropped_and_tried_again_later() {
        let opened = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&opened);
        let device = LazyGpu::with_opener(
            Box::new(move || match count.fetch_add(1, Ordering::Relaxed) {
                1 => Err("no GPU is used: it is gone".into()),
                _ => Ok(shim()),
            }),
            Duration::from_millis(200),
        );
        let gpu = device.look(false).unwrap().unwrap();
        assert!(Arc::ptr_eq(&gpu, &device.look(false).unwrap().unwrap()));
        gpu.device().lose("a test");
        // It is lost, and not looked for at once.
        for _ in 0..3 {
            let why = device.look(true).map(|_| ()).unwrap_err();
            assert!(why.contains("a test"), "{why}");
        }
        // Only the running query still holds it.
        assert_eq!(Arc::strong_count(&gpu), 1);
        assert_eq!(opened.load(Ordering::Relaxed), 1);
        std::thread::sleep(Duration::from_millis(250));
        // The next attempt finds none, the one after that does.
        for _ in 0..2 {
            let why = device.look(true).map(|_| ()).unwrap_err();
            assert!(why.contains("it is gone"), "{why}");
        }
        assert_eq!(opened.load(Ordering::Relaxed), 2);
        std::thread::sleep(Duration::from_millis(250));
        assert!(device.look(true).unwrap().is_some());
        assert_eq!(opened.load(Ordering::Relaxed), 3);
    }

    #[test]
    fn only_one_query_waits_for_a_device_to_open() {
        let device = LazyGpu::with_opener(
            Box::new(|| {
                std::thread::sleep(Duration::from_millis(400));
                Ok(shim())
            }),
            RETRY,
        );
        std::thread::scope(|s| {
            let first = s.spawn(|| device.look(false).unwrap().is_some());
            std::thread::sleep(Duration::from_millis(100));
            let began = Instant::now();
            assert!(device.look(false).unwrap().is_none());
            assert!(began.elapsed() < Duration::from_millis(200));
            // A query that demands it waits.
            assert!(device.look(true).unwrap().is_some());
            assert!(first.join().unwrap());
        });
    }
}
