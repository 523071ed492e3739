//! The value ranks as an index: conditions such as `?x < constant` are decided without reading a term.

use super::prefix::PrefixProbe;
use super::{
    Estimate, Index, IndexFile, IndexWriter, OpenIndex, Probe, Question, Relation, Terms, Verdict,
};
use crate::value::{Comparison, NAN_RANK, NO_LEX, NO_RANK, NumericBounds};
use crate::{Dictionary, TagRanges};
use jindou_model::Result;
use jindou_model::memory::prefetch_at;
use jindou_model::term;
use jindou_values::{NumericKind, Value, value};
use std::ops::Range;
use std::sync::Arc;

/// The index that every store has. It is part of `dictionary.jd`, written by [`crate::write_dictionary`], and answers
/// [`Question::Compare`] with literals. It leaves unsettled: ill-typed literals, durations, and terms whose datatype is
/// not the constant's, except where SPARQL defines them as "not equal". It also decides calls that compare the
/// beginning of a text with a constant, by positions of terms in the order of their bytes.
#[derive(Clone, Copy, Debug)]
pub struct ValueRanks;

impl Index for ValueRanks {
    fn name(&self) -> &str {
        "value-ranks"
    }

    fn has_file(&self) -> bool {
        false
    }

    fn build(&self, _: &Terms<'_>, _: &mut IndexWriter) -> Result<()> {
        Ok(())
    }

    fn open(&self, _: Option<Arc<IndexFile>>, _: &Dictionary) -> Result<Box<dyn OpenIndex>> {
        Ok(Box::new(Self))
    }
}

impl OpenIndex for ValueRanks {
    fn probe<'a>(
        &'a self,
        question: &Question<'_>,
        dictionary: &'a Dictionary,
    ) -> Option<Box<dyn Probe + 'a>> {
        match question {
            Question::Compare(relation, constant) => {
                let probe = RankProbe::new(*relation, constant, dictionary)?;
                Some(Box::new(probe))
            }
            Question::Holds(call) => Some(Box::new(PrefixProbe::new(call, dictionary)?)),
        }
    }
}

/// The constant of a comparison, as ranks or lex indexes.
enum Right {
    /// Ranks for which the relation holds, by kind of number; and the single range if it is the same for all kinds.
    Number(NumericBounds, Option<Range<u32>>),
    /// Lex indexes of the strings for which the relation holds.
    String(Range<u32>),
    /// Lex indexes of the terms of the constant's datatype, and the ranks for which the relation holds.
    Temporal(Range<u32>, Range<u32>),
    /// A constant whose comparisons ranks do not decide.
    Other,
}

/// Number of ids that are processed together.
const PART: usize = 1024;

struct RankProbe<'a> {
    dictionary: &'a Dictionary,
    ranks: RankColumn<'a>,
    relation: Relation,
    right: Right,
    /// Lex indexes of all numeric literals; the next fields hold those of other kinds of terms.
    numeric: Range<u32>,
    strings: Range<u32>,
    langs: Range<u32>,
    iris: Range<u32>,
    blanks: Range<u32>,
}

/// The rank of a lex index, as in [`Dictionary::value_rank`].
#[derive(Clone, Copy)]
struct RankColumn<'a> {
    column: &'a [u32],
    /// The first lex index with a rank.
    first: u32,
}

impl RankColumn<'_> {
    #[inline(always)]
    fn rank(self, lex: u32) -> u32 {
        let at = lex.wrapping_sub(self.first) as usize;
        self.column.get(at).copied().unwrap_or(NO_RANK)
    }
}

impl<'a> RankProbe<'a> {
    /// The probe for a comparison; `None` if the constant is not a literal. O(log terms).
    fn new(relation: Relation, constant: &[u8], d: &'a Dictionary) -> Option<Self> {
        if let [term::IRI | term::BLANK | term::TRIPLE, ..] | [] = constant {
            return None;
        }
        // `!=` is the negation of `=` wherever `=` does not raise an error.
        let comparison = match relation {
            Relation::Equal | Relation::NotEqual => Comparison::Equal,
            Relation::Less => Comparison::Less,
            Relation::LessOrEqual => Comparison::LessOrEqual,
            Relation::Greater => Comparison::Greater,
            Relation::GreaterOrEqual => Comparison::GreaterOrEqual,
        };
        let right = match value(constant) {
            Some(Value::String(s)) => Right::String(d.string_bounds(comparison, s)),
            Some(Value::Number(n)) if !n.to_f64().is_nan() => {
                let bounds = d.numeric_bounds(comparison, &n);
                let uniform = bounds.uniform();
                Right::Number(bounds, uniform)
            }
            Some(Value::Temporal(t)) => Right::Temporal(
                d.tag_range(t.kind().tag()),
                d.temporal_bounds(comparison, t),
            ),
            _ => Right::Other,
        };
        let (column, first) = d.rank_column();
        Some(Self {
            dictionary: d,
            ranks: RankColumn { column, first },
            relation,
            right,
            numeric: d.tag_span(term::NUMERIC_TAGS),
            strings: d.tag_range(term::STRING),
            langs: d.tag_range(term::LANG),
            iris: d.tag_range(term::IRI),
            blanks: d.tag_range(term::BLANK),
        })
    }

    /// The verdict on terms of a kind that is never equal to the constant and not comparable with it.
    fn unlike(&self) -> Verdict {
        match self.relation {
            Relation::Equal => Verdict::False,
            Relation::NotEqual => Verdict::True,
            _ => Verdict::Error,
        }
    }
}

/// The verdict of `=`, or of `!=` if `negated`, on terms that are equal to the constant or not.
#[inline(always)]
fn equality(equal: bool, negated: bool) -> Verdict {
    if equal != negated {
        Verdict::True
    } else {
        Verdict::False
    }
}

impl Probe for RankProbe<'_> {
    fn estimate(&self) -> Estimate {
        let (inside, of) = match &self.right {
            Right::Number(bounds, uniform) => {
                let ranks = uniform.as_ref().unwrap_or(&bounds.exact);
                (ranks.len(), self.numeric.len())
            }
            Right::String(bounds) => (bounds.len(), self.strings.len()),
            Right::Temporal(all, inside) => (inside.len(), all.len()),
            Right::Other => (
                self.dictionary.len() as usize,
                self.dictionary.len() as usize,
            ),
        };
        let passing = if self.relation == Relation::NotEqual {
            of.saturating_sub(inside)
        } else {
            inside
        };
        // The estimate is not exact, since several terms may have the same rank.
        Estimate {
            passing: passing as u64,
            of: of as u64,
            exact: false,
        }
    }

    fn explain(&self) -> String {
        "by rank".into()
    }

    fn test_many(&mut self, ids: &[u32], out: &mut [Verdict]) {
        by_parts(self.dictionary, ids, out, |ids, lexes, out| {
            self.test_part(ids, lexes, out);
        });
    }
}

/// Calls `test` with parts of the ids, their lex indexes, and the verdicts to write.
pub(super) fn by_parts(
    dictionary: &Dictionary,
    ids: &[u32],
    out: &mut [Verdict],
    test: impl Fn(&[u32], &[u32], &mut [Verdict]),
) {
    // An array on the stack, since a query may have a hundred thousand probes.
    let mut lexes = [NO_LEX; PART];
    for (ids, out) in ids.chunks(PART).zip(out.chunks_mut(PART)) {
        let lexes = &mut lexes[..ids.len()];
        dictionary.lex_into(ids, lexes);
        test(ids, lexes, out);
    }
}

impl RankProbe<'_> {
    fn test_part(&self, ids: &[u32], lexes: &[u32], out: &mut [Verdict]) {
        let (ranks, unlike) = (self.ranks, self.unlike());
        let negated = self.relation == Relation::NotEqual;
        let (numeric, strings, langs) = (&self.numeric, &self.strings, &self.langs);
        match &self.right {
            Right::Number(bounds, uniform) => {
                let tags: &TagRanges = self.dictionary.tag_ranges();
                let inside = |lex: u32, rank: u32| match uniform {
                    Some(r) => Some(r.contains(&rank)),
                    None => {
                        let kind = tags.tag_of(lex).and_then(NumericKind::of_tag)?;
                        Some(bounds.interval(kind).contains(&rank))
                    }
                };
                self.each(ids, lexes, out, true, |lex| {
                    if numeric.contains(&lex) {
                        match ranks.rank(lex) {
                            NO_RANK => Verdict::Unsettled,
                            // NaN satisfies only `!=`.
                            NAN_RANK => equality(false, negated),
                            rank => match inside(lex, rank) {
                                Some(inside) => equality(inside, negated),
                                None => Verdict::Unsettled,
                            },
                        }
                    } else if strings.contains(&lex) || langs.contains(&lex) {
                        unlike
                    } else {
                        Verdict::Unsettled
                    }
                });
            }
            Right::String(bounds) => self.each(ids, lexes, out, false, |lex| {
                if strings.contains(&lex) {
                    equality(bounds.contains(&lex), negated)
                } else if langs.contains(&lex)
                    // A numeric value is never equal to a string.
                    || (numeric.contains(&lex) && ranks.rank(lex) != NO_RANK)
                {
                    unlike
                } else {
                    Verdict::Unsettled
                }
            }),
            Right::Temporal(all, inside) => self.each(ids, lexes, out, true, |lex| {
                if !all.contains(&lex) {
                    return Verdict::Unsettled;
                }
                match ranks.rank(lex) {
                    NO_RANK => Verdict::Unsettled,
                    rank => equality(inside.contains(&rank), negated),
                }
            }),
            Right::Other => self.each(ids, lexes, out, false, |_| Verdict::Unsettled),
        }
    }

    /// Writes the verdict on each id. `f` decides literals and triple terms of the dictionary by their lex index;
    /// `ranked` is true if `f` reads their ranks.
    #[inline(always)]
    fn each(
        &self,
        ids: &[u32],
        lexes: &[u32],
        out: &mut [Verdict],
        ranked: bool,
        f: impl Fn(u32) -> Verdict,
    ) {
        let unlike = self.unlike();
        let (iris, blanks) = (self.iris.clone(), self.blanks.clone());
        for (i, ((o, &lex), &id)) in out.iter_mut().zip(lexes).zip(ids).enumerate() {
            if ranked && let Some(&ahead) = lexes.get(i + 16) {
                prefetch_at(
                    self.ranks.column,
                    ahead.wrapping_sub(self.ranks.first) as usize,
                );
            }
            *o = if lex == NO_LEX {
                if id == 0 {
                    Verdict::Error
                } else {
                    Verdict::Unsettled
                }
            } else if iris.contains(&lex) || blanks.contains(&lex) {
                unlike
            } else {
                f(lex)
            };
        }
    }
}
