//! Labels of blank nodes: distinct between documents, and the same each time that a document is read.
//!
//! A label's scope is its document, so equal labels in two documents of one load denote two nodes. With `N` the number
//! of the document:
//!
//! | in the text | one document | several documents |
//! |---|---|---|
//! | `_:label` | `_:label` | `_:dN.label` |
//! | `_:dK.rest` (looks like a generated one) | `_:dN.dK.rest` | `_:dN.dK.rest` |
//! | a node without label (`[]`, lists, …) | `_:dN..C` | `_:dN..C` |
//!
//! `C` counts the document's unlabelled nodes in the order of their first use. Labels cannot clash: a label never
//! starts with a dot, so `dN.` + label is never `dN..C`; and a label is kept unchanged only when it does not start with
//! `dK.`.

use rustc_hash::FxHashMap;
use std::io::Write;

/// The labels of a document that are used unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeptLabels {
    None,
    /// Labels that do not look like generated ones. For the only document of a load.
    Unlike,
    /// All labels, since the document's number is random, so that no label can look like a generated one.
    All,
}

/// Assigns the labels of one document.
pub(crate) struct LabelScope {
    prefix: Vec<u8>,
    keep: KeptLabels,
    /// Unlabelled nodes: the number that identifies the node to the parser → the counter.
    anonymous: FxHashMap<u128, u32>,
    /// Labels that the syntax does not allow but a lenient parser accepted, and XML names that are not valid labels →
    /// the counter.
    odd: FxHashMap<String, u32>,
    next: u32,
}

impl LabelScope {
    /// The labels of document number `document`.
    pub(crate) fn new(document: u64, keep: KeptLabels) -> Self {
        Self {
            prefix: format!("_:d{document}.").into_bytes(),
            keep,
            anonymous: FxHashMap::default(),
            odd: FxHashMap::default(),
            next: 0,
        }
    }

    /// True if a label is used unchanged.
    pub(crate) fn keeps(&self, label: &[u8]) -> bool {
        match self.keep {
            KeptLabels::None => false,
            KeptLabels::Unlike => !looks_scoped(label),
            KeptLabels::All => true,
        }
    }

    /// Appends the canonical bytes of a valid label.
    pub(crate) fn push(&self, label: &[u8], out: &mut Vec<u8>) {
        if self.keeps(label) {
            out.extend_from_slice(b"_:");
        } else {
            out.extend_from_slice(&self.prefix);
        }
        out.extend_from_slice(label);
    }

    /// Appends the canonical bytes of a node from a parser, which may be unlabelled.
    ///
    /// The parsers name unlabelled nodes by random 128-bit numbers in hexadecimal that start with a letter. A label in
    /// the text that has this form gets a number as well, and still denotes one node.
    pub(crate) fn push_parsed(&mut self, node: &oxrdf::BlankNode, out: &mut Vec<u8>) {
        let label = node.as_str();
        let first = label.as_bytes().first().copied().unwrap_or(b'.');
        let counter = match node.as_ref().unique_id() {
            Some(id) if id > u128::from(u64::MAX) && first.is_ascii_lowercase() => {
                let next = &mut self.next;
                *self.anonymous.entry(id).or_insert_with(|| {
                    *next += 1;
                    *next - 1
                })
            }
            _ if matches!(first, b'.' | b'-') || oxrdf::BlankNode::new(label).is_err() => {
                let next = &mut self.next;
                *self.odd.entry(label.to_owned()).or_insert_with(|| {
                    *next += 1;
                    *next - 1
                })
            }
            _ => return self.push(label.as_bytes(), out),
        };
        self.push_number(counter, out);
    }

    /// Appends the canonical bytes of a node whose label is an XML name.
    pub(crate) fn push_name(&mut self, label: &str, out: &mut Vec<u8>) {
        // Labels may not end with a dot.
        if oxrdf::BlankNodeRef::new(label).is_ok() {
            return self.push(label.as_bytes(), out);
        }
        let next = &mut self.next;
        let counter = *self.odd.entry(label.to_owned()).or_insert_with(|| {
            *next += 1;
            *next - 1
        });
        self.push_number(counter, out);
    }

    /// Appends the canonical bytes of a new node without a label.
    pub(crate) fn push_fresh(&mut self, out: &mut Vec<u8>) {
        let counter = self.next;
        self.next += 1;
        self.push_number(counter, out);
    }

    fn push_number(&self, counter: u32, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.prefix);
        // Writing to a Vec cannot fail.
        let _ = write!(out, ".{counter}");
    }
}

/// True for `d`, digits, a dot: the form of generated labels.
fn looks_scoped(label: &[u8]) -> bool {
    if label.first() != Some(&b'd') {
        return false;
    }
    let digits = label[1..].iter().take_while(|b| b.is_ascii_digit()).count();
    digits > 0 && label.get(1 + digits) == Some(&b'.')
}

#[cfg(test)]
mod tests {
    use super::*;
    use oxrdf::BlankNode;

    fn pushed(scope: &mut LabelScope, node: &BlankNode) -> String {
        let mut out = vec![];
        scope.push_parsed(node, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn labels_are_kept_only_when_nothing_can_clash() {
        let mut one = LabelScope::new(0, KeptLabels::Unlike);
        let anonymous = BlankNode::default();
        assert_eq!(pushed(&mut one, &BlankNode::new("b1").unwrap()), "_:b1");
        assert_eq!(pushed(&mut one, &anonymous), "_:d0..0");
        assert_eq!(pushed(&mut one, &BlankNode::default()), "_:d0..1");
        assert_eq!(pushed(&mut one, &anonymous), "_:d0..0");
        assert_eq!(
            pushed(&mut one, &BlankNode::new("d0..0").unwrap()),
            "_:d0.d0..0"
        );
        assert_eq!(pushed(&mut one, &BlankNode::new("d0").unwrap()), "_:d0");
        let mut third = LabelScope::new(3, KeptLabels::None);
        assert_eq!(
            pushed(&mut third, &BlankNode::new("b1").unwrap()),
            "_:d3.b1"
        );
        assert_eq!(
            pushed(&mut third, &BlankNode::new_unchecked(".x")),
            "_:d3..0"
        );
        assert_eq!(pushed(&mut third, &anonymous), "_:d3..1");
        let mut all = LabelScope::new(7, KeptLabels::All);
        assert_eq!(
            pushed(&mut all, &BlankNode::new("d0..0").unwrap()),
            "_:d0..0"
        );
        assert_eq!(pushed(&mut all, &anonymous), "_:d7..0");
        for _ in 0..1000 {
            assert!(pushed(&mut third, &BlankNode::default()).starts_with("_:d3.."));
        }
    }
}
