//! Candidates for the words of a search, and their ranking.

use super::labels;
use super::scan;
use super::sight::{LabelGraph, id_of};
use super::tail::IndexedTail;
use super::{Found, LONGEST_IRI, MOST_FOUND, Search, Searched, tail};
use jindou_graph::Graph;
use jindou_model::term::{self, Parts};
use jindou_model::{
    Charge, Direction, FIRST_TAIL_ID, Holder, MemoryBudget, PredicateId, Result, VertexId,
};
use jindou_text::{Fit, Folder, OpenText, SearchedTerms, WordQuery, count, folded};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Reverse;
use std::time::{Duration, Instant};

/// Largest number of resources that each part of the data (base, tail, or a shard) adds as candidates. Where there is
/// an index, terms with fewer words come first.
pub(super) const MOST_CANDIDATES: usize = 500;
/// Largest number of matching terms that are examined in each part of the data.
pub(super) const MOST_TERMS: usize = 20_000;
/// Largest number of candidates with the same literal as their label.
const MOST_PER_LABEL: usize = 200;
/// Largest number of candidates whose uses are counted for the ranking.
const MOST_COUNTED: usize = 1000;
/// Bytes charged for a candidate in addition to its text.
const CANDIDATE: u64 = 160;
/// Fraction of the time limit that may be spent on searching literals; the remaining time is for IRIs.
const FOR_LITERALS: f64 = 0.6;

/// A resource that matches the words.
pub(super) struct SearchCandidate {
    pub(super) fit: Fit,
    pub(super) kind: SearchedTerms,
    pub(super) words: usize,
    /// The literal that matched; `None` if the IRI did.
    pub(super) matched: Option<String>,
}

impl SearchCandidate {
    fn key(&self) -> (Fit, usize, usize) {
        (self.fit, self.kind as usize, self.words)
    }
}

pub(super) struct ResourceFinder<'a> {
    pub(super) sight: &'a LabelGraph<'a>,
    pub(super) asked: &'a WordQuery,
    tail: &'a IndexedTail,
    end: Instant,
    pub(super) candidates: FxHashMap<u32, SearchCandidate>,
    pub(super) seen: FxHashSet<u32>,
    pub(super) complete: bool,
}

/// Receives the terms of the base or of the tail that match the words, and adds candidates.
struct CandidateCollector<'f> {
    sight: &'f LabelGraph<'f>,
    asked: &'f WordQuery,
    candidates: &'f mut FxHashMap<u32, SearchCandidate>,
    seen: &'f mut FxHashSet<u32>,
    charge: &'f mut Charge,
    folder: Folder,
    text: String,
    canonical: Vec<u8>,
    scratch: Vec<u32>,
    end: Instant,
    terms: usize,
    /// Number of candidates at which no more terms are accepted.
    most: usize,
    /// True once a literal was the label of more than [`MOST_PER_LABEL`] resources, so that some were left out.
    cut: bool,
    failed: Option<jindou_model::Error>,
}

impl CandidateCollector<'_> {
    /// Accepts a term that matches; false if no more terms are wanted.
    fn take(&mut self, id: u32) -> bool {
        if !self.seen.insert(id) {
            return true;
        }
        self.terms += 1;
        // The time is checked for each term, since that costs little compared with a term that may have millions of
        // edges.
        if Instant::now() >= self.end || self.sight.cancel.is_cancelled() {
            return false;
        }
        let taken = self.taken(id);
        if let Err(e) = taken {
            self.failed = Some(e);
            return false;
        }
        self.terms < MOST_TERMS && self.candidates.len() < self.most
    }

    fn taken(&mut self, id: u32) -> Result<()> {
        self.canonical.clear();
        // The index of the tail may still have terms whose text is no longer here. Their owners have searched them.
        let snapshot = self.sight.snapshot;
        if snapshot.tail().is_elsewhere(VertexId(id)) {
            return Ok(());
        }
        if !snapshot.term(VertexId(id), &mut self.canonical) {
            return Ok(());
        }
        // The term is compared with the words again, since an index may contain terms that this snapshot lacks, or
        // return wrong ones if it is damaged.
        let kind = folded(&self.canonical, &mut self.folder, &mut self.text);
        let fit = kind.and_then(|kind| Some((kind, self.asked.fit(&self.text)?)));
        let Some((kind, fit)) = fit else {
            return Ok(());
        };
        let words = count(&self.text);
        match (kind, term::parts(&self.canonical)) {
            (SearchedTerms::Literals, Some(Parts::String(text) | Parts::Lang(text, _))) => {
                for &(_, p) in &self.sight.labels {
                    let edges = self.sight.edges(p, Direction::In);
                    let subjects = edges.read(id, self.sight.graphs.scope(), &mut self.scratch);
                    self.cut |= subjects.len() > MOST_PER_LABEL;
                    for &s in subjects.iter().take(MOST_PER_LABEL) {
                        let candidate = SearchCandidate {
                            fit,
                            kind,
                            words,
                            matched: Some(text.to_owned()),
                        };
                        add(self.candidates, self.charge, s, candidate)?;
                    }
                }
                Ok(())
            }
            (SearchedTerms::Iris, Some(Parts::Iri(_))) => {
                if self.sight.uses(id, &mut self.scratch).is_none() {
                    return Ok(());
                }
                let candidate = SearchCandidate {
                    fit,
                    kind,
                    words,
                    matched: None,
                };
                add(self.candidates, self.charge, id, candidate)
            }
            _ => Ok(()),
        }
    }
}

/// Adds a candidate, unless the resource already is a candidate with a better match.
pub(super) fn add(
    candidates: &mut FxHashMap<u32, SearchCandidate>,
    charge: &mut Charge,
    id: u32,
    candidate: SearchCandidate,
) -> Result<()> {
    let there = candidates.get(&id);
    if there.is_some_and(|there| {
        let (own, other) = (candidate.key(), there.key());
        (own, &candidate.matched) >= (other, &there.matched)
    }) {
        return Ok(());
    }
    let text = candidate.matched.as_ref().map_or(0, String::len);
    charge.add(CANDIDATE + text as u64)?;
    candidates.insert(id, candidate);
    Ok(())
}

impl<'a> ResourceFinder<'a> {
    pub fn new(
        sight: &'a LabelGraph<'a>,
        asked: &'a WordQuery,
        tail: &'a IndexedTail,
        end: Instant,
    ) -> Self {
        Self {
            sight,
            asked,
            tail,
            end,
            candidates: FxHashMap::default(),
            seen: FxHashSet::default(),
            complete: true,
        }
    }

    /// Runs the search.
    ///
    /// # Errors
    /// `Limit`, `Cancelled`, `Damaged`.
    pub fn run(
        mut self,
        text: &str,
        search: &Search<'_>,
        memory: &MemoryBudget,
    ) -> Result<Searched> {
        let mut charge = Charge::new(Holder::Rest, memory);
        let left = self.end.saturating_duration_since(Instant::now());
        let literals_end = Instant::now() + left.mul_f64(FOR_LITERALS);
        if !self.sight.labels.is_empty() {
            self.look(text, SearchedTerms::Literals, literals_end, &mut charge)?;
        }
        self.look(text, SearchedTerms::Iris, self.end, &mut charge)?;
        self.take_iri(text, &mut charge)?;
        self.sight.cancel.check()?;
        self.answer(search, &mut charge)
    }

    /// Adds the resource whose IRI is the text that is searched for.
    fn take_iri(&mut self, text: &str, charge: &mut Charge) -> Result<()> {
        let trimmed = text.trim();
        let bare = trimmed.strip_prefix('<').and_then(|t| t.strip_suffix('>'));
        // Every IRI contains a colon. For a text without one, no requests are sent to other shards.
        if !trimmed.contains(':') {
            return Ok(());
        }
        let Some(id) = id_of(self.sight.snapshot, bare.unwrap_or(trimmed)) else {
            return Ok(());
        };
        if self.sight.uses(id.0, &mut Vec::new()).is_none() {
            return Ok(());
        }
        let named = SearchCandidate {
            fit: Fit::Same,
            kind: SearchedTerms::Literals,
            words: 0,
            matched: None,
        };
        add(&mut self.candidates, charge, id.0, named)
    }

    /// Searches terms of one kind in the base and in the tail, or in all shards.
    fn look(
        &mut self,
        text: &str,
        kind: SearchedTerms,
        end: Instant,
        charge: &mut Charge,
    ) -> Result<()> {
        let snapshot = self.sight.snapshot;
        let index = snapshot.base().indexes().get::<OpenText>();
        // The part that must be scanned comes last: the base if it has no index, otherwise the tail.
        let mut parts = vec![index.is_none(), index.is_some()];
        if let Some(sharded) = snapshot.as_sharded() {
            self.look_in_shards(sharded, text, kind, end, charge)?;
            if self.sight.is_as_loaded() {
                return Ok(());
            }
            // Shards answer from their bases. Their answers lack terms that became labels only by updates, or whose
            // edges are now in other graphs.
            self.complete = false;
            parts = vec![true];
        }
        let cancel = &self.sight.cancel;
        let mut stop = || Instant::now() >= end || cancel.is_cancelled();
        for in_tail in parts {
            let most = self.candidates.len() + MOST_CANDIDATES;
            let mut collector = CandidateCollector {
                sight: self.sight,
                asked: self.asked,
                candidates: &mut self.candidates,
                seen: &mut self.seen,
                charge,
                folder: Folder::default(),
                text: String::new(),
                canonical: Vec::new(),
                scratch: Vec::new(),
                end,
                terms: 0,
                most,
                cut: false,
                failed: None,
            };
            let mut take = |id| collector.take(id);
            let whole = match (in_tail, index) {
                (true, _) => {
                    let words = &self.tail.words;
                    let known = words.search(self.asked, kind, &mut stop, &mut take)?;
                    let numbers = self.tail.unindexed_numbers(snapshot.tail());
                    let rest =
                        scan::tail(snapshot, numbers, self.asked, kind, &mut stop, &mut take);
                    known && rest
                }
                (false, Some(index)) => index.search(self.asked, kind, &mut stop, &mut take)?,
                (false, None) => scan::base(self.sight, self.asked, kind, &mut stop, &mut take)?,
            };
            if let Some(e) = collector.failed {
                return Err(e);
            }
            self.complete &= whole && !collector.cut;
        }
        Ok(())
    }

    /// Ranks the candidates and decodes the best ones.
    fn answer(self, search: &Search<'_>, charge: &mut Charge) -> Result<Searched> {
        let sight = self.sight;
        let mut scratch = Vec::new();
        let mut all: Vec<(u32, SearchCandidate)> = self.candidates.into_iter().collect();
        all.sort_by_key(|(id, c)| (c.key(), *id));
        // Candidates after these have worse keys, so they are not among the best, unless more than [`MOST_COUNTED`]
        // candidates share the best key.
        let complete = self.complete && all.len() <= MOST_COUNTED;
        all.truncate(MOST_COUNTED);
        let ids: Vec<u32> = all.iter().map(|(id, _)| *id).collect();
        // The number of uses decides only the order of candidates with equal keys.
        let uses = sight.uses_of_many(&ids, MOST_FOUND, self.end + GRACE);
        let mut ranked = Vec::with_capacity(all.len());
        for ((id, candidate), uses) in all.into_iter().zip(uses) {
            ranked.push((candidate.key(), Reverse(uses), id, candidate));
        }
        ranked.sort_by(|a, b| (a.0, &a.1, a.2).cmp(&(b.0, &b.1, b.2)));
        let limit = search.limit.min(MOST_FOUND);
        let mut found = Vec::new();
        let mut ids = Vec::new();
        let mut rest = ranked.into_iter();
        while found.len() < limit && rest.len() > 0 {
            let part: Vec<_> = rest.by_ref().take(limit - found.len()).collect();
            let fetched: Vec<u32> = part.iter().map(|r| r.2).collect();
            sight.fetch_terms(&fetched);
            for (_, _, id, candidate) in part {
                // A blank node may have a label, but has no IRI to return.
                let Some(iri) = sight.iri(id).filter(|i| i.len() <= LONGEST_IRI) else {
                    continue;
                };
                // The IRI is in memory up to four times: in this list, in the response's document, and in buffers while
                // that document is written.
                charge.add(4 * iri.len() as u64)?;
                let matched = candidate.matched;
                let matched = matched.unwrap_or_else(|| jindou_text::local_name(&iri).to_owned());
                ids.push(id);
                found.push(Found {
                    class: None,
                    label: None,
                    matched,
                    iri,
                });
            }
        }
        sight.fetch_classes(&ids);
        for (found, &id) in found.iter_mut().zip(&ids) {
            found.class = sight.class(id, &mut scratch);
            charge.add(4 * found.class.as_ref().map_or(0, String::len) as u64)?;
        }
        let labels = labels::of(sight, &ids, &search.labels, charge)?;
        for (found, label) in found.iter_mut().zip(labels) {
            found.label = label;
        }
        Ok(Searched {
            found,
            complete,
            indexed: tail::has_index(sight.snapshot),
        })
    }
}

/// Additional time after the search's end for counting uses.
const GRACE: Duration = Duration::from_millis(5);

/// The id of the tail's `n`-th term.
pub(super) fn tail_id(n: u32) -> u32 {
    FIRST_TAIL_ID + n
}

/// Upper bound on the number of labels to scan: a label of two properties, or of both default and named graphs, counts
/// twice.
pub(super) fn label_keys(sight: &LabelGraph<'_>) -> u64 {
    let keys = |p: &(usize, PredicateId)| {
        u64::from(sight.edges(p.1, Direction::In).key_counts()[0])
            + u64::from(sight.edges(p.1, Direction::In).key_counts()[1])
    };
    sight.labels.iter().map(keys).sum()
}

/// The distinct labels of the base and the tail, by their ids.
pub(super) fn labels_of(sight: &LabelGraph<'_>, out: &mut Vec<u32>) {
    let mut keys = Vec::new();
    for &(_, p) in &sight.labels {
        let edges = Graph::edges(sight.snapshot, p, Direction::In);
        edges.candidate_keys(sight.graphs.scope(), &mut keys);
        out.append(&mut keys);
    }
    out.sort_unstable();
    out.dedup();
}
