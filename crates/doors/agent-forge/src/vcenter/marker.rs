use std::fmt;

use roost_fleet::{Claim, DoorName, Marks, Need, Quota, Recognise};

use crate::api::names::OWNER_KEY;

pub const FORGE: DoorName = DoorName::new("agent-forge");
/// What this door counts.
pub const MACHINES: Quota = Quota::lasting("agent-vms");

/// Whose a VM is. It is in the VM from its create request on, so a VM of the same name that somebody else made is never taken for ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marker {
    pub namespace: String,
    pub pool: String,
    /// Of the VsphereAgent.
    pub uid: String,
}

impl Marker {
    pub fn new(namespace: &str, pool: &str, uid: &str) -> Self {
        Self { namespace: namespace.to_owned(), pool: pool.to_owned(), uid: uid.to_owned() }
    }

    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('/');
        let marker = Self::new(parts.next()?, parts.next()?, parts.next()?);
        let is_whole =
            ![&marker.namespace, &marker.pool, &marker.uid].into_iter().any(String::is_empty);
        (is_whole && parts.next().is_none()).then_some(marker)
    }

    /// Who may delete it: the pool.
    pub fn owner(&self) -> String {
        format!("{}/{}", self.namespace, self.pool)
    }

    /// For people who look at the VM, and for finding it after a lost answer.
    pub fn annotation(&self) -> String {
        format!("agent-forge {self}")
    }
}

impl fmt::Display for Marker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.namespace, self.pool, self.uid)
    }
}

/// How this door recognises its VMs.
#[derive(Debug, Clone, Copy)]
pub struct ForgeVms;

impl Recognise for ForgeVms {
    fn needs(&self) -> &[Need] {
        &[Need::ExtraConfig(OWNER_KEY)]
    }

    fn recognise(&self, vm: &Marks<'_>) -> Option<Claim> {
        let marker = Marker::parse(vm.extra_config(OWNER_KEY)?)?;
        let request = Some(marker.uid.as_str().into());
        Some(Claim { request, ..Claim::of(FORGE, marker.owner()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_is_whole_or_none() {
        let marker = Marker::new("blue", "gp", "1-2-3");
        assert_eq!(Marker::parse(&marker.to_string()), Some(marker));
        for odd in ["", "blue/gp", "blue/gp/", "a/b/c/d", "//x"] {
            assert_eq!(Marker::parse(odd), None, "{odd}");
        }
    }
}
