//! Groups that do not fit into memory: a worker that gets no memory for another group writes all of its groups to files,
//! divided by the hash of their keys, and begins with none. At the end, each partition is merged by itself, and divided again
//! if it is too large.
//!
//! Values that aggregates with DISTINCT have counted are written apart, divided by the hash of key and value, since one
//! group may have more of them than fit into memory. First each of these is counted once, which gives further states of
//! groups.

use super::BATCH;
use super::distinct::give_distinct;
use super::group::Groups;
use super::stage::Overflow;
use crate::batch::{Batch, View};
use crate::compile::LeafSource;
use crate::explore::{Consumer, Flow, QueryContext, unhalted};
use crate::morsels::each_chunk;
use crate::partitions::{PARTS, PartitionRows, Partitions, TakeDistinct, Words};
use crate::table::hash;
use jindou_model::{Error, Holder, QueryTemp, Resource, Result};

/// Number of times that groups are divided. More do not help: then single groups are too large.
const MOST_LEVELS: u32 = 8;
/// Groups written between two checks of the query's token.
const CHECK: usize = 1 << 12;

/// Groups with the states of their aggregates, in one worker.
pub(crate) trait PartialGroups: Send {
    fn groups(&self) -> &Groups;

    /// Makes further groups leave other operators the headroom, as [`MemoryBudget::charge_with_headroom`](jindou_model::MemoryBudget::charge_with_headroom) does.
    fn keep_headroom(&mut self);

    /// Turns all aggregates into ones without DISTINCT.
    fn count_all(&mut self);

    /// Largest number of ids of a value that an aggregate with DISTINCT counts; 0 if there is none.
    fn distinct_ids(&self) -> usize;

    /// True if there are so many groups and distinct values that writing them to files frees much memory.
    fn are_many(&self) -> bool;

    /// True if adding this many rows might fail for lack of memory after some of them were added.
    fn is_short(&self, ctx: &QueryContext<'_>, rows: usize) -> bool;

    fn add(&mut self, ctx: &QueryContext<'_>, rows: View<'_>) -> Result<()>;

    /// The first part of [`Self::add`]: finds or adds the groups of rows.
    fn number(&mut self, rows: View<'_>) -> Result<()>;

    /// The second part: adds the rows to the states.
    fn add_numbered(&mut self, ctx: &QueryContext<'_>, rows: View<'_>) -> Result<()>;

    /// The last part: charges the memory of the states.
    fn recharge(&mut self) -> Result<()>;

    /// Removes all groups and frees their memory.
    fn clear(&mut self) -> Result<()>;

    fn merge(&mut self, ctx: &QueryContext<'_>, other: Self) -> Result<()>;

    /// Appends the states of a group.
    fn push_states(&self, group: usize, to: &mut Vec<u32>);

    /// Merges such states into those of a group.
    fn merge_states(
        &mut self,
        ctx: &QueryContext<'_>,
        group: usize,
        words: &mut Words<'_>,
    ) -> Result<()>;

    /// Calls `f` with the number of an aggregate with DISTINCT, a group, and a value that was counted there.
    fn each_distinct(&self, f: TakeDistinct<'_>) -> Result<()>;

    /// Counts a value of an aggregate that had DISTINCT.
    fn add_distinct(
        &mut self,
        ctx: &QueryContext<'_>,
        aggregate: u32,
        group: usize,
        value: u32,
    ) -> Result<()>;

    /// Bytes held.
    fn bytes(&self) -> u64;

    /// The keys of each group, then the values of its aggregates.
    fn finish(self, ctx: &QueryContext<'_>) -> Result<Batch>;
}

/// Groups in files.
struct GroupFiles {
    /// Keys with the states of their groups, after the number of ids of both and this one.
    states: Partitions,
    /// Rows of key, number of the aggregate, and value.
    values: Option<Partitions>,
}

impl GroupFiles {
    /// Files for groups whose keys have `width` ids, with values of `distinct` ids.
    fn new(temp: &QueryTemp, width: usize, distinct: usize, level: u32) -> Result<Self> {
        if level > MOST_LEVELS {
            let message = "the memory limit is reached by the states of single groups";
            return Err(Error::limit(Resource::Memory, message));
        }
        let values = || Partitions::new(temp, width + 1 + distinct, level);
        Ok(Self {
            states: Partitions::new(temp, width, level)?,
            values: (distinct > 0).then(values).transpose()?,
        })
    }

    /// Writes groups, and removes them from memory.
    fn write<G: PartialGroups>(&self, groups: &mut G, ctx: &QueryContext<'_>) -> Result<()> {
        let mut writing = PartitionRows::new(ctx, Holder::GroupBy)?;
        let mut record = Vec::new();
        for group in 0..groups.groups().len() {
            if group.is_multiple_of(CHECK) {
                ctx.check()?;
            }
            record.clear();
            record.push(0);
            record.extend_from_slice(groups.groups().keys().key(group as u32));
            let part = self.states.part_of(hash(&record[1..]));
            groups.push_states(group, &mut record);
            record[0] = record.len() as u32;
            writing.push_ids(&self.states, part, &record)?;
        }
        writing.flush(&self.states)?;
        if let Some(values) = &self.values {
            let mut written = 0usize;
            groups.each_distinct(&mut |aggregate, group, value| {
                if written.is_multiple_of(CHECK) {
                    ctx.check()?;
                }
                written += 1;
                record.clear();
                record.extend_from_slice(groups.groups().keys().key(group));
                record.push(aggregate);
                record.extend_from_slice(value);
                record.resize(values.width(), 0);
                writing.push_ids(values, values.part_of(hash(&record)), &record)
            })?;
            writing.flush(values)?;
        }
        groups.clear()
    }
}

/// Groups of one worker, and at the end of all workers.
pub(crate) struct GroupRows<G> {
    groups: G,
    /// Number of ids in a key.
    width: usize,
    /// Number of times that the groups have been divided before.
    level: u32,
    /// This worker's groups that were written to files.
    own: Option<GroupFiles>,
    /// Other workers' groups that were written to files.
    others: Vec<GroupFiles>,
}

impl<G: PartialGroups> GroupRows<G> {
    pub fn new(groups: G, width: usize, ctx: &QueryContext<'_>) -> Self {
        Self::at_level(groups, width, 0, ctx)
    }

    fn at_level(mut groups: G, width: usize, level: u32, ctx: &QueryContext<'_>) -> Self {
        if ctx.temp.is_some() {
            groups.keep_headroom();
        }
        Self {
            groups,
            width,
            level,
            own: None,
            others: vec![],
        }
    }

    fn is_in_memory(&self) -> bool {
        self.own.is_none() && self.others.is_empty()
    }

    pub fn bytes(&self) -> u64 {
        self.groups.bytes()
    }

    pub fn add(&mut self, ctx: &QueryContext<'_>, rows: View<'_>) -> Result<()> {
        if ctx.temp.is_none() || rows.columns.is_empty() {
            return self.groups.add(ctx, rows);
        }
        self.numbered(ctx, rows, 0, &mut |groups, rows, _| {
            groups.add_numbered(ctx, rows)
        })
    }

    /// Numbers the groups of rows and then calls `then` with them and the position of the first one. If there is no
    /// memory for the groups of all rows, there are several calls.
    fn numbered(
        &mut self,
        ctx: &QueryContext<'_>,
        rows: View<'_>,
        first: usize,
        then: &mut dyn FnMut(&mut G, View<'_>, usize) -> Result<()>,
    ) -> Result<()> {
        match self.number(ctx, rows) {
            Err(e) if self.can_write(ctx, &e) && rows.rows > 1 => self.write(ctx)?,
            done => {
                done?;
                then(&mut self.groups, rows, first)?;
                return self.recharge(ctx);
            }
        }
        let columns: Vec<&[u32]> = (0..rows.columns.len()).map(|c| rows.column(c)).collect();
        let mut part = Batch::new(columns.len(), ctx.budget);
        let half = rows.rows / 2;
        for rows in [0..half, half..rows.rows] {
            part.copy_columns(&columns, rows.start, rows.len())?;
            self.numbered(ctx, part.view(), first + rows.start, then)?;
        }
        Ok(())
    }

    /// Numbers the groups of rows. If there is no memory, the groups so far are written to files first.
    fn number(&mut self, ctx: &QueryContext<'_>, rows: View<'_>) -> Result<()> {
        if self.groups.is_short(ctx, rows.rows) && self.groups.are_many() {
            self.write(ctx)?;
        }
        match self.groups.number(rows) {
            Err(e) if self.can_write(ctx, &e) => {
                self.write(ctx)?;
                self.groups.number(rows)
            }
            done => done,
        }
    }

    fn recharge(&mut self, ctx: &QueryContext<'_>) -> Result<()> {
        match self.groups.recharge() {
            Err(e) if self.can_write(ctx, &e) => self.write(ctx),
            done => done,
        }
    }

    fn can_write(&self, ctx: &QueryContext<'_>, e: &Error) -> bool {
        ctx.temp.is_some()
            && e.is_of_memory()
            && (self.groups.are_many() || self.groups.groups().keys().has_many())
    }

    /// Writes the groups in memory to files.
    fn write(&mut self, ctx: &QueryContext<'_>) -> Result<()> {
        let Some(temp) = ctx.temp else {
            return Ok(());
        };
        let files = match &self.own {
            Some(files) => files,
            None => {
                let distinct = self.groups.distinct_ids();
                let new = GroupFiles::new(temp, self.width, distinct, self.level)?;
                self.own.insert(new)
            }
        };
        files.write(&mut self.groups, ctx)
    }

    pub fn merge(&mut self, ctx: &QueryContext<'_>, mut other: Self) -> Result<()> {
        // What the merged table takes in addition, while it grows.
        let more = 3 * (self.groups.bytes() + other.groups.bytes());
        let fits = || ctx.temp.is_none() || ctx.budget.has_headroom(more);
        if self.is_in_memory() && other.is_in_memory() && fits() {
            return self.groups.merge(ctx, other.groups);
        }
        for part in [&mut *self, &mut other] {
            part.write(ctx)?;
        }
        self.others.extend(other.own);
        self.others.append(&mut other.others);
        Ok(())
    }

    /// True if there is memory for the rows of the result, or if there are no files to use instead.
    fn can_finish(&self, ctx: &QueryContext<'_>) -> bool {
        let rows = self.groups.groups().len();
        let is_many = self.groups.groups().keys().has_many();
        let bytes = (rows * 4 * (self.width + 8)) as u64;
        ctx.temp.is_none() || !is_many || ctx.budget.has_headroom(bytes)
    }

    /// The leaf with the resulting rows. `make` makes an empty state for rows of keys.
    pub fn into_leaf<'a, F>(mut self, ctx: &QueryContext<'_>, make: F) -> Result<LeafSource<'a>>
    where
        G: 'a,
        F: Fn(&QueryContext<'_>) -> G + Send + Sync + 'a,
    {
        if self.is_in_memory() && self.can_finish(ctx) {
            return Ok(LeafSource::Whole(self.groups.finish(ctx)?));
        }
        self.write(ctx)?;
        let mut files: Vec<GroupFiles> = self.own.into_iter().chain(self.others).collect();
        drop(self.groups);
        let values: Vec<Partitions> = files.iter_mut().filter_map(|f| f.values.take()).collect();
        let mut counted = Self::at_level(make(ctx), self.width, 0, ctx);
        counted.groups.count_all();
        if !values.is_empty() {
            let values: Vec<&Partitions> = values.iter().collect();
            let mut to = CountValues {
                rows: &mut counted,
                ctx,
            };
            for part in 0..PARTS {
                unhalted(give_distinct(&values, part, Holder::GroupBy, ctx, &mut to))?;
            }
            counted.write(ctx)?;
            files.extend(counted.own);
        }
        Ok(LeafSource::Grouped(Box::new(WrittenGroups {
            files: files.into_iter().map(|f| f.states).collect(),
            width: self.width,
            make,
        })))
    }

    /// Merges groups from a file.
    fn merge_records(&mut self, ctx: &QueryContext<'_>, mut words: &[u32]) -> Result<()> {
        let mut columns = vec![Vec::with_capacity(BATCH); self.width];
        let mut states = Vec::with_capacity(BATCH);
        while !words.is_empty() {
            columns.iter_mut().for_each(Vec::clear);
            states.clear();
            while states.len() < BATCH
                && let Some(&length) = words.first()
            {
                let (record, rest) = words.split_at((length as usize).clamp(1, words.len()));
                words = rest;
                let (key, state) = record[1..].split_at(self.width.min(record.len() - 1));
                for (column, &id) in columns.iter_mut().zip(key) {
                    column.push(id);
                }
                states.push(state);
            }
            let rows = View {
                columns: &columns,
                rows: states.len(),
            };
            self.numbered(ctx, rows, 0, &mut |groups, rows, first| {
                for (row, state) in states[first..first + rows.rows].iter().enumerate() {
                    let group = group_of(groups, row);
                    groups.merge_states(ctx, group, &mut Words(state))?;
                }
                Ok(())
            })?;
        }
        Ok(())
    }
}

/// The group of a row that was numbered.
fn group_of<G: PartialGroups>(groups: &G, row: usize) -> usize {
    // Without keys there is one group.
    let group = groups.groups().of_row.get(row).copied();
    group.unwrap_or(0) as usize
}

/// Counts values that are distinct.
struct CountValues<'c, 'q, G> {
    rows: &'c mut GroupRows<G>,
    ctx: &'c QueryContext<'q>,
}

impl<G: PartialGroups> Consumer for CountValues<'_, '_, G> {
    fn batch(&mut self, rows: View<'_>) -> Flow {
        let (keys, values) = rows.columns.split_at(self.rows.width);
        let [aggregates, values, ..] = values else {
            return Ok(());
        };
        let (ctx, rows) = (self.ctx, rows.rows);
        let keys = View {
            columns: keys,
            rows,
        };
        self.rows
            .numbered(ctx, keys, 0, &mut |groups, rows, first| {
                let of = aggregates[first..].iter().zip(&values[first..]);
                for (row, (&aggregate, &value)) in of.take(rows.rows).enumerate() {
                    let group = group_of(groups, row);
                    groups.add_distinct(ctx, aggregate, group, value)?;
                }
                Ok(())
            })?;
        Ok(())
    }
}

/// Groups in files, as a leaf.
struct WrittenGroups<F> {
    files: Vec<Partitions>,
    width: usize,
    make: F,
}

impl<G, F> Overflow for WrittenGroups<F>
where
    G: PartialGroups,
    F: Fn(&QueryContext<'_>) -> G + Send + Sync,
{
    fn parts(&self) -> u64 {
        PARTS as u64
    }

    fn give(&self, part: u64, ctx: &QueryContext<'_>, to: &mut dyn Consumer) -> Flow {
        let files: Vec<&Partitions> = self.files.iter().collect();
        self.give_part(&files, part as usize, ctx, to)
    }
}

impl<G, F> WrittenGroups<F>
where
    G: PartialGroups,
    F: Fn(&QueryContext<'_>) -> G + Send + Sync,
{
    fn give_part(
        &self,
        files: &[&Partitions],
        part: usize,
        ctx: &QueryContext<'_>,
        to: &mut dyn Consumer,
    ) -> Flow {
        if !files.iter().any(|file| file.has_rows(part)) {
            return Ok(());
        }
        let level = files.first().map_or(0, |file| file.level()) + 1;
        let mut groups = GroupRows::at_level((self.make)(ctx), self.width, level, ctx);
        groups.groups.count_all();
        for file in files {
            file.read_pieces(part, ctx, |words| Ok(groups.merge_records(ctx, words)?))?;
        }
        if groups.is_in_memory() && groups.can_finish(ctx) {
            let rows = groups.groups.finish(ctx)?;
            let mut chunk = Batch::new(rows.columns.len(), ctx.budget);
            let all = 0..rows.rows;
            return each_chunk(&rows, rows.rows, all, ctx.batch_rows, &mut chunk, |rows| {
                ctx.check()?;
                to.batch(rows)
            });
        }
        groups.write(ctx)?;
        let Some(deeper) = groups.own.take() else {
            return Ok(());
        };
        drop(groups);
        for part in 0..PARTS {
            self.give_part(&[&deeper.states], part, ctx, to)?;
        }
        Ok(())
    }
}
