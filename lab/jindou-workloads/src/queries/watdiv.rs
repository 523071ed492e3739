//! Queries over WatDiv: its 20 basic templates (L1 to L5 are chains, S1 to S7 stars, F1 to F5 snowflakes, C1 to C3
//! complex), and templates from files. A template has placeholders for constants; an instance replaces them by random
//! entities of a kind.

use crate::random::SplitMix;
use crate::watdiv::{Distribution, PlaceDraw, WatdivModel};
use jindou_model::{Error, Result};

/// Largest number of instances of a template that are created at once.
const MOST_INSTANCES: u32 = 1_000_000;

/// A query in which some constants are replaced by placeholders `%variable%`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    /// Short name, such as `L1`.
    pub name: String,
    /// The placeholders, and how their constants are drawn.
    pub mappings: Vec<Mapping>,
    /// SPARQL without PREFIX declarations; it uses prefixes of the model, and `%variable%` for each mapping.
    pub text: String,
}

/// A placeholder of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// The name between the percent signs.
    pub variable: String,
    /// The kind of the entities, as a prefixed name with a prefix of the model.
    pub kind: String,
}

/// A query without placeholders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    /// The template's name and the instance's number, such as `L1-0`.
    pub name: String,
    /// The template's name.
    pub template: String,
    /// SPARQL.
    pub text: String,
}

impl Template {
    /// Reads a template in the original's format: lines `#mapping VARIABLE KIND uniform`, then SPARQL.
    ///
    /// # Panics
    /// If another distribution is given, which no published template has.
    pub fn parse(name: &str, text: &str) -> Self {
        let (mut mappings, mut query) = (vec![], String::new());
        for line in text.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words[..] {
                ["#mapping", variable, kind, "uniform"] => mappings.push(Mapping {
                    variable: variable.to_owned(),
                    kind: kind.to_owned(),
                }),
                ["#mapping", ..] => panic!("{name}: {line}"),
                _ => {
                    query.push_str(line);
                    query.push('\n');
                }
            }
        }
        Self {
            name: name.to_owned(),
            mappings,
            text: query,
        }
    }

    /// `count` instances over a model's data at a scale; the same seed gives the same instances. A template without
    /// placeholders has one instance only.
    ///
    /// # Errors
    /// [`Error::Query`] if a mapping's kind is not in the model or has no entities, and if `count` is more than a
    /// million; [`Error::Limit`] as [`WatdivModel::population`].
    pub fn instances(
        &self,
        model: &WatdivModel,
        scale: u32,
        seed: u64,
        count: u32,
    ) -> Result<Vec<Instance>> {
        if count > MOST_INSTANCES {
            return Err(Error::Query(format!(
                "{count} instances of {} are too many; at most {MOST_INSTANCES}",
                self.name
            )));
        }
        let drawn = self
            .mappings
            .iter()
            .map(|m| self.open(m, model, scale))
            .collect::<Result<Vec<_>>>()?;
        let query = format!("{}{}", self.prefixes(model), self.text);
        let count = if drawn.is_empty() {
            count.min(1)
        } else {
            count
        };
        let stream = self
            .name
            .bytes()
            .fold(0, |s: u64, b| s << 8 ^ s >> 56 ^ u64::from(b));
        Ok((0..count)
            .map(|number| {
                let mut random = SplitMix::stream(seed, stream, number.into());
                let mut text = query.clone();
                for (placeholder, iri, places) in &drawn {
                    let entity = places.draw(&mut random);
                    text = text.replace(placeholder, &format!("<{iri}{entity}>"));
                }
                Instance {
                    name: format!("{}-{number}", self.name),
                    template: self.name.clone(),
                    text,
                }
            })
            .collect())
    }

    /// For a mapping: its placeholder, the IRI of its kind, and the distribution of its entities.
    fn open(
        &self,
        m: &Mapping,
        model: &WatdivModel,
        scale: u32,
    ) -> Result<(String, String, PlaceDraw)> {
        let unknown = |what: &str| Error::Query(format!("{}: {what} {}", self.name, m.kind));
        let iri = model.expand(&m.kind).unwrap_or_default();
        let kind = model
            .kind(&iri)
            .ok_or_else(|| unknown("the model has no"))?;
        let n = model.population(kind, scale)?;
        if n == 0 {
            return Err(unknown("at this scale there is no"));
        }
        let places = PlaceDraw::entities(Distribution::Uniform, n, None);
        Ok((format!("%{}%", m.variable), iri, places))
    }

    /// PREFIX declarations for the prefixes that occur in the text.
    fn prefixes(&self, model: &WatdivModel) -> String {
        let occurs = |prefix: &str| {
            let is_name = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
            let name = format!("{prefix}:");
            self.text
                .match_indices(&name)
                .any(|(at, _)| at == 0 || !is_name(self.text.as_bytes()[at - 1]))
        };
        model
            .namespaces()
            .iter()
            .filter(|(prefix, _)| occurs(prefix))
            .map(|(prefix, iri)| format!("PREFIX {prefix}: <{iri}>\n"))
            .collect()
    }
}

macro_rules! texts {
    ($($name:literal)*) => {
        [$(($name, include_str!(concat!("../../queries/watdiv/", $name, ".txt")))),*]
    };
}

/// Names and texts of the 20 basic templates.
const TEMPLATES: [(&str, &str); 20] = texts!(
    "L1" "L2" "L3" "L4" "L5" "S1" "S2" "S3" "S4" "S5" "S6" "S7" "F1" "F2" "F3" "F4" "F5" "C1" "C2" "C3"
);

/// The 20 basic templates, in the order L, S, F, C.
pub fn templates() -> Vec<Template> {
    TEMPLATES
        .iter()
        .map(|(name, text)| Template::parse(name, text))
        .collect()
}

/// `count` instances of each of [`templates`], over the standard model.
pub fn instances(scale: u32, seed: u64, count: u32) -> Result<Vec<Instance>> {
    let model = WatdivModel::standard();
    let mut all = vec![];
    for template in templates() {
        all.extend(template.instances(&model, scale, seed, count)?);
    }
    Ok(all)
}
