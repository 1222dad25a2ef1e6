//! How a data type of the API is written down once: camelCase on the wire, everything optional, nothing sent that is not set.

use std::collections::BTreeMap;

/// Fields of a list's entry that its type does not know.
pub type Rest = BTreeMap<String, serde_json::Value>;

pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Structs whose fields are all optional on the wire. Fields that a schema requires even if they are zero or empty do not belong here.
macro_rules! data {
    ($(
        $(#[$meta:meta])*
        pub struct $name:ident {
            $( $(#[$attribute:meta])* pub $field:ident: $type:ty, )*
        }
    )*) => { $(
        $(#[$meta])*
        #[derive(Debug, Clone, Default, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        pub struct $name {
            $(
                $(#[$attribute])*
                #[serde(skip_serializing_if = "crate::api::data::is_default")]
                pub $field: $type,
            )*
        }
    )* };
}

/// Enums whose names on the wire are their names here, or given.
macro_rules! words {
    ($(
        $(#[$meta:meta])*
        pub enum $name:ident { $( $(#[$attribute:meta])* $word:ident = $text:literal, )* }
    )*) => { $(
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        pub enum $name { $( $(#[$attribute])* #[serde(rename = $text)] $word, )* }

        impl $name {
            pub const ALL: &[Self] = &[$(Self::$word),*];

            pub fn as_str(self) -> &'static str {
                match self { $( Self::$word => $text, )* }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str(self.as_str())
            }
        }
    )* };
}
