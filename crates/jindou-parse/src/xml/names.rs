//! Namespaces: the bindings of prefixes that are in scope.

use std::collections::HashMap;
use std::ops::Range;

/// The namespace to which the prefix `xml` is always bound.
pub const XML: &str = "http://www.w3.org/XML/1998/namespace";
/// The namespace of `xmlns`, to which no prefix may be bound.
pub(crate) const XMLNS: &str = "http://www.w3.org/2000/xmlns/";

/// Up to this many bindings are searched linearly; more are looked up in a map.
const FEW: usize = 16;

/// In place of a binding's number: the name has no namespace.
pub(crate) const NONE: u32 = u32::MAX;

/// The bindings in scope, the innermost last.
pub(crate) struct Bindings {
    text: String,
    list: Vec<PrefixBinding>,
    /// The last binding of each prefix; only has those after the first [`FEW`] bindings.
    index: HashMap<Box<str>, u32>,
}

struct PrefixBinding {
    /// Where its text begins, which is the prefix followed by the namespace.
    start: usize,
    prefix: usize,
    uri: usize,
    /// The number that `index` had for this prefix before.
    shadowed: Option<u32>,
}

impl Bindings {
    pub(crate) fn new() -> Self {
        let mut new = Self {
            text: String::new(),
            list: Vec::new(),
            index: HashMap::new(),
        };
        new.declare("xml", XML);
        new
    }

    /// Number of bindings in scope.
    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    /// Bytes of memory in use.
    pub(crate) fn held(&self) -> usize {
        self.text.capacity()
            + self.list.capacity() * size_of::<PrefixBinding>()
            + self.index.capacity() * 64
    }

    pub(crate) fn declare(&mut self, prefix: &str, uri: &str) {
        let start = self.text.len();
        self.text.push_str(prefix);
        self.text.push_str(uri);
        let number = self.list.len();
        let shadowed = match number < FEW {
            true => None,
            false => self.index.insert(prefix.into(), number as u32),
        };
        self.list.push(PrefixBinding {
            start,
            prefix: prefix.len(),
            uri: uri.len(),
            shadowed,
        });
    }

    /// Ends the scope of all bindings except the first `len`.
    pub(crate) fn truncate(&mut self, len: usize) {
        while self.list.len() > len.max(1) {
            let number = self.list.len() - 1;
            if number >= FEW {
                let prefix = self.prefix(number as u32).to_owned();
                match self.list.last().and_then(|b| b.shadowed) {
                    Some(before) => self.index.insert(prefix.into(), before),
                    None => self.index.remove(prefix.as_str()),
                };
            }
            if let Some(last) = self.list.pop() {
                self.text.truncate(last.start);
            }
        }
    }

    /// The number of the binding of a prefix (empty for the default namespace); `None` if it has none.
    #[inline]
    pub(crate) fn find(&self, prefix: &str) -> Option<u32> {
        if self.list.len() > FEW
            && let Some(&found) = self.index.get(prefix)
        {
            return Some(found);
        }
        let few = self.list.len().min(FEW);
        let is_it = |b: &PrefixBinding| {
            b.prefix == prefix.len()
                && self.text.as_bytes().get(b.prefix_range()) == Some(prefix.as_bytes())
        };
        let found = self.list.get(..few)?.iter().rposition(is_it);
        found.map(|n| n as u32)
    }

    fn prefix(&self, number: u32) -> &str {
        let binding = self.list.get(number as usize);
        binding.map_or("", |b| &self.text[b.prefix_range()])
    }

    /// The namespace of a binding; empty if `number` is [`NONE`].
    #[inline]
    pub(crate) fn uri(&self, number: u32) -> &str {
        let binding = self.list.get(number as usize);
        binding.map_or("", |b| &self.text[b.uri_range()])
    }
}

impl PrefixBinding {
    #[inline(always)]
    fn prefix_range(&self) -> Range<usize> {
        self.start..self.start + self.prefix
    }

    #[inline(always)]
    fn uri_range(&self) -> Range<usize> {
        let start = self.start + self.prefix;
        start..start + self.uri
    }
}

/// The reason why a declaration of a namespace is not allowed; `None` if it is.
pub(crate) fn refused(prefix: &str, uri: &str) -> Option<&'static str> {
    match (prefix, uri) {
        ("xml", XML) => None,
        ("xml", _) => Some("the prefix `xml` may not be bound to another namespace than its own"),
        ("xmlns", _) => Some("the prefix `xmlns` may not be declared"),
        (_, XML) => {
            Some("the namespace of `xml` may not have another prefix, nor be the default one")
        }
        (_, XMLNS) => Some("the namespace of `xmlns` may not be declared"),
        ("", _) => None,
        (_, "") => Some("the namespace of a prefix may not be empty"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inner_bindings_shadow_outer_ones() {
        // Also with so many bindings that the index is used.
        for more in [0, 10, 40] {
            let mut bindings = Bindings::new();
            for i in 0..more {
                bindings.declare(&format!("x{i}"), "u:x");
            }
            let uri = |b: &Bindings, prefix: &str| b.find(prefix).map(|n| b.uri(n).to_owned());
            bindings.declare("a", "u:1");
            let outer = bindings.len();
            for round in 0..3 {
                bindings.declare("a", &format!("u:2{round}"));
                bindings.declare("", "u:d");
                bindings.declare("a", "u:3");
                assert_eq!(uri(&bindings, "a").as_deref(), Some("u:3"));
                bindings.truncate(outer + 2);
                assert_eq!(uri(&bindings, "a"), Some(format!("u:2{round}")));
                assert_eq!(uri(&bindings, "").as_deref(), Some("u:d"));
                bindings.truncate(outer);
                assert_eq!(uri(&bindings, "a").as_deref(), Some("u:1"));
                assert_eq!(uri(&bindings, ""), None);
            }
            bindings.truncate(0);
            assert_eq!(uri(&bindings, "a"), None);
            assert_eq!(uri(&bindings, "x3"), None);
            assert_eq!(uri(&bindings, "xml").as_deref(), Some(XML));
        }
    }
}
