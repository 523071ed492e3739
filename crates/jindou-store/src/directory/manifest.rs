//! `manifest.jd`, the text that describes the files of a store, and `checksums.jd`, a hash for each MiB of each of its
//! files.
//!
//! ```text
//! jindou-store 1                     format version
//! epoch 5b0c…                        id epoch, 16 hex digits
//! partition-block 65536              nothing reads these two
//! partitions 1024
//! union-default-graph false
//! quads 123
//! terms 45
//! snapshot 17                        the snapshot in the files; absent for 0, which a load makes
//! file strings.jd 4096               name, length in bytes; in the order of `checksums.jd`
//! …
//! checksums 8d2f…                    xxh3-64 of `checksums.jd`
//! manifest 01ab…                     xxh3-64 of all lines above
//! ```
//!
//! The manifest of a shard begins with `jindou-shard 1`, has the line `shard 1 of 6` in place of the two that nothing
//! reads, and counts the quads and terms of all shards.
//!
//! `checksums.jd` is the magic, then for each file in order one little-endian u64 per started MiB.

use super::{FORMAT_VERSION, MergedFiles};
use crate::threads::on_threads;
use jindou_model::{Error, Result, private, sync};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use xxhash_rust::xxh3::xxh3_64;

/// The manifest's name in a store directory.
pub const MANIFEST: &str = "manifest.jd";
/// The manifest of a shard's merged files, until the files of all shards are complete.
pub const NEXT_MANIFEST: &str = "manifest-next.jd";
/// The name of the file of block hashes.
pub const CHECKSUMS: &str = "checksums.jd";
/// Number of bytes that one hash covers.
pub const BLOCK: usize = 1 << 20;

const FIRST_WORD: &str = "jindou-store";
/// First word of a shard's manifest: versions that do not know shards do not recognise it as a store.
const SHARD_WORD: &str = "jindou-shard";
/// Constants from an earlier way of dividing stores, which are never read. They keep the files of an unsharded store
/// identical, byte for byte.
const UNSHARDED: &str = "partition-block 65536\npartitions 1024";
const CHECKSUMS_MAGIC: [u8; 8] = *b"JDSUMS1\n";
/// Longest manifest in bytes; a manifest has a few lines.
const MAX_MANIFEST: u64 = 1 << 16;

/// The text of a manifest's file after an attempt to open it; `None` if there is no such file.
pub(crate) fn manifest_text(path: &Path, file: std::io::Result<File>) -> Result<Option<Vec<u8>>> {
    use std::io::ErrorKind as Kind;
    let mut text = Vec::new();
    match file {
        Err(e) if matches!(e.kind(), Kind::NotFound | Kind::NotADirectory) => return Ok(None),
        file => file.and_then(|f| f.take(MAX_MANIFEST).read_to_end(&mut text)),
    }
    .map_err(|e| Error::io(path, e))?;
    Ok(Some(text))
}

/// The content of `manifest.jd`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    /// Id epoch: equal if the same data was numbered in the same way.
    pub epoch: u64,
    /// True if queries see the union of all graphs as default graph.
    pub union_default: bool,
    /// Distinct quads.
    pub quads: u64,
    /// Number of terms, which is also the number of ids.
    pub terms: u64,
    /// Number of the snapshot from which the files were made.
    pub snapshot: u64,
    /// Name and length in bytes of every file except `checksums.jd`.
    pub files: Vec<(String, u64)>,
    /// xxh3-64 of `checksums.jd`.
    pub checksums: u64,
    /// Files of the merges since the load.
    pub merged: MergedFiles,
    /// The shard's number and the number of shards; `None` for an unsharded store.
    pub shard: Option<[u32; 2]>,
}

pub(super) fn xxh3_of(bytes: &[u8]) -> u64 {
    xxh3_64(bytes)
}

/// State of a folder's manifest, judged by its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ManifestState {
    /// A manifest of this format version.
    Store(Manifest),
    /// A store of another version.
    OtherVersion(u64),
    /// The text begins like a manifest, but is not valid.
    Damaged,
    /// Not a manifest.
    None,
}

impl Manifest {
    /// The text, including its own hash.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut t = match self.shard {
            None => format!(
                "{FIRST_WORD} {FORMAT_VERSION}\nepoch {:016x}\n{UNSHARDED}\n",
                self.epoch
            ),
            Some([shard, of]) => format!(
                "{SHARD_WORD} {FORMAT_VERSION}\nepoch {:016x}\nshard {shard} of {of}\n",
                self.epoch
            ),
        };
        let _ = write!(
            t,
            "union-default-graph {}\nquads {}\nterms {}\n",
            self.union_default, self.quads, self.terms
        );
        if self.snapshot > 0 {
            let _ = writeln!(t, "snapshot {}", self.snapshot);
        }
        for (name, len) in &self.files {
            let _ = writeln!(t, "file {name} {len}");
        }
        let _ = writeln!(t, "checksums {:016x}", self.checksums);
        self.merged.write(&mut t);
        let sum = xxh3_64(t.as_bytes());
        let _ = writeln!(t, "manifest {sum:016x}");
        t
    }

    /// Parses the text. Any text that begins like a manifest but is not the output of [`Self::to_text`] is damage.
    #[must_use]
    pub fn parse(text: &[u8]) -> ManifestState {
        let Some(first) = text.split(|&b| b == b'\n').next() else {
            return ManifestState::None;
        };
        let first = String::from_utf8_lossy(first);
        let words = [FIRST_WORD, SHARD_WORD];
        let Some(version) = words.iter().find_map(|w| first.strip_prefix(w)) else {
            return ManifestState::None;
        };
        match version.trim().parse::<u64>() {
            Ok(v) if v == u64::from(FORMAT_VERSION) => {}
            Ok(v) if v < 10 && Self::was_ours(text) => return ManifestState::Damaged,
            Ok(v) => return ManifestState::OtherVersion(v),
            Err(_) => return ManifestState::Damaged,
        }
        match Self::parse_lines(text) {
            Some(m) if m.to_text().as_bytes() == text => ManifestState::Store(m),
            _ => ManifestState::Damaged,
        }
    }

    /// True for a manifest of this version whose version digit was damaged after it was written.
    fn was_ours(text: &[u8]) -> bool {
        let digit = text.iter().position(u8::is_ascii_digit);
        digit.is_some_and(|at| {
            let mut text = text.to_vec();
            text[at] = b'0' + FORMAT_VERSION as u8;
            matches!(Self::parse(&text), ManifestState::Store(_))
        })
    }

    fn parse_lines(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?;
        let mut m = Self::default();
        for line in text.lines().skip(1) {
            let (word, rest) = line.split_once(' ')?;
            if m.merged.read(word, rest)? {
                continue;
            }
            match word {
                "epoch" => m.epoch = u64::from_str_radix(rest, 16).ok()?,
                "union-default-graph" => m.union_default = rest.parse().ok()?,
                "quads" => m.quads = rest.parse().ok()?,
                "terms" => m.terms = rest.parse().ok()?,
                "shard" => {
                    let (shard, of) = rest.split_once(" of ")?;
                    m.shard = Some([shard.parse().ok()?, of.parse().ok()?]);
                }
                "snapshot" => m.snapshot = rest.parse().ok()?,
                "checksums" => m.checksums = u64::from_str_radix(rest, 16).ok()?,
                "file" => {
                    let (name, len) = rest.split_once(' ')?;
                    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'.';
                    if !name.bytes().all(plain) || name.starts_with('.') {
                        return None;
                    }
                    m.files.push((name.to_owned(), len.parse().ok()?));
                }
                // Constants and the last line are checked by comparing the whole text.
                _ => {}
            }
        }
        Some(m)
    }

    /// Sets the manifest's modification time to now. A backup takes this time as the one from which on the files
    /// contain the current state. A file system may stamp files by a clock that is some milliseconds behind the one of
    /// commits, or by the clock of another machine; a backup would then claim to cover times before the base's last
    /// snapshot. Errors are ignored.
    pub(crate) fn date(dir: &Path) {
        let now = std::time::SystemTime::now();
        let _ = File::options()
            .write(true)
            .open(dir.join(MANIFEST))
            .and_then(|f| f.set_modified(now));
    }

    /// Reads the manifest in a folder. An error only if the file exists and cannot be read.
    pub fn read(dir: &Path) -> Result<ManifestState> {
        Self::read_as(dir, MANIFEST)
    }

    /// As [`Self::read`], for a file with this name.
    pub fn read_as(dir: &Path, name: &str) -> Result<ManifestState> {
        let path = dir.join(name);
        let text = manifest_text(&path, private::open(&path))?;
        Ok(text.map_or(ManifestState::None, |text| Self::parse(&text)))
    }

    /// The manifest of a store that this version can serve. Otherwise an error with one sentence about what was found.
    pub fn of_store(dir: &Path) -> Result<Self> {
        Err(match Self::read(dir)? {
            ManifestState::Store(m) if m.shard.is_none() => return Ok(m),
            ManifestState::Store(m) => {
                let [shard, of] = m.shard.unwrap_or_default();
                Error::not_a_store(
                    dir,
                    format!(
                        "shard {shard} of {of} of a store; name the folder that has all the shards"
                    ),
                )
            }
            ManifestState::OtherVersion(v) => Error::Version {
                file: dir.into(),
                found: v,
                supported: FORMAT_VERSION.into(),
            },
            ManifestState::Damaged => Error::damaged(
                dir.join(MANIFEST),
                "damaged; load the data again (`jindou check` lists any other damage)",
            ),
            ManifestState::None if dir.join(crate::shard::CLUSTER).exists() => {
                Error::Unsupported(format!(
                    "{} is a sharded store, and this works on whole stores only",
                    dir.display()
                ))
            }
            ManifestState::None if !dir.exists() => Error::NoStore { path: dir.into() },
            ManifestState::None if dir.join(MANIFEST).exists() => Error::damaged(
                dir.join(MANIFEST),
                "damaged, or a file of another program: it does not begin as a manifest; restore the store from a backup",
            ),
            ManifestState::None => {
                Error::not_a_store(dir, format!("not a store (no {MANIFEST} in it)"))
            }
        })
    }

    /// Number of the last snapshot in the files, after which the log continues.
    #[must_use]
    pub fn holds(&self) -> u64 {
        self.snapshot.max(self.merged.number)
    }

    /// Names that may occur in the store's folder.
    #[must_use]
    pub fn names(&self) -> BTreeSet<String> {
        self.files
            .iter()
            .map(|f| f.0.clone())
            .chain([MANIFEST, CHECKSUMS].map(str::to_owned))
            .chain(self.merged.names())
            .collect()
    }
}

/// Block hashes of every file, in the manifest's order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checksums {
    /// One hash for each started [`BLOCK`] of each file, in the order of the files.
    pub blocks: Vec<Vec<u64>>,
}

impl Checksums {
    /// Computes the hashes of these files, on `threads` threads.
    pub fn compute(dir: &Path, files: &[(String, u64)], threads: usize) -> Result<Self> {
        let mut blocks: Vec<Vec<u64>> = files
            .iter()
            .map(|f| vec![0; f.1.div_ceil(BLOCK as u64) as usize])
            .collect();
        /// Number of blocks that a thread processes at a time.
        const PART: usize = 16;
        let mut parts = Vec::new();
        for (i, list) in blocks.iter_mut().enumerate() {
            for (j, part) in list.chunks_mut(PART).enumerate() {
                parts.push((i, j * PART, part));
            }
        }
        let parts: Vec<std::sync::Mutex<_>> =
            parts.into_iter().map(std::sync::Mutex::new).collect();
        let next = AtomicUsize::new(0);
        let results = on_threads(threads, |_| -> Result<()> {
            let mut buffer = vec![0u8; BLOCK];
            while let Some(part) = parts.get(next.fetch_add(1, Ordering::Relaxed)) {
                let mut part = sync::lock(part);
                let (i, first, out) = &mut *part;
                let (name, len) = &files[*i];
                let path = dir.join(name);
                let file = private::open(&path).map_err(|e| Error::io(&path, e))?;
                for (j, hash) in out.iter_mut().enumerate() {
                    let at = ((*first + j) * BLOCK) as u64;
                    let n = (len - at).min(BLOCK as u64) as usize;
                    file.read_exact_at(&mut buffer[..n], at)
                        .map_err(|e| Error::io(&path, e))?;
                    *hash = xxh3_64(&buffer[..n]);
                }
            }
            Ok(())
        });
        results.into_iter().collect::<Result<()>>()?;
        drop(parts);
        Ok(Self { blocks })
    }

    /// The content of `checksums.jd`.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = CHECKSUMS_MAGIC.to_vec();
        for hash in self.blocks.iter().flatten() {
            out.extend_from_slice(&hash.to_le_bytes());
        }
        out
    }

    /// Parses `checksums.jd` for these files; `None` if it is not valid.
    #[must_use]
    pub fn parse(bytes: &[u8], files: &[(String, u64)]) -> Option<Self> {
        let mut rest = bytes.strip_prefix(&CHECKSUMS_MAGIC)?;
        let mut blocks = Vec::with_capacity(files.len());
        for (_, len) in files {
            let n = usize::try_from(len.div_ceil(BLOCK as u64)).ok()?;
            let (mine, others) = rest.split_at_checked(n.checked_mul(8)?)?;
            rest = others;
            let word = |c: &[u8]| c.first_chunk::<8>().map_or(0, |b| u64::from_le_bytes(*b));
            blocks.push(mine.chunks_exact(8).map(word).collect());
        }
        rest.is_empty().then_some(Self { blocks })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::damaged;

    fn manifest() -> Manifest {
        Manifest {
            epoch: 0xABC,
            union_default: true,
            quads: 12,
            terms: 7,
            snapshot: 300,
            files: vec![("a.jd".into(), 0), ("b.jd".into(), 3_000_000)],
            checksums: 5,
            ..Manifest::default()
        }
    }

    #[test]
    fn a_manifest_comes_back_and_any_change_is_seen() {
        comes_back(manifest());
        comes_back(Manifest {
            shard: Some([3, 12]),
            ..manifest()
        });
        let group = |name: &str, files: &[&str]| super::super::FileGroup {
            name: name.into(),
            files: files.iter().map(|f| (format!("{name}-{f}"), 7)).collect(),
            checksums: 9,
        };
        comes_back(Manifest {
            merged: MergedFiles {
                number: 12,
                groups: vec![
                    group("g2", &["a.jd", "b-c.jd"]),
                    group("g11", &[]),
                    group("s11", &["a.jd"]),
                ],
            },
            ..manifest()
        });
    }

    #[test]
    fn its_time_is_not_behind() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(MANIFEST);
        for _ in 0..100 {
            std::fs::write(&path, "any").unwrap();
            let before = std::time::SystemTime::now();
            Manifest::date(dir.path());
            let time = path.metadata().unwrap().modified().unwrap();
            assert!(time >= before, "{:?}", before.duration_since(time));
        }
    }

    fn comes_back(m: Manifest) {
        let text = m.to_text().into_bytes();
        assert_eq!(Manifest::parse(&text), ManifestState::Store(m));
        for bad in damaged(&text) {
            let read = Manifest::parse(&bad);
            assert!(!matches!(read, ManifestState::Store(_)), "{read:?}");
        }
        let newer = String::from_utf8_lossy(&text).replacen(" 1\n", " 2\n", 1);
        // One changed digit is damage; a newer version would have other lines, too.
        assert_eq!(Manifest::parse(newer.as_bytes()), ManifestState::Damaged);
        assert_eq!(
            Manifest::parse((newer + "more 1\n").as_bytes()),
            ManifestState::OtherVersion(2)
        );
        assert_eq!(Manifest::parse(b"hello"), ManifestState::None);
    }

    #[test]
    fn checksums_come_back() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a.jd"), []).unwrap();
        std::fs::write(dir.path().join("b.jd"), vec![7u8; 3_000_000]).unwrap();
        let files = manifest().files;
        let sums = Checksums::compute(dir.path(), &files, 2).unwrap();
        assert_eq!(sums.blocks[1].len(), 3);
        assert_eq!(sums.blocks[1][0], xxh3_64(&vec![7u8; BLOCK]));
        assert_eq!(
            sums.blocks[1][2],
            xxh3_64(&vec![7u8; 3_000_000 - 2 * BLOCK])
        );
        let bytes = sums.to_bytes();
        assert_eq!(Checksums::parse(&bytes, &files), Some(sums));
        assert_eq!(Checksums::parse(&bytes[1..], &files), None);
        assert_eq!(Checksums::parse(&bytes[..bytes.len() - 1], &files), None);
    }
}
