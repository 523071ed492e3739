//! The limit of the memory of changes that wait for a merge.

#[cfg(feature = "replicas")]
use crate::shard_servers::{ServerOptions, Servers};
use jindou::{
    Database, Error, MergeOptions, MergePolicy, OpenOptions, Progress, Resource, UpdateOptions,
};
use oxrdf::Term;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

const LIMIT: u64 = 1 << 20;
/// Quads of an update; their changes take some 80 KB.
const QUADS: u64 = 500;
/// Updates of a client.
const UPDATES: u64 = 30;
const CLIENTS: u64 = 3;

fn insert(update: u64) -> String {
    let mut text = "INSERT DATA {".to_owned();
    for quad in 0..QUADS {
        let _ = write!(
            text,
            " <http://e/{update}/{quad}> <http://e/stream> \"{quad} of {update}\" ."
        );
    }
    text + "}"
}

fn count(db: &Database) -> u64 {
    let answer = db
        .query("SELECT (COUNT(*) AS ?n) { ?s <http://e/stream> ?o }")
        .unwrap();
    match &answer.solutions()[0][0] {
        Some(Term::Literal(count)) => count.value().parse().unwrap(),
        other => panic!("{other:?}"),
    }
}

fn waiting(db: &Database) -> u64 {
    db.merge_status().unwrap().changes_bytes
}

/// Clients that send more changes than may wait, to several databases that are one store, and queries meanwhile.
fn stream(servers: &[&Database]) {
    let merge = |db: &&Database| {
        let policy = MergePolicy::default().with_edits(u64::MAX);
        db.merge_in_background(policy, |_| {}).unwrap()
    };
    let merges: Vec<_> = servers.iter().map(merge).collect();
    let (is_over, most) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for db in servers {
            scope.spawn(|| {
                while !is_over.load(Ordering::SeqCst) {
                    count(db);
                }
            });
            // By itself: a count takes longer than a merge on a busy machine.
            scope.spawn(|| {
                while !is_over.load(Ordering::SeqCst) {
                    most.fetch_max(waiting(db), Ordering::SeqCst);
                    std::thread::sleep(Duration::from_micros(500));
                }
            });
        }
        let clients = (0..CLIENTS).map(|client| {
            scope.spawn(move || {
                let db = servers[client as usize % servers.len()];
                let options = UpdateOptions::default().with_timeout(Duration::from_secs(60));
                for update in 0..UPDATES {
                    db.update(&insert(client * UPDATES + update), &options)
                        .unwrap();
                }
            })
        });
        clients
            .collect::<Vec<_>>()
            .into_iter()
            .for_each(|c| c.join().unwrap());
        is_over.store(true, Ordering::SeqCst);
    });
    drop(merges);
    for db in servers {
        #[cfg(feature = "replicas")]
        if let Some(replica) = db.replica() {
            replica
                .wait_for(jindou::replica::Consistency::Strict)
                .unwrap();
        }
        assert_eq!(count(db), CLIENTS * UPDATES * QUADS);
        assert!(db.merge_status().unwrap().merged > 0);
    }
    let most = most.into_inner();
    // One update of each client may be made after the last look, and a server may merge later than the one that writes.
    let limit = 2 * LIMIT + CLIENTS * (256 << 10) + (servers.len() as u64 - 1) * LIMIT;
    assert!((LIMIT..limit).contains(&most), "{most} bytes");
}

fn open(folder: &tempfile::TempDir) -> Database {
    let options = OpenOptions::default()
        .with_create(true)
        .with_changes_memory(LIMIT);
    Database::open_with(folder.path().join("store"), &options).unwrap()
}

#[test]
fn changes_of_a_store_are_bounded() {
    let folder = tempfile::tempdir().unwrap();
    stream(&[&open(&folder)]);
}

#[cfg(feature = "replicas")]
#[test]
fn changes_of_replicas_are_bounded() {
    use jindou::replica::{Bucket, BucketLimits, SharedLog};
    let folder = tempfile::tempdir().unwrap();
    let server = |name: &str| {
        let bucket = Bucket::directory(&folder.path().join("log"), BucketLimits::default());
        let mut log = SharedLog::new(bucket.unwrap(), name);
        log.peer_address = Some("127.0.0.1:0".into());
        let options = OpenOptions::default().with_changes_memory(LIMIT);
        Database::open_with(folder.path().join(name), &options.with_log(log)).unwrap()
    };
    let servers = ["one", "two", "three"].map(server);
    stream(&servers.each_ref());
}

#[cfg(feature = "replicas")]
#[test]
fn changes_of_servers_of_shards_are_bounded() {
    let options = ServerOptions {
        changes_memory: Some(LIMIT),
        ..ServerOptions::default()
    };
    let servers = Servers::start_with(crate::replicas::LOADED, [3, 3, 2], options);
    stream(&servers.all().collect::<Vec<_>>());
}

#[test]
fn without_a_merge_updates_are_refused_in_their_time_and_not_made() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(&folder);
    let options = UpdateOptions::default().with_timeout(Duration::from_millis(300));
    let mut made = 0;
    let full = loop {
        match db.update(&insert(made), &options) {
            Ok(_) => made += 1,
            Err(e) => break e,
        }
        assert!(made < 1000, "{} bytes", waiting(&db));
    };
    let is_full =
        |e: &Error| matches!(e, Error::Busy(limit) if limit.resource == Resource::Changes);
    assert!(is_full(&full), "{full}");
    assert!(
        full.to_string().contains("1,048,576 of --changes-memory"),
        "{full}"
    );
    assert!(db.begin(&options).is_err_and(|e| is_full(&e)));
    assert_eq!(count(&db), made * QUADS);
    db.merge(&MergeOptions::default(), &Progress::default())
        .unwrap();
    db.update(&insert(made), &options).unwrap();
    assert_eq!(count(&db), (made + 1) * QUADS);
}
