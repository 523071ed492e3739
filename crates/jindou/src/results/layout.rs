//! How each text format for rows joins the cells of a row.

use super::out::{FULL, PIECE, PieceWriter, TextOut, WritePiece};
use super::rows::{push_json_term, push_xml_term};
use super::text::{push_csv_term, push_tsv_term};
use jindou_model::Result;

/// The text of cells in a format, and the text around them. A cell's text depends only on its column and term, so it
/// can be cached.
pub(crate) trait CellLayout {
    /// Text before the first cell.
    const OPEN: &'static [u8];
    /// Text between cells.
    const BETWEEN: &'static [u8];
    /// Text after the last cell.
    const CLOSE: &'static [u8];
    /// True if an unbound cell still gets a separator, as in CSV; false if it is left out, as in JSON.
    const UNBOUND_HAS_PLACE: bool;

    /// Appends a bound cell, given its canonical bytes.
    ///
    /// # Errors
    /// If the format cannot express the term.
    fn cell<T: TextOut>(&self, column: usize, term: &[u8], out: &mut T) -> Result<()>;

    /// Appends a bound cell in pieces, which `write_piece` writes; for a term whose text would be longer than a piece.
    ///
    /// # Errors
    /// As [`Self::cell`], and those of `write_piece`.
    #[cold]
    #[inline(never)]
    fn long_cell(
        &self,
        column: usize,
        term: &[u8],
        out: &mut Vec<u8>,
        write_piece: &mut WritePiece<'_>,
    ) -> Result<()> {
        if out.len() >= PIECE {
            write_piece(out)?;
        }
        let mut pieces = PieceWriter::new(out, write_piece);
        let written = self.cell(column, term, &mut pieces);
        pieces.outcome().and(written)
    }
}

/// Appends one row, and passes the text to `write_piece` whenever a piece is full. O(bytes of the row).
///
/// # Errors
/// If the format cannot express a term, and those of `write_piece`.
#[inline]
pub(super) fn push_row<'a, L: CellLayout>(
    layout: &L,
    row: impl Iterator<Item = Option<&'a [u8]>>,
    out: &mut Vec<u8>,
    write_piece: &mut WritePiece<'_>,
) -> Result<()> {
    out.extend_from_slice(L::OPEN);
    let mut first = true;
    for (column, cell) in row.enumerate() {
        if cell.is_none() && !L::UNBOUND_HAS_PLACE {
            continue;
        }
        if !first {
            out.extend_from_slice(L::BETWEEN);
        }
        first = false;
        if let Some(cell) = cell {
            match out.len() + cell.len() < FULL {
                true => layout.cell(column, cell, out)?,
                false => layout.long_cell(column, cell, out, write_piece)?,
            }
        }
    }
    out.extend_from_slice(L::CLOSE);
    Ok(())
}

/// SPARQL Results TSV: terms in Turtle's syntax.
pub(crate) struct Tsv;

impl CellLayout for Tsv {
    const OPEN: &'static [u8] = b"";
    const BETWEEN: &'static [u8] = b"\t";
    const CLOSE: &'static [u8] = b"\n";
    const UNBOUND_HAS_PLACE: bool = true;

    #[inline]
    fn cell<T: TextOut>(&self, _: usize, term: &[u8], out: &mut T) -> Result<()> {
        push_tsv_term(term, out);
        Ok(())
    }
}

/// SPARQL Results CSV: values without syntax, with quotes and line ends as in RFC 4180.
pub(crate) struct Csv;

impl CellLayout for Csv {
    const OPEN: &'static [u8] = b"";
    const BETWEEN: &'static [u8] = b",";
    const CLOSE: &'static [u8] = b"\r\n";
    const UNBOUND_HAS_PLACE: bool = true;

    #[inline]
    fn cell<T: TextOut>(&self, _: usize, term: &[u8], out: &mut T) -> Result<()> {
        push_csv_term(term, out);
        Ok(())
    }
}

/// Members of `bindings` in SPARQL Results JSON, each preceded by a comma, which the writer removes before an answer's
/// first row. The field holds the text before each column's term.
pub(crate) struct JsonLayout<'k>(pub(crate) &'k [Vec<u8>]);

impl CellLayout for JsonLayout<'_> {
    const OPEN: &'static [u8] = b",{";
    const BETWEEN: &'static [u8] = b",";
    const CLOSE: &'static [u8] = b"}";
    const UNBOUND_HAS_PLACE: bool = false;

    #[inline]
    fn cell<T: TextOut>(&self, column: usize, term: &[u8], out: &mut T) -> Result<()> {
        out.extend_from_slice(self.0.get(column).map_or(&[], Vec::as_slice));
        push_json_term(term, out);
        Ok(())
    }
}

/// Lines of JSON: an object per row, with terms as in SPARQL Results JSON. The field holds the text before each
/// column's term.
pub(crate) struct JsonLine<'k>(pub(crate) &'k [Vec<u8>]);

impl CellLayout for JsonLine<'_> {
    const OPEN: &'static [u8] = b"{";
    const BETWEEN: &'static [u8] = b",";
    const CLOSE: &'static [u8] = b"}\n";
    const UNBOUND_HAS_PLACE: bool = false;

    #[inline]
    fn cell<T: TextOut>(&self, column: usize, term: &[u8], out: &mut T) -> Result<()> {
        JsonLayout(self.0).cell(column, term, out)
    }
}

/// `result` elements of SPARQL Results XML. The field holds the text before each column's term.
pub(crate) struct Xml<'k>(pub(crate) &'k [Vec<u8>]);

impl CellLayout for Xml<'_> {
    const OPEN: &'static [u8] = b"<result>";
    const BETWEEN: &'static [u8] = b"";
    const CLOSE: &'static [u8] = b"</result>";
    const UNBOUND_HAS_PLACE: bool = false;

    #[inline]
    fn cell<T: TextOut>(&self, column: usize, term: &[u8], out: &mut T) -> Result<()> {
        out.extend_from_slice(self.0.get(column).map_or(&[], Vec::as_slice));
        push_xml_term(term, out)?;
        out.extend_from_slice(b"</binding>");
        Ok(())
    }
}
