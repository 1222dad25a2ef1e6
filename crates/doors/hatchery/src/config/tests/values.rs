//! What the file says and what it means.

use std::time::Duration;

use roost_vim::TlsTrust;

use super::*;
use crate::door::{PENDING, REGISTERING, WORKERS};

#[test]
fn the_file_of_the_reference_is_read() {
    let text = format!(
        r#"
[hatchery.vsphere]
  user = "svc@vsphere.local"
  endpoint = "vcenter.example"
  password = "..."
  datacenterString = "dc1"
  [[hatchery.vsphere.networks]]
    iprange = "10.0.0.0/26"
    gateway = "10.0.0.62"
    subnetMask = "255.255.255.192"
  [[hatchery.vsphere.workerProvisioning]]
    modelVMWare = "debian12"
    number = 5
  [[hatchery.vsphere.models]]
    modelVMWare = "debian12"
    username = "cds"
    password = "..."
  [[hatchery.vsphere.flavors]]
    name = "small"
    cpus = 2
    memoryMB = 4096
  [hatchery.vsphere.commonConfiguration]
    name = "hv1"
    rsaPrivateKey = "{}"
    [hatchery.vsphere.commonConfiguration.api]
      token = "..."
      tokenV2 = "..."
      [hatchery.vsphere.commonConfiguration.api.http]
        url = "http://localhost:8081"
    [hatchery.vsphere.commonConfiguration.provision]
      maxWorker = 10
"#,
        KEY.replace('\n', "\\n")
    );
    let Loaded { config, warnings } = load(&text);
    assert_eq!(warnings, []);
    assert_eq!(config.identity.name, "hv1");
    assert!(config.api.tokens.v1.is_some() && config.api.tokens.v2.is_some());
    assert_eq!(config.addresses.total(), 61, "64 without network, broadcast and gateway");
    assert_eq!(config.flavors.get("SMALL").unwrap().memory_mb, Some(4096));
    let pool = &config.provisioning.pools[0];
    assert_eq!((pool.kind.to_string().as_str(), pool.number), ("debian12", 5));
    assert_eq!(config.guests.models[0].user.as_ref().unwrap().name, "cds");
}

#[test]
fn where_it_listens_can_be_known_without_its_secrets() {
    let text = "[hatchery.vsphere]\npasswordFile = '/root/only'\nunknown = 1\n[hatchery.vsphere.commonConfiguration.HTTP]\naddr = '10.0.0.7'\nport = 8086";
    let listen = Listen::load(text, &Pretend::default()).unwrap();
    assert_eq!((listen.address.as_deref(), listen.port), (Some("10.0.0.7"), 8086));
    let variable = "CDS_HATCHERY_VSPHERE_COMMONCONFIGURATION_HTTP_PORT";
    let listen = Listen::load(text, &Pretend::default().variable(variable, "9000")).unwrap();
    assert_eq!(listen.port, 9000);
    assert!(Listen::load("[log]", &Pretend::default()).is_err());
    assert!(Listen::load(&text.replace("8086", "-1"), &Pretend::default()).is_err());
}

#[test]
fn what_is_left_out_has_the_documented_default() {
    let config = config("", "");
    assert_eq!(config.identity.os_arch, ["linux/amd64"]);
    assert_eq!(config.identity.url, "http://localhost:8086");
    assert_eq!(
        config.listen,
        Listen {
            address: None,
            port: 8081,
            forwarded_header: Some("X-Forwarded-For".into()),
            tls: None,
            links: PageLinks::default(),
        }
    );
    assert_eq!(config.api.url, "http://localhost:8081");
    assert_eq!(config.api.request_timeout, Duration::from_secs(10));
    assert_eq!(config.api.max_heartbeat_failures, 10);
    assert_eq!(
        config.counts,
        Counts {
            max_workers: Some(10),
            max_provisioning: 10,
            max_registering: Some(2),
            register_interval: Some(Duration::from_mins(1)),
            max_attempts: Some(5),
        }
    );
    assert_eq!(
        config.lifetimes,
        Lifetimes {
            worker: Duration::from_hours(2),
            registration: Duration::from_mins(10),
            finished_grace: Duration::from_mins(3),
            cleanup_interval: Duration::from_mins(2),
            deletions_at_once: 16,
        }
    );
    assert_eq!(
        config.provisioning,
        Provisioning {
            interval: Duration::from_mins(2),
            pool_size: 1,
            only_provisioned: false,
            pools: vec![],
        }
    );
    assert_eq!(config.vcenter.trust, TlsTrust::System);
    assert_eq!(config.vcenter.place.card, CardType::E1000);
    assert_eq!(config.limits, ResourceLimits::default());
    assert!(config.flavors.is_empty() && config.addresses.is_dhcp());
    assert!(config.poll_v2 && config.models_v1);
    assert_eq!(config.workers.api_url, "http://localhost:8081");
    assert_eq!(config.workers.graylog.protocol, "tcp");
    assert_eq!(config.log, LogSettings::default());
}

#[test]
fn zero_and_minus_one_mean_what_the_reference_says() {
    let provision = |line: &str| {
        config("", &format!("[hatchery.vsphere.commonConfiguration.provision]\n{line}")).counts
    };
    assert_eq!(provision("maxWorker = 0").max_workers, None, "unlimited");
    assert_eq!(provision("maxConcurrentProvisioning = 0").max_provisioning, 10);
    assert_eq!(provision("maxConcurrentProvisioning = -3").max_provisioning, 10);
    assert_eq!(provision("maxConcurrentRegistering = 0").max_registering, Some(2));
    assert_eq!(provision("maxConcurrentRegistering = -1").max_registering, None);
    assert_eq!(provision("registerFrequency = 0").register_interval, None);
    assert_eq!(provision("maxAttemptsNumberBeforeFailure = 0").max_attempts, Some(5));
    assert_eq!(provision("maxAttemptsNumberBeforeFailure = -1").max_attempts, None);
    let lives = |line: &str| config(line, "").lifetimes;
    assert_eq!(lives("workerTTL = 0").worker, Duration::from_hours(2));
    assert_eq!(lives("workerRegistrationTTL = 0").registration, Duration::from_mins(10));
    assert_eq!(lives("finishedWorkerGracePeriod = 0").finished_grace, Duration::from_mins(3));
    assert_eq!(lives("killAwolServersInterval = 0").cleanup_interval, Duration::from_mins(2));
    assert_eq!(lives("killAwolServersInterval = 30").cleanup_interval, Duration::from_secs(30));
    let made = |line: &str| config(line, "").provisioning;
    assert_eq!(made("workerProvisioningPoolSize = 0").pool_size, 1, "D43");
    assert_eq!(made("workerProvisioningInterval = 0").interval, Duration::from_mins(2));
    assert_eq!(config("", "requestTimeout = 0").api.request_timeout, Duration::from_mins(1));
}

#[test]
fn d1_flavors_are_a_list_or_a_table_by_name() {
    let list = config(
        r#"
defaultFlavor = "MEDIUM"
[[hatchery.vsphere.flavors]]
name = "small"
cpus = 2
memoryMB = 4096
[[hatchery.vsphere.flavors]]
name = "medium"
cpus = 4
memoryMB = 8192
diskSizeGB = 60
"#,
        "",
    );
    let map = config(
        r#"
defaultFlavor = "MEDIUM"
[hatchery.vsphere.flavors.small]
cpus = 2
memoryMB = 4096
[hatchery.vsphere.flavors.medium]
cpus = 4
memoryMB = 8192
diskSizeGB = 60
"#,
        "",
    );
    assert_eq!(list.flavors, map.flavors);
    assert_eq!(list.flavors.get("medium").unwrap().disk_gb, Some(60));
    assert_eq!(list.public_config()["flavors"], map.public_config()["flavors"]);
}

#[test]
fn d15_memory_has_64_bits() {
    let config = config("maxMemoryMB = 9000000000\nmaxCpus = 64", "");
    assert_eq!(config.limits.max_memory_mb, Some(9_000_000_000));
    assert_eq!(config.limits.max_cpus, Some(64));
}

#[test]
fn names_match_in_any_case() {
    let text = file(
        "WORKERTTL = 5\nmaxcpus = 3",
        "[Hatchery.vSphere.COMMONconfiguration.Provision]\nMAXWORKER = 20",
    );
    // Two spellings of one table are two tables in TOML.
    let text = text.replace(
        "[Hatchery.vSphere.COMMONconfiguration.Provision]",
        "[hatchery.vsphere.commonConfiguration.Provision]",
    );
    let Loaded { config, warnings } = load(&text.replace("user =", "USER ="));
    assert_eq!(warnings, []);
    assert_eq!(config.lifetimes.worker, Duration::from_mins(5));
    assert_eq!((config.limits.max_cpus, config.counts.max_workers), (Some(3), Some(20)));
    assert_eq!(config.vcenter.user, "svc@vsphere.local");
}

#[test]
fn variables_override_the_file() {
    let surroundings = Pretend::default()
        .variable("CDS_HATCHERY_VSPHERE_USER", "other@vsphere.local")
        .variable("CDS_HATCHERY_VSPHERE_ENDPOINT", "")
        .variable("CDS_HATCHERY_VSPHERE_PASSWORD", "hunter2-other")
        .variable("CDS_HATCHERY_VSPHERE_COMMONCONFIGURATION_PROVISION_MAXWORKER", "0")
        .variable("CDS_HATCHERY_VSPHERE_COMMONCONFIGURATION_OSARCH", "linux/amd64, linux/arm64")
        .variable("CDS_HATCHERY_VSPHERE_COMMONCONFIGURATION_API_HTTP_INSECURE", "true")
        .variable("CDS_LOG_LEVEL", "debug");
    let text = file("", "").replace("password =", "passwordFile =");
    let config = Config::load(&text, &surroundings).unwrap().config;
    assert_eq!(config.vcenter.user, "other@vsphere.local");
    assert_eq!(config.vcenter.endpoint, "vcenter.example", "an empty variable counts as not set");
    assert_eq!(config.vcenter.password, SecretSource::Given("hunter2-other".into()));
    assert_eq!(config.counts.max_workers, None);
    assert_eq!(config.identity.os_arch, ["linux/amd64", "linux/arm64"]);
    assert!(config.api.insecure && config.workers.api_insecure);
    assert_eq!(config.log.level, Some(LogLevel::Debug));
}

#[test]
fn numbers_may_be_written_as_text_and_the_other_way_round() {
    let config = config("workerTTL = \"7\"\nonlyProvisioned = 0\ndatastoreString = 12", "");
    assert_eq!(config.lifetimes.worker, Duration::from_mins(7));
    assert!(!config.provisioning.only_provisioned);
    assert_eq!(config.vcenter.place.datastore.as_deref(), Some("12"));
}

#[test]
fn spares_are_for_a_template_a_v1_model_or_both_and_may_have_a_flavor() {
    let config = config(
        r#"
[hatchery.vsphere.flavors.Large]
cpus = 8
[[hatchery.vsphere.workerProvisioning]]
modelPath = "team/build"
modelVMWare = "debian12"
number = 2
[[hatchery.vsphere.workerProvisioning]]
modelVMWare = "debian12"
number = 1
flavor = "LARGE"
"#,
        "",
    );
    let pools: Vec<_> =
        config.provisioning.pools.iter().map(|pool| (pool.kind.to_string(), pool.number)).collect();
    let wanted = [("team/build", 2), ("debian12", 2), ("debian12 (large)", 1)];
    assert_eq!(pools, wanted.map(|(kind, number)| (kind.to_owned(), number)));
}

#[test]
fn workers_are_told_their_own_addresses_if_there_are_any() {
    let config = config(
        "",
        r#"
[hatchery.vsphere.commonConfiguration.api.http]
url = "https://api.inside/"
[hatchery.vsphere.commonConfiguration.provision]
injectEnvVars = ["A=b=c", " NAME = value "]
[hatchery.vsphere.commonConfiguration.provision.workerApiHttp]
url = "https://api.outside"
insecure = true
"#,
    );
    assert_eq!(config.api.url, "https://api.inside");
    assert_eq!(
        (config.workers.api_url.as_str(), config.workers.api_insecure),
        ("https://api.outside", true)
    );
    let names: Vec<_> = config
        .workers
        .environment
        .iter()
        .map(|(name, value)| (name.as_str(), value.expose()))
        .collect();
    assert_eq!(names, [("A", "b=c"), ("NAME", " value")]);
}

#[test]
fn d24_networks_replace_the_lone_range_and_dns_serves_both() {
    let legacy =
        config("iprange = \"10.0.0.0/30\"\ngateway = \"10.0.0.1\"\ndns = \"10.9.9.9\"", "");
    let addresses: Vec<_> = legacy.addresses.iter().collect();
    assert_eq!(addresses, [std::net::Ipv4Addr::new(10, 0, 0, 2)]);
    let network = legacy.addresses.network_of(addresses[0]).unwrap();
    assert_eq!(network.subnet_mask.to_string(), "255.255.255.0");
    assert_eq!(network.dns.unwrap().to_string(), "10.9.9.9");
    let no_gateway = config("iprange = \"10.0.0.0/29\"", "");
    assert_eq!(no_gateway.addresses.total(), 6, "D25: the gateway is optional here");
}

#[test]
fn the_log_section_of_the_file_is_read() {
    let config = config("", "[log]\nlevel = \"notice\"\nformat = \"json\"");
    let wanted = LogSettings { level: Some(LogLevel::Info), format: Some(LogFormat::Json) };
    assert_eq!(config.log, wanted);
}

#[test]
fn the_ledger_gets_every_limit() {
    let text = "
maxCpus = 64
countSmallerFlavorToKeep = 2
mhzPerCpu = 2000
[hatchery.vsphere.flavors]
small = { cpus = 2, memoryMB = 4096 }
large = { cpus = 8, memoryMB = 16384 }
";
    let provision = "[hatchery.vsphere.commonConfiguration.provision]\nmaxWorker = 0\nmaxConcurrentRegistering = -1";
    assert_eq!(
        config(text, provision).ledger_limits(),
        Limits {
            quotas: vec![
                (WORKERS, Limit::Unlimited),
                (PENDING, Limit::At(10)),
                (REGISTERING, Limit::At(0)),
            ],
            cpus: Limit::At(64),
            memory_mb: Limit::Unlimited,
            reserve: Some(Reserve { count: 2, cpus: 2, memory_mb: 4096 }),
            mhz_per_cpu: Some(2000),
        }
    );
    assert_eq!(config("", "").ledger_limits().reserve, None);
}

#[test]
fn the_fleet_s_rules_are_what_the_file_says_and_else_the_usual_ones() {
    use roost_fleet::{Basis, FleetRules, PhaseDeadlines, Share};
    assert_eq!(config("", "").fleet, FleetRules::default());
    let zeros = "[hatchery.vsphere.fleet]\nmarkedPerMinute = 0\nfinishedPerMinute = 0\nexpiredPercent = 0\nviewSeconds = 0\njournalDecisions = 0\naddressRestSeconds = 0\n";
    assert_eq!(config("", zeros).fleet, FleetRules::default());
    let set = "[hatchery.vsphere.fleet]
markedPerMinute = 7
finishedPerMinute = 8
expiredPerMinute = 9
expiredPercent = 10
expiredGraceSeconds = 11
absentPerMinute = 12
absentPercent = 13
absentGraceSeconds = 14
viewSeconds = 15
journalDecisions = 16
journalSubjects = 17
promiseSeconds = 18
addressRestSeconds = 19
[[hatchery.vsphere.fleet.phases]]
name = \"cloning\"
seconds = 20
";
    let FleetRules { guard, journal, deadlines, ledger } = config("", set).fleet;
    let budgets = Basis::INFERRED.map(|basis| guard.of(basis).per_minute);
    assert_eq!(budgets, [Some(7), Some(8), Some(9), Some(12)]);
    let graces = [guard.expired.grace, guard.absent.grace, guard.max_age];
    assert_eq!(graces.map(|grace| grace.as_secs()), [11, 14, 15]);
    let share = |percent, at_least| Some(Share { percent, at_least });
    assert_eq!([guard.expired.share, guard.absent.share], [share(10, 5), share(13, 3)]);
    assert_eq!((journal.decisions, journal.subjects), (16, 17));
    assert_eq!((ledger.safety.as_secs(), ledger.quarantine.as_secs()), (18, 19));
    let usual = PhaseDeadlines::default();
    assert_eq!(deadlines.of(roost_fleet::Phase::CLONING).as_secs(), 20);
    let booting = roost_fleet::Phase::BOOTING;
    assert_eq!(deadlines.of(booting), usual.of(booting), "what is not named stays");
}
