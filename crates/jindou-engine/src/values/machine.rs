//! The interpreter of compiled expressions.

use super::code::{Call, Code, SlowPart};
use super::slow::Slow;
use super::val::{Num, Span, Text, Val};
use crate::batch::{Charge, View};
use crate::explore::Run;
use crate::filter::{Value, dictionary, is_time};
use jindou_dictionary::{Group, NAN_RANK, NO_RANK, Number};
use jindou_model::term::{self, Parts};
use jindou_model::{FIRST_QUERY_ID, FIRST_TAIL_ID, Result, VertexId};
use jindou_plan::{Relation, TermTest};
use oxrdf::Variable;
use rustc_hash::FxHashMap;
use spargebra::algebra::Expression as E;
use std::cmp::Ordering;

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
            Val::Id(id) => number_of_id(run, id, &mut self.term),
            Val::Bool(_) | Val::Text(_) => None,
            Val::Term(s) => number_of_bytes(self.bytes(s)),
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
            Code::Slow(n, arguments) => {
                let mut ids = match self.slow.get_mut(*n) {
                    Some(part) => std::mem::take(&mut part.ids),
                    None => return Ok(None),
                };
                ids.clear();
                for a in arguments {
                    let id = match self.eval(run, a, at)? {
                        Some(v) => self.id(run, v)?,
                        None => 0,
                    };
                    ids.push(id);
                }
                let Self { slow, arena, .. } = self;
                let Some(part) = slow.get_mut(*n) else {
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
                value
            }
        })
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

    fn kind(&mut self, run: &Run<'_>, v: Val, test: TermTest) -> bool {
        let tag = match v {
            Val::Bool(_) | Val::Text(_) => term::STRING,
            Val::Num(_) => return matches!(test, TermTest::Numeric | TermTest::Literal),
            Val::Id(id) => self.tag(run, id).unwrap_or(0),
            Val::Term(s) => self.bytes(s).first().copied().unwrap_or(0),
        };
        match test {
            TermTest::Iri => tag == term::IRI,
            TermTest::Blank => tag == term::BLANK,
            TermTest::Literal => !matches!(tag, term::IRI | term::BLANK | term::TRIPLE),
            TermTest::Numeric => term::NUMERIC_TAGS.contains(&tag) && self.number(run, v).is_some(),
        }
    }

    /// `=` as SPARQL's operator table has it.
    fn equal(&mut self, run: &Run<'_>, a: Val, b: Val) -> Result<Option<bool>> {
        if let (Val::Num(a), Val::Num(b)) = (a, b) {
            return Ok(Some(a.order(b) == Some(Ordering::Equal)));
        }
        if let (Val::Bool(a), Val::Bool(b)) = (a, b) {
            return Ok(Some(a == b));
        }
        let (ta, tb) = (self.tag_of(run, a), self.tag_of(run, b));
        let numeric = |t: u8| term::NUMERIC_TAGS.contains(&t);
        if numeric(ta) && numeric(tb) {
            // Ill-typed ones are terms of no known value: `spareval` says what then.
            if let (Some(a), Some(b)) = (self.number(run, a), self.number(run, b)) {
                return Ok(Some(a.order(b) == Some(Ordering::Equal)));
            }
            return self.slow_relation(run, 0, a, b);
        }
        let node = |t: u8| matches!(t, term::IRI | term::BLANK);
        let exact = |t: u8| node(t) || matches!(t, term::STRING | term::LANG);
        if exact(ta) && exact(tb) || node(ta) || node(tb) {
            return Ok(Some(ta == tb && self.same(run, a, b)));
        }
        if ta != tb && self.is_time(run, a) && self.is_time(run, b) {
            // SPARQL 1.1 §17.3.1 lets an engine say more than the table's error: no date is a dateTime, no year a time.
            return Ok(Some(false));
        }
        self.slow_relation(run, 0, a, b)
    }

    /// True for a well-typed date or time of any kind.
    fn is_time(&mut self, run: &Run<'_>, v: Val) -> bool {
        let tag = self.tag_of(run, v);
        if !matches!(Group::of_tag(tag), Some(Group::Temporal(_))) {
            return false;
        }
        self.canonical(run, v);
        is_time(&self.term)
    }

    /// The same term, without making an id.
    fn same(&mut self, run: &Run<'_>, a: Val, b: Val) -> bool {
        if let (Val::Id(a), Val::Id(b)) = (a, b) {
            return a == b;
        }
        if let (Val::Text(a), Val::Text(b)) = (a, b) {
            let lang = |s: Option<Span>| s.map(|s| self.bytes(s));
            return lang(a.lang) == lang(b.lang) && self.bytes(a.text) == self.bytes(b.text);
        }
        self.canonical(run, a);
        let first = std::mem::take(&mut self.term);
        self.canonical(run, b);
        let same = first == self.term;
        self.term = first;
        same
    }

    fn tag_of(&mut self, run: &Run<'_>, v: Val) -> u8 {
        match v {
            Val::Id(id) => self.tag(run, id).unwrap_or(0),
            Val::Bool(_) => term::BOOLEAN_TAG,
            Val::Num(_) => term::FIRST_DATATYPE,
            Val::Text(t) if t.lang.is_some() => term::LANG,
            Val::Text(_) => term::STRING,
            Val::Term(s) => self.bytes(s).first().copied().unwrap_or(0),
        }
    }

    /// `<` and the like.
    fn ordered(&mut self, run: &Run<'_>, r: Relation, a: Val, b: Val) -> Result<Option<bool>> {
        let holds = |o: Ordering| match r {
            Relation::Less => o.is_lt(),
            Relation::LessOrEqual => o.is_le(),
            Relation::Greater => o.is_gt(),
            Relation::GreaterOrEqual => o.is_ge(),
            Relation::Equal => o.is_eq(),
            Relation::NotEqual => o.is_ne(),
        };
        if let (Some(x), Some(y)) = (self.number(run, a), self.number(run, b)) {
            // NaN compares with nothing.
            return Ok(if x.is_nan() || y.is_nan() {
                match r {
                    Relation::NotEqual => Some(true),
                    _ => self.slow_relation_of(run, r, a, b)?,
                }
            } else {
                x.order(y).map(holds)
            });
        }
        let (ta, tb) = (self.tag_of(run, a), self.tag_of(run, b));
        if ta == term::STRING && tb == term::STRING {
            let (Some(x), Some(y)) = (self.as_text(run, a), self.as_text(run, b)) else {
                return Ok(None);
            };
            return Ok(Some(holds(self.bytes(x.text).cmp(self.bytes(y.text)))));
        }
        self.slow_relation_of(run, r, a, b)
    }

    fn slow_relation_of(
        &mut self,
        run: &Run<'_>,
        r: Relation,
        a: Val,
        b: Val,
    ) -> Result<Option<bool>> {
        match r {
            Relation::Equal => self.slow_relation(run, 0, a, b),
            Relation::NotEqual => Ok(self.slow_relation(run, 0, a, b)?.map(|e| !e)),
            Relation::Less => self.slow_relation(run, 1, a, b),
            Relation::Greater => self.slow_relation(run, 1, b, a),
            Relation::LessOrEqual => self.slow_relation(run, 2, a, b),
            Relation::GreaterOrEqual => self.slow_relation(run, 2, b, a),
        }
    }

    /// `=`, `<` or `<=` by `spareval`.
    fn slow_relation(
        &mut self,
        run: &Run<'_>,
        which: usize,
        a: Val,
        b: Val,
    ) -> Result<Option<bool>> {
        let ids = [self.id(run, a)?, self.id(run, b)?];
        if self.relations[which].is_none() {
            let (x, y) = (Variable::new_unchecked("x"), Variable::new_unchecked("y"));
            let (l, r) = (
                Box::new(E::Variable(x.clone())),
                Box::new(E::Variable(y.clone())),
            );
            let e = match which {
                0 => E::Equal(l, r),
                1 => E::Less(l, r),
                _ => E::LessOrEqual(l, r),
            };
            self.relations[which] = Some(Box::new(Slow::new(e, vec![x, y], true, run)?));
        }
        let Some(slow) = &mut self.relations[which] else {
            return Ok(None);
        };
        Ok(slow
            .value(run, &ids)?
            .and_then(|bytes| match term::parts(bytes)? {
                Parts::Coded(s, term::BOOLEAN_TAG) => boolean(s),
                _ => None,
            }))
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
            _ => self.text_call(run, call, first, second, third),
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
        let tag = d.tag_ranges().tag_of(lex)?;
        if rank != NAN_RANK
            && let Some(f) = d.numeric_f64(rank)
        {
            match tag.wrapping_sub(term::FIRST_DATATYPE) {
                // Negative zero shares its rank with zero.
                2 if f != 0.0 => return Some(Num::Dbl(f.into())),
                3 if f != 0.0 => return Some(Num::Flt((f as f32).into())),
                1..=3 => {}
                _ if f.abs() < EXACT => return Some(Num::Int((f as i64).into())),
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
