//! Deeply nested documents, and entities that expand to large text.

use crate::common::parse;
use jindou_parse::Format;

/// Without the guard, each of these overflowed a stack or took minutes. Runs on threads with a stack as small as that
/// of workers.
#[test]
fn absurd_nesting_is_refused_or_parsed_and_never_overflows() {
    let n = 100_000;
    let rdf =
        "<rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\" xmlns:e=\"http://e/\">";
    let tt = "<<( <http://e/s> <http://e/p> ";
    let statement = |object: String| format!("<http://e/s> <http://e/p> {object}");
    let nested = |open: &str, inside: &str, close: &str| {
        let (open, close) = (open.repeat(n), close.repeat(n));
        statement(format!("{open}{inside}{close} ."))
    };
    let lists = |n: usize, inside: &str| format!("{}{inside}{}", "[".repeat(n), "]".repeat(n));
    let (deep, bad) = (Some("too deep"), Some("expected"));
    let literals = "<e:C><e:p rdf:parseType=\"Literal\">".repeat(n);
    let nodes = "<rdf:Description><e:p>".repeat(n);
    let contexts = format!("{{\"@context\":{},\"http://e/p\":1}}", lists(900, ""));
    let cases = [
        (Format::NTriples, statement(tt.repeat(n)), deep),
        (Format::Turtle, statement(tt.repeat(n)), deep),
        (Format::TriG, statement(tt.repeat(n)), deep),
        (Format::Turtle, statement("<< ".repeat(n)), bad),
        (Format::Turtle, nested("[<http://e/p> ", "", ""), bad),
        (Format::Turtle, nested("[<http://e/p> ", "1", "]"), None),
        (Format::Turtle, nested("(", "", ")"), None),
        (Format::JsonLd, "[".repeat(n), deep),
        (Format::JsonLd, "{\"http://e/p\":".repeat(n), deep),
        (
            Format::JsonLd,
            "{\"@context\":".to_owned() + &"[".repeat(n),
            deep,
        ),
        (Format::JsonLd, lists(1000, "1"), None),
        (Format::JsonLd, contexts, Some("@context")),
        (Format::RdfXml, format!("{rdf}{nodes}"), deep),
        (Format::RdfXml, format!("{rdf}{literals}"), deep),
    ];
    for (format, text, says) in cases {
        let start = text.chars().take(40).collect::<String>();
        let small = std::thread::Builder::new().stack_size(1 << 20);
        let read = small.spawn(move || parse(text.as_bytes(), format).map(|q| q.len()));
        match (read.unwrap().join().unwrap(), says) {
            (Ok(_), None) => {}
            (Err(e), Some(says)) => assert!(e.to_string().contains(says), "{start}: {e}"),
            (other, _) => panic!("{format} {start}: {other:?}"),
        }
    }
}

#[test]
fn nesting_up_to_the_limit_is_taken_by_every_format() {
    let deep = |n: usize| {
        let (open, close) = ("<<( <http://e/s> <http://e/p> ".repeat(n), " )>>".repeat(n));
        format!("<http://e/s> <http://e/p> {open}<http://e/o>{close} .")
    };
    use Format::{NQuads, NTriples, TriG, Turtle};
    for format in [NTriples, NQuads, Turtle, TriG] {
        assert_eq!(parse(deep(64).as_bytes(), format).unwrap().len(), 1);
        assert!(parse(deep(65).as_bytes(), format).is_err());
    }
    // Brackets in strings, comments and IRIs do not count.
    let innocent = "# <<( <<(\n<http://e/s> <http://e/p> '<<(' , \"\"\"<<( \" <<( \"\" \"\"\" , '''\\'<<( ''' , \"\" , <http://e/x#y> .\n";
    let text = innocent.repeat(100);
    assert_eq!(parse(text.as_bytes(), Format::Turtle).unwrap().len(), 500);
}

#[test]
fn entities_that_grow_are_refused() {
    let mut xml =
        String::from("<?xml version=\"1.0\"?><!DOCTYPE rdf:RDF [<!ENTITY a0 \"aaaaaaaaaa\">");
    for i in 1..30 {
        let value = format!("&a{};", i - 1).repeat(10);
        xml += &format!("<!ENTITY a{i} \"{value}\">");
    }
    xml += "]><rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\" rdf:x=\"&a29;\"/>";
    let e = parse(xml.as_bytes(), Format::RdfXml).unwrap_err();
    assert!(e.to_string().contains("entities expand to"), "{e}");
    let ok = "<?xml version=\"1.0\"?><!-- <deep> --><!DOCTYPE rdf:RDF [<!ENTITY e \"http://e/\"> <!ENTITY f \"&e;f\">]><rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\" xmlns:e=\"&e;\"><rdf:Description rdf:about=\"&f;\" e:p='a>b'/></rdf:RDF>";
    let quads = parse(ok.as_bytes(), Format::RdfXml).unwrap();
    assert_eq!(quads[0].to_string(), "<http://e/f> <http://e/p> \"a>b\"");
}
