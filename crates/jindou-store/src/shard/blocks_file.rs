//! `blocks.jd`, the block table in a shard's directory.

use super::Blocks;
use crate::directory::{Bytes, SectionFile, SectionWriter};
use jindou_model::{Error, Result};
use std::io::{Seek, Write};

/// The file's name.
pub const BLOCKS: &str = "blocks.jd";

const MAGIC: [u8; 8] = *b"JDBLOCK\n";
const HEAD: u32 = 1;
const OWNERS: u32 = 2;
const RANKS: u32 = 3;
const EVERYWHERE: u32 = 4;

/// Writes `blocks.jd` of a shard.
pub(crate) fn write<W: Write + Seek>(blocks: &Blocks, shard: u32, out: W) -> std::io::Result<W> {
    let mut w = SectionWriter::new(out, MAGIC, 4)?;
    w.section(
        HEAD,
        &[blocks.shift(), blocks.shards(), shard, blocks.vertices()],
    )?;
    w.section(OWNERS, blocks.owners())?;
    w.section(RANKS, blocks.ranks())?;
    w.section(EVERYWHERE, blocks.everywhere())?;
    w.finish()
}

/// Reads `blocks.jd` into memory. Returns the table, and the number of the shard to which the file belongs.
///
/// # Errors
/// [`Error::Damaged`] for a file that [`write`] cannot have written.
pub(crate) fn read(bytes: Bytes) -> Result<(Blocks, u32)> {
    let damaged = || {
        Error::damaged(
            BLOCKS,
            "damaged; run `jindou check`, then load the store again",
        )
    };
    let file = SectionFile::open(bytes, &MAGIC, BLOCKS)?;
    let &[shift, shards, shard, vertices] = file.array::<u32>(HEAD) else {
        return Err(damaged());
    };
    let owners = file.array::<u8>(OWNERS).to_vec();
    let ranks = file.array::<u32>(RANKS).to_vec();
    let everywhere = file.array::<u32>(EVERYWHERE).to_vec();
    file.check_file()?;
    let blocks = Blocks::new([shift, shards, vertices], owners, everywhere);
    let blocks = blocks.filter(|b| shard < shards && b.ranks() == ranks);
    Ok((blocks.ok_or_else(damaged)?, shard))
}

#[cfg(test)]
mod tests {
    use super::super::Sharding;
    use super::*;
    use std::io::Cursor;

    #[test]
    fn damaged_tables_are_refused() {
        let b = Sharding::new(3).place(40, [40].into_iter(), &[], vec![3, 9]);
        let file = write(&b, 1, Cursor::new(vec![])).unwrap().into_inner();
        for at in 0..file.len() {
            let mut bad = file.clone();
            bad[at] ^= 0x81;
            if let Ok((read, shard)) = read(Bytes::copy_of(&bad)) {
                // Damage that is accepted has changed padding, the shard's number, or a list within its bounds; reads
                // stay within bounds.
                assert!(shard < 3);
                for v in 0..50 {
                    if let Some(p) = read.place(v) {
                        assert_eq!(read.global(p.shard, p.local), v);
                    }
                }
            }
            assert!(read(Bytes::copy_of(&file[..at])).is_err());
        }
    }
}
