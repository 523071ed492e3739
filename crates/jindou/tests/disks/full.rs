//! A disk that fills up: a small tmpfs, on machines that allow mounting one.

use jindou::testing::load_nquads;
use jindou::{
    Access, BackupTarget, CancelToken, Database, Durability, Error, OpenOptions, Progress,
    ReclusterOptions, UpdateOptions,
};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A mounted tmpfs, unmounted when this is dropped.
struct Disk(tempfile::TempDir);

impl Disk {
    /// `None` if the system does not allow mounting.
    fn mount(mebibytes: u32) -> Option<Self> {
        let dir = tempfile::tempdir().ok()?;
        let done = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={mebibytes}m"), "tmpfs"])
            .arg(dir.path())
            .output();
        done.is_ok_and(|o| o.status.success()).then_some(Self(dir))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// Fills the disk except for this many KiB.
    fn fill(&self, leave: usize) -> PathBuf {
        let path = self.path().join("ballast");
        let mut file = std::fs::File::create(&path).unwrap();
        while file.write_all(&[1; 4096]).is_ok() {}
        let len = file.metadata().unwrap().len();
        file.set_len(len.saturating_sub(leave as u64 * 1024))
            .unwrap();
        path
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.path()).status();
    }
}

fn update(db: &Database, n: u32) -> jindou::Result<u64> {
    let long = "x".repeat(20_000);
    let text = format!("INSERT DATA {{ <http://e/s{n}> <http://e/p> \"{n} {long}\" , {n} }}");
    let options = UpdateOptions::default().with_threads(1);
    db.update(&text, &options).map(|r| r.snapshot)
}

fn is_full(e: &Error) -> bool {
    matches!(e, Error::Io { source, .. } if source.kind() == ErrorKind::StorageFull)
}

#[test]
fn updates_are_refused_while_the_disk_is_full_and_come_back() {
    let Some(disk) = Disk::mount(24) else {
        println!("skipped: no tmpfs can be mounted here");
        return;
    };
    let store = disk.path().join("store");
    load_nquads(&store, "<http://e/a> <http://e/b> <http://e/c> .\n").unwrap();
    for (from, durability) in [(0, Durability::Batch), (10_000, Durability::None)] {
        let access = Access::Write;
        let open = || {
            Database::open_with(
                &store,
                &OpenOptions::default()
                    .with_access(access)
                    .with_durability(durability),
            )
            .unwrap()
        };
        let db = open();
        update(&db, from).unwrap();
        let ballast = disk.fill(1000);
        let mut done = 0;
        let refused = loop {
            match update(&db, from + done + 1) {
                Ok(_) => done += 1,
                Err(e) => break e,
            }
            assert!(done < 2000, "the disk never fills up");
        };
        assert!(is_full(&refused), "{refused:?}");
        assert!(refused.to_string().contains("log"), "{refused}");
        let there = db.snapshot();
        for _ in 0..3 {
            assert!(is_full(&update(&db, from + 5000).unwrap_err()));
        }
        // Queries still work, and see exactly the acknowledged updates.
        let rows = db.query("SELECT * { ?s <http://e/p> ?o }").unwrap();
        assert_eq!(rows.solutions().len() as u64 + 1, there.quads());
        assert_eq!(db.snapshot().number(), there.number());
        // A reclustering and a backup fail for lack of space, and change nothing.
        let options = ReclusterOptions::default()
            .with_memory(16 << 20)
            .with_threads(1);
        assert!(db.recluster(&options, &Progress::default()).is_err());
        let target = BackupTarget::folder(disk.path().join("backups").to_str().unwrap());
        if let Ok(target) = target {
            let whole = target.list().unwrap().len();
            let done = db.backup(&target, &CancelToken::new(), &Progress::default());
            assert!(done.is_err(), "{done:?}");
            assert_eq!(target.list().unwrap().len(), whole);
        }
        assert_eq!(db.snapshot().number(), there.number());
        std::fs::remove_file(ballast).unwrap();
        // Once there is space, the next update succeeds without reopening the store.
        assert_eq!(update(&db, from + 9000).unwrap(), there.number() + 1);
        let report = db.recluster(&options, &Progress::default()).unwrap();
        assert_eq!(report.snapshot, there.number() + 1);
        let quads = db.snapshot().quads();
        drop(db);
        assert!(Database::check(&store).unwrap().is_sound());
        let db = open();
        assert_eq!(
            (db.snapshot().quads(), db.snapshot().number()),
            (quads, there.number() + 1)
        );
    }
}
