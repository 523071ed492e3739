//! CONSTRUCT and DESCRIBE: turning rows of ids into triples.

use crate::default_graph::DefaultGraph;
use crate::results::AnswerSink;
use jindou_dictionary::STRINGS_FILE;
use jindou_engine::{QueryTerms, Sink, TermDecoder};
use jindou_graph::Graph;
use jindou_model::{CancelToken, Charge, Error, Holder, MemoryBudget, Result, VertexId, term};
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
    given: Given,
    cancel: &'a CancelToken,
    /// Triples since the last look at the clock, and bytes of their terms.
    made: usize,
    written: usize,
    pub sink: &'a mut dyn AnswerSink,
    pub triples: u64,
}

/// Number of triples between two looks at the clock, and of bytes of their terms: one triple may have megabytes.
const LOOK: usize = 256;
const LOOK_BYTES: usize = 1 << 20;

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
            given: Given::new(budget),
            cancel,
            made: 0,
            written: 0,
            sink,
            triples: 0,
        }
    }

    /// `None` for a position without a term.
    fn term(&mut self, t: &TemplateTerm) -> Option<Term> {
        match t {
            TemplateTerm::Column(c) => self.row.get(*c).cloned().flatten(),
            TemplateTerm::Term(bytes) => {
                self.written += bytes.len();
                term::decode(bytes)
            }
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
            self.row.clear();
            self.blanks.clear();
            for (column, decoder) in columns.iter().zip(&mut self.decoders) {
                let id = column.get(r).copied().unwrap_or(0);
                self.row.push(decoder.term(id)?);
            }
            for parts in template {
                if self.made >= LOOK || self.written >= LOOK_BYTES {
                    (self.made, self.written) = (0, 0);
                    self.cancel.check()?;
                }
                self.made += 1;
                let Some(t) = self.triple(parts) else {
                    continue;
                };
                let is_new = self.given.is_new(&t);
                self.written += self.given.bytes.len();
                if is_new {
                    self.sink.triple(&t)?;
                    self.triples += 1;
                }
            }
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
    let mut given = Given::new(budget);
    let mut waiting: Vec<Term> = resources;
    waiting.reverse();
    let mut known: FxHashSet<Term> = waiting.iter().cloned().collect();
    let mut triples = 0;
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
            if given.is_new(&t) {
                sink.triple(&t)?;
                triples += 1;
            }
        }
        waiting.extend(blanks.into_iter().rev());
    }
    Ok(triples)
}
