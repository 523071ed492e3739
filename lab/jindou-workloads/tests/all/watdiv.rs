//! Compares WatDiv's model and templates with their files, and the generated text with other parsers.

use crate::by_workers;
use jindou_model::{Error, Progress, QuadBatch, QuadSink, QuadSource, Result};
use jindou_parse::write::{TagCase, write_source};
use jindou_testing::shared;
use jindou_workloads::queries::watdiv::{Template, instances, templates};
use jindou_workloads::watdiv::{Watdiv, WatdivModel};
use oxttl::NTriplesParser;
use spargebra::SparqlParser;
use std::collections::{HashMap, HashSet};

fn written(source: &Watdiv, out: &mut Vec<u8>) -> u64 {
    write_source(source, TagCase::Lower, out).unwrap()
}

fn text(model: &WatdivModel, scale: u32, seed: u64) -> Vec<u8> {
    let mut out = vec![];
    let written = written(&Watdiv::new(model, scale, seed).unwrap(), &mut out);
    assert_eq!(
        written as usize,
        out.iter().filter(|b| **b == b'\n').count()
    );
    out
}

#[test]
fn the_standard_model_is_the_one_of_the_file() {
    let Some(path) = shared("workloads/watdiv/model/wsdbm-data-model.txt") else {
        return;
    };
    let parsed = WatdivModel::parse(&std::fs::read_to_string(path).unwrap());
    let standard = WatdivModel::standard();
    assert_eq!(parsed.namespaces(), standard.namespaces());
    for kind in parsed.kinds() {
        let ours = &standard.kinds()[standard.kind(&kind.iri).unwrap()];
        assert_eq!(ours, kind);
    }
    assert_eq!(parsed.kinds().len(), standard.kinds().len());
    // The order of kinds differs from the file's, so associations are compared by the names of their kinds.
    let named = |m: &WatdivModel| -> Vec<String> {
        let mut all: Vec<String> = m
            .associations()
            .iter()
            .map(|a| {
                let kinds = m.kinds();
                let (s, o) = (&kinds[a.subject].iri, &kinds[a.object].iri);
                let (mut a, s, o) = (a.clone(), s.clone(), o.clone());
                (a.subject, a.object) = (0, 0);
                format!("{s} {o} {a:?}")
            })
            .collect();
        all.sort();
        all
    };
    assert_eq!(named(&parsed), named(&standard));
}

#[test]
fn the_standard_model_is_sound() {
    let model = WatdivModel::standard();
    let is_class = |class: &String| {
        let entity = model.entity(class);
        entity.is_some_and(|(kind, number)| number < model.kinds()[kind].count)
    };
    for group in model.kinds().iter().flat_map(|kind| &kind.groups) {
        assert!(group.class.iter().all(is_class), "{group:?}");
        assert!((0.0..=1.0).contains(&group.probability), "{group:?}");
    }
    for of in model.associations() {
        let mut classes = of.subject_class.iter().chain(&of.object_class);
        assert!(classes.all(is_class), "{of:?}");
        assert!((0.0..=1.0).contains(&of.cover), "{of:?}");
    }
}

#[test]
fn the_templates_are_those_of_the_files() {
    let Some(folder) = shared("workloads/watdiv/templates") else {
        return;
    };
    let model = WatdivModel::standard();
    for ours in templates() {
        let file = folder.join(format!("{}.txt", ours.name));
        let theirs = Template::parse(&ours.name, &std::fs::read_to_string(file).unwrap());
        assert_eq!(ours.mappings, theirs.mappings, "{}", ours.name);
        let instance = |t: &Template| {
            let text = t.instances(&model, 10, 1, 1).unwrap().remove(0).text;
            SparqlParser::new().parse_query(&text).unwrap()
        };
        assert_eq!(instance(&ours), instance(&theirs), "{}", ours.name);
    }
    assert_eq!(
        templates().len(),
        std::fs::read_dir(folder).unwrap().count()
    );
}

#[test]
fn instances_are_queries_about_entities_that_exist() {
    let (model, scale, each) = (WatdivModel::standard(), 2, 200);
    let all = instances(scale, 7, each).unwrap();
    assert_eq!(all, instances(scale, 7, each).unwrap());
    assert_ne!(all, instances(scale, 8, each).unwrap());
    assert_eq!(all.len() as u32, 17 * each + 3);
    let mut websites = HashSet::new();
    for instance in &all {
        SparqlParser::new().parse_query(&instance.text).unwrap();
        assert!(!instance.text.contains('%'));
        for iri in instance.text.split('<').filter_map(|t| t.split('>').next()) {
            if let Some((kind, number)) = model.entity(iri) {
                assert!(number < model.population(kind, scale).unwrap(), "{iri}");
                if instance.template == "L1" {
                    websites.insert(number);
                }
            }
        }
    }
    // 200 draws from 100 websites give 87 different ones on average, with a deviation of 3.
    assert!((70..=100).contains(&websites.len()), "{}", websites.len());
}

#[test]
fn the_text_is_n_triples_and_repeats_by_seed() {
    let model = WatdivModel::standard();
    let (first, again, other) = (text(&model, 1, 3), text(&model, 1, 3), text(&model, 1, 4));
    assert!(first == again && first != other);
    let triples = NTriplesParser::new()
        .for_slice(&first)
        .map(|t| t.unwrap().predicate)
        .fold(HashMap::new(), |mut counts, p| {
            *counts.entry(p).or_insert(0) += 1;
            counts
        });
    assert!((80..=86).contains(&triples.len()), "{}", triples.len());
}

/// Counts each quad by its text.
#[derive(Default)]
struct Counts(HashMap<[Vec<u8>; 3], u32>);

impl QuadSink for Counts {
    fn batch(&mut self, batch: &QuadBatch) -> Result<()> {
        for q in &batch.quads {
            let triple = [0, 1, 2].map(|i| batch.term(q[i]).to_vec());
            *self.0.entry(triple).or_insert(0) += 1;
        }
        Ok(())
    }
}

#[test]
fn any_number_of_workers_delivers_the_same_statements() {
    let model = WatdivModel::standard();
    let counts = |workers: usize| {
        let source = Watdiv::new(&model, 1, 5).unwrap();
        let progress = Progress::default();
        let mut all = Counts::default();
        for Counts(some) in by_workers(&source, workers, &progress) {
            for (triple, n) in some {
                *all.0.entry(triple).or_insert(0) += n;
            }
        }
        let made = u64::from(all.0.values().sum::<u32>());
        assert_eq!(progress.quads.into_inner(), made);
        assert_eq!(Some(progress.done.into_inner()), source.size_hint());
        all.0
    };
    assert_eq!(counts(1), counts(3));
}

const SMALL: &str = "
// two kinds
#namespace e=http://e/
#namespace rdf=http://www.w3.org/1999/02/22-rdf-syntax-ns#
<type> e:A 40
<pgroup> 0.5
#predicate e:n integer -5 5
#predicate e:d date 2000-02-28 2000-03-02
</pgroup>
<pgroup> 1.0 @e:C1
#predicate e:s string
</pgroup>
</type>
<type*> e:C 2
</type>
#association e:A rdf:type e:C 2 1 1.0 uniform
#association e:A e:owns e:A 1 3[uniform] 1.0 uniform
#association e:A e:likes e:A 2 2 1.0 ZIPFIAN @e:C0 @e:C1
#statistics e:A e:owns e:A
";

/// Checks that every statement follows the rules of the model.
#[test]
fn a_small_model_does_what_it_says() {
    let text = text(&WatdivModel::parse(SMALL), 10, 1);
    let triples: Vec<_> = NTriplesParser::new()
        .for_slice(&text)
        .map(|t| t.unwrap())
        .map(|t| {
            (
                t.subject.to_string(),
                t.predicate.as_str().to_owned(),
                t.object.to_string(),
            )
        })
        .collect();
    let of = |p: &str| -> Vec<(&str, &str)> {
        let named = triples.iter().filter(|t| t.1.ends_with(p));
        named.map(|(s, _, o)| (s.as_str(), o.as_str())).collect()
    };
    let class = |n: u32| -> HashSet<&str> {
        let is = format!("<http://e/C{n}>");
        let typed = of("#type").into_iter().filter(|t| t.1 == is);
        typed.map(|t| t.0).collect()
    };
    let (zero, one) = (class(0), class(1));
    assert_eq!((zero.len() + one.len(), of("#type").len()), (400, 400));
    // Rounding gives class 0 a quarter of all entities: 100, with a deviation of 8.7.
    assert!((55..=145).contains(&zero.len()), "{}", zero.len());

    let texts: Vec<&str> = of("/s").iter().map(|t| t.0).collect();
    assert_eq!(texts.iter().copied().collect::<HashSet<_>>(), one);
    assert_eq!(texts.len(), one.len());

    assert_eq!(of("/n").len(), of("/d").len());
    let whole: HashSet<&str> = of("/n").iter().map(|t| t.1).collect();
    assert_eq!(whole.len(), 11);
    assert!(whole.contains("\"-5\"") && whole.contains("\"0\"") && whole.contains("\"5\""));
    let days: HashSet<&str> = of("/d").iter().map(|t| t.1).collect();
    let due = ["\"2000-02-28\"", "\"2000-02-29\"", "\"2000-03-01\""];
    assert_eq!(days, HashSet::from(due));

    let owned: HashSet<&str> = of("/owns").iter().map(|t| t.1).collect();
    assert_eq!(owned.len(), of("/owns").len(), "an object is owned twice");
    assert!(owned.len() > 300, "{} are owned", owned.len());

    let likes = of("/likes");
    assert_eq!(likes.len(), 2 * zero.len());
    assert!(
        likes
            .iter()
            .all(|t| zero.contains(t.0) && one.contains(t.1))
    );
}

#[test]
fn sizes_without_entities_or_with_too_many_are_empty_or_refused() {
    let model = WatdivModel::standard();
    for (model, scale) in [(&WatdivModel::default(), 1), (&model, 0)] {
        let source = Watdiv::new(model, scale, 0).unwrap();
        assert_eq!(written(&source, &mut vec![]), 0);
    }
    assert!(matches!(
        Watdiv::new(&model, u32::MAX, 0),
        Err(Error::Limit(_))
    ));
    assert!(matches!(instances(0, 1, 1), Err(Error::Query(_))));
}
