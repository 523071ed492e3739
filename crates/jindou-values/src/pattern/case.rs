//! Case variants (F&O 3.1 §5.6.2, flag `i`): two characters are variants of one another if their lower cases or their
//! upper cases are the same string.

use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

/// Code points from here on have no case.
const CASED: u32 = 0x1_f000;

/// All pairs of different characters that are variants of one another, in both orders; sorted.
static VARIANTS: LazyLock<Vec<(char, char)>> = LazyLock::new(|| {
    let all = (0..CASED).filter_map(char::from_u32);
    let cased = all.filter(|c| !c.to_lowercase().eq([*c]) || !c.to_uppercase().eq([*c]));
    let with_images = |c: char| {
        [c].into_iter()
            .chain(c.to_lowercase())
            .chain(c.to_uppercase())
    };
    let cased: BTreeSet<char> = cased.flat_map(with_images).collect();
    let mut groups: BTreeMap<(bool, Vec<char>), Vec<char>> = BTreeMap::new();
    for c in cased {
        groups
            .entry((false, c.to_lowercase().collect()))
            .or_default()
            .push(c);
        groups
            .entry((true, c.to_uppercase().collect()))
            .or_default()
            .push(c);
    }
    let mut pairs = vec![];
    for group in groups.values().filter(|g| g.len() > 1) {
        for &a in group {
            pairs.extend(group.iter().filter(|b| **b != a).map(|&b| (a, b)));
        }
    }
    pairs.sort_unstable();
    pairs.dedup();
    pairs
});

/// The variants of all characters in a range.
fn between(from: char, to: char) -> impl Iterator<Item = char> {
    let first = VARIANTS.partition_point(|(c, _)| *c < from);
    VARIANTS
        .iter()
        .skip(first)
        .take_while(move |(c, _)| *c <= to)
        .map(|(_, variant)| *variant)
}

/// The variants of a character, excluding itself.
pub(super) fn variants(c: char) -> impl Iterator<Item = char> {
    between(c, c)
}

/// Adds to a set the variants of all its characters.
pub(super) fn close(set: &mut ClassUnicode) {
    let more: Vec<_> = set
        .iter()
        .flat_map(|r| between(r.start(), r.end()))
        .map(|c| ClassUnicodeRange::new(c, c))
        .collect();
    set.union(&ClassUnicode::new(more));
}

/// True if the characters are the same, or variants of one another.
pub(super) fn alike(a: char, b: char) -> bool {
    a == b || VARIANTS.binary_search(&(a, b)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_character_beyond_has_case() {
        for c in (CASED..=0x10_ffff).filter_map(char::from_u32) {
            assert!(
                c.to_lowercase().eq([c]) && c.to_uppercase().eq([c]),
                "{c:?}"
            );
        }
    }

    #[test]
    fn variants_share_their_lower_or_their_upper_case() {
        let of = |c| variants(c).collect::<String>();
        assert_eq!(of('q'), "Q");
        assert_eq!(of('k'), "K\u{212a}");
        assert_eq!(of('S'), "sſ");
        // ẞ has the lower case ß; both ligatures have the upper case ST.
        assert_eq!(of('ß'), "ẞ");
        assert_eq!(of('\u{fb05}'), "\u{fb06}");
        assert_eq!(of('1'), "");
        // The lower case of the capital I with a dot is i followed by a combining dot.
        assert_eq!(of('i'), "Iı");
        assert_eq!(of('İ'), "");
        assert!(alike('σ', 'ς') && alike('Σ', 'ς') && !alike('ß', 's'));
    }

    #[test]
    fn closed_sets_have_the_variants_of_all_their_characters() {
        let mut set = crate::pattern::class::from_ranges([('A', 'Z')]);
        close(&mut set);
        let all: Vec<_> = set.iter().map(|r| (r.start(), r.end())).collect();
        assert_eq!(
            all,
            [
                ('A', 'Z'),
                ('a', 'z'),
                ('ı', 'ı'),
                ('ſ', 'ſ'),
                ('\u{212a}', '\u{212a}')
            ]
        );
    }
}
