use super::*;

const INTEGER: u8 = FIRST_DATATYPE;

fn n(tag: u8, lexical: &str) -> Number {
    Number::parse(tag, lexical).unwrap_or_else(|| panic!("{lexical}"))
}

fn text(n: Option<Number>) -> String {
    let mut out = vec![];
    match n {
        Some(n) => n.push_text(&mut out),
        None => return "error".into(),
    }
    String::from_utf8(out).unwrap()
}

#[test]
fn lexical_forms_of_each_type() {
    assert_eq!(n(INTEGER, "+007"), Num::Int(7).into());
    assert_eq!(
        n(INTEGER, &format!("{}7", "0".repeat(50))),
        Num::Int(7).into()
    );
    assert_eq!(Number::parse(INTEGER, "1.0"), None);
    assert_eq!(Number::parse(INTEGER, "1."), None);
    assert!(matches!(
        n(INTEGER, "99999999999999999999"),
        Number::Integer(_)
    ));
    assert_eq!(
        n(DECIMAL_TAG, "1.50"),
        Num::Dec(Decimal::parse("1.5").unwrap()).into()
    );
    assert!(matches!(n(DECIMAL_TAG, &"0".repeat(60)), Number::Small(_)));
    assert!(matches!(
        n(DECIMAL_TAG, "0.1234567890123456789"),
        Number::Decimal(_)
    ));
    assert_eq!(Number::parse(DECIMAL_TAG, "1e0"), None);
    assert_eq!(n(DOUBLE_TAG, "-INF"), Num::Dbl(f64::NEG_INFINITY).into());
    assert_eq!(n(DOUBLE_TAG, "1E400"), Num::Dbl(f64::INFINITY).into());
    assert_eq!(n(DOUBLE_TAG, "1e3"), Num::Dbl(1000.0).into());
    for bad in [
        "inf", "nan", "infinity", "", "e5", "1e", "0x10", "1_0", " 1",
    ] {
        assert_eq!(Number::parse(DOUBLE_TAG, bad), None, "{bad}");
        assert_eq!(Number::parse(FLOAT_TAG, bad), None, "{bad}");
    }
    assert_eq!(Number::parse(b'"', "1"), None);
}

#[test]
fn derived_integers_have_their_ranges() {
    let code = |name: &str| {
        jindou_model::term::datatype_code(&format!("http://www.w3.org/2001/XMLSchema#{name}"))
            .unwrap()
    };
    for (name, good, bad) in [
        ("byte", &["-128", "127"][..], &["-129", "128", "300"][..]),
        ("unsignedByte", &["0", "255", "-0"], &["-1", "256"]),
        ("short", &["-32768"], &["32768"]),
        ("int", &["2147483647"], &["2147483648"]),
        (
            "long",
            &["9223372036854775807"],
            &["9223372036854775808", "-9223372036854775809"],
        ),
        (
            "unsignedLong",
            &["18446744073709551615"],
            &["18446744073709551616", "-1", "-99999999999999999999"],
        ),
        (
            "nonNegativeInteger",
            &["0", "99999999999999999999999999"],
            &["-1", "-99999999999999999999999"],
        ),
        ("positiveInteger", &["1"], &["0"]),
        (
            "nonPositiveInteger",
            &["0", "-99999999999999999999999"],
            &["1", "99999999999999999999999"],
        ),
        ("negativeInteger", &["-1"], &["0"]),
    ] {
        for s in good {
            assert!(Number::parse(code(name), s).is_some(), "{name} {s}");
        }
        for s in bad {
            assert!(Number::parse(code(name), s).is_none(), "{name} {s}");
        }
    }
}

/// F&O 3.1 §4.2 and §4.4: the examples, and the edges of 64 bits.
#[test]
fn arithmetic() {
    use Arithmetic::{Add, Divide, Multiply, Subtract};
    let max = n(INTEGER, "9223372036854775807");
    let one = n(INTEGER, "1");
    assert_eq!(text(max.compute(Add, &one)), "9223372036854775808");
    assert_eq!(
        text(max.compute(Multiply, &max)),
        "85070591730234615847396907784232501249"
    );
    assert_eq!(
        max.compute(Add, &one).unwrap().compute(Subtract, &one),
        Some(max.clone())
    );
    assert_eq!(
        text(n(INTEGER, "-9223372036854775808").negate()),
        "9223372036854775808"
    );
    assert_eq!(text(one.compute(Divide, &n(INTEGER, "0"))), "error");
    assert_eq!(text(one.compute(Divide, &n(DOUBLE_TAG, "0"))), "INF");
    assert_eq!(
        text(n(INTEGER, "0").compute(Divide, &n(DECIMAL_TAG, "0.5"))),
        "0"
    );
    assert_eq!(
        text(n(DECIMAL_TAG, "3").compute(Divide, &n(INTEGER, "4"))),
        "0.75"
    );
    let long = n(DECIMAL_TAG, "0.12345678901234567890123");
    assert_eq!(
        text(long.compute(Multiply, &n(DOUBLE_TAG, "1"))),
        "0.12345678901234568"
    );
    assert_eq!(text(long.compute(Subtract, &long)), "0");
    assert_eq!(
        text(n(DECIMAL_TAG, "0.0000000001").compute(Multiply, &n(DECIMAL_TAG, "0.0000000001"))),
        "0.00000000000000000001"
    );
    assert_eq!(
        text(n(FLOAT_TAG, "1.5").compute(Add, &n(INTEGER, "1"))),
        "2.5"
    );
    for (tag, value, want) in [
        (DECIMAL_TAG, "2.5", "3"),
        (DECIMAL_TAG, "2.4999", "2"),
        (DOUBLE_TAG, "-2.5", "-2"),
        (DOUBLE_TAG, "-0.2", "-0"),
        (DOUBLE_TAG, "0.49999999999999994", "0"),
        (DOUBLE_TAG, "4503599627370497.5", "4.503599627370498E15"),
        (FLOAT_TAG, "-0.5", "-0"),
        (INTEGER, "99999999999999999999", "99999999999999999999"),
        (DOUBLE_TAG, "NaN", "NaN"),
    ] {
        assert_eq!(text(n(tag, value).round()), want, "{value}");
    }
    assert_eq!(text(n(DECIMAL_TAG, "10.5").ceil()), "11");
    assert_eq!(text(n(DECIMAL_TAG, "-10.5").ceil()), "-10");
    assert_eq!(text(n(DECIMAL_TAG, "-10.5").floor()), "-11");
    assert_eq!(text(n(DECIMAL_TAG, "-10.5").abs()), "10.5");
}

#[test]
fn numbers_compare_in_the_wider_type() {
    let order = |a: (u8, &str), b: (u8, &str)| n(a.0, a.1).order(&n(b.0, b.1));
    let equal = Some(Ordering::Equal);
    assert_eq!(order((INTEGER, "16777217"), (FLOAT_TAG, "16777216")), equal);
    assert_eq!(
        order((INTEGER, "16777217"), (DOUBLE_TAG, "16777216")),
        Some(Ordering::Greater)
    );
    assert_eq!(order((DECIMAL_TAG, "0.1"), (DOUBLE_TAG, "0.1")), equal);
    assert_eq!(
        order((FLOAT_TAG, "0.1"), (DOUBLE_TAG, "0.1")),
        Some(Ordering::Greater)
    );
    assert_eq!(order((DOUBLE_TAG, "-0"), (DOUBLE_TAG, "0")), equal);
    assert_eq!(order((DOUBLE_TAG, "NaN"), (INTEGER, "0")), None);
    let digits = "123456789012345678901234567890";
    assert_eq!(
        order((INTEGER, digits), (DECIMAL_TAG, &format!("{digits}.0"))),
        equal
    );
    assert_eq!(
        order(
            (INTEGER, "100000000000000000000"),
            (DECIMAL_TAG, "100000000000000000000.0")
        ),
        equal
    );
    assert_eq!(
        order(
            (INTEGER, digits),
            (DECIMAL_TAG, &format!("{digits}.00000000000000000001"))
        ),
        Some(Ordering::Less)
    );
    assert_eq!(
        order((INTEGER, &"9".repeat(400)), (DOUBLE_TAG, "INF")),
        equal
    );
    let total = n(INTEGER, &"9".repeat(400)).total_order(&n(DOUBLE_TAG, "INF"));
    assert_eq!(total, Ordering::Less);
    assert_eq!(
        n(DECIMAL_TAG, "0.1").total_order(&n(DOUBLE_TAG, "0.1")),
        Ordering::Less
    );
    assert_eq!(
        n(DOUBLE_TAG, "NaN").total_order(&n(DOUBLE_TAG, "INF")),
        Ordering::Greater
    );
}

/// F&O 3.1 §19.1.1.
#[test]
fn canonical_forms() {
    for (tag, value, want) in [
        (INTEGER, "+01", "1"),
        (INTEGER, "-0", "0"),
        (DECIMAL_TAG, "1.0", "1"),
        (DECIMAL_TAG, "-00.50", "-0.5"),
        (DOUBLE_TAG, "1e0", "1"),
        (DOUBLE_TAG, "1.5e5", "150000"),
        (DOUBLE_TAG, "1e6", "1.0E6"),
        (DOUBLE_TAG, "1e-7", "1.0E-7"),
        (DOUBLE_TAG, "0.000001", "0.000001"),
        (DOUBLE_TAG, "-1.25e20", "-1.25E20"),
        (DOUBLE_TAG, "-0", "-0"),
        (FLOAT_TAG, "1e38", "1.0E38"),
        (FLOAT_TAG, "0.1", "0.1"),
        (DOUBLE_TAG, "-INF", "-INF"),
    ] {
        assert_eq!(text(Some(n(tag, value))), want);
    }
}
