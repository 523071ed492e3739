//! Documents of every syntax, plain and compressed, truncated at every byte. The result must be an error, unless the
//! text before the cut is a whole document, as it may be in N-Quads and Turtle. It must never contain a truncated term,
//! or fewer statements than the text before the cut.

use crate::common::{based, collect, compress};
use jindou_parse::Sources;
use jindou_testing::{Document, documents, may_end};

fn read(bytes: &[u8], format: &str) -> Result<Vec<String>, String> {
    let sources = based(bytes, format.parse().unwrap(), "http://base/");
    let quads = collect(&sources).map_err(|e| e.to_string())?;
    Ok(quads.iter().map(ToString::to_string).collect())
}

#[test]
fn plain_documents_are_whole_or_errors() {
    plain(documents(8));
}

#[test]
#[ignore = "long"]
fn fifty_plain_documents_of_each_syntax_are_whole_or_errors() {
    plain(documents(50));
}

fn plain(documents: Vec<Document>) {
    for (format, text) in documents {
        let whole = read(text.as_bytes(), format).unwrap();
        for cut in 0..text.len() {
            let Ok(quads) = read(&text.as_bytes()[..cut], format) else {
                continue;
            };
            let before = std::str::from_utf8(&text.as_bytes()[..cut]).unwrap();
            // If "-1.5" is cut after its dot, what remains is a whole statement about -1.
            if before.ends_with('.') && text.as_bytes()[cut].is_ascii_digit() {
                continue;
            }
            let is_right = quads.len() == whole.len() || may_end(format, before);
            assert!(is_right, "{format}, {before:?}: {quads:?}");
            // Each quad is also in the whole document, apart from labels of unlabelled nodes.
            for quad in quads.iter().filter(|q| !q.contains("_:d")) {
                assert!(whole.contains(quad), "{format}, {before:?}: {quad}");
            }
        }
    }
}

#[test]
fn compressed_documents_are_whole_or_errors() {
    compressed(documents(2));
}

#[test]
#[ignore = "long"]
fn fifty_compressed_documents_of_each_syntax_are_whole_or_errors() {
    compressed(documents(50));
}

fn compressed(documents: Vec<Document>) {
    for (format, text) in documents {
        let whole = read(text.as_bytes(), format).unwrap();
        for packed in ["gz", "xz", "zst"].map(|kind| compress(kind, text.as_bytes())) {
            assert_eq!(read(&packed, format).unwrap(), whole, "{format}");
            // The empty text is excluded, since in some syntaxes it is a document without statements.
            for cut in 1..packed.len() {
                if let Ok(quads) = read(&packed[..cut], format) {
                    assert_eq!(quads, whole, "{format}, {cut} of {}", packed.len());
                }
            }
        }
    }
}

#[test]
fn an_empty_file_with_the_name_of_a_compressed_one_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["a.ttl.gz", "a.nt.xz", "a.trig.zst", "a.nq.bz2"] {
        let path = dir.path().join(name);
        std::fs::write(&path, b"").unwrap();
        let sources = Sources::builder().path(&path).build().unwrap();
        let e = collect(&sources).unwrap_err().to_string();
        assert!(e.contains("it is empty"), "{e}");
    }
}
