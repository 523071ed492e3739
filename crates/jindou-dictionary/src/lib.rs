//! Term ↔ id: the dictionary of a store.
//!
//! It has two halves. **Building** ([`Interner`], [`merge_runs`], [`write_dictionary`]): every loading thread interns
//! its terms in a bounded table and closes the table into a sorted run when it is full; the runs are merged into one
//! lexicographic vocabulary. **Reading** ([`Dictionary`]): the mapped files, term to id, id to term, and the value
//! columns that filters and ORDER BY read in place of strings. Between both are the indexes of terms ([`index`]).
//!
//! Three numbers identify a term on its way: the *run-local id* (dense, in order of arrival), the *lex index* (its
//! position in the order of canonical bytes, from 0, `u32`), and the [`VertexId`] that clustering assigns to it.
//!
//! [`VertexId`]: jindou_model::VertexId

mod build;
mod format;
mod front;
mod hash;
pub mod index;
mod read;
mod tags;
pub mod value;

pub use build::{
    ClosedRun, Interner, LOCAL_DEFAULT_GRAPH, MergedVocabulary, StringsWriter, TermRun, merge_runs,
    split_strings, write_dictionary,
};
pub use format::{DICTIONARY_FILE, STRINGS_FILE};
pub use read::{Decoder, Dictionary, SortKey, StringCursor, Strings, TermKind};
pub use tags::TagRanges;
pub use value::{Comparison, NAN_RANK, NO_LEX, NO_RANK, NumericBounds, ValueGroup};
