//! A transaction as bytes for the log.
//!
//! A record is one part or several, one after the other: the operations of one transaction each give one.
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
//! A part of version 2 contains the time when the transaction was handed to the log; it is the last one.
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
//! A part of version 4 is the request that the transaction did. A transaction without another part only remembers one.
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
//! A part of version 6 commits it.
//!
//! ```text
//! part    version u8 = 6, length of the rest
//!         snapshot number
//!         the last snapshot that the base contains
//!         shards: count, each: hash u64; merge statistics: length and bytes
//! ```
//!
//! All numbers are 7-bit bytes, lowest first. Nothing read is trusted.

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

/// Reads a count of items that take at least `least` bytes each.
pub(crate) fn take_count(from: &mut &[u8], least: usize) -> Result<usize> {
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

/// One part.
pub(super) fn encode(net: &NetChanges, number: u64) -> Vec<u8> {
    let mut body = Vec::with_capacity(32 + 6 * (net.added.len() + net.removed.len()));
    put(&mut body, number);
    put(&mut body, u64::from(net.tail_before));
    put(&mut body, net.terms.len() as u64);
    for t in &net.terms {
        put(&mut body, t.len() as u64);
        body.extend_from_slice(t);
    }
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
    part(VERSION, &body)
}

/// One part of a version.
fn part(version: u8, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(body.len() + 8);
    out.push(version);
    put(&mut out, body.len() as u64);
    out.extend_from_slice(body);
    out
}

/// Takes a part's rest off a record.
fn take_body<'a>(record: &mut &'a [u8]) -> Result<&'a [u8]> {
    take_bytes(record, 1)?;
    let length = take_count(record, 1)?;
    take_bytes(record, length)
}

/// The contents of a part whose body is read to its end.
fn expect_end<T>(body: &[u8], contents: T) -> Result<T> {
    match body.is_empty() {
        true => Ok(contents),
        false => Err(damaged("it is longer than its contents")),
    }
}

/// One part, of changed prefixes.
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

/// One part, of the request that was done.
pub(super) fn encode_request(request: &DoneRequest, number: u64) -> Vec<u8> {
    let mut body = Vec::with_capacity(64);
    put(&mut body, number);
    for number in request.to_numbers() {
        put(&mut body, number);
    }
    part(REQUEST, &body)
}

/// Takes a part of a request off a record.
fn decode_request(record: &mut &[u8]) -> Result<(u64, DoneRequest)> {
    let mut body = take_body(record)?;
    let number = take(&mut body)?;
    let mut numbers = [0; NUMBERS];
    for number in &mut numbers {
        *number = take(&mut body)?;
    }
    expect_end(body, (number, DoneRequest::from_numbers(numbers)))
}

/// One part, which starts a merge.
pub(super) fn encode_merge_started(plan: MergePlan, number: u64) -> Vec<u8> {
    let mut body = Vec::with_capacity(16);
    put(&mut body, number);
    put(&mut body, plan.generation.into());
    put(&mut body, plan.all.into());
    part(MERGE_STARTED, &body)
}

/// Takes a part that starts a merge off a record.
fn decode_merge_started(record: &mut &[u8]) -> Result<(u64, MergePlan)> {
    let mut body = take_body(record)?;
    let number = take(&mut body)?;
    let generation = take_u32(&mut body)?;
    let all = match take(&mut body)? {
        0 => false,
        1 => true,
        _ => return Err(damaged("it starts a merge in an unknown way")),
    };
    expect_end(body, (number, MergePlan { generation, all }))
}

/// One part, which commits a merge.
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

/// Takes a part that commits a merge off a record.
fn decode_merge_committed(record: &mut &[u8]) -> Result<(u64, MergeCommitted)> {
    let mut body = take_body(record)?;
    let b = &mut body;
    let number = take(b)?;
    let mut committed = MergeCommitted {
        merged: take(b)?,
        shards: Vec::new(),
    };
    for _ in 0..take_count(b, 2)? {
        let hash = take(b)?;
        let length = take_count(b, 1)?;
        let statistics = take_bytes(b, length)?.to_vec();
        committed.shards.push(ShardResult { hash, statistics });
    }
    expect_end(body, (number, committed))
}

/// Appends to a record when its transaction was handed to the log, in microseconds since 1970 (UTC).
pub fn stamp(record: &mut Vec<u8>, micros: u64) {
    let mut body = Vec::with_capacity(10);
    put(&mut body, micros);
    record.push(TIME);
    put(record, body.len() as u64);
    record.extend_from_slice(&body);
}

/// The time when a record's transaction was passed to the log, as given to [`stamp`]; `None` if there is none.
/// O(parts).
#[must_use]
pub fn committed_at(record: &[u8]) -> Option<u64> {
    let mut rest = record;
    while let Some((&version, after)) = rest.split_first() {
        rest = after;
        let length = take_count(&mut rest, 1).ok()?;
        let mut body = take_bytes(&mut rest, length).ok()?;
        if version == TIME {
            return take(&mut body).ok();
        }
    }
    None
}

/// Takes a time off a record's front, if there is one.
fn skip_time(record: &mut &[u8]) -> Result<bool> {
    if record.first() != Some(&TIME) {
        return Ok(false);
    }
    let mut body = take_body(record)?;
    take(&mut body)?;
    expect_end(body, true)
}

/// A part of a record.
#[derive(Debug, PartialEq)]
pub(super) enum RecordPart {
    Quads(NetChanges),
    Prefixes(Vec<PrefixChange>),
    Request(DoneRequest),
    MergeStarted(MergePlan),
    MergeCommitted(MergeCommitted),
}

/// The parts of a record, in order, with their snapshot numbers; at least one besides its time.
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

/// Takes any part but a time off a record.
fn decode_part(record: &mut &[u8]) -> Result<(u64, RecordPart)> {
    Ok(match record.first() {
        Some(&PREFIXES) => {
            let (n, changes) = decode_prefixes(record)?;
            (n, RecordPart::Prefixes(changes))
        }
        Some(&REQUEST) => {
            let (n, request) = decode_request(record)?;
            (n, RecordPart::Request(request))
        }
        Some(&MERGE_STARTED) => {
            let (n, plan) = decode_merge_started(record)?;
            (n, RecordPart::MergeStarted(plan))
        }
        Some(&MERGE_COMMITTED) => {
            let (n, committed) = decode_merge_committed(record)?;
            (n, RecordPart::MergeCommitted(committed))
        }
        _ => {
            let (n, net) = decode(record)?;
            (n, RecordPart::Quads(net))
        }
    })
}

/// Takes a part of changed prefixes off a record.
fn decode_prefixes(record: &mut &[u8]) -> Result<(u64, Vec<PrefixChange>)> {
    let mut body = take_body(record)?;
    let b = &mut body;
    let number = take(b)?;
    let count = take_count(b, 3)?;
    let mut changes = Vec::with_capacity(count.min(MOST_PREFIXES));
    for _ in 0..count {
        let kind = take_bytes(b, 1)?[0];
        let mut text = || -> Result<Box<str>> {
            let n = take_count(b, 1)?;
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
    expect_end(body, (number, changes))
}

/// Reads the first part of a record: its snapshot number and its changes. Quads are ascending and distinct. The caller
/// must check that ids are known and edges exist.
fn decode(record: &mut &[u8]) -> Result<(u64, NetChanges)> {
    let &version = record.first().ok_or_else(|| damaged("it is empty"))?;
    if version != VERSION {
        return Err(Error::Version {
            file: "log".into(),
            found: version.into(),
            supported: VERSION.into(),
        });
    }
    let mut body = take_body(record)?;
    let b = &mut body;
    let number = take(b)?;
    let mut net = NetChanges {
        tail_before: take_u32(b)?,
        ..NetChanges::default()
    };
    for _ in 0..take_count(b, 1)? {
        let n = take_count(b, 1)?;
        net.terms.push(take_bytes(b, n)?.to_vec());
    }
    net.predicates_before = take_u32(b)?;
    for _ in 0..take_count(b, 1)? {
        net.predicates.push(take_u32(b)?);
    }
    for quads in [&mut net.removed, &mut net.added] {
        let mut above = None;
        for _ in 0..take_count(b, 3)? {
            let group = (take_u32(b)?, take_u32(b)?);
            if above.is_some_and(|a| a >= group) {
                return Err(damaged("its groups are out of order"));
            }
            above = Some(group);
            let edges = take_count(b, 2)?;
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
    expect_end(body, (number, net))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn quads() -> impl Strategy<Value = Vec<[u32; 4]>> {
        prop::collection::btree_set(
            (
                0u32..3,
                0u32..4,
                1u32..6,
                prop_oneof![1u32..9, any::<u32>()],
            ),
            0..40,
        )
        .prop_map(|s| {
            s.into_iter()
                .map(|(g, p, s, o)| [g, p, s, o.max(1)])
                .collect()
        })
        .prop_map(|mut v: Vec<[u32; 4]>| {
            v.sort_unstable();
            v.dedup();
            v
        })
    }

    proptest! {
        #[test]
        fn a_record_reads_as_it_was_written(
            added in quads(),
            removed in quads(),
            terms in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..9), 0..5),
            number: u64,
            damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
            cut: prop::sample::Index,
        ) {
            let net = NetChanges { tail_before: 7, terms, predicates_before: 3, predicates: vec![5, 900], removed, added };
            let bytes = encode(&net, number);
            let mut twice = bytes.clone();
            twice.extend_from_slice(&bytes);
            let mut from = &twice[..];
            for _ in 0..2 {
                prop_assert_eq!(decode(&mut from).unwrap(), (number, net.clone()));
            }
            prop_assert!(from.is_empty());
            // A time after them is skipped, and is not a part.
            prop_assert_eq!(committed_at(&twice), None);
            stamp(&mut twice, number >> 3);
            prop_assert_eq!(committed_at(&twice), Some(number >> 3));
            let all: Vec<_> = parts(&twice).collect::<Result<_>>().unwrap();
            let quads = || (number, RecordPart::Quads(net.clone()));
            prop_assert_eq!(all, vec![quads(), quads()]);
            let changes = vec![
                PrefixChange::Declare("a".into(), "http://e/".into()),
                PrefixChange::Set("".into(), "http://f/".into()),
                PrefixChange::Remove("b".into()),
            ];
            let prefixes = encode_prefixes(&changes, number);
            let both = [&prefixes[..], &bytes[..]].concat();
            let all: Vec<_> = parts(&both).collect::<Result<_>>().unwrap();
            prop_assert_eq!(all, vec![(number, RecordPart::Prefixes(changes)), quads()]);
            let request = DoneRequest { key: u128::from(number) << 70 | 5, fingerprint: number, revision: Some(number), ..DoneRequest::default() };
            let noted = [&bytes[..], &encode_request(&request, number)].concat();
            let parsed: Vec<_> = parts(&noted).collect::<Result<_>>().unwrap();
            prop_assert_eq!(parsed, vec![quads(), (number, RecordPart::Request(request))]);
            for at in bytes.len() + 1..noted.len() {
                prop_assert!(parts(&noted[..at]).any(|p| p.is_err()));
            }
            let plan = MergePlan { generation: number as u32, all: number & 1 == 1 };
            let shard = |hash, n| ShardResult { hash, statistics: vec![7; n] };
            let committed = MergeCommitted { merged: number, shards: vec![shard(number, 0), shard(3, 200)] };
            let merges = [encode_merge_started(plan, number), encode_merge_committed(&committed, number)];
            let all: Vec<_> = parts(&merges.concat()).collect::<Result<_>>().unwrap();
            prop_assert_eq!(all, vec![
                (number, RecordPart::MergeStarted(plan)),
                (number, RecordPart::MergeCommitted(committed.clone())),
            ]);
            prop_assert_eq!(MergeCommitted::of_record(&bytes).unwrap(), None);
            prop_assert_eq!(MergeCommitted::of_record(&merges.concat()).unwrap(), Some(committed));
            for record in &merges {
                for at in 0..record.len() {
                    prop_assert!(parts(&record[..at]).any(|p| p.is_err()));
                    let mut bad = record.clone();
                    bad[at] ^= 1 << (at % 8);
                    let _ = parts(&bad).count();
                }
            }
            for at in 0..prefixes.len() {
                prop_assert!(parts(&prefixes[..at]).any(|p| p.is_err()));
                let mut bad = prefixes.clone();
                bad[at] ^= 1 << (at % 8);
                let _ = parts(&bad).count();
            }
            prop_assert!(parts(&twice[bytes.len() * 2..]).any(|p| p.is_err()));
            prop_assert!(parts(&[]).any(|p| p.is_err()));
            // Damage gives an error or other numbers, never a panic.
            let mut bad = bytes.clone();
            for (at, b) in damage {
                let at = at.index(bad.len());
                bad[at] = b;
            }
            let _ = decode(&mut &bad[..]);
            let _ = (committed_at(&bad), parts(&bad).count());
            let cut = cut.index(bytes.len());
            prop_assert!(decode(&mut &bytes[..cut]).is_err());
        }
    }
}
