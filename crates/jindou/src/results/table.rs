//! A table for people, printed while rows arrive. The first rows determine the widths of columns. Wider cells in later
//! rows make their lines longer, or are truncated if the table must fit a screen.

use super::Prefixes;
use super::text::push_tsv_term;
use jindou_model::term::{self, Parts};
use std::borrow::Cow;

/// Number of rows that determine the column widths, or fewer if their cells have more than [`SAMPLE_BYTES`].
const SAMPLE: usize = 200;
const SAMPLE_BYTES: usize = 1 << 20;
/// Largest width to which columns are padded if there is no screen that the table must fit.
const MAX_WIDTH: usize = 60;

/// The text, truncated to this many characters if it is longer; its last character is then `…`.
fn cut(text: &str, columns: usize) -> Cow<'_, str> {
    match text.char_indices().nth(columns) {
        None => Cow::Borrowed(text),
        Some(_) => {
            let kept = text.char_indices().nth(columns.saturating_sub(1));
            let end = kept.map_or(0, |(at, _)| at);
            Cow::Owned(format!("{}…", &text[..end]))
        }
    }
}

/// Narrows the widest columns, all to the same width, so that the table fits the screen.
fn fit(widths: &mut [usize], screen: usize) {
    let between = 3 * widths.len().saturating_sub(1);
    let room = screen.saturating_sub(between).max(widths.len());
    let taken = |cap: usize| widths.iter().map(|w| (*w).min(cap)).sum::<usize>();
    if taken(usize::MAX) <= room {
        return;
    }
    // The largest width at which all columns fit; with width 1 they always do.
    let cap = (1..=room)
        .rev()
        .find(|cap| taken(*cap) <= room)
        .unwrap_or(1);
    let mut left = room - taken(cap);
    for w in widths.iter_mut().filter(|w| **w > cap) {
        let more = left.min(1);
        *w = cap + more;
        left -= more;
    }
}

/// A table for a terminal, written while rows arrive.
#[derive(Debug, Default)]
pub(super) struct TextTable {
    header: Vec<String>,
    widths: Vec<usize>,
    held: Vec<Vec<String>>,
    held_bytes: usize,
    drawn: bool,
    prefixes: Prefixes,
    /// Width of the screen that the table must fit, in characters; `None` for no limit.
    screen: Option<usize>,
}

impl TextTable {
    pub(super) fn new(variables: &[String], prefixes: Prefixes, screen: Option<usize>) -> Self {
        let header: Vec<String> = variables.iter().map(|v| format!("?{v}")).collect();
        Self {
            widths: header.iter().map(|h| h.chars().count()).collect(),
            header,
            prefixes,
            screen,
            ..Self::default()
        }
    }

    pub(super) fn row<'a>(
        &mut self,
        cells: impl Iterator<Item = Option<&'a [u8]>>,
        out: &mut Vec<u8>,
    ) {
        let row: Vec<String> = cells
            .map(|c| c.map_or_else(String::new, |c| self.cell_text(c)))
            .collect();
        if self.drawn {
            self.line(&row, out);
            return;
        }
        let most = self.screen.unwrap_or(MAX_WIDTH);
        for (w, c) in self.widths.iter_mut().zip(&row) {
            *w = (*w).max(c.chars().count().min(most));
        }
        self.held_bytes += row.iter().map(String::len).sum::<usize>();
        self.held.push(row);
        if self.held.len() == SAMPLE || self.held_bytes >= SAMPLE_BYTES {
            self.draw(out);
        }
    }

    pub(super) fn finish(&mut self, out: &mut Vec<u8>) {
        if !self.drawn {
            self.draw(out);
        }
    }

    fn draw(&mut self, out: &mut Vec<u8>) {
        self.drawn = true;
        if let Some(screen) = self.screen {
            fit(&mut self.widths, screen);
        }
        let header = std::mem::take(&mut self.header);
        self.line(&header, out);
        let rule: Vec<String> = self.widths.iter().map(|&w| "─".repeat(w)).collect();
        self.put(rule.join("─┼─"), out);
        for row in std::mem::take(&mut self.held) {
            self.line(&row, out);
        }
    }

    fn line(&self, row: &[String], out: &mut Vec<u8>) {
        let mut text = String::new();
        for (i, (cell, &w)) in row.iter().zip(&self.widths).enumerate() {
            if i > 0 {
                text.push_str(" │ ");
            }
            let cell = match self.screen {
                Some(_) => cut(cell, w),
                None => Cow::Borrowed(cell.as_str()),
            };
            text.push_str(&cell);
            let pad = w.saturating_sub(cell.chars().count());
            text.extend(std::iter::repeat_n(' ', pad));
        }
        self.put(text, out);
    }

    /// Writes a line. It is truncated if even the narrowest columns do not fit the screen.
    fn put(&self, text: String, out: &mut Vec<u8>) {
        let text = text.trim_end();
        let text = match self.screen {
            Some(screen) => cut(text, screen),
            None => Cow::Borrowed(text),
        };
        out.extend_from_slice(text.as_bytes());
        out.push(b'\n');
    }

    /// A cell's text with control characters replaced, so that data cannot control the terminal.
    fn cell_text(&self, cell: &[u8]) -> String {
        let mut bytes = Vec::new();
        self.push(cell, &mut bytes);
        String::from_utf8_lossy(&bytes)
            .chars()
            .map(|c| {
                if c.is_control() {
                    char::REPLACEMENT_CHARACTER
                } else {
                    c
                }
            })
            .collect()
    }

    /// Appends a term in Turtle's syntax, with abbreviated IRIs.
    fn push(&self, cell: &[u8], out: &mut Vec<u8>) {
        match term::parts(cell) {
            Some(Parts::Iri(iri)) => match self.prefixes.shorten(iri) {
                Some(short) => out.extend_from_slice(short.as_bytes()),
                None => push_tsv_term(cell, out),
            },
            Some(Parts::Coded(..) | Parts::Typed(..)) => {
                let start = out.len();
                push_tsv_term(cell, out);
                let datatype = match term::parts(cell) {
                    Some(Parts::Coded(_, code)) => term::datatype_iri(code).unwrap_or_default(),
                    Some(Parts::Typed(_, iri)) => iri.to_owned(),
                    _ => return,
                };
                // The datatype's IRI, which Turtle's syntax writes except for numbers and booleans, is abbreviated.
                let long = format!("<{datatype}>");
                if let Some(short) = self.prefixes.shorten(&datatype)
                    && out[start..].ends_with(long.as_bytes())
                {
                    out.truncate(out.len() - long.len());
                    out.extend_from_slice(short.as_bytes());
                }
            }
            Some(Parts::Triple(parts)) => {
                out.extend_from_slice(b"<<( ");
                for part in parts {
                    self.push(part, out);
                    out.push(b' ');
                }
                out.extend_from_slice(b")>>");
            }
            _ => push_tsv_term(cell, out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(rows: &[[&str; 2]], screen: Option<usize>) -> Vec<String> {
        let names = ["short".to_owned(), "long".to_owned()];
        let mut table = TextTable::new(&names, Prefixes::new(), screen);
        let mut out = Vec::new();
        for row in rows {
            let cells = row.map(|c| {
                let mut bytes = Vec::new();
                term::push_term(&oxrdf::Literal::from(c).into(), &mut bytes);
                bytes
            });
            table.row(cells.iter().map(|c| Some(c.as_slice())), &mut out);
        }
        table.finish(&mut out);
        let text = String::from_utf8(out).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn a_table_fits_its_screen() {
        let long = "x".repeat(100);
        let rows = [["ab", &*long], ["é", "y"]];
        let lines = drawn(&rows, Some(30));
        assert!(lines.iter().all(|l| l.chars().count() <= 30), "{lines:?}");
        assert_eq!(lines[0], "?short │ ?long");
        assert_eq!(lines[2], format!("\"ab\"   │ \"{}…", "x".repeat(19)));
        assert_eq!(lines[3], "\"é\"    │ \"y\"");
        // On a wide enough screen, or without one, long cells are not truncated.
        let lines = drawn(&rows, Some(200));
        assert!(lines[2].ends_with(&format!("\"{long}\"")), "{lines:?}");
        let lines = drawn(&rows, None);
        assert!(lines[2].ends_with(&format!("\"{long}\"")), "{lines:?}");
        for screen in [0, 1, 3, 5] {
            let most = screen.max(1);
            let lines = drawn(&rows, Some(screen));
            assert!(
                lines.iter().all(|l| l.chars().count() <= most),
                "{screen}: {lines:?}"
            );
        }
    }

    #[test]
    fn the_widest_columns_give_way() {
        for (widths, screen, fitted) in [
            (vec![5, 5], 13, vec![5, 5]),
            (vec![5, 50], 20, vec![5, 12]),
            (vec![50, 50], 20, vec![9, 8]),
            (vec![50, 2, 50], 20, vec![6, 2, 6]),
            (vec![9, 9, 9], 2, vec![1, 1, 1]),
            (vec![], 10, vec![]),
        ] {
            let mut made = widths.clone();
            fit(&mut made, screen);
            assert_eq!(made, fitted, "{widths:?} in {screen}");
        }
    }
}
