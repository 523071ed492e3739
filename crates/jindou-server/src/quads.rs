//! Rows of a SELECT as the quads of a graph. Graphs are read by native queries whose rows stream, not by CONSTRUCT,
//! which has to remember the triples that it has returned.

use jindou::results::{GraphWriter, Rows, expressible};
use jindou::{Charge, Error, Holder, MemoryBudget, Result};
use oxrdf::{GraphName, NamedNode, NamedOrBlankNode, Quad, Term, TripleRef};
use oxrdfio::RdfFormat;
use std::io::Write;

/// Bytes of a row from which it is charged.
const LONG: usize = 1 << 16;

/// Appends rows of (subject, predicate, object) or (subject, predicate, object, graph).
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

/// Declares the prefixes that rows use, all of them before the first row.
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

/// Decodes rows one after the other, and charges long ones: this many bytes for each byte of the row.
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
