//! Results printed in the paper: J. Shi, Y. Yao, R. Chen, H. Chen, F. Li: *Fast and Concurrent RDF Queries with
//! RDMA-based Distributed Graph Exploration*, OSDI '16. Times are in milliseconds, averages of five runs, and leave out
//! the mapping between strings and ids (§7.1).

/// A machine of the paper's cluster (§7.1).
pub const HARDWARE: &str = "two 10-core Intel Xeon E5-2650 v3 (two cores of each left to clients), 64 GB of DRAM, Ubuntu 14.04; \
     figures 14 and 16 on six of these with 56 Gbps InfiniBand";

/// A published table with a line per query or group of queries, and a column per system.
pub struct Table {
    pub number: u32,
    /// Section of the paper.
    pub section: &'static str,
    /// Name of the data, with its size as given in the paper's Table 1 or in the table itself.
    pub data: &'static str,
    pub systems: &'static [&'static str],
    /// Name of a line and one value per system; `None` if the system failed or the paper prints none.
    pub rows: &'static [(&'static str, &'static [Option<f64>])],
    /// The paper's own geometric means over `rows`, one per system; empty if it prints none.
    pub mean: &'static [Option<f64>],
}

impl Table {
    /// The values of a line.
    pub fn row(&self, name: &str) -> Option<&'static [Option<f64>]> {
        self.rows.iter().find(|r| r.0 == name).map(|r| r.1)
    }
}

macro_rules! row {
    ($($x:expr),*) => { &[$(Some($x as f64)),*] };
}

/// Table 2: one server.
pub const TABLE_2: Table = Table {
    number: 2,
    section: "§7.2",
    data: "LUBM-2560",
    systems: &["Wukong", "TriAD", "TriAD-SG", "RDF-3X", "BitMat"],
    rows: &[
        (
            "L1",
            &[Some(752.0), Some(621.0), Some(3_315.0), Some(2.3e5), None],
        ),
        ("L2", row![120, 149, 221, 4_494, 36_256]),
        ("L3", row![306, 316, 3_101, 3_675, 752]),
        ("L4", row![0.19, 3.38, 3.34, 2.2, 55_451]),
        ("L5", row![0.11, 2.34, 1.36, 1.0, 52]),
        ("L6", row![0.56, 20.7, 6.06, 37.5, 487]),
        ("L7", row![671, 2_176, 2_753, 9_927, 19_323]),
    ],
    mean: &[Some(15.7), Some(72.3), Some(108.0), Some(441.0), None],
};

/// Table 7: geometric means over the templates of a group.
pub const TABLE_7: Table = Table {
    number: 7,
    section: "§7.7",
    data: "WSDTS, 109 M triples",
    systems: &["Wukong", "TriAD"],
    rows: &[
        ("L1-L5", row![1.0, 4.5]),
        ("S1-S7", row![0.9, 5.3]),
        ("F1-F5", row![3.6, 17.5]),
        ("C1-C3", row![10.3, 36.6]),
    ],
    mean: &[],
};

/// Table 8. The paper prints 1.16 as Wukong's mean, but the geometric mean of its five values is 1.08.
pub const TABLE_8: Table = Table {
    number: 8,
    section: "§7.7",
    data: "DBPSB, 15 M triples",
    systems: &["Wukong", "TriAD"],
    rows: &[
        ("D1", row![1.75, 4.93]),
        ("D2", row![0.48, 4.10]),
        ("D3", row![0.41, 5.56]),
        ("D4", row![3.70, 7.68]),
        ("D5", row![1.14, 3.51]),
    ],
    mean: &[Some(1.16), Some(4.97)],
};

/// Table 9.
pub const TABLE_9: Table = Table {
    number: 9,
    section: "§7.7",
    data: "YAGO2, 190 M triples",
    systems: &["Wukong", "TriAD"],
    rows: &[
        ("Y1", row![0.12, 1.13]),
        ("Y2", row![0.17, 2.14]),
        ("Y3", row![38_571, 68_841]),
        ("Y4", row![3_501, 6_193]),
    ],
    mean: &[Some(41.0), Some(179.0)],
};

/// Summary of figure 14 (§7.4) in the paper's text: LUBM-10240 on six servers, 1 to 16 threads each.
pub const FIGURE_14: &str = "L1, L2, L3, L7 become 9.9 to 14.3 times faster from 1 to 16 threads; L4, L5, L6 always use one thread and do not change";

/// Summary of figure 16 (§7.4) in the paper's text: LUBM-40 to LUBM-10240 on six servers.
pub const FIGURE_16: &str =
    "L1, L2, L3, L7 grow with the data; L4, L5, L6 stay stable whatever its size";

/// Figure 21(a) (§7.6): memory for LUBM-2560 on one server, in units of 10^9 bytes. It leaves out strings, which all
/// systems stored in a separate "string server" (§7.1).
pub const FIGURE_21: [(&str, f64); 5] = [
    ("Wukong", 18.5),
    ("Wukong, BASE", 12.3),
    ("TriAD", 30.7),
    ("RDF-3X", 24.2),
    ("BitMat", 27.4),
];

/// Universities of the data set that the paper's single-server tables and figures use.
pub const UNIVERSITIES: u32 = 2_560;

#[cfg(test)]
mod tests {
    use super::super::sheet::geometric_mean;
    use super::*;

    /// Guards against typing errors: the paper's means must follow from its values.
    #[test]
    fn means_follow_from_the_rows() {
        for t in [TABLE_2, TABLE_7, TABLE_8, TABLE_9] {
            for (name, row) in t.rows {
                assert_eq!(row.len(), t.systems.len(), "table {}, {name}", t.number);
            }
            for (i, want) in t.mean.iter().enumerate() {
                let column: Option<Vec<f64>> = t.rows.iter().map(|r| r.1[i]).collect();
                let (Some(column), Some(want)) = (column, want) else {
                    continue;
                };
                if (t.number, t.systems[i]) == (8, "Wukong") {
                    assert!((geometric_mean(column) - 1.0775).abs() < 1e-3);
                    continue;
                }
                let mean = geometric_mean(column);
                assert!(
                    (mean / want - 1.0).abs() < 0.03,
                    "table {}, {}: {mean}, printed {want}",
                    t.number,
                    t.systems[i]
                );
            }
        }
    }
}
