//! Checks query texts and row counts of LUBM by a naive evaluator and by brute force.

use crate::delivered;
use jindou_model::term::encode;
use jindou_model::{Progress, QuadBatch, QuadSink, QuadSource, Result};
use jindou_workloads::lubm::{Class, Lubm, known};
use jindou_workloads::queries::lubm::{Constants, EMULATOR, LIGHT, QUERIES, query};
use oxrdf::Term;
use spargebra::algebra::GraphPattern;
use spargebra::term::{NamedNodePattern, TermPattern, TriplePattern};
use spargebra::{Query, SparqlParser};
use std::collections::{BTreeSet, HashMap, HashSet};

type Bytes = Vec<u8>;
/// Subject and object.
type Pair<'a> = (&'a [u8], &'a [u8]);

/// All distinct triples, with an index by each of the three positions.
#[derive(Default)]
struct Naive {
    triples: Vec<[u32; 3]>,
    by_place: [HashMap<u32, Vec<u32>>; 3],
    ids: HashMap<Bytes, u32>,
}

impl QuadSink for Naive {
    fn batch(&mut self, batch: &QuadBatch) -> Result<()> {
        for quad in &batch.quads {
            let triple = [0, 1, 2].map(|i| {
                let next = self.ids.len() as u32;
                *self.ids.entry(batch.term(quad[i]).to_vec()).or_insert(next)
            });
            self.triples.push(triple);
        }
        Ok(())
    }
}

impl Naive {
    fn generate(universities: u32) -> Self {
        let mut naive = delivered(&Lubm::new(universities, 0), Self::default());
        naive.triples.sort_unstable();
        naive.triples.dedup();
        for (number, triple) in naive.triples.iter().enumerate() {
            for (place, id) in triple.iter().enumerate() {
                naive.by_place[place]
                    .entry(*id)
                    .or_default()
                    .push(number as u32);
            }
        }
        naive
    }

    /// Number of rows of a query that is one basic graph pattern. Evaluates its patterns one by one, always the one
    /// with the fewest unknown positions next.
    fn rows(&self, text: &str) -> usize {
        let Query::Select { pattern, .. } = SparqlParser::new().parse_query(text).unwrap() else {
            panic!("not a SELECT");
        };
        let GraphPattern::Project { inner, .. } = pattern else {
            panic!("no projection")
        };
        let GraphPattern::Bgp { mut patterns } = *inner else {
            panic!("no basic graph pattern")
        };
        let mut known: BTreeSet<String> = BTreeSet::new();
        let mut rows: Vec<HashMap<String, u32>> = vec![HashMap::new()];
        while !patterns.is_empty() {
            // Number of unknown positions; `rdf:type` with a class counts as half unknown, since classes are large.
            let cost = |p: &TriplePattern| -> usize {
                places(p)
                    .iter()
                    .filter(|x| matches!(x, LubmPlace::Var(v) if !known.contains(v)))
                    .count()
                    * 2
                    + usize::from(p.object.to_string().contains("univ-bench"))
            };
            let best = (0..patterns.len())
                .min_by_key(|i| cost(&patterns[*i]))
                .unwrap();
            let places = places(&patterns.remove(best));
            rows = rows
                .iter()
                .flat_map(|row| self.extend(row, &places))
                .collect();
            known.extend(places.into_iter().filter_map(|p| match p {
                LubmPlace::Var(v) => Some(v),
                LubmPlace::Term(_) => None,
            }));
        }
        rows.len()
    }

    fn extend(
        &self,
        row: &HashMap<String, u32>,
        places: &[LubmPlace; 3],
    ) -> Vec<HashMap<String, u32>> {
        let wanted = [0, 1, 2].map(|i| match &places[i] {
            LubmPlace::Var(v) => row.get(v).copied(),
            LubmPlace::Term(t) => Some(self.ids.get(t).copied().unwrap_or(u32::MAX)),
        });
        let nothing = vec![];
        let candidates = (0..3)
            .filter_map(|i| Some(self.by_place[i].get(&wanted[i]?).unwrap_or(&nothing)))
            .min_by_key(|list| list.len())
            .expect("some place is known");
        let fits = |t: &[u32; 3]| (0..3).all(|i| wanted[i].is_none_or(|w| w == t[i]));
        let triples = candidates
            .iter()
            .map(|n| self.triples[*n as usize])
            .filter(fits);
        triples
            .map(|t| {
                let mut row = row.clone();
                for (place, id) in places.iter().zip(t) {
                    if let LubmPlace::Var(v) = place {
                        row.insert(v.clone(), id);
                    }
                }
                row
            })
            .collect()
    }
}

enum LubmPlace {
    Var(String),
    Term(Bytes),
}

fn places(p: &TriplePattern) -> [LubmPlace; 3] {
    let term = |t: &TermPattern| match t {
        TermPattern::NamedNode(n) => LubmPlace::Term(encode(&Term::from(n.clone()))),
        TermPattern::Variable(v) => LubmPlace::Var(v.as_str().to_owned()),
        other => panic!("unexpected {other}"),
    };
    let predicate = match &p.predicate {
        NamedNodePattern::NamedNode(n) => LubmPlace::Term(encode(&Term::from(n.clone()))),
        NamedNodePattern::Variable(v) => LubmPlace::Var(v.as_str().to_owned()),
    };
    [term(&p.subject), predicate, term(&p.object)]
}

#[test]
fn a_naive_evaluator_finds_the_published_rows() {
    let naive = Naive::generate(1);
    assert_eq!(naive.triples.len(), 100_543);
    for q in QUERIES {
        assert_eq!(Some(naive.rows(q.text) as u64), q.rows(1), "{}", q.name);
        assert_eq!(query(&q.name.to_lowercase()), Some(q));
    }
    for (template, constant) in [
        (LIGHT[0], "http://www.Department0.University0.edu"),
        (LIGHT[1], "http://www.Department0.University0.edu"),
        (LIGHT[2], "http://www.University0.edu"),
    ] {
        let rows = naive.rows(&template.with(constant)) as u64;
        assert_eq!(Some(rows), query(template.name).unwrap().rows(1));
    }
}

#[test]
fn constants_are_instances_of_their_class() {
    let naive = Naive::generate(3);
    let typed = encode(&oxrdf::vocab::rdf::TYPE.into_owned().into());
    let mut constants = Constants::new(3, 0, 1);
    for template in EMULATOR.iter().chain(&LIGHT) {
        let mut drawn = HashSet::new();
        for _ in 0..50 {
            let iri = constants.draw(template.class).unwrap();
            let class = format!("<{}", template.class.iri()).into_bytes();
            let subject = format!("<{iri}").into_bytes();
            let triple = [subject, typed.clone(), class].map(|t| naive.ids[&t]);
            assert!(naive.triples.binary_search(&triple).is_ok(), "{iri}");
            SparqlParser::new()
                .parse_query(&template.with(&iri))
                .unwrap();
            drawn.insert(iri);
        }
        assert!(drawn.len() > 20 || template.class == Class::University);
    }
}

#[test]
fn counts_of_the_sizes_that_the_project_is_measured_at_are_known() {
    for universities in [1, 5, 10, 50, 160, 2560] {
        for q in QUERIES {
            assert!(
                q.rows(universities).is_some(),
                "{} at {universities}",
                q.name
            );
        }
    }
    for (name, rows) in [("L1", 2_528), ("L2", 2_765_067), ("L7", 112_559)] {
        assert_eq!(query(name).unwrap().rows(2560), Some(rows));
    }
}

/// Counts the rows of L1 and L7 from the triples of each department, by the definitions of these queries.
#[derive(Default)]
struct Triangles {
    l1: u64,
    l7: u64,
}

impl QuadSink for Triangles {
    fn batch(&mut self, batch: &QuadBatch) -> Result<()> {
        let mut by_predicate: HashMap<&[u8], Vec<Pair>> = HashMap::new();
        for [s, p, o, _] in &batch.quads {
            let property = batch.term(*p).rsplit(|b| *b == b'#').next().unwrap();
            by_predicate
                .entry(property)
                .or_default()
                .push((batch.term(*s), batch.term(*o)));
        }
        let pairs = |p: &str| by_predicate[p.as_bytes()].iter().copied();
        let is = |class: &str| -> HashSet<&[u8]> {
            pairs("type")
                .filter(|t| t.1.ends_with(class.as_bytes()))
                .map(|t| t.0)
                .collect()
        };
        let (graduates, departments) = (is("#GraduateStudent"), is("#Department"));
        let parents: HashSet<Pair> = pairs("subOrganizationOf").collect();
        let member: HashMap<&[u8], &[u8]> = pairs("memberOf").collect();
        for (x, y) in pairs("undergraduateDegreeFrom").filter(|t| graduates.contains(t.0)) {
            let z = member[x];
            self.l1 += u64::from(departments.contains(z) && parents.contains(&(z, y)));
        }
        let (full, under, courses) = (
            is("#FullProfessor"),
            is("#UndergraduateStudent"),
            is("#Course"),
        );
        let advisor: HashMap<&[u8], &[u8]> = pairs("advisor").collect();
        let teaches: HashSet<Pair> = pairs("teacherOf").collect();
        for (x, z) in pairs("takesCourse").filter(|t| under.contains(t.0) && courses.contains(t.1))
        {
            let y = advisor.get(x).filter(|y| full.contains(**y));
            self.l7 += u64::from(y.is_some_and(|y| teaches.contains(&(y, z))));
        }
        Ok(())
    }
}

#[test]
#[ignore = "a minute in the release profile"]
fn brute_force_finds_the_rows_of_the_triangles_at_every_size() {
    let mut sink = Triangles::default();
    let lubm = Lubm::new(2560, 0);
    let progress = Progress::default();
    struct Steps<'a> {
        triangles: &'a mut Triangles,
        progress: &'a Progress,
        at: u64,
        wrong: Vec<String>,
    }
    impl Steps<'_> {
        fn check(&mut self, done: u64) {
            if self.at < done {
                self.at = done;
                let (l1, l7) = (self.triangles.l1, self.triangles.l7);
                if known::totals(done as u32).is_some() {
                    println!("    ({done}, {l1}, {l7}),");
                    for (name, rows) in [("L1", l1), ("L7", l7)] {
                        if query(name).unwrap().rows(done as u32) != Some(rows) {
                            self.wrong.push(format!("{name} at {done}"));
                        }
                    }
                }
            }
        }
    }
    impl QuadSink for Steps<'_> {
        fn batch(&mut self, batch: &QuadBatch) -> Result<()> {
            self.check(
                self.progress
                    .done
                    .load(std::sync::atomic::Ordering::Relaxed),
            );
            self.triangles.batch(batch)
        }
    }
    let mut steps = Steps {
        triangles: &mut sink,
        progress: &progress,
        at: 0,
        wrong: vec![],
    };
    lubm.run(0, 1, &mut steps, &progress).unwrap();
    steps.check(2560);
    assert!(steps.wrong.is_empty(), "{:?}", steps.wrong);
}
