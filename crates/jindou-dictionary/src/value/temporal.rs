//! Dates, times and durations as numbers that sort.

use jindou_model::term::{BOOLEAN_TAG, NUMERIC_TAGS, TEMPORAL_TAGS};
use oxsdatatypes::{
    Date, DateTime, DayTimeDuration, Duration, GDay, GMonth, GMonthDay, GYear, GYearMonth, Time,
    YearMonthDuration,
};
use std::cmp::Ordering;
use std::str::FromStr;

/// Values that compare with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// All numeric datatypes.
    Numeric,
    /// `xsd:boolean`: false has rank 0, true 1.
    Boolean,
    /// A date or time datatype, by its tag's place in `TEMPORAL_TAGS` (0 = `dateTime` … 7 = `gDay`).
    Temporal(u8),
    /// `xsd:duration` and the two types derived from it. Ranks extend the partial order.
    Duration,
}

/// Number of temporal groups.
pub(crate) const TEMPORAL_GROUPS: u8 = 8;

impl Group {
    /// The group of a tag; `None` for tags without ranks.
    #[must_use]
    pub fn of_tag(tag: u8) -> Option<Self> {
        if NUMERIC_TAGS.contains(&tag) {
            Some(Self::Numeric)
        } else if tag == BOOLEAN_TAG {
            Some(Self::Boolean)
        } else if TEMPORAL_TAGS.contains(&tag) {
            let place = tag - TEMPORAL_TAGS.start();
            Some(if place < TEMPORAL_GROUPS {
                Self::Temporal(place)
            } else {
                Self::Duration
            })
        } else {
            None
        }
    }
}

/// A date or time on the time line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TemporalKey {
    /// 10⁻¹⁸ seconds from the start of year 1, in UTC; without a time zone, as if it were UTC.
    pub instant: i128,
    /// True when there is no time zone.
    pub unzoned: bool,
}

/// 14 hours in units of [`TemporalKey::instant`].
const ZONES: i128 = 14 * 3600 * 1_000_000_000_000_000_000;

impl TemporalKey {
    /// The key of a lexical form of the datatype with this tag; `None` when ill-typed, out of range
    /// or not a date or time.
    #[must_use]
    pub fn parse(tag: u8, lexical: &str) -> Option<Self> {
        let Some(Group::Temporal(place)) = Group::of_tag(tag) else {
            return None;
        };
        macro_rules! key {
            ($type:ty) => {{
                let v = <$type>::from_str(lexical).ok()?;
                // The first 16 bytes are the instant as a decimal with 18 places.
                let bytes = v.to_be_bytes();
                let instant = i128::from_be_bytes(*bytes.first_chunk::<16>()?);
                Some(Self {
                    instant,
                    unzoned: v.timezone_offset().is_none(),
                })
            }};
        }
        match place {
            0 => key!(DateTime),
            1 => key!(Date),
            2 => key!(Time),
            3 => key!(GYear),
            4 => key!(GYearMonth),
            5 => key!(GMonth),
            6 => key!(GMonthDay),
            _ => key!(GDay),
        }
    }

    /// The order of two values of one datatype; `None` when only one has a time zone and they are
    /// within 14 hours of each other (XSD 1.0, which SPARQL follows).
    #[must_use]
    pub fn compare(self, other: Self) -> Option<Ordering> {
        if self.unzoned == other.unzoned {
            return Some(self.instant.cmp(&other.instant));
        }
        if self.instant < other.instant.saturating_sub(ZONES) {
            Some(Ordering::Less)
        } else if self.instant > other.instant.saturating_add(ZONES) {
            Some(Ordering::Greater)
        } else {
            None
        }
    }
}

/// A linear extension of the order of durations: equal if and only if the durations are, and less
/// whenever a duration is less for sure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DurationKey {
    /// Sum of the seconds after the four reference dates of XSD, whole and rest.
    whole: i128,
    rest: i128,
    months: i64,
}

/// The key of a duration of any of the three types; `None` when ill-typed or out of range.
pub(crate) fn duration_key(tag: u8, lexical: &str) -> Option<DurationKey> {
    const UNIT: i128 = 1_000_000_000_000_000_000;
    let duration: Duration = match tag - TEMPORAL_TAGS.start() {
        8 => Duration::from_str(lexical).ok()?,
        9 => DayTimeDuration::from_str(lexical).ok()?.into(),
        10 => YearMonthDuration::from_str(lexical).ok()?.into(),
        _ => return None,
    };
    let bytes = duration.to_be_bytes();
    let months = i64::from_be_bytes(*bytes.first_chunk::<8>()?);
    let seconds = i128::from_be_bytes(*bytes.last_chunk::<16>()?);
    let mut days = 0i128;
    for (year, month) in [(1969, 9), (1697, 2), (1903, 3), (1903, 7)] {
        let from = year * 12 + month - 1;
        days += days_to_month(from + i128::from(months)) - days_to_month(from);
    }
    let rest = seconds.rem_euclid(UNIT) * 4;
    let whole = seconds.div_euclid(UNIT) * 4 + days * 86_400 + rest.div_euclid(UNIT);
    Some(DurationKey {
        whole,
        rest: rest.rem_euclid(UNIT),
        months,
    })
}

/// Days from the start of year 0 to the first of a month, given in months since then.
fn days_to_month(month: i128) -> i128 {
    let (year, month) = (month.div_euclid(12), month.rem_euclid(12) as usize);
    // Leap days before the year.
    let before = year - 1;
    let leaps = before.div_euclid(4) - before.div_euclid(100) + before.div_euclid(400);
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334][month];
    year * 365 + leaps + days + i128::from(leap && month > 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DATE_TIME: u8 = 0x91;

    fn date_time() -> impl Strategy<Value = String> {
        (
            2019i64..2021,
            11u8..13,
            29u8..31,
            0u8..24,
            prop_oneof![Just("00"), Just("59.5"), Just("00.000")],
            prop_oneof![
                Just(""),
                Just("Z"),
                Just("+14:00"),
                Just("-14:00"),
                Just("-05:30")
            ],
        )
            .prop_map(|(y, m, d, h, s, z)| format!("{y:04}-{m:02}-{d:02}T{h:02}:00:{s}{z}"))
    }

    proptest! {
        #[test]
        fn instants_compare_as_in_oxsdatatypes(a in date_time(), b in date_time()) {
            let (x, y): (DateTime, DateTime) = (a.parse().unwrap(), b.parse().unwrap());
            let (k, l) = (TemporalKey::parse(DATE_TIME, &a).unwrap(), TemporalKey::parse(DATE_TIME, &b).unwrap());
            prop_assert_eq!(k.compare(l), x.partial_cmp(&y), "{} {}", a, b);
        }

        #[test]
        fn durations_extend_the_order_of_oxsdatatypes(
            a in (-30i64..30, -40i64..40, 0u8..3), b in (-30i64..30, -40i64..40, 0u8..3)
        ) {
            let text = |(m, d, f): (i64, i64, u8)| {
                // One sign for all: the components of a duration share theirs.
                let m = if (m < 0) == (d < 0) { m } else { -m };
                let sign = if m < 0 || d < 0 { "-" } else { "" };
                format!("{sign}P{}M{}DT0.{f}S", m.abs(), d.abs())
            };
            let (a, b) = (text(a), text(b));
            let (x, y): (Duration, Duration) = (a.parse().unwrap(), b.parse().unwrap());
            let (k, l) = (duration_key(0x99, &a).unwrap(), duration_key(0x99, &b).unwrap());
            prop_assert_eq!(k == l, x == y);
            if let Some(order) = x.partial_cmp(&y) && order != Ordering::Equal {
                prop_assert_eq!(k.cmp(&l), order, "{} {}", a, b);
            }
        }
    }

    #[test]
    fn each_datatype_has_its_own_line() {
        for (tag, text) in [
            (0x91, "2020-01-01T00:00:00"),
            (0x92, "2020-01-01"),
            (0x93, "12:00:00Z"),
            (0x94, "2020"),
            (0x95, "2020-05"),
            (0x96, "--05"),
            (0x97, "--05-03"),
            (0x98, "---03Z"),
        ] {
            assert!(TemporalKey::parse(tag, text).is_some(), "{text}");
            assert!(TemporalKey::parse(tag, "x").is_none());
        }
        assert!(TemporalKey::parse(0x99, "P1D").is_none());
        assert!(duration_key(0x9A, "P1M").is_none());
        assert_eq!(duration_key(0x9A, "PT24H"), duration_key(0x99, "P1D"));
        assert_eq!(duration_key(0x9B, "P1Y"), duration_key(0x99, "P12M"));
    }
}
