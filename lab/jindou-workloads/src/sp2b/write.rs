//! Writes documents and people as statements.

use super::PlannedDocument;
use super::curves::{AttributeShares, DocumentClass};
use super::people::{ERDOES, People, happens};
use crate::decimal;
use crate::emit::TermPiece::{Number, Text};
use crate::emit::{StatementEmitter, constants};
use crate::random::SplitMix;
use crate::real::{deviate, pow, unit};
use crate::words::Words;
use jindou_model::term::{BLANK, STRING};
use jindou_model::{Progress, QuadSink, Result, Span};

macro_rules! swrc {
    ($name:literal) => {
        concat!("http://swrc.ontoware.org/ontology#", $name)
    };
}
macro_rules! bench {
    ($name:literal) => {
        concat!("http://localhost/vocabulary/bench/", $name)
    };
}

constants! {
    TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type",
    BAG = "http://www.w3.org/1999/02/22-rdf-syntax-ns#Bag",
    SUBCLASS = "http://www.w3.org/2000/01/rdf-schema#subClassOf",
    SEE_ALSO = "http://www.w3.org/2000/01/rdf-schema#seeAlso",
    PERSON = "http://xmlns.com/foaf/0.1/Person",
    DOCUMENT = "http://xmlns.com/foaf/0.1/Document",
    NAME = "http://xmlns.com/foaf/0.1/name",
    HOMEPAGE = "http://xmlns.com/foaf/0.1/homepage",
    CREATOR = "http://purl.org/dc/elements/1.1/creator",
    TITLE = "http://purl.org/dc/elements/1.1/title",
    PUBLISHER = "http://purl.org/dc/elements/1.1/publisher",
    ISSUED = "http://purl.org/dc/terms/issued",
    PART_OF = "http://purl.org/dc/terms/partOf",
    REFERENCES = "http://purl.org/dc/terms/references",
    ADDRESS = swrc!("address"),
    CHAPTER = swrc!("chapter"),
    EDITOR = swrc!("editor"),
    ISBN = swrc!("isbn"),
    JOURNAL = swrc!("journal"),
    MONTH = swrc!("month"),
    NUMBER = swrc!("number"),
    PAGES = swrc!("pages"),
    SERIES = swrc!("series"),
    VOLUME = swrc!("volume"),
    ABSTRACT = bench!("abstract"),
    BOOKTITLE = bench!("booktitle"),
    CDROM = bench!("cdrom"),
    NOTE = bench!("note"),
    A_JOURNAL = bench!("Journal"),
    AN_ARTICLE = bench!("Article"),
    PROCEEDINGS = bench!("Proceedings"),
    INPROCEEDINGS = bench!("Inproceedings"),
    BOOK = bench!("Book"),
    INCOLLECTION = bench!("Incollection"),
    PHD_THESIS = bench!("PhDThesis"),
    MASTERS_THESIS = bench!("MastersThesis"),
    WWW = bench!("Www"),
    UNKNOWN = "http://localhost/misc/UnknownDocument",
    PAUL_ERDOES = "http://localhost/persons/Paul_Erdoes",
}

const fn class(of: DocumentClass) -> usize {
    match of {
        DocumentClass::Journal => A_JOURNAL,
        DocumentClass::Article => AN_ARTICLE,
        DocumentClass::Proceedings => PROCEEDINGS,
        DocumentClass::Inproceedings => INPROCEEDINGS,
        DocumentClass::Book => BOOK,
        DocumentClass::Incollection => INCOLLECTION,
        DocumentClass::PhdThesis => PHD_THESIS,
        DocumentClass::MastersThesis => MASTERS_THESIS,
        DocumentClass::Www => WWW,
    }
}

/// The parts of a document's IRI.
#[derive(Clone, Copy, Debug)]
struct DocumentIri {
    class: DocumentClass,
    year: u16,
    within: u32,
    number: u32,
}

pub(super) struct Sp2bWriter<'a> {
    out: StatementEmitter<'a>,
    words: Words,
    names: Words,
    left: u64,
    documents: Vec<DocumentIri>,
    bags: u64,
}

impl<'a> Sp2bWriter<'a> {
    pub(super) fn new(triples: u64, sink: &'a mut dyn QuadSink, progress: &'a Progress) -> Self {
        Self {
            out: StatementEmitter::new(CONSTANTS, sink, progress),
            words: Words::dictionary(),
            names: Words::names(),
            left: triples,
            documents: vec![],
            bags: 0,
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.left == 0
    }

    pub(super) fn flush(&mut self) -> Result<()> {
        self.out.flush()
    }

    fn say(&mut self, s: Span, p: usize, o: Span) {
        self.out.say(s, p, o);
        self.left = self.left.saturating_sub(1);
    }

    fn constants(&mut self, s: usize, p: usize, o: usize) {
        let (s, o) = (self.out.constant(s), self.out.constant(o));
        self.say(s, p, o);
    }

    /// Writes the classes, Paul Erdős, and the document that stands for all cited documents that are not in the data.
    pub(super) fn schema(&mut self) -> Result<()> {
        for c in DocumentClass::ALL {
            self.constants(class(c), SUBCLASS, DOCUMENT);
        }
        self.constants(PAUL_ERDOES, TYPE, PERSON);
        let (s, name) = (
            self.out.constant(PAUL_ERDOES),
            self.out.string(&[Text("Paul Erdoes")]),
        );
        self.say(s, NAME, name);
        self.constants(UNKNOWN, TYPE, DOCUMENT);
        self.out.end_entity()
    }

    fn iri(&mut self, place: DocumentIri) -> Span {
        const PUBLICATIONS: &str = "http://localhost/publications/";
        let within = Number(place.within.into());
        let (year, number) = (Number(place.year.into()), Number(place.number.into()));
        let plain = |folder, kind| [Text(PUBLICATIONS), Text(folder), year, Text(kind), number];
        let hosted = |folder, host, kind| {
            [
                Text(PUBLICATIONS),
                Text(folder),
                Text(host),
                within,
                Text("/"),
                year,
                Text(kind),
                number,
            ]
        };
        let host = |folder, host| {
            [
                Text(PUBLICATIONS),
                Text(folder),
                Text(host),
                number,
                Text("/"),
                year,
            ]
        };
        match place.class {
            DocumentClass::Journal => self.out.iri(&host("journals/", "Journal")),
            DocumentClass::Proceedings => self.out.iri(&host("procs/", "Proceeding")),
            DocumentClass::Article => self.out.iri(&hosted("articles/", "Journal", "/Article")),
            DocumentClass::Inproceedings => {
                self.out
                    .iri(&hosted("inprocs/", "Proceeding", "/Inproceeding"))
            }
            DocumentClass::Book => self.out.iri(&plain("books/", "/Book")),
            DocumentClass::Incollection => self.out.iri(&plain("incolls/", "/Incollection")),
            DocumentClass::PhdThesis => self.out.iri(&plain("phds/", "/PhDThesis")),
            DocumentClass::MastersThesis => self.out.iri(&plain("masters/", "/MastersThesis")),
            DocumentClass::Www => self.out.iri(&plain("wwws/", "/WebDoc")),
        }
    }

    /// The blank node or IRI of a person. Describes the person when they are used for the first time.
    fn person(&mut self, person: u32, people: &mut People) -> Span {
        if person == ERDOES {
            return self.out.constant(PAUL_ERDOES);
        }
        let node = self.out.term(BLANK, |out| {
            out.extend_from_slice(b":person");
            decimal::push(out, person.into());
        });
        if people.is_new(person) {
            let a = self.out.constant(PERSON);
            self.say(node, TYPE, a);
            let (words, names) = (&self.words, &self.names);
            let name = self
                .out
                .term(STRING, |out| push_name(person, words, names, out));
            self.say(node, NAME, name);
        }
        node
    }

    fn text(&mut self, s: Span, p: usize, min: u32, max: u32, random: &mut SplitMix) {
        let text = self.out.words(random.range(min, max), &self.words, random);
        self.say(s, p, text);
    }

    fn integer(&mut self, s: Span, p: usize, value: u32) {
        let value = self.out.integer(value.into());
        self.say(s, p, value);
    }

    fn page(&mut self, s: Span, p: usize, random: &mut SplitMix) {
        let words = &self.words;
        let page = self.out.term(STRING, |out| {
            for text in ["http://www.", ".tld/", "/"] {
                out.extend_from_slice(text.as_bytes());
                let word = words.get(random.below(words.len())).bytes();
                out.extend(word.filter(u8::is_ascii_alphabetic));
            }
            out.extend_from_slice(b".html");
        });
        self.say(s, p, page);
    }

    pub(super) fn document(
        &mut self,
        year: u32,
        document: &PlannedDocument,
        people: &mut People,
        random: &mut SplitMix,
    ) -> Result<()> {
        let has = document.class.attributes();
        let place = DocumentIri {
            class: document.class,
            year: year as u16,
            within: document.within,
            number: document.number,
        };
        let s = self.iri(place);
        let a = self.out.constant(class(document.class));
        self.say(s, TYPE, a);
        match document.class {
            DocumentClass::Journal => {
                let title = self.out.string(&[
                    Text("Journal "),
                    Number(document.number.into()),
                    Text(" ("),
                    Number(year.into()),
                    Text(")"),
                ]);
                self.say(s, TITLE, title);
            }
            _ => self.text(s, TITLE, 3, 10, random),
        }
        self.people(s, document, people, random);
        self.content(s, &has, random);
        if happens(has.journal, random) && document.class == DocumentClass::Article {
            let journal = self.iri(DocumentIri {
                class: DocumentClass::Journal,
                number: document.within,
                ..place
            });
            self.say(s, JOURNAL, journal);
        }
        if happens(has.crossref, random) {
            self.part_of(s, place, random);
        }
        if happens(has.year, random) {
            self.integer(s, ISSUED, year);
        }
        if happens(has.cite, random) {
            self.references(s, random);
        }
        self.documents.push(place);
        self.out.end_entity()
    }

    /// Writes authors and editors.
    fn people(
        &mut self,
        s: Span,
        document: &PlannedDocument,
        people: &mut People,
        random: &mut SplitMix,
    ) {
        for &author in &document.authors {
            let person = self.person(author, people);
            self.say(s, CREATOR, person);
        }
        let mut editors: Vec<u32> = (0..document.editors)
            .filter_map(|_| people.editor(random))
            .collect();
        editors.sort_unstable();
        editors.dedup();
        editors.extend(document.edited_by_erdoes.then_some(ERDOES));
        for editor in editors {
            let person = self.person(editor, people);
            self.say(s, EDITOR, person);
        }
    }

    /// Writes texts, numbers and pages.
    fn content(&mut self, s: Span, has: &AttributeShares, random: &mut SplitMix) {
        if happens(has.summary, random) {
            let count = (150.0 + 30.0 * deviate(random)).max(1.0) as u32;
            self.text(s, ABSTRACT, count, count, random);
        }
        for (probability, property, min, max) in [
            (has.address, ADDRESS, 1, 3),
            (has.booktitle, BOOKTITLE, 2, 5),
            (has.note, NOTE, 3, 8),
            (has.publisher, PUBLISHER, 1, 2),
            (has.school, PUBLISHER, 2, 3),
        ] {
            if happens(probability, random) {
                self.text(s, property, min, max, random);
            }
        }
        for (probability, property, most) in [
            (has.chapter, CHAPTER, 30),
            (has.month, MONTH, 12),
            (has.number, NUMBER, 12),
            (has.pages, PAGES, 300),
            (has.series, SERIES, 200),
            (has.volume, VOLUME, 60),
        ] {
            if happens(probability, random) {
                let value = random.range(1, most);
                self.integer(s, property, value);
            }
        }
        for (probability, property) in [(has.cdrom, CDROM), (has.ee, SEE_ALSO), (has.url, HOMEPAGE)]
        {
            if happens(probability, random) {
                self.page(s, property, random);
            }
        }
        if happens(has.isbn, random) {
            let isbn = self.out.term(STRING, |out| {
                for (i, width) in [1, 3, 5, 1].into_iter().enumerate() {
                    if i > 0 {
                        out.push(b'-');
                    }
                    let digits = random.below(10u32.pow(width));
                    decimal::push_padded(out, digits.into(), width as usize);
                }
            });
            self.say(s, ISBN, isbn);
        }
    }

    /// States of what a document is part of: of its proceedings for a paper, of one of the year's books for a chapter.
    fn part_of(&mut self, s: Span, place: DocumentIri, random: &mut SplitMix) {
        let (class, number) = match place.class {
            DocumentClass::Inproceedings => (DocumentClass::Proceedings, place.within),
            DocumentClass::Incollection => {
                let books = super::curves::Year(place.year.into()).documents(DocumentClass::Book);
                if books == 0 {
                    return;
                }
                (DocumentClass::Book, random.range(1, books))
            }
            _ => return,
        };
        let whole = self.iri(DocumentIri {
            class,
            within: 0,
            number,
            ..place
        });
        self.say(s, PART_OF, whole);
    }

    /// Writes a bag of references. Two thirds cite documents of the data, some of them often; the others cite the
    /// document for unknown ones.
    fn references(&mut self, s: Span, random: &mut SplitMix) {
        self.bags += 1;
        let number = self.bags;
        let bag = self.out.term(BLANK, |out| {
            out.extend_from_slice(b":references");
            decimal::push(out, number);
        });
        self.say(s, REFERENCES, bag);
        let a = self.out.constant(BAG);
        self.say(bag, TYPE, a);
        let count = (16.82 + 10.07 * deviate(random)).round().max(1.0) as u64;
        for i in 1..=count {
            let member = self.out.iri(&[
                Text("http://www.w3.org/1999/02/22-rdf-syntax-ns#_"),
                Number(i),
            ]);
            let known = happens(0.65, random);
            let at = pow(unit(random).max(1e-12), 3.0) * self.documents.len() as f64;
            let cited = match self.documents.get(at as usize) {
                Some(&place) if known => self.iri(place),
                _ => self.out.constant(UNKNOWN),
            };
            self.out.say_of(bag, member, cited);
            self.left = self.left.saturating_sub(1);
        }
    }
}

/// Appends a first and a last name. Different numbers have different names.
fn push_name(person: u32, words: &Words, names: &Words, out: &mut Vec<u8>) {
    let all = u64::from(words.len()) * u64::from(names.len());
    // Multiplying by a prime that does not divide `all` permutes the numbers.
    let place = u64::from(person) * 100_000_007 % all;
    let first = names
        .get((place % u64::from(names.len())) as u32)
        .as_bytes();
    let last = words
        .get((place / u64::from(names.len())) as u32)
        .as_bytes();
    out.extend(first.iter().take(1));
    out.extend(first.iter().skip(1).map(u8::to_ascii_lowercase));
    out.push(b' ');
    out.extend(last.iter().take(1).map(u8::to_ascii_uppercase));
    out.extend(last.iter().skip(1));
}
