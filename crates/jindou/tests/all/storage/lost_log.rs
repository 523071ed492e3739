//! Missing log files: whichever is missing is named when the store is opened, checked or backed up; and no file is
//! reported as missing after any sequence of operations that remove log files legitimately.

use super::{backup_of, restore};
use jindou::testing::{Nothing, load_nquads};
use jindou::{
    Access, BackupTarget, Database, Error, LoadOptions, MergeOptions, OpenOptions, Progress,
    ReclusterOptions, RestoreTo, UpdateOptions,
};
use jindou_testing::copy_folder;
use std::path::{Path, PathBuf};

const END: &str = "log-end.jd";

fn load(dir: &Path) {
    load_nquads(dir, "<http://e/s> <http://e/p> <http://e/o> .\n").unwrap();
}

/// Opens the store several times, and inserts one quad each time; each opening begins a log file.
fn sessions(dir: &Path, from: usize, to: usize) {
    for i in from..to {
        let db = opened(dir, Access::Write).unwrap();
        let text = format!("INSERT DATA {{ <http://e/s{i}> <http://e/p> {i} }}");
        db.update(&text, &UpdateOptions::default()).unwrap();
    }
}

fn opened(dir: &Path, access: Access) -> Result<Database, Error> {
    let options = OpenOptions::default().with_access(access);
    Database::open_with(dir, &options)
}

fn log_files(dir: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> = std::fs::read_dir(dir.join("log"))
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "log"))
        .collect();
    files.sort();
    files
}

/// Asserts that opening, checking and backing up the store all report the file `name` as missing.
fn all_say(dir: &Path, name: &str) {
    for access in [Access::Read, Access::Write, Access::Any] {
        let Err(error) = opened(dir, access) else {
            panic!("{name} is not missed");
        };
        let text = error.to_string();
        assert!(text.contains(name) && text.contains("missing"), "{text}");
        assert!(text.contains("restore the store from a backup"), "{text}");
    }
    let report = Database::check(dir).unwrap();
    let damages: Vec<_> = report.damages.iter().map(ToString::to_string).collect();
    let named = |d: &String| d.contains(name) && d.contains("missing");
    assert!(damages.iter().any(named), "{damages:?}");
    let place = tempfile::tempdir().unwrap();
    let target = BackupTarget::folder(place.path().to_str().unwrap()).unwrap();
    let error = backup_of(dir, &target).unwrap_err();
    assert!(error.to_string().contains(name), "{error}");
}

#[test]
fn whichever_log_file_is_gone_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let whole = folder.path().join("whole");
    load(&whole);
    sessions(&whole, 0, 5);
    let names = log_files(&whole);
    assert_eq!(names.len(), 5);
    assert!(Database::check(&whole).unwrap().is_sound());
    for (i, name) in names.iter().enumerate() {
        let dir = folder.path().join(format!("without-{i}"));
        copy_folder(&whole, &dir);
        let name = name.file_name().unwrap().to_str().unwrap();
        std::fs::remove_file(dir.join("log").join(name)).unwrap();
        all_say(&dir, name);
        // These attempts changed nothing: with the file back in place, the store is complete.
        std::fs::copy(whole.join("log").join(name), dir.join("log").join(name)).unwrap();
        assert_eq!(opened(&dir, Access::Write).unwrap().snapshot().quads(), 6);
    }
    // The last two files are missing, or all of them.
    let newest = names[4].file_name().unwrap().to_str().unwrap();
    for (i, gone) in [&names[3..], &names[..]].into_iter().enumerate() {
        let dir = folder.path().join(format!("without-some-{i}"));
        copy_folder(&whole, &dir);
        for path in gone {
            let name = path.file_name().unwrap();
            std::fs::remove_file(dir.join("log").join(name)).unwrap();
        }
        all_say(&dir, newest);
    }
    let dir = folder.path().join("without-folder");
    copy_folder(&whole, &dir);
    std::fs::remove_dir_all(dir.join("log")).unwrap();
    all_say(&dir, "log");
    assert!(!dir.join("log").exists());
    // An administrator who accepts the loss removes the note of the log's end, and can open the store.
    std::fs::remove_file(dir.join(END)).unwrap();
    assert_eq!(opened(&dir, Access::Write).unwrap().snapshot().quads(), 1);
}

#[test]
fn a_changed_end_is_named_and_one_of_before_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("store");
    load(&dir);
    sessions(&dir, 0, 2);
    let good = std::fs::read(dir.join(END)).unwrap();
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 1 << (at % 7);
        std::fs::write(dir.join(END), bad).unwrap();
        let text = opened(&dir, Access::Read).err().unwrap().to_string();
        assert!(text.contains(END), "{text}");
        let report = Database::check(&dir).unwrap();
        assert!(report.damages.iter().any(|d| d.file == END), "byte {at}");
    }
    // A store of an older version does not have this file.
    std::fs::remove_file(dir.join(END)).unwrap();
    std::fs::remove_file(dir.join("log/end.jd")).unwrap();
    assert!(Database::check(&dir).unwrap().is_sound());
    assert_eq!(opened(&dir, Access::Read).unwrap().snapshot().quads(), 3);
    assert!(!dir.join(END).exists());
    drop(opened(&dir, Access::Write).unwrap());
    let newest = log_files(&dir).pop().unwrap();
    std::fs::remove_file(&newest).unwrap();
    all_say(&dir, newest.file_name().unwrap().to_str().unwrap());
    // The copy of the note in the log's folder suffices.
    let _ = std::fs::remove_file(dir.join(END));
    all_say(&dir, newest.file_name().unwrap().to_str().unwrap());
}

#[test]
fn what_is_removed_rightly_is_not_missed() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("store");
    load(&dir);
    let sound = |dir: &Path, quads: u64| {
        let report = Database::check(dir).unwrap();
        assert!(report.is_sound(), "{:?}", report.damages);
        assert_eq!(opened(dir, Access::Read).unwrap().snapshot().quads(), quads);
        assert_eq!(opened(dir, Access::Any).unwrap().snapshot().quads(), quads);
    };
    sound(&dir, 1);
    sessions(&dir, 0, 3);
    let merge = |dir: &Path| {
        let db = opened(dir, Access::Write).unwrap();
        db.merge(&MergeOptions::default(), &Progress::default())
            .unwrap();
    };
    merge(&dir);
    assert_eq!(log_files(&dir).len(), 1);
    sound(&dir, 4);
    sessions(&dir, 3, 5);
    sound(&dir, 6);
    // A backup does not contain the note of the log's end; the restored store writes its own.
    let place = folder.path().join("backups");
    std::fs::create_dir(&place).unwrap();
    let target = BackupTarget::folder(place.to_str().unwrap()).unwrap();
    backup_of(&dir, &target).unwrap();
    let restored = folder.path().join("restored");
    restore(&target, &restored, RestoreTo::Newest).unwrap();
    sound(&restored, 6);
    let newest = log_files(&restored).pop().unwrap();
    let name = newest.file_name().unwrap().to_str().unwrap().to_owned();
    std::fs::remove_file(&newest).unwrap();
    all_say(&restored, &name);
    // After a reclustering, the log is in the new base's folder.
    let db = opened(&dir, Access::Write).unwrap();
    db.recluster(&ReclusterOptions::default(), &Progress::default())
        .unwrap();
    drop(db);
    sound(&dir, 6);
    assert!(!dir.join(END).exists());
    sessions(&dir, 5, 7);
    sound(&dir, 8);
    merge(&dir);
    sound(&dir, 8);
    sessions(&dir, 7, 8);
    let base = dir.join("base-1");
    std::fs::remove_dir_all(base.join("log")).unwrap();
    all_say(&dir, "log");
    // A load that replaces the store removes the note as well.
    let options = LoadOptions::default().with_threads(1).with_replace(true);
    Database::load(&dir, &Nothing, &options, &Progress::default()).unwrap();
    sound(&dir, 0);
    assert!(!dir.join(END).exists());
}

/// Opens the store and inserts a quad for each of these numbers.
fn insert(dir: &Path, numbers: std::ops::Range<usize>) -> Database {
    let db = opened(dir, Access::Write).unwrap();
    for i in numbers {
        let text = format!("INSERT DATA {{ <http://e/s{i}> <http://e/p> {i} }}");
        db.update(&text, &UpdateOptions::default()).unwrap();
    }
    db
}

/// If the newest log file was truncated after the store was closed cleanly, it is reported. After a crash, or without
/// the note of the clean end, a truncated file counts as torn by the crash.
#[test]
fn a_newest_file_that_was_cut_short_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let whole = folder.path().join("whole");
    load(&whole);
    sessions(&whole, 0, 1);
    drop(insert(&whole, 1..3));
    let quads = |dir: &Path| opened(dir, Access::Any).unwrap().snapshot().quads();
    let name = log_files(&whole).pop().unwrap();
    let name = name.file_name().unwrap().to_str().unwrap();
    let bytes = std::fs::read(whole.join("log").join(name)).unwrap();
    // Truncated inside the end mark that closing wrote, inside the last records, and before all records.
    let mark = 72;
    for length in [
        bytes.len() - 1,
        bytes.len() - mark - 1,
        bytes.len() - mark - 100,
        80,
    ] {
        let dir = folder.path().join(format!("cut-{length}"));
        copy_folder(&whole, &dir);
        std::fs::write(dir.join("log").join(name), &bytes[..length]).unwrap();
        all_say(&dir, name);
    }
    // A store of a version that did not write the note.
    let dir = folder.path().join("before");
    copy_folder(&whole, &dir);
    std::fs::remove_file(dir.join("log/closed.jd")).unwrap();
    assert!(Database::check(&dir).unwrap().is_sound());
    std::fs::write(dir.join("log").join(name), &bytes[..bytes.len() - mark - 1]).unwrap();
    assert!(Database::check(&dir).unwrap().is_sound());
    assert_eq!(quads(&dir), 3);
    // The note itself is damaged.
    let dir = folder.path().join("changed");
    copy_folder(&whole, &dir);
    let note = dir.join("log/closed.jd");
    let text = std::fs::read_to_string(&note).unwrap();
    std::fs::write(&note, text.replace("length ", "length 1")).unwrap();
    let error = opened(&dir, Access::Write).err().map(|e| e.to_string());
    assert!(error.is_some_and(|e| e.contains("closed.jd")));
    assert!(!Database::check(&dir).unwrap().is_sound());
    // A crash: the files are copied while the store is open, and the newest log file is truncated.
    let db = insert(&whole, 10..12);
    let dir = folder.path().join("crashed");
    copy_folder(&whole, &dir);
    drop(db);
    let newest = log_files(&dir).pop().unwrap();
    assert_ne!(newest.file_name().unwrap().to_str(), Some(name));
    assert!(Database::check(&dir).unwrap().is_sound());
    assert_eq!(quads(&dir), 6);
    let bytes = std::fs::read(&newest).unwrap();
    let end = bytes.iter().rposition(|byte| *byte != 0).unwrap();
    std::fs::write(&newest, &bytes[..end]).unwrap();
    assert!(Database::check(&dir).unwrap().is_sound());
    // Truncation has torn the last record, or the mark after it, which is there if the copying took a second.
    let left = quads(&dir);
    assert!((5..=6).contains(&left), "{left}");
    // The log can be continued, and is closed cleanly again.
    drop(insert(&dir, 20..21));
    assert!(Database::check(&dir).unwrap().is_sound());
    assert_eq!(quads(&dir), left + 1);
}
