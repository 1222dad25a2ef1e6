//! The signing request as Kubernetes has it, and what became of it.

use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::{
    CertificateSigningRequest, CertificateSigningRequestSpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use roost_tls::{RequestedSubject, SigningRequest};

use crate::settings::Settings;

const SIGNER: &str = "kubernetes.io/kubelet-serving";

/// What the signer of kubelets' certificates insists on.
pub(super) fn subject(settings: &Settings) -> RequestedSubject {
    RequestedSubject {
        common_name: format!("system:node:{}", settings.node_name),
        organisation: "system:nodes".to_owned(),
        hosts: hosts(settings),
    }
}

/// Who the node is to those who call it.
pub(super) fn hosts(settings: &Settings) -> Vec<String> {
    vec![settings.node_name.clone(), settings.node_ip.to_string()]
}

/// Named after the key, so that a request that was made before a restart is found again.
pub(super) fn object(settings: &Settings, request: &SigningRequest) -> CertificateSigningRequest {
    let name = format!("kubelet-serving-{}-{}", settings.node_name, request.fingerprint());
    CertificateSigningRequest {
        metadata: ObjectMeta { name: Some(name), ..ObjectMeta::default() },
        spec: CertificateSigningRequestSpec {
            request: ByteString(request.request_pem().as_bytes().to_vec()),
            signer_name: SIGNER.to_owned(),
            usages: Some(vec!["digital signature".to_owned(), "server auth".to_owned()]),
            ..CertificateSigningRequestSpec::default()
        },
        status: None,
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    /// Nobody has decided, or it is approved and not signed yet.
    None,
    Signed(Vec<u8>),
    /// With the words of whoever refused.
    Refused(String),
}

impl Answer {
    pub(super) fn of(request: &CertificateSigningRequest) -> Self {
        let Some(status) = &request.status else { return Self::None };
        let conditions = status.conditions.as_deref().unwrap_or_default();
        let refusal =
            conditions.iter().find(|condition| ["Denied", "Failed"].contains(&&*condition.type_));
        if let Some(refusal) = refusal {
            let why = [refusal.reason.as_deref(), refusal.message.as_deref()];
            let why: Vec<&str> = why.into_iter().flatten().filter(|it| !it.is_empty()).collect();
            return Self::Refused(format!("{}: {}", refusal.type_, why.join(": ")));
        }
        match &status.certificate {
            Some(ByteString(chain)) if !chain.is_empty() => Self::Signed(chain.clone()),
            _ => Self::None,
        }
    }
}
