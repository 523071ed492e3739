//! Resources that all databases and queries of a process share: threads, memory, and devices other than the CPU.

use crate::device::{Chosen, Devices};
use crate::options::QueryOptions;
use crate::update::UpdateOptions;
use jindou_engine::{ExecutorChoice, Hub, WorkerPool, Workers};
use jindou_graph::Graph;
use jindou_model::{Machine, MemoryBudget, QueryTemp, Result, TempSpace, temp};
use jindou_plan::Plan;
use jindou_store::LoadOptions;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Threads, memory and devices of a process. A program creates one and passes it to all databases that it opens
/// ([`OpenOptions::runtime`]). Cheap to clone.
///
/// ```no_run
/// use jindou::{Database, OpenOptions, Runtime};
///
/// let runtime = Runtime::builder().threads(8).memory(16 << 30).build();
/// let options = OpenOptions::default().with_runtime(runtime);
/// let (one, other) = (Database::open_with("one.store", &options)?, Database::open_with("other.store", &options)?);
/// # Ok::<(), jindou::Error>(())
/// ```
///
/// [`OpenOptions::runtime`]: crate::OpenOptions::runtime
#[derive(Clone)]
pub struct Runtime {
    inner: Arc<RuntimeState>,
}

struct RuntimeState {
    load: LoadOptions,
    memory: MemoryBudget,
    workers: Workers,
    /// The worker threads, through the engine's interface.
    pool: Arc<dyn WorkerPool>,
    devices: Devices,
    temp: Arc<TempSpace>,
    temp_dir: Option<Arc<Path>>,
}

/// Builder of a [`Runtime`]. Values that are not set are taken from the machine when the runtime is built.
#[derive(Clone, Debug, Default)]
pub struct RuntimeBuilder {
    threads: Option<usize>,
    memory: Option<u64>,
    gpu_memory: Option<u64>,
    temp_dir: Option<PathBuf>,
    temp_limit: Option<u64>,
}

impl RuntimeBuilder {
    /// Number of threads that compute for heavy queries at the same time, over all queries; by default the number of
    /// cores.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads.max(1));
        self
    }

    /// Bytes of memory that all queries and updates may use together, and that each load may use. By default half of
    /// this process's memory for queries and updates, and two thirds for a load.
    #[must_use]
    pub fn memory(mut self, bytes: u64) -> Self {
        self.memory = Some(bytes);
        self
    }

    /// Bytes of each GPU's memory that segments and tables may use together. By default all memory that is free on the
    /// GPU. Has no effect without the feature `gpu`.
    #[must_use]
    pub fn gpu_memory(mut self, bytes: u64) -> Self {
        self.gpu_memory = Some(bytes);
        self
    }

    /// Folder of the temporary files of queries that need more memory than they may use. By default the store's own
    /// folder; for a database in memory the system's folder for temporary files, if that is on a disk.
    ///
    /// # Errors
    /// [`Error::Usage`](crate::Error::Usage) for a folder on a memory file system, [`Error::Io`](crate::Error::Io) for
    /// one in which no file can be created.
    pub fn temp_dir(mut self, folder: impl Into<PathBuf>) -> Result<Self> {
        let folder = folder.into();
        temp::check_folder(&folder)?;
        self.temp_dir = Some(folder);
        Ok(self)
    }

    /// Bytes that the temporary files of all queries may take together. By default half of the space that is free when
    /// the first one is created.
    #[must_use]
    pub fn temp_limit(mut self, bytes: u64) -> Self {
        self.temp_limit = Some(bytes);
        self
    }

    /// Creates the runtime. Threads are started and devices opened on first use.
    #[must_use]
    pub fn build(self) -> Runtime {
        let gpu_memory = self.gpu_memory.unwrap_or(u64::MAX);
        self.with(|host| Devices::limited(gpu_memory, host))
    }

    fn with(self, devices: impl FnOnce(&MemoryBudget) -> Devices) -> Runtime {
        let standard = LoadOptions::on(Machine::read());
        let threads = self.threads.unwrap_or(standard.threads);
        let workers = Workers::new(threads);
        let memory = MemoryBudget::new(self.memory.unwrap_or(standard.memory / 4 * 3));
        Runtime {
            inner: Arc::new(RuntimeState {
                devices: devices(&memory),
                memory,
                load: match self.memory {
                    Some(memory) => standard.with_memory(memory),
                    None => standard,
                }
                .with_threads(threads),
                pool: Arc::new(workers.clone()),
                workers,
                temp: Arc::new(TempSpace::new(self.temp_limit)),
                temp_dir: self.temp_dir.map(Into::into),
            }),
        }
    }
}

impl Default for Runtime {
    fn default() -> Self {
        Self::builder().build()
    }
}

jindou_model::debug_format!(
    Runtime,
    |this| "Runtime {{ workers: {:?}, memory: {:?}, .. }}",
    this.inner.workers,
    this.inner.memory
);

impl Runtime {
    /// A builder whose defaults are this machine's values.
    #[must_use]
    pub fn builder() -> RuntimeBuilder {
        RuntimeBuilder::default()
    }

    /// Number of threads that compute for heavy queries at the same time.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.inner.load.threads
    }

    /// The budget that queries and updates without a budget of their own share. One of them may use all of it.
    #[must_use]
    pub fn memory(&self) -> &MemoryBudget {
        &self.inner.memory
    }

    /// The computing slots that threads take for heavy queries, and the helper threads.
    #[must_use]
    pub fn workers(&self) -> &Workers {
        &self.inner.workers
    }

    /// Starts to open this machine's GPU and to measure its speeds, in the background, so that it is ready for the
    /// first query that suits it. Otherwise, the first such query starts this and itself runs on the CPU.
    pub fn open_gpu(&self) {
        self.inner.devices.open_in_background();
    }

    /// Opens the GPU as [`Self::open_gpu`] does, and waits at most `longest` until its speeds are known, or until it is
    /// known that there is no GPU. Returns false if the time passed first. Queries need not wait: they run on the CPU
    /// until then.
    pub fn wait_for_gpu(&self, longest: Duration) -> bool {
        let began = Instant::now();
        loop {
            if self.inner.devices.are_known() {
                return true;
            }
            if began.elapsed() >= longest {
                return false;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// The space that queries' temporary files take.
    #[must_use]
    pub fn temp(&self) -> &TempSpace {
        &self.inner.temp
    }

    /// The folder for temporary files of a database whose store is in `store`, if any; `None` if there is no suitable
    /// one.
    pub(crate) fn temp_dir(&self, store: Option<&Path>) -> Option<Arc<Path>> {
        if let Some(folder) = &self.inner.temp_dir {
            return Some(Arc::clone(folder));
        }
        let folder: Arc<Path> = match store {
            Some(store) => store.into(),
            None => std::env::temp_dir().into(),
        };
        (!temp::is_in_memory(&folder)).then_some(folder)
    }

    /// Options for a load in this process, with the runtime's memory and threads.
    #[must_use]
    pub fn load_options(&self) -> LoadOptions {
        self.inner.load.clone()
    }

    #[cfg(all(test, feature = "gpu"))]
    pub(crate) fn with_devices(devices: Devices) -> Self {
        Self::builder().with(|_| devices)
    }

    pub(crate) fn pool(&self) -> &Arc<dyn WorkerPool> {
        &self.inner.pool
    }

    pub(crate) fn devices(&self) -> &Devices {
        &self.inner.devices
    }

    /// A budget for a query without a budget of its own: a part of the runtime's.
    fn part(&self) -> MemoryBudget {
        self.inner.memory.part(self.inner.memory.limit())
    }

    /// The temporary files of a query in this folder, with a limit of their bytes.
    pub(crate) fn temp_files(&self, folder: &Arc<Path>, limit: Option<u64>) -> Option<QueryTemp> {
        let limit = limit.unwrap_or(u64::MAX);
        let space = || Arc::clone(&self.inner.temp);
        (limit > 0).then(|| QueryTemp::new(space(), Arc::clone(folder), limit))
    }

    /// A query's options, with the runtime's values for those that the caller did not set.
    pub(crate) fn settle<'o>(&'o self, options: &'o QueryOptions) -> Settled<'o, QueryOptions> {
        Settled {
            files: None,
            threads: options.threads.unwrap_or(self.threads()).max(1),
            memory: options.memory.clone().unwrap_or_else(|| self.part()),
            pool: options.pool.as_ref().unwrap_or_else(|| self.pool()),
            runtime: self,
            hub: None,
            options,
        }
    }

    /// An update's options, with the runtime's values for those that the caller did not set.
    pub(crate) fn settle_update<'o>(
        &'o self,
        options: &'o UpdateOptions,
    ) -> Settled<'o, UpdateOptions> {
        Settled {
            files: None,
            threads: options.threads.unwrap_or(self.threads()).max(1),
            memory: options.memory.clone().unwrap_or_else(|| self.part()),
            pool: self.pool(),
            runtime: self,
            hub: None,
            options,
        }
    }
}

/// Options of a caller, with the runtime's values for those that the caller did not set.
pub(crate) struct Settled<'o, O> {
    /// Number of threads, at least one.
    pub threads: usize,
    pub memory: MemoryBudget,
    pub pool: &'o Arc<dyn WorkerPool>,
    pub runtime: &'o Runtime,
    /// The temporary files that the query may create.
    pub files: Option<QueryTemp>,
    /// Sends parts of queries to the shards of a sharded store; `None` for other stores.
    pub hub: Option<&'o Hub>,
    options: &'o O,
}

impl Settled<'_, QueryOptions> {
    /// Chooses the executor for a plan.
    ///
    /// # Errors
    /// [`Error::Gpu`](jindou_model::Error::Gpu) with a reason in one sentence, if a GPU is required and there is none.
    pub(crate) fn choose(&self, plan: &Plan, snapshot: &dyn Graph) -> Result<Chosen> {
        let chosen = self
            .runtime
            .devices()
            .choose(plan, snapshot, self.gpu, self.threads)?;
        Ok(match (&chosen.executor, self.hub) {
            (ExecutorChoice::Here, Some(hub)) if snapshot.is_sharded() => {
                ExecutorChoice::Shards(Arc::new(hub.executor(self.shard_mode))).into()
            }
            _ => chosen,
        })
    }
}

impl<O> Deref for Settled<'_, O> {
    type Target = O;

    fn deref(&self) -> &O {
        self.options
    }
}

/// A computing slot that this thread holds for heavy work. Dropping it releases the slot, unless the thread held one
/// before.
pub(crate) struct Computing<'p>(Option<&'p dyn WorkerPool>);

impl<'p> Computing<'p> {
    /// Waits for a slot, unless the thread already holds one.
    ///
    /// # Errors
    /// Those of `cancel`.
    pub(crate) fn enter(
        pool: &'p dyn WorkerPool,
        cancel: &jindou_model::CancelToken,
    ) -> jindou_model::Result<Self> {
        Ok(Self(pool.enter(cancel)?.then_some(pool)))
    }

    /// Takes a slot at once, even if all slots are taken; for work for which other threads wait.
    pub(crate) fn at_once(workers: &'p Workers) -> Self {
        Self(workers.enter_at_once().then_some(workers))
    }

    /// The value for light work, which needs no slot.
    pub(crate) fn light() -> Self {
        Self(None)
    }
}

impl Drop for Computing<'_> {
    fn drop(&mut self) {
        if let Some(pool) = self.0 {
            pool.leave();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Database, OpenOptions};

    #[test]
    fn queries_share_the_runtime_s_memory() {
        let runtime = Runtime::builder().threads(3).memory(1 << 20).build();
        assert_eq!(runtime.threads(), 3);
        assert_eq!(runtime.load_options().memory, 1 << 20);
        let options = QueryOptions::default();
        let (one, other) = (runtime.settle(&options), runtime.settle(&options));
        assert_eq!((one.threads, one.memory.limit()), (3, 1 << 20));
        assert!(one.memory.try_charge(600 << 10) && !other.memory.try_charge(600 << 10));
        // The budget for queries without one of their own charges 1 KiB in advance (see `MemoryBudget::part`).
        assert_eq!(runtime.memory().used(), 601 << 10);
        drop(one);
        assert!(other.memory.try_charge(600 << 10));
        drop(other);
        assert_eq!(runtime.memory().used(), 0);
        // A query with its own budget does not charge the runtime's.
        let own = QueryOptions::default()
            .with_threads(7)
            .with_memory(MemoryBudget::new(8 << 20));
        let own = runtime.settle(&own);
        assert!(own.threads == 7 && own.memory.try_charge(4 << 20));
        assert_eq!(runtime.memory().used(), 0);
    }

    #[test]
    fn databases_share_a_runtime() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("store");
        let runtime = Runtime::builder().threads(1).memory(64 << 20).build();
        let text = b"<http://e/s> <http://e/p> <http://e/o> .".to_vec();
        let sources = jindou_parse::Sources::builder()
            .text("a.ttl", text, jindou_parse::Format::Turtle)
            .build()
            .unwrap();
        let progress = jindou_model::Progress::default();
        Database::load(&dir, &sources, &runtime.load_options(), &progress).unwrap();
        let options = OpenOptions::default().with_runtime(runtime.clone());
        let db = Database::open_with(&dir, &options).unwrap();
        assert!(Arc::ptr_eq(&db.runtime().inner, &runtime.inner));
        assert_eq!(
            db.query("SELECT * { ?s ?p ?o }").unwrap().solutions().len(),
            1
        );
        assert!(runtime.memory().peak() > 0);
        assert_eq!(runtime.workers().load(), (0, 0));
    }
}
