use super::*;
use proptest::prelude::*;

fn text(t: Option<Temporal>) -> String {
    let mut out = vec![];
    match t {
        Some(t) => t.push_text(&mut out),
        None => return "error".into(),
    }
    String::from_utf8(out).unwrap()
}

/// Values without a time zone, or that are not ordered. Lexical forms and the specification's examples are tested by
/// `crates/jindou/tests/cases/values/dates_and_times.test`.
#[test]
fn without_a_zone_and_without_an_order() {
    let parse = |kind, s| Temporal::parse(kind, s).unwrap();
    let zoned = parse(TemporalKind::DateTime, "2002-03-07T10:00:00-07:00");
    assert_eq!(text(zoned.adjust(None)), "2002-03-07T10:00:00");
    let year = parse(TemporalKind::Year, "2011");
    assert_eq!(year.order(parse(TemporalKind::YearMonth, "2011-01")), None);
}

proptest! {
    #[test]
    fn days_and_dates(day in -80_000_000_000_000i64..80_000_000_000_000) {
        let c = civil(day);
        prop_assert_eq!(days(c.year, c.month, c.day), day);
        prop_assert!((1..=12).contains(&c.month) && (1..=days_of_month(c.year, c.month)).contains(&c.day));
        let next = civil(day + 1);
        prop_assert!(next.day == c.day + 1 || next.day == 1 && c.day == days_of_month(c.year, c.month));
    }

    #[test]
    fn what_is_written_is_read(seconds in -4_000_000_000_000i64..4_000_000_000_000, nanos in 0u32..1_000_000_000, zone in -840i16..=840, kind in 0u8..8) {
        let moment = Temporal { zone, ..Temporal::date_time(seconds, nanos).unwrap() };
        let kind = TemporalKind::of_tag(0x91 + kind).unwrap();
        let value = moment.cast(kind).unwrap();
        prop_assert_eq!(Temporal::parse(kind, &text(Some(value))), Some(value));
    }
}
