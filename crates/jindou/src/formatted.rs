//! Rows of ids straight to rows of text: each cell is decoded and formatted in place, and repeated cells of a column
//! are formatted once.

use crate::results::{CellLayout, Csv, FULL, HandOn, JsonLayout, JsonLine, RowText, Tsv, Xml};
use jindou_engine::{QueryTerms, TermDecoder};
use jindou_graph::Graph;
use jindou_model::{NO_VERTEX, Result};
use std::ops::Range;

/// Rows whose terms are all prefetched before the first is read.
pub(crate) const GROUP: usize = 32;
/// Rows before anything is kept: small answers must not pay for tables.
const WARM: u64 = 512;
/// Most columns that keep cells; further columns of wider rows do not.
const COLUMNS: usize = 16;

/// One worker's conversion from ids to text.
pub(crate) struct RowFormatter<'a> {
    snapshot: &'a dyn Graph,
    terms: &'a QueryTerms,
    columns: Vec<ColumnDecoder<'a>>,
    rows: u64,
}

/// A column's decoder (ids in a column are often near each other, those in a row are not), and its kept cells.
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

    /// Appends up to [`GROUP`] rows from `from` on, and passes text on when a piece is full, also in the middle of a
    /// row. Returns the number of rows.
    pub(crate) fn group(
        &mut self,
        kind: &RowText,
        columns: &[&[u32]],
        (from, rows): (usize, usize),
        out: &mut Vec<u8>,
        hand_on: &mut HandOn<'_>,
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
            RowText::Tsv => self.push(&Tsv, columns, from..to, out, hand_on),
            RowText::Csv => self.push(&Csv, columns, from..to, out, hand_on),
            RowText::Json(keys) => self.push(&JsonLayout(keys), columns, from..to, out, hand_on),
            RowText::JsonLines(keys) => self.push(&JsonLine(keys), columns, from..to, out, hand_on),
            RowText::Xml(keys) => self.push(&Xml(keys), columns, from..to, out, hand_on),
        }?;
        Ok(to - from)
    }

    // Not inlined: it needs all registers.
    #[inline(never)]
    fn push<L: CellLayout>(
        &mut self,
        layout: &L,
        columns: &[&[u32]],
        rows: Range<usize>,
        out: &mut Vec<u8>,
        hand_on: &mut HandOn<'_>,
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
                    self.push_long(layout, columns, (row, i), out, hand_on)?;
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

    /// Appends the cells of a row from a column on with which the text is as long as a piece.
    #[cold]
    #[inline(never)]
    fn push_long<L: CellLayout>(
        &mut self,
        layout: &L,
        columns: &[&[u32]],
        (row, from): (usize, usize),
        out: &mut Vec<u8>,
        hand_on: &mut HandOn<'_>,
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
            layout.long_cell(i, term, out, hand_on)?;
            // The decoders of all columns keep a term each, which may be long, too.
            for column in &mut self.columns {
                column.decoder = TermDecoder::new(self.snapshot, self.terms);
            }
        }
        Ok(())
    }
}

impl ColumnDecoder<'_> {
    /// Prefetches the terms of these ids for [`Self::push`], and decides if keeping cells still pays.
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
            // In a run of equal ids only the first is missing.
            if !kept.has(id) && missing[n.saturating_sub(1)] != id && n < GROUP {
                missing[n] = id;
                n += 1;
            }
        }
        self.decoder.prefetch(&missing[..n]);
    }
}

/// Recently formatted cells of one column: a direct-mapped table by id.
struct Cells {
    ids: [u32; SLOTS],
    lengths: [u8; SLOTS],
    /// By slot: the offset of its text, if it has one.
    starts: [u16; SLOTS],
    /// Texts in the order in which they were kept, including replaced ones. All are dropped when it is full.
    text: Vec<u8>,
    /// Number of lookups since the last decision, and of hits among them.
    asked: u32,
    found: u32,
    /// True while cells are kept.
    on: bool,
    /// Calls of [`Cells::is_worth_it`] until cells are kept again.
    pause: u32,
}

const SLOTS: usize = 256;
/// Longest cell that is kept, in bytes.
const LONGEST: usize = 192;
/// Bytes of text: enough for all slots with cells of ordinary length, and small even if a thousand answers are being
/// written.
const TEXT: usize = 32 << 10;
/// Number of cells between two decisions.
const DECIDE: u32 = 2048;
/// Caching cells is worth it if at least one lookup in this many is a hit.
const WORTH: u32 = 4;
/// Groups of rows without kept cells before keeping is tried again.
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

    /// True if caching cells saves time; called once per group of rows.
    fn is_worth_it(&mut self) -> bool {
        if !self.on {
            self.pause = self.pause.saturating_sub(1);
            self.on = self.pause == 0;
        } else if self.asked >= DECIDE {
            if self.found < self.asked / WORTH {
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
            // A neighbouring id is either complete or gone.
            let other = id / 2;
            assert!(cells.get(other).is_none_or(|kept| kept == text(other)));
        }
        assert!(cells.text.capacity() <= 2 * TEXT);
    }

    #[test]
    fn a_column_that_repeats_nothing_stops_keeping_and_tries_again() {
        let mut cells = Cells::default();
        for id in 1..=DECIDE {
            assert!(cells.get(id).is_none());
            cells.keep(id, b"x");
        }
        assert!(!cells.is_worth_it());
        assert!((0..PAUSE).any(|_| cells.is_worth_it()));
        for _ in 0..DECIDE {
            let _ = cells.get(1);
            cells.keep(1, b"x");
        }
        assert!(cells.is_worth_it());
    }
}
