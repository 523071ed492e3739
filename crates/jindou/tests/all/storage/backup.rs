//! Backups, and the stores that are restored from them.

use super::{backup_of, restore};
use crate::quads;
use jindou::testing::load_nquads;
use jindou::{
    Access, BackupInfo, BackupTarget, CancelToken, Database, Durability, Error, OpenOptions,
    Progress, ReclusterOptions, RestoreTo, UpdateOptions, Verify,
};
use oxrdf::Dataset;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

struct World {
    dir: tempfile::TempDir,
    restored: usize,
}

impl World {
    fn new() -> Self {
        let world = Self {
            dir: tempfile::tempdir().unwrap(),
            restored: 0,
        };
        let text: String = (0..500)
            .map(|i| format!("<http://e/s{i}> <http://e/p> _:b{i} .\n"))
            .collect();
        load_nquads(&world.store(), &text).unwrap();
        world
    }

    fn store(&self) -> PathBuf {
        self.dir.path().join("store")
    }

    fn folder(&self) -> PathBuf {
        self.dir.path().join("backups")
    }

    fn target(&self) -> BackupTarget {
        BackupTarget::folder(self.folder().to_str().unwrap()).unwrap()
    }

    fn restore(&mut self, to: RestoreTo) -> jindou::Result<(Database, PathBuf)> {
        self.restored += 1;
        let place = self.dir.path().join(format!("restored-{}", self.restored));
        restore(&self.target(), &place, to)?;
        let report = Database::check(&place)?;
        assert!(report.is_sound(), "{:?}", report.damages);
        Ok((opened(&place), place))
    }
}

fn opened(dir: &Path) -> Database {
    let options = OpenOptions::default()
        .with_access(Access::Write)
        .with_durability(Durability::Batch);
    Database::open_with(dir, &options).expect("the store")
}

fn backup(db: &Database, target: &BackupTarget) -> jindou::BackupReport {
    db.backup(target, &CancelToken::new(), &Progress::default())
        .expect("a backup")
}

fn insert(db: &Database, n: u32) -> u64 {
    let text = format!(
        "INSERT DATA {{ <http://e/n{n}> <http://e/q> {n} . GRAPH <http://e/g> {{ <http://e/n{n}> <http://e/q{}> {n} }} }}",
        n % 5
    );
    db.update(&text, &UpdateOptions::default())
        .unwrap()
        .snapshot
}

fn lines(db: &Database) -> Vec<String> {
    let d: Dataset = quads::all_quads(db);
    let mut all: Vec<String> = d.iter().map(|q| q.to_string()).collect();
    all.sort();
    all
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    since.as_micros() as u64
}

fn infos(target: &BackupTarget) -> Vec<BackupInfo> {
    let all = target.list().unwrap();
    all.into_iter().collect::<jindou::Result<_>>().unwrap()
}

/// For each snapshot its number, a time at which it was current, and its quads.
type Past = Vec<(u64, u64, Vec<String>)>;

fn write(db: &Database, past: &mut Past, numbers: std::ops::Range<u32>) {
    for n in numbers {
        let number = insert(db, n);
        past.push((number, now(), lines(db)));
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn any_snapshot_and_any_time_comes_back() {
    let mut w = World::new();
    let db = opened(&w.store());
    let mut past: Past = vec![(0, now(), lines(&db))];
    let first = backup(&db, &w.target());
    assert_eq!((first.info.snapshot, first.info.base), (0, 0));
    write(&db, &mut past, 0..6);
    let second = backup(&db, &w.target());
    // The target already has the base's files, so only the log is copied.
    assert!(
        second.new_files <= 2 && second.new_bytes < second.info.bytes / 4,
        "{second:?}"
    );
    // Opened again, the store continues its log in another file.
    drop(db);
    let db = opened(&w.store());
    write(&db, &mut past, 6..9);
    // A reclustering replaces the base's files, and continues the numbers of snapshots.
    let before = now();
    db.recluster(&ReclusterOptions::default(), &Progress::default())
        .unwrap();
    write(&db, &mut past, 9..14);
    let third = backup(&db, &w.target());
    assert_eq!((third.info.base, third.info.snapshot), (9, 14));
    assert!(third.info.from > before, "no claim on what was before");
    write(&db, &mut past, 14..16);
    let last = backup(&db, &w.target());
    let again = backup(&db, &w.target());
    assert_eq!(
        (again.new_files, again.info.snapshot),
        (1, 16),
        "nothing new"
    );
    assert_eq!(infos(&w.target()).len(), 5);
    drop(db);
    for (number, time, want) in &past {
        // No backup contains snapshots 7 and 8: the second one ends at 6, and the third one's base was made of 9, whose
        // time of commit is no longer known.
        for (to, kept) in [
            (RestoreTo::Snapshot(*number), *number <= 6 || *number >= 9),
            (RestoreTo::Time(*time), *number <= 6 || *number >= 10),
        ] {
            match w.restore(to) {
                Ok((db, _)) => {
                    assert_eq!(
                        (db.snapshot().number(), &lines(&db)),
                        (*number, want),
                        "{to:?}"
                    );
                    assert!(kept, "{number}, {to:?}");
                }
                Err(Error::Usage(e)) => assert!(!kept && e.contains("no backup"), "{to:?}: {e}"),
                Err(e) => panic!("{to:?}: {e}"),
            }
        }
    }
    assert!(w.restore(RestoreTo::Snapshot(17)).is_err());
    assert!(w.restore(RestoreTo::Time(now())).is_err());
    assert!(w.restore(RestoreTo::Time(0)).is_err());
    // A restored store can be updated and backed up to the same target, without affecting the backups there.
    let (db, place) = w.restore(RestoreTo::Snapshot(12)).unwrap();
    assert_eq!(insert(&db, 1000), 13);
    let other = backup(&db, &w.target());
    assert_eq!(other.info.snapshot, 13);
    let want = lines(&db);
    let (newest, _) = w.restore(RestoreTo::Newest).unwrap();
    assert_eq!(lines(&newest), want);
    let (old, _) = w.restore(RestoreTo::Snapshot(16)).unwrap();
    assert_eq!(lines(&old), past.last().unwrap().2);
    assert_eq!(last.info.snapshot, 16);
    // A restore never replaces an existing store.
    let cancel = CancelToken::new();
    let over = restore(&w.target(), &place, RestoreTo::Newest);
    assert!(matches!(over, Err(Error::Conflict(_))));
    assert_eq!(insert(&db, 1001), 14);
    // A backup target must not be inside the store.
    let inside = BackupTarget::folder(place.join("backups").to_str().unwrap()).unwrap();
    assert!(db.backup(&inside, &cancel, &Progress::default()).is_err());
}

#[test]
fn another_process_that_has_the_store_does_not_matter() {
    let mut w = World::new();
    let db = opened(&w.store());
    let mut want = Vec::new();
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..2)
            .map(|client| {
                let db = &db;
                scope.spawn(move || {
                    (0..60).for_each(|n| {
                        insert(db, client * 1000 + n);
                    })
                })
            })
            .collect();
        for _ in 0..4 {
            let before = db.snapshot().number();
            let report = backup_of(&w.store(), &w.target()).unwrap();
            assert!(
                report.left_out == 0 && report.info.snapshot >= before,
                "{report:?}"
            );
        }
        clients.into_iter().for_each(|c| c.join().unwrap());
        want = lines(&db);
    });
    let report = backup_of(&w.store(), &w.target()).unwrap();
    assert_eq!((report.info.snapshot, report.left_out), (120, 0));
    let (again, _) = w.restore(RestoreTo::Newest).unwrap();
    assert_eq!(lines(&again), want);
}

#[test]
fn damage_is_never_backed_up_and_never_restored() {
    let mut w = World::new();
    let db = opened(&w.store());
    for n in 0..5 {
        insert(&db, n);
    }
    backup(&db, &w.target());
    drop(db);
    let names: Vec<PathBuf> = std::fs::read_dir(w.folder())
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| !p.ends_with("lock"))
        .collect();
    assert!(names.len() > 8);
    for path in &names {
        let sound = std::fs::read(path).unwrap();
        for at in [0, sound.len() / 2, sound.len() - 1] {
            let mut bad = sound.clone();
            bad[at] ^= 16;
            std::fs::write(path, bad).unwrap();
            assert!(w.restore(RestoreTo::Newest).is_err(), "{}", path.display());
        }
        std::fs::write(path, &sound[..sound.len() - 1]).unwrap();
        assert!(w.restore(RestoreTo::Newest).is_err(), "{}", path.display());
        std::fs::remove_file(path).unwrap();
        assert!(w.restore(RestoreTo::Newest).is_err(), "{}", path.display());
        std::fs::write(path, sound).unwrap();
    }
    // A file that a killed backup left is not listed.
    std::fs::write(
        w.folder()
            .join(format!("backup-{:020}-{:010}.tmp", now(), 7)),
        "half",
    )
    .unwrap();
    assert_eq!(infos(&w.target()).len(), 1);
    let left = std::fs::read_dir(w.dir.path()).unwrap().count();
    assert_eq!(left, 2, "what failed leaves nothing");
    w.restore(RestoreTo::Newest).unwrap();
    // If a byte of a base's file is damaged, the store cannot be backed up.
    let path = w.store().join("strings.jd");
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let other = w.dir.path().join("other");
    let other = BackupTarget::folder(other.to_str().unwrap()).unwrap();
    let done = backup_of(&w.store(), &other);
    assert!(matches!(done, Err(Error::Damaged { file, .. }) if file.ends_with("strings.jd")));
    assert!(infos(&other).is_empty());
}

/// Creates a named pipe; opening it would block until another process opens the other end.
fn pipe(path: &Path) {
    let made = std::process::Command::new("mkfifo").arg(path).status();
    assert!(made.unwrap().success());
}

#[test]
fn an_older_backup_is_taken_only_by_its_name() {
    let mut w = World::new();
    let db = opened(&w.store());
    insert(&db, 1);
    let older = backup(&db, &w.target()).info;
    let then = lines(&db);
    insert(&db, 2);
    let newest = backup(&db, &w.target()).info;
    drop(db);
    let list = w.folder().join(&newest.name);
    let sound = std::fs::read(&list).unwrap();
    let damages: [(&str, &dyn Fn()); 5] = [
        ("cut", &|| {
            std::fs::write(&list, &sound[..sound.len() / 2]).unwrap()
        }),
        ("empty", &|| std::fs::write(&list, "").unwrap()),
        ("a pipe", &|| pipe(&list)),
        ("a folder", &|| std::fs::create_dir(&list).unwrap()),
        ("a link to nothing", &|| {
            std::os::unix::fs::symlink("nowhere", &list).unwrap();
        }),
    ];
    for (what, damage) in damages {
        std::fs::remove_file(&list).unwrap();
        damage();
        for to in [
            RestoreTo::Newest,
            RestoreTo::Snapshot(older.snapshot),
            RestoreTo::Time(older.time),
        ] {
            let e = w.restore(to).map(drop).unwrap_err().to_string();
            assert!(e.contains(&newest.name), "{what}: {e}");
            assert!(
                e.contains(&format!("--backup {}", older.name)),
                "{what}: {e}"
            );
        }
        let place = w.dir.path().join(format!("older-{}", what.len()));
        let only = w.target().only(&older.name);
        restore(&only, &place, RestoreTo::Newest).unwrap();
        assert_eq!(lines(&opened(&place)), then, "{what}");
        match what {
            "a folder" => std::fs::remove_dir(&list).unwrap(),
            _ => std::fs::remove_file(&list).unwrap(),
        }
        std::fs::write(&list, &sound).unwrap();
    }
    // A pipe instead of a part must not block a restore either.
    let part = std::fs::read_dir(w.folder()).unwrap();
    let mut part = part.map(|e| e.unwrap().path());
    let part = part
        .find(|p| p.display().to_string().contains("part-"))
        .unwrap();
    std::fs::remove_file(&part).unwrap();
    pipe(&part);
    let e = w
        .restore(RestoreTo::Newest)
        .map(drop)
        .unwrap_err()
        .to_string();
    assert!(e.contains("not a regular file"), "{e}");
    let none = w.target().only("backup-00000000000000000001-0000000001");
    let place = w.dir.path().join("none");
    let e = restore(&none, &place, RestoreTo::Newest).unwrap_err();
    assert!(e.to_string().contains("no backup backup-"), "{e}");
}

#[test]
fn nothing_is_written_through_a_link() {
    let w = World::new();
    let target = w.dir.path().join("target");
    let whole = "precious\n";
    std::fs::write(&target, whole).unwrap();
    let link = |name: &str| {
        let path = w.store().join(name);
        let _ = std::fs::remove_file(&path);
        std::os::unix::fs::symlink(&target, &path).unwrap();
        path
    };
    let options = OpenOptions::default().with_access(Access::Write);
    // Files that opening, updating and reclustering create.
    for name in ["lock", "log-end.jd.tmp", "current.jd.new"] {
        let path = link(name);
        let done = Database::open_with(w.store(), &options).and_then(|db| {
            db.update(
                "INSERT DATA { <http://e/x> <http://e/y> 1 }",
                &UpdateOptions::default(),
            )?;
            db.recluster(&ReclusterOptions::default(), &Progress::default())?;
            db.merge(&Default::default(), &Progress::default())?;
            Ok(())
        });
        assert_eq!(
            std::fs::read_to_string(&target).unwrap(),
            whole,
            "{name}: {done:?}"
        );
        if name == "lock" {
            let e = done.unwrap_err().to_string();
            assert!(e.contains("symbolic link") && e.contains("lock"), "{e}");
        }
        std::fs::remove_file(&path).ok();
    }
    Database::open_with(w.store(), &options).unwrap();
}

#[test]
fn pipes_in_a_stores_place_are_errors_at_once() {
    for name in ["manifest.jd", "strings.jd", "checksums.jd"] {
        let w = World::new();
        let path = w.store().join(name);
        std::fs::remove_file(&path).unwrap();
        pipe(&path);
        let options = OpenOptions::default().with_verify(Verify::Eager);
        let opened = Database::open_with(w.store(), &options);
        let e = opened.map(drop).unwrap_err().to_string();
        assert!(e.contains(name), "{e}");
    }
}

/// The clock is set back by an hour after the first backup.
#[test]
fn the_backup_taken_last_is_the_newest_whatever_the_clock_said() {
    let mut w = World::new();
    let db = opened(&w.store());
    insert(&db, 1);
    let first = backup(&db, &w.target()).info;
    let hour = 3_600_000_000;
    let later = format!("backup-{:020}-{:010}", first.time + hour, first.snapshot);
    std::fs::rename(w.folder().join(&first.name), w.folder().join(&later)).unwrap();
    insert(&db, 2);
    let second = backup(&db, &w.target()).info;
    assert_eq!(
        second.name,
        format!("backup-{:020}-0000000002", first.time + hour + 1)
    );
    let names: Vec<String> = infos(&w.target()).into_iter().map(|i| i.name).collect();
    assert_eq!(names, [later.clone(), second.name.clone()]);
    let (newest, _) = w.restore(RestoreTo::Newest).unwrap();
    assert_eq!(
        (newest.snapshot().number(), lines(&newest)),
        (2, lines(&db))
    );
    // An older version would have named the second backup by the clock's time, so that it sorts first; then there is a
    // warning.
    let named = format!("backup-{:020}-0000000002", first.time - 1);
    std::fs::rename(w.folder().join(&second.name), w.folder().join(&named)).unwrap();
    let place = w.dir.path().join("warned");
    let report = restore(&w.target(), &place, RestoreTo::Newest).unwrap();
    assert_eq!(report.snapshot, 1);
    assert!(
        report.warnings[0].contains(&format!("--backup {named}")),
        "{:?}",
        report.warnings
    );
    let place = w.dir.path().join("at");
    let at = RestoreTo::Time(first.time);
    let report = restore(&w.target(), &place, at).unwrap();
    assert!(
        report.warnings[0].contains("times and snapshots disagree"),
        "{:?}",
        report.warnings
    );
}

#[test]
fn old_backups_are_removed_and_the_others_stay_whole() {
    let mut w = World::new();
    let nested = w.dir.path().join("a/b/backups");
    assert!(
        BackupTarget::folder(nested.to_str().unwrap()).is_ok(),
        "with its parents"
    );
    let db = opened(&w.store());
    let mut kept = Vec::new();
    for n in 0..5 {
        insert(&db, n);
        if n == 3 {
            // A new base: later backups do not need the files of earlier ones.
            db.recluster(&ReclusterOptions::default(), &Progress::default())
                .unwrap();
        }
        kept.push((backup(&db, &w.target()).info, lines(&db)));
    }
    std::fs::write(w.folder().join("part-of-my-own"), "x").unwrap();
    let before = std::fs::read_dir(w.folder()).unwrap().count();
    assert!(w.target().prune(0).is_err());
    let none = w.target().prune(5).unwrap();
    assert_eq!((none.backups, none.files), (0, 0));
    let done = w.target().prune(2).unwrap();
    assert_eq!(done.backups, 3);
    assert!(done.files > 3, "{done:?}");
    let now = std::fs::read_dir(w.folder()).unwrap().count() as u64;
    assert_eq!(now, before as u64 - done.backups - done.files);
    assert!(w.folder().join("part-of-my-own").exists());
    for (info, want) in &kept[3..] {
        let (restored, _) = w.restore(RestoreTo::Snapshot(info.snapshot)).unwrap();
        assert_eq!(&lines(&restored), want);
    }
    assert!(w.restore(RestoreTo::Snapshot(kept[0].0.snapshot)).is_err());
    // It is unknown which files a damaged backup needs, so nothing may be removed.
    let newest = w.folder().join(&kept[4].0.name);
    std::fs::write(&newest, "nonsense").unwrap();
    assert!(matches!(w.target().prune(1), Err(Error::Damaged { .. })));
}

#[test]
fn objects_serve_as_well() {
    let w = World::new();
    let store: std::sync::Arc<object_store::memory::InMemory> = Default::default();
    let objects = jindou_log::Objects::new(store, "some/where").unwrap();
    let target = BackupTarget::of(std::sync::Arc::new(objects));
    let db = opened(&w.store());
    insert(&db, 1);
    backup(&db, &target);
    insert(&db, 2);
    let second = backup(&db, &target);
    assert_eq!(second.new_files, 2, "the log's first bytes, and the backup");
    let place = w.dir.path().join("restored");
    let report = restore(&target, &place, RestoreTo::Newest).unwrap();
    assert_eq!((report.snapshot, report.quads), (2, 504));
    let made = opened(&place);
    assert_eq!(lines(&made), lines(&db));
    assert!(quads::same(
        &quads::all_quads(&made),
        &quads::all_quads(&db)
    ));
}
