//! Contexts: what the terms of a document mean (JSON-LD 1.1 API, 4).
//!
//! A context that extends another one is a layer on top of it with only the terms that differ, so that a small context
//! on top of a large one costs little.

mod define;
mod iri;
mod process;

pub(super) use iri::is_iri_or_blank;
pub(super) use process::{Contexts, Options};

use super::json::JsonText;
use oxiri::Iri;
use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// Largest number of layers; beyond it, a context is flattened into one layer.
const MAX_LAYERS: u32 = 32;
/// Estimated bytes of a term's definition, without its strings.
const TERM: u64 = 300;

/// The keywords that keys and terms may expand to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Keyword {
    Context,
    Direction,
    Graph,
    Id,
    Included,
    Index,
    Json,
    Language,
    List,
    Nest,
    None,
    Reverse,
    Set,
    Type,
    Value,
    Vocab,
    /// A keyword that has a meaning only in contexts or frames.
    Other,
}

impl Keyword {
    pub(super) fn parse(text: &str) -> Option<Self> {
        Some(match text.strip_prefix('@')? {
            "context" => Self::Context,
            "direction" => Self::Direction,
            "graph" => Self::Graph,
            "id" => Self::Id,
            "included" => Self::Included,
            "index" => Self::Index,
            "json" => Self::Json,
            "language" => Self::Language,
            "list" => Self::List,
            "nest" => Self::Nest,
            "none" => Self::None,
            "reverse" => Self::Reverse,
            "set" => Self::Set,
            "type" => Self::Type,
            "value" => Self::Value,
            "vocab" => Self::Vocab,
            "base" | "container" | "import" | "prefix" | "propagate" | "protected" | "version" => {
                Self::Other
            }
            _ => return None,
        })
    }
}

/// The expansion of a name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Name {
    /// A name to be ignored.
    Null,
    Keyword(Keyword),
    /// An IRI, a blank node identifier, or a name that could not be expanded.
    Text(Rc<str>),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum TypeMapping {
    Id,
    Vocab,
    Json,
    None,
    Iri(Rc<str>),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Direction {
    Ltr,
    Rtl,
}

/// The containers of a term, as a set.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Container(u8);

impl Container {
    pub(super) const GRAPH: Self = Self(1);
    pub(super) const ID: Self = Self(2);
    pub(super) const INDEX: Self = Self(4);
    pub(super) const LANGUAGE: Self = Self(8);
    pub(super) const LIST: Self = Self(16);
    pub(super) const SET: Self = Self(32);
    pub(super) const TYPE: Self = Self(64);

    pub(super) const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// A context inside of a term's definition, with the base of its relative references.
#[derive(Debug)]
pub(super) struct ScopedContext {
    pub(super) json: JsonText,
    pub(super) source: Source,
}

/// The document that contains a context.
#[derive(Clone, Debug)]
pub(super) struct Source {
    /// The IRI of the document; `None` for one without a base.
    pub(super) base: Option<Rc<Iri<String>>>,
    /// True for a document that was loaded because another one refers to it. Messages cannot show a position in it.
    pub(super) remote: bool,
}

/// A term's definition.
#[derive(Debug)]
pub(super) struct Term {
    pub(super) name: Name,
    pub(super) prefix: bool,
    protected: bool,
    pub(super) reverse: bool,
    pub(super) type_mapping: Option<TypeMapping>,
    /// `None`: not specified. `Some(None)`: explicitly without a language.
    pub(super) language: Option<Option<Rc<str>>>,
    pub(super) direction: Option<Option<Direction>>,
    pub(super) container: Container,
    pub(super) index: Option<Rc<str>>,
    pub(super) nest: Option<Rc<str>>,
    pub(super) context: Option<Rc<ScopedContext>>,
}

impl Term {
    fn new(protected: bool) -> Self {
        Self {
            name: Name::Null,
            prefix: false,
            protected,
            reverse: false,
            type_mapping: None,
            language: None,
            direction: None,
            container: Container::default(),
            index: None,
            nest: None,
            context: None,
        }
    }

    /// True if two definitions mean the same, apart from being protected.
    fn same(&self, other: &Self) -> bool {
        let contexts = match (&self.context, &other.context) {
            (None, None) => true,
            (Some(a), Some(b)) => a.json.root().same(b.json.root()),
            _ => false,
        };
        contexts
            && self.name == other.name
            && self.prefix == other.prefix
            && self.reverse == other.reverse
            && self.type_mapping == other.type_mapping
            && self.language == other.language
            && self.direction == other.direction
            && self.container == other.container
            && self.index == other.index
            && self.nest == other.nest
    }
}

/// Total bytes of all contexts that are in memory.
pub(super) type HeldBytes = Rc<Cell<u64>>;

/// A processed context.
#[derive(Debug)]
pub(super) struct Context {
    /// The layer below.
    below: Option<Rc<Self>>,
    layers: u32,
    /// The terms of this layer. `None` hides a term of a lower layer.
    terms: HashMap<Rc<str>, Option<Rc<Term>>>,
    pub(super) base: Option<Rc<Iri<String>>>,
    vocab: Option<Rc<str>>,
    pub(super) language: Option<Rc<str>>,
    pub(super) direction: Option<Direction>,
    /// The context that applies again to nodes below the current one, if this context does not propagate.
    pub(super) previous: Option<Rc<Self>>,
    /// True if some term may stand for the keyword `@type`.
    pub(super) has_type_alias: bool,
    /// True if some term may have a scoped context.
    pub(super) has_scoped: bool,
    has_protected: bool,
    bytes: u64,
    held: HeldBytes,
}

impl Drop for Context {
    fn drop(&mut self) {
        self.held.set(self.held.get() - self.bytes);
    }
}

impl Context {
    /// The context of a document before its own contexts are applied.
    pub(super) fn new(base: Option<Rc<Iri<String>>>, held: &HeldBytes) -> Self {
        let mut new = Self {
            below: None,
            layers: 0,
            terms: HashMap::new(),
            base,
            vocab: None,
            language: None,
            direction: None,
            previous: None,
            has_type_alias: false,
            has_scoped: false,
            has_protected: false,
            bytes: 0,
            held: Rc::clone(held),
        };
        new.hold(size_of::<Self>() as u64);
        new
    }

    /// A new layer without terms on top of a context.
    fn above(below: &Rc<Self>) -> Self {
        let mut new = Self::new(below.base.clone(), &below.held);
        new.vocab.clone_from(&below.vocab);
        new.language.clone_from(&below.language);
        new.direction = below.direction;
        new.previous.clone_from(&below.previous);
        new.has_type_alias = below.has_type_alias;
        new.has_scoped = below.has_scoped;
        new.has_protected = below.has_protected;
        if below.layers < MAX_LAYERS {
            new.layers = below.layers + 1;
            new.below = Some(Rc::clone(below));
        } else {
            for (name, term) in below.all() {
                new.insert(Rc::clone(name), Some(Rc::clone(term)));
            }
        }
        new
    }

    fn hold(&mut self, bytes: u64) {
        self.bytes += bytes;
        self.held.set(self.held.get() + bytes);
    }

    /// The definition of a term.
    #[inline]
    pub(super) fn term(&self, name: &str) -> Option<&Rc<Term>> {
        let mut layer = self;
        loop {
            if let Some(term) = layer.terms.get(name) {
                return term.as_ref();
            }
            layer = layer.below.as_ref()?;
        }
    }

    fn insert(&mut self, name: Rc<str>, term: Option<Rc<Term>>) {
        let mut bytes = name.len() as u64 + TERM;
        if let Some(term) = &term {
            self.has_type_alias |= term.name == Name::Keyword(Keyword::Type);
            self.has_protected |= term.protected;
            if let Some(context) = &term.context {
                self.has_scoped = true;
                bytes += context.json.held();
            }
            if let Name::Text(text) = &term.name {
                bytes += text.len() as u64;
            }
        }
        if self.terms.insert(name, term).is_none() {
            self.hold(bytes);
        }
    }

    /// All terms that are defined, in this layer or below it.
    fn all(&self) -> impl Iterator<Item = (&Rc<str>, &Rc<Term>)> {
        let mut seen = HashSet::new();
        let layers = std::iter::successors(Some(self), |layer| layer.below.as_deref());
        layers
            .flat_map(|layer| &layer.terms)
            .filter(move |(name, _)| seen.insert(&**name))
            .filter_map(|(name, term)| Some((name, term.as_ref()?)))
    }

    /// The name of some protected term, if there is one.
    fn protected(&self) -> Option<&str> {
        if !self.has_protected {
            return None;
        }
        let found = self.all().find(|(_, term)| term.protected);
        found.map(|(name, _)| &**name)
    }

    /// The terms of this layer that may be used as prefixes, with their IRIs.
    pub(super) fn prefixes(&self) -> impl Iterator<Item = (&str, &str)> {
        self.terms.iter().filter_map(|(name, term)| {
            let term = term.as_ref().filter(|term| term.prefix)?;
            match &term.name {
                Name::Text(iri) => Some((&**name, &**iri)),
                _ => None,
            }
        })
    }
}
