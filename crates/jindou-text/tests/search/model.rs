//! Resources whose labels and names consist of known words, and a search that examines all of them.

use super::support::Rng;
use std::collections::BTreeSet;

/// Words as written in labels, with their folded forms.
pub const WORDS: [(&str, &str); 12] = [
    ("New", "new"),
    ("newton", "newton"),
    ("York", "york"),
    ("Zürich", "zurich"),
    ("STRASSE", "strasse"),
    ("Straße", "strasse"),
    ("école", "ecole"),
    ("Bern", "bern"),
    ("Berlin", "berlin"),
    ("berliner", "berliner"),
    ("Λόγος", "λογοσ"),
    ("12", "12"),
];
const JOINTS: [&str; 6] = [" ", " ", ", ", " - ", "_", "! "];
/// Properties, and true for those whose objects are labels.
const PROPERTIES: [(&str, bool); 4] = [
    ("http://www.w3.org/2000/01/rdf-schema#label", true),
    ("http://www.w3.org/2004/02/skos/core#prefLabel", true),
    ("http://xmlns.com/foaf/0.1/name", true),
    ("http://e/note", false),
];
pub const LANGUAGES: [Option<&str>; 4] = [None, Some("en"), Some("de"), Some("de-ch")];

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Quad {
    pub graph: Option<usize>,
    pub subject: usize,
    pub property: usize,
    pub text: String,
    pub words: Vec<&'static str>,
    pub language: Option<&'static str>,
}

impl Quad {
    fn triple(&self, model: &Model) -> String {
        let tag = self.language.map_or(String::new(), |l| format!("@{l}"));
        format!(
            "<http://e/{}> <{}> \"{}\"{tag} .",
            model.subjects[self.subject].0, PROPERTIES[self.property].0, self.text
        )
    }

    fn is_seen(&self, union: bool) -> bool {
        union || self.graph.is_none()
    }
}

#[derive(Clone)]
pub struct Model {
    /// Local names, each with the folded forms of its runs and their parts.
    pub subjects: Vec<(String, Vec<String>)>,
    pub quads: BTreeSet<Quad>,
}

/// Sort key of a result: how well it matches, whether by its IRI, and the number of words.
pub type Key = (usize, usize, usize);

/// How well words match a query; `None` if one is missing. Does not use the index's folding and matching.
fn fit(words: &[String], asked: &[&str]) -> Option<usize> {
    let (last, others) = asked.split_last()?;
    let has = others.iter().all(|a| words.iter().any(|w| w == a))
        && words.iter().any(|w| w.starts_with(last));
    if !has {
        return None;
    }
    let same = |n: usize| words.len() >= n && (0..n).all(|i| words[i] == asked[i]);
    Some(if same(asked.len()) {
        usize::from(words.len() != asked.len())
    } else if same(others.len()) && words.get(others.len()).is_some_and(|w| w.starts_with(last)) {
        2
    } else {
        3
    })
}

impl Model {
    pub fn random(rng: &mut Rng, subjects: usize, quads: usize) -> Self {
        let latin: Vec<&str> = WORDS
            .iter()
            .map(|w| w.1)
            .filter(|w| w.is_ascii() && *w != "12")
            .collect();
        let capital = |w: &str| w[..1].to_uppercase() + &w[1..];
        let mut model = Self {
            subjects: vec![],
            quads: BTreeSet::new(),
        };
        for n in 0..subjects {
            let (a, b) = (*rng.pick(&latin), *rng.pick(&latin));
            let words = [format!("{a}{b}{n}"), a.into(), b.into(), n.to_string()];
            let name = format!("{}{}{n}", capital(a), capital(b));
            model.subjects.push((name, words.into()));
        }
        for _ in 0..quads {
            let quad = model.quad(rng);
            model.quads.insert(quad);
        }
        model
    }

    fn quad(&self, rng: &mut Rng) -> Quad {
        let chosen: Vec<_> = (0..1 + rng.below(4)).map(|_| *rng.pick(&WORDS)).collect();
        let mut text = String::new();
        for (i, (written, _)) in chosen.iter().enumerate() {
            if i > 0 {
                text += rng.pick::<&str>(&JOINTS);
            }
            text += written;
        }
        Quad {
            graph: [None, None, Some(1), Some(2)][rng.below(4)],
            subject: rng.below(self.subjects.len()),
            property: rng.below(PROPERTIES.len()),
            text,
            words: chosen.iter().map(|w| w.1).collect(),
            language: *rng.pick(&LANGUAGES),
        }
    }

    fn block(&self, quad: &Quad) -> String {
        match quad.graph {
            None => quad.triple(self),
            Some(g) => format!("GRAPH <http://graphs/{g}> {{ {} }}", quad.triple(self)),
        }
    }

    pub fn trig(&self) -> String {
        self.quads.iter().map(|q| self.block(q) + "\n").collect()
    }

    /// Adds and removes `count` quads, and returns the change as an update.
    pub fn change(&mut self, rng: &mut Rng, count: usize) -> String {
        let mut added = vec![];
        let mut removed = vec![];
        for _ in 0..count {
            let quad = self.quad(rng);
            if self.quads.insert(quad.clone()) {
                added.push(self.block(&quad));
            }
            if rng.below(3) == 0 {
                let at = rng.below(self.quads.len());
                if let Some(quad) = self.quads.iter().nth(at).cloned() {
                    self.quads.remove(&quad);
                    removed.push(self.block(&quad));
                }
            }
        }
        // The removed quads may include added ones, so they are deleted afterwards.
        format!(
            "INSERT DATA {{ {} }} ; DELETE DATA {{ {} }}",
            added.join(" "),
            removed.join(" ")
        )
    }

    /// The resources that a search for these folded words must find, with their sort keys.
    pub fn find(&self, asked: &[&str], union: bool) -> Vec<(String, Key)> {
        let mut found = vec![];
        for (n, (name, parts)) in self.subjects.iter().enumerate() {
            let own = || {
                self.quads
                    .iter()
                    .filter(|q| q.subject == n && q.is_seen(union))
            };
            let labels = own().filter(|q| PROPERTIES[q.property].1).filter_map(|q| {
                let words: Vec<String> = q.words.iter().map(|w| (*w).to_owned()).collect();
                Some((fit(&words, asked)?, 0, words.len()))
            });
            let iri = own()
                .next()
                .and_then(|_| Some((fit(parts, asked)?, 1, parts.len())));
            if let Some(key) = labels.chain(iri).min() {
                found.push((name.clone(), key));
            }
        }
        found
    }

    /// The label of a resource that is preferred in German, with its language tag.
    pub fn german(&self, subject: usize, union: bool) -> Option<(String, Option<String>)> {
        let rank = |l: Option<&str>| match l {
            Some("de") => 0,
            Some("de-ch") => 1,
            None => 2,
            Some(_) => 3,
        };
        let own = self
            .quads
            .iter()
            .filter(|q| q.subject == subject && q.is_seen(union) && PROPERTIES[q.property].1);
        let best = own.min_by_key(|q| (rank(q.language), q.property, q.text.clone()));
        best.map(|q| (q.text.clone(), q.language.map(str::to_owned)))
    }
}
