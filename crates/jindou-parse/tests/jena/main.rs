//! Random documents in RDF/XML against Jena's reader: same graphs, same refusals. `JINDOU_JENA` names a folder with Jena's jars (Maven Central):
//! `mvn -P jena -f scripts/clients/pom.xml dependency:copy-dependencies -DoutputDirectory=DIR`; JDK 17 or later is needed.

#[path = "../common/mod.rs"]
mod common;
mod random;

use common::collect;
use jindou_parse::{Format, Sources};
use oxrdf::dataset::CanonicalizationAlgorithm;
use oxrdf::{Dataset, Literal, Quad, Term};
use oxrdfio::{RdfFormat, RdfParser};
use random::Random;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

fn ours(bytes: &[u8]) -> Result<Vec<Quad>, String> {
    let sources = Sources::builder()
        .text("text", bytes.to_vec(), Format::RdfXml)
        .base_iri(Some("http://b/d/f".into()))
        .build()
        .unwrap();
    collect(&sources).map_err(|e| e.to_string())
}

/// Jena's N-Triples of each document, or its error; or why there is no Jena.
fn theirs(documents: &[String]) -> Result<Vec<Result<String, String>>, String> {
    let jars = std::env::var("JINDOU_JENA").map_err(|_| "JINDOU_JENA is not set")?;
    let judge = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/jena/Judge.java");
    let mut child = Command::new("java")
        .args(["-Xmx512m", "-Dslf4j.internal.verbosity=ERROR", "-cp"])
        .arg(format!("{jars}/*"))
        .arg(judge)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|e| format!("java: {e}"))?;
    let mut all = Vec::new();
    for d in documents {
        all.extend_from_slice(&(d.len() as u32).to_be_bytes());
        all.extend_from_slice(d.as_bytes());
    }
    let mut to = child.stdin.take().unwrap();
    let writing = std::thread::spawn(move || to.write_all(&all));
    let mut said = String::new();
    let mut from = child.stdout.take().unwrap();
    from.read_to_string(&mut said).unwrap();
    let _ = writing.join();
    child.wait().unwrap();
    let answers: Vec<_> = said.lines().map(answer).collect();
    assert_eq!(answers.len(), documents.len(), "Jena's answers");
    Ok(answers)
}

fn answer(line: &str) -> Result<String, String> {
    let Some(hex) = line.strip_prefix('+') else {
        return Err(line[1..].to_owned());
    };
    let byte = |n: usize| u8::from_str_radix(&hex[n..n + 2], 16).unwrap();
    let bytes = (0..hex.len()).step_by(2).map(byte).collect();
    Ok(String::from_utf8(bytes).unwrap())
}

/// The graph with blank nodes by their position, and language tags in lower case.
fn canonical(quads: &[Quad]) -> Dataset {
    let lower = |q: &Quad| {
        let mut q = q.clone();
        if let Term::Literal(l) = &q.object
            && let Some(tag) = l.language()
        {
            let tag = tag.to_ascii_lowercase();
            q.object = Literal::new_language_tagged_literal_unchecked(l.value(), tag).into();
        }
        q
    };
    let mut d: Dataset = quads.iter().map(lower).collect();
    d.canonicalize(CanonicalizationAlgorithm::Unstable);
    d
}

fn graph(text: &str) -> Vec<Quad> {
    let parser = RdfParser::from_format(RdfFormat::NTriples);
    let quads = parser.lenient().for_slice(text.as_bytes());
    quads
        .map(|q| q.unwrap_or_else(|e| panic!("{e}: {text}")))
        .collect()
}

#[test]
#[ignore = "long; needs Jena"]
fn jena_sees_the_same() {
    let count = std::env::var("DOCUMENTS").map_or(5000, |n| n.parse().unwrap());
    let seed = std::env::var("JINDOU_SEED").map_or(0x1357_9BDF_2468_ACE1, |n| n.parse().unwrap());
    let mut random = Random(seed);
    let documents: Vec<String> = (0..count).map(|_| random::document(&mut random)).collect();
    let theirs = match theirs(&documents) {
        Ok(theirs) => theirs,
        Err(why) => {
            println!("skipped: no Jena: {why}");
            return;
        }
    };
    let (mut same, mut refused, mut triples) = (0, 0, 0);
    let mut wrong = Vec::new();
    for (text, theirs) in documents.iter().zip(theirs) {
        let ours = ours(text.as_bytes());
        match (&ours, &theirs) {
            (Err(_), Err(_)) => refused += 1,
            (Ok(a), Ok(b)) if canonical(a) == canonical(&graph(b)) => {
                same += 1;
                triples += a.len();
            }
            _ => {
                let ours = ours.map(|q| q.iter().map(|q| format!("{q} .\n")).collect::<String>());
                let lines = |text: &Result<String, String>| -> Vec<String> {
                    match text {
                        Ok(t) => t
                            .lines()
                            .map(|l| {
                                l.split("_:")
                                    .map(|p| p.split_once(' ').map_or(p, |x| x.1))
                                    .collect::<Vec<_>>()
                                    .join("_ ")
                            })
                            .collect(),
                        Err(e) => vec![e.clone()],
                    }
                };
                let (a, b) = (lines(&ours), lines(&theirs));
                let only = |a: &Vec<String>, b: &Vec<String>| {
                    a.iter()
                        .filter(|l| !b.contains(l))
                        .cloned()
                        .collect::<Vec<_>>()
                };
                wrong.push(format!(
                    "{text}\n  ours: {:#?}\n  Jena: {:#?}",
                    only(&a, &b),
                    only(&b, &a)
                ));
            }
        }
    }
    println!(
        "Jena: {same} with the same graph ({triples} triples), {refused} refused, {} otherwise",
        wrong.len()
    );
    let shown: Vec<_> = wrong.iter().take(400).cloned().collect();
    assert!(wrong.is_empty(), "{}", shown.join("\n"));
    assert!(same > count / 3 && refused > count / 50);
}
