//! Text of terms, predicates and graphs for EXPLAIN and for error messages, shortened.

use crate::GraphRef;
use jindou_graph::Graph;
use jindou_model::term::{self, Parts};
use jindou_model::{PredicateId, VertexId};
use std::fmt::{self, Display, Write};

/// Longest text of one term, in bytes.
const MAX_TEXT: usize = 60;
/// Largest term, in bytes, that is decoded to be shown; of a larger one only the two ends are read.
const LONGEST: usize = 4 << 10;

/// Longest text of a condition, an expression or a path, in bytes.
const MAX_EXPRESSION: usize = 2 << 10;
/// Largest number of members of a list that are shown.
const MAX_LISTED: usize = 32;

/// A writer that accepts at most `most` bytes, and fails on more after adding an ellipsis.
struct BoundedText {
    text: String,
    most: usize,
}

impl Write for BoundedText {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        let Some(room) = self.most.checked_sub(self.text.len()) else {
            // The text was cut by an earlier write.
            return Err(fmt::Error);
        };
        if more.len() <= room {
            self.text.push_str(more);
            return Ok(());
        }
        self.text.push_str(&more[..floor(more, room)]);
        self.text.push('…');
        // An error, so that the caller does not format the rest.
        Err(fmt::Error)
    }
}

/// An expression or a condition, cut after two kilobytes. Takes time proportional to the shown part.
pub(crate) fn expression(shown: &dyn Display) -> String {
    bounded(shown, MAX_EXPRESSION)
}

/// A text cut after `most` bytes, with an ellipsis where there is more.
pub(crate) fn bounded(shown: &dyn Display, most: usize) -> String {
    let mut out = BoundedText {
        text: String::new(),
        most,
    };
    let _ = write!(out, "{shown}");
    out.text
}

/// The first members of a list, and the number of the others, joined by `with`: a plan's text must not be too long.
pub(crate) fn list<T>(members: &[T], with: &str, text: impl Fn(&T) -> String) -> String {
    listed(members, text).join(with)
}

/// As [`list`], without joining the texts.
pub(crate) fn listed<T>(members: &[T], text: impl Fn(&T) -> String) -> Vec<String> {
    let mut out: Vec<String> = members.iter().take(MAX_LISTED).map(text).collect();
    if members.len() > MAX_LISTED {
        out.push(format!("… {} more", members.len() - MAX_LISTED));
    }
    out
}

/// A term's canonical bytes, shortened: for an IRI the part after the last `#` or `/`.
pub(crate) fn term(bytes: &[u8]) -> String {
    if bytes.len() > LONGEST {
        // Only the shown bytes of a long term are read.
        let end = |part: &[u8]| String::from_utf8_lossy(part).replace('\0', " ");
        let (head, tail) = (&bytes[..MAX_TEXT / 2], &bytes[bytes.len() - MAX_TEXT / 3..]);
        return format!("{}…{}", end(head), end(tail));
    }
    let text = match term::parts(bytes) {
        Some(Parts::Iri(iri)) => {
            let cut = iri
                .trim_end_matches(['/', '#'])
                .rfind(['#', '/'])
                .map_or(0, |i| i + 1);
            match iri.get(cut..) {
                // Not shortened: `http://host`, and an IRI with nothing after its last `#` or `/`.
                Some(local) if !local.is_empty() && cut > "http://".len() => format!("<…{local}>"),
                _ => format!("<{iri}>"),
            }
        }
        Some(Parts::Blank(b)) => format!("_:{b}"),
        Some(Parts::String(s)) => format!("{s:?}"),
        Some(Parts::Lang(s, tag)) => format!("{s:?}@{tag}"),
        Some(Parts::Coded(s, code)) => {
            let name = term::DATATYPES
                .get((code - term::FIRST_DATATYPE) as usize)
                .copied()
                .unwrap_or("?");
            format!("{s:?}^^xsd:{name}")
        }
        Some(Parts::Typed(s, datatype)) => format!("{s:?}^^<{datatype}>"),
        Some(Parts::Triple(_)) => "<<( … )>>".into(),
        None => "?".into(),
    };
    if text.len() <= MAX_TEXT {
        return text;
    }
    let head = floor(&text, MAX_TEXT / 2);
    let tail = floor(&text, text.len() - MAX_TEXT / 3);
    format!("{}…{}", &text[..head], &text[tail..])
}

pub(crate) fn vertex(snapshot: &dyn Graph, id: u32) -> String {
    let mut bytes = vec![];
    if snapshot.term(VertexId(id), &mut bytes) {
        term(&bytes)
    } else {
        format!("#{id}")
    }
}

pub(crate) fn predicate(snapshot: &dyn Graph, id: PredicateId) -> String {
    vertex(snapshot, snapshot.vertex_of(id).0)
}

pub(crate) fn graph(snapshot: &dyn Graph, graph: &GraphRef) -> String {
    match graph {
        GraphRef::Default => "the default graph".into(),
        GraphRef::Named(g) => format!("graph {}", vertex(snapshot, *g)),
        GraphRef::AnyNamed => "the named graphs".into(),
        GraphRef::Union => "all graphs".into(),
        GraphRef::Set(gs) => format!("{} graphs merged", gs.len()),
        GraphRef::Slot(s) => format!("the graph in slot {s}"),
        GraphRef::Bind(_, None) => "each named graph".into(),
        GraphRef::Bind(_, Some(gs)) => format!("each of {} named graphs", gs.len()),
    }
}

/// The last character boundary at or before `at`.
pub(crate) fn floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}
