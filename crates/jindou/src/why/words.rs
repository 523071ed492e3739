//! Text of terms, patterns and numbers for messages.

use super::QueryText;
use jindou_model::term;
use jindou_model::units::grouped;
use jindou_plan::sparql::{
    GraphPattern, NamedNodePattern, PropertyPathExpression, TermPattern, TriplePattern,
};
use oxrdf::vocab::{rdf, xsd};
use oxrdf::{Literal, Term};
use std::fmt::Write as _;
use std::ops::Range;

/// Largest number of characters of a term, or of a piece of the query, in a message.
const SHOWN: usize = 80;

/// A number with the singular or plural of a noun.
pub(super) fn counted(n: u64, one: &str) -> String {
    format!("{} {one}{}", grouped(n), if n == 1 { "" } else { "s" })
}

/// A message that is safe to print: without control characters, including those that change the direction of text.
pub(super) fn clean(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        let turns = matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}');
        if c == '\n' || c == '\t' || c == '\r' {
            out.push(' ');
        } else if c.is_control() || turns {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    out
}

/// A text, truncated if it is longer than [`SHOWN`] characters.
pub(super) fn shortened(text: &str) -> String {
    jindou_model::diagnostic::shortened(text, SHOWN)
}

/// A list with `and` before the last one.
pub(super) fn list(all: &[String]) -> String {
    match all {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

/// The term at a position of a pattern; `None` for a variable or blank node.
pub(super) fn constant(t: &TermPattern) -> Option<Term> {
    match t {
        TermPattern::NamedNode(n) => Some(oxrdf::NamedNode::new_unchecked(n.as_str()).into()),
        TermPattern::Literal(l) => term::decode(l.canonical()),
        _ => None,
    }
}

/// A term in the form of a pattern's position; `None` for a blank node, which would be a variable there.
pub(super) fn pattern_of(t: &Term) -> Option<TermPattern> {
    use jindou_plan::sparql::{Canonical, Literal as L, NamedNode as N};
    let bytes = Canonical::from(term::encode(t));
    match t {
        Term::NamedNode(n) => Some(N::new_unchecked(n.as_str()).into()),
        Term::Literal(_) => Some(L::from_canonical(&bytes)?.into()),
        _ => None,
    }
}

impl QueryText<'_> {
    /// An IRI in the shortest form that a query with these prefixes could use.
    pub(super) fn iri(&self, iri: &str) -> String {
        match self.names.short(iri) {
            Some((text, None)) => text,
            Some((text, Some(_))) if self.common => text,
            _ => format!("<{iri}>"),
        }
    }

    /// A term in the shortest form that a query with these prefixes could use.
    pub(super) fn term(&self, t: &Term) -> String {
        match t {
            Term::NamedNode(n) => self.iri(n.as_str()),
            Term::Literal(l) => self.literal(l),
            other => other.to_string(),
        }
    }

    fn literal(&self, l: &Literal) -> String {
        let datatype = l.datatype();
        if l.language().is_some() || datatype == xsd::STRING {
            return l.to_string();
        }
        let lexical = l.value();
        let digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
        let unsigned = lexical.trim_start_matches(['+', '-']);
        let is_bare = lexical.len() <= unsigned.len() + 1
            && match () {
                () if datatype == xsd::INTEGER => digits(unsigned),
                () if datatype == xsd::BOOLEAN => matches!(lexical, "true" | "false"),
                () if datatype == xsd::DECIMAL => unsigned
                    .split_once('.')
                    .is_some_and(|(a, b)| digits(a) && digits(b)),
                () => false,
            };
        if is_bare {
            return lexical.to_owned();
        }
        let quoted = Literal::new_simple_literal(lexical).to_string();
        format!("{quoted}^^{}", self.iri(datatype.as_str()))
    }

    /// A piece of the query's text, on one line and truncated if it is long.
    pub(super) fn piece(&self, range: &Range<usize>) -> String {
        let text = self.text.get(range.clone()).unwrap_or_default();
        let mut out = String::new();
        for word in text.split_whitespace().take(SHOWN) {
            if !out.is_empty() {
                out.push(' ');
            }
            out.push_str(word);
        }
        shortened(&out)
    }

    /// A constant as the query's text has it in this range; without a range, in its shortest form.
    pub(super) fn told(&self, t: &Term, range: Option<&Range<usize>>) -> String {
        match range {
            Some(range) => self.piece(range),
            None => shortened(&self.term(t)),
        }
    }

    pub(super) fn part(&self, t: &TermPattern) -> String {
        match t {
            TermPattern::Variable(v) => v.to_string(),
            TermPattern::BlankNode(_) => "[]".into(),
            TermPattern::Triple(t) => format!("<<( {} )>>", self.triple(t)),
            constant_term => match constant(constant_term) {
                Some(t) => shortened(&self.term(&t)),
                None => shortened(&constant_term.to_string()),
            },
        }
    }

    /// A triple pattern as text. Recurses as deep as triple terms nest.
    pub(super) fn triple(&self, t: &TriplePattern) -> String {
        let predicate = match &t.predicate {
            NamedNodePattern::Variable(v) => v.to_string(),
            NamedNodePattern::NamedNode(n) if n.as_str() == rdf::TYPE.as_str() => "a".into(),
            NamedNodePattern::NamedNode(n) => self.iri(n.as_str()),
        };
        let [s, o] = [&t.subject, &t.object].map(|t| self.part(t));
        format!("{s} {predicate} {o}")
    }

    fn path(&self, path: &PropertyPathExpression) -> String {
        use PropertyPathExpression as P;
        match path {
            P::NamedNode(n) => self.iri(n.as_str()),
            P::Reverse(p) => format!("^{}", self.path(p)),
            P::Sequence(a, b) => format!("{}/{}", self.path(a), self.path(b)),
            P::Alternative(a, b) => format!("({}|{})", self.path(a), self.path(b)),
            P::ZeroOrMore(p) => format!("{}*", self.path(p)),
            P::OneOrMore(p) => format!("{}+", self.path(p)),
            P::ZeroOrOne(p) => format!("{}?", self.path(p)),
            P::NegatedPropertySet(set) => {
                let mut out = String::from("!(");
                for (i, n) in set.iter().take(5).enumerate() {
                    let _ = write!(
                        out,
                        "{}{}",
                        if i > 0 { "|" } else { "" },
                        self.iri(n.as_str())
                    );
                }
                out + ")"
            }
        }
    }

    /// An operand of a join as text.
    pub(super) fn pattern(&self, p: &GraphPattern) -> String {
        match p {
            GraphPattern::Bgp { patterns } => match patterns.as_slice() {
                [one] => self.triple(one),
                _ => "a group of patterns".into(),
            },
            GraphPattern::Path {
                subject,
                path,
                object,
            } => {
                // A path that the parser recorded is quoted from the text, so that only short pieces of a long one are
                // copied.
                let told = match self.recorded.path(subject, path, object) {
                    Some(range) => return format!("{} {}", self.part(subject), self.piece(&range)),
                    None => shortened(&self.path(path)),
                };
                format!("{} {told} {}", self.part(subject), self.part(object))
            }
            GraphPattern::Values { .. } => "VALUES".into(),
            GraphPattern::Union { .. } => "the UNION".into(),
            GraphPattern::Graph { name, .. } => match name {
                NamedNodePattern::Variable(v) => format!("GRAPH {v} {{ … }}"),
                NamedNodePattern::NamedNode(n) => format!("GRAPH {} {{ … }}", self.iri(n.as_str())),
            },
            GraphPattern::Extend { variable, .. } => format!("the group that binds {variable}"),
            GraphPattern::Minus { .. } => "the group with MINUS".into(),
            GraphPattern::Filter { .. } => "the group with FILTER".into(),
            GraphPattern::Project { .. }
            | GraphPattern::Group { .. }
            | GraphPattern::Distinct { .. }
            | GraphPattern::Reduced { .. }
            | GraphPattern::OrderBy { .. }
            | GraphPattern::Slice { .. } => "the sub-SELECT".into(),
            GraphPattern::Join { .. }
            | GraphPattern::LeftJoin { .. }
            | GraphPattern::Lateral { .. }
            | GraphPattern::Service { .. } => "a group".into(),
        }
    }
}
