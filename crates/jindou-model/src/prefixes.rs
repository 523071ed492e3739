//! The prefixes of a store: those that its data declares, and those that were set explicitly.
//!
//! A prefix that was set takes precedence over one that the data declares, and both over the common prefixes, which are
//! not stored here. Of several declarations in the data, the first counts. Numbers and lengths are limited, so that no
//! document can enlarge a store by its prefixes.

use crate::diagnostic::shortened;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};

/// Largest number of prefixes that data can declare in a store, and of prefixes that can be set.
pub const MOST_PREFIXES: usize = 4096;
/// Longest name of a prefix that is stored, in bytes.
pub const LONGEST_PREFIX: usize = 256;
/// Longest IRI of a prefix that is stored, in bytes.
pub const LONGEST_NAMESPACE: usize = 2048;

/// Number of characters of an invalid name or IRI that an error message quotes.
const MOST_SHOWN: usize = 100;

crate::named_enum! {
    /// Origin of a prefix.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    #[non_exhaustive]
    pub enum PrefixOrigin {
        /// Declared by a loaded document.
        Data = "data",
        /// Set for the store explicitly.
        Set = "set",
        /// A common prefix, which every store has.
        Common = "common",
    }
    /// The origin in one word: `data`, `set` or `common`.
    pub fn name;
}

/// A change of a store's prefixes. Servers of one store send it to each other in this form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PrefixChange {
    /// A document declares a prefix (name, IRI). No effect if the data has already declared this name.
    Declare(Box<str>, Box<str>),
    /// A prefix is set explicitly (name, IRI).
    Set(Box<str>, Box<str>),
    /// Removes the prefix of this name that was set, or, if none was set, the one that the data declared.
    Remove(Box<str>),
}

/// True for a character with which a name can begin (`PN_CHARS_U` in SPARQL and Turtle).
#[inline]
#[must_use]
pub fn is_name_start(c: char) -> bool {
    matches!(c, '_' | 'A'..='Z' | 'a'..='z' | '\u{C0}'..='\u{D6}' | '\u{D8}'..='\u{F6}' | '\u{F8}'..='\u{2FF}'
        | '\u{370}'..='\u{37D}' | '\u{37F}'..='\u{1FFF}' | '\u{200C}'..='\u{200D}' | '\u{2070}'..='\u{218F}'
        | '\u{2C00}'..='\u{2FEF}' | '\u{3001}'..='\u{D7FF}' | '\u{F900}'..='\u{FDCF}' | '\u{FDF0}'..='\u{FFFD}'
        | '\u{10000}'..='\u{EFFFF}')
}

/// True for a character that a name can contain (`PN_CHARS`).
#[inline]
#[must_use]
pub fn is_name_char(c: char) -> bool {
    is_name_start(c)
        || matches!(c, '-' | '0'..='9' | '\u{B7}' | '\u{300}'..='\u{36F}' | '\u{203F}'..='\u{2040}')
}

/// True if the name can precede the colon of a prefixed name (`PN_PREFIX` in SPARQL and Turtle) and is not too long.
/// The empty name is allowed.
#[must_use]
pub fn is_prefix_name(name: &str) -> bool {
    let first = name.chars().next();
    name.len() <= LONGEST_PREFIX
        && first.is_none_or(|c| c != '_' && is_name_start(c))
        && name.chars().all(|c| is_name_char(c) || c == '.')
        && !name.ends_with('.')
}

/// True for an absolute IRI that is not too long.
#[must_use]
pub fn is_namespace(iri: &str) -> bool {
    iri.len() <= LONGEST_NAMESPACE && oxrdf::NamedNode::new(iri).is_ok()
}

/// The prefixes of a store, by name, and a version that identifies them.
#[derive(Clone, Debug, Default)]
pub struct PrefixTable {
    data: BTreeMap<Box<str>, Box<str>>,
    set: BTreeMap<Box<str>, Box<str>>,
    version: u64,
}

impl PartialEq for PrefixTable {
    /// Compares the prefixes and ignores the versions.
    fn eq(&self, other: &Self) -> bool {
        self.data == other.data && self.set == other.set
    }
}

impl Eq for PrefixTable {}

/// The highest version that a table of this process has. Empty tables have version 0.
static VERSIONS: AtomicU64 = AtomicU64::new(0);

impl PrefixTable {
    /// A table without prefixes.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Checks that a prefix can be set. `name` is without its colon.
    ///
    /// # Errors
    /// [`Error::Usage`] for a name that cannot precede a colon, an IRI that is not absolute, and names and IRIs that
    /// are too long.
    pub fn check(name: &str, iri: &str) -> Result<()> {
        let shown = |text| shortened(text, MOST_SHOWN);
        if !is_prefix_name(name) {
            let name = shown(name);
            return Err(Error::Usage(format!(
                "{name:?} is not the name of a prefix: write letters, digits, - and _, beginning with a letter, at most {LONGEST_PREFIX} bytes"
            )));
        }
        if !is_namespace(iri) {
            let iri = shown(iri);
            return Err(Error::Usage(format!(
                "{iri:?} is not an absolute IRI of at most {LONGEST_NAMESPACE} bytes, such as http://example.org/"
            )));
        }
        Ok(())
    }

    /// The version of the table. Tables of this process with the same version have the same prefixes.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Returns true if there are no prefixes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.data.is_empty() && self.set.is_empty()
    }

    /// Number of different names.
    #[must_use]
    pub fn len(&self) -> usize {
        self.data.len()
            + self
                .set
                .keys()
                .filter(|n| !self.data.contains_key(*n))
                .count()
    }

    /// The IRI of a prefix; `None` unless it was set or declared (common prefixes are not in the table).
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.set
            .get(name)
            .or_else(|| self.data.get(name))
            .map(|iri| &**iri)
    }

    /// The prefixes in effect with their IRIs and origins, ordered by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str, PrefixOrigin)> {
        let mut all: BTreeMap<&str, (&str, PrefixOrigin)> = BTreeMap::new();
        for (list, origin) in [
            (&self.data, PrefixOrigin::Data),
            (&self.set, PrefixOrigin::Set),
        ] {
            all.extend(list.iter().map(|(name, iri)| (&**name, (&**iri, origin))));
        }
        all.into_iter()
            .map(|(name, (iri, origin))| (name, iri, origin))
    }

    /// The names of prefixes; a name that is both set and declared occurs twice.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.set.keys().chain(self.data.keys()).map(|name| &**name)
    }

    /// Prefixes that the data declares, also if their names are set explicitly, ordered by name.
    pub fn data(&self) -> impl Iterator<Item = (&str, &str)> {
        self.data.iter().map(|(name, iri)| (&**name, &**iri))
    }

    /// Prefixes that were set explicitly, ordered by name.
    pub fn set(&self) -> impl Iterator<Item = (&str, &str)> {
        self.set.iter().map(|(name, iri)| (&**name, &**iri))
    }

    /// Of the changes, those that have an effect if all are applied in order.
    #[doc(hidden)]
    #[must_use]
    pub fn effective(&self, changes: impl IntoIterator<Item = PrefixChange>) -> Vec<PrefixChange> {
        // Most uploads declare only known prefixes; then the table is not copied.
        let mut next: Option<Self> = None;
        let mut out = Vec::new();
        for change in changes {
            if !next.as_ref().unwrap_or(self).would_change(&change) {
                continue;
            }
            next.get_or_insert_with(|| self.clone()).make(&change);
            out.push(change);
        }
        out
    }

    /// A new table, with a new version, after these changes in order.
    #[doc(hidden)]
    #[must_use]
    pub fn with<'c>(&self, changes: impl IntoIterator<Item = &'c PrefixChange>) -> Self {
        let mut next = self.clone();
        for change in changes {
            if next.would_change(change) {
                next.make(change);
            }
        }
        next.version = match next.is_empty() {
            true => 0,
            false => VERSIONS.fetch_add(1, Ordering::Relaxed) + 1,
        };
        next
    }

    fn would_change(&self, change: &PrefixChange) -> bool {
        let fits = |name: &str, iri: &str| is_prefix_name(name) && is_namespace(iri);
        match change {
            PrefixChange::Declare(name, iri) => {
                !self.data.contains_key(name) && self.data.len() < MOST_PREFIXES && fits(name, iri)
            }
            PrefixChange::Set(name, iri) => match self.set.get(name) {
                Some(before) => before != iri && fits(name, iri),
                None => self.set.len() < MOST_PREFIXES && fits(name, iri),
            },
            PrefixChange::Remove(name) => {
                self.set.contains_key(name) || self.data.contains_key(name)
            }
        }
    }

    fn make(&mut self, change: &PrefixChange) {
        match change {
            PrefixChange::Declare(name, iri) => {
                self.data.insert(name.clone(), iri.clone());
            }
            PrefixChange::Set(name, iri) => {
                self.set.insert(name.clone(), iri.clone());
            }
            PrefixChange::Remove(name) => {
                if self.set.remove(name).is_none() {
                    self.data.remove(name);
                }
            }
        }
    }
}

/// Position of a declaration: the number of its document, and its number in the document.
pub type PrefixPlace = [u64; 2];

/// Declarations of several documents, which may arrive in any order. Keeps the first declaration of each name by its
/// position, and, of these, the first [`MOST_PREFIXES`].
#[derive(Clone, Debug, Default)]
pub struct DeclaredPrefixes {
    by_name: HashMap<Box<str>, (PrefixPlace, Box<str>)>,
    by_place: BTreeMap<PrefixPlace, Box<str>>,
    bytes: usize,
    left_out: bool,
}

/// Bytes that a declaration occupies in both tables in addition to its texts.
const DECLARATION: usize = 160;

impl DeclaredPrefixes {
    /// Adds a declaration. Ignores names that cannot occur in a query, and names and IRIs that are too long.
    pub fn declare(&mut self, place: PrefixPlace, name: &str, iri: &str) {
        if let Some((before, known)) = self.by_name.get_mut(name) {
            if place < *before && is_namespace(iri) {
                self.by_place.remove(before);
                self.bytes = self.bytes + iri.len() - known.len();
                (*before, *known) = (place, iri.into());
                self.by_place.insert(place, name.into());
            }
            return;
        }
        let full = self.by_place.len() >= MOST_PREFIXES;
        let last = self.by_place.last_key_value();
        if full && last.is_some_and(|last| *last.0 < place) {
            self.left_out = true;
            return;
        }
        if !is_prefix_name(name) || !is_namespace(iri) {
            return;
        }
        self.bytes += 2 * name.len() + iri.len() + DECLARATION;
        self.by_name.insert(name.into(), (place, iri.into()));
        self.by_place.insert(place, name.into());
        if full
            && let Some((_, last)) = self.by_place.pop_last()
            && let Some((_, iri)) = self.by_name.remove(&last)
        {
            self.left_out = true;
            self.bytes -= 2 * last.len() + iri.len() + DECLARATION;
        }
    }

    /// Approximate bytes on the heap.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns true if declarations were dropped because there were too many.
    #[must_use]
    pub fn are_left_out(&self) -> bool {
        self.left_out
    }

    /// Returns true if there are no declarations.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_place.is_empty()
    }

    /// The declarations as changes, ordered by position.
    #[must_use]
    pub fn into_changes(mut self) -> Vec<PrefixChange> {
        let names = self.by_place.into_values();
        names
            .filter_map(|name| {
                let (_, iri) = self.by_name.remove(&name)?;
                Some(PrefixChange::Declare(name, iri))
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn declare(name: &str, iri: &str) -> PrefixChange {
        PrefixChange::Declare(name.into(), iri.into())
    }

    #[test]
    fn names_are_those_of_sparql() {
        for name in ["", "a", "foaf", "a-b", "a.b", "x1", "é", "日本"] {
            assert!(is_prefix_name(name), "{name}");
        }
        for name in ["_a", "1a", "-a", ".a", "a.", "a b", "a:b", "a/b", "a\0"] {
            assert!(!is_prefix_name(name), "{name}");
        }
        assert!(!is_prefix_name(&"a".repeat(LONGEST_PREFIX + 1)));
        assert!(is_namespace("http://e/#") && is_namespace("urn:x:"));
        for iri in ["", "x", "/a", "http://e/ a", "http://e/<", "http://e/\n"] {
            assert!(!is_namespace(iri), "{iri}");
        }
    }

    #[test]
    fn messages_quote_the_beginning_of_what_is_wrong() {
        let long = "x y".repeat(1 << 20);
        for (name, iri) in [(&*long, "http://e/"), ("a", &*long)] {
            let e = PrefixTable::check(name, iri)
                .expect_err("a wrong one")
                .to_string();
            assert!(e.len() < 400 && e.contains('…'), "{e}");
        }
    }

    #[test]
    fn data_declares_first_wins_and_what_is_set_wins_over_it() {
        let table = PrefixTable::new();
        assert_eq!((table.version(), table.len()), (0, 0));
        let table = table.with(&[declare("e", "http://a/"), declare("e", "http://b/")]);
        assert_eq!(table.get("e"), Some("http://a/"));
        assert!(table.version() > 0);
        let set = table.with(&[PrefixChange::Set("e".into(), "http://c/".into())]);
        assert_eq!((set.get("e"), set.len()), (Some("http://c/"), 1));
        assert_eq!(
            set.iter().next(),
            Some(("e", "http://c/", PrefixOrigin::Set))
        );
        assert_ne!(set.version(), table.version());
        let remove = PrefixChange::Remove("e".into());
        let data = set.with(std::slice::from_ref(&remove));
        assert_eq!(data.get("e"), Some("http://a/"));
        let none = data.with(std::slice::from_ref(&remove));
        assert_eq!((none.get("e"), none.version()), (None, 0));
        assert!(none.effective([remove]).is_empty());
        assert!(
            set.effective([
                declare("e", "http://d/"),
                declare("", "x"),
                declare("1", "http://e/")
            ])
            .is_empty()
        );
    }

    #[test]
    fn the_first_of_too_many_are_kept_in_any_order() {
        let all: Vec<(PrefixPlace, String)> = (0..MOST_PREFIXES as u64 + 50)
            .map(|i| ([i % 3, i], format!("p{i}")))
            .collect();
        let kept = |order: &mut dyn Iterator<Item = &(PrefixPlace, String)>| {
            let mut declared = DeclaredPrefixes::default();
            for (place, name) in order {
                declared.declare(*place, name, "http://e/");
            }
            assert!(declared.are_left_out());
            declared.into_changes()
        };
        let one = kept(&mut all.iter());
        assert_eq!(one.len(), MOST_PREFIXES);
        assert_eq!(one, kept(&mut all.iter().rev()));
    }

    proptest! {
        #[test]
        fn a_table_equals_a_simple_model(
            changes in prop::collection::vec((0..3, 0..6u8, 0..4u8), 0..60),
        ) {
            let mut table = PrefixTable::new();
            let (mut data, mut set) = (BTreeMap::new(), BTreeMap::new());
            for (kind, name, iri) in changes {
                let (name, iri) = (format!("p{name}"), format!("http://e/{iri}/"));
                let change = match kind {
                    0 => {
                        data.entry(name.clone()).or_insert(iri.clone());
                        declare(&name, &iri)
                    }
                    1 => {
                        set.insert(name.clone(), iri.clone());
                        PrefixChange::Set((*name).into(), (*iri).into())
                    }
                    _ => {
                        if set.remove(&name).is_none() {
                            data.remove(&name);
                        }
                        PrefixChange::Remove((*name).into())
                    }
                };
                let before = table.clone();
                let effective = before.effective([change.clone()]);
                table = before.with(&[change]);
                prop_assert_eq!(&table, &before.with(&effective));
                prop_assert_eq!(effective.is_empty(), table == before);
                let mut want = data.clone();
                want.extend(set.clone());
                let got: BTreeMap<String, String> =
                    table.iter().map(|(n, i, _)| (n.to_owned(), i.to_owned())).collect();
                prop_assert_eq!(got, want);
            }
        }
    }
}
