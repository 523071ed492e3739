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
//! `//` or `#statistics` are ignored. Of the original's format, only what the published model uses is read: texts have
//! no ranges, and only the classes of an association may be missing.

use super::model::{
    Association, AttributeGroup, AttributeValues, Distribution, EntityKind, LiteralProperty,
    WatdivModel,
};
use crate::date::Day;

/// The end (exclusive) of dates without a range. The original takes the current day; a fixed day makes the data
/// repeatable.
const LAST_DAY: Day = Day(20_454);

impl WatdivModel {
    /// The model of the published data sets (10M, 100M, 1B triples are scales 100, 1000, 10000).
    pub fn standard() -> Self {
        Self::parse(include_str!("standard.txt"))
    }

    /// Reads a model from its text.
    ///
    /// # Panics
    /// If a line is not a declaration, or uses a prefix or a kind that no earlier line declares.
    pub fn parse(text: &str) -> Self {
        let mut model = Self::default();
        for (number, line) in text.lines().enumerate() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let read = model.declaration(&words);
            read.unwrap_or_else(|| panic!("line {} of a model: {line}", number + 1));
        }
        model
    }

    fn declaration(&mut self, words: &[&str]) -> Option<()> {
        match words {
            [] | ["#statistics", ..] | ["</pgroup>" | "</type>"] => {}
            [first, ..] if first.starts_with("//") => {}
            ["#namespace", declared] => {
                let (prefix, iri) = declared.split_once('=')?;
                self.namespaces.push((prefix.to_owned(), iri.to_owned()));
            }
            [first @ ("<type>" | "<type*>"), name, count] => self.kinds.push(EntityKind {
                iri: self.expand(name)?,
                count: count.parse().ok()?,
                scales: *first == "<type>",
                groups: vec![],
            }),
            ["<pgroup>", words @ ..] => {
                let probability = words.first().map(|word| word.parse());
                let group = AttributeGroup {
                    probability: probability.transpose().ok()?.unwrap_or(1.0),
                    class: self.class(words.get(1))?,
                    attributes: vec![],
                };
                self.kinds.last_mut()?.groups.push(group);
            }
            ["#predicate", name, kind, range @ ..] => {
                let attribute = LiteralProperty {
                    property: self.expand(name)?,
                    values: values(kind, range)?,
                    distribution: Distribution::parse(range.get(2).unwrap_or(&"uniform"))?,
                };
                let group = self.kinds.last_mut()?.groups.last_mut()?;
                group.attributes.push(attribute);
            }
            [
                "#association",
                s,
                p,
                o,
                objects,
                most,
                cover,
                choice,
                classes @ ..,
            ] => {
                let (most, spread) = match most.strip_suffix(']') {
                    None => (*most, None),
                    Some(both) => {
                        let (most, spread) = both.split_once('[')?;
                        (most, Some(Distribution::parse(spread)?))
                    }
                };
                self.associations.push(Association {
                    subject: self.kind(&self.expand(s)?)?,
                    property: self.expand(p)?,
                    object: self.kind(&self.expand(o)?)?,
                    exclusive: *objects == "1",
                    most: most.parse().ok()?,
                    spread,
                    cover: cover.parse().ok()?,
                    choice: Distribution::parse(choice)?,
                    subject_class: self.class(classes.first())?,
                    object_class: self.class(classes.get(1))?,
                });
            }
            _ => return None,
        }
        Some(())
    }

    /// Reads a class, such as `@wsdbm:Role2`; `@null` or no word for none.
    fn class(&self, word: Option<&&str>) -> Option<Option<String>> {
        match word {
            None | Some(&"@null") => Some(None),
            Some(word) => self.expand(word.strip_prefix('@')?).map(Some),
        }
    }
}

fn values(kind: &str, range: &[&str]) -> Option<AttributeValues> {
    Some(match (kind, range) {
        ("integer", []) => AttributeValues::Integer(0, 65_535),
        ("integer", [low, high, ..]) => {
            AttributeValues::Integer(low.parse().ok()?, high.parse().ok()?)
        }
        ("date", []) => AttributeValues::Date(Day(0), LAST_DAY),
        ("date", [low, high, ..]) => AttributeValues::Date(Day::parse(low)?, Day::parse(high)?),
        ("string", []) => AttributeValues::Words,
        ("name", []) => AttributeValues::Name,
        _ => return None,
    })
}
