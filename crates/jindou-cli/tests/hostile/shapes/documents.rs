//! Hostile documents: the constructs of every RDF syntax that the server reads.

use super::{Shape, To};

const TTL: &str = "text/turtle";
const TRIG: &str = "application/trig";
const NT: &str = "application/n-triples";
const NQ: &str = "application/n-quads";
const XML: &str = "application/rdf+xml";
const JSON: &str = "application/ld+json";

/// The beginning of every RDF/XML document.
const RDF: &str =
    "<rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\" xmlns:e=\"http://e/\"";

/// Documents: media type, name, head, repeated text, middle, text repeated after it, tail.
#[rustfmt::skip]
const DOCUMENTS: &[(&str, &str, &str, &str, &str, &str, &str)] = &[
    (NT, "nt triples", "", "<http://e/s#> <http://e/p> \"#\" .\n", "", "", ""),
    (NT, "nt literal", "<http://e/s> <http://e/p> \"", "text ", "\" .\n", "", ""),
    (NT, "nt comment", "# ", "comment ", "\n", "", ""),
    (NT, "nt comments", "", "#\n", "", "", ""),
    (NT, "nt lines", "", "\n", "", "", ""),
    (NT, "nt iri", "<http://e/", "a", "> <http://e/p> <http://e/o> .\n", "", ""),
    (NT, "nt escapes", "<http://e/s> <http://e/p> \"", "\\u0041", "\" .\n", "", ""),
    (NT, "nt triple terms", "<http://e/s> <http://e/p> ", "<<( <http://e/s> <http://e/p> ", "<http://e/o>", " )>>", " .\n"),
    (NT, "nt errors", "", "x\n", "", "", ""),
    (NQ, "nq graphs", "", "<http://e/s#> <http://e/p> \"#\" <http://e/g#> .\n", "", "", ""),
    (TTL, "ttl triples", "", "<http://e/s#> <http://e/p> # .\n", "", "", ""),
    (TTL, "ttl objects", "<http://e/s> <http://e/p> 0", " , #", " .", "", ""),
    (TTL, "ttl predicates", "<http://e/s> <http://e/p> 0", " ; <http://e/p#> 1", " .", "", ""),
    (TTL, "ttl literal", "<http://e/s> <http://e/p> \"", "text ", "\" .", "", ""),
    (TTL, "ttl long literal", "<http://e/s> <http://e/p> \"\"\"", "text\n", "\"\"\" .", "", ""),
    (TTL, "ttl comment", "# ", "comment ", "\n", "", ""),
    (TTL, "ttl comments", "", "# comment\n", "", "", ""),
    (TTL, "ttl spaces", "", "    ", "", "", ""),
    (TTL, "ttl iri", "<http://e/", "a", "> <http://e/p> 1 .", "", ""),
    (TTL, "ttl name", "@prefix e: <http://e/> . e:", "name", " e:p 1 .", "", ""),
    (TTL, "ttl collection", "<http://e/s> <http://e/p> ( ", "# ", ") .", "", ""),
    (TTL, "ttl collections deep", "<http://e/s> <http://e/p> ", "( ", "1", " )", " ."),
    (TTL, "ttl blank nodes deep", "<http://e/s> <http://e/p> ", "[ <http://e/p> ", "1", " ]", " ."),
    (TTL, "ttl triple terms deep", "<http://e/s> <http://e/p> ", "<<( <http://e/s> <http://e/p> ", "1", " )>>", " ."),
    (TTL, "ttl reifiers deep", "", "<< ", "<http://e/s> <http://e/p> 1", " >> <http://e/p> 1", " ."),
    (TTL, "ttl prefixes", "", "@prefix p#: <http://e/#/> .\n", "", "", ""),
    (TTL, "ttl bases", "@base <http://e/> .\n", "@base <a#/> .\n", "<s> <p> 1 .", "", ""),
    (TTL, "ttl base chains", "@base <http://e/> .\n", "@base <aaaaaaaa/> .\n<s> <p> 1 .\n", "", "", ""),
    (TTL, "ttl integer", "<http://e/s> <http://e/p> ", "1234567890", " .", "", ""),
    (TTL, "ttl language", "<http://e/s> <http://e/p> \"a\"@en", "-ab", " .", "", ""),
    (TTL, "ttl labels", "", "_:b# <http://e/p> _:c# .\n", "", "", ""),
    (TTL, "ttl quotes", "", "\"", "", "", ""),
    (TTL, "ttl brackets", "<http://e/s> <http://e/p> ", "[", "", "", ""),
    (TRIG, "trig graphs", "", "<http://e/g#> { <http://e/s> <http://e/p> # }\n", "", "", ""),
    (TRIG, "trig graph", "<http://e/g> { ", "<http://e/s#> <http://e/p> # .\n", "}", "", ""),
    (JSON, "json objects", "[{}", ",{\"@id\":\"http://e/s#\",\"http://e/p\":#}", "]", "", ""),
    (JSON, "json keys", "{\"@id\":\"http://e/s\"", ",\"http://e/p#\":1", "}", "", ""),
    (JSON, "json arrays deep", "{\"@id\":\"http://e/s\",\"http://e/p\":", "[", "1", "]", "}"),
    (JSON, "json objects deep", "{\"@id\":\"http://e/s\"", ",\"http://e/p\":{\"@id\":\"http://e/#\"", "", "}", "}"),
    (JSON, "json list", "{\"@id\":\"http://e/s\",\"http://e/p\":{\"@list\":[0", ",#", "]}}", "", ""),
    (JSON, "json string", "{\"@id\":\"http://e/s\",\"http://e/p\":\"", "text ", "\"}", "", ""),
    (JSON, "json context", "{\"@context\":{\"a\":\"http://e/a\"", ",\"k#\":\"http://e/k#\"", "},\"@id\":\"http://e/s\",\"k1\":1}", "", ""),
    (JSON, "json contexts", "{\"@context\":[{}", ",{\"k#\":\"http://e/k#\"}", "],\"@id\":\"http://e/s\",\"k1\":1}", "", ""),
    (JSON, "json graphs", "{\"@graph\":[{}", ",{\"@id\":\"http://e/s#\",\"http://e/p\":#}", "]}", "", ""),
    (JSON, "json context last", "{\"@id\":\"http://e/s\"", ",\"k#\":1", ",\"@context\":{\"@vocab\":\"http://e/\"}}", "", ""),
    (JSON, "json spaces", "", "    ", "{}", "", ""),
];

/// Documents in RDF/XML: name, head after `RDF`, repeated text, middle, text repeated after it, tail.
#[rustfmt::skip]
const XML_DOCUMENTS: &[(&str, &str, &str, &str, &str, &str)] = &[
    ("xml attributes", "><rdf:Description", " e:a#=\"1\"", "/></rdf:RDF>", "", ""),
    ("xml namespaces", "", " xmlns:n#=\"http://e/#/\"", "></rdf:RDF>", "", ""),
    ("xml nodes", ">", "<rdf:Description rdf:about=\"http://e/s#\"><e:p>#</e:p></rdf:Description>", "</rdf:RDF>", "", ""),
    ("xml properties", "><rdf:Description>", "<e:p>#</e:p>", "</rdf:Description></rdf:RDF>", "", ""),
    ("xml deep", ">", "<rdf:Description><e:p>", "", "</e:p></rdf:Description>", "</rdf:RDF>"),
    ("xml text", "><rdf:Description><e:p>", "text ", "</e:p></rdf:Description></rdf:RDF>", "", ""),
    ("xml entities", "><rdf:Description><e:p>", "&amp;", "</e:p></rdf:Description></rdf:RDF>", "", ""),
    ("xml attribute", "><rdf:Description e:a=\"", "text ", "\"/></rdf:RDF>", "", ""),
    ("xml literal", "><rdf:Description><e:p rdf:parseType=\"Literal\">", "<b>#</b>", "</e:p></rdf:Description></rdf:RDF>", "", ""),
    ("xml literal attributes", "><rdf:Description><e:p rdf:parseType=\"Literal\"><b", " a#=\"1\"", "/></e:p></rdf:Description></rdf:RDF>", "", ""),
    ("xml collection", "><rdf:Description><e:p rdf:parseType=\"Collection\">", "<rdf:Description/>", "</e:p></rdf:Description></rdf:RDF>", "", ""),
    ("xml comment", "><!-- ", "comment ", "--></rdf:RDF>", "", ""),
    ("xml comments", ">", "<!--c-->", "</rdf:RDF>", "", ""),
    ("xml instruction", "><?x ", "text ", "?></rdf:RDF>", "", ""),
    ("xml name", "><rdf:Description><e:", "name", "/></rdf:Description></rdf:RDF>", "", ""),
    ("xml cdata", "><rdf:Description><e:p><![CDATA[", "text ", "]]></e:p></rdf:Description></rdf:RDF>", "", ""),
    ("xml ids", ">", "<rdf:Description rdf:ID=\"i#\"/>", "</rdf:RDF>", "", ""),
    ("xml bases", "><rdf:Description>", "<e:p><rdf:Description xml:base=\"http://e/#/\"/></e:p>", "</rdf:Description></rdf:RDF>", "", ""),
];

/// All hostile documents.
pub fn documents() -> Vec<Shape> {
    let documents = DOCUMENTS
        .iter()
        .map(|&(media, name, head, open, middle, close, tail)| {
            Shape::new(To::Store(media), name, head, open, middle, close, tail)
        });
    let xml_documents = XML_DOCUMENTS
        .iter()
        .map(|&(name, head, open, middle, close, tail)| {
            let head = format!("{RDF}{head}");
            Shape::new(To::Store(XML), name, &head, open, middle, close, tail)
        });
    documents.chain(xml_documents).collect()
}
