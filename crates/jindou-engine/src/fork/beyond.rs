//! Ids whose terms are known to sort after a bound in the query's order, so that the terms need not be read.
//!
//! A load numbers the vertices with the same classes and predicates in the order of their terms' bytes (a *run*), and
//! strings sort by their bytes. So if two ids of one run have strings of one kind that sort after the bound, all ids
//! between them do, too.

use jindou_graph::Graph;
use jindou_graph::sets::CharacteristicSets;
use jindou_model::term;
use rustc_hash::FxHashMap;

/// Largest number of runs for which intervals are kept.
const RUNS: usize = 1 << 12;

/// Runs of ids in which terms ascend by their bytes.
#[derive(Clone, Copy)]
pub(crate) struct OrderedRuns<'g> {
    sets: CharacteristicSets<'g>,
    /// The predicate `rdf:type`. A run whose vertices have a class may continue with vertices of another class, whose
    /// terms start from the beginning of the order again; such runs are not used.
    rdf_type: Option<u32>,
    /// The first id after all runs; 0 if the ids are no longer as the load assigned them.
    end: u32,
}

impl<'g> OrderedRuns<'g> {
    pub fn of_graph(graph: &'g dyn Graph) -> Self {
        let is_as_loaded = graph.is_as_loaded();
        Self {
            sets: graph.predicates().sets(),
            rdf_type: graph.statistics().rdf_type,
            end: if is_as_loaded {
                graph.dense_ids() + 1
            } else {
                0
            },
        }
    }

    /// An empty set of runs.
    #[cfg(test)]
    pub fn none() -> Self {
        Self {
            sets: CharacteristicSets::default(),
            rdf_type: None,
            end: 0,
        }
    }

    /// The first id of the run that contains `id`, and the first id after that run; `None` if no run contains it. O(log
    /// runs).
    pub fn run(&self, id: u32) -> Option<[u32; 2]> {
        if id >= self.end {
            return None;
        }
        let next = self.sets.runs.partition_point(|r| r.start <= id);
        let run = self.sets.runs.get(next.checked_sub(1)?)?;
        let has_class = |p: u32| self.sets.list(run.out_set).binary_search(&p).is_ok();
        if self.rdf_type.is_some_and(has_class) {
            return None;
        }
        let end = self.sets.runs.get(next).map_or(self.end, |r| r.start);
        Some([run.start, end])
    }
}

/// The ids `first..=last` of a run. Those whose terms are strings with this tag (of canonical bytes) sort after the
/// bound.
struct TextInterval {
    tag: u8,
    first: u32,
    last: u32,
}

/// A run, and its intervals: one per tag.
struct RunIntervals {
    run: [u32; 2],
    intervals: Vec<TextInterval>,
}

/// Intervals of ids whose terms sort after a bound. They remain valid when the bound is tightened.
#[derive(Default)]
pub(crate) struct Beyond {
    known: Vec<RunIntervals>,
    /// Position of each run in `known`, by the run's first id.
    places: FxHashMap<u32, usize>,
    /// The position in `known` that was used last.
    last: usize,
}

impl Beyond {
    /// Records that the term of `id`, whose canonical bytes begin with `tag`, sorts after the bound. Ignored unless it
    /// is a string.
    pub fn insert(&mut self, runs: &OrderedRuns<'_>, id: u32, tag: u8) {
        if tag >= term::FIRST_DATATYPE {
            return;
        }
        let Some(known) = self.known(runs, id, true) else {
            return;
        };
        match known.intervals.iter_mut().find(|i| i.tag == tag) {
            Some(interval) => {
                interval.first = interval.first.min(id);
                interval.last = interval.last.max(id);
            }
            None => known.intervals.push(TextInterval {
                tag,
                first: id,
                last: id,
            }),
        }
    }

    /// True if the id's term is known to sort after the bound.
    #[inline]
    pub fn has(&mut self, runs: &OrderedRuns<'_>, id: u32) -> bool {
        if self.known.is_empty() {
            return false;
        }
        let known = self.known(runs, id, false);
        known.is_some_and(|k| k.intervals.iter().any(|i| (i.first..=i.last).contains(&id)))
    }

    fn known(&mut self, runs: &OrderedRuns<'_>, id: u32, makes: bool) -> Option<&mut RunIntervals> {
        let is_in = |k: &RunIntervals| (k.run[0]..k.run[1]).contains(&id);
        if !self.known.get(self.last).is_some_and(is_in) {
            let run = runs.run(id)?;
            self.last = match self.places.get(&run[0]) {
                Some(&place) => place,
                None if makes && self.known.len() < RUNS => {
                    self.places.insert(run[0], self.known.len());
                    self.known.push(RunIntervals {
                        run,
                        intervals: Vec::with_capacity(1),
                    });
                    self.known.len() - 1
                }
                None => return None,
            };
        }
        self.known.get_mut(self.last)
    }

    /// Approximate bytes held.
    pub fn bytes(&self) -> usize {
        self.known.capacity() * (size_of::<RunIntervals>() + 2 * size_of::<TextInterval>())
            + self.places.capacity() * 24
    }
}

#[cfg(test)]
mod tests;
