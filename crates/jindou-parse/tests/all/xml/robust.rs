//! Arbitrary input, in pieces of any size: no panic, no endless work, and the same document whatever the pieces.

use super::common::{Slow, canonical, skipping};
use jindou_model::MemoryBudget;
use jindou_parse::xml::{Error, Event, Reader, ReaderOptions};
use proptest::prelude::*;
use std::io::Read;
use std::time::{Duration, Instant};

const DOCUMENTS: [&str; 6] = [
    "<?xml version='1.0' encoding='UTF-8' standalone='yes'?>\r\n<!DOCTYPE a [<!ENTITY e \"<b>&f;</b>\">\r<!ENTITY f 'é&#13;'><!ATTLIST b c NMTOKENS ' d  e '>]>\r\n<a x='1\r\n2&f;'>&e;&amp;\r\r\n]]<![CDATA[]]]]><![CDATA[>\r]]><!-- c\r\n --><?p d\r?></a>\n<?q?>",
    "<p:a xmlns:p='u' xmlns='v' p:b=\"1\" b='2'><c xmlns=''/><p:c xmlns:p='w' p:d='é𝄞'/></p:a>",
    "<!DOCTYPE a SYSTEM 's' [<!ELEMENT a (#PCDATA|b)*><!NOTATION n PUBLIC 'p'><!ENTITY % p '<!ENTITY x \"y\">'>%p;<!-- ]> ' --><?z ]>?>]><a>&x;&undeclared;</a>",
    "<a><b><c/></b>text<d e='f'>more</d></a>",
    "<a>\u{85}\u{2028}é\u{FFFD}\u{10FFFF}</a>",
    "<a b='&lt;&gt;&quot;&apos;&amp;&#65;&#x42;'/>",
];

#[test]
fn pieces_make_no_difference() {
    for document in DOCUMENTS {
        let whole = canonical(document.as_bytes(), skipping(true)).unwrap();
        let wide = format!("\u{FEFF}{}", document.replace("UTF-8", "UTF-16"));
        let wide: Vec<u8> = wide.encode_utf16().flat_map(u16::to_le_bytes).collect();
        for piece in [1, 2, 3, 7, 64] {
            for bytes in [document.as_bytes(), &wide] {
                let read = canonical(Slow(bytes, piece), skipping(true));
                assert_eq!(read.unwrap(), whole);
            }
        }
    }
}

#[test]
fn a_document_that_is_cut_is_an_error_wherever_it_is_cut() {
    for document in DOCUMENTS {
        let end = document.rfind("</").or_else(|| document.rfind("/>"));
        for cut in 0..=end.unwrap() {
            let read = canonical(&document.as_bytes()[..cut], skipping(true));
            let is_fault = matches!(read, Err(Error::Syntax(_)));
            assert!(is_fault, "{cut} of {document}: {read:?}");
        }
    }
}

#[test]
fn faults_have_their_place() {
    for (document, line, column, offset) in [
        ("<a>\n<b></c></a>", 2, 4, 7),
        ("<a>\r\n\ré\u{1}</a>", 3, 2, 8),
        ("\u{FEFF}<a b=1/>", 1, 6, 8),
        ("<a>é\n  &nothing;</a>", 2, 3, 8),
        ("<a", 1, 1, 0),
        ("<!DOCTYPE a [\n<!ENTITY b 'c'>\r\n <!BAD>]><a/>", 3, 2, 32),
        ("<a>\n</a>\n<b/>", 3, 1, 9),
    ] {
        for piece in [1, 1000] {
            let Err(Error::Syntax(fault)) =
                canonical(Slow(document.as_bytes(), piece), ReaderOptions::default())
            else {
                panic!("{document} is accepted");
            };
            let at = (fault.at.line, fault.at.column, fault.at.offset);
            assert_eq!(at, (line, column, offset), "{document:?}: {fault}");
        }
    }
    // In UTF-16, too, positions count the bytes of the document.
    let wide = "\u{FEFF}<a>é𝄞\n<b></a>".encode_utf16();
    let wide: Vec<u8> = wide.flat_map(u16::to_be_bytes).collect();
    let Err(Error::Syntax(fault)) = canonical(wide.as_slice(), ReaderOptions::default()) else {
        panic!("accepted");
    };
    let at = (fault.at.line, fault.at.column, fault.at.offset);
    assert_eq!(at, (2, 4, 22));
    assert_eq!((fault.line.as_str(), fault.at_in_line), ("<b></a>", 3));
}

/// Reads a document to its end or an error; returns the number of bytes of text.
fn drain(source: impl Read, options: ReaderOptions) -> Result<u64, Error> {
    let mut reader = Reader::new(source, options)?;
    let mut bytes = 0;
    loop {
        match reader.next_event()? {
            Event::Text(text) => bytes += text.len() as u64,
            Event::Eof => return Ok(bytes),
            _ => {}
        }
    }
}

/// A reader that returns some bytes first, and then a piece that it repeats for ever.
struct Endless(Vec<u8>, &'static [u8], usize);

impl Read for Endless {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        if !self.0.is_empty() {
            let n = self.0.len().min(to.len());
            to[..n].copy_from_slice(&self.0[..n]);
            self.0.drain(..n);
            return Ok(n);
        }
        for b in to.iter_mut() {
            *b = self.1[self.2 % self.1.len()];
            self.2 += 1;
        }
        Ok(to.len())
    }
}

#[test]
fn what_grows_is_refused_soon() {
    let bomb = |content: &str| {
        let mut text = String::from("<!DOCTYPE a [<!ENTITY e0 'ha'>");
        for i in 1..40 {
            text += &format!("<!ENTITY e{i} '&e{};&e{};'>", i - 1, i - 1);
        }
        text + "]>" + content
    };
    let empty = |content: &str| bomb(content).replace("'ha'", "''");
    let (x, many) = ("x".repeat(100_000), |text: &str| text.repeat(100_000));
    let long = "a".repeat(1 << 17);
    let attributes: String = (0..2000).map(|i| format!("b{i}='' ")).collect();
    let start = Instant::now();
    for text in [
        bomb("<a>&e39;</a>"),
        bomb("<a b='&e39;'/>"),
        empty("<a>&e39;</a>"),
        empty("<a b='&e39;'/>"),
        bomb("<!ATTLIST a b CDATA '&e39;'>]><a/>").replacen("]>", "", 1),
        format!("<!DOCTYPE a [<!ENTITY b '{x}'>]><a>{}</a>", many("&b;")),
        format!(
            "<!DOCTYPE a [<!ATTLIST a b CDATA '{x}'>]><a>{}</a>",
            many("<a/>")
        ),
        format!("<a {attributes}/>"),
        "<a>".repeat(2000),
        format!("<{long}/>"),
        format!("<a b{long}=''/>"),
        format!("<a>&{long};</a>"),
        format!("<!DOCTYPE a [{}]><a/>", " ".repeat(5 << 20)),
    ] {
        let read = drain(text.as_bytes(), ReaderOptions::default());
        let e = read.expect_err(&text[..60.min(text.len())]).to_string();
        let reasons = [
            "the maximum",
            "at most",
            "does not refer",
            "begin a reference",
        ];
        assert!(reasons.iter().any(|r| e.contains(r)), "{e}");
    }
    // Groups inside groups of a declaration are limited only by its length.
    let [open, close] = ["(", ")"].map(|c| c.repeat(500_000));
    let deep = format!("<!DOCTYPE a [<!ELEMENT a {open}b{close}>]><a/>");
    drain(deep.as_bytes(), ReaderOptions::default()).unwrap();
    let time = start.elapsed();
    assert!(time < Duration::from_secs(60), "{time:?}");
}

#[test]
fn markup_without_end_is_held_no_further_than_the_budget_lets() {
    for begin in "<a b='|<!--|<?p |<a |<!DOCTYPE a [ |<a><b c='&amp;|<a>&|<".split('|') {
        for more in [&b"x"[..], b">", b"' "] {
            if (begin, more) == ("<a ", b">") {
                // This is a complete tag, followed by endless text.
                continue;
            }
            let mut options = ReaderOptions::default();
            options.memory = MemoryBudget::new(2 << 20);
            let start = Instant::now();
            let read = drain(Endless(begin.as_bytes().to_vec(), more, 0), options);
            let is_refused = matches!(read, Err(Error::Limit(_) | Error::Syntax(_)));
            assert!(is_refused, "{begin}: {read:?}");
            let time = start.elapsed();
            assert!(time < Duration::from_secs(60), "{begin}: {time:?}");
        }
    }
    // Long text, comments and CDATA sections are not held in memory.
    let mut options = ReaderOptions::default();
    options.memory = MemoryBudget::new(1 << 20);
    let text = format!(
        "<a>{}<![CDATA[{}]]>{}</a>",
        "x".repeat(8 << 20),
        "]]".repeat(4 << 20),
        "<!-- c -->\n".repeat(1 << 18)
    );
    let read = drain(text.as_bytes(), options).unwrap();
    assert_eq!(read, (16 << 20) + (1 << 18));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn damaged_documents_are_read_the_same_in_pieces(
        which in 0..DOCUMENTS.len(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..3u8), 0..4),
        piece in 1..9usize,
        namespaces: bool,
    ) {
        let mut bytes = DOCUMENTS[which].as_bytes().to_vec();
        for (at, byte, how) in changes {
            let at = at.index(bytes.len());
            let byte = if byte % 2 == 0 { b"<>&;'\"/=!?[]-%#: "[usize::from(byte) % 17] } else { byte };
            match how {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                _ => { bytes.remove(at); }
            }
        }
        let whole = canonical(bytes.as_slice(), skipping(namespaces)).map_err(|e| e.to_string());
        let pieces = canonical(Slow(&bytes, piece), skipping(namespaces)).map_err(|e| e.to_string());
        // Which error is found first may depend on the pieces, but not whether there is one.
        prop_assert_eq!(whole.as_ref().ok(), pieces.as_ref().ok());
        prop_assert_eq!(whole.is_err(), pieces.is_err());
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = canonical(bytes.as_slice(), skipping(true));
        let _ = canonical([b"<a>", bytes.as_slice()].concat().as_slice(), skipping(true));
    }
}
