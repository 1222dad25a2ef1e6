//! Objects, their history, and those who watch them.

mod stored;
mod table;

pub(crate) use stored::Stored;
pub(crate) use table::{Change, Table};

/// Namespace (empty for objects of the whole cluster) and name.
pub(crate) type Key = (String, String);

/// Group and plural name.
pub(crate) type TableId = (String, String);
