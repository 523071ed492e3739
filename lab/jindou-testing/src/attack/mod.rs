//! Random hostile texts: queries, updates and documents that use all constructs of the languages, with very many, very
//! long, deeply nested, wide or repeated parts, and lengths of up to megabytes. A text is described by a [`Recipe`] of
//! one line, so that a text that reveals a fault can be reported, replayed and reduced.
//!
//! Texts use the IRIs of [`data`].

mod cross;
mod damage;
mod document;
mod expression;
mod grown;
mod maker;
mod pattern;
mod query;
mod recipe;
mod term;
mod update;

pub use damage::Damage;
pub use recipe::Recipe;

use crate::random::Rng;
use maker::Maker;
use std::fmt::Write as _;

/// The language of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// A SPARQL query.
    Query,
    /// A SPARQL update.
    Update,
    /// An RDF document of this media type, or a body of `multipart/form-data` with the boundary [`BOUNDARY`].
    Document(&'static str),
}

/// Boundary of the parts of `multipart/form-data`.
pub const BOUNDARY: &str = "boundary";

/// A hostile text.
#[derive(Clone, Debug)]
pub struct Attack {
    /// The language of the text, which damage may make invalid.
    pub language: Language,
    /// The text before it is damaged.
    pub recipe: Recipe,
    /// Damage to the text, if any.
    pub damage: Option<Damage>,
    /// Values of variables, as N-Triples terms, for interfaces that take such values with a query.
    pub values: Vec<(String, Recipe)>,
}

impl Attack {
    /// An undamaged text of this recipe.
    pub fn new(language: Language, recipe: Recipe) -> Self {
        Self {
            language,
            recipe,
            damage: None,
            values: vec![],
        }
    }

    /// A random query of at most about `most` bytes. Most queries are much shorter: all orders of magnitude of the
    /// length are equally likely.
    pub fn query(rng: &mut Rng, most: usize) -> Self {
        Self::random(rng, most, Language::Query)
    }

    /// A random update, of lengths as for [`Self::query`].
    pub fn update(rng: &mut Rng, most: usize) -> Self {
        Self::random(rng, most, Language::Update)
    }

    /// A random document, of lengths as for [`Self::query`].
    pub fn document(rng: &mut Rng, most: usize) -> Self {
        let media = rng.one(&document::MEDIA);
        Self::random(rng, most, Language::Document(media))
    }

    fn random(rng: &mut Rng, most: usize, language: Language) -> Self {
        let bytes = size(rng, most);
        let damage = rng.chance(12).then(|| Damage::random(rng));
        let mut maker = Maker::new(rng);
        let recipe = match language {
            Language::Query => maker.query(bytes),
            Language::Update => maker.update(bytes),
            Language::Document(media) => maker.document(media, bytes),
        };
        Self {
            language,
            recipe,
            damage,
            values: maker.values,
        }
    }

    /// The text, cut off after about `most` bytes.
    pub fn text(&self, most: usize) -> String {
        let text = self.recipe.text(most);
        match &self.damage {
            None => text,
            Some(damage) => damage.done_to(text),
        }
    }

    /// Smaller attacks, the smallest first. To reduce an attack that reveals a fault, the caller tests which of them
    /// still reveal it.
    pub fn smaller(&self) -> Vec<Self> {
        let mut out = vec![];
        if self.damage.is_some() {
            out.push(Self {
                damage: None,
                ..self.clone()
            });
        }
        for i in 0..self.values.len() {
            let mut fewer = self.clone();
            fewer.values.remove(i);
            out.push(fewer);
            out.extend(self.values[i].1.smaller().into_iter().map(|value| {
                let mut other = self.clone();
                other.values[i].1 = value;
                other
            }));
        }
        out.extend(self.recipe.smaller().into_iter().map(|recipe| Self {
            recipe,
            ..self.clone()
        }));
        out
    }
}

/// A random size: all orders of magnitude from 2 KiB to `most` are equally likely, except that one size in eight is
/// `most`.
fn size(rng: &mut Rng, most: usize) -> usize {
    let least = (2 << 10).min(most);
    if rng.chance(12) || most <= least {
        return most;
    }
    let doublings = (most / least).ilog2() as usize + 1;
    let low = least << rng.below(doublings);
    (low + rng.below(low)).min(most)
}

/// The data for attacks, as N-Quads: this many subjects with seven or eight statements each, most of them in the
/// default graph, the others in ten named graphs; four literals of one to two megabytes; and numbers of up to 9,000
/// digits.
pub fn data(subjects: usize) -> String {
    let mut out = String::new();
    for i in 0..subjects {
        let (next, graph) = ((i * 7 + 1) % subjects, i % 10);
        let integer = "http://www.w3.org/2001/XMLSchema#integer";
        let _ = write!(
            out,
            "<http://e/s{i}> <http://e/p{}> <http://e/s{next}> .\n\
             <http://e/s{i}> <http://e/p{}> <http://e/s{}> .\n\
             <http://e/s{i}> <http://e/n> \"{i}\"^^<{integer}> .\n\
             <http://e/s{i}> <http://e/t> \"text {i}\" .\n\
             <http://e/s{i}> <http://e/t> \"texte {}\"@fr .\n\
             <http://e/s{i}> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://e/C{}> .\n\
             <http://e/s{i}> <http://e/p{}> <http://e/s{next}> <http://e/g{graph}> .\n",
            i % 5,
            (i + 1) % 5,
            i / 2,
            i % 100,
            i % 3,
            i % 5,
        );
        if i % 10 == 0 {
            let _ = writeln!(out, "_:b{i} <http://e/n> \"{i}\" <http://e/g{graph}> .");
        }
    }
    for (i, unit) in ["y", "é", "\\\"", "<"].into_iter().enumerate() {
        let long = unit.repeat(1 << 20);
        let _ = writeln!(out, "<http://e/s{i}> <http://e/big> \"{i}{long}\" .");
        let digits = "7".repeat(3000 * i + 30);
        let decimal = "http://www.w3.org/2001/XMLSchema#decimal";
        let _ = writeln!(
            out,
            "<http://e/s{i}> <http://e/digits> \"{i}{digits}.5\"^^<{decimal}> ."
        );
    }
    out
}

#[cfg(test)]
mod tests;
