//! `[hatchery.vsphere.commonConfiguration]`, validated.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use roost_cds::{HatcheryKey, Secret};
use roost_settings::{Key, Reader, SecretSource, Surroundings};
use url::Url;

use super::keys::common as keys;

/// Who this hatchery is.
#[derive(Debug, Clone)]
pub struct Identity {
    /// VMs carry it in their annotation: whose they are.
    pub name: String,
    /// Where this hatchery says that it is reached.
    pub url: String,
    /// What V2 jobs may need, such as `linux/amd64`; never empty.
    pub os_arch: Vec<String>,
    /// Signs the tokens of workers.
    pub key: Arc<HatcheryKey>,
}

/// Where this hatchery's own HTTP server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listen {
    /// `None`: all interfaces.
    pub address: Option<String>,
    pub port: u16,
    /// Names the client behind a proxy.
    pub forwarded_header: Option<String>,
    /// `None`: plain HTTP.
    pub tls: Option<ListenTls>,
    pub links: PageLinks,
}

/// Where other programs show what the page only names, as templates.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PageLinks {
    pub request: Option<String>,
    pub vm: Option<String>,
    pub docs: Option<String>,
}

/// Where that server's certificate and key are, in PEM form, and the authority of the clients that it knows by theirs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListenTls {
    pub cert_file: PathBuf,
    pub key_file: PathBuf,
    pub client_ca_file: Option<PathBuf>,
}

/// How the CDS API is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CdsApi {
    /// Without a slash at the end.
    pub url: String,
    pub insecure: bool,
    pub ca_file: Option<PathBuf>,
    /// At least one of the two is there.
    pub tokens: Tokens,
    pub request_timeout: Duration,
    pub max_heartbeat_failures: u32,
}

/// A token means that its protocol is spoken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tokens {
    pub v1: Option<SecretSource>,
    pub v2: Option<SecretSource>,
}

/// Addresses of the CDN; what is missing is asked of the CDS API.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cdn {
    pub url: Option<String>,
    pub tcp_url: Option<String>,
    pub tcp_tls: bool,
}

/// How many of what, and how often.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counts {
    /// `None`: no limit.
    pub max_workers: Option<u32>,
    pub max_provisioning: u32,
    /// `None`: this hatchery registers nothing.
    pub max_registering: Option<u32>,
    /// `None`: never.
    pub register_interval: Option<Duration>,
    /// `None`: no end.
    pub max_attempts: Option<u32>,
}

/// Which V1 jobs this hatchery takes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Region {
    pub name: Option<String>,
    pub ignore_jobs_without: bool,
}

/// What workers are told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerSettings {
    /// The CDS API as workers see it, without a slash at the end.
    pub api_url: String,
    pub api_insecure: bool,
    /// The CDN as workers see it; what is missing is as the hatchery's.
    pub cdn: Cdn,
    pub basedir: String,
    pub log_level: String,
    pub graylog: Graylog,
    pub syslog: Syslog,
    /// Names and values; values may be secrets.
    pub environment: Vec<(String, Secret)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Graylog {
    pub host: String,
    pub port: u16,
    pub protocol: String,
    pub extra_key: String,
    pub extra_value: Option<SecretSource>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Syslog {
    pub host: String,
    pub port: u16,
    pub protocol: String,
    pub extra_tag: String,
}

/// All of `commonConfiguration`.
#[derive(Debug, Clone)]
pub(super) struct Common {
    pub(super) identity: Identity,
    pub(super) listen: Listen,
    pub(super) console_token: Option<SecretSource>,
    pub(super) api: CdsApi,
    pub(super) cdn: Cdn,
    pub(super) counts: Counts,
    pub(super) region: Region,
    pub(super) workers: WorkerSettings,
    pub(super) poll_v2: bool,
}

/// `maxConcurrentProvisioning` below 1 means this.
const DEFAULT_PROVISIONING: u32 = 10;
/// `maxConcurrentRegistering` 0 means this.
const DEFAULT_REGISTERING: u32 = 2;
/// `maxAttemptsNumberBeforeFailure` 0 means this.
const DEFAULT_ATTEMPTS: u32 = 5;
/// `requestTimeout` 0 means this.
const DEFAULT_REQUEST_TIMEOUT: Duration = Duration::from_mins(1);

pub(super) fn read(reader: &Reader<'_>, surroundings: &dyn Surroundings) -> Option<Common> {
    let identity = identity(reader, surroundings);
    let listen = listen(reader);
    let console_token = token(reader, &keys::HTTP_TOKEN, surroundings);
    let api = api(reader, surroundings);
    let cdn = Cdn {
        url: reader.filled(&keys::CDN_URL),
        tcp_url: reader.filled(&keys::CDN_TCP_URL),
        tcp_tls: reader.boolean(&keys::CDN_TCP_TLS),
    };
    let counts = counts(reader);
    let region = Region {
        name: reader.filled(&keys::REGION),
        ignore_jobs_without: reader.boolean(&keys::IGNORE_NO_REGION),
    };
    let workers = workers(reader, api.as_ref(), surroundings);
    let poll_v2 = !reader.boolean(&keys::DISABLE_V2_POLLING);
    // Parsed so that a wrong type is seen; CDS does nothing with them either.
    reader.integer(&keys::LOG_CRITICAL);
    reader.integer(&keys::LOG_WARNING);
    Some(Common {
        identity: identity?,
        listen,
        console_token,
        api: api?,
        cdn,
        counts,
        region,
        workers,
        poll_v2,
    })
}

/// A secret that goes into a header.
fn token(reader: &Reader<'_>, key: &Key, surroundings: &dyn Surroundings) -> Option<SecretSource> {
    reader.header_secret(key, surroundings).map(|(source, _)| source)
}

pub(super) fn listen(reader: &Reader<'_>) -> Listen {
    Listen {
        address: reader.host(&keys::HTTP_ADDR),
        port: port(reader, &keys::HTTP_PORT),
        forwarded_header: reader.filled(&keys::HTTP_FORWARDED),
        tls: tls(reader),
        links: PageLinks {
            request: link(reader, &keys::HTTP_LINK_REQUEST),
            vm: link(reader, &keys::HTTP_LINK_VM),
            docs: link(reader, &keys::HTTP_LINK_DOCS),
        },
    }
}

/// A link opens a page, and runs nothing.
fn link(reader: &Reader<'_>, key: &'static Key) -> Option<String> {
    let template = reader.filled(key)?;
    if !template.starts_with("https://") && !template.starts_with("http://") {
        reader.problem(key, format!("must begin with https:// or http://, is {template:?}"));
    }
    Some(template)
}

fn tls(reader: &Reader<'_>) -> Option<ListenTls> {
    let path = |key| reader.filled(key).map(PathBuf::from);
    let client_ca_file = path(&keys::HTTP_CLIENT_CA_FILE);
    match (path(&keys::HTTP_CERT_FILE), path(&keys::HTTP_KEY_FILE)) {
        (Some(cert_file), Some(key_file)) => {
            Some(ListenTls { cert_file, key_file, client_ca_file })
        }
        (Some(_), None) => {
            reader.problem(&keys::HTTP_CERT_FILE, "needs keyFile beside it");
            None
        }
        (None, Some(_)) => {
            reader.problem(&keys::HTTP_KEY_FILE, "needs certFile beside it");
            None
        }
        (None, None) if client_ca_file.is_some() => {
            let words = "needs certFile and keyFile beside it: certificates are shown over HTTPS";
            reader.problem(&keys::HTTP_CLIENT_CA_FILE, words);
            None
        }
        (None, None) => None,
    }
}

fn identity(reader: &Reader<'_>, surroundings: &dyn Surroundings) -> Option<Identity> {
    let name = reader.mandatory(&keys::NAME);
    let url = reader.text(&keys::URL);
    let mut os_arch = reader.texts(&keys::OS_ARCH);
    for odd in os_arch.iter().filter(|text| text.split('/').count() != 2) {
        reader.warn(&keys::OS_ARCH, format!("{odd:?} is not of the form os/arch"));
    }
    if os_arch.is_empty() {
        os_arch.push("linux/amd64".to_owned());
    }
    let key = &keys::RSA_PRIVATE_KEY;
    let signing = reader.mandatory_secret(key, surroundings);
    let signing = signing.and_then(|(_, pem)| match HatcheryKey::parse(&pem) {
        Ok(parsed) => Some(Arc::new(parsed)),
        Err(error) => {
            reader.problem(key, format!("cannot be used: {error}"));
            None
        }
    });
    Some(Identity { name: name?, url, os_arch, key: signing? })
}

fn api(reader: &Reader<'_>, surroundings: &dyn Surroundings) -> Option<CdsApi> {
    let url =
        reader.mandatory(&keys::API_URL).and_then(|url| http_url(reader, &keys::API_URL, &url));
    let insecure = reader.boolean(&keys::API_INSECURE);
    let ca_file = reader.filled(&keys::API_CA_FILE).map(PathBuf::from);
    if insecure && ca_file.is_some() {
        reader.problem(&keys::API_CA_FILE, "has no use with insecure = true: remove one of them");
    }
    let v1 = token(reader, &keys::API_TOKEN, surroundings);
    let v2 = token(reader, &keys::API_TOKEN_V2, surroundings);
    let named =
        [&keys::API_TOKEN, &keys::API_TOKEN_V2].iter().any(|key| reader.mentions_secret(key));
    if v1.is_none() && v2.is_none() && !named {
        reader.problem(&keys::API_TOKEN, "is mandatory, unless there is a tokenV2");
    }
    let seconds = reader.amount(&keys::API_TIMEOUT, u64::from(u32::MAX));
    let max_heartbeat_failures = small(reader, &keys::API_HEARTBEAT_FAILURES);
    Some(CdsApi {
        url: url?,
        insecure,
        ca_file,
        tokens: Tokens { v1, v2 },
        request_timeout: match seconds? {
            0 => DEFAULT_REQUEST_TIMEOUT,
            seconds => Duration::from_secs(seconds),
        },
        max_heartbeat_failures: max_heartbeat_failures?,
    })
}

fn counts(reader: &Reader<'_>) -> Counts {
    let max_worker = reader.integer(&keys::MAX_WORKER);
    if max_worker < 0 {
        reader.warn(&keys::MAX_WORKER, "is negative, which counts as 0: no limit");
    }
    let max_workers = positive(max_worker);
    let provisioning = reader.integer(&keys::MAX_PROVISIONING);
    let registering = reader.integer(&keys::MAX_REGISTERING);
    if let Some(limit) = max_workers {
        for (key, number) in
            [(&keys::MAX_PROVISIONING, provisioning), (&keys::MAX_REGISTERING, registering)]
        {
            if number > i64::from(limit) {
                let default = if reader.is_set(key) { "" } else { " by default" };
                reader.problem(
                    key,
                    format!("must be at most maxWorker, which is {limit}; is {number}{default}"),
                );
            }
        }
    }
    let every = reader.integer(&keys::REGISTER_FREQUENCY);
    let attempts = reader.integer(&keys::MAX_ATTEMPTS);
    Counts {
        max_workers,
        max_provisioning: positive(provisioning).unwrap_or(DEFAULT_PROVISIONING),
        max_registering: if registering == 0 {
            Some(DEFAULT_REGISTERING)
        } else {
            positive(registering)
        },
        register_interval: positive(every).map(|seconds| Duration::from_secs(seconds.into())),
        max_attempts: if attempts == 0 { Some(DEFAULT_ATTEMPTS) } else { positive(attempts) },
    }
}

fn workers(
    reader: &Reader<'_>,
    api: Option<&CdsApi>,
    surroundings: &dyn Surroundings,
) -> WorkerSettings {
    let own_url = reader.filled(&keys::WORKER_API_URL);
    let own_url = own_url.and_then(|url| http_url(reader, &keys::WORKER_API_URL, &url));
    let own_insecure = reader.boolean(&keys::WORKER_API_INSECURE);
    let (api_url, api_insecure) = match own_url {
        Some(url) => (url, own_insecure),
        None => {
            api.map_or_else(Default::default, |api| (api.url.clone(), api.insecure || own_insecure))
        }
    };
    let mut environment = Vec::new();
    for (index, text) in reader.texts(&keys::INJECT_ENV).into_iter().enumerate() {
        match text.split_once('=') {
            Some((name, value)) if !name.trim().is_empty() => {
                environment.push((name.trim().to_owned(), Secret::new(value)));
            }
            // The text itself may be a secret.
            _ => reader.warn(
                &keys::INJECT_ENV,
                format!("entry {index} is not NAME=value and is left out"),
            ),
        }
    }
    WorkerSettings {
        api_url,
        api_insecure,
        cdn: Cdn {
            url: reader.filled(&keys::WORKER_CDN_URL),
            tcp_url: reader.filled(&keys::WORKER_CDN_TCP_URL),
            tcp_tls: reader.boolean(&keys::WORKER_CDN_TCP_TLS),
        },
        basedir: reader.text(&keys::WORKER_BASEDIR),
        log_level: reader.text(&keys::WORKER_LOG_LEVEL),
        graylog: Graylog {
            host: reader.text(&keys::GRAYLOG_HOST),
            port: port(reader, &keys::GRAYLOG_PORT),
            protocol: reader.text(&keys::GRAYLOG_PROTOCOL),
            extra_key: reader.text(&keys::GRAYLOG_EXTRA_KEY),
            extra_value: reader
                .secret(&keys::GRAYLOG_EXTRA_VALUE, surroundings)
                .map(|(source, _)| source),
        },
        syslog: Syslog {
            host: reader.text(&keys::SYSLOG_HOST),
            port: port(reader, &keys::SYSLOG_PORT),
            protocol: reader.text(&keys::SYSLOG_PROTOCOL),
            extra_tag: reader.text(&keys::SYSLOG_EXTRA_TAG),
        },
        environment,
    }
}

/// Checked to be `http` or `https` with a host, and without a slash at the end.
fn http_url(reader: &Reader<'_>, key: &Key, text: &str) -> Option<String> {
    let fault = match Url::parse(text) {
        Err(error) => Some(format!("is not a URL: {error}")),
        Ok(url) if !matches!(url.scheme(), "http" | "https") => {
            Some("must begin with http:// or https://".into())
        }
        Ok(url) if !url.username().is_empty() || url.password().is_some() => {
            Some("must not hold a user name or password".into())
        }
        Ok(_) => None,
    };
    match fault {
        Some(fault) => {
            reader.problem(key, fault);
            None
        }
        None => Some(text.trim_end_matches('/').to_owned()),
    }
}

fn port(reader: &Reader<'_>, key: &Key) -> u16 {
    reader.amount(key, u16::MAX.into()).and_then(|port| port.try_into().ok()).unwrap_or_default()
}

fn small(reader: &Reader<'_>, key: &Key) -> Option<u32> {
    reader.amount(key, u32::MAX.into()).and_then(|number| number.try_into().ok())
}

/// `None` for 0 and below; what is beyond 32 bits is as good as the largest number.
fn positive(number: i64) -> Option<u32> {
    (number > 0).then(|| u32::try_from(number).unwrap_or(u32::MAX))
}
