//! Terms, predicates and graphs in words, for EXPLAIN and for reasons.

use crate::GraphRef;
use jindou_model::term::{self, Parts};
use jindou_model::{PredicateId, VertexId};
use jindou_store::Graph;

/// Longest text of one term.
const MAX_TEXT: usize = 60;
/// Bytes of a term that is read as a whole.
const LONGEST: usize = 4 << 10;

/// A term's canonical bytes, shortened: of an IRI the part after the last `#` or `/`.
pub(crate) fn term(bytes: &[u8]) -> String {
    if bytes.len() > LONGEST {
        // Of a long one no more is looked at than what is shown.
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
                // `http://host` alone stays whole, and so does what would say nothing.
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
