//! A bibliography after SP²Bench (Schmidt, Hornung, Lausen, Pinkel: SP²Bench: A SPARQL Performance Benchmark, ICDE
//! 2009; arXiv 0806.4627): journals, articles, proceedings and other documents, year by year from 1936 on.
//!
//! The published curves and tables (section III) give the number of documents of each class per year, their attributes,
//! the numbers of authors, editors and citations, and how many authors of a year are different and how many are new.
//! Paul Erdős writes ten documents a year and edits two from 1940 to 1996. Different from the original are: co-authors
//! (the original keeps groups of them together; here the authors of a year are assigned at random, some often, most
//! once), the cited documents, the spelling of names and texts, and all random numbers. So results have the original's
//! size if they depend on documents (Q1 to Q3, Q6, Q11), and roughly if they depend on people.
//!
//! Authors and bags of references are blank nodes. One worker generates everything, since a year depends on earlier
//! years.

mod curves;
mod people;
mod write;

use curves::{DocumentClass, Year, authors_mean_deviation, random_count};
use jindou_model::{Progress, QuadSink, QuadSource, Result};
use people::{ERDOES, People};
use std::sync::atomic::{AtomicBool, Ordering};
use write::Sp2bWriter;

use crate::random::SplitMix;
use crate::real::deviate;

/// The first year.
const FIRST: u32 = 1936;

/// A source of data of a given size. It delivers its statements once.
#[derive(Debug)]
pub struct Sp2b {
    triples: u64,
    seed: u64,
    begun: AtomicBool,
}

impl Sp2b {
    /// Data of `triples` statements, plus the remaining statements of the last document.
    pub fn new(triples: u64, seed: u64) -> Self {
        Self {
            triples,
            seed,
            begun: AtomicBool::new(false),
        }
    }
}

impl QuadSource for Sp2b {
    /// Delivers batches of some thousand quads, without duplicates, all on the worker that calls first. Progress counts
    /// statements.
    fn run(
        &self,
        _worker: usize,
        _workers: usize,
        sink: &mut dyn QuadSink,
        progress: &Progress,
    ) -> Result<()> {
        if self.begun.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        let mut random = SplitMix::stream(self.seed, 0, 0);
        let mut people = People::new();
        let mut writer = Sp2bWriter::new(self.triples, sink, progress);
        writer.schema()?;
        let mut year = FIRST;
        while !writer.is_full() {
            let documents = plan(year, &mut random, &mut people);
            for document in &documents {
                writer.document(year, document, &mut people, &mut random)?;
                if writer.is_full() {
                    break;
                }
            }
            year += 1;
        }
        writer.flush()
    }

    fn size_hint(&self) -> Option<u64> {
        Some(self.triples)
    }
}

/// A document that is to be written.
#[derive(Debug)]
struct PlannedDocument {
    class: DocumentClass,
    /// Number of the document in its year, or in its journal or proceedings, from 1.
    number: u32,
    /// Number of its journal or proceedings, from 1; 0 for documents of other classes.
    within: u32,
    authors: Vec<u32>,
    editors: u32,
    edited_by_erdoes: bool,
}

/// The documents of a year with their authors, in the order in which they are written.
fn plan(number: u32, random: &mut SplitMix, people: &mut People) -> Vec<PlannedDocument> {
    let year = Year(number);
    let mut documents = vec![];
    for class in DocumentClass::ALL {
        let count = match class {
            DocumentClass::PhdThesis => random_count(number, 20, random),
            DocumentClass::MastersThesis | DocumentClass::Www => random_count(number, 10, random),
            class => year.documents(class),
        };
        // The number of journals for articles, and of proceedings for their papers.
        let hosts = match class {
            DocumentClass::Article => year.documents(DocumentClass::Journal),
            DocumentClass::Inproceedings => year.documents(DocumentClass::Proceedings),
            _ => 0,
        };
        let mut numbers = vec![0; hosts as usize];
        for i in 0..count {
            let within = if hosts == 0 {
                0
            } else {
                1 + random.below(hosts)
            };
            let number = match numbers.get_mut(within.wrapping_sub(1) as usize) {
                Some(n) => {
                    *n += 1;
                    *n
                }
                None => i + 1,
            };
            documents.push(PlannedDocument {
                class,
                number,
                within,
                authors: vec![],
                editors: 0,
                edited_by_erdoes: false,
            });
        }
    }
    // Documents in the same journal or proceedings are written one after another.
    documents.sort_by_key(|d| (d.class, d.within, d.number));
    let (mean, deviation) = authors_mean_deviation(number);
    let mut slots = vec![0; documents.len()];
    for (document, slots) in documents.iter_mut().zip(&mut slots) {
        let table = document.class.attributes();
        if people::happens(table.author, random) {
            *slots = (mean + deviation * deviate(random)).round().max(1.0) as u32;
        }
        if people::happens(table.editor, random) {
            document.editors = (2.15 + 1.18 * deviate(random)).round().max(1.0) as u32;
        }
    }
    let mut dealt = people.deal(year, &slots, random).into_iter();
    for (document, slots) in documents.iter_mut().zip(&slots) {
        for author in dealt.by_ref().take(*slots as usize) {
            if !document.authors.contains(&author) {
                document.authors.push(author);
            }
        }
    }
    if (1940..=1996).contains(&number) {
        erdoes(&mut documents, random);
    }
    documents
}

/// Adds Paul Erdős as an author of ten documents that have authors, and as an editor of two that have editors, or of
/// all if there are fewer.
fn erdoes(documents: &mut [PlannedDocument], random: &mut SplitMix) {
    let mut pick =
        |count, is: &dyn Fn(&PlannedDocument) -> bool, does: &dyn Fn(&mut PlannedDocument)| {
            let those: Vec<usize> = (0..documents.len())
                .filter(|i| is(&documents[*i]))
                .collect();
            let from = random.below(those.len() as u32) as usize;
            for i in those.iter().cycle().skip(from).take(those.len().min(count)) {
                does(&mut documents[*i]);
            }
        };
    pick(10, &|d| !d.authors.is_empty(), &|d| d.authors.push(ERDOES));
    pick(2, &|d| d.editors > 0, &|d| d.edited_by_erdoes = true);
}
