//! `[hatchery.vsphere.commonConfiguration]`: what all CDS hatcheries share.

use roost_settings::{Json, Key, Sample};

pub(crate) const NAME: Key = Key::text(
    "commonConfiguration.name",
    "",
    "Name of this hatchery. Mandatory; VMs carry it, so two hatcheries on one vCenter need two names",
)
.sample(Sample::Set("\"roost\""));
pub(crate) const OS_ARCH: Key = Key::texts(
    "commonConfiguration.osArch",
    &["linux/amd64"],
    "Operating systems and architectures of V2 jobs to ask for",
);
pub(crate) const RSA_PRIVATE_KEY: Key = Key::secret(
    "commonConfiguration.rsaPrivateKey",
    "RSA private key in PEM form (PKCS#1 or PKCS#8) that signs worker tokens. Mandatory; `openssl genrsa 4096` makes one",
)
.sample(Sample::Set("File = \"/etc/roost/hatchery-key.pem\""));
pub(crate) const URL: Key = Key::text(
    "commonConfiguration.url",
    "http://localhost:8086",
    "URL of this hatchery, as CDS shows it",
)
.sample(Sample::Set("\"http://localhost:8086\""));

pub(crate) const HTTP_ADDR: Key = Key::text(
    "commonConfiguration.http.addr",
    "",
    "Address to listen on, without port. Empty: all of them",
);
pub(crate) const HTTP_PORT: Key =
    Key::integer("commonConfiguration.http.port", 8081, "Port to listen on")
        .sample(Sample::Set("8086"));
pub(crate) const HTTP_FORWARDED: Key = Key::text(
    "commonConfiguration.http.headerXForwardedFor",
    "X-Forwarded-For",
    "Header that names the client behind a proxy. Empty: the peer's address",
)
.json(Json::As("header_w_forwarded_for"));

pub(crate) const HTTP_LINK_REQUEST: Key = Key::text(
    "commonConfiguration.http.linkRequest",
    "",
    "Where a job is shown in CDS, for links on the page; {id}, {project} and {workflow} are replaced. Empty: no link",
)
.added();
pub(crate) const HTTP_LINK_VM: Key = Key::text(
    "commonConfiguration.http.linkVm",
    "",
    "Where a VM is shown in the vSphere client, for links on the page; {id} is its managed object id, {name} its name. Empty: no link",
)
.added();
pub(crate) const HTTP_LINK_DOCS: Key = Key::text(
    "commonConfiguration.http.linkDocs",
    "",
    "Where this documentation is, for links to runbooks and gates; {page} is replaced, such as by runbooks/vcenter-link-down.md. Empty: no link",
)
.added();

pub(crate) const HTTP_TOKEN: Key = Key::secret(
    "commonConfiguration.http.token",
    "Bearer token for the page and the API from other machines, and for every action. None: this machine may look, nobody may act",
)
.added();
pub(crate) const HTTP_CERT_FILE: Key = Key::text(
    "commonConfiguration.http.certFile",
    "",
    "PEM file with this server's certificate and those that lead to its authority. With it, HTTPS is spoken and plain HTTP is not",
)
.added();
pub(crate) const HTTP_KEY_FILE: Key = Key::text(
    "commonConfiguration.http.keyFile",
    "",
    "PEM file with the private key of that certificate",
)
.added();
pub(crate) const HTTP_CLIENT_CA_FILE: Key = Key::text(
    "commonConfiguration.http.clientCaFile",
    "",
    "PEM file with the authority of client certificates. Whoever shows one needs no token, and is known by its common name",
)
.added();

pub(crate) const API_URL: Key =
    Key::text("commonConfiguration.api.http.url", "http://localhost:8081", "URL of the CDS API")
        .sample(Sample::Set("\"http://localhost:8081\""));
pub(crate) const API_INSECURE: Key = Key::boolean(
    "commonConfiguration.api.http.insecure",
    false,
    "Accept any certificate of the CDS API",
);
pub(crate) const API_CA_FILE: Key = Key::text(
    "commonConfiguration.api.http.caFile",
    "",
    "PEM file with the authority that signed the CDS API's certificate",
)
.added();
pub(crate) const API_TOKEN: Key = Key::secret(
    "commonConfiguration.api.token",
    "Consumer token for V1 (pipelines). At least one of the two tokens is mandatory",
);
pub(crate) const API_TOKEN_V2: Key = Key::secret(
    "commonConfiguration.api.tokenV2",
    "Hatchery token for V2 (workflows as code). At least one of the two tokens is mandatory",
)
.sample(Sample::Set("File = \"/etc/roost/cds-token-v2\""));
pub(crate) const API_TIMEOUT: Key = Key::integer(
    "commonConfiguration.api.requestTimeout",
    10,
    "Seconds that a request to the CDS API may take. 0: 60",
);
pub(crate) const API_HEARTBEAT_FAILURES: Key = Key::integer(
    "commonConfiguration.api.maxHeartbeatFailures",
    10,
    "Heartbeats that may fail one after the other",
);

pub(crate) const CDN_URL: Key = Key::text(
    "commonConfiguration.cdn.url",
    "",
    "HTTP address of the CDN. Empty: the one that the CDS API gives",
);
pub(crate) const CDN_TCP_URL: Key = Key::text(
    "commonConfiguration.cdn.tcp.url",
    "",
    "TCP address of the CDN. Empty: the one that the CDS API gives",
);
pub(crate) const CDN_TCP_TLS: Key =
    Key::boolean("commonConfiguration.cdn.tcp.enableTLS", false, "Whether that address speaks TLS")
        .json(Json::As("enable_tls"));

pub(crate) const DISABLE_V2_POLLING: Key = Key::boolean(
    "commonConfiguration.provision.disableV2QueuePolling",
    false,
    "Do not look for V2 jobs, neither by websocket nor by polling",
)
.json(Json::Hidden);
pub(crate) const INJECT_ENV: Key = Key::texts(
    "commonConfiguration.provision.injectEnvVars",
    &[],
    "Variables `NAME=value` for the worker's configuration and environment",
)
.json(Json::Hidden);
pub(crate) const MAX_WORKER: Key = Key::integer(
    "commonConfiguration.provision.maxWorker",
    10,
    "Workers at the same time. 0: no limit other than resources",
)
.sample(Sample::Set("10"));
pub(crate) const MAX_PROVISIONING: Key = Key::integer(
    "commonConfiguration.provision.maxConcurrentProvisioning",
    10,
    "Workers starting at the same time. Below 1: 10. At most maxWorker, unless that is 0",
);
pub(crate) const MAX_REGISTERING: Key = Key::integer(
    "commonConfiguration.provision.maxConcurrentRegistering",
    2,
    "V1 models registering at the same time. 0: 2, -1: none. At most maxWorker, unless that is 0",
);
pub(crate) const REGISTER_FREQUENCY: Key = Key::integer(
    "commonConfiguration.provision.registerFrequency",
    60,
    "Seconds between two looks for V1 models to register. 0 or less: never",
);
pub(crate) const REGION: Key = Key::text(
    "commonConfiguration.provision.region",
    "",
    "Region of this hatchery. For V2 the CDS API decides",
);
pub(crate) const IGNORE_NO_REGION: Key = Key::boolean(
    "commonConfiguration.provision.ignoreJobWithNoRegion",
    false,
    "Leave V1 jobs without a region to others",
);
pub(crate) const WORKER_API_URL: Key = Key::text(
    "commonConfiguration.provision.workerApiHttp.url",
    "",
    "URL of the CDS API as workers see it. Empty: api.http.url",
);
pub(crate) const WORKER_API_INSECURE: Key = Key::boolean(
    "commonConfiguration.provision.workerApiHttp.insecure",
    false,
    "Workers accept any certificate of the CDS API",
);
pub(crate) const WORKER_CDN_URL: Key = Key::text(
    "commonConfiguration.provision.workerCdn.url",
    "",
    "HTTP address of the CDN as workers see it. Empty: as the hatchery",
);
pub(crate) const WORKER_CDN_TCP_URL: Key = Key::text(
    "commonConfiguration.provision.workerCdn.tcp.url",
    "",
    "TCP address of the CDN as workers see it. Empty: as the hatchery",
);
pub(crate) const WORKER_CDN_TCP_TLS: Key = Key::boolean(
    "commonConfiguration.provision.workerCdn.tcp.enableTLS",
    false,
    "Whether that address speaks TLS",
)
.json(Json::As("enable_tls"));
pub(crate) const WORKER_BASEDIR: Key = Key::text(
    "commonConfiguration.provision.workerBasedir",
    "",
    "Folder that workers work in. Empty: the worker's choice",
);
pub(crate) const WORKER_LOG_LEVEL: Key =
    Key::text("commonConfiguration.provision.workerLogsOptions.level", "", "Log level of workers");
pub(crate) const GRAYLOG_HOST: Key = Key::text(
    "commonConfiguration.provision.workerLogsOptions.graylog.host",
    "",
    "Graylog host that workers log to",
);
pub(crate) const GRAYLOG_PORT: Key =
    Key::integer("commonConfiguration.provision.workerLogsOptions.graylog.port", 0, "Its port");
pub(crate) const GRAYLOG_PROTOCOL: Key = Key::text(
    "commonConfiguration.provision.workerLogsOptions.graylog.protocol",
    "tcp",
    "`tcp` or `udp`",
);
pub(crate) const GRAYLOG_EXTRA_KEY: Key = Key::text(
    "commonConfiguration.provision.workerLogsOptions.graylog.extraKey",
    "",
    "Names of extra fields, separated by commas",
);
pub(crate) const GRAYLOG_EXTRA_VALUE: Key = Key::secret(
    "commonConfiguration.provision.workerLogsOptions.graylog.extraValue",
    "Their values, separated by commas; usually a token",
);
pub(crate) const SYSLOG_HOST: Key = Key::text(
    "commonConfiguration.provision.workerLogsOptions.syslog.host",
    "",
    "Syslog host that workers log to",
);
pub(crate) const SYSLOG_PORT: Key =
    Key::integer("commonConfiguration.provision.workerLogsOptions.syslog.port", 0, "Its port");
pub(crate) const SYSLOG_PROTOCOL: Key = Key::text(
    "commonConfiguration.provision.workerLogsOptions.syslog.protocol",
    "tcp",
    "`tcp` or `udp`",
);
pub(crate) const SYSLOG_EXTRA_TAG: Key = Key::text(
    "commonConfiguration.provision.workerLogsOptions.syslog.extraTag",
    "",
    "Tag of each line",
);
pub(crate) const MAX_ATTEMPTS: Key = Key::integer(
    "commonConfiguration.provision.maxAttemptsNumberBeforeFailure",
    5,
    "Attempts to start a worker for one job before the job fails (V1) or is left alone for an hour (V2). 0: 5, -1: no end",
);
pub(crate) const LOG_CRITICAL: Key = Key::integer(
    "commonConfiguration.logOptions.spawnOptions.thresholdCritical",
    480,
    "Seconds of a spawn; CDS reads it and never uses it",
)
.unused();
pub(crate) const LOG_WARNING: Key = Key::integer(
    "commonConfiguration.logOptions.spawnOptions.thresholdWarning",
    360,
    "Seconds of a spawn; CDS reads it and never uses it",
)
.unused();
