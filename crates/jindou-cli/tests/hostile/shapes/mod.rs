//! Hostile texts: each construct of SPARQL and of RDF's syntaxes, repeated until the text has the requested length.

mod documents;
mod queries;
mod updates;

pub use documents::documents;
pub use queries::queries;
pub use updates::updates;

use std::fmt::Write as _;

/// The kind of request that sends a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To {
    Query,
    Prepared,
    Update,
    /// A request that puts a graph in this format.
    Store(&'static str),
}

/// A text: `head`, `open` repeated n times, `middle`, `close` repeated n times, `tail`. Each `#` in `open` is replaced
/// by the number of the repetition.
#[derive(Clone, Debug)]
pub struct Shape {
    pub name: String,
    pub to: To,
    head: String,
    open: String,
    middle: String,
    close: String,
    tail: String,
}

impl Shape {
    fn new(
        to: To,
        name: &str,
        head: &str,
        open: &str,
        middle: &str,
        close: &str,
        tail: &str,
    ) -> Self {
        let own = |s: &str| s.to_owned();
        Self {
            name: own(name),
            to,
            head: own(head),
            open: own(open),
            middle: own(middle),
            close: own(close),
            tail: own(tail),
        }
    }

    /// The text with about this many bytes.
    pub fn text(&self, bytes: usize) -> String {
        let mut out = String::with_capacity(bytes + bytes / 8);
        out += &self.head;
        let most = bytes.saturating_sub(self.head.len() + self.middle.len() + self.tail.len());
        let mut n = 0usize;
        // The closing parts contain no numbers, so their length is known before they are written.
        let from = out.len();
        while (out.len() - from) + n * self.close.len() < most || n == 0 {
            piece(&self.open, n, &mut out);
            n += 1;
        }
        out += &self.middle;
        for _ in 0..n {
            out += &self.close;
        }
        out += &self.tail;
        out
    }
}

fn piece(text: &str, n: usize, out: &mut String) {
    let mut parts = text.split('#');
    out.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let _ = write!(out, "{n}");
        out.push_str(part);
    }
}

/// A shape with one repeated part, which is not nested.
fn flat(to: To, name: &str, head: &str, unit: &str, tail: &str) -> Shape {
    Shape::new(to, name, head, unit, "", "", tail)
}
