//! Files that merges add to a store: groups that `manifest.jd` names, each with a file of hashes of its own.
//!
//! ```text
//! merged 1170                        the last snapshot that is in the segments
//! group g3 8d2f…                     its name, xxh3-64 of `g3-checksums.jd`
//! part g3-segments-out.jd 4096       name, length in bytes; in the order of `g3-checksums.jd`
//! …
//! ```
//!
//! `g<N>` has the segments of generation N, `s<N>` the state outside the segments as of the time when the group was
//! written.

use super::{Checksums, manifest::xxh3_of};
use jindou_model::{Error, Result};
use std::fmt::Write as _;
use std::path::Path;

/// A group of files that a merge wrote together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileGroup {
    /// `g` or `s`, followed by the generation.
    pub name: String,
    /// Name and length in bytes of each file.
    pub files: Vec<(String, u64)>,
    /// xxh3-64 of the group's file of hashes.
    pub checksums: u64,
}

/// The lines of `manifest.jd` about merges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MergedFiles {
    /// Number of the last snapshot that is in the segments; 0 without a merge.
    pub number: u64,
    /// Groups of segments, oldest first; then the group of the state outside the segments.
    pub groups: Vec<FileGroup>,
}

/// The name of a file in a group.
pub(crate) fn file_of(group: &str, file: &str) -> String {
    format!("{group}-{file}")
}

/// The generation of a group, or of a file in a group, by its name; `None` for other names.
#[must_use]
pub fn generation_of(name: &str) -> Option<u32> {
    let group = name.split('-').next()?;
    let digits = group.strip_prefix(['g', 's'])?;
    let plain = digits.bytes().all(|b| b.is_ascii_digit()) && !digits.starts_with('0');
    digits.parse().ok().filter(|_| plain)
}

impl FileGroup {
    /// The name of the group's file of hashes.
    #[must_use]
    pub fn checksums_name(&self) -> String {
        file_of(&self.name, super::CHECKSUMS)
    }

    /// True for a group of segments.
    #[must_use]
    pub fn has_segments(&self) -> bool {
        self.name.starts_with('g')
    }

    /// The group's generation.
    #[must_use]
    pub fn generation(&self) -> u32 {
        generation_of(&self.name).unwrap_or(0)
    }

    /// Length of one of the group's files; `None` for a name that is not in the group.
    #[must_use]
    pub fn length(&self, file: &str) -> Option<u64> {
        let name = file_of(&self.name, file);
        self.files.iter().find(|f| f.0 == name).map(|f| f.1)
    }
}

/// A group whose files are being written.
#[derive(Debug)]
pub(crate) struct NewGroup {
    /// The group; the hash of its file of hashes is not set yet.
    pub group: FileGroup,
    /// The block hashes of those files that were hashed so far.
    sums: Checksums,
}

impl NewGroup {
    /// A group without files.
    pub fn new(name: String) -> Self {
        let group = FileGroup {
            name,
            files: Vec::new(),
            checksums: 0,
        };
        Self {
            group,
            sums: Checksums::default(),
        }
    }

    /// Hashes the group's files in `dir` that were added since the last call. O(bytes of these files).
    pub fn hash_new(&mut self, dir: &Path, threads: usize) -> Result<()> {
        let new = &self.group.files[self.sums.blocks.len()..];
        let sums = Checksums::compute(dir, new, threads)?;
        self.sums.blocks.extend(sums.blocks);
        Ok(())
    }

    /// Appends names, lengths and hashes of the files hashed so far.
    pub fn describe(&self, out: &mut Vec<u8>) {
        for (name, length) in self.group.files.iter().take(self.sums.blocks.len()) {
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(&length.to_le_bytes());
        }
        out.extend_from_slice(&self.sums.to_bytes());
    }

    /// The complete group, and the content of its file of hashes. O(bytes not hashed yet).
    pub fn seal(mut self, dir: &Path, threads: usize) -> Result<(FileGroup, Vec<u8>)> {
        self.hash_new(dir, threads)?;
        let sums = self.sums.to_bytes();
        self.group.checksums = xxh3_of(&sums);
        Ok((self.group, sums))
    }
}

impl MergedFiles {
    /// Appends the lines about merges; nothing without a merge.
    pub(super) fn write(&self, text: &mut String) {
        if self.number == 0 {
            return;
        }
        // Writing to a String cannot fail.
        let _ = writeln!(text, "merged {}", self.number);
        for g in &self.groups {
            let _ = writeln!(text, "group {} {:016x}", g.name, g.checksums);
            for (name, len) in &g.files {
                let _ = writeln!(text, "part {name} {len}");
            }
        }
    }

    /// Parses one line. `Some(false)` if the line is not about merges, `None` if it is damaged.
    pub(super) fn read(&mut self, word: &str, rest: &str) -> Option<bool> {
        match word {
            "merged" => self.number = rest.parse().ok().filter(|&n| n > 0)?,
            "group" => {
                let (name, sum) = rest.split_once(' ')?;
                generation_of(name).filter(|_| !name.contains('-'))?;
                self.groups.push(FileGroup {
                    name: name.to_owned(),
                    files: Vec::new(),
                    checksums: u64::from_str_radix(sum, 16).ok()?,
                });
            }
            "part" => {
                let (name, len) = rest.split_once(' ')?;
                let group = self.groups.last_mut()?;
                let file = name.strip_prefix(&group.name)?.strip_prefix('-')?;
                let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'.';
                if file.is_empty() || !file.bytes().all(plain) {
                    return None;
                }
                group.files.push((name.to_owned(), len.parse().ok()?));
            }
            _ => return Some(false),
        }
        Some(true)
    }

    /// Names of the files of all groups.
    pub fn names(&self) -> impl Iterator<Item = String> + '_ {
        self.groups.iter().flat_map(|g| {
            let own = g.files.iter().map(|f| f.0.clone());
            own.chain([g.checksums_name()])
        })
    }

    /// The newest generation; 0 without a merge.
    #[must_use]
    pub fn newest(&self) -> u32 {
        let generations = self.groups.iter().map(FileGroup::generation);
        generations.max().unwrap_or(0)
    }

    /// Groups of segments, oldest first.
    pub fn generations(&self) -> impl Iterator<Item = &FileGroup> {
        self.groups.iter().filter(|g| g.has_segments())
    }

    /// The group with the state outside the segments.
    #[must_use]
    pub fn state(&self) -> Option<&FileGroup> {
        self.groups.iter().find(|g| !g.has_segments())
    }
}

/// Removes files of merges that `manifest.jd` does not name, because the merge did not complete or a later one replaced
/// them. Only for the process that holds the store's lock. Returns the removed names.
///
/// # Errors
/// [`Error::Io`] when the folder cannot be read; a file that cannot be removed stays.
pub fn remove_leftovers(dir: &Path) -> Result<Vec<String>> {
    remove_unnamed(dir, &super::Manifest::of_store(dir)?)
}

/// As [`remove_leftovers`], for a folder whose files have this manifest.
///
/// # Errors
/// As [`remove_leftovers`].
pub(crate) fn remove_unnamed(dir: &Path, manifest: &super::Manifest) -> Result<Vec<String>> {
    let known: std::collections::BTreeSet<String> = manifest.merged.names().collect();
    let mut removed = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(|e| Error::io(dir, e))? {
        let name = entry.map_err(|e| Error::io(dir, e))?.file_name();
        let Some(name) = name.to_str() else { continue };
        if is_of_a_merge(name)
            && !known.contains(name)
            && std::fs::remove_file(dir.join(name)).is_ok()
        {
            removed.push(name.to_owned());
        }
    }
    Ok(removed)
}

/// True for names that merges give to files.
#[must_use]
pub fn is_of_a_merge(name: &str) -> bool {
    let temporary = name.strip_suffix(".tmp");
    temporary.is_some_and(|t| [super::MANIFEST, super::NEXT_MANIFEST].contains(&t))
        || generation_of(temporary.unwrap_or(name)).is_some()
            && temporary.unwrap_or(name).ends_with(".jd")
            && name.contains('-')
}
