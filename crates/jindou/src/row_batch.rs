//! Batches of an answer's rows: columns of ids, whose terms are decoded on demand.

use jindou_engine::{QueryTerms, TermDecoder};
use jindou_model::{Charge, NO_VERTEX, Result, term};
use jindou_store::Snapshot;
use oxrdf::Term;
use std::sync::Arc;

/// Number of rows that are decoded together.
const GROUP: usize = 64;
/// Bytes of terms at which a group of rows ends.
const GROUP_BYTES: usize = 1 << 16;

/// The ids of a batch, column by column, with the charge for their memory.
pub(crate) struct BatchColumns {
    pub ids: Vec<u32>,
    pub rows: usize,
    pub _charge: Charge,
}

/// All data that is needed to decode ids, shared by a cursor and its batches.
pub(crate) struct IdContext {
    pub variables: Vec<String>,
    pub snapshot: Snapshot,
    pub terms: QueryTerms,
}

/// Some rows of an answer, stored by column. A batch may outlive its cursor; it holds the query's snapshot.
pub struct RowBatch {
    pub(crate) columns: BatchColumns,
    pub(crate) meaning: Arc<IdContext>,
}

jindou_model::debug_format!(
    RowBatch,
    |this| "RowBatch {{ variables: {:?}, rows: {}, .. }}",
    this.meaning.variables,
    this.columns.rows
);

impl RowBatch {
    /// Names of the columns, without `?`.
    #[must_use]
    pub fn variables(&self) -> &[String] {
        &self.meaning.variables
    }

    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.columns.rows
    }

    /// A column's ids, one per row. Equal ids mean equal terms, and 0 means unbound. Ids are valid within this answer
    /// only. Empty if there is no such column.
    #[must_use]
    pub fn ids(&self, column: usize) -> &[u32] {
        let rows = self.columns.rows;
        let from = column.saturating_mul(rows);
        self.columns
            .ids
            .get(from..from.saturating_add(rows))
            .unwrap_or(&[])
    }

    /// A reader of a column's terms.
    #[must_use]
    pub fn column(&self, column: usize) -> Column<'_> {
        Column {
            ids: self.ids(column),
            decoder: TermDecoder::new(&self.meaning.snapshot, &self.meaning.terms),
            snapshot: &self.meaning.snapshot,
            group: TermGroup::default(),
        }
    }

    /// A column's terms, one per row; `None` where unbound. They are decoded as the iterator advances.
    pub fn terms(&self, column: usize) -> impl Iterator<Item = Result<Option<Term>>> + '_ {
        let mut column = self.column(column);
        (0..column.ids.len()).map(move |row| column.term(row))
    }

    /// Calls `take` for each of these ids of this answer, in their order, with the id's position in `ids` and the
    /// term's canonical bytes ([`decode_term`](crate::decode_term)). Ids need not be in this batch, so a program can
    /// collect those of many batches and decode each term once; ascending ids are the fastest. `take` is not called for
    /// 0, which means unbound.
    ///
    /// ```
    /// # let db = jindou::Database::in_memory();
    /// # let data = "INSERT DATA { <http://e/a> a <http://e/C> . <http://e/b> a <http://e/C> }";
    /// # db.update(data, &Default::default())?;
    /// let mut cursor = db.cursor("SELECT ?class { ?thing a ?class }", &Default::default())?;
    /// let (mut distinct, mut last) = (std::collections::BTreeSet::new(), None);
    /// while let Some(batch) = cursor.next_batch()? {
    ///     distinct.extend(batch.ids(0).iter().copied());
    ///     last = Some(batch);
    /// }
    /// let ids: Vec<u32> = distinct.into_iter().collect();
    /// let mut terms = vec![];
    /// last.unwrap().decode(&ids, |_, bytes| terms.extend(jindou::decode_term(bytes)))?;
    /// assert_eq!(terms.len(), 1);
    /// # Ok::<(), jindou::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Column::term`]; all terms passed to `take` before are then invalid.
    pub fn decode(&self, ids: &[u32], mut take: impl FnMut(usize, &[u8])) -> Result<()> {
        let mut decoder = TermDecoder::new(&self.meaning.snapshot, &self.meaning.terms);
        let mut place = 0;
        for group in ids.chunks(GROUP) {
            decoder.prefetch(group);
            for &id in group {
                if let Some(bytes) = decoder.canonical(id)? {
                    take(place, bytes);
                }
                place += 1;
            }
        }
        // The files are checked here, once for all terms, because the query's own checks have ended.
        self.meaning.snapshot.check_files()
    }

    /// One whole row. For many rows, reading column by column is faster.
    ///
    /// # Errors
    /// [`Error::Damaged`](jindou_model::Error::Damaged) for an id without a term: the store is damaged.
    pub fn row(&self, row: usize) -> Result<Vec<Option<Term>>> {
        (0..self.meaning.variables.len())
            .map(|c| {
                let mut column = self.column(c);
                // With no current group, only this row is decoded, even if it is the first one.
                column.group.first = usize::MAX;
                column.term(row)
            })
            .collect()
    }
}

/// Reads one column of a batch. If rows are read in order from the first one, terms are decoded in groups: that is
/// faster for ids near each other, and the store's files are checked once per group.
pub struct Column<'b> {
    ids: &'b [u32],
    decoder: TermDecoder<'b>,
    /// The snapshot, whose files are checked after a group is decoded and before its terms are returned, because the
    /// query's own checks have ended.
    snapshot: &'b Snapshot,
    group: TermGroup,
}

/// The decoded terms of consecutive rows; the store's files were checked after they were decoded.
#[derive(Default)]
struct TermGroup {
    first: usize,
    bytes: Vec<u8>,
    /// The end of each row's term in `bytes`.
    ends: Vec<usize>,
}

impl TermGroup {
    /// The row after the last row of the group.
    fn end(&self) -> usize {
        self.first + self.ends.len()
    }

    fn contains(&self, row: usize) -> bool {
        (self.first..self.end()).contains(&row)
    }

    fn term(&self, row: usize) -> Option<&[u8]> {
        let at = row.checked_sub(self.first)?;
        let from = match at.checked_sub(1) {
            Some(before) => *self.ends.get(before)?,
            None => 0,
        };
        self.bytes.get(from..*self.ends.get(at)?)
    }
}

impl Column<'_> {
    /// Decodes a row; also the rows after it, if the previous row was read just before.
    fn decode(&mut self, row: usize) -> Result<()> {
        let goes_on = row == self.group.end();
        let to = self.ids.len().min(row + if goes_on { GROUP } else { 1 });
        let ids = self.ids.get(row..to).unwrap_or(&[]);
        if ids.len() > 1 {
            self.decoder.prefetch(ids);
        }
        let group = &mut self.group;
        group.bytes.clear();
        group.ends.clear();
        group.first = row;
        let mut failed = None;
        for &id in ids {
            match self.decoder.canonical(id) {
                Ok(term) => group.bytes.extend_from_slice(term.unwrap_or(&[])),
                Err(e) => {
                    // The rows before this one are valid. The error is returned when this row is read.
                    failed = group.ends.is_empty().then_some(e);
                    break;
                }
            }
            group.ends.push(group.bytes.len());
            if group.bytes.len() > GROUP_BYTES {
                break;
            }
        }
        if let Err(e) = self.snapshot.check_files() {
            self.group.ends.clear();
            return Err(e);
        }
        failed.map_or(Ok(()), Err)
    }

    /// The term in a row; `None` if it is unbound, or if there is no such row.
    ///
    /// # Errors
    /// [`Error::Damaged`](jindou_model::Error::Damaged) for an id without a term, and for a file that shrank or cannot
    /// be read: the store is damaged.
    pub fn term(&mut self, row: usize) -> Result<Option<Term>> {
        match self.canonical(row)?.map(term::decode) {
            None => Ok(None),
            Some(Some(term)) => Ok(Some(term)),
            // These bytes are not a term; decoding the id again returns the error that says why.
            Some(None) => {
                let term = self.decoder.term(self.ids[row]);
                self.snapshot.check_files()?;
                term
            }
        }
    }

    /// The term in a row as canonical bytes, which [`decode_term`](crate::decode_term) turns into a term. Does not
    /// allocate. Equal bytes are equal terms, also between stores.
    ///
    /// # Errors
    /// As [`Self::term`].
    pub fn canonical(&mut self, row: usize) -> Result<Option<&[u8]>> {
        let Some(&id) = self.ids.get(row) else {
            return Ok(None);
        };
        if !self.group.contains(row) {
            self.decode(row)?;
        }
        Ok(self.group.term(row).filter(|_| id != NO_VERTEX))
    }
}

jindou_model::debug_format!(Column<'_>, |this| "Column {{ ids: {:?}, .. }}", this.ids);
