//! Examples from the specifications, and expected results from the W3C's tests.

use super::{evaluate, same};
use oxrdf::Term;
use spargebra::SparqlParser;
use spargebra::algebra::{Expression, GraphPattern};
use std::str::FromStr;

const XSD: &str = "http://www.w3.org/2001/XMLSchema#";

fn parsed(text: &str) -> Expression {
    let query =
        format!("PREFIX xsd: <{XSD}> PREFIX e: <http://e/> SELECT ({text} AS ?result) {{}}");
    let query = SparqlParser::new()
        .parse_query(&query)
        .unwrap_or_else(|e| panic!("{text}: {e}"));
    let spargebra::Query::Select { pattern, .. } = query else {
        panic!("no SELECT");
    };
    let GraphPattern::Project { inner, .. } = pattern else {
        panic!("no projection");
    };
    let GraphPattern::Extend { expression, .. } = *inner else {
        panic!("no expression");
    };
    expression
}

/// Parses a term in Turtle's syntax, with `xsd:` as prefix.
fn term(text: &str) -> Term {
    let text = match text.split_once("^^xsd:") {
        Some((form, local)) => format!("{form}^^<{XSD}{local}>"),
        None => match text {
            "true" | "false" => format!("\"{text}\"^^<{XSD}boolean>"),
            t if t.starts_with(['"', '<', '_']) => t.to_owned(),
            t if t.contains(['e', 'E']) => format!("\"{t}\"^^<{XSD}double>"),
            t if t.contains('.') => format!("\"{t}\"^^<{XSD}decimal>"),
            t => format!("\"{t}\"^^<{XSD}integer>"),
        },
    };
    Term::from_str(&text).unwrap_or_else(|e| panic!("{text}: {e}"))
}

/// Checks lines of the form `expression => term` or `expression => error`.
fn check(lines: &str) {
    for line in lines.lines().map(str::trim).filter(|l| !l.is_empty()) {
        let (expression, want) = line.split_once(" => ").expect("an arrow");
        let outcome = evaluate(&parsed(expression), &|_| None);
        let got = outcome.value.as_ref();
        let right = match want {
            "error" => got.is_none(),
            want => got.is_some_and(|v| same(&term(want), v)),
        };
        assert!(right, "{expression} is {got:?}, not {want}");
    }
}

#[test]
fn numbers_are_as_xpath_has_them() {
    check(
        r#"
        0/1.1 => 0.0
        0.0/7.25 => 0.0
        0/0.5 => 0.0
        1/0 => error
        1.0/0 => error
        1e0/0 => "INF"^^xsd:double
        -1e0/0 => "-INF"^^xsd:double
        0e0/0 => "NaN"^^xsd:double
        1 < "NaN"^^xsd:double => false
        1 >= "NaN"^^xsd:double => false
        "NaN"^^xsd:double = "NaN"^^xsd:double => false
        "NaN"^^xsd:double != "NaN"^^xsd:double => true
        3 / 2 => 1.5
        2 + 1.5 => 3.5
        2 + 1e0 => 3E0
        "1"^^xsd:float + 1.5 => "2.5"^^xsd:float
        "1"^^xsd:float + 1e0 => 2E0
        "1"^^xsd:byte + "1"^^xsd:byte => 2
        "300"^^xsd:byte + 1 => error
        100000000000000000000000000000 + 1 => 100000000000000000000000000001
        9223372036854775807 + 1 => 9223372036854775808
        -0e0 => -0E0
        ABS(-10.5) => 10.5
        CEIL(10.5) => 11.0
        CEIL(-10.5) => -10.0
        CEIL(-0.5e0) => -0E0
        FLOOR(10.5) => 10.0
        FLOOR(-10.5) => -11.0
        ROUND(2.5) => 3.0
        ROUND(2.4999) => 2.0
        ROUND(-2.5) => -2.0
        ROUND(-0.4e0) => -0E0
        ROUND(-2.5e0) => -2E0
        ROUND(0.49999999999999994e0) => 0E0
        "16777217"^^xsd:integer = "16777216"^^xsd:float => true
        0.1 = 0.1e0 => true
        0.1 = "0.1"^^xsd:float => true
        0.1e0 = "0.1"^^xsd:float => false
        -0e0 = 0e0 => true
        "#,
    );
}

#[test]
fn casts_are_exact() {
    check(
        r#"
        xsd:integer(1e15) => 1000000000000000
        xsd:integer("1.0E6"^^xsd:float) => 1000000
        xsd:integer(-1.9) => -1
        xsd:integer("NaN"^^xsd:double) => error
        xsd:integer("INF"^^xsd:double) => error
        xsd:integer("1.5") => error
        xsd:integer(" 1 ") => 1
        xsd:integer(true) => 1
        xsd:integer(1e30) => 1000000000000000019884624838656
        xsd:decimal(1234567.25e0) => 1234567.25
        xsd:decimal("1e0") => error
        xsd:double("1e400") => "INF"^^xsd:double
        xsd:double("+INF") => "INF"^^xsd:double
        xsd:float(16777217) => "16777216"^^xsd:float
        xsd:boolean("NaN"^^xsd:double) => false
        xsd:boolean(0.0) => false
        xsd:boolean("T") => error
        xsd:boolean("1") => true
        xsd:string("01"^^xsd:integer) => "1"
        xsd:string(0E1) => "0"
        xsd:string(2.50) => "2.5"
        xsd:string(1e6) => "1.0E6"
        xsd:string(0.0000001e0) => "1.0E-7"
        xsd:string("1"^^xsd:boolean) => "true"
        xsd:string(<http://e/x>) => "http://e/x"
        xsd:dateTime("2020-01-01"^^xsd:date) => "2020-01-01T00:00:00"^^xsd:dateTime
        xsd:date("2020-01-01T23:00:00-05:00"^^xsd:dateTime) => "2020-01-01-05:00"^^xsd:date
        xsd:time("2020-01-01T23:00:00.50Z"^^xsd:dateTime) => "23:00:00.5Z"^^xsd:time
        xsd:date("23:00:00"^^xsd:time) => error
        xsd:dayTimeDuration("P1Y2DT3H"^^xsd:duration) => "P2DT3H"^^xsd:dayTimeDuration
        xsd:yearMonthDuration("P1Y2DT3H"^^xsd:duration) => "P1Y"^^xsd:yearMonthDuration
        xsd:integer(<http://e/1>) => error
        "#,
    );
}

/// Examples of XPath F&O 3.1 §8 and §9.
#[test]
fn dates_and_durations_are_as_xpath_has_them() {
    check(
        r#"
        "1999-12-31T24:00:00"^^xsd:dateTime = "2000-01-01T00:00:00"^^xsd:dateTime => true
        "24:00:00"^^xsd:time = "00:00:00"^^xsd:time => true
        "2002-04-02T12:00:00-01:00"^^xsd:dateTime = "2002-04-02T17:00:00+04:00"^^xsd:dateTime => true
        "2002-04-02T23:00:00-04:00"^^xsd:dateTime = "2002-04-03T02:00:00-01:00"^^xsd:dateTime => true
        "2004-12-25Z"^^xsd:date < "2004-12-25-05:00"^^xsd:date => true
        "2004-12-25-12:00"^^xsd:date < "2004-12-26+12:00"^^xsd:date => false
        "2004-12-25-12:00"^^xsd:date = "2004-12-26+12:00"^^xsd:date => true
        "08:00:00+09:00"^^xsd:time = "17:00:00-06:00"^^xsd:time => false
        "21:30:00+10:30"^^xsd:time = "06:00:00-05:00"^^xsd:time => true
        "12:00:00"^^xsd:time < "23:00:00+06:00"^^xsd:time => true
        "--12-25-14:00"^^xsd:gMonthDay = "--12-26+10:00"^^xsd:gMonthDay => true
        "---12-14:00"^^xsd:gDay = "---13+10:00"^^xsd:gDay => true
        "P1Y"^^xsd:duration = "P12M"^^xsd:yearMonthDuration => true
        "PT24H"^^xsd:duration = "P1D"^^xsd:duration => true
        "PT0S"^^xsd:dayTimeDuration = "P0M"^^xsd:yearMonthDuration => true
        "P1M"^^xsd:yearMonthDuration = "P30D"^^xsd:dayTimeDuration => false
        "P2Y11M"^^xsd:yearMonthDuration + "P3Y3M"^^xsd:yearMonthDuration => "P6Y2M"^^xsd:yearMonthDuration
        "P2Y11M"^^xsd:yearMonthDuration * 2.3 => "P6Y9M"^^xsd:yearMonthDuration
        "P2Y11M"^^xsd:yearMonthDuration / 1.5 => "P1Y11M"^^xsd:yearMonthDuration
        "P3Y4M"^^xsd:yearMonthDuration / "-P1Y4M"^^xsd:yearMonthDuration => -2.5
        "PT2H10M"^^xsd:dayTimeDuration * 2.1 => "PT4H33M"^^xsd:dayTimeDuration
        "P1DT2H30M10.5S"^^xsd:dayTimeDuration / 1.5 => "PT17H40M7S"^^xsd:dayTimeDuration
        "2000-10-30T06:12:00-05:00"^^xsd:dateTime - "1999-11-28T09:00:00Z"^^xsd:dateTime => "P337DT2H12M"^^xsd:dayTimeDuration
        "2000-10-30"^^xsd:date - "1999-11-28Z"^^xsd:date => "P337D"^^xsd:dayTimeDuration
        "2000-10-30+05:00"^^xsd:date - "1999-11-28Z"^^xsd:date => "P336DT19H"^^xsd:dayTimeDuration
        "11:12:00Z"^^xsd:time - "04:00:00-05:00"^^xsd:time => "PT2H12M"^^xsd:dayTimeDuration
        "2000-10-30T11:12:00"^^xsd:dateTime + "P1Y2M"^^xsd:yearMonthDuration => "2001-12-30T11:12:00"^^xsd:dateTime
        "2000-10-30T11:12:00"^^xsd:dateTime + "P3DT1H15M"^^xsd:dayTimeDuration => "2000-11-02T12:27:00"^^xsd:dateTime
        "2000-10-30"^^xsd:date - "P1Y2M"^^xsd:yearMonthDuration => "1999-08-30"^^xsd:date
        "2000-02-29Z"^^xsd:date - "P1Y"^^xsd:yearMonthDuration => "1999-02-28Z"^^xsd:date
        "2000-10-31-05:00"^^xsd:date - "P1Y1M"^^xsd:yearMonthDuration => "1999-09-30-05:00"^^xsd:date
        "2004-10-30Z"^^xsd:date + "P2DT2H30M0S"^^xsd:dayTimeDuration => "2004-11-01Z"^^xsd:date
        "2000-10-30"^^xsd:date - "P3DT1H15M"^^xsd:dayTimeDuration => "2000-10-26"^^xsd:date
        "11:12:00"^^xsd:time + "P3DT1H15M"^^xsd:dayTimeDuration => "12:27:00"^^xsd:time
        "23:12:00+03:00"^^xsd:time + "P1DT3H15M"^^xsd:dayTimeDuration => "02:27:00+03:00"^^xsd:time
        "08:20:00-05:00"^^xsd:time - "P23DT10H10M"^^xsd:dayTimeDuration => "22:10:00-05:00"^^xsd:time
        "0001-01-01"^^xsd:date - "P1D"^^xsd:dayTimeDuration => "0000-12-31"^^xsd:date
        "-0004-02-29"^^xsd:date + "P1Y"^^xsd:yearMonthDuration => "-0003-02-28"^^xsd:date
        "2019-02-29"^^xsd:date = "2019-02-28"^^xsd:date => error
        YEAR("1999-12-31T24:00:00"^^xsd:dateTime) => 2000
        HOURS("1999-12-31T24:00:00"^^xsd:dateTime) => 0
        MONTH("1999-05-31"^^xsd:date) => 5
        DAY("1999-05-31+05:00"^^xsd:date) => 31
        HOURS("01:23:00+05:00"^^xsd:time) => 1
        SECONDS("2011-01-10T14:45:13.815-05:00"^^xsd:dateTime) => 13.815
        TIMEZONE("2011-01-10T14:45:13.815-05:00"^^xsd:dateTime) => "-PT5H"^^xsd:dayTimeDuration
        TIMEZONE("2011-01-10T14:45:13.815Z"^^xsd:dateTime) => "PT0S"^^xsd:dayTimeDuration
        TIMEZONE("2011-01-10T14:45:13.815"^^xsd:dateTime) => error
        TZ("2011-01-10T14:45:13.815-05:00"^^xsd:dateTime) => "-05:00"
        TZ("2011-01-10T14:45:13.815"^^xsd:dateTime) => ""
        HOURS("1999-05-31"^^xsd:date) => error
        "#,
    );
}

/// Examples of SPARQL 1.1 §17.4.3, and expected results from the W3C's tests.
#[test]
fn strings_are_as_sparql_has_them() {
    check(
        r#"
        STRLEN("chat"@en) => 4
        SUBSTR("foobar", 4) => "bar"
        SUBSTR("foobar"@en, 4, 1) => "b"@en
        SUBSTR("12345", 0, 3) => "12"
        SUBSTR("12345", -3, 5) => "1"
        UCASE("foo"@en) => "FOO"@en
        STRBEFORE("abc", "b") => "a"
        STRBEFORE("abc"@en, "bc") => "a"@en
        STRBEFORE("abc"@en, "b"@cy) => error
        STRBEFORE("abc"@en, "") => ""@en
        STRBEFORE("abc"@en, "xyz") => ""
        STRAFTER("abc"@en, "z") => ""
        STRAFTER("abc"@en, "") => "abc"@en
        STRAFTER("abc", "b"@en) => error
        ENCODE_FOR_URI("Los Angeles"@en) => "Los%20Angeles"
        CONCAT("foo"@en, "bar"@EN) => "foobar"@en
        CONCAT("foo"@en, "bar") => "foobar"
        CONCAT() => ""
        CONCAT("foo", 1) => error
        LANGMATCHES("de-DE", "de-*") => false
        LANGMATCHES("fr-BE", "FR") => true
        LANGMATCHES("", "*") => false
        REPLACE("abcd", "b", "Z") => "aZcd"
        REPLACE("abab", "B", "Z", "i") => "aZaZ"
        REPLACE("abc", "", "z") => error
        REPLACE("abracadabra", "bra", "*") => "a*cada*"
        REPLACE("abracadabra", "a.*a", "*") => "*"
        REPLACE("abracadabra", "a(.)", "a$1$1") => "abbraccaddabbra"
        REPLACE("abracadabra", ".*?", "$1") => error
        REPLACE("AAAA", "A+?", "b") => "bbbb"
        REPLACE("darted", "^(.*?)d(.*)$", "$1c$2") => "carted"
        REPLACE("abcde", "(a)(b)(c)(d)(e)", "$23") => "b3"
        REPLACE("abc", "b", "[$12]") => "a[2]c"
        REPLACE("abc", "b", "[$01]") => "a[]c"
        REPLACE("abc", "b", "$") => error
        REPLACE("abc", "b", "\\n") => error
        REGEX("foobar"@en, "^FOO", "i") => true
        MD5("abc") => "900150983cd24fb0d6963f7d28e17f72"
        SHA1("abc") => "a9993e364706816aba3e25717850c26c9cd0d89d"
        MD5("abc"@en) => error
        STRLANG("chat", "EN") => "chat"@en
        STRDT("123", xsd:integer) => 123
        STRDT("01", xsd:integer) => "01"^^xsd:integer
        DATATYPE("x"@en) => <http://www.w3.org/1999/02/22-rdf-syntax-ns#langString>
        STR("01"^^xsd:integer) => "01"
        "#,
    );
}

#[test]
fn truths_are_as_sparql_has_them() {
    check(
        r#"
        !"x"@en => false
        !"" => true
        !"abc"^^xsd:integer => true
        !"abc"^^xsd:boolean => true
        !"2020-01-01"^^xsd:date => error
        !<http://e/x> => error
        true > false => true
        true || ?unbound => true
        false && ?unbound => false
        false || ?unbound => error
        2 IN (1, 2, 3) => true
        2 IN () => false
        2 IN (<http://e/iri>, "str", 2.0) => true
        2 IN (1/0, 2) => true
        2 IN (2, 1/0) => true
        2 IN (3, 1/0) => error
        2 NOT IN (3, 1/0) => error
        COALESCE(?unbound, 1/0, 5) => 5
        IF(1/0, 1, 2) => error
        "xyz"@en = "xyz"@EN => true
        "xyz" = "xyz"@en => false
        "xyz"^^xsd:integer = "xyz"^^xsd:integer => true
        "xyz"^^xsd:integer = "abc"^^xsd:integer => error
        "xyz"^^xsd:integer = "xyz" => error
        "xyz"^^xsd:integer != "xyz"@en => true
        "a"^^e:dt = "a"^^e:dt2 => error
        "1" = 1 => false
        "1"^^xsd:boolean = true => true
        <http://e/x> < <http://e/y> => error
        <<( e:s e:p 1 )>> = <<( e:s e:p 01 )>> => true
        <<( e:s e:p 1 )>> = <<( e:t e:p "x"^^e:dt )>> => false
        <<( e:s e:p "y"^^e:dt )>> = <<( e:s e:p "x"^^e:dt )>> => error
        SUBJECT(<<( e:s e:p 1 )>>) => <http://e/s>
        TRIPLE("s", e:p, 1) => error
        isNumeric("300"^^xsd:byte) => false
        isNumeric("30"^^xsd:byte) => true
        sameTerm(1, 01) => false
        "#,
    );
}

/// Converts days to dates and back, over eight centuries that include the year 0.
#[test]
fn every_day_has_one_date() {
    use super::temporal::{Temporal, days_in};
    let mut last = None;
    for year in (-401..=401).chain([9999, 10_000, 99_999]) {
        let sign = if year < 0 { "-" } else { "" };
        for month in 1..=12 {
            for day in 1..=days_in(year, month) {
                let text = format!("{sign}{:04}-{month:02}-{day:02}", i64::abs(year));
                let t = Temporal::parse(&text, "date").expect("a date");
                assert_eq!(t.text(), text);
                if (-401..=401).contains(&year) {
                    let days = (t.local
                        / num_rational::BigRational::from(num_bigint::BigInt::from(86_400)))
                    .to_integer();
                    if let Some(last) = last {
                        assert_eq!(&days - 1, last, "{text}");
                    }
                    last = Some(days);
                }
            }
        }
    }
}
