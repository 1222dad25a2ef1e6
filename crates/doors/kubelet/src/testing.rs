//! Pods for unit tests.

use k8s_openapi::api::core::v1::{Container, Pod, PodSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// A pod in namespace `ns` with these annotations.
pub(crate) fn pod(name: &str, annotations: &[(&str, &str)]) -> Pod {
    let annotations =
        annotations.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    Pod {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            namespace: Some("ns".to_owned()),
            uid: Some(format!("uid-{name}")),
            annotations: Some(annotations.collect()),
            ..ObjectMeta::default()
        },
        spec: Some(PodSpec {
            containers: vec![Container { name: "agent".to_owned(), ..Container::default() }],
            ..PodSpec::default()
        }),
        status: None,
    }
}
