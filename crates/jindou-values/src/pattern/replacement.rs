//! Parser for replacements of fn:replace (F&O 3.1 §5.6.4).

/// A part of a replacement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplacementPart {
    /// A range of the replacement's bytes.
    Text(usize, usize),
    /// The text that the group with this number matched; empty if it did not participate in the match.
    Group(usize),
}

/// A parsed replacement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PatternReplacement {
    parts: Vec<ReplacementPart>,
}

impl PatternReplacement {
    /// Parses a replacement for a pattern with this many groups. If `quoted`, it is a literal text. `None` if a `$` is
    /// not followed by a number, or a `\` is followed neither by `\` nor by `$` (FORX0004).
    pub fn new(text: &str, groups: usize, quoted: bool) -> Option<Self> {
        if quoted {
            return Some(Self {
                parts: vec![ReplacementPart::Text(0, text.len())],
            });
        }
        let bytes = text.as_bytes();
        let (mut parts, mut from, mut at) = (vec![], 0, 0);
        while let Some(&b) = bytes.get(at) {
            if b != b'\\' && b != b'$' {
                at += 1;
                continue;
            }
            if at > from {
                parts.push(ReplacementPart::Text(from, at));
            }
            at += 1;
            if b == b'\\' {
                if !matches!(bytes.get(at), Some(b'\\' | b'$')) {
                    return None;
                }
                // The backslash is dropped, and the character after it is literal.
                from = at;
                at += 1;
                continue;
            }
            let (group, end) = group(bytes, at, groups)?;
            if group <= groups {
                parts.push(ReplacementPart::Group(group));
            }
            (from, at) = (end, end);
        }
        if at > from {
            parts.push(ReplacementPart::Text(from, at));
        }
        Some(Self { parts })
    }

    /// The parts in their order.
    pub fn parts(&self) -> &[ReplacementPart] {
        &self.parts
    }

    /// The largest group number that occurs.
    pub fn groups(&self) -> usize {
        let number = |p: &ReplacementPart| match p {
            ReplacementPart::Group(n) => *n,
            ReplacementPart::Text(..) => 0,
        };
        self.parts.iter().map(number).max().unwrap_or(0)
    }
}

/// The group number that begins at a position, and the end of its digits. If there are fewer groups, the last digit is
/// treated as literal text, and so on as long as the number has more than one digit. `None` if there are no digits.
fn group(bytes: &[u8], at: usize, groups: usize) -> Option<(usize, usize)> {
    let digits = bytes.get(at..)?.iter().take_while(|b| b.is_ascii_digit());
    let mut end = at + digits.count();
    if end == at {
        return None;
    }
    // Saturates, since all numbers above that of the last group are equivalent.
    let number = |to: usize| {
        bytes
            .get(at..to)
            .unwrap_or_default()
            .iter()
            .fold(0, |n: usize, b| {
                n.saturating_mul(10).saturating_add(usize::from(b - b'0'))
            })
    };
    // Only leading zeros and as many digits as a group number can have need be read.
    let zeros = bytes
        .get(at..end)?
        .iter()
        .take_while(|b| **b == b'0')
        .count();
    end = end.min(at + zeros + 20);
    let mut n = number(end);
    while n > groups && n > 9 {
        end -= 1;
        n = number(end);
    }
    Some((n, end))
}
