//! Comparisons in a join that match other terms than the row's own, such as `=` by value and `<`. Each row of the
//! streaming side is looked up once for each held term that it matches.

use super::join_table::JoinShape;
use crate::batch::{OperatorCharge, View};
use crate::explore::QueryContext;
use crate::row_buffer::RowBuffer;
use crate::values::{Equals, Later, Ordered, Partners};
use jindou_model::{Holder, Result};
use jindou_plan::{MatchBy, Relation};
use rustc_hash::FxHashSet;

/// The terms in a column of the held rows, prepared for finding those that match a given term.
pub(crate) enum MatchTerms {
    Equal(Equals),
    Ordered(Relation, Ordered),
}

impl MatchTerms {
    pub fn new(
        held: &RowBuffer,
        column: usize,
        by: MatchBy,
        ctx: &QueryContext<'_>,
    ) -> Result<Self> {
        let mut seen = FxHashSet::default();
        let mut charge = OperatorCharge::for_holder(Holder::HashJoin, ctx.budget);
        for chunk in held.chunks() {
            ctx.check()?;
            seen.extend(chunk.view().column(column));
            charge.set(seen.capacity() * 9)?;
        }
        let ids: Vec<u32> = seen.into_iter().collect();
        Ok(match by {
            MatchBy::Order(relation) => {
                Self::Ordered(relation, Ordered::new(&ids, Holder::HashJoin, ctx)?)
            }
            MatchBy::Term | MatchBy::Value => {
                Self::Equal(Equals::new(&ids, Holder::HashJoin, ctx)?)
            }
        })
    }

    /// Bytes held.
    pub fn held(&self) -> u64 {
        match self {
            Self::Equal(e) => e.held(),
            Self::Ordered(_, o) => o.held(),
        }
    }
}

/// One worker's buffers for looking up terms.
enum Asker {
    Equal(Partners),
    Ordered(Later),
}

/// Repeats rows of the streaming side, once for each combination of held terms that they match. One per worker.
#[derive(Default)]
pub(crate) struct PartnerRows {
    /// Numbers of the rows in the batch, repeated for each combination.
    pub rows: Vec<u32>,
    /// For each comparison, the held term of each combination.
    pub terms: Vec<Vec<u32>>,
    askers: Vec<Asker>,
    /// True if one held term is enough and each that is found leads to a partner.
    first: bool,
    /// For each comparison, the held terms that match the current row. For the last comparison, if it is an order
    /// comparison, terms are copied only when they are needed.
    lists: Vec<Vec<u32>>,
    /// Number of terms that match in the last comparison.
    last: usize,
    /// The next combination: a position in each of the lists. Empty if the current row has no more.
    at: Vec<usize>,
    row: u32,
    /// Position of the next row among those to process.
    next: usize,
}

impl PartnerRows {
    /// Creates the lookup for the comparisons of a join by value, which must all be true.
    pub fn new(shape: &JoinShape<'_>, ctx: &QueryContext<'_>) -> Self {
        Self::for_shape(shape, &shape.by_value, shape.sure.len() == 1, ctx)
    }

    /// Creates the lookup for an alternative, which is a single comparison by value.
    pub fn of_one(shape: &JoinShape<'_>, ctx: &QueryContext<'_>) -> Self {
        Self::for_shape(shape, &[MatchBy::Value], shape.sure.is_empty(), ctx)
    }

    /// `is_alone`: the join has no other key that is always bound.
    fn for_shape(
        shape: &JoinShape<'_>,
        by: &[MatchBy],
        is_alone: bool,
        ctx: &QueryContext<'_>,
    ) -> Self {
        let n = by.len();
        let asker = |by: &MatchBy| match by {
            MatchBy::Order(_) => Asker::Ordered(Later::new(ctx)),
            MatchBy::Term | MatchBy::Value => Asker::Equal(Partners::new(ctx)),
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

    /// Returns true if the first comparison, by value, is true for the two terms.
    pub fn has_pair(
        &mut self,
        ctx: &QueryContext<'_>,
        set: &MatchTerms,
        id: u32,
        held: u32,
    ) -> Result<bool> {
        Ok(match (self.askers.first_mut(), set) {
            (Some(Asker::Equal(partners)), MatchTerms::Equal(set)) => partners
                .equal_ids(ctx, set, id)?
                .binary_search(&held)
                .is_ok(),
            _ => false,
        })
    }

    /// Starts again for another batch.
    pub fn begin(&mut self) {
        self.next = 0;
        self.at.clear();
    }

    /// Replaces the combinations by the next ones, at most `batch_rows`; returns false if there are none. Processes the
    /// rows in `some`, or all rows of the batch, except those for which `done` is true.
    #[expect(
        clippy::too_many_arguments,
        reason = "one call, all of it the batch's state"
    )]
    pub fn fill(
        &mut self,
        ctx: &QueryContext<'_>,
        sets: &[MatchTerms],
        columns: &[usize],
        bounds: &[(usize, Relation, usize)],
        rows: View<'_>,
        some: Option<&[u32]>,
        done: impl Fn(u32) -> bool,
    ) -> Result<bool> {
        self.rows.clear();
        self.terms.iter_mut().for_each(Vec::clear);
        let all = some.map_or(rows.rows, <[u32]>::len);
        while self.rows.len() < ctx.batch_rows {
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
                if done(self.row) || !self.look_up(ctx, sets, columns, bounds, rows)? {
                    continue;
                }
                self.at.resize(self.lists.len(), 0);
            }
            self.combine(sets, ctx.batch_rows);
        }
        Ok(!self.rows.is_empty())
    }

    /// Finds the terms that match the current row; returns false if some comparison has none.
    fn look_up(
        &mut self,
        ctx: &QueryContext<'_>,
        sets: &[MatchTerms],
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
                (MatchTerms::Equal(set), Asker::Equal(partners)) => {
                    list.extend_from_slice(partners.equal_ids(ctx, set, id)?);
                    list.len()
                }
                (MatchTerms::Ordered(relation, set), Asker::Ordered(later)) => {
                    let mut found = later.find(ctx, set, *relation, id)?;
                    for (_, relation, column) in bounds.iter().filter(|b| b.0 == i) {
                        found = later.narrow(ctx, set, *relation, cell(*column))?;
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

    /// Writes the remaining combinations of the current row, with the last comparison varying fastest, until there are
    /// `most` combinations.
    fn combine(&mut self, sets: &[MatchTerms], most: usize) {
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
                (Asker::Ordered(later), MatchTerms::Ordered(_, set)) => {
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
            // The next combination of the comparisons before the last one.
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
        // Otherwise the output is full, and the row continues with the next call.
        if self.rows.len() < most || self.first || self.at.iter().all(|a| *a == 0) {
            self.at.clear();
        }
    }
}
