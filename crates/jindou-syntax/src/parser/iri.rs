//! IRIs and prefixed names.

use super::{Parse, Parser};
use crate::advice::Place;
use crate::lexer::{Kind, Token};
use crate::prefixes::common;
use oxiri::Iri;
use rustc_hash::FxHashMap;
use spargebra::term::NamedNode;

/// Bytes that an IRI takes, without its text.
const NODE: usize = 48;

/// Declared prefixes, and those known without a declaration that were met.
#[derive(Default)]
pub(crate) struct Prefixes<'t> {
    known: FxHashMap<&'t str, Prefix>,
}

#[derive(Clone)]
struct Prefix {
    iri: String,
    /// Whether letters, digits, `_` and `-` behind it surely give an IRI.
    open: bool,
}

impl Prefix {
    fn new(iri: String) -> Self {
        let open = is_plain(&iri) && iri.ends_with(['/', '#']) && iri.len() > 8;
        Self { iri, open }
    }
}

impl<'t> Prefixes<'t> {
    pub(super) fn declare(&mut self, name: &'t str, iri: String) {
        self.known.insert(name, Prefix::new(iri));
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &'t str> {
        self.known.keys().copied()
    }
}

/// True for an absolute IRI of the usual kind: `http(s)`, a host of letters, digits, dots and dashes, a path without dot segments and
/// escapes. It needs no further look, and a base changes nothing.
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
    /// Reads an IRI, written out or as a prefixed name. A fault in it is written down, and reading goes on.
    pub(super) fn iri(&mut self) -> Parse<NamedNode> {
        let token = self.bump()?;
        Ok(match token.kind {
            Kind::Iri => self.written(token),
            _ => self.prefixed(token),
        })
    }

    pub(super) fn is_iri(&self) -> bool {
        matches!(self.kind(), Kind::Iri | Kind::Prefixed | Kind::Namespace)
    }

    pub(super) fn expect_iri(&mut self, place: Place) -> Parse<NamedNode> {
        if self.is_iri() {
            self.iri()
        } else {
            Err(self.unexpected(place))
        }
    }

    fn written(&mut self, token: Token) -> NamedNode {
        let inside = &self.text[token.start + 1..token.end - 1];
        if is_plain(inside) {
            self.spend(NODE + inside.len());
            return NamedNode::new_unchecked(inside);
        }
        NamedNode::new_unchecked(self.resolved(token).into_inner())
    }

    /// The IRI between `<` and `>`, under the base.
    pub(super) fn resolved(&mut self, token: Token) -> Iri<String> {
        let inside = &self.text[token.start + 1..token.end - 1];
        self.spend(NODE + inside.len());
        if is_plain(inside) {
            return Iri::parse_unchecked(inside.to_owned());
        }
        let unescaped = if inside.contains('\\') {
            self.unescaped(inside, token.start + 1, false)
        } else {
            inside.to_owned()
        };
        let read = match &self.base {
            Some(base) => base.resolve(&unescaped),
            None => Iri::parse(unescaped.clone()),
        };
        match read {
            Ok(iri) => {
                self.spend(iri.as_str().len());
                iri
            }
            Err(why) => {
                self.bad_iri(token, &unescaped, &why.to_string());
                Iri::parse_unchecked(String::from("http://e/"))
            }
        }
    }

    fn prefixed(&mut self, token: Token) -> NamedNode {
        let text = self.slice(token);
        let (name, local) = text.split_once(':').unwrap_or((text, ""));
        if !self.prefixes.known.contains_key(name) {
            let without = self
                .options
                .prefixes
                .iter()
                .find(|p| p.0 == name)
                .map(|p| p.1.as_str())
                .or_else(|| common(name).filter(|_| self.options.common_prefixes));
            let iri = match without {
                Some(iri) => iri.to_owned(),
                None => {
                    self.unknown_prefix(token, name);
                    // Said once is enough.
                    String::from("http://e/")
                }
            };
            self.prefixes.declare(name, iri);
        }
        let prefix = &self.prefixes.known[name];
        let mut iri = String::with_capacity(prefix.iri.len() + local.len());
        iri.push_str(&prefix.iri);
        let simple = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
        let sure = prefix.open && local.bytes().all(simple);
        if local.contains('\\') {
            iri.extend(local.split('\\'));
        } else {
            iri.push_str(local);
        }
        self.bytes += (NODE + iri.len()) as u64;
        if !sure && let Err(why) = Iri::parse(iri.as_str()) {
            let why = why.to_string();
            self.bad_iri(token, &iri, &why);
        }
        NamedNode::new_unchecked(iri)
    }
}
