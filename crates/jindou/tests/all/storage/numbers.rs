//! Snapshot numbers beyond 32 bits, which older versions did not support: updates, merges, reopening, a follower,
//! reclustering, backups and restored stores.

use super::{backup_of, restore, sound};
use crate::quads;
use jindou::testing::load_nquads;
use jindou::{
    Access, BackupTarget, CancelToken, Database, Durability, Error, MergeOptions, OpenOptions,
    Progress, ReclusterOptions, RestoreTo, UpdateOptions,
};
use jindou_store::directory::{MANIFEST, Manifest};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

const LOADED: [&str; 2] = [
    "<http://e/a> <http://e/p> <http://e/b>",
    "<http://e/b> <http://e/p> <http://e/c> <http://e/g>",
];
const STEPS: u64 = 24;

/// A loaded store whose snapshots are numbered from `number` on, as after a reclustering at that snapshot.
fn store_at(dir: &Path, number: u64) {
    let text: String = LOADED.iter().map(|line| format!("{line} .\n")).collect();
    load_nquads(dir, &text).unwrap();
    let mut manifest = Manifest::of_store(dir).unwrap();
    manifest.snapshot = number;
    std::fs::write(dir.join(MANIFEST), manifest.to_text()).unwrap();
}

fn opened(dir: &Path, access: Access) -> Database {
    let options = OpenOptions::default()
        .with_access(access)
        .with_durability(Durability::Batch);
    Database::open_with(dir, &options).expect("the store")
}

type Lines = BTreeSet<String>;

fn lines(db: &Database) -> Lines {
    let all = quads::all_quads(db);
    all.iter().map(|q| q.to_string()).collect()
}

/// Inserts a quad, and every third time also removes the previous one.
fn change(db: &Database, n: u64, model: &mut Lines) -> u64 {
    let options = UpdateOptions::default().with_threads(1);
    let line = |n: u64| format!("<http://e/n{n}> <http://e/q{}> \"{n}\"", n % 4);
    let mut text = format!("INSERT DATA {{ {} }}", line(n));
    model.insert(line(n));
    if n % 3 == 2 && model.remove(&line(n - 1)) {
        text += &format!("; DELETE DATA {{ {} }}", line(n - 1));
    }
    if n % 5 == 4 {
        let mut transaction = db.begin(&options).unwrap();
        transaction.update(&text, &options).unwrap();
        return transaction.commit().unwrap().snapshot;
    }
    db.update(&text, &options).unwrap().snapshot
}

fn caught_up(reader: &Database, number: u64, want: &Lines) {
    let begun = Instant::now();
    while reader.snapshot_number() != number {
        assert!(begun.elapsed() < Duration::from_secs(30));
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(&lines(reader), want);
}

fn crosses(limit: u64) {
    let folder = tempfile::tempdir().unwrap();
    let (dir, place) = (folder.path().join("store"), folder.path().join("backups"));
    let from = limit - STEPS / 2;
    store_at(&dir, from);
    let progress = Progress::default();
    let cancel = CancelToken::new();
    let target = BackupTarget::folder(place.to_str().unwrap()).unwrap();
    let mut db = opened(&dir, Access::Write);
    let reader = opened(&dir, Access::Read);
    let following = reader.follow_in_background(|_| {}).unwrap();
    let mut model: Lines = LOADED.iter().map(|&line| line.to_owned()).collect();
    let mut past = vec![(from, model.clone())];
    assert_eq!((db.snapshot_number(), lines(&db)), past[0]);
    for n in 0..STEPS {
        assert_eq!(change(&db, n, &mut model), from + n + 1);
        assert_eq!(
            (db.snapshot_number(), lines(&db)),
            (from + n + 1, model.clone())
        );
        past.push((from + n + 1, model.clone()));
        match n {
            2 | 10 | 14 | 22 => {
                // Freeing terms takes numbers, too.
                let options = MergeOptions::default().with_keeps_terms(true);
                let report = db.merge(&options, &progress).unwrap();
                assert_eq!(report.snapshot, from + n + 1);
                assert_eq!(lines(&db), model);
            }
            6 | 11 | 13 | 16 => {
                drop(db);
                sound(&dir);
                db = opened(&dir, Access::Write);
                let recovery = db.recovery().unwrap();
                assert_eq!(recovery.last, from + n + 1);
                assert_eq!(
                    (db.snapshot_number(), lines(&db)),
                    (from + n + 1, model.clone())
                );
            }
            4 | 9 | 12 | 21 => {
                db.backup(&target, &cancel, &progress).unwrap();
            }
            8 | 20 => {
                let report = db
                    .recluster(&ReclusterOptions::default(), &progress)
                    .unwrap();
                assert_eq!(report.snapshot, from + n + 1);
                assert_eq!(lines(&db), model);
            }
            _ => {}
        }
        if n % 4 == 3 {
            caught_up(&reader, from + n + 1, &model);
        }
    }
    db.set_prefix("p", "http://p/", &UpdateOptions::default())
        .unwrap();
    assert_eq!(db.snapshot_number(), from + STEPS + 1);
    past.push((from + STEPS + 1, model.clone()));
    caught_up(&reader, from + STEPS + 1, &model);
    let status = db.log_status().unwrap();
    assert_eq!(status.acknowledged, from + STEPS + 1);
    drop(following);
    drop((db, reader));
    sound(&dir);
    // Now that no process has the store open, a backup contains the whole log.
    restore_all(&dir, &target, folder.path(), &past);
    let new = folder.path().join("newest");
    let report = restore(&target, &new, RestoreTo::Newest).unwrap();
    assert_eq!(report.snapshot, from + STEPS + 1);
    assert_eq!(lines(&opened(&new, Access::Read)), model);
}

/// Takes a last backup, and restores each past snapshot in a folder. Those that no backup contains must be refused.
fn restore_all(dir: &Path, target: &BackupTarget, folder: &Path, past: &[(u64, Lines)]) {
    backup_of(dir, target).unwrap();
    let infos = target.list().unwrap();
    let infos: Vec<_> = infos.into_iter().map(Result::unwrap).collect();
    assert_eq!(infos.len(), 5);
    let mut restored = 0;
    for (number, want) in past {
        let kept = infos.iter().any(|i| (i.base..=i.snapshot).contains(number));
        let new = folder.join(format!("restored-{number}"));
        match restore(target, &new, RestoreTo::Snapshot(*number)) {
            Ok(report) => {
                assert!(kept);
                assert_eq!(report.snapshot, *number);
                sound(&new);
                let db = opened(&new, Access::Write);
                assert_eq!((&db.snapshot_number(), &lines(&db)), (number, want));
                assert_eq!(change(&db, 1000, &mut want.clone()), number + 1);
                restored += 1;
            }
            Err(Error::Usage(why)) => assert!(!kept, "{number}: {why}"),
            Err(e) => panic!("{number}: {e}"),
        }
    }
    assert!(restored > 12, "{restored}");
}

#[test]
fn a_store_goes_beyond_32_bits() {
    crosses(1 << 32);
}

#[test]
fn its_log_has_numbers_of_64_bits_from_half_of_that_on() {
    crosses(1 << 31);
}

#[test]
fn a_store_counts_as_far_as_64_bits() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("store");
    store_at(&dir, u64::MAX - 3);
    let db = opened(&dir, Access::Write);
    let mut model = Lines::new();
    assert_eq!(change(&db, 0, &mut model), u64::MAX - 2);
    drop(db);
    let db = opened(&dir, Access::Write);
    assert_eq!(change(&db, 1, &mut model), u64::MAX - 1);
    // The next snapshot is refused, since the log would have no number for the one after it.
    let options = UpdateOptions::default();
    for _ in 0..2 {
        let refused = db.update("INSERT DATA { <http://e/z> <http://e/z> 1 }", &options);
        assert!(matches!(refused, Err(Error::Limit(_))), "{refused:?}");
    }
    assert_eq!(db.snapshot_number(), u64::MAX - 1);
    drop(db);
    assert_eq!(opened(&dir, Access::Write).snapshot_number(), u64::MAX - 1);
}
