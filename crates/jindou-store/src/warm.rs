//! Reading a store's files before queries need them, in the order in which a server that has just started needs them.
//!
//! Opening a store maps its files and reads next to nothing, so the first queries after a start of the machine wait for
//! the disk, page by page, in random order. Reading the same bytes in order takes a fraction of that time. Bytes that
//! were read stay in the system's page cache as long as it has room for them.

use crate::Base;
use crate::directory::{INDEX, SegmentFile};
use jindou_dictionary::{DICTIONARY_FILE, STRINGS_FILE};
use jindou_model::{Error, Result, private};
use std::cell::Cell;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Sampled counts of the requests of queries for each segment: about one in `SAMPLE` requests of a thread is counted.
#[derive(Debug, Default)]
pub struct SegmentUse {
    /// Counts by dense predicate id `p` and direction `d`, at index `2 p + d`.
    counts: Box<[AtomicU64]>,
}

/// Average number of requests of a thread of which one is counted, so that threads rarely write to the same memory.
const SAMPLE: u32 = 64;
/// Name of the file in the base's folder that stores the counts of the last run.
const FILE: &str = "use.txt";
const FIRST_LINE: &str = "jindou-use 1";
/// Number of bytes read at a time; on most disks, a query's own read is then delayed by about a millisecond.
const PIECE: usize = 1 << 20;
/// Largest file of counts in bytes that is read; a file has some twenty bytes per predicate.
const LARGEST: u64 = 64 << 20;

thread_local! {
    /// Number of requests until one is counted, and the random number from which it was derived.
    static PENDING: Cell<(u32, u32)> = const { Cell::new((SAMPLE, 0x9E37_79B9)) };
}

impl SegmentUse {
    /// Counters for `predicates` predicates, all zero. Requests for predicates that are added later are not counted.
    pub(crate) fn of(predicates: usize) -> Self {
        Self {
            counts: (0..2 * predicates).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// Counts one request, usually in thread-local memory. A few instructions.
    #[inline]
    pub(crate) fn count(&self, p: u32, direction: usize) {
        let (left, random) = PENDING.get();
        if left > 1 {
            PENDING.set((left - 1, random));
        } else {
            self.sample(p, direction, random);
        }
    }

    /// Counts a request, on behalf of all since the last counted one. The distance to the next is random: with a fixed
    /// distance, a query that is repeated would be counted for the same segment each time.
    #[cold]
    fn sample(&self, p: u32, direction: usize, random: u32) {
        let random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let next = 1 + (random >> 16) % (2 * SAMPLE - 1);
        PENDING.set((next, random));
        self.add(p, direction, u64::from(SAMPLE));
    }

    fn add(&self, p: u32, direction: usize, times: u64) {
        if let Some(count) = self.counts.get(2 * p as usize + direction) {
            count.fetch_add(times, Ordering::Relaxed);
        }
    }

    fn get(&self, p: u32, direction: usize) -> u64 {
        let count = self.counts.get(2 * p as usize + direction);
        count.map_or(0, |count| count.load(Ordering::Relaxed))
    }

    /// Adds half of the counts that an earlier run saved in a base's folder, so that old requests count less. Counts of
    /// another epoch, damaged and missing ones are ignored.
    pub(crate) fn read(&self, folder: &Path, epoch: u64) {
        let path = folder.join(FILE);
        let small = std::fs::metadata(&path).is_ok_and(|m| m.len() <= LARGEST);
        let Some(text) = small
            .then(|| private::read(&path).ok())
            .flatten()
            .and_then(|bytes| String::from_utf8(bytes).ok())
        else {
            return;
        };
        let mut lines = text.lines();
        if lines.next() != Some(format!("{FIRST_LINE} {epoch}").as_str()) {
            return;
        }
        for line in lines {
            let mut numbers = line.split(' ').map(str::parse::<u64>);
            if let (Some(Ok(p)), Some(Ok(out)), Some(Ok(back))) =
                (numbers.next(), numbers.next(), numbers.next())
                && let Ok(p) = u32::try_from(p)
            {
                for (direction, times) in [(0, out), (1, back)] {
                    if let Some(count) = self.counts.get(2 * p as usize + direction) {
                        count.store(times / 2, Ordering::Relaxed);
                    }
                }
            }
        }
    }

    /// Saves the counts in a base's folder, for the next run.
    ///
    /// # Errors
    /// [`Error::Io`]; then the counts of the previous run remain.
    pub(crate) fn write(&self, folder: &Path, epoch: u64) -> Result<()> {
        use std::fmt::Write as _;
        let mut text = format!("{FIRST_LINE} {epoch}\n");
        for p in 0..self.counts.len() as u32 / 2 {
            let (out, back) = (self.get(p, 0), self.get(p, 1));
            if out > 0 || back > 0 {
                let _ = writeln!(text, "{p} {out} {back}");
            }
        }
        let (path, new) = (folder.join(FILE), folder.join("use.txt.new"));
        private::write(&new, text)
            .and_then(|()| std::fs::rename(&new, &path))
            .map_err(|e| Error::io(path, e))
    }
}

/// A range of a file to read before queries need it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WarmPart {
    /// Path of the file.
    pub file: PathBuf,
    /// Range of bytes in the file.
    pub bytes: Range<u64>,
}

impl WarmPart {
    fn len(&self) -> u64 {
        self.bytes.end - self.bytes.start
    }
}

/// Progress of reading, for other threads.
#[derive(Debug, Default)]
pub struct WarmProgress {
    /// Number of bytes to read.
    pub wanted: AtomicU64,
    /// Number of bytes read so far.
    pub read: AtomicU64,
}

impl Base {
    /// Saves the counts of requests for segments in the base's folder, for [`Self::warm_parts`] of the next run. Does
    /// nothing for a base that is not in a folder.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn keep_segment_use(&self) -> Result<()> {
        match self.folder() {
            Some(folder) => self.segment_use.write(&folder, self.epoch),
            None => Ok(()),
        }
    }

    /// Folder of the base's files.
    fn folder(&self) -> Option<PathBuf> {
        let file = self.sets.first()?.files[0][0].path()?;
        file.parent().map(Path::to_owned)
    }

    /// Parts of the base's files, most urgent first: the dictionary's tables, the index and the tables of segments,
    /// which every query reads; segments by their use counts per byte; the terms' strings; segments without uses.
    /// O(predicates log predicates).
    pub fn warm_parts(&self) -> Vec<WarmPart> {
        let Some(folder) = self.folder() else {
            return Vec::new();
        };
        let whole = |path: PathBuf| {
            let bytes = 0..std::fs::metadata(&path).map_or(0, |m| m.len());
            WarmPart { file: path, bytes }
        };
        let mut parts = vec![
            whole(folder.join(DICTIONARY_FILE)),
            whole(folder.join(INDEX)),
        ];
        for file in self.sets.iter().flat_map(|set| set.files.as_flattened()) {
            let arrays = file.arrays();
            let tables = [0..arrays.start, arrays.end..file.bytes().len() as u64];
            let path = file.path().into_iter();
            parts.extend(path.flat_map(|path| {
                let part = |bytes| WarmPart {
                    file: path.to_owned(),
                    bytes,
                };
                tables.clone().map(part)
            }));
        }
        let mut used = Vec::new();
        let mut unused = Vec::new();
        for set in &self.sets {
            for files in &set.files {
                for (direction, file) in files.iter().enumerate() {
                    let Some(path) = file.path() else { continue };
                    for (p, bytes) in segments_of(file) {
                        let part = WarmPart {
                            file: path.to_owned(),
                            bytes,
                        };
                        match self.segment_use.get(p, direction) {
                            0 => unused.push(part),
                            times => used.push((times, part)),
                        }
                    }
                }
            }
        }
        // Sorted by requests per byte: of two segments with equally many requests, the smaller comes first.
        used.sort_by(|(a, x), (b, y)| {
            let each = |times: u64, part: &WarmPart| times as f64 / part.len().max(1) as f64;
            each(*b, y).total_cmp(&each(*a, x))
        });
        parts.extend(used.into_iter().map(|(_, part)| part));
        parts.push(whole(folder.join(STRINGS_FILE)));
        parts.extend(unused);
        // The other files of the base: indexes of terms, classes of merged segments.
        let names = self.manifest.files.iter().map(|f| f.0.clone());
        for name in names.chain(self.manifest.merged.names()) {
            let path = folder.join(name);
            if !parts.iter().any(|part| part.file == path) {
                parts.push(whole(path));
            }
        }
        parts.retain(|part| !part.bytes.is_empty());
        parts
    }
}

/// Byte range of each predicate's segment in a file, in the order of the file. A gap between two segments belongs to
/// the first of them.
fn segments_of(file: &SegmentFile) -> Vec<(u32, Range<u64>)> {
    let mut starts: Vec<(u64, u32)> = (0u32..)
        .zip(file.records())
        .filter_map(|(p, record)| Some((record.first_byte()?, p)))
        .collect();
    starts.sort_unstable();
    let end = file.arrays().end;
    let ends = starts.iter().skip(1).map(|s| s.0).chain([end]);
    let ranges = starts.iter().zip(ends);
    ranges
        .map(|(&(start, p), next)| (p, start.min(end)..next.min(end)))
        .collect()
}

/// Reads parts of files in order into the page cache, a piece at a time, until `room` bytes were read. `stop` is called
/// between pieces. Returns the number of bytes read.
///
/// # Errors
/// [`Error::Io`] for a file that cannot be read; [`Error::Cancelled`].
pub fn warm(
    parts: &[WarmPart],
    room: u64,
    progress: &WarmProgress,
    stop: &dyn Fn() -> bool,
) -> Result<u64> {
    let wanted: u64 = parts.iter().map(WarmPart::len).sum();
    progress.wanted.store(wanted.min(room), Ordering::Relaxed);
    let mut buffer = vec![0; PIECE];
    let mut opened: Option<(&Path, std::fs::File)> = None;
    let mut read = 0;
    for part in parts {
        if opened.as_ref().is_none_or(|(path, _)| *path != part.file) {
            let file = private::open(&part.file).map_err(|e| Error::io(&part.file, e))?;
            opened = Some((&part.file, file));
        }
        let Some((_, file)) = &opened else { continue };
        let mut at = part.bytes.start;
        while at < part.bytes.end {
            if stop() {
                return Err(Error::Cancelled);
            }
            let left = (part.bytes.end - at).min(room - read).min(PIECE as u64) as usize;
            let Some(piece) = buffer.get_mut(..left).filter(|piece| !piece.is_empty()) else {
                return Ok(read);
            };
            let got = match file.read_at(piece, at) {
                Ok(0) => break,
                Ok(got) => got as u64,
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(Error::io(&part.file, e)),
            };
            (at, read) = (at + got, read + got);
            progress.read.store(read, Ordering::Relaxed);
        }
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Snapshot, testing};
    use jindou_model::{Direction, PredicateId};
    use oxrdf::{GraphName, NamedNode, Quad};

    /// A store of five predicates, each with twice as many edges as the one before.
    fn loaded() -> (tempfile::TempDir, Snapshot) {
        let node = |name: String| NamedNode::new_unchecked(format!("http://e/{name}"));
        let quad = |p: usize, n: usize| {
            let object = node(format!("o{}", n % 97));
            Quad::new(
                node(format!("s{n}")),
                node(format!("p{p}")),
                object,
                GraphName::DefaultGraph,
            )
        };
        let quads: Vec<Quad> = (0..5)
            .flat_map(|p| (0..200 << p).map(move |n| quad(p, n)))
            .collect();
        let (folder, base) = testing::store_of(&quads);
        (folder, Snapshot::of_base(base))
    }

    fn read_of(parts: &[WarmPart]) -> Vec<(String, Range<u64>)> {
        let name = |part: &WarmPart| part.file.file_name().unwrap().to_str().unwrap().to_owned();
        parts
            .iter()
            .map(|part| (name(part), part.bytes.clone()))
            .collect()
    }

    #[test]
    fn the_segments_that_were_asked_for_come_first() {
        let (folder, snapshot) = loaded();
        let before = read_of(&snapshot.base().warm_parts());
        assert_eq!(before[0].0, DICTIONARY_FILE);
        assert_eq!(before[1].0, INDEX);
        // The tables of the four segment files follow: the bytes before and after the arrays.
        let at = |name: &str, parts: &[(String, Range<u64>)]| {
            parts.iter().position(|p| p.0 == name).unwrap()
        };
        let tables = 2..at(STRINGS_FILE, &before);
        assert!(
            before[tables.clone()]
                .iter()
                .all(|p| p.0.contains("-in") || p.0.contains("-out"))
        );
        assert!(
            tables.len() <= 8,
            "no segment has been asked for: {before:?}"
        );
        // The first run requests the edges of one predicate by object, and saves the counts for the next run.
        let mut all = (0..snapshot.predicate_count()).map(PredicateId);
        let hot = all.find(|p| snapshot.base().default_segment(p.0, 1).edge_count() == 800);
        for _ in 0..10 * SAMPLE {
            let _ = snapshot.edges(hot.unwrap(), Direction::In);
        }
        snapshot.base().keep_segment_use().unwrap();
        drop(snapshot);
        let (base, _) =
            crate::directory::open_at(&folder.path().join("store"), &Default::default()).unwrap();
        let after = read_of(&base.warm_parts());
        let hottest = &after[tables.end];
        assert_eq!(hottest.0, crate::directory::SEGMENTS_IN);
        let bytes = hottest.1.end - hottest.1.start;
        assert!(
            (3_200..6_000).contains(&bytes),
            "800 edges take {bytes} bytes"
        );
        // Every segment occurs once, whatever the order.
        let sorted = |mut parts: Vec<(String, Range<u64>)>| {
            parts.sort_by(|a, b| (&a.0, a.1.start).cmp(&(&b.0, b.1.start)));
            parts
        };
        assert_eq!(sorted(after), sorted(before));
    }

    #[test]
    fn each_segment_of_a_repeated_query_is_counted() {
        let counts = SegmentUse::of(4);
        for _ in 0..40_000 {
            (0..4).for_each(|p| counts.count(p, 0));
        }
        for p in 0..4 {
            let times = counts.get(p, 0);
            assert!((30_000..50_000).contains(&times), "{p}: {times}");
        }
    }

    #[test]
    fn counts_that_are_damaged_or_of_another_base_are_none() {
        let folder = tempfile::tempdir().unwrap();
        let counts = SegmentUse::of(3);
        counts.add(1, 1, 640);
        counts.write(folder.path(), 7).unwrap();
        let again = |epoch, text: Option<&str>| {
            if let Some(text) = text {
                std::fs::write(folder.path().join(FILE), text).unwrap();
            }
            let read = SegmentUse::of(3);
            read.read(folder.path(), epoch);
            [read.get(1, 0), read.get(1, 1)]
        };
        assert_eq!(again(7, None), [0, 320]);
        assert_eq!(again(8, None), [0, 0]);
        assert_eq!(
            again(
                7,
                Some("jindou-use 1 7\n1 x 9\n99999999999 1 1\n77 2 2\n1 8")
            ),
            [0, 0]
        );
        assert_eq!(again(7, Some("")), [0, 0]);
        let most = u64::MAX;
        let twice = format!("jindou-use 1 7\n1 {most} {most}\n1 {most} {most}\n");
        assert_eq!(again(7, Some(&twice)), [most / 2; 2]);
        std::fs::write(folder.path().join(FILE), [0xff; 40]).unwrap();
        assert_eq!(again(7, None), [0, 0]);
    }

    #[test]
    fn reading_ends_at_the_room_and_when_it_is_told_to() {
        let (folder, snapshot) = loaded();
        let parts = snapshot.base().warm_parts();
        let all: u64 = parts.iter().map(WarmPart::len).sum();
        let progress = WarmProgress::default();
        assert_eq!(warm(&parts, u64::MAX, &progress, &|| false).unwrap(), all);
        assert_eq!(progress.read.load(Ordering::Relaxed), all);
        assert_eq!(warm(&parts, 5_000, &progress, &|| false).unwrap(), 5_000);
        assert_eq!(progress.wanted.load(Ordering::Relaxed), 5_000);
        let stopped = warm(&parts, u64::MAX, &progress, &|| true);
        assert!(matches!(stopped, Err(Error::Cancelled)));
        std::fs::remove_file(folder.path().join("store").join(INDEX)).unwrap();
        let gone = warm(&parts, u64::MAX, &progress, &|| false);
        assert!(matches!(gone, Err(Error::Io { .. })));
    }
}
