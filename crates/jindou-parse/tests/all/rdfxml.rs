//! RDF/XML, tested by the small documents in `tests/rdfxml`: for each `NAME.rdf` there is either `NAME.nt` with its
//! statements, or `NAME.error` with a part of the expected error. The base is `http://b/d/f`. To add a test, add two
//! files.

use crate::common::{based, canonical, collect};
use jindou_parse::Format;
use jindou_testing::files_below;
use oxrdf::Quad;
use oxrdfio::{RdfFormat, RdfParser};
use std::fs;
use std::path::Path;

fn read(bytes: &[u8]) -> Result<Vec<Quad>, String> {
    let sources = based(bytes, Format::RdfXml, "http://b/d/f");
    collect(&sources).map_err(|e| e.to_string())
}

fn expected(text: &str) -> Vec<Quad> {
    let parser = RdfParser::from_format(RdfFormat::NTriples).for_slice(text.as_bytes());
    parser.map(|q| q.unwrap()).collect()
}

fn rdf(inside: &str) -> String {
    format!(
        "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:e='http://e/'>{inside}</rdf:RDF>"
    )
}

#[test]
fn documents_say_what_stands_beside_them() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/rdfxml");
    let mut seen = 0;
    let mut names = files_below(&folder);
    names.retain(|p| p.extension().is_some_and(|e| e == "rdf"));
    names.sort();
    for path in names {
        seen += 1;
        let name = path.file_stem().unwrap().to_string_lossy();
        let result = read(&fs::read(&path).unwrap());
        match fs::read_to_string(path.with_extension("nt")) {
            Ok(text) => {
                let quads = result.unwrap_or_else(|e| panic!("{name}: {e}"));
                let [got, want] = [&quads, &expected(&text)].map(|q| canonical(q));
                assert_eq!(got, want, "{name}: {quads:#?}");
            }
            Err(_) => {
                let error = fs::read_to_string(path.with_extension("error")).unwrap();
                let e = result.map(|q| format!("{q:#?}")).expect_err(&name);
                assert!(e.contains(error.trim()), "{name}: {e}");
                assert!(e.contains("expected"), "{name}: {e}");
            }
        }
    }
    assert!(seen >= 40, "only {seen}");
}

/// Multi-byte characters; the expected bytes are from Python's codecs.
#[test]
fn encodings_of_several_bytes_are_read() {
    for (encoding, text, bytes) in [
        ("Shift_JIS", "日本", &b"\x93\xfa\x96\x7b"[..]),
        ("EUC-JP", "日本", b"\xc6\xfc\xcb\xdc"),
        ("ISO-2022-JP", "日本", b"\x1b$BF|K\\\x1b(B"),
        ("GB18030", "日本𝄞", b"\xc8\xd5\xb1\xbe\x94\x32\xbe\x34"),
        ("GBK", "日本", b"\xc8\xd5\xb1\xbe"),
        ("Big5", "日本", b"\xa4\xe9\xa5\xbb"),
        ("EUC-KR", "한", b"\xc7\xd1"),
    ] {
        let node = rdf("<rdf:Description rdf:about='http://e/a'><e:p>?</e:p></rdf:Description>");
        let document = format!("<?xml version='1.0' encoding='{encoding}'?>{node}");
        let at = document.rfind('?').unwrap();
        let (before, behind) = document.as_bytes().split_at(at);
        let whole = [before, bytes, &behind[1..]].concat();
        let quads = read(&whole).unwrap_or_else(|e| panic!("{encoding}: {e}"));
        assert_eq!(quads.len(), 1, "{encoding}");
        let expected = format!("<http://e/a> <http://e/p> \"{text}\"");
        assert_eq!(quads[0].to_string(), expected, "{encoding}");
        for to in 0..whole.len() {
            assert!(read(&whole[..to]).is_err(), "{encoding}, cut at {to}");
        }
        let broken = [before, &bytes[..1], &behind[1..]].concat();
        assert!(read(&broken).is_err(), "{encoding}");
    }
}

#[test]
fn encodings_are_read() {
    let inside = "<rdf:Description rdf:about='http://e/a'><e:p>é</e:p></rdf:Description>";
    let document = rdf(inside);
    let declared =
        |encoding: &str| format!("<?xml version='1.0' encoding='{encoding}'?>{document}");
    let wide = |text: &str, little: bool, mark: bool| -> Vec<u8> {
        let text = format!("{}{text}", if mark { "\u{FEFF}" } else { "" });
        let bytes = |u: u16| match little {
            true => u.to_le_bytes(),
            false => u.to_be_bytes(),
        };
        text.encode_utf16().flat_map(bytes).collect()
    };
    let narrow = |text: &str, code: u8| -> Vec<u8> {
        let byte = |c| match c {
            'é' => code,
            c => u8::try_from(c).unwrap(),
        };
        text.chars().map(byte).collect()
    };
    let all = [
        document.clone().into_bytes(),
        format!("\u{FEFF}{document}").into_bytes(),
        format!("\u{FEFF}{}", declared("UTF-8")).into_bytes(),
        wide(&document, true, true),
        wide(&document, false, true),
        wide(&declared("UTF-16"), true, true),
        wide(&declared("UTF-16"), false, true),
        wide(&declared("UTF-16LE"), true, false),
        wide(&declared("UTF-16BE"), false, false),
        narrow(&declared("ISO-8859-1"), 0xE9),
        narrow(&declared("iso-8859-15"), 0xE9),
        narrow(&declared("windows-1252"), 0xE9),
        narrow(&declared("IBM866").replace('é', "&#xE9;"), 0),
        narrow(&declared("US-ASCII").replace('é', "&#233;"), 0),
        narrow(&declared("macintosh"), 0x8E),
    ];
    for (n, bytes) in all.iter().enumerate() {
        let quads = read(bytes).unwrap_or_else(|e| panic!("{n}: {e}"));
        let quads: Vec<String> = quads.iter().map(Quad::to_string).collect();
        assert_eq!(quads, ["<http://e/a> <http://e/p> \"é\""], "{n}");
    }
    for bad in [
        narrow(&document, 0xE9),
        narrow(&declared("US-ASCII"), 0xE9),
        declared("UTF-16").into_bytes(),
        wide(&declared("UTF-8"), true, true),
        declared("x-nobody-knows").into_bytes(),
        wide(&document, true, true)[..101].to_vec(),
    ] {
        let e = read(&bad).unwrap_err();
        assert!(e.contains("expected"), "{e}");
    }
}

#[test]
fn a_cut_document_is_an_error_wherever_it_is_cut() {
    let document = rdf(
        "<!-- c --><rdf:Description rdf:about='http://e/a'><e:p>text &amp; <![CDATA[more]]></e:p><e:q rdf:parseType='Literal'><b>x</b></e:q></rdf:Description>",
    );
    for text in [
        format!("<?xml version='1.0'?><!DOCTYPE rdf:RDF [<!ENTITY a 'b'>]>{document}"),
        document,
    ] {
        for cut in 0..text.len() {
            let e = read(&text.as_bytes()[..cut]).expect_err(&text[..cut]);
            assert!(e.starts_with("text:1:"), "{e}");
        }
        assert_eq!(read(text.as_bytes()).unwrap().len(), 2);
        // White space, comments and instructions may follow the root element.
        let more = format!("{text}\n<!-- c --> <?p?>");
        assert_eq!(read(more.as_bytes()).unwrap().len(), 2);
        assert!(read(format!("{text}<more/>").as_bytes()).is_err());
        assert!(read(format!("{text}more").as_bytes()).is_err());
    }
}

/// Parses leniently: returns the statements, the lines of skipped statements, and the number of unread bytes.
fn lenient(bytes: &[u8], format: Format) -> (Vec<String>, Vec<u64>, u64) {
    let sources = crate::common::lenient(bytes, format);
    let quads = collect(&sources).unwrap();
    let lines = sources.first_skipped().iter().map(|b| b.at.line).collect();
    let mut said: Vec<String> = quads.iter().map(ToString::to_string).collect();
    said.sort();
    (said, lines, sources.rest().documents)
}

#[test]
fn a_lenient_reading_loses_the_statements_that_are_not_valid_and_no_others() {
    let document = rdf(
        "
<rdf:Description rdf:about='http://e/a b'><e:p>1</e:p>
  <e:p>2</e:p><e:q rdf:resource='http://e/x'/></rdf:Description>
<rdf:Description rdf:about='http://e/a'><e:p rdf:resource='http://e/b c'/><e:p xml:lang='not a tag'>3</e:p>
  <e:p rdf:datatype='a b:c'>4</e:p><e:p>5</e:p><e:q><rdf:Description rdf:about='%%'><e:p>6</e:p></rdf:Description></e:q></rdf:Description>
<rdf:Description rdf:about='http://e/c' xml:lang='x y z'><e:p xml:lang='en'>7</e:p><e:p xml:lang=''>8</e:p><e:p>9</e:p></rdf:Description>
<rdf:Description rdf:about='http://e/d' nobody='knows' rdf:type='http://e/T'/>",
    );
    let (said, lines, rest) = lenient(document.as_bytes(), Format::RdfXml);
    let expected = [
        "<http://e/a> <http://e/p> \"5\"",
        "<http://e/c> <http://e/p> \"7\"@en",
        "<http://e/c> <http://e/p> \"8\"",
        "<http://e/d> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://e/T>",
    ];
    assert_eq!(said, expected);
    // Each of these lines has statements with something invalid in them.
    assert_eq!(lines, [2, 2, 2, 4, 4, 5, 5, 5, 6, 7]);
    assert_eq!(rest, 0);
    // A strict parse of the document ends at the first invalid statement.
    let e = read(document.as_bytes()).unwrap_err();
    assert!(e.starts_with("text:2:"), "{e}");
}

#[test]
fn a_lenient_reading_says_which_turtle_statements_it_left_out() {
    let text = "@prefix : <http://e/> .
:a :p \"1\" .
:b :p <http://bad iri> .
:c :p \"3\" ; :q \"unterminated
:d :p \"4\" .
:e :p \"5\" .
";
    let numbered = [("a", "1"), ("c", "3"), ("d", "4"), ("e", "5")];
    let numbered = numbered.map(|(s, o)| format!("<http://e/{s}> <http://e/p> \"{o}\""));
    // If no quotation mark follows, the string is open up to the end of the document; a long string always is.
    for open in ["\"unterminated", "'unterminated", "'''unterminated"] {
        let text = text.replace("\"unterminated", open);
        let (said, lines, _) = lenient(text.as_bytes(), Format::Turtle);
        assert_eq!(said, numbered);
        assert_eq!(lines, [3, 4]);
    }
}

/// Appends random nodes or content that both readers support.
fn random_node(next: &mut impl FnMut(usize) -> usize, depth: usize, out: &mut String) {
    let name = ["rdf:Description", "e:C", "e:D"][next(3)];
    *out += &format!("<{name}");
    match next(4) {
        0 => *out += &format!(" rdf:about='http://e/{}'", next(5)),
        1 => *out += &format!(" rdf:about='r{}'", next(5)),
        2 => *out += &format!(" rdf:nodeID='n{}'", next(3)),
        _ => {}
    }
    if next(4) == 0 {
        *out += &format!(" e:x='{}'", ["v", "a &amp; b", ""][next(3)]);
    }
    if next(6) == 0 {
        *out += " rdf:type='http://e/T'";
    }
    if next(5) == 0 {
        *out += " xml:lang='en'";
    }
    if next(8) == 0 {
        *out += " xml:base='http://other/base/'";
    }
    *out += ">";
    for _ in 0..next(4) {
        let name = ["e:p", "e:q", "rdf:li", "rdf:_7"][next(4)];
        *out += "\n ";
        *out += &match next(9) {
            0 => format!("<{name} rdf:resource='x{}'/>", next(3)),
            1 => format!("<{name}>text {}</{name}>", next(9)),
            2 => format!("<{name} xml:lang='de'> t </{name}>"),
            3 => format!("<{name} rdf:datatype='http://e/d'>{}</{name}>", next(9)),
            4 => format!("<{name} e:y='z'/>"),
            5 if depth > 0 => {
                let mut inner = String::new();
                (0..next(3)).for_each(|_| random_node(next, depth - 1, &mut inner));
                format!("<{name} rdf:parseType='Collection'>{inner}</{name}>")
            }
            6 => format!("<{name} rdf:parseType='Literal'>x<b a='1'>&lt;</b></{name}>"),
            7 => format!("<{name} rdf:parseType='Resource'><e:in rdf:nodeID='n1'/></{name}>"),
            _ if depth > 0 => {
                let mut inner = String::new();
                random_node(next, depth - 1, &mut inner);
                format!("<{name}>{inner}</{name}>")
            }
            _ => format!("<{name}/>"),
        };
    }
    *out += &format!("</{name}>");
}

#[test]
fn random_documents_are_the_graphs_that_another_reader_sees() {
    let mut random = jindou_testing::Rng::new(1);
    let mut next = move |n: usize| random.below(n);
    let mut statements = 0;
    for _ in 0..300 {
        let mut inside = String::new();
        for _ in 0..1 + next(3) {
            random_node(&mut next, 3, &mut inside);
        }
        let document = rdf(&inside);
        let parser = oxrdfxml::RdfXmlParser::new().with_base_iri("http://b/d/f");
        let theirs = parser.unwrap().for_slice(&document);
        let theirs = theirs.map(|t| t.unwrap().in_graph(oxrdf::GraphName::DefaultGraph));
        let theirs: Vec<Quad> = theirs.collect();
        let ours = read(document.as_bytes()).unwrap_or_else(|e| panic!("{document}: {e}"));
        statements += ours.len();
        // The other reader declares all namespaces in XML literals, so these are compared by the W3C suites instead.
        let of = |quads: &[Quad]| {
            let mut rest: Vec<Quad> = quads.to_vec();
            rest.retain(|q| !q.object.to_string().contains("XMLLiteral"));
            canonical(&rest)
        };
        assert_eq!(of(&ours), of(&theirs), "{document}");
        let [ours, theirs] = [&ours, &theirs].map(|quads| canonical(quads).len());
        assert_eq!(ours, theirs, "{document}");
    }
    assert!(statements > 1000, "{statements}");
}
