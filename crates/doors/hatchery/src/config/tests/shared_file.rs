//! An operator's own file as it is: every key of CDS's two versions, among the sections of the other services that share the file.

use super::*;

/// What `cds-engine config new` writes for other services, shortened, with values of all kinds.
const OTHERS: &str = r#"
[log]
level = "warning"
format = "json"
textFields = "type,service"
skipTextFields = ""
[log.graylog]
host = "graylog.example"
port = 12202
protocol = "tcp"
extraKey = "X-OVH-TOKEN"
extraValue = "hunter2-log"
[telemetry]
tracingEnabled = false
[telemetry.exporters.jaeger]
serviceName = "cds"
collectorEndpoint = "http://jaeger:14268"
samplingProbability = 1
[telemetry.exporters.prometheus]
ReporteringPeriod = 10
[api]
maxHeartbeatFailures = 10
[api.url]
api = "http://localhost:8081"
ui = "http://localhost:8080"
[api.auth]
allowedOrganizations = ["default"]
rsaPrivateKey = ""
[[api.auth.rsaPrivateKeys]]
timestamp = 1700000000
key = "hunter2-api"
[api.database]
host = "localhost"
signatureRollingKeys = [{ timestamp = 1, key = "hunter2-db" }]
[cdn.storageUnits.buffers.local-buffer]
bufferType = "file"
[cdn.storageUnits.buffers.local-buffer.local]
path = "/var/cds"
[hooks]
retryError = 3
[vcs]
[ui]
enableServiceProxy = false
[repositories]
basedir = "/var/cds"
[elasticsearch]
name = "es"
[hatchery.local]
basedir = "/var/cds"
[hatchery.swarm.commonConfiguration.provision]
maxWorker = "many"
[hatchery.kubernetes]
namespace = "cds"
"#;

/// Every key of reference 1.9 and 1.10.
fn everything() -> String {
    let key = KEY.replace('\n', "\\n");
    format!(
        r#"
[hatchery.vsphere]
user = "svc@vsphere.local"
endpoint = "vcenter.example"
password = "hunter2"
datacenterString = "dc1"
datastoreString = "ds1"
networkString = "VM Network"
cardName = "vmxnet3"
iprange = "10.0.1.0/28,10.0.1.32/28"
gateway = "10.0.1.1"
dns = "10.0.0.53"
subnetMask = "255.255.255.0"
workerTTL = 180
workerRegistrationTTL = 15
workerProvisioningInterval = 60
workerProvisioningPoolSize = 3
killAwolServersInterval = 90
finishedWorkerGracePeriod = 240
maxCpus = 64
maxMemoryMB = 131072
defaultFlavor = "Small"
countSmallerFlavorToKeep = 2
[[hatchery.vsphere.workerProvisioning]]
modelPath = "shared.infra/classic"
modelVMWare = "debian12"
number = 2
[[hatchery.vsphere.guestCredentials]]
modelPath = "shared.infra/classic"
modelVMWare = "debian11"
username = "cds"
password = "hunter2"
[[hatchery.vsphere.models]]
modelVMWare = "debian12"
username = "cds"
password = "hunter2"
preStartScript = "resize2fs /dev/sda1"
[[hatchery.vsphere.defaultWorkerModelsV2]]
workerModelV2 = "PROJ/github/org/repo/debian12"
binaries = ["git", "make"]
[[hatchery.vsphere.flavors]]
name = "small"
cpus = 2
memoryMB = 4096
diskSizeGB = 40
[hatchery.vsphere.commonConfiguration]
name = "hv1"
osArch = ["linux/amd64", "linux/arm64"]
rsaPrivateKey = "{key}"
url = "http://hv1:8086"
[hatchery.vsphere.commonConfiguration.http]
addr = "0.0.0.0"
port = 8086
headerXForwardedFor = "X-Forwarded-For"
[hatchery.vsphere.commonConfiguration.api]
token = "hunter2"
tokenV2 = "hunter2"
requestTimeout = 20
maxHeartbeatFailures = 7
[hatchery.vsphere.commonConfiguration.api.http]
url = "http://localhost:8081"
insecure = false
[hatchery.vsphere.commonConfiguration.cdn]
url = "http://cdn:8089"
[hatchery.vsphere.commonConfiguration.cdn.tcp]
url = "cdn:8090"
enableTLS = true
[hatchery.vsphere.commonConfiguration.provision]
disableV2QueuePolling = false
injectEnvVars = ["PROXY=http://p"]
maxWorker = 0
maxConcurrentProvisioning = 12
maxConcurrentRegistering = 3
registerFrequency = 30
region = "eu"
ignoreJobWithNoRegion = true
workerBasedir = "/var/cds"
maxAttemptsNumberBeforeFailure = -1
[hatchery.vsphere.commonConfiguration.provision.workerApiHttp]
url = "http://api.outside"
insecure = true
[hatchery.vsphere.commonConfiguration.provision.workerCdn]
url = "http://cdn.outside"
[hatchery.vsphere.commonConfiguration.provision.workerCdn.tcp]
url = "cdn.outside:8090"
enableTLS = true
[hatchery.vsphere.commonConfiguration.provision.workerLogsOptions]
level = "debug"
[hatchery.vsphere.commonConfiguration.provision.workerLogsOptions.graylog]
host = "g"
port = 1
protocol = "tls"
extraKey = "k"
extraValue = "hunter2"
[hatchery.vsphere.commonConfiguration.provision.workerLogsOptions.syslog]
host = "s"
port = 2
protocol = "udp"
extraTag = "t"
[hatchery.vsphere.commonConfiguration.logOptions.spawnOptions]
thresholdCritical = 480
thresholdWarning = 360
"#
    )
}

#[test]
fn a_file_of_all_services_with_every_key_loads_without_a_word() {
    let Loaded { config, warnings } = load(&format!("{OTHERS}{}", everything()));
    assert_eq!(warnings, []);
    assert_eq!(config.counts.max_workers, None);
    assert_eq!((config.addresses.total(), config.flavors.iter().count()), (27, 1));
    assert_eq!(config.region.name.as_deref(), Some("eu"));
    assert_eq!(config.provisioning.pools.len(), 2);
    assert_eq!(config.listen.port, 8086);
}

/// As `cds-engine config new` leaves it: what is not used is there and empty.
#[test]
fn a_generated_file_with_empty_values_loads_without_a_word() {
    let empty = r#"
datastoreString = ""
networkString = ""
cardName = "e1000"
iprange = ""
gateway = ""
dns = ""
subnetMask = "255.255.255.0"
workerTTL = 120
workerRegistrationTTL = 10
workerProvisioningInterval = 0
workerProvisioningPoolSize = 0
workerProvisioning = []
guestCredentials = []
networks = []
models = []
flavors = []
defaultFlavor = ""
"#;
    let provision =
        "token = \"\"\n[hatchery.vsphere.commonConfiguration.provision]\nregion = \"\"\n";
    let Loaded { config, warnings } = load(&format!("{}{OTHERS}", file(empty, provision)));
    assert_eq!(warnings, []);
    assert!(config.addresses.is_dhcp() && config.flavors.is_empty());
    assert_eq!(config.region.name, None);
}
