//! Published counts of LUBM with seed 0. They were obtained by running the original generator (UBA 1.7 on Java 17).

/// The counts of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Totals {
    /// The size: N of LUBM(N).
    pub universities: u32,
    /// Number of departments; the original writes a file for each.
    pub departments: u32,
    /// Number of statements written, without the two header statements of each file.
    pub raw: u64,
    /// Number of distinct triples.
    pub distinct: u64,
    /// Number of undergraduate courses.
    pub courses: u64,
}

#[rustfmt::skip]
const TOTALS: [[u64; 5]; 21] = [
    // universities, departments, raw, distinct, courses
    [1, 15, 103_074, 100_543, 828],
    [5, 93, 645_649, 624_532, 5_063],
    [10, 189, 1_316_322, 1_272_575, 10_278],
    [20, 402, 2_781_322, 2_688_046, 21_763],
    [40, 799, 5_494_144, 5_307_458, 43_291],
    [50, 999, 6_888_642, 6_654_562, 54_052],
    [100, 2_007, 13_875_956, 13_405_381, 108_634],
    [160, 3_200, 22_091_520, 21_341_599, 173_040],
    [200, 4_005, 27_635_634, 26_696_578, 216_469],
    [320, 6_389, 44_090_415, 42_590_917, 345_201],
    [500, 9_998, 69_079_764, 66_731_200, 540_113],
    [640, 12_798, 88_401_693, 85_394_992, 691_372],
    [800, 16_003, 110_538_122, 106_778_392, 864_264],
    [1_000, 20_020, 138_278_374, 133_573_854, 1_081_187],
    [1_280, 25_614, 176_921_301, 170_903_921, 1_382_763],
    [2_560, 51_202, 353_817_635, 341_786_543, 2_765_067],
    [4_000, 80_002, 552_843_907, 534_043_573, 4_320_678],
    [5_000, 99_987, 690_885_862, 667_392_640, 5_399_518],
    [5_120, 102_383, 707_440_388, 683_383_730, 5_528_917],
    [8_000, 160_006, 1_105_673_078, 1_068_074_675, 8_640_987],
    [10_240, 204_795, 1_414_831_766, 1_366_712_441, 11_058_812],
];

/// The sizes whose counts are known, ascending.
pub fn all() -> impl Iterator<Item = Totals> {
    TOTALS.iter().map(|t| Totals {
        universities: t[0] as u32,
        departments: t[1] as u32,
        raw: t[2],
        distinct: t[3],
        courses: t[4],
    })
}

/// The counts of LUBM(`universities`), if known.
pub fn totals(universities: u32) -> Option<Totals> {
    all().find(|t| t.universities == universities)
}

/// SHA-256 of the data as sorted N-Triples (in byte order, without duplicates, lines ending with LF), for the sizes for
/// which it is known: 1, 10 and 50.
pub fn sorted_sha256(universities: u32) -> Option<&'static str> {
    match universities {
        1 => Some("d28d8017c82ff50164650690e2e1a600bd7cf07e223bf43b91f666e8545ae0bd"),
        10 => Some("bf93121c3a9b8ba15eaab5f33190bcf9381c4dee6a16435d2dfd9268cd1a2e34"),
        50 => Some("d3268a047fbd70c8392ae9adcc0aec7bd4c298af043022ebd36d62d70bfad113"),
        _ => None,
    }
}
