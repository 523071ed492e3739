//! The messages between a reader and a [`super::StoreServer`], byte by byte. All numbers little-endian.
//!
//! ```text
//! OPEN   request   empty
//!        reply     predicates u32, then for out and in: segment file, entries, summaries (descriptors)
//! DIRTY  request   empty
//!        reply     snapshot u32, n u32, n × { direction u32, predicate u32, keys u32, keys ascending }
//! LISTS  request   snapshot u32, direction u32, predicate u32, scope, skip u32, keys u32 …
//!        reply     for each key from the first on: more u32 (1: the list goes on), n u32, n × u32
//! scope            kind u32, n u32, n × graph u32
//! ```
//!
//! A reply to LISTS ends where it is full; the reader asks again for the rest (`skip` neighbours of the first
//! key are left out).

use jindou_model::Direction;
use jindou_store::segment::Scope;

/// Asks for the number of predicates and the regions that hold the segments.
pub const OPEN: u16 = 0x4A01;
/// Asks which keys updates have changed, and at which snapshot.
pub const DIRTY: u16 = 0x4A02;
/// Asks for the neighbour lists of keys in one scope.
pub const LISTS: u16 = 0x4A03;

/// Values in one reply to LISTS, at least one list's worth of progress.
pub const LISTS_VALUES: usize = 1 << 20;

pub fn put(out: &mut Vec<u8>, n: u32) {
    out.extend_from_slice(&n.to_le_bytes());
}

pub fn take(bytes: &mut &[u8]) -> Option<u32> {
    let (n, rest) = bytes.split_first_chunk::<4>()?;
    *bytes = rest;
    Some(u32::from_le_bytes(*n))
}

/// Takes `n` numbers off the front.
pub fn take_many(bytes: &mut &[u8], n: u32, out: &mut Vec<u32>) -> Option<()> {
    let (part, rest) = bytes.split_at_checked(n as usize * 4)?;
    *bytes = rest;
    let numbers = part.chunks_exact(4).filter_map(|c| c.first_chunk::<4>());
    out.extend(numbers.map(|c| u32::from_le_bytes(*c)));
    Some(())
}

pub fn put_scope(out: &mut Vec<u8>, scope: Scope<'_>) {
    let one;
    let (kind, graphs): (u32, &[u32]) = match scope {
        Scope::Default => (0, &[]),
        Scope::Named(g) => {
            one = [g];
            (1, &one)
        }
        Scope::AnyNamed => (2, &[]),
        Scope::Union => (3, &[]),
        Scope::Set(graphs) => (4, graphs),
    };
    put(out, kind);
    put(out, graphs.len() as u32);
    graphs.iter().for_each(|&g| put(out, g));
}

/// Takes a scope; the graphs of a set go to `graphs`.
pub fn take_scope<'a>(bytes: &mut &[u8], graphs: &'a mut Vec<u32>) -> Option<Scope<'a>> {
    let kind = take(bytes)?;
    let n = take(bytes)?;
    take_many(bytes, n, graphs)?;
    Some(match (kind, &graphs[..]) {
        (0, []) => Scope::Default,
        (1, &[g]) => Scope::Named(g),
        (2, []) => Scope::AnyNamed,
        (3, []) => Scope::Union,
        (4, set) => Scope::Set(set),
        _ => return None,
    })
}

pub fn direction(n: u32) -> Option<Direction> {
    match n {
        0 => Some(Direction::Out),
        1 => Some(Direction::In),
        _ => None,
    }
}
