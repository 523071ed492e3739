//! The store directory: files of named sections, which are mapped and used in their stored form.
//! `docs/internals/files.md` describes every byte.

mod check;
mod check_shards;
mod current;
mod empty;
mod groups;
mod index;
mod info;
mod manifest;
mod open;
mod place;
mod prefixes;
mod section;
mod segments;
mod state;
mod statistics;
mod verify;

pub use check::{CheckReport, Damage, check, check_with};
pub(crate) use current::sync_path;
pub use current::{BaseLocation, CURRENT, LOG};
pub use groups::{FileGroup, MergedFiles, generation_of, is_of_a_merge, remove_leftovers};
pub(crate) use groups::{NewGroup, file_of, remove_unnamed};
pub use index::{IndexBuilder, IndexParts, class_runs};
pub use info::{InfoReport, PredicateInfo, info, info_with};
pub use jindou_model::mapped::Bytes;
pub(crate) use manifest::manifest_text;
pub use manifest::{BLOCK, CHECKSUMS, Checksums, MANIFEST, Manifest, ManifestState, NEXT_MANIFEST};
pub use open::{current, open, open_after, open_at};
pub(crate) use open::{map_generation, open_folder};
pub use place::{Building, FILES, WriteLock, may_write};
pub use prefixes::PREFIXES;
pub(crate) use prefixes::{parse_prefixes, prefixes_text, read_prefixes};
pub use section::{FORMAT_VERSION, SectionFile, SectionWriter};
pub(crate) use segments::ListArrays;
pub use segments::{MergedFileInfo, SegmentFile, SegmentFileWriter, SegmentInfo, SegmentRecord};
pub(crate) use state::{read_state, write_state};
pub use statistics::{read_statistics, write_statistics};
pub use verify::verify;

/// Folder in the store directory with the state of a store that follows a shared log.
pub const REPLICA: &str = "replica";
/// File of the default graph's edges, key = subject.
pub const SEGMENTS_OUT: &str = "segments-out.jd";
/// File of the default graph's edges, key = object.
pub const SEGMENTS_IN: &str = "segments-in.jd";
/// File of the named graphs' edges, key = subject.
pub const NAMED_OUT: &str = "named-out.jd";
/// File of the named graphs' edges, key = object.
pub const NAMED_IN: &str = "named-in.jd";
/// File of characteristic sets, class intervals and the index vertices of graphs.
pub const INDEX: &str = "index.jd";
/// File of a generation's class intervals, if the generation has `rdf:type`.
pub const CLASSES: &str = "classes.jd";
/// File of merged changes that are stored outside segments: terms, predicates of single vertices, graphs.
pub const DELTA: &str = "delta.jd";
/// File of the planner's statistics.
pub const STATISTICS: &str = "statistics.jd";
