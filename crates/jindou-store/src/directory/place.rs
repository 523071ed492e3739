//! Creation of a store in a temporary folder next to its final path, to which it is renamed when it is complete.

use super::current::{is_part, sync_path};
use super::manifest::{Manifest, ManifestState};
use super::{
    BaseLocation, CHECKSUMS, INDEX, LOG, MANIFEST, NAMED_IN, NAMED_OUT, REPLICA, SEGMENTS_IN,
    SEGMENTS_OUT, STATISTICS,
};
use crate::shard::{CLUSTER, Cluster, shard_folder};
use jindou_dictionary::{DICTIONARY_FILE, STRINGS_FILE};
use jindou_model::{Error, Result, private};
use std::ffi::{CString, OsString};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Names of the files that every store of this version has.
pub const FILES: [&str; 8] = [
    STRINGS_FILE,
    DICTIONARY_FILE,
    SEGMENTS_OUT,
    SEGMENTS_IN,
    NAMED_OUT,
    NAMED_IN,
    INDEX,
    STATISTICS,
];

/// The exclusive right to write the store at one path. Released when dropped, and by the system when the process dies.
/// Readers need no lock: they keep the files they mapped, even if the path is replaced.
#[derive(Debug)]
pub struct WriteLock {
    file: File,
    path: PathBuf,
}

impl WriteLock {
    /// Takes the lock `DIR.lock` next to the folder, or returns an error that names the lock's holder.
    pub fn take(dir: &Path) -> Result<Self> {
        let path = sibling(dir, ".lock")?;
        loop {
            let file = private::open_or_create(&path).map_err(|e| Error::io(&path, e))?;
            // SAFETY: the descriptor is open for as long as `file` lives.
            if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } != 0 {
                return Err(Error::in_use(
                    dir,
                    "another process is writing the store; wait until it is done",
                ));
            }
            // The previous holder may have removed the file after this process opened it. Then the name is free for a
            // third process, and this lock excludes no other process.
            let ours = file.metadata().map_err(|e| Error::io(&path, e))?;
            match std::fs::metadata(&path) {
                Ok(named) if named.ino() == ours.ino() => return Ok(Self { file, path }),
                _ => {}
            }
        }
    }
}

impl Drop for WriteLock {
    fn drop(&mut self) {
        // Removed while the lock is still held, so that no process locks a name that is about to disappear.
        let _ = std::fs::remove_file(&self.path);
        // SAFETY: the descriptor is open.
        unsafe { libc::flock(self.file.as_raw_fd(), libc::LOCK_UN) };
    }
}

fn sibling(dir: &Path, suffix: &str) -> Result<PathBuf> {
    let name = dir.file_name().ok_or_else(|| {
        Error::Usage(format!(
            "{} cannot be a store's name; use the name of a folder",
            dir.display()
        ))
    })?;
    let mut name: OsString = name.to_owned();
    name.push(suffix);
    Ok(parent(dir).join(name))
}

fn parent(dir: &Path) -> &Path {
    match dir.parent() {
        Some(p) if !p.as_os_str().is_empty() => p,
        _ => Path::new("."),
    }
}

/// Names of the files that updates create next to a store's files: the writer's lock, the log with its end record, and
/// the state of a store that follows a shared log. A load that replaces the store removes them.
const CHANGES: [&str; 5] = ["lock", LOG, "log-end.jd", "log-end.jd.tmp", REPLICA];

/// Checks whether a store may be written at `dir`: an error if the path has content that must not be replaced.
pub fn may_write(dir: &Path, replace: bool) -> Result<()> {
    let kind = match std::fs::symlink_metadata(dir) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(Error::io(dir, e)),
        Ok(m) if m.is_dir() => match BaseLocation::find(dir) {
            Ok(place) => Manifest::read(&place.folder())?,
            Err(Error::Damaged { .. }) => ManifestState::Damaged,
            Err(e) => return Err(e),
        },
        Ok(_) => {
            return Err(Error::not_a_store(
                dir,
                "exists and is not a folder; choose another path for the store",
            ));
        }
    };
    let cluster = Cluster::read(dir).ok().flatten();
    let shards = cluster.map_or(0, |c| c.shards);
    let manifest = match &kind {
        ManifestState::Store(m) => Some(m),
        _ => None,
    };
    let mut entries = 0;
    for entry in std::fs::read_dir(dir).map_err(|e| Error::io(dir, e))? {
        let entry = entry.map_err(|e| Error::io(dir, e))?;
        let name = entry.file_name();
        let known = name.to_str().is_some_and(|n| {
            FILES.contains(&n)
                || n == CLUSTER
                || (0..shards).any(|s| n == shard_folder(s))
                || n == MANIFEST
                || n == CHECKSUMS
                || (manifest.is_some() || shards > 0) && CHANGES.contains(&n)
                || shards > 0 && n.strip_suffix(".tmp") == Some(CLUSTER)
                || (manifest.is_some() && is_part(n))
                || manifest.is_some_and(|m| m.names().contains(n))
                || (manifest.is_some() && super::is_of_a_merge(n))
        });
        if !known {
            return Err(Error::not_a_store(
                dir,
                format!(
                    "it has {}, which is not part of a store; nothing was changed, choose another path",
                    name.to_string_lossy()
                ),
            ));
        }
        entries += 1;
    }
    if entries == 0 || replace {
        return Ok(());
    }
    Err(Error::StoreExists { path: dir.into() })
}

/// A store that is being written. Dropping it removes the files, unless they were [put in place](Self::put_in_place).
#[derive(Debug)]
pub struct Building {
    dir: PathBuf,
    target: PathBuf,
    done: bool,
    _lock: WriteLock,
}

impl Building {
    /// Acquires the lock, checks the path, removes the remains of killed loads, and creates a temporary folder.
    pub fn begin(target: &Path, replace: bool) -> Result<Self> {
        if !parent(target).is_dir() {
            return Err(Error::Usage(format!(
                "the folder {} does not exist; create it first, or choose another path",
                parent(target).display()
            )));
        }
        may_write(target, replace)?;
        let lock = WriteLock::take(target)?;
        may_write(target, replace)?;
        let prefix = sibling(target, ".loading-")?;
        remove_leftovers(target, &prefix)?;
        let mut dir = prefix.into_os_string();
        dir.push(std::process::id().to_string());
        let dir = PathBuf::from(dir);
        private::create_folder(&dir).map_err(|e| Error::io(&dir, e))?;
        Ok(Self {
            dir,
            target: target.to_owned(),
            done: false,
            _lock: lock,
        })
    }

    /// The temporary folder, into which the store is written.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Makes all files durable and moves the store to its final path atomically.
    pub fn put_in_place(mut self, files: &[&str]) -> Result<()> {
        for name in files {
            sync_path(&self.dir.join(name))?;
        }
        sync_path(&self.dir)?;
        // An empty folder is replaced by a plain rename. A store is exchanged, so that the path has a store at every
        // moment.
        let exchanged = std::fs::read_dir(&self.target).is_ok_and(|mut d| d.next().is_some());
        let renamed = if exchanged {
            exchange(&self.dir, &self.target)
        } else {
            std::fs::rename(&self.dir, &self.target)
        };
        renamed.map_err(|e| Error::io(&self.target, e))?;
        // After an exchange the old store is at this path; `drop` removes it.
        self.done = !exchanged;
        sync_path(parent(&self.target))
    }
}

impl Drop for Building {
    fn drop(&mut self) {
        if !self.done {
            let _ = std::fs::remove_dir_all(&self.dir);
        }
    }
}

/// Exchanges two folders atomically; in two steps if the system does not support this.
fn exchange(a: &Path, b: &Path) -> std::io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        let (x, y) = (
            CString::new(a.as_os_str().as_bytes())?,
            CString::new(b.as_os_str().as_bytes())?,
        );
        // SAFETY: both are terminated strings that live through the call.
        let r = unsafe {
            libc::renameat2(
                libc::AT_FDCWD,
                x.as_ptr(),
                libc::AT_FDCWD,
                y.as_ptr(),
                libc::RENAME_EXCHANGE,
            )
        };
        if r == 0 {
            return Ok(());
        }
        let e = std::io::Error::last_os_error();
        if !matches!(e.raw_os_error(), Some(libc::EINVAL | libc::ENOSYS)) {
            return Err(e);
        }
    }
    let mut aside = a.as_os_str().to_owned();
    aside.push("-old");
    let aside = PathBuf::from(aside);
    std::fs::rename(b, &aside)?;
    if let Err(e) = std::fs::rename(a, b) {
        let _ = std::fs::rename(&aside, b);
        return Err(e);
    }
    std::fs::rename(&aside, a)
}

/// Removes folders of loads that were killed. Only for the holder of the lock, so that no other load is running.
fn remove_leftovers(target: &Path, prefix: &Path) -> Result<()> {
    let folder = parent(target);
    let Some(prefix) = prefix.file_name() else {
        return Ok(());
    };
    for entry in std::fs::read_dir(folder).map_err(|e| Error::io(folder, e))? {
        let entry = entry.map_err(|e| Error::io(folder, e))?;
        let name = entry.file_name();
        let rest = name.as_bytes().strip_prefix(prefix.as_bytes());
        let number = |r: &[u8]| {
            let digits = r.strip_suffix(b"-old").unwrap_or(r);
            !digits.is_empty() && digits.iter().all(u8::is_ascii_digit)
        };
        if rest.is_some_and(number) {
            let path = entry.path();
            std::fs::remove_dir_all(&path).map_err(|e| Error::io(path, e))?;
        }
    }
    Ok(())
}
