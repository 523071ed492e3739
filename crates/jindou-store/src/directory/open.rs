//! Opening a store: files are mapped, their headers and lengths are checked, and nothing else is read.

use super::manifest::Manifest;
use super::{
    BaseLocation, Bytes, CLASSES, DELTA, FILES, FileGroup, INDEX, IndexParts, MANIFEST, NAMED_IN,
    NAMED_OUT, PREFIXES, SEGMENTS_IN, SEGMENTS_OUT, STATISTICS, SegmentFile, file_of,
    read_prefixes, read_state, read_statistics,
};
use crate::base::{Base, MergedData, SegmentSet};
use crate::warm::SegmentUse;
use jindou_dictionary::Dictionary;
use jindou_dictionary::index::{Indexes, OpenIndexes};
use jindou_model::{Error, Result};
use std::path::Path;
use std::sync::Arc;

/// Opens a store without indexes other than the value ranks. The time depends on the statistics and the pages that are
/// read, not on the store's size.
///
/// The store stays readable while the result lives, even if another load replaces the store.
///
/// # Errors
/// [`Error::NoStore`], [`Error::NotAStore`], [`Error::Version`]; [`Error::Damaged`] for a file that is missing, too
/// short or damaged. Only headers are checked for damage (see [`crate::check`]); reads of damaged parts return wrong or
/// empty answers, and never fault.
pub fn open(dir: &Path) -> Result<Arc<Base>> {
    open_at(dir, &Indexes::new()).map(|(base, _)| base)
}

/// As [`open`], with these kinds of indexes; also returns the location of the base.
///
/// # Errors
/// As [`open`], and for an index whose file is damaged.
pub fn open_at(dir: &Path, indexes: &Indexes) -> Result<(Arc<Base>, BaseLocation)> {
    open_after(dir, indexes, None)
}

/// As [`open_at`], for a base that replaces another one in this process. Versions of snapshots continue from those of
/// the previous base, so that a plan for it is never used for the new one.
///
/// # Errors
/// As [`open_at`].
pub fn open_after(
    dir: &Path,
    indexes: &Indexes,
    before: Option<&Base>,
) -> Result<(Arc<Base>, BaseLocation)> {
    // Another process may replace the base between two opens; then its location or its manifest differs.
    let mut seen = current(dir)?;
    loop {
        let base = open_folder(&seen.0.folder(), &seen.1, indexes);
        match current(dir) {
            Ok(now) if now != seen => seen = now,
            _ => {
                let mut base = base?;
                if let Some(before) = before {
                    base.versions = Arc::clone(&before.versions);
                }
                return Ok((Arc::new(base), seen.0));
            }
        }
    }
}

/// The location of a store's base, and the base's manifest.
///
/// # Errors
/// [`Error::NoStore`], [`Error::NotAStore`], [`Error::Version`], [`Error::Damaged`].
pub fn current(dir: &Path) -> Result<(BaseLocation, Manifest)> {
    let mut place = BaseLocation::find(dir)?;
    loop {
        let manifest = Manifest::of_store(&place.folder());
        let now = BaseLocation::find(dir)?;
        if now == place {
            return manifest.map(|m| (place, m));
        }
        place = now;
    }
}

/// Compares the lengths of all files with the manifest.
pub(super) fn verify_lengths(dir: &Path, manifest: &Manifest) -> Result<()> {
    let merged = manifest.merged.groups.iter().flat_map(|g| &g.files);
    for (name, len) in manifest.files.iter().chain(merged) {
        let found = match std::fs::metadata(dir.join(name)) {
            Ok(m) => m.len(),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                return Err(Error::damaged(
                    dir.join(name),
                    "the file is missing; load the data again",
                ));
            }
            Err(e) => return Err(Error::io(dir.join(name), e)),
        };
        if found != *len {
            return Err(Error::damaged(
                dir.join(name),
                format!("{found} bytes, expected {len}; load the data again"),
            ));
        }
    }
    if let Some(name) = FILES
        .iter()
        .find(|f| !manifest.files.iter().any(|m| m.0 == **f))
    {
        return Err(Error::damaged(
            dir.join(MANIFEST),
            format!("it does not list {name}; load the data again"),
        ));
    }
    Ok(())
}

/// Opens a folder whose files have this manifest.
///
/// # Errors
/// As [`open`].
pub(crate) fn open_folder(dir: &Path, manifest: &Manifest, indexes: &Indexes) -> Result<Base> {
    verify_lengths(dir, manifest)?;
    let map = |name: &str| Bytes::map(&dir.join(name));
    let mut sets = vec![Arc::new(map_segments(dir, 0, str::to_owned)?)];
    for g in manifest.merged.generations() {
        sets.push(Arc::new(map_generation(dir, g)?));
    }
    if sets.len() > usize::from(u8::MAX) {
        return Err(Error::damaged(
            dir.join(MANIFEST),
            "it names too many generations",
        ));
    }
    let state = manifest.merged.state().map(|s| s.name.as_str());
    let statistics_file = state.map_or(STATISTICS.to_owned(), |s| file_of(s, STATISTICS));
    let statistics = read_statistics(map(&statistics_file)?, &statistics_file)?;
    let counts = (u64::from(statistics.vertices), statistics.quads);
    if counts != (manifest.terms, manifest.quads) {
        return Err(Error::damaged(
            dir.join(statistics_file),
            "its counts differ from the manifest's; run `jindou check`, then load the store again",
        ));
    }
    let predicates = statistics.predicates.len();
    let merged = match state {
        Some(s) => {
            let name = file_of(s, DELTA);
            read_state(map(&name)?, &name, statistics.vertices, predicates)?
        }
        None => MergedData::default(),
    };
    if merged.number != manifest.merged.number {
        return Err(Error::damaged(
            dir.join(MANIFEST),
            format!(
                "it says that snapshot {} is merged, but the files are of snapshot {}; run `jindou check`",
                manifest.merged.number, merged.number
            ),
        ));
    }
    let prefixes = match &merged.prefixes {
        Some(merged) => Arc::clone(merged),
        None if manifest.files.iter().any(|f| f.0 == PREFIXES) => Arc::new(read_prefixes(dir)?),
        None => Arc::default(),
    };
    let dictionary = Dictionary::open(dir)?;
    let files = manifest.files.iter().map(|f| f.0.as_str());
    let indexes = OpenIndexes::open(dir, files, indexes, &dictionary)?;
    let base = Base {
        epoch: manifest.epoch,
        union_default: manifest.union_default,
        dictionary: Arc::new(dictionary),
        indexes: Arc::new(indexes),
        place: Base::places(&sets, predicates),
        sets,
        predicate_of: (0u32..)
            .zip(&statistics.predicates)
            .map(|(i, p)| (p.vertex, i))
            .collect(),
        statistics,
        index: Arc::new(IndexParts::open(map(INDEX)?, INDEX)?),
        merged,
        prefixes,
        manifest: manifest.clone(),
        versions: Arc::default(),
        segment_use: Arc::new(SegmentUse::of(predicates)),
        objects: Default::default(),
        kinds: Default::default(),
        shard: None,
    };
    base.segment_use.read(dir, base.epoch);
    // The base is invalid if a file failed while it was opened.
    base.check_files()?;
    Ok(base)
}

/// Maps the segments of one generation.
pub(crate) fn map_generation(dir: &Path, group: &FileGroup) -> Result<SegmentSet> {
    let mut set = map_segments(dir, group.generation(), |f| file_of(&group.name, f))?;
    if group.length(CLASSES).is_some() {
        let name = file_of(&group.name, CLASSES);
        set.classes = Some(IndexParts::open(Bytes::map(&dir.join(&name))?, &name)?);
    }
    Ok(set)
}

fn map_segments(dir: &Path, generation: u32, name: impl Fn(&str) -> String) -> Result<SegmentSet> {
    let segments = |file: &str| {
        let name = name(file);
        SegmentFile::open(Bytes::map(&dir.join(&name))?, &name)
    };
    let named = |file: &str| {
        let name = name(file);
        SegmentFile::open_named(Bytes::map(&dir.join(&name))?, &name)
    };
    Ok(SegmentSet {
        generation,
        files: [
            [segments(SEGMENTS_OUT)?, segments(SEGMENTS_IN)?],
            [named(NAMED_OUT)?, named(NAMED_IN)?],
        ],
        classes: None,
    })
}
