use k8s_openapi::api::core::v1::Pod;

/// What a VM is in its set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Main,
    Sub,
    /// A toolbox, or a pod of no set.
    Other,
}

impl Role {
    /// By the slot behind the set's name; without a set, a name that ends with `-0` is a main one.
    pub(crate) fn of(pod: &Pod, vm: &str) -> Self {
        let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
        let owners = pod.metadata.owner_references.as_deref().unwrap_or_default();
        let slot = match owners.iter().find(|owner| owner.kind == "CocoonSet") {
            Some(set) => vm.strip_prefix(&format!("vk-{namespace}-{}-", set.name)),
            None => return if vm.ends_with("-0") { Self::Main } else { Self::Other },
        };
        match slot
            .filter(|slot| slot.chars().all(|c| c.is_ascii_digit()))
            .and_then(|slot| slot.parse::<u64>().ok())
        {
            Some(0) => Self::Main,
            Some(_) => Self::Sub,
            None => Self::Other,
        }
    }
}

/// The snapshot that forks of a VM start from.
pub(crate) fn fork_snapshot(vm: &str) -> String {
    format!("fork-{vm}")
}

/// Where a hibernated VM is unpacked before it wakes.
pub(crate) fn import_snapshot(vm: &str) -> String {
    format!("{vm}-hibernate-import")
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

    use super::*;
    use crate::testing::pod;

    #[test]
    fn roles_come_from_the_set_and_only_else_from_the_name() {
        let bare = pod("a", &[]);
        assert_eq!(Role::of(&bare, "vk-ns-demo-0"), Role::Main);
        assert_eq!(Role::of(&bare, "vk-ns-demo-1"), Role::Other);
        let mut owned = pod("a", &[]);
        let owner = OwnerReference {
            kind: "CocoonSet".into(),
            name: "demo".into(),
            ..OwnerReference::default()
        };
        owned.metadata.owner_references = Some(vec![owner]);
        for (vm, role) in [
            ("vk-ns-demo-0", Role::Main),
            ("vk-ns-demo-3", Role::Sub),
            ("vk-ns-demo-tools", Role::Other),
            ("vk-ns-demo-tools-0", Role::Other),
            ("vk-ns-other-0", Role::Other),
        ] {
            assert_eq!(Role::of(&owned, vm), role, "{vm}");
        }
    }
}
