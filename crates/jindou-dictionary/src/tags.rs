//! The lex indexes of each tag: canonical bytes sort by their first byte, so each tag is one interval.

use std::ops::{Range, RangeInclusive};

/// The interval of lex indexes of every tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TagRanges {
    /// `starts[t]` = number of terms whose first byte is below `t`; ascending.
    starts: Box<[u32; 257]>,
}

impl TagRanges {
    /// The ranges for these numbers of terms, by tag. Sums beyond `u32` saturate.
    #[must_use]
    pub fn from_counts(counts: &[u32; 256]) -> Self {
        let mut starts = Box::new([0u32; 257]);
        for tag in 0..256 {
            starts[tag + 1] = starts[tag].saturating_add(counts[tag]);
        }
        Self { starts }
    }

    /// The lex indexes of the terms with this tag (`jindou_model::term`); empty if there are none.
    #[must_use]
    pub fn range(&self, tag: u8) -> Range<u32> {
        self.starts[tag as usize]..self.starts[tag as usize + 1]
    }

    /// The lex indexes of the terms whose tag is in `tags`, for example all numeric literals.
    #[must_use]
    pub fn span(&self, tags: RangeInclusive<u8>) -> Range<u32> {
        let (first, last) = (*tags.start() as usize, *tags.end() as usize);
        if first > last {
            0..0
        } else {
            self.starts[first]..self.starts[last + 1]
        }
    }

    /// The tag of a lex index, `None` beyond the last term. O(log 256).
    #[must_use]
    pub fn tag_of(&self, lex: u32) -> Option<u8> {
        if lex >= self.terms() {
            return None;
        }
        Some((self.starts.partition_point(|&s| s <= lex) - 1) as u8)
    }

    /// Number of terms.
    #[must_use]
    pub fn terms(&self) -> u32 {
        self.starts[256]
    }

    /// The table in its stored form: number of terms below each tag, and the total.
    #[must_use]
    pub(crate) fn starts(&self) -> &[u32; 257] {
        &self.starts
    }

    /// Parses a stored table; `None` unless it ascends from 0.
    #[must_use]
    pub(crate) fn from_starts(starts: &[u32]) -> Option<Self> {
        let starts: Box<[u32; 257]> = Box::new(starts.try_into().ok()?);
        (starts[0] == 0 && starts.is_sorted()).then_some(Self { starts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_intervals() {
        let mut counts = [0; 256];
        counts[b'"' as usize] = 3;
        counts[b'<' as usize] = 2;
        counts[0x80] = 1;
        let t = TagRanges::from_counts(&counts);
        assert_eq!(t.range(b'"'), 0..3);
        assert_eq!(t.range(b'<'), 3..5);
        assert_eq!(t.range(b'_'), 5..5);
        assert_eq!(t.span(0x80..=0x8F), 5..6);
        assert_eq!(
            (0..7).map(|l| t.tag_of(l)).collect::<Vec<_>>(),
            [
                Some(b'"'),
                Some(b'"'),
                Some(b'"'),
                Some(b'<'),
                Some(b'<'),
                Some(0x80),
                None
            ]
        );
    }
}
