//! Reads between servers on one machine: the reader maps the owner's file, if it finds the file, and copies from the
//! mapping. Neither the owner's processor nor a system call is involved.

use super::{
    ByteRange, Link, Memory, RegionDescriptor, RemoteRegion, Result as Read, Transport,
    TransportError, check_read,
};
use jindou_graph::segment::prefetch;
use jindou_model::sync::{read, write};
use jindou_store::directory::Bytes;
use std::fs::Metadata;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, RwLock};
use std::time::Instant;

/// First bytes of an access key that names a file.
const MARK: &[u8; 16] = b"jindou file v1\n\0";
/// Largest number of bytes that are copied between two checks of the clock.
const PIECE: usize = 256 << 10;
/// Number of ranges by which prefetching runs ahead.
const AHEAD: usize = 12;

/// The transport for servers on one machine that can read one another's files.
#[derive(Debug)]
pub struct Files;

impl Transport for Files {
    fn address(&self) -> Read<Vec<u8>> {
        Ok(Vec::new())
    }

    fn register(&self, memory: Arc<dyn Memory>) -> Read<(u64, RegionDescriptor)> {
        let len = memory.bytes().len() as u64;
        let file = memory
            .file()
            .and_then(|path| FileName::from_path(path, len));
        let file = file.ok_or_else(|| TransportError::Refused("it is not a file".into()))?;
        let key = file.to_key();
        Ok((0, RegionDescriptor { base: 0, len, key }))
    }

    fn release(&self, _: u64) {}

    fn connect(&self, _: &[u8]) -> Read<Arc<dyn Link>> {
        Ok(Arc::<MappedFiles>::default())
    }
}

/// Files of one peer, by slot.
#[derive(Default)]
struct MappedFiles {
    files: RwLock<Vec<Arc<Bytes>>>,
    is_closed: AtomicBool,
}

impl Link for MappedFiles {
    fn attach(&self, descriptor: &RegionDescriptor) -> Read<RemoteRegion> {
        let file = FileName::of_key(&descriptor.key);
        let file = file.ok_or_else(|| TransportError::Refused("no file is named".into()))?;
        let mapped = file.map().map_err(TransportError::Refused)?;
        let mut files = write(&self.files);
        files.push(Arc::new(mapped));
        Ok(RemoteRegion {
            slot: files.len() as u32 - 1,
            len: descriptor.len,
        })
    }

    fn read_many(
        &self,
        region: RemoteRegion,
        ranges: &[ByteRange],
        into: &mut [u8],
        deadline: Instant,
    ) -> Read<()> {
        if self.is_closed.load(Ordering::Relaxed) {
            return Err(TransportError::Closed);
        }
        check_read(region, ranges, into)?;
        let refused = |what: &str| TransportError::Refused(what.to_owned());
        let file = read(&self.files).get(region.slot as usize).cloned();
        let file = file.ok_or_else(|| refused("the region belongs to another peer"))?;
        let bytes = file.as_slice();
        // Without waits, the deadline only matters if much is copied. So the clock is read only then.
        let began = (into.len() > PIECE).then(Instant::now);
        let mut rest = into;
        for (i, range) in ranges.iter().enumerate() {
            if let Some(next) = ranges.get(i + AHEAD) {
                prefetch(bytes, next.offset as usize);
            }
            let (now, later) = rest.split_at_mut(range.len as usize);
            rest = later;
            let from = bytes.get(range.offset as usize..).unwrap_or(&[]);
            let from = from.get(..now.len());
            let from = from.ok_or_else(|| refused("the file is shorter than its region"))?;
            for (to, from) in now.chunks_mut(PIECE).zip(from.chunks(PIECE)) {
                to.copy_from_slice(from);
                if let Some(began) = began
                    && Instant::now() >= deadline
                {
                    return Err(TransportError::Deadline(began.elapsed()));
                }
            }
        }
        match file.is_whole() {
            true => Ok(()),
            false => Err(refused("the peer's file has changed or cannot be read")),
        }
    }

    fn close(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
    }
}

/// A file, as its owner identifies it.
#[derive(Debug, PartialEq, Eq)]
struct FileName {
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
    /// Identifies the file at `path`; `None` if it is not a file of `len` bytes.
    fn from_path(path: &Path, len: u64) -> Option<Self> {
        let path = path.canonicalize().ok()?;
        let found = path.metadata().ok()?;
        (found.is_file() && found.len() == len).then(|| Self {
            path,
            state: state(&found),
        })
    }

    /// Encodes the access key of a region that is this file.
    fn to_key(&self) -> Vec<u8> {
        let state = self.state.iter().flat_map(|n| n.to_le_bytes());
        let path = self.path.as_os_str().as_bytes();
        MARK.iter()
            .copied()
            .chain(state)
            .chain(path.iter().copied())
            .collect()
    }

    /// Decodes an access key; `None` if it does not name a file.
    fn of_key(key: &[u8]) -> Option<Self> {
        let rest = key.strip_prefix(MARK)?;
        let (state, path) = rest.split_at_checked(5 * 8)?;
        let (words, _) = state.as_chunks::<8>();
        let state = words.first_chunk::<5>()?.map(u64::from_le_bytes);
        Some(Self {
            path: std::ffi::OsString::from_vec(path.to_vec()).into(),
            state,
        })
    }

    /// Maps the file, if it is the same file as the owner's, on the same machine, and unchanged.
    fn map(&self) -> Result<Bytes, String> {
        let other = || {
            Err(format!(
                "{} is not the peer's file: its device, inode, size or time of change differ",
                self.path.display()
            ))
        };
        let is_same = || {
            let found = self.path.metadata();
            found.is_ok_and(|m| m.is_file() && state(&m) == self.state)
        };
        // Checked before opening, since opening a pipe might block, and after it, since the file may have been replaced
        // in between.
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

    /// A file that its owner has mapped.
    struct Owned(Bytes);

    // SAFETY: the tests truncate the file while it is mapped, but never write to it; reads beyond its end return zeros.
    unsafe impl Memory for Owned {
        fn bytes(&self) -> &[u8] {
            self.0.as_slice()
        }

        fn file(&self) -> Option<&Path> {
            self.0.path()
        }
    }

    /// Reading a truncated file is an error, not a signal, and a replaced file is not mapped.
    #[test]
    fn files_are_read_where_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("segments");
        let data: Vec<u8> = (0..600_000_u32).map(|i| (i * 31 + i / 256) as u8).collect();
        std::fs::write(&path, &data).unwrap();
        let owned = Arc::new(Owned(Bytes::map(&path).unwrap()));
        let (_, descriptor) = Files.register(owned).unwrap();
        assert!(Files.register(Arc::new(vec![1_u8])).is_err());
        let link = Files.connect(&[]).unwrap();
        let region = link.attach(&descriptor).unwrap();
        let read = |ranges: &[(u64, u32)]| {
            let ranges: Vec<ByteRange> = ranges
                .iter()
                .map(|&(offset, len)| ByteRange { offset, len })
                .collect();
            let mut got = vec![0; ranges.iter().map(|r| r.len as usize).sum()];
            let deadline = Instant::now() + std::time::Duration::from_secs(60);
            let done = link.read_many(region, &ranges, &mut got, deadline);
            done.map(|()| got)
        };
        for (at, len) in [(0, 600_000), (599_999, 1), (600_000, 0), (4095, 8192)] {
            let want = &data[at as usize..][..len as usize];
            assert_eq!(read(&[(at, len)]).unwrap(), want);
        }
        let many: Vec<(u64, u32)> = (0..100).map(|i| (i * 5001, 3)).collect();
        let want = many.iter().flat_map(|&(at, _)| &data[at as usize..][..3]);
        assert!(read(&many).unwrap().iter().eq(want));
        assert!(matches!(
            read(&[(599_999, 2)]),
            Err(TransportError::Refused(_))
        ));
        let cut = std::fs::OpenOptions::new().write(true).open(&path);
        cut.unwrap().set_len(4096).unwrap();
        assert!(matches!(
            read(&[(200_000, 100)]),
            Err(TransportError::Refused(_))
        ));
        assert!(link.attach(&descriptor).is_err());
        std::fs::write(folder.path().join("new"), &data).unwrap();
        std::fs::rename(folder.path().join("new"), &path).unwrap();
        assert!(link.attach(&descriptor).is_err());
        link.close();
        assert_eq!(read(&[(0, 1)]), Err(TransportError::Closed));
    }

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
        // A file with the same length that replaces it is another file.
        let other = folder.path().join("c");
        std::fs::write(&other, b"some neighbors!").unwrap();
        std::fs::rename(&other, &path).unwrap();
        assert!(name.map().unwrap_err().contains("a b"));
        std::fs::remove_file(&path).unwrap();
        assert!(name.map().is_err());
    }
}
