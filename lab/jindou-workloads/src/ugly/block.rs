//! Writes one block of the graph to one batch.

use super::literal::{LiteralKind, label, push_literal};
use super::shape::{
    BLOCK, ENTITIES, FIRST_HUB, GraphShape, LABEL, MODIFIED, ObjectKind, TYPE, UNIT, VALUE, stream,
};
use super::words::{self, LANGUAGES};
use crate::decimal::{push, push_base36};
use crate::random::SplitMix;
use jindou_model::{QuadBatch, Span};

/// Number of kinds of stubs; each kind has its own predicates.
const STUB_KINDS: u32 = 64;

/// Writes blocks or single entities. Buffers are reused.
pub(super) struct BlockWriter<'s> {
    shape: &'s GraphShape,
    pub batch: QuadBatch,
    /// Indexes of the batch's quads whose object is an entity, each with the entity's number.
    pub links: Vec<(u32, u32)>,
    /// Numbers of quads that the block still needs: with the hub as object, and others.
    hub_left: u32,
    other_left: u32,
    hub: Span,
    predicates: Vec<Span>,
    classes: Vec<Span>,
    set: Vec<u16>,
    types: Vec<u32>,
}

/// The named graph that has most statements of a subject.
#[derive(Clone, Copy)]
struct Home {
    number: u32,
    /// Span of the graph's name; empty until it is first needed.
    span: Span,
}

impl<'s> BlockWriter<'s> {
    pub fn new(shape: &'s GraphShape) -> Self {
        Self {
            shape,
            batch: QuadBatch::default(),
            links: vec![],
            hub_left: 0,
            other_left: 0,
            hub: Span::default(),
            predicates: vec![],
            classes: vec![],
            set: vec![],
            types: vec![],
        }
    }

    fn begin(&mut self, hub: u32, other: u32) {
        self.batch.clear();
        self.links.clear();
        (self.hub_left, self.other_left) = (hub, other);
        self.predicates.clear();
        self.predicates
            .resize(self.shape.predicates.len(), Span::default());
        let classes = self.shape.class_iris.len();
        self.classes.clear();
        self.classes.resize(classes, Span::default());
        self.hub = self.batch.push_term(self.shape.hub());
    }

    /// Replaces the batch by block `number`.
    pub fn block(&mut self, number: u32) {
        let quads = self.shape.block_quads(number);
        // The blocks of odd size have one more quad with another object than the hub.
        self.begin(quads / 2, quads - quads / 2);
        let entities = (u64::from(ENTITIES) * u64::from(quads) / u64::from(BLOCK)).max(1) as u32;
        for part in 0..entities {
            if self.other_left == 0 {
                break;
            }
            self.describe(number * ENTITIES + part);
        }
        self.stubs(number);
        self.disorder(number);
    }

    /// Replaces the batch by the statements about an entity.
    pub fn entity(&mut self, entity: u32) {
        self.begin(u32::MAX, u32::MAX);
        self.describe(entity);
    }

    fn describe(&mut self, entity: u32) {
        let shape = self.shape;
        let mut random = SplitMix::stream(shape.seed, stream::ENTITY, entity.into());
        let number = shape.home_graph(entity / ENTITIES, entity % ENTITIES, ENTITIES);
        let mut home = Home {
            number,
            span: Span::default(),
        };
        let start = self.batch.bytes.len() as u32;
        shape.push_entity(entity, &mut self.batch.bytes);
        let subject = self.since(start);

        // Every fifth entity takes the next set in turn, so that all sets occur.
        let set = if entity.is_multiple_of(5) {
            (u64::from(entity / 5) * 48_271 % u64::from(shape.sets)) as u32
        } else {
            random.zipf(shape.sets)
        };
        self.types(&mut random, subject, shape.family_of(set), &mut home);
        let mut set_of = std::mem::take(&mut self.set);
        shape.set(set, &mut set_of);
        for &predicate in &set_of {
            let most = shape.predicates[predicate as usize].most;
            for round in 0..=random.zipf(most) {
                self.property(&mut random, entity, subject, predicate, round, &mut home);
            }
        }
        self.set = set_of;
    }

    /// Adds one to five classes: the family's class, most of its superclasses, and sometimes an unrelated class.
    fn types(&mut self, random: &mut SplitMix, subject: Span, family: u32, home: &mut Home) {
        let mut types = std::mem::take(&mut self.types);
        types.clear();
        let mut class = family;
        types.push(class);
        while class > 0 {
            class = (class - 1) / 6;
            if random.chance(5, 8) {
                types.push(class);
            }
        }
        if random.chance(1, 4) {
            let extra = random.zipf(self.shape.class_iris.len() as u32);
            if !types.contains(&extra) {
                types.push(extra);
            }
        }
        types.truncate(5);
        for &class in &types {
            let slot = &mut self.classes[class as usize];
            if slot.len == 0 {
                *slot = self
                    .batch
                    .push_term(self.shape.class_iris.get(class as usize));
            }
            let object = *slot;
            self.say(random, subject, TYPE, object, home);
        }
        self.types = types;
    }

    fn property(
        &mut self,
        random: &mut SplitMix,
        entity: u32,
        subject: Span,
        predicate: u16,
        round: u32,
        home: &mut Home,
    ) {
        let shape = self.shape;
        let start = self.batch.bytes.len() as u32;
        match shape.predicates[predicate as usize].object {
            // The labels of a subject are in different languages, the most common ones first.
            ObjectKind::Literal(_) if predicate == LABEL => {
                let language = LANGUAGES[round as usize % LANGUAGES.len()];
                label(random, language, &mut self.batch.bytes);
            }
            ObjectKind::Literal(kind) => push_literal(kind, random, &mut self.batch.bytes),
            ObjectKind::Hub if round == 0 && random.chance(3, 5) => {
                return self.say(random, subject, predicate, self.hub, home);
            }
            ObjectKind::Entity | ObjectKind::Hub => {
                // Multiplies the rank by a number without common divisor, so that popular entities are not neighbours.
                let rank = u64::from(random.zipf(shape.entities));
                let target = (rank * 2_654_435_761 % u64::from(shape.entities)) as u32;
                return self.link(random, subject, predicate, target, home);
            }
            ObjectKind::Near => {
                let target = (entity + random.below(64)).saturating_sub(32);
                let target = target.min(shape.entities - 1);
                return self.link(random, subject, predicate, target, home);
            }
            ObjectKind::External => {
                let out = &mut self.batch.bytes;
                if random.chance(1, 2) {
                    out.extend_from_slice(b"<http://www.elsewhere.example/entity/Q");
                    push(out, (random.bits() >> 38) + 1);
                } else {
                    out.extend_from_slice(b"<http://");
                    words::push_word(random, out);
                    out.extend_from_slice(random.pick(&[".net/", ".fr/", ".jp/~"]).as_bytes());
                    words::push_name(random, out);
                    out.extend_from_slice(b"#");
                    push_base36(out, random.bits() >> 20);
                }
            }
            ObjectKind::Quantity => {
                let out = &mut self.batch.bytes;
                out.extend_from_slice(b"_:q");
                push_base36(out, entity.into());
                out.push(b'x');
                push_base36(out, predicate.into());
                out.push(b'x');
                push_base36(out, round.into());
                let node = self.since(start);
                self.say(random, subject, predicate, node, home);
                for (predicate, kind) in [(VALUE, LiteralKind::Decimal), (UNIT, LiteralKind::Plain)]
                {
                    let start = self.batch.bytes.len() as u32;
                    push_literal(kind, random, &mut self.batch.bytes);
                    let object = self.since(start);
                    self.say(random, node, predicate, object, home);
                }
                return;
            }
            // Sets do not contain `rdf:type`, the only predicate whose objects are classes.
            ObjectKind::Class => return,
        }
        let object = self.since(start);
        self.say(random, subject, predicate, object, home);
    }

    fn link(
        &mut self,
        random: &mut SplitMix,
        subject: Span,
        predicate: u16,
        target: u32,
        home: &mut Home,
    ) {
        let start = self.batch.bytes.len() as u32;
        self.shape.push_entity(target, &mut self.batch.bytes);
        let object = self.since(start);
        let before = self.batch.quads.len() as u32;
        self.say(random, subject, predicate, object, home);
        self.links
            .extend((before..self.batch.quads.len() as u32).map(|quad| (quad, target)));
    }

    /// Fills the block with stubs: pages with few statements except that they link to the hub.
    fn stubs(&mut self, number: u32) {
        let shape = self.shape;
        let mut random = SplitMix::stream(shape.seed, stream::STUBS, number.into());
        let hub_predicates = u32::from(shape.hub_predicates);
        let mut stub = number * BLOCK;
        while self.hub_left + self.other_left > 0 {
            let filled = self.batch.quads.len() as u32;
            let at = shape.home_graph(number, filled.min(BLOCK - 1), BLOCK);
            let mut home = Home {
                number: at,
                span: Span::default(),
            };
            let start = self.batch.bytes.len() as u32;
            let out = &mut self.batch.bytes;
            match random.below(10) {
                0..=6 => {
                    out.extend_from_slice(b"<http://ugly.example/page/");
                    push(out, stub.into());
                }
                7..=8 => {
                    out.extend_from_slice(b"<http://www.ugly.example/wiki/Special:Redirect/");
                    words::push_name(&mut random, out);
                    push_base36(out, stub.into());
                }
                _ => {
                    out.extend_from_slice(b"_:s");
                    push_base36(out, stub.into());
                }
            }
            let subject = self.since(start);
            stub += 1;
            let kind = random.zipf(STUB_KINDS);
            for step in 0..=kind % 3 {
                if self.hub_left == 0 {
                    break;
                }
                let predicate = FIRST_HUB + ((kind + step * 7) % hub_predicates) as u16;
                self.say(&mut random, subject, predicate, self.hub, &mut home);
            }
            // Adds a label or a date to some stubs, so that the remaining other quads are distributed over all stubs.
            if self.other_left > 0
                && (self.hub_left == 0 || random.below(self.hub_left) < 2 * self.other_left)
            {
                let (predicate, literal) = match kind % 2 {
                    0 => (LABEL, LiteralKind::Label),
                    _ => (MODIFIED, LiteralKind::Date),
                };
                let start = self.batch.bytes.len() as u32;
                push_literal(literal, &mut random, &mut self.batch.bytes);
                let object = self.since(start);
                self.say(&mut random, subject, predicate, object, &mut home);
            }
        }
    }

    /// Swaps one quad in four with one of the next 256 quads, as if several writers had written to the file at the same
    /// time.
    fn disorder(&mut self, number: u32) {
        let mut random = SplitMix::stream(self.shape.seed, stream::ORDER, number.into());
        let quads = &mut self.batch.quads;
        for i in 0..quads.len() {
            if random.chance(1, 4) {
                let other = i + random.below(256) as usize;
                if other < quads.len() {
                    quads.swap(i, other);
                }
            }
        }
    }

    /// Adds a statement to one graph, and one statement in 32 to up to three other graphs as well.
    fn say(
        &mut self,
        random: &mut SplitMix,
        subject: Span,
        predicate: u16,
        object: Span,
        home: &mut Home,
    ) {
        let slot = &mut self.predicates[predicate as usize];
        if slot.len == 0 {
            *slot = self
                .batch
                .push_term(self.shape.predicate_iris.get(predicate as usize));
        }
        let predicate = *slot;
        let graph = match random.below(64) {
            0..=31 => Span::default(),
            32..=59 => {
                if home.span.len == 0 {
                    home.span = self.graph(home.number);
                }
                home.span
            }
            _ => self.any_graph(random),
        };
        self.push([subject, predicate, object, graph]);
        if random.chance(1, 32) {
            if graph.len > 0 && random.chance(1, 2) {
                self.push([subject, predicate, object, Span::default()]);
            }
            for _ in 0..=random.below(2) {
                let graph = self.any_graph(random);
                self.push([subject, predicate, object, graph]);
            }
        }
    }

    fn any_graph(&mut self, random: &mut SplitMix) -> Span {
        let rank = u64::from(random.zipf(self.shape.graphs));
        self.graph((rank * 40_503 % u64::from(self.shape.graphs)) as u32)
    }

    fn graph(&mut self, number: u32) -> Span {
        let start = self.batch.bytes.len() as u32;
        self.shape.push_graph(number, &mut self.batch.bytes);
        self.since(start)
    }

    fn push(&mut self, quad: [Span; 4]) {
        let left = if quad[2] == self.hub {
            &mut self.hub_left
        } else {
            &mut self.other_left
        };
        if *left > 0 {
            *left -= 1;
            self.batch.quads.push(quad);
        }
    }

    fn since(&self, start: u32) -> Span {
        Span {
            start,
            len: self.batch.bytes.len() as u32 - start,
        }
    }
}
