//! LUBM's 14 official queries (Guo, Pan, Heflin: LUBM: A benchmark for OWL knowledge base systems, J. Web Semantics
//! 2005), here O1 to O14. O1, O2, O3 and O14 need no inference: their answers are the same over the plain data and over
//! [`crate::lubm::Inferred`]. The other queries have fewer rows without inference, most of them none.

use super::lubm::LubmQuery;

/// All queries in the published order.
pub const QUERIES: [LubmQuery; 14] = queries!(
    "lubm",
    "PREFIX ub: <http://swat.cse.lehigh.edu/onto/univ-bench.owl#>\n",
    "O1" "O2" "O3" "O4" "O5" "O6" "O7" "O8" "O9" "O10" "O11" "O12" "O13" "O14"
);

/// Numbers of rows over LUBM(1) with seed 0 and all inferred statements: the benchmark's published reference answers.
const INFERRED_1: [u64; 14] = [4, 0, 6, 34, 719, 7790, 67, 7790, 208, 4, 224, 15, 1, 5916];

/// Number of rows of query `name` over LUBM(`universities`) with seed 0 and all inferred statements, if it is
/// published.
pub fn inferred_rows(name: &str, universities: u32) -> Option<u64> {
    let place = QUERIES.iter().position(|q| q.name == name)?;
    (universities == 1).then(|| INFERRED_1[place])
}
