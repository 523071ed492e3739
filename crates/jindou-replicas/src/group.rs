//! Groups of transactions, and their bytes.

use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

/// Immutable bytes.
pub type Blob = Arc<[u8]>;
/// Name of a server, as its operator gave it.
pub type ServerName = Arc<str>;

/// A request's identity: what a client's key and its principal hash to, or a random number without a key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RequestKey(pub u128);

/// One run of a server's process. It proposes at most one group of a number.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Author {
    /// The server.
    pub server: ServerName,
    /// A random number of the process.
    pub start: u64,
}

/// A transaction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Record {
    /// The request that it answers.
    pub key: RequestKey,
    /// Its answer, which repeated requests get as well.
    pub report: Blob,
    /// The changes; opaque here.
    pub bytes: Blob,
}

impl Record {
    /// Number of bytes in a group.
    pub(crate) fn size(&self) -> usize {
        24 + self.report.len() + self.bytes.len()
    }
}

/// Transactions that become durable and visible together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Group {
    /// Its number, from 1 on; also that of the snapshot after it.
    pub number: u64,
    /// The run that made it.
    pub author: Author,
    /// The transactions in order.
    pub records: Vec<Record>,
}

/// Reason why bytes are not a group of this log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Damage {
    /// Another kind of file.
    Magic,
    /// Bytes of a later version.
    Version(u32),
    /// Another store's or another load's.
    Epoch,
    /// Changed bytes.
    Checksum,
    /// Lengths that do not fit the bytes.
    Length,
    /// A server's name that is not text.
    Name,
    /// A group under another one's name.
    Number,
}

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self {
            Self::Magic => f.write_str("not a group of transactions"),
            Self::Version(version) => write!(f, "written by a later version, in format {version}"),
            Self::Epoch => f.write_str("of another store's log"),
            Self::Checksum => f.write_str("checksum does not match"),
            Self::Length => f.write_str("lengths do not fit"),
            Self::Name => f.write_str("the writer's name is not text"),
            Self::Number => f.write_str("holds another number than its name says"),
        }
    }
}

impl std::error::Error for Damage {}

const MAGIC: &[u8; 8] = b"JDGROUP\n";
const SPAN: &[u8; 8] = b"JDSPAN1\n";
const VERSION: u32 = 1;

impl Group {
    /// Number of bytes of its transactions.
    pub(crate) fn size(&self) -> usize {
        self.records.iter().map(Record::size).sum()
    }

    /// The bytes of the object, for a store of this id epoch.
    ///
    /// # Errors
    /// [`Damage::Length`] for what 32 bits cannot count.
    pub fn write(&self, epoch: u64) -> Result<Blob, Damage> {
        let size = |bytes: usize| u32::try_from(bytes).map_err(|_| Damage::Length);
        let name = self.author.server.as_bytes();
        let records: usize = self.records.iter().map(Record::size).sum();
        let mut out = Vec::with_capacity(56 + name.len() + records);
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&size(self.records.len())?.to_le_bytes());
        for number in [epoch, self.number, self.author.start] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(&size(name.len())?.to_le_bytes());
        out.extend_from_slice(name);
        for record in &self.records {
            out.extend_from_slice(&record.key.0.to_le_bytes());
            for part in [&record.report, &record.bytes] {
                out.extend_from_slice(&size(part.len())?.to_le_bytes());
                out.extend_from_slice(part);
            }
        }
        let sum = xxh3_64(&out);
        out.extend_from_slice(&sum.to_le_bytes());
        Ok(out.into())
    }

    /// The group in an object's bytes.
    ///
    /// # Errors
    /// The first reason why they are not one of this epoch's log.
    pub fn read(epoch: u64, bytes: &[u8]) -> Result<Self, Damage> {
        let mut rest = Bytes(bytes);
        if rest.take(8)? != MAGIC {
            return Err(Damage::Magic);
        }
        let version = rest.u32()?;
        if version != VERSION {
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
        let name = rest.part()?;
        let server = std::str::from_utf8(name).map_err(|_| Damage::Name)?.into();
        // The count is checked by the bytes that follow, before it makes room.
        let mut records = Vec::with_capacity((count as usize).min(rest.0.len() / 24));
        for _ in 0..count {
            let key = RequestKey(u128::from_le_bytes(rest.array()?));
            let report = rest.part()?.into();
            let bytes = rest.part()?.into();
            records.push(Record { key, report, bytes });
        }
        match rest.0.is_empty() {
            true => Ok(Self {
                number,
                author: Author { server, start },
                records,
            }),
            false => Err(Damage::Length),
        }
    }
}

/// The bytes of a span: the objects of consecutive groups, as they are.
pub fn write_span(groups: &[Blob]) -> Blob {
    let mut out = SPAN.to_vec();
    for group in groups {
        out.extend_from_slice(&(group.len() as u64).to_le_bytes());
        out.extend_from_slice(group);
    }
    out.into()
}

/// The groups in a span's bytes.
///
/// # Errors
/// The first reason why they are not groups of this epoch's log.
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

/// The bytes that were not read yet.
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

    fn example() -> Group {
        let record = |key| Record {
            key: RequestKey(key),
            report: b"done".as_slice().into(),
            bytes: vec![key as u8; key as usize].into(),
        };
        Group {
            number: 9,
            author: Author {
                server: "eins".into(),
                start: 77,
            },
            records: vec![record(3), record(0)],
        }
    }

    #[test]
    fn groups_are_read_back() {
        let bytes = example().write(5).unwrap();
        assert_eq!(Group::read(5, &bytes), Ok(example()));
        assert_eq!(Group::read(6, &bytes), Err(Damage::Epoch));
        let span = write_span(&[bytes.clone(), bytes]);
        assert_eq!(read_span(5, &span).unwrap(), [example(), example()]);
    }

    #[test]
    fn every_change_of_a_byte_and_every_cut_is_refused() {
        let bytes = example().write(5).unwrap();
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

    #[test]
    fn sums_that_fit_do_not_make_lengths_fit() {
        // A count and a length of 2^32 - 1, with a right checksum.
        for at in [12, 40] {
            let mut bytes = example().write(5).unwrap().to_vec();
            bytes[at..at + 4].fill(0xff);
            let end = bytes.len() - 8;
            let sum = xxh3_64(&bytes[..end]).to_le_bytes();
            bytes[end..].copy_from_slice(&sum);
            assert_eq!(Group::read(5, &bytes), Err(Damage::Length));
        }
    }
}
