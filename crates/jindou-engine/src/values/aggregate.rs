//! SPARQL's set functions (SPARQL 1.1 §18.5.1). There is one state per group; each worker has its own states, which are
//! merged at the end.

mod written;

use super::machine::long_number_of_id;
use super::numbers::NumberCache;
use super::order_keys::IdOrder;
use super::sum::Sum;
use crate::batch::{OperatorCharge, View};
use crate::eval::EvalContext;
use crate::filter::ValueSource;
use crate::tree::SlotLayout;
use jindou_model::scope::worked;
use jindou_model::term::{self, Parts};
use jindou_model::{FIRST_QUERY_ID, Holder, Result, TextRoom, VertexId};
use jindou_plan::{Aggregate, AggregateFunction, Slot};
use jindou_values::{Num, Number};
use rustc_hash::FxHashSet;
use std::cmp::Ordering;

/// State of GROUP_CONCAT for a group.
#[derive(Default)]
struct ConcatState {
    /// Canonical bytes of the text so far; empty while the group has no value.
    bytes: Vec<u8>,
    failed: bool,
}

/// The states of one aggregate, by group.
enum GroupStates {
    Count(Vec<u64>),
    Sum(Vec<Sum>),
    /// MIN or (true) MAX: the best id so far, 0 for none, `FAILED` after an error.
    Best(Vec<u32>, bool),
    Sample(Vec<u32>),
    Text(Vec<ConcatState>, Vec<u8>),
}

/// In place of an id: the aggregate is an error.
const FAILED: u32 = u32::MAX;

/// The distinct values that were counted, if the aggregate has DISTINCT.
enum CountedValues {
    All,
    /// Group number (upper 32 bits) and id.
    Values(FxHashSet<u64>),
    /// Group number, then the ids of these columns.
    Rows(FxHashSet<Box<[u32]>>, Vec<ValueSource>),
}

struct AggregateState {
    state: GroupStates,
    value: ValueSource,
    average: bool,
    /// True for `COUNT(*)`, which counts rows even if their values are unbound.
    rows: bool,
    seen: CountedValues,
}

/// The aggregates of a GROUP BY, in one worker.
pub(crate) struct Accumulators {
    all: Vec<AggregateState>,
    groups: usize,
    /// Number of groups for whose states memory was reserved, if more may be refused.
    room: usize,
    places: IdOrder,
    known: NumberCache,
    scratch: Vec<u8>,
    tuple: Vec<u32>,
    /// Charge for the texts of GROUP_CONCAT.
    texts: TextRoom,
    /// True if more states leave other operators the headroom.
    keeps_headroom: bool,
    charge: OperatorCharge,
}

impl Accumulators {
    /// Creates the aggregates for rows with these columns.
    pub fn new(aggregates: &[Aggregate], layout: &[Slot], ctx: &EvalContext<'_>) -> Self {
        let layout = SlotLayout::new(layout);
        let all = aggregates
            .iter()
            .map(|a| {
                let state = match &a.function {
                    AggregateFunction::CountRows | AggregateFunction::Count => {
                        GroupStates::Count(vec![])
                    }
                    AggregateFunction::Sum | AggregateFunction::Avg => GroupStates::Sum(vec![]),
                    AggregateFunction::Min => GroupStates::Best(vec![], false),
                    AggregateFunction::Max => GroupStates::Best(vec![], true),
                    AggregateFunction::Sample => GroupStates::Sample(vec![]),
                    AggregateFunction::GroupConcat(separator) => {
                        GroupStates::Text(vec![], separator.clone().into_bytes())
                    }
                };
                let rows = a.function == AggregateFunction::CountRows;
                let idempotent = matches!(state, GroupStates::Best(..) | GroupStates::Sample(_));
                let seen = if !a.distinct || idempotent {
                    CountedValues::All
                } else if rows {
                    let columns = a
                        .row
                        .iter()
                        .map(|s| ValueSource::of_slot(*s, &layout))
                        .collect();
                    CountedValues::Rows(FxHashSet::default(), columns)
                } else {
                    CountedValues::Values(FxHashSet::default())
                };
                AggregateState {
                    state,
                    value: a
                        .of
                        .map_or(ValueSource::Unbound, |s| ValueSource::of_slot(s, &layout)),
                    average: a.function == AggregateFunction::Avg,
                    rows,
                    seen,
                }
            })
            .collect();
        Self {
            all,
            groups: 0,
            places: IdOrder::default(),
            known: NumberCache::new(ctx),
            scratch: vec![],
            tuple: vec![],
            room: 0,
            texts: TextRoom::new(Holder::GroupBy, ctx.budget),
            keeps_headroom: false,
            charge: OperatorCharge::for_holder(Holder::GroupBy, ctx.budget),
        }
    }

    /// Creates states for the groups up to number `groups`, not included.
    ///
    /// # Errors
    /// `Limit`.
    pub fn grow(&mut self, groups: usize) -> Result<()> {
        if groups <= self.groups {
            return Ok(());
        }
        if self.keeps_headroom && groups > self.room {
            self.reserve(groups)?;
        }
        self.groups = groups;
        for one in &mut self.all {
            match &mut one.state {
                GroupStates::Count(v) => v.resize(groups, 0),
                GroupStates::Sum(v) => v.resize(groups, Sum::zero()),
                GroupStates::Best(v, _) | GroupStates::Sample(v) => v.resize(groups, 0),
                GroupStates::Text(v, _) => v.resize_with(groups, ConcatState::default),
            }
        }
        self.recharge()
    }

    /// Charges the memory held, after rows were added. If rows can be written to files, leaves other operators the headroom.
    ///
    /// # Errors
    /// `Limit`; the rows are added all the same.
    pub fn recharge(&mut self) -> Result<()> {
        let mut bytes = 0;
        for one in &self.all {
            bytes += match &one.state {
                GroupStates::Count(v) => v.capacity() * 8,
                GroupStates::Sum(v) => v.capacity() * size_of::<Sum>(),
                GroupStates::Best(v, _) | GroupStates::Sample(v) => v.capacity() * 4,
                GroupStates::Text(v, _) => v.capacity() * size_of::<ConcatState>(),
            };
            bytes += match &one.seen {
                CountedValues::All => 0,
                CountedValues::Values(s) => s.capacity() * 9,
                CountedValues::Rows(s, c) => s.capacity() * 17 + s.len() * (16 + 4 * c.len()),
            };
        }
        match self.keeps_headroom && self.are_many() {
            true => self.charge.set_with_headroom(bytes),
            false => self.charge.set(bytes),
        }
    }

    /// Adds rows; `group_of_row` has the group of each.
    ///
    /// # Errors
    /// `Limit`.
    pub fn add(
        &mut self,
        ctx: &EvalContext<'_>,
        rows: View<'_>,
        group_of_row: &[u32],
    ) -> Result<()> {
        self.add_times(ctx, rows, group_of_row, |_| 1)
    }

    /// Adds rows, each as often as `times` says.
    ///
    /// # Errors
    /// `Limit`.
    pub fn add_times(
        &mut self,
        ctx: &EvalContext<'_>,
        rows: View<'_>,
        group_of_row: &[u32],
        times: impl Fn(usize) -> u32,
    ) -> Result<()> {
        let Self {
            all,
            places,
            known,
            scratch,
            tuple,
            texts: room,
            ..
        } = self;
        for one in all.iter_mut() {
            let value = one.value;
            for (row, &group) in group_of_row.iter().enumerate().take(rows.rows) {
                let id = value.at(rows, row);
                let mut times = times(row);
                if times == 0 {
                    continue;
                }
                match &mut one.seen {
                    CountedValues::All => {}
                    CountedValues::Values(seen) => {
                        if id != 0 && !seen.insert(u64::from(group) << 32 | u64::from(id)) {
                            continue;
                        }
                        times = 1;
                    }
                    CountedValues::Rows(seen, columns) => {
                        times = 1;
                        tuple.clear();
                        tuple.push(group);
                        tuple.extend(columns.iter().map(|c| c.at(rows, row)));
                        if !seen.contains(&tuple[..]) {
                            seen.insert(tuple.as_slice().into());
                        } else {
                            continue;
                        }
                    }
                }
                let group = group as usize;
                match &mut one.state {
                    GroupStates::Count(v) => {
                        v[group] += u64::from(one.rows || id != 0) * u64::from(times);
                    }
                    GroupStates::Sum(v) => {
                        match (id != 0).then(|| known.number(ctx, id, scratch)).flatten() {
                            Some(n) => v[group].add_times(n, times),
                            None => v[group].add_number_times(number(ctx, id, scratch)?, times),
                        }
                    }
                    GroupStates::Best(v, max) => better(ctx, places, &mut v[group], id, *max)?,
                    GroupStates::Sample(v) => {
                        if v[group] == 0 {
                            v[group] = id;
                        }
                    }
                    GroupStates::Text(v, separator) => {
                        v[group].add(ctx, id, separator, times, room, scratch)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Merges another worker's states. The group that is number `g` there is number `group_map[g]` here.
    ///
    /// # Errors
    /// `Limit` if there is no memory.
    pub fn merge(&mut self, ctx: &EvalContext<'_>, other: Self, group_map: &[u32]) -> Result<()> {
        let Self {
            all,
            places,
            scratch,
            texts: room,
            ..
        } = self;
        for (to, from) in all.iter_mut().zip(other.all) {
            let pairs = || group_map.iter().map(|&g| g as usize).enumerate();
            // A value that both workers have seen counts once, so distinct values are added one by one.
            match (&mut to.seen, from.seen) {
                (CountedValues::All, CountedValues::All) => {}
                (CountedValues::Values(seen), CountedValues::Values(theirs)) => {
                    let failed = failures(&from.state);
                    for key in theirs {
                        let group = group_map[(key >> 32) as usize];
                        let id = key as u32;
                        if !seen.insert(u64::from(group) << 32 | u64::from(id)) {
                            continue;
                        }
                        let group = group as usize;
                        match &mut to.state {
                            GroupStates::Count(v) => v[group] += 1,
                            GroupStates::Sum(v) => v[group].add_number(number(ctx, id, scratch)?),
                            GroupStates::Text(v, separator) => {
                                v[group].add(ctx, id, separator, 1, room, scratch)?;
                            }
                            GroupStates::Best(..) | GroupStates::Sample(_) => {}
                        }
                    }
                    for g in failed {
                        let group = group_map[g] as usize;
                        match &mut to.state {
                            GroupStates::Sum(v) => v[group].fail(),
                            GroupStates::Text(v, _) => v[group].failed = true,
                            _ => {}
                        }
                    }
                    continue;
                }
                (CountedValues::Rows(seen, _), CountedValues::Rows(theirs, _)) => {
                    for mut key in theirs {
                        let Some(first) = key.first_mut() else {
                            continue;
                        };
                        *first = group_map[*first as usize];
                        let group = *first as usize;
                        if seen.insert(key)
                            && let GroupStates::Count(v) = &mut to.state
                        {
                            v[group] += 1;
                        }
                    }
                    continue;
                }
                _ => unreachable!("parts of one GROUP BY have the same aggregates"),
            }
            match (&mut to.state, from.state) {
                (GroupStates::Count(a), GroupStates::Count(b)) => {
                    for (from, to) in pairs() {
                        a[to] += b[from];
                    }
                }
                (GroupStates::Sum(a), GroupStates::Sum(b)) => {
                    for ((_, to), from) in pairs().zip(b) {
                        worked(SUM_WORK + from.bytes())?;
                        a[to].merge(from);
                    }
                }
                (GroupStates::Best(a, max), GroupStates::Best(b, _)) => {
                    for (from, to) in pairs() {
                        match b[from] {
                            0 => {}
                            FAILED => a[to] = FAILED,
                            id => better(ctx, places, &mut a[to], id, *max)?,
                        }
                    }
                }
                (GroupStates::Sample(a), GroupStates::Sample(b)) => {
                    for (from, to) in pairs() {
                        if a[to] == 0 {
                            a[to] = b[from];
                        }
                    }
                }
                (GroupStates::Text(a, separator), GroupStates::Text(b, _)) => {
                    for (from, to) in pairs() {
                        a[to].append(&b[from], separator, room)?;
                    }
                }
                _ => unreachable!("parts of one GROUP BY have the same aggregates"),
            }
        }
        self.recharge()
    }

    /// One column of ids per aggregate, in the order of the groups; 0 where the aggregate is an error.
    ///
    /// # Errors
    /// `Limit` for new terms.
    pub fn finish(self, ctx: &EvalContext<'_>) -> Result<Vec<Vec<u32>>> {
        let mut bytes = Vec::new();
        let mut columns = Vec::with_capacity(self.all.len());
        for one in self.all {
            let made = |bytes: &[u8]| Ok(ctx.terms.resolve(ctx.vocabulary, bytes, ctx.budget)?.0);
            let number = |n: Option<Number>, bytes: &mut Vec<u8>| match n {
                None => Ok(0),
                Some(n) => {
                    worked(SUM_WORK)?;
                    bytes.clear();
                    n.push(bytes);
                    made(bytes)
                }
            };
            let column: Result<Vec<u32>> = match one.state {
                GroupStates::Count(v) => v
                    .into_iter()
                    .map(|n| {
                        number(
                            i64::try_from(n).ok().map(|n| Num::Int(n).into()),
                            &mut bytes,
                        )
                    })
                    .collect(),
                GroupStates::Sum(v) => v
                    .into_iter()
                    .map(|s| {
                        let n = if one.average { s.average() } else { s.total() };
                        number(n, &mut bytes)
                    })
                    .collect(),
                GroupStates::Best(v, _) => Ok(v
                    .into_iter()
                    .map(|id| if id == FAILED { 0 } else { id })
                    .collect()),
                GroupStates::Sample(v) => Ok(v),
                GroupStates::Text(v, _) => v
                    .into_iter()
                    .map(|t| {
                        if t.failed {
                            return Ok(0);
                        }
                        worked(t.bytes.len())?;
                        made(if t.bytes.is_empty() {
                            &[term::STRING]
                        } else {
                            &t.bytes
                        })
                    })
                    .collect(),
            };
            columns.push(column?);
            ctx.check()?;
        }
        Ok(columns)
    }
}

/// Work of a sum or a quotient, in the unit of [`worked`].
const SUM_WORK: usize = 64;

/// The value of a numeric literal. Counts its work: reading and adding the digits is some eight times slower than
/// copying.
#[inline]
fn number(ctx: &EvalContext<'_>, id: u32, scratch: &mut Vec<u8>) -> Result<Option<Number>> {
    if id == 0 {
        return Ok(None);
    }
    let number = long_number_of_id(ctx, id, scratch);
    worked(SUM_WORK + 8 * scratch.len())?;
    Ok(number)
}

/// Numbers of the groups whose aggregate is already an error.
fn failures(state: &GroupStates) -> Vec<usize> {
    match state {
        GroupStates::Sum(v) => (0..v.len()).filter(|&g| v[g].failed()).collect(),
        GroupStates::Text(v, _) => (0..v.len()).filter(|&g| v[g].failed).collect(),
        _ => vec![],
    }
}

/// Replaces `best` by `id` if that comes first (MIN) or last (MAX) in the order of ORDER BY. If a value is an error, so
/// is the aggregate.
#[inline]
fn better(
    ctx: &EvalContext<'_>,
    places: &mut IdOrder,
    best: &mut u32,
    id: u32,
    max: bool,
) -> Result<()> {
    if *best == FAILED {
        return Ok(());
    }
    if id == 0 {
        *best = FAILED;
    } else if *best == 0 {
        *best = id;
    } else if id != *best {
        let wanted = if max {
            Ordering::Greater
        } else {
            Ordering::Less
        };
        if places.compare(ctx, id, *best)? == wanted {
            *best = id;
        }
    }
    Ok(())
}

impl ConcatState {
    /// Appends the text of a value, `times` times.
    fn add(
        &mut self,
        ctx: &EvalContext<'_>,
        id: u32,
        separator: &[u8],
        times: u32,
        room: &mut TextRoom,
        scratch: &mut Vec<u8>,
    ) -> Result<()> {
        if self.failed {
            return Ok(());
        }
        scratch.clear();
        let v = VertexId(id);
        if id >= FIRST_QUERY_ID {
            ctx.terms.term(v, scratch);
        } else if id != 0 {
            ctx.vocabulary.term(v, scratch);
        }
        // The text is STR of the value, so more terms are allowed than in CONCAT, where terms other than strings are
        // errors.
        let text = match term::parts(scratch) {
            Some(
                Parts::String(s)
                | Parts::Lang(s, _)
                | Parts::Iri(s)
                | Parts::Coded(s, _)
                | Parts::Typed(s, _),
            ) => s,
            Some(Parts::Blank(_) | Parts::Triple(_)) | None => {
                self.failed = true;
                return Ok(());
            }
        };
        (0..times).try_for_each(|_| self.join(text.as_bytes(), separator, room))
    }

    fn join(&mut self, text: &[u8], separator: &[u8], room: &mut TextRoom) -> Result<()> {
        // One byte more, since even an empty text takes some time.
        room.reserve(&mut self.bytes, separator.len() + text.len() + 1)?;
        if self.bytes.is_empty() {
            // The result is a simple literal, whatever the values are (SPARQL 1.1 §18.5.1.7).
            self.bytes.push(term::STRING);
        } else {
            self.bytes.extend_from_slice(separator);
        }
        self.bytes.extend_from_slice(text);
        Ok(())
    }

    fn append(&mut self, other: &Self, separator: &[u8], room: &mut TextRoom) -> Result<()> {
        self.failed |= other.failed;
        match other.bytes.get(1..) {
            Some(text) => self.join(text, separator, room),
            None => Ok(()),
        }
    }
}
