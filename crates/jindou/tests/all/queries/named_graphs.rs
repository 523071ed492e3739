//! Named graphs with real vocabularies as data; the expected counts come from `oxrdfio`.

use jindou::{Database, LoadOptions, Progress};
use jindou_parse::{Input, Sources};
use jindou_testing::{files_below, unpack};
use oxrdf::{GraphName, NamedNode, Quad, Term};
use oxrdfio::{RdfFormat, RdfParser};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The rows of a query, as text.
fn rows(db: &Database, text: &str) -> Vec<Vec<String>> {
    db.query(text)
        .unwrap_or_else(|e| panic!("{text}: {e}"))
        .solutions()
        .iter()
        .map(|r| {
            r.iter()
                .map(|c| match c {
                    Some(Term::Literal(l)) => l.value().to_owned(),
                    Some(t) => t.to_string(),
                    None => String::new(),
                })
                .collect()
        })
        .collect()
}

fn counts(db: &Database, text: &str) -> BTreeMap<String, usize> {
    rows(db, text)
        .into_iter()
        .map(|r| (r[0].clone(), r[1].parse().unwrap()))
        .collect()
}

/// The quads of a file as `oxrdfio` reads them; `None` if it finds an error. Blank nodes are renamed, so that those of
/// different files are distinct.
fn read(path: &Path, graph: &GraphName) -> Option<Vec<Quad>> {
    let format = RdfFormat::from_extension(path.extension()?.to_str()?)?;
    let bytes = std::fs::read(path).ok()?;
    let parser = RdfParser::from_format(format)
        .with_default_graph(graph.clone())
        .rename_blank_nodes()
        .with_base_iri(format!("file://{}", path.display()))
        .ok()?;
    parser.for_slice(&bytes).collect::<Result<_, _>>().ok()
}

/// The quads as text, with language tags in lower case: the store treats tags that differ in case only as equal.
fn normal(quads: Vec<Quad>) -> BTreeSet<String> {
    quads
        .into_iter()
        .map(|mut q| {
            if let Term::Literal(l) = &q.object
                && let Some(tag) = l.language()
            {
                q.object = oxrdf::Literal::new_language_tagged_literal_unchecked(
                    l.value(),
                    tag.to_ascii_lowercase(),
                )
                .into();
            }
            q.to_string()
        })
        .collect()
}

/// Loads an archive's files, each into a graph of its own if it names none, and compares the number of quads in each
/// graph.
fn archive_counts(name: &str, most: usize) {
    let Some(archive) = jindou_testing::shared(&format!("data/{name}")) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    unpack(&archive, folder.path());
    let format = |path: &PathBuf| RdfFormat::from_extension(path.extension()?.to_str()?);
    let mut all = files_below(folder.path());
    all.retain(|path| format(path).is_some());
    all.truncate(most);
    let mut builder = Sources::builder().lenient(true);
    let mut want: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut broken = 0;
    for (i, path) in all.iter().enumerate() {
        let iri = format!("http://file/{i}");
        let graph: GraphName = NamedNode::new_unchecked(&iri).into();
        // Files with syntax errors are left out: how much of such a file is loaded is tested elsewhere.
        let Some(quads) = read(path, &graph) else {
            broken += 1;
            continue;
        };
        for q in quads {
            let g = q.graph_name.to_string();
            want.entry(g).or_default().extend(normal(vec![q]));
        }
        builder = builder.input(Input {
            path: path.clone(),
            format: None,
            graph: Some(iri),
        });
    }
    let dir = folder.path().join("the-store");
    let options = LoadOptions::default().with_threads(2).with_memory(1 << 30);
    let sources = builder.build().unwrap();
    Database::load(&dir, &sources, &options, &Progress::default()).unwrap();
    assert_eq!(sources.skipped(), 0);
    let db = Database::open(&dir).unwrap();
    let want: BTreeMap<String, usize> = want.into_iter().map(|(g, q)| (g, q.len())).collect();
    println!(
        "{name}: {} files ({broken} broken left out), {} graphs, {} quads",
        all.len(),
        want.len(),
        want.values().sum::<usize>()
    );
    assert!(!want.is_empty());
    let got = counts(
        &db,
        "SELECT ?g (COUNT(*) AS ?n) { GRAPH ?g { ?s ?p ?o } } GROUP BY ?g",
    );
    assert_eq!(got, want);
    for (g, n) in want.iter().take(30) {
        let one = rows(
            &db,
            &format!("SELECT ?s ?p ?o {{ GRAPH {g} {{ ?s ?p ?o }} }}"),
        );
        assert_eq!(one.len(), *n, "{g}");
    }
}

#[test]
fn a_few_vocabularies_have_their_counts() {
    archive_counts("zazuko-vocabularies.tar.gz", 12);
}

#[test]
#[ignore = "long: all files of the shared data"]
fn all_vocabularies_have_their_counts() {
    for name in ["zazuko-vocabularies.tar.gz", "ted.tar.gz", "mir-rdf.tar.gz"] {
        archive_counts(name, usize::MAX);
    }
}
