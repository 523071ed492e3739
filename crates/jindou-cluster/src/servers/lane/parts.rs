//! Messages over UCX: parts of at most [`PART`] bytes, which may arrive in any order.
//!
//! | bytes | |
//! |---|---|
//! | 0..8 | lane |
//! | 8..16 | number of the request |
//! | 16..20 | place of the part in its message |
//! | 20..24 | parts of the message |
//! | 24 | kind, as a frame's |
//! | 25..32 | 0 |
//! | 32..40 | xxh3-64 of the body, with that of the bytes before as its seed |
//! | 40.. | body |
//!
//! All numbers are little-endian.

use super::super::frame::FrameKind;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// Bytes of a part's body; only the last part of a message may have fewer.
pub const PART: usize = 1 << 20;
const HEADER: usize = 40;

/// A received part.
#[derive(Debug)]
pub struct LanePart<'a> {
    pub lane: u64,
    pub number: u64,
    pub kind: FrameKind,
    index: u32,
    count: u32,
    pub body: &'a [u8],
}

impl LanePart<'_> {
    /// True if the part is a whole message.
    pub fn is_whole(&self) -> bool {
        self.count == 1
    }
}

/// The parts of a message, each with its position; an empty message has one part without a body.
pub fn parts(message: &[u8]) -> impl ExactSizeIterator<Item = (u32, &[u8])> {
    let count = message.len().div_ceil(PART).max(1) as u32;
    (0..count).map(move |i| {
        let from = i as usize * PART;
        let to = message.len().min(from + PART);
        (i, message.get(from..to).unwrap_or_default())
    })
}

/// Writes a part, replacing the content of `out`.
pub fn write(
    lane: u64,
    number: u64,
    kind: FrameKind,
    (index, count): (u32, u32),
    body: &[u8],
    out: &mut Vec<u8>,
) {
    out.clear();
    out.reserve(HEADER + body.len());
    out.extend_from_slice(&lane.to_le_bytes());
    out.extend_from_slice(&number.to_le_bytes());
    out.extend_from_slice(&index.to_le_bytes());
    out.extend_from_slice(&count.to_le_bytes());
    out.extend_from_slice(&[kind as u8, 0, 0, 0, 0, 0, 0, 0]);
    let seal = xxh3_64_with_seed(body, xxh3_64(out));
    out.extend_from_slice(&seal.to_le_bytes());
    out.extend_from_slice(body);
}

/// Parses a part; `None` for anything else.
pub fn read(bytes: &[u8]) -> Option<LanePart<'_>> {
    let (head, rest) = bytes.split_first_chunk::<32>()?;
    let (seal, body) = rest.split_first_chunk::<8>()?;
    if xxh3_64_with_seed(body, xxh3_64(head)) != u64::from_le_bytes(*seal) {
        return None;
    }
    let eight = |at: usize| {
        head.get(at..)?
            .first_chunk()
            .map(|b| u64::from_le_bytes(*b))
    };
    let four = |at: usize| {
        head.get(at..)?
            .first_chunk()
            .map(|b| u32::from_le_bytes(*b))
    };
    let part = LanePart {
        lane: eight(0)?,
        number: eight(8)?,
        index: four(16)?,
        count: four(20)?,
        kind: FrameKind::from_byte(head[24])?,
        body,
    };
    let last = part.index.checked_add(1)? == part.count;
    let fits = part.index < part.count && body.len() <= PART && (last || body.len() == PART);
    fits.then_some(part)
}

/// A message of which some parts have arrived.
#[derive(Debug, Default)]
pub struct Assembly {
    count: u32,
    /// The first part that is not in `body` yet.
    next: u32,
    body: Vec<u8>,
    early: Vec<(u32, Vec<u8>)>,
    /// True if bytes are not kept.
    is_unwanted: bool,
}

impl Assembly {
    /// Number of bytes held.
    pub fn bytes(&self) -> usize {
        self.body.len() + self.early.iter().map(|e| e.1.len()).sum::<usize>()
    }

    /// Discards present and future bytes. Parts are still counted, and form an empty message.
    pub fn throw_away(&mut self) {
        self.is_unwanted = true;
        self.body = Vec::new();
        self.early.iter_mut().for_each(|e| e.1 = Vec::new());
    }

    /// Adds a part; returns the message once it is complete.
    ///
    /// # Errors
    /// For a message of more than `most` bytes and for a part that does not belong to it.
    pub fn put(
        &mut self,
        part: &LanePart<'_>,
        most: usize,
    ) -> Result<Option<Vec<u8>>, &'static str> {
        if self.count == 0 {
            self.count = part.count;
        }
        if (part.count as usize - 1).saturating_mul(PART) >= most.max(1) {
            return Err("a message longer than allowed");
        }
        let known = part.index < self.next || self.early.iter().any(|e| e.0 == part.index);
        if part.count != self.count || known {
            return Err("a part that does not belong to its message");
        }
        let body = if self.is_unwanted { &[] } else { part.body };
        if part.index != self.next {
            self.early.push((part.index, body.to_vec()));
            return Ok(None);
        }
        self.add(body);
        while let Some(at) = self.early.iter().position(|e| e.0 == self.next) {
            let (_, body) = self.early.swap_remove(at);
            self.add(&body);
        }
        if self.next < self.count {
            return Ok(None);
        }
        if self.body.len() > most {
            return Err("a message longer than allowed");
        }
        Ok(Some(std::mem::take(&mut self.body)))
    }

    fn add(&mut self, body: &[u8]) {
        self.body.extend_from_slice(body);
        self.next += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: usize = 4 * PART;

    fn pattern(len: usize) -> Vec<u8> {
        (0..len).map(|i| (i * 31 + i / 256) as u8).collect()
    }

    fn written(message: &[u8]) -> Vec<Vec<u8>> {
        let all = parts(message);
        let count = all.len() as u32;
        all.map(|(i, body)| {
            let mut out = vec![9; 3];
            write(7, 8, FrameKind::Replies, (i, count), body, &mut out);
            out
        })
        .collect()
    }

    #[test]
    fn parts_in_any_order_make_their_message() {
        for len in [0, 1, PART - 1, PART, PART + 1, 3 * PART + 5] {
            let message = pattern(len);
            let mut all = written(&message);
            for turn in 0..all.len() {
                all.rotate_left(turn);
                let mut assembly = Assembly::default();
                for (i, bytes) in all.iter().enumerate() {
                    let part = read(bytes).unwrap();
                    assert_eq!(
                        (part.lane, part.number, part.kind),
                        (7, 8, FrameKind::Replies)
                    );
                    let whole = assembly.put(&part, MOST).unwrap();
                    assert_eq!(whole.is_some(), i + 1 == all.len());
                    assert!(whole.is_none_or(|w| w == message), "{len}");
                }
            }
        }
    }

    #[test]
    fn what_nobody_wants_is_counted_and_not_kept() {
        let message = pattern(3 * PART + 5);
        let all = written(&message);
        for thrown_before in 0..4 {
            let mut assembly = Assembly::default();
            for (i, at) in [2, 0, 3, 1].into_iter().enumerate() {
                if i == thrown_before {
                    assembly.throw_away();
                    assert_eq!(assembly.bytes(), 0);
                }
                let whole = assembly.put(&read(&all[at]).unwrap(), MOST).unwrap();
                assert_eq!(whole, (i == 3).then(Vec::new));
                assert!(i < thrown_before || assembly.bytes() == 0);
            }
        }
    }

    #[test]
    fn what_is_damaged_is_no_part() {
        let bytes = &written(b"some neighbours")[0];
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut bad = bytes.clone();
                bad[at] ^= 1 << bit;
                assert!(read(&bad).is_none(), "{at} {bit}");
            }
        }
        for cut in 0..bytes.len() {
            assert!(read(&bytes[..cut]).is_none(), "{cut}");
        }
        let mut out = Vec::new();
        for (place, body) in [((0, 0), 0), ((2, 2), 0), ((0, 2), 5), ((0, 1), PART + 1)] {
            write(1, 2, FrameKind::Requests, place, &pattern(body), &mut out);
            assert!(read(&out).is_none(), "{place:?}");
        }
    }

    #[test]
    fn what_does_not_belong_is_refused() {
        let part = |place, body| {
            let mut out = Vec::new();
            write(1, 2, FrameKind::Requests, place, &pattern(body), &mut out);
            out
        };
        let [first, other, long, end] = [
            part((0, 2), PART),
            part((0, 3), PART),
            part((0, 5_000_000), PART),
            part((4, 5), 1),
        ];
        let mut assembly = Assembly::default();
        let mut put = |bytes: &[u8]| assembly.put(&read(bytes).unwrap(), MOST);
        assert!(put(&first).is_ok());
        assert!(put(&first).is_err() && put(&other).is_err() && put(&long).is_err());
        assert!(
            Assembly::default()
                .put(&read(&long).unwrap(), MOST)
                .is_err()
        );
        assert!(Assembly::default().put(&read(&end).unwrap(), MOST).is_err());
        assert_eq!(assembly.bytes(), PART);
    }
}
