//! The text form of one backup.
//!
//! ```text
//! jindou-backup 1                    format version
//! time 1795333335123456              when the backup was taken, microseconds since 1970, UTC
//! epoch 5b0c…                        id epoch of the base, 16 hex digits
//! base 17                            number of the snapshot that the base holds
//! snapshot 42                        number of the last snapshot in the log
//! from 1795333330000000              earliest time to which the backup can be restored
//! file strings.jd 123456             name and length of a file of the base; the names of its parts follow
//! part part-01ab…
//! log 42… 4711 01ab… 18 43           log file, bytes, checksum, its first record's number, the number after its last
//! backup 01ab…                       xxh3-64 of all lines above
//! ```

use super::BackupInfo;
use jindou_log::LogPart;
use std::fmt::Write as _;
use xxhash_rust::xxh3::xxh3_64;

/// Prefix of every backup's name.
const NAME: &str = "backup-";
const FIRST_LINE: &str = "jindou-backup 1";

/// True for names in the form that [`BackupDocument::name`] returns.
pub(super) fn is_name(name: &str) -> bool {
    let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    let parts = name.strip_prefix(NAME).and_then(|n| n.split_once('-'));
    parts.is_some_and(|(time, number)| {
        // Numbers with more than ten digits have no leading zeros.
        let fits = match number.len() {
            10 => true,
            n => n > 10 && !number.starts_with('0'),
        };
        digits(time) && digits(number) && time.len() == 20 && fits
    })
}

/// True for names in the form that [`BackupDocument::name_of_log`] returns.
pub(super) fn is_log_name(name: &str) -> bool {
    let parts: Vec<&str> = name.split('-').collect();
    let hex = |s: &str| s.len() == 16 && s.bytes().all(|b| b.is_ascii_hexdigit());
    matches!(parts[..], ["log", epoch, sequence, chain, length]
        if hex(epoch) && hex(sequence) && hex(chain) && length.parse::<u64>().is_ok())
}

/// A file of a base.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BaseFile {
    pub name: String,
    pub length: u64,
    /// Names of the file's parts, in order.
    pub parts: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BackupDocument {
    pub info: BackupInfo,
    pub files: Vec<BaseFile>,
    pub log: Vec<LogPart>,
}

/// True for a plain file name, which cannot lead out of the folder: no separators, no leading dot.
fn is_plain(name: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'.';
    !name.is_empty() && !name.starts_with('.') && name.bytes().all(plain)
}

impl BackupDocument {
    /// The backup's name.
    pub fn name(time: u64, snapshot: u64) -> String {
        format!("{NAME}{time:020}-{snapshot:010}")
    }

    /// The name of a new backup. Names sort in the order in which backups were taken. If the clock was set back, the
    /// name has a time just after the newest backup's in the target instead; the document always has the clock's time.
    pub fn next_name<'n>(
        there: impl Iterator<Item = &'n String>,
        now: u64,
        snapshot: u64,
    ) -> String {
        let times = there.filter(|n| is_name(n)).filter_map(|n| {
            let time = n.strip_prefix(NAME)?.split('-').next()?;
            time.parse::<u64>().ok()
        });
        let newest = times.max().map_or(0, |time| time.saturating_add(1));
        Self::name(now.max(newest), snapshot)
    }

    /// Name of a part of the log in the backup target.
    pub fn name_of_log(part: &LogPart) -> String {
        let file = part.name.strip_suffix(".log").unwrap_or(&part.name);
        format!("log-{file}-{:016x}-{}", part.chain, part.length)
    }

    /// Total bytes of the files and log parts that belong to a backup.
    pub fn bytes(files: &[BaseFile], log: &[LogPart]) -> u64 {
        let base: u64 = files.iter().map(|f| f.length).sum();
        base + log.iter().map(|p| p.length).sum::<u64>()
    }

    pub fn to_text(&self) -> String {
        let i = &self.info;
        let mut t = format!(
            "{FIRST_LINE}\ntime {}\nepoch {:016x}\nbase {}\nsnapshot {}\nfrom {}\n",
            i.time, i.epoch, i.base, i.snapshot, i.from
        );
        for f in &self.files {
            let _ = writeln!(t, "file {} {}", f.name, f.length);
            for p in &f.parts {
                let _ = writeln!(t, "part {p}");
            }
        }
        for p in &self.log {
            let _ = writeln!(
                t,
                "log {} {} {:016x} {} {}",
                p.name, p.length, p.chain, p.first, p.next
            );
        }
        let sum = xxh3_64(t.as_bytes());
        let _ = writeln!(t, "backup {sum:016x}");
        t
    }

    /// Parses the text; `None` for anything but output of [`Self::to_text`], in particular if the checksum is wrong.
    pub fn parse(name: &str, text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?;
        let mut found = Self {
            info: BackupInfo {
                name: name.to_owned(),
                time: 0,
                snapshot: 0,
                base: 0,
                from: 0,
                epoch: 0,
                bytes: 0,
            },
            files: Vec::new(),
            log: Vec::new(),
        };
        let mut lines = text.lines();
        if lines.next()? != FIRST_LINE {
            return None;
        }
        for line in lines {
            let (word, rest) = line.split_once(' ')?;
            let i = &mut found.info;
            match word {
                "time" => i.time = rest.parse().ok()?,
                "epoch" => i.epoch = u64::from_str_radix(rest, 16).ok()?,
                "base" => i.base = rest.parse().ok()?,
                "snapshot" => i.snapshot = rest.parse().ok()?,
                "from" => i.from = rest.parse().ok()?,
                "file" => {
                    let (name, length) = rest.split_once(' ')?;
                    found.files.push(BaseFile {
                        name: Some(name).filter(|n| is_plain(n))?.to_owned(),
                        length: length.parse().ok()?,
                        parts: Vec::new(),
                    });
                }
                "part" if is_plain(rest) => {
                    found.files.last_mut()?.parts.push(rest.to_owned());
                }
                "log" => {
                    let words: Vec<&str> = rest.split(' ').collect();
                    let [name, length, chain, first, next] = words[..] else {
                        return None;
                    };
                    found.log.push(LogPart {
                        name: Some(name).filter(|n| is_plain(n))?.to_owned(),
                        length: length.parse().ok()?,
                        chain: u64::from_str_radix(chain, 16).ok()?,
                        first: first.parse().ok()?,
                        next: next.parse().ok()?,
                    });
                }
                // The line with the checksum, which is verified below by comparing the whole text.
                "backup" => {}
                _ => return None,
            }
        }
        found.info.bytes = Self::bytes(&found.files, &found.log);
        (found.to_text() == text).then_some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_comes_back_and_any_change_is_seen() {
        let part = |n: &str| format!("part-{n}");
        let d = BackupDocument {
            info: BackupInfo {
                name: BackupDocument::name(17, 4),
                time: 17,
                snapshot: 4,
                base: 2,
                from: 11,
                epoch: 0xAB,
                bytes: 2 * (100 << 20) + 80,
            },
            files: vec![
                BaseFile {
                    name: "a.jd".into(),
                    length: 200 << 20,
                    parts: vec![part("1"), part("2")],
                },
                BaseFile {
                    name: "b.jd".into(),
                    length: 0,
                    parts: vec![],
                },
            ],
            log: vec![LogPart {
                name: "00000000000000ab-0000000000000001.log".into(),
                length: 80,
                chain: 9,
                first: 3,
                next: 5,
            }],
        };
        let text = d.to_text().into_bytes();
        assert_eq!(BackupDocument::parse(&d.info.name, &text), Some(d.clone()));
        for at in 0..text.len() {
            for bit in 0..8 {
                let mut bad = text.clone();
                bad[at] ^= 1 << bit;
                assert_eq!(
                    BackupDocument::parse(&d.info.name, &bad),
                    None,
                    "{at} {bit}"
                );
            }
            assert_eq!(BackupDocument::parse(&d.info.name, &text[..at]), None);
        }
        assert!(BackupDocument::name(9, 1) < BackupDocument::name(10, 0));
        assert!(is_name(&d.info.name) && !is_name(&(d.info.name.clone() + ".tmp")));
        assert!(!is_name("backup-1-2") && !is_name("part-1"));
        assert!(is_log_name(&BackupDocument::name_of_log(&d.log[0])));
        assert!(!is_log_name("log-of-my-own") && !is_log_name(&d.info.name));
        let there = [
            BackupDocument::name(9, 1),
            d.info.name.clone(),
            "part-1".into(),
        ];
        let next = |now| BackupDocument::next_name(there.iter(), now, 5);
        assert_eq!(next(5), BackupDocument::name(18, 5));
        assert_eq!(next(30), BackupDocument::name(30, 5));
        let large = BackupDocument::name(9, u64::MAX);
        assert!(is_name(&large) && large < BackupDocument::name(10, 0));
        assert!(!is_name(
            &BackupDocument::name(9, 1).replace("-0000000001", "-00000000001")
        ));
    }
}
