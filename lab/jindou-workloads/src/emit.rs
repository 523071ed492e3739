//! Collects statements in batches, for the generators that write one entity after another.

use crate::date::Day;
use crate::decimal;
use crate::random::SplitMix;
use crate::words::Words;
use jindou_model::term::{FIRST_DATATYPE, IRI, LANG, STRING, TYPED};
use jindou_model::{Progress, QuadBatch, QuadSink, Result, Span};

/// Number of quads at which a batch is delivered, after the current entity.
const BATCH: usize = 8192;

/// Canonical tags of the datatypes that the generators use.
pub(crate) const INTEGER: u8 = FIRST_DATATYPE;
pub(crate) const DATE_TIME: u8 = FIRST_DATATYPE + 17;
pub(crate) const DATE: u8 = FIRST_DATATYPE + 18;

/// Collects statements and delivers them in batches. Terms that occur in many statements (properties, classes) are in
/// `constants`, and identified by their index. Spans are valid until the next [`StatementEmitter::end_entity`].
pub(crate) struct StatementEmitter<'a> {
    sink: &'a mut dyn QuadSink,
    progress: &'a Progress,
    constants: Vec<&'a str>,
    batch: QuadBatch,
    spans: Vec<Span>,
}

impl<'a> StatementEmitter<'a> {
    /// Creates an emitter without statements. `constants` are IRIs.
    pub(crate) fn new(
        constants: &'a [impl AsRef<str>],
        sink: &'a mut dyn QuadSink,
        progress: &'a Progress,
    ) -> Self {
        let mut new = Self {
            sink,
            progress,
            constants: constants.iter().map(|iri| iri.as_ref()).collect(),
            batch: QuadBatch::default(),
            spans: vec![],
        };
        new.begin();
        new
    }

    fn begin(&mut self) {
        self.batch.clear();
        self.spans.clear();
        for iri in &self.constants {
            let write = |out: &mut Vec<u8>| out.extend_from_slice(iri.as_bytes());
            self.spans.push(write_term(&mut self.batch, IRI, write));
        }
    }

    /// Writes a term: its tag, then the bytes that `write` appends.
    pub(crate) fn term(&mut self, tag: u8, write: impl FnOnce(&mut Vec<u8>)) -> Span {
        write_term(&mut self.batch, tag, write)
    }

    /// The constant with an index.
    pub(crate) fn constant(&self, number: usize) -> Span {
        self.spans[number]
    }

    /// Writes an IRI that consists of several parts.
    pub(crate) fn iri(&mut self, pieces: &[TermPiece<'_>]) -> Span {
        self.term(IRI, |out| push_pieces(pieces, out))
    }

    /// Writes a string that consists of several parts.
    pub(crate) fn string(&mut self, pieces: &[TermPiece<'_>]) -> Span {
        self.term(STRING, |out| push_pieces(pieces, out))
    }

    /// Writes a literal of a datatype that has no tag.
    pub(crate) fn typed(&mut self, datatype: &str, write: impl FnOnce(&mut Vec<u8>)) -> Span {
        self.term(TYPED, |out| {
            out.extend_from_slice(datatype.as_bytes());
            out.push(0);
            write(out);
        })
    }

    /// Writes a string of random words with a language tag.
    pub(crate) fn words_in(
        &mut self,
        language: &str,
        count: u32,
        words: &Words,
        random: &mut SplitMix,
    ) -> Span {
        self.term(LANG, |out| {
            out.extend_from_slice(language.as_bytes());
            out.push(0);
            push_words(count, words, random, out);
        })
    }

    /// Writes a string of random words.
    pub(crate) fn words(&mut self, count: u32, words: &Words, random: &mut SplitMix) -> Span {
        self.term(STRING, |out| push_words(count, words, random, out))
    }

    /// Writes an `xsd:integer`.
    pub(crate) fn integer(&mut self, value: u64) -> Span {
        self.term(INTEGER, |out| decimal::push(out, value))
    }

    /// Writes an `xsd:date`.
    pub(crate) fn date(&mut self, day: Day) -> Span {
        self.term(DATE, |out| day.push(out))
    }

    /// Writes an `xsd:dateTime`, midnight of a day.
    pub(crate) fn date_time(&mut self, day: Day) -> Span {
        self.term(DATE_TIME, |out| {
            day.push(out);
            out.extend_from_slice(b"T00:00:00");
        })
    }

    /// Adds a statement whose property is a constant.
    pub(crate) fn say(&mut self, subject: Span, property: usize, object: Span) {
        let property = self.spans[property];
        self.say_of(subject, property, object);
    }

    /// Adds a statement.
    pub(crate) fn say_of(&mut self, subject: Span, property: Span, object: Span) {
        self.batch
            .quads
            .push([subject, property, object, Span::default()]);
    }

    /// True if the batch has no statements, for example since it was delivered.
    pub(crate) fn is_empty(&self) -> bool {
        self.batch.quads.is_empty()
    }

    /// Ends an entity: delivers the batch if it is full. Earlier spans must not be used any more.
    pub(crate) fn end_entity(&mut self) -> Result<()> {
        if self.batch.quads.len() >= BATCH {
            self.flush()?;
        }
        Ok(())
    }

    /// Delivers the statements collected so far.
    pub(crate) fn flush(&mut self) -> Result<()> {
        let quads = self.batch.quads.len() as u64;
        if quads > 0 {
            self.sink.batch(&self.batch)?;
            self.progress.add(0, quads);
            self.begin();
        }
        Ok(())
    }
}

/// Writes a term to a batch: its tag, then the bytes that `write` appends.
pub(crate) fn write_term(batch: &mut QuadBatch, tag: u8, write: impl FnOnce(&mut Vec<u8>)) -> Span {
    let start = batch.bytes.len() as u32;
    batch.bytes.push(tag);
    write(&mut batch.bytes);
    Span {
        start,
        len: batch.bytes.len() as u32 - start,
    }
}

/// Defines `CONSTANTS`, a list of IRIs, and for each a constant with its index.
macro_rules! constants {
    ($($name:ident = $iri:expr),* $(,)?) => {
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        enum Constant { $($name),* }
        $(const $name: usize = Constant::$name as usize;)*
        const CONSTANTS: &[&str] = &[$($iri),*];
    };
}
pub(crate) use constants;

/// A part of an IRI or a string.
#[derive(Clone, Copy)]
pub(crate) enum TermPiece<'a> {
    Text(&'a str),
    Number(u64),
}

fn push_pieces(pieces: &[TermPiece<'_>], out: &mut Vec<u8>) {
    for piece in pieces {
        match piece {
            TermPiece::Text(text) => out.extend_from_slice(text.as_bytes()),
            TermPiece::Number(n) => decimal::push(out, *n),
        }
    }
}

fn push_words(count: u32, words: &Words, random: &mut SplitMix, out: &mut Vec<u8>) {
    for i in 0..count {
        if i > 0 {
            out.push(b' ');
        }
        out.extend_from_slice(words.get(random.below(words.len())).as_bytes());
    }
}
