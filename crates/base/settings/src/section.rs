use crate::environment::Surroundings;
use crate::key::{Key, Shape};
use crate::problem::Problems;
use crate::reader::Reader;
use crate::tree::Table;

/// One section of the file with the table of its keys. The table is the only place that names them: reading, environment overrides, the
/// check for unknown keys, the public JSON, the sample file and the documentation follow from it.
#[derive(Debug, Clone, Copy)]
pub struct Section {
    /// Where it stands in the file: `doors.example`.
    pub root: &'static str,
    /// What the names of the variables that override it begin with, without the last `_`. `None`: no variable does.
    pub variables: Option<&'static str>,
    /// In the order of the sample file: a table's own keys before its sub-tables.
    pub keys: &'static [&'static Key],
    /// Keys that a file may still carry, with what became of them: "is gone; see other".
    pub former: &'static [(&'static str, &'static str)],
    /// What the documentation says of keys that are [`crate::Origin::Added`].
    pub added: &'static str,
}

impl Section {
    /// The section of a file with the environment over it; `None` if the file does not have it.
    pub fn find(&self, file: &Table, surroundings: &dyn Surroundings) -> Option<Table> {
        let mut table = file;
        for name in self.root.split('.') {
            table = table.table(name)?;
        }
        let mut section = table.clone();
        self.override_from_environment(&mut section, surroundings);
        Some(section)
    }

    /// As [`Self::find`]; a section that is missing is a problem.
    pub fn require(
        &self,
        file: &Table,
        surroundings: &dyn Surroundings,
        problems: &Problems,
    ) -> Option<Table> {
        let section = self.find(file, surroundings);
        if section.is_none() {
            problems.problem(self.root, None, "is missing: the file has no such section");
        }
        section
    }

    /// Reads what [`Self::find`] found.
    pub fn reader<'a>(&self, section: &'a Table, problems: &'a Problems) -> Reader<'a> {
        Reader::root(self.root, section, problems)
    }

    /// The environment variable that overrides a key. Keys of list entries have none, nor have the lists.
    pub fn variable(&self, key: &Key) -> Option<String> {
        let prefix = self.variables?;
        let is_list = matches!(key.shape, Shape::Tables | Shape::NamedTables);
        (!is_list && !key.path.contains("[]"))
            .then(|| format!("{prefix}_{}", key.path.replace('.', "_").to_uppercase()))
    }
}
