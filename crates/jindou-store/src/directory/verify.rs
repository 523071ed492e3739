//! Verification of all bytes of a base's files against their hashes, before the base is used.

use super::manifest::{BLOCK, CHECKSUMS, Checksums, Manifest, xxh3_of};
use jindou_model::{Error, Result, private};
use std::path::Path;

/// Reads every file that a manifest names, on `threads` threads, and compares each mebibyte with its hash. Groups of
/// files that are also in `before` are skipped. Calls `stop` between files. Returns the number of bytes read.
///
/// # Errors
/// [`Error::Damaged`] for the first file that differs from its hashes, with the affected bytes; [`Error::Io`] with the
/// file that cannot be read; [`Error::Cancelled`].
pub fn verify(
    folder: &Path,
    manifest: &Manifest,
    before: Option<&Manifest>,
    threads: usize,
    stop: &dyn Fn() -> bool,
) -> Result<u64> {
    let mut read = 0;
    let known =
        before.is_some_and(|b| (b.epoch, b.checksums) == (manifest.epoch, manifest.checksums));
    if !known {
        read += group(
            folder,
            CHECKSUMS,
            manifest.checksums,
            &manifest.files,
            threads,
            stop,
        )?;
    }
    for g in &manifest.merged.groups {
        if before.is_some_and(|b| b.epoch == manifest.epoch && b.merged.groups.contains(g)) {
            continue;
        }
        let name = g.checksums_name();
        read += group(folder, &name, g.checksums, &g.files, threads, stop)?;
    }
    Ok(read)
}

fn damaged(folder: &Path, name: &str, which: &str) -> Error {
    Error::damaged(
        folder.join(name),
        format!(
            "damaged: {which} not as they were written. No queries are answered from this store: restore it from a backup or \
                load the data again (`jindou check` lists all damage)"
        ),
    )
}

fn group(
    folder: &Path,
    sums: &str,
    sum: u64,
    files: &[(String, u64)],
    threads: usize,
    stop: &dyn Fn() -> bool,
) -> Result<u64> {
    let path = folder.join(sums);
    let bytes = private::read(&path).map_err(|e| Error::io(path, e))?;
    let known = Checksums::parse(&bytes, files).filter(|_| xxh3_of(&bytes) == sum);
    let known = known.ok_or_else(|| damaged(folder, sums, "its bytes are"))?;
    let mut read = bytes.len() as u64;
    for (file, want) in files.iter().zip(&known.blocks) {
        if stop() {
            return Err(Error::Cancelled);
        }
        let found = Checksums::compute(folder, std::slice::from_ref(file), threads)?;
        let got = found.blocks.first().map_or(&[][..], Vec::as_slice);
        if let Some(block) = (0..want.len()).find(|&i| got.get(i) != want.get(i)) {
            let from = (block * BLOCK) as u64;
            let to = (from + BLOCK as u64).min(file.1);
            return Err(damaged(
                folder,
                &file.0,
                &format!("bytes {from} to {to} are"),
            ));
        }
        read += file.1;
    }
    Ok(read)
}
