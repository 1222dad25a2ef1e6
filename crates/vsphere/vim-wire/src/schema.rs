//! The three macros in which the schema is written down: data objects, enumerations, methods. Fields stand in schema order,
//! which is also the order on the wire; a literal behind a field is its wire name where that is not the Rust name.

macro_rules! wire_name {
    ($field:ident) => {
        stringify!($field)
    };
    ($field:ident $wire:literal) => {
        $wire
    };
}

/// Data objects.
///
/// - `struct X` is written without a schema type.
/// - `typed X` always says `xsi:type="X"`: the declared type has subclasses and X is the one meant.
/// - `open X` is a base class: `class` is the concrete one, the fields are those of all subclasses that Roost knows, and
///   children it does not know are kept in `rest`, so that an object can be sent back whole.
macro_rules! data {
    ($($(#[$meta:meta])* $mode:ident $name:ident { $($body:tt)* })+) => {
        $(data!(@one [$mode] [$(#[$meta])*] $name { $($body)* });)+
    };
    (@one [struct] $meta:tt $name:ident $body:tt) => {
        data!(@closed $meta $name $body);
        data!(@shared $name $body [None]);
    };
    (@one [typed] $meta:tt $name:ident $body:tt) => {
        data!(@closed $meta $name $body);
        data!(@shared $name $body [Some(stringify!($name))]);
    };
    (@closed [$(#[$meta:meta])*] $name:ident { $($(#[$fmeta:meta])* $field:ident $($wire:literal)? : $ty:ty),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Default, PartialEq)]
        pub struct $name {
            $($(#[$fmeta])* pub $field: $ty,)*
        }

        impl $name {
            fn read_child(&mut self, r: &mut $crate::xml::Reader<'_>, child: &$crate::xml::Start<'_>)
                -> Result<(), $crate::WireError>
            {
                match child.name {
                    $(wire_name!($field $($wire)?) => $crate::Field::read(&mut self.$field, r, child),)*
                    _ => r.skip(),
                }
            }

            fn start_reading(&mut self, _: &$crate::xml::Start<'_>) {
                *self = Self::default();
            }

            fn write_rest(&self, _: &mut $crate::xml::Writer) {}

            fn class_name(&self) -> &str {
                stringify!($name)
            }
        }
    };
    (@one [open] [$(#[$meta:meta])*] $name:ident { $($(#[$fmeta:meta])* $field:ident $($wire:literal)? : $ty:ty),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Default, PartialEq)]
        pub struct $name {
            /// The concrete class, as in `xsi:type`; empty if the sender left it out.
            pub class: String,
            $($(#[$fmeta])* pub $field: $ty,)*
            /// Children that are no field of this type, in their order.
            pub rest: Vec<$crate::Element>,
        }

        impl $name {
            /// An object of this class with nothing set.
            pub fn of(class: &str) -> Self {
                Self { class: class.into(), ..Self::default() }
            }

            fn read_child(&mut self, r: &mut $crate::xml::Reader<'_>, child: &$crate::xml::Start<'_>)
                -> Result<(), $crate::WireError>
            {
                match child.name {
                    $(wire_name!($field $($wire)?) => $crate::Field::read(&mut self.$field, r, child),)*
                    _ => $crate::Field::read(&mut self.rest, r, child),
                }
            }

            fn start_reading(&mut self, start: &$crate::xml::Start<'_>) {
                *self = Self::of(start.xsi_type.unwrap_or_default());
            }

            fn write_rest(&self, w: &mut $crate::xml::Writer) {
                for element in &self.rest {
                    element.write_as(w, &element.name);
                }
            }

            fn class_name(&self) -> &str {
                if self.class.is_empty() { stringify!($name) } else { &self.class }
            }
        }

        data!(@shared $name { $($(#[$fmeta])* $field $($wire)? : $ty),* } [class]);
    };
    (@shared $name:ident { $($(#[$fmeta:meta])* $field:ident $($wire:literal)? : $ty:ty),* $(,)? } [$($typed:tt)*]) => {
        impl $crate::Field for $name {
            const TYPE: &'static str = stringify!($name);

            fn write(&self, w: &mut $crate::xml::Writer, name: &str) {
                w.open_with(name, data!(@xsi_type self $($typed)*), None);
                $crate::DataObject::write_fields(self, w);
                w.close(name);
            }

            fn read(&mut self, r: &mut $crate::xml::Reader<'_>, start: &$crate::xml::Start<'_>)
                -> Result<(), $crate::WireError>
            {
                self.start_reading(start);
                while let Some(child) = r.child()? {
                    self.read_child(r, &child)?;
                }
                Ok(())
            }

            fn to_value(&self) -> Option<$crate::Value> {
                Some($crate::Value::data(self.clone()))
            }
        }

        impl $crate::DataObject for $name {
            fn class(&self) -> &str {
                self.class_name()
            }

            fn write_fields(&self, w: &mut $crate::xml::Writer) {
                $($crate::Field::write(&self.$field, w, wire_name!($field $($wire)?));)*
                self.write_rest(w);
            }

            fn get(&self, name: &str) -> Option<$crate::Value> {
                match name {
                    $(wire_name!($field $($wire)?) => $crate::Field::to_value(&self.$field),)*
                    _ => None,
                }
            }

            fn as_any(&self) -> &dyn std::any::Any {
                self
            }
        }

        impl $crate::field::ListItem for $name {}
    };
    (@xsi_type $self:ident None) => { None };
    (@xsi_type $self:ident Some($class:expr)) => { Some($class) };
    (@xsi_type $self:ident class) => { Some($self.class_name()) };
}

/// Enumerations. A value that a newer server invented is kept as text.
macro_rules! names {
    ($($(#[$meta:meta])* enum $name:ident { $($variant:ident = $wire:literal),+ $(,)? })+) => {$(
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name {
            $($variant,)+
            /// Not among the values Roost knows; empty where a server left the element empty.
            Other(Box<str>),
        }

        impl $name {
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $wire,)+
                    Self::Other(text) => text,
                }
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::Other("".into())
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                match text {
                    $($wire => Self::$variant,)+
                    _ => Self::Other(text.into()),
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl $crate::Field for $name {
            const TYPE: &'static str = stringify!($name);

            fn write(&self, w: &mut $crate::xml::Writer, name: &str) {
                w.leaf(name, self.as_str());
            }

            fn read(&mut self, r: &mut $crate::xml::Reader<'_>, _: &$crate::xml::Start<'_>)
                -> Result<(), $crate::WireError>
            {
                *self = Self::from(r.text()?.trim());
                Ok(())
            }

            fn to_value(&self) -> Option<$crate::Value> {
                Some($crate::Value::Enum(stringify!($name).into(), self.as_str().into()))
            }
        }

        impl $crate::field::ListItem for $name {}
    )+};
}

/// Methods, grouped `on` their receiver: `read` ones change nothing on the server and may be repeated; `session` ones make or end
/// something that lives in the session; `change` ones change the inventory, a file or a guest. `needs` is the privilege, `task` the
/// description of the task and its label.
macro_rules! methods {
    ($(on $receiver:ident {
        $($(#[$meta:meta])* $effect:ident $name:ident = $wire:literal
            $(needs $privilege:literal)? $(task $task:literal $label:literal)?
            { $($(#[$fmeta:meta])* $field:ident $($fwire:literal)? : $ty:ty),* $(,)? } -> $output:ty;)+
    })+) =>
    {
        $($(
            $(#[$meta])*
            #[derive(Debug, Clone, Default, PartialEq)]
            pub struct $name {
                /// The object that the method is called on.
                pub this: $crate::MoRef,
                $($(#[$fmeta])* pub $field: $ty,)*
            }

            impl $crate::Method for $name {
                const NAME: &'static str = $wire;
                const EFFECT: $crate::methods::Effect = methods!(@effect $effect);
                const SERVICE: $crate::methods::Service = $crate::methods::Service::of(stringify!($receiver));
                type Output = $output;

                fn this(&self) -> &$crate::MoRef {
                    &self.this
                }

                fn write_arguments(&self, w: &mut $crate::xml::Writer) {
                    $crate::Field::write(&self.this, w, "_this");
                    $($crate::Field::write(&self.$field, w, wire_name!($field $($fwire)?));)*
                }

                fn read_argument(&mut self, r: &mut $crate::xml::Reader<'_>, child: &$crate::xml::Start<'_>)
                    -> Result<(), $crate::WireError>
                {
                    match child.name {
                        "_this" => $crate::Field::read(&mut self.this, r, child),
                        $(wire_name!($field $($fwire)?) => $crate::Field::read(&mut self.$field, r, child),)*
                        _ => r.skip(),
                    }
                }
            }

            methods!(@marker $effect $name);
        )+)+

        pub(super) const TABLE: &[$crate::methods::MethodInfo] = &[$($($crate::methods::MethodInfo {
            name: $wire,
            effect: methods!(@effect $effect),
            receiver: stringify!($receiver),
            privilege: methods!(@maybe $($privilege)?),
            task: methods!(@task $($task $label)?),
        },)+)+];
    };
    (@effect read) => { $crate::methods::Effect::Read };
    (@effect session) => { $crate::methods::Effect::Session };
    (@effect change) => { $crate::methods::Effect::Change };
    (@marker read $name:ident) => { impl $crate::ReadMethod for $name {} };
    (@marker $other:ident $name:ident) => {};
    (@maybe) => { None };
    (@maybe $value:literal) => { Some($value) };
    (@task) => { None };
    (@task $id:literal $label:literal) => { Some($crate::methods::TaskText { id: $id, label: $label }) };
}
