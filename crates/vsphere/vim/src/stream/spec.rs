use roost_vim_wire::types::PropertySpec;
use roost_vim_wire::{MoRef, MoType};

/// What to watch: which objects, and of each kind which paths. Keep the paths narrow: whole `guest`, `summary` or `config`
/// change all the time.
#[derive(Debug, Clone, PartialEq)]
pub struct WatchSpec {
    pub objects: Watched,
    pub properties: Vec<PropertySpec>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Watched {
    /// Everything of these kinds below a folder, datacenter, compute resource, pool or host, as it comes and goes.
    Container { container: MoRef, kinds: Vec<MoType>, recursive: bool },
    /// These objects, for as long as they exist.
    Objects(Vec<MoRef>),
}

impl WatchSpec {
    /// Everything of one kind below `container`.
    pub fn below(container: MoRef, kind: MoType, paths: &[&str]) -> Self {
        let properties = vec![PropertySpec::new(kind.as_str(), paths)];
        Self {
            objects: Watched::Container { container, kinds: vec![kind], recursive: true },
            properties,
        }
    }

    /// One object.
    pub fn object(obj: MoRef, paths: &[&str]) -> Self {
        let properties = vec![PropertySpec::new(obj.kind.as_str(), paths)];
        Self { objects: Watched::Objects(vec![obj]), properties }
    }
}
