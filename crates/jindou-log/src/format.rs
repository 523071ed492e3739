//! The bytes of a log: file heads and groups. docs/internals/log.md has diagrams.

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// Bytes of a file's head.
pub(crate) const FILE_HEAD: usize = 80;
/// Bytes of a group before its records.
pub(crate) const GROUP_HEAD: usize = 56;
/// Bytes of a group after its records.
pub(crate) const GROUP_TAIL: usize = 16;
/// The smallest unit that a disk writes either completely or not at all.
const SECTOR: usize = 512;

const FILE_MAGIC: [u8; 8] = *b"JDLOGFL\n";
const VERSION: u32 = 1;
const GROUP_MAGIC: u32 = u32::from_le_bytes(*b"JDGr");
const TAIL_MAGIC: u32 = u32::from_le_bytes(*b"JDgE");
const SUFFIX: &str = ".log";

/// The name of a log file.
pub(crate) fn file_name(epoch: u64, sequence: u64) -> String {
    format!("{epoch:016x}-{sequence:016x}{SUFFIX}")
}

/// Epoch and sequence number of a log file's name; `None` for other names.
pub(crate) fn parse_name(name: &str) -> Option<(u64, u64)> {
    let (epoch, sequence) = name.strip_suffix(SUFFIX)?.split_once('-')?;
    let number = |s: &str| (s.len() == 16).then(|| u64::from_str_radix(s, 16).ok())?;
    let parsed = (number(epoch)?, number(sequence)?);
    (file_name(parsed.0, parsed.1) == name).then_some(parsed)
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut b = [0; 4];
    if let Some(s) = bytes.get(at..at + 4) {
        b.copy_from_slice(s);
    }
    u32::from_le_bytes(b)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut b = [0; 8];
    if let Some(s) = bytes.get(at..at + 8) {
        b.copy_from_slice(s);
    }
    u64::from_le_bytes(b)
}

/// The end of the valid part of a file that another one continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sealed {
    /// The file's sequence number.
    pub sequence: u64,
    /// Number of valid bytes; the rest is ignored.
    pub length: u64,
    /// Checksum of the last valid group, or of the head if there is none.
    pub chain: u64,
}

/// The head of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileHead {
    pub epoch: u64,
    /// Ascending from 1 within the files of an epoch.
    pub sequence: u64,
    /// A random number of the process that wrote the file, so that groups of other processes are recognised.
    pub session: u64,
    /// Number of the first record in this file.
    pub first: u32,
    /// Number of bytes, including this head, that were durable before the file got its name.
    pub whole: u64,
    /// End of the file that this one continues; `None` if everything before `first` is in the base.
    pub previous: Option<Sealed>,
}

impl FileHead {
    pub fn seed(&self) -> u64 {
        self.session ^ self.sequence.wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }

    /// Appends the head; returns its checksum, to which the first group is chained.
    pub fn write(&self, out: &mut Vec<u8>) -> u64 {
        let start = out.len();
        let p = self.previous.unwrap_or(Sealed {
            sequence: 0,
            length: 0,
            chain: 0,
        });
        out.extend_from_slice(&FILE_MAGIC);
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&self.first.to_le_bytes());
        for n in [
            self.epoch,
            self.sequence,
            self.session,
            self.whole,
            p.sequence,
            p.length,
            p.chain,
        ] {
            out.extend_from_slice(&n.to_le_bytes());
        }
        let check = xxh3_64(&out[start..]);
        out.extend_from_slice(&check.to_le_bytes());
        check
    }

    /// Parses a head and its checksum; otherwise returns a description of the fault.
    pub fn read(bytes: &[u8]) -> Result<(Self, u64), String> {
        let Some(head) = bytes.get(..FILE_HEAD) else {
            return Err(format!("the file ends after {} bytes", bytes.len()));
        };
        let check = u64_at(head, FILE_HEAD - 8);
        if head[..8] == FILE_MAGIC && u32_at(head, 8) > VERSION {
            return Err(format!(
                "the file has log format {}, this program reads {VERSION}",
                u32_at(head, 8)
            ));
        }
        if head[..8] != FILE_MAGIC
            || u32_at(head, 8) != VERSION
            || xxh3_64(&head[..FILE_HEAD - 8]) != check
        {
            return Err("the head of the file has changed".into());
        }
        let sequence = u64_at(head, 48);
        let head = Self {
            first: u32_at(head, 12),
            epoch: u64_at(head, 16),
            sequence: u64_at(head, 24),
            session: u64_at(head, 32),
            whole: u64_at(head, 40),
            previous: (sequence != 0).then(|| Sealed {
                sequence,
                length: u64_at(head, 56),
                chain: u64_at(head, 64),
            }),
        };
        Ok((head, check))
    }
}

/// Purpose of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GroupKind {
    /// Records.
    Records = 1,
    /// No records: states that everything before it is durable.
    Mark = 2,
    /// No records: states that the next file exists.
    Continued = 3,
}

/// A group with correct checksums.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordGroup<'a> {
    pub kind: GroupKind,
    /// Number of its first record, or of the next record if it has none.
    pub first: u32,
    pub count: u32,
    /// Bytes of this file that were known to be durable when the group was written.
    pub durable: u64,
    /// Checksum of the group before it, or of the file's head.
    pub chain: u64,
    /// Its own checksum.
    pub check: u64,
    /// End of this group in the file, in bytes.
    pub end: u64,
    body: &'a [u8],
}

impl<'a> RecordGroup<'a> {
    /// The records in order; `None` if they do not fill the body.
    pub fn records(&self) -> Option<Vec<&'a [u8]>> {
        let mut records = Vec::new();
        let mut at = 0usize;
        for _ in 0..self.count {
            let length = self.body.get(at..at + 8)?;
            let length = usize::try_from(u64_at(length, 0)).ok()?;
            at += 8;
            records.push(self.body.get(at..at.checked_add(length)?)?);
            at = at.checked_add(length)?.checked_next_multiple_of(8)?;
        }
        (at == self.body.len()).then_some(records)
    }
}

/// Data for the head and the checksums of a group that is to be written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GroupHead {
    pub kind: GroupKind,
    pub first: u32,
    /// Its position in the file.
    pub at: u64,
    /// See [`RecordGroup::durable`].
    pub durable: u64,
    pub chain: u64,
    pub seed: u64,
}

/// Size in bytes of a group of these records.
pub(crate) fn group_size(records: &[(u32, Vec<u8>)]) -> usize {
    let body: usize = records
        .iter()
        .map(|(_, r)| 8 + r.len().next_multiple_of(8))
        .sum();
    GROUP_HEAD + body + GROUP_TAIL
}

/// The checksum of a group's head. Its last byte is never zero, so that a partly written head is noticed.
fn head_check(head: &[u8], seed: u64) -> u64 {
    xxh3_64_with_seed(head, seed) | 1 << 63
}

/// Appends a group to `out`; returns its checksum.
pub(crate) fn write_group(head: &GroupHead, records: &[(u32, Vec<u8>)], out: &mut Vec<u8>) -> u64 {
    let start = out.len();
    debug_assert_eq!(start % 8, 0, "records are padded to places in the file");
    let size = group_size(records);
    out.reserve(size);
    out.extend_from_slice(&GROUP_MAGIC.to_le_bytes());
    out.extend_from_slice(&(head.kind as u32).to_le_bytes());
    out.extend_from_slice(&head.first.to_le_bytes());
    out.extend_from_slice(&(records.len() as u32).to_le_bytes());
    let body = (size - GROUP_HEAD - GROUP_TAIL) as u64;
    for n in [head.at, body, head.durable, head.chain] {
        out.extend_from_slice(&n.to_le_bytes());
    }
    let check = head_check(&out[start..], head.seed);
    out.extend_from_slice(&check.to_le_bytes());
    for (_, record) in records {
        out.extend_from_slice(&(record.len() as u64).to_le_bytes());
        out.extend_from_slice(record);
        out.resize(out.len().next_multiple_of(8), 0);
    }
    let check = xxh3_64_with_seed(&out[start..], head.seed);
    out.extend_from_slice(&check.to_le_bytes());
    out.extend_from_slice(&head.first.to_le_bytes());
    out.extend_from_slice(&TAIL_MAGIC.to_le_bytes());
    check
}

/// Result of looking for a group at a position.
#[derive(Debug)]
pub(crate) enum FoundGroup<'a> {
    /// A group.
    Group(RecordGroup<'a>),
    /// Only zeros, or the file's end.
    End,
    /// A group that a crash may have left: some part of it was never written.
    Torn,
    /// Every part of a group was written, but some part has changed; the reason.
    Changed(&'static str),
}

/// Reads the group at byte `at`.
pub(crate) fn read_group(file: &[u8], at: usize, seed: u64) -> FoundGroup<'_> {
    let rest = file.get(at..).unwrap_or(&[]);
    if rest.len() < GROUP_HEAD {
        return if rest.iter().all(|&b| b == 0) {
            FoundGroup::End
        } else {
            FoundGroup::Torn
        };
    }
    let head = &rest[..GROUP_HEAD];
    if u64_at(head, GROUP_HEAD - 8) != head_check(&head[..GROUP_HEAD - 8], seed) {
        return if rest.iter().all(|&b| b == 0) {
            FoundGroup::End
        } else if has_gap(head, at) {
            FoundGroup::Torn
        } else {
            FoundGroup::Changed("the head of a group has changed")
        };
    }
    let kind = match u32_at(head, 4) {
        1 => GroupKind::Records,
        2 => GroupKind::Mark,
        3 => GroupKind::Continued,
        _ => return FoundGroup::Changed("a group is of unknown kind"),
    };
    if u32_at(head, 0) != GROUP_MAGIC || u64_at(head, 16) != at as u64 {
        return FoundGroup::Changed("a group is not at the offset where it was written");
    }
    let size = usize::try_from(u64_at(head, 24))
        .ok()
        .and_then(|body| body.checked_add(GROUP_HEAD + GROUP_TAIL));
    let Some(whole) = size.and_then(|size| rest.get(..size)) else {
        return FoundGroup::Torn;
    };
    let (hashed, tail) = whole.split_at(whole.len() - GROUP_TAIL);
    let check = u64_at(tail, 0);
    if check != xxh3_64_with_seed(hashed, seed)
        || u32_at(tail, 8) != u32_at(head, 8)
        || u32_at(tail, 12) != TAIL_MAGIC
    {
        return if has_gap(whole, at) {
            FoundGroup::Torn
        } else {
            FoundGroup::Changed("a group has changed")
        };
    }
    let group = RecordGroup {
        kind,
        first: u32_at(head, 8),
        count: u32_at(head, 12),
        durable: u64_at(head, 32),
        chain: u64_at(head, 40),
        check,
        end: (at + whole.len()) as u64,
        body: &hashed[GROUP_HEAD..],
    };
    if group.durable > group.end || group.first.checked_add(group.count).is_none() {
        return FoundGroup::Changed("a group header is not valid");
    }
    FoundGroup::Group(group)
}

/// True if some part of `bytes` reads as if it had never been written: their last byte, which writers never leave zero,
/// or their share of some sector.
fn has_gap(bytes: &[u8], at: usize) -> bool {
    let zero = |b: &[u8]| b.iter().all(|&x| x == 0);
    let first = (SECTOR - at % SECTOR).min(bytes.len());
    bytes.last() == Some(&0) || zero(&bytes[..first]) || bytes[first..].chunks(SECTOR).any(zero)
}

/// Complete groups after the position at which reading stopped.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Behind {
    /// Number of groups.
    pub groups: u64,
    /// Number of their records.
    pub records: u64,
    /// The largest number of bytes that one of them states to be durable, and that group's position.
    pub durable: Option<(u64, u64)>,
}

/// Searches the rest of a file for groups: one that states the bytes at `at` to be durable proves that they have
/// changed since. Looks at every eighth byte.
pub(crate) fn groups_behind(file: &[u8], at: usize, seed: u64) -> Behind {
    let mut behind = Behind::default();
    let mut next = at + 8;
    while next + GROUP_HEAD <= file.len() {
        if u32_at(file, next) == GROUP_MAGIC
            && let FoundGroup::Group(group) = read_group(file, next, seed)
        {
            behind.groups += 1;
            behind.records += u64::from(group.count);
            if behind.durable.is_none_or(|(d, _)| d < group.durable) {
                behind.durable = Some((group.durable, next as u64));
            }
            next = group.end as usize;
        } else {
            next += 8;
        }
    }
    behind
}
