//! The indexes of one base: building them with the base, and opening them with it.

use super::{Index, IndexFile, IndexWriter, Indexes, OpenIndex, Probe, Question, Terms};
use super::{file_of, name_of};
use crate::{Dictionary, Strings};
use jindou_model::{CancelToken, Error, MemoryBudget, Result};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

/// Builds all indexes of these kinds that have a file, next to a complete `strings.jd` (not synced), within this much
/// memory each. Returns the names of the files. `id_of_lex` as in [`crate::write_dictionary`].
///
/// # Errors
/// The error of the first kind that fails; [`Error::Internal`] for one that panics.
pub fn build_indexes(
    dir: &Path,
    kinds: &Indexes,
    id_of_lex: &[u32],
    memory: u64,
    cancel: &CancelToken,
) -> Result<Vec<String>> {
    let mut names = Vec::new();
    let mut strings = None;
    for kind in kinds.iter().filter(|k| k.has_file()) {
        let strings = match &strings {
            Some(strings) => strings,
            None => strings.insert(Strings::open(dir)?),
        };
        let terms = Terms {
            strings,
            id_of_lex,
            folder: dir,
            memory: MemoryBudget::new(memory),
            cancel,
        };
        let name = file_of(kind.name());
        let mut file = IndexWriter::create(dir.join(&name), kind.version())?;
        catch_unwind(AssertUnwindSafe(|| kind.build(&terms, &mut file))).unwrap_or_else(|_| {
            Err(Error::Internal(format!(
                "building the index {} panicked; load without it, or fix it",
                kind.name()
            )))
        })?;
        file.finish(strings)?;
        names.push(name);
    }
    Ok(names)
}

struct MappedIndex {
    kind: Arc<dyn Index>,
    file: Option<Arc<IndexFile>>,
    index: Box<dyn OpenIndex>,
}

/// The indexes of a base that were opened with it.
pub struct OpenIndexes {
    kinds: Indexes,
    /// The opened indexes; the value ranks are the first.
    open: Vec<MappedIndex>,
    /// Name and state of each index that is not in `open`.
    left_out: Vec<(String, &'static str)>,
}

impl std::fmt::Debug for OpenIndexes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = self.open.iter().map(|o| o.kind.name());
        f.debug_set().entries(names).finish()
    }
}

/// Reason why an index is not used.
const OTHER_VERSION: &str = "of another version; recluster the store to rebuild it";

impl OpenIndexes {
    /// Opens the indexes of those kinds whose file is in `names`, the names of a base's files, and of the kinds without
    /// a file.
    ///
    /// # Errors
    /// [`Error::Damaged`] for a file whose head is damaged, and the errors of [`Index::open`]; [`Error::Io`].
    pub fn open<'n>(
        dir: &Path,
        files: impl Iterator<Item = &'n str>,
        kinds: &Indexes,
        dictionary: &Dictionary,
    ) -> Result<Self> {
        let mut there: Vec<&str> = files.filter_map(name_of).collect();
        let (mut open, mut left_out) = (vec![], vec![]);
        for kind in kinds.iter() {
            let mut file = None;
            if kind.has_file() {
                let name = kind.name();
                let Some(at) = there.iter().position(|n| *n == name) else {
                    left_out.push((
                        name.to_owned(),
                        "not built; recluster the store to build it",
                    ));
                    continue;
                };
                there.swap_remove(at);
                let path = dir.join(file_of(name));
                match IndexFile::open(&path, kind.version(), dictionary.strings())? {
                    Some(f) => file = Some(Arc::new(f)),
                    None => {
                        left_out.push((name.to_owned(), OTHER_VERSION));
                        continue;
                    }
                }
            }
            let index = kind.open(file.clone(), dictionary)?;
            let kind = Arc::clone(kind);
            open.push(MappedIndex { kind, file, index });
        }
        there.sort_unstable();
        let unknown = "of a kind that this program does not support";
        left_out.extend(there.into_iter().map(|n| (n.to_owned(), unknown)));
        Ok(Self {
            kinds: kinds.clone(),
            open,
            left_out,
        })
    }

    /// Opens the indexes of a base in memory, which has no files.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn without_files(kinds: &Indexes, dictionary: &Dictionary) -> Result<Self> {
        Self::open(Path::new(""), std::iter::empty(), kinds, dictionary)
    }

    /// The kinds of indexes with which the base was opened, for the next base of the store.
    #[must_use]
    pub fn kinds(&self) -> &Indexes {
        &self.kinds
    }

    /// The kinds of indexes that the next base should have: all of [`Self::kinds`], except those built on demand that
    /// this base lacks. A file of another version counts as present.
    #[must_use]
    pub fn to_build(&self) -> Indexes {
        let is_open = |name: &str| self.open.iter().any(|o| o.kind.name() == name);
        let is_old = |name: &str| {
            self.left_out
                .iter()
                .any(|l| l.0 == name && l.1 == OTHER_VERSION)
        };
        self.kinds
            .retained(|kind| !kind.on_demand() || is_open(kind.name()) || is_old(kind.name()))
    }

    /// True if the value ranks are the only opened index.
    #[inline]
    #[must_use]
    pub fn are_ranks_alone(&self) -> bool {
        self.open.len() <= 1
    }

    /// The answer of the first index that has one. The indexes are asked in reverse order of registration, so the value
    /// ranks come last.
    #[must_use]
    pub fn probe<'a>(
        &'a self,
        question: &Question<'_>,
        dictionary: &'a Dictionary,
    ) -> Option<Box<dyn Probe + 'a>> {
        let mut all = self.open.iter().rev();
        all.find_map(|o| o.index.probe(question, dictionary))
    }

    /// The opened index of type `T` ([`OpenIndex::as_any`]), if there is one.
    #[must_use]
    pub fn get<T: 'static>(&self) -> Option<&T> {
        let mut all = self.open.iter().rev();
        all.find_map(|o| o.index.as_any()?.downcast_ref())
    }

    /// Ok if everything read from the files so far is unchanged since they were opened.
    ///
    /// # Errors
    /// [`Error::Damaged`] with the file, once one has shrunk or could not be read.
    #[inline]
    pub fn check_files(&self) -> Result<()> {
        let mut files = self.open.iter().filter_map(|o| o.file.as_deref());
        files.try_for_each(IndexFile::check_file)
    }

    /// True if [`Self::check_files`] would succeed. A few instructions per file.
    #[inline]
    #[must_use]
    pub fn are_files_whole(&self) -> bool {
        let mut files = self.open.iter().filter_map(|o| o.file.as_deref());
        files.all(IndexFile::is_whole)
    }

    /// Calls `damage` with the file's name and the fault found in it, for each index that has a file.
    pub fn check(&self, dictionary: &Dictionary, damage: &mut dyn FnMut(&str, String)) {
        for o in self.open.iter().filter(|o| o.file.is_some()) {
            let name = file_of(o.kind.name());
            let mut say = |what| damage(&name, what);
            let checked = catch_unwind(AssertUnwindSafe(|| o.index.check(dictionary, &mut say)));
            if checked.is_err() {
                damage(&name, "examining it panicked".into());
            }
        }
    }

    /// Name and state of every index with a file: the opened ones, those whose file is missing, and files of unknown
    /// kinds.
    #[must_use]
    pub fn states(&self) -> Vec<(String, String)> {
        let opened = self.open.iter().filter(|o| o.file.is_some());
        let opened = opened.map(|o| (o.kind.name().to_owned(), o.index.describe()));
        let others = self.left_out.iter().map(|(n, s)| (n.clone(), (*s).into()));
        opened.chain(others).collect()
    }
}
