use serde_json::{Value, json};

use super::*;
use crate::api::names::annotation;

#[test]
fn marks_belong_to_those_who_may_write_them() {
    let annotated = |key: &str, value: &str| json!({"metadata": {"annotations": {key: value}}});
    let labeled = |key: &str, value: &str| json!({"metadata": {"labels": {key: value}}});
    let protected = [
        annotation::RECONCILE_PRIORITY,
        annotation::SKIP_DELETE_PLATFORM_RESOURCE,
        annotation::SKIP_VALIDATION,
        annotation::APPLY_POWER_STATE_TIME,
        "condition.vmoperator.vmware.com.protected/x",
    ];
    for key in protected {
        for (old, new) in [
            (None, annotated(key, "1")),
            (Some(json!({})), annotated(key, "1")),
            (Some(annotated(key, "1")), annotated(key, "2")),
            (Some(annotated(key, "1")), json!({})),
        ] {
            let found = problems(new.clone(), old.clone(), Rights::Ordinary);
            assert_eq!(found.len(), 1, "{key}: {found:?}");
            assert!(found[0].starts_with(&format!("metadata.annotations[{key}]")), "{found:?}");
            assert_eq!(problems(new, old, Rights::Privileged), [""; 0]);
        }
        let kept = problems(annotated(key, "1"), Some(annotated(key, "1")), Rights::Ordinary);
        assert_eq!(kept, [""; 0], "{key} is left alone");
    }
    let cases: Vec<(Option<Value>, Value, usize)> = vec![
        (None, annotated(annotation::PAUSED, ""), 0),
        (None, labeled("vmoperator.vmware.com/paused", "admin"), 1),
        (None, annotated(annotation::FIRST_BOOT_DONE, "true"), 1),
        (None, annotated(annotation::IMPORTED_VM, ""), 1),
        (None, annotated("delete.check.vmoperator.vmware.com/x", ""), 1),
        (None, annotated("poweron.check.vmoperator.vmware.com/x", ""), 0),
        (Some(annotated("poweron.check.vmoperator.vmware.com/x", "")), json!({}), 1),
        (None, labeled("topology.kubernetes.io/zone", "a"), 0),
        (Some(json!({})), labeled("topology.kubernetes.io/zone", "a"), 0),
        (
            Some(labeled("topology.kubernetes.io/zone", "a")),
            labeled("topology.kubernetes.io/zone", "b"),
            1,
        ),
    ];
    for (old, new, refused) in cases {
        let found = problems(new.clone(), old.clone(), Rights::Ordinary);
        assert_eq!(found.len(), refused, "{new}: {found:?}");
        assert_eq!(problems(new, old, Rights::Privileged).len(), 0);
    }
}

#[test]
fn privileged_users_are_few() {
    let settings = AdmissionSettings {
        operator_account: "system:serviceaccount:roost:roost".into(),
        privileged_users: vec!["backup".into()],
        ..AdmissionSettings::default()
    };
    let user = |name: &str, group: &str| User { name: name.into(), groups: vec![group.into()] };
    for (user, rights) in [
        (user("jane", "dev"), Rights::Ordinary),
        (user("", ""), Rights::Ordinary),
        (user("jane", "system:masters"), Rights::Privileged),
        (user("kubernetes-admin", ""), Rights::Privileged),
        (user("system:serviceaccount:roost:roost", ""), Rights::Privileged),
        (user("system:serviceaccount:roost:other", ""), Rights::Ordinary),
        (user("backup", ""), Rights::Privileged),
    ] {
        assert_eq!(settings.rights(&user), rights, "{user:?}");
    }
}
