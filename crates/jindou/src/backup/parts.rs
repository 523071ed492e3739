//! Parts of up to 64 MiB into which files of a base are divided; a part's name is derived from its content.

use jindou_model::{Error, Result};
use jindou_store::directory::BLOCK;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

/// Length of a part in bytes; a file's last part may be shorter.
pub(super) const PART: u64 = 64 << 20;
const BLOCKS: usize = PART as usize / BLOCK;

/// Length of part `i` of a file that is `file` bytes long.
pub(super) fn part_length(file: u64, i: usize) -> u64 {
    file.saturating_sub(i as u64 * PART).min(PART)
}

/// Hashes of the blocks of these bytes, as in `checksums.jd`.
pub(super) fn blocks_of(bytes: &[u8]) -> Vec<u64> {
    bytes.chunks(BLOCK).map(xxh3_64).collect()
}

/// Names of the parts of a file whose blocks have these hashes.
pub(super) fn names(length: u64, blocks: &[u64]) -> Vec<String> {
    let parts = blocks.chunks(BLOCKS).enumerate();
    parts
        .map(|(i, blocks)| name(part_length(length, i), blocks))
        .collect()
}

fn name(length: u64, blocks: &[u64]) -> String {
    let mut all = length.to_le_bytes().to_vec();
    all.extend(blocks.iter().flat_map(|b| b.to_le_bytes()));
    format!("part-{:032x}", xxh3_128(&all))
}

/// True for names in the form that [`names`] returns.
pub(super) fn is_name(name: &str) -> bool {
    let digits = name.strip_prefix("part-");
    digits.is_some_and(|d| d.len() == 32 && d.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// True if `called` is the name of a part with these bytes as its content.
pub(super) fn is_part(called: &str, bytes: &[u8]) -> bool {
    name(bytes.len() as u64, &blocks_of(bytes)) == called
}

/// Reads part `i` of a file and verifies it against its name.
///
/// # Errors
/// [`Error::Damaged`] if the file has changed since it was written; [`Error::Io`].
pub(super) fn read(
    file: &File,
    path: &Path,
    length: u64,
    i: usize,
    called: &str,
) -> Result<Vec<u8>> {
    let n = usize::try_from(part_length(length, i)).unwrap_or(0);
    let mut bytes = vec![0; n];
    file.read_exact_at(&mut bytes, i as u64 * PART)
        .map_err(|e| Error::io(path, e))?;
    if is_part(called, &bytes) {
        return Ok(bytes);
    }
    let start = i as u64 * PART;
    Err(Error::Damaged {
        file: path.to_owned(),
        offset: Some(start),
        message: format!(
            "damaged between here and byte {}, so it cannot be backed up (`jindou check` shows details); earlier backups are \
                unchanged",
            start + n as u64
        ),
    })
}
