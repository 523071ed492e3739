//! Writing answers: tables and graphs in formats for people and programs.

mod answer;
mod checked;
mod expressible;
mod find;
mod graph;
mod layout;
mod out;
mod polled;
mod prefix_use;
mod prefixes;
mod rows;
mod table;
mod text;
mod writer;

pub use answer::{Answer, Collector};
pub(crate) use checked::CheckedSink;
pub use expressible::expressible;
pub use graph::GraphWriter;
pub(crate) use layout::{CellLayout, Csv, JsonLayout, JsonLine, Tsv, Xml};
pub(crate) use out::{FULL, PIECE, WritePiece};
pub use prefixes::Prefixes;
pub(crate) use prefixes::namespaces;
pub use writer::{ResultFormat, ResultWriter};
pub(crate) use writer::{term_length, triple_length};

use jindou_model::Result;
use oxrdf::Triple;
use std::sync::Arc;

/// Number of bytes that a library which writes RDF may allocate per byte of a term: each byte may become an escape of
/// six bytes, in a vector whose capacity doubles.
const HELD_BY_LIBRARY: u64 = 12;
/// Number of bytes that formats written by this crate may allocate per byte of a term: a few copies of a term, since
/// text is written in pieces.
const HELD_BY_PIECES: u64 = 3;

/// Receives one answer: `solutions` then `rows` or `raw` any number of times, or `boolean`, or `graph` then `triple`
/// any number of times; then `finish`.
pub trait AnswerSink: Send {
    /// Starts a table.
    fn solutions(&mut self, variables: &[String]) -> Result<()>;
    /// Adds rows to the table.
    fn rows(&mut self, rows: &Rows) -> Result<()>;
    /// Returns the format of rows as text if the sink accepts rows in any order, formatted by [`RowText::push`] on any
    /// thread, through [`Self::raw`]. `None` if it accepts only [`Self::rows`].
    fn row_text(&self) -> Option<RowText> {
        None
    }
    /// Adds the text of rows; `rows` is the number of rows that end in this text.
    fn raw(&mut self, text: &[u8], rows: u64) -> Result<()>;
    /// The whole answer of ASK.
    fn boolean(&mut self, value: bool) -> Result<()>;
    /// Starts a graph.
    fn graph(&mut self) -> Result<()>;
    /// Adds a triple to the graph.
    fn triple(&mut self, triple: &Triple) -> Result<()>;
    /// Largest number of bytes that [`Self::triple`] allocates per byte of a triple's terms.
    fn bytes_held(&self) -> u64 {
        HELD_BY_LIBRARY
    }
    /// Ends the answer.
    fn finish(&mut self) -> Result<()>;
}

/// Format of the text that [`AnswerSink::raw`] takes. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RowText {
    /// TSV rows.
    Tsv,
    /// CSV rows.
    Csv,
    /// Members of a SPARQL Results JSON document's `bindings`, each preceded by a comma. The field holds the text
    /// before each variable's term.
    Json(Arc<[Vec<u8>]>),
    /// Lines, each a JSON object with terms as in SPARQL Results JSON. The field holds the text before each variable's
    /// term.
    JsonLines(Arc<[Vec<u8>]>),
    /// `result` elements of SPARQL Results XML. The field holds the text before each variable's term.
    Xml(Arc<[Vec<u8>]>),
}

impl RowText {
    /// JSON rows for these variables.
    #[must_use]
    pub fn json(variables: &[String]) -> Self {
        Self::Json(rows::json_keys(variables).into())
    }

    /// Rows as lines of JSON for these variables.
    #[must_use]
    pub fn json_lines(variables: &[String]) -> Self {
        Self::JsonLines(rows::json_keys(variables).into())
    }

    /// XML rows for these variables.
    #[must_use]
    pub fn xml(variables: &[String]) -> Self {
        Self::Xml(rows::xml_keys(variables).into())
    }

    /// Appends one row. O(bytes of the row).
    ///
    /// # Errors
    /// [`Error::Unsupported`](jindou_model::Error::Unsupported) if the format cannot express a term: XML does not allow
    /// control characters.
    pub fn push<'a>(
        &self,
        row: impl Iterator<Item = Option<&'a [u8]>>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        self.push_in_pieces(row, out, &mut |_| Ok(()))
    }

    /// Appends one row, and calls `write_piece` whenever at least 128 KiB have been collected, even in the middle of
    /// the row. `write_piece` must write the text and clear the vector.
    ///
    /// # Errors
    /// As [`Self::push`], those of `write_piece`, and, in long rows, those of the query's token.
    #[inline]
    pub fn push_in_pieces<'a>(
        &self,
        row: impl Iterator<Item = Option<&'a [u8]>>,
        out: &mut Vec<u8>,
        write_piece: &mut WritePiece<'_>,
    ) -> Result<()> {
        match self {
            Self::Tsv => layout::push_row(&Tsv, row, out, write_piece),
            Self::Csv => layout::push_row(&Csv, row, out, write_piece),
            Self::Json(keys) => layout::push_row(&JsonLayout(keys), row, out, write_piece),
            Self::JsonLines(keys) => layout::push_row(&JsonLine(keys), row, out, write_piece),
            Self::Xml(keys) => layout::push_row(&Xml(keys), row, out, write_piece),
        }
    }
}

/// Some rows of terms: canonical bytes ([`jindou_model::term`]) in row order, `None` for unbound.
#[derive(Debug, Default)]
pub struct Rows {
    /// Canonical bytes of the terms of all rows.
    pub bytes: Vec<u8>,
    /// End of each cell in `bytes`; a cell starts where the previous one ends, and an empty cell is unbound.
    pub ends: Vec<usize>,
    /// Number of cells per row.
    pub width: usize,
    /// Number of rows; needed for rows without cells.
    pub rows: usize,
}

impl Rows {
    /// Removes the rows but keeps the allocated memory; later rows have `width` cells.
    pub fn clear(&mut self, width: usize) {
        self.bytes.clear();
        self.ends.clear();
        self.width = width;
        self.rows = 0;
    }

    /// The cells of row `r`.
    pub fn row(&self, r: usize) -> impl Iterator<Item = Option<&[u8]>> {
        let first = r * self.width;
        (first..first + self.width).map(move |i| {
            let start = if i == 0 { 0 } else { self.ends[i - 1] };
            let cell = &self.bytes[start..self.ends[i]];
            (!cell.is_empty()).then_some(cell)
        })
    }

    /// Marks the end of the cell whose bytes were appended to `bytes`.
    pub fn end_cell(&mut self) {
        self.ends.push(self.bytes.len());
    }
}
