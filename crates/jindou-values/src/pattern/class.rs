//! Sets of characters that escapes stand for (XML Schema 1.1 Part 2, appendix G), as ranges.

use super::blocks;
use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, HirKind};
use std::sync::OnceLock;

/// General categories that have an escape; surrogates (`Cs`) have none.
const CATEGORIES: [&str; 36] = [
    "L", "Lu", "Ll", "Lt", "Lm", "Lo", "M", "Mn", "Mc", "Me", "N", "Nd", "Nl", "No", "P", "Pc",
    "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Z", "Zs", "Zl", "Zp", "S", "Sm", "Sc", "Sk", "So", "C",
    "Cc", "Cf", "Co", "Cn",
];

/// Characters with which an XML name can begin (XML 1.0, fifth edition, production 4, NameStartChar; includes `:`).
const NAME_START: [(char, char); 16] = [
    (':', ':'),
    ('A', 'Z'),
    ('_', '_'),
    ('a', 'z'),
    ('\u{c0}', '\u{d6}'),
    ('\u{d8}', '\u{f6}'),
    ('\u{f8}', '\u{2ff}'),
    ('\u{370}', '\u{37d}'),
    ('\u{37f}', '\u{1fff}'),
    ('\u{200c}', '\u{200d}'),
    ('\u{2070}', '\u{218f}'),
    ('\u{2c00}', '\u{2fef}'),
    ('\u{3001}', '\u{d7ff}'),
    ('\u{f900}', '\u{fdcf}'),
    ('\u{fdf0}', '\u{fffd}'),
    ('\u{10000}', '\u{effff}'),
];

/// Further characters that an XML name can contain (production 4a, NameChar).
const NAME: [(char, char); 6] = [
    ('-', '-'),
    ('.', '.'),
    ('0', '9'),
    ('\u{b7}', '\u{b7}'),
    ('\u{300}', '\u{36f}'),
    ('\u{203f}', '\u{2040}'),
];

fn is_in(ranges: &[(char, char)], c: char) -> bool {
    ranges.iter().any(|r| (r.0..=r.1).contains(&c))
}

/// True for a character with which an XML name can begin.
pub(crate) fn is_name_start(c: char) -> bool {
    is_in(&NAME_START, c)
}

/// True for a character that an XML name can contain.
pub(crate) fn is_name(c: char) -> bool {
    is_name_start(c) || is_in(&NAME, c)
}

/// A set that an escape stands for, or its complement, as a number. Each set is computed once per process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct NamedSet(u8);

/// Numbers of the sets that are not categories; categories have their index in `CATEGORIES`.
const SPACE: u8 = 36;
const NAME_START_AT: u8 = 37;
const NAME_AT: u8 = 38;
const WORD: u8 = 39;
const DOT: u8 = 40;
const ANY: u8 = 41;
const KNOWN: usize = 42;

impl NamedSet {
    /// Number of sets, including complements.
    pub const COUNT: usize = 2 * KNOWN;

    /// `.` without the flag `s`.
    pub const DOT: Self = Self(2 * DOT);
    /// `.` with the flag `s`.
    pub const ANY: Self = Self(2 * ANY);

    /// The set of an escape such as `\s`, by its letter; a capital letter is the complement. `None` for other letters.
    pub fn multi(letter: char) -> Option<Self> {
        let at = match letter.to_ascii_lowercase() {
            's' => SPACE,
            'i' => NAME_START_AT,
            'c' => NAME_AT,
            'd' => 11,
            'w' => WORD,
            _ => return None,
        };
        Some(Self(2 * at + u8::from(letter.is_ascii_uppercase())))
    }

    /// The set of a general category, or its complement if `others`; `None` for an unknown name.
    pub fn category(name: &str, others: bool) -> Option<Self> {
        let at = CATEGORIES.iter().position(|c| *c == name)?;
        Some(Self(2 * at as u8 + u8::from(others)))
    }

    pub fn number(self) -> usize {
        usize::from(self.0)
    }

    pub fn set(self) -> &'static ClassUnicode {
        static SETS: [OnceLock<ClassUnicode>; NamedSet::COUNT] = [const { OnceLock::new() }; _];
        SETS[self.number()].get_or_init(|| {
            let set = match self.0 / 2 {
                SPACE => from_ranges([('\t', '\n'), ('\r', '\r'), (' ', ' ')]),
                NAME_START_AT => from_ranges(NAME_START),
                NAME_AT => from_ranges(NAME_START.into_iter().chain(NAME)),
                WORD => {
                    let mut set = category("P");
                    set.union(&category("Z"));
                    set.union(&category("C"));
                    complement(&set)
                }
                DOT => complement(&from_ranges([('\n', '\n'), ('\r', '\r')])),
                ANY => from_ranges([('\0', char::MAX)]),
                at => category(CATEGORIES[usize::from(at)]),
            };
            match self.0 % 2 {
                0 => set,
                _ => complement(&set),
            }
        })
    }
}

/// The set of all characters in these ranges.
pub(super) fn from_ranges(ranges: impl IntoIterator<Item = (char, char)>) -> ClassUnicode {
    ClassUnicode::new(
        ranges
            .into_iter()
            .map(|(from, to)| ClassUnicodeRange::new(from, to)),
    )
}

/// The complement of a set. (`ClassUnicode::negate` would create ranges that end at, or begin after, the surrogates,
/// which are not characters.)
pub(super) fn complement(set: &ClassUnicode) -> ClassUnicode {
    let mut out = vec![];
    let mut next = Some('\0');
    for r in set.iter() {
        let before = match r.start() {
            '\u{e000}' => Some('\u{d7ff}'),
            c => u32::from(c).checked_sub(1).and_then(char::from_u32),
        };
        if let (Some(from), Some(to)) = (next, before)
            && from <= to
        {
            out.push((from, to));
        }
        next = match r.end() {
            '\u{d7ff}' => Some('\u{e000}'),
            c => char::from_u32(u32::from(c) + 1),
        };
    }
    out.extend(next.map(|from| (from, char::MAX)));
    from_ranges(out)
}

/// The characters of a general category, from the tables of `regex-syntax`.
fn category(name: &str) -> ClassUnicode {
    let parsed = regex_syntax::parse(&format!("\\p{{{name}}}"));
    match parsed.as_ref().map(regex_syntax::hir::Hir::kind) {
        Ok(HirKind::Class(Class::Unicode(set))) => set.clone(),
        // A category with a single character.
        Ok(HirKind::Literal(one)) => {
            let text = std::str::from_utf8(&one.0).unwrap_or("");
            from_ranges(text.chars().map(|c| (c, c)))
        }
        // Not reached: a test checks all categories.
        _ => ClassUnicode::empty(),
    }
}

/// The characters of a block, or all others if `others`; `None` for an unknown name.
pub(super) fn block(name: &str, others: bool) -> Option<ClassUnicode> {
    let set = from_ranges(blocks::block(name)?);
    Some(if others { self::complement(&set) } else { set })
}

/// True if the set contains the character.
pub(super) fn contains(set: &ClassUnicode, c: char) -> bool {
    let ranges = set.ranges();
    let after = ranges.partition_point(|r| r.start() <= c);
    after > 0 && ranges.get(after - 1).is_some_and(|r| c <= r.end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_category_is_there_and_with_its_complement_it_is_everything() {
        for name in CATEGORIES {
            let set = NamedSet::category(name, false).unwrap().set();
            assert!(!set.ranges().is_empty(), "{name}");
            let others = NamedSet::category(name, true).unwrap().set();
            let both = set
                .iter()
                .chain(others.iter())
                .map(|r| (r.start()..=r.end()).count());
            assert_eq!(both.sum::<usize>(), 0x11_0000 - 0x800, "{name}");
            assert!(
                set.iter()
                    .all(|r| !contains(others, r.start()) && !contains(others, r.end()))
            );
        }
        assert!(NamedSet::category("Cs", false).is_none());
        // The category `L` is the union of its subcategories.
        let mut letters = ClassUnicode::empty();
        for name in ["Lu", "Ll", "Lt", "Lm", "Lo"] {
            letters.union(&category(name));
        }
        assert_eq!(letters, category("L"));
    }

    #[test]
    fn complements_know_of_the_surrogates() {
        let around = from_ranges([('\0', '\u{d7ff}'), ('\u{e000}', '\u{10ffff}')]);
        assert!(complement(&around).ranges().is_empty());
        assert_eq!(complement(&ClassUnicode::empty()), *NamedSet::ANY.set());
        assert_eq!(complement(NamedSet::ANY.set()), ClassUnicode::empty());
        let below = from_ranges([('\0', '\u{d7ff}')]);
        assert_eq!(
            complement(&below),
            from_ranges([('\u{e000}', '\u{10ffff}')])
        );
        assert_eq!(complement(&complement(&below)), below);
    }

    #[test]
    fn escapes_have_the_meaning_of_xml_schema() {
        let has = |letter, c| contains(NamedSet::multi(letter).unwrap().set(), c);
        for c in [' ', '\t', '\n', '\r'] {
            assert!(has('s', c) && !has('S', c));
        }
        for c in ['\u{a0}', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{3000}'] {
            assert!(!has('s', c) && has('S', c));
        }
        for c in [':', '_', 'a', 'Z', 'é', '中', '\u{10000}'] {
            assert!(has('i', c) && has('c', c) && !has('I', c), "{c}");
        }
        for c in ['0', '-', '.', '\u{b7}', '\u{300}'] {
            assert!(!has('i', c) && has('c', c) && !has('C', c), "{c}");
        }
        for c in ['×', '÷', ' ', '/', '\u{37e}'] {
            assert!(!has('i', c) && !has('c', c), "{c}");
        }
        assert!(has('d', '7') && has('d', '٣') && !has('d', '²') && has('D', 'a'));
        // `\w` is everything except punctuation, separators and the category "other".
        for c in ['a', '5', '+', '$', '^', '\u{301}', '²'] {
            assert!(has('w', c) && !has('W', c), "{c}");
        }
        for c in ['_', '-', '.', ' ', '\u{0}', '\u{ad}', '«'] {
            assert!(!has('w', c) && has('W', c), "{c}");
        }
    }
}
