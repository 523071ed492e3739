//! Queries over WatDiv: its 20 basic templates (L1 to L5 are chains, S1 to S7 stars, F1 to F5 snowflakes, C1 to C3
//! complex), and templates from files. A template has placeholders for constants; an instance replaces them by random
//! entities of a kind.

use crate::random::SplitMix;
use crate::watdiv::{Distribution, PlaceDraw, WatdivModel, Zipf};
use jindou_model::{Error, Location, Result};
use std::sync::Arc;

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
    /// The distribution of the drawn entities.
    pub distribution: Distribution,
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
    /// Reads a template in the original's format: lines `#mapping VARIABLE KIND DISTRIBUTION` (the distribution may be
    /// missing), then SPARQL. `name` is the template's name, also in errors.
    ///
    /// # Errors
    /// [`Error::Syntax`] for an invalid `#mapping` line.
    pub fn parse(name: &str, text: &str) -> Result<Self> {
        let (mut mappings, mut query) = (vec![], String::new());
        for (number, line) in text.lines().enumerate() {
            let Some(rest) = line.trim_start().strip_prefix("#mapping") else {
                query.push_str(line);
                query.push('\n');
                continue;
            };
            let words: Vec<&str> = rest.split_whitespace().collect();
            let (variable, kind, drawn) = match words[..] {
                [v, k] => (v, k, "uniform"),
                [v, k, d] => (v, k, d),
                _ => return Err(wrong(name, number, line)),
            };
            mappings.push(Mapping {
                variable: variable.to_owned(),
                kind: kind.to_owned(),
                distribution: Distribution::parse(drawn)
                    .ok_or_else(|| wrong(name, number, line))?,
            });
        }
        Ok(Self {
            name: name.to_owned(),
            mappings,
            text: query,
        })
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
        let iri = model
            .expand(&m.kind)
            .ok_or_else(|| unknown("the model declares no prefix of"))?;
        let kind = model
            .kind(&iri)
            .ok_or_else(|| unknown("the model has no <type>"))?;
        let n = model.population(kind, scale)?;
        if n == 0 {
            return Err(unknown("at this scale there is no"));
        }
        let zipf = (m.distribution == Distribution::Zipfian).then(|| Arc::new(Zipf::new(n)));
        Ok((
            format!("%{}%", m.variable),
            iri,
            PlaceDraw::entities(m.distribution, n, zipf),
        ))
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

fn wrong(name: &str, number: usize, line: &str) -> Error {
    Error::Syntax {
        at: Location {
            file: name.to_owned(),
            line: number as u64 + 1,
            column: 0,
        },
        message: "write #mapping VARIABLE KIND uniform|normal|zipfian".into(),
        text: Some(line.chars().take(100).collect()),
    }
}

/// The 20 basic templates, in the order L, S, F, C.
#[must_use]
pub fn templates() -> Vec<Template> {
    TEMPLATES
        .iter()
        .map(|(name, open, select, patterns)| Template {
            name: (*name).to_owned(),
            mappings: open
                .iter()
                .map(|(variable, kind)| Mapping {
                    variable: (*variable).to_owned(),
                    kind: (*kind).to_owned(),
                    distribution: Distribution::Uniform,
                })
                .collect(),
            text: format!(
                "SELECT {select} WHERE {{\n{}}}\n",
                patterns
                    .iter()
                    .map(|p| format!("  {p} .\n"))
                    .collect::<String>()
            ),
        })
        .collect()
}

/// `count` instances of each of [`templates`], over the standard model.
///
/// # Errors
/// As [`Template::instances`].
pub fn instances(scale: u32, seed: u64, count: u32) -> Result<Vec<Instance>> {
    let model = WatdivModel::standard();
    let mut all = vec![];
    for template in templates() {
        all.extend(template.instances(&model, scale, seed, count)?);
    }
    Ok(all)
}

/// Name, mappings (variable and kind), selected variables, triple patterns.
type Basic = (
    &'static str,
    &'static [(&'static str, &'static str)],
    &'static str,
    &'static [&'static str],
);

const TEMPLATES: [Basic; 20] = [
    (
        "L1",
        &[("v1", "wsdbm:Website")],
        "?v0 ?v2 ?v3",
        &[
            "?v0 wsdbm:subscribes %v1%",
            "?v2 sorg:caption ?v3",
            "?v0 wsdbm:likes ?v2",
        ],
    ),
    (
        "L2",
        &[("v0", "wsdbm:City")],
        "?v1 ?v2",
        &[
            "%v0% gn:parentCountry ?v1",
            "?v2 wsdbm:likes wsdbm:Product0",
            "?v2 sorg:nationality ?v1",
        ],
    ),
    (
        "L3",
        &[("v2", "wsdbm:Website")],
        "?v0 ?v1",
        &["?v0 wsdbm:likes ?v1", "?v0 wsdbm:subscribes %v2%"],
    ),
    (
        "L4",
        &[("v1", "wsdbm:Topic")],
        "?v0 ?v2",
        &["?v0 og:tag %v1%", "?v0 sorg:caption ?v2"],
    ),
    (
        "L5",
        &[("v2", "wsdbm:City")],
        "?v0 ?v1 ?v3",
        &[
            "?v0 sorg:jobTitle ?v1",
            "%v2% gn:parentCountry ?v3",
            "?v0 sorg:nationality ?v3",
        ],
    ),
    (
        "S1",
        &[("v2", "wsdbm:Retailer")],
        "?v0 ?v1 ?v3 ?v4 ?v5 ?v6 ?v7 ?v8 ?v9",
        &[
            "?v0 gr:includes ?v1",
            "%v2% gr:offers ?v0",
            "?v0 gr:price ?v3",
            "?v0 gr:serialNumber ?v4",
            "?v0 gr:validFrom ?v5",
            "?v0 gr:validThrough ?v6",
            "?v0 sorg:eligibleQuantity ?v7",
            "?v0 sorg:eligibleRegion ?v8",
            "?v0 sorg:priceValidUntil ?v9",
        ],
    ),
    (
        "S2",
        &[("v2", "wsdbm:Country")],
        "?v0 ?v1 ?v3",
        &[
            "?v0 dc:Location ?v1",
            "?v0 sorg:nationality %v2%",
            "?v0 wsdbm:gender ?v3",
            "?v0 rdf:type wsdbm:Role2",
        ],
    ),
    (
        "S3",
        &[("v1", "wsdbm:ProductCategory")],
        "?v0 ?v2 ?v3 ?v4",
        &[
            "?v0 rdf:type %v1%",
            "?v0 sorg:caption ?v2",
            "?v0 wsdbm:hasGenre ?v3",
            "?v0 sorg:publisher ?v4",
        ],
    ),
    (
        "S4",
        &[("v1", "wsdbm:AgeGroup")],
        "?v0 ?v2 ?v3",
        &[
            "?v0 foaf:age %v1%",
            "?v0 foaf:familyName ?v2",
            "?v3 mo:artist ?v0",
            "?v0 sorg:nationality wsdbm:Country1",
        ],
    ),
    (
        "S5",
        &[("v1", "wsdbm:ProductCategory")],
        "?v0 ?v2 ?v3",
        &[
            "?v0 rdf:type %v1%",
            "?v0 sorg:description ?v2",
            "?v0 sorg:keywords ?v3",
            "?v0 sorg:language wsdbm:Language0",
        ],
    ),
    (
        "S6",
        &[("v3", "wsdbm:SubGenre")],
        "?v0 ?v1 ?v2",
        &[
            "?v0 mo:conductor ?v1",
            "?v0 rdf:type ?v2",
            "?v0 wsdbm:hasGenre %v3%",
        ],
    ),
    (
        "S7",
        &[("v3", "wsdbm:User")],
        "?v0 ?v1 ?v2",
        &[
            "?v0 rdf:type ?v1",
            "?v0 sorg:text ?v2",
            "%v3% wsdbm:likes ?v0",
        ],
    ),
    (
        "F1",
        &[("v1", "wsdbm:Topic")],
        "?v0 ?v2 ?v3 ?v4 ?v5",
        &[
            "?v0 og:tag %v1%",
            "?v0 rdf:type ?v2",
            "?v3 sorg:trailer ?v4",
            "?v3 sorg:keywords ?v5",
            "?v3 wsdbm:hasGenre ?v0",
            "?v3 rdf:type wsdbm:ProductCategory2",
        ],
    ),
    (
        "F2",
        &[("v8", "wsdbm:SubGenre")],
        "?v0 ?v1 ?v2 ?v4 ?v5 ?v6 ?v7",
        &[
            "?v0 foaf:homepage ?v1",
            "?v0 og:title ?v2",
            "?v0 rdf:type ?v3",
            "?v0 sorg:caption ?v4",
            "?v0 sorg:description ?v5",
            "?v1 sorg:url ?v6",
            "?v1 wsdbm:hits ?v7",
            "?v0 wsdbm:hasGenre %v8%",
        ],
    ),
    (
        "F3",
        &[("v3", "wsdbm:SubGenre")],
        "?v0 ?v1 ?v2 ?v4 ?v5 ?v6",
        &[
            "?v0 sorg:contentRating ?v1",
            "?v0 sorg:contentSize ?v2",
            "?v0 wsdbm:hasGenre %v3%",
            "?v4 wsdbm:makesPurchase ?v5",
            "?v5 wsdbm:purchaseDate ?v6",
            "?v5 wsdbm:purchaseFor ?v0",
        ],
    ),
    (
        "F4",
        &[("v3", "wsdbm:Topic")],
        "?v0 ?v1 ?v2 ?v4 ?v5 ?v6 ?v7 ?v8",
        &[
            "?v0 foaf:homepage ?v1",
            "?v2 gr:includes ?v0",
            "?v0 og:tag %v3%",
            "?v0 sorg:description ?v4",
            "?v0 sorg:contentSize ?v8",
            "?v1 sorg:url ?v5",
            "?v1 wsdbm:hits ?v6",
            "?v1 sorg:language wsdbm:Language0",
            "?v7 wsdbm:likes ?v0",
        ],
    ),
    (
        "F5",
        &[("v2", "wsdbm:Retailer")],
        "?v0 ?v1 ?v3 ?v4 ?v5 ?v6",
        &[
            "?v0 gr:includes ?v1",
            "%v2% gr:offers ?v0",
            "?v0 gr:price ?v3",
            "?v0 gr:validThrough ?v4",
            "?v1 og:title ?v5",
            "?v1 rdf:type ?v6",
        ],
    ),
    (
        "C1",
        &[],
        "?v0 ?v4 ?v6 ?v7",
        &[
            "?v0 sorg:caption ?v1",
            "?v0 sorg:text ?v2",
            "?v0 sorg:contentRating ?v3",
            "?v0 rev:hasReview ?v4",
            "?v4 rev:title ?v5",
            "?v4 rev:reviewer ?v6",
            "?v7 sorg:actor ?v6",
            "?v7 sorg:language ?v8",
        ],
    ),
    (
        "C2",
        &[],
        "?v0 ?v3 ?v4 ?v8",
        &[
            "?v0 sorg:legalName ?v1",
            "?v0 gr:offers ?v2",
            "?v2 sorg:eligibleRegion wsdbm:Country5",
            "?v2 gr:includes ?v3",
            "?v4 sorg:jobTitle ?v5",
            "?v4 foaf:homepage ?v6",
            "?v4 wsdbm:makesPurchase ?v7",
            "?v7 wsdbm:purchaseFor ?v3",
            "?v3 rev:hasReview ?v8",
            "?v8 rev:totalVotes ?v9",
        ],
    ),
    (
        "C3",
        &[],
        "?v0",
        &[
            "?v0 wsdbm:likes ?v1",
            "?v0 wsdbm:friendOf ?v2",
            "?v0 dc:Location ?v3",
            "?v0 foaf:age ?v4",
            "?v0 wsdbm:gender ?v5",
            "?v0 foaf:givenName ?v6",
        ],
    ),
];
