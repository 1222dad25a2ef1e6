//! The kinds that every cluster has, as far as the doors and `kubectl` ask for them.

use std::sync::{Arc, LazyLock, OnceLock};

use k8s_openapi::api::{
    admissionregistration::v1 as admission, apps::v1 as apps, batch::v1 as batch,
    certificates::v1 as certificates, coordination::v1 as coordination, core::v1 as core,
    discovery::v1 as discovery, events::v1 as events, networking::v1 as networking,
    node::v1 as node, policy::v1 as policy, rbac::v1 as rbac, scheduling::v1 as scheduling,
    storage::v1 as storage,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1 as apiextensions;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

use crate::kind::{Kind, Origin, Scale, Version};
use crate::schema::Schema;

/// The server counts changes of the spec.
pub(crate) const GENERATION: u8 = 1;
/// An update must name the version that it changes.
pub(crate) const CONDITIONAL_UPDATE: u8 = 2;
/// An update of what is not there creates it.
pub(crate) const CREATE_ON_UPDATE: u8 = 4;
/// A delete answers with the object instead of a status.
pub(crate) const RETURNS_DELETED: u8 = 8;
/// What the creator says in the status stays.
pub(crate) const KEEPS_STATUS: u8 = 16;

/// What is special about a built-in kind.
pub(crate) struct BuiltIn {
    pub(crate) group: &'static str,
    pub(crate) version: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) plural: &'static str,
    short_names: &'static [&'static str],
    is_namespaced: bool,
    subresources: &'static [&'static str],
    habits: u8,
    definition: fn(&mut schemars::SchemaGenerator),
    /// The name of its schema, such as `io.k8s.api.core.v1.Pod`.
    pub(crate) definition_name: fn() -> String,
}

impl std::fmt::Debug for BuiltIn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("BuiltIn").field(&self.plural).finish()
    }
}

impl BuiltIn {
    pub(crate) fn has(&self, habit: u8) -> bool {
        self.habits & habit != 0
    }

    /// The fields beside name and namespace that objects can be selected by.
    pub(crate) fn selectable_fields(&self) -> &'static [&'static str] {
        match (self.group, self.plural) {
            ("", "pods") => &[
                "spec.nodeName",
                "spec.restartPolicy",
                "spec.schedulerName",
                "spec.serviceAccountName",
                "spec.hostNetwork",
                "status.phase",
                "status.podIP",
                "status.podIPs",
                "status.nominatedNodeName",
            ],
            ("", "nodes") => &["spec.unschedulable"],
            ("", "namespaces") => &["status.phase"],
            ("", "secrets") => &["type"],
            ("", "services") => &["spec.clusterIP", "spec.type"],
            ("", "events") => &[
                "involvedObject.kind",
                "involvedObject.namespace",
                "involvedObject.name",
                "involvedObject.uid",
                "involvedObject.apiVersion",
                "involvedObject.resourceVersion",
                "involvedObject.fieldPath",
                "reason",
                "reportingComponent",
                "source",
                "type",
            ],
            ("events.k8s.io", "events") => &[
                "regarding.kind",
                "regarding.namespace",
                "regarding.name",
                "regarding.uid",
                "regarding.apiVersion",
                "regarding.resourceVersion",
                "regarding.fieldPath",
                "reason",
                "reportingController",
                "type",
            ],
            ("apps", "replicasets") => &["status.replicas"],
            ("batch", "jobs") => &["status.successful"],
            ("certificates.k8s.io", "certificatesigningrequests") => &["spec.signerName"],
            _ => &[],
        }
    }
}

fn define<T: JsonSchema>(generator: &mut schemars::SchemaGenerator) {
    let _ = generator.subschema_for::<T>();
}

fn name_of<T: JsonSchema>() -> String {
    T::schema_name().into_owned()
}

macro_rules! kind {
    ($type:ty, $group:literal, $kind:literal, $plural:literal, $short:expr, $namespaced:expr, $sub:expr, $habits:expr) => {
        BuiltIn {
            group: $group,
            version: "v1",
            kind: $kind,
            plural: $plural,
            short_names: &$short,
            is_namespaced: $namespaced,
            subresources: &$sub,
            habits: $habits,
            definition: define::<$type>,
            definition_name: name_of::<$type>,
        }
    };
}

const IN_NAMESPACE: bool = true;
const CLUSTER: bool = false;

#[rustfmt::skip]
static BUILT_INS: &[BuiltIn] = &[
    kind!(core::Namespace, "", "Namespace", "namespaces", ["ns"], CLUSTER, ["status", "finalize"], 0),
    kind!(core::Pod, "", "Pod", "pods", ["po"], IN_NAMESPACE, ["status", "binding", "eviction", "ephemeralcontainers", "resize"], GENERATION | RETURNS_DELETED),
    kind!(core::Node, "", "Node", "nodes", ["no"], CLUSTER, ["status"], KEEPS_STATUS),
    kind!(core::Secret, "", "Secret", "secrets", [], IN_NAMESPACE, [], 0),
    kind!(core::ConfigMap, "", "ConfigMap", "configmaps", ["cm"], IN_NAMESPACE, [], 0),
    kind!(core::Event, "", "Event", "events", ["ev"], IN_NAMESPACE, [], CREATE_ON_UPDATE),
    kind!(core::ServiceAccount, "", "ServiceAccount", "serviceaccounts", ["sa"], IN_NAMESPACE, ["token"], RETURNS_DELETED),
    kind!(core::Service, "", "Service", "services", ["svc"], IN_NAMESPACE, ["status"], CREATE_ON_UPDATE),
    kind!(core::Endpoints, "", "Endpoints", "endpoints", ["ep"], IN_NAMESPACE, [], CREATE_ON_UPDATE),
    kind!(core::PersistentVolumeClaim, "", "PersistentVolumeClaim", "persistentvolumeclaims", ["pvc"], IN_NAMESPACE, ["status"], RETURNS_DELETED),
    kind!(core::PersistentVolume, "", "PersistentVolume", "persistentvolumes", ["pv"], CLUSTER, ["status"], RETURNS_DELETED),
    kind!(core::ResourceQuota, "", "ResourceQuota", "resourcequotas", ["quota"], IN_NAMESPACE, ["status"], RETURNS_DELETED),
    kind!(core::LimitRange, "", "LimitRange", "limitranges", ["limits"], IN_NAMESPACE, [], CREATE_ON_UPDATE),
    kind!(apps::Deployment, "apps", "Deployment", "deployments", ["deploy"], IN_NAMESPACE, ["status", "scale"], GENERATION),
    kind!(apps::ReplicaSet, "apps", "ReplicaSet", "replicasets", ["rs"], IN_NAMESPACE, ["status", "scale"], GENERATION),
    kind!(apps::StatefulSet, "apps", "StatefulSet", "statefulsets", ["sts"], IN_NAMESPACE, ["status", "scale"], GENERATION),
    kind!(apps::DaemonSet, "apps", "DaemonSet", "daemonsets", ["ds"], IN_NAMESPACE, ["status"], GENERATION),
    kind!(batch::Job, "batch", "Job", "jobs", [], IN_NAMESPACE, ["status"], GENERATION),
    kind!(batch::CronJob, "batch", "CronJob", "cronjobs", ["cj"], IN_NAMESPACE, ["status"], GENERATION),
    kind!(coordination::Lease, "coordination.k8s.io", "Lease", "leases", [], IN_NAMESPACE, [], CONDITIONAL_UPDATE | CREATE_ON_UPDATE),
    kind!(events::Event, "events.k8s.io", "Event", "events", ["ev"], IN_NAMESPACE, [], CREATE_ON_UPDATE),
    kind!(storage::StorageClass, "storage.k8s.io", "StorageClass", "storageclasses", ["sc"], CLUSTER, [], RETURNS_DELETED),
    kind!(storage::CSINode, "storage.k8s.io", "CSINode", "csinodes", [], CLUSTER, [], RETURNS_DELETED),
    kind!(storage::CSIDriver, "storage.k8s.io", "CSIDriver", "csidrivers", [], CLUSTER, [], GENERATION | RETURNS_DELETED),
    kind!(certificates::CertificateSigningRequest, "certificates.k8s.io", "CertificateSigningRequest", "certificatesigningrequests", ["csr"], CLUSTER, ["status", "approval"], 0),
    kind!(rbac::Role, "rbac.authorization.k8s.io", "Role", "roles", [], IN_NAMESPACE, [], CREATE_ON_UPDATE),
    kind!(rbac::RoleBinding, "rbac.authorization.k8s.io", "RoleBinding", "rolebindings", [], IN_NAMESPACE, [], CREATE_ON_UPDATE),
    kind!(rbac::ClusterRole, "rbac.authorization.k8s.io", "ClusterRole", "clusterroles", [], CLUSTER, [], CREATE_ON_UPDATE),
    kind!(rbac::ClusterRoleBinding, "rbac.authorization.k8s.io", "ClusterRoleBinding", "clusterrolebindings", [], CLUSTER, [], CREATE_ON_UPDATE),
    kind!(apiextensions::CustomResourceDefinition, "apiextensions.k8s.io", "CustomResourceDefinition", "customresourcedefinitions", ["crd", "crds"], CLUSTER, ["status"], GENERATION | CONDITIONAL_UPDATE),
    kind!(admission::ValidatingWebhookConfiguration, "admissionregistration.k8s.io", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", [], CLUSTER, [], GENERATION | CONDITIONAL_UPDATE),
    kind!(admission::MutatingWebhookConfiguration, "admissionregistration.k8s.io", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", [], CLUSTER, [], GENERATION | CONDITIONAL_UPDATE),
    kind!(policy::PodDisruptionBudget, "policy", "PodDisruptionBudget", "poddisruptionbudgets", ["pdb"], IN_NAMESPACE, ["status"], GENERATION),
    kind!(discovery::EndpointSlice, "discovery.k8s.io", "EndpointSlice", "endpointslices", [], IN_NAMESPACE, [], GENERATION),
    kind!(networking::NetworkPolicy, "networking.k8s.io", "NetworkPolicy", "networkpolicies", ["netpol"], IN_NAMESPACE, [], GENERATION),
    kind!(node::RuntimeClass, "node.k8s.io", "RuntimeClass", "runtimeclasses", [], CLUSTER, [], CREATE_ON_UPDATE),
    kind!(scheduling::PriorityClass, "scheduling.k8s.io", "PriorityClass", "priorityclasses", ["pc"], CLUSTER, [], GENERATION),
];

/// All built-in kinds.
pub(crate) fn kinds() -> Vec<Arc<Kind>> {
    BUILT_INS.iter().map(|built_in| Arc::new(kind(built_in))).collect()
}

fn kind(built_in: &'static BuiltIn) -> Kind {
    let has = |name: &str| built_in.subresources.contains(&name);
    let scale = has("scale").then(|| Scale {
        spec_replicas: ".spec.replicas".into(),
        status_replicas: ".status.replicas".into(),
        label_selector: Some(".spec.selector".into()),
    });
    let version = Version {
        name: built_in.version.into(),
        is_served: true,
        is_storage: true,
        openapi: None,
        schema: OnceLock::new(),
        has_status: has("status"),
        scale,
        subresources: built_in.subresources.to_vec(),
        columns: Vec::new(),
        selectable_fields: Vec::new(),
    };
    let in_all = matches!(
        built_in.plural,
        "pods"
            | "services"
            | "deployments"
            | "replicasets"
            | "statefulsets"
            | "daemonsets"
            | "jobs"
            | "cronjobs"
    );
    Kind {
        group: built_in.group.into(),
        kind: built_in.kind.into(),
        list_kind: format!("{}List", built_in.kind),
        plural: built_in.plural.into(),
        singular: built_in.kind.to_lowercase(),
        short_names: built_in.short_names.iter().map(ToString::to_string).collect(),
        categories: if in_all { vec!["all".into()] } else { Vec::new() },
        is_namespaced: built_in.is_namespaced,
        versions: vec![version],
        origin: Origin::BuiltIn(built_in),
        conversion: None,
    }
}

/// The schemas of all built-in kinds and of what they are made of, by name.
pub(crate) fn definitions() -> &'static Map<String, Value> {
    static DEFINITIONS: LazyLock<Map<String, Value>> = LazyLock::new(|| {
        let mut settings = SchemaSettings::openapi3();
        settings.meta_schema = None;
        let mut generator = settings.into_generator();
        for built_in in BUILT_INS {
            (built_in.definition)(&mut generator);
        }
        let _ =
            generator.subschema_for::<k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta>();
        generator.take_definitions(true)
    });
    &DEFINITIONS
}

/// The schema of a built-in kind, made on first use because there are many and they are large.
pub(crate) fn schema(kind: &Kind) -> Option<Arc<Schema>> {
    let built_in = kind.built_in()?;
    let version = kind.versions.first()?;
    let schema = version.schema.get_or_init(|| {
        let definitions = definitions();
        let definition = definitions.get(&(built_in.definition_name)())?;
        Some(Arc::new(Schema::read_with(definition, definitions)))
    });
    schema.clone()
}
