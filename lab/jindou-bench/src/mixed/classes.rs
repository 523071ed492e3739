//! Classes of light queries: templates with a start point drawn from the instances of an RDF class, as in the papers'
//! emulator.

use jindou::results::{RowText, Rows};
use jindou::{
    AnswerSink, Database, Error, PreparedQuery, QueryOptions, Result, Session, Value, decode_term,
};
use jindou_workloads::queries::lubm::{EMULATOR, EMULATOR_WEIGHTS, PLACEHOLDER};
use oxrdf::Term;

/// The variable that a template uses for the start point.
const START: &str = "start";
const UB: &str = "http://swat.cse.lehigh.edu/onto/univ-bench.owl#";

/// A template of light queries.
pub struct Template {
    pub name: &'static str,
    /// SPARQL text with `$start` for the start point.
    pub text: String,
    /// IRI of the class whose instances are start points.
    pub class: String,
    pub weight: f64,
}

/// The papers' light mix over LUBM: A1 to A6, three of which are L4, L5 and L6 with a variable start point.
pub fn lubm() -> Vec<Template> {
    EMULATOR
        .iter()
        .zip(EMULATOR_WEIGHTS)
        .map(|(t, weight)| Template {
            name: t.name,
            text: t.text.replace(PLACEHOLDER, &format!("${START}")),
            class: format!("{UB}{}", jindou_workloads::lubm::CLASSES[t.class as usize]),
            weight: f64::from(weight),
        })
        .collect()
}

/// A template prepared for one database, with its start points.
pub struct Class {
    pub name: &'static str,
    pub weight: f64,
    pub prepared: PreparedQuery,
    pub starts: Vec<Term>,
}

impl Class {
    /// Prepares the template, and draws a uniform sample of at most `most` of its start points.
    pub fn new(db: &Database, t: &Template, most: usize) -> Result<Self> {
        let options = QueryOptions::default();
        let mut sample = Sample {
            most,
            seen: 0,
            random: 0x9E37_79B9_7F4A_7C15,
            kept: vec![],
        };
        let starts = format!("SELECT DISTINCT ?x {{ ?x a <{}> }}", t.class);
        db.run(&starts, &options, &mut sample)?;
        if sample.kept.is_empty() {
            return Err(Error::Usage(format!(
                "{}: the store has nothing to begin at: {starts}",
                t.name
            )));
        }
        Ok(Self {
            name: t.name,
            weight: t.weight,
            prepared: db.prepare(&t.text, &[START], &options)?,
            starts: sample.kept,
        })
    }

    /// The text with this start point inserted.
    pub fn text(&self, start: usize) -> String {
        self.prepared
            .text()
            .replace(&format!("${START}"), &self.starts[start].to_string())
    }

    /// Compares the answers of `n` start points with those of the text with the start point inserted, planned as a
    /// separate query.
    pub fn check(&self, db: &Database, n: usize) -> Result<()> {
        let options = QueryOptions::default().with_threads(1);
        let mut session: Session = self.prepared.session();
        for i in 0..n.min(self.starts.len()) {
            let at = i * self.starts.len() / n.max(1) % self.starts.len();
            let prepared = session.checksum(&[Value::Term(&self.starts[at])], &options)?;
            let plain = db.checksum(&db.plan_uncached(&self.text(at), &options)?, &options)?;
            if (prepared.rows, prepared.checksum) != (plain.rows, plain.checksum) {
                return Err(Error::Internal(format!(
                    "{} from {}: {} rows when prepared, {} else",
                    self.name, self.starts[at], prepared.rows, plain.rows
                )));
            }
        }
        Ok(())
    }
}

/// A sample of one column's rows, each kept with the same probability (Vitter's algorithm R). Blank nodes are skipped,
/// since a query cannot name them.
struct Sample {
    most: usize,
    seen: u64,
    random: u64,
    kept: Vec<Term>,
}

impl AnswerSink for Sample {
    fn solutions(&mut self, _: &[String]) -> Result<()> {
        Ok(())
    }

    fn rows(&mut self, rows: &Rows) -> Result<()> {
        for r in 0..rows.rows {
            let Some(term) = rows.row(r).next().flatten().and_then(decode_term) else {
                continue;
            };
            if let Term::BlankNode(_) = term {
                continue;
            }
            self.seen += 1;
            if self.kept.len() < self.most {
                self.kept.push(term);
                continue;
            }
            self.random ^= self.random << 13;
            self.random ^= self.random >> 7;
            self.random ^= self.random << 17;
            let at = (self.random % self.seen) as usize;
            if let Some(place) = self.kept.get_mut(at) {
                *place = term;
            }
        }
        Ok(())
    }

    fn row_text(&self) -> Option<RowText> {
        None
    }

    fn raw(&mut self, _: &[u8], _: u64) -> Result<()> {
        Ok(())
    }

    fn boolean(&mut self, _: bool) -> Result<()> {
        Ok(())
    }

    fn graph(&mut self) -> Result<()> {
        Ok(())
    }

    fn triple(&mut self, _: &oxrdf::Triple) -> Result<()> {
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}
