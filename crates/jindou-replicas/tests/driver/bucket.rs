//! Tests of `Bucket` without servers.

use crate::faulty::Faulty;
use crate::world::limits;
use bytes::Bytes;
use jindou_replicas::{
    Beginning, Bucket, Failure, Fetch, Fetched, Limits, Listing, Name, Put, ServerEntry,
};
use object_store::memory::InMemory;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

pub const EPOCH: u64 = 7;

fn buckets() -> (tempfile::TempDir, [Bucket; 2]) {
    let folder = tempfile::tempdir().unwrap();
    let memory = Bucket::new(Arc::new(InMemory::new()), "a/b", limits());
    let directory = Bucket::directory(&folder.path().join("new"), limits()).unwrap();
    (folder, [memory, directory])
}

pub async fn put(bucket: &Bucket, name: Name) {
    let put = bucket
        .create(&name.text(EPOCH), Bytes::from_static(b"x"))
        .await;
    assert_eq!(put, Put::Created);
}

fn texts(names: &[Name]) -> Vec<String> {
    let mut texts: Vec<_> = names.iter().map(|name| name.text(EPOCH)).collect();
    texts.sort();
    texts
}

pub async fn list(bucket: &Bucket, after: u64) -> Listing {
    let mut listing = bucket.list(EPOCH, after, false).await.unwrap();
    listing.log.sort();
    listing
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects() {
    let (_folder, buckets) = buckets();
    for bucket in buckets {
        check_objects(bucket).await;
    }
}

pub async fn check_objects(bucket: Bucket) {
    bucket.probe().await.unwrap();
    assert_eq!(list(&bucket, 0).await, Listing::default());
    for name in (1..=5)
        .map(Name::Group)
        .chain([Name::Span(1, 4), Name::Base(3)])
    {
        put(&bucket, name).await;
        let again = bucket
            .create(&name.text(EPOCH), Bytes::from_static(b"y"))
            .await;
        assert_eq!(again, Put::Exists);
    }
    // Listings ignore an unknown name, and a group of another epoch.
    bucket.replace("log/other", Bytes::new()).await.unwrap();
    bucket
        .replace(&Name::Group(9).text(8), Bytes::new())
        .await
        .unwrap();
    let listing = list(&bucket, 2).await;
    assert_eq!(
        listing.log,
        texts(&[Name::Group(3), Name::Group(4), Name::Group(5)])
    );
    assert_eq!(listing.bases, texts(&[Name::Base(3)]));
    let group = bucket.fetch(EPOCH, Fetch::Group(2)).await.unwrap();
    assert!(matches!(group, Fetched::Bytes(bytes) if *bytes == *b"x"));
    let span = bucket.fetch(EPOCH, Fetch::Span(1, 4)).await.unwrap();
    assert!(matches!(span, Fetched::Bytes(_)));
    bucket.trim(EPOCH, 4).await.unwrap();
    assert_eq!(list(&bucket, 0).await.log, texts(&[Name::Group(5)]));
    let group = bucket.fetch(EPOCH, Fetch::Group(2)).await.unwrap();
    assert!(matches!(group, Fetched::Missing));
    let span = bucket.fetch(EPOCH, Fetch::Span(1, 4)).await.unwrap();
    assert!(matches!(span, Fetched::Missing));
    bucket.trim(EPOCH, 4).await.unwrap();
    let me = ServerEntry {
        name: "one".into(),
        start: 5,
        addresses: vec!["one:7000".into()],
        ..ServerEntry::default()
    };
    let other = ServerEntry {
        name: "two".into(),
        ..me.clone()
    };
    assert_eq!(
        bucket.servers(&me).await.unwrap(),
        std::slice::from_ref(&me)
    );
    assert_eq!(bucket.servers(&other).await.unwrap().len(), 2);
    assert_eq!(bucket.server("one").await, Some(me));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn far_behind_spans_are_listed_instead_of_groups() {
    check_spans(Bucket::new(Arc::new(InMemory::new()), "", limits())).await;
}

pub async fn check_spans(bucket: Bucket) {
    for first in (1..=2500).step_by(10) {
        let puts = (first..first + 10).map(|number| put(&bucket, Name::Group(number)));
        futures_util::future::join_all(puts).await;
    }
    // The first two spans overlap; before the third there is a gap.
    for (first, last) in [(1, 1000), (990, 1990), (2100, 2200)] {
        put(&bucket, Name::Span(first, last)).await;
    }
    let listing = list(&bucket, 10).await;
    let spans = [
        Name::Span(1, 1000),
        Name::Span(990, 1990),
        Name::Span(2100, 2200),
    ];
    let names: Vec<_> = (1991..=2500).map(Name::Group).chain(spans).collect();
    assert_eq!(listing.log, texts(&names));
    let listing = list(&bucket, 1600).await;
    let names: Vec<_> = (1601..=2500).map(Name::Group).collect();
    assert_eq!(listing.log, texts(&names));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn outcomes_that_are_not_known() {
    let faulty = Faulty::new(Arc::new(InMemory::new()), 1);
    faulty.bad.store(500, Ordering::SeqCst);
    let bucket = Bucket::new(faulty.clone(), "", limits());
    let mut unknown = 0;
    for number in 0..60_u8 {
        let name = Name::Group(number.into()).text(EPOCH);
        loop {
            let created_before = faulty.first.lock().unwrap().contains_key(&name);
            match bucket.create(&name, Bytes::from(vec![number])).await {
                Put::Created => assert!(!created_before),
                Put::Exists => {}
                Put::Failed(Failure::Unknown(_)) => {
                    unknown += 1;
                    continue;
                }
                Put::Failed(failure) => panic!("{failure}"),
            }
            // The bucket reported that the object exists, so it must have been created.
            assert!(faulty.first.lock().unwrap().contains_key(&name));
            break;
        }
    }
    assert!(unknown > 10, "{unknown}");
    // Faults may make the probe fail, but never with the message about a bucket that creates a name twice: at most
    // one of its concurrent puts reports `Created`, even if some are lost and repeated.
    for _ in 0..3 {
        if let Err(why) = bucket.probe().await {
            assert!(why.starts_with("the bucket cannot be"), "{why}");
        }
    }
}

/// Requests that hang fail after the time limit, and their number is bounded.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_that_hang() {
    let throttled = object_store::throttle::ThrottledStore::new(
        InMemory::new(),
        object_store::throttle::ThrottleConfig {
            wait_put_per_call: Duration::from_secs(3),
            wait_get_per_call: Duration::from_secs(3600),
            wait_list_per_call: Duration::from_secs(3600),
            ..Default::default()
        },
    );
    let mut short = limits();
    short.request = Duration::from_millis(100);
    let limit = short.request;
    let bucket = Bucket::new(Arc::new(throttled), "", short);
    let began = Instant::now();
    // The comparison: as many sleeps of the same length at the same time, which a busy machine delays as well.
    let slept = tokio::spawn(async move {
        for _ in 0..24 {
            tokio::time::sleep(limit).await;
        }
        began.elapsed()
    });
    for _ in 0..12 {
        let put = bucket.create("log/x", Bytes::from_static(b"x")).await;
        assert!(matches!(put, Put::Failed(Failure::Unknown(_))), "{put:?}");
    }
    for _ in 0..6 {
        assert!(matches!(
            bucket.list(EPOCH, 0, false).await,
            Err(Failure::Unknown(_))
        ));
        assert!(matches!(
            bucket.get("log/x").await,
            Err(Failure::Unknown(_))
        ));
    }
    let took = began.elapsed();
    let slept = slept.await.unwrap();
    assert!(took < slept.mul_f64(1.5), "{took:?}, not {slept:?}");
    let put = bucket.create("log/x", Bytes::from_static(b"x")).await;
    let Put::Failed(Failure::Unknown(why)) = put else {
        panic!("{put:?}");
    };
    assert_eq!(why, "too many requests to the bucket wait for answers");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bucket_that_creates_a_name_twice_is_refused() {
    let faulty = Faulty::new(Arc::new(InMemory::new()), 1);
    faulty.careless.store(true, Ordering::SeqCst);
    let bucket = Bucket::new(faulty, "", limits());
    let why = bucket.probe().await.unwrap_err();
    assert!(why.contains("create the same name"), "{why}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_that_cannot_be_written_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let bucket = Bucket::directory(&path, limits()).unwrap();
    bucket.probe().await.unwrap();
    // A file in place of the directory stops the superuser too, who ignores permissions.
    std::fs::remove_dir_all(&path).unwrap();
    std::fs::write(&path, "").unwrap();
    let why = bucket.probe().await.unwrap_err();
    assert!(why.starts_with("the bucket cannot be written: "), "{why}");
    let put = bucket.create("log/x", Bytes::new()).await;
    assert!(matches!(put, Put::Failed(_)), "{put:?}");
}

/// Only files that a dead process staged are removed, a day later.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn staged_files_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    let bucket = Bucket::directory(folder.path(), limits()).unwrap();
    put(&bucket, Name::Group(1)).await;
    let at = |name: &str| folder.path().join(name);
    std::fs::create_dir_all(at("parts/x")).unwrap();
    std::fs::create_dir_all(at("other")).unwrap();
    let group = Name::Group(1).text(EPOCH);
    let day = Duration::from_secs(24 * 3600);
    let files = [
        (format!("{group}#1"), day * 2, false),
        (format!("{group}#22"), day / 2, true),
        ("parts/x/000001-00000000#1".into(), day * 2, false),
        ("log.json#3".into(), day * 2, false),
        ("log/x#y".into(), day * 2, true),
        ("log/x#".into(), day * 2, true),
        ("log/x".into(), day * 2, true),
        ("other/x#1".into(), day * 2, true),
    ];
    for (name, age, _) in &files {
        let file = std::fs::File::create(at(name)).unwrap();
        let then = std::time::SystemTime::now() - *age;
        file.set_modified(then).unwrap();
    }
    bucket.trim(EPOCH, 0).await.unwrap();
    for (name, _, stays) in &files {
        assert_eq!(at(name).exists(), *stays, "{name}");
    }
    assert_eq!(list(&bucket, 0).await.log, [group]);
}

/// Up to 63 groups after the requested number are found without listing the directory. Groups after trimmed ones are
/// found too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tails_of_a_directory() {
    let folder = tempfile::tempdir().unwrap();
    let local = object_store::local::LocalFileSystem::new_with_prefix(folder.path()).unwrap();
    let faulty = Faulty::new(Arc::new(local), 1);
    let bucket = Bucket::over_folder(faulty.clone(), folder.path(), limits());
    // None of the bucket's folders exists.
    assert_eq!(list(&bucket, 0).await, Listing::default());
    for number in 1..=100 {
        put(&bucket, Name::Group(number)).await;
    }
    let groups = |first, last| texts(&(first..=last).map(Name::Group).collect::<Vec<_>>());
    let listed = async |after| {
        faulty.kinds.lock().unwrap().clear();
        let log = list(&bucket, after).await.log;
        let kinds = faulty.kinds.lock().unwrap();
        (log, kinds.get("LIST").copied(), kinds.get("HEAD").copied())
    };
    // The only listing is that of the bases.
    assert_eq!(listed(100).await, (vec![], Some(1), Some(1)));
    assert_eq!(listed(97).await, (groups(98, 100), Some(1), Some(4)));
    assert_eq!(listed(37).await, (groups(38, 100), Some(1), Some(64)));
    assert_eq!(listed(36).await.0, groups(37, 100));
    assert_eq!(listed(36).await.1, Some(2));
    assert_eq!(listed(u64::MAX).await, (vec![], Some(2), None));
    // If a base is newer than the requested number, groups after that number may have been trimmed.
    put(&bucket, Name::Base(50)).await;
    put(&bucket, Name::Base(60)).await;
    bucket.trim(EPOCH, 50).await.unwrap();
    assert_eq!(listed(20).await.0, groups(51, 100));
    assert_eq!(listed(49).await.0, groups(51, 100));
    assert_eq!(listed(55).await.0, groups(56, 100));
    assert_eq!(listed(99).await, (groups(100, 100), Some(1), Some(2)));
    // If a HEAD request fails, the listing fails.
    faulty.away.store(true, Ordering::SeqCst);
    assert!(bucket.list(EPOCH, 100, false).await.is_err());
}

/// Before listing an object store, the bucket requests the next group by its name.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tails_of_a_bucket() {
    let faulty = Faulty::new(Arc::new(InMemory::new()), 1);
    let bucket = Bucket::new(faulty.clone(), "x", limits());
    for number in 1..=9 {
        put(&bucket, Name::Group(number)).await;
    }
    let listed = async |after| {
        faulty.kinds.lock().unwrap().clear();
        let log = list(&bucket, after).await.log.len();
        let kinds = faulty.kinds.lock().unwrap();
        (log, kinds.get("LIST").copied(), kinds.get("HEAD").copied())
    };
    assert_eq!(listed(9).await, (0, Some(1), Some(1)));
    assert_eq!(listed(8).await, (1, Some(1), Some(2)));
    assert_eq!(listed(7).await, (2, Some(2), Some(2)));
    put(&bucket, Name::Base(7)).await;
    bucket.trim(EPOCH, 7).await.unwrap();
    assert_eq!(listed(4).await, (2, Some(3), Some(1)));
    assert_eq!(listed(9).await, (0, Some(1), Some(1)));
}

/// To run by hand: measures listings of a directory.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "measures"]
async fn listings_of_a_directory() {
    let folder = tempfile::tempdir_in(std::env::var("JINDOU_DISK").unwrap_or(".".into())).unwrap();
    // A slow machine must not make requests fail.
    let limits = Limits {
        request: Duration::from_secs(60),
        ..limits()
    };
    let bucket = Bucket::directory(folder.path(), limits).unwrap();
    let mut there = 0;
    for count in [1_000, 10_000, 100_000] {
        std::fs::create_dir_all(folder.path().join("log")).unwrap();
        for number in there + 1..=count {
            let path = folder.path().join(Name::Group(number).text(EPOCH));
            std::fs::write(path, [0; 200]).unwrap();
        }
        there = count;
        for (what, after) in [
            ("nothing new", count),
            ("ten new", count - 10),
            ("a hundred new", count - 100),
            ("all", 0),
        ] {
            let mut times = Vec::new();
            for _ in 0..5 {
                let began = Instant::now();
                let listing = bucket.list(EPOCH, after, false).await;
                times.push(began.elapsed());
                let listed = listing.map(|listing| listing.log.len() as u64);
                assert!(
                    listed.as_ref().is_ok_and(|n| *n == count - after),
                    "{listed:?}"
                );
            }
            times.sort_unstable();
            println!(
                "{count} groups, {what}: {:?} (largest {:?})",
                times[2], times[4]
            );
        }
    }
}

#[tokio::test]
async fn a_directory_that_is_away_takes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (log, aside) = (folder.path().join("log"), folder.path().join("aside"));
    let bucket = Bucket::directory(&log, Limits::default()).unwrap();
    bucket.begin(EPOCH, Beginning::Empty).await.unwrap();
    bucket.record_identity().await.unwrap();
    let name = |number: u64| Name::Group(number).text(EPOCH);
    let put = async |number: u64| bucket.create(&name(number), Bytes::from_static(b"x")).await;
    assert_eq!(put(1).await, Put::Created);
    std::fs::rename(&log, &aside).unwrap();
    // 0: the directory is missing. 1: it is empty, like a mount point that is not mounted. 2: it has a `log.json`, but
    // is not the recorded directory.
    for step in 0..3 {
        if step == 1 {
            std::fs::create_dir(&log).unwrap();
        }
        if step == 2 {
            std::fs::copy(aside.join("log.json"), log.join("log.json")).unwrap();
        }
        assert!(
            matches!(put(2).await, Put::Failed(Failure::Unknown(_))),
            "{step}"
        );
        let listed = bucket.list(EPOCH, 1, false).await;
        assert!(
            matches!(listed, Err(Failure::Unknown(_))),
            "{step}: {listed:?}"
        );
        let read = bucket.fetch(EPOCH, Fetch::Group(1)).await;
        assert!(matches!(read, Err(Failure::Unknown(_))), "{step}: {read:?}");
        let bases = bucket.bases(EPOCH).await;
        assert!(
            matches!(bases, Err(Failure::Unknown(_))),
            "{step}: {bases:?}"
        );
        assert!(!log.join("log").exists(), "{step}");
    }
    std::fs::remove_dir_all(&log).unwrap();
    std::fs::rename(&aside, &log).unwrap();
    assert_eq!(put(2).await, Put::Created);
    assert_eq!(bucket.list(EPOCH, 1, false).await.unwrap().log, [name(2)]);
}

/// If the directory is moved away and back during puts, no put creates it again, and no acknowledged object is lost.
/// The bucket has not recorded the identity of its directory.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_that_is_away_is_not_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let (there, away) = (folder.path().join("log"), folder.path().join("away"));
    let bucket = Bucket::directory(&there, limits()).unwrap();
    std::fs::rename(&there, &away).unwrap();
    let name = |number| Name::Group(number).text(EPOCH);
    let put = bucket.create(&name(1), "x".into()).await;
    assert!(matches!(put, Put::Failed(Failure::Unknown(_))), "{put:?}");
    assert!(bucket.replace("servers/one", "x".into()).await.is_err());
    assert!(!there.exists());
    std::fs::rename(&away, &there).unwrap();
    let moving = Arc::new(AtomicBool::new(true));
    let moves = std::thread::spawn({
        let (moving, there) = (moving.clone(), there.clone());
        move || {
            while moving.load(Ordering::SeqCst) {
                std::fs::rename(&there, &away).unwrap();
                std::thread::sleep(Duration::from_micros(100));
                // Fails if a put has created another directory there that is not empty.
                std::fs::rename(&away, &there).unwrap();
                std::thread::sleep(Duration::from_micros(300));
            }
        }
    });
    let (mut acknowledged, mut failed) = (Vec::new(), 0);
    let begun = Instant::now();
    for number in 1.. {
        match bucket
            .create(&name(number), format!("{number}").into())
            .await
        {
            Put::Created => acknowledged.push(number),
            Put::Failed(Failure::Unknown(_)) => failed += 1,
            put => panic!("{put:?}"),
        }
        let both = acknowledged.len() >= 200 && failed >= 200;
        if both || begun.elapsed() > Duration::from_secs(20) {
            break;
        }
    }
    moving.store(false, Ordering::SeqCst);
    moves.join().unwrap();
    assert!(!acknowledged.is_empty() && failed > 0);
    for number in acknowledged {
        let bytes = bucket.get(&name(number)).await.unwrap();
        assert_eq!(bytes, format!("{number}"));
    }
    // No put leaves a staged file.
    for entry in std::fs::read_dir(there.join(name(1)).parent().unwrap()).unwrap() {
        let name = entry.unwrap().file_name();
        assert!(!name.to_string_lossy().contains('#'), "{name:?}");
    }
}

/// Puts of existing names, into nested folders, and next to files that a dead process staged under the same name.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn puts_in_a_directory() {
    let folder = tempfile::tempdir().unwrap();
    let bucket = Bucket::directory(folder.path(), limits()).unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::create_dir(at("parts")).unwrap();
    std::fs::write(at("parts/x#1"), "left").unwrap();
    std::fs::write(at("parts/x#2"), "left").unwrap();
    assert_eq!(bucket.create("parts/x", "one".into()).await, Put::Created);
    assert_eq!(bucket.create("parts/x", "two".into()).await, Put::Exists);
    assert_eq!(bucket.get("parts/x").await.unwrap(), "one");
    bucket.replace("parts/x", "three".into()).await.unwrap();
    assert_eq!(bucket.get("parts/x").await.unwrap(), "three");
    let deep = "parts/in/other/folders/x";
    bucket.replace(deep, "new".into()).await.unwrap();
    assert_eq!(bucket.create(deep, "".into()).await, Put::Exists);
    assert_eq!(bucket.get(deep).await.unwrap(), "new");
    let mut names: Vec<_> = std::fs::read_dir(at("parts"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["in", "x", "x#1", "x#2"]);
    // A file exists where the put needs a folder.
    let put = bucket.create("parts/x/y", "".into()).await;
    assert!(matches!(put, Put::Failed(_)), "{put:?}");
}
