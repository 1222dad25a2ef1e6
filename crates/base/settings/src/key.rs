use std::fmt;

/// What is known about one key of a section.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// From the section down; `[]` stands for each entry of a list of tables: `networks[].gateway`.
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

/// How a key appears in [`crate::Section::json`], the configuration that others may see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Json {
    Shown,
    /// Left out when empty.
    UnlessEmpty,
    /// Under another name.
    As(&'static str),
    Hidden,
}

/// Where a key comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// Of the program whose file this is.
    Inherited,
    /// Read as that program reads it, though its newer versions want another key used.
    Deprecated,
    /// That program accepts it and does nothing with it; so do we.
    Unused,
    /// Added here. That program ignores it.
    Added,
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
        Self { path, shape, json, origin: Origin::Inherited, sample: Sample::Default, meaning }
    }

    pub const fn text(path: &'static str, default: &'static str, meaning: &'static str) -> Self {
        Self::new(path, Shape::Text(default), meaning)
    }

    pub const fn secret(path: &'static str, meaning: &'static str) -> Self {
        Self::new(path, Shape::Secret, meaning)
    }

    pub const fn integer(path: &'static str, default: i64, meaning: &'static str) -> Self {
        Self::new(path, Shape::Integer(default), meaning)
    }

    pub const fn boolean(path: &'static str, default: bool, meaning: &'static str) -> Self {
        Self::new(path, Shape::Boolean(default), meaning)
    }

    pub const fn texts(
        path: &'static str,
        default: &'static [&'static str],
        meaning: &'static str,
    ) -> Self {
        Self::new(path, Shape::Texts(default), meaning)
    }

    pub const fn tables(path: &'static str, shape: Shape, meaning: &'static str) -> Self {
        Self::new(path, shape, meaning)
    }

    #[must_use]
    pub const fn json(mut self, json: Json) -> Self {
        self.json = json;
        self
    }

    #[must_use]
    pub const fn deprecated(mut self) -> Self {
        self.origin = Origin::Deprecated;
        self
    }

    #[must_use]
    pub const fn unused(mut self) -> Self {
        self.origin = Origin::Unused;
        self.sample = Sample::Absent;
        self
    }

    #[must_use]
    pub const fn added(mut self) -> Self {
        self.origin = Origin::Added;
        self.json = Json::Hidden;
        self
    }

    #[must_use]
    pub const fn sample(mut self, sample: Sample) -> Self {
        self.sample = sample;
        self
    }

    /// The last part of the path: the name as it is written in its table.
    pub fn name(&self) -> &'static str {
        self.path.rsplit('.').next().unwrap_or(self.path)
    }

    /// The path of the table that the key stands in; empty for the section itself.
    pub fn table(&self) -> &'static str {
        self.path.rsplit_once('.').map_or("", |(table, _)| table)
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
