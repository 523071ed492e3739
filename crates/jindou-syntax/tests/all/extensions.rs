//! Checks that `docs/coming-from.md` contains the table of extensions of other engines. `JINDOU_WRITE=1` updates it.

use std::path::Path;

#[test]
fn the_guide_has_all_extensions() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/coming-from.md");
    let page = std::fs::read_to_string(&path).expect("docs/coming-from.md");
    let table = jindou_syntax::extensions();
    let (head, _) = table.split_once('\n').expect("a head");
    let (before, after) = page.split_once(head).expect("a table of extensions");
    let (_, after) = after.split_once("\n\n").expect("text after the table");
    let written = format!("{before}{table}\n{after}");
    if std::env::var_os("JINDOU_WRITE").is_some() {
        std::fs::write(&path, &written).expect("docs/coming-from.md");
    }
    assert!(
        page == written,
        "docs/coming-from.md differs from the table: JINDOU_WRITE=1 cargo test -p jindou-syntax --test all"
    );
}
