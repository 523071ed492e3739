//! Messages between the coordinator of a query and its parts, and between parts, and their encoding.
//!
//! Numbers are little-endian; columns are preceded by their length. Lengths are checked against the remaining bytes
//! before anything is allocated, so a damaged message is rejected.

use crate::batch::{View, gather};
use crate::executor::Repeats;
use crate::options::StepProfile;
use jindou_model::{Error, Limit, Resource};
use std::time::Duration;

/// Name of a query in the cluster: the shard at which it is coordinated, and a number that the coordinator assigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct QueryName {
    pub home: u32,
    pub number: u64,
}

/// Treatment of rows whose next edges are on another shard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ShardMode {
    /// Send the rows to the edges or request the edges, as is estimated to be cheaper for each batch.
    #[default]
    Dynamic,
    /// Always request the data.
    InPlace,
    /// Always send the rows.
    Fork,
}

/// Rows of the history table, column by column. Without columns (no variables) only their number is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Columns {
    pub rows: u64,
    pub columns: Vec<Vec<u32>>,
}

impl Columns {
    /// True if the rows have this many columns, or there are no rows.
    pub fn fits(&self, width: usize) -> bool {
        self.columns.len() == width || self.rows == 0
    }

    /// Appends the rows of a view whose positions `index` lists, ascending.
    pub fn gather(&mut self, rows: View<'_>, index: &[u32]) {
        self.columns.resize_with(rows.columns.len(), Vec::new);
        for (c, to) in self.columns.iter_mut().enumerate() {
            let at = to.len();
            to.resize(at + index.len(), 0);
            gather(rows.column(c), index, &mut to[at..]);
        }
        self.rows += index.len() as u64;
    }

    /// An empty set with the same capacity.
    pub fn empty_alike(&self) -> Self {
        let room = |c: &Vec<u32>| Vec::with_capacity(c.len());
        Self {
            rows: 0,
            columns: self.columns.iter().map(room).collect(),
        }
    }

    /// Approximate memory: the bytes of the ids, plus a fixed amount for the vectors.
    pub fn bytes(&self) -> u64 {
        let ids: usize = self.columns.iter().map(Vec::len).sum();
        64 + 4 * ids as u64
    }
}

/// Canonical bytes of the terms of some ids, concatenated, with the end of each term's bytes; empty for an unknown
/// term.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ShippedTerms {
    pub ids: Vec<u32>,
    pub ends: Vec<u32>,
    pub bytes: Vec<u8>,
}

/// The program of a query's part: what the coordinator sends to begin it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PartProgram {
    /// The steps, encoded by [`jindou_plan::wire`].
    pub steps: Vec<u8>,
    /// Number of the snapshot that the query reads ([`LocalShards::name_of`](super::LocalShards::name_of)); 0 for a
    /// store as it was loaded.
    pub state: u64,
    /// The choice of servers for the query's parts, encoded by [`Far::bind`](jindou_graph::shard::Far::bind); empty if
    /// each shard is at one server only.
    pub servers: Vec<u8>,
    /// Time left until the query's deadline; `None` without one.
    pub time: Option<Duration>,
    /// Bytes that the query may use on each server.
    pub memory: u64,
    pub mode: ShardMode,
    /// How duplicates of rows that have passed all steps are treated.
    pub repeats: Repeats,
    /// Set if the query needs only the first rows in some order.
    pub first: Option<FirstByColumn>,
    /// True to measure the time that each step takes.
    pub profile: bool,
}

/// The leading rows by one column that the query needs, because of ORDER BY with LIMIT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FirstByColumn {
    pub column: u32,
    /// True if the greatest terms come first.
    pub is_descending: bool,
    /// True if the column is the only sort key, so that any of several rows with equal terms may be omitted.
    pub is_alone: bool,
    /// Number of leading rows needed (LIMIT plus OFFSET); at least one.
    pub most: u32,
}

/// Counts of one part since its last report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PartCounts {
    pub steps: Vec<StepCounts>,
    /// Number of messages with rows that were sent to other parts, and with results to the coordinator.
    pub messages: u64,
    /// Bytes of these messages.
    pub bytes: u64,
    /// Rows that were sent to a coordinator on another shard.
    pub given: u64,
    /// Finished rows that were not sent, since the query needs only rows that sort before them.
    pub held: u64,
    /// Requests for data of other shards: round trips, messages and bytes.
    pub asked: [u64; 3],
    /// Computing time of the part's threads.
    pub time: Duration,
}

/// Counts of one step in one part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StepCounts {
    pub profile: StepProfile,
    /// Rows that were sent to other parts instead of passing through the step here.
    pub sent: u64,
    /// Rows that stayed although their next edges are on another shard.
    pub stayed: u64,
}

/// Report of a part for the coordinator.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PartReport {
    pub from: u32,
    /// Numbers of the processed messages with rows.
    pub completed: Vec<u64>,
    /// Numbers of the messages with rows that were sent.
    pub spawned: Vec<u64>,
    /// Rows that have passed all steps.
    pub rows: Columns,
    pub counts: PartCounts,
}

impl PartReport {
    /// An empty report. The answer tells the sender how many bytes wait at the coordinator.
    pub fn nothing(from: u32) -> Self {
        Self {
            from,
            ..Self::default()
        }
    }
}

/// A failure of a part, which ends the query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PartFailure {
    kind: u8,
    shard: u32,
    text: String,
}

impl PartFailure {
    pub fn at_shard(error: &Error, shard: u32) -> Self {
        let (kind, shard, text) = match error {
            Error::Shard { shard, message } => (0, *shard, message.clone()),
            Error::Limit(limit) => (1, shard, limit.to_string()),
            Error::Busy(limit) => (2, shard, limit.to_string()),
            Error::Cancelled => (3, shard, String::new()),
            Error::Timeout(limit) => (4, shard, limit.as_nanos().to_string()),
            Error::Internal(text) => (5, shard, text.clone()),
            e => (0, shard, e.to_string()),
        };
        Self { kind, shard, text }
    }

    pub fn error(&self) -> Error {
        let limit = || {
            let text = format!("{} (on shard {})", self.text, self.shard);
            Limit::new(Resource::Memory, text)
        };
        match self.kind {
            1 => Error::Limit(limit()),
            2 => Error::Busy(limit()),
            3 => Error::Cancelled,
            5 => Error::Internal(self.text.clone()),
            kind => match self.text.parse() {
                Ok(limit) if kind == 4 => Error::Timeout(Duration::from_nanos(limit)),
                _ => Error::shard(self.shard, self.text.clone()),
            },
        }
    }
}

/// A message to a part, or to a coordinator.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PartMessage {
    /// Begins a part of a query at the shard.
    Begin(PartProgram),
    /// Requests the start rows from the part: those of the data that its shard owns, or all of them if `alone`. In
    /// [`PartReport::completed`] the request counts like a message with rows, under this number.
    Start { number: u64, alone: bool },
    /// Rows for the part, which have passed the steps before `step`.
    Rows {
        number: u64,
        step: u32,
        rows: Columns,
    },
    /// A part's report to the coordinator.
    Report(PartReport),
    /// A part's failure, to the coordinator.
    Failed(PartFailure),
    /// Asks how many bytes are waiting at the part.
    Waiting,
    /// The part is no longer needed.
    End,
    /// The exploration of a light query, executed while the message is handled; the answer contains the rows.
    Run(PartProgram),
}

/// The answer to a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PartAnswer {
    /// The message was accepted; this many bytes are waiting to be processed.
    Taken(u64),
    /// The query is unknown, or has ended.
    Unknown,
    /// The rows of [`PartMessage::Run`], the number of rows after each step, and terms of some of the rows' ids.
    Ran(Columns, Vec<u64>, ShippedTerms),
    /// The exploration cannot be executed at once: no thread is free, it has too many rows, or this server does not
    /// have the snapshot (yet). The coordinator executes it differently.
    Declined,
    /// The exploration was started, and failed.
    Failed(PartFailure),
}

/// A value with an encoding.
trait Coded: Sized {
    fn put(&self, out: &mut Vec<u8>);

    /// Decodes a value at the beginning of the bytes, and removes it from them; `None` for invalid bytes.
    fn take(r: &mut &[u8]) -> Option<Self>;
}

/// Implements [`Coded`] for numbers and lists of numbers.
macro_rules! numbers {
    ($($of:ty: $size:literal),*) => {$(
        impl Coded for $of {
            fn put(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }

            fn take(r: &mut &[u8]) -> Option<Self> {
                let (head, rest) = r.split_first_chunk()?;
                *r = rest;
                Some(Self::from_le_bytes(*head))
            }
        }

        impl Coded for Vec<$of> {
            fn put(&self, out: &mut Vec<u8>) {
                (self.len() as u64).put(out);
                let at = out.len();
                out.resize(at + $size * self.len(), 0);
                // A plain copy on little-endian machines.
                let bytes = out[at..].as_chunks_mut::<$size>().0;
                for (to, n) in bytes.iter_mut().zip(self) {
                    *to = n.to_le_bytes();
                }
            }

            fn take(r: &mut &[u8]) -> Option<Self> {
                let count = usize::try_from(u64::take(r)?).ok()?;
                let (all, rest) = r.split_at_checked(count.checked_mul($size)?)?;
                *r = rest;
                let all = all.as_chunks::<$size>().0;
                Some(all.iter().map(|&b| <$of>::from_le_bytes(b)).collect())
            }
        }
    )*};
}

/// Implements [`Coded`] for types with fields, which are encoded one after the other.
macro_rules! fields {
    ($($of:ident { $($field:ident),* })*) => {$(
        impl Coded for $of {
            fn put(&self, out: &mut Vec<u8>) {
                $(self.$field.put(out);)*
            }

            fn take(r: &mut &[u8]) -> Option<Self> {
                Some(Self { $($field: Coded::take(r)?),* })
            }
        }
    )*};
}

/// Implements [`Coded`] for types with variants, encoded as a tag byte and the variant's fields.
macro_rules! variants {
    ($($of:ident { $(
        $tag:literal $variant:ident $(($($part:ident),*))? $({$($field:ident),*})?
    ),* })*) => {$(
        impl Coded for $of {
            fn put(&self, out: &mut Vec<u8>) {
                match self {
                    $(Self::$variant $(($($part),*))? $({$($field),*})? => {
                        out.push($tag);
                        $($($part.put(out);)*)?
                        $($($field.put(out);)*)?
                    })*
                }
            }

            fn take(r: &mut &[u8]) -> Option<Self> {
                Some(match u8::take(r)? {
                    $($tag => {
                        $($(let $part = Coded::take(r)?;)*)?
                        $($(let $field = Coded::take(r)?;)*)?
                        Self::$variant $(($($part),*))? $({$($field),*})?
                    })*
                    _ => return None,
                })
            }
        }
    )*};
}

numbers!(u8: 1, u32: 4, u64: 8);

fields! {
    QueryName { home, number }
    ShippedTerms { ids, ends, bytes }
    PartProgram { steps, state, servers, time, memory, mode, repeats, first, profile }
    FirstByColumn { column, is_descending, is_alone, most }
    StepProfile { rows_in, rows_out, time, bytes, written }
    StepCounts { profile, sent, stayed }
    PartCounts { steps, messages, bytes, given, held, asked, time }
    PartReport { from, completed, spawned, rows, counts }
    PartFailure { kind, shard, text }
}

variants! {
    ShardMode { 0 Dynamic, 1 InPlace, 2 Fork }
    Repeats { 0 Each, 1 Once, 2 Counted }
    PartMessage {
        0 Begin(program),
        1 Start { number, alone },
        2 Rows { number, step, rows },
        3 Report(report),
        4 Failed(failure),
        5 Waiting,
        6 End,
        7 Run(program)
    }
    PartAnswer { 0 Taken(waiting), 1 Unknown, 2 Ran(rows, steps, terms), 3 Declined, 4 Failed(failure) }
}

impl Coded for bool {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }

    fn take(r: &mut &[u8]) -> Option<Self> {
        match u8::take(r)? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
}

impl Coded for String {
    fn put(&self, out: &mut Vec<u8>) {
        (self.len() as u64).put(out);
        out.extend_from_slice(self.as_bytes());
    }

    fn take(r: &mut &[u8]) -> Option<Self> {
        Self::from_utf8(Coded::take(r)?).ok()
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl Coded for Duration {
    fn put(&self, out: &mut Vec<u8>) {
        nanos(*self).put(out);
    }

    fn take(r: &mut &[u8]) -> Option<Self> {
        u64::take(r).map(Self::from_nanos)
    }
}

/// The greatest number stands for `None`.
impl Coded for Option<Duration> {
    fn put(&self, out: &mut Vec<u8>) {
        self.map_or(u64::MAX, nanos).put(out);
    }

    fn take(r: &mut &[u8]) -> Option<Self> {
        let time = u64::take(r)?;
        Some((time < u64::MAX).then(|| Duration::from_nanos(time)))
    }
}

impl Coded for Option<FirstByColumn> {
    fn put(&self, out: &mut Vec<u8>) {
        self.is_some().put(out);
        self.iter().for_each(|first| first.put(out));
    }

    fn take(r: &mut &[u8]) -> Option<Self> {
        match bool::take(r)? {
            false => Some(None),
            true => FirstByColumn::take(r).filter(|f| f.most > 0).map(Some),
        }
    }
}

impl Coded for [u64; 3] {
    fn put(&self, out: &mut Vec<u8>) {
        self.iter().for_each(|n| n.put(out));
    }

    fn take(r: &mut &[u8]) -> Option<Self> {
        Some([u64::take(r)?, u64::take(r)?, u64::take(r)?])
    }
}

impl Coded for Vec<StepCounts> {
    fn put(&self, out: &mut Vec<u8>) {
        (self.len() as u64).put(out);
        self.iter().for_each(|step| step.put(out));
    }

    fn take(r: &mut &[u8]) -> Option<Self> {
        let count = u64::take(r)?;
        (0..count).map(|_| StepCounts::take(r)).collect()
    }
}

/// All columns have the same length, which is the number of rows.
impl Coded for Columns {
    fn put(&self, out: &mut Vec<u8>) {
        self.rows.put(out);
        (self.columns.len() as u32).put(out);
        self.columns.iter().for_each(|column| column.put(out));
    }

    fn take(r: &mut &[u8]) -> Option<Self> {
        let (rows, count) = (u64::take(r)?, u32::take(r)?);
        let mut columns = Vec::new();
        for _ in 0..count {
            let column = Vec::<u32>::take(r)?;
            if column.len() as u64 != rows {
                return None;
            }
            columns.push(column);
        }
        Some(Self { rows, columns })
    }
}

/// Encodes a message.
pub(crate) fn put(query: QueryName, message: &PartMessage) -> Vec<u8> {
    let rows = match message {
        PartMessage::Rows { rows, .. } => rows.bytes(),
        PartMessage::Report(r) => r.rows.bytes(),
        _ => 0,
    };
    let mut out = Vec::with_capacity(256 + rows as usize);
    query.put(&mut out);
    message.put(&mut out);
    out
}

/// Decodes a message of [`put`]; `None` for invalid bytes.
pub(crate) fn read(bytes: &[u8]) -> Option<(QueryName, PartMessage)> {
    let mut rest = bytes;
    let read = (Coded::take(&mut rest)?, Coded::take(&mut rest)?);
    rest.is_empty().then_some(read)
}

/// Encodes an answer.
pub(crate) fn put_answer(answer: &PartAnswer) -> Vec<u8> {
    let mut out = Vec::new();
    answer.put(&mut out);
    out
}

/// Decodes an answer of [`put_answer`]; `None` for invalid bytes.
pub(crate) fn read_answer(bytes: &[u8]) -> Option<PartAnswer> {
    let mut rest = bytes;
    let answer = Coded::take(&mut rest)?;
    rest.is_empty().then_some(answer)
}

#[cfg(test)]
mod tests;
