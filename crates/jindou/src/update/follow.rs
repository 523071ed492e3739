//! Follows a store that another process changes: a database that was opened for reading shows the commits of that
//! process.
//!
//! ```text
//! every 100 ms: stamps of current.jd, manifest.jd and the newest log file ─► unchanged: nothing to do
//!   same base ─► replay the log records after the last one ─► publish
//!   another base, or different records ─► open the store again ─► publish
//! ```

use super::background::{Background, Stop};
use super::durable::{ReadOnlyStore, log_in, read_whole};
use super::trust::Verify;
use crate::database::{Database, guarded};
use jindou_model::sync;
use jindou_model::{Error, Result};
use jindou_store::Snapshot;
use jindou_store::delta::committed_at;
use jindou_store::directory::{BaseLocation, CURRENT, LOG, MANIFEST, current};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::MutexGuard;
use std::time::{Duration, Instant, SystemTime};

/// Interval at which the files are checked.
const POLL: Duration = Duration::from_millis(100);
/// The checks that find changes may use at most 1/SHARE of a core; the interval grows accordingly.
const SHARE: u32 = 4;
/// Resolution of file systems' timestamps: a file that was changed this recently may change again without a new
/// timestamp.
const COARSE: Duration = Duration::from_millis(100);
/// Failures that last shorter than this are attributed to the other process changing the files, and not reported.
const PATIENCE: Duration = Duration::from_secs(2);

/// Identifies a version of a file: device, inode, length, and modification time in nanoseconds; `None` if the file is
/// missing.
type Stamp = Option<(u64, u64, u64, i128)>;

fn stamp(path: &Path) -> Stamp {
    let m = std::fs::metadata(path).ok()?;
    let time = i128::from(m.mtime()) * 1_000_000_000 + i128::from(m.mtime_nsec());
    Some((m.dev(), m.ino(), m.len(), time))
}

/// Stamps of a store directory's files, for detecting changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Stamps {
    current: Stamp,
    manifest: Stamp,
    /// Name of the newest log file, which sorts last.
    newest: Option<std::ffi::OsString>,
    log: Stamp,
}

impl Stamps {
    fn read(dir: &Path) -> Result<Self> {
        let folder = BaseLocation::find(dir)?.folder();
        let log = folder.join(LOG);
        let names = std::fs::read_dir(&log).into_iter().flatten().flatten();
        let newest = names
            .map(|e| e.file_name())
            .filter(|n| n.to_string_lossy().ends_with(".log"))
            .max();
        Ok(Self {
            current: stamp(&dir.join(CURRENT)),
            manifest: stamp(&folder.join(MANIFEST)),
            log: newest.as_ref().and_then(|n| stamp(&log.join(n))),
            newest,
        })
    }

    /// True if any change after `now` will be visible in the stamps.
    fn are_conclusive(&self, now: SystemTime) -> bool {
        let now = now
            .duration_since(SystemTime::UNIX_EPOCH)
            .map_or(0, |d| d.as_nanos() as i128);
        let recent = |s: &Stamp| s.is_some_and(|s| s.3 + COARSE.as_nanos() as i128 > now);
        ![self.current, self.manifest, self.log].iter().any(recent)
    }
}

/// A store directory that is only read, and the stamps of its files when they were last read.
pub(crate) struct Followed {
    reader: ReadOnlyStore,
    seen: Stamps,
    is_conclusive: bool,
}

impl Followed {
    /// Starts to follow a store that was just opened.
    pub(crate) fn new(reader: ReadOnlyStore) -> Self {
        Self {
            reader,
            seen: Stamps::default(),
            is_conclusive: false,
        }
    }
}

/// A database and its files, locked for one check.
struct Follower<'a> {
    db: &'a Database,
    followed: MutexGuard<'a, Followed>,
}

impl<'a> Follower<'a> {
    fn new(db: &'a Database) -> Result<Self> {
        let followed = db.inner.followed.as_ref().ok_or_else(|| {
            Error::Usage(
                "only a store that was opened read-only, from a directory, can be followed: a database that is open for writing is \
                 always up to date"
                    .into(),
            )
        })?;
        Ok(Self {
            db,
            followed: sync::lock(followed),
        })
    }

    /// Checks the files, and publishes a new snapshot if they have changed.
    fn check(&mut self) -> Result<()> {
        let now = SystemTime::now();
        let seen = Stamps::read(&self.followed.reader.dir)?;
        if seen == self.followed.seen && self.followed.is_conclusive {
            return Ok(());
        }
        guarded(|| self.catch_up())?;
        self.followed.is_conclusive = seen.are_conclusive(now);
        self.followed.seen = seen;
        Ok(())
    }

    fn catch_up(&mut self) -> Result<()> {
        let head = self.db.snapshot();
        let (place, manifest) = current(&self.followed.reader.dir)?;
        let writer = &self.db.inner.writer;
        if manifest == *head.base().manifest()
            && let Ok(Some((next, last))) = self.replay(&place, &head)
        {
            if next.number() != head.number() {
                writer.follow(next);
            }
            self.followed.reader.last = last;
            return Ok(());
        }
        // The store was merged, reclustered or loaded again; or unacknowledged records that were read before have been
        // replaced by other records.
        let verify = match self.followed.reader.verify {
            Verify::Off => Verify::Off,
            Verify::Background | Verify::Eager => Verify::Eager,
        };
        let whole = read_whole(
            &self.followed.reader.dir,
            verify,
            &self.followed.reader.indexes,
            Some(head.base()),
        )?;
        writer.follow(whole.head);
        self.followed.reader.last = whole.last;
        Ok(())
    }

    /// Replays the records after the last one that was applied. Returns the new snapshot and the commit time of its
    /// last record; `None` if the log no longer contains the last applied record unchanged.
    fn replay(
        &self,
        place: &BaseLocation,
        head: &Snapshot,
    ) -> Result<Option<(Snapshot, Option<u64>)>> {
        let (base, number) = (head.base().number(), head.number());
        let Some(files) = log_in(&place.folder().join(LOG), head.base().epoch())? else {
            return Ok((number == base).then(|| (head.clone(), None)));
        };
        // Start with the last applied record, to check that it is unchanged.
        let after = if number > base { number - 1 } else { number };
        let (mut next, mut last) = (head.clone(), self.followed.reader.last);
        let mut same = true;
        let found = jindou_log::replay(&files, head.base().epoch(), after, &mut |n, record| {
            let time = committed_at(record);
            if n <= number {
                same &= time == last;
            } else if same {
                next = next.replay(record)?;
                last = time;
            }
            Ok(())
        })?;
        Ok((same && found.last >= number).then_some((next, last)))
    }
}

impl Database {
    /// Brings a database that was opened for reading up to date with commits by other processes, once. Running queries
    /// keep the snapshot that they began with. Returns true if there was a new snapshot.
    ///
    /// # Errors
    /// [`Error::Usage`] as for [`Self::follow_in_background`]; those of opening the store, if it cannot be read for
    /// some seconds.
    pub fn refresh(&self) -> Result<bool> {
        let before = self.snapshot();
        let begun = Instant::now();
        loop {
            match Follower::new(self)?.check() {
                Ok(()) => break,
                Err(e) if begun.elapsed() >= PATIENCE => return Err(e),
                Err(_) => std::thread::sleep(POLL),
            }
        }
        let now = self.snapshot();
        let place = |s: &Snapshot| (s.base().epoch(), s.number());
        Ok(place(&before) != place(&now))
    }

    /// Starts a thread that keeps a database that was opened for reading up to date with commits by other processes,
    /// until the returned handle is dropped. Changes appear within a fraction of a second, including merges,
    /// reclusterings and loads. Running queries keep the snapshot that they began with. `told` is called with an error
    /// when following has failed for some seconds, and with the snapshot's number when it works again.
    ///
    /// # Errors
    /// [`Error::Usage`] for a database that was not opened for reading from a directory; [`Error::Limit`] if no thread
    /// can be started.
    pub fn follow_in_background(
        &self,
        told: impl Fn(&Result<u64>) + Send + 'static,
    ) -> Result<Following> {
        drop(Follower::new(self)?);
        let db = self.clone();
        let failure = "cannot start a thread to follow the store";
        let work = move |stop: &Stop| follow(&db, stop, &told);
        let _background = Background::start("jindou-follow", failure, work)?;
        Ok(Following { _background })
    }
}

fn follow(db: &Database, stop: &Stop, told: &dyn Fn(&Result<u64>)) {
    let mut wait = POLL;
    let mut failing: Option<Instant> = None;
    let mut said = None;
    while !stop.wait(wait) {
        let begun = Instant::now();
        let outcome = Follower::new(db).and_then(|mut f| f.check());
        wait = POLL.max(begun.elapsed() * SHARE);
        match outcome {
            Ok(_) => {
                failing = None;
                if said.take().is_some() {
                    told(&Ok(db.snapshot().number()));
                }
            }
            Err(e) => {
                let since = *failing.get_or_insert(begun);
                let text = e.to_string();
                if since.elapsed() >= PATIENCE && said.as_ref() != Some(&text) {
                    told(&Err(e));
                    said = Some(text);
                }
            }
        }
    }
}

/// Handle of a thread that follows a store. Dropping it ends the thread; the database then stays in its current state.
#[must_use = "dropped, the database no longer changes"]
pub struct Following {
    _background: Background,
}
