//! Hostile texts: each construct of SPARQL and of RDF's syntaxes, repeated until the text has the requested length.

use jindou_testing::attack::Recipe;

/// The shapes, one a line: the kind of request that sends it, its name, and a recipe in the notation of [`Recipe`],
/// with `N` for the number of repetitions, `↵` for a line feed and `␁` for the control character 1.
const SHAPES: &str = include_str!("shapes.txt");

/// The kind of request that sends a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To {
    Query,
    Prepared,
    Update,
    /// `PUT /store` with a document of this media type.
    Store(&'static str),
}

/// A text with a part that is repeated.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub name: &'static str,
    pub to: To,
    recipe: &'static str,
}

impl Shape {
    /// The text with about this many bytes.
    pub fn text(&self, bytes: usize) -> String {
        let repeated = |n: usize| -> Recipe {
            let recipe = self.recipe.replace("⟪N", &format!("⟪{n}"));
            let recipe = recipe.replace('↵', "\n").replace('␁', "\u{1}");
            recipe.parse().unwrap_or_else(|e| panic!("{recipe}: {e}"))
        };
        let mut n = 1;
        for bit in (0..usize::BITS - 1).rev().map(|b| 1usize << b) {
            if bit <= bytes && repeated(n + bit).bytes() <= bytes {
                n += bit;
            }
        }
        repeated(n).text(usize::MAX)
    }
}

fn all() -> impl Iterator<Item = Shape> {
    SHAPES.lines().map(|line| {
        let (to, rest) = line.split_once(' ').expect("a kind of request");
        let (name, recipe) = rest.split_once(": ").expect("a name");
        let to = match to {
            "query" => To::Query,
            "prepared" => To::Prepared,
            "update" => To::Update,
            media => To::Store(media),
        };
        Shape { name, to, recipe }
    })
}

/// All hostile queries.
pub fn queries() -> Vec<Shape> {
    all()
        .filter(|s| matches!(s.to, To::Query | To::Prepared))
        .collect()
}

/// All hostile updates.
pub fn updates() -> Vec<Shape> {
    all().filter(|s| s.to == To::Update).collect()
}

/// All hostile documents.
pub fn documents() -> Vec<Shape> {
    all().filter(|s| matches!(s.to, To::Store(_))).collect()
}
