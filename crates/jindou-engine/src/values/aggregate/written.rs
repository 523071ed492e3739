//! States of aggregates in files, for groups that do not fit into memory.

use super::{
    Accumulators, AggregateState, ConcatState, CountedValues, FAILED, GroupStates, Sum, better,
    number,
};
use crate::eval::EvalContext;
use crate::partitions::{TakeDistinct, Words, push_bytes, push_u64};
use jindou_model::Result;

/// Numbers of groups and of distinct values from which on they are written to files when memory is short.
const MANY: [usize; 2] = [1 << 8, 1 << 10];

impl Accumulators {
    /// Makes further states leave other operators the headroom.
    pub fn keep_headroom(&mut self) {
        self.keeps_headroom = true;
    }

    /// Reserves memory for the states of more groups, which is charged before.
    #[cold]
    pub(super) fn reserve(&mut self, groups: usize) -> Result<()> {
        let room = groups.max(self.room * 2);
        let each = self.all.iter().map(|one| match &one.state {
            GroupStates::Count(_) => size_of::<u64>(),
            GroupStates::Sum(_) => size_of::<Sum>(),
            GroupStates::Best(..) | GroupStates::Sample(_) => size_of::<u32>(),
            GroupStates::Text(..) => size_of::<ConcatState>(),
        });
        let bytes = self.charge.bytes() as usize + room * each.sum::<usize>();
        match self.are_many() {
            true => self.charge.set_with_headroom(bytes)?,
            false => self.charge.set(bytes)?,
        }
        for one in &mut self.all {
            match &mut one.state {
                GroupStates::Count(v) => v.reserve_exact(room - v.len()),
                GroupStates::Sum(v) => v.reserve_exact(room - v.len()),
                GroupStates::Best(v, _) | GroupStates::Sample(v) => v.reserve_exact(room - v.len()),
                GroupStates::Text(v, _) => v.reserve_exact(room - v.len()),
            }
        }
        self.room = room;
        Ok(())
    }

    /// True if there are so many groups and values that writing them to files frees much memory.
    pub fn are_many(&self) -> bool {
        let scarce = self.charge.budget().is_scarce();
        let [groups, values] = if scarce { [8, 8] } else { MANY };
        self.groups >= groups || self.distinct_values() >= values
    }

    /// Turns all aggregates into ones without DISTINCT, for values that are known to be distinct.
    pub fn count_all(&mut self) {
        for one in &mut self.all {
            one.seen = CountedValues::All;
        }
    }

    /// Largest number of ids of a value that an aggregate with DISTINCT counts; 0 if there is none.
    pub fn distinct_ids(&self) -> usize {
        let ids = self.all.iter().map(|one| match &one.seen {
            CountedValues::All => 0,
            CountedValues::Values(_) => 1,
            CountedValues::Rows(_, columns) => columns.len().max(1),
        });
        ids.max().unwrap_or(0)
    }

    /// Number of distinct values that were counted.
    pub fn distinct_values(&self) -> usize {
        let values = self.all.iter().map(|one| match &one.seen {
            CountedValues::All => 0,
            CountedValues::Values(seen) => seen.len(),
            CountedValues::Rows(seen, _) => seen.len(),
        });
        values.sum()
    }

    /// True if texts grow while rows are added, which must not fail then.
    pub fn has_texts(&self) -> bool {
        let is_text = |one: &AggregateState| matches!(one.state, GroupStates::Text(..));
        self.all.iter().any(is_text)
    }

    /// Removes all states and frees their memory.
    pub fn clear(&mut self) -> Result<()> {
        for one in &mut self.all {
            match &mut one.state {
                GroupStates::Count(v) => *v = vec![],
                GroupStates::Sum(v) => *v = vec![],
                GroupStates::Best(v, _) | GroupStates::Sample(v) => *v = vec![],
                GroupStates::Text(v, _) => *v = vec![],
            }
            match &mut one.seen {
                CountedValues::All => {}
                CountedValues::Values(seen) => *seen = Default::default(),
                CountedValues::Rows(seen, _) => *seen = Default::default(),
            }
        }
        (self.groups, self.room) = (0, 0);
        self.texts.release(self.texts.bytes());
        self.charge.set(0)
    }

    /// Appends the states of a group. Values of aggregates with DISTINCT are left out; see [`Self::each_distinct`].
    pub fn push_states(&self, group: usize, to: &mut Vec<u32>) {
        for one in &self.all {
            let is_all = matches!(one.seen, CountedValues::All);
            match &one.state {
                GroupStates::Count(v) => {
                    let count = v.get(group).copied().filter(|_| is_all);
                    push_u64(to, count.unwrap_or(0));
                }
                GroupStates::Sum(v) => match v.get(group) {
                    Some(sum) if is_all => sum.push_words(to),
                    sum => {
                        let mut none = Sum::zero();
                        if sum.is_some_and(Sum::failed) {
                            none.fail();
                        }
                        none.push_words(to);
                    }
                },
                GroupStates::Best(v, _) | GroupStates::Sample(v) => {
                    to.push(v.get(group).copied().unwrap_or(0));
                }
                GroupStates::Text(v, _) => {
                    let state = v.get(group);
                    to.push(u32::from(state.is_some_and(|s| s.failed)));
                    let bytes = state.filter(|_| is_all).map_or(&[][..], |s| &s.bytes);
                    push_bytes(to, bytes);
                }
            }
        }
    }

    /// Merges states that [`Self::push_states`] has appended into those of a group.
    pub fn merge_states(
        &mut self,
        ctx: &EvalContext<'_>,
        group: usize,
        words: &mut Words<'_>,
    ) -> Result<()> {
        for one in &mut self.all {
            match &mut one.state {
                GroupStates::Count(v) => v[group] += words.u64(),
                GroupStates::Sum(v) => v[group].merge(Sum::of_words(words)),
                GroupStates::Best(v, max) => match words.u32() {
                    0 => {}
                    FAILED => v[group] = FAILED,
                    id => better(ctx, &mut self.places, &mut v[group], id, *max)?,
                },
                GroupStates::Sample(v) => {
                    let id = words.u32();
                    if v[group] == 0 {
                        v[group] = id;
                    }
                }
                GroupStates::Text(v, separator) => {
                    let failed = words.u32() == 1;
                    let bytes = words.bytes();
                    v[group].append(&ConcatState { bytes, failed }, separator, &mut self.texts)?;
                }
            }
        }
        Ok(())
    }

    /// Calls `f` with the number of an aggregate with DISTINCT, a group, and a value that was counted there.
    pub fn each_distinct(&self, f: TakeDistinct<'_>) -> Result<()> {
        for (n, one) in (0u32..).zip(&self.all) {
            match &one.seen {
                CountedValues::All => {}
                CountedValues::Values(seen) => {
                    for key in seen {
                        f(n, (key >> 32) as u32, &[*key as u32])?;
                    }
                }
                CountedValues::Rows(seen, _) => {
                    for key in seen {
                        if let Some((group, row)) = key.split_first() {
                            f(n, *group, row)?;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Counts a value of an aggregate that had DISTINCT.
    pub fn add_distinct(
        &mut self,
        ctx: &EvalContext<'_>,
        aggregate: u32,
        group: usize,
        value: u32,
    ) -> Result<()> {
        let scratch = &mut self.scratch;
        match self
            .all
            .get_mut(aggregate as usize)
            .map(|one| &mut one.state)
        {
            Some(GroupStates::Count(v)) => v[group] += 1,
            Some(GroupStates::Sum(v)) => v[group].add_number(number(ctx, value, scratch)?),
            Some(GroupStates::Text(v, separator)) => {
                v[group].add(ctx, value, separator, 1, &mut self.texts, scratch)?;
            }
            Some(GroupStates::Best(..) | GroupStates::Sample(_)) | None => {}
        }
        Ok(())
    }
}
