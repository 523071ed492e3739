//! The W3C's JSON-LD 1.1 tests of conversion to RDF and from it; documents that are not JSON-LD; damaged documents.

use crate::common::{canonical, collect, compress, lenient, parse};
use jindou_model::{CancelToken, Error, MemoryBudget};
use jindou_parse::{ContextFiles, Document, DocumentSource, Format, Sources};
use jindou_testing::{Rng, shared};
use oxrdf::Quad;
use oxrdfio::{JsonLdProfileSet, RdfFormat, RdfParser, RdfSerializer};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Base IRI of the suite.
const ROOT: &str = "https://w3c.github.io/json-ld-api/tests/";

/// Tests that are not passed: up to tdi06, since the base direction of a text with a language is kept; the others are
/// about the option rdfDirection, i18n-datatype and compound-literal.
const EXCEPTIONS: &str = "tdi02 tdi04 tdi05 tdi06 tdi09 tdi10 tdi11 tdi12";

/// Reads the suite's contexts from its folder.
#[derive(Debug)]
struct SuiteContexts(PathBuf);

impl DocumentSource for SuiteContexts {
    fn fetch(
        &self,
        iri: &str,
        _: &CancelToken,
        _: &MemoryBudget,
    ) -> jindou_model::Result<Document> {
        let path = iri.strip_prefix(ROOT).map(|name| self.0.join(name));
        match path.filter(|path| path.is_file()) {
            Some(path) => Ok(Document::File(path)),
            None => Err(Error::Unsupported(format!("no such document: {iri}"))),
        }
    }
}

fn option<'t>(test: &'t Value, name: &str) -> Option<&'t str> {
    test["option"][name].as_str()
}

/// Reads a test's input.
fn read(root: &Path, test: &Value) -> Result<Vec<Quad>, Error> {
    let input = test["input"].as_str().unwrap();
    let mut path = root.join(input);
    if !path.exists() {
        // The manifest's path for one test exists only in the folder of another suite.
        path = root.join("toRdf").join(path.file_name().unwrap());
    }
    let mut text = std::fs::read(&path).map_err(|e| Error::io(&path, e))?;
    if let Some(context) = option(test, "expandContext") {
        // The option is applied like a context in front of the document's own contexts.
        let context = json(&root.join(context));
        let mut document: Value = serde_json::from_slice(&text).unwrap();
        let mut contexts = vec![context["@context"].clone()];
        contexts.extend(document.get("@context").cloned());
        document["@context"] = Value::Array(contexts);
        text = document.to_string().into_bytes();
    }
    let base = option(test, "base").map_or_else(|| format!("{ROOT}{input}"), str::to_owned);
    let contexts = Arc::new(SuiteContexts(root.to_owned()));
    let sources = Sources::builder().text(input, text, Format::JsonLd);
    collect(
        &sources
            .base_iri(Some(base))
            .contexts(Some(contexts))
            .build()?,
    )
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn verdict(root: &Path, test: &Value) -> Result<(), String> {
    let read = read(root, test);
    if let Some(code) = test["expectErrorCode"].as_str() {
        return match read.map(|_| "accepted").map_err(|e| e.to_string()) {
            Err(e) if e.contains(code) => Ok(()),
            other => Err(format!("{other:?}, expected: {code}")),
        };
    }
    let quads = read.map_err(|e| e.to_string())?;
    let Some(expected) = test["expect"].as_str() else {
        return Ok(());
    };
    let expected = n_quads(&root.join(expected));
    if canonical(&quads) == canonical(&expected) {
        return Ok(());
    }
    let [got, want] = [quads, expected].map(|quads| {
        let mut lines: Vec<_> = quads.iter().map(Quad::to_string).collect();
        lines.sort();
        lines.join("\n    ")
    });
    Err(format!("other quads:\n    {got}\n  expected:\n    {want}"))
}

fn n_quads(path: &Path) -> Vec<Quad> {
    let text = std::fs::read(path).unwrap();
    let parser = RdfParser::from_format(RdfFormat::NQuads).for_slice(&text);
    parser.map(Result::unwrap).collect()
}

fn manifest(root: &Path, name: &str) -> Vec<Value> {
    json(&root.join(name))["sequence"]
        .as_array()
        .unwrap()
        .clone()
}

#[test]
fn w3c_to_rdf() {
    let Some(root) = shared("w3c/json-ld-api") else {
        return;
    };
    let (mut passed, mut exceptions, mut old, mut failed) = (0, 0, 0, Vec::new());
    for test in manifest(&root, "toRdf-manifest.jsonld") {
        let versions = ["specVersion", "processingMode"].map(|name| option(&test, name));
        if versions.contains(&Some("json-ld-1.0")) {
            old += 1;
            continue;
        }
        let id = test["@id"].as_str().unwrap().trim_start_matches('#');
        let is_exception = EXCEPTIONS.split(' ').any(|e| e == id);
        match (verdict(&root, &test), is_exception) {
            (Ok(()), false) => passed += 1,
            (Err(_), true) => exceptions += 1,
            (Ok(()), true) => failed.push(format!("{id}: passes, and is an exception")),
            (Err(why), false) => failed.push(format!("{id} ({}): {why}", test["purpose"])),
        }
    }
    println!(
        "JSON-LD toRdf: {passed} passed, {exceptions} exceptions, {old} of JSON-LD 1.0 not run, {} failed",
        failed.len()
    );
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    assert!(passed > 400, "too few tests were found");
}

/// The document with arrays sorted where their order has no meaning.
fn unordered(value: &Value) -> Value {
    match value {
        Value::Array(items) => {
            let mut items: Vec<Value> = items.iter().map(unordered).collect();
            items.sort_by_key(Value::to_string);
            Value::Array(items)
        }
        Value::Object(members) => members
            .iter()
            .map(|(key, value)| match key.as_str() {
                "@list" | "@value" => (key.clone(), value.clone()),
                _ => (key.clone(), unordered(value)),
            })
            .collect(),
        other => other.clone(),
    }
}

fn written(quads: &[Quad]) -> Vec<u8> {
    let format = RdfFormat::JsonLd {
        profile: JsonLdProfileSet::empty(),
    };
    let mut writer = RdfSerializer::from_format(format).for_writer(Vec::new());
    for quad in quads {
        writer.serialize_quad(quad).unwrap();
    }
    writer.finish().unwrap()
}

/// Reason why the writer's document differs from the suite's: the writer emits statements in the given order, and does
/// not group those of a node or a list.
fn reason(test: &Value, expected: &str) -> Option<&'static str> {
    let has = |name: &str| !test["option"][name].is_null();
    if has("useNativeTypes") || has("useRdfType") || has("rdfDirection") {
        Some("the option useNativeTypes, useRdfType or rdfDirection")
    } else if expected.contains("@list") {
        Some("lists stay rdf:first and rdf:rest")
    } else if expected.contains("@json") {
        Some("JSON literals stay texts with the datatype rdf:JSON")
    } else if expected.contains("@type") {
        Some("types stay values of rdf:type")
    } else {
        None
    }
}

#[test]
fn w3c_from_rdf() {
    let Some(root) = shared("w3c/json-ld-api") else {
        return;
    };
    let (mut passed, mut failed) = (0, Vec::new());
    let mut others: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let tests = manifest(&root, "fromRdf-manifest.jsonld");
    for test in &tests {
        let id = test["@id"].as_str().unwrap().trim_start_matches('#');
        let quads = n_quads(&root.join(test["input"].as_str().unwrap()));
        let text = written(&quads);
        // All labels are used unchanged, so the graphs can be compared without searching for an isomorphism.
        let again = parse(&text, Format::JsonLd).unwrap();
        if canonical(&again) != canonical(&quads) {
            failed.push(format!("{id}: {}", String::from_utf8_lossy(&text)));
        }
        let Some(expected) = test["expect"].as_str() else {
            continue;
        };
        let expected = std::fs::read_to_string(root.join(expected)).unwrap();
        let meant: Value = serde_json::from_str(&expected).unwrap();
        let document: Value = serde_json::from_slice(&text).unwrap();
        if unordered(&document) == unordered(&meant) {
            passed += 1;
        } else if let Some(reason) = reason(test, &expected) {
            others.entry(reason).or_default().push(id);
        } else {
            failed.push(format!("{id}: {}", String::from_utf8_lossy(&text)));
        }
    }
    println!("JSON-LD fromRdf: {passed} the same documents; the same quads, but");
    for (reason, ids) in &others {
        println!("  {reason}: {} ({})", ids.len(), ids.join(", "));
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn damaged_documents_are_errors_or_quads_but_never_a_panic() {
    let seeds = [
        r#"{"@context":{"@version":1.1,"@vocab":"http://e/","p":{"@container":["@type","@set"],"@context":{"q":{"@container":"@list"}}},"n":"@nest","T":{"@context":{"x":{"@reverse":"y"}}}},"@id":"a","@type":["T","U"],"p":{"T":[{"@id":"b","q":[1,[2,{"@value":"x","@language":"en"}]]}]},"n":{"x":{"@id":"c"}},"@graph":[{"@id":"d","@included":{"e":1e21}}]}"#,
        r#"[{"@context":[null,{"@base":"x/","@propagate":false,"i":{"@id":"e:i","@type":"@json","@container":"@list"},"j":{"@id":"e:j","@container":["@graph","@index"],"@index":"e:k"}}],"i":[{"\ud83d\ude00":null}],"j":{"@none":{"@id":"_:b"},"l":["m",true]},"@reverse":{"e:r":[{"@id":"?q"}]}},{"@set":[{"@list":[]}]}]"#,
    ];
    let pieces = concat!(
        "@id @type @context @graph @list @set @value @nest @reverse @none @index ",
        r#"null [] {} " [ ] { } : , \ \u00 \ud800 1e400 - _: é @protected true"#
    );
    let pieces: Vec<&str> = pieces.split(' ').collect();
    let mut random = Rng::new(54);
    for round in 0..20_000 {
        let mut text = seeds[round % 2].to_owned();
        for _ in 0..=random.below(4) {
            let at = text.floor_char_boundary(random.below(text.len() + 1));
            let to = text.floor_char_boundary((at + random.below(12)).min(text.len()));
            match random.below(3) {
                0 => text.replace_range(at..to, ""),
                1 => text.insert_str(at, pieces[random.below(pieces.len())]),
                _ => text.replace_range(at..to, pieces[random.below(pieces.len())]),
            }
        }
        if let Err(e) = parse(text.as_bytes(), Format::JsonLd) {
            assert!(matches!(e, Error::Syntax { .. }), "{text}: {e}");
        }
        if let Err(e) = collect(&lenient(text.as_bytes(), Format::JsonLd)) {
            panic!("{text}: {e}");
        }
    }
}

#[test]
fn a_lenient_reading_keeps_the_nodes_of_a_graph_before_a_mistake() {
    let head = r#"{"@context":{"n":"http://e/n"},"@id":"http://e/g","@graph":["#;
    let nodes = r#"{"@id":"http://e/1","n":1},{"@id":"http://e/2","n":"]}"}"#;
    for (rest, line) in [
        // The document ends inside a node, inside a string, and after a node; the JSON is malformed inside the array,
        // after it, and after the document.
        (",\n{\"@id\":\"http://e/3\",\"n\":1", 2),
        (",\n{\"@id\":\"http://e/3\",\"n\":\"x\\", 2),
        ("\n", 2),
        (",\n{\"n\" 3}]}", 2),
        ("],\n\"n\":[1", 2),
        ("],\"n\":4,\n\"n\"}", 2),
        ("]}\n}", 2),
    ] {
        let text = format!("{head}{nodes}{rest}");
        for bytes in [text.clone().into_bytes(), compress("zst", text.as_bytes())] {
            let sources = lenient(bytes, Format::JsonLd);
            let quads = collect(&sources).unwrap();
            let of_graph = quads.iter().filter(|q| !q.graph_name.is_default_graph());
            assert_eq!(of_graph.count(), 2, "{text}");
            let skipped = sources.first_skipped();
            assert_eq!(skipped.len(), 1, "{text}: {skipped:?}");
            assert_eq!(skipped[0].at.line, line, "{text}: {skipped:?}");
        }
    }
}

#[test]
fn contexts_that_grow_are_refused_or_read_in_time() {
    let limits = || jindou_parse::Limits {
        cancel: CancelToken::with_deadline(std::time::Duration::from_secs(20)),
        memory: MemoryBudget::new(64 << 20),
    };
    // Terms that are defined by one another, contexts inside contexts, and a large context that each node extends.
    let chain: String = (0..100_000)
        .map(|n| format!("\"t{n}\":\"t{}:x\",", n + 1))
        .collect();
    let inner = "{\"@context\":{\"t\":{\"@id\":\"e:t\",\"@context\":".repeat(400);
    let wide: String = (0..50_000)
        .map(|n| format!("\"t{n}\":{{\"@id\":\"e:{n}\",\"@context\":{{}}}},"))
        .collect();
    let (nested, closed) = (
        "{\"@context\":{\"a\":\"e:a\"},\"a\":".repeat(450),
        "}".repeat(450),
    );
    for text in [
        format!("{{\"@context\":{{{chain}\"end\":\"e:x\"}}}}"),
        format!("{inner}null{}", "}}}".repeat(400)),
        format!("{{\"@context\":{{{wide}\"a\":\"e:a\"}},\"a\":{nested}1{closed}}}"),
    ] {
        let sources = Sources::builder().text("text", text.into_bytes(), Format::JsonLd);
        match collect(&sources.limits(limits()).build().unwrap()) {
            Ok(_) | Err(Error::Syntax { .. } | Error::Limit(_)) => {}
            Err(other) => panic!("{other}"),
        }
    }
}

#[test]
fn contexts_are_read_from_files_that_are_near_or_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let near =
        r#"{"@context":{"n":"http://e/n","again":{"@id":"http://e/a","@context":"c.jsonld"}}}"#;
    std::fs::write(path("c.jsonld"), near).unwrap();
    let contexts = ContextFiles::new(&[("http://e/c.jsonld".into(), path("c.jsonld"))]);
    let contexts: Arc<dyn DocumentSource> = Arc::new(contexts);
    let read = |context: &str| {
        let text = format!(r#"{{"@context":{context},"@id":"http://e/1","n":1}}"#);
        std::fs::write(path("d.jsonld"), text).unwrap();
        let sources = Sources::builder().path(path("d.jsonld"));
        let sources = sources.contexts(Some(Arc::clone(&contexts))).build();
        collect(&sources.unwrap()).map(|quads| quads.len())
    };
    for (context, quads) in [
        (r#""c.jsonld""#, 1),
        (r#"["c.jsonld",{"n":null}]"#, 0),
        (r#""http://e/c.jsonld""#, 1),
        (r#"{"@import":"http://e/c.jsonld","m":"http://e/m"}"#, 1),
    ] {
        assert_eq!(read(context).unwrap(), quads, "{context}");
    }
    let unnamed = "no --context IRI=FILE names a copy of it";
    for (context, says) in [
        (r#""http://e/other""#, unnamed),
        (r#""missing.jsonld""#, "there is no file"),
        (r#""d.jsonld""#, "context overflow"),
    ] {
        let e = read(context).unwrap_err().to_string();
        assert!(e.contains("d.jsonld:1:13") && e.contains(says), "{e}");
    }
}
