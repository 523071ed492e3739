//! Rows in temporary files, divided by the hash of their key into partitions that fit into memory one by one.

use crate::batch::{OperatorCharge, View};
use crate::explore::{Flow, QueryContext};
use jindou_model::{Holder, QueryTemp, Result, TempFile, sync};
use std::sync::Mutex;

/// Number of partitions.
pub(crate) const PARTS: usize = 32;
/// Bits of a hash that choose a partition.
const BITS: u32 = PARTS.trailing_zeros();
/// Ids of a partition that are written at once, with little memory and with much.
const PIECE: [usize; 2] = [512, 4096];
/// Limit of memory from which on the larger pieces are used.
const MUCH: u64 = 256 << 20;

/// Receives the number of an aggregate with DISTINCT, a group, and a value that was counted there.
pub(crate) type TakeDistinct<'f> = &'f mut dyn FnMut(u32, u32, &[u32]) -> Result<()>;

/// Rows in a file. Several threads may write them. Each piece is followed by the place of the piece before it in its
/// partition, so that no list of pieces takes memory.
pub(crate) struct Partitions {
    /// Number of ids in a row.
    width: usize,
    /// Number of times that the rows have been divided before.
    level: u32,
    file: TempFile,
    /// The last piece of each partition.
    last: Vec<Mutex<Piece>>,
}

/// Some rows of a partition.
#[derive(Clone, Copy, Default)]
struct Piece {
    /// Position in the file.
    at: u64,
    /// Number of ids; 0 if there is no such piece.
    ids: u32,
}

/// Ids that the place of a piece takes.
const PLACE: usize = 3;

impl Partitions {
    pub fn new(temp: &QueryTemp, width: usize, level: u32) -> Result<Self> {
        Ok(Self {
            width,
            level,
            file: temp.file()?,
            last: (0..PARTS).map(|_| Mutex::default()).collect(),
        })
    }

    pub fn width(&self) -> usize {
        self.width
    }

    pub fn level(&self) -> u32 {
        self.level
    }

    /// The partition of a row whose key has this hash. Each level divides by other bits.
    #[inline]
    pub fn part_of(&self, hash: u64) -> usize {
        let mixed =
            (hash ^ hash >> 32).wrapping_mul(0xD6E8_FEB8_6659_FD93 ^ u64::from(self.level) << 1);
        ((mixed ^ mixed >> 29).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - BITS)) as usize
    }

    pub fn has_rows(&self, part: usize) -> bool {
        sync::lock(&self.last[part]).ids > 0
    }

    /// Writes ids of whole rows and removes them from `ids`.
    fn write(&self, part: usize, ids: &mut Vec<u32>) -> Result<()> {
        let mut last = sync::lock(&self.last[part]);
        let n = ids.len() as u32;
        push_u64(ids, last.at);
        ids.push(last.ids);
        let at = self.file.append_ids(ids)?;
        *last = Piece { at, ids: n };
        ids.clear();
        Ok(())
    }

    /// Calls `f` with the rows of a partition, at most a batch at a time.
    pub fn read(
        &self,
        part: usize,
        ctx: &QueryContext<'_>,
        mut f: impl FnMut(View<'_>) -> Flow,
    ) -> Flow {
        let mut columns = vec![Vec::new(); self.width];
        self.read_pieces(part, ctx, |ids| {
            for rows in ids.chunks(self.width * ctx.batch_rows) {
                ctx.check()?;
                for (c, column) in columns.iter_mut().enumerate() {
                    column.clear();
                    column.extend(rows.iter().skip(c).step_by(self.width));
                }
                f(View {
                    columns: &columns,
                    rows: rows.len() / self.width,
                })?;
            }
            Ok(())
        })
    }

    /// Calls `f` with the ids of a partition, of some whole rows at a time.
    pub fn read_pieces(
        &self,
        part: usize,
        ctx: &QueryContext<'_>,
        mut f: impl FnMut(&[u32]) -> Flow,
    ) -> Flow {
        let mut piece = std::mem::take(&mut *sync::lock(&self.last[part]));
        let mut ids = Vec::new();
        while piece.ids > 0 {
            ctx.check()?;
            let n = piece.ids as usize;
            ids.resize(n + PLACE, 0);
            self.file.read_ids(&mut ids, piece.at)?;
            let (rows, place) = ids.split_at(n);
            let mut place = Words(place);
            piece = Piece {
                at: place.u64(),
                ids: place.u32(),
            };
            f(rows)?;
        }
        Ok(())
    }
}

/// One worker's rows that are not in the file yet.
pub(crate) struct PartitionRows {
    parts: Vec<Vec<u32>>,
    /// Number of ids of a partition that are written at once.
    piece: usize,
    _charge: OperatorCharge,
}

impl PartitionRows {
    pub fn new(ctx: &QueryContext<'_>, holder: Holder) -> Result<Self> {
        let piece = PIECE[usize::from(ctx.budget.limit() >= MUCH)];
        let mut charge = OperatorCharge::for_holder(holder, ctx.budget);
        charge.set(PARTS * (piece + PLACE) * 4)?;
        let part = || Vec::with_capacity(piece + PLACE);
        Ok(Self {
            parts: (0..PARTS).map(|_| part()).collect(),
            piece,
            _charge: charge,
        })
    }

    /// Adds a row of these columns.
    #[inline]
    pub fn push(
        &mut self,
        to: &Partitions,
        part: usize,
        columns: &[&[u32]],
        row: usize,
    ) -> Result<()> {
        let ids = self.room(to, part, columns.len())?;
        ids.extend(columns.iter().map(|c| c[row]));
        Ok(())
    }

    /// Adds a row of these ids, which may be longer than others.
    pub fn push_ids(&mut self, to: &Partitions, part: usize, row: &[u32]) -> Result<()> {
        let piece = self.piece;
        let ids = self.room(to, part, row.len())?;
        ids.extend_from_slice(row);
        if ids.len() > piece {
            // Long rows of many partitions together would take much memory.
            to.write(part, ids)?;
            ids.shrink_to(piece + PLACE);
        }
        Ok(())
    }

    #[inline]
    fn room(&mut self, to: &Partitions, part: usize, more: usize) -> Result<&mut Vec<u32>> {
        let ids = &mut self.parts[part];
        if ids.len() + more > self.piece && !ids.is_empty() {
            to.write(part, ids)?;
        }
        Ok(ids)
    }

    /// Writes all rows to the file.
    pub fn flush(&mut self, to: &Partitions) -> Result<()> {
        for (part, ids) in self.parts.iter_mut().enumerate() {
            if !ids.is_empty() {
                to.write(part, ids)?;
            }
        }
        Ok(())
    }
}

/// Appends a number to words.
pub(crate) fn push_u64(to: &mut Vec<u32>, n: u64) {
    to.extend([n as u32, (n >> 32) as u32]);
}

/// Appends bytes to words, after their number.
pub(crate) fn push_bytes(to: &mut Vec<u32>, bytes: &[u8]) {
    to.push(bytes.len() as u32);
    let words = bytes.chunks(4).map(|chunk| {
        let mut word = [0; 4];
        word[..chunk.len()].copy_from_slice(chunk);
        u32::from_ne_bytes(word)
    });
    to.extend(words);
}

/// Reads words in the order in which they were appended; zeros after the last one.
pub(crate) struct Words<'w>(pub &'w [u32]);

impl Words<'_> {
    pub fn u32(&mut self) -> u32 {
        match self.0.split_first() {
            Some((&word, rest)) => {
                self.0 = rest;
                word
            }
            None => 0,
        }
    }

    pub fn u64(&mut self) -> u64 {
        u64::from(self.u32()) | u64::from(self.u32()) << 32
    }

    pub fn bytes(&mut self) -> Vec<u8> {
        let n = self.u32() as usize;
        let (words, rest) = self.0.split_at(n.div_ceil(4).min(self.0.len()));
        self.0 = rest;
        let mut bytes: Vec<u8> = words.iter().flat_map(|w| w.to_ne_bytes()).collect();
        bytes.truncate(n);
        bytes
    }
}
