//! The full-text index of a base, in a file.

use crate::build::{META, ROW, SEGMENT, components};
use crate::directory::Packed;
use crate::segment::{WordSegment, failed};
use crate::{SearchedTerms, WordQuery, caught, section};
use jindou_dictionary::Dictionary;
use jindou_dictionary::index::{IndexFile, OpenIndex, Probe, Question};
use jindou_model::{Error, Result};
use std::any::Any;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, TryLockError};
use std::time::Duration;
use tantivy::index::SegmentId;
use xxhash_rust::xxh3::Xxh3;

/// Number of bytes that are hashed between two checks of the clock.
const PIECE: usize = 1 << 20;
/// Largest number of documents that are found at a time.
pub(crate) const BATCH: usize = 64;

/// The full-text index of a base's terms.
pub struct OpenText {
    file: Arc<IndexFile>,
    rows: Vec<StoredSegment>,
    /// How much of the file has been hashed so far; locked by the thread that hashes it.
    hashing: Mutex<Hashing>,
    /// True if the file matches its hash; unset until that is known.
    sound: OnceLock<bool>,
}

/// A segment in the file.
struct StoredSegment {
    kind: SearchedTerms,
    documents: u32,
    /// Range of its documents' ids in the section `IDS`.
    ids: Range<usize>,
    /// Ranges of `meta.json` and of the components in the section `FILES`.
    files: Vec<Range<usize>>,
    opened: OnceLock<WordSegment>,
}

#[derive(Default)]
struct Hashing {
    state: Xxh3,
    done: usize,
}

impl OpenText {
    pub(crate) fn new(file: Arc<IndexFile>) -> Result<Self> {
        let table = file.u64s(section::TABLE);
        let ids = file.u32s(section::IDS).len() as u64;
        let (rows, rest) = table.as_chunks::<ROW>();
        if !rest.is_empty() || file.u64s(section::HASH).len() != 1 {
            return Err(file.damaged("the table of its segments"));
        }
        let length = file.bytes(section::FILES).len() as u64;
        let mut from = 0u64;
        let mut made = Vec::with_capacity(rows.len());
        for row in rows {
            let kind = match row[0] {
                0 => SearchedTerms::Literals,
                1 => SearchedTerms::Iris,
                _ => return Err(file.damaged("the kind of a segment")),
            };
            let to = from.saturating_add(row[1]);
            let files = row[2..].chunks(2).map(|r| r[0]..r[1]);
            let inside = files.clone().all(|r| r.start <= r.end && r.end <= length);
            if to > ids || row[1] > u64::from(u32::MAX) || !inside {
                return Err(file.damaged("the sizes of a segment"));
            }
            made.push(StoredSegment {
                kind,
                documents: row[1] as u32,
                ids: from as usize..to as usize,
                files: files.map(|r| r.start as usize..r.end as usize).collect(),
                opened: OnceLock::new(),
            });
            from = to;
        }
        Ok(Self {
            file,
            rows: made,
            hashing: Mutex::default(),
            sound: OnceLock::new(),
        })
    }

    /// Compares the file with its hash, unless that has been done. Continues where an earlier call was stopped; `None`
    /// if `stop` returns true.
    fn is_sound(&self, stop: &mut dyn FnMut() -> bool) -> Option<bool> {
        if let Some(&sound) = self.sound.get() {
            return Some(sound);
        }
        // If another thread is hashing the file already, this one waits.
        let mut hashing = loop {
            match self.hashing.try_lock() {
                Ok(hashing) => break hashing,
                Err(TryLockError::Poisoned(e)) => break e.into_inner(),
                Err(TryLockError::WouldBlock) if stop() => return None,
                Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(1)),
            }
        };
        let sections = [section::FILES, section::TABLE, section::IDS].map(|s| self.file.bytes(s));
        let all: usize = sections.iter().map(|s| s.len()).sum();
        while hashing.done < all {
            if stop() {
                return None;
            }
            let mut at = hashing.done;
            for bytes in sections {
                if at < bytes.len() {
                    let piece = &bytes[at..bytes.len().min(at + PIECE)];
                    hashing.state.update(piece);
                    hashing.done += piece.len();
                    break;
                }
                at -= bytes.len();
            }
        }
        let digest = hashing.state.digest();
        let sound = self.file.is_whole() && self.file.u64s(section::HASH) == [digest];
        Some(*self.sound.get_or_init(|| sound))
    }

    /// Compares the file with its hash until `stop` returns true, so that later searches need not do so.
    pub fn prepare(&self, stop: &mut dyn FnMut() -> bool) {
        let _ = self.is_sound(stop);
    }

    /// True if the whole file has been compared with its hash, so that searches can begin at once.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.sound.get().is_some()
    }

    fn segment<'r>(&self, row: &'r StoredSegment) -> Result<&'r WordSegment> {
        if let Some(opened) = row.opened.get() {
            return Ok(opened);
        }
        let id = SegmentId::from_uuid_string(SEGMENT)
            .map_err(failed)?
            .uuid_string();
        let mut names = vec![PathBuf::from(META)];
        for component in components() {
            names.push(PathBuf::from(format!("{id}.{component}")));
        }
        // Components that tantivy did not write have empty ranges.
        let there = names.into_iter().zip(row.files.iter().cloned());
        let directory = Packed::new(&self.file, there.filter(|(_, range)| !range.is_empty()));
        let opened = WordSegment::open(directory, row.documents)?;
        Ok(row.opened.get_or_init(|| opened))
    }

    /// Calls `f` with the ids of the base's terms of a kind that match the query, until it returns false. Terms that
    /// contain the last word as a whole word come first, then those with a word that begins with it, which may include
    /// the former again. Within each group, texts with few words come first. Returns true if these were all; false if
    /// `f` returned false, or if the search was cut short, for example since `stop`, which is called regularly,
    /// returned true.
    ///
    /// # Errors
    /// [`Error::Damaged`].
    pub fn search(
        &self,
        asked: &WordQuery,
        kind: SearchedTerms,
        stop: &mut dyn FnMut() -> bool,
        f: &mut dyn FnMut(u32) -> bool,
    ) -> Result<bool> {
        match self.is_sound(stop) {
            Some(true) => {}
            Some(false) => return Err(self.file.damaged("its hash")),
            None => return Ok(false),
        }
        let ids = self.file.u32s(section::IDS);
        let mut complete = true;
        for whole in [true, false] {
            for row in self.rows.iter().filter(|r| r.kind == kind) {
                let ids = ids.get(row.ids.clone()).unwrap_or(&[]);
                let walk = caught(|| self.segment(row)?.walk(asked, whole, stop));
                let Some(mut walk) = self.checked(walk)? else {
                    continue;
                };
                let mut batch = Vec::with_capacity(BATCH);
                loop {
                    batch.clear();
                    let more = self.checked(caught(|| walk.fill(ids, &mut batch, stop)))?;
                    for &id in &batch {
                        if !f(id) {
                            return Ok(false);
                        }
                    }
                    if !more {
                        break;
                    }
                }
                complete &= !walk.cut;
            }
        }
        self.file.check_file()?;
        Ok(complete)
    }

    /// The error of a search. An internal error of tantivy is reported as damage of the file.
    fn checked<T>(&self, made: Result<T>) -> Result<T> {
        self.file.check_file()?;
        made.map_err(|e| match e {
            Error::Internal(what) => self.file.damaged(&what),
            e => e,
        })
    }
}

impl crate::segment::MatchWalk {
    /// Appends the ids of the next documents, up to [`BATCH`]; false if there are no more.
    pub(crate) fn fill(
        &mut self,
        ids: &[u32],
        batch: &mut Vec<u32>,
        stop: &mut dyn FnMut() -> bool,
    ) -> Result<bool> {
        while batch.len() < BATCH {
            match self.next(stop)? {
                Some(document) => batch.extend(ids.get(document as usize)),
                None => return Ok(false),
            }
        }
        Ok(true)
    }
}

impl OpenIndex for OpenText {
    fn probe<'a>(&'a self, _: &Question<'_>, _: &'a Dictionary) -> Option<Box<dyn Probe + 'a>> {
        None
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }

    fn check(&self, dictionary: &Dictionary, damage: &mut dyn FnMut(String)) {
        if self.is_sound(&mut || false) != Some(true) {
            damage("its content does not match its hash".into());
            return;
        }
        let ids = self.file.u32s(section::IDS);
        if ids.iter().any(|&id| id == 0 || id > dictionary.len()) {
            damage("it has ids that the dictionary does not have".into());
        }
        for (n, row) in self.rows.iter().enumerate() {
            let (mut before, mut ascends, mut inside) = (Vec::new(), true, true);
            let mut each = |word: &[u8], documents: u32| {
                ascends &= *word > before[..] || before.is_empty();
                inside &= documents <= row.documents;
                before.clear();
                before.extend_from_slice(word);
            };
            let walked = caught(|| self.segment(row)?.each_word(&mut each));
            if walked.is_err() || !ascends || !inside {
                damage(format!("the words of segment {n} cannot be read"));
            }
        }
    }

    fn describe(&self) -> String {
        let of = |kind| {
            let rows = self.rows.iter().filter(|r| r.kind == kind);
            rows.map(|r| u64::from(r.documents)).sum::<u64>()
        };
        let [literals, iris] = SearchedTerms::ALL.map(of);
        format!(
            "words of {literals} literals and {iris} IRIs, {} segments",
            self.rows.len()
        )
    }
}
