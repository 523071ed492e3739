//! The store directory: files of named sections that are used as they are mapped. `ARCHITECTURE.md` draws
//! them byte by byte.

mod bytes;
mod index;
mod section;
mod segments;

pub use bytes::Bytes;
pub use index::{IndexBuilder, IndexParts};
pub use section::{FORMAT_VERSION, SectionFile, SectionWriter};
pub use segments::{SegmentFile, SegmentFileWriter, SegmentInfo, SegmentRecord};

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
