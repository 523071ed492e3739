//! Encoding of a transaction as a record of the log.
//!
//! A record consists of one or more parts: each operation of the transaction gives one.
//!
//! ```text
//! part    version u8 = 1, length of the rest
//!         snapshot number
//!         tail terms before, new terms: count, each its length and bytes
//!         predicates before, new predicates: count, each its vertex
//!         removed quads, added quads: groups
//! groups  count, each: graph, dense predicate, edges; edges ascending:
//!         subject less the one before; object, less the one before where the subject is the same
//! ```
//!
//! A part of version 2 contains the time when the transaction was passed to the log; it is the last part.
//!
//! ```text
//! part    version u8 = 2, length of the rest
//!         microseconds since 1970, UTC
//! ```
//!
//! A part of version 3 changes prefixes.
//!
//! ```text
//! part    version u8 = 3, length of the rest
//!         snapshot number
//!         changes: count, each: kind u8 (1 declared by data, 2 set, 3 removed); length and bytes of the name, of the IRI
//! ```
//!
//! A part of version 4 contains the request that the transaction executed. If this is the only part, the transaction
//! changed no data.
//!
//! ```text
//! part    version u8 = 4, length of the rest
//!         snapshot number
//!         the numbers of a `DoneRequest`
//! ```
//!
//! A part of version 5 starts a merge of all shards at the same snapshot.
//!
//! ```text
//! part    version u8 = 5, length of the rest
//!         snapshot number
//!         generation, 1 if all generations are merged or 0
//! ```
//!
//! A part of version 6 commits that merge.
//!
//! ```text
//! part    version u8 = 6, length of the rest
//!         snapshot number
//!         the last snapshot that the base contains
//!         shards: count, each: hash u64; merge statistics: length and bytes
//! ```
//!
//! A part of version 7 frees ids of terms that updates added ([`free`](super::free)).
//!
//! ```text
//! part    version u8 = 7, length of the rest
//!         snapshot number
//!         runs of numbers in the tail: count, each: first, less the end of the one before; length
//! ```
//!
//! A part of version 8 is one of version 1 whose first new terms get free ids.
//!
//! ```text
//! part    version u8 = 8, length of the rest
//!         as version 1; after the new terms: runs of numbers, as in version 7
//! ```
//!
//! Numbers are encoded in 7-bit groups, lowest first. Decoding accepts any input and returns an error for invalid
//! bytes.

use super::{MergeCommitted, NetChanges, ShardResult};
use crate::merge::MergePlan;
use crate::requests::{DoneRequest, NUMBERS};
use jindou_model::prefixes::{MOST_PREFIXES, PrefixChange};
use jindou_model::{Error, Result};

const VERSION: u8 = 1;
const TIME: u8 = 2;
const PREFIXES: u8 = 3;
const REQUEST: u8 = 4;
const MERGE_STARTED: u8 = 5;
const MERGE_COMMITTED: u8 = 6;
const FREED: u8 = 7;
const REUSING: u8 = 8;

pub(crate) fn damaged(what: &str) -> Error {
    Error::damaged(
        "log",
        format!(
            "a record is damaged: {what}; restore the store from a backup or run `jindou check` on it"
        ),
    )
}

pub(crate) fn put(out: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

pub(crate) fn take(from: &mut &[u8]) -> Result<u64> {
    let mut n = 0u64;
    for shift in (0..64).step_by(7) {
        let (&b, rest) = from
            .split_first()
            .ok_or_else(|| damaged("it ends too early"))?;
        *from = rest;
        if shift == 63 && b > 1 {
            break;
        }
        n |= u64::from(b & 0x7F) << shift;
        if b < 0x80 {
            return Ok(n);
        }
    }
    Err(damaged("a number is too large"))
}

pub(crate) fn take_u32(from: &mut &[u8]) -> Result<u32> {
    u32::try_from(take(from)?).map_err(|_| damaged("a number is too large"))
}

/// Decodes a count of items that take at least `least` bytes each.
pub(crate) fn decode_count(from: &mut &[u8], least: usize) -> Result<usize> {
    let n = take(from)?;
    match usize::try_from(n) {
        Ok(n) if n <= from.len() / least => Ok(n),
        _ => Err(damaged("a count is larger than the record")),
    }
}

fn take_bytes<'a>(from: &mut &'a [u8], n: usize) -> Result<&'a [u8]> {
    let (head, rest) = from
        .split_at_checked(n)
        .ok_or_else(|| damaged("it ends too early"))?;
    *from = rest;
    Ok(head)
}

/// Encodes a part of version 1 or 8.
pub(super) fn encode(net: &NetChanges, number: u64) -> Vec<u8> {
    let mut body = Vec::with_capacity(32 + 6 * (net.added.len() + net.removed.len()));
    put(&mut body, number);
    put(&mut body, u64::from(net.tail_before));
    put(&mut body, net.terms.len() as u64);
    for t in &net.terms {
        put(&mut body, t.len() as u64);
        body.extend_from_slice(t);
    }
    let version = match net.reused.is_empty() {
        true => VERSION,
        false => {
            put_runs(&mut body, &net.reused);
            REUSING
        }
    };
    put(&mut body, u64::from(net.predicates_before));
    put(&mut body, net.predicates.len() as u64);
    for &v in &net.predicates {
        put(&mut body, u64::from(v));
    }
    for quads in [&net.removed, &net.added] {
        let same = |a: &[u32; 4], b: &[u32; 4]| a[0] == b[0] && a[1] == b[1];
        put(&mut body, quads.chunk_by(same).count() as u64);
        for group in quads.chunk_by(same) {
            put(&mut body, u64::from(group[0][0]));
            put(&mut body, u64::from(group[0][1]));
            put(&mut body, group.len() as u64);
            let (mut s, mut o) = (0, 0);
            for q in group {
                put(&mut body, u64::from(q[2] - s));
                put(
                    &mut body,
                    u64::from(if q[2] == s { q[3] - o } else { q[3] }),
                );
                (s, o) = (q[2], q[3]);
            }
        }
    }
    part(version, &body)
}

/// Encodes a part that frees the ids of terms with these numbers.
pub(super) fn encode_freed(runs: &[[u32; 2]], number: u64) -> Vec<u8> {
    let mut body = Vec::with_capacity(16 + 4 * runs.len());
    put(&mut body, number);
    put_runs(&mut body, runs);
    part(FREED, &body)
}

fn put_runs(body: &mut Vec<u8>, runs: &[[u32; 2]]) {
    put(body, runs.len() as u64);
    let mut last = 0;
    for &[first, end] in runs {
        put(body, u64::from(first - last));
        put(body, u64::from(end - first));
        last = end;
    }
}

/// Decodes runs `[first, end)`, which must ascend and not be empty.
fn decode_runs(from: &mut &[u8]) -> Result<Vec<[u32; 2]>> {
    let mut runs = Vec::new();
    let mut last = 0u32;
    for _ in 0..decode_count(from, 2)? {
        let (gap, length) = (take_u32(from)?, take_u32(from)?);
        let first = last.checked_add(gap);
        let end = first.and_then(|first| first.checked_add(length));
        match (first, end) {
            (Some(first), Some(end)) if first < end => runs.push([first, end]),
            _ => return Err(damaged("it has a run of ids that is not one")),
        }
        last = end.unwrap_or(last);
    }
    Ok(runs)
}

/// Encodes a part of this version with this body.
fn part(version: u8, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(body.len() + 8);
    out.push(version);
    put(&mut out, body.len() as u64);
    out.extend_from_slice(body);
    out
}

/// Returns the body of the part at the front of a record, and advances `record` past it.
fn decode_body<'a>(record: &mut &'a [u8]) -> Result<&'a [u8]> {
    take_bytes(record, 1)?;
    let length = decode_count(record, 1)?;
    take_bytes(record, length)
}

/// Returns `contents`, or an error unless the body was read to its end.
fn expect_end<T>(body: &[u8], contents: T) -> Result<T> {
    match body.is_empty() {
        true => Ok(contents),
        false => Err(damaged("it is longer than its contents")),
    }
}

/// Encodes a part with changed prefixes.
pub(super) fn encode_prefixes(changes: &[PrefixChange], number: u64) -> Vec<u8> {
    let mut body = Vec::new();
    put(&mut body, number);
    put(&mut body, changes.len() as u64);
    for change in changes {
        let (kind, name, iri) = match change {
            PrefixChange::Declare(name, iri) => (1, name, &**iri),
            PrefixChange::Set(name, iri) => (2, name, &**iri),
            PrefixChange::Remove(name) => (3, name, ""),
        };
        body.push(kind);
        for text in [name, iri] {
            put(&mut body, text.len() as u64);
            body.extend_from_slice(text.as_bytes());
        }
    }
    part(PREFIXES, &body)
}

/// Encodes a part with the request that the transaction executed.
pub(super) fn encode_request(request: &DoneRequest, number: u64) -> Vec<u8> {
    let mut body = Vec::with_capacity(64);
    put(&mut body, number);
    for number in request.to_numbers() {
        put(&mut body, number);
    }
    part(REQUEST, &body)
}

fn decode_request(b: &mut &[u8]) -> Result<DoneRequest> {
    let mut numbers = [0; NUMBERS];
    for number in &mut numbers {
        *number = take(b)?;
    }
    Ok(DoneRequest::from_numbers(numbers))
}

/// Encodes a part that starts a merge.
pub(super) fn encode_merge_started(plan: MergePlan, number: u64) -> Vec<u8> {
    let mut body = Vec::with_capacity(16);
    put(&mut body, number);
    put(&mut body, plan.generation.into());
    put(&mut body, plan.to_flags());
    part(MERGE_STARTED, &body)
}

fn decode_merge_started(b: &mut &[u8]) -> Result<MergePlan> {
    let generation = take_u32(b)?;
    let plan = MergePlan::from_flags(generation, take(b)?);
    plan.ok_or_else(|| damaged("it starts a merge in an unknown way"))
}

/// Encodes a part that commits a merge.
pub(super) fn encode_merge_committed(committed: &MergeCommitted, number: u64) -> Vec<u8> {
    let mut body = Vec::new();
    put(&mut body, number);
    put(&mut body, committed.merged);
    put(&mut body, committed.shards.len() as u64);
    for shard in &committed.shards {
        put(&mut body, shard.hash);
        put(&mut body, shard.statistics.len() as u64);
        body.extend_from_slice(&shard.statistics);
    }
    part(MERGE_COMMITTED, &body)
}

fn decode_merge_committed(b: &mut &[u8]) -> Result<MergeCommitted> {
    let mut committed = MergeCommitted {
        merged: take(b)?,
        shards: Vec::new(),
    };
    for _ in 0..decode_count(b, 2)? {
        let hash = take(b)?;
        let length = decode_count(b, 1)?;
        let statistics = take_bytes(b, length)?.to_vec();
        committed.shards.push(ShardResult { hash, statistics });
    }
    Ok(committed)
}

/// Appends to a record the time when its transaction was passed to the log, in microseconds since 1970 (UTC).
pub fn stamp(record: &mut Vec<u8>, micros: u64) {
    let mut body = Vec::with_capacity(10);
    put(&mut body, micros);
    record.extend_from_slice(&part(TIME, &body));
}

/// The time when a record's transaction was passed to the log, as given to [`stamp`]; `None` if the record has no time.
/// O(parts).
#[must_use]
pub fn committed_at(record: &[u8]) -> Option<u64> {
    let mut rest = record;
    while let Some((&version, after)) = rest.split_first() {
        rest = after;
        let length = decode_count(&mut rest, 1).ok()?;
        let mut body = take_bytes(&mut rest, length).ok()?;
        if version == TIME {
            return take(&mut body).ok();
        }
    }
    None
}

/// Skips a part with a time at the front of a record; false if there is none.
fn skip_time(record: &mut &[u8]) -> Result<bool> {
    if record.first() != Some(&TIME) {
        return Ok(false);
    }
    let mut body = decode_body(record)?;
    take(&mut body)?;
    expect_end(body, true)
}

#[derive(Debug, PartialEq)]
pub(super) enum RecordPart {
    Quads(NetChanges),
    Prefixes(Vec<PrefixChange>),
    Request(DoneRequest),
    MergeStarted(MergePlan),
    MergeCommitted(MergeCommitted),
    Freed(Vec<[u32; 2]>),
}

/// The parts of a record, in order, with their snapshot numbers; at least one, not counting the time.
pub(super) fn parts(record: &[u8]) -> impl Iterator<Item = Result<(u64, RecordPart)>> {
    let mut rest = record;
    let mut first = true;
    std::iter::from_fn(move || {
        let next = loop {
            if rest.is_empty() && !first {
                return None;
            }
            match skip_time(&mut rest) {
                Ok(true) => {}
                Ok(false) => break decode_part(&mut rest),
                Err(e) => break Err(e),
            }
        };
        first = false;
        if next.is_err() {
            rest = &[];
        }
        Some(next)
    })
}

/// Decodes any part except a time: its snapshot number and its content. Advances `record` past it.
fn decode_part(record: &mut &[u8]) -> Result<(u64, RecordPart)> {
    let &version = record.first().ok_or_else(|| damaged("it is empty"))?;
    if !(VERSION..=REUSING).contains(&version) || version == TIME {
        return Err(Error::Version {
            file: "log".into(),
            found: version.into(),
            supported: REUSING.into(),
        });
    }
    let mut body = decode_body(record)?;
    let b = &mut body;
    let number = take(b)?;
    let part = match version {
        PREFIXES => RecordPart::Prefixes(decode_prefixes(b)?),
        REQUEST => RecordPart::Request(decode_request(b)?),
        MERGE_STARTED => RecordPart::MergeStarted(decode_merge_started(b)?),
        MERGE_COMMITTED => RecordPart::MergeCommitted(decode_merge_committed(b)?),
        FREED => RecordPart::Freed(decode_runs(b)?),
        _ => RecordPart::Quads(decode_quads(b, version == REUSING)?),
    };
    expect_end(body, (number, part))
}

fn decode_prefixes(b: &mut &[u8]) -> Result<Vec<PrefixChange>> {
    let count = decode_count(b, 3)?;
    let mut changes = Vec::with_capacity(count.min(MOST_PREFIXES));
    for _ in 0..count {
        let kind = take_bytes(b, 1)?[0];
        let mut text = || -> Result<Box<str>> {
            let n = decode_count(b, 1)?;
            let bytes = take_bytes(b, n)?;
            let text = std::str::from_utf8(bytes).map_err(|_| damaged("a prefix is not UTF-8"))?;
            Ok(text.into())
        };
        let (name, iri) = (text()?, text()?);
        changes.push(match kind {
            1 => PrefixChange::Declare(name, iri),
            2 => PrefixChange::Set(name, iri),
            3 if iri.is_empty() => PrefixChange::Remove(name),
            _ => return Err(damaged("it changes a prefix in an unknown way")),
        });
    }
    Ok(changes)
}

/// Decodes a part of version 1 or 8. Quads are ascending and distinct. The caller must check that ids are known, removed
/// quads present and added quads absent.
fn decode_quads(b: &mut &[u8], is_reusing: bool) -> Result<NetChanges> {
    let mut net = NetChanges {
        tail_before: take_u32(b)?,
        ..NetChanges::default()
    };
    for _ in 0..decode_count(b, 1)? {
        let n = decode_count(b, 1)?;
        net.terms.push(take_bytes(b, n)?.to_vec());
    }
    if is_reusing {
        net.reused = decode_runs(b)?;
    }
    net.predicates_before = take_u32(b)?;
    for _ in 0..decode_count(b, 1)? {
        net.predicates.push(take_u32(b)?);
    }
    for quads in [&mut net.removed, &mut net.added] {
        let mut above = None;
        for _ in 0..decode_count(b, 3)? {
            let group = (take_u32(b)?, take_u32(b)?);
            if above.is_some_and(|a| a >= group) {
                return Err(damaged("its groups are out of order"));
            }
            above = Some(group);
            let edges = decode_count(b, 2)?;
            quads.reserve(edges);
            let (mut s, mut o) = (0u32, 0u32);
            for i in 0..edges {
                let step = take_u32(b)?;
                let next = take_u32(b)?;
                let overflow = || damaged("an id is too large");
                s = s.checked_add(step).ok_or_else(overflow)?;
                if step > 0 || i == 0 {
                    o = next;
                } else {
                    if next == 0 {
                        return Err(damaged("an edge occurs twice"));
                    }
                    o = o.checked_add(next).ok_or_else(overflow)?;
                }
                quads.push([group.0, group.1, s, o]);
            }
        }
    }
    Ok(net)
}

#[cfg(test)]
mod tests;
