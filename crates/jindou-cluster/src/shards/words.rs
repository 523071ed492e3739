//! A shard's search for words among its own terms: by its word index, or by scanning its strings.

use super::Reply;
use super::uses::uses_at;
use jindou_graph::segment::GraphScope;
use jindou_graph::shard::LocalKey;
use jindou_model::{Direction, Error, FIRST_TAIL_ID, PredicateId, Result, VertexId};
use jindou_store::Base;
use jindou_store::shard::OwnData;
use jindou_text::{OpenText, SearchedTerms, TermJudge, WordQuery};
use rustc_hash::FxHashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Longest search text in bytes.
const LONGEST: usize = 4096;
/// Longest time of a search, since the threads that answer requests are few.
const LONGEST_TIME: Duration = Duration::from_secs(10);
/// Time after which a scan of terms, or the verification of the index, is interrupted, so that other requests can
/// proceed and the requesting side can check whether the search was cancelled.
const TURN: Duration = Duration::from_millis(20);
/// Number of terms between two checks of the clock.
const CHECK: u32 = 256;
/// Largest number of resources in a reply. Those with few words are preferred.
const MOST_RESOURCES: usize = 500;
/// Largest number of terms that are examined for a reply.
const MOST_TERMS: usize = 20_000;
/// Largest number of candidate resources for each string.
const MOST_EACH: usize = 200;
/// No further terms are added once the reply has this many bytes of terms.
const MOST_BYTES: usize = 4 << 20;

/// In a position: the rest is a number of a merged new term, which no index has. Other positions are lower.
const MERGED: u64 = 1 << 63;

/// The parameters of a search at one shard.
pub(super) struct OwnSearch<'a> {
    pub words: &'a [u8],
    pub iris: bool,
    pub scope: GraphScope<'a>,
    pub labels: &'a [u32],
    pub from: u64,
    pub time: Duration,
}

/// True if each of the bases has a word index.
pub(crate) fn are_indexed<'b>(mut bases: impl Iterator<Item = &'b Arc<Base>>) -> bool {
    bases.all(|base| base.indexes().get::<OpenText>().is_some())
}

/// Verifies the bases' word indexes against their hashes, until `stop` returns true. Returns true once all are
/// verified.
pub(crate) fn prepare<'b>(
    bases: impl Iterator<Item = &'b Arc<Base>>,
    stop: &mut dyn FnMut() -> bool,
) -> bool {
    let mut ready = true;
    for index in bases.filter_map(|base| base.indexes().get::<OpenText>()) {
        if !index.is_ready() {
            index.prepare(stop);
        }
        ready &= index.is_ready();
    }
    ready
}

/// Searches the shard's own terms for the words.
///
/// # Errors
/// [`Error::Shard`] if no words are given; [`Error::Damaged`].
pub(super) fn find(base: &Base, own: OwnData<'_>, asked: &OwnSearch<'_>) -> Result<Reply> {
    find_within(base, own, asked, TURN)
}

fn find_within(
    base: &Base,
    own: OwnData<'_>,
    asked: &OwnSearch<'_>,
    turn: Duration,
) -> Result<Reply> {
    let text = std::str::from_utf8(asked.words).ok();
    let text = text.filter(|t| t.len() <= LONGEST);
    let query = text.and_then(WordQuery::new).ok_or_else(|| {
        Error::shard(own.number(), "it was asked to search for what are no words")
    })?;
    let kind = match asked.iris {
        true => SearchedTerms::Iris,
        false => SearchedTerms::Literals,
    };
    let begun = Instant::now();
    let mut builder = ReplyBuilder {
        base,
        own,
        asked,
        matcher: TermJudge::new(&query, kind),
        end: begun + asked.time.min(LONGEST_TIME),
        turn: begun + asked.time.min(turn),
        seen: FxHashSet::default(),
        resources: FxHashSet::default(),
        ids: Vec::new(),
        ends: Vec::new(),
        bytes: Vec::new(),
        subject_ends: Vec::new(),
        subjects: Vec::new(),
        cut: false,
        scratch: Vec::new(),
    };
    let next = if asked.from & MERGED == MERGED {
        builder.by_merged()
    } else {
        match base.indexes().get::<OpenText>() {
            Some(index) => builder.by_index(index, &query, kind)?.or(Some(MERGED)),
            // These are all labels, those that updates added among them.
            None if builder.are_labels_few(kind) => builder.by_labels(),
            None => builder.by_strings().or(Some(MERGED)),
        }
    };
    let next = match next {
        Some(MERGED) if builder.cut => None,
        Some(MERGED) => builder.by_merged(),
        next => next,
    };
    Ok(Reply::Words {
        ids: builder.ids,
        ends: builder.ends,
        bytes: builder.bytes,
        subject_ends: builder.subject_ends,
        subjects: builder.subjects,
        cut: builder.cut,
        more: next.is_some(),
        next: next.unwrap_or(0),
    })
}

/// Collects the terms of a reply.
struct ReplyBuilder<'a> {
    base: &'a Base,
    own: OwnData<'a>,
    asked: &'a OwnSearch<'a>,
    matcher: TermJudge<'a>,
    /// Time at which the search ends, and time at which this reply must end.
    end: Instant,
    turn: Instant,
    seen: FxHashSet<u32>,
    /// Resources that are already in the reply.
    resources: FxHashSet<u32>,
    ids: Vec<u32>,
    ends: Vec<u32>,
    bytes: Vec<u8>,
    subject_ends: Vec<u32>,
    subjects: Vec<u32>,
    cut: bool,
    scratch: Vec<u32>,
}

// The methods that search return the position at which to continue if they were interrupted, and `None` if they are
// complete.
impl ReplyBuilder<'_> {
    fn by_index(
        &mut self,
        index: &OpenText,
        query: &WordQuery,
        kind: SearchedTerms,
    ) -> Result<Option<u64>> {
        let (end, turn) = (self.end, self.turn);
        if !index.is_ready() {
            index.prepare(&mut || Instant::now() >= turn);
            if !index.is_ready() {
                return Ok(Some(0));
            }
        }
        let own = self.own;
        let mut stop = || Instant::now() >= end;
        let mut take = |number| self.take(own.id_of_number(number));
        let whole = index.search(query, kind, &mut stop, &mut take)?;
        self.cut |= !whole;
        Ok(None)
    }

    /// True if examining each label is expected to be faster than scanning all strings, which takes about a tenth of
    /// the time per string.
    fn are_labels_few(&self, kind: SearchedTerms) -> bool {
        let keys = |&p: &u32| {
            let [default, named] = self.own.edges(PredicateId(p), Direction::In).key_counts();
            u64::from(default) + u64::from(named)
        };
        let labels: u64 = self.asked.labels.iter().map(keys).sum();
        let tags = self.matcher.tags().iter();
        let strings = tags.map(|&tag| self.base.dictionary().tag_range(tag).len() as u64);
        kind == SearchedTerms::Literals && labels < strings.sum::<u64>() / 8
    }

    /// Examines each label. Positions (`from`, and the returned one) consist of the index of a label predicate (high 32
    /// bits) and the first id (low 32 bits).
    fn by_labels(&mut self) -> Option<u64> {
        let (mut at, mut first) = ((self.asked.from >> 32) as usize, self.asked.from as u32);
        let mut ids = Vec::new();
        while let Some(&p) = self.asked.labels.get(at) {
            ids.clear();
            let page = [first, CHECK];
            let scope = self.asked.scope;
            let of = PredicateId(p);
            let more = self.own.keys(of, Direction::In, scope, page, &mut ids);
            for &id in &ids {
                if !self.take(id) {
                    self.cut = true;
                    return None;
                }
            }
            let after = ids.last().and_then(|last| last.checked_add(1));
            (at, first) = match after.filter(|_| more) {
                Some(next) => (at, next),
                None => (at + 1, 0),
            };
            if Instant::now() >= self.turn {
                return Some((at as u64) << 32 | u64::from(first));
            }
        }
        None
    }

    /// Scans all strings of the dictionary in order. Positions (`from`, and the returned one) are indexes of terms in
    /// the dictionary.
    fn by_strings(&mut self) -> Option<u64> {
        let dictionary = self.base.dictionary();
        let tags = self.matcher.tags().iter();
        let mut ranges: Vec<_> = tags.map(|&tag| dictionary.tag_range(tag)).collect();
        ranges.sort_unstable_by_key(|r| r.start);
        let from = u32::try_from(self.asked.from).unwrap_or(u32::MAX);
        for range in ranges {
            let mut at = range.start.max(from);
            while at < range.end {
                let to = at.saturating_add(CHECK).min(range.end);
                let mut found: Vec<Vec<u8>> = Vec::new();
                let matcher = &mut self.matcher;
                dictionary.strings().for_each(at..to, |_, term| {
                    if matcher.fit(term).is_some() {
                        found.push(term.to_vec());
                    }
                });
                for term in found {
                    let number = dictionary.lookup(&term);
                    if let Some(number) = number
                        && !self.take(self.own.id_of_number(number.0))
                    {
                        self.cut = true;
                        return None;
                    }
                }
                at = to;
                if Instant::now() >= self.turn {
                    return Some(at.into());
                }
            }
        }
        None
    }

    /// Examines the shard's merged new terms. Positions are their numbers and [`MERGED`].
    fn by_merged(&mut self) -> Option<u64> {
        let terms = self.own.merged_terms();
        let mut at = self.asked.from.saturating_sub(MERGED) as u32;
        while at < terms.len() {
            let to = at.saturating_add(CHECK).min(terms.len());
            // Consecutive ids have the same owner.
            if self.own.key(FIRST_TAIL_ID + at).is_some() {
                for id in (FIRST_TAIL_ID + at)..(FIRST_TAIL_ID + to) {
                    let term = terms.term(VertexId(id));
                    if term.is_some_and(|term| self.matcher.fit(term).is_some()) && !self.take(id) {
                        self.cut = true;
                        return None;
                    }
                }
            }
            at = to;
            if at < terms.len() && Instant::now() >= self.turn {
                return Some(MERGED | u64::from(at));
            }
        }
        None
    }

    /// Adds a term if it matches. Returns false if no more terms are wanted.
    fn take(&mut self, id: u32) -> bool {
        // All shards have the terms of predicates, classes and graphs. Only the term's owner adds it.
        let Some(key) = self.own.key(id) else {
            return true;
        };
        if !self.seen.insert(id) {
            return true;
        }
        if Instant::now() >= self.end {
            return false;
        }
        let start = self.bytes.len();
        let there = self.own.term(id, &mut self.bytes);
        // The index may contain other terms than the dictionary, so check the term itself.
        let term = self.bytes.get(start..).unwrap_or(&[]);
        if there && self.matcher.fit(term).is_some() && self.is_wanted(id, key) {
            self.ids.push(id);
            self.ends.push(self.bytes.len() as u32);
            self.subject_ends.push(self.subjects.len() as u32);
        } else {
            self.bytes.truncate(start);
        }
        self.seen.len() < MOST_TERMS
            && self.resources.len() < MOST_RESOURCES
            && self.bytes.len() < MOST_BYTES
    }

    /// True for an IRI that occurs in the graphs, and for a label; the label's subjects are then appended.
    fn is_wanted(&mut self, id: u32, key: LocalKey) -> bool {
        let scope = self.asked.scope;
        if self.asked.iris {
            let all = (scope, self.base.statistics());
            let is_used = uses_at(&self.own, (id, key), all, &mut self.scratch).is_some();
            return is_used && self.resources.insert(id);
        }
        let before = self.subjects.len();
        for &p in self.asked.labels {
            let view = self.own.edges(PredicateId(p), Direction::In);
            let subjects = view.read(key, scope, &mut self.scratch);
            self.cut |= subjects.len() > MOST_EACH;
            let subjects = &subjects[..subjects.len().min(MOST_EACH)];
            self.subjects.extend_from_slice(subjects);
            self.resources.extend(subjects);
        }
        self.subjects.len() > before
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::near_of_terms;
    use jindou_model::term;
    use jindou_store::shard::{Placement, Sharding};
    use jindou_store::testing::{TermQuad, canonical};
    use oxrdf::{GraphName, Literal, NamedNode, Quad};

    fn quad(subject: usize, property: &str, text: &str) -> TermQuad {
        let node = |name: &str| NamedNode::new_unchecked(format!("http://e/{name}"));
        canonical(&Quad {
            subject: node(&format!("Thing{subject}")).into(),
            predicate: node(property),
            object: Literal::new_simple_literal(text).into(),
            graph_name: GraphName::DefaultGraph,
        })
    }

    /// Ids that one shard returns in all replies if each is interrupted after `turn`, and the number of requests.
    fn all(base: &Base, iris: bool, turn: Duration) -> (Vec<u32>, usize) {
        let own = base.own_data().unwrap();
        let label = |name: &str| {
            let mut iri = Vec::new();
            term::push_iri(&format!("http://e/{name}"), &mut iri);
            let mut ids = Vec::new();
            own.lookup(&[iri.as_slice()], &mut ids);
            own.predicate_of(ids[0]).unwrap().0
        };
        let labels = [label("name"), label("title")];
        let (mut found, mut from, mut turns) = (Vec::new(), 0, 0);
        loop {
            let asked = OwnSearch {
                words: b"thing 7",
                iris,
                scope: GraphScope::Default,
                labels: &labels,
                from,
                time: Duration::from_secs(60),
            };
            let Ok(Reply::Words {
                ids,
                ends,
                bytes,
                cut: false,
                more,
                next,
                ..
            }) = find_within(base, own, &asked, turn)
            else {
                panic!("no terms");
            };
            assert_eq!(ends.last().map_or(0, |&e| e as usize), bytes.len());
            found.extend(ids);
            turns += 1;
            if !more {
                found.sort_unstable();
                // A string that is a label by two properties may be returned twice.
                found.dedup();
                return (found, turns);
            }
            assert!(next > from);
            from = next;
        }
    }

    /// Searches that are interrupted after any time return all terms, by labels or by strings.
    #[test]
    fn turns_together_are_one_search() {
        for others in [0, 8_000] {
            let mut quads: Vec<TermQuad> = (0..700)
                .flat_map(|n| {
                    let property = ["name", "title"][n % 2];
                    let both = (n % 14 == 7).then(|| quad(n, "name", &format!("thing {n}")));
                    [quad(n, property, &format!("thing {n}"))]
                        .into_iter()
                        .chain(both)
                })
                .collect();
            quads.extend((0..others).map(|n| quad(n, "note", &format!("thing 7 note {n}"))));
            let sharding = Sharding::new(3).with_placement(Placement::Hash);
            let (_folder, near) = near_of_terms(&quads, sharding.with_block_shift(Some(0)));
            let near = near.unwrap();
            for iris in [false, true] {
                let mut together = 0;
                for base in near.shards() {
                    let (whole, one) = all(base, iris, Duration::from_secs(60));
                    let (short, many) = all(base, iris, Duration::ZERO);
                    assert_eq!(whole, short);
                    assert!(one == 1 && many > 1, "{one} {many}");
                    together += whole.len();
                }
                // The numbers 7 and 70 to 79 of 700 match.
                assert!(iris && others > 0 || together == 11, "{together}");
            }
        }
    }
}
