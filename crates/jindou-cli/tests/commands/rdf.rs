//! `jindou dump` and `jindou convert`: an independent parser reads what they write, and the result is compared with the
//! input.

use super::run::run;
use jindou::oxrdf::{Dataset, Literal, Term};
use jindou_parse::write::{TagCase, write_source};
use jindou_workloads::ugly::Ugly;
use oxrdfio::{JsonLdProfileSet, RdfFormat, RdfParser};
use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::path::Path;

fn good(folder: &Path, args: &[&str]) -> Vec<u8> {
    super::run::good(folder, args).into_bytes()
}

const JSON_LD: RdfFormat = RdfFormat::JsonLd {
    profile: JsonLdProfileSet::empty(),
};

/// The statements that `oxrdfio` reads. Language tags are made lower case, since they are case-insensitive.
fn read(text: &[u8], format: RdfFormat) -> BTreeSet<String> {
    let parser = RdfParser::from_format(format);
    let quads = parser.for_slice(text).map(|q| {
        let q = q.unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(text)));
        let object = match &q.object {
            Term::Literal(l) if l.direction().is_none() && l.language().is_some() => {
                let tag = l.language().unwrap().to_ascii_lowercase();
                Literal::new_language_tagged_literal_unchecked(l.value(), tag).into()
            }
            other => other.clone(),
        };
        format!("{} {} {object} {}", q.subject, q.predicate, q.graph_name)
    });
    quads.collect()
}

const DATA: &str = r#"<http://e/a> <http://xmlns.com/foaf/0.1/name> "Ann \"A\" \\ \u00e9\t\n" .
<http://e/a> <http://xmlns.com/foaf/0.1/name> "Anne"@fr-CA <http://e/g1> .
<http://e/a> <http://e/p> "1"^^<http://www.w3.org/2001/XMLSchema#integer> .
<http://e/a> <http://e/p> "01"^^<http://www.w3.org/2001/XMLSchema#integer> .
<http://e/a> <http://e/p> "x"^^<http://e/dt> <http://e/g1> .
_:b1 <http://e/p> _:b2 .
_:b1 <http://e/p> _:b2 <http://e/g1> .
_:b1 <http://e/q> <<( <http://e/a> <http://e/p> "t" )>> <http://e/g2> .
<http://e/c> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://xmlns.com/foaf/0.1/Person> <http://e/g2> .
<http://e/c> <http://e/p> "in a graph without a name" _:g3 .
<http://e/c> <http://e/p> "" .
"#;

/// Makes a store of [`DATA`], with insertions and a deletion in its log. [`expected`] has the result.
fn store(folder: &Path) {
    fs::write(folder.join("data.nq"), DATA).unwrap();
    good(folder, &["load", "--quiet", "--store", "s", "data.nq"]);
    let more = "INSERT DATA { <http://e/new> <http://e/new> 'new' GRAPH <http://e/g4> { <http://e/a> <http://e/new> <http://e/new> } } ; \
                DELETE DATA { <http://e/c> <http://e/p> '' }";
    good(folder, &["update", "--store", "s", more]);
}

fn expected() -> BTreeSet<String> {
    let mut all = read(DATA.as_bytes(), RdfFormat::NQuads);
    let more = b"<http://e/new> <http://e/new> \"new\" .\n<http://e/a> <http://e/new> <http://e/new> <http://e/g4> .\n";
    all.extend(read(more, RdfFormat::NQuads));
    let less = read(b"<http://e/c> <http://e/p> \"\" .", RdfFormat::NQuads);
    assert!(all.remove(less.first().unwrap()));
    all
}

fn decompressed(path: &Path) -> Vec<u8> {
    let file = fs::File::open(path).unwrap();
    let mut out = vec![];
    match path.extension().and_then(|e| e.to_str()).unwrap() {
        "gz" => flate2::read::MultiGzDecoder::new(file).read_to_end(&mut out),
        "bz2" => bzip2::read::BzDecoder::new(file).read_to_end(&mut out),
        "xz" => liblzma::read::XzDecoder::new(file).read_to_end(&mut out),
        "zst" => zstd::stream::read::Decoder::new(file)
            .unwrap()
            .read_to_end(&mut out),
        _ => {
            let mut file = file;
            file.read_to_end(&mut out)
        }
    }
    .unwrap();
    out
}

#[test]
fn a_dump_has_every_quad_once() {
    let t = tempfile::tempdir().unwrap();
    let at = t.path();
    store(at);
    let all = expected();
    let lines = good(at, &["dump", "--store", "s"]);
    assert_eq!(read(&lines, RdfFormat::NQuads), all);
    assert_eq!(lines.iter().filter(|b| **b == b'\n').count(), all.len());
    for (name, format) in [
        ("all.nq", RdfFormat::NQuads),
        ("all.nq.gz", RdfFormat::NQuads),
        ("all.trig.zst", RdfFormat::TriG),
        ("all.trig.xz", RdfFormat::TriG),
        ("all.nquads.bz2", RdfFormat::NQuads),
    ] {
        good(at, &["dump", "--store", "s", "--out", name]);
        assert_eq!(read(&decompressed(&at.join(name)), format), all, "{name}");
    }
    // Loading the dump gives the same data.
    good(at, &["load", "--quiet", "--store", "again", "all.trig.zst"]);
    let again = good(at, &["dump", "--store", "again"]);
    let labels = |text: &[u8]| String::from_utf8_lossy(text).matches("_:").count();
    assert_eq!(labels(&again), labels(&lines));
    assert_eq!(read(&again, RdfFormat::NQuads).len(), all.len());
    let left: Vec<_> = fs::read_dir(at)
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .filter(|n| n.contains("part"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn one_graph_is_a_document_of_triples() {
    let t = tempfile::tempdir().unwrap();
    let at = t.path();
    store(at);
    let of = |end: &str| -> BTreeSet<String> {
        expected()
            .iter()
            .filter_map(|q| q.strip_suffix(end))
            .map(|q| format!("{q} DEFAULT"))
            .collect()
    };
    let g1 = of(" <http://e/g1>");
    assert_eq!(g1.len(), 3);
    let default = of(" DEFAULT");
    for (format, oxrdf) in [
        ("nt", RdfFormat::NTriples),
        ("ttl", RdfFormat::Turtle),
        ("rdf", RdfFormat::RdfXml),
        ("jsonld", JSON_LD),
        ("nq", RdfFormat::NQuads),
    ] {
        let base = ["dump", "--store", "s", "--to", format];
        let text = good(at, &[&base[..], &["--graph", "http://e/g1"]].concat());
        assert_eq!(read(&text, oxrdf), g1, "{format}");
        let text = good(at, &[&base[..], &["--default-graph"]].concat());
        assert_eq!(read(&text, oxrdf), default, "{format}");
    }
    let merged = good(at, &["dump", "--store", "s", "--drop-graphs", "--to", "nt"]);
    let merged = read(&merged, RdfFormat::NTriples);
    // One triple is in two graphs.
    assert_eq!(merged.len(), expected().len() - 1);
}

/// A graph with everything that causes trouble in real data is the same after conversion to any format that can
/// represent it.
#[test]
fn an_ugly_graph_survives_every_format() {
    let t = tempfile::tempdir().unwrap();
    let at = t.path();
    let mut text = vec![];
    write_source(&Ugly::new(20_000, 7), TagCase::Mixed, &mut text).unwrap();
    fs::write(at.join("ugly.nq"), &text).unwrap();
    let all = read(&text, RdfFormat::NQuads);
    assert!(all.len() > 15_000);
    for (name, format) in [
        ("ugly.trig.gz", RdfFormat::TriG),
        ("ugly.jsonld.zst", JSON_LD),
        ("again.nq.xz", RdfFormat::NQuads),
    ] {
        let from = if name == "again.nq.xz" {
            "ugly.trig.gz"
        } else {
            "ugly.nq"
        };
        let o = run(at, &["convert", from, "--out", name]);
        let err = String::from_utf8_lossy(&o.stderr);
        if name.contains("jsonld") && err.contains("triple terms") {
            continue;
        }
        assert!(o.status.success(), "{name}: {err}");
        let found = read(&decompressed(&at.join(name)), format);
        let missing: Vec<_> = all.difference(&found).take(3).collect();
        let extra: Vec<_> = found.difference(&all).take(3).collect();
        assert!(
            missing.is_empty() && extra.is_empty(),
            "{name}: {missing:?} {extra:?}"
        );
    }
    good(at, &["load", "--quiet", "--store", "s", "ugly.nq"]);
    let dumped = read(&good(at, &["dump", "--store", "s"]), RdfFormat::NQuads);
    assert!(dumped == all);
}

#[test]
fn documents_of_the_w3c_convert_to_the_same() {
    converted_documents(10);
}

#[test]
#[ignore = "half a minute: every document"]
fn all_documents_of_the_w3c_convert_to_the_same() {
    converted_documents(1);
}

/// Converts every `step`-th document of the W3C's test suites. `oxrdfio` must read the same from the document and its
/// conversion.
fn converted_documents(step: usize) {
    let Some(suites) = jindou_testing::shared("w3c/rdf") else {
        return;
    };
    let mut files = jindou_testing::files_below(&suites);
    files.retain(|path| {
        let ending = path.extension().and_then(|e| e.to_str());
        matches!(ending, Some("ttl" | "nt" | "nq" | "trig"))
    });
    let t = tempfile::tempdir().unwrap();
    let mut converted = 0;
    for path in files.iter().step_by(step) {
        let (of, to) = match path.extension().and_then(|e| e.to_str()) {
            Some("ttl") => (RdfFormat::Turtle, "nt"),
            Some("nt") => (RdfFormat::NTriples, "ttl"),
            Some("nq") => (RdfFormat::NQuads, "trig"),
            _ => (RdfFormat::TriG, "nq"),
        };
        let back = match to {
            "nt" => RdfFormat::NTriples,
            "ttl" => RdfFormat::Turtle,
            "trig" => RdfFormat::TriG,
            _ => RdfFormat::NQuads,
        };
        let text = fs::read(path).unwrap();
        let parser = RdfParser::from_format(of)
            .with_base_iri("http://e/base")
            .unwrap();
        let Ok(expected) = parser.for_slice(&text).collect::<Result<Vec<_>, _>>() else {
            // A negative test, whose document is invalid. The loader's tests check that such documents are refused.
            continue;
        };
        let name = path.to_str().unwrap();
        let o = run(
            t.path(),
            &["convert", name, "--to", to, "--base", "http://e/base"],
        );
        let err = String::from_utf8_lossy(&o.stderr);
        assert!(o.status.success(), "{name}: {err}");
        let found: Result<Vec<_>, _> = RdfParser::from_format(back).for_slice(&o.stdout).collect();
        let found = found.unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(canonical(found), canonical(expected), "{name}");
        converted += 1;
    }
    assert!(converted > 300 / step, "{converted}");
}

/// In RDF/XML, blank node labels must be XML names. Other labels are replaced, which is allowed since labels mean
/// nothing outside of a document.
#[test]
fn labels_that_are_no_names_become_names_in_rdf_xml() {
    let t = tempfile::tempdir().unwrap();
    let at = t.path();
    let lines = "_:0 <http://e/p> _:1x .\n_:1x <http://e/p> _:x.0 .\n_:x.0 <http://e/p> _:x0 .\n_:x0 <http://e/q> <<( _:0 <http://e/p> _:7 )>> .\n";
    fs::write(at.join("a.nt"), lines).unwrap();
    good(at, &["load", "-q", "--store", "s", "a.nt"]);
    good(at, &["convert", "a.nt", "--out", "converted.rdf"]);
    good(at, &["dump", "--store", "s", "--out", "dumped.rdf"]);
    let query = "CONSTRUCT WHERE { ?s ?p ?o }";
    let asked = good(at, &["query", "--store", "s", "--format", "rdf", query]);
    fs::write(at.join("asked.rdf"), asked).unwrap();
    let quads = |text: &[u8], format| -> Vec<jindou::oxrdf::Quad> {
        let parsed = RdfParser::from_format(format).for_slice(text);
        parsed.map(|q| q.unwrap()).collect()
    };
    let expected = canonical(quads(lines.as_bytes(), RdfFormat::NTriples));
    for file in ["converted.rdf", "dumped.rdf", "asked.rdf"] {
        let text = fs::read(at.join(file)).unwrap();
        assert_eq!(
            canonical(quads(&text, RdfFormat::RdfXml)),
            expected,
            "{file}"
        );
        // The document is converted back to a format that allows all labels.
        let back = good(at, &["convert", file, "--to", "nt"]);
        assert_eq!(
            canonical(quads(&back, RdfFormat::NTriples)),
            expected,
            "{file}"
        );
    }
}

/// The quads with canonical labels of blank nodes, which depend only on the statements about them.
fn canonical(quads: Vec<jindou::oxrdf::Quad>) -> BTreeSet<String> {
    use jindou::oxrdf::dataset::CanonicalizationAlgorithm;
    let lower = quads.into_iter().map(|mut q| {
        if let Term::Literal(l) = &q.object
            && l.direction().is_none()
            && let Some(tag) = l.language()
        {
            let tag = tag.to_ascii_lowercase();
            q.object = Literal::new_language_tagged_literal_unchecked(l.value(), tag).into();
        }
        q
    });
    let mut all: Dataset = lower.collect();
    all.canonicalize(CanonicalizationAlgorithm::Unstable);
    all.iter().map(|q| q.to_string()).collect()
}
