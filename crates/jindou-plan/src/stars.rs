//! Estimates how many subjects have several predicates and classes at once (a *star*), from characteristic sets
//! (Neumann and Moerkotte 2011).
//!
//! A query reads only the characteristic sets that contain one of its predicates. They are grouped by which members of
//! the star they contain (a bit mask), and every estimate is a sum over these few groups.

use jindou_graph::statistics::{PlannerSet, Statistics};
use rustc_hash::FxHashMap;
use std::cell::RefCell;

/// Largest number of members of a star, which are bits of a mask; more are ignored in estimates.
pub(crate) const MAX_MEMBERS: usize = 24;
/// Number of most frequent characteristic sets whose own edge counts are used; for others, the predicate's mean is
/// used.
const EXACT_SETS: u32 = 1_000;
/// Number of largest groups that an estimate sums over; the others are used only if none of these matches.
const MAX_GROUPS: usize = 192;

/// A predicate or class that a pattern requires of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StarMember {
    /// The dense predicate id of an edge that leaves the variable.
    Predicate(u32),
    /// Vertex id of a class.
    Class(u32),
}

/// All characteristic sets that contain the same members of the star, added up.
struct SetGroup {
    mask: u32,
    subjects: f64,
    /// Subjects of those sets whose own edge counts are not used.
    rest: f64,
    /// For each member, its subjects and their edges in the sets whose own counts are used; empty without such sets.
    members: Vec<(f64, f64)>,
}

/// The star of one variable: what patterns require of it, and estimates for any subset of that.
pub(crate) struct Star {
    members: Vec<StarMember>,
    /// For each member, the mean number of edges of all subjects that have it.
    means: Vec<f64>,
    /// The groups, largest first.
    groups: Vec<SetGroup>,
    /// Ratio of the subjects of all groups to those of the first [`MAX_GROUPS`].
    scale: f64,
    /// Results by mask of members: number of subjects, and each member's mean number of edges.
    memo: RefCell<FxHashMap<u32, (f64, Vec<f64>)>>,
}

impl Star {
    /// Groups the sets. O(sets that contain a member × members).
    pub(crate) fn new(statistics: &Statistics, mut members: Vec<StarMember>) -> Self {
        members.truncate(MAX_MEMBERS);
        let mut masks = vec![0u32; statistics.sets.len()];
        let mut touched = vec![];
        for (bit, &member) in members.iter().enumerate() {
            for &set in sets_of(statistics, member) {
                if let Some(mask) = masks.get_mut(set as usize) {
                    if *mask == 0 {
                        touched.push(set);
                    }
                    *mask |= 1 << bit;
                }
            }
        }
        let means: Vec<f64> = members
            .iter()
            .map(|m| match *m {
                StarMember::Predicate(p) => {
                    statistics.predicates.get(p as usize).map_or(1.0, |s| {
                        (s.edges + s.named_edges) as f64 / f64::from(s.subjects.max(1))
                    })
                }
                StarMember::Class(_) => 1.0,
            })
            .collect();
        let mut groups: Vec<SetGroup> = vec![];
        let mut group_of: FxHashMap<u32, u32> = FxHashMap::default();
        // Sets are numbered by frequency, the most frequent first.
        let mut exact = vec![];
        for set in touched {
            let mask = masks[set as usize];
            let s = &statistics.sets[set as usize];
            let at = *group_of.entry(mask).or_insert_with(|| {
                groups.push(SetGroup {
                    mask,
                    subjects: 0.0,
                    rest: 0.0,
                    members: vec![],
                });
                groups.len() as u32 - 1
            });
            let group = &mut groups[at as usize];
            let subjects = s.subjects as f64;
            group.subjects += subjects;
            if set < EXACT_SETS {
                exact.push((at, set));
            } else {
                group.rest += subjects;
            }
        }
        for (at, set) in exact {
            let group = &mut groups[at as usize];
            group.members.resize(members.len(), (0.0, 0.0));
            for (bit, sums) in group.members.iter_mut().enumerate() {
                if group.mask >> bit & 1 == 1 {
                    let (having, edges) = counts(&statistics.sets[set as usize], members[bit]);
                    sums.0 += having;
                    sums.1 += edges;
                }
            }
        }
        groups.sort_by(|a, b| {
            b.subjects
                .total_cmp(&a.subjects)
                .then_with(|| a.mask.cmp(&b.mask))
        });
        let sum = |g: &[SetGroup]| g.iter().map(|g| g.subjects).sum::<f64>();
        let head = sum(&groups[..groups.len().min(MAX_GROUPS)]);
        let scale = if head > 0.0 { sum(&groups) / head } else { 1.0 };
        Self {
            members,
            means,
            groups,
            scale,
            memo: RefCell::default(),
        }
    }

    /// The mask of all members.
    pub(crate) fn all(&self) -> u32 {
        ((1u64 << self.members.len()) - 1) as u32
    }

    /// Returns false if no subject of the base can have all members of `mask`.
    pub(crate) fn possible(&self, mask: u32) -> bool {
        mask == 0 || self.groups.iter().any(|g| g.mask & mask == mask)
    }

    /// Estimated number of subjects that have all members of `mask`.
    pub(crate) fn subjects(&self, mask: u32) -> f64 {
        self.with(mask, |n, _| n)
    }

    /// Mean number of edges of member `bit` of the subjects that have this member and all of `mask`.
    pub(crate) fn edges(&self, bit: u32, mask: u32) -> f64 {
        self.with(mask | 1 << bit, |_, m| m[bit as usize])
    }

    fn with<T>(&self, mask: u32, f: impl FnOnce(f64, &[f64]) -> T) -> T {
        let mut memo = self.memo.borrow_mut();
        let (n, m) = memo.entry(mask).or_insert_with(|| self.compute(mask));
        f(*n, m)
    }

    fn compute(&self, mask: u32) -> (f64, Vec<f64>) {
        let (head, tail) = self.groups.split_at(self.groups.len().min(MAX_GROUPS));
        let (n, means) = self.add(mask, head);
        if n > 0.0 || tail.is_empty() {
            (n * self.scale, means)
        } else {
            self.add(mask, tail)
        }
    }

    fn add(&self, mask: u32, groups: &[SetGroup]) -> (f64, Vec<f64>) {
        let mut total = 0.0;
        let mut sums = vec![(0.0, 0.0); self.members.len()];
        for g in groups.iter().filter(|g| g.mask & mask == mask) {
            let mut n = g.subjects;
            for (bit, mean) in self.means.iter().enumerate() {
                if mask >> bit & 1 == 1 {
                    let (having, edges) = g.members.get(bit).copied().unwrap_or_default();
                    let (having, edges) = (having + g.rest, edges + g.rest * mean);
                    // Within a group, members are assumed to be independent of each other.
                    n *= (having / g.subjects.max(1.0)).min(1.0);
                    sums[bit].0 += having;
                    sums[bit].1 += edges;
                }
            }
            total += n;
        }
        (
            total,
            sums.iter()
                .map(|s| if s.0 > 0.0 { s.1 / s.0 } else { 1.0 })
                .collect(),
        )
    }
}

fn sets_of(statistics: &Statistics, member: StarMember) -> &[u32] {
    match member {
        StarMember::Predicate(p) => statistics
            .sets_of_predicate
            .get(p as usize)
            .map_or(&[], Vec::as_slice),
        StarMember::Class(c) => statistics.sets_of_class.get(&c).map_or(&[], Vec::as_slice),
    }
}

/// The number of a set's subjects that have the member, and of their edges.
fn counts(set: &PlannerSet, member: StarMember) -> (f64, f64) {
    match member {
        StarMember::Predicate(p) => match set.predicates.binary_search_by_key(&p, |x| x.0) {
            Ok(i) => (set.predicates[i].1 as f64, set.predicates[i].2 as f64),
            Err(_) => (0.0, 0.0),
        },
        StarMember::Class(c) => match set.classes.binary_search_by_key(&c, |x| x.0) {
            Ok(i) => (set.classes[i].1 as f64, set.classes[i].1 as f64),
            Err(_) => (0.0, 0.0),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jindou_graph::statistics::PredicateStatistics;

    fn statistics() -> Statistics {
        let set = |subjects, classes: &[(u32, u64)], predicates: &[(u32, u64, u64)]| PlannerSet {
            subjects,
            classes: classes.to_vec(),
            predicates: predicates.to_vec(),
        };
        let mut s = Statistics {
            predicates: vec![
                PredicateStatistics {
                    edges: 100,
                    subjects: 50,
                    ..Default::default()
                };
                3
            ],
            sets: vec![
                set(100, &[(7, 100)], &[(0, 100, 300), (1, 100, 100)]),
                set(40, &[(8, 40)], &[(0, 40, 40)]),
                set(10, &[(8, 5)], &[(1, 10, 10), (2, 4, 8)]),
            ],
            ..Statistics::default()
        };
        s.index();
        s
    }

    #[test]
    fn stars_are_counted_by_sets() {
        let s = statistics();
        let star = Star::new(
            &s,
            vec![
                StarMember::Predicate(0),
                StarMember::Predicate(1),
                StarMember::Class(8),
            ],
        );
        assert_eq!(star.subjects(0b001), 140.0);
        assert_eq!(star.subjects(0b011), 100.0);
        assert_eq!(star.edges(0, 0b011), 3.0);
        assert_eq!(star.edges(0, 0b101), 1.0);
        assert_eq!(star.subjects(0b110), 5.0);
        assert!(!star.possible(star.all()) && star.possible(0b110));
        let none = Star::new(&s, vec![StarMember::Predicate(99), StarMember::Class(1)]);
        assert!(!none.possible(1) && none.subjects(3) == 0.0);
    }
}
