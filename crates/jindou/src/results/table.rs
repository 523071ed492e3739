//! A table for people, drawn while rows come in: column widths are taken from the first rows, later cells
//! that are wider push their line out.

use super::text::push_tsv_term;

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
}

impl Table {
    pub(super) fn new(variables: &[String]) -> Self {
        let header: Vec<String> = variables.iter().map(|v| format!("?{v}")).collect();
        Self {
            widths: header.iter().map(|h| h.chars().count()).collect(),
            header,
            ..Self::default()
        }
    }

    pub(super) fn row<'a>(
        &mut self,
        cells: impl Iterator<Item = Option<&'a [u8]>>,
        out: &mut Vec<u8>,
    ) {
        let row: Vec<String> = cells
            .map(|c| c.map_or_else(String::new, cell_text))
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
}

/// A cell with its control characters made visible: a terminal must not obey what data says.
fn cell_text(cell: &[u8]) -> String {
    let mut bytes = Vec::new();
    push_tsv_term(cell, &mut bytes);
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
