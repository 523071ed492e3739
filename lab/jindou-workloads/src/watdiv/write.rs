//! Writes units to batches.

use super::compile::{CompiledModel, Fact, LiteralRange, Says};
use crate::date::Day;
use crate::decimal;
use crate::emit::StatementEmitter;
use crate::emit::TermPiece::{Number, Text};
use crate::random::SplitMix;
use crate::real::unit;
use jindou_model::term::STRING;
use jindou_model::{Progress, QuadSink, Result, Span};

/// The number of words that follow the first word of a text is below this.
const MORE_WORDS: u32 = 25;

/// Writes units in batches that may end within a unit.
pub(super) struct WatdivWriter<'a> {
    compiled: &'a CompiledModel,
    out: StatementEmitter<'a>,
    /// Kind, number and span of the last subject, if it is in this batch.
    subject: Option<(u32, u32, Span)>,
}

impl<'a> WatdivWriter<'a> {
    pub(super) fn new(
        compiled: &'a CompiledModel,
        sink: &'a mut dyn QuadSink,
        progress: &'a Progress,
    ) -> Self {
        Self {
            compiled,
            out: StatementEmitter::new(&compiled.properties, sink, progress),
            subject: None,
        }
    }

    /// Delivers the statements collected so far.
    pub(super) fn flush(&mut self) -> Result<()> {
        self.subject = None;
        self.out.flush()
    }

    /// Writes a unit, `0 .. units`.
    pub(super) fn unit(&mut self, unit_number: u64) -> Result<()> {
        let compiled = self.compiled;
        let (at, subjects) = compiled.unit(unit_number);
        let part = &compiled.parts[at];
        let mut random = compiled.stream(at, unit_number);
        match &part.says {
            Says::Link(link) => compiled.pairs(link, subjects, &mut random, |subject, object| {
                let s = self.subject(part.kind, subject);
                let o = self.entity(link.object_kind, object);
                self.statement(s, link.property, o)
            }),
            Says::Facts(groups) => {
                for subject in subjects {
                    for group in groups {
                        let member = group
                            .class
                            .is_none_or(|c| compiled.members[c as usize].has(subject));
                        if !member || unit(&mut random) > group.probability {
                            continue;
                        }
                        for fact in &group.facts {
                            let s = self.subject(part.kind, subject);
                            let o = self.literal(fact, &mut random);
                            self.statement(s, fact.property, o)?;
                        }
                    }
                }
                Ok(())
            }
        }
    }

    fn statement(&mut self, s: Span, property: u32, o: Span) -> Result<()> {
        self.out.say(s, property as usize, o);
        self.out.end_entity()?;
        if self.out.is_empty() {
            self.subject = None;
        }
        Ok(())
    }

    fn subject(&mut self, kind: u32, number: u32) -> Span {
        if let Some((k, n, span)) = self.subject
            && (k, n) == (kind, number)
        {
            return span;
        }
        let span = self.entity(kind, number);
        self.subject = Some((kind, number, span));
        span
    }

    fn entity(&mut self, kind: u32, number: u32) -> Span {
        let kind = &self.compiled.kinds[kind as usize];
        self.out.iri(&[Text(kind), Number(number.into())])
    }

    fn literal(&mut self, fact: &Fact, random: &mut SplitMix) -> Span {
        let CompiledModel { words, names, .. } = self.compiled;
        let place = fact.places.draw(random);
        self.out.term(STRING, |bytes| match fact.literal {
            LiteralRange::Integer(first) => {
                let value = first.saturating_add_unsigned(place);
                if value < 0 {
                    bytes.push(b'-');
                }
                decimal::push(bytes, value.unsigned_abs());
            }
            LiteralRange::Date(first) => {
                Day(first.saturating_add_unsigned(place as u32)).push(bytes)
            }
            LiteralRange::Name(first) => {
                bytes.extend_from_slice(names.get(first + place as u32).as_bytes());
            }
            LiteralRange::Words(first) => {
                bytes.extend_from_slice(words.get(first + place as u32).as_bytes());
                for _ in 0..random.below(MORE_WORDS) {
                    bytes.push(b' ');
                    bytes.extend_from_slice(words.get(random.below(words.len())).as_bytes());
                }
            }
        })
    }
}
