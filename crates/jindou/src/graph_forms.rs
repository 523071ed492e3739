//! CONSTRUCT and DESCRIBE: turning rows of ids into triples.

use crate::default_graph::DefaultGraph;
use crate::results::{AnswerSink, term_length, triple_length as length};
use jindou_engine::{QueryTerms, Sink, TermDecoder};
use jindou_graph::Graph;
use jindou_model::{
    CancelToken, Charge, FIRST_QUERY_ID, Holder, MemoryBudget, Result, TextRoom, scope, term,
};
use jindou_plan::TemplateTerm;
use oxrdf::{BlankNode, NamedOrBlankNode, Term, Triple};
use rustc_hash::FxHashSet;
use xxhash_rust::xxh3::Xxh3Default;

/// Hashes of the triples returned so far, for removing duplicates. Once the query's memory is exhausted, no more hashes
/// are stored and later triples may repeat, which does not change the graph.
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

    /// Hashes a triple's canonical bytes. A long literal's text is hashed without copying it into the buffer.
    fn hash(&mut self, t: &Triple) -> u128 {
        self.bytes.clear();
        for part in [
            &Term::from(t.subject.clone()),
            &Term::from(t.predicate.clone()),
        ] {
            term::push_term(part, &mut self.bytes);
            self.bytes.push(0);
        }
        let text = match &t.object {
            Term::Literal(l) if l.value().len() >= LONG => {
                term::push_literal_head(l, &mut self.bytes);
                l.value()
            }
            object => {
                term::push_term(object, &mut self.bytes);
                ""
            }
        };
        let mut hasher = Xxh3Default::new();
        hasher.update(&self.bytes);
        hasher.update(text.as_bytes());
        if self.bytes.len() >= LONG {
            self.bytes = Vec::new();
        }
        hasher.digest128()
    }

    /// True for a triple that was not returned before; records it.
    fn is_new(&mut self, t: &Triple) -> bool {
        let hash = self.hash(t);
        if self.hashes.len() == self.hashes.capacity() && !self.full {
            // A full table doubles, and the old and the new table exist together while it is copied; 17 bytes per slot.
            let want = (2 * self.hashes.capacity()).max(64) as u64 * 17 * 3 / 2;
            match self.budget.charge(want.saturating_sub(self.charged)) {
                Ok(()) => self.charged = want.max(self.charged),
                Err(_) => self.full = true,
            }
        }
        match self.full {
            true => !self.hashes.contains(&hash),
            false => self.hashes.insert(hash),
        }
    }
}

impl Drop for Given {
    fn drop(&mut self) {
        self.budget.release(self.charged);
    }
}

/// Sink that instantiates a CONSTRUCT template for each row.
pub(crate) struct Construct<'a> {
    template: &'a [[TemplateTerm; 3]],
    decoders: Vec<TermReader<'a>>,
    snapshot: &'a dyn Graph,
    terms: &'a QueryTerms,
    /// Charge for the current row's terms.
    room: TextRoom,
    /// The current row's terms.
    row: Vec<Option<Term>>,
    /// For each blank node of the template, its replacement in the current row's triples.
    blanks: Vec<Option<BlankNode>>,
    out: TripleWriter<'a>,
}

/// Writes triples that were not written before. Long triples are charged while they are written, since serializers copy
/// and escape their terms.
pub(crate) struct TripleWriter<'a> {
    given: Given,
    cancel: &'a CancelToken,
    sink: &'a mut dyn AnswerSink,
    triples: u64,
}

/// Work of writing a triple in addition to its length, in bytes as [`scope::worked`] counts them.
const TRIPLE_WORK: usize = 1 << 12;
/// Triples of at least this many bytes are charged while they are written.
const LONG: usize = 1 << 16;
/// Largest number of copies of a term that exist while its row is processed.
const COPIES: u64 = 3;

impl<'a> TripleWriter<'a> {
    fn new(budget: &MemoryBudget, cancel: &'a CancelToken, sink: &'a mut dyn AnswerSink) -> Self {
        Self {
            given: Given::new(budget),
            cancel,
            sink,
            triples: 0,
        }
    }

    fn write(&mut self, triple: &Triple) -> Result<()> {
        let length = length(triple);
        scope::worked(TRIPLE_WORK + length)?;
        // Memory that the consumer allocates may outlive the query, so it is allocated outside the query's scope.
        let written = scope::outside(|| {
            let mut charge = Charge::new(Holder::Rest, &self.given.budget);
            if length >= LONG {
                charge.set(self.sink.bytes_held() * length as u64)?;
            }
            if self.given.is_new(triple) {
                self.triples += 1;
                self.sink.triple(triple)?;
            }
            Ok(())
        });
        // A serializer that the token has stopped returns an I/O error; the token has the true reason.
        written.or_else(|e| self.cancel.check().and(Err(e)))
    }
}

/// Decodes terms after charging their memory.
struct TermReader<'a> {
    decoder: TermDecoder<'a>,
    snapshot: &'a dyn Graph,
    terms: &'a QueryTerms,
}

impl<'a> TermReader<'a> {
    fn new(snapshot: &'a dyn Graph, terms: &'a QueryTerms) -> Self {
        Self {
            decoder: TermDecoder::new(snapshot, terms),
            snapshot,
            terms,
        }
    }

    /// A term and the bytes charged for it; `None` for id 0, which is unbound.
    fn read(&mut self, id: u32, room: &mut TextRoom) -> Result<(Option<Term>, u64)> {
        let length = self.decoder.canonical(id)?.map_or(0, <[u8]>::len);
        scope::worked(length)?;
        let bytes = COPIES * length as u64;
        room.take(bytes)?;
        let term = self.decoder.term(id)?;
        if length >= LONG {
            self.decoder = TermDecoder::new(self.snapshot, self.terms);
        }
        Ok((term, bytes))
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
            room: TextRoom::new(Holder::Rest, budget),
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

    /// Decodes a row's terms into `self.row`; returns the bytes charged for them.
    fn decode(&mut self, columns: &[&[u32]], row: usize) -> Result<u64> {
        self.row.clear();
        let mut charged = 0;
        for (column, reader) in columns.iter().zip(&mut self.decoders) {
            let id = column.get(row).copied().unwrap_or(0);
            let (term, bytes) = reader.read(id, &mut self.room)?;
            charged += bytes;
            self.row.push(term);
        }
        Ok(charged)
    }

    /// The value of a template term in the current row; `None` for a variable without a value.
    fn term(&mut self, t: &TemplateTerm) -> Result<Option<Term>> {
        Ok(match t {
            TemplateTerm::Column(c) => match self.row.get(*c) {
                Some(Some(term)) => {
                    scope::worked(term_length(term))?;
                    Some(term.clone())
                }
                _ => None,
            },
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
            TemplateTerm::Triple(parts) => {
                let triple = self.triple(parts)?;
                triple.map(|t| Term::Triple(Box::new(t)))
            }
        })
    }

    /// The triple of a template for the current row; `None` if the row does not yield one (SPARQL 1.1 §16.2).
    fn triple(&mut self, parts: &[TemplateTerm; 3]) -> Result<Option<Triple>> {
        let subject = match self.term(&parts[0])? {
            Some(Term::NamedNode(n)) => NamedOrBlankNode::from(n),
            Some(Term::BlankNode(b)) => b.into(),
            Some(Term::Literal(_) | Term::Triple(_)) | None => return Ok(None),
        };
        let Some(Term::NamedNode(predicate)) = self.term(&parts[1])? else {
            return Ok(None);
        };
        let object = self.term(&parts[2])?;
        Ok(object.map(|object| Triple::new(subject, predicate, object)))
    }
}

impl Sink for Construct<'_> {
    fn batch(&mut self, columns: &[&[u32]], rows: usize) -> Result<()> {
        if self.decoders.len() != columns.len() {
            self.decoders = columns
                .iter()
                .map(|_| TermReader::new(self.snapshot, self.terms))
                .collect();
        }
        let template = self.template;
        for r in 0..rows {
            self.blanks.clear();
            let charged = self.decode(columns, r)?;
            for parts in template {
                if let Some(triple) = self.triple(parts)? {
                    self.out.write(&triple)?;
                } else {
                    scope::worked(TRIPLE_WORK)?;
                }
            }
            self.room.release(charged);
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

/// Bytes charged per resource to describe: its id in a list and in a set, both of which may be doubling their capacity.
const RESOURCE: u64 = 64;

impl Sink for DescribedVertices {
    fn batch(&mut self, columns: &[&[u32]], rows: usize) -> Result<()> {
        for column in columns {
            for &id in column.iter().take(rows) {
                if id != 0 && self.seen.insert(id) {
                    self.ids.push(id);
                }
            }
        }
        self.charge()
    }
}

impl DescribedVertices {
    fn charge(&mut self) -> Result<()> {
        self.charge.set(self.seen.len() as u64 * RESOURCE)
    }
}

/// Writes the triples whose subject is one of the resources, and those whose subject is a blank node reached from them
/// (a *concise bounded description*). Returns the number of triples. O(triples written).
pub(crate) fn describe(
    mut resources: DescribedVertices,
    described: &DefaultGraph,
    (snapshot, terms): (&dyn Graph, &QueryTerms),
    cancel: &CancelToken,
    budget: &MemoryBudget,
    sink: &mut dyn AnswerSink,
) -> Result<u64> {
    let mut out = TripleWriter::new(budget, cancel, sink);
    let mut room = TextRoom::new(Holder::Rest, budget);
    let [mut subjects, mut predicates, mut objects] =
        [0, 1, 2].map(|_| TermReader::new(snapshot, terms));
    let mut waiting = std::mem::take(&mut resources.ids);
    waiting.reverse();
    while let Some(id) = waiting.pop() {
        cancel.check()?;
        // A term that the query computed is not in the store, so no triples describe it.
        if id >= FIRST_QUERY_ID {
            continue;
        }
        let (subject, charged) = subjects.read(id, &mut room)?;
        let subject = match subject {
            Some(Term::NamedNode(n)) => NamedOrBlankNode::from(n),
            Some(Term::BlankNode(b)) => b.into(),
            Some(Term::Literal(_) | Term::Triple(_)) | None => {
                room.release(charged);
                continue;
            }
        };
        let found = waiting.len();
        described.for_each_edge(snapshot, id, |predicate, id| {
            let (predicate, for_predicate) = predicates.read(predicate, &mut room)?;
            let (object, for_object) = objects.read(id, &mut room)?;
            if let (Some(Term::NamedNode(predicate)), Some(object)) = (predicate, object) {
                if matches!(object, Term::BlankNode(_)) && resources.seen.insert(id) {
                    waiting.push(id);
                    resources.charge()?;
                }
                out.write(&Triple::new(subject.clone(), predicate, object))?;
            }
            room.release(for_predicate + for_object);
            Ok(())
        })?;
        waiting[found..].reverse();
        room.release(charged);
    }
    Ok(out.triples)
}

#[cfg(test)]
mod tests {
    use super::{Given, LONG};
    use jindou_model::MemoryBudget;
    use oxrdf::{BaseDirection, Literal, NamedNode, Triple};

    #[test]
    fn long_literals_that_differ_are_different_triples() {
        let text = "a".repeat(LONG);
        let directed = |direction| {
            Literal::new_directional_language_tagged_literal_unchecked(&text, "ar", direction)
        };
        let mut given = Given::new(&MemoryBudget::unlimited());
        let objects = [
            Literal::new_simple_literal(&text),
            Literal::new_language_tagged_literal_unchecked(&text, "ar"),
            directed(BaseDirection::Ltr),
            directed(BaseDirection::Rtl),
            Literal::new_typed_literal(&text, NamedNode::new_unchecked("http://e/t")),
        ];
        let iri = NamedNode::new_unchecked("http://e/s");
        for expected in [objects.len(), 0] {
            let new = objects.iter().filter(|object| {
                given.is_new(&Triple::new(iri.clone(), iri.clone(), (*object).clone()))
            });
            assert_eq!(new.count(), expected);
        }
    }
}
