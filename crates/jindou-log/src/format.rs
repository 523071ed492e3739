//! The binary format of log files: heads and groups. docs/internals/log.md has diagrams.

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// Length in bytes of the head of a file of version 1.
const SHORT_HEAD: usize = 80;
/// Length in bytes of the head of a file of version 2.
pub(crate) const LONG_HEAD: usize = 88;
/// Length in bytes of the part of a group before its records.
pub(crate) const GROUP_HEAD: usize = 56;
/// Length in bytes of the part of a group after its records.
pub(crate) const GROUP_TAIL: usize = 16;
/// The smallest unit that a disk writes either completely or not at all.
const SECTOR: usize = 512;

const FILE_MAGIC: [u8; 8] = *b"JDLOGFL\n";
/// The version of files whose head stores the number of the first record in 32 bits.
const VERSION: u32 = 1;
/// The version of files whose head stores the number of the first record in 64 bits.
const LONG_VERSION: u32 = 2;
/// New files whose first record has at least this number are of version 2. The limit is far below 2^32, so that no file
/// of version 1 reaches larger numbers. Files with smaller numbers are of version 1, so that older programs can read
/// them.
const LONG_FROM: u64 = 1 << 31;
const GROUP_MAGIC: u32 = u32::from_le_bytes(*b"JDGr");
const TAIL_MAGIC: u32 = u32::from_le_bytes(*b"JDgE");
const SUFFIX: &str = ".log";

pub(crate) fn file_name(epoch: u64, sequence: u64) -> String {
    format!("{epoch:016x}-{sequence:016x}{SUFFIX}")
}

/// Epoch and sequence number of a log file, from its name; `None` for names of other files.
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

/// The end of the valid part of a file, as the head of the next file records it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sealed {
    /// The file's sequence number.
    pub sequence: u64,
    /// Number of valid bytes; the rest is ignored.
    pub length: u64,
    /// Checksum of the last valid group, or of the head if there is none.
    pub chain: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileHead {
    pub epoch: u64,
    /// Number of the file, which ascends from 1 in each epoch.
    pub sequence: u64,
    /// A random number of the process that wrote the file. It is the seed of checksums, so that groups of other
    /// processes are recognised.
    pub session: u64,
    /// Number of the first record in this file.
    pub first: u64,
    /// True if the head stores `first` in 64 bits.
    pub long: bool,
    /// Number of bytes of this file, including this head, that were durable before the file got its name.
    pub whole: u64,
    /// End of the file that this one continues; `None` if all records before `first` are in the base.
    pub previous: Option<Sealed>,
}

impl FileHead {
    pub fn seed(&self) -> u64 {
        self.session ^ self.sequence.wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }

    /// True if the head of a new file whose first record has this number must use 64 bits.
    pub fn is_long(first: u64) -> bool {
        first >= LONG_FROM
    }

    /// Number of bytes of the head.
    pub fn size(&self) -> usize {
        match self.long {
            true => LONG_HEAD,
            false => SHORT_HEAD,
        }
    }

    /// The full number of a record of this file, given its low 32 bits, which are all that groups contain.
    fn number(&self, low: u32) -> u64 {
        let steps = low.wrapping_sub(self.first as u32);
        self.first.saturating_add(steps.into())
    }

    /// Appends the head to `out`; returns its checksum, which the first group contains.
    pub fn write(&self, out: &mut Vec<u8>) -> u64 {
        let start = out.len();
        let p = self.previous.unwrap_or(Sealed {
            sequence: 0,
            length: 0,
            chain: 0,
        });
        out.extend_from_slice(&FILE_MAGIC);
        let version = match self.long {
            true => LONG_VERSION,
            false => VERSION,
        };
        out.extend_from_slice(&version.to_le_bytes());
        out.extend_from_slice(&(self.first as u32).to_le_bytes());
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
        if self.long {
            out.extend_from_slice(&self.first.to_le_bytes());
        }
        let check = xxh3_64(&out[start..]);
        out.extend_from_slice(&check.to_le_bytes());
        check
    }

    /// Parses a head; returns it with its checksum. The error describes what is wrong.
    pub fn read(bytes: &[u8]) -> Result<(Self, u64), String> {
        let version = u32_at(bytes, 8);
        let long = version == LONG_VERSION;
        let size = match long {
            true => LONG_HEAD,
            false => SHORT_HEAD,
        };
        let Some(head) = bytes.get(..size) else {
            return Err(format!("the file ends after {} bytes", bytes.len()));
        };
        if head[..8] == FILE_MAGIC && version > LONG_VERSION {
            return Err(format!(
                "the file has log format {version}, this program reads up to {LONG_VERSION}"
            ));
        }
        let check = u64_at(head, size - 8);
        let first = match long {
            true => u64_at(head, size - 16),
            false => u32_at(head, 12).into(),
        };
        if head[..8] != FILE_MAGIC
            || ![VERSION, LONG_VERSION].contains(&version)
            || first as u32 != u32_at(head, 12)
            || xxh3_64(&head[..size - 8]) != check
        {
            return Err("the head of the file has changed".into());
        }
        let sequence = u64_at(head, 48);
        let head = Self {
            first,
            long,
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

/// The purpose of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GroupKind {
    /// Records.
    Records = 1,
    /// A group without records. It records that everything before it is durable.
    Mark = 2,
    /// A group without records. It records that the next file exists.
    Continued = 3,
}

/// A group whose checksums are correct.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordGroup<'a> {
    pub kind: GroupKind,
    /// Number of the group's first record; for a group without records, the number of the next record.
    pub first: u64,
    pub count: u32,
    /// Number of bytes of the log file that were known to be durable when the group was written.
    pub durable: u64,
    /// Checksum of the group before, or of the file's head for the first group.
    pub chain: u64,
    /// Checksum of this group.
    pub check: u64,
    /// Position in the file of the end of this group.
    pub end: u64,
    body: &'a [u8],
}

impl<'a> RecordGroup<'a> {
    /// The records in order; `None` if their lengths do not match the length of the body.
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

/// Content of a new group's head.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GroupHead {
    pub kind: GroupKind,
    pub first: u64,
    /// The group's position in the file.
    pub at: u64,
    /// See [`RecordGroup::durable`].
    pub durable: u64,
    pub chain: u64,
    pub seed: u64,
}

/// Size in bytes of a group of these records.
pub(crate) fn group_size(records: &[(u64, Vec<u8>)]) -> usize {
    let body: usize = records
        .iter()
        .map(|(_, r)| 8 + r.len().next_multiple_of(8))
        .sum();
    GROUP_HEAD + body + GROUP_TAIL
}

/// The checksum of a group's head. Its last byte is never zero, so that a head that was not completely written is
/// noticed.
fn head_check(head: &[u8], seed: u64) -> u64 {
    xxh3_64_with_seed(head, seed) | 1 << 63
}

/// Appends a group to `out`; returns the group's checksum.
pub(crate) fn write_group(head: &GroupHead, records: &[(u64, Vec<u8>)], out: &mut Vec<u8>) -> u64 {
    let start = out.len();
    debug_assert_eq!(start % 8, 0, "records are padded to places in the file");
    let size = group_size(records);
    out.reserve(size);
    out.extend_from_slice(&GROUP_MAGIC.to_le_bytes());
    out.extend_from_slice(&(head.kind as u32).to_le_bytes());
    // The upper half of the number follows from the file's head.
    let low = (head.first as u32).to_le_bytes();
    out.extend_from_slice(&low);
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
    out.extend_from_slice(&low);
    out.extend_from_slice(&TAIL_MAGIC.to_le_bytes());
    check
}

/// Result of reading a group at a position.
#[derive(Debug)]
pub(crate) enum FoundGroup<'a> {
    /// A group.
    Group(RecordGroup<'a>),
    /// Only zeros, or the file's end.
    End,
    /// A group that a crash may have left, since some part of it was never written.
    Torn,
    /// A group of which all parts were written, but some part was changed afterwards. Contains a description.
    Changed(&'static str),
}

/// Reads the group at byte `at` of a file that has this head.
pub(crate) fn read_group<'a>(file: &'a [u8], at: usize, of: &FileHead) -> FoundGroup<'a> {
    let seed = of.seed();
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
        } else if has_unwritten_part(head, at) {
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
        return if has_unwritten_part(whole, at) {
            FoundGroup::Torn
        } else {
            FoundGroup::Changed("a group has changed")
        };
    }
    let group = RecordGroup {
        kind,
        first: of.number(u32_at(head, 8)),
        count: u32_at(head, 12),
        durable: u64_at(head, 32),
        chain: u64_at(head, 40),
        check,
        end: (at + whole.len()) as u64,
        body: &hashed[GROUP_HEAD..],
    };
    if group.durable > group.end || group.first.checked_add(group.count.into()).is_none() {
        return FoundGroup::Changed("a group header is not valid");
    }
    FoundGroup::Group(group)
}

/// True if some part of `bytes` looks as if it had never been written: their last byte, which writers never leave zero,
/// or all of their bytes in some sector. `at` is the position of `bytes` in the file.
fn has_unwritten_part(bytes: &[u8], at: usize) -> bool {
    let zero = |b: &[u8]| b.iter().all(|&x| x == 0);
    let first = (SECTOR - at % SECTOR).min(bytes.len());
    bytes.last() == Some(&0) || zero(&bytes[..first]) || bytes[first..].chunks(SECTOR).any(zero)
}

/// Complete groups that follow the position at which reading stopped.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FollowingGroups {
    /// Number of records in them.
    pub records: u64,
    /// The largest number of bytes that one of these groups records as durable, and the position of that group; `None`
    /// without groups.
    pub durable: Option<(u64, u64)>,
}

/// Searches the rest of a file for complete groups. If one of them records that the bytes at `at` were durable, these
/// bytes must have been changed since. Tries every position that is a multiple of 8.
pub(crate) fn groups_after(file: &[u8], at: usize, head: &FileHead) -> FollowingGroups {
    let mut behind = FollowingGroups::default();
    let mut next = at + 8;
    while next + GROUP_HEAD <= file.len() {
        if u32_at(file, next) == GROUP_MAGIC
            && let FoundGroup::Group(group) = read_group(file, next, head)
        {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn head(first: u64, long: bool) -> FileHead {
        FileHead {
            epoch: 7,
            sequence: 3,
            session: 9,
            first,
            long,
            whole: 200,
            previous: Some(Sealed {
                sequence: 2,
                length: 640,
                chain: 11,
            }),
        }
    }

    #[test]
    fn heads_come_back_and_any_change_is_seen() {
        let all = [
            head(1, false),
            // A head of version 1 whose number is larger than new files of this version have.
            head(u32::MAX.into(), false),
            head(LONG_FROM, true),
            head(1 << 32, true),
            head(u64::MAX, true),
        ];
        for head in all {
            let mut bytes = Vec::new();
            let check = head.write(&mut bytes);
            assert_eq!(bytes.len(), head.size());
            assert_eq!(FileHead::read(&bytes), Ok((head, check)));
            for at in 0..bytes.len() {
                assert!(FileHead::read(&bytes[..at]).is_err());
                let mut bad = bytes.clone();
                bad[at] ^= 1 << (at % 8);
                assert!(FileHead::read(&bad).is_err());
            }
        }
    }

    #[test]
    fn numbers_up_to_the_old_limit_are_written_as_they_were() {
        // The bytes of a head as in docs/internals/log.md.
        let mut expected = b"JDLOGFL\n".to_vec();
        expected.extend_from_slice(&1u32.to_le_bytes());
        expected.extend_from_slice(&(LONG_FROM as u32 - 1).to_le_bytes());
        for n in [7u64, 3, 9, 200, 2, 640, 11] {
            expected.extend_from_slice(&n.to_le_bytes());
        }
        expected.extend_from_slice(&xxh3_64(&expected).to_le_bytes());
        let first = LONG_FROM - 1;
        let mut bytes = Vec::new();
        head(first, FileHead::is_long(first)).write(&mut bytes);
        assert_eq!(bytes, expected);
        assert!(FileHead::is_long(LONG_FROM));
    }

    #[test]
    fn groups_have_the_low_half_of_their_numbers() {
        for (from, number) in [
            (5, 5),
            (LONG_FROM, u32::MAX.into()),
            (LONG_FROM, (1 << 32) + 3),
            ((5 << 32) - 1, 5 << 32),
            (u64::from(u32::MAX), 1 << 32),
        ] {
            let of = head(from, FileHead::is_long(from));
            let group = GroupHead {
                kind: GroupKind::Records,
                first: number,
                at: 0,
                durable: 0,
                chain: 4,
                seed: of.seed(),
            };
            let mut bytes = Vec::new();
            write_group(&group, &[(number, vec![1, 2, 3])], &mut bytes);
            match read_group(&bytes, 0, &of) {
                FoundGroup::Group(g) => assert_eq!((g.first, g.count), (number, 1)),
                other => panic!("{other:?}"),
            }
        }
    }
}
