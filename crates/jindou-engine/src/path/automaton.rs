//! A property path as a finite automaton, whose moves between states are labelled with edges. The path leads from `a`
//! to `b` if and only if the labels of some walk from `a` to `b` lead from the start to an accepting state. A search
//! over pairs (state, node) therefore finds the ends of a path exactly, and visits each pair once, however the path is
//! nested.
//!
//! Each edge in the path's text is a position. Positions become states, as in Glushkov's construction (*The abstract
//! theory of automata*, 1961). Equivalent states are merged, so that `p*` has one state and `(p|q)+` two.

use jindou_model::scope::worked;
use jindou_model::{Direction, Error, PredicateId, Resource, Result};
use jindou_plan::Path;
use rustc_hash::FxHashMap;

/// Largest number of positions of a path.
const MOST: usize = 1000;
/// Work per move, in the unit of [`worked`].
const WORK: usize = 64;

/// The edges that a move may follow.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct MoveLabel {
    /// Edges of these predicates, in these directions.
    pub edges: Vec<(PredicateId, EdgeDirection)>,
    /// Edges of any predicate except these (a negated property set), in this direction.
    pub others: Vec<(Vec<PredicateId>, EdgeDirection)>,
}

/// A direction that can be sorted and hashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum EdgeDirection {
    Out,
    In,
}

impl EdgeDirection {
    fn from_back(back: bool) -> Self {
        if back { Self::In } else { Self::Out }
    }

    pub fn reverse(self) -> Self {
        match self {
            Self::Out => Self::In,
            Self::In => Self::Out,
        }
    }

    pub fn direction(self) -> Direction {
        match self {
            Self::Out => Direction::Out,
            Self::In => Direction::In,
        }
    }
}

/// A move along an edge with this label to this state; in `Automaton::previous`, from this state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Move {
    pub label: usize,
    pub state: usize,
}

/// A property path as a finite automaton over labelled edges.
pub(super) struct Automaton {
    pub labels: Vec<MoveLabel>,
    /// The same labels with reversed directions.
    pub reversed: Vec<MoveLabel>,
    pub start: usize,
    /// For each state, whether a walk may end there.
    pub accepting: Vec<bool>,
    /// For each state, the outgoing moves.
    pub next: Vec<Vec<Move>>,
    /// For each state, the incoming moves.
    pub previous: Vec<Vec<Move>>,
}

impl Automaton {
    /// Builds the automaton of a path, or of its inverse (`back`).
    ///
    /// # Errors
    /// `Limit` for a path of more than [`MOST`] edges.
    pub fn from_path(path: &Path, back: bool) -> Result<Self> {
        let mut positions = Positions::default();
        let whole = positions.part(path, back)?;
        positions.automaton(&whole)
    }

    pub fn states(&self) -> usize {
        self.accepting.len()
    }

    /// Returns true if the path has length zero for some walk, so that it leads from every node to itself.
    pub fn is_nullable(&self) -> bool {
        self.accepting.get(self.start) == Some(&true)
    }
}

/// The positions that walks through a part of a path may begin and end with; `nullable` if a walk may be empty.
struct Fragment {
    nullable: bool,
    first: Vec<usize>,
    last: Vec<usize>,
}

#[derive(Default)]
struct Positions {
    labels: Vec<MoveLabel>,
    /// For each position, a bitmap of the positions that may follow it.
    follow: Vec<Vec<u64>>,
}

impl Positions {
    fn part(&mut self, path: &Path, back: bool) -> Result<Fragment> {
        let mut label = MoveLabel::default();
        if collect(path, back, &mut label) {
            label.edges.sort_unstable();
            label.edges.dedup();
            label.others.sort_unstable();
            label.others.dedup();
            return self.position(label);
        }
        Ok(match path {
            Path::Inverse(p) => self.part(p, !back)?,
            Path::Sequence(parts) => {
                let mut all = Fragment {
                    nullable: true,
                    first: vec![],
                    last: vec![],
                };
                for i in 0..parts.len() {
                    let at = if back { parts.len() - 1 - i } else { i };
                    let Some(p) = parts.get(at) else { continue };
                    let next = self.part(p, back)?;
                    self.connect(&all.last, &next.first)?;
                    if all.nullable {
                        all.first.extend(&next.first);
                    }
                    if next.nullable {
                        all.last.extend(&next.last);
                    } else {
                        all.last = next.last;
                    }
                    all.nullable &= next.nullable;
                }
                all
            }
            Path::Alternative(parts) => {
                let mut all = Fragment {
                    nullable: false,
                    first: vec![],
                    last: vec![],
                };
                for p in parts {
                    let one = self.part(p, back)?;
                    all.nullable |= one.nullable;
                    all.first.extend(one.first);
                    all.last.extend(one.last);
                }
                all
            }
            Path::ZeroOrOne(p) => Fragment {
                nullable: true,
                ..self.part(p, back)?
            },
            Path::ZeroOrMore(p) | Path::OneOrMore(p) => {
                let part = self.part(p, back)?;
                self.connect(&part.last, &part.first)?;
                let nullable = part.nullable || matches!(path, Path::ZeroOrMore(_));
                Fragment { nullable, ..part }
            }
            // `collect` has already handled single edges, so this is not reached.
            Path::Predicate(_) | Path::Except(_) => self.position(label)?,
        })
    }

    fn position(&mut self, label: MoveLabel) -> Result<Fragment> {
        let at = self.labels.len();
        if at >= MOST {
            return Err(Error::limit(
                Resource::Form,
                format!("a property path has more than {MOST} edges; split it"),
            ));
        }
        self.labels.push(label);
        self.follow.push(vec![0; MOST.div_ceil(64)]);
        Ok(Fragment {
            nullable: false,
            first: vec![at],
            last: vec![at],
        })
    }

    fn connect(&mut self, from: &[usize], to: &[usize]) -> Result<()> {
        worked(WORK * (from.len() + to.len()))?;
        let mut bits = vec![0u64; MOST.div_ceil(64)];
        for &t in to {
            bits[t / 64] |= 1 << (t % 64);
        }
        for &f in from {
            for (word, more) in self.follow[f].iter_mut().zip(&bits) {
                *word |= more;
            }
        }
        Ok(())
    }

    /// Builds the automaton: state 0 is the start, and state `p + 1` is reached by position `p`.
    fn automaton(self, whole: &Fragment) -> Result<Automaton> {
        let mut numbers: FxHashMap<&MoveLabel, usize> = FxHashMap::default();
        let mut labels: Vec<MoveLabel> = vec![];
        let of_position: Vec<usize> = self
            .labels
            .iter()
            .map(|l| {
                *numbers.entry(l).or_insert_with(|| {
                    labels.push(l.clone());
                    labels.len() - 1
                })
            })
            .collect();
        let to = |p: usize| Move {
            label: of_position[p],
            state: p + 1,
        };
        let mut moves: Vec<Vec<Move>> = vec![whole.first.iter().map(|&p| to(p)).collect()];
        for bits in &self.follow {
            worked(WORK * of_position.len())?;
            let positions = (0..of_position.len()).filter(|p| bits[p / 64] >> (p % 64) & 1 == 1);
            moves.push(positions.map(to).collect());
        }
        let mut accepting = vec![false; moves.len()];
        accepting[0] = whole.nullable;
        for &p in &whole.last {
            accepting[p + 1] = true;
        }
        let class = classes(&moves, &accepting)?;
        let states = class.iter().max().map_or(1, |m| m + 1);
        let mut next = vec![vec![]; states];
        let mut ends = vec![false; states];
        for (state, list) in moves.iter().enumerate() {
            worked(WORK * list.len())?;
            let c = class[state];
            ends[c] |= accepting[state];
            next[c].extend(list.iter().map(|m| Move {
                state: class[m.state],
                ..*m
            }));
        }
        let mut previous = vec![vec![]; states];
        for (state, list) in next.iter_mut().enumerate() {
            worked(WORK * list.len())?;
            list.sort_unstable();
            list.dedup();
            for m in list {
                previous[m.state].push(Move { state, ..*m });
            }
        }
        let reversed = labels
            .iter()
            .map(|l| MoveLabel {
                edges: l.edges.iter().map(|e| (e.0, e.1.reverse())).collect(),
                others: l
                    .others
                    .iter()
                    .map(|o| (o.0.clone(), o.1.reverse()))
                    .collect(),
            })
            .collect();
        Ok(Automaton {
            labels,
            reversed,
            start: class[0],
            accepting: ends,
            next,
            previous,
        })
    }
}

/// Adds a path that is one edge, possibly with alternatives, to a label. Returns false for any other path.
fn collect(path: &Path, back: bool, to: &mut MoveLabel) -> bool {
    match path {
        Path::Predicate(p) => to
            .edges
            .extend(p.map(|p| (p, EdgeDirection::from_back(back)))),
        Path::Except(not) => to
            .others
            .push((not.clone(), EdgeDirection::from_back(back))),
        Path::Inverse(p) => return collect(p, !back, to),
        Path::Alternative(parts) => return parts.iter().all(|p| collect(p, back, to)),
        _ => return false,
    }
    true
}

/// The equivalence class of each state, by partition refinement.
fn classes(moves: &[Vec<Move>], accepting: &[bool]) -> Result<Vec<usize>> {
    let mut class: Vec<usize> = accepting.iter().map(|&a| usize::from(a)).collect();
    let mut count = 0;
    loop {
        let mut numbers: FxHashMap<(usize, Vec<Move>), usize> = FxHashMap::default();
        let mut refined = Vec::with_capacity(moves.len());
        for (list, &c) in moves.iter().zip(&class) {
            worked(WORK * list.len())?;
            let to = |m: &Move| Move {
                state: class[m.state],
                ..*m
            };
            let mut list: Vec<Move> = list.iter().map(to).collect();
            list.sort_unstable();
            list.dedup();
            let n = numbers.len();
            refined.push(*numbers.entry((c, list)).or_insert(n));
        }
        let was = std::mem::replace(&mut count, numbers.len());
        class = refined;
        if count == was {
            return Ok(class);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn p(n: u32) -> Path {
        Path::Predicate(Some(PredicateId(n)))
    }

    fn states(path: &Path) -> usize {
        Automaton::from_path(path, false).unwrap().states()
    }

    #[test]
    fn states_that_go_on_alike_are_one() {
        assert_eq!(states(&Path::ZeroOrMore(Box::new(p(1)))), 1);
        assert_eq!(states(&Path::OneOrMore(Box::new(p(1)))), 2);
        let either = Path::Alternative(vec![p(1), Path::Inverse(Box::new(p(2)))]);
        assert_eq!(states(&Path::OneOrMore(Box::new(either))), 2);
        let nested = Path::ZeroOrMore(Box::new(Path::OneOrMore(Box::new(p(1)))));
        assert_eq!(states(&nested), 1);
    }

    #[test]
    fn a_path_of_too_many_edges_is_an_error_and_a_long_one_is_not() {
        let long = |n| Path::Sequence((0..n).map(p).collect());
        assert_eq!(states(&long(MOST as u32)), MOST + 1);
        assert!(matches!(
            Automaton::from_path(&long(MOST as u32 + 1), false),
            Err(Error::Limit(_))
        ));
        let wide = Path::OneOrMore(Box::new(Path::Alternative((0..10_000).map(p).collect())));
        assert_eq!(states(&wide), 2);
    }
}
