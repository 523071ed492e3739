//! The interpreter of compiled expressions.

mod relation;

use super::code::{Call, Code, SlowPart};
use super::numbers::Known;
use super::patterns::Patterns;
use super::slow::Slow;
use super::val::{Num, Span, Text, Val};
use crate::batch::{Charge, View};
use crate::explore::Run;
use crate::filter::{Value, dictionary};
use jindou_dictionary::{NAN_RANK, NO_RANK, Number};
use jindou_model::term::{self, Parts};
use jindou_model::{FIRST_QUERY_ID, FIRST_TAIL_ID, Result, VertexId};
use jindou_plan::TermTest;
use rustc_hash::FxHashMap;

/// Error or value.
pub(crate) type Maybe = Option<Val>;

/// Ids of numbers and booleans made before; beyond so many, all are forgotten.
const MADE: usize = 1 << 16;

/// One row of a batch.
#[derive(Clone, Copy)]
pub(crate) struct Row<'v> {
    pub rows: View<'v>,
    pub row: usize,
}

impl Row<'_> {
    #[inline]
    pub fn id(self, v: Value) -> u32 {
        v.at(self.rows, self.row)
    }
}

/// What the interpreter works with, apart from the code.
pub(crate) struct Machine {
    /// Text of the row's values, cleared before each row.
    pub(super) arena: Vec<u8>,
    constants: Vec<Val>,
    /// Where the constants' text ends: the arena is cut back to this.
    fixed: usize,
    pub(super) slow: Vec<SlowPart>,
    /// Operators on terms that have no code: dates, durations, foreign datatypes.
    relations: [Option<Box<Slow>>; 3],
    pub(super) term: Vec<u8>,
    made: FxHashMap<(u8, u128), u32>,
    /// For the arena, once it is large.
    pub(super) charge: Charge,
    /// Patterns of rows; taken while one of them works.
    pub(super) patterns: Option<Box<Patterns>>,
    numbers: Known,
}

impl Machine {
    pub fn new(constants: &[Vec<u8>], slow: Vec<SlowPart>, run: &Run<'_>) -> Self {
        let mut m = Self {
            arena: vec![],
            constants: vec![],
            fixed: 0,
            slow,
            relations: [None, None, None],
            term: vec![],
            made: FxHashMap::default(),
            charge: Charge::new(run.budget),
            patterns: Some(Box::new(Patterns::new(run.budget))),
            numbers: Known::new(run),
        };
        m.constants = constants
            .iter()
            .map(|bytes| match run.snapshot.lookup(bytes) {
                Some(v) => Val::Id(v.0),
                None => match m.value_of(bytes) {
                    Some(v) => v,
                    None => Val::Term(m.push(bytes)),
                },
            })
            .collect();
        // Numbers need no look at the dictionary, even if it has them.
        for (i, bytes) in constants.iter().enumerate() {
            if let Some(v) = m.number_of(bytes) {
                m.constants[i] = v;
            }
        }
        m.fixed = m.arena.len();
        m
    }

    /// A number of canonical bytes whose canonical form is these bytes: then nothing is lost by computing with it.
    fn number_of(&mut self, bytes: &[u8]) -> Option<Val> {
        let Some(Parts::Coded(lexical, tag)) = term::parts(bytes) else {
            return None;
        };
        let n = Num::of(Number::parse(tag, lexical)?)?;
        self.term.clear();
        n.push(&mut self.term);
        (self.term == bytes).then_some(Val::Num(n))
    }

    /// A value of bytes for which there is no id.
    fn value_of(&mut self, bytes: &[u8]) -> Maybe {
        match term::parts(bytes)? {
            Parts::String(s) => Some(self.text(s.as_bytes(), None)),
            Parts::Lang(s, lang) if !lang.contains("--") => {
                let lang = self.push(lang.as_bytes());
                Some(self.text(s.as_bytes(), Some(lang)))
            }
            Parts::Coded(..) => self.number_of(bytes),
            _ => None,
        }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) -> Span {
        let start = self.arena.len() as u32;
        self.arena.extend_from_slice(bytes);
        Span {
            start,
            end: self.arena.len() as u32,
        }
    }

    pub(super) fn text(&mut self, bytes: &[u8], lang: Option<Span>) -> Val {
        let text = self.push(bytes);
        Val::Text(Text { text, lang })
    }

    #[inline]
    pub(super) fn bytes(&self, s: Span) -> &[u8] {
        self.arena
            .get(s.start as usize..s.end as usize)
            .unwrap_or(&[])
    }

    pub(super) fn str(&self, s: Span) -> &str {
        // The arena holds text that was UTF-8 when it came; damage makes it empty.
        std::str::from_utf8(self.bytes(s)).unwrap_or("")
    }

    /// Ready for the next row.
    #[inline]
    pub fn clear(&mut self) {
        self.arena.truncate(self.fixed);
    }

    /// Puts a term's canonical bytes into `self.term`.
    pub(super) fn load(&mut self, run: &Run<'_>, id: u32) {
        self.term.clear();
        let v = VertexId(id);
        if id >= FIRST_QUERY_ID {
            run.terms.term(v, &mut self.term);
        } else {
            run.snapshot.term(v, &mut self.term);
        }
    }

    /// The tag of a term.
    pub(super) fn tag(&mut self, run: &Run<'_>, id: u32) -> Option<u8> {
        if id < FIRST_TAIL_ID {
            return dictionary(run.snapshot).tag(VertexId(id));
        }
        self.load(run, id);
        self.term.first().copied()
    }

    /// The value of a numeric literal.
    pub(super) fn number(&mut self, run: &Run<'_>, v: Val) -> Option<Num> {
        match v {
            Val::Num(n) => Some(n),
            Val::Id(id) => self.number_by_id(run, id),
            Val::Bool(_) | Val::Text(_) => None,
            Val::Term(s) => number_of_bytes(self.bytes(s)),
        }
    }

    /// The value of a numeric literal by id.
    #[inline]
    pub(super) fn number_by_id(&mut self, run: &Run<'_>, id: u32) -> Option<Num> {
        self.numbers.number(run, id, &mut self.term)
    }

    /// A constant that is a number to compute with.
    pub(super) fn constant_number(&self, n: usize) -> Option<Num> {
        match self.constants.get(n) {
            Some(Val::Num(n)) => Some(*n),
            _ => None,
        }
    }

    /// The effective boolean value.
    pub(super) fn truth(&mut self, run: &Run<'_>, v: Val) -> Option<bool> {
        match v {
            Val::Bool(b) => return Some(b),
            Val::Num(n) => return Some(n.truth()),
            Val::Text(t) => {
                return t.lang.is_none().then_some(t.text.end > t.text.start);
            }
            Val::Id(id) => self.load(run, id),
            Val::Term(s) => {
                self.term.clear();
                let (from, to) = (s.start as usize, s.end as usize);
                self.term
                    .extend_from_slice(self.arena.get(from..to).unwrap_or(&[]));
            }
        }
        match term::parts(&self.term)? {
            Parts::String(s) => Some(!s.is_empty()),
            Parts::Coded(s, term::BOOLEAN_TAG) => boolean(s),
            Parts::Coded(..) => number_of_bytes(&self.term).map(Num::truth),
            _ => None,
        }
    }

    /// Canonical bytes, in `self.term`.
    pub(super) fn canonical(&mut self, run: &Run<'_>, v: Val) {
        match v {
            Val::Id(id) => self.load(run, id),
            Val::Bool(b) => {
                self.term.clear();
                self.term.push(term::BOOLEAN_TAG);
                self.term
                    .extend_from_slice(if b { b"true" } else { b"false" });
            }
            Val::Num(n) => {
                self.term.clear();
                n.push(&mut self.term);
            }
            Val::Text(t) => {
                self.term.clear();
                let part = |s: Span| {
                    self.arena
                        .get(s.start as usize..s.end as usize)
                        .unwrap_or(&[])
                };
                match t.lang {
                    None => self.term.push(term::STRING),
                    Some(lang) => {
                        self.term.push(term::LANG);
                        self.term.extend_from_slice(part(lang));
                        self.term.push(0);
                    }
                }
                self.term.extend_from_slice(part(t.text));
            }
            Val::Term(s) => {
                self.term.clear();
                let part = self
                    .arena
                    .get(s.start as usize..s.end as usize)
                    .unwrap_or(&[]);
                self.term.extend_from_slice(part);
            }
        }
    }

    /// The id of a value.
    pub fn id(&mut self, run: &Run<'_>, v: Val) -> Result<u32> {
        let key = match v {
            Val::Id(id) => return Ok(id),
            Val::Bool(b) => Some((0, u128::from(b))),
            Val::Num(Num::Int(i)) => Some((1, i64::from(i) as u128)),
            Val::Num(Num::Dec(d)) => Some((2, u128::from_be_bytes(d.to_be_bytes()))),
            Val::Num(Num::Dbl(d)) => Some((3, u128::from(f64::from(d).to_bits()))),
            Val::Num(Num::Flt(f)) => Some((4, u128::from(f32::from(f).to_bits()))),
            Val::Text(_) | Val::Term(_) => None,
        };
        if let Some(key) = key
            && let Some(&id) = self.made.get(&key)
        {
            return Ok(id);
        }
        self.canonical(run, v);
        let id = run.terms.resolve(run.snapshot, &self.term, run.budget)?.0;
        if let Some(key) = key {
            if self.made.len() >= MADE {
                self.made.clear();
            }
            self.made.insert(key, id);
        }
        Ok(id)
    }

    /// The value of `code` for one row.
    pub fn eval(&mut self, run: &Run<'_>, code: &Code, at: Row<'_>) -> Result<Maybe> {
        Ok(match code {
            Code::Error => None,
            Code::Var(v) => match at.id(*v) {
                0 => None,
                id => Some(Val::Id(id)),
            },
            Code::Const(n) => self.constants.get(*n).copied(),
            Code::Bound(v) => Some((at.id(*v) != 0).into()),
            Code::Or(parts) => self.any(run, parts, at, true)?,
            Code::And(parts) => self.any(run, parts, at, false)?,
            Code::Not(a) => match self.eval(run, a, at)? {
                Some(v) => self.truth(run, v).map(|b| (!b).into()),
                None => None,
            },
            Code::Equal(a, b) => {
                let (Some(a), Some(b)) = (self.eval(run, a, at)?, self.eval(run, b, at)?) else {
                    return Ok(None);
                };
                self.equal(run, a, b)?.map(Val::from)
            }
            Code::Same(a, b) => {
                let (Some(a), Some(b)) = (self.eval(run, a, at)?, self.eval(run, b, at)?) else {
                    return Ok(None);
                };
                Some((self.id(run, a)? == self.id(run, b)?).into())
            }
            Code::Order(relation, a, b) => {
                let (Some(a), Some(b)) = (self.eval(run, a, at)?, self.eval(run, b, at)?) else {
                    return Ok(None);
                };
                self.ordered(run, *relation, a, b)?.map(Val::from)
            }
            Code::In(a, list) => {
                let Some(a) = self.eval(run, a, at)? else {
                    return Ok(None);
                };
                let mut failed = false;
                for item in list {
                    let equal = match self.eval(run, item, at)? {
                        Some(b) => self.equal(run, a, b)?,
                        None => None,
                    };
                    match equal {
                        Some(true) => return Ok(Some(true.into())),
                        Some(false) => {}
                        None => failed = true,
                    }
                }
                (!failed).then_some(false.into())
            }
            Code::Arithmetic(op, a, b) => {
                let (Some(a), Some(b)) = (self.eval(run, a, at)?, self.eval(run, b, at)?) else {
                    return Ok(None);
                };
                match (self.number(run, a), self.number(run, b)) {
                    (Some(a), Some(b)) => a.compute(*op, b).map(Val::Num),
                    _ => None,
                }
            }
            Code::Plus(a) => match self.eval(run, a, at)? {
                Some(v) => self.number(run, v).map(Val::Num),
                None => None,
            },
            Code::Minus(a) => match self.eval(run, a, at)? {
                Some(v) => self.number(run, v).and_then(Num::negate).map(Val::Num),
                None => None,
            },
            Code::If(parts) => {
                let [test, yes, no] = &**parts;
                let test = match self.eval(run, test, at)? {
                    Some(v) => self.truth(run, v),
                    None => None,
                };
                match test {
                    Some(true) => self.eval(run, yes, at)?,
                    Some(false) => self.eval(run, no, at)?,
                    None => None,
                }
            }
            Code::Coalesce(list) => {
                for item in list {
                    if let Some(v) = self.eval(run, item, at)? {
                        return Ok(Some(v));
                    }
                }
                None
            }
            Code::Kind(test, a) => self
                .eval(run, a, at)?
                .map(|v| self.kind(run, v, *test).into()),
            Code::Call(call, list) => self.call(run, *call, list, at)?,
            Code::Regex(a, regex) => {
                let text = match self.eval(run, a, at)? {
                    Some(v) => self.as_text(run, v),
                    None => None,
                };
                text.map(|t| regex.is_match(self.str(t.text)).into())
            }
            Code::Matches(of) => self.matches(run, of, at)?,
            Code::Replace(r) => self.replace(run, r, at)?,
            Code::Iri(a, base) => {
                let Some(v) = self.eval(run, a, at)? else {
                    return Ok(None);
                };
                if self.kind(run, v, TermTest::Iri) {
                    return Ok(Some(v));
                }
                let text = match self.as_text(run, v) {
                    Some(t) if t.lang.is_none() => t.text,
                    _ => return Ok(None),
                };
                let text = self.str(text);
                let iri = match base {
                    Some(base) => base.resolve(text).ok(),
                    None => oxiri::Iri::parse(text.to_owned()).ok(),
                };
                iri.map(|iri| {
                    let mut bytes = vec![];
                    term::push_iri(iri.as_str(), &mut bytes);
                    Val::Term(self.push(&bytes))
                })
            }
            Code::Random => Some(Val::Num(Num::Dbl(rand::random::<f64>().into()))),
            Code::Cast(to, of, slow) => {
                let Some(v) = self.eval(run, of, at)? else {
                    return Ok(None);
                };
                match self.cast(run, *to, v) {
                    Some(known) => known,
                    None => {
                        let id = self.id(run, v)?;
                        self.slow_value(run, *slow, |_, ids| {
                            ids.push(id);
                            Ok(())
                        })?
                    }
                }
            }
            Code::Slow(n, arguments) => self.slow_value(run, *n, |it, ids| {
                for a in arguments {
                    let id = match it.eval(run, a, at)? {
                        Some(v) => it.id(run, v)?,
                        None => 0,
                    };
                    ids.push(id);
                }
                Ok(())
            })?,
        })
    }

    /// What `spareval` makes of the arguments, whose ids `fill` gives; 0 for one without a value.
    fn slow_value(
        &mut self,
        run: &Run<'_>,
        part: usize,
        fill: impl FnOnce(&mut Self, &mut Vec<u32>) -> Result<()>,
    ) -> Result<Maybe> {
        let mut ids = match self.slow.get_mut(part) {
            Some(part) => std::mem::take(&mut part.ids),
            None => return Ok(None),
        };
        ids.clear();
        fill(self, &mut ids)?;
        let Self { slow, arena, .. } = self;
        let Some(part) = slow.get_mut(part) else {
            return Ok(None);
        };
        let value = part.slow.value(run, &ids)?.map(|bytes| {
            let start = arena.len() as u32;
            arena.extend_from_slice(bytes);
            Val::Term(Span {
                start,
                end: arena.len() as u32,
            })
        });
        part.ids = ids;
        Ok(value)
    }

    /// OR (`decides` = true) and AND: one part that decides settles it, else an error does.
    fn any(&mut self, run: &Run<'_>, parts: &[Code], at: Row<'_>, decides: bool) -> Result<Maybe> {
        let mut failed = false;
        for part in parts {
            let truth = match self.eval(run, part, at)? {
                Some(v) => self.truth(run, v),
                None => None,
            };
            match truth {
                Some(b) if b == decides => return Ok(Some(b.into())),
                Some(_) => {}
                None => failed = true,
            }
        }
        Ok((!failed).then_some((!decides).into()))
    }

    fn call(&mut self, run: &Run<'_>, call: Call, list: &[Code], at: Row<'_>) -> Result<Maybe> {
        if call == Call::Concat {
            return self.concat(run, list, at);
        }
        let mut values = [None; 3];
        for (v, code) in values.iter_mut().zip(list) {
            *v = self.eval(run, code, at)?;
            if v.is_none() {
                return Ok(None);
            }
        }
        let [Some(first), second, third] = values else {
            return Ok(None);
        };
        Ok(match call {
            Call::Abs => self.number(run, first).and_then(Num::abs).map(Val::Num),
            Call::Ceil => self.number(run, first).and_then(Num::ceil).map(Val::Num),
            Call::Floor => self.number(run, first).and_then(Num::floor).map(Val::Num),
            Call::Round => self.number(run, first).and_then(Num::round).map(Val::Num),
            _ => {
                let before = self.arena.len();
                let value = self.text_call(run, call, first, second, third);
                self.grown(run, before)?;
                value
            }
        })
    }
}

pub(super) fn boolean(lexical: &str) -> Option<bool> {
    match lexical {
        "true" | "1" => Some(true),
        "false" | "0" => Some(false),
        _ => None,
    }
}

fn number_of_bytes(bytes: &[u8]) -> Option<Num> {
    match term::parts(bytes)? {
        Parts::Coded(lexical, tag) if term::NUMERIC_TAGS.contains(&tag) => {
            Num::of(Number::parse(tag, lexical)?)
        }
        _ => None,
    }
}

/// Doubles up to here hold every integer exactly.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// The value of a numeric literal by id: from the value columns where they hold it exactly, else from its text.
pub(crate) fn number_of_id(run: &Run<'_>, id: u32, scratch: &mut Vec<u8>) -> Option<Num> {
    if id < FIRST_TAIL_ID {
        let d = dictionary(run.snapshot);
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
            // Integers of any type come from whatever is none of the others.
            match [is(1), is(2), is(3)] {
                [false, false, false] if f.abs() < EXACT => {
                    return Some(Num::Int((f as i64).into()));
                }
                // Negative zero shares its rank with zero.
                [_, true, _] if f != 0.0 => return Some(Num::Dbl(f.into())),
                [_, _, true] if f != 0.0 => return Some(Num::Flt((f as f32).into())),
                _ => {}
            }
        }
    }
    scratch.clear();
    let v = VertexId(id);
    if id >= FIRST_QUERY_ID {
        run.terms.term(v, scratch);
    } else {
        run.snapshot.term(v, scratch);
    }
    number_of_bytes(scratch)
}
