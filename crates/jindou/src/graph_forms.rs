//! CONSTRUCT and DESCRIBE: turning rows of ids into triples.

use crate::default_graph::DefaultGraph;
use crate::results::AnswerSink;
use jindou_dictionary::STRINGS_FILE;
use jindou_engine::{QueryTerms, Sink, TermDecoder};
use jindou_graph::Graph;
use jindou_model::{
    CancelToken, Charge, Error, Holder, MemoryBudget, Result, TextRoom, VertexId, scope, term,
};
use jindou_plan::TemplateTerm;
use oxrdf::{BlankNode, NamedOrBlankNode, Term, Triple};
use rustc_hash::FxHashSet;
use xxhash_rust::xxh3::xxh3_128;

/// Hashes of the triples returned so far, since a graph has each triple once. When the query's memory has no room for
/// more hashes, later triples may repeat, which every reader of a graph allows.
struct Given {
    hashes: FxHashSet<u128>,
    budget: MemoryBudget,
    charged: u64,
    full: bool,
    bytes: Vec<u8>,
}

impl Given {
    fn new(budget: &MemoryBudget) -> Self {
        Self {
            hashes: FxHashSet::default(),
            budget: budget.clone(),
            charged: 0,
            full: false,
            bytes: Vec::new(),
        }
    }

    /// True for a triple that was not returned yet.
    fn is_new(&mut self, t: &Triple) -> bool {
        self.bytes.clear();
        for part in [
            &Term::from(t.subject.clone()),
            &Term::from(t.predicate.clone()),
            &t.object,
        ] {
            term::push_term(part, &mut self.bytes);
            self.bytes.push(0);
        }
        let hash = xxh3_128(&self.bytes);
        if self.full {
            return !self.hashes.contains(&hash);
        }
        if !self.hashes.insert(hash) {
            return false;
        }
        // A table doubles, and for a moment the old and the new one exist together.
        let want = self.hashes.capacity() as u64 * 17 * 3 / 2;
        if want > self.charged {
            match self.budget.charge(want - self.charged) {
                Ok(()) => self.charged = want,
                Err(_) => self.full = true,
            }
        }
        true
    }
}

impl Drop for Given {
    fn drop(&mut self) {
        self.budget.release(self.charged);
    }
}

/// Fills a template with rows.
pub(crate) struct Construct<'a> {
    template: &'a [[TemplateTerm; 3]],
    decoders: Vec<TermDecoder<'a>>,
    snapshot: &'a dyn Graph,
    terms: &'a QueryTerms,
    /// The row's terms.
    row: Vec<Option<Term>>,
    /// The row's blank nodes.
    blanks: Vec<Option<BlankNode>>,
    out: TripleWriter<'a>,
}

/// Writes triples that were not written before, and charges long ones: a writer of RDF copies and escapes their terms.
pub(crate) struct TripleWriter<'a> {
    given: Given,
    cancel: &'a CancelToken,
    /// Memory of terms and triples on their way.
    room: TextRoom,
    sink: &'a mut dyn AnswerSink,
    triples: u64,
}

/// Work of writing a triple, in bytes.
const TRIPLE_WORK: usize = 1 << 12;
/// Bytes of a triple from which it is charged.
const LONG: usize = 1 << 16;
/// Copies of a term in a row and in its triple.
const COPIES: u64 = 3;
/// Bytes that a writer may hold for each byte of a triple: each may become an escape, in a vector that doubles.
const WRITTEN: u64 = 12;

impl<'a> TripleWriter<'a> {
    fn new(budget: &MemoryBudget, cancel: &'a CancelToken, sink: &'a mut dyn AnswerSink) -> Self {
        Self {
            given: Given::new(budget),
            cancel,
            room: TextRoom::new(Holder::Rest, budget),
            sink,
            triples: 0,
        }
    }

    fn write(&mut self, triple: &Triple) -> Result<()> {
        scope::worked(TRIPLE_WORK)?;
        if !self.given.is_new(triple) {
            return Ok(());
        }
        let length = self.given.bytes.len();
        let charged = if length < LONG {
            0
        } else {
            WRITTEN * length as u64
        };
        self.room.take(charged)?;
        // What the reader keeps outlives the query.
        let written = scope::outside(|| self.sink.triple(triple));
        if length >= LONG {
            self.given.bytes = Vec::new();
        }
        self.room.release(charged);
        self.triples += 1;
        // A writer that the token stopped only says that it cannot go on.
        written.or_else(|e| self.cancel.check().and(Err(e)))
    }
}

impl<'a> Construct<'a> {
    pub fn new(
        template: &'a [[TemplateTerm; 3]],
        snapshot: &'a dyn Graph,
        terms: &'a QueryTerms,
        budget: &MemoryBudget,
        cancel: &'a CancelToken,
        sink: &'a mut dyn AnswerSink,
    ) -> Self {
        Self {
            template,
            decoders: Vec::new(),
            snapshot,
            terms,
            row: Vec::new(),
            blanks: Vec::new(),
            out: TripleWriter::new(budget, cancel, sink),
        }
    }

    /// Ends the answer; returns the number of triples.
    pub fn finish(self) -> Result<u64> {
        self.out.sink.finish()?;
        Ok(self.out.triples)
    }

    /// Decodes a row's terms, each of which is charged before; returns the bytes charged.
    fn decode(&mut self, columns: &[&[u32]], row: usize) -> Result<u64> {
        self.row.clear();
        let mut charged = 0;
        for (column, decoder) in columns.iter().zip(&mut self.decoders) {
            let id = column.get(row).copied().unwrap_or(0);
            let Some(bytes) = decoder.canonical(id)? else {
                self.row.push(None);
                continue;
            };
            let length = bytes.len();
            scope::worked(length)?;
            self.out.room.take(COPIES * length as u64)?;
            charged += COPIES * length as u64;
            self.row.push(decoder.term(id)?);
            if length >= LONG {
                *decoder = TermDecoder::new(self.snapshot, self.terms);
            }
        }
        Ok(charged)
    }

    /// `None` for a position without a term.
    fn term(&mut self, t: &TemplateTerm) -> Option<Term> {
        match t {
            TemplateTerm::Column(c) => self.row.get(*c).cloned().flatten(),
            TemplateTerm::Term(bytes) => term::decode(bytes),
            TemplateTerm::Blank(n) => {
                if self.blanks.len() <= *n {
                    self.blanks.resize(n + 1, None);
                }
                Some(
                    self.blanks[*n]
                        .get_or_insert_with(BlankNode::default)
                        .clone()
                        .into(),
                )
            }
            TemplateTerm::Triple(parts) => Some(Term::Triple(Box::new(self.triple(parts)?))),
        }
    }

    /// `None` if the row does not yield a triple (SPARQL 1.1 §16.2).
    fn triple(&mut self, parts: &[TemplateTerm; 3]) -> Option<Triple> {
        let subject = match self.term(&parts[0])? {
            Term::NamedNode(n) => NamedOrBlankNode::from(n),
            Term::BlankNode(b) => b.into(),
            Term::Literal(_) | Term::Triple(_) => return None,
        };
        let Term::NamedNode(predicate) = self.term(&parts[1])? else {
            return None;
        };
        let object = self.term(&parts[2])?;
        Some(Triple::new(subject, predicate, object))
    }
}

impl Sink for Construct<'_> {
    fn batch(&mut self, columns: &[&[u32]], rows: usize) -> Result<()> {
        if self.decoders.len() != columns.len() {
            self.decoders = columns
                .iter()
                .map(|_| TermDecoder::new(self.snapshot, self.terms))
                .collect();
        }
        let template = self.template;
        for r in 0..rows {
            self.blanks.clear();
            let charged = self.decode(columns, r)?;
            for parts in template {
                if let Some(triple) = self.triple(parts) {
                    self.out.write(&triple)?;
                } else {
                    scope::worked(TRIPLE_WORK)?;
                }
            }
            self.out.room.release(charged);
        }
        Ok(())
    }
}

/// Collects the vertices to describe.
pub(crate) struct DescribedVertices {
    pub ids: Vec<u32>,
    seen: FxHashSet<u32>,
    charge: Charge,
}

impl DescribedVertices {
    pub fn new(budget: &MemoryBudget) -> Self {
        Self {
            ids: Vec::new(),
            seen: FxHashSet::default(),
            charge: Charge::new(Holder::Rest, budget),
        }
    }
}

/// Bytes charged for each resource to describe: its id and its term, each held twice.
const RESOURCE: u64 = 240;

impl Sink for DescribedVertices {
    fn batch(&mut self, columns: &[&[u32]], rows: usize) -> Result<()> {
        for column in columns {
            for &id in column.iter().take(rows) {
                if id != 0 && self.seen.insert(id) {
                    self.ids.push(id);
                }
            }
        }
        self.charge.set(self.ids.len() as u64 * RESOURCE)
    }
}

/// Writes the triples about the resources: those that have one as subject, and those about the blank nodes found on the
/// way (a *concise bounded description*). Returns their number. O(triples written).
pub(crate) fn describe(
    resources: Vec<Term>,
    described: &DefaultGraph,
    snapshot: &dyn Graph,
    cancel: &CancelToken,
    budget: &MemoryBudget,
    sink: &mut dyn AnswerSink,
) -> Result<u64> {
    let mut bytes = Vec::new();
    let mut decoded = |id: u32| {
        bytes.clear();
        snapshot
            .term(VertexId(id), &mut bytes)
            .then(|| term::decode(&bytes))
            .flatten()
            .ok_or_else(|| {
                Error::damaged(
                    STRINGS_FILE,
                    format!("damaged: it has no term {id}; `jindou check` shows where"),
                )
            })
    };
    let mut out = TripleWriter::new(budget, cancel, sink);
    let mut waiting: Vec<Term> = resources;
    waiting.reverse();
    let mut known: FxHashSet<Term> = waiting.iter().cloned().collect();
    while let Some(resource) = waiting.pop() {
        cancel.check()?;
        let subject = match &resource {
            Term::NamedNode(n) => NamedOrBlankNode::from(n.clone()),
            Term::BlankNode(b) => b.clone().into(),
            Term::Literal(_) | Term::Triple(_) => continue,
        };
        let Some(id) = snapshot.lookup(&term::encode(&resource)) else {
            continue;
        };
        let mut blanks = Vec::new();
        for (predicate, object) in described.edges_of(snapshot, id.0) {
            cancel.check()?;
            let Term::NamedNode(predicate) = decoded(predicate)? else {
                continue;
            };
            let object = decoded(object)?;
            if matches!(object, Term::BlankNode(_)) && known.insert(object.clone()) {
                blanks.push(object.clone());
            }
            let t = Triple::new(subject.clone(), predicate, object);
            out.write(&t)?;
        }
        waiting.extend(blanks.into_iter().rev());
    }
    Ok(out.triples)
}
