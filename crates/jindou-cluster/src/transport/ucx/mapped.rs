//! Memory that is a whole file: over shared memory its reader maps the file as well, so that nothing is copied.

use jindou_store::directory::Bytes;
use std::fs::Metadata;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The beginning of an access key that names a file. UCX's own keys begin with a mask of few bits.
const MARK: &[u8; 16] = b"jindou file v1\n\0";

/// A file as identified by its owner.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FileName {
    path: PathBuf,
    /// Device, inode, length, and modification time in seconds and nanoseconds.
    state: [u64; 5],
}

fn state(m: &Metadata) -> [u64; 5] {
    [
        m.dev(),
        m.ino(),
        m.len(),
        m.mtime() as u64,
        m.mtime_nsec() as u64,
    ]
}

impl FileName {
    /// The name of a file of `len` bytes; `None` if the path is not such a file now.
    pub(super) fn from_path(path: &Path, len: u64) -> Option<Self> {
        let path = path.canonicalize().ok()?;
        let found = path.metadata().ok()?;
        (found.is_file() && found.len() == len).then(|| Self {
            path,
            state: state(&found),
        })
    }

    /// The access key of a region that is this file.
    pub(super) fn to_key(&self) -> Vec<u8> {
        let state = self.state.iter().flat_map(|n| n.to_le_bytes());
        let path = self.path.as_os_str().as_bytes();
        MARK.iter()
            .copied()
            .chain(state)
            .chain(path.iter().copied())
            .collect()
    }

    /// The file that an access key names; `None` for a key of UCX.
    pub(super) fn of_key(key: &[u8]) -> Option<Self> {
        let rest = key.strip_prefix(MARK)?;
        let (state, path) = rest.split_at_checked(5 * 8)?;
        let (words, _) = state.as_chunks::<8>();
        let state = words.first_chunk::<5>()?.map(u64::from_le_bytes);
        Some(Self {
            path: std::ffi::OsString::from_vec(path.to_vec()).into(),
            state,
        })
    }

    /// Maps the file, if it is the owner's: the same file on the same machine, unchanged.
    pub(super) fn map(&self) -> Result<Bytes, String> {
        let other = || {
            Err(format!(
                "{} is not the file that the peer has",
                self.path.display()
            ))
        };
        let is_same = || {
            let found = self.path.metadata();
            found.is_ok_and(|m| m.is_file() && state(&m) == self.state)
        };
        // Checked before opening, since that might wait at a pipe, and after it, since it might be another file by
        // then.
        if !is_same() {
            return other();
        }
        let bytes = Bytes::map(&self.path).map_err(|e| e.to_string())?;
        if !is_same() || bytes.as_slice().len() as u64 != self.state[2] {
            return other();
        }
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_file_is_mapped_and_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a b");
        std::fs::write(&path, b"some neighbours").unwrap();
        assert_eq!(FileName::from_path(&path, 14), None);
        assert_eq!(FileName::from_path(folder.path(), 14), None);
        let name = FileName::from_path(&path, 15).unwrap();
        let key = name.to_key();
        assert_eq!(FileName::of_key(&key).as_ref(), Some(&name));
        assert_eq!(name.map().unwrap().as_slice(), b"some neighbours");
        for cut in 0..MARK.len() + 40 {
            assert_eq!(FileName::of_key(&key[..cut]), None);
        }
        // A file of the same length in its place is another file.
        let other = folder.path().join("c");
        std::fs::write(&other, b"some neighbors!").unwrap();
        std::fs::rename(&other, &path).unwrap();
        assert!(name.map().unwrap_err().contains("a b"));
        std::fs::remove_file(&path).unwrap();
        assert!(name.map().is_err());
    }
}
