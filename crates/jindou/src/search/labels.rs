//! The labels of given resources.

use super::sight::{LabelGraph, lookup_many};
use super::{LONGEST_LABEL, Label, LabelOptions};
use jindou_graph::Graph;
use jindou_model::term::{self, Parts};
use jindou_model::{Charge, Direction, Holder, MemoryBudget, NO_VERTEX, Result, VertexId};
use jindou_text::{Fit, Folder, SearchedTerms, WordQuery, count, folded};
use std::time::Instant;

/// Largest number of labels of one resource by one property that are compared.
const MOST_PER_LABEL: usize = 1000;

/// The label of each IRI in the best language; `None` for an IRI without a label.
///
/// # Errors
/// `Limit`, `Cancelled`, `Timeout`.
pub(super) fn of_iris(
    sight: &LabelGraph<'_>,
    iris: &[&str],
    options: &LabelOptions,
    memory: &MemoryBudget,
) -> Result<Vec<Option<Label>>> {
    let mut charge = Charge::new(Holder::Rest, memory);
    let bytes: usize = iris.iter().map(|iri| iri.len()).sum();
    charge.set((bytes + 64 * iris.len()) as u64)?;
    let ids = lookup_many(sight.snapshot, iris.iter().copied());
    of(sight, &ids, options, &mut charge)
}

/// Number of labels that are prefetched together.
const AHEAD: usize = 32;
/// Number of vertices whose labels are fetched in one round trip.
const TOGETHER: usize = 256;

/// Rank of a label's language: smaller is better. `tag` is `None` for a label without a language.
fn rank(languages: &[String], tag: Option<&str>) -> usize {
    let is = |tag: &str, of: &str| tag.eq_ignore_ascii_case(of);
    let within = |tag: &str, of: &str| {
        tag.get(..of.len()).is_some_and(|t| is(t, of))
            && tag.as_bytes().get(of.len()) == Some(&b'-')
    };
    let n = languages.len();
    let Some(tag) = tag else {
        return 2 * n;
    };
    let asked = languages.iter().enumerate().filter_map(|(i, l)| {
        match (is(tag, l), within(tag, l) || within(l, tag)) {
            (true, _) => Some(2 * i),
            (_, true) => Some(2 * i + 1),
            _ => None,
        }
    });
    asked.min().unwrap_or(match tag {
        "en" => 2 * n + 1,
        t if within(t, "en") => 2 * n + 2,
        _ => 2 * n + 3,
    })
}

/// The beginning of a text, up to [`LONGEST_LABEL`] bytes, and whether that is the whole text.
fn shown(text: &str) -> (&str, bool) {
    let mut end = text.len().min(LONGEST_LABEL);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    (&text[..end], end == text.len())
}

/// The label of each vertex in the best language; `None` for a vertex without a label, and for [`NO_VERTEX`].
///
/// # Errors
/// As [`of_iris`].
pub(super) fn of(
    sight: &LabelGraph<'_>,
    ids: &[u32],
    options: &LabelOptions,
    charge: &mut Charge,
) -> Result<Vec<Option<Label>>> {
    let scope = sight.graphs.scope();
    // The best label of each vertex so far, with the ranks of its language and of its property.
    let mut best: Vec<Option<((usize, usize), Label)>> = Vec::new();
    best.resize_with(ids.len(), || None);
    let mut scratch = Vec::new();
    let vocabulary = Graph::vocabulary(sight.snapshot);
    let mut decoding = vocabulary.decoding();
    for (ids, best) in ids.chunks(TOGETHER).zip(best.chunks_mut(TOGETHER)) {
        sight.fetch_labels(ids, MOST_PER_LABEL);
        for &(place, p) in &sight.labels {
            let edges = sight.edges(p, Direction::Out);
            for (best, &id) in best.iter_mut().zip(ids) {
                sight.cancel.check()?;
                if id == NO_VERTEX || id == 0 {
                    continue;
                }
                let objects = edges.read(id, scope, &mut scratch);
                let objects = &objects[..objects.len().min(MOST_PER_LABEL)];
                for (i, &o) in objects.iter().enumerate() {
                    // Not for a sharded store: terms were fetched above, and prefetching would only copy them.
                    if i.is_multiple_of(AHEAD) && !sight.snapshot.is_sharded() {
                        decoding.prefetch(&objects[i..objects.len().min(i + AHEAD)]);
                    }
                    let (text, tag) = match decoding.term(VertexId(o)).and_then(term::parts) {
                        Some(Parts::String(text)) => (text, None),
                        // In a language tag, the base direction follows the language after two hyphens.
                        Some(Parts::Lang(text, tag)) => (text, tag.split("--").next()),
                        _ => continue,
                    };
                    let (text, is_whole) = shown(text);
                    let own = (rank(&options.languages, tag), place);
                    let better = best.as_ref().is_none_or(|(rank, label)| {
                        let there = (label.language.as_deref(), label.text.as_str());
                        (own, (tag, text)) < (*rank, there)
                    });
                    if better {
                        let end = if is_whole { "" } else { "…" };
                        charge.add((text.len() + end.len()) as u64)?;
                        let label = Label {
                            text: [text, end].concat(),
                            language: tag.map(str::to_owned),
                        };
                        *best = Some((own, label));
                    }
                }
            }
        }
    }
    Ok(best
        .into_iter()
        .map(|b| b.map(|(_, label)| label))
        .collect())
}

/// Number of vertices between two checks of the time limit. For a sharded store [`FETCHED`], the number of vertices
/// whose labels are fetched in one round trip.
const LOOK: usize = 64;
const FETCHED: usize = 1024;

/// For each vertex, the label (in any language) that matches the words best. Vertices that are not reached by `end`
/// have none.
///
/// # Errors
/// As [`of_iris`].
pub(super) fn with(
    sight: &LabelGraph<'_>,
    ids: &[u32],
    asked: &WordQuery,
    end: Instant,
    memory: &MemoryBudget,
) -> Result<Vec<Option<(Fit, String)>>> {
    let scope = sight.graphs.scope();
    let mut charge = Charge::new(Holder::Rest, memory);
    charge.set((40 * ids.len()) as u64)?;
    // The best label of each vertex so far, with the rank of its match and its number of words.
    let mut best: Vec<Option<((Fit, usize), String)>> = vec![None; ids.len()];
    let (mut scratch, mut text, mut folder) = (Vec::new(), String::new(), Folder::default());
    let vocabulary = Graph::vocabulary(sight.snapshot);
    let mut decoding = vocabulary.decoding();
    // Vertices are processed in larger groups, since a round trip to other shards should serve many.
    let look = match sight.snapshot.is_sharded() {
        true => FETCHED,
        false => LOOK,
    };
    for (ids, best) in ids.chunks(look).zip(best.chunks_mut(look)) {
        if Instant::now() >= end {
            break;
        }
        sight.cancel.check()?;
        sight.fetch_labels(ids, MOST_PER_LABEL);
        for &(_, p) in &sight.labels {
            let edges = sight.edges(p, Direction::Out);
            for (&id, best) in ids.iter().zip(&mut *best) {
                let objects = edges.read(id, scope, &mut scratch);
                for &o in &objects[..objects.len().min(MOST_PER_LABEL)] {
                    let Some(canonical) = decoding.term(VertexId(o)) else {
                        continue;
                    };
                    let kind = folded(canonical, &mut folder, &mut text);
                    let Some(fit) = asked
                        .fit(&text)
                        .filter(|_| kind == Some(SearchedTerms::Literals))
                    else {
                        continue;
                    };
                    let label = match term::parts(canonical) {
                        Some(Parts::String(label) | Parts::Lang(label, _)) => label,
                        _ => continue,
                    };
                    let rank = (fit, count(&text));
                    let there = best.as_ref().map(|(rank, label)| (*rank, label.as_str()));
                    if there.is_none_or(|there| (rank, label) < there) {
                        charge.add(label.len() as u64)?;
                        *best = Some((rank, label.to_owned()));
                    }
                }
            }
        }
    }
    let found = best.into_iter();
    Ok(found
        .map(|b| b.map(|((fit, _), label)| (fit, label)))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::rank;

    #[test]
    fn languages_have_an_order() {
        let asked = ["de-CH".to_owned(), "fr".to_owned()];
        let tags = [
            Some("de-ch"),
            Some("de"),
            Some("fr"),
            Some("fr-be"),
            None,
            Some("en"),
            Some("en-gb"),
            Some("eng"),
        ];
        let ranks: Vec<usize> = tags.iter().map(|t| rank(&asked, *t)).collect();
        assert!(ranks.is_sorted() && ranks[6] < ranks[7], "{ranks:?}");
        assert_eq!(rank(&asked, Some("it")), rank(&asked, Some("eng")));
        assert_eq!(rank(&[], None), 0);
        assert!(rank(&["en".into()], Some("en")) < rank(&["en".into()], None));
    }
}
