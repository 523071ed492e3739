//! Comparisons of a join that have no key: each row of the streaming side is looked up once for each held term that it matches.

use super::join_table::Shape;
use crate::batch::{Charge, View};
use crate::explore::Run;
use crate::row_buffer::RowBuffer;
use crate::values::{Equals, Later, Ordered, Partners};
use jindou_model::{Holder, Result};
use jindou_plan::{MatchBy, Relation};
use rustc_hash::FxHashSet;

/// The terms of a column of the held rows, ready to be asked which of them a term matches.
pub(crate) enum Terms {
    Equal(Equals),
    Ordered(Relation, Ordered),
}

impl Terms {
    pub fn new(held: &RowBuffer, column: usize, by: MatchBy, run: &Run<'_>) -> Result<Self> {
        let mut seen = FxHashSet::default();
        let mut charge = Charge::of(Holder::HashJoin, run.budget);
        for chunk in held.chunks() {
            run.check()?;
            seen.extend(chunk.view().column(column));
            charge.set(seen.capacity() * 9)?;
        }
        let ids: Vec<u32> = seen.into_iter().collect();
        Ok(match by {
            MatchBy::Order(relation) => {
                Self::Ordered(relation, Ordered::new(&ids, Holder::HashJoin, run)?)
            }
            MatchBy::Term | MatchBy::Value => {
                Self::Equal(Equals::new(&ids, Holder::HashJoin, run)?)
            }
        })
    }

    /// Bytes that it holds.
    pub fn held(&self) -> u64 {
        match self {
            Self::Equal(e) => e.held(),
            Self::Ordered(_, o) => o.held(),
        }
    }
}

/// One worker's way to ask.
enum Asker {
    Equal(Partners),
    Ordered(Later),
}

/// Rows of the streaming side, each once for each combination of held terms that it matches. One a worker.
#[derive(Default)]
pub(crate) struct Expansion {
    /// Rows of the batch.
    pub rows: Vec<u32>,
    /// A column for each comparison: the held term.
    pub terms: Vec<Vec<u32>>,
    askers: Vec<Asker>,
    /// Each held term that is found is a partner, and one is enough.
    first: bool,
    /// The terms that the row at hand matches, by comparison, but for the last one where it is by order: those are copied as they are
    /// wanted.
    lists: Vec<Vec<u32>>,
    /// How many terms match by the last comparison.
    last: usize,
    /// The combination that comes next.
    at: Vec<usize>,
    row: u32,
    /// Rows that are still to come.
    next: usize,
}

impl Expansion {
    /// Of the comparisons of which all must be true.
    pub fn new(shape: &Shape<'_>, run: &Run<'_>) -> Self {
        Self::of(shape, &shape.by_value, shape.sure.len() == 1, run)
    }

    /// Of an alternative.
    pub fn of_one(shape: &Shape<'_>, run: &Run<'_>) -> Self {
        Self::of(shape, &[MatchBy::Value], shape.sure.is_empty(), run)
    }

    /// `is_alone`: there are no other keys that are always bound.
    fn of(shape: &Shape<'_>, by: &[MatchBy], is_alone: bool, run: &Run<'_>) -> Self {
        let n = by.len();
        let asker = |by: &MatchBy| match by {
            MatchBy::Order(_) => Asker::Ordered(Later::new(run)),
            MatchBy::Term | MatchBy::Value => Asker::Equal(Partners::new(run)),
        };
        Self {
            terms: vec![vec![]; n],
            askers: by.iter().map(asker).collect(),
            first: !shape.kind.gives_pairs()
                && shape.condition.is_none()
                && shape.unsure.is_empty()
                && is_alone,
            lists: vec![vec![]; n],
            ..Self::default()
        }
    }

    /// True if the first comparison is true of the two terms.
    pub fn has_pair(&mut self, run: &Run<'_>, set: &Terms, id: u32, held: u32) -> Result<bool> {
        Ok(match (self.askers.first_mut(), set) {
            (Some(Asker::Equal(partners)), Terms::Equal(set)) => {
                partners.of(run, set, id)?.binary_search(&held).is_ok()
            }
            _ => false,
        })
    }

    /// Begins with another batch.
    pub fn begin(&mut self) {
        self.next = 0;
        self.at.clear();
    }

    /// The next combinations, a batch of them at most, in place of those before; false if there are none. Rows are those in
    /// `some`, or all; not those of which `done` says so.
    #[expect(
        clippy::too_many_arguments,
        reason = "one call, all of it the batch's state"
    )]
    pub fn fill(
        &mut self,
        run: &Run<'_>,
        sets: &[Terms],
        columns: &[usize],
        bounds: &[(usize, Relation, usize)],
        rows: View<'_>,
        some: Option<&[u32]>,
        done: impl Fn(u32) -> bool,
    ) -> Result<bool> {
        self.rows.clear();
        self.terms.iter_mut().for_each(Vec::clear);
        let all = some.map_or(rows.rows, <[u32]>::len);
        while self.rows.len() < run.batch_rows {
            if self.at.is_empty() || done(self.row) {
                self.at.clear();
                if self.next >= all {
                    break;
                }
                self.row = match some {
                    Some(some) => some[self.next],
                    None => self.next as u32,
                };
                self.next += 1;
                if done(self.row) || !self.look_up(run, sets, columns, bounds, rows)? {
                    continue;
                }
                self.at.resize(self.lists.len(), 0);
            }
            self.combine(sets, run.batch_rows);
        }
        Ok(!self.rows.is_empty())
    }

    /// The lists of the row at hand; false if one is empty.
    fn look_up(
        &mut self,
        run: &Run<'_>,
        sets: &[Terms],
        columns: &[usize],
        bounds: &[(usize, Relation, usize)],
        rows: View<'_>,
    ) -> Result<bool> {
        let n = sets.len();
        let keys = sets.iter().zip(columns).zip(&mut self.askers);
        for (i, (((set, &column), asker), list)) in keys.zip(&mut self.lists).enumerate() {
            let row = self.row as usize;
            let cell = |column: usize| rows.column(column)[row];
            let id = cell(column);
            list.clear();
            let found = match (set, asker) {
                (Terms::Equal(set), Asker::Equal(partners)) => {
                    list.extend_from_slice(partners.of(run, set, id)?);
                    list.len()
                }
                (Terms::Ordered(relation, set), Asker::Ordered(later)) => {
                    let mut found = later.find(run, set, *relation, id)?;
                    for (_, relation, column) in bounds.iter().filter(|b| b.0 == i) {
                        found = later.narrow(run, set, *relation, cell(*column))?;
                    }
                    if i + 1 < n {
                        later.copy(set, 0, found, list);
                    }
                    found
                }
                _ => 0,
            };
            if found == 0 {
                return Ok(false);
            }
            self.last = found;
        }
        Ok(true)
    }

    /// Writes combinations of the row at hand from where it is, the last comparison fastest, until there are `most` or no more of it.
    fn combine(&mut self, sets: &[Terms], most: usize) {
        let (Some((from, before)), Some((last, others))) =
            (self.at.split_last_mut(), self.lists.split_last())
        else {
            return;
        };
        let (Some((column, columns)), Some(asker), Some(set)) =
            (self.terms.split_last_mut(), self.askers.last(), sets.last())
        else {
            return;
        };
        while self.rows.len() < most {
            let room = if self.first {
                1
            } else {
                most - self.rows.len()
            };
            let take = room.min(self.last - *from);
            match (asker, set) {
                (Asker::Ordered(later), Terms::Ordered(_, set)) => {
                    later.copy(set, *from, take, column);
                }
                _ => column.extend_from_slice(&last[*from..*from + take]),
            }
            for ((c, list), &at) in columns.iter_mut().zip(others).zip(before.iter()) {
                c.resize(c.len() + take, list[at]);
            }
            self.rows.resize(self.rows.len() + take, self.row);
            *from += take;
            if self.first {
                break;
            }
            if *from < self.last {
                return;
            }
            *from = 0;
            // The next combination of the others.
            let mut more = false;
            for (at, list) in before.iter_mut().zip(others).rev() {
                *at += 1;
                if *at < list.len() {
                    more = true;
                    break;
                }
                *at = 0;
            }
            if !more {
                break;
            }
        }
        // The last combination that was written may be followed by others when there is room again.
        if self.rows.len() < most || self.first || self.at.iter().all(|a| *a == 0) {
            self.at.clear();
        }
    }
}
