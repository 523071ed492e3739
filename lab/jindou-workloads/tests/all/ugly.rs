//! Checks that the ugly graph has the properties that its documentation describes, by counting the delivered quads.

use crate::{by_workers, delivered};
use jindou_model::term::{LANG, NUMERIC_TAGS, TEMPORAL_TAGS, decode};
use jindou_model::{Progress, QuadBatch, QuadSink, QuadSource, Result};
use jindou_parse::write::{TagCase, write_source};
use jindou_workloads::queries::ugly as queries;
use jindou_workloads::ugly::{LANGUAGES, LONGEST_LITERAL, Ugly};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Instant;

fn hash(parts: &[&[u8]]) -> u64 {
    let mut h = DefaultHasher::new();
    parts.hash(&mut h);
    h.finish()
}

/// Counts of the quads that were delivered.
#[derive(Default)]
struct Census {
    quads: u64,
    hub: u64,
    named: u64,
    blank_subjects: u64,
    literals: u64,
    numbers: u64,
    dates: u64,
    tagged: u64,
    longest: usize,
    bytes: u64,
    languages: BTreeSet<Vec<u8>>,
    graphs: HashSet<u64>,
    distinct: HashSet<u64>,
    edges: HashMap<u64, u32>,
    predicates: HashMap<Vec<u8>, u64>,
    types: HashMap<u64, u32>,
    subject_types: HashSet<u64>,
    /// For each subject, the sum of the hashes of its distinct predicates.
    sets: HashMap<u64, u64>,
    subject_predicates: HashSet<u64>,
    checksum: u64,
    hub_iri: Vec<u8>,
    light: bool,
}

impl QuadSink for Census {
    fn batch(&mut self, batch: &QuadBatch) -> Result<()> {
        self.quads += batch.quads.len() as u64;
        if self.light {
            return Ok(());
        }
        for quad in &batch.quads {
            let [s, p, o, g] = quad.map(|span| batch.term(span));
            let all = hash(&[s, p, o, g]);
            self.checksum = self.checksum.wrapping_add(all);
            self.distinct.insert(all);
            self.bytes += (s.len() + p.len() + o.len() + g.len()) as u64;
            *self.edges.entry(hash(&[s, p, o])).or_default() += 1;
            self.hub += u64::from(o == self.hub_iri);
            if !g.is_empty() {
                self.named += 1;
                self.graphs.insert(hash(&[g]));
            }
            self.blank_subjects += u64::from(s[0] == b'_');
            if !matches!(o[0], b'<' | b'_') {
                self.literals += 1;
                self.numbers += u64::from(NUMERIC_TAGS.contains(&o[0]));
                self.dates += u64::from(TEMPORAL_TAGS.contains(&o[0]));
                self.longest = self.longest.max(o.len());
                if o[0] == LANG {
                    self.tagged += 1;
                    let end = o.iter().position(|b| *b == 0).unwrap();
                    self.languages.insert(o[1..end].to_vec());
                }
            }
            match self.predicates.get_mut(p) {
                Some(n) => *n += 1,
                None => drop(self.predicates.insert(p.to_vec(), 1)),
            }
            let subject = hash(&[s]);
            if p.ends_with(b"#type") && self.subject_types.insert(hash(&[s, o])) {
                *self.types.entry(subject).or_default() += 1;
            }
            if self.subject_predicates.insert(hash(&[s, p])) {
                let sum = self.sets.entry(subject).or_default();
                *sum = sum.wrapping_add(hash(&[p]));
            }
        }
        Ok(())
    }
}

fn census(quads: u64, seed: u64) -> Census {
    let ugly = Ugly::new(quads, seed);
    let census = Census {
        hub_iri: ugly.hub().to_vec(),
        ..Census::default()
    };
    delivered(&ugly, census)
}

fn print(c: &Census) {
    let mut by_use: Vec<u64> = c.predicates.values().copied().collect();
    by_use.sort_unstable_by(|a, b| b.cmp(a));
    let sets: HashSet<u64> = c.sets.values().copied().collect();
    let mut types = BTreeMap::new();
    c.types
        .values()
        .for_each(|n| *types.entry(*n).or_insert(0) += 1);
    println!(
        "{} quads, {} distinct, {} bytes of terms each; {} subjects, {} sets; {} predicates, \
         uses {:?}; {} at the hub; {} named in {} graphs; {} edges in several graphs; {} blank \
         subjects; {} literals: {} numbers, {} dates, {} tagged in {} languages, longest {}; types a \
         subject {:?}",
        c.quads,
        c.distinct.len(),
        c.bytes / c.quads.max(1),
        c.sets.len(),
        sets.len(),
        by_use.len(),
        [0, 1, 10, 100, 1000, 10_000].map(|i| by_use.get(i)),
        c.hub,
        c.named,
        c.graphs.len(),
        c.edges.values().filter(|n| **n > 1).count(),
        c.blank_subjects,
        c.literals,
        c.numbers,
        c.dates,
        c.tagged,
        c.languages.len(),
        c.longest,
        types,
    );
}

/// Asserts all properties that hold at a size.
fn check(c: &Census, quads: u64) {
    print(c);
    let part = |n: u64, of: u64| n as f64 / of as f64;
    assert_eq!((c.quads, c.hub), (quads, hub_quads(quads)));
    assert!(part(c.distinct.len() as u64, quads) > 0.99);
    assert!((0.45..0.56).contains(&part(c.named, quads)));
    assert!((0.4..0.65).contains(&part(c.numbers + c.dates, c.literals)));
    assert!(part(c.tagged, c.literals) > 0.2);
    assert_eq!(
        c.languages,
        LANGUAGES.iter().map(|l| l.as_bytes().to_vec()).collect()
    );
    assert!((10_000..=LONGEST_LITERAL).contains(&c.longest));
    assert!(part(c.graphs.len() as u64, quads / 200) > 0.95);
    assert!(part(c.predicates.len() as u64, (quads / 200).min(14_000)) > 0.9);
    let sets: HashSet<u64> = c.sets.values().copied().collect();
    assert!((0.9..1.4).contains(&part(sets.len() as u64, (quads / 200).min(100_000))));
    assert!(c.types.values().all(|n| (1..=5).contains(n)));
    assert!(c.edges.values().any(|n| *n > 2));
    assert!(c.blank_subjects > quads / 100);
}

fn hub_quads(quads: u64) -> u64 {
    quads / 8192 * 4096 + quads % 8192 / 2
}

#[test]
fn a_small_graph_has_what_is_promised() {
    check(&census(200_000, 1), 200_000);
}

#[test]
#[ignore = "some minutes and 4 GB of memory"]
fn the_full_graph_has_what_is_promised() {
    check(&census(20_000_000, 1), 20_000_000);
}

#[test]
fn tiny_graphs_have_their_size() {
    for quads in [0, 1, 2, 3, 100, 8191, 8193] {
        let c = census(quads, 5);
        assert_eq!((c.quads, c.hub), (quads, hub_quads(quads)));
    }
}

#[test]
fn workers_deliver_the_same_graph() {
    let alone = census(50_000, 9);
    let (ugly, progress) = (Ugly::new(50_000, 9), Progress::default());
    let all: Vec<Census> = by_workers(&ugly, 3, &progress);
    let sums = all.iter().map(|census| census.checksum);
    assert_eq!(sums.fold(0u64, u64::wrapping_add), alone.checksum);
    assert_eq!(progress.done.into_inner(), 50_000);
    assert_ne!(census(50_000, 10).checksum, alone.checksum);
}

/// Stores the hashes of all quads.
struct Quads(HashSet<u64>);

impl QuadSink for Quads {
    fn batch(&mut self, batch: &QuadBatch) -> Result<()> {
        self.0.extend(
            batch
                .quads
                .iter()
                .map(|q| hash(&q.map(|span| batch.term(span)))),
        );
        Ok(())
    }
}

#[test]
fn an_entity_made_by_itself_is_the_one_in_the_graph() {
    let ugly = Ugly::new(65_536, 4);
    let all = delivered(&ugly, Quads(HashSet::new()));
    let (mut there, mut links) = (0, 0);
    for entity in 0..ugly.entities() {
        let d = ugly.describe(entity);
        let quads = d
            .batch
            .quads
            .iter()
            .map(|q| hash(&q.map(|span| d.batch.term(span))));
        there += u32::from(quads.into_iter().all(|h| all.0.contains(&h)));
        for &(quad, target) in &d.links {
            links += 1;
            assert_eq!(
                d.batch.term(d.batch.quads[quad as usize][2]),
                ugly.entity(target)
            );
        }
    }
    assert!(
        there > ugly.entities() * 95 / 100,
        "{there} of {}",
        ugly.entities()
    );
    assert!(links > 100);
}

#[test]
fn text_reads_back_as_the_same_quads() {
    for tags in [TagCase::Lower, TagCase::Mixed] {
        let mut text = vec![];
        let ugly = Ugly::new(30_000, 2);
        assert_eq!(write_source(&ugly, tags, &mut text).unwrap(), 30_000);
        let expected = delivered(&Ugly::new(30_000, 2), Terms(vec![]));
        let read: Vec<String> = oxttl::NQuadsParser::new()
            .for_slice(&text)
            .map(|quad| quad.unwrap().to_string())
            .collect();
        assert!(read == expected.0);
        let upper = String::from_utf8(text).unwrap().contains("\"@EN-US ");
        assert_eq!(upper, tags == TagCase::Mixed);
    }
}

/// Stores all quads as the RDF library prints them.
struct Terms(Vec<String>);

impl QuadSink for Terms {
    fn batch(&mut self, batch: &QuadBatch) -> Result<()> {
        for quad in &batch.quads {
            let [s, p, o] = [0, 1, 2].map(|i| decode(batch.term(quad[i])).unwrap());
            let graph = batch.term(quad[3]);
            let g = if graph.is_empty() {
                String::new()
            } else {
                format!(" {}", decode(graph).unwrap())
            };
            self.0.push(format!("{s} {p} {o}{g}"));
        }
        Ok(())
    }
}

#[test]
#[ignore = "a measurement, for the release profile"]
fn speed() {
    let ugly = Ugly::new(20_000_000, 1);
    let mut sink = Census {
        light: true,
        ..Census::default()
    };
    let start = Instant::now();
    ugly.run(0, 1, &mut sink, &Progress::default()).unwrap();
    println!(
        "{:.2} M quads/s",
        sink.quads as f64 / start.elapsed().as_secs_f64() / 1e6
    );
    let mut text = Sizing(0);
    let start = Instant::now();
    write_source(&Ugly::new(2_000_000, 1), TagCase::Mixed, &mut text).unwrap();
    println!(
        "text: {} MB, {:.2} s",
        text.0 >> 20,
        start.elapsed().as_secs_f64()
    );
}

struct Sizing(u64);

impl std::io::Write for Sizing {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn queries_are_valid_and_of_every_size() {
    let ugly = Ugly::new(100_000, 1);
    let mut sizes = BTreeSet::new();
    let (mut constants, mut graphs) = (0, 0);
    let all: Vec<String> = queries::queries(&ugly, 500, 7).collect();
    for text in &all {
        let query = spargebra::SparqlParser::new()
            .parse_query(text)
            .expect(text);
        sizes.insert(text.matches(" .\n").count());
        constants += usize::from(text.contains(" <http://ugly.example/resource/World> ."));
        graphs += usize::from(query.to_string().contains("GRAPH ?g"));
    }
    assert_eq!(sizes, (1..=queries::MOST_PATTERNS as usize).collect());
    assert!(constants > 10 && graphs > 20, "{constants} {graphs}");
    let again: Vec<String> = queries::queries(&Ugly::new(100_000, 1), 500, 7).collect();
    assert_eq!(all, again);
    assert_ne!(all[0], queries::query(&ugly, 0, 8));
    for number in 0..50 {
        for text in [
            queries::subject_lookup(&ugly, number, 1),
            queries::object_lookup(&ugly, number, 1),
        ] {
            spargebra::SparqlParser::new()
                .parse_query(&text)
                .expect(&text);
        }
    }
    println!("{}\n{}\n{}", all[0], all[1], all[2]);
}
