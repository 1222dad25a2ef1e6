use std::fmt::Write as _;

use crate::key::{Origin, Shape};
use crate::section::Section;

impl Section {
    /// Every key as a Markdown table: where it stands, its type, default and meaning.
    pub fn key_table(&self) -> String {
        let mut text = format!(
            "| Key below `{}` | Type | Default | Meaning |\n| --- | --- | --- | --- |\n",
            self.root
        );
        for key in self.keys {
            let default = match key.shape {
                Shape::Secret | Shape::Tables | Shape::NamedTables => String::new(),
                shape => format!("`{}`", shape.default_toml()),
            };
            let origin = match key.origin {
                Origin::Inherited => "",
                Origin::Deprecated => " (deprecated)",
                Origin::Unused => " (no effect)",
                Origin::Added => self.added,
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
}
