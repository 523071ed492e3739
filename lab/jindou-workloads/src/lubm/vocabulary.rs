//! All terms of a LUBM graph that do not depend on the department. They are written once and copied to the start of
//! every batch, so that their spans are the same in all batches.

use crate::decimal;
use jindou_model::Span;
use jindou_model::term::{IRI, STRING};

/// The namespace of the ontology.
pub const ONTOLOGY: &str = "http://swat.cse.lehigh.edu/onto/univ-bench.owl#";
const RDF_TYPE: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type";

/// Defines an enum, and a list of its variants' names.
macro_rules! names {
    ($(#[$of_list:meta])* $list_vis:vis $list:ident, $(#[$of_enum:meta])* $vis:vis enum $enum:ident { $($name:ident)* }) => {
        $(#[$of_list])*
        $list_vis const $list: [&str; [$(stringify!($name)),*].len()] = [$(stringify!($name)),*];

        $(#[$of_enum])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs)]
        $vis enum $enum { $($name),* }
    };
}

names! {
    /// The 14 classes of which instances are generated, in the order of [`Class`].
    pub CLASSES,
    /// A class of which instances are generated; its number is its index in [`CLASSES`].
    pub enum Class {
        University Department FullProfessor AssociateProfessor AssistantProfessor Lecturer
        UndergraduateStudent GraduateStudent Course GraduateCourse Publication ResearchGroup
        TeachingAssistant ResearchAssistant
    }
}

impl Class {
    /// The class's IRI.
    pub fn iri(self) -> String {
        format!("{ONTOLOGY}{}", CLASSES[self as usize])
    }
}

names! {
    /// The properties in the order of [`Property`]. In the ontology their names start with a small letter.
    PROPERTIES,
    /// A property except `rdf:type`.
    pub(super) enum Property {
        Name SubOrganizationOf TeacherOf UndergraduateDegreeFrom MastersDegreeFrom
        DoctoralDegreeFrom WorksFor EmailAddress Telephone ResearchInterest HeadOf MemberOf
        TakesCourse Advisor PublicationAuthor TeachingAssistantOf
    }
}

/// Largest number of departments of a university.
pub(super) const MAX_DEPARTMENTS: u32 = 25;
/// Largest number of faculty members of a department: 10 full, 14 associate and 11 assistant professors, and 7
/// lecturers.
const MAX_FACULTY: u32 = 10 + 14 + 11 + 7;
/// Number of names to prepare per class; 0 if instances have no name, or one that does not consist of class and number.
const NAMES: [u32; 14] = [
    0,
    MAX_DEPARTMENTS,
    10,
    14,
    11,
    7,
    14 * MAX_FACULTY,
    4 * MAX_FACULTY,
    2 * MAX_FACULTY,
    2 * MAX_FACULTY,
    20,
    20,
    0,
    0,
];

/// Spans of terms that are valid in every batch whose bytes start with [`Self::bytes`].
#[derive(Debug)]
pub(super) struct TermSpans {
    bytes: Vec<u8>,
    rdf_type: Span,
    classes: [Span; CLASSES.len()],
    properties: [Span; PROPERTIES.len()],
    names: [Vec<Span>; CLASSES.len()],
    interests: Vec<Span>,
    telephone: Span,
}

impl TermSpans {
    pub(super) fn new() -> Self {
        let mut bytes = vec![];
        let mut push = |tag: u8, text: &str, number: Option<u32>| {
            let start = bytes.len() as u32;
            bytes.push(tag);
            bytes.extend_from_slice(text.as_bytes());
            if let Some(n) = number {
                decimal::push(&mut bytes, n.into());
            }
            Span {
                start,
                len: bytes.len() as u32 - start,
            }
        };
        let rdf_type = push(IRI, RDF_TYPE, None);
        let classes = CLASSES.map(|c| push(IRI, &format!("{ONTOLOGY}{c}"), None));
        let properties = PROPERTIES.map(|p| {
            let (first, rest) = p.split_at(1);
            let first = first.to_ascii_lowercase();
            push(IRI, &format!("{ONTOLOGY}{first}{rest}"), None)
        });
        let names = std::array::from_fn(|c| {
            (0..NAMES[c])
                .map(|i| push(STRING, CLASSES[c], Some(i)))
                .collect()
        });
        let interests = (0..30).map(|i| push(STRING, "Research", Some(i))).collect();
        let telephone = push(STRING, "xxx-xxx-xxxx", None);
        Self {
            bytes,
            rdf_type,
            classes,
            properties,
            names,
            interests,
            telephone,
        }
    }

    /// The bytes with which every batch starts.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn rdf_type(&self) -> Span {
        self.rdf_type
    }

    pub(super) fn class(&self, class: Class) -> Span {
        self.classes[class as usize]
    }

    pub(super) fn property(&self, property: Property) -> Span {
        self.properties[property as usize]
    }

    /// The literal "{class}{index}".
    pub(super) fn name(&self, class: Class, index: u32) -> Span {
        self.names[class as usize][index as usize]
    }

    /// The text of [`Self::name`], without the literal's tag.
    pub(super) fn name_text(&self, class: Class, index: u32) -> &[u8] {
        let span = self.name(class, index);
        &self.bytes[span.start as usize + 1..(span.start + span.len) as usize]
    }

    /// The literal "Research{area}".
    pub(super) fn interest(&self, area: u32) -> Span {
        self.interests[area as usize]
    }

    pub(super) fn telephone(&self) -> Span {
        self.telephone
    }
}
