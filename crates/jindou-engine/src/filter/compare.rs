//! `?x < constant` and the like, by rank. What ranks do not settle (ill-typed literals, durations, terms that updates brought or the
//! query made) is compared by value.

use super::{ERROR, FALSE, TRUE, Value};
use crate::batch::View;
use crate::explore::Run;
use crate::values::holds;
use jindou_dictionary::{Comparison, Dictionary, NAN_RANK, NO_RANK, NumericBounds};
use jindou_model::term::{self, Parts};
use jindou_model::{Error, FIRST_QUERY_ID, FIRST_TAIL_ID, Result, VertexId};
use jindou_plan::Relation;
use jindou_values::{Kind, Number, NumericKind, Temporal, equal_values, order, value};
use std::ops::Range;

/// The constant.
enum Right {
    Number(NumericBounds, Option<Range<u32>>),
    /// Lex indexes of the strings for which the relation holds.
    String(Range<u32>),
    /// Its tag, and the ranks for which the relation holds.
    Temporal(u8, Range<u32>),
    /// Nothing is known by rank.
    Other,
}

/// Rows between two looks at the clock.
const CHECK: usize = 256;

pub(crate) struct Compare<'a> {
    value: Value,
    relation: Relation,
    right: Right,
    literal: bool,
    /// Lex indexes by what they are.
    numeric: Range<u32>,
    strings: Range<u32>,
    iris: Range<u32>,
    blanks: Range<u32>,
    langs: Range<u32>,
    /// Where the ranks are, if there are any.
    ranks: Option<&'a Dictionary>,
    /// The constant's canonical bytes, and their value.
    constant: (&'a [u8], jindou_values::Value<'a>),
    bytes: Vec<u8>,
}

impl<'a> Compare<'a> {
    pub fn new(value: Value, relation: Relation, bytes: &'a [u8], run: &Run<'a>) -> Result<Self> {
        let ranks = run.vocabulary.ranks();
        // `!=` is the negation of `=` wherever `=` has a value.
        let comparison = match relation {
            Relation::Equal | Relation::NotEqual => Comparison::Equal,
            Relation::Less => Comparison::Less,
            Relation::LessOrEqual => Comparison::LessOrEqual,
            Relation::Greater => Comparison::Greater,
            Relation::GreaterOrEqual => Comparison::GreaterOrEqual,
        };
        let right = match (term::parts(bytes), ranks) {
            (_, None) => Right::Other,
            (Some(Parts::String(s)), Some(d)) => Right::String(d.string_bounds(comparison, s)),
            (Some(Parts::Coded(s, tag)), Some(d)) if term::NUMERIC_TAGS.contains(&tag) => {
                match Number::parse(tag, s) {
                    Some(n) if !n.to_f64().is_nan() => {
                        let bounds = d.numeric_bounds(comparison, &n);
                        let uniform = bounds.uniform();
                        Right::Number(bounds, uniform)
                    }
                    _ => Right::Other,
                }
            }
            (Some(Parts::Coded(s, tag)), Some(d)) => {
                match Kind::of_tag(tag).and_then(|kind| Temporal::parse(kind, s)) {
                    Some(t) => Right::Temporal(tag, d.temporal_bounds(comparison, t)),
                    None => Right::Other,
                }
            }
            _ => Right::Other,
        };
        let tagged = |tag| ranks.map_or(0..0, |d| d.tag_range(tag));
        let constant = jindou_values::value(bytes)
            .ok_or_else(|| Error::Internal("a plan's constant is no term".into()))?;
        Ok(Self {
            value,
            relation,
            right,
            literal: !matches!(
                bytes.first(),
                Some(&(term::IRI | term::BLANK | term::TRIPLE))
            ),
            numeric: ranks.map_or(0..0, |d| d.tag_span(term::NUMERIC_TAGS)),
            strings: tagged(term::STRING),
            iris: tagged(term::IRI),
            blanks: tagged(term::BLANK),
            langs: tagged(term::LANG),
            ranks,
            constant: (bytes, constant),
            bytes: vec![],
        })
    }

    /// `equal` as this relation has it.
    fn equality(&self, equal: bool) -> u8 {
        u8::from(equal != (self.relation == Relation::NotEqual))
    }

    /// Terms of another kind than the constant: never equal, not comparable.
    fn unlike(&self) -> u8 {
        match self.relation {
            Relation::Equal => FALSE,
            Relation::NotEqual => TRUE,
            _ => ERROR,
        }
    }

    /// The value for an id, if ranks settle it.
    #[inline]
    fn by_rank(&self, id: u32) -> Option<u8> {
        if id == 0 {
            return Some(ERROR);
        }
        if id >= FIRST_TAIL_ID || !self.literal {
            return None;
        }
        let d = self.ranks?;
        let lex = d.lex(VertexId(id))?;
        if self.iris.contains(&lex) || self.blanks.contains(&lex) {
            return Some(self.unlike());
        }
        match &self.right {
            Right::Number(bounds, uniform) => {
                if self.numeric.contains(&lex) {
                    let rank = d.value_rank(lex);
                    match rank {
                        NO_RANK => return None,
                        // True of nothing but `!=`.
                        NAN_RANK => return Some(u8::from(self.relation == Relation::NotEqual)),
                        _ => {}
                    }
                    let inside = match uniform {
                        Some(r) => r.contains(&rank),
                        None => {
                            let tag = d.strings().tag_ranges().tag_of(lex)?;
                            bounds.of(NumericKind::of_tag(tag)?).contains(&rank)
                        }
                    };
                    return Some(self.equality(inside));
                }
                (self.strings.contains(&lex) || self.langs.contains(&lex)).then(|| self.unlike())
            }
            Right::String(bounds) => {
                if self.strings.contains(&lex) {
                    return Some(self.equality(bounds.contains(&lex)));
                }
                if self.langs.contains(&lex) {
                    return Some(self.unlike());
                }
                // A number that is one: never equal to a string.
                (self.numeric.contains(&lex) && d.value_rank(lex) != NO_RANK).then(|| self.unlike())
            }
            Right::Temporal(tag, inside) => {
                if !d.tag_range(*tag).contains(&lex) {
                    return None;
                }
                let rank = d.value_rank(lex);
                (rank != NO_RANK).then(|| self.equality(inside.contains(&rank)))
            }
            Right::Other => None,
        }
    }

    /// The value for any term.
    fn by_value(&mut self, run: &Run<'_>, id: u32) -> u8 {
        self.bytes.clear();
        let v = VertexId(id);
        if id >= FIRST_QUERY_ID {
            run.terms.term(v, &mut self.bytes);
        } else {
            run.vocabulary.term(v, &mut self.bytes);
        }
        let Some(own) = value(&self.bytes) else {
            return ERROR;
        };
        let (bytes, constant) = &self.constant;
        match self.relation {
            Relation::Equal | Relation::NotEqual => {
                match equal_values(&self.bytes, &own, bytes, constant) {
                    Some(equal) => self.equality(equal),
                    None => ERROR,
                }
            }
            relation => match order(&own, constant) {
                Some(order) => u8::from(order.is_some_and(|o| holds(relation, o))),
                None => ERROR,
            },
        }
    }

    pub fn eval(
        &mut self,
        run: &Run<'_>,
        rows: View<'_>,
        from: usize,
        out: &mut [u8],
    ) -> Result<()> {
        for (i, o) in out.iter_mut().enumerate() {
            if *o == TRUE {
                let id = self.value.at(rows, from + i);
                *o = match self.by_rank(id) {
                    Some(v) => v,
                    None => {
                        if i % CHECK == 0 {
                            run.check()?;
                        }
                        self.by_value(run, id)
                    }
                };
            }
        }
        Ok(())
    }
}
