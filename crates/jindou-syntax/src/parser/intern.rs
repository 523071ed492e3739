//! Interning of terms: equal tokens share one text, however often they occur.

use super::{Parse, Parser};
use crate::algebra::{Canonical, Literal, NamedNode, Text};
use hashbrown::HashTable;
use oxrdf::vocab::rdf;
use rustc_hash::FxHashMap;

/// Bytes of a table entry and of the structures that it points to, without the text.
const ENTRY: usize = 160;

/// The suffix of a string.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) enum Suffix<'t> {
    Nothing,
    /// The language tag, as written in the text.
    Language(&'t str),
    Datatype(NamedNode),
}

/// Terms that have occurred, by their tokens.
#[derive(Default)]
pub(crate) struct Interned<'t> {
    /// IRIs by their tokens, each with the number of declarations when it was read ([`Interned::declarations`]).
    iris: FxHashMap<&'t str, (u32, NamedNode)>,
    literals: FxHashMap<(&'t str, Suffix<'t>), Literal>,
    /// IRIs that are much longer than their tokens, such as prefixed names: different tokens may stand for the same
    /// IRI.
    long: HashTable<Text>,
    /// `rdf:type` and the like, by [`Word`].
    vocabulary: [Option<NamedNode>; 5],
    /// Number of BASE declarations so far, which change the meaning of `<a>`, and of PREFIX declarations.
    pub(super) bases: u32,
    pub(super) prefixes: u32,
    scratch: Vec<u8>,
}

/// IRIs that have a keyword or a syntax of their own.
#[derive(Clone, Copy)]
pub(super) enum Word {
    Type,
    First,
    Rest,
    Nil,
    Reifies,
}

impl Word {
    fn iri(self) -> &'static str {
        match self {
            Self::Type => rdf::TYPE,
            Self::First => rdf::FIRST,
            Self::Rest => rdf::REST,
            Self::Nil => rdf::NIL,
            Self::Reifies => rdf::REIFIES,
        }
        .as_str()
    }
}

impl Interned<'_> {
    /// The number of declarations so far that may have changed the meaning of this token.
    fn declarations(&self, token: &str) -> u32 {
        if token.starts_with('<') {
            self.bases
        } else {
            self.prefixes
        }
    }
}

impl<'t> Parser<'t, '_> {
    /// The IRI of a token, if it has occurred and no declaration has changed its meaning since.
    pub(super) fn known_iri(&self, token: &str) -> Option<NamedNode> {
        let (declarations, iri) = self.interned.iris.get(token)?;
        (*declarations == self.interned.declarations(token)).then(|| iri.clone())
    }

    /// Stores the IRI of a token. `text` is `<` and the IRI; its bytes have been charged already.
    pub(super) fn intern_iri(&mut self, token: &'t str, text: &str) -> NamedNode {
        let interned = &mut self.interned;
        let text = if text.len() > 2 * token.len() + 64 {
            let hash = Text::hash_of(text);
            let entry = interned.long.entry(hash, |t| **t == *text, Text::hash);
            match entry {
                hashbrown::hash_table::Entry::Occupied(there) => there.get().clone(),
                hashbrown::hash_table::Entry::Vacant(free) => {
                    let new = Text::hashed(text, hash);
                    free.insert(new.clone());
                    new
                }
            }
        } else {
            Text::new(text)
        };
        let iri = NamedNode::of_canonical(text);
        let value = (interned.declarations(token), iri.clone());
        interned.iris.insert(token, value);
        iri
    }

    pub(super) fn word(&mut self, word: Word) -> NamedNode {
        let there = &mut self.interned.vocabulary[word as usize];
        there
            .get_or_insert_with(|| NamedNode::new_unchecked(word.iri()))
            .clone()
    }

    /// The literal of a token and its suffix, if it has occurred.
    pub(super) fn known_literal(&self, key: &(&'t str, Suffix<'t>)) -> Option<Literal> {
        self.interned.literals.get(key).cloned()
    }

    /// Stores a literal, after it has checked that memory for `len` bytes is available. `push` writes the canonical
    /// bytes.
    pub(super) fn intern_literal(
        &mut self,
        key: (&'t str, Suffix<'t>),
        len: usize,
        push: impl FnOnce(&mut Vec<u8>),
    ) -> Parse<Literal> {
        self.room(ENTRY + 2 * len)?;
        let interned = &mut self.interned;
        interned.scratch.clear();
        push(&mut interned.scratch);
        let literal = Literal::of_canonical(Canonical::new(&interned.scratch));
        interned.literals.insert(key, literal.clone());
        if interned.scratch.capacity() > 1 << 16 {
            interned.scratch = vec![];
        }
        Ok(literal)
    }
}
