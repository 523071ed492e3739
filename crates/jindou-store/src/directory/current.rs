//! The folder of a store directory that has its base: the directory itself after a load, `base-N` after the store was
//! reclustered for the Nth time. `current.jd` names the folder; replacing that file makes the next base the current
//! one.
//!
//! ```text
//! jindou-current 1                   format version
//! base 3                             the folder base-3
//! current 01ab…                      xxh3-64 of all lines above
//! ```

use super::{CHECKSUMS, FILES, MANIFEST};
use jindou_model::{Error, Result, private};
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::xxh3_64;

/// Name of the file that names the folder of the base.
pub const CURRENT: &str = "current.jd";
/// Name of the log's folder, next to a base's files.
pub const LOG: &str = "log";

const FIRST_LINE: &str = "jindou-current 1\n";
const NEW: &str = "current.jd.new";
const PREFIX: &str = "base-";
/// Longest valid file in bytes; a valid file has three short lines.
const LONGEST: usize = 256;

/// Location of the base in a store directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaseLocation {
    dir: PathBuf,
    number: u64,
}

impl BaseLocation {
    /// Location of the directory's base according to `current.jd`. Does not check whether there is a store at all.
    ///
    /// # Errors
    /// [`Error::Damaged`] if the file is damaged, [`Error::Io`] if it cannot be read.
    pub fn find(dir: &Path) -> Result<Self> {
        let place = |number| Self {
            dir: dir.to_owned(),
            number,
        };
        let path = dir.join(CURRENT);
        let text = match private::read(&path) {
            Ok(text) => text,
            Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                return Ok(place(0));
            }
            Err(e) => return Err(Error::io(path, e)),
        };
        match parse(&text) {
            Some(number) => Ok(place(number)),
            None => Err(Error::damaged(
                path,
                "damaged: it does not name the folder of the store's base; restore the store from a backup",
            )),
        }
    }

    /// The folder of the base's files; the log is in the folder [`LOG`] there.
    #[must_use]
    pub fn folder(&self) -> PathBuf {
        match self.number {
            0 => self.dir.clone(),
            n => self.dir.join(format!("{PREFIX}{n}")),
        }
    }

    /// Number of times that the store was reclustered.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Location of the next base.
    #[must_use]
    pub fn next(&self) -> Self {
        Self {
            dir: self.dir.clone(),
            number: self.number + 1,
        }
    }

    /// Makes this the directory's base, in one step. The base's files and folder must be durable.
    ///
    /// Returns `Ok(Some(_))` if this is the directory's base now, but may not be durable: after a power failure the
    /// previous base may be found.
    ///
    /// # Errors
    /// [`Error::Io`]; then nothing was changed.
    pub fn make_current(&self) -> Result<Option<Error>> {
        let (new, path) = (self.dir.join(NEW), self.dir.join(CURRENT));
        let mut text = format!("{FIRST_LINE}base {}\n", self.number);
        let sum = xxh3_64(text.as_bytes());
        text += &format!("current {sum:016x}\n");
        let written = private::create(&new).and_then(|mut f| {
            f.write_all(text.as_bytes())?;
            f.sync_all()
        });
        if let Err(e) = written.and_then(|()| std::fs::rename(&new, &path)) {
            let _ = std::fs::remove_file(&new);
            return Err(Error::io(path, e));
        }
        Ok(self.confirm().err())
    }

    /// Makes the rename of the file [`CURRENT`] durable. If a process died between the rename and its sync, a power
    /// failure could undo the rename.
    ///
    /// # Errors
    /// [`Error::Io`] if the folder cannot be synced: then nothing may depend on this base.
    pub fn confirm(&self) -> Result<()> {
        sync_path(&self.dir)
    }

    /// Removes the bases before this one, and the remains of a reclustering that was killed. Only for the holder of the
    /// directory's lock, and after [`Self::confirm`]. Mapped files stay readable for processes that have them open.
    ///
    /// # Errors
    /// [`Error::Io`]; the caller may try again.
    pub fn remove_others(&self) -> Result<()> {
        let entries = std::fs::read_dir(&self.dir).map_err(|e| Error::io(&self.dir, e))?;
        for entry in entries {
            let entry = entry.map_err(|e| Error::io(&self.dir, e))?;
            let name = entry.file_name();
            let Some(name) = name.to_str() else { continue };
            let path = entry.path();
            let other = base_number(name).is_some_and(|n| n != self.number);
            let removed = if other || (self.number > 0 && name == LOG) {
                std::fs::remove_dir_all(&path)
            } else if name == NEW || (self.number > 0 && is_file_of_base(name)) {
                std::fs::remove_file(&path)
            } else {
                Ok(())
            };
            match removed {
                Err(e) if e.kind() != ErrorKind::NotFound => return Err(Error::io(path, e)),
                _ => {}
            }
        }
        Ok(())
    }
}

/// Makes a file durable; of a folder, the creations, renames and removals of names in it.
pub(crate) fn sync_path(path: &Path) -> Result<()> {
    File::open(path)
        .and_then(|f| f.sync_all())
        .map_err(|e| Error::io(path, e))
}

/// True for names in a store directory that belong to the choice of its base: other bases, and the files that name the
/// current one.
pub(super) fn is_part(name: &str) -> bool {
    name == CURRENT || name == NEW || base_number(name).is_some()
}

fn is_file_of_base(name: &str) -> bool {
    FILES.contains(&name)
        || name == MANIFEST
        || name == CHECKSUMS
        || (name.ends_with(".jd") && name != CURRENT)
        || name == "log-end.jd.tmp"
}

fn base_number(name: &str) -> Option<u64> {
    let digits = name.strip_prefix(PREFIX)?;
    let number: u64 = digits.parse().ok()?;
    (number > 0 && digits == number.to_string()).then_some(number)
}

fn parse(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text.get(..text.len().min(LONGEST))?).ok()?;
    let line = text.strip_prefix(FIRST_LINE)?.split('\n').next()?;
    let number = line.strip_prefix("base ")?.parse().ok()?;
    let first = format!("{FIRST_LINE}base {number}\n");
    let sum = xxh3_64(first.as_bytes());
    (text == format!("{first}current {sum:016x}\n")).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::damaged;

    #[test]
    fn the_current_base_is_found_and_others_go() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path();
        let at = BaseLocation::find(dir).unwrap();
        assert_eq!((at.number(), at.folder()), (0, dir.to_owned()));
        for name in ["manifest.jd", "strings.jd", "g1-delta.jd", "mine.txt"] {
            std::fs::write(dir.join(name), name).unwrap();
        }
        for name in ["log", "base-1", "base-2", "base-02", "base-x"] {
            std::fs::create_dir(dir.join(name)).unwrap();
            std::fs::write(dir.join(name).join("a"), name).unwrap();
        }
        let next = at.next().next();
        assert!(next.make_current().unwrap().is_none());
        let now = BaseLocation::find(dir).unwrap();
        assert_eq!(now, next);
        assert_eq!(now.folder(), dir.join("base-2"));
        now.remove_others().unwrap();
        let mut left: Vec<_> = std::fs::read_dir(dir)
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        assert_eq!(
            left,
            ["base-02", "base-2", "base-x", "current.jd", "mine.txt"]
        );
    }

    #[test]
    fn any_change_of_the_file_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path();
        let place = BaseLocation::find(dir).unwrap().next();
        place.make_current().unwrap();
        let text = std::fs::read(dir.join(CURRENT)).unwrap();
        for bad in damaged(&text) {
            std::fs::write(dir.join(CURRENT), &bad).unwrap();
            assert!(BaseLocation::find(dir).is_err(), "{}", bad.escape_ascii());
        }
    }
}
