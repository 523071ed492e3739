//! The quads of a test, with the words of each text.

use jindou_testing::Rng;
use std::collections::BTreeSet;

pub const WORDS: [&str; 12] = [
    "apple", "pear", "plum", "fig", "grape", "quince", "kiwi", "lemon", "lime", "mango", "melon",
    "peach",
];

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Object {
    /// Words, joined by spaces, and a language.
    Text(Vec<String>, Option<&'static str>),
    Number(u64),
    Node(String),
}

impl Object {
    pub fn text(&self) -> Option<String> {
        match self {
            Self::Text(words, _) => Some(words.join(" ")),
            _ => None,
        }
    }

    /// The words, in lower case; `None` for an object that is not text.
    pub fn words(&self) -> Option<Vec<String>> {
        match self {
            Self::Text(words, _) => Some(words.iter().map(|w| w.to_lowercase()).collect()),
            _ => None,
        }
    }

    fn turtle(&self) -> String {
        match self {
            Self::Text(words, language) => {
                let tag = language.map_or(String::new(), |l| format!("@{l}"));
                format!("\"{}\"{tag}", words.join(" "))
            }
            Self::Number(n) => n.to_string(),
            Self::Node(name) => format!(":{name}"),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Quad {
    pub subject: String,
    pub predicate: &'static str,
    pub object: Object,
}

#[derive(Default)]
pub struct Model {
    quads: BTreeSet<Quad>,
}

fn object(rng: &mut Rng) -> Object {
    match rng.below(10) {
        0 => Object::Number(rng.below(50) as u64),
        1 => Object::Node(format!("s{}", rng.below(50))),
        n => {
            let mut words: Vec<String> = (0..1 + rng.below(6))
                .map(|_| rng.one(&WORDS).to_owned())
                .collect();
            if rng.below(4) == 0 {
                words[0] = words[0].to_uppercase();
            }
            // A number that makes most texts different.
            words.push(format!("n{}", rng.below(1000)));
            Object::Text(words, if n == 2 { Some("en") } else { None })
        }
    }
}

fn quad(rng: &mut Rng) -> Quad {
    let subject = format!("s{}", rng.below(200));
    if rng.below(4) == 0 {
        let object = Object::Node(format!("k{}", rng.below(4)));
        return Quad {
            subject,
            predicate: "kind",
            object,
        };
    }
    let predicate = if rng.below(5) == 0 { "note" } else { "text" };
    Quad {
        subject,
        predicate,
        object: object(rng),
    }
}

impl Model {
    pub fn random(rng: &mut Rng, count: usize) -> Self {
        let quads = (0..count).map(|_| quad(rng)).collect();
        Self { quads }
    }

    fn line(q: &Quad) -> String {
        format!(":{} :{} {} .\n", q.subject, q.predicate, q.object.turtle())
    }

    pub fn trig(&self) -> String {
        let lines: String = self.quads.iter().map(Self::line).collect();
        format!("@prefix : <http://e/> .\n{lines}")
    }

    /// An update that adds some quads and removes others.
    pub fn change(&mut self, rng: &mut Rng, count: usize) -> String {
        let (mut added, mut removed) = (String::new(), String::new());
        let all: Vec<Quad> = self.quads.iter().cloned().collect();
        for _ in 0..count {
            let gone = all[rng.below(all.len())].clone();
            if rng.below(2) == 0 && self.quads.remove(&gone) {
                removed += &Self::line(&gone);
            }
        }
        for _ in 0..count {
            let mut new = quad(rng);
            if rng.below(3) == 0 {
                // An existing term as the object of a new quad.
                new.object = all[rng.below(all.len())].object.clone();
            }
            added += &Self::line(&new);
            self.quads.insert(new);
        }
        format!("PREFIX : <http://e/> DELETE DATA {{ {removed} }} ; INSERT DATA {{ {added} }}")
    }

    pub fn is_of_kind(&self, subject: &str, kind: &str) -> bool {
        let object = Object::Node(kind.to_owned());
        let subject = subject.to_owned();
        self.quads.contains(&Quad {
            subject,
            predicate: "kind",
            object,
        })
    }

    /// Subjects of the quads for which `f` is true: one per quad, sorted.
    pub fn subjects(&self, f: impl Fn(&Quad) -> bool) -> Vec<String> {
        let all = self.quads.iter().filter(|q| f(q));
        all.map(|q| q.subject.clone()).collect()
    }
}
