//! One authority and the certificates of a control plane.

use std::fs;
use std::path::Path;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose,
};

/// Who a certificate is for.
struct Subject {
    file: &'static str,
    name: &'static str,
    group: Option<&'static str>,
    /// Servers have names; clients have none.
    names: &'static [&'static str],
}

const SUBJECTS: [Subject; 9] = [
    Subject {
        file: "apiserver",
        name: "kube-apiserver",
        group: None,
        names: &[
            "localhost",
            "kubernetes",
            "kubernetes.default",
            "kubernetes.default.svc",
            "127.0.0.1",
            "10.0.0.1",
        ],
    },
    Subject { file: "admin", name: "admin", group: Some("system:masters"), names: &[] },
    Subject {
        file: "controller-manager",
        name: "system:kube-controller-manager",
        group: None,
        names: &[],
    },
    Subject { file: "scheduler", name: "system:kube-scheduler", group: None, names: &[] },
    Subject { file: "metrics-server", name: "metrics-server", group: None, names: &[] },
    // The API server, towards kubelets.
    Subject {
        file: "kubelet-client",
        name: "kube-apiserver-kubelet-client",
        group: Some("system:masters"),
        names: &[],
    },
    // A kubelet of a virtual node, towards the API server and as a server.
    Subject { file: "node", name: "system:node:vnode", group: Some("system:nodes"), names: &[] },
    Subject {
        file: "kubelet",
        name: "system:node:vnode",
        group: Some("system:nodes"),
        names: &["vnode", "localhost", "127.0.0.1"],
    },
    Subject { file: "front-proxy-client", name: "front-proxy-client", group: None, names: &[] },
];

/// Writes `ca.crt`, `ca.key`, the pair of each subject and the key of service accounts.
pub(super) fn write(folder: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let mut params = CertificateParams::new(Vec::<String>::new())?;
    params.distinguished_name = distinguished("roost-oracle", None);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::CrlSign,
        KeyUsagePurpose::DigitalSignature,
    ];
    let key = KeyPair::generate()?;
    let authority = params.self_signed(&key)?;
    fs::write(folder.join("ca.crt"), authority.pem())?;
    fs::write(folder.join("ca.key"), key.serialize_pem())?;
    let issuer = Issuer::new(params, key);
    for subject in &SUBJECTS {
        let names: Vec<String> = subject.names.iter().map(ToString::to_string).collect();
        let usage = if names.is_empty() {
            ExtendedKeyUsagePurpose::ClientAuth
        } else {
            ExtendedKeyUsagePurpose::ServerAuth
        };
        let mut params = CertificateParams::new(names)?;
        params.distinguished_name = distinguished(subject.name, subject.group);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![usage];
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &issuer)?;
        fs::write(folder.join(format!("{}.crt", subject.file)), certificate.pem())?;
        fs::write(folder.join(format!("{}.key", subject.file)), key.serialize_pem())?;
    }
    let accounts = KeyPair::generate()?;
    fs::write(folder.join("accounts.key"), accounts.serialize_pem())?;
    fs::write(folder.join("accounts.pub"), accounts.public_key_pem())?;
    Ok(())
}

fn distinguished(name: &str, group: Option<&str>) -> DistinguishedName {
    let mut distinguished = DistinguishedName::new();
    if let Some(group) = group {
        distinguished.push(DnType::OrganizationName, group);
    }
    distinguished.push(DnType::CommonName, name);
    distinguished
}
