//! Groups of transactions, and their encoding.

use std::sync::Arc;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// Immutable bytes.
pub type Blob = Arc<[u8]>;
/// Name of a server, chosen by its operator.
pub type ServerName = Arc<str>;

/// Identity of a request: a hash of the client's key and principal, or a random number if the client sent no key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RequestKey(pub u128);

/// A client's request: its identity and a hash of its content.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Request {
    /// The client's idempotency key, or a random number.
    pub key: RequestKey,
    /// Hash of the request's content, which detects a different request with the same key; 0 if unknown.
    pub fingerprint: u64,
}

impl From<RequestKey> for Request {
    fn from(key: RequestKey) -> Self {
        Self {
            key,
            fingerprint: 0,
        }
    }
}

/// One run of a server's process. A process puts at most one group for each number.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Writer {
    /// The server's name.
    pub server: ServerName,
    /// Random number of the process.
    pub start: u64,
}

/// A transaction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Record {
    /// Key of the request whose transaction this is.
    pub key: RequestKey,
    /// The request's fingerprint; 0 if unknown, as in all groups of version 1.
    pub fingerprint: u64,
    /// The answer to the request, which is also sent to retries of the request.
    pub report: Blob,
    /// The encoded changes, which this crate does not interpret.
    pub bytes: Blob,
}

impl Record {
    /// Number of bytes that the record takes in an encoded group.
    pub(crate) fn size(&self) -> usize {
        32 + self.report.len() + self.bytes.len()
    }
}

/// Transactions that become durable and visible together (group commit).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Group {
    /// Number of the group, counted from 1, and of the snapshot after it.
    pub number: u64,
    /// The server process that wrote the group.
    pub writer: Writer,
    /// [`Group::hash`] of the preceding group; 0 for the first group, or if the writer did not know the hash. `None` in
    /// groups of version 1, whose format lacks this field.
    pub previous: Option<u64>,
    /// The transactions in order.
    pub records: Vec<Record>,
}

/// Reason why bytes are not a valid group of this log.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Damage {
    /// The magic bytes are wrong: a different kind of file.
    #[error("not a group of transactions")]
    Magic,
    /// The group has a newer version than this program reads.
    #[error("written by a later version, in format {0}")]
    Version(u32),
    /// The id epoch is wrong: a group of another store, or of another load of this store.
    #[error("of another store's log")]
    Epoch,
    /// The checksum does not match.
    #[error("checksum does not match")]
    Checksum,
    /// A length does not fit the number of bytes.
    #[error("lengths do not fit")]
    Length,
    /// A server's name is not UTF-8.
    #[error("the writer's name is not text")]
    Name,
    /// The group's number does not match the object's name.
    #[error("holds another number than its name says")]
    Number,
}

const MAGIC: &[u8; 8] = b"JDGROUP\n";
const SPAN: &[u8; 8] = b"JDSPAN1\n";
/// The newest group version that this program reads and writes.
pub const GROUP_VERSION: u32 = 2;

impl Group {
    /// Number of bytes of the group's transactions.
    pub(crate) fn size(&self) -> usize {
        self.records.iter().map(Record::size).sum()
    }

    /// The version in which the group is encoded.
    pub fn version(&self) -> u32 {
        match self.previous {
            None => 1,
            Some(_) => 2,
        }
    }

    /// Encodes the group as an object of the log with this id epoch.
    ///
    /// # Errors
    /// [`Damage::Length`] if a length exceeds 32 bits.
    pub fn write(&self, epoch: u64) -> Result<Blob, Damage> {
        let mut out = Vec::with_capacity(72 + self.writer.server.len() + self.size());
        self.encode(epoch, |bytes| out.extend_from_slice(bytes))?;
        let sum = xxh3_64(&out);
        out.extend_from_slice(&sum.to_le_bytes());
        Ok(out.into())
    }

    /// The hash that the next group stores as `previous`: the checksum at the end of this group's bytes. Since the
    /// checksum covers `previous`, two logs with the same hash are equal up to this group. Never 0.
    pub fn hash(&self, epoch: u64) -> u64 {
        let mut hash = Xxh3::new();
        match self.encode(epoch, |bytes| hash.update(bytes)) {
            Ok(()) => hash.digest().max(1),
            Err(_) => 0,
        }
    }

    /// Passes the encoded bytes without the checksum to `out`, part by part.
    fn encode(&self, epoch: u64, mut out: impl FnMut(&[u8])) -> Result<(), Damage> {
        let size = |bytes: usize| match u32::try_from(bytes) {
            Ok(size) => Ok(size.to_le_bytes()),
            Err(_) => Err(Damage::Length),
        };
        let name = self.writer.server.as_bytes();
        out(MAGIC);
        out(&self.version().to_le_bytes());
        out(&size(self.records.len())?);
        let head = [epoch, self.number, self.writer.start];
        for number in head.into_iter().chain(self.previous) {
            out(&number.to_le_bytes());
        }
        out(&size(name.len())?);
        out(name);
        for record in &self.records {
            out(&record.key.0.to_le_bytes());
            if self.version() > 1 {
                out(&record.fingerprint.to_le_bytes());
            }
            for part in [&record.report, &record.bytes] {
                out(&size(part.len())?);
                out(part);
            }
        }
        Ok(())
    }

    /// Decodes an object of the log.
    ///
    /// # Errors
    /// The first reason why the bytes are not a valid group of the log with this id epoch.
    pub fn read(epoch: u64, bytes: &[u8]) -> Result<Self, Damage> {
        let mut rest = Bytes(bytes);
        if rest.take(8)? != MAGIC {
            return Err(Damage::Magic);
        }
        let version = rest.u32()?;
        if !(1..=GROUP_VERSION).contains(&version) {
            return Err(Damage::Version(version));
        }
        let body = bytes.len().checked_sub(8).ok_or(Damage::Length)?;
        let (body, sum) = bytes.split_at(body);
        if xxh3_64(body).to_le_bytes() != sum {
            return Err(Damage::Checksum);
        }
        let mut rest = Bytes(body.get(12..).ok_or(Damage::Length)?);
        let count = rest.u32()?;
        if rest.u64()? != epoch {
            return Err(Damage::Epoch);
        }
        let (number, start) = (rest.u64()?, rest.u64()?);
        let previous = match version {
            1 => None,
            _ => Some(rest.u64()?),
        };
        let name = rest.part()?;
        let server = std::str::from_utf8(name).map_err(|_| Damage::Name)?.into();
        // The count may be damaged, so the remaining bytes limit the allocation.
        let mut records = Vec::with_capacity((count as usize).min(rest.0.len() / 24));
        for _ in 0..count {
            let key = RequestKey(u128::from_le_bytes(rest.array()?));
            let fingerprint = match version {
                1 => 0,
                _ => rest.u64()?,
            };
            records.push(Record {
                key,
                fingerprint,
                report: rest.part()?.into(),
                bytes: rest.part()?.into(),
            });
        }
        match rest.0.is_empty() {
            true => Ok(Self {
                number,
                writer: Writer { server, start },
                previous,
                records,
            }),
            false => Err(Damage::Length),
        }
    }
}

/// Encodes a span: the concatenated objects of consecutive groups.
pub fn write_span(groups: &[Blob]) -> Blob {
    let mut out = SPAN.to_vec();
    for group in groups {
        out.extend_from_slice(&(group.len() as u64).to_le_bytes());
        out.extend_from_slice(group);
    }
    out.into()
}

/// Decodes a span.
///
/// # Errors
/// The first reason why the bytes are not valid groups of the log with this id epoch.
pub fn read_span(epoch: u64, bytes: &[u8]) -> Result<Vec<Group>, Damage> {
    let mut rest = Bytes(bytes);
    if rest.take(8)? != SPAN {
        return Err(Damage::Magic);
    }
    let mut groups = Vec::new();
    while !rest.0.is_empty() {
        let length = usize::try_from(rest.u64()?).map_err(|_| Damage::Length)?;
        groups.push(Group::read(epoch, rest.take(length)?)?);
    }
    Ok(groups)
}

/// Reader of the bytes that are not decoded yet.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], Damage> {
        let (first, rest) = self.0.split_at_checked(count).ok_or(Damage::Length)?;
        self.0 = rest;
        Ok(first)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Damage> {
        self.take(N)?.try_into().map_err(|_| Damage::Length)
    }

    fn u32(&mut self) -> Result<u32, Damage> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn u64(&mut self) -> Result<u64, Damage> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    fn part(&mut self) -> Result<&'a [u8], Damage> {
        let length = self.u32()? as usize;
        self.take(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example(version: u32) -> Group {
        let record = |key| Record {
            key: RequestKey(key),
            fingerprint: match version {
                1 => 0,
                _ => key as u64 * 7,
            },
            report: b"done".as_slice().into(),
            bytes: vec![key as u8; key as usize].into(),
        };
        Group {
            number: 9,
            writer: Writer {
                server: "eins".into(),
                start: 77,
            },
            previous: (version > 1).then_some(0xabc),
            records: vec![record(3), record(0)],
        }
    }

    #[test]
    fn groups_of_both_versions_are_read_back() {
        for version in [1, 2] {
            let group = example(version);
            assert_eq!(group.version(), version);
            let bytes = group.write(5).unwrap();
            assert_eq!(
                u32::from_le_bytes(bytes[8..12].try_into().unwrap()),
                version
            );
            assert_eq!(Group::read(5, &bytes), Ok(group.clone()));
            assert_eq!(Group::read(6, &bytes), Err(Damage::Epoch));
            let sum = u64::from_le_bytes(bytes[bytes.len() - 8..].try_into().unwrap());
            assert_eq!(group.hash(5), sum);
            let span = write_span(&[bytes.clone(), bytes]);
            assert_eq!(read_span(5, &span).unwrap(), [group.clone(), group]);
        }
    }

    #[test]
    fn the_bytes_of_version_1_are_those_of_earlier_releases() {
        let mut bytes = b"JDGROUP\n".to_vec();
        bytes.extend_from_slice(&[1, 0, 0, 0, 2, 0, 0, 0]);
        for number in [5_u64, 9, 77] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes.extend_from_slice(b"\x04\0\0\0eins");
        for key in [3_u8, 0] {
            bytes.extend_from_slice(&u128::from(key).to_le_bytes());
            bytes.extend_from_slice(b"\x04\0\0\0done");
            bytes.extend_from_slice(&u32::from(key).to_le_bytes());
            bytes.extend(std::iter::repeat_n(key, key.into()));
        }
        let sum = xxh3_64(&bytes);
        bytes.extend_from_slice(&sum.to_le_bytes());
        assert_eq!(Group::read(5, &bytes), Ok(example(1)));
        assert_eq!(example(1).write(5).as_deref(), Ok(&*bytes));
    }

    #[test]
    fn a_hash_depends_on_the_predecessor() {
        let mut other = example(2);
        other.previous = Some(0xabd);
        assert_ne!(example(2).hash(5), other.hash(5));
        assert_ne!(example(2).hash(5), example(2).hash(6));
    }

    #[test]
    fn every_change_of_a_byte_and_every_cut_is_refused() {
        for version in [1, 2] {
            let bytes = example(version).write(5).unwrap();
            let span = write_span(&[bytes.clone(), bytes.clone()]);
            for at in 0..bytes.len() {
                assert!(Group::read(5, &bytes[..at]).is_err());
                let mut changed = bytes.to_vec();
                changed[at] ^= 1 << (at % 8);
                assert!(Group::read(5, &changed).is_err(), "byte {at}");
            }
            for at in 1..span.len() {
                if let Ok(groups) = read_span(5, &span[..at]) {
                    assert!(groups.len() < 2);
                }
            }
        }
    }

    #[test]
    fn sums_that_fit_do_not_make_lengths_fit() {
        // A count and a length of 2^32 - 1, with a valid checksum.
        for (version, at) in [(1, 12), (1, 40), (2, 12), (2, 48)] {
            let mut bytes = example(version).write(5).unwrap().to_vec();
            bytes[at..at + 4].fill(0xff);
            let end = bytes.len() - 8;
            let sum = xxh3_64(&bytes[..end]).to_le_bytes();
            bytes[end..].copy_from_slice(&sum);
            assert_eq!(Group::read(5, &bytes), Err(Damage::Length));
        }
    }
}
