//! The date and time datatypes.

use jindou_model::term::TEMPORAL_TAGS;

/// A date or time datatype. Its number is the position of its tag in `TEMPORAL_TAGS`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum TemporalKind {
    /// `xsd:dateTime`
    DateTime,
    /// `xsd:date`
    Date,
    /// `xsd:time`
    Time,
    /// `xsd:gYear`
    Year,
    /// `xsd:gYearMonth`
    YearMonth,
    /// `xsd:gMonth`
    Month,
    /// `xsd:gMonthDay`
    MonthDay,
    /// `xsd:gDay`
    Day,
}

impl TemporalKind {
    /// The datatype with this tag; `None` for other tags.
    #[must_use]
    pub fn of_tag(tag: u8) -> Option<Self> {
        Some(match tag.checked_sub(*TEMPORAL_TAGS.start())? {
            0 => Self::DateTime,
            1 => Self::Date,
            2 => Self::Time,
            3 => Self::Year,
            4 => Self::YearMonth,
            5 => Self::Month,
            6 => Self::MonthDay,
            7 => Self::Day,
            _ => return None,
        })
    }

    /// The tag of the datatype.
    #[must_use]
    pub fn tag(self) -> u8 {
        TEMPORAL_TAGS.start() + self as u8
    }

    pub(super) fn has_year(self) -> bool {
        matches!(
            self,
            Self::DateTime | Self::Date | Self::Year | Self::YearMonth
        )
    }

    pub(super) fn has_month(self) -> bool {
        matches!(
            self,
            Self::DateTime | Self::Date | Self::YearMonth | Self::Month | Self::MonthDay
        )
    }

    pub(super) fn has_day(self) -> bool {
        matches!(
            self,
            Self::DateTime | Self::Date | Self::MonthDay | Self::Day
        )
    }

    pub(super) fn has_time(self) -> bool {
        matches!(self, Self::DateTime | Self::Time)
    }
}
