use std::fmt::Write as _;

use super::key::{Origin, Shape};
use super::keys::ALL;

/// Every key as a Markdown table: where it stands, its type, default and meaning.
pub fn key_table() -> String {
    let mut text = String::from(
        "| Key below `hatchery.vsphere` | Type | Default | Meaning |\n| --- | --- | --- | --- |\n",
    );
    for key in ALL {
        let default = match key.shape {
            Shape::Secret | Shape::Tables | Shape::NamedTables => String::new(),
            shape => format!("`{}`", shape.default_toml()),
        };
        let origin = match key.origin {
            Origin::Cds => "",
            Origin::Deprecated => " (deprecated)",
            Origin::Unused => " (no effect)",
            Origin::Roost => " (not in CDS)",
        };
        // Writing into memory cannot fail.
        let _ = writeln!(
            text,
            "| `{}` | {} | {default} | {}{origin} |",
            key.path, key.shape, key.meaning
        );
    }
    text
}
