//! The proleptic Gregorian calendar.

/// Year, month and day.
#[derive(Clone, Copy)]
pub(super) struct Civil {
    pub year: i64,
    pub month: i64,
    pub day: i64,
}

/// Number of days from 1970-01-01 to a day of the proleptic Gregorian calendar. The year 0 is 1 BCE (XSD 1.1).
pub(crate) fn days(year: i64, month: i64, day: i64) -> i64 {
    // Years are counted from March to February, so that a leap day is the last day.
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year - era * 400;
    let of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// The day of the calendar that is this many days after 1970-01-01.
pub(super) fn civil(days: i64) -> Civil {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days - era * 146_097;
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    Civil {
        year: year + era * 400 + i64::from(month <= 2),
        month,
        day,
    }
}

pub(super) fn days_of_month(year: i64, month: i64) -> i64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    }
}
