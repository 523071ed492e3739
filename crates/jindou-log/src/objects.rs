//! An object store as a place for backups.

use crate::files::{File, Files};
use object_store::path::Path as Key;
use object_store::{ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload};
use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

/// Number of objects that are read at the same time.
const AT_A_TIME: usize = 16;

/// Implementation of [`Files`] by any `object_store`: objects are listed, read, created and removed, but not appended
/// to.
///
/// Requests run on a thread of their own, so that this may be called from any code, including asynchronous code (which
/// it blocks).
pub struct Objects {
    store: Arc<dyn ObjectStore>,
    prefix: Key,
    runtime: Option<Runtime>,
}

jindou_model::debug_format!(Objects, |this| "Objects({}/{})", this.store, this.prefix);

impl Objects {
    /// Files for the objects whose names begin with `prefix` followed by a slash.
    ///
    /// # Errors
    /// Fails if no thread can be started.
    pub fn new(store: Arc<dyn ObjectStore>, prefix: &str) -> io::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("jindou-objects")
            .enable_all()
            .build()?;
        Ok(Self {
            store,
            prefix: Key::from(prefix),
            runtime: Some(runtime),
        })
    }

    fn key(&self, name: &str) -> Key {
        self.prefix.clone().join(name)
    }

    /// Runs a request on the runtime's thread and waits for its result.
    fn run<T: Send + 'static>(
        &self,
        request: impl Future<Output = object_store::Result<T>> + Send + 'static,
    ) -> io::Result<T> {
        let (answer, answered) = mpsc::sync_channel(1);
        let Some(runtime) = &self.runtime else {
            return Err(io::ErrorKind::Other.into());
        };
        runtime.spawn(async move {
            // Sending cannot fail, since the receiver waits for the answer.
            let _ = answer.send(request.await);
        });
        match answered.recv() {
            Ok(result) => result.map_err(to_io),
            Err(_) => Err(io::Error::other("the request was dropped")),
        }
    }
}

impl Drop for Objects {
    fn drop(&mut self) {
        // A runtime must not be dropped in asynchronous code, since that panics.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

fn to_io(e: object_store::Error) -> io::Error {
    use object_store::Error as E;
    let kind = match &e {
        E::NotFound { .. } => io::ErrorKind::NotFound,
        E::AlreadyExists { .. } | E::Precondition { .. } => io::ErrorKind::AlreadyExists,
        E::PermissionDenied { .. } | E::Unauthenticated { .. } => io::ErrorKind::PermissionDenied,
        E::NotSupported { .. } | E::NotImplemented { .. } => io::ErrorKind::Unsupported,
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, e)
}

async fn get(store: Arc<dyn ObjectStore>, key: Key, limit: u64) -> object_store::Result<Vec<u8>> {
    let result = store.get(&key).await?;
    if limit >= result.meta.size {
        return Ok(result.bytes().await?.into());
    }
    drop(result);
    Ok(store.get_range(&key, 0..limit).await?.into())
}

fn no_appending() -> io::Error {
    io::Error::new(
        io::ErrorKind::Unsupported,
        "objects are written once and as a whole",
    )
}

impl Files for Objects {
    fn list(&self) -> io::Result<Vec<String>> {
        let (store, prefix) = (Arc::clone(&self.store), self.prefix.clone());
        let list = self.run(async move { store.list_with_delimiter(Some(&prefix)).await })?;
        let names = list.objects.iter().filter_map(|o| o.location.filename());
        Ok(names.map(str::to_owned).collect())
    }

    fn read(&self, name: &str, limit: u64) -> io::Result<Vec<u8>> {
        self.run(get(Arc::clone(&self.store), self.key(name), limit))
    }

    fn read_many(&self, names: &[String], limit: u64) -> Vec<io::Result<Vec<u8>>> {
        let keys: Vec<Key> = names.iter().map(|n| self.key(n)).collect();
        let store = Arc::clone(&self.store);
        let all = self.run(async move {
            let mut results: Vec<Option<object_store::Result<Vec<u8>>>> =
                keys.iter().map(|_| None).collect();
            let mut running = JoinSet::new();
            let mut keys = keys.into_iter().enumerate();
            loop {
                while running.len() < AT_A_TIME
                    && let Some((i, key)) = keys.next()
                {
                    let store = Arc::clone(&store);
                    running.spawn(async move { (i, get(store, key, limit).await) });
                }
                match running.join_next().await {
                    None => return Ok(results),
                    Some(Ok((i, result))) => results[i] = Some(result),
                    Some(Err(_)) => {}
                }
            }
        });
        match all {
            Ok(results) => results
                .into_iter()
                .map(|r| match r {
                    Some(r) => r.map_err(to_io),
                    None => Err(io::Error::other("the request failed")),
                })
                .collect(),
            Err(e) => names
                .iter()
                .map(|_| Err(io::Error::new(e.kind(), e.to_string())))
                .collect(),
        }
    }

    fn create(&self, _: &str) -> io::Result<Box<dyn File>> {
        Err(no_appending())
    }

    fn open(&self, _: &str) -> io::Result<Box<dyn File>> {
        Err(no_appending())
    }

    fn rename(&self, _: &str, _: &str) -> io::Result<()> {
        Err(no_appending())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let (store, key) = (Arc::clone(&self.store), self.key(name));
        self.run(async move { store.delete(&key).await })
    }

    fn sync_directory(&self) -> io::Result<()> {
        Ok(())
    }

    fn path(&self, name: &str) -> PathBuf {
        PathBuf::from(self.store.to_string()).join(self.key(name).as_ref())
    }

    fn put(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let (store, key) = (Arc::clone(&self.store), self.key(name));
        let payload = PutPayload::from(bytes.to_vec());
        let options = PutOptions::from(PutMode::Create);
        self.run(async move { store.put_opts(&key, payload, options).await })?;
        Ok(())
    }
}
