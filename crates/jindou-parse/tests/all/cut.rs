//! Documents of every syntax, plain and compressed, cut at every byte: an error, or what stands before the cut is a whole document itself, as lines
//! of N-Quads and statements of Turtle are. Never half a term, never fewer statements than there are.

use crate::common;
use common::collect;
use jindou_parse::{Format, Sources};
use std::io::Write;

const RDF: &str =
    "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:e='http://e/'>";

fn documents() -> Vec<(Format, String)> {
    let mut all = Vec::new();
    for n in 0..10 {
        let text = ["1", "two words", "é𝄞", "&amp;", "a\tb"][n % 5];
        let plain = text.replace("&amp;", "and").replace('\t', "\\t");
        all.push((
            Format::RdfXml,
            format!("<?xml version='1.0'?>\n{RDF}<e:C rdf:about='http://e/{n}'><e:p>{text}</e:p><e:q rdf:parseType='Collection'><e:D/><e:D/></e:q></e:C></rdf:RDF>"),
        ));
        all.push((
            Format::Turtle,
            format!("@prefix : <http://e/> .\n:s{n} :p \"{plain}\"@en-GB , 12{n} , true ; :q ( 1 [ :r <x> ] ) .\n:t{n} a :C . # end\n"),
        ));
        all.push((
            Format::TriG,
            format!("PREFIX : <http://e/>\n:g{n} {{ :s :p '''{plain}''' . :s :q 1.5e{n} }}\n{{ :t :p _:b }} GRAPH :h {{ :u :p << :a :b :c >> }}\n"),
        ));
        all.push((
            Format::NQuads,
            format!("<http://e/s{n}> <http://e/p> \"{plain}\"^^<http://e/d> <http://e/g> .\n_:b1 <http://e/p> _:b12 .\n"),
        ));
        all.push((
            Format::JsonLd,
            format!(r#"{{"@context":{{"e":"http://e/"}},"@id":"e:{n}","e:p":["{plain}",{n}.5,true],"e:q":{{"@list":[{{"@id":"e:x"}},1]}}}}"#),
        ));
    }
    all
}

fn read(bytes: &[u8], format: Format) -> Result<Vec<String>, String> {
    let sources = Sources::builder()
        .text("text", bytes.to_vec(), format)
        .base_iri(Some("http://base/".into()))
        .build()
        .unwrap();
    let quads = collect(&sources).map_err(|e| e.to_string())?;
    Ok(quads.iter().map(ToString::to_string).collect())
}

/// Whether a document may end here: the text before is whole statements, by the forms of the documents above.
fn may_end(format: Format, before: &str) -> bool {
    let end = before.trim_end();
    let end = end.rsplit_once("\n").map_or(end, |(head, last)| {
        if last.starts_with('#') {
            head.trim_end()
        } else {
            end
        }
    });
    let end = end.split(" # ").next().unwrap_or_default().trim_end();
    match format {
        Format::Turtle | Format::NQuads => end.is_empty() || end.ends_with(" ."),
        Format::TriG => end.is_empty() || end.ends_with('}') || end.ends_with("<http://e/>"),
        _ => false,
    }
}

#[test]
fn plain_documents_are_whole_or_errors() {
    for (format, text) in documents() {
        let whole = read(text.as_bytes(), format).unwrap();
        for cut in 0..text.len() {
            let Ok(quads) = read(&text.as_bytes()[..cut], format) else {
                continue;
            };
            let before = std::str::from_utf8(&text.as_bytes()[..cut]).unwrap();
            let is_all = quads.len() == whole.len();
            assert!(
                is_all || may_end(format, before),
                "{format}, {before:?}: {quads:?}"
            );
            // Each is one of the whole document's, nodes without labels aside.
            for quad in quads.iter().filter(|q| !q.contains("_:d")) {
                assert!(whole.contains(quad), "{format}, {before:?}: {quad}");
            }
        }
    }
}

#[test]
fn compressed_documents_are_whole_or_errors() {
    let gzip = |text: &[u8]| {
        let mut to = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        to.write_all(text).unwrap();
        to.finish().unwrap()
    };
    let xz = |text: &[u8]| {
        let mut to = liblzma::write::XzEncoder::new(Vec::new(), 6);
        to.write_all(text).unwrap();
        to.finish().unwrap()
    };
    let zstd = |text: &[u8]| zstd::encode_all(text, 3).unwrap();
    for (format, text) in documents().into_iter().take(10) {
        let whole = read(text.as_bytes(), format).unwrap();
        for packed in [
            gzip(text.as_bytes()),
            xz(text.as_bytes()),
            zstd(text.as_bytes()),
        ] {
            assert_eq!(read(&packed, format).unwrap(), whole, "{format}");
            // Nothing at all is a document without statements in some syntaxes.
            for cut in 1..packed.len() {
                let result = read(&packed[..cut], format);
                assert!(
                    result.as_ref().is_ok_and(|quads| *quads == whole) || result.is_err(),
                    "{format}, {cut} of {}: {result:?}",
                    packed.len()
                );
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
