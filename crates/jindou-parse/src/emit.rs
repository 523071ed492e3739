//! Parsed quads become batches of canonical bytes.

use crate::document::Run;
use crate::labels::LabelScope;
use crate::limits::Meter;
use crate::line::MAX_NESTING;
use crate::xml_literal;
use jindou_model::{Error, QuadBatch, QuadSink, Resource, Result, Span, term};
use oxrdf::vocab::rdf;
use oxrdf::{GraphName, NamedNode, NamedOrBlankNode, Quad, Term, Triple};
use std::rc::Rc;

/// Quads in a batch.
const BATCH_QUADS: usize = 4096;
/// A batch is also full at this many bytes.
const BATCH_BYTES: usize = 1 << 20;
/// Turns parsed quads into batches of canonical bytes.
pub(crate) struct Emitter<'a> {
    pub(crate) labels: LabelScope,
    pub(crate) meter: Rc<Meter>,
    pub(crate) batch: &'a mut QuadBatch,
    /// Canonical bytes of the graph of statements that name none; empty for the default graph.
    pub(crate) graph: &'a [u8],
    /// Place of `graph` in the current batch, once it is there.
    pub(crate) default_graph: Option<Span>,
    /// True for RDF/XML, whose XML literals need their namespaces put in order.
    pub(crate) xml: bool,
    /// The last quad of the current batch.
    pub(crate) last: [Span; 4],
    pub(crate) run: &'a Run<'a>,
    pub(crate) sink: &'a mut dyn QuadSink,
}

impl Emitter<'_> {
    /// `Ok(false)`: the run was stopped.
    pub(crate) fn quad(&mut self, q: &Quad) -> Result<bool> {
        self.add(&q.subject, &q.predicate, &q.object, &q.graph_name)
    }

    pub(crate) fn triple(&mut self, t: &Triple) -> Result<bool> {
        self.add(
            &t.subject,
            &t.predicate,
            &t.object,
            &GraphName::DefaultGraph,
        )
    }

    fn add(
        &mut self,
        s: &NamedOrBlankNode,
        p: &NamedNode,
        o: &Term,
        g: &GraphName,
    ) -> Result<bool> {
        self.meter.statement();
        let subject = self.put(0, |labels, out| {
            push_subject(labels, s, out);
            Ok(())
        })?;
        let predicate = self.put(1, |_, out| {
            term::push_iri(p.as_str(), out);
            Ok(())
        })?;
        let xml = self.xml;
        let object = self.put(2, |labels, out| push_object(labels, o, 0, xml, out))?;
        let graph = match g {
            GraphName::DefaultGraph if self.graph.is_empty() => Span::default(),
            GraphName::DefaultGraph => {
                let (batch, graph) = (&mut *self.batch, self.graph);
                *self
                    .default_graph
                    .get_or_insert_with(|| batch.push_term(graph))
            }
            GraphName::NamedNode(n) => self.put(3, |_, out| {
                term::push_iri(n.as_str(), out);
                Ok(())
            })?,
            GraphName::BlankNode(b) => self.put(3, |labels, out| {
                labels.push_parsed(b, out);
                Ok(())
            })?,
        };
        self.last = [subject, predicate, object, graph];
        self.batch.quads.push(self.last);
        if self.batch.quads.len() >= BATCH_QUADS || self.batch.bytes.len() >= BATCH_BYTES {
            return self.flush();
        }
        Ok(true)
    }

    /// Appends a term, or finds that the quad before has the same one in this position.
    fn put(
        &mut self,
        position: usize,
        push: impl FnOnce(&mut LabelScope, &mut Vec<u8>) -> Result<()>,
    ) -> Result<Span> {
        let start = self.batch.bytes.len();
        push(&mut self.labels, &mut self.batch.bytes)?;
        let end = self.batch.bytes.len();
        if end > u32::MAX as usize {
            return Err(Error::limit(Resource::Form, "a term is longer than 4 GiB"));
        }
        let last = self.last[position];
        if last.len > 0 && self.batch.term(last) == &self.batch.bytes[start..] {
            self.batch.bytes.truncate(start);
            return Ok(last);
        }
        Ok(Span {
            start: start as u32,
            len: (end - start) as u32,
        })
    }

    pub(crate) fn flush(&mut self) -> Result<bool> {
        let goes_on = self.run.deliver(self.batch, self.sink)?;
        self.batch.clear();
        self.default_graph = None;
        self.last = [Span::default(); 4];
        Ok(goes_on)
    }
}

fn push_subject(labels: &mut LabelScope, subject: &NamedOrBlankNode, out: &mut Vec<u8>) {
    match subject {
        NamedOrBlankNode::NamedNode(n) => term::push_iri(n.as_str(), out),
        NamedOrBlankNode::BlankNode(b) => labels.push_parsed(b, out),
    }
}

fn push_object(
    labels: &mut LabelScope,
    object: &Term,
    depth: usize,
    xml: bool,
    out: &mut Vec<u8>,
) -> Result<()> {
    match object {
        Term::NamedNode(n) => term::push_iri(n.as_str(), out),
        Term::BlankNode(b) => labels.push_parsed(b, out),
        Term::Literal(l) if xml && l.datatype() == rdf::XML_LITERAL => {
            match xml_literal::canonical(l.value()) {
                Some(text) => term::push_typed(&text, rdf::XML_LITERAL.as_str(), out),
                None => term::push_literal(l, out),
            }
        }
        Term::Literal(l) => term::push_literal(l, out),
        Term::Triple(t) => {
            if depth >= MAX_NESTING {
                return Err(Error::limit(
                    Resource::Form,
                    format!("a triple term nests deeper than {MAX_NESTING} levels"),
                ));
            }
            out.push(term::TRIPLE);
            let at = open_part(out);
            push_subject(labels, &t.subject, out);
            close_part(at, out);
            let at = open_part(out);
            term::push_iri(t.predicate.as_str(), out);
            close_part(at, out);
            let at = open_part(out);
            push_object(labels, &t.object, depth + 1, xml, out)?;
            close_part(at, out);
        }
    }
    Ok(())
}

fn open_part(out: &mut Vec<u8>) -> usize {
    out.extend_from_slice(&[0; 4]);
    out.len()
}

fn close_part(at: usize, out: &mut [u8]) {
    let len = (out.len() - at) as u32;
    out[at - 4..at].copy_from_slice(&len.to_le_bytes());
}
