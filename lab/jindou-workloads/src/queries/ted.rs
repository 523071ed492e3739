//! Twenty queries over Europe's procurement notices (TED), from `queries/ted`. `counts.tsv` there has their numbers of
//! rows.

use super::lubm::LubmQuery;

/// All queries, by number.
pub const QUERIES: [LubmQuery; 20] = queries!(
    "ted",
    "",
    "t01-notice-by-number" "t02-who-won-this" "t03-everything-about" "t04-top-winners" "t05-spending-by-country"
    "t06-largest-awards" "t07-single-bids" "t08-awarded-without-a-call" "t09-across-borders" "t10-small-firms" "t11-hospitals"
    "t12-languages" "t13-one-month" "t14-construction" "t15-nobody-won" "t16-contacts" "t17-european-money" "t18-competition"
    "t19-missing-predecessors" "t20-above-the-mean"
);
