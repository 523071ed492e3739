//! `?x < constant` and the like, by rank. What the ranks do not settle (ill-typed literals, NaN, times with
//! against without zone, terms that updates brought) is evaluated once for each distinct id and remembered.

use super::{ERROR, FALSE, TRUE, Value, dictionary};
use crate::batch::View;
use crate::explore::Run;
use crate::values::Slow;
use jindou_dictionary::{
    Comparison, NAN_RANK, NO_RANK, Number, NumericBounds, NumericKind, TemporalBounds, TemporalKey,
};
use jindou_model::term::{self, Parts};
use jindou_model::{Error, FIRST_QUERY_ID, FIRST_TAIL_ID, Result, VertexId};
use jindou_plan::Relation;
use jindou_store::Snapshot;
use oxrdf::{Term, Variable};
use spargebra::algebra::Expression;
use std::ops::Range;

/// The constant.
enum Right {
    Number(NumericBounds, Option<Range<u32>>),
    /// Lex indexes of the strings for which the relation holds.
    String(Range<u32>),
    /// Its tag, and of which ranks it is: true, false.
    Temporal(u8, TemporalBounds, [TemporalBounds; 2]),
    /// Nothing is known by rank.
    Other,
}

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
    snapshot: &'a Snapshot,
    slow: Slow,
    bytes: Vec<u8>,
}

/// True for canonical bytes of a well-typed date or time of any kind.
pub(crate) fn is_time(bytes: &[u8]) -> bool {
    matches!(term::parts(bytes), Some(Parts::Coded(s, tag)) if TemporalKey::parse(tag, s).is_some())
}

impl<'a> Compare<'a> {
    pub fn new(value: Value, relation: Relation, bytes: &[u8], run: &Run<'a>) -> Result<Self> {
        let d = dictionary(run.snapshot);
        // `!=` is the negation of `=` wherever `=` has a value.
        let comparison = match relation {
            Relation::Equal | Relation::NotEqual => Comparison::Equal,
            Relation::Less => Comparison::Less,
            Relation::LessOrEqual => Comparison::LessOrEqual,
            Relation::Greater => Comparison::Greater,
            Relation::GreaterOrEqual => Comparison::GreaterOrEqual,
        };
        let right = match term::parts(bytes) {
            Some(Parts::String(s)) => Right::String(d.string_bounds(comparison, s)),
            Some(Parts::Coded(s, tag)) if term::NUMERIC_TAGS.contains(&tag) => {
                match Number::parse(tag, s) {
                    Some(n) if !n.to_f64().is_nan() => {
                        let bounds = d.numeric_bounds(comparison, &n);
                        let uniform = bounds.uniform();
                        Right::Number(bounds, uniform)
                    }
                    _ => Right::Other,
                }
            }
            Some(Parts::Coded(s, tag)) if term::TEMPORAL_TAGS.contains(&tag) => {
                let false_when = match comparison {
                    Comparison::Equal => [Comparison::Less, Comparison::Greater],
                    Comparison::Less => [Comparison::GreaterOrEqual; 2],
                    Comparison::LessOrEqual => [Comparison::Greater; 2],
                    Comparison::Greater => [Comparison::LessOrEqual; 2],
                    Comparison::GreaterOrEqual => [Comparison::Less; 2],
                };
                let bounds = |c| d.temporal_bounds(tag, c, s);
                match (
                    bounds(comparison),
                    bounds(false_when[0]),
                    bounds(false_when[1]),
                ) {
                    (Some(t), Some(f), Some(g)) => Right::Temporal(tag, t, [f, g]),
                    _ => Right::Other,
                }
            }
            _ => Right::Other,
        };
        Ok(Self {
            value,
            relation,
            right,
            literal: !matches!(
                bytes.first(),
                Some(&(term::IRI | term::BLANK | term::TRIPLE))
            ),
            numeric: d.tag_span(term::NUMERIC_TAGS),
            strings: d.tag_range(term::STRING),
            iris: d.tag_range(term::IRI),
            blanks: d.tag_range(term::BLANK),
            langs: d.tag_range(term::LANG),
            snapshot: run.snapshot,
            slow: by_terms(relation, bytes, run)?,
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
        let d = dictionary(self.snapshot);
        let lex = d.lex(VertexId(id))?;
        if self.iris.contains(&lex) || self.blanks.contains(&lex) {
            return Some(self.unlike());
        }
        match &self.right {
            Right::Number(bounds, uniform) => {
                if self.numeric.contains(&lex) {
                    let rank = d.value_rank(lex);
                    if rank == NO_RANK || rank == NAN_RANK {
                        return None;
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
            Right::Temporal(tag, yes, no) => {
                if !d.tag_range(*tag).contains(&lex) {
                    return None;
                }
                let rank = d.value_rank(lex);
                if rank == NO_RANK {
                    None
                } else if yes.contains(rank) {
                    Some(self.equality(true))
                } else if no[0].contains(rank) || no[1].contains(rank) {
                    Some(self.equality(false))
                } else {
                    None
                }
            }
            Right::Other => None,
        }
    }

    /// True if the relation is about equality, the constant a date or time, and the term one of another kind: SPARQL 1.1
    /// §17.3.1 lets an engine say more than the table's error, and no date is a dateTime.
    fn is_other_time(&mut self, run: &Run<'_>, id: u32) -> bool {
        let (Right::Temporal(tag, ..), Relation::Equal | Relation::NotEqual) =
            (&self.right, self.relation)
        else {
            return false;
        };
        self.bytes.clear();
        let v = VertexId(id);
        if id >= FIRST_QUERY_ID {
            run.terms.term(v, &mut self.bytes);
        } else {
            run.snapshot.term(v, &mut self.bytes);
        }
        self.bytes.first() != Some(tag) && is_time(&self.bytes)
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
                    None if self.is_other_time(run, id) => self.equality(false),
                    None => match self.slow.value(run, &[id])?.and_then(term::parts) {
                        Some(Parts::Coded("true", term::BOOLEAN_TAG)) => TRUE,
                        Some(_) => FALSE,
                        None => ERROR,
                    },
                };
            }
        }
        Ok(())
    }
}

/// `?x ∘ constant` on terms.
fn by_terms(relation: Relation, constant: &[u8], run: &Run<'_>) -> Result<Slow> {
    use Expression as E;
    let right = match term::decode(constant) {
        Some(Term::NamedNode(n)) => E::NamedNode(n),
        Some(Term::Literal(l)) => E::Literal(l),
        _ => return Err(Error::Internal("a plan's constant is no constant".into())),
    };
    let x = Variable::new_unchecked("x");
    let (a, b) = (Box::new(E::Variable(x.clone())), Box::new(right));
    let expression = match relation {
        Relation::Equal => E::Equal(a, b),
        Relation::NotEqual => E::Not(Box::new(E::Equal(a, b))),
        Relation::Less => E::Less(a, b),
        Relation::LessOrEqual => E::LessOrEqual(a, b),
        Relation::Greater => E::Greater(a, b),
        Relation::GreaterOrEqual => E::GreaterOrEqual(a, b),
    };
    Slow::new(expression, vec![x], true, run)
}
