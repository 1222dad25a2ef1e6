//! Which of two states of an object is newer.

use kube::Resource;

/// How an object that arrives relates to the one that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Relation {
    Same,
    Newer,
    /// A late message.
    Older,
    /// Another object of the same name: the known one was deleted in between.
    Another,
}

/// Resource versions of one object are numbers that grow; where a server has others, what arrives is taken as newer.
pub(crate) fn relation(known: &impl Resource, arrived: &impl Resource) -> Relation {
    let (known_meta, arrived_meta) = (known.meta(), arrived.meta());
    if known_meta.uid.is_some() && known_meta.uid != arrived_meta.uid {
        return Relation::Another;
    }
    if known_meta.resource_version == arrived_meta.resource_version {
        return Relation::Same;
    }
    match (number(known), number(arrived)) {
        (Some(known), Some(arrived)) if arrived < known => Relation::Older,
        _ => Relation::Newer,
    }
}

/// The version of an object, where it is a number.
pub(crate) fn number(object: &impl Resource) -> Option<u64> {
    object.meta().resource_version.as_deref()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::ResourceExt;

    use super::*;

    fn object(uid: &str, version: &str) -> ConfigMap {
        let mut object = ConfigMap::default();
        object.meta_mut().uid = Some(uid.to_owned());
        object.meta_mut().resource_version = Some(version.to_owned());
        assert_eq!(object.resource_version().as_deref(), Some(version));
        object
    }

    #[test]
    fn versions_are_compared_as_numbers() {
        for (known, arrived, expected) in [
            (("a", "9"), ("a", "9"), Relation::Same),
            (("a", "9"), ("a", "10"), Relation::Newer),
            (("a", "10"), ("a", "9"), Relation::Older),
            (("a", "10"), ("b", "9"), Relation::Another),
            (("a", "x1"), ("a", "x0"), Relation::Newer),
        ] {
            let seen = relation(&object(known.0, known.1), &object(arrived.0, arrived.1));
            assert_eq!(seen, expected, "{known:?} {arrived:?}");
        }
    }
}
