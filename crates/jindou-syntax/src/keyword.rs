//! The keywords of SPARQL.

macro_rules! keywords {
    (
        [$($variant:ident $text:literal)*]
        $($function:ident $name:literal $module:ident $($row:ident)? $(($alias:ident $other:literal))?),* $(,)?
    ) => {
        /// A keyword, or [`Keyword::Unknown`] for any other word.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub(crate) enum Keyword { Unknown, $($variant,)* $($function, $($alias,)?)* }

        impl Keyword {
            /// All keywords in their usual spelling.
            pub(crate) const ALL: &[(Self, &'static str)] = &[
                $((Self::$variant, $text),)*
                $((Self::$function, $name), $((Self::$alias, $other),)?)*
            ];

            /// The keyword in its usual spelling.
            pub(crate) fn text(self) -> &'static str {
                match self {
                    Self::Unknown => "",
                    $(Self::$variant => $text,)*
                    $(Self::$function => $name, $(Self::$alias => $other,)?)*
                }
            }

            /// The function that has this keyword as its name; `None` for other keywords.
            pub(crate) fn function(self) -> Option<Function> {
                match self {
                    $(Self::$function $(| Self::$alias)? => Some(Function::$function),)*
                    _ => None,
                }
            }
        }
    };
}

#[rustfmt::skip]
mod words {
    use crate::algebra::Function;

    jindou_values::for_each_function! { keywords [
        Select "SELECT" Where "WHERE" Prefix "PREFIX" Filter "FILTER" Optional "OPTIONAL" Distinct "DISTINCT" As "AS"
        Union "UNION" Order "ORDER" By "BY" Limit "LIMIT" Offset "OFFSET" Group "GROUP" Bind "BIND" Values "VALUES"
        Graph "GRAPH" Count "COUNT" Ask "ASK" Construct "CONSTRUCT" Describe "DESCRIBE" Base "BASE" Version "VERSION"
        Reduced "REDUCED" From "FROM" Named "NAMED" Having "HAVING" Asc "ASC" Desc "DESC" Undef "UNDEF" Minus "MINUS"
        Service "SERVICE" Silent "SILENT" Lateral "LATERAL" Exists "EXISTS" Not "NOT" In "IN" True "true" False "false"
        Load "LOAD" Into "INTO" Clear "CLEAR" Drop "DROP" Create "CREATE" Add "ADD" Move "MOVE" Copy "COPY" To "TO"
        Default "DEFAULT" All "ALL" Insert "INSERT" Delete "DELETE" Data "DATA" With "WITH" Using "USING"
        Separator "SEPARATOR"
        Sum "SUM" Min "MIN" Max "MAX" Avg "AVG" Sample "SAMPLE" GroupConcat "GROUP_CONCAT"
        Bound "BOUND" Coalesce "COALESCE" If "IF" SameTerm "sameTerm"
    ] }
}

pub(crate) use words::Keyword;

/// Length of the longest keyword, in bytes.
const LONGEST: usize = 15;

/// The bytes of the word in upper case as a number; different words have different numbers.
const fn number(word: &[u8]) -> u128 {
    let mut number = 0;
    let mut i = 0;
    while i < word.len() {
        number = number << 8 | word[i].to_ascii_uppercase() as u128;
        i += 1;
    }
    number
}

const SLOTS: usize = 512;

// Asserts that no keyword is longer, since `from_word` would not find it.
const _: () = {
    let mut i = 0;
    while i < Keyword::ALL.len() {
        assert!(
            Keyword::ALL[i].1.len() <= LONGEST,
            "raise LONGEST; a number holds 16 bytes"
        );
        i += 1;
    }
};

const fn slot(number: u128) -> usize {
    let folded = (number as u64) ^ ((number >> 64) as u64).rotate_left(29);
    (folded.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 55) as usize
}

/// A hash table of the keywords by their numbers, with linear probing.
static TABLE: [(u128, Keyword); SLOTS] = {
    let mut table = [(0, Keyword::Unknown); SLOTS];
    let mut i = 0;
    while i < Keyword::ALL.len() {
        let (keyword, text) = Keyword::ALL[i];
        let number = number(text.as_bytes());
        let mut at = slot(number);
        while table[at].0 != 0 {
            at = (at + 1) % SLOTS;
        }
        table[at] = (number, keyword);
        i += 1;
    }
    table
};

impl Keyword {
    /// The longest keyword at the beginning of a word, and its length.
    pub(crate) fn longest(word: &[u8]) -> Option<(Self, usize)> {
        (1..=word.len().min(LONGEST)).rev().find_map(|long| {
            let keyword = Self::from_word(word.get(..long)?);
            (keyword != Self::Unknown).then_some((keyword, long))
        })
    }

    /// The keyword with this spelling, in any case. `a` is not a keyword: it cannot be written `A`, and it stands for
    /// an IRI.
    pub(crate) fn from_word(word: &[u8]) -> Self {
        if word.len() > LONGEST {
            return Self::Unknown;
        }
        let number = number(word);
        let mut at = slot(number);
        loop {
            match TABLE[at] {
                (0, _) => return Self::Unknown,
                (n, keyword) if n == number => return keyword,
                _ => at = (at + 1) % SLOTS,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keywords_are_found_in_any_case() {
        for (keyword, text) in Keyword::ALL {
            assert_eq!(Keyword::from_word(text.as_bytes()), *keyword);
            assert_eq!(
                Keyword::from_word(text.to_ascii_lowercase().as_bytes()),
                *keyword
            );
        }
        for no in ["", "x", "SELEC", "SELECTS", "A_VERY_LONG_WORD_INDEED"] {
            assert_eq!(Keyword::from_word(no.as_bytes()), Keyword::Unknown);
        }
    }
}
