//! Statements that follow from LUBM's data by its ontology, as far as the official queries need them: superclasses and
//! superproperties, `Student` for those who take courses, `Chair` for those who head departments, the transitive
//! `subOrganizationOf`, and `hasAlumnus` as the inverse of `degreeFrom`.

use crate::lubm::Lubm;
use jindou_model::term::IRI;
use jindou_model::{Progress, QuadBatch, QuadSink, QuadSource, Result, Span};
use rustc_hash::FxHashMap;

const UB: &str = "http://swat.cse.lehigh.edu/onto/univ-bench.owl#";
const TYPE: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type";

/// LUBM's data and the statements that follow from it, some of them more than once.
#[derive(Debug)]
pub struct Inferred(Lubm);

impl Inferred {
    /// Creates a source of the statements of `lubm` and those that follow from them.
    pub fn new(lubm: Lubm) -> Self {
        Self(lubm)
    }
}

impl QuadSource for Inferred {
    fn run(
        &self,
        worker: usize,
        workers: usize,
        sink: &mut dyn QuadSink,
        progress: &Progress,
    ) -> Result<()> {
        let mut adding = Adding::new(sink);
        self.0.run(worker, workers, &mut adding, progress)
    }

    fn size_hint(&self) -> Option<u64> {
        self.0.size_hint()
    }
}

/// Classes, each with its direct superclasses. Classes with a definition (`Student`) are included.
const SUPERCLASSES: &[(&str, &[&str])] = &[
    ("AssistantProfessor", &["Professor"]),
    ("AssociateProfessor", &["Professor"]),
    ("Chair", &["Professor"]),
    ("Department", &["Organization"]),
    ("Employee", &["Person"]),
    ("Faculty", &["Employee"]),
    ("FullProfessor", &["Professor"]),
    ("GraduateCourse", &["Course"]),
    ("GraduateStudent", &["Person"]),
    ("Course", &["Work"]),
    ("Lecturer", &["Faculty"]),
    ("Professor", &["Faculty"]),
    ("ResearchAssistant", &["Person"]),
    ("ResearchGroup", &["Organization"]),
    ("Student", &["Person"]),
    ("TeachingAssistant", &["Person"]),
    ("UndergraduateStudent", &["Student"]),
    ("University", &["Organization"]),
];

type Property = (
    &'static str,
    &'static [&'static str],
    Option<&'static str>,
    Option<&'static str>,
);

/// Properties, each with its direct superproperties, the class of its subjects, and its inverse.
#[rustfmt::skip]
const PROPERTIES: &[Property] = &[
    ("doctoralDegreeFrom", &["degreeFrom"], None, Some("hasAlumnus")),
    ("headOf", &["worksFor", "memberOf"], Some("Chair"), Some("member")),
    ("mastersDegreeFrom", &["degreeFrom"], None, Some("hasAlumnus")),
    ("memberOf", &[], None, Some("member")),
    ("takesCourse", &[], Some("Student"), None),
    ("teachingAssistantOf", &[], Some("TeachingAssistant"), None),
    ("undergraduateDegreeFrom", &["degreeFrom"], None, Some("hasAlumnus")),
    ("worksFor", &["memberOf"], None, Some("member")),
];

fn above(class: &str) -> Vec<&'static str> {
    let mut all: Vec<&'static str> = vec![];
    let direct = SUPERCLASSES.iter().filter(|(c, _)| *c == class);
    for parent in direct.flat_map(|(_, parents)| *parents) {
        all.push(parent);
        all.extend(above(parent));
    }
    all
}

/// The canonical bytes of an IRI of the ontology.
fn ub(name: &str) -> Vec<u8> {
    let mut bytes = vec![IRI];
    bytes.extend_from_slice(UB.as_bytes());
    bytes.extend_from_slice(name.as_bytes());
    bytes
}

#[derive(Default)]
struct Consequence {
    properties: Vec<Vec<u8>>,
    types: Vec<Vec<u8>>,
    inverse: Option<Vec<u8>>,
}

struct Adding<'a> {
    sink: &'a mut dyn QuadSink,
    /// By class: all its direct and indirect superclasses.
    classes: FxHashMap<Vec<u8>, Vec<Vec<u8>>>,
    properties: FxHashMap<Vec<u8>, Consequence>,
    rdf_type: Vec<u8>,
    part_of: Vec<u8>,
    batch: QuadBatch,
}

impl<'a> Adding<'a> {
    fn new(sink: &'a mut dyn QuadSink) -> Self {
        let iris = |names: Vec<&str>| names.into_iter().map(ub).collect::<Vec<_>>();
        let with_above = |class: &'static str| {
            let mut all = vec![class];
            all.extend(above(class));
            all
        };
        let mut rdf_type = vec![IRI];
        rdf_type.extend_from_slice(TYPE.as_bytes());
        Self {
            sink,
            classes: SUPERCLASSES
                .iter()
                .map(|(class, _)| (ub(class), iris(above(class))))
                .collect(),
            properties: PROPERTIES
                .iter()
                .map(|(property, above, class, inverse)| {
                    let consequence = Consequence {
                        properties: iris(above.to_vec()),
                        types: iris(class.map(with_above).unwrap_or_default()),
                        inverse: inverse.map(ub),
                    };
                    (ub(property), consequence)
                })
                .collect(),
            rdf_type,
            part_of: ub("subOrganizationOf"),
            batch: QuadBatch::default(),
        }
    }
}

/// The university in a department's IRI: University7 for `http://www.Department3.University7.edu`.
fn university(department: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(department).ok()?;
    let rest = text.strip_prefix("<http://www.Department")?;
    let (_, university) = rest.split_once('.')?;
    Some(format!("<http://www.{university}").into_bytes())
}

impl QuadSink for Adding<'_> {
    fn batch(&mut self, given: &QuadBatch) -> Result<()> {
        let batch = &mut self.batch;
        batch.clear();
        batch.bytes.extend_from_slice(&given.bytes);
        batch.quads.extend_from_slice(&given.quads);
        let mut spans: FxHashMap<&[u8], Span> = FxHashMap::default();
        for &[s, p, o, g] in &given.quads {
            let (property, object) = (given.term(p), given.term(o));
            if property == self.rdf_type {
                for class in self.classes.get(object).into_iter().flatten() {
                    let class = *spans.entry(class).or_insert_with(|| batch.push_term(class));
                    batch.quads.push([s, p, class, g]);
                }
            } else if property == self.part_of {
                if let Some(whole) = university(object) {
                    let whole = batch.push_term(&whole);
                    batch.quads.push([s, p, whole, g]);
                }
            } else if let Some(more) = self.properties.get(property) {
                let mut span = |batch: &mut QuadBatch, term| {
                    *spans.entry(term).or_insert_with(|| batch.push_term(term))
                };
                for property in &more.properties {
                    let property = span(batch, property);
                    batch.quads.push([s, property, o, g]);
                }
                for class in &more.types {
                    let (rdf_type, class) = (span(batch, &self.rdf_type), span(batch, class));
                    batch.quads.push([s, rdf_type, class, g]);
                }
                if let Some(inverse) = &more.inverse {
                    let inverse = span(batch, inverse);
                    batch.quads.push([o, inverse, s, g]);
                }
            }
        }
        self.sink.batch(batch)
    }
}
