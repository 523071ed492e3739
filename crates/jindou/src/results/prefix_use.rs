//! The prefixes that a document has declared, and those that its next statements need.

use super::Prefixes;
use oxrdf::vocab::{rdf, xsd};
use oxrdf::{GraphNameRef, LiteralRef, NamedOrBlankNodeRef, QuadRef, TermRef};
use rustc_hash::FxHashSet;
use std::collections::{BTreeMap, BTreeSet};

/// Decides which prefixes to declare, from the statements that use them.
pub(super) struct PrefixUse {
    prefixes: Prefixes,
    /// Prefixes that are declared, or that were refused because [`MOST`] were declared already.
    declared: BTreeSet<String>,
    /// Number of prefixes that were declared because a statement uses them.
    lines: usize,
    /// Prefixes to declare before the next statement; true for those that the caller requested whether they are used or
    /// not.
    wanted: BTreeMap<String, bool>,
    /// Namespaces that need no further declaration, since their prefix was declared or they have none.
    settled: FxHashSet<Box<str>>,
}

/// Largest number of prefixes that a document declares because statements use them. Limited, because each IRI is
/// compared with all declared prefixes.
const MOST: usize = 256;

/// Largest size of `settled`, which is a cache that avoids searching for the prefix of an IRI again.
const MOST_SETTLED: usize = 4096;

impl PrefixUse {
    pub fn new(prefixes: Prefixes) -> Self {
        Self {
            prefixes,
            declared: BTreeSet::new(),
            lines: 0,
            wanted: BTreeMap::new(),
            settled: FxHashSet::default(),
        }
    }

    /// Requests the declaration of a prefix, whether it is used or not.
    pub fn want(&mut self, name: String) {
        self.wanted.insert(name, true);
    }

    /// Requests the declaration of the prefixes that a statement uses.
    pub fn note(&mut self, quad: QuadRef<'_>) {
        if self.prefixes.is_empty() {
            return;
        }
        let mut uses = |iri: &str| self.uses(iri);
        if let NamedOrBlankNodeRef::NamedNode(n) = quad.subject {
            uses(n.as_str());
        }
        if quad.predicate != rdf::TYPE {
            uses(quad.predicate.as_str());
        }
        match quad.object {
            TermRef::NamedNode(n) => uses(n.as_str()),
            TermRef::Literal(l) if !is_bare(l) => uses(l.datatype().as_str()),
            _ => {}
        }
        if let GraphNameRef::NamedNode(n) = quad.graph_name {
            uses(n.as_str());
        }
    }

    /// Requests the declaration of the prefix that abbreviates an IRI, unless it is declared or there is none.
    fn uses(&mut self, iri: &str) {
        let end = memchr::memrchr3(b'#', b'/', b':', iri.as_bytes()).map_or(0, |at| at + 1);
        let space = &iri[..end];
        if self.settled.contains(space) {
            return;
        }
        if let Some((name, _)) = self.prefixes.split(iri)
            && !self.declared.contains(name)
        {
            self.wanted.entry(name.to_owned()).or_default();
            return;
        }
        let is_settled = |name: &str| self.declared.contains(name);
        if self.settled.len() < MOST_SETTLED && self.prefixes.name_of(space).is_none_or(is_settled)
        {
            let is_longer =
                |(_, other): (&str, &str)| other.len() > end && other.starts_with(space);
            if !self.prefixes.iter().any(is_longer) {
                self.settled.insert(space.into());
            }
        }
    }

    /// Removes and returns the requested prefixes with their IRIs, sorted by name. From now on they count as declared.
    pub fn take_wanted(&mut self) -> Vec<(String, String)> {
        let mut taken = Vec::new();
        for (name, always) in std::mem::take(&mut self.wanted) {
            if (always || self.lines < MOST)
                && let Some(iri) = self.prefixes.iri(&name)
            {
                taken.push((name.clone(), iri.to_owned()));
                self.lines += usize::from(!always);
            }
            self.declared.insert(name);
        }
        taken
    }
}

/// True if Turtle writes a literal without its datatype's IRI.
fn is_bare(literal: LiteralRef<'_>) -> bool {
    let bare = [
        xsd::STRING,
        xsd::BOOLEAN,
        xsd::INTEGER,
        xsd::DECIMAL,
        xsd::DOUBLE,
    ];
    literal.language().is_some() || bare.contains(&literal.datatype())
}
