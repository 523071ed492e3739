//! The contents of a WatDiv model: kinds of entities with their attributes, and associations between them.

use crate::date::Day;
use jindou_model::{Error, Resource, Result};

/// The property of statements that make an entity an instance of a class.
pub const RDF_TYPE: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type";

/// Largest number of entities of a kind; the table for a Zipfian choice among them takes 2 GiB. At scale 10,000, a
/// billion triples, there are 15 million purchases.
const MOST_ENTITIES: u32 = 1 << 28;

/// A distribution of numbers in [0, 1].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// All numbers are equally likely.
    Uniform,
    /// Normal distribution with mean 1/2 and standard deviation 1/6, cut off at 0 and 1.
    Normal,
    /// Chooses one of `n` things; the probability of the `i`-th, counted from 1, is proportional to `1 / i`.
    Zipfian,
}

impl Distribution {
    /// The distribution with a name, in upper or lower case.
    pub fn parse(name: &str) -> Option<Self> {
        let known = [
            ("uniform", Self::Uniform),
            ("normal", Self::Normal),
            ("zipfian", Self::Zipfian),
        ];
        let is = |(known, _): &&(&str, Self)| name.eq_ignore_ascii_case(known);
        known.iter().find(is).map(|(_, d)| *d)
    }
}

/// The range of an attribute's values. All are written as plain literals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttributeValues {
    /// Whole numbers from the first to the second, inclusive. A position in the range is drawn as a double, so there are
    /// at most 2^52.
    Integer(i64, i64),
    /// Days from the first on and before the second.
    Date(Day, Day),
    /// One to 25 words.
    Words,
    /// A first name.
    Name,
}

/// An attribute: a property whose objects are literals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiteralProperty {
    /// The property's IRI.
    pub property: String,
    /// The range of the literals.
    pub values: AttributeValues,
    /// The distribution of the literals in this range.
    pub distribution: Distribution,
}

/// A group of attributes: an entity has all of them or none.
#[derive(Clone, Debug, PartialEq)]
pub struct AttributeGroup {
    /// The probability that an entity has them, 0 to 1.
    pub probability: f64,
    /// The IRI of a class; if present, only its instances may have the attributes.
    pub class: Option<String>,
    /// The attributes, in the order in which they are written.
    pub attributes: Vec<LiteralProperty>,
}

/// A kind of entities. The IRI of entity `i` is the kind's IRI followed by `i` in decimal.
#[derive(Clone, Debug, PartialEq)]
pub struct EntityKind {
    /// The IRI of entities, without the number.
    pub iri: String,
    /// Number of entities at scale 1.
    pub count: u32,
    /// True if their number is proportional to the scale.
    pub scales: bool,
    /// The attributes of the entities, in groups.
    pub groups: Vec<AttributeGroup>,
}

/// A property between entities of two kinds.
#[derive(Clone, Debug, PartialEq)]
pub struct Association {
    /// Index of the subjects' kind in [`WatdivModel::kinds()`].
    pub subject: usize,
    /// The property's IRI.
    pub property: String,
    /// Index of the objects' kind in [`WatdivModel::kinds()`].
    pub object: usize,
    /// True if an object occurs in at most one statement.
    pub exclusive: bool,
    /// Largest number of statements per subject.
    pub most: u32,
    /// Distribution of the number of statements between 0 and `most`; `None` if it is always `most`.
    pub spread: Option<Distribution>,
    /// The probability that a subject has any statements, 0 to 1.
    pub cover: f64,
    /// The distribution by which objects are chosen.
    pub choice: Distribution,
    /// The IRI of a class; if present, only its instances are subjects.
    pub subject_class: Option<String>,
    /// The IRI of a class; if present, only its instances are objects.
    pub object_class: Option<String>,
}

/// A WatDiv model: [`WatdivModel::standard`], or one read by [`WatdivModel::parse`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WatdivModel {
    pub(super) namespaces: Vec<(String, String)>,
    pub(super) kinds: Vec<EntityKind>,
    pub(super) associations: Vec<Association>,
}

impl WatdivModel {
    /// Prefixes and their IRIs.
    pub fn namespaces(&self) -> &[(String, String)] {
        &self.namespaces
    }

    /// Kinds of entities, in the order in which they are written.
    pub fn kinds(&self) -> &[EntityKind] {
        &self.kinds
    }

    /// Associations, in the order in which they are written.
    pub fn associations(&self) -> &[Association] {
        &self.associations
    }

    /// The IRI of the prefixed name `prefix:rest`; `None` if the prefix is unknown. O(namespaces).
    pub fn expand(&self, name: &str) -> Option<String> {
        let (prefix, rest) = name.split_once(':')?;
        let (_, iri) = self.namespaces.iter().find(|(p, _)| p == prefix)?;
        Some(format!("{iri}{rest}"))
    }

    /// Index of the kind with this IRI. O(kinds).
    pub fn kind(&self, iri: &str) -> Option<usize> {
        self.kinds.iter().position(|k| k.iri == iri)
    }

    /// The kind and number of the entity with an IRI. O(kinds).
    pub fn entity(&self, iri: &str) -> Option<(usize, u32)> {
        let digits = iri.bytes().rev().take_while(u8::is_ascii_digit).count();
        // The kind's IRI may itself end with digits, so all splits of the digits are tried.
        (iri.len() - digits..iri.len()).find_map(|cut| {
            let (kind, number) = iri.split_at(cut);
            if number.len() > 1 && number.starts_with('0') {
                return None;
            }
            Some((self.kind(kind)?, number.parse().ok()?))
        })
    }

    /// Number of entities of a kind, given by its index in [`WatdivModel::kinds()`], at a scale.
    ///
    /// # Panics
    /// If there is no such kind.
    ///
    /// # Errors
    /// [`Error::Limit`] if there are more than 2²⁸ entities.
    pub fn population(&self, kind: usize, scale: u32) -> Result<u32> {
        let k = &self.kinds[kind];
        let scale = if k.scales { scale } else { scale.min(1) };
        let count = k.count.checked_mul(scale);
        count.filter(|c| *c <= MOST_ENTITIES).ok_or_else(|| {
            Error::limit(
                Resource::Numbers,
                format!(
                    "scale {scale} gives more than {} entities of {}; take a smaller scale",
                    MOST_ENTITIES, k.iri
                ),
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(iri: &str) -> EntityKind {
        EntityKind {
            iri: iri.to_owned(),
            count: 200_000_000,
            scales: iri.len() > 1,
            groups: vec![],
        }
    }

    #[test]
    fn an_iri_names_a_kind_and_a_number() {
        let model = WatdivModel {
            kinds: ["a", "ab", "a1"].map(kind).to_vec(),
            ..WatdivModel::default()
        };
        assert_eq!(model.entity("a7"), Some((0, 7)));
        assert_eq!(model.entity("ab12"), Some((1, 12)));
        assert_eq!(model.entity("a1"), Some((0, 1)));
        assert_eq!(model.entity("a10"), Some((0, 10)));
        assert_eq!(model.entity("a102"), Some((0, 102)));
        assert_eq!(model.entity("a1022222222222"), None);
        assert_eq!(model.entity("ab"), None);
        assert_eq!(model.entity("b1"), None);
        assert_eq!(model.entity("a07"), None);
    }

    #[test]
    fn populations_scale_where_they_should_and_do_not_overflow() {
        let model = WatdivModel {
            kinds: ["a", "ab"].map(kind).to_vec(),
            ..WatdivModel::default()
        };
        assert_eq!(model.population(0, 5).unwrap(), 200_000_000);
        assert_eq!(model.population(1, 0).unwrap(), 0);
        assert!(matches!(model.population(1, 2), Err(Error::Limit(_))));
    }
}
