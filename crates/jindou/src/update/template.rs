//! Turns rows of a pattern into quads to remove and to insert (SPARQL 1.1 Update §3.1.3), by ids: a term is decoded
//! only if an expression made it, or if a subject could be a literal.

use super::transaction::Transaction;
use jindou_engine::{QueryTerms, Sink, TermDecoder};
use jindou_model::{
    Direction, FIRST_QUERY_ID, MemoryBudget, NO_VERTEX, Result, VertexId, scope, term,
};
use jindou_plan::sparql::{
    BlankNode, Canonical, GraphNamePattern, GroundQuadPattern, GroundTermPattern, NamedNodePattern,
    QuadPattern, Term, TermPattern, TriplePattern, Variable,
};
use jindou_store::{ChangeTerm, Snapshot};
use rustc_hash::FxHashMap;
use std::mem::swap;

/// A template's term.
enum CompiledTerm {
    /// An id of the store's.
    Id(u32),
    /// A term that the store does not have.
    New(Canonical),
    /// Number of a variable.
    Variable(usize),
    /// Number of a blank node, which is a new one in every row.
    Blank(usize),
    /// A triple term that contains variables or blank nodes.
    Triple(Box<[CompiledTerm; 3]>),
}

/// The quads of a template: subject, predicate, object, graph.
pub(super) struct TemplateQuads {
    quads: Vec<([CompiledTerm; 3], Option<CompiledTerm>)>,
    blanks: usize,
}

struct TemplateCompiler<'a> {
    snapshot: &'a Snapshot,
    variables: &'a mut Vec<Variable>,
    /// Numbers of the variables.
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
        // In a sharded store all terms are looked up together when the changes are applied.
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
    /// Compiles a DELETE template; its variables are added to the list.
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

    /// Compiles an INSERT template; its variables are added to the list.
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

/// Receives the rows of the pattern. All removals are recorded before the first insertion: for a quad with both, the
/// insertion wins.
pub(super) struct TemplateRows<'a> {
    delete: &'a TemplateQuads,
    insert: &'a TemplateQuads,
    /// The column of each variable in the templates.
    columns: Vec<Option<usize>>,
    /// Rows that wait for the insertions, if there are removals as well.
    kept: KeptRows,
    maker: QuadMaker<'a>,
    tx: &'a mut Transaction,
}

/// Rows of ids, charged to the query's memory.
struct KeptRows {
    ids: Vec<u32>,
    rows: usize,
    budget: MemoryBudget,
    charged: u64,
}

impl KeptRows {
    /// Keeps a row: the ids of its variables. Memory is charged first.
    fn push(&mut self, row: &[u32]) -> Result<()> {
        let want = self.ids.len() + row.len();
        if want > self.ids.capacity() {
            let larger = want.max(self.ids.capacity() * 2).max(1024);
            let bytes = larger as u64 * 4;
            // Growing copies the rows: for a moment both copies exist.
            self.budget.charge(bytes)?;
            self.ids.reserve_exact(larger - self.ids.len());
            self.budget.release(self.charged);
            self.charged = bytes;
        }
        self.ids.extend_from_slice(row);
        self.rows += 1;
        Ok(())
    }
}

impl Drop for KeptRows {
    fn drop(&mut self) {
        self.budget.release(self.charged);
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
                budget: budget.clone(),
                charged: 0,
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
        // The transaction keeps the quads after the pattern was executed: they are not charged to the pattern's scope.
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

/// Instantiates a template for one row after the other.
struct QuadMaker<'a> {
    snapshot: &'a Snapshot,
    decoder: TermDecoder<'a>,
    /// The values of the templates' variables.
    row: Vec<u32>,
    /// The row's blank nodes as canonical bytes; empty if not made yet.
    blanks: Vec<Vec<u8>>,
    /// Bytes of the quad's terms that have no id.
    made: [Vec<u8>; 4],
    /// Number of quads since the last check of clock and memory.
    quads: usize,
}

/// Number of quads between two checks of clock and memory: a row may create a hundred thousand. Bytes of their terms
/// count, too.
const QUADS: usize = 4096;
/// Number of bytes that take as long as a quad.
const BYTES_A_QUAD: usize = 256;

/// Length of a term that is charged before it is copied.
const LONG: usize = 1 << 16;
/// Copies of such a term: in the quad, which may double, and in the changes.
const COPIES: u64 = 4;

/// A term of the quad being made.
#[derive(Clone, Copy)]
enum TemplateValue {
    Id(u32),
    /// Its bytes are in `QuadMaker::made` at the term's position.
    Bytes,
}

impl QuadMaker<'_> {
    /// Checks clock and memory once every `QUADS` quads.
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

    /// `None` if the row does not make a quad: a variable has no value, or a term is in a position where RDF does not
    /// allow its kind. Removals need not be checked, as such quads do not exist.
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
            if check && place != 2 && !self.fits(made, place)? {
                return Ok(None);
            }
            out[place] = Some(made);
        }
        Ok(Some(out))
    }

    /// True if a term may be a subject (0), a predicate (1) or a graph's name (3).
    fn fits(&mut self, made: TemplateValue, place: usize) -> Result<bool> {
        let tag = match made {
            TemplateValue::Bytes => self.made[place].first().copied(),
            TemplateValue::Id(id) => {
                // A vertex already used in this position needs no look at its text.
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

    /// Appends a term's canonical bytes; false if it has no value in this row.
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

/// Appends a term's canonical bytes with other blank nodes in place of its own.
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
