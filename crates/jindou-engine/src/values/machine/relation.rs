//! Comparing values, and what kind of terms they are.

use super::{Machine, boolean};
use crate::explore::Run;
use crate::filter::{dictionary, is_time};
use crate::values::slow::Slow;
use crate::values::val::{Span, Val};
use jindou_dictionary::Group;
use jindou_model::term::{self, Parts};
use jindou_model::{FIRST_TAIL_ID, Result, VertexId};
use jindou_plan::{Relation, TermTest};
use oxrdf::Variable;
use spargebra::algebra::Expression as E;
use std::cmp::Ordering;

impl Machine {
    pub(super) fn kind(&mut self, run: &Run<'_>, v: Val, test: TermTest) -> bool {
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
    pub(in crate::values) fn equal(
        &mut self,
        run: &Run<'_>,
        a: Val,
        b: Val,
    ) -> Result<Option<bool>> {
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
    pub(super) fn ordered(
        &mut self,
        run: &Run<'_>,
        r: Relation,
        a: Val,
        b: Val,
    ) -> Result<Option<bool>> {
        let holds = |o: Ordering| match r {
            Relation::Less => o.is_lt(),
            Relation::LessOrEqual => o.is_le(),
            Relation::Greater => o.is_gt(),
            Relation::GreaterOrEqual => o.is_ge(),
            Relation::Equal => o.is_eq(),
            Relation::NotEqual => o.is_ne(),
        };
        if let (Val::Id(x), Val::Id(y)) = (a, b)
            && x.max(y) < FIRST_TAIL_ID
        {
            // Places in the order of all terms' bytes are those of strings by their characters.
            let d = dictionary(run.snapshot);
            let strings = d.tag_range(term::STRING);
            if let (Some(x), Some(y)) = (d.lex(VertexId(x)), d.lex(VertexId(y)))
                && strings.contains(&x)
                && strings.contains(&y)
            {
                return Ok(Some(holds(x.cmp(&y))));
            }
        }
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
}
