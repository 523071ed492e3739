//! The interpreter of compiled expressions.

mod arithmetic;
pub(in crate::values) mod relation;

use super::code::{Call, Code, LONG};
use super::numbers::NumberCache;
use super::patterns::Patterns;
use super::regex::Searches;
use super::val::{ArenaSpan, ArenaText, AtRow, Val};
use crate::batch::{OperatorCharge, View};
use crate::eval::EvalContext;
use crate::filter::ValueSource;
use jindou_dictionary::{NAN_RANK, NO_RANK, StringCursor};
use jindou_model::term::{self, Parts};
use jindou_model::{Error, FIRST_QUERY_ID, Resource, Result, VertexId, iri};
use jindou_plan::TermTest;
use jindou_plan::sparql::{BaseIri, Canonical};
use jindou_values::{Num, Number, TemporalKind, truth};
use rustc_hash::FxHashMap;

/// A value; `None` is an error.
pub(crate) type Maybe = Option<Val>;

/// Number of cached ids of numbers and booleans from which on the cache is cleared.
const MADE: usize = 1 << 16;

/// Largest number of arguments for which a call allocates nothing.
const FEW_ARGUMENTS: usize = 4;

/// Length in bytes of the longest text that is parsed as an IRI; that takes a tenth of a second.
const LONGEST_IRI: usize = 16 << 20;

/// Length in bytes from which on a term's buffers are charged, and the deadline is checked after reading it.
const LARGE: usize = 1 << 18;

/// Bytes of terms that are read between two checks of the deadline; that takes one or two milliseconds.
const READ: usize = 8 << 20;

/// Capacity in bytes that buffers keep from one batch to the next.
const KEPT: usize = 1 << 12;

/// Total capacity of those of the buffers that hold a long term, in bytes.
fn copied(term: &Vec<u8>, other: &Vec<u8>, cursor: &StringCursor) -> usize {
    let each = [term.capacity(), other.capacity(), cursor.bytes()];
    each.into_iter().filter(|&bytes| bytes > LARGE).sum()
}

/// One row of a batch.
#[derive(Clone, Copy)]
pub(crate) struct BatchRow<'v> {
    pub rows: View<'v>,
    pub row: usize,
}

impl BatchRow<'_> {
    #[inline]
    pub fn id(self, v: ValueSource) -> u32 {
        v.at(self.rows, self.row)
    }
}

/// The state of the interpreter. Each compiled expression has its own.
pub(crate) struct Interpreter {
    /// Text of the row's values, cleared before each row.
    pub(super) arena: Vec<u8>,
    constants: Vec<Val>,
    /// Length of the constants' text at the beginning of the arena, which stays from row to row.
    fixed: usize,
    pub(super) term: Vec<u8>,
    /// The second of two terms that are compared.
    pub(super) other: Vec<u8>,
    /// The block of the dictionary that was read last.
    cursor: StringCursor,
    made: FxHashMap<(u8, u128), u32>,
    made_charge: OperatorCharge,
    /// Charge for the arena, once it is large.
    pub(super) charge: OperatorCharge,
    /// Charge for `term`, `other` and other copies of a text, once they are large.
    pub(super) copies: OperatorCharge,
    /// Error of a function that has no way to return it. `settle` or the next operation returns it; until then the
    /// value is an error.
    failed: Option<Error>,
    /// Cache of regular expressions that are computed by rows; `None` until there is one, and while one of them is
    /// used.
    pub(super) patterns: Option<Box<Patterns>>,
    pub(super) searches: Box<Searches>,
    /// Random seed from which `BNODE` derives blank nodes for the labels in this row; `None` until it is needed.
    pub(super) row_seed: Option<u64>,
    numbers: NumberCache,
    /// Bytes of terms read since the last check of the deadline: a row may compare a term of megabytes thousands of
    /// times.
    read: usize,
}

impl Interpreter {
    /// An interpreter without constants.
    pub fn empty(ctx: &EvalContext<'_>) -> Self {
        Self {
            arena: vec![],
            constants: vec![],
            fixed: 0,
            term: vec![],
            other: vec![],
            cursor: StringCursor::default(),
            made: FxHashMap::default(),
            made_charge: OperatorCharge::new(ctx.budget),
            charge: OperatorCharge::new(ctx.budget),
            copies: OperatorCharge::new(ctx.budget),
            failed: None,
            patterns: None,
            searches: Box::new(Searches::new(ctx.budget)),
            row_seed: None,
            numbers: NumberCache::new(ctx),
            read: 0,
        }
    }

    /// # Errors
    /// `Limit` if there is no memory for a long constant.
    pub fn new(constants: &[Canonical], ctx: &EvalContext<'_>) -> Result<Self> {
        let mut m = Self::empty(ctx);
        for bytes in constants {
            let value = match ctx.vocabulary.lookup(bytes) {
                Some(v) => Val::Id(v.0),
                // All interpreters of the query share one copy.
                None if bytes.len() >= LONG => {
                    Val::Id(ctx.terms.resolve(ctx.vocabulary, bytes, ctx.budget)?.0)
                }
                None => match m.value_of(bytes) {
                    Some(v) => v,
                    None => Val::Term(m.push(bytes)),
                },
            };
            m.constants.push(value);
        }
        // Numbers, dates and the like are computed with as values, even if the dictionary has them.
        for (i, bytes) in constants.iter().enumerate() {
            if let Some(v) = m.canonical_value(bytes) {
                m.constants[i] = v;
            }
        }
        m.fixed = m.arena.len();
        Ok(m)
    }

    /// The value of a literal, if the literal is the canonical form of its value, so that the value can replace it.
    fn canonical_value(&mut self, bytes: &[u8]) -> Maybe {
        use jindou_values::Value as V;
        let v = match jindou_values::value(bytes)? {
            V::Number(n) => Val::Num(n.small()?),
            V::Boolean(b) => Val::Bool(b),
            V::Temporal(t) => Val::Time(t),
            V::Duration(d) => Val::Duration(d),
            _ => return None,
        };
        self.term.clear();
        push_value(v, &mut self.term);
        (self.term == bytes).then_some(v)
    }

    /// The value of canonical bytes that have no id.
    fn value_of(&mut self, bytes: &[u8]) -> Maybe {
        match term::parts(bytes)? {
            Parts::String(s) => Some(self.text(s.as_bytes(), None)),
            Parts::Lang(s, lang) if !lang.contains("--") => {
                let lang = self.push(lang.as_bytes());
                Some(self.text(s.as_bytes(), Some(lang)))
            }
            Parts::Coded(..) => self.canonical_value(bytes),
            _ => None,
        }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) -> ArenaSpan {
        let start = self.arena.len() as u32;
        if self.arena.capacity() - self.arena.len() < bytes.len() && !self.has_room(bytes.len()) {
            return ArenaSpan { start, end: start };
        }
        self.arena.extend_from_slice(bytes);
        ArenaSpan {
            start,
            end: self.arena.len() as u32,
        }
    }

    /// Appends the output of `write` to the arena.
    pub(super) fn write(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> ArenaSpan {
        let start = self.arena.len() as u32;
        write(&mut self.arena);
        ArenaSpan {
            start,
            end: self.arena.len() as u32,
        }
    }

    /// Moves the bytes that [`Self::canonical`] has written out of the interpreter; [`Self::put_canonical`] moves the
    /// buffer back.
    pub(super) fn take_canonical(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.term)
    }

    pub(super) fn put_canonical(&mut self, held: Vec<u8>) {
        self.term = held;
    }

    pub(super) fn text(&mut self, bytes: &[u8], lang: Option<ArenaSpan>) -> Val {
        let text = self.push(bytes);
        Val::Text(ArenaText { text, lang })
    }

    #[inline]
    pub(super) fn bytes(&self, s: ArenaSpan) -> &[u8] {
        &self.arena[s.start as usize..s.end as usize]
    }

    pub(super) fn str(&self, s: ArenaSpan) -> &str {
        // The arena has text that was UTF-8 when it was stored. Text of a damaged store is treated as empty.
        std::str::from_utf8(self.bytes(s)).unwrap_or("")
    }

    /// Resets the interpreter for the next row.
    #[inline]
    pub fn clear(&mut self) {
        self.arena.truncate(self.fixed);
        self.row_seed = None;
    }

    /// Charges twice the capacity of the cache of ids; if that is too much, clears the cache.
    fn make_room(&mut self) {
        const EACH: usize = size_of::<((u8, u128), u32)>() + 1;
        let most = (2 * self.made.capacity()).clamp(8, 2 * MADE);
        if self.made.len() >= MADE || self.made_charge.set(most * 2 * EACH).is_err() {
            self.made.clear();
        }
    }

    /// Records the error of a function. The next operation, or `settle` at the end of the row, returns it.
    #[cold]
    pub(super) fn fail(&mut self, e: Error) {
        self.failed.get_or_insert(e);
        self.read = READ;
    }

    /// Checks the deadline, and returns the error that a function has recorded.
    #[cold]
    #[inline(never)]
    fn look(&mut self, ctx: &EvalContext<'_>) -> Result<()> {
        self.read = 0;
        match self.failed.take() {
            Some(e) => Err(e),
            None => ctx.check(),
        }
    }

    /// Must be called when a row's value has been used.
    ///
    /// # Errors
    /// The error that a function has recorded; `Cancelled`, `Timeout`.
    #[inline]
    pub fn settle(&mut self, ctx: &EvalContext<'_>) -> Result<()> {
        match self.read < READ {
            true => Ok(()),
            false => self.look(ctx),
        }
    }

    /// Reserves this many more bytes in the arena. If there is no memory, records the error and returns false.
    #[cold]
    #[inline(never)]
    pub(super) fn has_room(&mut self, more: usize) -> bool {
        self.room(more).map_err(|e| self.fail(e)).is_ok()
    }

    /// Releases the memory of long texts. Only one of a query's many interpreters is active at a time.
    pub fn trim(&mut self) {
        for text in [&mut self.term, &mut self.other] {
            if text.capacity() > KEPT {
                *text = vec![];
            }
        }
        if self.cursor.bytes() > KEPT {
            self.cursor = StringCursor::default();
        }
        if self.arena.capacity() > self.fixed + KEPT {
            self.arena.truncate(self.fixed);
            self.arena.shrink_to_fit();
            // Releasing never fails.
            let _ = self.charge.set(0);
        }
        if self.copies.bytes() > 0 {
            let _ = self.copies.set(0);
        }
    }

    /// Copies a term's canonical bytes to `self.term`.
    pub(super) fn load(&mut self, ctx: &EvalContext<'_>, id: u32) {
        self.term.clear();
        let v = VertexId(id);
        if id >= FIRST_QUERY_ID {
            let Self {
                term,
                other,
                cursor,
                copies,
                failed,
                ..
            } = self;
            ctx.terms.with(v, |bytes| {
                let room = match bytes.len() <= LARGE {
                    true => Ok(()),
                    false => copies.set(copied(term, other, cursor) + bytes.len()),
                };
                match room {
                    Ok(()) => term.extend_from_slice(bytes),
                    Err(e) => *failed = Some(e),
                }
            });
        } else {
            ctx.vocabulary
                .term_near(v, &mut self.cursor, &mut self.term);
        }
        self.note_read();
    }

    /// Counts the bytes in `term` as read. If they are many, charges the buffers and has the deadline checked.
    #[inline]
    fn note_read(&mut self) {
        self.read += self.term.len();
        if self.term.len() > LARGE || self.failed.is_some() {
            self.read = READ;
            let held = copied(&self.term, &self.other, &self.cursor);
            if let Err(e) = self.copies.set(held) {
                self.fail(e);
            }
        }
    }

    /// The tag of a term, the first of its canonical bytes; `None` for an id without a term.
    pub(super) fn tag(&mut self, ctx: &EvalContext<'_>, id: u32) -> Option<u8> {
        if let Some(ranks) = ctx.vocabulary.ranks_of(id) {
            return ranks.tag(VertexId(id));
        }
        self.load(ctx, id);
        self.term.first().copied()
    }

    /// The value of a numeric literal, if it is a small number.
    pub(super) fn number(&mut self, ctx: &EvalContext<'_>, v: Val) -> Option<Num> {
        match v {
            Val::Num(n) => Some(n),
            Val::Id(id) => self.number_by_id(ctx, id),
            Val::Term(s) => number_of_bytes(self.bytes(s))?.small(),
            Val::Bool(_) | Val::Text(_) | Val::Time(_) | Val::Duration(_) => None,
        }
    }

    /// The value of the numeric literal with this id, if it is a small number.
    #[inline]
    pub(super) fn number_by_id(&mut self, ctx: &EvalContext<'_>, id: u32) -> Option<Num> {
        self.numbers.number(ctx, id, &mut self.term)
    }

    /// The value of a constant, if it is a small number.
    pub(super) fn constant_number(&self, n: usize) -> Option<Num> {
        match self.constants.get(n) {
            Some(Val::Num(n)) => Some(*n),
            _ => None,
        }
    }

    /// The effective boolean value (SPARQL 1.1 §17.2.2); `None` for an error.
    pub(super) fn truth(&mut self, ctx: &EvalContext<'_>, v: Val) -> Option<bool> {
        match v {
            Val::Bool(b) => Some(b),
            Val::Num(n) => Some(n.truth()),
            Val::Text(t) => Some(t.text.end > t.text.start),
            Val::Time(_) | Val::Duration(_) => None,
            Val::Id(_) | Val::Term(_) => {
                self.canonical(ctx, v);
                truth(&jindou_values::value(&self.term)?)
            }
        }
    }

    /// The bytes that [`Self::canonical`] has written.
    pub(super) fn canonical_bytes(&self) -> &[u8] {
        &self.term
    }

    /// Writes a value's canonical bytes to `self.term`.
    pub(super) fn canonical(&mut self, ctx: &EvalContext<'_>, v: Val) {
        match v {
            Val::Id(id) => self.load(ctx, id),
            Val::Bool(_) | Val::Num(_) | Val::Time(_) | Val::Duration(_) => {
                self.term.clear();
                push_value(v, &mut self.term);
            }
            Val::Text(t) => {
                self.term.clear();
                let part = |s: ArenaSpan| &self.arena[s.start as usize..s.end as usize];
                match t.lang {
                    None => self.term.push(term::STRING),
                    Some(lang) => {
                        self.term.push(term::LANG);
                        self.term.extend_from_slice(part(lang));
                        self.term.push(0);
                    }
                }
                self.term.extend_from_slice(part(t.text));
                self.note_read();
            }
            Val::Term(s) => {
                self.term.clear();
                let part = &self.arena[s.start as usize..s.end as usize];
                self.term.extend_from_slice(part);
                self.note_read();
            }
        }
    }

    /// The id of a value; creates a query-local term if necessary.
    pub fn id(&mut self, ctx: &EvalContext<'_>, v: Val) -> Result<u32> {
        let key = match v {
            Val::Id(id) => return Ok(id),
            Val::Bool(b) => Some((0, u128::from(b))),
            Val::Num(Num::Int(i)) => Some((1, i as u128)),
            Val::Num(Num::Dec(d)) => Some((2, d.units() as u128)),
            Val::Num(Num::Dbl(d)) => Some((3, u128::from(d.to_bits()))),
            Val::Num(Num::Flt(f)) => Some((4, u128::from(f.to_bits()))),
            Val::Text(_) | Val::Term(_) | Val::Time(_) | Val::Duration(_) => None,
        };
        if let Some(key) = key
            && let Some(&id) = self.made.get(&key)
        {
            return Ok(id);
        }
        self.canonical(ctx, v);
        let id = ctx.terms.resolve(ctx.vocabulary, &self.term, ctx.budget)?.0;
        if let Some(key) = key {
            if self.made.len() == self.made.capacity() || self.made.len() >= MADE {
                self.make_room();
            }
            self.made.insert(key, id);
        }
        Ok(id)
    }

    /// The value of `code` in one row.
    pub fn eval(&mut self, ctx: &EvalContext<'_>, code: &Code, at: BatchRow<'_>) -> Result<Maybe> {
        if self.read >= READ {
            self.look(ctx)?;
        }
        Ok(match code {
            Code::Error => None,
            Code::Var(v) => match at.id(*v) {
                0 => None,
                id => Some(Val::Id(id)),
            },
            Code::Const(n) => self.constants.get(*n).copied(),
            Code::Bound(v) => Some((at.id(*v) != 0).into()),
            Code::Or(parts) => self.any(ctx, parts, at, true)?,
            Code::And(parts) => self.any(ctx, parts, at, false)?,
            Code::Not(a) => match self.eval(ctx, a, at)? {
                Some(v) => self.truth(ctx, v).map(|b| (!b).into()),
                None => None,
            },
            Code::Equal(a, b) => match self.operands(ctx, a, b, at)? {
                Some((a, b)) => self.equal(ctx, a, b).map(Val::from),
                None => None,
            },
            Code::Same(a, b) => match self.operands(ctx, a, b, at)? {
                Some((a, b)) => Some((self.id(ctx, a)? == self.id(ctx, b)?).into()),
                None => None,
            },
            Code::Order(relation, a, b) => match self.operands(ctx, a, b, at)? {
                Some((a, b)) => self.ordered(ctx, *relation, a, b).map(Val::from),
                None => None,
            },
            Code::OneOf(a, members) => match self.eval(ctx, a, at)? {
                Some(a) => members.have(self, ctx, a, at)?.map(Val::from),
                None => None,
            },
            Code::In(a, list) => match self.eval(ctx, a, at)? {
                Some(a) => self.equals_any(ctx, a, list, at)?,
                None => None,
            },
            Code::Arithmetic(op, a, b) => match self.operands(ctx, a, b, at)? {
                Some((a, b)) => self.compute(ctx, *op, a, b),
                None => None,
            },
            Code::Plus(a) => match self.eval(ctx, a, at)? {
                Some(v) => self.each_number(ctx, v, Some, |n| Some(n.clone())),
                None => None,
            },
            Code::Minus(a) => match self.eval(ctx, a, at)? {
                Some(v) => self.each_number(ctx, v, Num::negate, Number::negate),
                None => None,
            },
            Code::If(parts) => {
                let [test, yes, no] = &**parts;
                match self.eval(ctx, test, at)? {
                    Some(v) => match self.truth(ctx, v) {
                        Some(true) => self.eval(ctx, yes, at)?,
                        Some(false) => self.eval(ctx, no, at)?,
                        None => None,
                    },
                    None => None,
                }
            }
            Code::Coalesce(list) => {
                for item in list {
                    if let Some(v) = self.eval(ctx, item, at)? {
                        return Ok(Some(v));
                    }
                }
                None
            }
            Code::Kind(test, a) => self
                .eval(ctx, a, at)?
                .map(|v| self.kind(ctx, v, *test).into()),
            Code::Call(call, list) => self.call(ctx, *call, list, at)?,
            Code::Concat(list) => self.concat(ctx, list, at)?,
            Code::Regex(regex) => self.matches(ctx, regex, at)?.map(Val::from),
            Code::Replace(r) => self.replace(ctx, r, at)?,
            Code::Iri(a, base) => match self.eval(ctx, a, at)? {
                Some(v) => self.iri(ctx, v, base.as_deref())?,
                None => None,
            },
            Code::Random => Some(Val::Num(Num::Dbl(rand::random::<f64>()))),
            Code::Cast(to, of) => match self.eval(ctx, of, at)? {
                Some(v) => {
                    let before = self.arena.len();
                    let value = self.cast(ctx, *to, v);
                    self.grown(ctx, before)?;
                    value
                }
                None => None,
            },
            Code::Custom(call) => self.custom(ctx, call, at)?,
            Code::Fresh(fresh) => Some(self.fresh(*fresh)),
        })
    }

    /// The values of two operands; `None` if one of them is an error.
    #[inline(always)]
    fn operands(
        &mut self,
        ctx: &EvalContext<'_>,
        a: &Code,
        b: &Code,
        at: BatchRow<'_>,
    ) -> Result<Option<(Val, Val)>> {
        let (a, b) = (self.eval(ctx, a, at)?, self.eval(ctx, b, at)?);
        Ok(a.zip(b))
    }

    /// IN: true if the value equals one of these; otherwise an error if a comparison is one; otherwise false.
    fn equals_any(
        &mut self,
        ctx: &EvalContext<'_>,
        a: Val,
        list: &[Code],
        at: BatchRow<'_>,
    ) -> Result<Maybe> {
        let mut failed = false;
        for item in list {
            let equal = match self.eval(ctx, item, at)? {
                Some(b) => self.equal(ctx, a, b),
                None => None,
            };
            match equal {
                Some(true) => return Ok(Some(true.into())),
                Some(false) => {}
                None => failed = true,
            }
        }
        Ok((!failed).then_some(false.into()))
    }

    /// IRI(): the value itself if it is an IRI, otherwise the IRI that a string spells, resolved against the base if
    /// there is one.
    fn iri(&mut self, ctx: &EvalContext<'_>, v: Val, base: Option<&BaseIri>) -> Result<Maybe> {
        if self.kind(ctx, v, TermTest::Iri) {
            return Ok(Some(v));
        }
        let text = match self.as_text(ctx, v) {
            Some(t) if t.lang.is_none() => t.text,
            _ => return Ok(None),
        };
        let length = (text.end - text.start) as usize;
        if length > LONGEST_IRI {
            return Err(Error::limit(
                Resource::Memory,
                "an expression makes an IRI of more than 16 MiB",
            ));
        }
        let before = self.arena.len();
        self.room(base.map_or(0, |b| b.len()) + length + 1)?;
        let text = self.str(text);
        let resolved = match base {
            Some(base) => iri::resolve(base, text).ok(),
            None => oxiri::Iri::parse(text.to_owned())
                .ok()
                .map(|i| i.into_inner()),
        };
        let made = resolved.map(|iri| {
            self.term.clear();
            term::push_iri(&iri, &mut self.term);
            self.held_term()
        });
        self.grown(ctx, before)?;
        Ok(made)
    }

    /// The term whose canonical bytes are in `self.term`, as a value.
    pub(super) fn held_term(&mut self) -> Val {
        let held = std::mem::take(&mut self.term);
        let span = self.push(&held);
        self.term = held;
        Val::Term(span)
    }

    /// OR (`decides` is true) or AND (false): `decides` if a part has that value, otherwise an error if a part is one,
    /// otherwise the opposite.
    fn any(
        &mut self,
        ctx: &EvalContext<'_>,
        parts: &[Code],
        at: BatchRow<'_>,
        decides: bool,
    ) -> Result<Maybe> {
        let mut failed = false;
        for part in parts {
            let before = self.arena.len();
            let truth = match self.eval(ctx, part, at)? {
                Some(v) => self.truth(ctx, v),
                None => None,
            };
            // The part's text is no longer needed.
            self.arena.truncate(before);
            match truth {
                Some(b) if b == decides => return Ok(Some(b.into())),
                Some(_) => {}
                None => failed = true,
            }
        }
        Ok((!failed).then_some((!decides).into()))
    }

    fn call(
        &mut self,
        ctx: &EvalContext<'_>,
        call: Call,
        list: &[Code],
        at: BatchRow<'_>,
    ) -> Result<Maybe> {
        let mut few = [Val::Bool(false); FEW_ARGUMENTS];
        let mut many;
        let values = match few.get_mut(..list.len()) {
            Some(values) => values,
            None => {
                many = vec![Val::Bool(false); list.len()];
                &mut many[..]
            }
        };
        for (v, code) in values.iter_mut().zip(list) {
            match self.eval(ctx, code, at)? {
                Some(value) => *v = value,
                None => return Ok(None),
            }
        }
        let [first, rest @ ..] = &*values else {
            return Ok(None);
        };
        Ok(match call {
            Call::Encode => self.encode(ctx, *first)?,
            Call::Hash(hash) => self.hash(ctx, hash, *first)?,
            Call::Make(made) => self.make(ctx, made, *first, rest)?,
            Call::Scalar(function) => {
                let before = self.arena.len();
                let value = function.row(&mut AtRow { machine: self, ctx }, values);
                self.grown(ctx, before)?;
                value
            }
        })
    }
}

/// Appends the canonical bytes of a value that is neither text nor a term.
fn push_value(v: Val, out: &mut Vec<u8>) {
    match v {
        Val::Bool(b) => {
            out.push(term::BOOLEAN_TAG);
            out.extend_from_slice(if b { b"true" } else { b"false" });
        }
        Val::Num(n) => n.push(out),
        Val::Time(t) => t.push(out),
        Val::Duration(d) => d.push(out),
        Val::Id(_) | Val::Text(_) | Val::Term(_) => {}
    }
}

pub(super) fn number_of_bytes(bytes: &[u8]) -> Option<Number> {
    match term::parts(bytes)? {
        Parts::Coded(lexical, tag) => Number::parse(tag, lexical),
        _ => None,
    }
}

/// Kind and instant of a date or time with a value rank, by id.
pub(super) fn instant_of_id(ctx: &EvalContext<'_>, id: u32) -> Option<(TemporalKind, i128)> {
    let d = ctx.vocabulary.ranks_of(id)?;
    let lex = d.lex(VertexId(id))?;
    let kind = TemporalKind::of_tag(d.tag_ranges().tag_of(lex)?)?;
    let instant = d.instant(kind, d.value_rank(lex))?;
    Some((kind, instant))
}

/// Up to this number, doubles represent every integer exactly.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// The value of a numeric literal by id, if it is a small number: taken from the columns of values if these represent
/// it exactly, otherwise parsed.
pub(crate) fn number_of_id(ctx: &EvalContext<'_>, id: u32, scratch: &mut Vec<u8>) -> Option<Num> {
    if let Some(d) = ctx.vocabulary.ranks_of(id) {
        let lex = d.lex(VertexId(id))?;
        if !d.tag_span(term::NUMERIC_TAGS).contains(&lex) {
            return None;
        }
        let rank = d.value_rank(lex);
        if rank == NO_RANK {
            return None;
        }
        if rank != NAN_RANK
            && let Some(f) = d.numeric_f64(rank)
        {
            let is = |kind: u8| d.tag_range(term::FIRST_DATATYPE + kind).contains(&lex);
            // `is(1)` to `is(3)` test for decimal, double and float. A literal of another numeric type is an integer.
            match [is(1), is(2), is(3)] {
                [false, false, false] if f.abs() < EXACT => {
                    return Some(Num::Int(f as i64));
                }
                // Negative zero has the same rank as zero, so zeros are parsed.
                [_, true, _] if f != 0.0 => return Some(Num::Dbl(f)),
                [_, _, true] if f != 0.0 => return Some(Num::Flt(f as f32)),
                _ => {}
            }
        }
    }
    long_number_of_id(ctx, id, scratch)?.small()
}

/// The value of a numeric literal of any length by id, parsed from its text.
pub(crate) fn long_number_of_id(
    ctx: &EvalContext<'_>,
    id: u32,
    scratch: &mut Vec<u8>,
) -> Option<Number> {
    scratch.clear();
    let v = VertexId(id);
    if id >= FIRST_QUERY_ID {
        ctx.terms.term(v, scratch);
    } else {
        ctx.vocabulary.term(v, scratch);
    }
    number_of_bytes(scratch)
}
