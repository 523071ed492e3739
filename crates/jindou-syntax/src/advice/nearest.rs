//! Corrections of misspelt words, by edit distance.

/// The candidate of which the word is probably a misspelling; `None` if there is none close enough. O(length of the
/// word × candidates); long words are not treated as misspellings.
pub(crate) fn nearest<'c>(
    word: &str,
    candidates: impl IntoIterator<Item = &'c str>,
) -> Option<&'c str> {
    if word.len() > 32 {
        return None;
    }
    let word = word.to_ascii_lowercase();
    candidates
        .into_iter()
        .filter_map(|c| {
            let lower = c.to_ascii_lowercase();
            let most = match lower.chars().count().min(word.chars().count()) {
                0..=2 => 0,
                3..=5 => 1,
                _ => 2,
            };
            let d = distance(&word, &lower);
            (d <= most).then_some((d, c))
        })
        .min_by_key(|(d, _)| *d)
        .map(|(_, c)| c)
}

/// The smallest number of insertions, deletions, replacements and swaps of neighbouring characters that turn one word
/// into the other. O(product of the lengths).
#[must_use]
pub fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for (i, row) in rows.iter_mut().enumerate() {
        row[0] = i;
    }
    for (j, first) in rows[0].iter_mut().enumerate() {
        *first = j;
    }
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = replaced.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = least;
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelt_words_are_found_and_others_are_not() {
        let words = ["SELECT", "WHERE", "FILTER", "OPTIONAL", "AS"];
        for (word, meant) in [
            ("SELEC", Some("SELECT")),
            ("SLECT", Some("SELECT")),
            ("selcet", Some("SELECT")),
            ("WERE", Some("WHERE")),
            ("FLITER", Some("FILTER")),
            ("OPTINAL", Some("OPTIONAL")),
            ("JOIN", None),
            ("IS", None),
            ("hello", None),
        ] {
            assert_eq!(nearest(word, words), meant, "{word}");
        }
    }
}
