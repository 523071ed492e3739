//! Compares SP²Bench's generator with the published table of attributes, and checks the documents of Paul Erdős.

use jindou_model::{Progress, QuadBatch, QuadSink, QuadSource, Result};
use jindou_workloads::queries::sp2b::QUERIES;
use jindou_workloads::sp2b::Sp2b;
use spargebra::SparqlParser;
use std::collections::{HashMap, HashSet};

#[derive(Default)]
struct Data {
    quads: u64,
    different: HashSet<[String; 3]>,
    class: HashMap<String, String>,
}

impl QuadSink for Data {
    fn batch(&mut self, batch: &QuadBatch) -> Result<()> {
        for q in &batch.quads {
            let text = |i: usize| String::from_utf8_lossy(batch.term(q[i])).into_owned();
            let [s, p, o] = [text(0), text(1), text(2)];
            if p.ends_with("#type") {
                self.class
                    .insert(s.clone(), o.rsplit(['/', '#']).next().unwrap().to_owned());
            }
            self.different.insert([s, p, o]);
            self.quads += 1;
        }
        Ok(())
    }
}

fn data(triples: u64, seed: u64) -> Data {
    let mut data = Data::default();
    let source = Sp2b::new(triples, seed);
    source.run(0, 2, &mut data, &Progress::default()).unwrap();
    source.run(1, 2, &mut data, &Progress::default()).unwrap();
    data
}

#[test]
fn it_is_as_large_as_asked_for_and_says_nothing_twice() {
    for triples in [1, 1_000, 50_000] {
        let data = data(triples, 1);
        assert!(
            (triples..triples + 500).contains(&data.quads),
            "{}",
            data.quads
        );
        assert_eq!(data.different.len() as u64, data.quads);
    }
}

/// Compares the share of documents of a class that have an attribute with the table's probability, within five standard
/// errors.
#[test]
fn attributes_are_as_likely_as_published() {
    let data = data(400_000, 0);
    let mut documents: HashMap<&str, f64> = HashMap::new();
    data.class
        .values()
        .for_each(|c| *documents.entry(c).or_default() += 1.0);
    let mut with: HashMap<(&str, &str), HashSet<&str>> = HashMap::new();
    for [s, p, _] in &data.different {
        if let Some(class) = data.class.get(s) {
            let name = p.rsplit(['/', '#']).next().unwrap();
            with.entry((class, name)).or_default().insert(s);
        }
    }
    for (class, attribute, probability) in [
        ("Article", "creator", 0.9895),
        ("Article", "seeAlso", 0.6781),
        ("Article", "pages", 0.9261),
        ("Article", "month", 0.0065),
        ("Article", "isbn", 0.0),
        ("Article", "issued", 0.0),
        ("Article", "abstract", 0.01),
        ("Inproceedings", "pages", 0.9489),
        ("Inproceedings", "partOf", 0.8003),
        ("Inproceedings", "references", 0.0104),
        ("Inproceedings", "issued", 1.0),
        ("Proceedings", "editor", 0.7992),
        ("Proceedings", "isbn", 0.8592),
        ("Journal", "number", 0.9224),
    ] {
        let n = documents[class];
        let have = with.get(&(class, attribute)).map_or(0, HashSet::len) as f64;
        let error = (probability * (1.0 - probability) * n).sqrt();
        assert!(
            (have - probability * n).abs() <= 5.0 * error + 1.0,
            "{class} {attribute}: {have} of {n}"
        );
    }
}

/// Checks that Paul Erdős writes ten documents and edits two books or proceedings a year from 1940 on, if the year has
/// that many.
#[test]
fn paul_erdoes_writes_ten_documents_a_year() {
    let data = data(200_000, 0);
    let mut years: HashMap<(String, &str), u32> = HashMap::new();
    for [s, p, o] in &data.different {
        if o.ends_with("persons/Paul_Erdoes") {
            let year = s
                .split('/')
                .find(|part| part.len() == 4 && part.bytes().all(|b| b.is_ascii_digit()))
                .unwrap();
            let what = p.rsplit(['/', '#']).next().unwrap();
            *years.entry((year.to_owned(), what)).or_default() += 1;
        }
    }
    for year in 1945..1960 {
        assert_eq!(years[&(year.to_string(), "creator")], 10, "{year}");
    }
    assert!(
        years
            .iter()
            .all(|((_, p), n)| *n <= if *p == "editor" { 2 } else { 10 })
    );
    assert!(!years.contains_key(&("1939".to_owned(), "creator")));
}

#[test]
fn queries_are_sparql_and_people_have_names_of_their_own() {
    for q in &QUERIES {
        SparqlParser::new()
            .parse_query(q.text)
            .unwrap_or_else(|e| panic!("{}: {e}", q.name));
    }
    let data = data(100_000, 0);
    let names: Vec<&String> = data
        .different
        .iter()
        .filter(|[_, p, _]| p.ends_with("foaf/0.1/name"))
        .map(|[_, _, o]| o)
        .collect();
    let different: HashSet<&&String> = names.iter().collect();
    assert!(names.len() > 5_000);
    // Names that differ only in case are possible, since two words may.
    assert!(names.len() - different.len() <= names.len() / 1000);
}
