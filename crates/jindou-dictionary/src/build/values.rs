//! Value columns: the rank of every literal with a coded datatype.

use crate::Strings;
use crate::value::{NAN_RANK, NO_RANK, TEMPORAL_GROUPS, ValueGroup, approximate};
use jindou_model::term::{BOOLEAN_TAG, DATATYPES, FIRST_DATATYPE, NUMERIC_TAGS, TEMPORAL_TAGS};
use jindou_model::{Error, Result};
use jindou_values::{Duration, DurationKey, Exact, Number, Temporal, TemporalKind, boolean};

/// The tags of literals whose datatype has a tag of its own.
pub(crate) const CODED_TAGS: std::ops::RangeInclusive<u8> =
    FIRST_DATATYPE..=FIRST_DATATYPE + (DATATYPES.len() - 1) as u8;

/// The columns in their stored form.
pub(crate) struct ValueColumns {
    /// Per lex index from the first coded literal on: the rank.
    pub(crate) ranks: Vec<u32>,
    /// Per numeric rank: the nearest double.
    pub(crate) numbers: Vec<f64>,
    /// Per numeric rank: the lex index of one literal with this value.
    pub(crate) number_lex: Vec<u32>,
    /// Per temporal group: sorted distinct instants.
    pub(crate) instants: Vec<Vec<i128>>,
    /// Per rank of a duration: the lex index of one literal with this value.
    pub(crate) duration_lex: Vec<u32>,
}

/// Computes all columns. O(n log n) for n coded literals. Takes 16 bytes per number, 32 per date and 64 per duration
/// while it runs, in addition to the result.
pub(crate) fn value_columns(strings: &Strings) -> Result<ValueColumns> {
    let coded = strings.tag_ranges().span(CODED_TAGS);
    let mut ranks = vec![NO_RANK; coded.len()];
    let base = coded.start;
    let (numbers, number_lex) = numeric(strings, base, &mut ranks)?;
    each(strings, BOOLEAN_TAG..=BOOLEAN_TAG, |lex, _, lexical| {
        ranks[(lex - base) as usize] = boolean(lexical).map_or(NO_RANK, u32::from);
    })?;
    let mut instants = Vec::new();
    for place in 0..TEMPORAL_GROUPS {
        instants.push(temporal(strings, place, base, &mut ranks)?);
    }
    let duration_lex = durations(strings, base, &mut ranks)?;
    Ok(ValueColumns {
        duration_lex,
        ranks,
        numbers,
        number_lex,
        instants,
    })
}

/// Calls `f` with lex index, tag and lexical form of every literal whose tag is in `tags`.
fn each(
    strings: &Strings,
    tags: std::ops::RangeInclusive<u8>,
    mut f: impl FnMut(u32, u8, &str),
) -> Result<()> {
    let range = strings.tag_ranges().span(tags);
    let complete = strings.for_each(range, |lex, term| {
        if let Some((&tag, rest)) = term.split_first()
            && let Ok(lexical) = std::str::from_utf8(rest)
        {
            f(lex, tag, lexical);
        }
    });
    if complete {
        Ok(())
    } else {
        Err(Error::Internal("strings.jd cannot be read back".into()))
    }
}

#[derive(Clone, Copy)]
struct RankedNumber {
    value: f64,
    lex: u32,
    exact: bool,
}

/// An exact value or an infinity; ordered by value.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Extended {
    NegativeInfinity,
    Finite(Exact),
    Infinity,
}

impl Extended {
    fn of_double(v: f64) -> Self {
        if v.is_finite() {
            Self::Finite(Exact::from_f64(v))
        } else if v < 0.0 {
            Self::NegativeInfinity
        } else {
            Self::Infinity
        }
    }
}

/// Ranks all numbers by exact value. Nearly all are ordered by their nearest doubles. Digits are compared only among
/// literals with the same nearest double, if the exact value of some of them may differ from it. Returns the columns
/// `numbers` and `number_lex`.
fn numeric(strings: &Strings, base: u32, ranks: &mut [u32]) -> Result<(Vec<f64>, Vec<u32>)> {
    let mut all = Vec::with_capacity(strings.tag_ranges().span(NUMERIC_TAGS).len());
    each(strings, NUMERIC_TAGS, |lex, tag, lexical| {
        if let Some(a) = approximate(tag, lexical) {
            if a.value.is_nan() {
                ranks[(lex - base) as usize] = NAN_RANK;
            } else {
                all.push(RankedNumber {
                    value: a.value,
                    lex,
                    exact: a.exact,
                });
            }
        }
    })?;
    all.sort_unstable_by(|a, b| a.value.total_cmp(&b.value).then(a.lex.cmp(&b.lex)));
    let (mut numbers, mut number_lex) = (Vec::new(), Vec::new());
    let mut term = Vec::new();
    for tie in all.chunk_by(|a, b| a.value == b.value) {
        let value = tie[0].value;
        let mut add = |lex: u32, new: bool| {
            if new {
                numbers.push(value);
                number_lex.push(lex);
            }
            ranks[(lex - base) as usize] = numbers.len() as u32 - 1;
        };
        if tie.len() == 1 || tie.iter().all(|n| n.exact) {
            for (i, n) in tie.iter().enumerate() {
                add(n.lex, i == 0);
            }
            continue;
        }
        let mut exact = Vec::with_capacity(tie.len());
        for n in tie.iter().filter(|n| !n.exact) {
            term.clear();
            strings.term(n.lex, &mut term);
            let digits = number_of(&term).and_then(|n| n.exact());
            if let Some(digits) = digits {
                exact.push((Extended::Finite(digits), n.lex));
            }
        }
        // All literals with an exact double have the same value: the digits of only one of them are read.
        let first_exact = tie.iter().find(|n| n.exact).map(|n| n.lex);
        if let Some(lex) = first_exact {
            exact.push((Extended::of_double(value), lex));
        }
        exact.sort_unstable();
        for i in 0..exact.len() {
            let lex = exact[i].1;
            add(lex, i == 0 || exact[i].0 != exact[i - 1].0);
            if first_exact == Some(lex) {
                tie.iter()
                    .filter(|n| n.exact)
                    .for_each(|n| add(n.lex, false));
            }
        }
    }
    Ok((numbers, number_lex))
}

/// Ranks the literals of one date or time datatype by the positions of their instants. Returns the distinct instants,
/// sorted.
fn temporal(strings: &Strings, place: u8, base: u32, ranks: &mut [u32]) -> Result<Vec<i128>> {
    let tag = TEMPORAL_TAGS.start() + place;
    let Some(kind) = TemporalKind::of_tag(tag) else {
        return Ok(vec![]);
    };
    let mut all: Vec<(i128, u32)> = Vec::new();
    each(strings, tag..=tag, |lex, _, lexical| {
        if let Some(value) = Temporal::parse(kind, lexical) {
            all.push((value.instant(), lex));
        }
    })?;
    Ok(rank_by_key(all, base, ranks, |instant, _| *instant))
}

/// Ranks durations; returns one literal of each rank.
fn durations(strings: &Strings, base: u32, ranks: &mut [u32]) -> Result<Vec<u32>> {
    let mut all: Vec<(DurationKey, u32)> = Vec::new();
    let first = TEMPORAL_TAGS.start() + TEMPORAL_GROUPS;
    debug_assert_eq!(ValueGroup::of_tag(first), Some(ValueGroup::Duration));
    each(
        strings,
        first..=*TEMPORAL_TAGS.end(),
        |lex, tag, lexical| {
            if let Some(value) = Duration::parse(tag, lexical) {
                all.push((value.key(), lex));
            }
        },
    )?;
    Ok(rank_by_key(all, base, ranks, |_, lex| lex))
}

/// Ranks literals, given by value and lex index, by their values. Returns, for each distinct value in order, what `of`
/// makes of it and of the first literal that has it.
fn rank_by_key<K: Ord, T>(
    mut all: Vec<(K, u32)>,
    base: u32,
    ranks: &mut [u32],
    of: impl Fn(&K, u32) -> T,
) -> Vec<T> {
    all.sort_unstable();
    let mut distinct = Vec::new();
    for (i, (key, lex)) in all.iter().enumerate() {
        if i == 0 || all[i - 1].0 != *key {
            distinct.push(of(key, *lex));
        }
        ranks[(lex - base) as usize] = distinct.len() as u32 - 1;
    }
    distinct
}

/// The value of a numeric term's canonical bytes.
pub(crate) fn number_of(term: &[u8]) -> Option<Number> {
    let (&tag, rest) = term.split_first()?;
    Number::parse(tag, std::str::from_utf8(rest).ok()?)
}
