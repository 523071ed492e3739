//! SPARQL's set functions (SPARQL 1.1 §18.5.1): one state a group, mergeable, so that each worker has its own.

use super::machine::long_number_of_id;
use super::numbers::Known;
use super::sum::Sum;
use crate::batch::{Charge, View};
use crate::explore::Run;
use crate::filter::Value;
use crate::operators::Places;
use crate::tree::Layout;
use jindou_model::term::{self, Parts};
use jindou_model::{Error, FIRST_QUERY_ID, Holder, Result, VertexId};
use jindou_plan::{Aggregate, AggregateFunction, Slot};
use jindou_values::{Num, Number};
use rustc_hash::FxHashSet;
use std::cmp::Ordering;

/// The text of a group so far.
#[derive(Clone, Default)]
struct Text {
    bytes: Vec<u8>,
    /// True once the group has a value.
    begun: bool,
    failed: bool,
}

/// States by group.
enum State {
    Count(Vec<u64>),
    Sum(Vec<Sum>),
    /// The best id so far: 0 for none, `FAILED` after an error. True for MAX.
    Best(Vec<u32>, bool),
    Sample(Vec<u32>),
    Text(Vec<Text>, Vec<u8>),
}

/// No id: an aggregate that met an error.
const FAILED: u32 = u32::MAX;

/// Values that were counted.
enum Seen {
    All,
    /// (group, value)
    Values(FxHashSet<u64>),
    /// Group and values of the columns.
    Rows(FxHashSet<Box<[u32]>>, Vec<Value>),
}

struct One {
    state: State,
    value: Value,
    average: bool,
    /// `COUNT(*)`: rows count whether bound or not.
    rows: bool,
    seen: Seen,
}

/// The aggregates of a grouping.
pub(crate) struct Accumulators {
    all: Vec<One>,
    groups: usize,
    places: Places,
    known: Known,
    scratch: Vec<u8>,
    tuple: Vec<u32>,
    text_bytes: usize,
    charge: Charge,
}

impl Accumulators {
    /// Over rows with these columns.
    pub fn new(aggregates: &[Aggregate], layout: &[Slot], run: &Run<'_>) -> Self {
        let layout = Layout::new(layout);
        let all = aggregates
            .iter()
            .map(|a| {
                let state = match &a.function {
                    AggregateFunction::CountRows | AggregateFunction::Count => State::Count(vec![]),
                    AggregateFunction::Sum | AggregateFunction::Avg => State::Sum(vec![]),
                    AggregateFunction::Min => State::Best(vec![], false),
                    AggregateFunction::Max => State::Best(vec![], true),
                    AggregateFunction::Sample => State::Sample(vec![]),
                    AggregateFunction::GroupConcat(separator) => {
                        State::Text(vec![], separator.clone().into_bytes())
                    }
                };
                let rows = a.function == AggregateFunction::CountRows;
                let idempotent = matches!(state, State::Best(..) | State::Sample(_));
                let seen = if !a.distinct || idempotent {
                    Seen::All
                } else if rows {
                    let columns = a.row.iter().map(|s| Value::of(*s, &layout)).collect();
                    Seen::Rows(FxHashSet::default(), columns)
                } else {
                    Seen::Values(FxHashSet::default())
                };
                One {
                    state,
                    value: a.of.map_or(Value::Unbound, |s| Value::of(s, &layout)),
                    average: a.function == AggregateFunction::Avg,
                    rows,
                    seen,
                }
            })
            .collect();
        Self {
            all,
            groups: 0,
            places: Places::default(),
            known: Known::new(run),
            scratch: vec![],
            tuple: vec![],
            text_bytes: 0,
            charge: Charge::of(Holder::GroupBy, run.budget),
        }
    }

    /// Makes states for groups `0 .. groups`.
    ///
    /// # Errors
    /// `Limit`.
    pub fn grow(&mut self, groups: usize) -> Result<()> {
        if groups <= self.groups {
            return Ok(());
        }
        self.groups = groups;
        for one in &mut self.all {
            match &mut one.state {
                State::Count(v) => v.resize(groups, 0),
                State::Sum(v) => v.resize(groups, Sum::zero()),
                State::Best(v, _) | State::Sample(v) => v.resize(groups, 0),
                State::Text(v, _) => v.resize_with(groups, Text::default),
            }
        }
        self.recharge()
    }

    fn recharge(&mut self) -> Result<()> {
        let mut bytes = self.text_bytes;
        for one in &self.all {
            bytes += match &one.state {
                State::Count(v) => v.capacity() * 8,
                State::Sum(v) => v.capacity() * size_of::<Sum>(),
                State::Best(v, _) | State::Sample(v) => v.capacity() * 4,
                State::Text(v, _) => v.capacity() * size_of::<Text>(),
            };
            bytes += match &one.seen {
                Seen::All => 0,
                Seen::Values(s) => s.capacity() * 9,
                Seen::Rows(s, c) => s.capacity() * 17 + s.len() * (16 + 4 * c.len()),
            };
        }
        self.charge.set(bytes)
    }

    /// Adds rows; `group_of_row` has the group of each.
    ///
    /// # Errors
    /// `Limit`.
    pub fn add(&mut self, run: &Run<'_>, rows: View<'_>, group_of_row: &[u32]) -> Result<()> {
        self.add_times(run, rows, group_of_row, |_| 1)
    }

    /// Adds rows, each this many times.
    ///
    /// # Errors
    /// `Limit`.
    pub fn add_times(
        &mut self,
        run: &Run<'_>,
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
            text_bytes,
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
                    Seen::All => {}
                    Seen::Values(seen) => {
                        if id != 0 && !seen.insert(u64::from(group) << 32 | u64::from(id)) {
                            continue;
                        }
                        times = 1;
                    }
                    Seen::Rows(seen, columns) => {
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
                    State::Count(v) => {
                        v[group] += u64::from(one.rows || id != 0) * u64::from(times);
                    }
                    State::Sum(v) => {
                        match (id != 0).then(|| known.number(run, id, scratch)).flatten() {
                            Some(n) => v[group].add_times(n, times),
                            None => v[group].add_number_times(number(run, id, scratch), times),
                        }
                    }
                    State::Best(v, max) => better(run, places, &mut v[group], id, *max),
                    State::Sample(v) => {
                        if v[group] == 0 {
                            v[group] = id;
                        }
                    }
                    State::Text(v, separator) => {
                        for _ in 0..times {
                            *text_bytes += v[group].add(run, id, separator, scratch);
                        }
                    }
                }
            }
        }
        self.recharge()
    }

    /// Adds another worker's groups: its group `g` is `group_map[g]` here.
    ///
    /// # Errors
    /// `Limit`; `Internal` for other aggregates.
    pub fn merge(&mut self, run: &Run<'_>, other: Self, group_map: &[u32]) -> Result<()> {
        self.text_bytes += other.text_bytes;
        let Self {
            all,
            places,
            scratch,
            ..
        } = self;
        for (to, from) in all.iter_mut().zip(other.all) {
            let pairs = || group_map.iter().map(|&g| g as usize).enumerate();
            // What both have seen counts once: distinct values are added again, one by one.
            match (&mut to.seen, from.seen) {
                (Seen::All, Seen::All) => {}
                (Seen::Values(seen), Seen::Values(theirs)) => {
                    let failed = failures(&from.state);
                    for key in theirs {
                        let group = group_map[(key >> 32) as usize];
                        let id = key as u32;
                        if !seen.insert(u64::from(group) << 32 | u64::from(id)) {
                            continue;
                        }
                        let group = group as usize;
                        match &mut to.state {
                            State::Count(v) => v[group] += 1,
                            State::Sum(v) => v[group].add_number(number(run, id, scratch)),
                            State::Text(v, separator) => {
                                v[group].add(run, id, separator, scratch);
                            }
                            State::Best(..) | State::Sample(_) => {}
                        }
                    }
                    for g in failed {
                        let group = group_map[g] as usize;
                        match &mut to.state {
                            State::Sum(v) => v[group].fail(),
                            State::Text(v, _) => v[group].failed = true,
                            _ => {}
                        }
                    }
                    continue;
                }
                (Seen::Rows(seen, _), Seen::Rows(theirs, _)) => {
                    for mut key in theirs {
                        let Some(first) = key.first_mut() else {
                            continue;
                        };
                        *first = group_map[*first as usize];
                        let group = *first as usize;
                        if seen.insert(key)
                            && let State::Count(v) = &mut to.state
                        {
                            v[group] += 1;
                        }
                    }
                    continue;
                }
                _ => return Err(Error::Internal("parts of different aggregates".into())),
            }
            match (&mut to.state, from.state) {
                (State::Count(a), State::Count(b)) => {
                    for (from, to) in pairs() {
                        a[to] += b[from];
                    }
                }
                (State::Sum(a), State::Sum(b)) => {
                    for (from, to) in pairs() {
                        a[to].merge(b[from].clone());
                    }
                }
                (State::Best(a, max), State::Best(b, _)) => {
                    for (from, to) in pairs() {
                        match b[from] {
                            0 => {}
                            FAILED => a[to] = FAILED,
                            id => better(run, places, &mut a[to], id, *max),
                        }
                    }
                }
                (State::Sample(a), State::Sample(b)) => {
                    for (from, to) in pairs() {
                        if a[to] == 0 {
                            a[to] = b[from];
                        }
                    }
                }
                (State::Text(a, separator), State::Text(b, _)) => {
                    for (from, to) in pairs() {
                        a[to].append(&b[from], separator);
                    }
                }
                _ => return Err(Error::Internal("parts of different aggregates".into())),
            }
        }
        self.recharge()
    }

    /// A column of ids by aggregate, in the order of the groups; 0 where the aggregate is an error.
    ///
    /// # Errors
    /// `Limit` for new terms.
    pub fn finish(self, run: &Run<'_>) -> Result<Vec<Vec<u32>>> {
        let mut bytes = Vec::new();
        let mut columns = Vec::with_capacity(self.all.len());
        for one in self.all {
            let made = |bytes: &[u8]| Ok(run.terms.resolve(run.vocabulary, bytes, run.budget)?.0);
            let number = |n: Option<Number>, bytes: &mut Vec<u8>| match n {
                None => Ok(0),
                Some(n) => {
                    bytes.clear();
                    n.push(bytes);
                    made(bytes)
                }
            };
            let column: Result<Vec<u32>> = match one.state {
                State::Count(v) => v
                    .into_iter()
                    .map(|n| {
                        number(
                            i64::try_from(n).ok().map(|n| Num::Int(n).into()),
                            &mut bytes,
                        )
                    })
                    .collect(),
                State::Sum(v) => v
                    .into_iter()
                    .map(|s| {
                        let n = if one.average { s.average() } else { s.total() };
                        number(n, &mut bytes)
                    })
                    .collect(),
                State::Best(v, _) => Ok(v
                    .into_iter()
                    .map(|id| if id == FAILED { 0 } else { id })
                    .collect()),
                State::Sample(v) => Ok(v),
                State::Text(v, _) => v
                    .into_iter()
                    .map(|t| {
                        if t.failed {
                            return Ok(0);
                        }
                        bytes.clear();
                        // A simple literal whatever the values are (SPARQL 1.1 §18.5.1.7).
                        bytes.push(term::STRING);
                        bytes.extend_from_slice(&t.bytes);
                        made(&bytes)
                    })
                    .collect(),
            };
            columns.push(column?);
            run.check()?;
        }
        Ok(columns)
    }
}

#[inline]
fn number(run: &Run<'_>, id: u32, scratch: &mut Vec<u8>) -> Option<Number> {
    if id == 0 {
        return None;
    }
    long_number_of_id(run, id, scratch)
}

/// Groups whose aggregate is an error already.
fn failures(state: &State) -> Vec<usize> {
    match state {
        State::Sum(v) => (0..v.len()).filter(|&g| v[g].failed()).collect(),
        State::Text(v, _) => (0..v.len()).filter(|&g| v[g].failed).collect(),
        _ => vec![],
    }
}

/// MIN and MAX follow the order of ORDER BY; an error is an error.
#[inline]
fn better(run: &Run<'_>, places: &mut Places, best: &mut u32, id: u32, max: bool) {
    if *best == FAILED {
        return;
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
        if places.compare(run, id, *best) == wanted {
            *best = id;
        }
    }
}

impl Text {
    /// Returns the bytes it grew by.
    fn add(&mut self, run: &Run<'_>, id: u32, separator: &[u8], scratch: &mut Vec<u8>) -> usize {
        if self.failed {
            return 0;
        }
        scratch.clear();
        let v = VertexId(id);
        if id >= FIRST_QUERY_ID {
            run.terms.term(v, scratch);
        } else if id != 0 {
            run.vocabulary.term(v, scratch);
        }
        // STR of the value: kinder than CONCAT, for which only strings are not errors.
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
                return 0;
            }
        };
        let before = self.bytes.capacity();
        self.join(text.as_bytes(), separator);
        self.bytes.capacity() - before
    }

    fn join(&mut self, text: &[u8], separator: &[u8]) {
        if self.begun {
            self.bytes.extend_from_slice(separator);
        }
        self.begun = true;
        self.bytes.extend_from_slice(text);
    }

    fn append(&mut self, other: &Self, separator: &[u8]) {
        self.failed |= other.failed;
        if other.begun {
            self.join(&other.bytes, separator);
        }
    }
}
