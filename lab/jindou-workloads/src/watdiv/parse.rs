//! Reads models in the text format of the original generator: one declaration per line, with spaces between words.
//!
//! ```text
//! #namespace   wsdbm=http://db.uwaterloo.ca/~galuc/wsdbm/
//! <type>       wsdbm:Product 250               (<type*>: the same number at every scale)
//! <pgroup>     0.5 @wsdbm:ProductCategory3     (probability, class: both may be missing)
//! #predicate   sorg:bookEdition integer 1 6 normal
//! </pgroup>
//! </type>
//! #association wsdbm:User wsdbm:likes wsdbm:Product 2 5[normal] 0.2 ZIPFIAN @null @null
//! ```
//!
//! The words of an association are: subject, property, object; 1 if an object may occur in one statement only,
//! otherwise 2; the largest number of statements per subject, and the distribution of their number; the share of
//! subjects that have any; the distribution of objects; the classes of subjects and of objects. Lines that begin with
//! `//` or `#statistics` are ignored.

use super::model::{
    Association, AttributeGroup, AttributeValues, Distribution, EntityKind, LiteralProperty,
    WatdivModel,
};
use crate::date::Day;
use jindou_model::{Error, Location, Result};
use std::str::FromStr;

/// The end (exclusive) of dates without a range. The original takes the current day; a fixed day makes the data
/// repeatable.
const LAST_DAY: Day = Day(20_454);
/// The first and the last word of texts without a range, as in the original.
const FIRST_WORD: &str = "A";
const LAST_WORD: &str = "z";
/// Largest number of kinds, attributes and associations of a model together. More are taken for a mistake.
const MOST_DECLARATIONS: usize = 100_000;

impl WatdivModel {
    /// The model of the published data sets (10M, 100M, 1B triples are scales 100, 1000, 10000).
    pub fn standard() -> Self {
        let text = include_str!("standard.txt");
        Self::parse("standard.txt", text).unwrap_or_else(|e| panic!("{e}"))
    }

    /// Reads a model from its text; `file` is the file's name in errors. O(text) times the number of namespaces and
    /// kinds.
    ///
    /// # Errors
    /// [`Error::Syntax`] with the line of invalid declarations, of names with an undeclared prefix, and of classes that
    /// are not an entity of the model.
    pub fn parse(file: &str, text: &str) -> Result<Self> {
        let mut reader = ModelReader::default();
        for (number, line) in text.lines().enumerate() {
            reader
                .line(line)
                .map_err(|m| at(file, number + 1, line, m))?;
        }
        let lines = text.lines().count();
        if reader.group.is_some() || reader.kind.is_some() {
            return Err(at(
                file,
                lines,
                "",
                "the file ends inside of a <type>".into(),
            ));
        }
        // Kinds may be declared after the associations and classes that use them.
        let mut model = reader.model;
        for (line, text, pending) in reader.pending {
            let association = pending
                .resolve(&model)
                .map_err(|m| at(file, line, &text, m))?;
            model.associations.push(association);
        }
        for (line, text, class) in reader.classes {
            check_class(&model, &class).map_err(|m| at(file, line, &text, m))?;
        }
        Ok(model)
    }
}

fn at(file: &str, line: usize, text: &str, message: String) -> Error {
    let text: String = text.chars().take(100).collect();
    Error::Syntax {
        at: Location {
            file: file.to_owned(),
            line: line as u64,
            column: 0,
        },
        message,
        text: (!text.is_empty()).then_some(text),
    }
}

fn check_class(model: &WatdivModel, class: &str) -> Result<(), String> {
    match model.entity(class) {
        Some((kind, number)) if number < model.kinds[kind].count => Ok(()),
        _ => Err(format!(
            "<{class}> is not an entity of this model, so nothing can be an instance of it"
        )),
    }
}

/// An association whose kinds are not resolved yet.
struct PendingAssociation {
    association: Association,
    subject: String,
    object: String,
}

impl PendingAssociation {
    fn resolve(mut self, model: &WatdivModel) -> Result<Association, String> {
        let find = |iri: &str| {
            model
                .kind(iri)
                .ok_or_else(|| format!("no <type> for <{iri}>"))
        };
        self.association.subject = find(&self.subject)?;
        self.association.object = find(&self.object)?;
        let a = &self.association;
        for class in a.subject_class.iter().chain(&a.object_class) {
            check_class(model, class)?;
        }
        Ok(self.association)
    }
}

#[derive(Default)]
struct ModelReader {
    model: WatdivModel,
    kind: Option<EntityKind>,
    group: Option<AttributeGroup>,
    /// Associations with number and text of their lines, which are resolved at the end of the file.
    pending: Vec<(usize, String, PendingAssociation)>,
    classes: Vec<(usize, String, String)>,
    lines: usize,
    declarations: usize,
}

impl ModelReader {
    fn line(&mut self, line: &str) -> Result<(), String> {
        self.lines += 1;
        let mut words = line.split_whitespace();
        let Some(first) = words.next() else {
            return Ok(());
        };
        if first.starts_with("//") || first == "#statistics" {
            return Ok(());
        }
        self.declarations += 1;
        if self.declarations > MOST_DECLARATIONS {
            return Err(format!(
                "a model has at most {MOST_DECLARATIONS} declarations"
            ));
        }
        let words: Vec<&str> = words.collect();
        match first {
            "#namespace" => self.namespace(&words),
            "<type>" | "<type*>" => self.open_kind(first == "<type>", &words),
            "</type>" => self.close_kind(),
            "<pgroup>" => self.open_group(line, &words),
            "</pgroup>" => self.close_group(),
            "#predicate" => self.attribute(&words),
            "#association" => self.association(line, &words),
            _ => Err(format!(
                "'{first}' is not a declaration: #namespace, <type>, <type*>, <pgroup>, #predicate, #association"
            )),
        }
    }

    fn expand(&self, name: &str) -> Result<String, String> {
        let iri = self
            .model
            .expand(name)
            .ok_or_else(|| format!("'{name}' has no prefix that a #namespace declares"))?;
        check_iri(&iri)?;
        Ok(iri)
    }

    fn namespace(&mut self, words: &[&str]) -> Result<(), String> {
        let [word] = words else {
            return Err("write #namespace PREFIX=IRI".into());
        };
        let (prefix, iri) = word.split_once('=').ok_or("write #namespace PREFIX=IRI")?;
        check_iri(iri)?;
        if !prefix.bytes().all(|b| b.is_ascii_alphanumeric()) {
            return Err(format!("'{prefix}' is not a prefix: letters and digits"));
        }
        if self.model.namespaces.iter().any(|(p, _)| p == prefix) {
            return Err(format!("the prefix '{prefix}' is declared twice"));
        }
        self.model
            .namespaces
            .push((prefix.to_owned(), iri.to_owned()));
        Ok(())
    }

    fn open_kind(&mut self, scales: bool, words: &[&str]) -> Result<(), String> {
        if self.kind.is_some() {
            return Err("a <type> begins inside of another; write </type> first".into());
        }
        let [name, count] = words else {
            return Err("write <type> NAME COUNT".into());
        };
        let iri = self.expand(name)?;
        if self.model.kind(&iri).is_some() {
            return Err(format!("<{iri}> is declared twice"));
        }
        self.kind = Some(EntityKind {
            iri,
            count: number(count, "a count")?,
            scales,
            groups: vec![],
        });
        Ok(())
    }

    fn close_kind(&mut self) -> Result<(), String> {
        if self.group.is_some() {
            return Err("</type> inside of a <pgroup>; write </pgroup> first".into());
        }
        let kind = self.kind.take().ok_or("</type> without <type>")?;
        self.model.kinds.push(kind);
        Ok(())
    }

    fn open_group(&mut self, line: &str, words: &[&str]) -> Result<(), String> {
        if self.kind.is_none() || self.group.is_some() {
            return Err("a <pgroup> begins inside of a <type>, and not inside of another".into());
        }
        if words.len() > 2 {
            return Err("write <pgroup> PROBABILITY @CLASS, or less".into());
        }
        let class = words.get(1).map(|w| self.class(w)).transpose()?.flatten();
        if let Some(c) = &class {
            self.classes.push((self.lines, line.to_owned(), c.clone()));
        }
        self.group = Some(AttributeGroup {
            probability: words.first().map_or(Ok(1.0), |w| probability(w))?,
            class,
            attributes: vec![],
        });
        Ok(())
    }

    fn close_group(&mut self) -> Result<(), String> {
        let group = self.group.take().ok_or("</pgroup> without <pgroup>")?;
        let kind = self.kind.as_mut().ok_or("</pgroup> outside of a <type>")?;
        kind.groups.push(group);
        Ok(())
    }

    fn attribute(&mut self, words: &[&str]) -> Result<(), String> {
        let (name, values, range, drawn) = match words {
            [n, v] => (n, v, None, None),
            [n, v, a, b] => (n, v, Some((*a, *b)), None),
            [n, v, a, b, d] => (n, v, Some((*a, *b)), Some(*d)),
            _ => return Err("write #predicate NAME integer|string|name|date MIN MAX DISTRIBUTION; ranges and distribution may be missing".into()),
        };
        let attribute = LiteralProperty {
            property: self.expand(name)?,
            values: range_of(values, range)?,
            distribution: drawn.map_or(Ok(Distribution::Uniform), distribution)?,
        };
        let group = self.group.as_mut();
        group
            .ok_or("#predicate outside of a <pgroup>")?
            .attributes
            .push(attribute);
        Ok(())
    }

    fn association(&mut self, line: &str, words: &[&str]) -> Result<(), String> {
        if self.kind.is_some() {
            return Err("#association inside of a <type>; write </type> first".into());
        }
        if !matches!(words.len(), 3 | 5 | 6 | 7 | 9) {
            return Err("write #association SUBJECT PROPERTY OBJECT 1|2 MOST[DISTRIBUTION] COVER DISTRIBUTION @CLASS|@null @CLASS|@null; the last two, the distribution, the cover and both numbers may be missing".into());
        }
        let (most, spread) = match words.get(4) {
            None => (1, None),
            Some(word) => match word.split_once('[') {
                None => (number(word, "a number of statements")?, None),
                Some((count, spread)) => {
                    let spread = spread.strip_suffix(']').ok_or("the ] is missing")?;
                    let count = number(count, "a number of statements")?;
                    (count, Some(distribution(spread)?))
                }
            },
        };
        let pending = PendingAssociation {
            association: Association {
                subject: 0,
                property: self.expand(words[1])?,
                object: 0,
                exclusive: match words.get(3) {
                    None => true,
                    Some(word) => number(word, "a number of statements")? == 1,
                },
                most,
                spread,
                cover: words.get(5).map_or(Ok(1.0), |w| probability(w))?,
                choice: words
                    .get(6)
                    .map_or(Ok(Distribution::Uniform), |w| distribution(w))?,
                subject_class: words.get(7).map(|w| self.class(w)).transpose()?.flatten(),
                object_class: words.get(8).map(|w| self.class(w)).transpose()?.flatten(),
            },
            subject: self.expand(words[0])?,
            object: self.expand(words[2])?,
        };
        self.pending.push((self.lines, line.to_owned(), pending));
        Ok(())
    }

    /// Reads a class, such as `@wsdbm:Role2`; `@null` for none.
    fn class(&self, word: &str) -> Result<Option<String>, String> {
        let name = word
            .strip_prefix('@')
            .ok_or_else(|| format!("'{word}' is not a class: write @ before it"))?;
        if name.eq_ignore_ascii_case("null") {
            return Ok(None);
        }
        self.expand(name).map(Some)
    }
}

fn number(word: &str, what: &str) -> Result<u32, String> {
    word.parse().map_err(|_| format!("'{word}' is not {what}"))
}

fn probability(word: &str) -> Result<f64, String> {
    match word.parse::<f64>() {
        Ok(p) if (0.0..=1.0).contains(&p) => Ok(p),
        _ => Err(format!("'{word}' is not a probability from 0 to 1")),
    }
}

fn distribution(word: &str) -> Result<Distribution, String> {
    Distribution::parse(word)
        .ok_or_else(|| format!("'{word}' is not a distribution: uniform, normal or zipfian"))
}

fn range_of(kind: &str, range: Option<(&str, &str)>) -> Result<AttributeValues, String> {
    fn ends<T: PartialOrd>(
        range: Option<(&str, &str)>,
        default: (T, T),
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<(T, T), String> {
        let Some((a, b)) = range else {
            return Ok(default);
        };
        let end = |w: &str| read(w).ok_or_else(|| format!("'{w}' is not an end of the range"));
        let (low, high) = (end(a)?, end(b)?);
        if low > high {
            return Err(format!("the range from '{a}' to '{b}' is empty"));
        }
        Ok((low, high))
    }
    let words = || {
        let default = (FIRST_WORD.to_owned(), LAST_WORD.to_owned());
        ends(range, default, |w| Some(w.to_owned()))
    };
    Ok(match kind.to_ascii_lowercase().as_str() {
        "integer" => {
            // Numbers must be exact as doubles, since a position in the range is drawn as a double.
            let within = |w: &str| {
                i64::from_str(w)
                    .ok()
                    .filter(|n| n.unsigned_abs() <= 1 << 52)
            };
            let (a, b) = ends(range, (0, 65_535), within)?;
            AttributeValues::Integer(a, b)
        }
        "date" => {
            let (a, b) = ends(range, (Day(0), LAST_DAY), Day::parse)?;
            AttributeValues::Date(a, b)
        }
        "string" => words().map(|(a, b)| AttributeValues::Words(a, b))?,
        "name" => words().map(|(a, b)| AttributeValues::Name(a, b))?,
        _ => {
            return Err(format!(
                "'{kind}' is not a kind of literal: integer, string, name or date"
            ));
        }
    })
}

/// Checks that an IRI needs no escapes, since IRIs are written unchanged.
fn check_iri(iri: &str) -> Result<(), String> {
    let bad = |c: char| c <= ' ' || "<>\"{}|^`\\".contains(c);
    if !iri.contains(':') || iri.contains(bad) || iri.len() > 1000 {
        return Err(format!("'{iri}' is not an IRI"));
    }
    Ok(())
}
