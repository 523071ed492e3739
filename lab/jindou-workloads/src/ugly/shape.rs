//! The sizes of the graph, its predicates and classes, and its characteristic sets.

use super::literal::LiteralKind;
use super::words;
use crate::decimal::{push_base36, push_padded};
use crate::random::SplitMix;
use jindou_model::term::IRI;
use rustc_hash::FxHashSet;

/// Number of quads in a block; the last block may have fewer.
pub(super) const BLOCK: u32 = 8192;
/// Number of entities described in a full block. Their statements fill most of the half of the block whose object is
/// not the hub.
pub(super) const ENTITIES: u32 = 240;

/// Kinds of random streams.
pub(super) mod stream {
    pub const PREDICATE: u64 = 1;
    pub const CLASS: u64 = 2;
    pub const FAMILY: u64 = 3;
    pub const SET: u64 = 4;
    pub const ENTITY: u64 = 5;
    pub const NAME: u64 = 6;
    pub const STUBS: u64 = 7;
    pub const ORDER: u64 = 8;
    pub const QUERY: u64 = 9;
}

pub(super) const TYPE: u16 = 0;
pub(super) const LABEL: u16 = 1;
pub(super) const COMMENT: u16 = 2;
pub(super) const SAME_AS: u16 = 3;
pub(super) const MODIFIED: u16 = 4;
pub(super) const VALUE: u16 = 5;
pub(super) const UNIT: u16 = 6;
/// The first predicate that may have the hub as object.
pub(super) const FIRST_HUB: u16 = 7;

/// The kind of objects that a predicate has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ObjectKind {
    Class,
    Literal(LiteralKind),
    /// The hub or, if the block needs no more quads with it, any entity.
    Hub,
    /// Any entity, by Zipf's law.
    Entity,
    /// An entity with a number near the subject's.
    Near,
    /// An IRI of another data set.
    External,
    /// A blank node that has a value and a unit.
    Quantity,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Predicate {
    pub object: ObjectKind,
    /// Largest number of objects of a subject; small numbers are more likely.
    pub most: u32,
}

/// Canonical bytes of many terms in sequence.
#[derive(Debug, Default)]
pub(super) struct TermBuffer {
    bytes: Vec<u8>,
    ends: Vec<u32>,
}

impl TermBuffer {
    fn push(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.bytes);
        self.ends.push(self.bytes.len() as u32);
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn get(&self, index: usize) -> &[u8] {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.bytes[start as usize..self.ends[index] as usize]
    }
}

/// Everything that is decided before the first quad.
#[derive(Debug)]
pub(super) struct GraphShape {
    pub seed: u64,
    pub quads: u64,
    pub blocks: u32,
    pub entities: u32,
    pub graphs: u32,
    pub sets: u32,
    pub hub_predicates: u16,
    pub predicates: Vec<Predicate>,
    pub predicate_iris: TermBuffer,
    pub class_iris: TermBuffer,
    /// By family of sets (there is one per class): the predicates that its sets may contain, and the probability of
    /// each in 1/256.
    families: Vec<Vec<(u16, u8)>>,
}

impl GraphShape {
    pub fn new(quads: u64, seed: u64) -> Self {
        let share = |part: u64, min: u64, max: u64| (quads / part).clamp(min, max) as u32;
        let blocks = quads.div_ceil(BLOCK.into()).min(1 << 23) as u32;
        let mut shape = Self {
            seed,
            quads: quads.min(u64::from(blocks) * u64::from(BLOCK)),
            blocks,
            entities: blocks.max(1).saturating_mul(ENTITIES),
            graphs: share(200, 1, 1 << 30),
            sets: share(200, 20, 100_000),
            hub_predicates: 0,
            predicates: vec![],
            predicate_iris: TermBuffer::default(),
            class_iris: TermBuffer::default(),
            families: vec![],
        };
        let predicates = share(200, 40, 14_000) as u16;
        shape.hub_predicates = (predicates / 4).min(40);
        for p in 0..predicates {
            let mut random = SplitMix::stream(seed, stream::PREDICATE, p.into());
            let predicate = shape.predicate(p, &mut random);
            shape.predicates.push(predicate);
            shape
                .predicate_iris
                .push(|out| push_predicate(p, &mut random, out));
        }
        let classes = share(2000, 10, 2_000);
        for c in 0..classes {
            let mut random = SplitMix::stream(seed, stream::CLASS, c.into());
            shape.class_iris.push(|out| push_class(c, &mut random, out));
        }
        shape.families = (0..classes).map(|f| shape.family(f, classes)).collect();
        shape
    }

    fn predicate(&self, number: u16, random: &mut SplitMix) -> Predicate {
        let one = |object| Predicate { object, most: 1 };
        match number {
            TYPE => return one(ObjectKind::Class),
            LABEL => {
                return Predicate {
                    object: ObjectKind::Literal(LiteralKind::Label),
                    most: 6,
                };
            }
            COMMENT => {
                return Predicate {
                    object: ObjectKind::Literal(LiteralKind::Text),
                    most: 2,
                };
            }
            SAME_AS => {
                return Predicate {
                    object: ObjectKind::External,
                    most: 3,
                };
            }
            MODIFIED => return one(ObjectKind::Literal(LiteralKind::Date)),
            VALUE => return one(ObjectKind::Literal(LiteralKind::Decimal)),
            UNIT => return one(ObjectKind::Literal(LiteralKind::Plain)),
            n if n < FIRST_HUB + self.hub_predicates => {
                return Predicate {
                    object: ObjectKind::Hub,
                    most: 2,
                };
            }
            _ => {}
        }
        // Not random: few predicates have most quads, so all kinds of objects must occur among these.
        let object = match u32::from(number) * 61 % 100 {
            0..=16 => ObjectKind::Entity,
            17..=31 => ObjectKind::Near,
            32..=35 => ObjectKind::External,
            36..=38 => ObjectKind::Quantity,
            39..=54 => ObjectKind::Literal(LiteralKind::Integer),
            55..=60 => ObjectKind::Literal(LiteralKind::Decimal),
            61..=65 => ObjectKind::Literal(LiteralKind::Double),
            66..=80 => ObjectKind::Literal(LiteralKind::Date),
            81..=85 => ObjectKind::Literal(LiteralKind::Label),
            86 => ObjectKind::Literal(LiteralKind::Text),
            87..=94 => ObjectKind::Literal(LiteralKind::Plain),
            95..=96 => ObjectKind::Literal(LiteralKind::Other),
            _ => ObjectKind::Literal(LiteralKind::Dirty),
        };
        let most = match random.below(100) {
            0..=71 => 1,
            72..=91 => 3,
            92..=98 => 8,
            _ if matches!(object, ObjectKind::Entity | ObjectKind::Near) => 64,
            _ => 8,
        };
        Predicate { object, most }
    }

    /// The predicates that the sets of a family may contain, and the probability of each in 1/256.
    fn family(&self, number: u32, families: u32) -> Vec<(u16, u8)> {
        let mut random = SplitMix::stream(self.seed, stream::FAMILY, number.into());
        let all = self.predicates.len() as u32;
        let mut pool = vec![(LABEL, 230), (COMMENT, 110), (SAME_AS, 90), (MODIFIED, 150)];
        for chance in [120, 90, 60] {
            pool.push((
                FIRST_HUB + random.zipf(self.hub_predicates.into()) as u16,
                chance,
            ));
        }
        let rest = u32::from(FIRST_HUB + self.hub_predicates);
        for i in 0..24u32 {
            let chance = (154 * 20 / (20 + 7 * i)) as u8;
            pool.push(((rest + random.zipf(all - rest)) as u16, chance));
        }
        // Each predicate is assigned to a family as one of its own, so that every predicate occurs.
        let own = all.div_ceil(families);
        for i in 0..own {
            pool.push(((number * own + i).checked_rem(all).unwrap_or(0) as u16, OWN));
        }
        let mut seen = FxHashSet::default();
        seen.extend([TYPE, VALUE, UNIT]);
        pool.retain(|(p, _)| seen.insert(*p));
        pool
    }

    /// The family of a set. Half of the sets are distributed evenly, so that every family has at least one; half are
    /// distributed by Zipf's law.
    pub fn family_of(&self, set: u32) -> u32 {
        let families = self.families.len() as u32;
        if set.is_multiple_of(2) {
            (set / 2) % families
        } else {
            SplitMix::stream(self.seed, stream::SET, set.into()).zipf(families)
        }
    }

    /// Sets `out` to the predicates of a set, without `rdf:type`. O(60).
    pub fn set(&self, set: u32, out: &mut Vec<u16>) {
        let mut random = SplitMix::stream(self.seed, stream::SET, u64::from(set) | 1 << 32);
        let family = &self.families[self.family_of(set) as usize];
        out.clear();
        // Each set of a family contains another one of the family's own predicates in turn, and possibly more of them.
        let own = family.iter().filter(|(_, chance)| *chance == OWN).count() as u32;
        let mut chosen = (set / 2 / self.families.len() as u32) % own.max(1);
        for &(predicate, chance) in family {
            let bits = random.below(256);
            let mut take = bits < u32::from(chance);
            if chance == OWN {
                take |= chosen == 0;
                chosen = chosen.wrapping_sub(1);
            }
            if take {
                out.push(predicate);
            }
        }
    }

    /// Number of quads in a block.
    pub fn block_quads(&self, block: u32) -> u32 {
        let before = u64::from(block) * u64::from(BLOCK);
        self.quads.saturating_sub(before).min(BLOCK.into()) as u32
    }

    /// The named graph that has most statements at the position `part`/`whole` of block `block`.
    pub fn home_graph(&self, block: u32, part: u32, whole: u32) -> u32 {
        let all = u64::from(self.blocks) * u64::from(whole);
        let at = u64::from(block) * u64::from(whole) + u64::from(part);
        (at * u64::from(self.graphs) / all.max(1)).min(u64::from(self.graphs) - 1) as u32
    }

    /// The canonical bytes of the hub, the object of half of all quads.
    pub fn hub(&self) -> &'static [u8] {
        b"<http://ugly.example/resource/World"
    }

    /// Appends the canonical bytes of an entity: an IRI or, for one entity in 20, a blank node.
    pub fn push_entity(&self, entity: u32, out: &mut Vec<u8>) {
        let mut random = SplitMix::stream(self.seed, stream::NAME, entity.into());
        let number = u64::from(entity);
        match random.below(100) {
            0..=49 => {
                out.extend_from_slice(b"<http://ugly.example/resource/");
                words::push_name(&mut random, out);
                out.push(b'_');
                words::push_name(&mut random, out);
                out.push(b'_');
                push_base36(out, number);
            }
            50..=64 => {
                out.extend_from_slice(
                    b"<http://data.ugly.example/authority/records/bibliographic/edition/2024/series/\
                      main/volume/",
                );
                push_padded(out, number, 9);
            }
            65..=76 => {
                out.extend_from_slice(b"<http://entity.ugly.example/Q");
                push_padded(out, number, 1);
            }
            77..=86 => {
                out.extend_from_slice(b"<https://");
                words::push_word(&mut random, out);
                words::push_word(&mut random, out);
                out.extend_from_slice(
                    random
                        .pick(&[".com/", ".org/", ".co.uk/", ".de/"])
                        .as_bytes(),
                );
                push_base36(out, random.bits());
                out.push(b'/');
                push_base36(out, number);
            }
            87..=92 => {
                out.extend_from_slice(b"<http://ugly.example/resource/");
                words::push_foreign(&mut random, out);
                out.push(b'_');
                push_base36(out, number);
            }
            93..=94 => {
                out.extend_from_slice(b"<urn:uuid:");
                let hex = |n: u64| b"0123456789abcdef"[(n & 15) as usize];
                // The number is multiplied to look random, but stays unique; random digits follow.
                let high = u64::from(entity.wrapping_mul(0x9E37_79B1)) << 32 | random.bits() >> 32;
                let (high, low) = (high, random.bits());
                for i in 0..32 {
                    if matches!(i, 8 | 12 | 16 | 20) {
                        out.push(b'-');
                    }
                    let word = if i < 16 { high } else { low };
                    out.push(hex(word >> (60 - 4 * (i % 16))));
                }
            }
            _ => {
                out.extend_from_slice(b"_:b");
                push_base36(out, number);
            }
        }
    }

    /// Appends the canonical bytes of a graph's name: an IRI or, for one graph in 64, a blank node.
    pub fn push_graph(&self, graph: u32, out: &mut Vec<u8>) {
        if graph % 64 == 63 {
            out.extend_from_slice(b"_:g");
        } else {
            out.extend_from_slice(b"<http://graph.ugly.example/document/");
        }
        push_padded(out, graph.into(), 1);
    }
}

/// The probability of a family's own predicates, in 1/256.
const OWN: u8 = 40;

fn push_predicate(number: u16, random: &mut SplitMix, out: &mut Vec<u8>) {
    out.push(IRI);
    let known = match number {
        TYPE => "http://www.w3.org/1999/02/22-rdf-syntax-ns#type",
        LABEL => "http://www.w3.org/2000/01/rdf-schema#label",
        COMMENT => "http://www.w3.org/2000/01/rdf-schema#comment",
        SAME_AS => "http://www.w3.org/2002/07/owl#sameAs",
        MODIFIED => "http://purl.org/dc/terms/modified",
        VALUE => "http://www.w3.org/1999/02/22-rdf-syntax-ns#value",
        _ => "",
    };
    if !known.is_empty() {
        out.extend_from_slice(known.as_bytes());
        return;
    }
    match random.below(10) {
        0..=4 => {
            out.extend_from_slice(b"http://ugly.example/ontology/");
            words::push_word(random, out);
            words::push_name(random, out);
        }
        5..=8 => {
            out.extend_from_slice(b"http://ugly.example/property/");
            words::push_word(random, out);
        }
        _ => {
            out.extend_from_slice(b"http://");
            words::push_word(random, out);
            out.extend_from_slice(b".example/ns#");
            words::push_word(random, out);
        }
    }
    push_base36(out, number.into());
}

fn push_class(number: u32, random: &mut SplitMix, out: &mut Vec<u8>) {
    out.push(IRI);
    if number == 0 {
        out.extend_from_slice(b"http://www.w3.org/2002/07/owl#Thing");
    } else if random.chance(2, 3) {
        out.extend_from_slice(b"http://ugly.example/ontology/");
        words::push_name(random, out);
        push_base36(out, number.into());
    } else {
        out.extend_from_slice(b"http://ugly.example/class/tree/");
        words::push_name(random, out);
        words::push_name(random, out);
        push_padded(out, u64::from(number) + 100_000_000, 9);
    }
}
