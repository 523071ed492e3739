//! A base without quads, in memory: the same bytes that a load without quads would write to files.

use super::{
    Bytes, INDEX, IndexBuilder, IndexParts, Manifest, NAMED_IN, NAMED_OUT, SEGMENTS_IN,
    SEGMENTS_OUT, SegmentFile, SegmentFileWriter,
};
use crate::base::{Base, MergedData, SegmentSet};
use jindou_dictionary::Dictionary;
use jindou_dictionary::index::{Indexes, OpenIndexes};
use jindou_graph::segment::Packing;
use jindou_graph::statistics::Statistics;
use jindou_model::{Error, Result};
use std::io::Cursor;
use std::sync::Arc;

impl Base {
    /// A base without quads, in memory, to which changes can be applied. `epoch` distinguishes its ids from those of
    /// other bases. O(1).
    ///
    /// # Errors
    /// [`Error::Damaged`] if this crate cannot read its own output.
    pub fn empty(epoch: u64, union_default: bool) -> Result<Arc<Self>> {
        let dictionary = Dictionary::empty()?;
        let indexes = OpenIndexes::without_files(&Indexes::new(), &dictionary)?;
        let plain = |name: &str| SegmentFile::open(segments(name, None)?, name);
        let packing = Packing::new(0, vec![]);
        let named = |name: &str| SegmentFile::open_named(segments(name, Some(&packing))?, name);
        let set = SegmentSet {
            generation: 0,
            files: [
                [plain(SEGMENTS_OUT)?, plain(SEGMENTS_IN)?],
                [named(NAMED_OUT)?, named(NAMED_IN)?],
            ],
            classes: None,
        };
        let index = IndexBuilder::default()
            .write(Cursor::new(vec![]))
            .map_err(|e| Error::io(INDEX, e))?;
        let mut statistics = Statistics::default();
        statistics.index();
        Ok(Arc::new(Self {
            epoch,
            union_default,
            dictionary: Arc::new(dictionary),
            indexes: Arc::new(indexes),
            place: Self::places(&[], 0),
            sets: vec![Arc::new(set)],
            predicate_of: Default::default(),
            statistics,
            index: Arc::new(IndexParts::open(Bytes::copy_of(index.get_ref()), INDEX)?),
            merged: MergedData::default(),
            prefixes: Default::default(),
            manifest: Manifest {
                epoch,
                union_default,
                ..Manifest::default()
            },
            versions: Arc::default(),
            segment_use: Arc::default(),
            objects: Default::default(),
            kinds: Default::default(),
            shard: None,
        }))
    }
}

fn segments(name: &str, packing: Option<&Packing>) -> Result<Bytes> {
    let file = SegmentFileWriter::new(Cursor::new(vec![]), 0, packing)
        .and_then(SegmentFileWriter::finish)
        .map_err(|e| Error::io(name, e))?;
    Ok(Bytes::copy_of(file.get_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Snapshot;
    use crate::testing::store_of;

    #[test]
    fn an_empty_base_is_what_a_load_of_nothing_makes() {
        let (_folder, loaded) = store_of(&[]);
        let made = Base::empty(loaded.epoch(), loaded.union_default()).unwrap();
        for direction in 0..2 {
            for named in 0..2 {
                let files = [&made, &loaded].map(|b| b.sets[0].files[named][direction].bytes());
                assert_eq!(files[0], files[1]);
            }
        }
        assert_eq!(made.dictionary.len(), loaded.dictionary.len());
        assert_eq!(made.dictionary.sections(), loaded.dictionary.sections());
        assert_eq!(made.index.part_bytes(), loaded.index.part_bytes());
        assert_eq!(made.statistics.quads, loaded.statistics.quads);
        assert_eq!(made.statistics.vertices, loaded.statistics.vertices);
        let snapshot = Snapshot::of_base(made);
        assert_eq!(snapshot.number(), 0);
        assert!(snapshot.lookup(b"<http://e/a").is_none());
    }
}
