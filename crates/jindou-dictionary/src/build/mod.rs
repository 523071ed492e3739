//! From batches of quads to the files of a dictionary: intern, sort, merge, write.

mod arena;
mod intern;
mod merge;
mod run;
mod sort;
mod split;
mod strings;
mod values;
mod write;

pub use intern::{Interner, LOCAL_DEFAULT_GRAPH};
pub use merge::{MergedVocabulary, merge_runs};
pub use run::{ClosedRun, TermRun};
pub use split::split_strings;
pub use strings::StringsWriter;
pub(crate) use values::{CODED_TAGS, number_of};
pub(crate) use write::empty;
pub use write::write_dictionary;
