//! Counts from characteristic sets (Neumann and Moerkotte 2011): the further properties of subjects that have given
//! predicates and classes. Each count is a sum over the sets that contain all of these, so the data is not read.

use jindou_graph::statistics::{PlannerSet, Statistics};
use rustc_hash::FxHashMap;

/// The predicates and classes that a subject must have.
#[derive(Debug, Default)]
pub(crate) struct SubjectStar {
    /// Dense ids.
    pub predicates: Vec<u32>,
    /// Vertex ids.
    pub classes: Vec<u32>,
}

/// Counts by id, and whether the counts are exact.
pub(crate) struct Sums {
    pub counts: FxHashMap<u32, u64>,
    pub exact: bool,
}

impl SubjectStar {
    /// Number of the star's subjects that have each predicate, by dense id. O(number of sets of the star's rarest
    /// member × their size).
    pub(crate) fn predicates(&self, statistics: &Statistics) -> Sums {
        self.sums(statistics, |set, subjects, add| {
            for &(p, having, _) in &set.predicates {
                add(p, part(subjects, having, set.subjects));
            }
            // Exact if all subjects of the set have all its predicates. For a set merged from several ones it is
            // unknown which subject has which predicate.
            set.predicates.iter().all(|p| p.1 == set.subjects)
        })
    }

    /// Number of the star's subjects in each class, by vertex id. As expensive as [`Self::predicates`].
    pub(crate) fn classes(&self, statistics: &Statistics) -> Sums {
        let others = self.classes.is_empty();
        self.sums(statistics, |set, subjects, add| {
            for &(class, members) in &set.classes {
                add(class, part(subjects, members, set.subjects));
            }
            others && set.predicates.iter().all(|p| p.1 == set.subjects)
        })
    }

    fn sums(
        &self,
        statistics: &Statistics,
        mut each: impl FnMut(&PlannerSet, u64, &mut dyn FnMut(u32, u64)) -> bool,
    ) -> Sums {
        let mut sums = Sums {
            counts: FxHashMap::default(),
            exact: self.classes.len() < 2,
        };
        let of_predicate = |&p: &u32| statistics.sets_of_predicate.get(p as usize);
        let of_class = |c: &u32| statistics.sets_of_class.get(c);
        let lists = self.predicates.iter().map(of_predicate);
        let lists = lists.chain(self.classes.iter().map(of_class));
        // If some member occurs in no set, no subject has all members.
        let Some(lists) = lists.collect::<Option<Vec<_>>>() else {
            return sums;
        };
        let Some(rarest) = lists.into_iter().min_by_key(|l| l.len()) else {
            return sums;
        };
        for &number in rarest {
            let Some(set) = statistics.sets.get(number as usize) else {
                continue;
            };
            let subjects = self.subjects(set);
            if subjects > 0 {
                let counts = &mut sums.counts;
                let mut add = |id, n| *counts.entry(id).or_insert(0) += n;
                sums.exact &= each(set, subjects, &mut add);
            }
        }
        sums.counts.retain(|_, n| *n > 0);
        sums
    }

    /// Number of a set's subjects that have all members of the star; an upper bound if the set was merged from several,
    /// or if the star has two classes or more.
    fn subjects(&self, set: &PlannerSet) -> u64 {
        let predicate = |&p: &u32| {
            let at = set.predicates.binary_search_by_key(&p, |m| m.0).ok()?;
            Some(set.predicates.get(at)?.1)
        };
        let class = |&c: &u32| {
            let at = set.classes.binary_search_by_key(&c, |m| m.0).ok()?;
            Some(set.classes.get(at)?.1)
        };
        let members = self.predicates.iter().map(predicate);
        let members = members.chain(self.classes.iter().map(class));
        let least = members.map(|n| n.unwrap_or(0)).min();
        least.unwrap_or(set.subjects).min(set.subjects)
    }
}

/// `some × having / all`, at least 1: the expected number among `some` subjects, if `having` of `all` have the
/// property.
fn part(some: u64, having: u64, all: u64) -> u64 {
    if having >= all {
        return some;
    }
    let part = u128::from(some) * u128::from(having) / u128::from(all.max(1));
    u64::try_from(part).unwrap_or(u64::MAX).max(1)
}
