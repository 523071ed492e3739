//! Blocks of Unicode, which patterns name by `\p{Is…}`.

/// A line per block: its name (as in Unicode's `Blocks.txt`, version 16.0, without spaces and underscores), its first
/// and its last character. Blocks of surrogates, which do not occur in strings, are omitted.
const BLOCKS: &str = include_str!("blocks.txt");

/// All blocks: name, first and last character.
fn blocks() -> impl Iterator<Item = (&'static str, char, char)> {
    BLOCKS.lines().filter_map(|line| {
        let (name, range) = line.split_once(' ')?;
        let (first, last) = range.split_once(' ')?;
        let character = |hex| char::from_u32(u32::from_str_radix(hex, 16).ok()?);
        Some((name, character(first)?, character(last)?))
    })
}

/// The ranges of a block; `None` for an unknown name.
pub(super) fn block(name: &str) -> Option<Vec<(char, char)>> {
    // XML Schema 1.0 has the names of Unicode 3.1; these blocks have been renamed since.
    let name = match name {
        "Greek" => "GreekandCoptic",
        "CombiningMarksforSymbols" => "CombiningDiacriticalMarksforSymbols",
        "CyrillicSupplementary" => "CyrillicSupplement",
        "PrivateUse" => {
            return Some(vec![
                ('\u{e000}', '\u{f8ff}'),
                ('\u{f0000}', '\u{ffffd}'),
                ('\u{100000}', '\u{10fffd}'),
            ]);
        }
        "HighSurrogates" | "HighPrivateUseSurrogates" | "LowSurrogates" => return Some(vec![]),
        name => name,
    };
    let (_, first, last) = blocks().find(|block| block.0 == name)?;
    Some(vec![(first, last)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_a_block_and_no_two_overlap() {
        let mut by_place: Vec<_> = blocks().map(|b| (b.1, b.2)).collect();
        by_place.sort_unstable();
        assert!(by_place.iter().all(|(a, b)| a < b));
        assert!(by_place.windows(2).all(|w| w[0].1 < w[1].0));
        assert_eq!((by_place.len(), BLOCKS.lines().count()), (335, 335));
    }

    #[test]
    fn names_are_those_of_unicode_and_of_xml_schema() {
        for (name, first, last) in [
            ("BasicLatin", '\0', '\u{7f}'),
            ("Latin-1Supplement", '\u{80}', '\u{ff}'),
            ("ArabicPresentationForms-B", '\u{fe70}', '\u{feff}'),
            ("Greek", '\u{370}', '\u{3ff}'),
            ("Garay", '\u{10d40}', '\u{10d8f}'),
        ] {
            assert_eq!(block(name), Some(vec![(first, last)]), "{name}");
        }
        assert_eq!(block("HighSurrogates"), Some(vec![]));
        for name in ["", "basiclatin", "Basic Latin", "Basic_Latin", "Zzz"] {
            assert_eq!(block(name), None, "{name}");
        }
    }
}
