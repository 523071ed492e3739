//! One end of the transport over UCX.

use super::control::{UcxHello, beat, unreachable, watch};
use super::core::Core;
use super::frame::what;
use super::link::UcxLink;
use super::mapped::FileName;
use super::progress;
use super::worker::MemoryHandle;
use super::{UcxOptions, bare};
use crate::transport::{
    ByteRange, Epoch, Handler, Memory, Moment, Peer, RegionDescriptor, RemoteRegion, Result,
    Transport, TransportError,
};
use jindou_model::sync::{lock, read, write};
use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;
use std::net::{TcpListener, TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::thread::JoinHandle;
use std::time::Duration;

/// Longest time in which an accepted connection must send its hello.
const HELLO_WAIT: Duration = Duration::from_secs(5);
/// Longest wait for more of it between two checks if this end is closed.
const HELLO_TURN: Duration = Duration::from_millis(50);
/// Pause after a connection that could not be accepted.
const NOT_ACCEPTED: Duration = Duration::from_millis(50);
/// Most connections at once, each of which has a thread.
const CONNECTIONS: usize = 2048;

struct Registered {
    /// Registration with UCX; `None` for a file that readers map themselves.
    handle: Option<MemoryHandle>,
    memory: Arc<dyn Memory>,
}

/// The state that the transport's threads share.
pub(super) struct TransportState {
    pub(super) core: Arc<Core>,
    epoch: AtomicU64,
    /// Links by our number of the connection.
    links: RwLock<Vec<Option<Arc<UcxLink>>>>,
    handlers: RwLock<FxHashMap<u16, Arc<dyn Handler>>>,
    regions: RwLock<FxHashMap<u64, Registered>>,
    next_region: AtomicU64,
    watchers: Mutex<Vec<JoinHandle<()>>>,
}

/// A [`Transport`] over UCX; see [`super`]. Closed when dropped.
pub struct UcxTransport {
    shared: Arc<TransportState>,
    address: String,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl TransportState {
    pub(super) fn epoch(&self) -> Epoch {
        Epoch(self.epoch.load(Ordering::Acquire))
    }

    pub(super) fn link(&self, number: u32) -> Option<Arc<UcxLink>> {
        read(&self.links).get(number as usize).cloned().flatten()
    }

    pub(super) fn link_of_endpoint(&self, endpoint: u32) -> Option<Arc<UcxLink>> {
        let links = read(&self.links);
        links
            .iter()
            .flatten()
            .find(|l| l.endpoint == endpoint)
            .cloned()
    }

    pub(super) fn handler(&self, kind: u16) -> Option<Arc<dyn Handler>> {
        read(&self.handlers).get(&kind).cloned()
    }

    pub(super) fn memory(&self, region: u64) -> Option<Arc<dyn Memory>> {
        read(&self.regions)
            .get(&region)
            .map(|r| Arc::clone(&r.memory))
    }

    /// Exchanges hellos over `stream` and makes the endpoint. The connecting end speaks first, so the accepting one has
    /// the connection ready before the other can use it.
    fn shake_hands(
        self: &Arc<Self>,
        stream: TcpStream,
        name: String,
        wait: Duration,
        first: bool,
    ) -> std::result::Result<Arc<UcxLink>, String> {
        let io = |e: std::io::Error| e.to_string();
        let wait = wait.max(Duration::from_millis(1));
        let began = self.core.now();
        stream.set_nodelay(true).map_err(io)?;
        // Short, as closing waits for readers.
        let turn = wait.min(HELLO_TURN);
        stream.set_read_timeout(Some(turn)).map_err(io)?;
        stream.set_write_timeout(Some(wait)).map_err(io)?;
        let here = {
            let mut links = write(&self.links);
            links.push(None);
            links.len() as u32 - 1
        };
        let address = self.core.worker().address().map_err(|e| e.to_string())?;
        let hello = UcxHello {
            fabric: self.core.options.fabric.code(),
            connection: here,
            epoch: self.epoch(),
            address,
        };
        if first {
            hello.write(&stream).map_err(io)?;
        }
        let theirs = UcxHello::read(&stream, &self.core.options, || {
            if self.core.is_closed() {
                return Some("this end is closed".to_owned());
            }
            let late = self.core.now().since(began) >= wait;
            late.then(|| format!("it did not introduce itself within {wait:?}"))
        })?;
        let connected = self
            .core
            .worker()
            .connect(&theirs.address, self.core.options.fabric);
        let endpoint = connected.map_err(|e| e.to_string())?;
        // From here on the stream carries heartbeats.
        stream
            .set_read_timeout(Some(self.core.options.heartbeat))
            .map_err(io)?;
        let link = Arc::new(UcxLink::new(
            Arc::clone(&self.core),
            name,
            theirs.connection,
            endpoint,
            theirs.epoch,
            stream,
        ));
        if let Some(slot) = write(&self.links).get_mut(here as usize) {
            *slot = Some(Arc::clone(&link));
        }
        if !first {
            hello.write(link.control()).map_err(io)?;
        }
        Ok(link)
    }

    /// Runs `f` on a thread that [`UcxTransport::close`] joins.
    fn watcher(&self, f: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
        let t = std::thread::Builder::new()
            .name("jindou-control".to_owned())
            .spawn(f)?;
        lock(&self.watchers).push(t);
        Ok(())
    }

    /// True if there is room for another connection; forgets the threads of connections that have ended.
    fn has_room(&self) -> bool {
        let mut watchers = lock(&self.watchers);
        watchers.retain(|w| !w.is_finished());
        watchers.len() < CONNECTIONS
    }

    /// Watches a connection until it ends, and removes it. Its number is not reused: late messages may still refer to
    /// it.
    fn watch(&self, link: &Arc<UcxLink>) {
        watch(link, || self.epoch());
        let mut links = write(&self.links);
        let mine = links
            .iter_mut()
            .find(|l| l.as_ref().is_some_and(|l| Arc::ptr_eq(l, link)));
        if let Some(place) = mine {
            *place = None;
        }
    }

    fn accept(self: &Arc<Self>, listener: &TcpListener) {
        loop {
            let accepted = listener.accept();
            if self.core.is_closed() {
                return;
            }
            let Ok((stream, from)) = accepted else {
                // For example too many open files: others may be closed meanwhile.
                std::thread::sleep(NOT_ACCEPTED);
                continue;
            };
            if !self.has_room() {
                continue;
            }
            let shared = Arc::clone(self);
            let _ = self.watcher(move || {
                if let Ok(link) = shared.shake_hands(stream, from.to_string(), HELLO_WAIT, false) {
                    shared.watch(&link);
                }
            });
        }
    }
}

impl UcxTransport {
    /// Loads UCX, listens, and starts the progress thread. An error says in one sentence what is missing.
    pub fn new(options: UcxOptions) -> Result<Arc<Self>> {
        let unavailable =
            |what: &str, e: std::io::Error| TransportError::Unavailable(format!("{what}: {e}"));
        let listen = options.listen.clone();
        let core = Core::new(options)?;
        let listener = TcpListener::bind(&listen)
            .map_err(|e| unavailable(&format!("cannot listen on {listen}"), e))?;
        let address = listener
            .local_addr()
            .map_err(|e| unavailable("cannot listen", e))?
            .to_string();
        let shared = Arc::new(TransportState {
            core,
            epoch: AtomicU64::new(0),
            links: RwLock::default(),
            handlers: RwLock::default(),
            regions: RwLock::default(),
            next_region: AtomicU64::new(1),
            watchers: Mutex::default(),
        });
        let spawn = |name: &str, f: Box<dyn FnOnce() + Send>| {
            std::thread::Builder::new()
                .name(name.to_owned())
                .spawn(f)
                .map_err(|e| unavailable("cannot start a thread", e))
        };
        let (a, b) = (Arc::clone(&shared), Arc::clone(&shared));
        let threads = vec![
            spawn("jindou-progress", Box::new(move || progress::run(&a)))?,
            spawn("jindou-accept", Box::new(move || b.accept(&listener)))?,
        ];
        Ok(Arc::new(Self {
            shared,
            address,
            threads: Mutex::new(threads),
        }))
    }

    /// Reads each range by one bare UCX read into memory of its own, and returns the time of each: the floor with which
    /// a probe compares [`Peer::read_many`]. `peer` must be of this transport. A read that takes longer than `limit`
    /// ends the measurement with an error.
    pub fn bare_reads(
        &self,
        peer: &dyn Peer,
        region: RemoteRegion,
        ranges: &[ByteRange],
        limit: Duration,
    ) -> Result<Vec<Duration>> {
        let wanted = std::ptr::from_ref(peer).cast::<()>();
        let links = read(&self.shared.links);
        let link = links
            .iter()
            .flatten()
            .find(|l| Arc::as_ptr(l).cast::<()>() == wanted)
            .cloned();
        drop(links);
        let link = link.ok_or_else(|| {
            TransportError::Refused("the peer belongs to another transport".to_owned())
        })?;
        bare::reads(&self.shared.core, link.endpoint, region.slot, ranges, limit)
    }

    fn open(&self) -> Result<()> {
        if self.shared.core.is_closed() {
            return Err(TransportError::Closed);
        }
        Ok(())
    }
}

impl Transport for UcxTransport {
    fn address(&self) -> String {
        self.address.clone()
    }

    fn now(&self) -> Moment {
        self.shared.core.now()
    }

    fn epoch(&self) -> Epoch {
        self.shared.epoch()
    }

    fn advance(&self, epoch: Epoch) -> Result<()> {
        self.open()?;
        let before = self.shared.epoch.fetch_max(epoch.0, Ordering::AcqRel);
        if before > epoch.0 {
            return Err(TransportError::StaleEpoch {
                held: epoch,
                current: Epoch(before),
            });
        }
        for link in read(&self.shared.links).iter().flatten() {
            let _ = beat(link.control(), epoch);
        }
        Ok(())
    }

    fn register(&self, memory: Arc<dyn Memory>) -> Result<RegionDescriptor> {
        self.open()?;
        let bytes = memory.bytes();
        let options = &self.shared.core.options;
        let copy = options.fabric.copies_memory();
        let file = memory.file().filter(|_| copy && options.direct);
        let file = file.and_then(|path| FileName::from_path(path, bytes.len() as u64));
        let (handle, base, key) = match file {
            Some(file) => (None, 0, file.to_key()),
            None => {
                let (handle, base, key) = self.shared.core.worker().register(bytes, copy)?;
                (Some(handle), base, key)
            }
        };
        let region = self.shared.next_region.fetch_add(1, Ordering::Relaxed);
        let descriptor = RegionDescriptor {
            region,
            epoch: self.epoch(),
            base,
            len: bytes.len() as u64,
            key,
        };
        write(&self.shared.regions).insert(region, Registered { handle, memory });
        Ok(descriptor)
    }

    fn release(&self, region: u64) -> Result<()> {
        self.open()?;
        match write(&self.shared.regions).remove(&region) {
            Some(r) => {
                if let Some(handle) = r.handle {
                    self.shared.core.worker().unregister(&handle);
                }
                Ok(())
            }
            None => Err(TransportError::Refused(format!("no region {region}"))),
        }
    }

    fn handle(&self, kind: u16, handler: Arc<dyn Handler>) -> Result<()> {
        match write(&self.shared.handlers).entry(kind) {
            Entry::Occupied(_) => Err(TransportError::Refused(format!(
                "messages of kind {kind} already have a handler"
            ))),
            Entry::Vacant(slot) => {
                slot.insert(handler);
                Ok(())
            }
        }
    }

    fn connect(&self, address: &str, deadline: Moment) -> Result<Arc<dyn Peer>> {
        self.open()?;
        let left = || deadline.since(self.now()).max(Duration::from_millis(1));
        let targets = address
            .to_socket_addrs()
            .map_err(|e| TransportError::Refused(format!("{address}: {e}")))?;
        let mut last = unreachable(address, "its name has no address");
        for target in targets {
            let stream = match TcpStream::connect_timeout(&target, left()) {
                Ok(s) => s,
                Err(e) => {
                    last = unreachable(address, e);
                    continue;
                }
            };
            let link = self
                .shared
                .shake_hands(stream, address.to_owned(), left(), true)
                .map_err(|e| unreachable(address, e))?;
            let (shared, watched) = (Arc::clone(&self.shared), Arc::clone(&link));
            self.shared.has_room();
            self.shared
                .watcher(move || shared.watch(&watched))
                .map_err(|e| unreachable(address, e))?;
            // UCX connects lazily; this tests the connection now.
            return match link.request(what::PING, 0, self.epoch(), Vec::new(), deadline) {
                Ok(_) => Ok(link),
                Err(e) => {
                    link.close();
                    Err(e)
                }
            };
        }
        Err(last)
    }

    fn close(&self) {
        if self.shared.core.closed.swap(true, Ordering::AcqRel) {
            return;
        }
        self.shared.core.wake();
        let links = std::mem::take(&mut *write(&self.shared.links));
        for link in links.iter().flatten() {
            link.close();
        }
        // The accepting thread sees the flag at the next connection.
        let _ = TcpStream::connect_timeout(
            &self
                .address
                .parse()
                .unwrap_or_else(|_| ([127, 0, 0, 1], 0).into()),
            Duration::from_millis(200),
        );
        let mut threads = std::mem::take(&mut *lock(&self.threads));
        threads.append(&mut lock(&self.shared.watchers));
        for t in threads {
            // The last handle of the transport may be dropped by one of its own threads.
            if t.thread().id() != std::thread::current().id() {
                let _ = t.join();
            }
        }
        let regions = std::mem::take(&mut *write(&self.shared.regions));
        let (handles, kept): (Vec<_>, Vec<_>) =
            regions.into_values().map(|r| (r.handle, r.memory)).unzip();
        self.shared
            .core
            .shut(handles.into_iter().flatten().collect());
        // Only now may the memory be released: UCX no longer knows of it.
        drop(kept);
        write(&self.shared.handlers).clear();
    }
}

impl Drop for UcxTransport {
    fn drop(&mut self) {
        self.close();
    }
}
