//! Several servers over one bucket.

use crate::faulty::Faulty;
use crate::store::LOADED;
use crate::store::Tiny;
use crate::world::{Server, Way, World, begin, limits, request};
use jindou_replicas::simulate::EPOCH;
use jindou_replicas::{
    Beginning, Bucket, Consistency, Message, Name, NoPeers, Options, Outcome, Peers, Report,
    RequestKey, ServerEntry, ServerName, Settings, Stopped, Unready,
};
use object_store::ObjectStore;
use object_store::memory::InMemory;
use std::io::ErrorKind;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::mpsc;

pub fn settings() -> Settings {
    Settings {
        span_groups: 8,
        ..Settings::default()
    }
}

pub async fn seconds(seconds: f64) {
    tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
}

/// A temporary directory, and an object store over it.
fn directory() -> (tempfile::TempDir, Arc<dyn ObjectStore>) {
    let folder = tempfile::tempdir().unwrap();
    let mut store: Option<Arc<dyn ObjectStore>> = None;
    let bucket = Bucket::directory(folder.path(), limits()).unwrap();
    let _ = bucket.wrapped(|of_bucket| store.insert(of_bucket).clone());
    (folder, store.unwrap())
}

fn no_peer_is_reported(servers: &[Server]) {
    for server in servers {
        let reports = server.process().store.reports.lock().unwrap();
        let about_peers = |report: &Report| matches!(report, Report::Peer(_));
        assert!(!reports.iter().any(about_peers), "{reports:?}");
    }
}

/// Three servers, one of which begins with an empty folder, answer clients for six seconds.
pub async fn run_three_servers(world: &Arc<World>) -> Vec<Server> {
    let servers = world.new_servers([false, false, true]).await;
    let clients = world.clients(8, 3);
    seconds(6.0).await;
    let sums = world.finish(clients, &servers).await;
    eprintln!("{sums:?}");
    assert!(
        sums.groups > 50 && sums.acknowledged > 100 && sums.calm > 20 && sums.answered > 100,
        "{sums:?}"
    );
    servers
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_servers_over_a_directory() {
    let (folder, store) = directory();
    let world = World::new(store, Some(folder.path()), Way::hub(), 1, settings());
    run_three_servers(&world).await;
    let spans = std::fs::read_dir(folder.path().join("span"))
        .unwrap()
        .count();
    assert!(spans > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_servers_over_tcp() {
    let (folder, store) = directory();
    let world = World::new(store, Some(folder.path()), Way::Net, 1, settings());
    no_peer_is_reported(&run_three_servers(&world).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_that_only_know_the_bucket() {
    let world = World::new(Arc::new(InMemory::new()), None, Way::NoPeers, 2, settings());
    let servers = world.new_servers([true; 3]).await;
    let clients = world.clients(6, 3);
    seconds(7.0).await;
    let sums = world.finish(clients, &servers).await;
    assert!(sums.acknowledged > 20 && sums.answered > 100, "{sums:?}");
}

/// A process stops when another process takes its name, since its peers then refuse its certificate.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_taken_over_is_found_out_over_tcp() {
    let world = World::new(Arc::new(InMemory::new()), None, Way::Net, 3, settings());
    let _one = world.new_server(0, true).await;
    let earlier = world.new_server(1, true).await;
    seconds(1.0).await;
    let later = world.new_server(1, true).await;
    // The handle is kept: a driver without handles stops.
    let (_running, task) = earlier.running.unwrap();
    let ended = tokio::time::timeout(Duration::from_secs(60), task).await;
    assert_eq!(ended.unwrap().unwrap(), Err(Stopped::Replaced));
    assert!(!later.running.unwrap().1.is_finished());
}

/// Connections that a peer refuses while the flag is true.
struct Refused(Arc<AtomicBool>);

impl Peers for Refused {
    fn send(&mut self, _: &ServerName, _: Message) {}
    fn set_servers(&mut self, _: &[ServerEntry]) {}
    fn is_rejected_by_peer(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

/// While a peer refuses a server, the server may lack updates that the peer acknowledges. So its queries wait.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queries_wait_until_the_other_servers_accept_this_one() {
    let bucket = Bucket::new(Arc::new(InMemory::new()), "log", limits());
    let other = ServerEntry {
        name: "other".into(),
        ..ServerEntry::default()
    };
    bucket.write_entry(&other).await.unwrap();
    let (refused, (_incoming, incoming)) = (Arc::new(AtomicBool::new(true)), mpsc::channel(1));
    let peers = Refused(Arc::clone(&refused));
    let mut options = Options::new("one");
    options.new_log = Some(EPOCH);
    let begun = begin(Tiny::default(), bucket, (peers, incoming), options).await;
    let (handle, _) = begun.unwrap();
    // Longer than the wait for servers that do not answer.
    seconds(2.5).await;
    let unready = || async { handle.status().await.unwrap().unready };
    assert_eq!(unready().await, Some(Unready::Joining));
    let read = {
        let handle = handle.clone();
        tokio::spawn(async move { handle.read(Consistency::Default).await.is_ok() })
    };
    seconds(0.2).await;
    assert!(!read.is_finished());
    refused.store(false, Ordering::SeqCst);
    assert!(read.await.unwrap());
    assert_ne!(unready().await, Some(Unready::Joining));
}

/// Each server gets an update of 32 MiB while small updates continue: every update has an outcome, and all servers stay
/// connected.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_updates_over_tcp() {
    let world = World::new(Arc::new(InMemory::new()), None, Way::Net, 9, settings());
    let servers = world.new_servers([true; 3]).await;
    let clients = world.clients(3, 3);
    seconds(3.5).await;
    let large = async {
        for (number, server) in servers.iter().enumerate() {
            let running = server.process();
            let key = request(u128::MAX - 1 - number as u128);
            let body: Vec<u8> = vec![number as u8; 32 << 20];
            let asked = running.handle.update(key, body.into());
            let outcome = tokio::time::timeout(Duration::from_secs(60), asked).await;
            assert!(matches!(outcome, Ok(Outcome::Done { .. })), "{outcome:?}");
        }
    };
    // On a busy machine, sending 32 MiB may delay other messages so long that servers regard each other as gone.
    let disturb = async {
        loop {
            world.disturb();
            seconds(0.2).await;
        }
    };
    tokio::select! {
        () = large => {}
        () = disturb => {}
    }
    let sums = world.finish(clients, &servers).await;
    eprintln!("{sums:?}");
    assert!(sums.calm > 20, "{sums:?}");
    no_peer_is_reported(&servers);
}

/// `JINDOU_RUNS` seeds from `JINDOU_SEED` on.
pub fn seeds() -> Range<u64> {
    let number = |name, default| std::env::var(name).map_or(default, |text| text.parse().unwrap());
    let first = number("JINDOU_SEED", 100);
    first..first + number("JINDOU_RUNS", 12)
}

/// One request of eight fails, and servers are killed in the middle.
async fn bad_weather(seed: u64, way: Way, over_folder: bool) {
    weather(125, seed, way, over_folder).await;
}

/// `bad` of 1000 requests fail, and servers are killed in the middle.
async fn weather(bad: u64, seed: u64, way: Way, over_folder: bool) {
    let (folder, local) = directory();
    let world = match over_folder {
        true => World::new(local, Some(folder.path()), way, seed, settings()),
        false => World::new(Arc::new(InMemory::new()), None, way, seed, settings()),
    };
    world.faulty.bad.store(bad, Ordering::SeqCst);
    let empty = [0, 1, 2].map(|index| (seed >> index) & 1 == 0);
    let mut servers = world.new_servers(empty).await;
    let clients = world.clients(6, 3);
    for round in 0..4 {
        seconds(0.5).await;
        let victim = (seed as usize + round) % 3;
        if let Some((running, _)) = &servers[victim].running
            && round % 2 == 1
        {
            running.handle.save().await;
        }
        world.kill(&mut servers[victim]).await;
        seconds(0.3).await;
        world.start(&mut servers[victim]).await;
    }
    // Time for all acknowledged updates to reach every server through the bucket.
    seconds(4.0).await;
    let sums = world.finish(clients, &servers).await;
    eprintln!("{seed}, {over_folder}: {sums:?}");
    assert!(sums.acknowledged > 5 && sums.answered > 5, "{sums:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_weather_over_a_directory() {
    bad_weather(11, Way::hub(), true).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_weather_in_memory() {
    bad_weather(14, Way::hub(), false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_weather_without_connections() {
    bad_weather(17, Way::NoPeers, false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_weather_over_tcp() {
    bad_weather(18, Way::Net, false).await;
}

/// Servers are killed and started again, and reconnect soon.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deaths_over_tcp() {
    weather(0, 19, Way::Net, true).await;
}

/// To run by hand: `JINDOU_RUNS` seeds from `JINDOU_SEED` on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long"]
async fn deaths_over_tcp_in_many_seeds() {
    for seed in seeds() {
        weather(0, seed, Way::Net, seed % 2 == 0).await;
    }
}

/// To run by hand: `JINDOU_RUNS` seeds from `JINDOU_SEED` on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long"]
async fn bad_weather_in_many_seeds() {
    for seed in seeds() {
        let way = match seed % 4 {
            0 => Way::NoPeers,
            1 => Way::hub(),
            _ => Way::Net,
        };
        bad_weather(seed, way, seed % 3 == 0).await;
    }
}

/// Bases are uploaded and the log is trimmed; a server with an empty folder then starts from the newest base.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_empty_folder_is_filled() {
    let settings = Settings {
        keep: Duration::from_secs(4),
        ..settings()
    };
    let (folder, store) = directory();
    let world = World::new(store, Some(folder.path()), Way::hub(), 3, settings);
    let mut servers = world.new_servers([false; 2]).await;
    let clients = world.clients(4, 2);
    for _ in 0..4 {
        seconds(1.6).await;
        for server in &servers {
            let running = server.process();
            running.handle.save().await.unwrap();
        }
    }
    let first = Name::Group(1).text(EPOCH);
    let mut bases = world.bucket.bases(EPOCH).await.unwrap();
    let mut tries = 0;
    while world.bucket.get(&first).await.is_ok() || bases.len() < 2 || bases[0] == 0 {
        tries += 1;
        assert!(tries < 300, "nothing was trimmed: {bases:?}");
        seconds(0.1).await;
        bases = world.bucket.bases(EPOCH).await.unwrap();
    }
    servers.push(world.new_server(2, true).await);
    world.finish(clients, &servers).await;
    let base = servers[2].folder.0.lock().unwrap().clone().unwrap().0;
    assert!(base.number >= bases[0] && !base.keys.is_empty());
    let parts = std::fs::read_dir(folder.path().join("parts"))
        .unwrap()
        .count();
    let bases = world.bucket.bases(EPOCH).await.unwrap().len();
    assert!(parts <= bases + 1, "{parts} uploads, {bases} bases");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bucket_that_goes_away_and_comes_back() {
    let (folder, store) = directory();
    let world = World::new(store, Some(folder.path()), Way::hub(), 4, settings());
    let servers = world.new_servers([true; 2]).await;
    let clients = world.clients(2, 2);
    seconds(0.5).await;
    world.faulty.away.store(true, Ordering::SeqCst);
    seconds(0.2).await;
    let groups = world.groups();
    let running = servers[0].process();
    let key = request(u128::MAX - 1);
    let asked = tokio::spawn({
        let handle = running.handle.clone();
        async move { handle.update(key, b"\0".as_slice().into()).await }
    });
    // Reads continue meanwhile, since the latest freshness proof is young enough.
    assert_eq!(world.query(0, Consistency::Any).await, Some(true));
    assert_eq!(world.query(0, Consistency::Default).await, Some(true));
    assert_eq!(asked.await.unwrap(), Outcome::Unknown);
    assert_eq!(world.groups(), groups);
    // The latest freshness proof is now older than `max_staleness`.
    assert_eq!(world.query(1, Consistency::Default).await, Some(false));
    assert_eq!(world.query(1, Consistency::Any).await, Some(true));
    assert!(running.handle.status().await.unwrap().unready.is_some());
    let failed = |r: &Report| matches!(r, Report::Bucket("putting a group" | "listing", _));
    assert!(running.store.reports.lock().unwrap().iter().any(failed));
    world.faulty.away.store(false, Ordering::SeqCst);
    world.disturb_bucket();
    // Retries with the same key, which must take effect once.
    let mut outcome = Outcome::Unknown;
    for _ in 0..3 {
        if outcome == Outcome::Unknown {
            outcome = running.handle.update(key, b"\0".as_slice().into()).await;
        }
    }
    assert!(matches!(outcome, Outcome::Done { .. }), "{outcome:?}");
    // The last report about the bucket must be that requests succeed again, or the operator would still see a failure.
    let is_over = || {
        let reports = running.store.reports.lock().unwrap();
        let about_bucket = |r: &&Report| matches!(r, Report::Bucket(..) | Report::BucketBack);
        reports.iter().rfind(about_bucket) == Some(&Report::BucketBack)
    };
    let until = async {
        while !is_over() {
            seconds(0.05).await;
        }
    };
    let came = tokio::time::timeout(Duration::from_secs(60), until).await;
    assert!(came.is_ok(), "{:?}", running.store.reports.lock().unwrap());
    world.finish(clients, &servers).await;
}

/// A full disk and a folder without write permission: no update is acknowledged or lost, and the probe names the
/// failure.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bucket_that_cannot_be_written() {
    let (folder, store) = directory();
    let world = World::new(store, Some(folder.path()), Way::hub(), 5, settings());
    let servers = world.new_servers([true; 2]).await;
    let clients = world.clients(2, 2);
    for kind in [ErrorKind::StorageFull, ErrorKind::PermissionDenied] {
        seconds(0.5).await;
        *world.faulty.unwritable.lock().unwrap() = Some(kind);
        seconds(0.3).await;
        let groups = world.groups();
        seconds(1.0).await;
        assert_eq!(world.groups(), groups);
        // Strict reads only list the bucket, which still works.
        assert_eq!(world.query(0, Consistency::Strict).await, Some(true));
        let refused = world.bucket.probe().await.unwrap_err();
        assert!(
            refused.starts_with("the bucket cannot be written: "),
            "{refused}"
        );
        *world.faulty.unwritable.lock().unwrap() = None;
    }
    world.finish(clients, &servers).await;
}

/// After a start from the local base, or from one in the bucket, a retry still gets the first answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn repeated_requests_after_a_start() {
    let world = World::new(Arc::new(InMemory::new()), None, Way::NoPeers, 8, settings());
    let mut server = world.new_server(0, false).await;
    let ask = async |server: &Server| {
        let running = server.process();
        let key = request(u128::MAX - 1);
        running.handle.update(key, b"\0".as_slice().into()).await
    };
    let first = ask(&server).await;
    assert!(
        matches!(first, Outcome::Done { number: 1, .. }),
        "{first:?}"
    );
    world.update().await;
    let running = server.process();
    assert_eq!(running.handle.save().await, Some(2));
    while world.bucket.bases(EPOCH).await.unwrap().last() != Some(&2) {
        seconds(0.05).await;
    }
    world.kill(&mut server).await;
    world.start(&mut server).await;
    assert_eq!(ask(&server).await, first);
    let other = world.new_server(1, true).await;
    // Updates that wait during the download of the store end with an unknown outcome.
    let mut outcome = Outcome::Unknown;
    for _ in 0..50 {
        if outcome == Outcome::Unknown {
            outcome = ask(&other).await;
            seconds(0.1).await;
        }
    }
    assert_eq!(outcome, first);
    assert_eq!(world.groups(), 2);
    let clients = tokio::task::JoinSet::new();
    world.finish(clients, &[server, other]).await;
}

/// A base that is saved during the upload of another one, or whose upload fails, is uploaded afterwards.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_newest_saved_base_is_uploaded() {
    let world = World::new(Arc::new(InMemory::new()), None, Way::NoPeers, 9, settings());
    let server = world.new_server(0, false).await;
    let running = server.process();
    let save = async || {
        world.update().await;
        running.handle.save().await
    };
    let uploaded = async |number: u64| {
        let until = async {
            while world.bucket.bases(EPOCH).await.unwrap().last() != Some(&number) {
                seconds(0.05).await;
            }
        };
        let came = tokio::time::timeout(Duration::from_secs(60), until).await;
        assert!(came.is_ok(), "{:?}", running.store.reports.lock().unwrap());
    };
    uploaded(0).await;
    let wait = &running.store.files_wait;
    wait.store(true, Ordering::SeqCst);
    for number in 1..=3 {
        assert_eq!(save().await, Some(number));
    }
    assert_eq!(world.bucket.bases(EPOCH).await.unwrap().last(), Some(&0));
    wait.store(false, Ordering::SeqCst);
    uploaded(3).await;
    world.update().await;
    *world.faulty.unwritable.lock().unwrap() = Some(std::io::ErrorKind::PermissionDenied);
    assert_eq!(running.handle.save().await, Some(4));
    seconds(0.5).await;
    *world.faulty.unwritable.lock().unwrap() = None;
    uploaded(4).await;
    let clients = tokio::task::JoinSet::new();
    world.finish(clients, &[server]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_evaluation_holds_nothing_up() {
    let world = World::new(Arc::new(InMemory::new()), None, Way::hub(), 6, settings());
    let servers = world.new_servers([true; 2]).await;
    for _ in 0..3 {
        world.update().await;
    }
    let running = servers[0].process();
    let other = servers[1].process();
    for store in [&running.store, &other.store] {
        *store.slow.lock().unwrap() = Duration::from_secs(4);
    }
    let long = tokio::spawn({
        let world = world.clone();
        async move { world.update().await }
    });
    seconds(0.5).await;
    // Heartbeats, reads and listings continue, so no other server becomes the writer.
    for _ in 0..12 {
        for index in 0..2 {
            assert_eq!(world.query(index, Consistency::Strict).await, Some(true));
        }
        seconds(0.2).await;
    }
    for store in [&running.store, &other.store] {
        *store.slow.lock().unwrap() = Duration::ZERO;
    }
    long.await.unwrap();
    world.finish(tokio::task::JoinSet::new(), &servers).await;
}

#[tokio::test]
async fn starts_that_are_refused() {
    let store = Arc::new(InMemory::new());
    let bucket = Bucket::new(store.clone(), "", limits());
    let try_start = async |tiny: Tiny, name: &str| {
        let begun = begin(tiny, bucket.clone(), NoPeers::connect(), Options::new(name)).await;
        begun.map(|_| ()).unwrap_err()
    };
    let why = try_start(Tiny::default(), "a/b").await;
    assert!(why.contains("is not a name of a server"), "{why}");
    let other = Beginning::Loaded(LOADED + 1);
    bucket.begin(EPOCH + 1, other).await.unwrap();
    let tiny = Tiny::default();
    *tiny.folder.0.lock().unwrap() = Some(Default::default());
    let why = try_start(tiny.clone(), "a").await;
    assert!(why.contains("another store's"), "{why}");
    bucket
        .replace("log.json", r#"{"format": 2, "new": []}"#.into())
        .await
        .unwrap();
    let why = try_start(tiny.clone(), "a").await;
    assert!(
        why.contains("has format 2, and this program reads format 1"),
        "{why}"
    );
    bucket.replace("log.json", "nonsense".into()).await.unwrap();
    let why = try_start(tiny, "a").await;
    assert!(why.contains("not the beginning of a log"), "{why}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ends_of_drivers() {
    let store = Faulty::new(Arc::new(InMemory::new()), 7);
    let bucket = Bucket::new(store, "", limits());
    let start = async |options: Options| {
        let begun = begin(Tiny::default(), bucket.clone(), NoPeers::connect(), options).await;
        begun.unwrap()
    };
    // A driver ends when its token is cancelled, when its handle stops it, and when its last handle is dropped.
    let options = Options::new("one");
    let (handle, task) = start(options.clone()).await;
    options.cancel.cancel();
    assert_eq!(task.await.unwrap(), Ok(()));
    let body = b"\0".as_slice();
    assert_eq!(
        handle.update(RequestKey(1), body.into()).await,
        Outcome::Unknown
    );
    let (handle, task) = start(Options::new("one")).await;
    handle.stop();
    assert_eq!(task.await.unwrap(), Ok(()));
    let (handle, task) = start(Options::new("one")).await;
    drop(handle);
    assert_eq!(task.await.unwrap(), Ok(()));
    // It also ends when another process takes its name.
    let mut options = Options::new("one");
    options.refresh = Duration::from_millis(200);
    let (_first, first) = start(options.clone()).await;
    let (second, task) = start(options).await;
    assert_eq!(first.await.unwrap(), Err(Stopped::Replaced));
    assert!(matches!(
        second.update(RequestKey(2), body.into()).await,
        Outcome::Done { number: 1, .. }
    ));
    second.stop();
    assert_eq!(task.await.unwrap(), Ok(()));
}
