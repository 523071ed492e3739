//! Tests that random texts are reproducible, vary in length, are mostly accepted by a parser, and contain all
//! constructs.

use super::*;

const MOST: usize = 64 << 10;

fn queries(seed: u64, n: usize) -> Vec<Attack> {
    let mut rng = Rng::new(seed);
    (0..n).map(|_| Attack::query(&mut rng, MOST)).collect()
}

#[test]
fn a_seed_gives_the_same_texts_and_recipes_replay_them() {
    for (a, b) in queries(1, 200).iter().zip(queries(1, 200)) {
        let text = a.text(MOST);
        assert_eq!(text, b.text(MOST));
        let read: Recipe = a.recipe.to_string().parse().expect("a recipe");
        assert_eq!(read.text(MOST), a.recipe.text(MOST));
        assert!(text.len() <= 2 * MOST);
    }
    let differs = |(a, b): (&Attack, &Attack)| a.recipe != b.recipe;
    assert!(
        queries(1, 50)
            .iter()
            .zip(&queries(2, 50))
            .filter(|p| differs(*p))
            .count()
            > 40
    );
}

#[test]
fn recipes_are_short_and_texts_of_all_sizes() {
    let all = queries(3, 1000);
    let sizes: Vec<usize> = all.iter().map(|a| a.text(MOST).len()).collect();
    for (low, high) in [
        (0, 4 << 10),
        (4 << 10, 16 << 10),
        (16 << 10, 32 << 10),
        (32 << 10, MOST + 1),
    ] {
        let n = sizes.iter().filter(|s| (low..high).contains(*s)).count();
        assert!(n > 50, "{n} texts of {low} to {high} bytes");
    }
    let mut lengths: Vec<usize> = all.iter().map(|a| a.recipe.to_string().len()).collect();
    lengths.sort_unstable();
    assert!(
        lengths[500] < 1000,
        "half of the recipes are longer than {} bytes",
        lengths[500]
    );
}

/// Most texts must be valid: a text that the parser rejects does not test planner and engine.
#[test]
fn most_texts_are_queries_and_updates() {
    let mut rng = Rng::new(4);
    let (mut queries, mut updates) = (0, 0);
    let mut refused = vec![];
    for _ in 0..200 {
        let query = Attack::query(&mut rng, 8 << 10);
        match spargebra::SparqlParser::new().parse_query(&query.text(16 << 10)) {
            Ok(_) => queries += 1,
            Err(e) => refused.push(format!("{e}: {}", query.recipe)),
        }
        let update = Attack::update(&mut rng, 8 << 10);
        match spargebra::SparqlParser::new().parse_update(&update.text(16 << 10)) {
            Ok(_) => updates += 1,
            Err(e) => refused.push(format!("{e}: {}", update.recipe)),
        }
    }
    assert!(
        queries > 150 && updates > 150,
        "{queries} of 200 queries, {updates} of 200 updates:\n{}",
        refused.join("\n")
    );
}

#[test]
fn every_construct_occurs_in_every_size() {
    let all = queries(5, 3000);
    let constructs = "\
        UNION; OPTIONAL; MINUS; EXISTS; NOT EXISTS; GRAPH; VALUES; BIND(; { SELECT; COUNT(; HAVING; GROUP BY; \
        ORDER BY; CONSTRUCT; DESCRIBE; ASK; SERVICE; IN (; FROM; PREFIX l:; BASE; !(; )*; )+; <<(; {|; $v; \
        ?x§; REGEX; IRI(; $0$0$0; <http://e/big>; <http://e/digits>";
    for construct in constructs.split("; ") {
        let sizes = all
            .iter()
            .filter(|a| a.recipe.to_string().contains(construct));
        let sizes: Vec<usize> = sizes.map(|a| a.recipe.bytes()).collect();
        let large = sizes.iter().filter(|s| **s > MOST / 4).count();
        assert!(
            sizes.len() > 5 && large > 2,
            "{construct}: {} texts, {large} large",
            sizes.len()
        );
    }
}
