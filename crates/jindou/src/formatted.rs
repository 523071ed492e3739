//! Formats rows of ids as text: each cell is decoded and formatted without an intermediate term, and the texts of
//! repeated cells are cached per column.

use crate::results::{CellLayout, Csv, FULL, JsonLayout, JsonLine, RowText, Tsv, WritePiece, Xml};
use jindou_engine::{QueryTerms, TermDecoder};
use jindou_graph::Graph;
use jindou_model::{NO_VERTEX, Result};
use std::ops::Range;

/// Number of rows whose terms are prefetched together.
pub(crate) const GROUP: usize = 32;
/// Number of rows before the caches of cells are allocated, so that small answers do not pay for them.
const WARM: u64 = 512;
/// Largest number of columns with a cache; further columns are not cached.
const COLUMNS: usize = 16;

/// One worker's conversion from ids to text.
pub(crate) struct RowFormatter<'a> {
    snapshot: &'a dyn Graph,
    terms: &'a QueryTerms,
    columns: Vec<ColumnDecoder<'a>>,
    rows: u64,
}

/// A column's decoder and its cache of formatted cells. Each column has its own decoder because ids in a column are
/// often near each other.
struct ColumnDecoder<'a> {
    decoder: TermDecoder<'a>,
    kept: Option<Box<Cells>>,
}

impl<'a> RowFormatter<'a> {
    pub(crate) fn new(snapshot: &'a dyn Graph, terms: &'a QueryTerms) -> Self {
        Self {
            snapshot,
            terms,
            columns: Vec::new(),
            rows: 0,
        }
    }

    /// Appends up to [`GROUP`] rows, starting at row `from`. Passes the text on whenever a piece is full, even in the
    /// middle of a row. Returns the number of rows.
    pub(crate) fn group(
        &mut self,
        kind: &RowText,
        columns: &[&[u32]],
        (from, rows): (usize, usize),
        out: &mut Vec<u8>,
        write_piece: &mut WritePiece<'_>,
    ) -> Result<usize> {
        if self.columns.len() != columns.len() {
            self.columns = columns
                .iter()
                .map(|_| ColumnDecoder {
                    decoder: TermDecoder::new(self.snapshot, self.terms),
                    kept: None,
                })
                .collect();
        }
        let to = rows.min(from + GROUP);
        if self.rows < WARM && self.rows + (to - from) as u64 >= WARM {
            for column in self.columns.iter_mut().take(COLUMNS) {
                column.kept = Some(Box::default());
            }
        }
        self.rows += (to - from) as u64;
        for (column, ids) in self.columns.iter_mut().zip(columns) {
            column.prefetch(ids.get(from..to).unwrap_or(&[]));
        }
        match kind {
            RowText::Tsv => self.push(&Tsv, columns, from..to, out, write_piece),
            RowText::Csv => self.push(&Csv, columns, from..to, out, write_piece),
            RowText::Json(keys) => {
                self.push(&JsonLayout(keys), columns, from..to, out, write_piece)
            }
            RowText::JsonLines(keys) => {
                self.push(&JsonLine(keys), columns, from..to, out, write_piece)
            }
            RowText::Xml(keys) => self.push(&Xml(keys), columns, from..to, out, write_piece),
        }?;
        Ok(to - from)
    }

    // Not inlined, so that the loop gets all registers.
    #[inline(never)]
    fn push<L: CellLayout>(
        &mut self,
        layout: &L,
        columns: &[&[u32]],
        rows: Range<usize>,
        out: &mut Vec<u8>,
        write_piece: &mut WritePiece<'_>,
    ) -> Result<()> {
        for row in rows {
            out.extend_from_slice(L::OPEN);
            let mut first = true;
            for (i, (column, ids)) in self.columns.iter_mut().zip(columns).enumerate() {
                let id = ids[row];
                if id == NO_VERTEX && !L::UNBOUND_HAS_PLACE {
                    continue;
                }
                if !first {
                    out.extend_from_slice(L::BETWEEN);
                }
                first = false;
                if id == NO_VERTEX {
                    continue;
                }
                let mut kept = column.kept.as_deref_mut().filter(|k| k.on);
                if let Some(kept) = &mut kept
                    && let Some(text) = kept.get(id)
                {
                    out.extend_from_slice(text);
                    continue;
                }
                let Some(term) = column.decoder.canonical(id)? else {
                    continue;
                };
                let start = out.len();
                if start + term.len() >= FULL {
                    self.push_long(layout, columns, (row, i), out, write_piece)?;
                    break;
                }
                layout.cell(i, term, out)?;
                if let Some(kept) = kept {
                    kept.keep(id, &out[start..]);
                }
            }
            out.extend_from_slice(L::CLOSE);
        }
        Ok(())
    }

    /// Appends a row's cells from column `from` on, in pieces that are passed on. Used for a row with a cell that would
    /// make the text longer than [`FULL`].
    #[cold]
    #[inline(never)]
    fn push_long<L: CellLayout>(
        &mut self,
        layout: &L,
        columns: &[&[u32]],
        (row, from): (usize, usize),
        out: &mut Vec<u8>,
        write_piece: &mut WritePiece<'_>,
    ) -> Result<()> {
        for (i, ids) in columns.iter().enumerate().skip(from) {
            let id = ids[row];
            if id == NO_VERTEX && !L::UNBOUND_HAS_PLACE {
                continue;
            }
            if i > from {
                out.extend_from_slice(L::BETWEEN);
            }
            let Some(term) = self.columns[i].decoder.canonical(id)? else {
                continue;
            };
            if out.len() + term.len() < FULL {
                layout.cell(i, term, out)?;
                continue;
            }
            layout.long_cell(i, term, out, write_piece)?;
            // Each column's decoder may still hold a long term; new decoders free that memory.
            for column in &mut self.columns {
                column.decoder = TermDecoder::new(self.snapshot, self.terms);
            }
        }
        Ok(())
    }
}

impl ColumnDecoder<'_> {
    /// Prefetches the terms of these ids for [`Self::push`], except those whose cells are cached. Also decides whether
    /// the cache remains in use.
    fn prefetch(&mut self, ids: &[u32]) {
        let Some(kept) = &mut self.kept else {
            return self.decoder.prefetch(ids);
        };
        if !kept.is_worth_it() {
            return self.decoder.prefetch(ids);
        }
        let mut missing = [NO_VERTEX; GROUP];
        let mut n = 0usize;
        for &id in ids {
            // Of adjacent equal ids only the first is prefetched.
            if !kept.has(id) && missing[n.saturating_sub(1)] != id && n < GROUP {
                missing[n] = id;
                n += 1;
            }
        }
        self.decoder.prefetch(&missing[..n]);
    }
}

/// Cache of a column's recently formatted cells: a direct-mapped hash table with ids as keys.
struct Cells {
    ids: [u32; SLOTS],
    lengths: [u8; SLOTS],
    /// For each slot, the offset of its text in `text`, if it has one.
    starts: [u16; SLOTS],
    /// Texts in the order in which they were added, including those that were replaced. When it is full, the cache is
    /// emptied.
    text: Vec<u8>,
    /// Number of lookups, and number of hits among them, since the use of the cache was last decided.
    asked: u32,
    found: u32,
    /// True while the cache is in use.
    on: bool,
    /// While the cache is not in use: number of calls of [`Cells::is_worth_it`] until it is tried again.
    pause: u32,
}

const SLOTS: usize = 256;
/// Longest cell that is cached, in bytes.
const LONGEST: usize = 192;
/// Bytes of text in a cache: enough for cells of ordinary length in all slots, and affordable for a thousand concurrent
/// answers.
const TEXT: usize = 32 << 10;
/// Number of lookups after which it is decided whether the cache remains in use.
const LOOKUPS_PER_DECISION: u32 = 2048;
/// Lookups per hit up to which the cache pays: it remains in use if at least one lookup in this many is a hit.
const MAX_LOOKUPS_PER_HIT: u32 = 4;
/// Number of groups of rows for which a cache that does not pay is not used.
const PAUSE: u32 = 2048;

impl Default for Cells {
    fn default() -> Self {
        Self {
            ids: [NO_VERTEX; SLOTS],
            lengths: [0; SLOTS],
            starts: [0; SLOTS],
            text: Vec::with_capacity(TEXT),
            asked: 0,
            found: 0,
            on: true,
            pause: 0,
        }
    }
}

impl Cells {
    fn slot(id: u32) -> usize {
        // The multiplier of Fibonacci hashing (Knuth, TAOCP 3, section 6.4).
        (id.wrapping_mul(0x9E37_79B9) >> 24) as usize % SLOTS
    }

    fn has(&self, id: u32) -> bool {
        self.ids[Self::slot(id)] == id
    }

    #[inline]
    fn get(&mut self, id: u32) -> Option<&[u8]> {
        let slot = Self::slot(id);
        self.asked += 1;
        if self.ids[slot] != id {
            return None;
        }
        self.found += 1;
        let start = usize::from(self.starts[slot]);
        self.text
            .get(start..start + usize::from(self.lengths[slot]))
    }

    #[inline]
    fn keep(&mut self, id: u32, text: &[u8]) {
        if text.len() > LONGEST {
            return;
        }
        if self.text.len() + text.len() > TEXT {
            self.text.clear();
            self.ids = [NO_VERTEX; SLOTS];
        }
        let slot = Self::slot(id);
        self.ids[slot] = id;
        self.starts[slot] = self.text.len() as u16;
        self.lengths[slot] = text.len() as u8;
        self.text.extend_from_slice(text);
    }

    /// True if the cache should be used for the next group of rows. Called once per group.
    fn is_worth_it(&mut self) -> bool {
        if !self.on {
            self.pause = self.pause.saturating_sub(1);
            self.on = self.pause == 0;
        } else if self.asked >= LOOKUPS_PER_DECISION {
            if self.found < self.asked / MAX_LOOKUPS_PER_HIT {
                (self.on, self.pause) = (false, PAUSE);
            }
            (self.asked, self.found) = (0, 0);
        }
        self.on
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_found_again_and_short() {
        let mut cells = Cells::default();
        assert_eq!(cells.get(7), None);
        cells.keep(7, b"seven");
        assert_eq!(cells.get(7), Some(&b"seven"[..]));
        cells.keep(8, &[b'x'; LONGEST + 1]);
        assert_eq!(cells.get(8), None);
        cells.keep(8, &[b'x'; LONGEST]);
        assert_eq!(cells.get(8).map(<[u8]>::len), Some(LONGEST));
        assert_eq!(cells.get(7), Some(&b"seven"[..]));
    }

    #[test]
    fn a_full_table_forgets_and_goes_on() {
        let mut cells = Cells::default();
        let text = |id: u32| vec![id as u8; 1 + id as usize % LONGEST];
        for id in 0..10_000 {
            cells.keep(id, &text(id));
            assert_eq!(cells.get(id), Some(&*text(id)));
            // The text of any other cached cell is complete; a replaced cell is not found.
            let other = id / 2;
            assert!(cells.get(other).is_none_or(|kept| kept == text(other)));
        }
        assert!(cells.text.capacity() <= 2 * TEXT);
    }

    #[test]
    fn a_column_that_repeats_nothing_stops_keeping_and_tries_again() {
        let mut cells = Cells::default();
        for id in 1..=LOOKUPS_PER_DECISION {
            assert!(cells.get(id).is_none());
            cells.keep(id, b"x");
        }
        assert!(!cells.is_worth_it());
        assert!((0..PAUSE).any(|_| cells.is_worth_it()));
        for _ in 0..LOOKUPS_PER_DECISION {
            let _ = cells.get(1);
            cells.keep(1, b"x");
        }
        assert!(cells.is_worth_it());
    }
}
