//! Common prefixes, and the prefixes that a text declares and uses.

use crate::keyword::Keyword;
use crate::lexer::{Lexer, TokenKind};

/// Common prefixes with their IRIs, ordered by prefix.
#[rustfmt::skip]
pub const COMMON_PREFIXES: &[(&str, &str)] = &[
    ("as", "https://www.w3.org/ns/activitystreams#"),
    ("bibo", "http://purl.org/ontology/bibo/"),
    ("bif", "http://www.openlinksw.com/schemas/bif#"),
    ("cc", "http://creativecommons.org/ns#"),
    ("csvw", "http://www.w3.org/ns/csvw#"),
    ("dbo", "http://dbpedia.org/ontology/"),
    ("dbp", "http://dbpedia.org/property/"),
    ("dbpedia", "http://dbpedia.org/resource/"),
    ("dbr", "http://dbpedia.org/resource/"),
    ("dc", "http://purl.org/dc/elements/1.1/"),
    ("dcam", "http://purl.org/dc/dcam/"),
    ("dcat", "http://www.w3.org/ns/dcat#"),
    ("dcmitype", "http://purl.org/dc/dcmitype/"),
    ("dct", "http://purl.org/dc/terms/"),
    ("dcterms", "http://purl.org/dc/terms/"),
    ("doap", "http://usefulinc.com/ns/doap#"),
    ("dqv", "http://www.w3.org/ns/dqv#"),
    ("fn", "http://www.w3.org/2005/xpath-functions#"),
    ("foaf", "http://xmlns.com/foaf/0.1/"),
    ("geo", "http://www.opengis.net/ont/geosparql#"),
    ("geof", "http://www.opengis.net/def/function/geosparql/"),
    ("gn", "http://www.geonames.org/ontology#"),
    ("gr", "http://purl.org/goodrelations/v1#"),
    ("ldp", "http://www.w3.org/ns/ldp#"),
    ("obo", "http://purl.obolibrary.org/obo/"),
    ("oboInOwl", "http://www.geneontology.org/formats/oboInOwl#"),
    ("odrl", "http://www.w3.org/ns/odrl/2/"),
    ("org", "http://www.w3.org/ns/org#"),
    ("owl", "http://www.w3.org/2002/07/owl#"),
    ("p", "http://www.wikidata.org/prop/"),
    ("pq", "http://www.wikidata.org/prop/qualifier/"),
    ("pqv", "http://www.wikidata.org/prop/qualifier/value/"),
    ("pr", "http://www.wikidata.org/prop/reference/"),
    ("prov", "http://www.w3.org/ns/prov#"),
    ("ps", "http://www.wikidata.org/prop/statement/"),
    ("psv", "http://www.wikidata.org/prop/statement/value/"),
    ("qb", "http://purl.org/linked-data/cube#"),
    ("rdf", "http://www.w3.org/1999/02/22-rdf-syntax-ns#"),
    ("rdfs", "http://www.w3.org/2000/01/rdf-schema#"),
    ("rr", "http://www.w3.org/ns/r2rml#"),
    ("schema", "http://schema.org/"),
    ("sd", "http://www.w3.org/ns/sparql-service-description#"),
    ("sf", "http://www.opengis.net/ont/sf#"),
    ("sh", "http://www.w3.org/ns/shacl#"),
    ("sioc", "http://rdfs.org/sioc/ns#"),
    ("skos", "http://www.w3.org/2004/02/skos/core#"),
    ("skosxl", "http://www.w3.org/2008/05/skos-xl#"),
    ("sosa", "http://www.w3.org/ns/sosa/"),
    ("ssn", "http://www.w3.org/ns/ssn/"),
    ("time", "http://www.w3.org/2006/time#"),
    ("uom", "http://www.opengis.net/def/uom/OGC/1.0/"),
    ("up", "http://purl.uniprot.org/core/"),
    ("uniprotkb", "http://purl.uniprot.org/uniprot/"),
    ("vann", "http://purl.org/vocab/vann/"),
    ("vcard", "http://www.w3.org/2006/vcard/ns#"),
    ("void", "http://rdfs.org/ns/void#"),
    ("wd", "http://www.wikidata.org/entity/"),
    ("wdno", "http://www.wikidata.org/prop/novalue/"),
    ("wds", "http://www.wikidata.org/entity/statement/"),
    ("wdt", "http://www.wikidata.org/prop/direct/"),
    ("wdv", "http://www.wikidata.org/value/"),
    ("wgs84", "http://www.w3.org/2003/01/geo/wgs84_pos#"),
    ("wikibase", "http://wikiba.se/ontology#"),
    ("xhv", "http://www.w3.org/1999/xhtml/vocab#"),
    ("xml", "http://www.w3.org/XML/1998/namespace"),
    ("xsd", "http://www.w3.org/2001/XMLSchema#"),
];

/// The IRI of a common prefix; `None` for other prefixes.
pub(crate) fn common(prefix: &str) -> Option<&'static str> {
    COMMON_PREFIXES.iter().find(|p| p.0 == prefix).map(|p| p.1)
}

/// The prefixes of a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TextPrefixes {
    /// Prefixes that the text declares, with their IRIs as written, in the order of the text.
    pub declared: Vec<(String, String)>,
    /// Prefixes of names in the text, each once, in the order of their first use.
    pub used: Vec<String>,
}

/// The prefixes that a text declares and uses, even if it is not (yet) valid SPARQL. O(length of the text).
#[must_use]
pub fn prefixes_of(text: &str) -> TextPrefixes {
    let mut lexer = Lexer::new(text);
    let mut all = TextPrefixes::default();
    let mut seen = std::collections::HashSet::new();
    // The two tokens before the current one: a declaration is PREFIX, a name and an IRI.
    let mut before = [TokenKind::End; 2];
    let mut name = "";
    loop {
        let token = lexer.next();
        let part = &text[token.range()];
        match token.kind {
            TokenKind::End => return all,
            TokenKind::Prefixed | TokenKind::Namespace => {
                name = part.split_once(':').map_or(part, |p| p.0);
                if before[1] != TokenKind::Word(Keyword::Prefix) && seen.insert(name) {
                    all.used.push(name.to_owned());
                }
            }
            TokenKind::Iri
                if before == [TokenKind::Word(Keyword::Prefix), TokenKind::Namespace] =>
            {
                let iri = part.trim_start_matches('<').trim_end_matches('>');
                all.declared.push((name.to_owned(), iri.to_owned()));
            }
            _ => {}
        }
        before = [before[1], token.kind];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_prefixes_have_iris_and_come_once() {
        for (i, (prefix, iri)) in COMMON_PREFIXES.iter().enumerate() {
            assert!(oxiri::Iri::parse(*iri).is_ok(), "{iri}");
            assert!(
                COMMON_PREFIXES[..i].iter().all(|p| p.0 != *prefix),
                "{prefix}"
            );
        }
        assert_eq!(common("foaf"), Some("http://xmlns.com/foaf/0.1/"));
        assert_eq!(common("foo"), None);
    }
    #[test]
    fn a_text_says_its_prefixes() {
        let text = "BASE <http://b/> PREFIX a: <http://a/> prefix : <rel#>\n# PREFIX c: <x>\n\
                    SELECT * { ?s a:b :c ; foaf:name 'PREFIX s: <http://s/>' ; a foaf:x , <PREFIX> . FILTER(?s < 3 && \"x";
        let found = prefixes_of(text);
        let declared =
            [("a", "http://a/"), ("", "rel#")].map(|(n, i)| (n.to_owned(), i.to_owned()));
        assert_eq!(found.declared, declared);
        assert_eq!(found.used, ["a", "", "foaf"]);
        assert_eq!(prefixes_of(""), TextPrefixes::default());
        assert_eq!(
            prefixes_of("PREFIX PREFIX e: e: <x> PREFIX e:"),
            TextPrefixes {
                declared: vec![],
                used: vec!["e".into()],
            }
        );
    }
}
