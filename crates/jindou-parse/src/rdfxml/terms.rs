//! Terms of an RDF/XML document as canonical bytes: IRIs, resolved against the base, language tags and blank nodes.

use super::frames::{ElementScope, TextDirection};
use super::{Meaning, StatementState, Stray, too_deep};
use crate::chars;
use crate::line::MAX_NESTING;
use jindou_model::iri::resolve_into;
use jindou_model::{Result, term};
use std::collections::HashSet;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

pub(super) const RDF: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#";

/// A term of an open element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ElementTerm {
    Absent,
    /// A range of [`StatementState::arena`].
    At {
        start: u32,
        len: u32,
    },
    /// A term of the RDF vocabulary, as canonical bytes.
    Word(&'static str),
    /// An invalid term, by its number in [`StatementState::bads`].
    Bad(u32),
}

impl ElementTerm {
    pub(super) fn is_there(self) -> bool {
        self != Self::Absent
    }

    pub(super) fn lost(self) -> Option<u32> {
        match self {
            Self::Bad(number) => Some(number),
            _ => None,
        }
    }

    /// The canonical bytes; empty if there are none.
    #[inline]
    pub(super) fn bytes(self, arena: &[u8]) -> &[u8] {
        match self {
            Self::At { start, len } => arena
                .get(start as usize..(start + len) as usize)
                .unwrap_or_default(),
            Self::Word(word) => word.as_bytes(),
            Self::Absent | Self::Bad(_) => &[],
        }
    }
}

/// Terms of the RDF vocabulary.
pub(super) mod word {
    use super::ElementTerm;

    macro_rules! words {
        ($($name:ident = $local:literal),* $(,)?) => {
            $(pub(in super::super) const $name: ElementTerm =
                ElementTerm::Word(concat!("<http://www.w3.org/1999/02/22-rdf-syntax-ns#", $local));)*
        };
    }
    words! {
        TYPE = "type",
        FIRST = "first",
        REST = "rest",
        NIL = "nil",
        STATEMENT = "Statement",
        SUBJECT = "subject",
        PREDICATE = "predicate",
        OBJECT = "object",
        REIFIES = "reifies",
    }
}

/// The values of `rdf:ID` so far, as 128-bit hashes with random keys, so that a document cannot be made to collide.
#[derive(Default)]
pub(super) struct Ids {
    seen: HashSet<(u64, u64)>,
    keys: (RandomState, RandomState),
}

impl Ids {
    /// True if an IRI was not seen before.
    fn is_new(&mut self, iri: &[u8]) -> bool {
        let (one, two) = &self.keys;
        self.seen.insert((one.hash_one(iri), two.hash_one(iri)))
    }

    pub(super) fn held(&self) -> usize {
        self.seen.capacity() * 18
    }
}

impl StatementState<'_, '_> {
    /// Position in the arena at which the next term begins.
    fn begin(&self) -> usize {
        self.arena.len()
    }

    pub(super) fn since(&mut self, start: usize) -> Meaning<ElementTerm> {
        let end = self.arena.len();
        match u32::try_from(end) {
            Ok(end) => Ok(ElementTerm::At {
                start: start as u32,
                len: end - start as u32,
            }),
            Err(_) => Err(Stray(
                "the terms of open elements are longer than 4 GiB, expected shorter ones".into(),
            )),
        }
    }

    /// Resolves an IRI reference against the base in scope.
    pub(super) fn iri(&mut self, written: &str, scope: &ElementScope) -> Meaning<ElementTerm> {
        let start = self.begin();
        if chars::is_plain_iri(written.as_bytes()) {
            term::push_iri(written, &mut self.arena);
            return self.since(start);
        }
        self.resolved.clear();
        let base = scope.bases.checked_sub(1).and_then(|n| self.bases.get(n));
        let resolved = match base {
            Some(Ok(base)) => {
                resolve_into(base, written, &mut self.resolved).map_err(|e| e.to_string())
            }
            // An absolute IRI is valid even if the base is not.
            base => match (oxiri::Iri::parse(written), base) {
                (Ok(_), _) => {
                    self.resolved.push_str(written);
                    Ok(())
                }
                (Err(_), Some(Err(number))) if oxiri::IriRef::parse(written).is_ok() => {
                    return Ok(ElementTerm::Bad(*number));
                }
                (Err(e), _) => Err(match oxiri::IriRef::parse(written) {
                    Ok(_) => "it is relative and there is no base".to_owned(),
                    Err(_) => e.to_string(),
                }),
            },
        };
        match resolved {
            Ok(()) => {
                term::push_iri(&self.resolved, &mut self.arena);
                self.since(start)
            }
            Err(e) => Ok(self.bad(format!("`{}` is not a valid IRI ({e}), expected an absolute IRI or one that is relative to the base", shortened(written)))),
        }
    }

    /// The IRI of an XML name: its namespace followed by its local part.
    pub(super) fn name(&mut self, name: &crate::xml::Name<'_>) -> Meaning<ElementTerm> {
        let start = self.begin();
        self.arena.push(term::IRI);
        self.arena.extend_from_slice(name.namespace.as_bytes());
        self.arena.extend_from_slice(name.local.as_bytes());
        let iri = self.arena.get(start + 1..).unwrap_or_default();
        if chars::is_plain_iri(iri) {
            return self.since(start);
        }
        let parsed = std::str::from_utf8(iri).map_err(|e| e.to_string());
        let parsed = parsed.and_then(|iri| {
            oxiri::Iri::parse(iri)
                .map(|_| ())
                .map_err(|e| e.to_string())
        });
        match parsed {
            Ok(()) => self.since(start),
            Err(e) => {
                self.arena.truncate(start);
                Ok(self.bad(match name.namespace {
                    "" => format!("`{}` has no namespace, expected the name of a class or property with one", shortened(name.qualified)),
                    namespace => format!(
                        "`{}{}` is not a valid IRI ({e}), expected a namespace that makes an absolute IRI of names",
                        shortened(namespace),
                        shortened(name.local)
                    ),
                }))
            }
        }
    }

    /// The IRI of an `rdf:ID`, which must be unique for each base.
    pub(super) fn id(&mut self, id: &str, scope: &ElementScope) -> Meaning<ElementTerm> {
        if !crate::xml::is_ncname(id) {
            return Ok(self.bad(format!(
                "`{}` is not a valid rdf:ID, expected an XML name without a colon",
                shortened(id)
            )));
        }
        let iri = self.iri(&format!("#{id}"), scope)?;
        if let ElementTerm::At { .. } = iri
            && !self.ids.is_new(iri.bytes(&self.arena))
        {
            self.refuse(format!(
                "the rdf:ID `{}` occurs twice in the document, expected a new one",
                shortened(id)
            ));
        }
        Ok(iri)
    }

    /// The blank node of an `rdf:nodeID`.
    pub(super) fn labelled(&mut self, label: &str) -> Meaning<ElementTerm> {
        if !crate::xml::is_ncname(label) {
            return Ok(self.bad(format!(
                "`{}` is not a valid rdf:nodeID, expected an XML name without a colon",
                shortened(label)
            )));
        }
        let start = self.begin();
        self.out.labels.push_name(label, &mut self.arena);
        self.since(start)
    }

    /// A new blank node.
    pub(super) fn fresh(&mut self) -> Meaning<ElementTerm> {
        let start = self.begin();
        self.out.labels.push_fresh(&mut self.arena);
        self.since(start)
    }

    /// A language tag, in the form in which canonical literals contain it.
    pub(super) fn language(&mut self, tag: &str) -> Meaning<ElementTerm> {
        if tag.is_empty() {
            return Ok(ElementTerm::Absent);
        }
        if !chars::is_plain_language(tag.as_bytes())
            && let Err(e) = oxilangtag::LanguageTag::parse(tag)
        {
            return Ok(self.bad(format!(
                "`{}` is not a valid language tag ({e}), expected one such as en or de-AT",
                shortened(tag)
            )));
        }
        let start = self.begin();
        self.arena.extend_from_slice(tag.as_bytes());
        self.since(start)
    }

    /// Writes a literal to the scratch buffer. Returns the number of the invalid term that prevents it, if there is
    /// one.
    pub(super) fn literal_of(
        &mut self,
        text: LiteralText<'_>,
        datatype: ElementTerm,
        scope: &ElementScope,
    ) -> Option<u32> {
        self.scratch.clear();
        let text = match text {
            LiteralText::Of(text) => text,
            LiteralText::From(start) => self.text.get(start..).unwrap_or_default(),
        };
        match (datatype, scope.language) {
            (ElementTerm::Bad(number), _) => return Some(number),
            (ElementTerm::Absent, ElementTerm::Absent) => {
                self.scratch.push(term::STRING);
                self.scratch.extend_from_slice(text.as_bytes());
            }
            (ElementTerm::Absent, ElementTerm::Bad(number)) => return Some(number),
            (ElementTerm::Absent, language) => {
                self.scratch.push(term::LANG);
                let tag = language.bytes(&self.arena);
                self.scratch.extend(tag.iter().map(u8::to_ascii_lowercase));
                self.scratch.extend_from_slice(match scope.direction {
                    None => b"",
                    Some(TextDirection::Ltr) => b"--ltr",
                    Some(TextDirection::Rtl) => b"--rtl",
                });
                self.scratch.push(0);
                self.scratch.extend_from_slice(text.as_bytes());
            }
            (datatype, _) => {
                let iri = datatype.bytes(&self.arena).get(1..).unwrap_or_default();
                match std::str::from_utf8(iri) {
                    Ok(iri) => term::push_typed(text, iri, &mut self.scratch),
                    Err(_) => return None,
                }
            }
        }
        None
    }
}

/// The text of a literal.
#[derive(Clone, Copy)]
pub(super) enum LiteralText<'t> {
    Of(&'t str),
    /// The collected text of open elements, from this byte on.
    From(usize),
}

/// Appends a triple term with these canonical bytes.
pub(super) fn triple(
    subject: &[u8],
    predicate: &[u8],
    object: &[u8],
    out: &mut Vec<u8>,
) -> Result<()> {
    if object.first() == Some(&term::TRIPLE) && term::triple_nesting(object) >= MAX_NESTING {
        return Err(too_deep());
    }
    out.push(term::TRIPLE);
    for part in [subject, predicate, object] {
        let length = u32::try_from(part.len()).map_err(|_| too_deep())?;
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(part);
    }
    Ok(())
}

/// A part of the document for a message, shortened and without control characters.
pub(super) fn shortened(text: &str) -> String {
    const MOST: usize = 100;
    let mut short: String = text
        .chars()
        .take(MOST)
        .map(|c| if c.is_control() { '\u{FFFD}' } else { c })
        .collect();
    if text.chars().nth(MOST).is_some() {
        short.push('…');
    }
    short
}
