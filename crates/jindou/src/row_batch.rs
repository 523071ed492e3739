//! Batches of an answer's rows: columns of ids, whose terms are decoded on demand.

use jindou_engine::{QueryTerms, TermDecoder};
use jindou_model::{Charge, NO_VERTEX, Result, term};
use jindou_store::Snapshot;
use oxrdf::Term;
use std::sync::Arc;

/// Number of rows that are decoded together.
const GROUP: usize = 64;
/// Bytes of terms after which a group ends.
const GROUP_BYTES: usize = 1 << 16;

/// The ids of a batch, column by column, and the bytes charged for them.
pub(crate) struct BatchColumns {
    pub ids: Vec<u32>,
    pub rows: usize,
    pub _charge: Charge,
}

/// The context for decoding ids, shared by a cursor and its batches.
pub(crate) struct IdContext {
    pub variables: Vec<String>,
    pub snapshot: Snapshot,
    pub terms: QueryTerms,
}

/// Some rows of an answer, column by column. A batch can outlive its cursor, and keeps the query's snapshot.
pub struct RowBatch {
    pub(crate) columns: BatchColumns,
    pub(crate) meaning: Arc<IdContext>,
}

impl std::fmt::Debug for RowBatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RowBatch")
            .field("variables", &self.meaning.variables)
            .field("rows", &self.columns.rows)
            .finish_non_exhaustive()
    }
}

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

    /// A column's ids, one per row: equal ids are equal terms, 0 is unbound. Ids are meaningful within this answer
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

    /// Hands the canonical bytes ([`decode_term`](crate::decode_term)) of any ids of this answer to `take`, in their
    /// order, with each id's position among them. An id need not be in this batch, so a program can collect the ids of
    /// many batches and have each term decoded once; ascending ids are the fastest. Nothing is handed over for 0, which
    /// is unbound.
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
    /// As [`Column::term`]; everything handed over before is then invalid.
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
        // One check for all of them: batches outlive their query.
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
                // Decodes this row alone, even if it is the first one.
                column.group.first = usize::MAX;
                column.term(row)
            })
            .collect()
    }
}

/// Reads one column of a batch. If it is read from its first row on, terms are decoded in groups: ids near each other
/// cost little, and the store's files are checked for faults once per group.
pub struct Column<'b> {
    ids: &'b [u32],
    decoder: TermDecoder<'b>,
    /// Snapshot whose files are checked after each group, before a term of it is returned: batches outlive their query.
    snapshot: &'b Snapshot,
    group: TermGroup,
}

/// Terms of some rows; the files were intact after they were read.
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
    /// Decodes the row, and the rows after it if reading goes from row to row.
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
                    // The rows before it are valid; the error is reported at its own row.
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

    /// The term in a row; `None` where it is unbound, or there is no such row.
    ///
    /// # Errors
    /// [`Error::Damaged`](jindou_model::Error::Damaged) for an id without a term, and for a file that shrank or cannot
    /// be read: the store is damaged.
    pub fn term(&mut self, row: usize) -> Result<Option<Term>> {
        match self.canonical(row)?.map(term::decode) {
            None => Ok(None),
            Some(Some(term)) => Ok(Some(term)),
            // The decoder has the reason.
            Some(None) => {
                let term = self.decoder.term(self.ids[row]);
                self.snapshot.check_files()?;
                term
            }
        }
    }

    /// The term in a row as canonical bytes ([`decode_term`](crate::decode_term) makes a term of them): no allocation,
    /// and equal bytes are equal terms in any store.
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

impl std::fmt::Debug for Column<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Column")
            .field("ids", &self.ids)
            .finish_non_exhaustive()
    }
}
