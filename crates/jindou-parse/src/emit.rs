//! Conversion of parsed quads to batches of terms in canonical bytes.

use crate::declared::Declared;
use crate::document::ReadContext;
use crate::labels::LabelScope;
use crate::limits::Meter;
use crate::line::MAX_NESTING;
use jindou_model::{Error, QuadBatch, QuadSink, Resource, Result, Span, term};
use oxrdf::{GraphName, NamedNode, NamedOrBlankNode, Quad, Term, Triple};
use std::rc::Rc;

/// Number of quads in a full batch.
const BATCH_QUADS: usize = 4096;
/// Number of bytes of terms at which a batch counts as full, too.
const BATCH_BYTES: usize = 1 << 20;
/// Number of bytes of terms between two checks of the deadline. The size of batches does not bound that work, since a
/// term that every statement repeats is stored once per batch.
const WORK: usize = 8 << 20;

/// Converts parsed quads to canonical bytes, collects them in batches, and passes these to the sink.
pub(crate) struct QuadEmitter<'a> {
    pub(crate) labels: LabelScope,
    pub(crate) meter: Rc<Meter>,
    pub(crate) batch: &'a mut QuadBatch,
    /// Canonical bytes of the graph for statements that name none; empty for the default graph.
    pub(crate) graph: &'a [u8],
    /// Span of `graph` in the current batch, once it was added to it.
    pub(crate) default_graph: Option<Span>,
    /// The last quad of the current batch.
    pub(crate) last: [Span; 4],
    /// Number of bytes of terms since the last check of the deadline.
    pub(crate) worked: usize,
    pub(crate) declared: Declared,
    pub(crate) run: &'a ReadContext<'a>,
    pub(crate) sink: &'a mut dyn QuadSink,
}

impl QuadEmitter<'_> {
    /// Adds a quad. `Ok(false)` if the run was stopped.
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

    /// Passes a prefix that the document declares to the sink.
    #[cold]
    pub(crate) fn prefix(&mut self, name: &str, iri: &str) -> Result<()> {
        self.declared.one(name, iri, self.sink)
    }

    /// Passes the prefixes in a parser's table to the sink, if they are new.
    #[cold]
    pub(crate) fn prefixes<'p>(
        &mut self,
        table: impl Iterator<Item = (&'p str, &'p str)>,
    ) -> Result<()> {
        self.declared.all(table, self.sink)
    }

    /// As [`Self::prefixes`], but only if it is due.
    #[inline]
    pub(crate) fn due_prefixes<'p>(
        &mut self,
        table: impl Iterator<Item = (&'p str, &'p str)>,
    ) -> Result<()> {
        if self.declared.is_due(table.size_hint().0) {
            self.prefixes(table)?;
        }
        Ok(())
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
        let object = self.put(2, |labels, out| push_object(labels, o, 0, out))?;
        let graph = match g {
            GraphName::DefaultGraph => self.graph_of_all(),
            GraphName::NamedNode(n) => self.put(3, |_, out| {
                term::push_iri(n.as_str(), out);
                Ok(())
            })?,
            GraphName::BlankNode(b) => self.put(3, |labels, out| {
                labels.push_parsed(b, out);
                Ok(())
            })?,
        };
        self.end([subject, predicate, object, graph])
    }

    /// Adds a triple whose terms are canonical bytes.
    pub(crate) fn terms(
        &mut self,
        subject: &[u8],
        predicate: &[u8],
        object: &[u8],
    ) -> Result<bool> {
        self.meter.statement();
        let subject = self.put_bytes(0, subject)?;
        let predicate = self.put_bytes(1, predicate)?;
        let object = self.put_bytes(2, object)?;
        let graph = self.graph_of_all();
        self.end([subject, predicate, object, graph])
    }

    /// Adds a quad whose subject, object and graph are canonical bytes. Without a graph, it is added to the graph for
    /// statements that name none.
    pub(crate) fn quad_of_bytes(
        &mut self,
        subject: &[u8],
        predicate: &str,
        object: &[u8],
        graph: Option<&[u8]>,
    ) -> Result<bool> {
        self.meter.statement();
        let subject = self.put_bytes(0, subject)?;
        let predicate = self.put(1, |_, out| {
            term::push_iri(predicate, out);
            Ok(())
        })?;
        let object = self.put_bytes(2, object)?;
        let graph = match graph {
            None => self.graph_of_all(),
            Some(graph) => self.put_bytes(3, graph)?,
        };
        self.end([subject, predicate, object, graph])
    }

    /// Counts the bytes of a term, whether they are copied to the batch or already in it.
    #[inline]
    fn work(&mut self, bytes: usize) -> Result<()> {
        self.worked += bytes;
        if self.worked < WORK {
            return Ok(());
        }
        self.worked = 0;
        self.run.limits.cancel.check()
    }

    fn put_bytes(&mut self, position: usize, bytes: &[u8]) -> Result<Span> {
        self.work(bytes.len())?;
        let last = self.last[position];
        if last.len > 0 && self.batch.term(last) == bytes {
            return Ok(last);
        }
        if self.batch.bytes.len() + bytes.len() > u32::MAX as usize {
            return Err(Error::limit(Resource::Form, "a term is longer than 4 GiB"));
        }
        Ok(self.batch.push_term(bytes))
    }

    /// Span of the graph for statements that name none.
    fn graph_of_all(&mut self) -> Span {
        if self.graph.is_empty() {
            return Span::default();
        }
        let (batch, graph) = (&mut *self.batch, self.graph);
        *self
            .default_graph
            .get_or_insert_with(|| batch.push_term(graph))
    }

    /// Adds a quad whose terms are in the batch already.
    fn end(&mut self, quad: [Span; 4]) -> Result<bool> {
        self.last = quad;
        self.batch.quads.push(quad);
        if self.batch.quads.len() >= BATCH_QUADS || self.batch.bytes.len() >= BATCH_BYTES {
            return self.flush();
        }
        Ok(true)
    }

    /// Appends a term, unless it equals the previous quad's term in this position, whose span is then reused.
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
        self.work(end - start)?;
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
    out: &mut Vec<u8>,
) -> Result<()> {
    match object {
        Term::NamedNode(n) => term::push_iri(n.as_str(), out),
        Term::BlankNode(b) => labels.push_parsed(b, out),
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
            push_object(labels, &t.object, depth + 1, out)?;
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
