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
                _ => Error::Shard {
                    shard: self.shard,
                    message: self.text.clone(),
                },
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

fn put_u32(n: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(&n.to_le_bytes());
}

fn put_u64(n: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(&n.to_le_bytes());
}

fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    put_u64(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

fn put_u64s(numbers: &[u64], out: &mut Vec<u8>) {
    put_u64(numbers.len() as u64, out);
    for &n in numbers {
        put_u64(n, out);
    }
}

fn put_u32s(numbers: &[u32], out: &mut Vec<u8>) {
    put_u64(numbers.len() as u64, out);
    let at = out.len();
    out.resize(at + 4 * numbers.len(), 0);
    // A plain copy on little-endian machines.
    let bytes = out[at..].as_chunks_mut::<4>().0;
    for (to, n) in bytes.iter_mut().zip(numbers) {
        *to = n.to_le_bytes();
    }
}

fn put_columns(rows: &Columns, out: &mut Vec<u8>) {
    put_u64(rows.rows, out);
    put_u32(rows.columns.len() as u32, out);
    for column in &rows.columns {
        put_u32s(column, out);
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn put_program(p: &PartProgram, out: &mut Vec<u8>) {
    put_bytes(&p.steps, out);
    put_u64(p.state, out);
    put_bytes(&p.servers, out);
    put_u64(p.time.map_or(u64::MAX, nanos), out);
    put_u64(p.memory, out);
    out.push(p.mode as u8);
    out.push(p.repeats as u8);
    match &p.first {
        None => out.push(0),
        Some(first) => {
            out.push(1);
            put_u32(first.column, out);
            out.push(u8::from(first.is_descending));
            out.push(u8::from(first.is_alone));
            put_u32(first.most, out);
        }
    }
    out.push(u8::from(p.profile));
}

fn put_counts(c: &PartCounts, out: &mut Vec<u8>) {
    put_u64(c.steps.len() as u64, out);
    for s in &c.steps {
        let p = &s.profile;
        let all = [
            p.rows_in,
            p.rows_out,
            nanos(p.time),
            p.bytes,
            p.written,
            s.sent,
            s.stayed,
        ];
        for n in all {
            put_u64(n, out);
        }
    }
    for n in [
        c.messages, c.bytes, c.given, c.held, c.asked[0], c.asked[1], c.asked[2],
    ] {
        put_u64(n, out);
    }
    put_u64(nanos(c.time), out);
}

fn put_failure(f: &PartFailure, out: &mut Vec<u8>) {
    out.push(f.kind);
    put_u32(f.shard, out);
    put_bytes(f.text.as_bytes(), out);
}

/// Encodes a message.
pub(crate) fn put(query: QueryName, message: &PartMessage) -> Vec<u8> {
    let rows = match message {
        PartMessage::Rows { rows, .. } => rows.bytes(),
        PartMessage::Report(r) => r.rows.bytes(),
        _ => 0,
    };
    let mut out = Vec::with_capacity(256 + rows as usize);
    put_u32(query.home, &mut out);
    put_u64(query.number, &mut out);
    match message {
        PartMessage::Begin(p) => {
            out.push(0);
            put_program(p, &mut out);
        }
        PartMessage::Start { number, alone } => {
            out.push(1);
            put_u64(*number, &mut out);
            out.push(u8::from(*alone));
        }
        PartMessage::Rows { number, step, rows } => {
            out.push(2);
            put_u64(*number, &mut out);
            put_u32(*step, &mut out);
            put_columns(rows, &mut out);
        }
        PartMessage::Report(r) => {
            out.push(3);
            put_u32(r.from, &mut out);
            put_u64s(&r.completed, &mut out);
            put_u64s(&r.spawned, &mut out);
            put_columns(&r.rows, &mut out);
            put_counts(&r.counts, &mut out);
        }
        PartMessage::Failed(f) => {
            out.push(4);
            put_failure(f, &mut out);
        }
        PartMessage::Waiting => out.push(5),
        PartMessage::End => out.push(6),
        PartMessage::Run(p) => {
            out.push(7);
            put_program(p, &mut out);
        }
    }
    out
}

/// Decodes a message of [`put`]; `None` for invalid bytes.
pub(crate) fn read(bytes: &[u8]) -> Option<(QueryName, PartMessage)> {
    let mut r = MessageReader(bytes);
    let query = QueryName {
        home: r.u32()?,
        number: r.u64()?,
    };
    let message = match r.u8()? {
        0 => PartMessage::Begin(r.program()?),
        1 => PartMessage::Start {
            number: r.u64()?,
            alone: r.bool()?,
        },
        2 => PartMessage::Rows {
            number: r.u64()?,
            step: r.u32()?,
            rows: r.columns()?,
        },
        3 => PartMessage::Report(PartReport {
            from: r.u32()?,
            completed: r.u64s()?,
            spawned: r.u64s()?,
            rows: r.columns()?,
            counts: r.counts()?,
        }),
        4 => PartMessage::Failed(r.failure()?),
        5 => PartMessage::Waiting,
        6 => PartMessage::End,
        7 => PartMessage::Run(r.program()?),
        _ => return None,
    };
    r.0.is_empty().then_some((query, message))
}

/// Encodes an answer.
pub(crate) fn put_answer(answer: &PartAnswer) -> Vec<u8> {
    let mut out = Vec::new();
    match answer {
        PartAnswer::Taken(waiting) => {
            out.push(0);
            put_u64(*waiting, &mut out);
        }
        PartAnswer::Unknown => out.push(1),
        PartAnswer::Ran(rows, steps, terms) => {
            out.push(2);
            put_columns(rows, &mut out);
            put_u64s(steps, &mut out);
            put_u32s(&terms.ids, &mut out);
            put_u32s(&terms.ends, &mut out);
            put_bytes(&terms.bytes, &mut out);
        }
        PartAnswer::Declined => out.push(3),
        PartAnswer::Failed(f) => {
            out.push(4);
            put_failure(f, &mut out);
        }
    }
    out
}

/// Decodes an answer of [`put_answer`]; `None` for invalid bytes.
pub(crate) fn read_answer(bytes: &[u8]) -> Option<PartAnswer> {
    let mut r = MessageReader(bytes);
    let answer = match r.u8()? {
        0 => PartAnswer::Taken(r.u64()?),
        1 => PartAnswer::Unknown,
        2 => PartAnswer::Ran(
            r.columns()?,
            r.u64s()?,
            ShippedTerms {
                ids: r.u32s()?,
                ends: r.u32s()?,
                bytes: r.sized(1)?.to_vec(),
            },
        ),
        3 => PartAnswer::Declined,
        4 => PartAnswer::Failed(r.failure()?),
        _ => return None,
    };
    r.0.is_empty().then_some(answer)
}

struct MessageReader<'a>(&'a [u8]);

impl<'a> MessageReader<'a> {
    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(head)
    }

    fn u8(&mut self) -> Option<u8> {
        Some(self.take(1)?[0])
    }

    fn bool(&mut self) -> Option<bool> {
        match self.u8()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    /// Reads a count, and that many values of `size` bytes.
    fn sized(&mut self, size: usize) -> Option<&'a [u8]> {
        let count = usize::try_from(self.u64()?).ok()?;
        self.take(count.checked_mul(size)?)
    }

    fn u64s(&mut self) -> Option<Vec<u64>> {
        let all = self.sized(8)?.as_chunks::<8>().0;
        Some(all.iter().map(|&b| u64::from_le_bytes(b)).collect())
    }

    fn u32s(&mut self) -> Option<Vec<u32>> {
        let all = self.sized(4)?.as_chunks::<4>().0;
        Some(all.iter().map(|&b| u32::from_le_bytes(b)).collect())
    }

    /// Reads columns of the same length, which is the number of rows.
    fn columns(&mut self) -> Option<Columns> {
        let rows = self.u64()?;
        let count = self.u32()?;
        let mut columns = Vec::new();
        for _ in 0..count {
            let column = self.u32s()?;
            if column.len() as u64 != rows {
                return None;
            }
            columns.push(column);
        }
        Some(Columns { rows, columns })
    }

    fn program(&mut self) -> Option<PartProgram> {
        let steps = self.sized(1)?.to_vec();
        let state = self.u64()?;
        let servers = self.sized(1)?.to_vec();
        let time = match self.u64()? {
            u64::MAX => None,
            n => Some(Duration::from_nanos(n)),
        };
        Some(PartProgram {
            steps,
            state,
            servers,
            time,
            memory: self.u64()?,
            mode: match self.u8()? {
                0 => ShardMode::Dynamic,
                1 => ShardMode::InPlace,
                2 => ShardMode::Fork,
                _ => return None,
            },
            repeats: match self.u8()? {
                0 => Repeats::Each,
                1 => Repeats::Once,
                2 => Repeats::Counted,
                _ => return None,
            },
            first: match self.bool()? {
                false => None,
                true => Some(FirstByColumn {
                    column: self.u32()?,
                    is_descending: self.bool()?,
                    is_alone: self.bool()?,
                    most: self.u32().filter(|&most| most > 0)?,
                }),
            },
            profile: self.bool()?,
        })
    }

    fn counts(&mut self) -> Option<PartCounts> {
        let count = self.u64()?;
        let mut steps = Vec::new();
        for _ in 0..count {
            steps.push(StepCounts {
                profile: StepProfile {
                    rows_in: self.u64()?,
                    rows_out: self.u64()?,
                    time: Duration::from_nanos(self.u64()?),
                    bytes: self.u64()?,
                    written: self.u64()?,
                },
                sent: self.u64()?,
                stayed: self.u64()?,
            });
        }
        Some(PartCounts {
            steps,
            messages: self.u64()?,
            bytes: self.u64()?,
            given: self.u64()?,
            held: self.u64()?,
            asked: [self.u64()?, self.u64()?, self.u64()?],
            time: Duration::from_nanos(self.u64()?),
        })
    }

    fn failure(&mut self) -> Option<PartFailure> {
        Some(PartFailure {
            kind: self.u8()?,
            shard: self.u32()?,
            text: String::from_utf8(self.sized(1)?.to_vec()).ok()?,
        })
    }
}

#[cfg(test)]
mod tests;
