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

/// Jena's readers. The first is the traditional one; each of the others has bugs of its own.
const READERS: [&str; 4] = ["ARP", "StAX events", "StAX", "SAX"];

type Answers = [Result<String, String>; READERS.len()];

/// The N-Triples of each document, or its error, by each reader; or the reason why Jena is not available.
fn theirs(documents: &[String]) -> Result<Vec<Answers>, String> {
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
    assert_eq!(
        answers.len(),
        READERS.len() * documents.len(),
        "Jena's answers"
    );
    let each = answers.chunks_exact(READERS.len());
    Ok(each.map(|four| four.to_vec().try_into().unwrap()).collect())
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
    let (mut same, mut refused, mut known, mut triples) = (0, 0, 0, 0);
    let mut agree = [0; READERS.len()];
    let mut wrong = Vec::new();
    for (text, theirs) in documents.iter().zip(theirs) {
        let ours = ours(text.as_bytes());
        let graph_of = |quads: &Vec<Quad>| canonical(quads);
        let own = ours.as_ref().map(graph_of).map_err(String::as_str);
        let agrees = theirs.each_ref().map(|t| match (&own, t) {
            (Err(_), Err(_)) => true,
            (Ok(own), Ok(t)) => *own == canonical(&graph(t)),
            _ => false,
        });
        for (count, agrees) in agree.iter_mut().zip(agrees) {
            *count += usize::from(agrees);
        }
        match (agrees.contains(&true), &ours) {
            (true, Ok(quads)) => {
                same += 1;
                triples += quads.len();
            }
            (true, Err(_)) => refused += 1,
            (false, _) if is_known(&ours, &theirs) => known += 1,
            (false, _) => wrong.push(format!("{text}\n{}", differences(&ours, &theirs[0]))),
        }
    }
    println!(
        "Jena: {same} with the same graph ({triples} triples), {refused} refused, {known} known to be seen otherwise, {} otherwise; {READERS:?} each agree on {agree:?}",
        wrong.len()
    );
    let shown: Vec<_> = wrong.iter().take(20).cloned().collect();
    assert!(wrong.is_empty(), "{}", shown.join("\n"));
    assert!(same > count / 3 && refused > count / 50);
}

/// The graph with the characters of XML literals sorted, since the order of attributes does not matter.
fn loose(quads: &[Quad]) -> Dataset {
    let sorted = quads.iter().cloned().map(|mut q| {
        if let Term::Literal(l) = &q.object
            && l.datatype() == oxrdf::vocab::rdf::XML_LITERAL
        {
            let mut all: Vec<char> = l.value().chars().collect();
            all.sort_unstable();
            let text: String = all.into_iter().collect();
            q.object = Literal::new_typed_literal(text, l.datatype()).into();
        }
        q
    });
    canonical(&sorted.collect::<Vec<_>>())
}

/// True if Jena is known to differ for a document. ARP orders attributes in XML literals by their qualified names;
/// canonical XML has those without a namespace first, then by namespace and local name. Names in `rdf:ID` and
/// `rdf:nodeID` that are not XML names are warnings there; the grammar does not allow them.
fn is_known(ours: &Result<Vec<Quad>, String>, theirs: &Answers) -> bool {
    match (ours, &theirs[0]) {
        (Ok(ours), Ok(theirs)) => loose(ours) == loose(&graph(theirs)),
        (Err(e), Ok(_)) => {
            e.contains("is not a valid rdf:ID") || e.contains("is not a valid rdf:nodeID")
        }
        _ => false,
    }
}

/// The statements that only one of both has, apart from blank nodes.
fn differences(ours: &Result<Vec<Quad>, String>, theirs: &Result<String, String>) -> String {
    let unlabelled = |line: &str| -> String {
        let mut parts = line.split("_:");
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |all, p| {
            all + "_:" + p.split_once(' ').map_or("", |p| p.1)
        })
    };
    let lines = |text: &str| -> Vec<String> { text.lines().map(unlabelled).collect() };
    let ours = match ours {
        Ok(quads) => lines(&quads.iter().map(|q| format!("{q} .\n")).collect::<String>()),
        Err(e) => vec![e.clone()],
    };
    let theirs = match theirs {
        Ok(text) => lines(text),
        Err(e) => vec![e.clone()],
    };
    let only = |a: &[String], b: &[String]| -> Vec<String> {
        a.iter().filter(|l| !b.contains(l)).cloned().collect()
    };
    format!(
        "  ours: {:#?}\n  Jena: {:#?}",
        only(&ours, &theirs),
        only(&theirs, &ours)
    )
}
