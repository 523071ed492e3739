//! Notes: files of a store directory that say which part of a shared log the store contains.
//!
//! ```text
//! replica/B-N.jd  for snapshot N of base B: the log, the newest group in the snapshot, the request keys up to it
//! replica/B-N.merge  the results of this server's shards in the merge that made base N
//! replica/begins  id of the log that is created from this store if no log exists yet
//! replica/shards  the id epoch of the load, and the shards that this server held when the store was last open
//! ```
//!
//! A note is written before the manifest names its snapshot. So after a crash, the manifest that is found has its note.

use crate::update::note::note_path;
use jindou_model::{Error, Result, private};
use jindou_replicas::Base as LogBase;
use jindou_replicas::{read_known, write_known};
use jindou_store::directory::REPLICA;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::xxh3_64;

/// First bytes of a `B-N.jd` note.
const MAGIC: &[u8; 8] = b"JDREPL1\n";
/// File with the random id of the log that is created from this store if no log exists yet.
const BEGINS: &str = "begins";
/// File with the shards that this server held.
const SHARDS: &str = "shards";

/// The notes of a store directory.
pub(super) struct Notes {
    dir: PathBuf,
}

pub(super) fn sync(path: &Path) -> Result<()> {
    let synced = File::open(path).and_then(|f| f.sync_all());
    synced.map_err(|e| Error::io(path, e))
}

/// Writes a file of the notes' folder atomically and durably.
pub(super) fn write_durably(path: &Path, bytes: &[u8]) -> Result<()> {
    let new = path.with_extension("new");
    let written = private::create(&new).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    if let Err(e) = written.and_then(|()| std::fs::rename(&new, path)) {
        let _ = std::fs::remove_file(&new);
        return Err(Error::io(path, e));
    }
    path.parent().map_or(Ok(()), sync)
}

impl Notes {
    /// The notes of the store directory `dir`.
    pub(super) fn of(dir: &Path) -> Self {
        let dir = dir.to_owned();
        Self { dir }
    }

    /// The notes' folder, which is created if it is missing.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn folder(&self) -> Result<PathBuf> {
        let notes = self.dir.join(REPLICA);
        if !notes.exists() {
            private::create_folder(&notes).map_err(|e| Error::io(&notes, e))?;
            sync(&self.dir)?;
        }
        Ok(notes)
    }

    /// Id of the log that is created from this store if no log exists yet: a random number, the same at each start.
    pub(super) fn id_of_new_log(&self) -> Result<u64> {
        let path = self.folder()?.join(BEGINS);
        if let Ok(text) = private::read(&path)
            && let Some(log) = std::str::from_utf8(&text)
                .ok()
                .and_then(|t| u64::from_str_radix(t.trim(), 16).ok())
        {
            return Ok(log);
        }
        let log = super::random() as u64;
        write_durably(&path, format!("{log:016x}\n").as_bytes())?;
        Ok(log)
    }

    /// Shards that this server held of the load with this id epoch; empty without a note.
    ///
    /// # Errors
    /// [`Error::Damaged`]; [`Error::Io`].
    pub(super) fn shards(&self, epoch: u64) -> Result<Vec<u32>> {
        let path = self.dir.join(REPLICA).join(SHARDS);
        let bytes = match private::read(&path) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(Error::io(path, e)),
        };
        let numbers = || {
            let text = std::str::from_utf8(&bytes).ok()?;
            let mut all = text.split_ascii_whitespace();
            let of = u64::from_str_radix(all.next()?, 16).ok()?;
            let shards: Vec<u32> = all.map(|n| n.parse().ok()).collect::<Option<_>>()?;
            Some((of, shards))
        };
        match numbers() {
            Some((of, shards)) if of == epoch => Ok(shards),
            Some(_) => Ok(Vec::new()),
            None => Err(Error::damaged(
                path,
                "damaged: it says which shards this server has; remove it, or name them with --shards",
            )),
        }
    }

    /// Records the shards that this server holds.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn set_shards(&self, epoch: u64, shards: &[u32]) -> Result<()> {
        if matches!(self.shards(epoch), Ok(noted) if noted == shards) {
            return Ok(());
        }
        let shards = shards.iter().map(|s| format!(" {s}")).collect::<String>();
        let path = self.folder()?.join(SHARDS);
        write_durably(&path, format!("{epoch:016x}{shards}\n").as_bytes())
    }

    /// The log and the part of it that this snapshot of a base contains; `None` without a note.
    ///
    /// # Errors
    /// [`Error::Damaged`]; [`Error::Io`].
    pub(super) fn read(&self, base: u64, snapshot: u64) -> Result<Option<(u64, LogBase)>> {
        let path = note_path(&self.dir, base, snapshot);
        let bytes = match private::read(&path) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(Error::io(path, e)),
        };
        let damaged = || {
            Error::damaged(
                &path,
                "damaged: it says what of the shared log is in the store; start with an empty folder, which is then filled",
            )
        };
        let rest = bytes.strip_prefix(MAGIC).ok_or_else(damaged)?;
        let (sum, rest) = rest.split_first_chunk().ok_or_else(damaged)?;
        if xxh3_64(rest).to_le_bytes() != *sum {
            return Err(damaged());
        }
        let (log, rest) = rest.split_first_chunk().ok_or_else(damaged)?;
        let (number, keys) = rest.split_first_chunk().ok_or_else(damaged)?;
        let base = read_known(u64::from_le_bytes(*number), keys).ok_or_else(damaged)?;
        Ok(Some((u64::from_le_bytes(*log), base)))
    }

    /// Records that this snapshot of a base contains the groups of `log` up to the last group of `contained`.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn write(
        &self,
        base: u64,
        snapshot: u64,
        (log, contained): (u64, &LogBase),
    ) -> Result<()> {
        let mut rest = Vec::new();
        rest.extend_from_slice(&log.to_le_bytes());
        rest.extend_from_slice(&contained.number.to_le_bytes());
        rest.extend_from_slice(&write_known(contained));
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&xxh3_64(&rest).to_le_bytes());
        bytes.append(&mut rest);
        self.folder()?;
        write_durably(&note_path(&self.dir, base, snapshot), &bytes)
    }

    /// File with the results of the merge that made a base.
    pub(super) fn merge_path(&self, base: u64, snapshot: u64) -> PathBuf {
        note_path(&self.dir, base, snapshot).with_extension("merge")
    }

    /// Removes the notes of all other snapshots, which are obsolete.
    pub(super) fn remove_others(&self, base: u64, snapshot: u64) {
        let kept = note_path(&self.dir, base, snapshot).with_extension("");
        let entries = std::fs::read_dir(self.dir.join(REPLICA));
        for entry in entries.into_iter().flatten().flatten() {
            let is_of_state = entry.file_name() != SHARDS;
            if is_of_state && entry.path().with_extension("") != kept {
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }
}
