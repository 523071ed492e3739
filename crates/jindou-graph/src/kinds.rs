//! Kinds of terms by id: IRIs, blank nodes, triple terms, and literals of each datatype and language.

use crate::sets::CharacteristicSets;
use jindou_dictionary::Dictionary;
use jindou_model::term::{BLANK, IRI};
use jindou_model::{VertexId, scope};

/// Largest number of kinds, and of runs of ids, for which kinds are known.
const MOST_KINDS: usize = 1 << 12;
const MOST_RUNS: usize = 1 << 20;
/// Number of ids whose terms are looked up at a time.
const CHUNK: u32 = 4096;

/// A run of consecutive ids whose terms are of one kind. It ends where the next run starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KindRun {
    pub start: u32,
    pub kind: u32,
}

/// The kinds of a base's terms. Kinds are numbered in the order of their [heads](jindou_model::term::head).
#[derive(Debug)]
pub struct TermKinds {
    heads: Vec<Box<[u8]>>,
    /// A term of each kind.
    examples: Vec<u32>,
    runs: Vec<KindRun>,
    /// The first id after the last run.
    end: u32,
}

impl TermKinds {
    /// Finds the kinds of the terms of a load with the ids `1..end`. Such ids ascend in the order of the terms among
    /// vertices with the same classes and the same sets of predicates, so mostly only the ends of runs are looked up:
    /// O(runs of sets × log ids). `None` if there are too many kinds or runs, or the query has ended.
    #[must_use]
    pub fn of_load(
        dictionary: &Dictionary,
        sets: CharacteristicSets<'_>,
        rdf_type: Option<u32>,
        end: u32,
    ) -> Option<Self> {
        let heads = dictionary.strings().heads(MOST_KINDS)?;
        let (firsts, heads): (Vec<u32>, Vec<_>) = heads.into_iter().unzip();
        let mut finding = Finding {
            dictionary,
            firsts,
            runs: vec![],
        };
        // A run of sets may have vertices of several classes. These are IRIs and blank nodes.
        let has = |tag| !dictionary.tag_range(tag).is_empty();
        let are_mixed = has(IRI) && has(BLANK);
        let is_typed = |set| rdf_type.is_some_and(|p| sets.list(set).binary_search(&p).is_ok());
        let ends = sets.runs.iter().skip(1).map(|r| r.start);
        for (run, end) in sets.runs.iter().zip(ends.chain([end])) {
            if are_mixed && is_typed(run.out_set) {
                finding.each(run.start, end)?;
            } else {
                finding.ascending(run.start, end)?;
            }
            if finding.runs.len() > MOST_RUNS {
                return None;
            }
        }
        let mut examples = vec![0; heads.len()];
        for run in &finding.runs {
            *examples.get_mut(run.kind as usize)? = run.start;
        }
        Some(Self {
            heads,
            examples,
            runs: finding.runs,
            end,
        })
    }

    /// The number of the kind with a head.
    pub(crate) fn numbered(&self, head: &[u8]) -> Option<u32> {
        let at = self.heads.binary_search_by(|h| (**h).cmp(head));
        at.ok().map(|n| n as u32)
    }

    /// The kind of a term of the base; `None` for other ids.
    pub(crate) fn of(&self, id: u32) -> Option<u32> {
        let run = self
            .runs
            .partition_point(|r| r.start <= id)
            .checked_sub(1)?;
        (id < self.end).then(|| self.runs.get(run).map(|r| r.kind))?
    }

    /// The runs, ascending.
    pub(crate) fn runs(&self) -> &[KindRun] {
        &self.runs
    }

    /// The interval of ids of some consecutive runs.
    pub(crate) fn interval(&self, from: usize, to: usize) -> [u32; 2] {
        [from, to].map(|at| self.runs.get(at).map_or(self.end, |r| r.start))
    }

    /// A term of each kind.
    pub(crate) fn examples(&self) -> &[u32] {
        &self.examples
    }
}

/// Runs of kinds while they are found.
struct Finding<'a> {
    dictionary: &'a Dictionary,
    /// Lex index of the first term of each kind.
    firsts: Vec<u32>,
    runs: Vec<KindRun>,
}

impl Finding<'_> {
    fn kind_of(&self, lex: u32) -> u32 {
        (self.firsts.partition_point(|f| *f <= lex) as u32).saturating_sub(1)
    }

    fn kind(&self, id: u32) -> Option<u32> {
        let lex = self.dictionary.lex(VertexId(id))?;
        Some(self.kind_of(lex))
    }

    fn push(&mut self, start: u32, kind: u32) {
        if self.runs.last().is_none_or(|r| r.kind != kind) {
            self.runs.push(KindRun { start, kind });
        }
    }

    /// Adds the ids `start..end`, whose terms ascend.
    fn ascending(&mut self, start: u32, end: u32) -> Option<()> {
        let mut at = start;
        while at < end {
            let kind = self.kind(at)?;
            self.push(at, kind);
            let (mut low, mut high) = (at + 1, end);
            if self.kind(end - 1)? == kind {
                low = end;
            }
            while low < high {
                let middle = low + (high - low) / 2;
                match self.kind(middle)? == kind {
                    true => low = middle + 1,
                    false => high = middle,
                }
            }
            at = low;
        }
        Some(())
    }

    /// Adds the ids `start..end`, whose terms are in any order.
    fn each(&mut self, start: u32, end: u32) -> Option<()> {
        let (mut ids, mut lexes) = (vec![], vec![]);
        for from in (start..end).step_by(CHUNK as usize) {
            if scope::is_over() {
                return None;
            }
            ids.clear();
            lexes.clear();
            ids.extend(from..from.saturating_add(CHUNK).min(end));
            self.dictionary.lex_many(&ids, &mut lexes);
            for (id, lex) in ids.iter().zip(&lexes) {
                self.push(*id, self.kind_of(*lex));
            }
        }
        Some(())
    }
}
