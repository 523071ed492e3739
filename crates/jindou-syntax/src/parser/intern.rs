//! Terms that the text has had: the same words give the same shared text, however often they stand there.

use super::{Parse, Parser};
use crate::algebra::{Canonical, Literal, NamedNode, Text};
use hashbrown::HashTable;
use oxrdf::vocab::rdf;
use rustc_hash::FxHashMap;

/// Bytes of an entry of a table with what it points to, without the text.
const ENTRY: usize = 160;

/// The value after a string.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) enum Suffix<'t> {
    Nothing,
    /// The language, as the text has it.
    Language(&'t str),
    Datatype(NamedNode),
}

/// Terms by the tokens that gave them.
#[derive(Default)]
pub(crate) struct Interned<'t> {
    /// IRIs by their tokens, each with the number of the declarations it was read under.
    iris: FxHashMap<&'t str, (u32, NamedNode)>,
    literals: FxHashMap<(&'t str, Suffix<'t>), Literal>,
    /// IRIs that are much longer than their tokens: several tokens may give one.
    long: HashTable<Text>,
    /// Of `rdf:type` and the like, by [`Word`].
    vocabulary: [Option<NamedNode>; 5],
    /// Declarations so far: of bases, which change what `<a>` means, and of prefixes.
    pub(super) bases: u32,
    pub(super) prefixes: u32,
    scratch: Vec<u8>,
}

/// IRIs that have a word or a sign of their own.
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
    /// Number of the declarations that say what this token means.
    fn declarations(&self, token: &str) -> u32 {
        if token.starts_with('<') {
            self.bases
        } else {
            self.prefixes
        }
    }
}

impl<'t> Parser<'t, '_> {
    /// The IRI that a token gave before.
    pub(super) fn known_iri(&self, token: &str) -> Option<NamedNode> {
        let (declarations, iri) = self.interned.iris.get(token)?;
        (*declarations == self.interned.declarations(token)).then(|| iri.clone())
    }

    /// Keeps what a token gives. `text` begins with `<`; its bytes were charged.
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

    /// The literal that these words gave before.
    pub(super) fn known_literal(&self, key: &(&'t str, Suffix<'t>)) -> Option<Literal> {
        self.interned.literals.get(key).cloned()
    }

    /// Keeps a literal; charges its bytes before it takes them.
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
