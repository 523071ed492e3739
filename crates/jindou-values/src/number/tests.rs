use super::*;

const INTEGER: u8 = FIRST_DATATYPE;

fn n(tag: u8, lexical: &str) -> Number {
    Number::parse(tag, lexical).unwrap_or_else(|| panic!("{lexical}"))
}

/// Numbers that fit 64 bits are small, larger ones are not. The effects of numbers in queries are tested by
/// `crates/jindou/tests/cases/values/numbers.test`.
#[test]
fn large_numbers_have_their_own_form() {
    assert_eq!(n(INTEGER, "+007"), Num::Int(7).into());
    assert_eq!(
        n(INTEGER, &format!("{}7", "0".repeat(50))),
        Num::Int(7).into()
    );
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
    assert_eq!(Number::parse(b'"', "1"), None);
    let (max, one) = (n(INTEGER, "9223372036854775807"), n(INTEGER, "1"));
    let more = max.compute(Arithmetic::Add, &one).unwrap();
    assert_eq!(more.compute(Arithmetic::Subtract, &one), Some(max));
}

#[test]
fn all_numbers_have_an_order() {
    let order = |a: Number, b: Number| a.total_order(&b);
    let nines = n(INTEGER, &"9".repeat(400));
    assert_eq!(order(nines, n(DOUBLE_TAG, "INF")), Ordering::Less);
    let tenths = (n(DECIMAL_TAG, "0.1"), n(DOUBLE_TAG, "0.1"));
    assert_eq!(order(tenths.0, tenths.1), Ordering::Less);
    let ends = (n(DOUBLE_TAG, "NaN"), n(DOUBLE_TAG, "INF"));
    assert_eq!(order(ends.0, ends.1), Ordering::Greater);
}
