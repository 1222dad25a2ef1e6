//! What is known about one key of the file. The table of all keys ([`super::keys::ALL`]) is the only place that names them: reading,
//! environment overrides, the check for unknown keys, the sign-in JSON, the sample file and the documentation follow from it.

use std::fmt;

/// One key below `hatchery.vsphere`.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// From `hatchery.vsphere` down; `[]` stands for each entry of a list of tables: `flavors[].cpus`.
    pub path: &'static str,
    pub shape: Shape,
    pub json: Json,
    pub origin: Origin,
    /// What the sample file shows.
    pub sample: Sample,
    /// One sentence or two, without a full stop at the end.
    pub meaning: &'static str,
}

/// Type and default in one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    Text(&'static str),
    /// Text that is never shown. The keys with `File` and `Env` appended name where it stands instead.
    Secret,
    Integer(i64),
    Boolean(bool),
    Texts(&'static [&'static str]),
    /// A list of tables. Its keys are those with the same path and `[].` in front.
    Tables,
    /// As [`Shape::Tables`], or a table of tables whose keys are the names.
    NamedTables,
}

/// How a key appears in the configuration that is sent at sign-in, which is what CDS shows to its users.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Json {
    Shown,
    /// Left out when empty.
    UnlessEmpty,
    /// Under another name.
    As(&'static str),
    Hidden,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    Cds,
    /// Read as CDS reads it, though newer CDS versions want another key used.
    Deprecated,
    /// CDS accepts it and does nothing with it; so do we.
    Unused,
    /// Added here. A CDS hatchery ignores it.
    Roost,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sample {
    /// Set, to this TOML value. A secret key is shown with a suffix: `File="..."`.
    Set(&'static str),
    /// Commented out, with this TOML value.
    Shown(&'static str),
    /// Commented out, with its default.
    Default,
    /// Not in the sample.
    Absent,
}

impl Key {
    const fn new(path: &'static str, shape: Shape, meaning: &'static str) -> Self {
        let json = if matches!(shape, Shape::Secret) { Json::Hidden } else { Json::Shown };
        Self { path, shape, json, origin: Origin::Cds, sample: Sample::Default, meaning }
    }

    pub(super) const fn text(
        path: &'static str,
        default: &'static str,
        meaning: &'static str,
    ) -> Self {
        Self::new(path, Shape::Text(default), meaning)
    }

    pub(super) const fn secret(path: &'static str, meaning: &'static str) -> Self {
        Self::new(path, Shape::Secret, meaning)
    }

    pub(super) const fn integer(path: &'static str, default: i64, meaning: &'static str) -> Self {
        Self::new(path, Shape::Integer(default), meaning)
    }

    pub(super) const fn boolean(path: &'static str, default: bool, meaning: &'static str) -> Self {
        Self::new(path, Shape::Boolean(default), meaning)
    }

    pub(super) const fn texts(
        path: &'static str,
        default: &'static [&'static str],
        meaning: &'static str,
    ) -> Self {
        Self::new(path, Shape::Texts(default), meaning)
    }

    pub(super) const fn tables(path: &'static str, shape: Shape, meaning: &'static str) -> Self {
        Self::new(path, shape, meaning)
    }

    pub(super) const fn json(mut self, json: Json) -> Self {
        self.json = json;
        self
    }

    pub(super) const fn deprecated(mut self) -> Self {
        self.origin = Origin::Deprecated;
        self
    }

    pub(super) const fn unused(mut self) -> Self {
        self.origin = Origin::Unused;
        self.sample = Sample::Absent;
        self
    }

    pub(super) const fn roost(mut self) -> Self {
        self.origin = Origin::Roost;
        self.json = Json::Hidden;
        self
    }

    pub(super) const fn sample(mut self, sample: Sample) -> Self {
        self.sample = sample;
        self
    }

    /// The last part of the path: the name as it is written in its table.
    pub fn name(&self) -> &'static str {
        self.path.rsplit('.').next().unwrap_or(self.path)
    }

    /// The path of the table that the key stands in; empty for `hatchery.vsphere` itself.
    pub fn table(&self) -> &'static str {
        self.path.rsplit_once('.').map_or("", |(table, _)| table)
    }

    /// The environment variable that overrides it. Keys of list entries have none, nor have the lists.
    pub fn variable(&self) -> Option<String> {
        let is_list = matches!(self.shape, Shape::Tables | Shape::NamedTables);
        (!is_list && !self.path.contains("[]"))
            .then(|| format!("CDS_HATCHERY_VSPHERE_{}", self.path.replace('.', "_").to_uppercase()))
    }
}

/// The type, as an operator would say it.
impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text(_) => "text",
            Self::Secret => "secret",
            Self::Integer(_) => "integer",
            Self::Boolean(_) => "true or false",
            Self::Texts(_) => "list of texts",
            Self::Tables => "list of tables",
            Self::NamedTables => "list of tables, or table of tables by name",
        })
    }
}

impl Shape {
    /// The default as it would be written in the file.
    pub fn default_toml(&self) -> String {
        match self {
            Self::Text(text) => toml_text(text),
            Self::Secret => "\"\"".to_owned(),
            Self::Integer(number) => number.to_string(),
            Self::Boolean(value) => value.to_string(),
            Self::Texts(texts) => {
                format!(
                    "[{}]",
                    texts.iter().map(|text| toml_text(text)).collect::<Vec<_>>().join(", ")
                )
            }
            Self::Tables | Self::NamedTables => "[]".to_owned(),
        }
    }
}

fn toml_text(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
