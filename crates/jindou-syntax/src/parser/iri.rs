//! IRIs and prefixed names.

use super::intern::Word;
use super::{Parse, Parser};
use crate::advice::FaultPlace;
use crate::algebra::{BaseIri, NamedNode};
use crate::lexer::{Token, TokenKind};
use crate::prefixes::common;
use jindou_model::iri::{ResolveError, resolve_into};
use oxiri::Iri;
use rustc_hash::FxHashMap;
use std::borrow::Cow;

/// Prefixes that the text declares, and other known prefixes that it uses.
#[derive(Default)]
pub(crate) struct QueryPrefixes<'t> {
    known: FxHashMap<&'t str, Prefix>,
}

/// Longest IRI of a prefix, in bytes, that is examined for [`Prefix::open`].
const LONGEST_OPEN: usize = 1 << 12;

#[derive(Clone)]
struct Prefix {
    /// The IRI, with a leading `<`.
    iri: NamedNode,
    /// True if this IRI followed by any letters, digits, `_` and `-` is always a valid IRI, so that names need no
    /// check.
    open: bool,
}

impl Prefix {
    fn new(iri: NamedNode) -> Self {
        let text = iri.as_str();
        // Many prefixes may be declared for one long IRI, and each would be examined in full.
        let short = (9..=LONGEST_OPEN).contains(&text.len());
        let open = short && text.ends_with(['/', '#']) && is_plain(text);
        Self { iri, open }
    }
}

impl<'t> QueryPrefixes<'t> {
    pub(super) fn declare(&mut self, name: &'t str, iri: NamedNode) {
        self.known.insert(name, Prefix::new(iri));
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &'t str> {
        self.known.keys().copied()
    }
}

/// True for an absolute IRI of a simple form: `http(s)`, a host of letters, digits, dots and dashes, and a path without
/// dot segments and escapes. Such an IRI is valid, and does not depend on the base.
fn is_plain(iri: &str) -> bool {
    let Some(rest) = iri
        .strip_prefix("http://")
        .or_else(|| iri.strip_prefix("https://"))
    else {
        return false;
    };
    let bytes = rest.as_bytes();
    let host = bytes
        .iter()
        .position(|b| !(b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-')))
        .unwrap_or(bytes.len());
    let Some(path) = bytes.get(host..) else {
        return false;
    };
    if host == 0 || !(path.is_empty() || path[0] == b'/') {
        return false;
    }
    let mut fragment = false;
    let mut before = 0;
    for &b in path {
        match b {
            b'.' if before == b'/' => return false,
            b'#' if fragment => return false,
            b'#' => fragment = true,
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' | b'.' | b'~' | b'/' | b':' => {}
            b'=' | b',' | b';' | b'(' | b')' | b'@' | b'+' | b'?' | b'&' | b'!' | b'*' | b'$' => {}
            _ => return false,
        }
        before = b;
    }
    true
}

impl<'t> Parser<'t, '_> {
    /// Parses an IRI in angle brackets or a prefixed name. Errors in it are recorded, and parsing continues.
    pub(super) fn iri(&mut self) -> Parse<NamedNode> {
        let token = self.bump()?;
        let iri = match self.known_iri(self.slice(token)) {
            Some(known) => known,
            None if token.kind == TokenKind::Iri => self.written(token)?,
            None => self.prefixed(token)?,
        };
        self.record_term(token.start, || iri.clone().into());
        Ok(iri)
    }

    pub(super) fn is_iri(&self) -> bool {
        self.kind().is_iri()
    }

    pub(super) fn expect_iri(&mut self, place: FaultPlace) -> Parse<NamedNode> {
        if self.is_iri() {
            self.iri()
        } else {
            Err(self.unexpected(place))
        }
    }

    /// Parses an IRI or `a`.
    pub(super) fn iri_or_a(&mut self, place: FaultPlace) -> Parse<NamedNode> {
        if self.eat(TokenKind::A)? {
            return Ok(self.word(Word::Type));
        }
        self.expect_iri(place)
    }

    /// The IRI of a token in angle brackets, resolved against the base.
    pub(super) fn written(&mut self, token: Token) -> Parse<NamedNode> {
        let key = self.slice(token);
        if let Some(known) = self.known_iri(key) {
            return Ok(known);
        }
        let canonical = &key[..key.len() - 1];
        let inside = &canonical[1..];
        if is_plain(inside) {
            self.room(canonical.len())?;
            return Ok(self.intern_iri(key, canonical));
        }
        let unescaped = if inside.contains('\\') {
            self.room(inside.len())?;
            Cow::Owned(self.unescaped(inside, token.start + 1, false))
        } else {
            Cow::Borrowed(inside)
        };
        // Memory for the IRI, and for a second copy while it is interned.
        let longest = self.base.as_ref().map_or(0, |b| b.len()) + unescaped.len();
        self.room(2 * longest)?;
        let mut text = String::with_capacity(longest + 2);
        text.push('<');
        let read = match &self.base {
            Some(base) => resolve_into(base, &unescaped, &mut text),
            None => Iri::parse(&*unescaped)
                .map(|iri| text.push_str(&iri))
                .map_err(ResolveError::from),
        };
        if let Err(why) = read {
            self.bad_iri(token, &unescaped, &why.to_string());
            return Ok(NamedNode::new_unchecked("http://e/"));
        }
        Ok(self.intern_iri(key, &text))
    }

    /// The IRI of a token in angle brackets, as a new base.
    pub(super) fn new_base(&mut self, token: Token) -> Parse<BaseIri> {
        let iri = self.written(token)?;
        self.room(iri.as_str().len())?;
        Ok(Iri::parse_unchecked(iri.as_str().into()))
    }

    fn prefixed(&mut self, token: Token) -> Parse<NamedNode> {
        let key = self.slice(token);
        let (name, local) = key.split_once(':').unwrap_or((key, ""));
        if !self.prefixes.known.contains_key(name) {
            let without = self
                .options
                .prefixes
                .iter()
                .find(|p| p.0 == name)
                .map(|p| p.1.as_str())
                .or_else(|| self.options.table.as_ref()?.get(name))
                .or_else(|| common(name).filter(|_| self.options.common_prefixes));
            let iri = match without {
                Some(iri) => NamedNode::new_unchecked(iri),
                None => {
                    self.unknown_prefix(token, name);
                    // An arbitrary IRI, so that the error is not reported again.
                    NamedNode::new_unchecked("http://e/")
                }
            };
            self.prefixes.declare(name, iri);
        }
        let len = self.prefixes.known[name].iri.as_str().len() + local.len();
        self.room(2 * len)?;
        let prefix = &self.prefixes.known[name];
        let mut iri = String::with_capacity(len + 1);
        iri.push('<');
        iri.push_str(prefix.iri.as_str());
        let simple = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
        let sure = prefix.open && local.bytes().all(simple);
        if local.contains('\\') {
            iri.extend(local.split('\\'));
        } else {
            iri.push_str(local);
        }
        if !sure && let Err(why) = Iri::parse(&iri[1..]) {
            let why = why.to_string();
            self.bad_iri(token, &iri[1..], &why);
            return Ok(NamedNode::new_unchecked("http://e/"));
        }
        Ok(self.intern_iri(key, &iri))
    }
}
