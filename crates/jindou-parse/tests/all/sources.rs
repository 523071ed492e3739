//! Files, folders, compression, workers, labels, errors: everything except the parsers themselves.

use crate::common::{collect, collect_on, compress, lenient, parse};
use jindou_model::{
    CancelToken, Error, Location, MemoryBudget, Progress, QuadBatch, QuadSink, QuadSource,
};
use jindou_parse::{Format, Input, Limits, Sources, SourcesBuilder};
use oxrdf::{Quad, Term};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

fn text(lines: usize) -> String {
    let line = |i: usize| {
        let (s, p) = (i / 3, i % 7);
        format!("<http://e/s{s}> <http://e/p{p}> \"value {i}\"@EN .\n")
    };
    (0..lines).map(line).collect()
}

fn build(sources: SourcesBuilder) -> Sources {
    sources.build().unwrap()
}

fn set(quads: &[Quad]) -> BTreeSet<String> {
    quads.iter().map(ToString::to_string).collect()
}

fn source(path: &Path) -> Sources {
    build(Sources::builder().path(path))
}

/// A file or folder that is read leniently.
fn lenient_source(path: &Path) -> Sources {
    build(Sources::builder().path(path).lenient(true))
}

/// Writes a text, compressed if the file's name says so.
fn write_packed(path: &Path, text: &str) {
    let bytes = match path.extension().is_some_and(|e| e == "gz") {
        true => compress("gz", text.as_bytes()),
        false => text.as_bytes().to_vec(),
    };
    std::fs::write(path, bytes).unwrap();
}

/// The bytes with 40 of them in the middle changed.
fn flipped(bytes: &[u8]) -> Vec<u8> {
    let mut all = bytes.to_vec();
    let middle = all.len() / 2;
    for b in &mut all[middle..middle + 40] {
        *b ^= 0x5a;
    }
    all
}

#[test]
fn archives_of_several_members_decode_wholly_whatever_their_name() {
    let dir = tempfile::tempdir().unwrap();
    let text = text(30_000);
    let (a, b) = text.split_at(text.len() / 2 + 5);
    let expected = set(&parse(text.as_bytes(), Format::NTriples).unwrap());
    assert_eq!(expected.len(), 30_000);
    for kind in ["gz", "bz2", "xz", "zst"] {
        let bytes = [compress(kind, a.as_bytes()), compress(kind, b.as_bytes())].concat();
        for name in ["x.nt.KIND", "KIND.nt", "KIND.ttl"].map(|name| name.replace("KIND", kind)) {
            let path = dir.path().join(&name);
            std::fs::write(&path, &bytes).unwrap();
            for workers in [1, 3] {
                let quads = collect_on(&source(&path), workers).unwrap();
                assert_eq!(set(&quads), expected, "{name}");
            }
        }
        // A truncated archive must be an error, not a partial load.
        let path = dir.path().join(format!("cut.nt.{kind}"));
        std::fs::write(&path, &bytes[..bytes.len() - 20]).unwrap();
        let e = collect(&source(&path)).unwrap_err();
        let told = e.to_string();
        let place = format!("byte {}", bytes.len() - 20);
        assert!(matches!(e, Error::Syntax { .. }), "{told}");
        assert!(told.contains(&format!("cut.nt.{kind}")), "{told}");
        assert!(told.contains(&place), "{told}");
        // Bytes after an archive, and changed bytes in it, must be errors, too.
        for (name, broken) in [
            ("long", [&bytes[..], b"more"].concat()),
            ("flipped", flipped(&bytes)),
        ] {
            for format in ["nt", "ttl"] {
                let path = dir.path().join(format!("{name}.{format}.{kind}"));
                std::fs::write(&path, &broken).unwrap();
                for lenient in [false, true] {
                    let made = Sources::builder().path(&path).lenient(lenient).build();
                    let e = collect(&made.unwrap()).unwrap_err();
                    assert!(matches!(e, Error::Syntax { .. }), "{name} {kind}: {e}");
                    // Changed bytes may lead to a bad statement before the checksum is compared.
                    let named = e.to_string().contains("byte ");
                    assert!(named || name == "flipped" && !lenient, "{e}");
                }
            }
        }
        let path = dir.path().join(format!("plain.nt.{kind}"));
        std::fs::write(&path, &text).unwrap();
        let e = collect(&source(&path)).unwrap_err();
        assert!(e.to_string().contains("its content is not"), "{e}");
    }
}

#[test]
fn one_file_on_many_workers_is_the_same_as_on_one() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("big.nt");
    let long = "x".repeat(3_000_000);
    let text = text(60_000) + &format!("<http://e/long> <http://e/p> \"{long}\" .");
    std::fs::write(&path, &text).unwrap();
    let expected = set(&parse(text.as_bytes(), Format::NTriples).unwrap());
    for workers in [1, 2, 8] {
        let sources = source(&path);
        for _ in 0..2 {
            assert_eq!(set(&collect_on(&sources, workers).unwrap()), expected);
        }
    }
}

#[test]
fn an_error_deep_in_a_big_file_has_its_line_and_column() {
    let dir = tempfile::tempdir().unwrap();
    let good = text(50_000);
    for end in ["\n", "\r\n", "\r"] {
        let good = good.replace('\n', end);
        let bad = format!("{good}<http://e/s> <http://e/p> \"é\" <http://e/g> .{end}{good}");
        for name in ["bad.nt", "bad.nt.gz"] {
            let path = dir.path().join(name);
            write_packed(&path, &bad);
            for workers in [1, 4] {
                let Err(Error::Syntax { at, message, text }) = collect_on(&source(&path), workers)
                else {
                    panic!()
                };
                let place = Location {
                    file: path.display().to_string(),
                    line: 50_001,
                    column: 31,
                };
                let expected = "found `<`, expected `.` at the end of the statement";
                assert_eq!((at, message.as_str()), (place, expected));
                let line = "<http://e/s> <http://e/p> \"é\" <http://e/g> .";
                assert_eq!(text.as_deref(), Some(line));
            }
        }
    }
}

#[test]
fn lenient_line_formats_skip_the_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("some.nq");
    let mut text = String::new();
    for i in 0..40_000 {
        text += &format!("<http://e/s{i}> <http://e/p> _:b{i} .\n");
        if i % 1000 == 999 {
            text += "<http://e/s> <http://e/p> <relative> .\n";
        }
    }
    std::fs::write(&path, &text).unwrap();
    let sources = lenient_source(&path);
    for workers in [1, 4] {
        assert_eq!(collect_on(&sources, workers).unwrap().len(), 40_000);
        assert_eq!(sources.skipped(), 40);
        let first = sources.first_skipped();
        let lines: Vec<u64> = first.iter().map(|b| b.at.line).collect();
        assert_eq!(lines, (1..=10).map(|i| i * 1001).collect::<Vec<_>>());
        assert_eq!(first[0].at.column, 27);
        assert!(first[0].message.contains("expected"), "{first:?}");
    }
}

#[test]
fn lenient_turtle_goes_on_behind_the_statement() {
    let dir = tempfile::tempdir().unwrap();
    let text = "@prefix e: <http://e/> .\n\
        e:a e:p 1 ; e:q [ e:r 2 ] .\n\
        e:b e:p <not an iri> ;\n  e:q <http://e/x> .\n\
        e:c e:p nope:x .\n\
        @base <http://base/> .\n\
        e:d e:p <rel> .\n\
        e:e e:p \"unclosed .\n\
        e:f e:p \"fine\" .";
    for name in ["t.ttl", "t.ttl.gz"] {
        let path = dir.path().join(name);
        write_packed(&path, text);
        assert!(collect(&source(&path)).is_err());
        let sources = lenient_source(&path);
        let quads = collect(&sources).unwrap();
        let subjects: Vec<String> = quads.iter().map(|q| q.subject.to_string()).collect();
        let expected = "<http://e/a> _:d0..0 <http://e/a> <http://e/d> <http://e/f>";
        assert_eq!(subjects.join(" "), expected);
        let mut objects = quads.iter().map(|q| q.object.to_string());
        assert!(objects.any(|o| o == "<http://base/rel>"));
        let lines: Vec<u64> = sources.first_skipped().iter().map(|b| b.at.line).collect();
        assert_eq!((sources.skipped(), lines), (3, vec![3, 5, 8]));
    }
    // In formats without recovery, the statements before the error are kept.
    let trig = "<http://e/g> { <http://e/s> <http://e/p> 1 . <http://e/s> <http://e/p> oops . } <http://e/x> <http://e/y> 1 .";
    let sources = lenient(trig.as_bytes(), Format::TriG);
    assert_eq!(collect(&sources).unwrap().len(), 1);
    assert_eq!(sources.skipped(), 1);
}

#[test]
fn errors_of_every_format_have_a_place_a_text_and_an_expectation() {
    let xml = "<rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\">\n <rdf:Description rdf:about=\"http://e/s\">\n  <rdf:value></rdf:oops>\n </rdf:Description></rdf:RDF>";
    let json = "{\"@id\": \"http://e/s\",\n \"http://e/p\": tru}";
    for (format, text, line) in [
        (Format::NTriples, "\n<http://e/s> <http://e/p> 1 .", 2),
        (Format::NQuads, "<http://e/s> <http://e/p> \"x\" \"y\" .", 1),
        (Format::Turtle, "# c\n<http://e/s> <http://e/p> é .", 2),
        (Format::TriG, "{\n<http://e/s> <http://e/p> 1 ]", 2),
        (Format::RdfXml, xml, 3),
        (Format::JsonLd, json, 2),
    ] {
        let Err(Error::Syntax { at, message, text }) = parse(text.as_bytes(), format) else {
            panic!("{format} is accepted");
        };
        assert_eq!((at.file.as_str(), at.line), ("text", line), "{message}");
        assert!(at.column > 0 && message.contains("expected"), "{message}");
        assert!(text.is_some(), "{format}");
    }
}

#[test]
fn labels_are_kept_in_one_document_and_distinct_in_several() {
    let turtle = "_:a <http://e/p> [ <http://e/q> _:d0.x ] , ( 1 ) .";
    let turtle = |b: SourcesBuilder| b.text("t", turtle.as_bytes(), Format::Turtle);
    let line = "_:a <http://e/p> _:a .\n_:d7.a <http://e/p> <http://e/o> .";
    let line = |b: SourcesBuilder| b.text("l", line.as_bytes(), Format::NTriples);
    let labels = |quads: &[Quad]| {
        let ends = quads
            .iter()
            .map(|q| [q.subject.to_string(), q.object.to_string()]);
        let labels: BTreeSet<String> = ends.flatten().filter(|t| t.starts_with("_:")).collect();
        labels.into_iter().collect::<Vec<_>>().join(" ")
    };
    let (new, two) = (Sources::builder, turtle(line(line(Sources::builder()))));
    for (sources, expected) in [
        (turtle(new()), "_:a _:d0..0 _:d0..1 _:d0.d0.x"),
        (line(new()), "_:a _:d0.d7.a"),
        (
            two.clone(),
            "_:d0.a _:d0.d7.a _:d1.a _:d1.d7.a _:d2..0 _:d2..1 _:d2.a _:d2.d0.x",
        ),
        (line(new()).documents_from(5), "_:d5.a _:d5.d7.a"),
    ] {
        let sources = build(sources);
        let first = collect(&sources).unwrap();
        assert_eq!(labels(&first), expected);
        // A second reading gives the same labels.
        assert_eq!(first, collect(&sources).unwrap());
    }
    for q in collect_on(&build(two.documents_from(9)), 3).unwrap() {
        for t in [Term::from(q.subject), q.object] {
            if let Term::BlankNode(b) = t {
                let valid = oxrdf::BlankNode::new(b.as_str());
                assert!(valid.is_ok(), "{b} must be a valid label");
            }
        }
    }
}

#[test]
fn graph_and_base_apply_to_statements_without_their_own() {
    let nq = "<http://e/s> <http://e/p> <http://e/o> .\n<http://e/s> <http://e/p> <http://e/o> <http://e/own> .";
    let trig = "<http://e/s> <http://e/p> <o> . <http://e/own> { <http://e/s> <http://e/p> <o> }";
    for (format, text) in [(Format::NQuads, nq), (Format::TriG, trig)] {
        let sources = Sources::builder()
            .text("t", text.as_bytes(), format)
            .graph(Some("http://e/g".into()))
            .base_iri(Some("http://e/".into()));
        let quads = collect(&build(sources)).unwrap();
        let graphs: Vec<_> = quads.iter().map(|q| q.graph_name.to_string()).collect();
        assert_eq!(graphs, ["<http://e/g>", "<http://e/own>"]);
        assert_eq!(quads[1].object.to_string(), "<http://e/o>");
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a b.ttl");
    std::fs::write(&path, "<#x> <http://e/p> 1 .").unwrap();
    let quads = collect(&source(&path)).unwrap();
    let url = format!("<file://{}/a%20b.ttl#x>", dir.path().display());
    assert_eq!(quads[0].subject.to_string(), url);
    let input = Input {
        path,
        graph: Some("rel".into()),
        format: None,
    };
    let e = refused(Sources::builder().input(input));
    assert!(e.contains("expected an absolute one"), "{e}");
}

/// The message with which sources are refused.
fn refused(sources: SourcesBuilder) -> String {
    sources.build().map(|_| ()).unwrap_err().to_string()
}

#[test]
fn folders_are_read_by_name_and_say_what_they_leave_out() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("sub")).unwrap();
    let xml = "<rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\" xmlns:e=\"http://e/\"><rdf:Description rdf:about=\"http://e/s\"><e:p>x</e:p></rdf:Description></rdf:RDF>";
    let json = "{\"@id\": \"http://e/d\", \"http://e/p\": [1, true]}";
    for (name, text) in [
        ("b.nt", "<http://e/b> <http://e/p> <http://e/o> .\n"),
        ("a.ttl", "<http://e/a> <http://e/p> 1 ."),
        ("sub/c.owl", xml),
        ("sub/d.jsonld", json),
        ("README.md", "not RDF"),
        (".hidden.nt", "rubbish"),
    ] {
        std::fs::write(dir.path().join(name), text).unwrap();
    }
    let sources = source(dir.path());
    assert_eq!(sources.documents(), 4);
    assert_eq!(sources.warnings().len(), 1);
    assert!(sources.warnings()[0].contains("1 file in .md"));
    for workers in [1, 2, 5] {
        assert_eq!(collect_on(&sources, workers).unwrap().len(), 5);
    }
    for (path, says) in [("README.md", "RDF format"), ("nothing.nt", "nothing.nt")] {
        let e = refused(Sources::builder().path(dir.path().join(path)));
        assert!(e.contains(says), "{e}");
    }
    // Standard input needs a format.
    assert!(Sources::builder().path("-").build().is_err());
    assert!(Sources::builder().build().is_err());
}

#[test]
fn a_failing_sink_stops_all_workers() {
    struct Full;
    impl QuadSink for Full {
        fn batch(&mut self, _: &QuadBatch) -> jindou_model::Result<()> {
            Err(Error::external("full"))
        }
    }
    let sources = build(Sources::builder().text("t", text(10).into_bytes(), Format::Turtle));
    let progress = Progress::default();
    let e = sources.run(0, 2, &mut Full, &progress).unwrap_err();
    assert_eq!(e.to_string(), "full");
    sources.run(1, 2, &mut Full, &progress).unwrap();
}

#[test]
fn foreign_files_of_a_folder_are_summarised_by_extension() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("sub")).unwrap();
    for i in 0..50 {
        std::fs::write(dir.path().join(format!("a{i}.txt")), "x").unwrap();
        std::fs::write(dir.path().join(format!("sub/b{i}.pdf")), "x").unwrap();
    }
    let feed = "<?xml version=\"1.0\"?><feed xmlns=\"http://www.w3.org/2005/Atom\"/>";
    let rdf = "<r:RDF xmlns:r=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\" xmlns:e=\"http://e/\"><e:C r:about=\"http://e/s\"/></r:RDF>";
    for (name, text) in [
        ("README", "x"),
        ("good.nt", "<http://e/a> <http://e/p> <http://e/o> .\n"),
        ("pom.xml", "<project><a>1</a></project>"),
        ("sub/feed.XML", feed),
        ("sub/empty.xml", ""),
        ("rdf.xml", rdf),
    ] {
        std::fs::write(dir.path().join(name), text).unwrap();
    }
    let page = compress("gz", b"<html/>");
    std::fs::write(dir.path().join("page.xml.gz"), page).unwrap();
    // Even a strict load skips files of a folder that are not RDF.
    let sources = source(dir.path());
    assert_eq!(collect(&sources).unwrap().len(), 2);
    let warnings = sources.warnings();
    assert_eq!(warnings.len(), 4, "{warnings:?}");
    for (count, what) in [
        ("50 files", ".txt"),
        ("50 files", ".pdf"),
        ("1 file", "without an extension: README"),
        ("4 files", "not RDF/XML"),
    ] {
        let one = warnings.iter().filter(|w| w.contains(count));
        let one = one.filter(|w| w.contains(what)).count();
        assert_eq!(one, 1, "{what}: {warnings:?}");
    }
    // A file that is named explicitly is read, whatever it looks like.
    let named = source(&dir.path().join("pom.xml"));
    assert!(collect(&named).is_err());
}

#[test]
fn what_is_lost_behind_an_error_is_counted_and_all_errors_can_be_had() {
    #[derive(Clone, Default)]
    struct Kept(std::sync::Arc<std::sync::Mutex<Vec<u8>>>);
    impl std::io::Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let mut xml = String::from(
        "<rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\" xmlns:e=\"http://e/\">\n",
    );
    for i in 0..100 {
        let iri = if i == 20 { "not an iri" } else { "http://e/o" };
        // The first error loses a statement, the second one the rest of the document.
        let broken = if i == 40 { "<broken" } else { "" };
        xml += &format!(
            "<rdf:Description rdf:about=\"http://e/s{i}\"><e:p rdf:resource=\"{iri}{broken}\"/></rdf:Description>\n"
        );
    }
    xml += "</rdf:RDF>\n";
    let mut lines = String::new();
    for i in 0..500 {
        lines += "<http://e/s> <http://e/p> <relative> .\n";
        lines += &format!("<http://e/s> <http://e/p> {i} .\n<http://e/s> <http://e/p> \"{i}\" .\n");
    }
    std::fs::write(dir.path().join("a.rdf"), &xml).unwrap();
    std::fs::write(dir.path().join("b.nt"), &lines).unwrap();
    let sources = lenient_source(dir.path());
    let kept = Kept::default();
    sources.write_errors_to(kept.clone());
    let quads = collect_on(&sources, 2).unwrap();
    assert_eq!(quads.len(), 39 + 500);
    assert_eq!(sources.skipped(), 2 + 1000);
    let rest = sources.rest();
    assert_eq!(rest.documents, 1);
    // The error is in an attribute of the 41st property: `<broken`, and 59 descriptions of two elements each, follow.
    assert_eq!(rest.elements, 1 + 2 * 59, "{rest:?}");
    let behind = (xml.len() - xml.find("<broken").unwrap()) as u64;
    assert!((behind - 99..=behind).contains(&rest.bytes), "{rest:?}");
    sources.flush_errors().unwrap();
    let text = String::from_utf8(kept.0.lock().unwrap().clone()).unwrap();
    let of = |name: &str| text.lines().filter(|l| l.contains(name)).count();
    assert_eq!((of("a.rdf"), of("b.nt")), (2, 1000));
    assert_eq!(sources.first_skipped().len(), 10);
}

struct Thrown;

impl QuadSink for Thrown {
    fn batch(&mut self, _: &QuadBatch) -> jindou_model::Result<()> {
        Ok(())
    }
}

/// A term of megabytes that every statement repeats is stored once per batch, but compared for each statement.
#[test]
fn a_long_term_of_many_statements_ends_in_time() {
    let subject = "a".repeat(4_000_000);
    let objects: Vec<String> = (0..100_000).map(|i| i.to_string()).collect();
    let objects = objects.join(", ");
    let turtle = format!("<http://e/{subject}> <http://e/p> {objects} .");
    let elements = "<e:p>1</e:p><e:p>2</e:p>".repeat(100_000);
    let xml = format!(
        "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:e='http://e/'>\
         <rdf:Description rdf:about='http://e/{subject}'>{elements}</rdf:Description></rdf:RDF>"
    );
    for (text, format) in [(turtle, Format::Turtle), (xml, Format::RdfXml)] {
        let limits = Limits {
            cancel: CancelToken::with_deadline(Duration::from_millis(200)),
            memory: MemoryBudget::unlimited(),
        };
        let sources = Sources::builder().text("text", text.into_bytes(), format);
        let sources = build(sources.limits(limits));
        let watch = jindou_testing::Stopwatch::start();
        let ended = sources.run(0, 1, &mut Thrown, &Progress::default());
        let took = watch.elapsed();
        let is_late = matches!(ended, Err(Error::Timeout(_)));
        assert!(is_late, "{format:?}: {ended:?}");
        assert!(took < Duration::from_secs(2), "{format:?}: {took:?}");
    }
}
