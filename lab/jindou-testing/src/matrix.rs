//! Values for which engines, libraries and specifications often give different results.

use crate::Rng;
use oxrdf::{Literal, NamedNode, Term, Triple};

/// Datatypes of XML Schema, each with valid and invalid lexical forms, for [`typed_terms`].
const TYPED: &str = "
integer 0 1 01 -1 +7 9007199254740993 16777217 9223372036854775808 -123456789012345678901234567890 abc 1.0
byte 5 300
unsignedLong 18446744073709551615
negativeInteger -3 3
decimal 0.0 1.0 -2.5 0.1 1234567.25 0.12345678901234567891 12345678901234567890.5 1.5.5
float 0.1 16777216 1.0E6 NaN -INF
double 0 -0.0 1e0 2.5e0 0.1 1e15 1e400 INF -INF NaN -NaN 1234567.25e0
boolean true false 1 0 yes
string a abc 1 true 10 2020-01-01
token a abc 1
NCName a 1
language de de--AT
dateTimeStamp 2020-01-01T00:00:00Z 2020-01-01T05:30:00.250+05:30 2020-01-01T00:00:00
dateTime 2020-01-01T00:00:00Z 2020-01-01T00:00:00 2019-12-31T24:00:00Z 2020-01-01T05:30:00.250+05:30
dateTime 2020-02-29T12:00:00-14:00 -0044-03-15T00:00:00Z 12020-06-30T23:59:59.999Z 2019-02-29T00:00:00Z
date 2020-01-01 2020-01-01Z 2020-02-29+14:00 2019-12-31-12:00 -0001-01-01 10000-01-01Z 2019-02-29
time 00:00:00 24:00:00 23:30:00-02:00 12:34:56.789Z 25:00:00
gYear 2020 2020Z -0044 12020
gYearMonth 2020-02 2020-02-05:00
gMonth --02 --13
gMonthDay --02-29 --12-25Z
gDay ---31 ---01+01:00
duration P1M P30D P1Y2M3DT4H5M6.7S PT0S P
yearMonthDuration P1Y P12M P0M -P1M
dayTimeDuration PT0S P1D PT24H -PT36H PT0.001S P1M
hexBinary 0A 0a
anyURI http://e/x
";

pub(crate) const XSD: &str = "http://www.w3.org/2001/XMLSchema#";

pub(crate) fn iri(text: &str) -> NamedNode {
    NamedNode::new_unchecked(text)
}

pub(crate) fn typed(form: &str, local: &str) -> Term {
    Literal::new_typed_literal(form, iri(&format!("{XSD}{local}"))).into()
}

/// The literals of a table, each line of which is a datatype of XML Schema with lexical forms.
pub(crate) fn typed_terms(table: &str) -> Vec<Term> {
    let mut out = vec![];
    for line in table.lines() {
        let (local, forms) = line.split_once(' ').unwrap_or_default();
        out.extend(forms.split_whitespace().map(|form| typed(form, local)));
    }
    out
}

/// A triple term with this object.
pub(crate) fn triple(object: Term) -> Term {
    Triple::new(iri("http://e/s"), iri("http://e/p"), object).into()
}

/// Random values near the limits of their types: numbers, dates, times and durations.
pub fn random_values(rng: &mut Rng, count: usize) -> Vec<Term> {
    (0..count).map(|_| random_value(rng)).collect()
}

fn random_value(rng: &mut Rng) -> Term {
    let local = rng.part(
        "integer; decimal; float; double; dateTime; dateTime; date; date; time; gYear; gYearMonth; gMonthDay; gDay; \
         duration; yearMonthDuration; dayTimeDuration",
    );
    let form = match local {
        "integer" => format!("{}{}", sign(rng), digits(rng, 1, 24)),
        "decimal" => format!("{}{}.{}", sign(rng), digits(rng, 1, 20), digits(rng, 1, 19)),
        "float" | "double" => {
            let exponent = rng.one(&["", "e0", "E1", "e-7", "e15", "e22", "e37", "e308", "e-320"]);
            let (sign, whole) = (sign(rng), digits(rng, 1, 3));
            format!("{sign}{whole}.{}{exponent}", digits(rng, 1, 9))
        }
        "duration" => format!("{}{}{}", minus(rng), months(rng), seconds(rng)),
        "yearMonthDuration" => format!("{}{}", minus(rng), months(rng)),
        "dayTimeDuration" => format!("{}P{}", minus(rng), seconds(rng)),
        _ => point(rng, local),
    };
    typed(&form, local)
}

fn sign(rng: &mut Rng) -> &'static str {
    rng.one(&["", "", "-", "+"])
}

fn minus(rng: &mut Rng) -> &'static str {
    rng.one(&["", "", "-"])
}

fn digits(rng: &mut Rng, least: usize, most: usize) -> String {
    // Short numbers are chosen more often, so that some values are equal.
    let length = match rng.chance(70) {
        true => least,
        false => least + rng.below(most - least + 1),
    };
    let digit = |_| char::from(rng.one(b"00123456789995"));
    (0..length).map(digit).collect()
}

fn months(rng: &mut Rng) -> String {
    match rng.below(3) {
        0 => format!("P{}Y", rng.below(4)),
        1 => format!("P{}M", rng.below(30)),
        _ => format!("P{}Y{}M", rng.below(3), rng.below(14)),
    }
}

/// The day and time components of a duration, without the `P` before them.
fn seconds(rng: &mut Rng) -> String {
    match rng.below(4) {
        0 => format!("{}D", rng.below(40)),
        1 => format!("T{}H", rng.below(50)),
        2 => format!("{}DT{}M", rng.below(3), rng.below(3000)),
        _ => format!("T{}.{}S", rng.below(200_000), digits(rng, 1, 12)),
    }
}

/// A date or time whose day and hour are near the ends of months and days; some are invalid.
fn point(rng: &mut Rng, local: &str) -> String {
    let year = rng.one(&[
        "2020", "2019", "2000", "1900", "1999", "2021", "0000", "0001", "-0001", "-0004", "9999",
        "10000", "-9999", "123456", "1970", "1972",
    ]);
    let month = rng.one(&["01", "02", "02", "03", "06", "11", "12", "13"]);
    let day = rng.one(&["01", "02", "28", "29", "29", "30", "31"]);
    let time = format!(
        "{}:{}:{}{}",
        rng.one(&["00", "01", "12", "23", "23"]),
        rng.one(&["00", "30", "59"]),
        rng.one(&["00", "01", "59"]),
        rng.one(&["", "", ".5", ".000", ".999999", ".1234567890123"])
    );
    let time = match rng.chance(10) {
        true => "24:00:00".to_owned(),
        false => time,
    };
    let zone = rng.one(&[
        "", "", "", "Z", "+00:00", "-00:00", "+01:00", "-12:00", "+14:00", "-14:00", "+05:30",
        "-00:01",
    ]);
    let body = match local {
        "dateTime" => format!("{year}-{month}-{day}T{time}"),
        "date" => format!("{year}-{month}-{day}"),
        "time" => time,
        "gYear" => year.to_owned(),
        "gYearMonth" => format!("{year}-{month}"),
        "gMonthDay" => format!("--{month}-{day}"),
        _ => format!("---{day}"),
    };
    body + zone
}

/// All test values, each once. There are no blank nodes, since a query cannot name one.
pub fn matrix() -> Vec<Term> {
    let mut out = typed_terms(TYPED);
    for form in ["", "Ünïcödé ſ ß", "𝒳\u{301}y", "a b"] {
        out.push(typed(form, "string"));
    }
    // Language tags that differ only in case are equal.
    for tagged in ["a@en", "a@EN", "abc@en-GB", "a@de", "@en"] {
        let (form, tag) = tagged.split_once('@').unwrap_or_default();
        out.push(Literal::new_language_tagged_literal_unchecked(form, tag).into());
    }
    let left = oxrdf::BaseDirection::Ltr;
    let directed = Literal::new_directional_language_tagged_literal_unchecked("a", "en", left);
    let [x, y] = ["x", "y"].map(|form| Literal::new_typed_literal(form, iri("http://e/datatype")));
    out.extend([directed.into(), x.clone().into(), y.into()]);
    out.extend([iri("http://e/x").into(), iri("http://e/é").into()]);
    out.extend(
        typed_terms("integer 1 01\ndouble NaN\ndate 2020-01-01")
            .into_iter()
            .map(triple),
    );
    out.push(triple(x.into()));
    out.push(triple(triple(typed("1.0", "decimal"))));
    out
}
