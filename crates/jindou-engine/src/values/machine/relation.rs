//! Comparisons of values, and tests for kinds of terms.

use super::Interpreter;
use crate::eval::EvalContext;
use crate::values::val::{ArenaSpan, Val};
use jindou_dictionary::{Dictionary, NO_RANK, ValueGroup};
use jindou_model::VertexId;
use jindou_model::term;
use jindou_plan::{Relation, TermTest};
use jindou_values::{order, value};
use std::cmp::Ordering;

impl Interpreter {
    pub(super) fn kind(&mut self, ctx: &EvalContext<'_>, v: Val, test: TermTest) -> bool {
        let tag = self.tag_of(ctx, v);
        match test {
            TermTest::Iri => tag == term::IRI,
            TermTest::Blank => tag == term::BLANK,
            TermTest::Literal => !matches!(tag, term::IRI | term::BLANK | term::TRIPLE),
            TermTest::Numeric => {
                term::NUMERIC_TAGS.contains(&tag)
                    && match v {
                        Val::Num(_) => true,
                        v => match ranks_of(ctx, v) {
                            Some((ranks, id)) => ranks.numeric_rank(VertexId(id)).is_some(),
                            None => {
                                self.canonical(ctx, v);
                                super::number_of_bytes(&self.term).is_some()
                            }
                        },
                    }
            }
        }
    }

    /// `=` as SPARQL's operator table defines it; `None` for an error.
    pub(in crate::values) fn equal(
        &mut self,
        ctx: &EvalContext<'_>,
        a: Val,
        b: Val,
    ) -> Option<bool> {
        match (a, b) {
            (Val::Num(a), Val::Num(b)) => return Some(a.order(b) == Some(Ordering::Equal)),
            (Val::Bool(a), Val::Bool(b)) => return Some(a == b),
            (Val::Id(a), Val::Id(b)) => {
                if let Some(d) = ctx.vocabulary.ranks_of(a.max(b))
                    && let Some((x, y)) = ranks(d, a, b)
                {
                    return Some(x == y);
                }
            }
            _ => {}
        }
        let (ta, tb) = (self.tag_of(ctx, a), self.tag_of(ctx, b));
        let numeric = |t: u8| term::NUMERIC_TAGS.contains(&t);
        if numeric(ta)
            && numeric(tb)
            && let (Some(a), Some(b)) = (self.number(ctx, a), self.number(ctx, b))
        {
            return Some(a.order(b) == Some(Ordering::Equal));
        }
        let node = |t: u8| matches!(t, term::IRI | term::BLANK);
        let exact = |t: u8| node(t) || matches!(t, term::STRING | term::LANG);
        if exact(ta) && exact(tb) || node(ta) || node(tb) {
            return Some(ta == tb && self.same(ctx, a, b));
        }
        if let (Some(a), Some(b)) = (self.instant(ctx, a), self.instant(ctx, b)) {
            return Some(a == b);
        }
        self.both(ctx, a, b);
        jindou_values::equal(&self.other, &self.term)
    }

    /// Writes the first value's canonical bytes to `self.other`, the second's to `self.term`.
    fn both(&mut self, ctx: &EvalContext<'_>, a: Val, b: Val) {
        self.canonical(ctx, a);
        std::mem::swap(&mut self.term, &mut self.other);
        self.canonical(ctx, b);
    }

    /// Tests whether two values are the same term, without creating ids.
    fn same(&mut self, ctx: &EvalContext<'_>, a: Val, b: Val) -> bool {
        if let (Val::Id(a), Val::Id(b)) = (a, b) {
            return a == b;
        }
        if let (Val::Text(a), Val::Text(b)) = (a, b) {
            let lang = |s: Option<ArenaSpan>| s.map(|s| self.bytes(s));
            return lang(a.lang) == lang(b.lang) && self.bytes(a.text) == self.bytes(b.text);
        }
        self.both(ctx, a, b);
        self.other == self.term
    }

    pub(in crate::values) fn tag_of(&mut self, ctx: &EvalContext<'_>, v: Val) -> u8 {
        match v {
            Val::Id(id) => self.tag(ctx, id).unwrap_or(0),
            Val::Bool(_) => term::BOOLEAN_TAG,
            Val::Num(_) => term::FIRST_DATATYPE,
            Val::Time(t) => t.kind().tag(),
            Val::Duration(d) => d.tag(),
            Val::Text(t) if t.lang.is_some() => term::LANG,
            Val::Text(_) => term::STRING,
            Val::Term(s) => self.bytes(s).first().copied().unwrap_or(0),
        }
    }

    /// Order comparisons such as `<`. False if there is no order (NaN), `None` (an error) for values that cannot be
    /// compared.
    pub(in crate::values) fn ordered(
        &mut self,
        ctx: &EvalContext<'_>,
        r: Relation,
        a: Val,
        b: Val,
    ) -> Option<bool> {
        self.order(ctx, a, b)
            .map(|order| order.is_some_and(|o| holds(r, o)))
    }

    fn order(&mut self, ctx: &EvalContext<'_>, a: Val, b: Val) -> Option<Option<Ordering>> {
        if let (Val::Id(x), Val::Id(y)) = (a, b)
            && let Some(d) = ctx.vocabulary.ranks_of(x.max(y))
        {
            // Both are strings of the base, whose lex indexes have the order of their characters.
            let strings = d.tag_range(term::STRING);
            if let (Some(x), Some(y)) = (d.lex(VertexId(x)), d.lex(VertexId(y)))
                && strings.contains(&x)
                && strings.contains(&y)
            {
                return Some(Some(x.cmp(&y)));
            }
            if let Some((x, y)) = ranks(d, x, y) {
                return Some(Some(x.cmp(&y)));
            }
        }
        if let (Some(x), Some(y)) = (self.number(ctx, a), self.number(ctx, b)) {
            return Some(x.order(y));
        }
        if let (Some(x), Some(y)) = (self.instant(ctx, a), self.instant(ctx, b)) {
            return (x.0 == y.0).then(|| Some(x.1.cmp(&y.1)));
        }
        let (ta, tb) = (self.tag_of(ctx, a), self.tag_of(ctx, b));
        if ta == term::STRING && tb == term::STRING {
            let (x, y) = (self.as_text(ctx, a)?, self.as_text(ctx, b)?);
            return Some(Some(self.bytes(x.text).cmp(self.bytes(y.text))));
        }
        self.both(ctx, a, b);
        order(&value(&self.other)?, &value(&self.term)?)
    }
}

fn ranks_of<'r>(ctx: &EvalContext<'r>, v: Val) -> Option<(&'r Dictionary, u32)> {
    let Val::Id(id) = v else { return None };
    Some((ctx.vocabulary.ranks_of(id)?, id))
}

/// The value ranks of two terms, if comparing these is enough: dates or times of one datatype.
fn ranks(d: &Dictionary, a: u32, b: u32) -> Option<(u32, u32)> {
    let (x, y) = (d.lex(VertexId(a))?, d.lex(VertexId(b))?);
    let tags = d.tag_ranges();
    let tag = tags.tag_of(x)?;
    if !matches!(ValueGroup::of_tag(tag), Some(ValueGroup::Temporal(_)))
        || tags.tag_of(y) != Some(tag)
    {
        return None;
    }
    let (x, y) = (d.value_rank(x), d.value_rank(y));
    (x != NO_RANK && y != NO_RANK).then_some((x, y))
}

/// True if the relation holds between two values with this order.
pub(crate) fn holds(r: Relation, o: Ordering) -> bool {
    match r {
        Relation::Less => o.is_lt(),
        Relation::LessOrEqual => o.is_le(),
        Relation::Greater => o.is_gt(),
        Relation::GreaterOrEqual => o.is_ge(),
        Relation::Equal => o.is_eq(),
        Relation::NotEqual => o.is_ne(),
    }
}
