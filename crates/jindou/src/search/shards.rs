//! Candidates from all shards of a store. Each shard searches its own terms ([`OtherShards::search_words`]). This
//! module combines the results into one list of candidates, as for an unsharded store.
//!
//! [`OtherShards::search_words`]: jindou_graph::shard::OtherShards::search_words

use super::find::{MOST_CANDIDATES, MOST_TERMS, ResourceFinder, SearchCandidate, add};
use jindou_graph::shard::{FoundTerm, Sharded, WordSearch};
use jindou_model::term::{self, Parts};
use jindou_model::{Charge, FIRST_TAIL_ID, Result, VertexId};
use jindou_text::{SearchedTerms, TermJudge};
use std::time::Instant;

/// Number of terms and candidates that one shard has returned.
#[derive(Clone, Copy, Default)]
struct Given {
    terms: usize,
    candidates: usize,
}

impl ResourceFinder<'_> {
    /// Searches terms of one kind on all shards.
    pub(super) fn look_in_shards(
        &mut self,
        sharded: &Sharded,
        text: &str,
        kind: SearchedTerms,
        end: Instant,
        charge: &mut Charge,
    ) -> Result<()> {
        let labels: Vec<u32> = self.sight.labels.iter().map(|l| l.1.0).collect();
        let asked = WordSearch {
            words: text,
            iris: kind == SearchedTerms::Iris,
            scope: self.sight.graphs.scope(),
            labels: &labels,
            end,
        };
        let mut judge = TermJudge::new(self.asked, kind);
        let mut given = vec![Given::default(); sharded.blocks().shards() as usize];
        let mut failed = None;
        let tail = self.sight.snapshot.tail();
        let mut take = |found: FoundTerm<'_>| {
            let Some(given) = given.get_mut(found.shard as usize) else {
                return false;
            };
            // The shard may have a new term that was freed since its last merge. If the text of the id's present term is
            // here, the search of the tail finds it.
            let is_outdated = found.id >= FIRST_TAIL_ID && !tail.is_elsewhere(VertexId(found.id));
            if is_outdated || !self.seen.insert(found.id) {
                return true;
            }
            let before = self.candidates.len();
            // The term is compared with the words again, since a shard or its index may return wrong ones.
            let taken = match judge.fit(found.canonical) {
                Some(how) => self.take_found(kind, how, &found, charge),
                None => Ok(()),
            };
            if let Err(e) = taken {
                failed = Some(e);
                return false;
            }
            given.terms += 1;
            given.candidates += self.candidates.len() - before;
            given.terms < MOST_TERMS && given.candidates < MOST_CANDIDATES
        };
        let whole = sharded.others().search_words(&asked, &mut take);
        if let Some(e) = failed {
            return Err(e);
        }
        self.complete &= whole;
        self.sight.cancel.check()
    }

    /// Adds as candidates the resources for which a shard has found a term.
    fn take_found(
        &mut self,
        kind: SearchedTerms,
        (fit, words): (jindou_text::Fit, usize),
        found: &FoundTerm<'_>,
        charge: &mut Charge,
    ) -> Result<()> {
        let candidate = |matched| SearchCandidate {
            fit,
            kind,
            words,
            matched,
        };
        match term::parts(found.canonical) {
            // The shard knows the store as of its last merge; since then updates may have removed all uses of the IRI.
            Some(Parts::Iri(_))
                if !self.sight.is_as_loaded()
                    && self.sight.uses(found.id, &mut Vec::new()).is_none() =>
            {
                Ok(())
            }
            Some(Parts::Iri(_)) => add(&mut self.candidates, charge, found.id, candidate(None)),
            Some(Parts::String(text) | Parts::Lang(text, _)) => {
                for &s in &*self.sight.labelled(found.id, found.subjects) {
                    let matched = Some(text.to_owned());
                    add(&mut self.candidates, charge, s, candidate(matched))?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}
