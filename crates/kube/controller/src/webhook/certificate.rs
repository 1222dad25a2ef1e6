//! A serving certificate that nobody has to bring: made here, kept in a Secret that all replicas read, renewed in time, and its
//! authority written where the API server looks for it.
//!
//! Each renewal makes a new authority and throws its key away once it has signed. The bundle holds the new authority and the one before, so a replica that
//! still shows the old certificate is believed until it has read the new one.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ObjectMeta, Patch, PatchParams, PostParams};
use kube::{Api, Client, Resource};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};
use roost_clock::Clock;
use roost_tls::ServerTls;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::sleep;
use tracing::{info, warn};

use crate::serve::Tls;

/// How long a certificate is valid, and when it is replaced.
const VALID: SignedDuration = SignedDuration::from_hours(90 * 24);
const REPLACED_AFTER: SignedDuration = SignedDuration::from_hours(60 * 24);

/// How often the Secret and the bundles are looked at. A configuration that was just applied, or applied anew without its bundle, refuses every object
/// until it has one, so not in minutes.
const LOOK_EVERY: Duration = Duration::from_secs(15);
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// Says in the Secret when its certificate is to be replaced.
const REPLACE_AT: &str = "roost/replace-at";

#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    #[error("making a certificate")]
    Make(#[source] rcgen::Error),
    #[error("using the certificate in the Secret")]
    Use(#[source] roost_tls::ServerTlsError),
    #[error("the Secret of the certificate")]
    Secret(#[source] Box<kube::Error>),
    #[error("writing the authority into {0}")]
    Bundle(String, #[source] Box<kube::Error>),
    #[error("the Secret of the certificate lacks {0}")]
    Incomplete(&'static str),
}

/// A certificate made and renewed by the replicas themselves.
#[derive(Clone)]
pub struct SelfMade {
    client: Client,
    namespace: String,
    secret: String,
    names: Vec<String>,
    /// Configurations of webhooks and definitions of kinds that hold the bundle.
    configurations: Vec<String>,
    crds: Vec<String>,
    clock: Arc<dyn Clock>,
    current: Arc<RwLock<Option<ServerTls>>>,
}

/// What the Secret holds, in PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Made {
    certificate: Vec<u8>,
    key: Vec<u8>,
    bundle: Vec<u8>,
    replace_at: Timestamp,
}

impl SelfMade {
    /// For a Service of this name, by which the API server calls.
    pub fn new(
        client: Client,
        namespace: &str,
        service: &str,
        secret: &str,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let names = vec![
            format!("{service}.{namespace}.svc"),
            format!("{service}.{namespace}.svc.cluster.local"),
            "localhost".to_owned(),
            "127.0.0.1".to_owned(),
        ];
        Self {
            client,
            namespace: namespace.to_owned(),
            secret: secret.to_owned(),
            names,
            configurations: Vec::new(),
            crds: Vec::new(),
            clock,
            current: Arc::default(),
        }
    }

    /// Keeps the bundle of validating and mutating configurations of this name current.
    #[must_use]
    pub fn for_configuration(mut self, name: &str) -> Self {
        self.configurations.push(name.to_owned());
        self
    }

    /// Keeps the bundle of the conversion webhook of this kind current.
    #[must_use]
    pub fn for_crd(mut self, name: &str) -> Self {
        self.crds.push(name.to_owned());
        self
    }

    /// What a server shows: always the latest.
    pub fn tls(&self) -> Tls {
        let current = Arc::clone(&self.current);
        Tls::On(Arc::new(move || current.read().unwrap_or_else(PoisonError::into_inner).clone()))
    }

    /// Keeps certificate and bundles current until it is dropped.
    pub async fn run(&self) {
        loop {
            match self.refresh().await {
                Ok(()) => sleep(LOOK_EVERY).await,
                Err(error) => {
                    warn!(error = %roost_supervise::Chain(&error), "the certificate of the webhooks is not current");
                    sleep(LOOK_AGAIN).await;
                }
            }
        }
    }

    /// Reads or makes the certificate, and writes its authority where it is missing.
    pub async fn refresh(&self) -> Result<(), CertificateError> {
        let made = self.read_or_make().await?;
        let tls = ServerTls::from_pem(&made.certificate, &made.key, None)
            .map_err(CertificateError::Use)?;
        // The API server must believe a certificate before it sees it.
        for name in &self.configurations {
            self.bundle_into::<ValidatingWebhookConfiguration>(name, &made.bundle).await?;
            self.bundle_into::<MutatingWebhookConfiguration>(name, &made.bundle).await?;
        }
        for name in &self.crds {
            self.bundle_into_crd(name, &made.bundle).await?;
        }
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Some(tls);
        Ok(())
    }

    async fn read_or_make(&self) -> Result<Made, CertificateError> {
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), &self.namespace);
        let failed = |error| CertificateError::Secret(Box::new(error));
        loop {
            let found = secrets.get_opt(&self.secret).await.map_err(failed)?;
            let known = found.as_ref().and_then(|secret| Made::of(secret).ok());
            if let Some(known) = &known
                && self.clock.now() < known.replace_at
            {
                return Ok(known.clone());
            }
            let made = Made::new(&self.names, self.clock.now(), known.as_ref())?;
            let stored = match found {
                None => {
                    secrets.create(&PostParams::default(), &made.secret(&self.secret, None)).await
                }
                Some(old) => {
                    let secret = made.secret(&self.secret, old.metadata.resource_version);
                    secrets.replace(&self.secret, &PostParams::default(), &secret).await
                }
            };
            match stored {
                Ok(_) => {
                    info!(secret = %self.secret, "a certificate for the webhooks was made, to be replaced at {}", made.replace_at);
                    return Ok(made);
                }
                // Another replica was faster: its certificate is ours.
                Err(kube::Error::Api(status))
                    if status.is_conflict() || status.is_already_exists() => {}
                Err(error) => return Err(failed(error)),
            }
        }
    }

    async fn bundle_into<K>(&self, name: &str, bundle: &[u8]) -> Result<(), CertificateError>
    where
        K: Resource<DynamicType = (), Scope = kube::core::ClusterResourceScope>
            + Clone
            + DeserializeOwned
            + Serialize
            + fmt::Debug,
    {
        let api: Api<K> = Api::all(self.client.clone());
        let failed = |error| CertificateError::Bundle(name.to_owned(), Box::new(error));
        let Some(found) = api.get_opt(name).await.map_err(failed)? else { return Ok(()) };
        let mut value = serde_json::to_value(&found).unwrap_or_default();
        let bundle = serde_json::to_value(ByteString(bundle.to_vec())).unwrap_or_default();
        let mut is_changed = false;
        for hook in value["webhooks"].as_array_mut().into_iter().flatten() {
            if hook["clientConfig"]["caBundle"] != bundle {
                hook["clientConfig"]["caBundle"] = bundle.clone();
                is_changed = true;
            }
        }
        if !is_changed {
            return Ok(());
        }
        // A list is replaced, so only on top of what was read.
        let version = value["metadata"]["resourceVersion"].clone();
        let patch =
            json!({"metadata": {"resourceVersion": version}, "webhooks": value["webhooks"]});
        api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.map_err(failed)?;
        Ok(())
    }

    async fn bundle_into_crd(&self, name: &str, bundle: &[u8]) -> Result<(), CertificateError> {
        let api: Api<CustomResourceDefinition> = Api::all(self.client.clone());
        let failed = |error| CertificateError::Bundle(name.to_owned(), Box::new(error));
        let Some(found) = api.get_opt(name).await.map_err(failed)? else { return Ok(()) };
        let bundle = serde_json::to_value(ByteString(bundle.to_vec())).unwrap_or_default();
        let conversion = serde_json::to_value(&found.spec.conversion).unwrap_or_default();
        let known = &conversion["webhook"]["clientConfig"];
        if conversion["strategy"] != "Webhook" || known["caBundle"] == bundle {
            return Ok(());
        }
        let patch: Value =
            json!({"spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": bundle}}}}});
        api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.map_err(failed)?;
        Ok(())
    }
}

impl Made {
    fn new(
        names: &[String],
        now: Timestamp,
        before: Option<&Self>,
    ) -> Result<Self, CertificateError> {
        let failed = CertificateError::Make;
        let from = now.saturating_sub(SignedDuration::from_hours(24)).unwrap_or(now);
        let until = now.saturating_add(VALID).unwrap_or(now);
        let dated = |params: &mut CertificateParams, name: &str| {
            params.distinguished_name.push(DnType::CommonName, name);
            let ((year, month, first), (last_year, last_month, last)) = (day(from), day(until));
            params.not_before = date_time_ymd(year, month, first);
            params.not_after = date_time_ymd(last_year, last_month, last);
        };
        let mut authority = CertificateParams::new(Vec::new()).map_err(failed)?;
        // A name of its own, so that two authorities in one bundle are told apart.
        dated(&mut authority, &format!("roost webhooks {}", now.as_second()));
        authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        authority.key_usages =
            vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let authority_key = KeyPair::generate().map_err(failed)?;
        let authority_made = authority.self_signed(&authority_key).map_err(failed)?;
        let mut serving = CertificateParams::new(names.to_vec()).map_err(failed)?;
        dated(&mut serving, names.first().map_or("roost", String::as_str));
        serving.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        serving.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let key = KeyPair::generate().map_err(failed)?;
        let issuer = Issuer::from_params(&authority, &authority_key);
        let certificate = serving.signed_by(&key, &issuer).map_err(failed)?;
        let mut bundle = authority_made.pem();
        if let Some(before) = before {
            bundle.push_str(&first_pem(&before.bundle));
        }
        Ok(Self {
            certificate: certificate.pem().into_bytes(),
            key: key.serialize_pem().into_bytes(),
            bundle: bundle.into_bytes(),
            replace_at: now.saturating_add(REPLACED_AFTER).unwrap_or(now),
        })
    }

    fn of(secret: &Secret) -> Result<Self, CertificateError> {
        let part = |name: &'static str| {
            let data = secret.data.as_ref().and_then(|data| data.get(name));
            data.map(|data| data.0.clone()).ok_or(CertificateError::Incomplete(name))
        };
        let annotations = secret.metadata.annotations.as_ref();
        let replace_at =
            annotations.and_then(|annotations| annotations.get(REPLACE_AT)?.parse().ok());
        Ok(Self {
            certificate: part("tls.crt")?,
            key: part("tls.key")?,
            bundle: part("ca.crt")?,
            replace_at: replace_at.ok_or(CertificateError::Incomplete(REPLACE_AT))?,
        })
    }

    fn secret(&self, name: &str, resource_version: Option<String>) -> Secret {
        let data =
            [("tls.crt", &self.certificate), ("tls.key", &self.key), ("ca.crt", &self.bundle)];
        let data = data.map(|(name, pem)| (name.to_owned(), ByteString(pem.clone())));
        let annotations = BTreeMap::from([(REPLACE_AT.to_owned(), self.replace_at.to_string())]);
        Secret {
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                annotations: Some(annotations),
                resource_version,
                ..ObjectMeta::default()
            },
            type_: Some("kubernetes.io/tls".to_owned()),
            data: Some(data.into()),
            ..Secret::default()
        }
    }
}

/// The day of a time: certificates need no finer dates.
fn day(time: Timestamp) -> (i32, u8, u8) {
    let date = time.to_zoned(TimeZone::UTC).date();
    let part = |number: i8| u8::try_from(number).unwrap_or(1);
    (i32::from(date.year()), part(date.month()), part(date.day()))
}

/// The authority that signed what was in use; what it replaced is not needed any more.
fn first_pem(bundle: &[u8]) -> String {
    const END: &str = "-----END CERTIFICATE-----";
    let text = String::from_utf8_lossy(bundle);
    let end = text.find(END).map_or(0, |at| at + END.len());
    format!("{}\n", &text[..end])
}

impl fmt::Debug for SelfMade {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("SelfMade").field("secret", &self.secret).finish_non_exhaustive()
    }
}
