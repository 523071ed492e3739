//! The texts with which fuzzing begins.

use jindou_syntax::algebra::Function;
use jindou_testing::seeds::QUERIES;
use jindou_testing::{Rng, files_below, quads, query, shared_too};

/// Keywords and functions of SPARQL, and names from the data.
pub fn words() -> Vec<&'static str> {
    let functions = Function::all().iter().flat_map(|d| d.names);
    let words = WORDS.lines().chain(["# comment\n"]);
    words.chain(functions.copied()).collect()
}

/// Words other than names of functions.
const WORDS: &str = include_str!("words.txt");

/// Texts of this file, random queries, and those of the W3C's suites if they are available.
pub fn all(rng: &mut Rng) -> Vec<Vec<u8>> {
    let mut out: Vec<Vec<u8>> = QUERIES.iter().map(|t| t.as_bytes().to_vec()).collect();
    out.extend((0..200).map(|_| random(rng).into_bytes()));
    if let Some(suites) = shared_too("w3c/sparql") {
        let mut files = files_below(&suites);
        files.retain(|path| path.extension().is_some_and(|e| e == "rq"));
        let mut texts: Vec<_> = files.iter().flat_map(std::fs::read).collect();
        texts.sort();
        out.extend(texts);
    }
    out
}

/// A random query over names from the data.
pub fn random(rng: &mut Rng) -> String {
    let data = quads(rng);
    query(rng, &data).text
}
