//! Builds the index of a base's terms as segments in a file. Terms are first distributed to temporary files by kind and
//! number of words, and then added, those with few words first.

use crate::segment::{BuiltSegment, SegmentMaker, failed};
use crate::{Folder, MAX_TEXT, SearchedTerms, count, folded, section};
use jindou_dictionary::index::{IndexWriter, Terms};
use jindou_model::spill::{SpillDir, SpillReader, SpillWriter};
use jindou_model::term::{IRI, LANG, STRING};
use jindou_model::{Charge, Holder, MemoryBudget, Result};
use std::path::PathBuf;
use tantivy::Directory;
use tantivy::index::SegmentComponent;
use xxhash_rust::xxh3::Xxh3;

/// Largest number of words of the texts in each temporary file (spill).
const CLASSES: [usize; 6] = [1, 2, 3, 4, 7, usize::MAX];
/// Memory of the spills, each of which has a buffer of one mebibyte.
const FOR_SPILLS: u64 = (CLASSES.len() as u64 + 1) << 20;
/// Largest memory of a segment while it is built, in bytes. Larger segments are searched a little faster, but take
/// longer to open.
const MOST: u64 = 384 << 20;
/// Number of texts between two checks for cancellation.
const CHECK: usize = 1024;

/// The files of a segment, in the order of the table.
pub(crate) fn components() -> [SegmentComponent; 6] {
    [
        SegmentComponent::Terms,
        SegmentComponent::Postings,
        SegmentComponent::Positions,
        SegmentComponent::FieldNorms,
        SegmentComponent::FastFields,
        SegmentComponent::Store,
    ]
}

/// Numbers per segment in the table: kind, number of documents, and start and end of `meta.json` and of each component.
pub(crate) const ROW: usize = 2 + 2 * (1 + 6);

/// The identifier of every segment in a file, in place of tantivy's random ones, so that equal loads write equal files.
pub(crate) const SEGMENT: &str = "00000000000000000000000000000001";
const SEGMENT_WITH_HYPHENS: &str = "00000000-0000-0000-0000-000000000001";

pub(crate) const META: &str = "meta.json";

pub(crate) fn build(terms: &Terms<'_>, file: &mut IndexWriter) -> Result<()> {
    let memory = terms.memory();
    let mut charge = Charge::new(Holder::Rest, memory);
    charge.set(FOR_SPILLS)?;
    let room = memory.limit().saturating_sub(memory.used());
    let room = (room - room / 8).min(MOST);
    charge.add(room)?;
    // With a budget of 0, all spills are written to files.
    let spill = SpillDir::new(terms.folder(), MemoryBudget::new(0))?;
    file.begin(section::FILES)?;
    let mut out = IndexFileWriter {
        file,
        hash: Xxh3::new(),
        length: 0,
        table: vec![],
        ids: spill.writer(),
        // A finished segment takes as much memory again, and has some pages before its first text.
        most: (room / 4) as usize,
    };
    for kind in SearchedTerms::ALL {
        let tags: &[u8] = match kind {
            SearchedTerms::Literals => &[STRING, LANG],
            SearchedTerms::Iris => &[IRI],
        };
        let mut classes = CLASSES.map(|_| spill.writer());
        let (mut folder, mut text) = (Folder::default(), String::new());
        for &tag in tags {
            terms.for_each(terms.tag_ranges().range(tag), |id, canonical| {
                if folded(canonical, &mut folder, &mut text).is_none() {
                    return Ok(());
                }
                let words = count(&text);
                let class = CLASSES.iter().position(|&most| words <= most);
                let Some(to) = class.and_then(|c| classes.get_mut(c)) else {
                    return Ok(());
                };
                to.append(&id.0.to_le_bytes())?;
                to.append(&(text.len() as u16).to_le_bytes())?;
                to.append(text.as_bytes())
            })?;
        }
        let mut maker = None;
        for class in classes {
            let mut reader = class.finish()?.into_reader();
            let mut done = 0;
            while let Some(id) = next(&mut reader, &mut text)? {
                if done % CHECK == 0 {
                    terms.check()?;
                }
                done += 1;
                let at = match &mut maker {
                    Some(at) => at,
                    none => none.insert(SegmentMaker::new(out.most)?),
                };
                at.add(id, &text)?;
                if done % 64 == 0
                    && at.grown() >= out.most
                    && let Some(full) = maker.take()
                {
                    out.write(kind, &full.finish()?)?;
                }
            }
        }
        if let Some(last) = maker {
            out.write(kind, &last.finish()?)?;
        }
    }
    out.finish()
}

/// Reads a term's id and its folded text from a spill; `None` at the end.
fn next(from: &mut SpillReader, text: &mut String) -> Result<Option<u32>> {
    let (mut id, mut length) = ([0; 4], [0; 2]);
    if !from.read_exact(&mut id)? {
        return Ok(None);
    }
    from.read_exact(&mut length)?;
    let mut bytes = std::mem::take(text).into_bytes();
    bytes.resize(u16::from_le_bytes(length).into(), 0);
    from.read_exact(&mut bytes)?;
    *text = String::from_utf8(bytes).map_err(failed)?;
    Ok(Some(u32::from_le_bytes(id)))
}

/// The index's file while it is written.
struct IndexFileWriter<'w> {
    file: &'w mut IndexWriter,
    hash: Xxh3,
    /// Bytes written to the section `FILES` so far.
    length: u64,
    table: Vec<u64>,
    ids: SpillWriter,
    most: usize,
}

impl IndexFileWriter<'_> {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.hash.update(bytes);
        self.length += bytes.len() as u64;
        self.table.push(self.length);
        self.file.write(bytes)
    }

    fn write(&mut self, kind: SearchedTerms, made: &BuiltSegment) -> Result<()> {
        self.table.extend([kind as u64, made.ids.len() as u64]);
        let segments = made.index.searchable_segments().map_err(failed)?;
        let segment = segments.first().ok_or_else(|| failed("no segment"))?;
        let meta = made
            .directory
            .atomic_read(&PathBuf::from(META))
            .map_err(failed)?;
        let own = segment.id().uuid_string();
        let own_with_hyphens = [
            &own[..8],
            &own[8..12],
            &own[12..16],
            &own[16..20],
            &own[20..],
        ]
        .join("-");
        let meta = String::from_utf8(meta).map_err(failed)?;
        let meta = meta.replace(&own_with_hyphens, SEGMENT_WITH_HYPHENS);
        self.table.push(self.length);
        self.append(meta.as_bytes())?;
        for component in components() {
            let path = segment.relative_path(component);
            self.table.push(self.length);
            // Read from the RAM directory itself: tantivy's managed directory takes the end of each file as a footer.
            match made.directory.get_file_handle(&path) {
                Ok(handle) => self.append(&handle.read_bytes(0..handle.len()).map_err(failed)?)?,
                Err(_) => self.table.push(self.length),
            }
        }
        for id in &made.ids {
            self.ids.append(&id.to_le_bytes())?;
        }
        Ok(())
    }

    fn finish(mut self) -> Result<()> {
        let table: Vec<u8> = self.table.iter().flat_map(|n| n.to_le_bytes()).collect();
        self.file.begin(section::TABLE)?;
        self.file.write(&table)?;
        self.hash.update(&table);
        self.file.begin(section::IDS)?;
        let mut reader = self.ids.finish()?.into_reader();
        loop {
            let here = reader.fill()?;
            if here.is_empty() {
                break;
            }
            self.hash.update(here);
            self.file.write(here)?;
            let n = here.len();
            reader.consume(n);
        }
        self.file.begin(section::HASH)?;
        self.file.write_u64s(&[self.hash.digest()])
    }
}

// The length of a folded text fits the two bytes in which it is stored: a letter becomes only a few letters.
const _: () = assert!(MAX_TEXT * 16 < 1 << 16);
