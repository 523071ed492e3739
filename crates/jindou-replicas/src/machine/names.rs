//! Names of objects in the bucket.

/// Name of an object of a store's log.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Name {
    /// A group.
    Group(u64),
    /// A span: copies of consecutive groups, from the first to the last number.
    Span(u64, u64),
    /// A base: the store after the group with this number.
    Base(u64),
}

impl Name {
    /// The object's name in the bucket. `epoch` is the store's id epoch.
    pub fn text(self, epoch: u64) -> String {
        match self {
            Self::Group(n) => format!("log/{epoch:016x}-{n:016x}.log"),
            // Spans sort by their last group, and have a folder of their own. So the spans that end after a number are
            // one range of names, which a server that is far behind lists first.
            Self::Span(first, last) => format!("span/{epoch:016x}-{last:016x}-{first:016x}.span"),
            Self::Base(n) => format!("base/{epoch:016x}-{n:016x}.json"),
        }
    }

    /// The number of a base; `None` for other names.
    pub fn base(self) -> Option<u64> {
        match self {
            Self::Base(number) => Some(number),
            Self::Group(_) | Self::Span(..) => None,
        }
    }

    /// The id epoch in the name of an object of any log; `None` for other names.
    pub fn epoch(text: &str) -> Option<u64> {
        let (_, name) = text.split_once('/')?;
        let epoch = u64::from_str_radix(name.get(..16)?, 16).ok()?;
        Self::parse(epoch, text).map(|_| epoch)
    }

    /// Parses a name. `None` for names of another epoch, of later versions, and of other programs.
    pub fn parse(epoch: u64, text: &str) -> Option<Self> {
        let number = |text: &str| match text.len() == 16 && !text.starts_with('+') {
            true => u64::from_str_radix(text, 16).ok(),
            false => None,
        };
        let of_epoch = |text: &str| -> Option<(u64, u64)> {
            let (of, rest) = text.split_once('-')?;
            let (first, last) = rest.split_once('-').unwrap_or((rest, rest));
            (number(of)? == epoch).then_some((number(first)?, number(last)?))
        };
        let name = if let Some(text) = text.strip_prefix("base/") {
            Self::Base(of_epoch(text.strip_suffix(".json")?)?.0)
        } else if let Some(text) = text.strip_prefix("span/") {
            let (last, first) = of_epoch(text.strip_suffix(".span")?)?;
            Self::Span(first, last)
        } else {
            let text = text.strip_prefix("log/")?;
            Self::Group(of_epoch(text.strip_suffix(".log")?)?.0)
        };
        // Each name has exactly one valid spelling: upper-case digits and additional parts are rejected.
        let whole = !matches!(name, Self::Span(first, last) if first > last);
        (whole && name.text(epoch) == text).then_some(name)
    }
}

#[cfg(test)]
mod tests {
    use super::Name;

    #[test]
    fn names_are_read_back_and_others_refused() {
        for name in [Name::Group(7), Name::Span(1, 1000), Name::Base(u64::MAX)] {
            assert_eq!(Name::parse(0xab, &name.text(0xab)), Some(name));
            assert_eq!(Name::parse(0xac, &name.text(0xab)), None);
        }
        for text in [
            "",
            "log/",
            "base/x",
            "log/00000000000000ab-0000000000000007.log.tmp",
            "log/00000000000000AB-0000000000000007.log",
            "log/00000000000000ab-+000000000000007.log",
            "log/00000000000000ab-0000000000000007-0000000000000007.log",
            "span/00000000000000ab-0000000000000006-0000000000000007.span",
            "log/00000000000000ab-0000000000000007-0000000000000006.span",
            "log/00000000000000ab-000000000000000é.log",
        ] {
            assert_eq!(Name::parse(0xab, text), None, "{text}");
        }
    }
}
