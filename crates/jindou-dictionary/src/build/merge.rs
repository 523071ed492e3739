//! Merging runs into one vocabulary with a loser tree that tracks common prefixes.
//!
//! For every run, the tree stores how long a prefix the run's current term shares with the run's previous term, which
//! is the last term that the merge took from that run. Of two candidates that were compared with the same last winner,
//! the one that shares the longer prefix with the winner is the smaller; bytes are compared only if both share equally
//! much, and only after the shared prefix. So each byte of a term is compared about once, whatever the number of runs.

use super::run::{RunReader, TermRun};
use super::strings::StringsWriter;
use crate::{TagRanges, front};
use jindou_model::{Error, MAX_BASE_VERTICES, Resource, Result};

/// A vocabulary merged from many runs.
#[derive(Debug)]
pub struct MergedVocabulary {
    /// Number of distinct terms.
    pub terms: u32,
    /// For every run, in the order given: index of a term in the run → its lex index. Ascending; 4 bytes per term.
    pub maps: Vec<Vec<u32>>,
    /// The lex indexes of every tag.
    pub tag_ranges: TagRanges,
}

/// A run's state in the tree: 0 when it has ended, otherwise 1 + the length of the prefix that its current term shares
/// with the term to which it lost.
type PrefixLength = usize;

struct Tree {
    readers: Vec<RunReader>,
    /// Losers of the inner nodes, `[1..width]`: the run and its state.
    losers: Vec<(usize, PrefixLength)>,
    width: usize,
}

impl Tree {
    /// Compares the current terms of two runs. Returns the run with the smaller term, then the other one with its new
    /// state.
    #[inline(always)]
    fn play(
        &self,
        a: (usize, PrefixLength),
        b: (usize, PrefixLength),
    ) -> ((usize, PrefixLength), (usize, PrefixLength)) {
        if a.1 != b.1 {
            return if a.1 > b.1 { (a, b) } else { (b, a) };
        }
        if a.1 == 0 {
            return (a, b);
        }
        let (x, y) = (self.readers[a.0].term(), self.readers[b.0].term());
        let n = front::common_prefix(x, y, a.1 - 1);
        // Of equal terms the one of the run given first wins; the other one shares its whole length with the winner.
        let a_wins = match (x.get(n), y.get(n)) {
            (Some(x), Some(y)) => x < y,
            (None, Some(_)) => true,
            (Some(_), None) => false,
            (None, None) => a.0 < b.0,
        };
        if a_wins {
            (a, (b.0, n + 1))
        } else {
            (b, (a.0, n + 1))
        }
    }

    /// Compares all leaves below a node; returns the winner.
    fn build(&mut self, node: usize) -> Result<(usize, PrefixLength)> {
        if node >= self.width {
            let run = node - self.width;
            let state = match self.readers.get_mut(run) {
                Some(r) => r.next()?.map_or(0, |_| 1),
                None => 0,
            };
            return Ok((run, state));
        }
        let a = self.build(2 * node)?;
        let b = self.build(2 * node + 1)?;
        let (winner, loser) = self.play(a, b);
        self.losers[node] = loser;
        Ok(winner)
    }

    /// Advances the winner's run and returns the next winner.
    #[inline]
    fn replay(&mut self, run: usize) -> Result<(usize, PrefixLength)> {
        let state = self.readers[run].next()?.map_or(0, |shared| shared + 1);
        let mut winner = (run, state);
        let mut node = (run + self.width) / 2;
        while node > 0 {
            let (w, l) = self.play(winner, self.losers[node]);
            winner = w;
            self.losers[node] = l;
            node /= 2;
        }
        Ok(winner)
    }
}

/// Merges the runs of all workers into `strings.jd`, which is complete afterwards (but not synced), and returns for
/// every run the lex indexes of its terms. Memory: the maps, and 1 MiB for each run on disk; the memory of each run is
/// released while it is read.
///
/// One pass: O(total bytes + terms · log runs).
///
/// # Errors
/// [`Error::Limit`] when there are more than [`MAX_BASE_VERTICES`] terms; [`Error::Io`].
pub fn merge_runs(
    runs: Vec<TermRun>,
    mut strings: StringsWriter,
    _threads: usize,
) -> Result<MergedVocabulary> {
    let mut maps: Vec<Vec<u32>> = runs
        .iter()
        .map(|r| Vec::with_capacity(r.terms() as usize))
        .collect();
    let readers: Vec<RunReader> = runs.into_iter().map(TermRun::into_reader).collect();
    let width = readers.len().next_power_of_two().max(1);
    let mut tree = Tree {
        readers,
        losers: vec![(0, 0); width],
        width,
    };
    let mut terms = 0u32;
    let mut counts = [0u32; 256];
    let mut last_len = usize::MAX;
    let mut winner = if tree.readers.is_empty() {
        (0, 0)
    } else {
        tree.build(1)?
    };
    while winner.1 > 0 {
        let term = tree.readers[winner.0].term();
        let shared = winner.1 - 1;
        if shared != term.len() || shared != last_len {
            if terms == MAX_BASE_VERTICES {
                return Err(Error::limit(
                    Resource::Numbers,
                    format!(
                        "the data has more than {MAX_BASE_VERTICES} distinct terms, the most that one store can number"
                    ),
                ));
            }
            strings.push(shared, term)?;
            last_len = term.len();
            counts[term.first().copied().unwrap_or(0) as usize] += 1;
            terms += 1;
        }
        maps[winner.0].push(terms - 1);
        winner = tree.replay(winner.0)?;
    }
    let tag_ranges = TagRanges::from_counts(&counts);
    strings.finish(terms, &tag_ranges)?;
    Ok(MergedVocabulary {
        terms,
        maps,
        tag_ranges,
    })
}
