//! Turns rows of a pattern into quads to remove and to insert (SPARQL 1.1 Update
//! 3.1.3). Works on ids: a term is decoded only if an expression created it, or if it must be checked that a subject is
//! not a literal.

use super::transaction::Transaction;
use jindou_engine::{QueryTerms, Sink, TermDecoder};
use jindou_model::{
    Charge, Direction, FIRST_QUERY_ID, Holder, MemoryBudget, NO_VERTEX, Result, VertexId, scope,
    term,
};
use jindou_plan::sparql::{
    BlankNode, Canonical, GraphNamePattern, GroundQuadPattern, GroundTermPattern, NamedNodePattern,
    QuadPattern, Term, TermPattern, TriplePattern, Variable,
};
use jindou_store::{ChangeTerm, Snapshot};
use rustc_hash::FxHashMap;
use std::mem::swap;

enum CompiledTerm {
    /// Id of a term in the store.
    Id(u32),
    /// A term that has no id in the store.
    New(Canonical),
    /// A variable, by its position in the list of the templates' variables.
    Variable(usize),
    /// A blank node, by its number in the template. Each row creates a new one.
    Blank(usize),
    /// A triple term that contains variables or blank nodes.
    Triple(Box<[CompiledTerm; 3]>),
}

/// A compiled template: a list of quads, each as subject, predicate, object and graph.
pub(super) struct TemplateQuads {
    quads: Vec<([CompiledTerm; 3], Option<CompiledTerm>)>,
    blanks: usize,
}

struct TemplateCompiler<'a> {
    snapshot: &'a Snapshot,
    variables: &'a mut Vec<Variable>,
    /// Position of each variable in `variables`.
    numbers: FxHashMap<Variable, usize>,
    blanks: FxHashMap<BlankNode, usize>,
    known: FxHashMap<Canonical, Option<u32>>,
}

impl<'a> TemplateCompiler<'a> {
    fn new(snapshot: &'a Snapshot, variables: &'a mut Vec<Variable>) -> Self {
        Self {
            snapshot,
            numbers: variables.iter().cloned().zip(0..).collect(),
            variables,
            blanks: FxHashMap::default(),
            known: FxHashMap::default(),
        }
    }

    fn known(&mut self, term: Canonical) -> CompiledTerm {
        let snapshot = self.snapshot;
        let known = self.known.entry(term.clone());
        // In a sharded store, all terms are looked up together when the changes are applied.
        let look = || match snapshot.as_sharded() {
            Some(_) => None,
            None => snapshot.lookup(&term).map(|id| id.0),
        };
        match known.or_insert_with(look) {
            Some(id) => CompiledTerm::Id(*id),
            None => CompiledTerm::New(term),
        }
    }

    fn variable(&mut self, v: &Variable) -> CompiledTerm {
        let next = self.variables.len();
        let number = *self.numbers.entry(v.clone()).or_insert(next);
        if number == next {
            self.variables.push(v.clone());
        }
        CompiledTerm::Variable(number)
    }

    fn predicate(&mut self, p: &NamedNodePattern) -> CompiledTerm {
        match p {
            NamedNodePattern::NamedNode(n) => self.known(n.canonical()),
            NamedNodePattern::Variable(v) => self.variable(v),
        }
    }

    fn graph(&mut self, g: &GraphNamePattern) -> Option<CompiledTerm> {
        match g {
            GraphNamePattern::DefaultGraph => None,
            GraphNamePattern::NamedNode(n) => Some(self.known(n.canonical())),
            GraphNamePattern::Variable(v) => Some(self.variable(v)),
        }
    }

    fn term(&mut self, t: &TermPattern) -> CompiledTerm {
        match t {
            TermPattern::NamedNode(n) => self.known(n.canonical()),
            TermPattern::Literal(l) => self.known(l.canonical().clone()),
            TermPattern::Variable(v) => self.variable(v),
            TermPattern::BlankNode(b) => {
                let next = self.blanks.len();
                CompiledTerm::Blank(*self.blanks.entry(b.clone()).or_insert(next))
            }
            TermPattern::Triple(t) => {
                let TriplePattern {
                    subject,
                    predicate,
                    object,
                } = &**t;
                CompiledTerm::Triple(Box::new([
                    self.term(subject),
                    self.predicate(predicate),
                    self.term(object),
                ]))
            }
        }
    }

    fn ground(&mut self, t: &GroundTermPattern) -> CompiledTerm {
        match t {
            GroundTermPattern::NamedNode(n) => self.known(n.canonical()),
            GroundTermPattern::Literal(l) => self.known(l.canonical().clone()),
            GroundTermPattern::Variable(v) => self.variable(v),
            GroundTermPattern::Triple(t) => CompiledTerm::Triple(Box::new([
                self.ground(&t.subject),
                self.predicate(&t.predicate),
                self.ground(&t.object),
            ])),
        }
    }
}

impl TemplateQuads {
    /// Compiles a DELETE template, and adds its variables to the list.
    pub(super) fn to_delete(
        quads: &[GroundQuadPattern],
        snapshot: &Snapshot,
        variables: &mut Vec<Variable>,
    ) -> Self {
        let mut c = TemplateCompiler::new(snapshot, variables);
        let quads = quads
            .iter()
            .map(|q| {
                let parts = [
                    c.ground(&q.subject),
                    c.predicate(&q.predicate),
                    c.ground(&q.object),
                ];
                (parts, c.graph(&q.graph_name))
            })
            .collect();
        Self { quads, blanks: 0 }
    }

    /// Compiles an INSERT template, and adds its variables to the list.
    pub(super) fn to_insert(
        quads: &[QuadPattern],
        snapshot: &Snapshot,
        variables: &mut Vec<Variable>,
    ) -> Self {
        let mut c = TemplateCompiler::new(snapshot, variables);
        let quads = quads
            .iter()
            .map(|q| {
                let parts = [
                    c.term(&q.subject),
                    c.predicate(&q.predicate),
                    c.term(&q.object),
                ];
                (parts, c.graph(&q.graph_name))
            })
            .collect();
        let blanks = c.blanks.len();
        Self { quads, blanks }
    }
}

/// Both templates of an operation, which refer to variables by number.
pub(super) struct Templates<'a> {
    pub(super) delete: &'a TemplateQuads,
    pub(super) insert: &'a TemplateQuads,
    pub(super) variables: &'a [Variable],
}

/// Receives the rows of the pattern. All removals are recorded before the first insertion, so that for a quad with both
/// the insertion wins.
pub(super) struct TemplateRows<'a> {
    delete: &'a TemplateQuads,
    insert: &'a TemplateQuads,
    /// Column of each template variable in the rows; `None` if the pattern does not bind it.
    columns: Vec<Option<usize>>,
    /// Rows whose insertions are recorded after all removals; unused if there are no removals.
    kept: KeptRows,
    maker: QuadMaker<'a>,
    tx: &'a mut Transaction,
}

/// Rows of ids that are kept for later, charged to the query's memory.
struct KeptRows {
    ids: Vec<u32>,
    rows: usize,
    charge: Charge,
}

impl KeptRows {
    /// Keeps a row: the ids of the templates' variables. Memory is charged before it is allocated.
    fn push(&mut self, row: &[u32]) -> Result<()> {
        let want = self.ids.len() + row.len();
        if want > self.ids.capacity() {
            let larger = want.max(self.ids.capacity() * 2).max(1024);
            let bytes = larger as u64 * 4;
            // During the copy, both the old and the new allocation exist.
            self.charge.add(bytes)?;
            self.ids.reserve_exact(larger - self.ids.len());
            self.charge.set(bytes)?;
        }
        self.ids.extend_from_slice(row);
        self.rows += 1;
        Ok(())
    }
}

impl<'a> TemplateRows<'a> {
    pub(super) fn new(
        templates: &Templates<'a>,
        columns: &[String],
        snapshot: &'a Snapshot,
        terms: &'a QueryTerms,
        budget: &MemoryBudget,
        tx: &'a mut Transaction,
    ) -> Self {
        let places: FxHashMap<&str, usize> = columns.iter().map(String::as_str).zip(0..).collect();
        let columns = templates.variables.iter();
        let columns = columns.map(|v| places.get(v.as_str()).copied()).collect();
        Self {
            delete: templates.delete,
            insert: templates.insert,
            columns,
            kept: KeptRows {
                ids: vec![],
                rows: 0,
                charge: Charge::new(Holder::Rest, budget),
            },
            maker: QuadMaker {
                snapshot,
                decoder: TermDecoder::new(snapshot, terms),
                row: vec![],
                blanks: vec![],
                made: Default::default(),
                quads: 0,
            },
            tx,
        }
    }

    /// Records the insertions of the kept rows.
    pub(super) fn finish(mut self) -> Result<()> {
        let width = self.columns.len();
        let ids = std::mem::take(&mut self.kept.ids);
        for r in 0..self.kept.rows {
            self.maker.row.clear();
            self.maker
                .row
                .extend_from_slice(&ids[r * width..(r + 1) * width]);
            self.maker.insert(self.insert, self.tx)?;
        }
        self.tx.check()
    }
}

impl Sink for TemplateRows<'_> {
    fn batch(&mut self, columns: &[&[u32]], rows: usize) -> Result<()> {
        // The transaction keeps these quads after the pattern's execution, so they are not charged to the pattern's
        // scope.
        scope::outside(|| self.record(columns, rows))
    }
}

impl TemplateRows<'_> {
    fn record(&mut self, columns: &[&[u32]], rows: usize) -> Result<()> {
        let both = !self.delete.quads.is_empty() && !self.insert.quads.is_empty();
        for r in 0..rows {
            self.maker.row.clear();
            self.maker.row.extend(self.columns.iter().map(|c| {
                c.and_then(|c| columns.get(c)?.get(r))
                    .copied()
                    .unwrap_or(NO_VERTEX)
            }));
            self.maker.delete(self.delete, self.tx)?;
            if both {
                self.kept.push(&self.maker.row)?;
            } else {
                self.maker.insert(self.insert, self.tx)?;
            }
        }
        self.tx.check()
    }
}

/// Instantiates the templates for one row at a time.
struct QuadMaker<'a> {
    snapshot: &'a Snapshot,
    decoder: TermDecoder<'a>,
    /// Ids of the templates' variables in the current row.
    row: Vec<u32>,
    /// Canonical bytes of the row's blank nodes, by number; empty if not created yet.
    blanks: Vec<Vec<u8>>,
    /// Canonical bytes of those terms of the current quad that have no id.
    made: [Vec<u8>; 4],
    /// Number of quads since the last check of deadline and memory.
    quads: usize,
}

/// Number of quads between two checks of deadline and memory; a single row may create a hundred thousand quads. Bytes
/// of terms count as well ([`BYTES_A_QUAD`]).
const QUADS: usize = 4096;
/// Number of bytes of terms that count as one quad.
const BYTES_A_QUAD: usize = 256;

/// Terms with at least this many bytes are charged before they are copied.
const LONG: usize = 1 << 16;
/// Number of copies of a long term: in the quad, whose buffer may be twice as large, and in the changes.
const COPIES: u64 = 4;

/// A term of the quad that is being created.
#[derive(Clone, Copy)]
enum TemplateValue {
    Id(u32),
    /// The canonical bytes are in `QuadMaker::made`, at the term's position in the quad.
    Bytes,
}

impl QuadMaker<'_> {
    /// Checks deadline and memory once every `QUADS` quads.
    fn step(&mut self, tx: &mut Transaction) -> Result<()> {
        self.quads += 1 + self.made.iter().map(Vec::len).sum::<usize>() / BYTES_A_QUAD;
        for bytes in self.made.iter_mut().filter(|b| b.capacity() > LONG) {
            *bytes = Vec::new();
        }
        if self.quads < QUADS {
            return Ok(());
        }
        self.quads = 0;
        tx.check()
    }

    fn delete(&mut self, quads: &TemplateQuads, tx: &mut Transaction) -> Result<()> {
        for (parts, graph) in &quads.quads {
            if let Some(made) = self.quad(parts, graph.as_ref(), false, tx)? {
                let ([s, p, o], g) = self.terms(&made);
                tx.changes.remove(s, p, o, g);
            }
            self.step(tx)?;
        }
        Ok(())
    }

    fn insert(&mut self, quads: &TemplateQuads, tx: &mut Transaction) -> Result<()> {
        self.blanks.iter_mut().for_each(Vec::clear);
        self.blanks.resize_with(quads.blanks, Vec::new);
        for (parts, graph) in &quads.quads {
            if let Some(made) = self.quad(parts, graph.as_ref(), true, tx)? {
                let ([s, p, o], g) = self.terms(&made);
                tx.changes.insert(s, p, o, g);
            }
            self.step(tx)?;
        }
        Ok(())
    }

    fn terms(
        &self,
        made: &[Option<TemplateValue>; 4],
    ) -> ([ChangeTerm<'_>; 3], Option<ChangeTerm<'_>>) {
        let term = |i: usize| match made[i] {
            Some(TemplateValue::Id(id)) => ChangeTerm::Id(id),
            _ => ChangeTerm::Bytes(&self.made[i]),
        };
        ([0, 1, 2].map(term), made[3].map(|_| term(3)))
    }

    /// Instantiates a quad for the current row. `None` if a variable has no value or, with `check`, a term is in a
    /// position where RDF does not allow it. Removals need no check, as such quads do not exist.
    fn quad(
        &mut self,
        parts: &[CompiledTerm; 3],
        graph: Option<&CompiledTerm>,
        check: bool,
        tx: &mut Transaction,
    ) -> Result<Option<[Option<TemplateValue>; 4]>> {
        let mut out = [None; 4];
        for (place, part) in parts.iter().chain(graph).enumerate() {
            let Some(made) = self.part(part, place, tx)? else {
                return Ok(None);
            };
            if check && place != 2 && !self.is_allowed_at(made, place)? {
                return Ok(None);
            }
            out[place] = Some(made);
        }
        Ok(Some(out))
    }

    /// True if RDF allows the term in this position: subject (0), predicate (1) or graph name (3).
    fn is_allowed_at(&mut self, made: TemplateValue, place: usize) -> Result<bool> {
        let tag = match made {
            TemplateValue::Bytes => self.made[place].first().copied(),
            TemplateValue::Id(id) => {
                // A vertex that the store already has in this position need not be decoded.
                let v = VertexId(id);
                if self.snapshot.predicate_of(v).is_some()
                    || (place == 0 && !self.snapshot.predicates_of(id, Direction::Out).is_empty())
                {
                    return Ok(true);
                }
                self.decoder.canonical(id)?.and_then(|t| t.first().copied())
            }
        };
        Ok(match tag {
            Some(term::IRI) => true,
            Some(term::BLANK) => place != 1,
            _ => false,
        })
    }

    fn part(
        &mut self,
        part: &CompiledTerm,
        place: usize,
        tx: &mut Transaction,
    ) -> Result<Option<TemplateValue>> {
        match part {
            CompiledTerm::Id(id) => return Ok(Some(TemplateValue::Id(*id))),
            CompiledTerm::Variable(n) => match self.row.get(*n).copied().unwrap_or(NO_VERTEX) {
                NO_VERTEX => return Ok(None),
                id if id < FIRST_QUERY_ID => return Ok(Some(TemplateValue::Id(id))),
                _ => {}
            },
            _ => {}
        }
        let mut bytes = std::mem::take(&mut self.made[place]);
        bytes.clear();
        let pushed = self.push(part, &mut bytes, tx);
        swap(&mut self.made[place], &mut bytes);
        Ok(pushed?.then_some(TemplateValue::Bytes))
    }

    /// Appends a term's canonical bytes; returns false if the term has no value in this row.
    fn push(
        &mut self,
        part: &CompiledTerm,
        out: &mut Vec<u8>,
        tx: &mut Transaction,
    ) -> Result<bool> {
        match part {
            CompiledTerm::Id(id) => self.push_id(*id, out, tx),
            CompiledTerm::New(bytes) => {
                charge_long(bytes, tx)?;
                out.extend_from_slice(bytes);
                Ok(true)
            }
            CompiledTerm::Variable(n) => {
                let id = self.row.get(*n).copied().unwrap_or(NO_VERTEX);
                self.push_id(id, out, tx)
            }
            CompiledTerm::Blank(n) => {
                let blank = &mut self.blanks[*n];
                if blank.is_empty() {
                    tx.labels.push(self.snapshot, blank);
                }
                out.extend_from_slice(blank);
                Ok(true)
            }
            CompiledTerm::Triple(parts) => {
                out.push(term::TRIPLE);
                for (place, part) in parts.iter().enumerate() {
                    let at = out.len();
                    out.extend_from_slice(&[0; 4]);
                    if !self.push(part, out, tx)? {
                        return Ok(false);
                    }
                    let tag = out.get(at + 4).copied();
                    let fits = match place {
                        0 => matches!(tag, Some(term::IRI | term::BLANK)),
                        1 => tag == Some(term::IRI),
                        _ => true,
                    };
                    if !fits {
                        return Ok(false);
                    }
                    let len = (out.len() - at - 4) as u32;
                    out[at..at + 4].copy_from_slice(&len.to_le_bytes());
                }
                Ok(true)
            }
        }
    }

    fn push_id(&mut self, id: u32, out: &mut Vec<u8>, tx: &mut Transaction) -> Result<bool> {
        let Some(bytes) = self.decoder.canonical(id)? else {
            return Ok(false);
        };
        charge_long(bytes, tx)?;
        out.extend_from_slice(bytes);
        Ok(true)
    }
}

/// Charges the copies of a long term before they are made.
fn charge_long(bytes: &[u8], tx: &mut Transaction) -> Result<()> {
    match bytes.len() < LONG {
        true => Ok(()),
        false => tx.check_for(COPIES * bytes.len() as u64),
    }
}

/// Appends a term's canonical bytes; `blank` writes the replacement of each of its blank nodes.
pub(super) fn push_renamed(
    t: &Term,
    blank: &mut impl FnMut(&BlankNode, &mut Vec<u8>),
    out: &mut Vec<u8>,
) {
    match t {
        Term::BlankNode(b) => blank(b, out),
        Term::Triple(t) => {
            out.push(term::TRIPLE);
            let subject = t.subject.clone().into();
            for part in [&subject, &t.predicate.clone().into(), &t.object] {
                let at = out.len();
                out.extend_from_slice(&[0; 4]);
                push_renamed(part, blank, out);
                let len = (out.len() - at - 4) as u32;
                out[at..at + 4].copy_from_slice(&len.to_le_bytes());
            }
        }
        Term::NamedNode(n) => out.extend_from_slice(&n.canonical()),
        Term::Literal(l) => out.extend_from_slice(l.canonical()),
    }
}
