//! Candidates where there is no index: reads all terms, until the time limit.

use super::find::{label_keys, labels_of, tail_id};
use super::sight::LabelGraph;
use crate::{Result, Snapshot};
use jindou_model::{FIRST_TAIL_ID, VertexId};
use jindou_text::{SearchedTerms, TermJudge, WordQuery};

/// Number of terms between two calls of `stop`.
const CHECK: u32 = 256;
/// Number of labels below which they are listed and read one by one.
const MOST_LISTED: u64 = 1 << 20;

/// Scans the terms of the tail with these numbers. Returns true unless it was stopped before the end.
pub(super) fn tail(
    snapshot: &Snapshot,
    numbers: impl Iterator<Item = u32>,
    asked: &WordQuery,
    kind: SearchedTerms,
    stop: &mut dyn FnMut() -> bool,
    take: &mut dyn FnMut(u32) -> bool,
) -> bool {
    let terms = snapshot.tail();
    let mut judge = TermJudge::new(asked, kind);
    for n in numbers {
        if n % CHECK == 0 && stop() {
            return false;
        }
        let id = tail_id(n);
        let term = terms.term(VertexId(id));
        if term.is_some_and(|t| judge.fit(t).is_some()) && !take(id) {
            return false;
        }
    }
    true
}

/// Scans the terms of the base. Returns true unless it was stopped before the end.
///
/// # Errors
/// `Damaged`.
pub(super) fn base(
    sight: &LabelGraph<'_>,
    asked: &WordQuery,
    kind: SearchedTerms,
    stop: &mut dyn FnMut() -> bool,
    take: &mut dyn FnMut(u32) -> bool,
) -> Result<bool> {
    let dictionary = sight.snapshot.base().dictionary();
    let mut judge = TermJudge::new(asked, kind);
    let ranges = judge.tags().iter().map(|&tag| dictionary.tag_range(tag));
    let all: u64 = ranges.clone().map(|r| r.len() as u64).sum();
    // Reading labels one by one means random accesses; reading all terms in order is some ten times as fast per term.
    if kind == SearchedTerms::Literals && label_keys(sight) < (all / 8).min(MOST_LISTED) {
        let mut ids = Vec::new();
        labels_of(sight, &mut ids);
        let mut canonical = Vec::new();
        for (i, &id) in ids.iter().take_while(|&&id| id < FIRST_TAIL_ID).enumerate() {
            if (i as u32).is_multiple_of(CHECK) && stop() {
                return Ok(false);
            }
            canonical.clear();
            if dictionary.term(VertexId(id), &mut canonical)
                && judge.fit(&canonical).is_some()
                && !take(id)
            {
                return Ok(false);
            }
        }
        return Ok(true);
    }
    for range in ranges {
        let mut from = range.start;
        while from < range.end {
            if stop() {
                return Ok(false);
            }
            let to = from.saturating_add(CHECK).min(range.end);
            let mut found: Vec<Vec<u8>> = Vec::new();
            dictionary.strings().for_each(from..to, |_, term| {
                if judge.fit(term).is_some() {
                    found.push(term.to_vec());
                }
            });
            for term in found {
                if let Some(id) = dictionary.lookup(&term)
                    && !take(id.0)
                {
                    return Ok(false);
                }
            }
            from = to;
        }
    }
    Ok(true)
}
