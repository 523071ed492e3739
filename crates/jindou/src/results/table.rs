//! A table for people, drawn while rows come in: column widths are taken from the first rows, later cells
//! that are wider push their line out.

use super::Prefixes;
use super::text::push_tsv_term;
use jindou_model::term::{self, Parts};

/// Rows that decide the column widths.
const SAMPLE: usize = 200;
/// No column is padded wider than this.
const MAX_WIDTH: usize = 60;

/// A table for people that is drawn while rows come in.
#[derive(Debug, Default)]
pub(super) struct Table {
    header: Vec<String>,
    widths: Vec<usize>,
    held: Vec<Vec<String>>,
    drawn: bool,
    prefixes: Prefixes,
}

impl Table {
    pub(super) fn new(variables: &[String], prefixes: Prefixes) -> Self {
        let header: Vec<String> = variables.iter().map(|v| format!("?{v}")).collect();
        Self {
            widths: header.iter().map(|h| h.chars().count()).collect(),
            header,
            prefixes,
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
        for (w, c) in self.widths.iter_mut().zip(&row) {
            *w = (*w).max(c.chars().count().min(MAX_WIDTH));
        }
        self.held.push(row);
        if self.held.len() == SAMPLE {
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
        let header = std::mem::take(&mut self.header);
        self.line(&header, out);
        let rule: Vec<String> = self.widths.iter().map(|&w| "─".repeat(w)).collect();
        out.extend_from_slice(rule.join("─┼─").as_bytes());
        out.push(b'\n');
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
            text.push_str(cell);
            let pad = w.saturating_sub(cell.chars().count());
            text.extend(std::iter::repeat_n(' ', pad));
        }
        out.extend_from_slice(text.trim_end().as_bytes());
        out.push(b'\n');
    }

    /// A cell with its control characters made visible: a terminal must not obey what data says.
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

    /// Appends a term in Turtle's syntax, its IRIs by their prefixes.
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
                // Numbers and the like are written without it.
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
