//! One server's end of the UCX transport.

use super::core::Core;
use super::link::UcxLink;
use super::progress;
use super::worker::MemoryHandle;
use crate::transport::{Link, Memory, RegionDescriptor, Result, Transport, TransportError};
use jindou_model::sync::lock;
use rustc_hash::FxHashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::thread::JoinHandle;

/// Registered memory, with its UCX handle.
type Registered = (MemoryHandle, Arc<dyn Memory>);

/// State that the progress thread shares with the transport.
pub(super) struct TransportState {
    pub(super) core: Arc<Core>,
    /// Links, by the numbers of their endpoints.
    links: Mutex<FxHashMap<u32, Weak<UcxLink>>>,
}

impl TransportState {
    pub(super) fn link_of_endpoint(&self, endpoint: u32) -> Option<Arc<UcxLink>> {
        lock(&self.links).get(&endpoint).and_then(Weak::upgrade)
    }
}

/// A [`Transport`] over UCX; see [`super`]. Closed on drop.
pub struct UcxTransport {
    shared: Arc<TransportState>,
    regions: Mutex<FxHashMap<u64, Registered>>,
    next_region: AtomicU64,
    progress: Mutex<Option<JoinHandle<()>>>,
}

impl UcxTransport {
    /// Loads UCX and starts the progress thread. `devices` is UCX's `NET_DEVICES`, comma-separated, for example `lo` or
    /// `mlx5_0:1`. The fastest of them is used, RDMA devices first. An error is a sentence that says what is missing.
    pub fn new(devices: &str) -> Result<Arc<Self>> {
        let shared = Arc::new(TransportState {
            core: Core::new(devices)?,
            links: Mutex::default(),
        });
        let run = Arc::clone(&shared);
        let progress = std::thread::Builder::new()
            .name("jindou-progress".to_owned())
            .spawn(move || progress::run(&run))
            .map_err(|e| TransportError::Unavailable(format!("cannot start a thread: {e}")))?;
        Ok(Arc::new(Self {
            shared,
            regions: Mutex::default(),
            next_region: AtomicU64::new(1),
            progress: Mutex::new(Some(progress)),
        }))
    }

    fn core(&self) -> &Arc<Core> {
        &self.shared.core
    }

    fn open(&self) -> Result<()> {
        if self.core().is_closed() {
            return Err(TransportError::Closed);
        }
        Ok(())
    }

    /// Closes all links. Every read in progress ends with [`TransportError::Closed`].
    pub fn close(&self) {
        if self.core().closed.swap(true, Ordering::AcqRel) {
            return;
        }
        self.core().wake();
        let links = std::mem::take(&mut *lock(&self.shared.links));
        for link in links.values().filter_map(Weak::upgrade) {
            link.close();
        }
        if let Some(progress) = lock(&self.progress).take() {
            let _ = progress.join();
        }
        let regions = std::mem::take(&mut *lock(&self.regions));
        let (handles, kept): (Vec<_>, Vec<_>) = regions.into_values().unzip();
        self.core().shut(handles);
        // UCX has unregistered the memory above, so it can be released now.
        drop(kept);
    }
}

impl Transport for UcxTransport {
    fn address(&self) -> Result<Vec<u8>> {
        self.core().worker().address()
    }

    fn register(&self, memory: Arc<dyn Memory>) -> Result<(u64, RegionDescriptor)> {
        self.open()?;
        let bytes = memory.bytes();
        let (handle, key) = self.core().worker().register(bytes)?;
        let descriptor = RegionDescriptor {
            base: bytes.as_ptr() as u64,
            len: bytes.len() as u64,
            key,
        };
        let region = self.next_region.fetch_add(1, Ordering::Relaxed);
        lock(&self.regions).insert(region, (handle, memory));
        Ok((region, descriptor))
    }

    fn release(&self, region: u64) {
        let released = lock(&self.regions).remove(&region);
        if let Some((handle, _memory)) = released {
            self.core().worker().unregister(&handle);
        }
    }

    fn connect(&self, address: &[u8]) -> Result<Arc<dyn Link>> {
        self.open()?;
        if address.is_empty() {
            return Err(TransportError::Refused("it does not use UCX".into()));
        }
        let endpoint = self.core().worker().connect(address)?;
        let link = Arc::new(UcxLink::new(Arc::clone(self.core()), endpoint));
        let mut links = lock(&self.shared.links);
        links.retain(|_, link| link.strong_count() > 0);
        links.insert(endpoint, Arc::downgrade(&link));
        Ok(link)
    }
}

impl Drop for UcxTransport {
    fn drop(&mut self) {
        self.close();
    }
}
