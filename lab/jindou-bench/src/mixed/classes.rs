//! Classes of light queries: templates with a start point drawn from the instances of an RDF class or from a
//! predicate's subjects or objects, as in the papers' emulator.

use jindou::results::{RowText, Rows};
use jindou::{
    AnswerSink, Database, Error, PreparedQuery, QueryOptions, Result, Session, Value, decode_term,
};
use jindou_workloads::queries::lubm::{EMULATOR, EMULATOR_WEIGHTS, PLACEHOLDER};
use oxrdf::Term;
use std::path::Path;

/// The variable that a template uses for the start point.
const START: &str = "start";
const UB: &str = "http://swat.cse.lehigh.edu/onto/univ-bench.owl#";

/// Source of a template's start points.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Instances of a class.
    Class(String),
    /// Subjects of a predicate.
    Subjects(String),
    /// Objects of a predicate.
    Objects(String),
}

impl Source {
    fn query(&self) -> String {
        match self {
            Self::Class(c) => format!("SELECT DISTINCT ?x {{ ?x a <{c}> }}"),
            Self::Subjects(p) => format!("SELECT DISTINCT ?x {{ ?x <{p}> ?y }}"),
            Self::Objects(p) => format!("SELECT DISTINCT ?x {{ ?y <{p}> ?x }}"),
        }
    }
}

/// A template of light queries.
#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    pub name: String,
    /// SPARQL text with `$start` for the start point.
    pub text: String,
    pub source: Source,
    pub weight: f64,
}

/// The papers' light mix over LUBM: A1 to A6, three of which are L4, L5 and L6 with a variable start point.
pub fn lubm() -> Vec<Template> {
    EMULATOR
        .iter()
        .zip(EMULATOR_WEIGHTS)
        .map(|(t, weight)| Template {
            name: t.name.into(),
            text: t.text.replace(PLACEHOLDER, &format!("${START}")),
            source: Source::Class(format!(
                "{UB}{}",
                jindou_workloads::lubm::CLASSES[t.class as usize]
            )),
            weight: f64::from(weight),
        })
        .collect()
}

/// Light templates and heavy queries of a mix.
#[derive(Clone, Debug, Default)]
pub struct Mix {
    pub light: Vec<Template>,
    /// Names of heavy queries, and their weights.
    pub heavy: Vec<(String, f64)>,
}

/// Reads the templates of a folder. They are those listed in the file `mix`, or in `mix_config`: its first line has the
/// numbers of light and heavy queries, then each line has a path, of which only the file name counts, and a weight
/// (`lubm_q7` is LUBM's L7). Without such a file they are `q1`, `q2`, … with equal weights.
pub fn folder(dir: &Path, mix: Option<&str>) -> Result<Mix> {
    let read = |name: &str| {
        let path = dir.join(name);
        std::fs::read_to_string(&path).map_err(|e| Error::io(&path, e))
    };
    let mut named: Vec<(String, f64)> = vec![];
    let mut light = usize::MAX;
    let config = mix.unwrap_or("mix_config");
    if mix.is_some() || dir.join(config).exists() {
        let text = read(config)?;
        let bad = |what: &str| Error::Usage(format!("{}: {what}", dir.join(config).display()));
        let mut lines = text.lines();
        let first = lines.next().unwrap_or("");
        light = first
            .split_whitespace()
            .next()
            .and_then(|n| n.parse().ok())
            .ok_or_else(|| {
                bad(&format!(
                    "'{first}' does not give the number of light queries"
                ))
            })?;
        for line in lines {
            let mut words = line.split_whitespace();
            let (Some(path), Some(weight)) = (words.next(), words.next()) else {
                continue;
            };
            let name = path.rsplit('/').next().unwrap_or(path).to_owned();
            let weight = weight
                .parse()
                .map_err(|_| bad(&format!("'{weight}' is not a weight")))?;
            named.push((name, weight));
        }
    } else {
        named.extend(
            (1..)
                .map(|i| format!("q{i}"))
                .take_while(|n| dir.join(n).exists())
                .map(|n| (n, 1.0)),
        );
    }
    if named.is_empty() {
        return Err(Error::Usage(format!(
            "{} has no templates: neither mix_config nor q1",
            dir.display()
        )));
    }
    let mut mix = Mix::default();
    for (i, (name, weight)) in named.into_iter().enumerate() {
        if i < light {
            let read = template(&name, &read(&name)?, weight)
                .map_err(|why| Error::Usage(format!("{}: {why}", dir.join(&name).display())))?;
            mix.light.push(read);
            continue;
        }
        let name = match name.strip_prefix("lubm_q") {
            Some(number) => format!("L{number}"),
            None => dir.join(&name).to_string_lossy().into_owned(),
        };
        mix.heavy.push((name, weight));
    }
    Ok(mix)
}

/// Parses a template: `%class` or `%<fromPredicate>` names the source of start points. `<-` at a pattern's end, a hint
/// for the order of joins, is read as a full stop.
fn template(name: &str, text: &str, weight: f64) -> Result<Template, String> {
    let prefix = |short: &str| -> Option<String> {
        let (p, local) = short.split_once(':')?;
        let declared = text.split(&format!("PREFIX {p}:")).nth(1)?;
        let iri = declared.trim_start().strip_prefix('<')?.split('>').next()?;
        Some(format!("{iri}{local}"))
    };
    let resolve = |word: &str| -> Result<String, String> {
        match word.strip_prefix('<').and_then(|w| w.strip_suffix('>')) {
            Some(iri) => Ok(iri.to_owned()),
            None => prefix(word).ok_or(format!("cannot tell what {word} is")),
        }
    };
    let mut source = None;
    let mut lines = vec![];
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let Some(at) = words.iter().position(|w| w.starts_with('%')) {
            let word = &words[at][1..];
            let predicate = words.get(1).copied().unwrap_or("");
            source = Some(match (word, at) {
                ("<fromPredicate>", 0) => Source::Subjects(resolve(predicate)?),
                ("<fromPredicate>", _) => Source::Objects(resolve(predicate)?),
                _ => Source::Class(resolve(word)?),
            });
        }
        let line: Vec<&str> = words
            .iter()
            .map(|w| match *w {
                w if w.starts_with('%') => "$start",
                "<-" => ".",
                w => w,
            })
            .collect();
        lines.push(line.join(" "));
    }
    Ok(Template {
        name: name.into(),
        text: lines.join("\n"),
        source: source.ok_or("no start point: no term begins with %")?,
        weight,
    })
}

/// A template prepared for one database, with its start points.
pub struct Class {
    pub name: String,
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
        db.run(&t.source.query(), &options, &mut sample)?;
        if sample.kept.is_empty() {
            return Err(Error::Usage(format!(
                "{}: the store has nothing to begin at: {}",
                t.name,
                t.source.query()
            )));
        }
        Ok(Self {
            name: t.name.clone(),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_of_the_papers_emulator_are_read() {
        let t = template(
            "q8",
            "PREFIX ub: <http://e/#>\nSELECT ?X WHERE {\n\t?X ub:memberOf %ub:Department <-\n\t?X ub:name ?Y .\n}",
            2.0,
        )
        .unwrap();
        assert_eq!(t.source, Source::Class("http://e/#Department".into()));
        assert!(t.text.contains("?X ub:memberOf $start .\n"));
        let t = template("q", "SELECT ?v {\n%<fromPredicate> <http://p> ?v .\n}", 1.0).unwrap();
        assert_eq!(t.source, Source::Subjects("http://p".into()));
        let t = template("q", "SELECT ?v {\n?v <http://p> %<fromPredicate> .\n}", 1.0).unwrap();
        assert_eq!(t.source, Source::Objects("http://p".into()));
        assert!(template("q", "SELECT ?v { ?v ?p ?o }", 1.0).is_err());
    }
}
