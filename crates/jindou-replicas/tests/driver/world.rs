//! Servers and clients in this process, and the history that the simulator's checker judges.

use crate::faulty::Faulty;
use crate::store::{Folder, Tiny};
use jindou_replicas::simulate::{Ack, EPOCH, History, ReadAnswer, State, fingerprint, judge};
use jindou_replicas::{
    Bucket, Consistency, Failure, FromPeer, Handle, Hub, Limits, Name, NoPeers, Options, Outcome,
    Peers, Request, RequestKey, Settings, Stopped, net, start,
};
use object_store::ObjectStore;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, JoinSet};

/// How servers are connected to each other.
pub enum Way {
    NoPeers,
    Hub(Hub),
    /// TCP over the loopback interface.
    Net,
}

impl Way {
    pub fn hub() -> Self {
        Self::Hub(Hub::default())
    }
}

/// The task of a driver.
pub type DriverTask = JoinHandle<Result<(), Stopped>>;

/// Starts a server over these connections, and its driver.
///
/// # Errors
/// The reason why the server does not start.
pub async fn begin<P: Peers + Sync>(
    store: Tiny,
    bucket: Bucket,
    (peers, incoming): (P, mpsc::Receiver<FromPeer>),
    options: Options,
) -> Result<(Handle<State>, DriverTask), String> {
    let (handle, driver) = start(store, bucket, peers, incoming, options).await?;
    Ok((handle, tokio::spawn(driver.run())))
}

pub struct World {
    pub faulty: Arc<Faulty>,
    pub bucket: Bucket,
    way: Way,
    pub settings: Settings,
    history: Mutex<History>,
    keys: AtomicU64,
    runs: AtomicU64,
    newest: AtomicU64,
    /// The last time at which servers or connections were disturbed.
    disturbed: AtomicU64,
    /// The same for the bucket.
    cut_off: AtomicU64,
    /// A direct path to the bucket, if there is a network between `faulty` and the bucket: `faulty` then does not know
    /// which puts succeeded.
    truth: Option<Bucket>,
    /// True if requests to the bucket fail until the end of the run.
    pub always_bad: AtomicBool,
    over: AtomicBool,
    servers: Mutex<Vec<Option<Running>>>,
}

#[derive(Clone)]
pub struct Running {
    pub handle: Handle<State>,
    pub store: Tiny,
    run: u64,
}

/// A server: its index, its folder, and its driver if it is running.
pub struct Server {
    pub index: usize,
    pub folder: Folder,
    pub running: Option<(Running, DriverTask)>,
}

impl Server {
    /// The process, which must run.
    pub fn process(&self) -> &Running {
        &self.running.as_ref().unwrap().0
    }
}

/// A request with its fingerprint.
pub fn request(key: u128) -> Request {
    let key = RequestKey(key);
    let fingerprint = fingerprint(key);
    Request { key, fingerprint }
}

pub fn limits() -> Limits {
    Limits {
        request: Duration::from_secs(1),
        ..Limits::default()
    }
}

impl World {
    pub fn new(
        store: Arc<dyn ObjectStore>,
        folder: Option<&Path>,
        way: Way,
        seed: u64,
        settings: Settings,
    ) -> Arc<Self> {
        let faulty = Faulty::new(store, seed);
        let bucket = match folder {
            Some(folder) => {
                // Long, since the disk may be slow and each object is made durable.
                let request = Duration::from_secs(20);
                let limits = Limits {
                    request,
                    ..limits()
                };
                Bucket::over_folder(faulty.clone(), folder, limits)
            }
            None => Bucket::new(faulty.clone(), "prefix/of it", limits()),
        };
        Self::of(faulty, bucket, None, way, settings)
    }

    /// Creates a world whose path to the bucket has faults of its own; `truth` is a path without faults.
    #[cfg(feature = "s3")]
    pub fn far(bucket: &Bucket, truth: Bucket, seed: u64, settings: Settings) -> Arc<Self> {
        let (faulty, bucket) = Faulty::between(bucket, seed);
        Self::of(faulty, bucket, Some(truth), Way::hub(), settings)
    }

    fn of(
        faulty: Arc<Faulty>,
        bucket: Bucket,
        truth: Option<Bucket>,
        way: Way,
        settings: Settings,
    ) -> Arc<Self> {
        let world = Arc::new(Self {
            faulty,
            bucket,
            way,
            settings,
            history: Mutex::default(),
            keys: AtomicU64::new(0),
            runs: AtomicU64::new(0),
            newest: AtomicU64::new(0),
            disturbed: AtomicU64::new(0),
            cut_off: AtomicU64::new(0),
            truth,
            always_bad: AtomicBool::new(false),
            over: AtomicBool::new(false),
            servers: Mutex::default(),
        });
        // A busy machine may stop all servers for longer than their timeouts. Such times are not judged as calm.
        let watched = Arc::downgrade(&world);
        tokio::spawn(async move {
            loop {
                let before = std::time::Instant::now();
                tokio::time::sleep(Duration::from_millis(50)).await;
                let Some(world) = watched.upgrade() else {
                    return;
                };
                if before.elapsed() > Duration::from_millis(300) {
                    world.disturb();
                    world.disturb_bucket();
                }
            }
        });
        world
    }

    pub fn disturb(&self) {
        let now = self.faulty.time();
        self.disturbed.fetch_max(now, Ordering::SeqCst);
    }

    pub fn disturb_bucket(&self) {
        let now = self.faulty.time();
        self.cut_off.fetch_max(now, Ordering::SeqCst);
    }

    pub async fn start(&self, server: &mut Server) {
        let store = Tiny {
            folder: server.folder.clone(),
            ..Tiny::default()
        };
        let name = format!("server-{}", server.index);
        let mut options = Options::new(&name);
        options.settings = self.settings.clone();
        options.new_log = Some(EPOCH);
        let (handle, task) = loop {
            let (store, mut options) = (store.clone(), options.clone());
            let bucket = self.bucket.clone();
            let started = match &self.way {
                Way::Hub(hub) => begin(store, bucket, hub.connect(&name), options).await,
                Way::NoPeers => begin(store, bucket, NoPeers::connect(), options).await,
                Way::Net => {
                    let connected = net::connect("127.0.0.1:0", &mut options).await;
                    begin(store, bucket, connected.unwrap(), options).await
                }
            };
            match started {
                Ok(started) => break started,
                // Retry if the first server has not uploaded its store yet, or if the bucket failed.
                Err(why) => {
                    let early = why.contains("has not been uploaded yet");
                    let bad = self.faulty.bad.load(Ordering::SeqCst) > 0 || self.truth.is_some();
                    assert!(early || bad, "{why}");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        };
        self.disturb();
        let run = self.runs.fetch_add(1, Ordering::SeqCst);
        let running = Running { handle, store, run };
        let mut servers = self.servers.lock().unwrap();
        if servers.len() <= server.index {
            servers.resize(server.index + 1, None);
        }
        servers[server.index] = Some(running.clone());
        drop(servers);
        server.running = Some((running, task));
    }

    pub async fn new_server(&self, index: usize, empty: bool) -> Server {
        let folder = Folder::default();
        if !empty {
            *folder.0.lock().unwrap() = Some(Default::default());
        }
        let mut server = Server {
            index,
            folder,
            running: None,
        };
        self.start(&mut server).await;
        server
    }

    /// Servers, some of which begin with an empty folder.
    pub async fn new_servers<const N: usize>(&self, empty: [bool; N]) -> Vec<Server> {
        let mut servers = Vec::new();
        for (index, empty) in empty.into_iter().enumerate() {
            servers.push(self.new_server(index, empty).await);
        }
        servers
    }

    /// Aborts the driver in the middle of whatever it does.
    pub async fn kill(&self, server: &mut Server) {
        self.servers.lock().unwrap()[server.index] = None;
        self.disturb();
        if let Some((_, task)) = server.running.take() {
            task.abort();
            let _ = task.await;
        }
        self.disturb();
    }

    fn some_server(&self, pick: u64) -> Option<(usize, Running)> {
        let servers = self.servers.lock().unwrap();
        let living: Vec<_> = (servers.iter().enumerate())
            .filter_map(|(index, running)| Some((index, running.clone()?)))
            .collect();
        let at = (pick as usize).checked_rem(living.len())?;
        Some(living[at].clone())
    }

    /// Sends one update with the same key to the servers in turn, until its outcome is known. Panics after 120
    /// attempts.
    pub async fn update(&self) {
        let number = self.keys.fetch_add(1, Ordering::SeqCst) + 1;
        let request = request(number.into());
        let key = request.key;
        let body: Vec<u8> = match number % 37 {
            // An unknown register: refused.
            36 => vec![4],
            _ => vec![(number % 4) as u8; 1 + (number % 50) as usize],
        };
        for attempt in 0..120 {
            let Some((_, server)) = self.some_server(number + attempt) else {
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            let asked = server.handle.update(request, body.clone().into());
            let outcome = tokio::time::timeout(Duration::from_secs(12), asked).await;
            let now = self.faulty.time();
            // Over TCP, a new server is connected only once its peers have read the list of servers.
            let connected = match self.way {
                Way::NoPeers => false,
                Way::Hub(_) => true,
                Way::Net => self.faulty.bad.load(Ordering::SeqCst) == 0,
            };
            let calm =
                connected && now.saturating_sub(self.disturbed.load(Ordering::SeqCst)) >= 3_000_000;
            let done = match outcome {
                Ok(Outcome::Done {
                    number,
                    fingerprint,
                    report,
                }) => {
                    self.newest.fetch_max(number, Ordering::SeqCst);
                    Some((number, fingerprint, report))
                }
                Ok(Outcome::Refused(_)) => None,
                Ok(Outcome::Unknown | Outcome::Missing(_)) | Err(_) => {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            };
            self.history.lock().unwrap().acks.push(Ack {
                time: now,
                key,
                done,
                calm,
            });
            return;
        }
        panic!("no outcome of {key:?}");
    }

    /// Sends a query to the server with this index. Returns whether it was answered; `None` if the server is down.
    pub async fn query(&self, index: usize, consistency: Consistency) -> Option<bool> {
        let running = self.servers.lock().unwrap().get(index)?.clone()?;
        let asked = self.faulty.time();
        // As `Replica` does: a fresh snapshot is read without the driver.
        let read = match consistency == Consistency::Default && running.handle.fresh().is_now() {
            true => Ok(*running.store.published.lock().unwrap()),
            false => running.handle.read(consistency).await,
        };
        let time = self.faulty.time();
        let Ok((number, state)) = read else {
            return Some(false);
        };
        let well = self.faulty.bad.load(Ordering::SeqCst) == 0
            && !self.faulty.away.load(Ordering::SeqCst)
            && !self.always_bad.load(Ordering::SeqCst)
            && asked.saturating_sub(self.cut_off.load(Ordering::SeqCst)) >= 5_000_000;
        self.history.lock().unwrap().reads.push(ReadAnswer {
            server: index,
            start: running.run,
            asked,
            time,
            consistency,
            number,
            digest: state.digest(),
            bucket: well,
        });
        Some(true)
    }

    /// Starts clients that run until `finish`: `updating` clients that send updates, and one client per server that
    /// sends queries.
    pub fn clients(self: &Arc<Self>, updating: usize, servers: usize) -> JoinSet<()> {
        let mut clients = JoinSet::new();
        for _ in 0..updating {
            let world = self.clone();
            clients.spawn(async move {
                while !world.over.load(Ordering::SeqCst) {
                    world.update().await;
                }
            });
        }
        for index in 0..servers {
            let world = self.clone();
            clients.spawn(async move {
                for step in 0_u64.. {
                    if world.over.load(Ordering::SeqCst) {
                        return;
                    }
                    let consistency = match step % 10 {
                        0..6 => Consistency::Default,
                        6 => Consistency::Strict,
                        7 | 8 => Consistency::AtLeast(world.newest.load(Ordering::SeqCst)),
                        _ => Consistency::Any,
                    };
                    world.query(index, consistency).await;
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            });
        }
        clients
    }

    /// Number of the newest group that was ever created.
    pub fn groups(&self) -> u64 {
        self.first_groups()
            .last_key_value()
            .map_or(0, |(number, _)| *number)
    }

    fn first_groups(&self) -> BTreeMap<u64, (jindou_replicas::Blob, u64)> {
        let first = self.faulty.first.lock().unwrap();
        let groups = first.iter().filter_map(|(path, (bytes, time))| {
            let log = path.find("log/")?;
            match Name::parse(EPOCH, &path[log..])? {
                Name::Group(number) => Some((number, (bytes.as_slice().into(), *time))),
                _ => None,
            }
        });
        groups.collect()
    }

    /// The groups in the bucket, each with the time of the first put of its bytes.
    async fn true_groups(&self, truth: &Bucket) -> BTreeMap<u64, (jindou_replicas::Blob, u64)> {
        let mut groups = BTreeMap::new();
        for number in 1.. {
            let name = Name::Group(number).text(EPOCH);
            let bytes = match truth.get(&name).await {
                Ok(bytes) => bytes,
                Err(Failure::Missing) => break,
                Err(failure) => panic!("{failure}"),
            };
            let asked = self.faulty.asked.lock().unwrap();
            let attempts = (asked.iter().find(|(path, _)| path.ends_with(&name))).unwrap();
            let first = attempts.1.iter().find(|(asked, _)| *asked == bytes);
            groups.insert(number, (bytes.as_ref().into(), first.unwrap().1));
        }
        // Every group whose put is known to have succeeded must be in the bucket.
        for (number, (bytes, _)) in self.first_groups() {
            assert_eq!(groups[&number].0, bytes);
        }
        groups
    }

    /// Ends all faults and clients, waits until every server has published the whole log, and judges the history.
    pub async fn finish(self: &Arc<Self>, mut clients: JoinSet<()>, servers: &[Server]) -> Sums {
        self.faulty.bad.store(0, Ordering::SeqCst);
        self.over.store(true, Ordering::SeqCst);
        while let Some(client) = clients.join_next().await {
            client.unwrap();
        }
        self.update().await;
        let log = match &self.truth {
            Some(truth) => self.true_groups(truth).await,
            None => self.first_groups(),
        };
        let head = log.last_key_value().map_or(0, |(number, _)| *number);
        for server in servers {
            let Some((running, task)) = &server.running else {
                continue;
            };
            assert!(!task.is_finished(), "server {} has ended", server.index);
            let mut tries = 0;
            while running.store.published.lock().unwrap().0 < head {
                tries += 1;
                assert!(
                    tries < 400,
                    "server {} ends at {:?}, the log at {head}: {:?}",
                    server.index,
                    running.store.published,
                    running.store.reports
                );
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            let (number, state) = *running.store.published.lock().unwrap();
            let end = (server.index, number, state.digest());
            self.history.lock().unwrap().ends.push(end);
            assert_eq!(
                self.query(server.index, Consistency::Strict).await,
                Some(true)
            );
        }
        let mut history = self.history.lock().unwrap();
        history.log = log;
        history.acks.sort_by_key(|ack| ack.time);
        history.reads.sort_by_key(|read| read.time);
        let judged = judge(&history);
        assert_eq!(judged, Ok(()));
        Sums {
            groups: history.log.len(),
            acknowledged: history.acks.iter().filter(|ack| ack.done.is_some()).count(),
            calm: history.acks.iter().filter(|ack| ack.calm).count(),
            answered: history.reads.len(),
        }
    }
}

/// Counts of a run.
#[derive(Clone, Copy, Debug)]
pub struct Sums {
    pub groups: usize,
    pub acknowledged: usize,
    pub calm: usize,
    pub answered: usize,
}
