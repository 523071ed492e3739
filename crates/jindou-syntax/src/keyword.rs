//! The words of SPARQL.

macro_rules! keywords {
    ($($variant:ident $text:literal)*) => {
        /// A word with a meaning, or [`Keyword::Unknown`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub(crate) enum Keyword { Unknown, $($variant),* }

        impl Keyword {
            /// All of them, as they are usually written.
            pub(crate) const ALL: &[(Self, &'static str)] = &[$((Self::$variant, $text)),*];

            pub(super) fn of_upper(word: &[u8]) -> Self {
                $(const $variant: [u8; $text.len()] = upper($text);)*
                match word {
                    $(w if *w == $variant => Self::$variant,)*
                    _ => Self::Unknown,
                }
            }

            /// As it is usually written.
            pub(crate) fn text(self) -> &'static str {
                match self {
                    Self::Unknown => "",
                    $(Self::$variant => $text,)*
                }
            }
        }
    };
}

const fn upper<const N: usize>(text: &str) -> [u8; N] {
    let bytes = text.as_bytes();
    let mut out = [0; N];
    let mut i = 0;
    while i < N {
        out[i] = bytes[i].to_ascii_uppercase();
        i += 1;
    }
    out
}

#[rustfmt::skip]
#[allow(non_upper_case_globals)]
mod words {
    use super::upper;
    keywords! {
        Select "SELECT" Where "WHERE" Prefix "PREFIX" Filter "FILTER" Optional "OPTIONAL" Distinct "DISTINCT" As "AS"
        Union "UNION" Order "ORDER" By "BY" Limit "LIMIT" Offset "OFFSET" Group "GROUP" Bind "BIND" Values "VALUES"
        Graph "GRAPH" Count "COUNT" Ask "ASK" Construct "CONSTRUCT" Describe "DESCRIBE" Base "BASE" Version "VERSION"
        Reduced "REDUCED" From "FROM" Named "NAMED" Having "HAVING" Asc "ASC" Desc "DESC" Undef "UNDEF" Minus "MINUS"
        Service "SERVICE" Silent "SILENT" Lateral "LATERAL" Exists "EXISTS" Not "NOT" In "IN" True "true" False "false"
        Load "LOAD" Into "INTO" Clear "CLEAR" Drop "DROP" Create "CREATE" Add "ADD" Move "MOVE" Copy "COPY" To "TO"
        Default "DEFAULT" All "ALL" Insert "INSERT" Delete "DELETE" Data "DATA" With "WITH" Using "USING"
        Separator "SEPARATOR"
        Sum "SUM" Min "MIN" Max "MAX" Avg "AVG" Sample "SAMPLE" GroupConcat "GROUP_CONCAT"
        Str "STR" Lang "LANG" LangMatches "LANGMATCHES" LangDir "LANGDIR" Datatype "DATATYPE" Bound "BOUND" Iri "IRI"
        Uri "URI" Bnode "BNODE" Rand "RAND" Abs "ABS" Ceil "CEIL" Floor "FLOOR" Round "ROUND" Concat "CONCAT"
        Substr "SUBSTR" Strlen "STRLEN" Replace "REPLACE" Ucase "UCASE" Lcase "LCASE" EncodeForUri "ENCODE_FOR_URI"
        Contains "CONTAINS" StrStarts "STRSTARTS" StrEnds "STRENDS" StrBefore "STRBEFORE" StrAfter "STRAFTER"
        Year "YEAR" Month "MONTH" Day "DAY" Hours "HOURS" Minutes "MINUTES" Seconds "SECONDS" Timezone "TIMEZONE"
        Tz "TZ" Adjust "ADJUST" Now "NOW" Uuid "UUID" StrUuid "STRUUID" Md5 "MD5" Sha1 "SHA1" Sha256 "SHA256" Sha384 "SHA384"
        Sha512 "SHA512" Coalesce "COALESCE" If "IF" StrLang "STRLANG" StrLangDir "STRLANGDIR" StrDt "STRDT"
        SameTerm "sameTerm" IsIri "isIRI" IsUri "isURI" IsBlank "isBLANK" IsLiteral "isLITERAL" IsNumeric "isNUMERIC"
        HasLang "hasLANG" HasLangDir "hasLANGDIR" Regex "REGEX" Triple "TRIPLE" Subject "SUBJECT"
        Predicate "PREDICATE" Object "OBJECT" IsTriple "isTRIPLE"
    }
}

pub(crate) use words::Keyword;

impl Keyword {
    /// The keyword that is written so. `a` is none of them: it has no upper case and stands for an IRI.
    pub(crate) fn of(word: &[u8]) -> Self {
        let mut buffer = [0; 14];
        let Some(upper) = buffer.get_mut(..word.len()) else {
            return Self::Unknown;
        };
        upper.copy_from_slice(word);
        upper.make_ascii_uppercase();
        Self::of_upper(upper)
    }
}
