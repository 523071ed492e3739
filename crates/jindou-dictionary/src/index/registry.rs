//! Kinds of indexes that a program registers for loads and databases.

use super::{Index, ValueRanks};
use jindou_model::{Error, Result};
use std::fmt;
use std::sync::Arc;

/// Longest name of a kind, in bytes.
const MAX_NAME: usize = 40;
const MAX_KINDS: usize = 64;

/// The kinds of indexes with which a store is loaded or opened: the value ranks, and those that the program registers.
/// Cheap to clone. A database in memory uses only the ranks, since all of its terms come from updates.
#[derive(Clone)]
pub struct Indexes {
    kinds: Arc<Vec<Arc<dyn Index>>>,
}

impl Default for Indexes {
    fn default() -> Self {
        Self {
            kinds: Arc::new(vec![Arc::new(ValueRanks)]),
        }
    }
}

impl Indexes {
    /// The value ranks alone.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a kind.
    ///
    /// # Errors
    /// [`Error::Query`] for a name that is not valid or is already taken, and for more than 64 kinds.
    pub fn register(&mut self, index: Arc<dyn Index>) -> Result<()> {
        let name = index.name();
        if !is_name(name) {
            return Err(Error::Query(format!(
                "'{name}' is not a valid index name: use at most {MAX_NAME} lower-case letters, digits and hyphens"
            )));
        }
        if self.kinds.iter().any(|k| k.name() == name) {
            return Err(Error::Query(format!(
                "an index named {name} already exists; choose another name"
            )));
        }
        if self.kinds.len() >= MAX_KINDS {
            return Err(Error::Query(format!(
                "a store has at most {MAX_KINDS} kinds of indexes"
            )));
        }
        Arc::make_mut(&mut self.kinds).push(index);
        Ok(())
    }

    /// Adds one kind to these.
    ///
    /// # Errors
    /// As [`Self::register`].
    pub fn with(mut self, index: impl Index + 'static) -> Result<Self> {
        self.register(Arc::new(index))?;
        Ok(self)
    }

    /// The kinds for which `f` holds.
    pub(super) fn retained(&self, f: impl Fn(&dyn Index) -> bool) -> Self {
        let kinds = self.kinds.iter().filter(|k| f(&***k)).cloned();
        Self {
            kinds: Arc::new(kinds.collect()),
        }
    }

    /// The kinds, in the order in which they were registered; the value ranks are the first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Arc<dyn Index>> {
        self.kinds.iter()
    }
}

impl fmt::Debug for Indexes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set()
            .entries(self.iter().map(|k| k.name()))
            .finish()
    }
}

fn is_name(name: &str) -> bool {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    !name.is_empty() && name.len() <= MAX_NAME && name.bytes().all(plain)
}

/// The name of an index's file.
#[must_use]
pub fn file_of(name: &str) -> String {
    format!("index-{name}.jd")
}

/// The index whose file has this name.
#[must_use]
pub fn name_of(file: &str) -> Option<&str> {
    let name = file.strip_prefix("index-")?.strip_suffix(".jd")?;
    is_name(name).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::super::{IndexFile, IndexWriter, OpenIndex, Terms};
    use super::*;
    use crate::Dictionary;

    struct Named(&'static str);

    impl Index for Named {
        fn name(&self) -> &str {
            self.0
        }

        fn build(&self, _: &Terms<'_>, _: &mut IndexWriter) -> Result<()> {
            Ok(())
        }

        fn open(&self, _: Option<Arc<IndexFile>>, _: &Dictionary) -> Result<Box<dyn OpenIndex>> {
            Ok(Box::new(ValueRanks))
        }
    }

    #[test]
    fn names_are_those_of_files_and_come_once() {
        for bad in ["", "A", "a/b", "..", "a b", "ä", &"x".repeat(41)] {
            let bad: &'static str = bad.to_owned().leak();
            let e = Indexes::new().with(Named(bad)).unwrap_err().to_string();
            assert!(e.contains("is not a valid index name"), "{e}");
            assert_eq!(name_of(&file_of(bad)), None);
        }
        let two = Indexes::new().with(Named("a-1")).unwrap();
        assert_eq!(name_of(&file_of("a-1")), Some("a-1"));
        assert_eq!(format!("{two:?}"), r#"{"value-ranks", "a-1"}"#);
        for there in ["a-1", "value-ranks"] {
            let e = two.clone().with(Named(there)).unwrap_err().to_string();
            assert!(e.contains("already exists"), "{e}");
        }
        assert_eq!(name_of("index.jd"), None);
    }
}
