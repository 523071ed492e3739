//! Prepares a model for drawing at a given scale: names are replaced by indexes, ranges by numbers, and the work is
//! divided into independent units.

use super::draw::{PlaceDraw, Zipf, normal};
use super::model::{
    Association, AttributeGroup, AttributeValues, Distribution, LiteralProperty, RDF_TYPE,
    WatdivModel,
};
use crate::random::SplitMix;
use crate::real::unit;
use crate::words::Words;
use jindou_model::Result;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Number of draws for an object of an exclusive association, which must not be used yet; then no statement is made.
/// The original gives up at the 50th draw.
const DRAWS: u32 = 49;
/// The first and the last word of texts, as in the original.
const FIRST_WORD: &str = "A";
const LAST_WORD: &str = "z";
/// Approximate number of statements in a unit.
const UNIT: f64 = 4096.0;

/// The kind of a literal, and the first value of its range.
#[derive(Debug)]
pub(super) enum LiteralRange {
    /// Integers; the smallest one.
    Integer(i64),
    /// Days; the first one.
    Date(i32),
    /// Texts; the number of the first word that a text may start with.
    Words(u32),
    /// Names; the number of the first one.
    Name(u32),
}

/// An attribute of a kind of entities.
#[derive(Debug)]
pub(super) struct Fact {
    /// Index of the property in `properties`.
    pub(super) property: u32,
    pub(super) literal: LiteralRange,
    /// Distribution of the number that is added to the first value of the range.
    pub(super) places: PlaceDraw,
}

/// A group of attributes: an entity has all of them or none.
#[derive(Debug)]
pub(super) struct AttributeFacts {
    pub(super) probability: f64,
    /// Index of the class's members: only these entities have the attributes.
    pub(super) class: Option<u32>,
    pub(super) facts: Vec<Fact>,
}

/// An association between two kinds of entities.
#[derive(Debug)]
pub(super) struct CompiledLink {
    pub(super) property: u32,
    pub(super) object_kind: u32,
    exclusive: bool,
    most: u32,
    spread: Option<Distribution>,
    cover: f64,
    /// Distribution over the objects or, if these must be instances of a class, over the members of the class.
    places: PlaceDraw,
    objects: u32,
    subject_class: Option<u32>,
    object_class: Option<u32>,
}

/// The statements that one part of the graph contains: attributes or an association.
#[derive(Debug)]
pub(super) enum Says {
    Facts(Vec<AttributeFacts>),
    Link(CompiledLink),
}

/// A part of the graph: statements of one sort about the entities of one kind.
#[derive(Debug)]
pub(super) struct EdgePart {
    /// The kind of the subjects.
    pub(super) kind: u32,
    subjects: u32,
    /// Number of subjects per unit.
    block: u32,
    /// Number of its first unit, counted over all parts.
    first_unit: u64,
    pub(super) says: Says,
}

/// The entities of a kind that are instances of a class.
#[derive(Debug, Default)]
pub(super) struct ClassMembers {
    bits: Vec<u64>,
    /// The members in descending order. The order in the original depends on its hash table; its data shows that a
    /// Zipfian choice prefers entities with high numbers.
    list: Vec<u32>,
}

impl ClassMembers {
    pub(super) fn has(&self, entity: u32) -> bool {
        self.bits
            .get(entity as usize / 64)
            .is_some_and(|word| word >> (entity % 64) & 1 == 1)
    }

    fn insert(&mut self, entity: u32) {
        self.bits[entity as usize / 64] |= 1 << (entity % 64);
    }

    fn new(population: u32) -> Self {
        Self {
            bits: vec![0; population as usize / 64 + 1],
            list: vec![],
        }
    }

    fn make_list(&mut self, population: u32) {
        self.list = (0..population).rev().filter(|e| self.has(*e)).collect();
    }
}

/// The prepared model. Memory: bits and 4 bytes for each instance of a class that attributes or associations depend on,
/// and 8 bytes for each value of a Zipfian distribution.
#[derive(Debug)]
pub(super) struct CompiledModel {
    /// IRIs of the properties.
    pub(super) properties: Vec<String>,
    pub(super) kinds: Vec<String>,
    pub(super) parts: Vec<EdgePart>,
    pub(super) members: Vec<ClassMembers>,
    pub(super) units: u64,
    pub(super) words: Words,
    pub(super) names: Words,
    seed: u64,
}

impl CompiledModel {
    /// Prepares a model. O(kinds + entities that may be instances of a class).
    ///
    /// # Errors
    /// [`jindou_model::Error::Limit`] if a kind has too many entities.
    pub(super) fn new(model: &WatdivModel, scale: u32, seed: u64) -> Result<Self> {
        let populations = (0..model.kinds.len())
            .map(|k| model.population(k, scale))
            .collect::<Result<Vec<u32>>>()?;
        let mut compiler = ModelCompiler {
            model,
            populations,
            wanted: vec![],
            zipfs: FxHashMap::default(),
            made: Self {
                properties: vec![],
                kinds: model.kinds.iter().map(|k| k.iri.clone()).collect(),
                parts: vec![],
                members: vec![],
                units: 0,
                words: Words::dictionary(),
                names: Words::names(),
                seed,
            },
        };
        // In the order of the original: first everything that depends on no class.
        compiler.facts(false);
        compiler.links(false);
        compiler.find_members()?;
        compiler.facts(true);
        compiler.links(true);
        Ok(compiler.made)
    }

    /// The part to which a unit belongs, and the unit's subjects.
    pub(super) fn unit(&self, unit: u64) -> (usize, std::ops::Range<u32>) {
        let at = self.parts.partition_point(|p| p.first_unit <= unit) - 1;
        let part = &self.parts[at];
        let first = (unit - part.first_unit) * u64::from(part.block);
        let end = (first + u64::from(part.block)).min(part.subjects.into());
        (at, first as u32..end as u32)
    }

    /// The random stream of a unit.
    pub(super) fn stream(&self, part: usize, unit: u64) -> SplitMix {
        SplitMix::stream(self.seed, part as u64, unit - self.parts[part].first_unit)
    }

    /// Draws the statements of an association for some subjects, and calls `each` with each subject and object.
    pub(super) fn pairs(
        &self,
        link: &CompiledLink,
        subjects: std::ops::Range<u32>,
        random: &mut SplitMix,
        mut each: impl FnMut(u32, u32) -> Result<()>,
    ) -> Result<()> {
        let subject_class = link.subject_class.map(|c| &self.members[c as usize]);
        let list = link.object_class.map(|c| &self.members[c as usize].list);
        let objects = list.map_or(link.objects, |l| l.len() as u32);
        if objects == 0 {
            return Ok(());
        }
        let mut used = ClassMembers::new(if link.exclusive { link.objects } else { 0 });
        for subject in subjects {
            if subject_class.is_some_and(|c| !c.has(subject)) || unit(random) > link.cover {
                continue;
            }
            let part = match link.spread {
                None => 1.0,
                Some(Distribution::Normal) => normal(random),
                Some(Distribution::Uniform | Distribution::Zipfian) => unit(random),
            };
            let count = (part * f64::from(link.most) + 0.5) as u32;
            for _ in 0..count.min(link.most) {
                let draws = if link.exclusive { DRAWS } else { 1 };
                let free = (0..draws).find_map(|_| {
                    let place = link.places.draw(random) as u32;
                    let object = list.map_or(place, |l| l[place as usize]);
                    (!link.exclusive || !used.has(object)).then_some(object)
                });
                let Some(object) = free else {
                    continue;
                };
                if link.exclusive {
                    used.insert(object);
                }
                each(subject, object)?;
            }
        }
        Ok(())
    }
}

struct ModelCompiler<'m> {
    model: &'m WatdivModel,
    populations: Vec<u32>,
    /// Memberships that are needed: the kind of the instances, the class, and whether a list of the members is needed.
    wanted: Vec<(usize, &'m str, bool)>,
    zipfs: FxHashMap<u64, Arc<Zipf>>,
    made: CompiledModel,
}

impl<'m> ModelCompiler<'m> {
    fn facts(&mut self, with_class: bool) {
        let model = self.model;
        for (kind, k) in model.kinds.iter().enumerate() {
            let groups: Vec<&AttributeGroup> = k
                .groups
                .iter()
                .filter(|g| g.class.is_some() == with_class)
                .collect();
            let facts: Vec<AttributeFacts> = groups
                .iter()
                .map(|g| AttributeFacts {
                    probability: g.probability,
                    class: g.class.as_deref().map(|c| self.membership(kind, c)),
                    facts: g.attributes.iter().map(|a| self.fact(a)).collect(),
                })
                .collect();
            let mean: f64 = groups
                .iter()
                .map(|g| g.probability * g.attributes.len() as f64)
                .sum();
            if !facts.is_empty() {
                self.part(kind, mean, false, Says::Facts(facts));
            }
        }
    }

    fn links(&mut self, with_class: bool) {
        let model = self.model;
        for a in &model.associations {
            if (a.subject_class.is_some() || a.object_class.is_some()) == with_class {
                let link = self.link(a);
                let mean = a.cover * f64::from(a.most) * if a.spread.is_some() { 0.5 } else { 1.0 };
                self.part(a.subject, mean, a.exclusive, Says::Link(link));
            }
        }
    }

    fn part(&mut self, kind: usize, mean: f64, whole: bool, says: Says) {
        let subjects = self.populations[kind];
        let block = if whole {
            subjects.max(1)
        } else {
            (UNIT / mean.max(1.0)).max(1.0) as u32
        };
        self.made.parts.push(EdgePart {
            kind: kind as u32,
            subjects,
            block,
            first_unit: self.made.units,
            says,
        });
        self.made.units += u64::from(subjects.div_ceil(block));
    }

    fn property(&mut self, iri: &str) -> u32 {
        let properties = &mut self.made.properties;
        let at = properties.iter().position(|p| p == iri);
        at.unwrap_or_else(|| {
            properties.push(iri.to_owned());
            properties.len() - 1
        }) as u32
    }

    /// The table of a Zipfian distribution over `n` values; `None` for other distributions.
    fn zipf(&mut self, distribution: Distribution, n: u64) -> Option<Arc<Zipf>> {
        if distribution != Distribution::Zipfian {
            return None;
        }
        let table = self.zipfs.entry(n);
        Some(Arc::clone(
            table.or_insert_with(|| Arc::new(Zipf::new(n as u32))),
        ))
    }

    fn fact(&mut self, a: &LiteralProperty) -> Fact {
        let (literal, last, days) = match &a.values {
            AttributeValues::Integer(low, high) => {
                (LiteralRange::Integer(*low), low.abs_diff(*high), false)
            }
            AttributeValues::Date(low, high) => (
                LiteralRange::Date(low.0),
                low.0.abs_diff(high.0).into(),
                true,
            ),
            AttributeValues::Words => {
                let (from, to) = self.made.words.between(FIRST_WORD, LAST_WORD);
                (LiteralRange::Words(from), (to - from - 1).into(), false)
            }
            AttributeValues::Name => {
                let (from, to) = self.made.names.between(FIRST_WORD, LAST_WORD);
                (LiteralRange::Name(from), (to - from - 1).into(), false)
            }
        };
        let places = if days { last } else { last + 1 };
        let zipf = self.zipf(a.distribution, places);
        Fact {
            property: self.property(&a.property),
            literal,
            places: if days {
                PlaceDraw::below(a.distribution, last, zipf)
            } else {
                PlaceDraw::nearest(a.distribution, last, zipf)
            },
        }
    }

    fn link(&mut self, a: &'m Association) -> CompiledLink {
        let objects = self.populations[a.object];
        let class = |c: &'m Option<String>| c.as_deref();
        let subject_class = class(&a.subject_class).map(|c| self.membership(a.subject, c));
        let object_class = class(&a.object_class).map(|c| self.membership(a.object, c));
        let choices =
            object_class.map_or(objects, |c| self.made.members[c as usize].list.len() as u32);
        let zipf = self.zipf(a.choice, choices.into());
        CompiledLink {
            property: self.property(&a.property),
            object_kind: a.object as u32,
            exclusive: a.exclusive,
            most: a.most,
            spread: a.spread,
            cover: a.cover,
            places: PlaceDraw::entities(a.choice, choices, zipf),
            objects,
            subject_class,
            object_class,
        }
    }

    /// Index of a membership, which [`Self::find_members`] must have created.
    fn membership(&self, kind: usize, class: &str) -> u32 {
        let at = self.wanted.iter().position(|w| w.0 == kind && w.1 == class);
        at.unwrap_or_default() as u32
    }

    /// Draws all statements that make entities instances of the classes in `wanted`, and stores the instances.
    fn find_members(&mut self) -> Result<()> {
        let model = self.model;
        for (kind, k) in model.kinds.iter().enumerate() {
            for class in k.groups.iter().filter_map(|g| g.class.as_deref()) {
                self.want(kind, class, false);
            }
        }
        for a in &model.associations {
            if let Some(class) = a.subject_class.as_deref() {
                self.want(a.subject, class, false);
            }
            if let Some(class) = a.object_class.as_deref() {
                self.want(a.object, class, true);
            }
        }
        let mut found = vec![];
        for (kind, class, list) in &self.wanted {
            let population = self.populations[*kind];
            let mut members = ClassMembers::new(population);
            if let Some((class_kind, number)) = model.entity(class) {
                self.instances(*kind, class_kind, number, &mut members)?;
            }
            if *list {
                members.make_list(population);
            }
            found.push(members);
        }
        self.made.members = found;
        Ok(())
    }

    fn want(&mut self, kind: usize, class: &'m str, list: bool) {
        match self.wanted.iter_mut().find(|w| w.0 == kind && w.1 == class) {
            Some(w) => w.2 |= list,
            None => self.wanted.push((kind, class, list)),
        }
    }

    fn instances(
        &self,
        kind: usize,
        class_kind: usize,
        number: u32,
        members: &mut ClassMembers,
    ) -> Result<()> {
        for (at, part) in self.made.parts.iter().enumerate() {
            let Says::Link(link) = &part.says else {
                continue;
            };
            if part.kind as usize != kind
                || link.object_kind as usize != class_kind
                || self.made.properties[link.property as usize] != RDF_TYPE
            {
                continue;
            }
            let units = u64::from(part.subjects.div_ceil(part.block));
            for unit in part.first_unit..part.first_unit + units {
                let mut random = self.made.stream(at, unit);
                let (_, subjects) = self.made.unit(unit);
                self.made
                    .pairs(link, subjects, &mut random, |subject, object| {
                        if object == number {
                            members.insert(subject);
                        }
                        Ok(())
                    })?;
            }
        }
        Ok(())
    }
}
