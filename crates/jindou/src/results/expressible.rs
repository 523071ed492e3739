//! Restrictions of RDF formats on triples. JSON-LD has no triple terms. RDF/XML writes predicates, classes and blank
//! node labels as XML names, and literals as XML 1.0 text. Labels have no meaning outside their document, so labels
//! that are not valid names are replaced by others.

use jindou_model::{Error, Result};
use oxrdf::vocab::rdf;
use oxrdf::{
    BlankNode, LiteralRef, NamedOrBlankNode, NamedOrBlankNodeRef, Term, TermRef, Triple, TripleRef,
};
use oxrdfio::RdfFormat;
use std::fmt::{self, Write as _};

/// Checks that a format can express a triple such that every reader gets the same triple. Returns `None` if it can be
/// written unchanged. If the format does not allow the labels of its blank nodes, returns the triple with other labels
/// to write instead; different labels stay different. O(triple).
///
/// # Errors
/// [`Error::Unsupported`] with the reason, the triple, and an alternative.
pub fn expressible(triple: TripleRef<'_>, format: RdfFormat) -> Result<Option<Triple>> {
    match format {
        RdfFormat::JsonLd { .. } if matches!(triple.object, TermRef::Triple(_)) => {
            Err(inexpressible(
                triple,
                "JSON-LD has no triple terms",
                "use Turtle, TriG, N-Triples or N-Quads instead",
            ))
        }
        RdfFormat::RdfXml => match in_xml(triple) {
            Ok(true) => Ok(None),
            Ok(false) => Ok(Some(with_names(triple))),
            Err(why) => Err(inexpressible(
                triple,
                why,
                "use Turtle or N-Triples instead",
            )),
        },
        _ => Ok(None),
    }
}

/// The beginning of a long text, followed by `…` if the text was truncated.
#[derive(Default)]
struct Beginning(String);

impl fmt::Write for Beginning {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        const LONGEST: usize = 600;
        let room = LONGEST.saturating_sub(self.0.len());
        if text.len() <= room {
            self.0.push_str(text);
            return Ok(());
        }
        let fits = text
            .char_indices()
            .map(|(at, _)| at)
            .take_while(|at| *at <= room);
        self.0.push_str(&text[..fits.last().unwrap_or(0)]);
        self.0.push('…');
        Err(fmt::Error)
    }
}

fn inexpressible(triple: TripleRef<'_>, why: &str, instead: &str) -> Error {
    // Truncated and escaped: terms may be long, and contain control sequences for a terminal.
    let mut text = Beginning::default();
    let _ = match triple.object {
        TermRef::Literal(l) if l.value().chars().nth(60).is_some() => {
            let start: String = l.value().chars().take(60).collect();
            let start = start + "…";
            let start = LiteralRef::new_simple_literal(&start);
            write!(text, "{} {} {start}", triple.subject, triple.predicate)
        }
        _ => write!(text, "{triple}"),
    };
    let text: String = text.0.chars().flat_map(char::escape_debug).collect();
    Error::Unsupported(format!("{why}; {instead}: {text}"))
}

/// Names that RDF/XML reserves (RDF 1.1 XML Syntax §7.2.2 and §7.2.4), so that they cannot be predicates.
const SYNTAX: [&str; 12] = [
    "Description",
    "RDF",
    "ID",
    "about",
    "parseType",
    "resource",
    "nodeID",
    "datatype",
    "li",
    "aboutEach",
    "aboutEachPrefix",
    "bagID",
];
/// Names that earlier versions of RDF/XML reserved. Readers refuse them as classes, too.
const OLD: [&str; 3] = ["aboutEach", "aboutEachPrefix", "bagID"];
const RDF: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#";
/// Namespaces whose prefixes XML itself defines.
const OF_XML: [&str; 2] = [
    "http://www.w3.org/XML/1998/namespace",
    "http://www.w3.org/2000/xmlns/",
];

/// True if RDF/XML can express a triple with the labels that its blank nodes have.
///
/// # Errors
/// The reason why RDF/XML cannot express the triple at all.
fn in_xml(mut triple: TripleRef<'_>) -> Result<bool, &'static str> {
    if let TermRef::NamedNode(class) = triple.object
        && triple.predicate == rdf::TYPE
        && !is_element(class.as_str(), &OLD)
    {
        return Err(
            "RDF/XML writes classes as names, and this IRI does not end in an allowed name",
        );
    }
    let mut named = true;
    // Continues with the triple term that is the object, if there is one.
    loop {
        if !is_element(triple.predicate.as_str(), &SYNTAX) {
            return Err(
                "RDF/XML writes predicates as names, and this IRI does not end in an allowed name",
            );
        }
        let labels = [
            match triple.subject {
                NamedOrBlankNodeRef::BlankNode(b) => Some(b),
                NamedOrBlankNodeRef::NamedNode(_) => None,
            },
            match triple.object {
                TermRef::BlankNode(b) => Some(b),
                _ => None,
            },
        ];
        named &= labels
            .iter()
            .flatten()
            .all(|b| is_writable_label(b.as_str()));
        match triple.object {
            TermRef::Literal(literal)
                if !literal.value().chars().all(jindou_parse::xml::is_char) =>
            {
                return Err("the literal has a character that XML cannot hold");
            }
            TermRef::Triple(t) => triple = t.as_ref(),
            _ => return Ok(named),
        }
    }
}

/// Prefix of replacement labels.
const OTHERWISE: &str = "x.";

/// True if a label can be written unchanged: it is an XML name, and does not look like a replacement.
fn is_writable_label(label: &str) -> bool {
    is_name(label) && !label.starts_with(OTHERWISE)
}

/// The label itself if it can be written, otherwise a replacement; different labels get different replacements. A
/// replacement never ends with a dot, since other formats do not allow that.
fn name_of(label: &str) -> BlankNode {
    if is_writable_label(label) {
        return BlankNode::new_unchecked(label);
    }
    let mut name = OTHERWISE.to_owned();
    for c in label.chars() {
        match c {
            '.' => name.push_str(".00002e"),
            c if goes_on_name(c) => name.push(c),
            c => name.push_str(&format!(".{:06x}", u32::from(c))),
        }
    }
    BlankNode::new_unchecked(name)
}

/// The triple with its blank nodes' labels replaced by [`name_of`].
fn with_names(triple: TripleRef<'_>) -> Triple {
    let mut whole = triple.into_owned();
    let mut at = &mut whole;
    loop {
        if let NamedOrBlankNode::BlankNode(b) = &at.subject {
            at.subject = name_of(b.as_str()).into();
        }
        match &mut at.object {
            Term::Triple(inner) => at = inner,
            Term::BlankNode(b) => {
                *b = name_of(b.as_str());
                return whole;
            }
            _ => return whole,
        }
    }
}

/// True if this IRI can be written as an element's name; `kept` has the names that RDF/XML reserves.
fn is_element(iri: &str, kept: &[&str]) -> bool {
    let is_kept = |name| kept.contains(&name);
    ends_with_name(iri)
        && !iri.strip_prefix(RDF).is_some_and(is_kept)
        && !OF_XML.iter().any(|namespace| iri.starts_with(namespace))
}

/// True for characters that can begin a name (Namespaces in XML 1.0, `NCName`).
fn starts_name(c: char) -> bool {
    matches!(c,
        'A'..='Z' | '_' | 'a'..='z' | '\u{c0}'..='\u{d6}' | '\u{d8}'..='\u{f6}' | '\u{f8}'..='\u{2ff}'
        | '\u{370}'..='\u{37d}' | '\u{37f}'..='\u{1fff}' | '\u{200c}'..='\u{200d}' | '\u{2070}'..='\u{218f}'
        | '\u{2c00}'..='\u{2fef}' | '\u{3001}'..='\u{d7ff}' | '\u{f900}'..='\u{fdcf}' | '\u{fdf0}'..='\u{fffd}'
        | '\u{1_0000}'..='\u{e_ffff}')
}

fn goes_on_name(c: char) -> bool {
    starts_name(c)
        || matches!(c, '-' | '.' | '0'..='9' | '\u{b7}' | '\u{300}'..='\u{36f}' | '\u{203f}'..='\u{2040}')
}

fn is_name(text: &str) -> bool {
    text.starts_with(starts_name) && text.chars().all(goes_on_name)
}

fn ends_with_name(iri: &str) -> bool {
    let name = iri.rfind(|c| !goes_on_name(c)).map(|at| {
        let rest = &iri[at..];
        rest.find(starts_name).is_some()
    });
    name == Some(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iris_end_with_names_or_do_not() {
        for iri in [
            "http://e/p",
            "http://e/1p",
            "http://e/#é",
            "urn:x:a.b-c",
            "http://e/a%20b",
        ] {
            assert!(ends_with_name(iri), "{iri}");
        }
        for iri in [
            "http://e/",
            "http://e/1",
            "http://e/p?",
            "http://e/a%20",
            "http://e/p/-1",
        ] {
            assert!(!ends_with_name(iri), "{iri}");
        }
        assert!(is_name("b1.2") && is_name("d0..1") && !is_name("1b") && !is_name("a:b"));
    }

    #[test]
    fn different_labels_get_different_names() {
        let all = [
            "0",
            "x.0",
            "x.x.00002e0",
            "x",
            "x0",
            "a:b",
            "a.b",
            "a.00003ab",
            ":",
            "1.2",
            "é",
            "é:",
            "-",
            "x.",
            "0-1",
        ];
        let names: std::collections::BTreeSet<String> =
            all.iter().map(|l| name_of(l).into_string()).collect();
        assert_eq!(names.len(), all.len(), "{names:?}");
        for name in &names {
            assert!(
                is_name(name) && BlankNode::new(name).is_ok() || name == OTHERWISE,
                "{name}"
            );
        }
        assert_eq!(name_of("b1.2").as_str(), "b1.2");
    }

    #[test]
    fn labels_become_names_wherever_they_stand() {
        let p = oxrdf::NamedNode::new_unchecked("http://e/p");
        let blank = |label: &str| BlankNode::new_unchecked(label);
        let triple = |s: &str, o: &str, deep: &str| {
            let inner = Triple::new(blank(deep), p.clone(), blank(o));
            Triple::new(blank(s), p.clone(), Term::from(inner))
        };
        let written = expressible(triple("0", "a", "1").as_ref(), RdfFormat::RdfXml);
        assert_eq!(written.unwrap(), Some(triple("x.0", "a", "x.1")));
        let written = expressible(triple("b", "2", "c").as_ref(), RdfFormat::RdfXml);
        assert_eq!(written.unwrap(), Some(triple("b", "x.2", "c")));
        let same = triple("b", "a", "c");
        assert_eq!(expressible(same.as_ref(), RdfFormat::RdfXml).unwrap(), None);
        let other = triple("0", "1", "2");
        assert_eq!(
            expressible(other.as_ref(), RdfFormat::NTriples).unwrap(),
            None
        );
    }

    #[test]
    fn text_that_rdf_xml_can_have_is_read_back() {
        use crate::results::{AnswerSink, ResultFormat, ResultWriter};
        let p = oxrdf::NamedNode::new_unchecked("http://e/p");
        for text in ["a\rb\r\n\tc", " <&>]]>'\" ", "\u{85}\u{2028}é𝄞", ""] {
            let triple = Triple::new(
                p.clone(),
                p.clone(),
                oxrdf::Literal::new_simple_literal(text),
            );
            let mut out = Vec::new();
            let mut writer = ResultWriter::new(&mut out, ResultFormat::Rdf(RdfFormat::RdfXml));
            writer.graph().unwrap();
            writer.triple(&triple).unwrap();
            writer.finish().unwrap();
            drop(writer);
            // This workspace's own parser, which is tested with the W3C's suite.
            let mut reader = jindou_parse::xml::Reader::new(
                out.as_slice(),
                jindou_parse::xml::ReaderOptions::default(),
            )
            .unwrap();
            let (mut read, mut depth) = (String::new(), 0);
            loop {
                match reader.next_event().unwrap() {
                    jindou_parse::xml::Event::Start(_) => depth += 1,
                    jindou_parse::xml::Event::End { .. } => depth -= 1,
                    jindou_parse::xml::Event::Text(piece) if depth == 3 => read.push_str(piece),
                    jindou_parse::xml::Event::Eof => break,
                    _ => {}
                }
            }
            assert_eq!(read, text);
        }
    }
}
