//! This crate's tokeniser of N-Triples and N-Quads against `oxttl`: both must accept the same lines and produce the
//! same terms, for valid lines and for mutations of them.

use crate::common::parse;
use jindou_parse::Format;
use jindou_testing::{Rng, from_environment};
use oxrdf::{GraphName, Quad};
use oxttl::{NQuadsParser, NTriplesParser};
use proptest::prelude::*;

fn oracle(text: &[u8], format: Format) -> Result<Vec<Quad>, String> {
    let read: Result<_, _> = match format {
        Format::NQuads => NQuadsParser::new().for_slice(text).collect(),
        _ => NTriplesParser::new()
            .for_slice(text)
            .map(|t| t.map(|t| t.in_graph(GraphName::DefaultGraph)))
            .collect(),
    };
    read.map_err(|e| e.to_string())
}

/// Compares both parsers; returns true if the text is valid.
fn same(text: &[u8], format: Format) -> bool {
    let shown = String::from_utf8_lossy(text);
    match (oracle(text, format), parse(text, format)) {
        (Ok(theirs), Ok(ours)) => {
            assert_eq!(ours, theirs, "{shown}");
            true
        }
        (Err(_), Err(e)) => {
            let message = e.to_string();
            assert!(message.starts_with("text:"), "{message}");
            assert!(message.contains("expected"), "{message}");
            false
        }
        (theirs, ours) => panic!("{shown:?}\noxttl: {theirs:?}\nours:  {ours:?}"),
    }
}

const SEEDS: &[&str] = &[
    "<http://e/s> <http://e/p> <http://e/o> .\n",
    "<http://e/s> <http://e/p> <http://e/o2> . # comment\n",
    "_:a <http://e/p> _:b.c .\n",
    "<http://e/s> <http://e/p> \"plain\" .\r\n",
    "<http://e/s><http://e/p>\"tight\"@en-GB.\n",
    "<http://e/s> <http://e/p> \"esc \\t\\n\\\"\\\\ \\u00e9 \\U0001F600\"@de .\n",
    "<http://e/s> <http://e/p> \"\\\"\"^^<http://www.w3.org/2001/XMLSchema#string> .\n",
    "<http://e/s>\t<http://e/p>\t\"1\"^^<http://www.w3.org/2001/XMLSchema#integer>\t.\n",
    "<http://e/s> <http://e/p> \"x\"^^<http://e/\\u00E9dt> .\n",
    "<http://ex/\\u00e9> <urn:p:q> <mailto:a@b> .\n",
    "<http://é.org/ü?q=1#f> <http://e/%20p> <http://e:80/> .\n",
    "<http://e/s> <http://e/p> \"dir\"@he--rtl .\n",
    "<http://e/s> <http://e/p> <<( <http://e/a> <http://e/b> <<( _:x <http://e/b> \"c\"@en )>> )>> .\n",
    "# only a comment\n\n   \n",
    "_:é·x <http://e/p> \"日本語\" .\n",
    "<http://e/s> <http://e/p> \"\" .",
    "<http://e/s> <http://e/p> \"x\"@zh-Hant-TW .\r",
];
const GRAPHS: &[&str] = &[
    "<http://e/s> <http://e/p> <http://e/o> <http://e/g> .\n",
    "_:a <http://e/p> \"x\"@en _:g.\n",
    "<http://e/s> <http://e/p> \"x\"<http://e/g>.\n",
];
/// Pieces that mutations insert, separated by commas.
const PIECES: &str = "<,>,\",\\,.,@,^^,^,_:,<<(,)>>,\n,\r, ,\t,#,-,--,--ltr,en,\\u,\\uD800,\\U0010FFFF,\\u00,\
    é,\u{B7},\u{FFFF},\0,%,%4,a,0,:,/,http://e/x,<http://e/z>,[,{,|,`,<<,\u{E000},(,),',;,<a>,<#x>,_,\u{A0}";

#[test]
fn valid_lines_give_the_same_terms() {
    for seed in SEEDS {
        assert!(same(seed.as_bytes(), Format::NTriples), "{seed}");
        assert!(same(seed.as_bytes(), Format::NQuads), "{seed}");
    }
    for seed in GRAPHS {
        assert!(same(seed.as_bytes(), Format::NQuads), "{seed}");
        assert!(!same(seed.as_bytes(), Format::NTriples), "{seed}");
    }
    let twice = SEEDS[..15].concat().repeat(2);
    assert!(same(twice.as_bytes(), Format::NTriples));
}

#[test]
fn bytes_that_are_not_utf8_matter_only_outside_comments() {
    let with = |at: &str| {
        let text = "<http://e/sA> <http://e/p> \"oB\\tC\" . # D\n_:b <http://e/p> _:cE .\n";
        let (a, b) = text.split_once(at).unwrap();
        [a.as_bytes(), b"\xFF\xE9", b.as_bytes()].concat()
    };
    for at in ["A", "B", "C", "E"] {
        assert!(!same(&with(at), Format::NTriples), "{at}");
    }
    assert!(same(&with("D"), Format::NTriples));
}

/// The environment variable `JINDOU_MUTATIONS` sets the number of cases.
#[test]
fn mutated_lines_get_the_same_verdict() {
    let cases = from_environment("JINDOU_MUTATIONS", 60_000) as usize;
    let pieces: Vec<&str> = PIECES.split(',').collect();
    let mut random = Rng::new(7);
    let mut valid = 0;
    let all: Vec<&str> = SEEDS.iter().chain(GRAPHS).copied().collect();
    for _ in 0..cases {
        let mut text = Vec::new();
        for _ in 0..=random.below(2) {
            text.extend_from_slice(all[random.below(all.len())].as_bytes());
        }
        for _ in 0..=random.below(3) {
            let at = random.below(text.len() + 1);
            match random.below(6) {
                0 => drop(text.drain(at..(at + 1 + random.below(3)).min(text.len()))),
                1 if at < text.len() => text[at] = random.below(256) as u8,
                2 if at < text.len() => text[at] ^= 1 << random.below(8),
                3 => {
                    let piece = all[random.below(all.len())].as_bytes();
                    let from = random.below(piece.len());
                    let to = from + random.below(piece.len() - from);
                    drop(text.splice(at..at, piece[from..to].iter().copied()));
                }
                _ => {
                    let piece = pieces[random.below(pieces.len())].bytes();
                    drop(text.splice(at..at, piece));
                }
            }
        }
        let format = [Format::NTriples, Format::NQuads][random.below(2)];
        valid += usize::from(same(&text, format));
    }
    // Otherwise the mutations are too wild to test anything.
    assert!(valid > cases / 50, "{valid} valid");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn composed_lines_get_the_same_verdict(
        parts in proptest::collection::vec(prop_oneof![
            Just("<http://e/s>".to_owned()), Just(" ".to_owned()), Just(".".to_owned()), Just("\n".to_owned()),
            "_:[a-z0-9.é·-]{0,4}", "\"[a-z\\\\nu0é\"]{0,6}\"", "@[a-zA-Z0-9-]{0,9}", "<[a-z:/#%0é?\\[\\]@ ]{0,12}>",
            Just("^^".to_owned()), Just("<<(".to_owned()), Just(")>>".to_owned()),
        ], 0..10),
        quads in any::<bool>(),
    ) {
        let text: String = ["<http://e/s> <http://e/p> "].into_iter().chain(parts.iter().map(String::as_str)).collect();
        let format = if quads { Format::NQuads } else { Format::NTriples };
        same(text.as_bytes(), format);
        same(format!("{text} .").as_bytes(), format);
    }
}
