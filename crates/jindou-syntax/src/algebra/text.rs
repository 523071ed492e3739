//! Texts and bytes that are stored once, however many terms share them.

use rustc_hash::FxHasher;
use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

fn hash_of(bytes: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(bytes);
    hasher.finish()
}

/// A shared string with its hash. Cloning, hashing and most comparisons take constant time, whatever the length is.
#[derive(Clone)]
pub struct Text {
    text: Arc<str>,
    hash: u64,
}

impl Text {
    /// Copies the text. O(length).
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self {
            hash: hash_of(text.as_bytes()),
            text: text.into(),
        }
    }

    pub(crate) fn hash_of(text: &str) -> u64 {
        hash_of(text.as_bytes())
    }

    pub(crate) fn hashed(text: &str, hash: u64) -> Self {
        Self {
            text: text.into(),
            hash,
        }
    }

    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The text as an `Arc`, without copying.
    #[must_use]
    pub fn shared(&self) -> Arc<str> {
        Arc::clone(&self.text)
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl AsRef<str> for Text {
    fn as_ref(&self) -> &str {
        &self.text
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self::new(&text)
    }
}

impl From<Text> for String {
    fn from(text: Text) -> Self {
        text.as_str().to_owned()
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash && (Arc::ptr_eq(&self.text, &other.text) || self.text == other.text)
    }
}

impl Eq for Text {}

impl PartialEq<str> for Text {
    fn eq(&self, other: &str) -> bool {
        *self.text == *other
    }
}

impl PartialEq<&str> for Text {
    fn eq(&self, other: &&str) -> bool {
        *self.text == **other
    }
}

impl PartialEq<String> for Text {
    fn eq(&self, other: &String) -> bool {
        *self.text == **other
    }
}

impl PartialOrd for Text {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Text {
    fn cmp(&self, other: &Self) -> Ordering {
        if Arc::ptr_eq(&self.text, &other.text) {
            return Ordering::Equal;
        }
        self.text.cmp(&other.text)
    }
}

impl Hash for Text {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.text, f)
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

/// The canonical bytes of a term ([`jindou_model::term`]), shared, with their hash. Cloning, hashing and most
/// comparisons take constant time.
#[derive(Clone)]
pub struct Canonical {
    bytes: SharedBytes,
    hash: u64,
}

#[derive(Clone)]
enum SharedBytes {
    /// The bytes of an IRI, which share the memory of a [`Text`].
    Text(Arc<str>),
    Raw(Arc<[u8]>),
}

impl Canonical {
    /// Copies the bytes. O(length).
    #[must_use]
    pub fn new(bytes: &[u8]) -> Self {
        Self {
            hash: hash_of(bytes),
            bytes: SharedBytes::Raw(bytes.into()),
        }
    }

    /// The bytes of a text that has the canonical form already; shares its memory.
    pub(crate) fn of_text(text: &Text) -> Self {
        Self {
            bytes: SharedBytes::Text(text.shared()),
            hash: text.hash,
        }
    }

    /// The bytes as text; `None` if they are not UTF-8. O(1) if they share the memory of a text.
    pub(crate) fn to_text(&self) -> Option<Text> {
        let text = match &self.bytes {
            SharedBytes::Text(text) => Arc::clone(text),
            SharedBytes::Raw(bytes) => std::str::from_utf8(bytes).ok()?.into(),
        };
        Some(Text {
            text,
            hash: self.hash,
        })
    }
}

impl Deref for Canonical {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.bytes {
            SharedBytes::Text(text) => text.as_bytes(),
            SharedBytes::Raw(bytes) => bytes,
        }
    }
}

impl AsRef<[u8]> for Canonical {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl From<Vec<u8>> for Canonical {
    fn from(bytes: Vec<u8>) -> Self {
        Self::new(&bytes)
    }
}

impl PartialEq for Canonical {
    fn eq(&self, other: &Self) -> bool {
        let (a, b): (&[u8], &[u8]) = (self, other);
        self.hash == other.hash && (std::ptr::eq(a, b) || a == b)
    }
}

impl Eq for Canonical {}

impl PartialOrd for Canonical {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Canonical {
    fn cmp(&self, other: &Self) -> Ordering {
        let (a, b): (&[u8], &[u8]) = (self, other);
        if std::ptr::eq(a, b) {
            return Ordering::Equal;
        }
        a.cmp(b)
    }
}

impl Hash for Canonical {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

impl fmt::Debug for Canonical {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match String::from_utf8_lossy(self) {
            Cow::Borrowed(text) => fmt::Debug::fmt(text, f),
            Cow::Owned(text) => fmt::Debug::fmt(&text, f),
        }
    }
}
