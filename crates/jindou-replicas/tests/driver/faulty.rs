//! An object store with faults drawn from a seed: lost responses, delays, errors and status 409. It records the first
//! object created under each name.

use async_trait::async_trait;
use futures_util::stream::BoxStream;
use futures_util::{StreamExt, TryStreamExt};
use jindou_model::random::splitmix64;
use jindou_replicas::Bucket;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The bytes of each put under one name, each with its time in microseconds.
type Attempts = Vec<(Vec<u8>, u64)>;

#[derive(Debug)]
pub struct Faulty {
    inner: Arc<dyn ObjectStore>,
    seed: AtomicU64,
    /// Number of requests of 1000 that fail.
    pub bad: AtomicU64,
    /// If true, every request fails.
    pub away: AtomicBool,
    /// If true, every create-only put succeeds, even for a name that exists.
    pub careless: AtomicBool,
    /// If set, all puts fail with this kind of error.
    pub unwritable: Mutex<Option<io::ErrorKind>>,
    pub began: Instant,
    /// The first object created under each name, with the time of its put.
    pub first: Mutex<BTreeMap<String, (Vec<u8>, u64)>>,
    /// All puts by name. With a network in between, this store cannot know which of them created the object.
    pub asked: Mutex<BTreeMap<String, Attempts>>,
    pub requests: AtomicU64,
    /// Number of requests by kind.
    pub kinds: Mutex<BTreeMap<&'static str, u64>>,
}

fn error(kind: io::ErrorKind) -> Error {
    Error::Generic {
        store: "faulty",
        source: Box::new(io::Error::from(kind)),
    }
}

/// The next random number of a sequence.
pub fn random(state: &AtomicU64) -> u64 {
    splitmix64(&mut state.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::SeqCst))
}

enum Fate {
    Well,
    /// Not executed; an error is returned.
    Lost,
    /// Executed; an error is returned.
    AnswerLost,
    /// Executed after a delay.
    Late(Duration),
    /// Not executed; status 409 is returned.
    Conflict,
    /// Executed; "exists" is returned, as after a retry inside the client.
    Repeated,
}

impl Faulty {
    pub fn new(inner: Arc<dyn ObjectStore>, seed: u64) -> Arc<Self> {
        Arc::new(Self {
            inner,
            seed: AtomicU64::new(seed),
            bad: AtomicU64::new(0),
            away: AtomicBool::new(false),
            careless: AtomicBool::new(false),
            unwritable: Mutex::new(None),
            began: Instant::now(),
            first: Mutex::default(),
            asked: Mutex::default(),
            kinds: Mutex::default(),
            requests: AtomicU64::new(0),
        })
    }

    /// The bucket with faults in between.
    pub fn between(bucket: &Bucket, seed: u64) -> (Arc<Self>, Bucket) {
        let mut faulty = None;
        let bucket = bucket.wrapped(|store| faulty.insert(Self::new(store, seed)).clone());
        (faulty.unwrap(), bucket)
    }

    fn ask(&self, path: &Path, bytes: &[u8], time: u64) {
        let mut asked = self.asked.lock().unwrap();
        let attempts = asked.entry(path.to_string()).or_default();
        attempts.push((bytes.to_vec(), time));
    }

    fn count(&self, kind: &'static str) {
        *self.kinds.lock().unwrap().entry(kind).or_default() += 1;
    }

    pub fn time(&self) -> u64 {
        self.began.elapsed().as_micros() as u64
    }

    fn fate(&self) -> Result<Fate> {
        self.requests.fetch_add(1, Ordering::SeqCst);
        if self.away.load(Ordering::SeqCst) {
            return Err(error(io::ErrorKind::NotConnected));
        }
        if random(&self.seed) % 1000 >= self.bad.load(Ordering::SeqCst) {
            return Ok(Fate::Well);
        }
        Ok(match random(&self.seed) % 6 {
            0 => Fate::Lost,
            1 | 2 => Fate::AnswerLost,
            3 => Fate::Late(Duration::from_millis(random(&self.seed) % 1500)),
            4 => Fate::Conflict,
            _ => Fate::Repeated,
        })
    }

    /// The faults that a read can have, since it changes nothing.
    async fn read_fate(&self) -> Result<()> {
        match self.fate()? {
            Fate::Well | Fate::Repeated => Ok(()),
            Fate::Late(time) => {
                tokio::time::sleep(time).await;
                Ok(())
            }
            _ => Err(error(io::ErrorKind::ConnectionReset)),
        }
    }
}

impl std::fmt::Display for Faulty {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "Faulty({})", self.inner)
    }
}

fn exists(path: &Path) -> Error {
    Error::AlreadyExists {
        path: path.to_string(),
        source: "409".into(),
    }
}

#[async_trait]
impl ObjectStore for Faulty {
    async fn put_opts(
        &self,
        path: &Path,
        payload: PutPayload,
        mut options: PutOptions,
    ) -> Result<PutResult> {
        self.count("PUT");
        let fate = self.fate()?;
        if let Some(kind) = *self.unwritable.lock().unwrap() {
            return Err(error(kind));
        }
        match fate {
            Fate::Lost => return Err(error(io::ErrorKind::ConnectionReset)),
            Fate::Conflict => return Err(exists(path)),
            Fate::Late(time) => tokio::time::sleep(time).await,
            _ => {}
        }
        let time = self.time();
        let bytes: Vec<u8> = payload.iter().flat_map(|part| part.to_vec()).collect();
        if self.careless.load(Ordering::SeqCst) {
            options = PutOptions::default();
        }
        self.ask(path, &bytes, time);
        let result = self.inner.put_opts(path, payload, options).await?;
        let mut first = self.first.lock().unwrap();
        first.entry(path.to_string()).or_insert((bytes, time));
        match fate {
            Fate::AnswerLost => Err(error(io::ErrorKind::ConnectionReset)),
            Fate::Repeated => Err(exists(path)),
            _ => Ok(result),
        }
    }

    async fn put_multipart_opts(
        &self,
        path: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(path, options).await
    }

    async fn get_opts(&self, path: &Path, options: GetOptions) -> Result<GetResult> {
        self.count(if options.head { "HEAD" } else { "GET" });
        self.read_fate().await?;
        self.inner.get_opts(path, options).await
    }

    fn delete_stream(
        &self,
        paths: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.count("DELETE");
        match self.fate() {
            Ok(Fate::Well) => self.inner.delete_stream(paths),
            // The body ends in the middle.
            _ => {
                let some = random(&self.seed) as usize % 4;
                let lost = futures_util::stream::iter([Err(error(io::ErrorKind::ConnectionReset))]);
                self.inner
                    .delete_stream(paths.take(some).boxed())
                    .chain(lost)
                    .boxed()
            }
        }
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.listed(self.inner.list(prefix))
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Path>,
        offset: &Path,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        self.listed(self.inner.list_with_offset(prefix, offset))
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.read_fate().await?;
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

impl Faulty {
    fn listed(
        &self,
        listed: BoxStream<'static, Result<ObjectMeta>>,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        self.count("LIST");
        let late = match self.fate() {
            Ok(Fate::Well | Fate::Repeated) => return listed,
            Ok(Fate::Late(time)) => Some(time),
            _ => None,
        };
        let begin = async move {
            match late {
                Some(time) => tokio::time::sleep(time).await,
                None => return Err(error(io::ErrorKind::ConnectionReset)),
            }
            Ok(listed)
        };
        futures_util::stream::once(begin).try_flatten().boxed()
    }
}
