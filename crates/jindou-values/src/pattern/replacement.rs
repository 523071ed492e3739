//! Replacements of fn:replace (F&O 3.1 §5.6.4).

/// A part of a replacement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplacementPart {
    /// A range of the replacement's bytes.
    Text(usize, usize),
    /// The text that a group matched; empty if it took no part.
    Group(usize),
}

/// A parsed replacement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PatternReplacement {
    parts: Vec<ReplacementPart>,
}

impl PatternReplacement {
    /// A replacement for a pattern with this many groups. `None` if a `$` is not followed by a number, or a `\` neither
    /// by `\` nor by `$` (FORX0004).
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
                // The text continues with the character after the backslash.
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

    /// The greatest group number.
    pub fn groups(&self) -> usize {
        let number = |p: &ReplacementPart| match p {
            ReplacementPart::Group(n) => *n,
            ReplacementPart::Text(..) => 0,
        };
        self.parts.iter().map(number).max().unwrap_or(0)
    }
}

/// The group named by the digits at a position, and the end of these digits. All digits form the number; as long as it
/// has more than one digit and there is no such group, its last digit is taken for text.
fn group(bytes: &[u8], at: usize, groups: usize) -> Option<(usize, usize)> {
    let digits = bytes.get(at..)?.iter().take_while(|b| b.is_ascii_digit());
    let mut end = at + digits.count();
    if end == at {
        return None;
    }
    // All numbers beyond the groups are equivalent.
    let number = |to: usize| {
        bytes
            .get(at..to)
            .unwrap_or_default()
            .iter()
            .fold(0, |n: usize, b| {
                n.saturating_mul(10).saturating_add(usize::from(b - b'0'))
            })
    };
    // The digits that can matter: leading zeros, and as many as group numbers have.
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
