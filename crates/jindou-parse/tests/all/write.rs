//! The writer of N-Quads against an independent reader.

use jindou_model::term::encode;
use jindou_model::{Error, QuadBatch};
use jindou_parse::write::{TagCase, write_batch, write_source, write_term};
use jindou_parse::{Format, Sources};
use oxrdf::{BaseDirection, BlankNode, Literal, NamedNode, Term, Triple};
use proptest::prelude::*;

fn round_trip(object: &Term, graph: Option<&Term>) {
    let mut batch = QuadBatch::default();
    let name = graph.map(encode).unwrap_or_default();
    batch.push_quad([b"_:s.1", b"<http://e/p", &encode(object), &name]);
    let mut text = vec![];
    write_batch(&batch, &mut text).unwrap();
    assert_eq!(text.iter().filter(|b| **b == b'\n').count(), 1);
    let read = oxttl::NQuadsParser::new().for_slice(&text);
    let read: Vec<_> = read.map(Result::unwrap).collect();
    assert_eq!(read.len(), 1);
    assert_eq!(&read[0].object, object);
    match graph {
        None => assert!(read[0].graph_name.is_default_graph()),
        Some(g) => assert_eq!(read[0].graph_name.to_string(), g.to_string()),
    }
}

#[test]
fn terms_of_every_kind_read_back() {
    let iri = |i: &str| NamedNode::new_unchecked(i);
    let all_ascii: String = (0..=0x7Fu8).map(char::from).collect();
    let triple = |o: Term| Triple::new(iri("http://e/s"), iri("http://e/p"), o);
    let inner = triple(Literal::from("a \"b\"").into());
    let rtl = BaseDirection::Rtl;
    let terms: Vec<Term> = vec![
        iri("http://e/ü/東").into(),
        BlankNode::new_unchecked("b0").into(),
        Literal::from(all_ascii.as_str()).into(),
        Literal::from("").into(),
        Literal::new_language_tagged_literal_unchecked("x\\", "zh-hant").into(),
        Literal::new_directional_language_tagged_literal_unchecked("x", "he", rtl).into(),
        Literal::from(7).into(),
        Literal::new_typed_literal("q\n", iri("http://e/dt")).into(),
        inner.clone().into(),
        triple(inner.into()).into(),
    ];
    let blank = BlankNode::new_unchecked("g");
    let graphs: [Term; 2] = [iri("http://e/g").into(), blank.into()];
    for term in &terms {
        round_trip(term, None);
        graphs.iter().for_each(|g| round_trip(term, Some(g)));
    }
}

proptest! {
    #[test]
    fn any_string_reads_back(text in any::<String>()) {
        round_trip(&Literal::from(text.as_str()).into(), None);
    }
}

#[test]
fn characters_that_an_iri_may_not_have_are_escaped() {
    let mut out = vec![];
    write_term(b"<http://e/ <>\"{}|^`\\", TagCase::Lower, &mut out).unwrap();
    let expected = r"<http://e/\u0020\u003C\u003E\u0022\u007B\u007D\u007C\u005E\u0060\u005C>";
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}

#[test]
fn tags_keep_their_meaning_in_any_spelling() {
    let mut seen = std::collections::BTreeSet::new();
    for i in 0..100 {
        let (term, mut out) = (format!("@zh-hant-tw\0{i}"), vec![]);
        write_term(term.as_bytes(), TagCase::Mixed, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        seen.insert(text.split_once('@').unwrap().1.to_owned());
    }
    let seen: Vec<String> = seen.into_iter().collect();
    assert_eq!(seen, ["ZH-HANT-TW", "zh-Hant-TW", "zh-hant-tw"]);
}

#[test]
fn damaged_bytes_are_an_error_and_never_a_panic() {
    let long = b"(\xFF\xFF\xFF\xFFx";
    for bad in [&b""[..], b"@en", b"^x", b"\xFFx", b"\x7Fx", b"(\x01", long] {
        let written = write_term(bad, TagCase::Lower, &mut vec![]);
        assert!(written.is_err(), "{bad:?}");
    }
}

/// A pipe whose reader has closed it.
struct Gone;

impl std::io::Write for Gone {
    fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
        Err(std::io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_closed_pipe_ends_the_writing() {
    let text = "<http://e/s> <http://e/p> 1 .".as_bytes();
    let source = Sources::builder().text("one", text, Format::Turtle);
    let result = write_source(&source.build().unwrap(), TagCase::Lower, &mut Gone);
    assert!(matches!(result, Err(Error::SinkClosed)));
}
