//! The datatypes that XSD derives from `xsd:dateTime` and `xsd:string` (XSD 1.1 Part 2 §3.4, F&O 3.1 §1.6.3). Their
//! literals have values of the base type. A literal whose lexical form is invalid for the derived type has no value.
//!
//! Types derived from `xsd:integer` and `xsd:duration` are not in this module, since they have tags of their own
//! (`term::DATATYPES`).

use crate::pattern::{is_name, is_name_start};
use crate::temporal::{Temporal, TemporalKind};
use crate::value::{Value, XSD};
use jindou_model::term::{self, Parts};

/// A datatype derived from `xsd:dateTime` or `xsd:string`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DerivedType {
    /// `xsd:dateTimeStamp`
    DateTimeStamp,
    /// `xsd:normalizedString`
    NormalizedString,
    /// `xsd:token`
    Token,
    /// `xsd:language`
    Language,
    /// `xsd:NMTOKEN`
    NameToken,
    /// `xsd:Name`
    Name,
    /// `xsd:NCName`
    NoColonName,
    /// `xsd:ID`
    Id,
    /// `xsd:IDREF`
    IdRef,
    /// `xsd:ENTITY`
    Entity,
}

/// The datatypes by their local names in the XSD namespace.
const NAMES: [(&str, DerivedType); 10] = [
    ("dateTimeStamp", DerivedType::DateTimeStamp),
    ("normalizedString", DerivedType::NormalizedString),
    ("token", DerivedType::Token),
    ("language", DerivedType::Language),
    ("NMTOKEN", DerivedType::NameToken),
    ("Name", DerivedType::Name),
    ("NCName", DerivedType::NoColonName),
    ("ID", DerivedType::Id),
    ("IDREF", DerivedType::IdRef),
    ("ENTITY", DerivedType::Entity),
];

impl DerivedType {
    /// The derived datatype with this IRI; `None` for other IRIs.
    #[must_use]
    pub fn from_iri(iri: &str) -> Option<Self> {
        let local = iri.strip_prefix(XSD)?;
        let found = NAMES.iter().find(|(name, _)| *name == local);
        found.map(|(_, derived)| *derived)
    }

    /// The datatype's IRI.
    #[must_use]
    pub fn iri(self) -> String {
        let found = NAMES.iter().find(|(_, derived)| *derived == self);
        format!("{XSD}{}", found.map_or("", |(name, _)| name))
    }

    /// The value of a lexical form; `None` if it is outside the lexical space.
    #[must_use]
    pub fn value(self, lexical: &str) -> Option<Value<'_>> {
        if self == Self::DateTimeStamp {
            let time = Temporal::parse(TemporalKind::DateTime, lexical)?;
            return time.zone().is_some().then_some(Value::Temporal(time));
        }
        self.is_lexical(lexical).then_some(Value::String(lexical))
    }

    /// True for a text in the lexical space of a type derived from `xsd:string`.
    fn is_lexical(self, s: &str) -> bool {
        match self {
            Self::DateTimeStamp => false,
            Self::NormalizedString => !s.contains(['\t', '\n', '\r']),
            Self::Token => {
                !s.contains(['\t', '\n', '\r'])
                    && !s.starts_with(' ')
                    && !s.ends_with(' ')
                    && !s.contains("  ")
            }
            Self::Language => {
                let mut parts = s.split('-');
                let is_part = |part: &str, fits: fn(&u8) -> bool| {
                    (1..=8).contains(&part.len()) && part.as_bytes().iter().all(fits)
                };
                let first = parts.next();
                first.is_some_and(|p| is_part(p, u8::is_ascii_alphabetic))
                    && parts.all(|p| is_part(p, u8::is_ascii_alphanumeric))
            }
            Self::NameToken => !s.is_empty() && s.chars().all(is_name),
            Self::Name => s.starts_with(is_name_start) && s.chars().all(is_name),
            Self::NoColonName | Self::Id | Self::IdRef | Self::Entity => {
                Self::Name.is_lexical(s) && !s.contains(':')
            }
        }
    }

    /// Appends the canonical bytes of the literal that a cast of this text yields (F&O 3.1 §19.2), after the type's
    /// white space processing (XSD 1.1 Part 2 §4.3.6). Returns false if the text is outside the lexical space.
    pub fn push_cast(self, text: &str, out: &mut Vec<u8>) -> bool {
        const SPACE: [char; 4] = [' ', '\t', '\n', '\r'];
        term::push_typed("", &self.iri(), out);
        let from = out.len();
        if self == Self::NormalizedString {
            out.extend_from_slice(text.replace(SPACE, " ").as_bytes());
        } else {
            for word in text.split(SPACE).filter(|w| !w.is_empty()) {
                if out.len() > from {
                    out.push(b' ');
                }
                out.extend_from_slice(word.as_bytes());
            }
        }
        let lexical = std::str::from_utf8(&out[from..]);
        lexical.is_ok_and(|s| self.value(s).is_some())
    }
}

/// The text of a string without a language tag, of type `xsd:string` or derived from it; `None` for other terms.
#[must_use]
#[inline]
pub fn simple_text<'t>(parts: &Parts<'t>) -> Option<&'t str> {
    match *parts {
        Parts::String(s) => Some(s),
        Parts::Typed(s, datatype) => match DerivedType::from_iri(datatype)?.value(s)? {
            Value::String(s) => Some(s),
            _ => None,
        },
        _ => None,
    }
}

/// Intervals of canonical bytes (start inclusive, end exclusive) that contain all literals of derived types, and few
/// others.
#[must_use]
pub fn derived_intervals() -> [[Vec<u8>; 2]; 3] {
    // The three intervals cover, in byte order: ENTITY, ID, IDREF, NCName, NMTOKEN, Name; dateTimeStamp; language,
    // normalizedString, token.
    [
        ["E", "O"],
        ["dateTimeStamp\0", "dateTimeStamp\u{1}"],
        ["language\0", "token\u{1}"],
    ]
    .map(|bounds| {
        bounds.map(|local| {
            let mut bytes = vec![term::TYPED];
            bytes.extend_from_slice(XSD.as_bytes());
            bytes.extend_from_slice(local.as_bytes());
            bytes
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lexical forms with the types that have them. ID, IDREF and ENTITY have the same ones as NCName.
    #[test]
    fn lexical_spaces() {
        for (form, want) in [
            (
                "2020-01-01T00:00:00Z",
                "normalizedString token dateTimeStamp NMTOKEN",
            ),
            (
                "2020-01-01T24:00:00-14:00",
                "normalizedString token dateTimeStamp NMTOKEN",
            ),
            ("2020-01-01T00:00:00", "normalizedString token NMTOKEN"),
            ("2020-02-30T00:00:00Z", "normalizedString token NMTOKEN"),
            ("", "normalizedString token"),
            ("a b", "normalizedString token"),
            (" a", "normalizedString"),
            ("a  b", "normalizedString"),
            ("a\tb", ""),
            ("a\r", ""),
            (
                "de-AT-1996",
                "normalizedString token language NMTOKEN Name NCName",
            ),
            ("abcdefghi", "normalizedString token NMTOKEN Name NCName"),
            ("de--AT", "normalizedString token NMTOKEN Name NCName"),
            ("p:a", "normalizedString token NMTOKEN Name"),
            ("1a", "normalizedString token NMTOKEN"),
            ("é.\u{300}", "normalizedString token NMTOKEN Name NCName"),
            ("\u{d7}", "normalizedString token"),
        ] {
            for (local, t) in NAMES {
                assert_eq!(DerivedType::from_iri(&t.iri()), Some(t));
                let listed = match local {
                    "ID" | "IDREF" | "ENTITY" => "NCName",
                    local => local,
                };
                let wanted = want.split(' ').any(|w| w == listed);
                assert_eq!(t.value(form).is_some(), wanted, "{form:?} {local}");
            }
        }
    }

    #[test]
    fn intervals_have_all_derived_types() {
        let inside = |local: &str| {
            let mut bytes = vec![];
            term::push_typed("", &format!("{XSD}{local}"), &mut bytes);
            let mut all = derived_intervals().into_iter();
            all.any(|[from, to]| from <= bytes && bytes < to)
        };
        assert!(NAMES.into_iter().all(|(local, _)| inside(local)));
        for other in ["anyURI", "hexBinary", "base64Binary", "QName", "string"] {
            assert!(!inside(other), "{other}");
        }
    }
}
