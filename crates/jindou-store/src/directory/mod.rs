//! The store directory: files of named sections that are used as they are mapped. `ARCHITECTURE.md` draws
//! them byte by byte.

mod bytes;
mod check;
mod current;
mod index;
mod info;
mod manifest;
mod open;
mod place;
mod section;
mod segments;
mod statistics;

pub use bytes::Bytes;
pub use check::{CheckReport, Damage, check};
pub(crate) use current::sync_folder;
pub use current::{CURRENT, LOG, Place};
pub use index::{IndexBuilder, IndexParts};
pub use info::{InfoReport, PredicateInfo, info};
pub use manifest::{BLOCK, CHECKSUMS, Checksums, Kind, MANIFEST, Manifest};
pub use open::{current, open, open_at};
pub use place::{Building, FILES, WriteLock, may_write};
pub use section::{FORMAT_VERSION, SectionFile, SectionWriter};
pub use segments::{SegmentFile, SegmentFileWriter, SegmentInfo, SegmentRecord};
pub use statistics::{read_statistics, write_statistics};

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
/// File of the planner's statistics.
pub const STATISTICS: &str = "statistics.jd";
