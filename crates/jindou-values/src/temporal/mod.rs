//! Dates and times: XSD's seven-property model, stored as local seconds and a time zone.

mod calendar;
mod kind;
mod lexical;
#[cfg(test)]
mod tests;

pub(crate) use calendar::days;
pub use kind::TemporalKind;

use crate::decimal::Decimal;
use crate::duration::{DAY_TIME, Duration, UNIT};
use calendar::{Civil, civil, days_of_month};
use std::cmp::Ordering;

/// A value of a date or time datatype. Parts that a datatype does not have are those of 1972-12-31T00:00:00, except
/// that gYear and gYearMonth begin on the first of January or of the month (F&O 3.1 §9.4: starting instants). Years
/// range up to some 200 billion in both directions, and seconds have 18 digits after the point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Temporal {
    /// Seconds of local time since 1970-01-01T00:00:00.
    seconds: i64,
    /// Fraction of a second, in units of 10⁻¹⁸ seconds.
    units: u64,
    /// Minutes by which local time is ahead of UTC; [`NONE`] without a time zone.
    zone: i16,
    kind: TemporalKind,
}

/// Value of `zone` without a time zone.
const NONE: i16 = i16::MIN;
/// Largest year in either direction.
const MOST_YEARS: i64 = 200_000_000_000;
const DAY: i64 = 86_400;

impl Temporal {
    /// The `xsd:dateTime` of a moment in UTC: seconds since 1970-01-01T00:00:00Z and additional nanoseconds. `None` if
    /// it is out of range.
    #[must_use]
    pub fn date_time(seconds: i64, nanoseconds: u32) -> Option<Self> {
        Self {
            seconds: 0,
            units: u64::from(nanoseconds) * 1_000_000_000,
            zone: 0,
            kind: TemporalKind::DateTime,
        }
        .at(seconds)
    }

    /// 1970-01-01T00:00:00Z.
    pub const EPOCH: Self = Self {
        seconds: 0,
        units: 0,
        zone: 0,
        kind: TemporalKind::DateTime,
    };

    /// The datatype.
    #[must_use]
    pub fn kind(self) -> TemporalKind {
        self.kind
    }

    /// Units of 10⁻¹⁸ seconds from 1970-01-01T00:00:00Z to the value's start. A value without a time zone is taken as
    /// UTC.
    #[must_use]
    pub fn instant(self) -> i128 {
        let zone = i64::from(if self.zone == NONE { 0 } else { self.zone });
        i128::from(self.seconds - zone * 60) * UNIT + i128::from(self.units)
    }

    /// The order of two values of the same datatype (F&O 3.1 §9.4), with UTC for missing time zones; values such as
    /// gYear are compared by their starting instants. `None` for different datatypes.
    #[must_use]
    pub fn order(self, other: Self) -> Option<Ordering> {
        (self.kind == other.kind).then(|| self.instant().cmp(&other.instant()))
    }

    /// The value with other local seconds; `None` if it is out of range.
    fn at(self, seconds: i64) -> Option<Self> {
        const MOST: i64 = MOST_YEARS * 366 * DAY;
        (-MOST..=MOST)
            .contains(&seconds)
            .then_some(Self { seconds, ..self })
    }

    fn local(self) -> i128 {
        i128::from(self.seconds) * UNIT + i128::from(self.units)
    }

    fn at_local(self, local: i128) -> Option<Self> {
        let units = local.rem_euclid(UNIT) as u64;
        Self { units, ..self }.at(i64::try_from(local.div_euclid(UNIT)).ok()?)
    }

    fn civil(self) -> Civil {
        civil(self.seconds.div_euclid(DAY))
    }

    fn of_day(self) -> i64 {
        self.seconds.rem_euclid(DAY)
    }

    /// The local year; `None` for datatypes without a year.
    #[must_use]
    pub fn year(self) -> Option<i64> {
        self.kind.has_year().then(|| self.civil().year)
    }

    /// The local month; `None` for datatypes without a month.
    #[must_use]
    pub fn month(self) -> Option<i64> {
        self.kind.has_month().then(|| self.civil().month)
    }

    /// The local day of the month; `None` for datatypes without a day.
    #[must_use]
    pub fn day(self) -> Option<i64> {
        self.kind.has_day().then(|| self.civil().day)
    }

    /// The local hour; `None` for datatypes without an hour.
    #[must_use]
    pub fn hour(self) -> Option<i64> {
        self.kind.has_time().then(|| self.of_day() / 3600)
    }

    /// The minute; `None` for datatypes without a minute.
    #[must_use]
    pub fn minute(self) -> Option<i64> {
        self.kind.has_time().then(|| self.of_day() / 60 % 60)
    }

    /// The seconds of the minute; `None` for datatypes without seconds.
    #[must_use]
    pub fn second(self) -> Option<Decimal> {
        self.kind.has_time().then(|| {
            Decimal::from_units(i128::from(self.of_day() % 60) * UNIT + i128::from(self.units))
        })
    }

    /// The time zone as a duration; `None` if there is none.
    #[must_use]
    pub fn zone(self) -> Option<Duration> {
        if self.zone == NONE {
            return None;
        }
        Duration::new(DAY_TIME, 0, i128::from(self.zone) * 60 * UNIT)
    }

    /// The value in another time zone, or without one (fn:adjust-dateTime-to-timezone and the like, F&O 3.1 §9.6).
    /// Local time changes only if there is a time zone before and after. `None` for other datatypes than dateTime, date
    /// and time, and for a duration that is not a time zone: whole minutes, up to 14 hours.
    #[must_use]
    pub fn adjust(self, zone: Option<Duration>) -> Option<Self> {
        if !matches!(
            self.kind,
            TemporalKind::DateTime | TemporalKind::Date | TemporalKind::Time
        ) {
            return None;
        }
        let Some(zone) = zone else {
            return Some(Self { zone: NONE, ..self });
        };
        let minutes = zone.units() / (60 * UNIT);
        if zone.months() != 0 || zone.units() % (60 * UNIT) != 0 || minutes.abs() > 840 {
            return None;
        }
        let to = minutes as i16;
        if self.zone == NONE {
            return Some(Self { zone: to, ..self });
        }
        let moved = self.at(self.seconds + i64::from(to - self.zone) * 60)?;
        Some(Self { zone: to, ..moved }.normal())
    }

    /// Resets the parts that the datatype does not have: a date's time, a time's date.
    fn normal(self) -> Self {
        let seconds = match self.kind {
            TemporalKind::Date => self.seconds - self.of_day(),
            TemporalKind::Time => days(1972, 12, 31) * DAY + self.of_day(),
            _ => self.seconds,
        };
        let units = if self.kind == TemporalKind::Date {
            0
        } else {
            self.units
        };
        Self {
            seconds,
            units,
            ..self
        }
    }

    /// The duration from the other value to this one. `None` unless both are dates, times or dateTimes, or if it is out
    /// of range.
    #[must_use]
    pub fn subtract(self, other: Self) -> Option<Duration> {
        if self.kind != other.kind || self.kind > TemporalKind::Time {
            return None;
        }
        Duration::new(DAY_TIME, 0, self.instant() - other.instant())
    }

    /// The value plus a duration (XSD 1.1 §E.3.3): months are added first, and the day is limited to the last of the
    /// month; then seconds. A time wraps around at midnight and ignores months. `None` for other datatypes, and if it
    /// is out of range.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Option<Self> {
        if self.kind > TemporalKind::Time {
            return None;
        }
        let mut moved = self;
        if duration.months() != 0 {
            if self.kind == TemporalKind::Time {
                return None;
            }
            let date = self.civil();
            let month = date.year * 12 + date.month - 1 + duration.months();
            let (year, month) = (month.div_euclid(12), month.rem_euclid(12) + 1);
            let day = date.day.min(days_of_month(year, month));
            moved = self.at(days(year, month, day) * DAY + self.of_day())?;
        } else if self.kind == TemporalKind::Time && duration.tag() == crate::duration::YEAR_MONTH {
            return None;
        }
        let local = moved.local().checked_add(duration.units())?;
        Some(moved.at_local(local)?.normal())
    }

    /// The value converted to another datatype; `None` unless the value has all of its parts (F&O 3.1 §19.1.5).
    #[must_use]
    pub fn cast(self, kind: TemporalKind) -> Option<Self> {
        if self.kind == kind {
            return Some(self);
        }
        let allowed = match self.kind {
            TemporalKind::DateTime => true,
            TemporalKind::Date => kind != TemporalKind::Time,
            _ => false,
        };
        if !allowed {
            return None;
        }
        let date = self.civil();
        let day = |year, month, day| days(year, month, day) * DAY;
        let seconds = match kind {
            TemporalKind::DateTime => self.seconds,
            TemporalKind::Date | TemporalKind::Time => {
                return Some(Self { kind, ..self }.normal());
            }
            TemporalKind::Year => day(date.year, 1, 1),
            TemporalKind::YearMonth => day(date.year, date.month, 1),
            TemporalKind::Month => day(1972, date.month, 1),
            TemporalKind::MonthDay => day(1972, date.month, date.day),
            TemporalKind::Day => day(1972, 12, date.day),
        };
        let units = if kind == TemporalKind::DateTime {
            self.units
        } else {
            0
        };
        Some(Self {
            seconds,
            units,
            kind,
            ..self
        })
    }
}
