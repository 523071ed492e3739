//! Writes the rows of a SELECT as the quads of a graph. Graphs are read by SELECT queries, whose rows stream, since
//! CONSTRUCT must remember the triples that it has returned.

use jindou::results::{GraphWriter, Rows, expressible};
use jindou::{Charge, Error, Holder, MemoryBudget, Result};
use oxrdf::{GraphName, NamedNode, NamedOrBlankNode, Quad, Term, TripleRef};
use oxrdfio::RdfFormat;
use std::io::Write;

/// Rows of at least this many bytes are charged while they are written.
const LONG: usize = 1 << 16;

/// Writes rows of (subject, predicate, object) or (subject, predicate, object, graph).
///
/// # Errors
/// [`Error::Unsupported`] for terms that the format cannot express, and those of [`each`] and [`GraphWriter::quad`].
pub(crate) fn push_rows<W: Write>(
    rows: &Rows,
    format: RdfFormat,
    to: &mut GraphWriter<W>,
    memory: &MemoryBudget,
) -> Result<()> {
    each(rows, to.bytes_held(), memory, |quad| {
        let other = expressible(TripleRef::from(quad.as_ref()), format)?;
        match other {
            Some(other) => to.quad(&other.in_graph(quad.graph_name)),
            None => to.quad(&quad),
        }
    })
}

/// Declares the prefixes that these rows use, before the first of them is written.
///
/// # Errors
/// Those of [`each`].
pub(crate) fn declare_for<W: Write>(
    rows: &Rows,
    to: &mut GraphWriter<W>,
    memory: &MemoryBudget,
) -> Result<()> {
    each(rows, 1, memory, |quad| {
        to.note(&quad);
        Ok(())
    })
}

/// Calls `take` with the quad of each row. Long rows are charged meanwhile: `held` bytes per byte of the row.
///
/// # Errors
/// [`Error::Damaged`] for a row that is not a quad; limits of memory; those of `take`.
fn each(
    rows: &Rows,
    held: u64,
    memory: &MemoryBudget,
    mut take: impl FnMut(Quad) -> Result<()>,
) -> Result<()> {
    let mut charge = Charge::new(Holder::Rest, memory);
    for r in 0..rows.rows {
        let bytes: usize = rows.row(r).flatten().map(<[u8]>::len).sum();
        if bytes >= LONG {
            charge.set(held * bytes as u64)?;
        }
        take(quad(rows.row(r)).ok_or_else(damaged)?)?;
        if bytes >= LONG {
            charge.set(0)?;
        }
    }
    Ok(())
}

fn damaged() -> Error {
    Error::damaged("strings.jd", "a term cannot be read; run `jindou check`")
}

fn quad<'a>(mut cells: impl Iterator<Item = Option<&'a [u8]>>) -> Option<Quad> {
    let mut term = || jindou::decode_term(cells.next()??);
    let subject: NamedOrBlankNode = match term()? {
        Term::NamedNode(n) => n.into(),
        Term::BlankNode(b) => b.into(),
        _ => return None,
    };
    let Term::NamedNode(predicate) = term()? else {
        return None;
    };
    let predicate: NamedNode = predicate;
    let object = term()?;
    let graph = match term() {
        None => GraphName::DefaultGraph,
        Some(Term::NamedNode(n)) => n.into(),
        Some(Term::BlankNode(b)) => b.into(),
        Some(_) => return None,
    };
    Some(Quad::new(subject, predicate, object, graph))
}
