//! Has the certificate signed by the cluster, and again before it ends.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use kube::api::PostParams;
use kube::runtime::wait::await_condition;
use kube::{Api, Client, ResourceExt as _};
use roost_clock::{Clock, Random};
use roost_supervise::Chain;
use roost_tls::{IdentityError, SigningRequest, TlsIdentity};
use tokio::time::{sleep, timeout};

use super::files::Pair;
use super::request::{self, Answer};
use crate::settings::Settings;

/// After something went wrong; doubled up to the longest.
const FIRST_PAUSE: Duration = Duration::from_secs(5);
const LONGEST_PAUSE: Duration = Duration::from_mins(30);
/// Files are looked at again at least so often: somebody may remove them, and clocks are set.
const LOOK_EVERY: Duration = Duration::from_hours(1);
/// A request that nobody has decided is looked at anew: it may have been deleted while nobody listened.
const LISTEN: Duration = Duration::from_mins(10);

#[derive(Debug, thiserror::Error)]
enum RenewError {
    #[error("making a signing request")]
    Make(#[from] IdentityError),
    #[error("keeping the kubelet's certificate")]
    Files(#[from] std::io::Error),
    #[error("asking for the kubelet's certificate")]
    Ask(#[from] kube::Error),
    #[error("waiting for signing request {name}")]
    Wait { name: String, source: kube::runtime::wait::Error },
    #[error("signing request {name} was refused: {why}")]
    Refused { name: String, why: String },
    #[error(
        "the certificate of signing request {name} cannot be used: it is not one for this key and this node"
    )]
    Useless { name: String },
}

/// Keeps one node's certificate.
pub(crate) struct CertificateKeeper {
    pub(crate) client: Client,
    pub(crate) settings: Arc<Settings>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) random: Random,
}

impl CertificateKeeper {
    /// Until it is dropped; for ever idle where certificates come from elsewhere.
    pub(crate) async fn keep(mut self) {
        if !self.settings.requests_certificate {
            std::future::pending::<()>().await;
        }
        // Nodes that started together do not ask together.
        let share = i32::try_from(self.random.below(20)).unwrap_or_default();
        let mut pause = FIRST_PAUSE;
        loop {
            if let Some(left) = self.left(70 + share) {
                sleep(left.min(LOOK_EVERY)).await;
                continue;
            }
            match self.renew().await {
                Ok(Some(until)) => {
                    pause = FIRST_PAUSE;
                    tracing::info!(
                        "the cluster has signed the kubelet's certificate, good until {until}"
                    );
                }
                // Nobody has decided, or somebody has deleted the request.
                Ok(None) => sleep(FIRST_PAUSE).await,
                Err(error) => {
                    tracing::warn!("{}", Chain(&error));
                    sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }

    /// How long the certificate on disk is good enough: until `percent` of its time is over. `None`: it is not.
    fn left(&self, percent: i32) -> Option<Duration> {
        let certificate = self.usable(&Pair::of(&self.settings).read()?)?;
        let life = certificate.not_after.duration_since(certificate.not_before);
        let due = certificate.not_before + life * percent / 100;
        let left = due.duration_since(self.clock.now());
        Duration::try_from(left).ok().filter(|left| !left.is_zero())
    }

    /// If it is for this node and has not ended.
    fn usable(&self, pair: &TlsIdentity) -> Option<roost_tls::Certificate> {
        let certificate = pair.certificate()?;
        let is_ours = request::hosts(&self.settings).iter().all(|host| pair.is_for(host));
        (is_ours && self.clock.now() < certificate.not_after).then_some(certificate)
    }

    /// One request, from the key to the files. A restart in between goes on with the same key and the same request.
    async fn renew(&self) -> Result<Option<Timestamp>, RenewError> {
        let pair = Pair::of(&self.settings);
        let subject = request::subject(&self.settings);
        let kept = pair.requested_key();
        let kept = kept.and_then(|key| SigningRequest::with_key(&key, &subject).ok());
        let request = if let Some(request) = kept {
            request
        } else {
            let request = SigningRequest::new(&subject)?;
            pair.keep_requested(&request.key_pem())?;
            request
        };
        let object = request::object(&self.settings, &request);
        let name = object.name_any();
        match self.answer(&object).await? {
            Answer::Signed(chain) => {
                let signed = TlsIdentity::from_pem(&chain, request.key_pem().as_bytes());
                let usable = signed.ok().and_then(|pair| {
                    let certificate = self.usable(&pair)?;
                    pair.server_config().ok()?;
                    Some(certificate)
                });
                let Some(certificate) = usable else {
                    pair.drop_requested();
                    return Err(RenewError::Useless { name });
                };
                pair.write(&chain, &request.key_pem())?;
                Ok(Some(certificate.not_after))
            }
            Answer::Refused(why) => {
                // Nobody decides twice: the next one has a key of its own.
                pair.drop_requested();
                Err(RenewError::Refused { name, why })
            }
            Answer::None => Ok(None),
        }
    }

    /// Makes the request unless it is there, and waits for whoever decides.
    async fn answer(&self, object: &CertificateSigningRequest) -> Result<Answer, RenewError> {
        let api: Api<CertificateSigningRequest> = Api::all(self.client.clone());
        let name = object.name_any();
        match api.create(&PostParams::default(), object).await {
            Ok(_) => tracing::warn!(
                "the kubelet's certificate waits for approval: kubectl certificate approve {name}"
            ),
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            Err(error) => return Err(error.into()),
        }
        let is_decided = |request: Option<&CertificateSigningRequest>| {
            request.is_none_or(|request| Answer::of(request) != Answer::None)
        };
        match timeout(LISTEN, await_condition(api, &name, is_decided)).await {
            Ok(Ok(found)) => Ok(found.as_ref().map_or(Answer::None, Answer::of)),
            Ok(Err(source)) => Err(RenewError::Wait { name, source }),
            Err(_) => Ok(Answer::None),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use k8s_openapi::ByteString;
    use kube::api::{ListParams, Patch, PatchParams};
    use rcgen::{CertificateParams, Issuer, KeyPair, date_time_ymd};
    use roost_clock::SimClock;
    use roost_kube_sim::{KubeSim, Options};
    use serde_json::json;
    use tokio::task::JoinHandle;

    use super::*;

    struct Office {
        sim: KubeSim,
        clock: Arc<SimClock>,
        folder: PathBuf,
        keeper: JoinHandle<()>,
    }

    impl Office {
        fn open(what: &str) -> Self {
            let clock = Arc::new(SimClock::new());
            let sim = KubeSim::start(Options::default(), clock.clone());
            let name = format!("roost-kubelet-serving-{what}-{}", std::process::id());
            let folder = std::env::temp_dir().join(name);
            let keeper = keeper(&sim, &clock, &folder);
            Self { sim, clock, folder, keeper }
        }

        fn restart(&mut self) {
            self.keeper.abort();
            self.keeper = keeper(&self.sim, &self.clock, &self.folder);
        }

        fn requests(&self) -> Api<CertificateSigningRequest> {
            Api::all(self.sim.client())
        }

        /// The request that nobody has decided yet.
        async fn next(&self) -> CertificateSigningRequest {
            loop {
                let all = self.requests().list(&ListParams::default()).await.unwrap();
                if let Some(next) = all.into_iter().find(|it| Answer::of(it) == Answer::None) {
                    return next;
                }
                sleep(Duration::from_mins(10)).await;
            }
        }

        async fn decide(&self, name: &str, status: serde_json::Value) {
            let patch = Patch::Merge(json!({"status": status}));
            let decided = self.requests().patch_status(name, &PatchParams::default(), &patch).await;
            decided.unwrap();
        }

        /// What the cluster's signer does: a certificate of thirty days, for the key that waits.
        async fn sign(&self, name: &str, hosts: &[&str]) {
            let waiting = std::fs::read_to_string(self.folder.join("k.pem.requested")).unwrap();
            let now = self.clock.now().to_zoned(jiff::tz::TimeZone::UTC).date();
            let end = now + jiff::Span::new().days(30);
            let day = |date: jiff::civil::Date| {
                let (month, day) = (date.month().unsigned_abs(), date.day().unsigned_abs());
                date_time_ymd(date.year().into(), month, day)
            };
            let hosts: Vec<String> = hosts.iter().map(ToString::to_string).collect();
            let mut params = CertificateParams::new(hosts).unwrap();
            (params.not_before, params.not_after) = (day(now), day(end));
            let (key, authority) =
                (KeyPair::from_pem(&waiting).unwrap(), KeyPair::generate().unwrap());
            let issuer = Issuer::new(CertificateParams::default(), authority);
            let signed = params.signed_by(&key, &issuer).unwrap().pem();
            self.decide(name, json!({"certificate": ByteString(signed.into_bytes())})).await;
        }

        async fn holds(&self, what: impl Fn(&Path) -> bool) {
            while !what(&self.folder) {
                sleep(Duration::from_secs(1)).await;
            }
        }

        fn certificate(&self) -> Option<Vec<u8>> {
            std::fs::read(self.folder.join("c.pem")).ok()
        }
    }

    impl Drop for Office {
        fn drop(&mut self) {
            self.keeper.abort();
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }

    fn keeper(sim: &KubeSim, clock: &Arc<SimClock>, folder: &Path) -> JoinHandle<()> {
        let file = |name: &str| Some(folder.join(name).display().to_string());
        let get = |name: &str| match name {
            "VK_TLS_CSR" => Some("true".to_owned()),
            "VK_NODE_NAME" => Some("node-1".to_owned()),
            "VK_NODE_IP" => Some("10.0.0.7".to_owned()),
            "VK_TLS_CERT" => file("c.pem"),
            "VK_TLS_KEY" => file("k.pem"),
            _ => None,
        };
        let keeper = CertificateKeeper {
            client: sim.client(),
            settings: Arc::new(Settings::read(&get).unwrap()),
            clock: clock.clone(),
            random: Random::from_seed(1),
        };
        tokio::spawn(keeper.keep())
    }

    const HOSTS: [&str; 2] = ["node-1", "10.0.0.7"];

    #[tokio::test(start_paused = true)]
    async fn a_certificate_is_asked_for_kept_and_renewed_before_it_ends() {
        let mut office = Office::open("renew");
        let first = office.next().await;
        assert_eq!(first.spec.signer_name, "kubernetes.io/kubelet-serving");
        let usages = first.spec.usages.clone().unwrap();
        assert_eq!(usages, ["digital signature", "server auth"]);
        office.restart();
        sleep(Duration::from_mins(1)).await;
        let all = office.requests().list(&ListParams::default()).await.unwrap();
        assert_eq!(all.items.len(), 1, "a restart waits for the same request");
        office.sign(&first.name_any(), &HOSTS).await;
        office.holds(|folder| folder.join("c.pem").exists()).await;
        assert!(!office.folder.join("k.pem.requested").exists());
        let signed = office.clock.now();
        let old = office.certificate();
        let second = office.next().await;
        let later = office.clock.now().duration_since(signed).as_hours() / 24;
        assert!((20..=28).contains(&later), "after {later} of 30 days");
        assert_ne!(second.name_any(), first.name_any(), "with a key of its own");
        assert_eq!(office.certificate(), old, "the old one serves until the new one is there");
        office.sign(&second.name_any(), &HOSTS).await;
        office.holds(|folder| std::fs::read(folder.join("c.pem")).ok() != old).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_is_refused_deleted_or_signed_for_another_is_made_anew() {
        let office = Office::open("refused");
        let first = office.next().await.name_any();
        let denied =
            json!({"type": "Denied", "status": "True", "reason": "No", "message": "not you"});
        office.decide(&first, json!({"conditions": [denied]})).await;
        let second = office.next().await.name_any();
        office.requests().delete(&second, &kube::api::DeleteParams::default()).await.unwrap();
        sleep(Duration::from_secs(30)).await;
        let third = office.next().await.name_any();
        assert_eq!((third == first, third == second), (false, true), "it is asked for again");
        office.sign(&third, &["node-2"]).await;
        let fourth = office.next().await.name_any();
        assert!(office.certificate().is_none(), "another's certificate is not used");
        office.sign(&fourth, &HOSTS).await;
        office.holds(|folder| folder.join("c.pem").exists()).await;
    }
}
