//! The contents of a WatDiv model: kinds of entities with their attributes, and associations between them.

use crate::date::Day;
use jindou_model::{Error, Resource, Result};

/// The property whose statements make an entity an instance of a class.
pub const RDF_TYPE: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type";

/// The most entities of a kind: a Zipfian choice among them takes 2 GiB. Scale 10,000, a billion triples, has 15
/// million purchases.
const MOST_ENTITIES: u32 = 1 << 28;

/// How a number of [0, 1] is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// All alike.
    Uniform,
    /// Mean 1/2, standard deviation 1/6, cut off at 0 and 1.
    Normal,
    /// Of `n` things the `i`-th, counted from 1, in proportion to `1 / i`.
    Zipfian,
}

impl Distribution {
    /// The distribution of a name, in any case.
    #[must_use]
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

/// The values of an attribute. All are written as plain literals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttributeValues {
    /// Whole numbers, both ends included.
    Integer(i64, i64),
    /// Days from the first on to before the last.
    Date(Day, Day),
    /// One to 25 words, the first of them between the two in the order of bytes.
    Words(String, String),
    /// A first name between the two in the order of bytes.
    Name(String, String),
}

/// One attribute: a property with literals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiteralProperty {
    /// The property's IRI.
    pub property: String,
    /// The kind and range of its literals.
    pub values: AttributeValues,
    /// How one of them is drawn.
    pub distribution: Distribution,
}

/// Attributes that an entity has all of, or none.
#[derive(Clone, Debug, PartialEq)]
pub struct AttributeGroup {
    /// How likely an entity has them, 0 to 1.
    pub probability: f64,
    /// The class (an entity's IRI) of which an entity must be an instance to have them.
    pub class: Option<String>,
    /// The attributes, in the order written.
    pub attributes: Vec<LiteralProperty>,
}

/// A kind of entities. Entity `i` has the kind's IRI with `i` in decimal after it.
#[derive(Clone, Debug, PartialEq)]
pub struct EntityKind {
    /// IRI without the number.
    pub iri: String,
    /// How many there are at scale 1.
    pub count: u32,
    /// True if there are `scale` times as many at another scale.
    pub scales: bool,
    /// The attributes that they have, by groups.
    pub groups: Vec<AttributeGroup>,
}

/// Statements between the entities of two kinds.
#[derive(Clone, Debug, PartialEq)]
pub struct Association {
    /// Place of the subjects' kind in [`WatdivModel::kinds()`].
    pub subject: usize,
    /// The property's IRI.
    pub property: String,
    /// Place of the objects' kind in [`WatdivModel::kinds()`].
    pub object: usize,
    /// True if an object has at most one such statement.
    pub exclusive: bool,
    /// How many statements a subject has, at most.
    pub most: u32,
    /// How the part of `most` that a subject has is drawn; all of it without.
    pub spread: Option<Distribution>,
    /// How likely a subject takes part, 0 to 1.
    pub cover: f64,
    /// How the object is drawn.
    pub choice: Distribution,
    /// The class of which subjects must be instances.
    pub subject_class: Option<String>,
    /// The class of which objects must be instances.
    pub object_class: Option<String>,
}

/// A WatDiv model (Aluç, Hartig, Özsu, Daudjee: Diversified Stress Testing of RDF Data Management
/// Systems, ISWC 2014): [`WatdivModel::standard`], or one that [`WatdivModel::parse`] read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WatdivModel {
    pub(super) namespaces: Vec<(String, String)>,
    pub(super) kinds: Vec<EntityKind>,
    pub(super) associations: Vec<Association>,
}

impl WatdivModel {
    /// Prefixes with the IRIs they stand for.
    #[must_use]
    pub fn namespaces(&self) -> &[(String, String)] {
        &self.namespaces
    }

    /// Kinds of entities, in the order written.
    #[must_use]
    pub fn kinds(&self) -> &[EntityKind] {
        &self.kinds
    }

    /// Associations, in the order written.
    #[must_use]
    pub fn associations(&self) -> &[Association] {
        &self.associations
    }

    /// The IRI that `prefix:rest` stands for. O(namespaces).
    #[must_use]
    pub fn expand(&self, name: &str) -> Option<String> {
        let (prefix, rest) = name.split_once(':')?;
        let (_, iri) = self.namespaces.iter().find(|(p, _)| p == prefix)?;
        Some(format!("{iri}{rest}"))
    }

    /// Place of the kind with this IRI. O(kinds).
    #[must_use]
    pub fn kind(&self, iri: &str) -> Option<usize> {
        self.kinds.iter().position(|k| k.iri == iri)
    }

    /// The entity that an IRI names: its kind and number. O(kinds).
    #[must_use]
    pub fn entity(&self, iri: &str) -> Option<(usize, u32)> {
        let digits = iri.bytes().rev().take_while(u8::is_ascii_digit).count();
        // A kind's own IRI may end in digits: try every place to cut.
        (iri.len() - digits..iri.len()).find_map(|cut| {
            let (kind, number) = iri.split_at(cut);
            if number.len() > 1 && number.starts_with('0') {
                return None;
            }
            Some((self.kind(kind)?, number.parse().ok()?))
        })
    }

    /// How many entities of a kind (its place in [`WatdivModel::kinds()`]) there are at a scale.
    ///
    /// # Panics
    /// When there is no such kind.
    ///
    /// # Errors
    /// [`Error::Limit`] when there are more than 2²⁸.
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
