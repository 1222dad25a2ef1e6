//! `[hatchery.vsphere]` itself and its lists.

use roost_settings::{Json, Key, Sample, Shape};

pub(crate) const USER: Key = Key::text("user", "", "vSphere user. Mandatory")
    .sample(Sample::Set("\"svc-roost@vsphere.local\""));
pub(crate) const ENDPOINT: Key =
    Key::text("endpoint", "", "Host of the vCenter, with port if it is not 443. Mandatory")
        .sample(Sample::Set("\"vcenter.example.org\""));
pub(crate) const PASSWORD: Key = Key::secret("password", "vSphere password. Mandatory")
    .sample(Sample::Set("File = \"/etc/roost/vcenter-password\""));
pub(crate) const CA_FILE: Key =
    Key::text("caFile", "", "PEM file with the authority that signed the vCenter's certificate")
        .added()
        .sample(Sample::Shown("\"/etc/roost/vcenter-ca.pem\""));
pub(crate) const THUMBPRINT: Key = Key::text(
    "thumbprint",
    "",
    "SHA-256 of the vCenter's certificate, in hexadecimal, instead of an authority",
)
.added();
pub(crate) const INSECURE: Key =
    Key::boolean("insecure", false, "Accept any certificate of the vCenter").added();
pub(crate) const DATACENTER: Key =
    Key::text("datacenterString", "", "Datacenter to work in. Mandatory")
        .sample(Sample::Set("\"dc1\""));
pub(crate) const DATASTORE: Key = Key::text(
    "datastoreString",
    "",
    "Datastore for VMs. Empty: the only one that the datacenter has",
);
pub(crate) const NETWORK: Key =
    Key::text("networkString", "", "Network for VMs. Empty: the only one that the datacenter has");
pub(crate) const FOLDER: Key =
    Key::text("folderString", "", "VM folder for VMs. Empty: the datacenter's own").added();
pub(crate) const RESOURCE_POOL: Key = Key::text(
    "resourcePoolString",
    "",
    "Resource pool for VMs. Empty: the only one that the datacenter has",
)
.added();
pub(crate) const CARD_NAME: Key = Key::text(
    "cardName",
    "e1000",
    "Checked and without effect, as in CDS: a clone has the template's type of network card. One of e1000, e1000e, vmxnet, vmxnet2, vmxnet3, pcnet32 and sriov",
);
pub(crate) const IPRANGE: Key = Key::text(
    "iprange",
    "",
    "Addresses for VMs, as CIDRs separated by commas. Empty, and no networks: DHCP. Better: networks",
)
.json(Json::UnlessEmpty)
.deprecated()
.sample(Sample::Absent);
pub(crate) const GATEWAY: Key = Key::text("gateway", "", "Gateway of those addresses")
    .json(Json::UnlessEmpty)
    .deprecated()
    .sample(Sample::Absent);
pub(crate) const DNS: Key = Key::text("dns", "", "Name server that VMs with a fixed address use")
    .json(Json::UnlessEmpty)
    .sample(Sample::Shown("\"10.0.0.53\""));
pub(crate) const SUBNET_MASK: Key =
    Key::text("subnetMask", "255.255.255.0", "Subnet mask of the addresses in iprange")
        .deprecated()
        .sample(Sample::Absent);
pub(crate) const WORKER_TTL: Key = Key::integer(
    "workerTTL",
    120,
    "Minutes that a worker may live; then its VM is deleted. 0: 120",
);
pub(crate) const WORKER_REGISTRATION_TTL: Key = Key::integer(
    "workerRegistrationTTL",
    10,
    "Minutes that a worker may take to register; then its VM is deleted. 0: 10",
);
pub(crate) const KILL_AWOL_INTERVAL: Key = Key::integer(
    "killAwolServersInterval",
    120,
    "Seconds between two clean-ups of finished, lost and disabled workers. 0: 120",
);
pub(crate) const FINISHED_GRACE: Key = Key::integer(
    "finishedWorkerGracePeriod",
    180,
    "Seconds before a powered-off worker that CDS does not know is deleted. 0: 180",
);
pub(crate) const DELETIONS_AT_ONCE: Key = Key::integer(
    "maxConcurrentDeletions",
    16,
    "VMs being deleted at the same time. Workers that have finished are paced by this alone. 0: 16",
)
.added();
pub(crate) const PROVISIONING_INTERVAL: Key = Key::integer(
    "workerProvisioningInterval",
    120,
    "Seconds between two looks at the spares; a claim looks at once. 0: 120",
);
pub(crate) const PROVISIONING_POOL_SIZE: Key =
    Key::integer("workerProvisioningPoolSize", 1, "Spares being made at the same time. 0: 1");
pub(crate) const ONLY_PROVISIONED: Key = Key::boolean(
    "onlyProvisioned",
    false,
    "Start workers from spares only and never from a fresh clone, as CDS does from 0.57",
)
.added();
pub(crate) const DISABLE_MODEL_V1: Key = Key::boolean(
    "disableWorkerModelV1",
    false,
    "Neither register nor use V1 worker models, as CDS does from 0.57",
)
.added();
pub(crate) const MAX_CPUS: Key = Key::integer(
    "maxCpus",
    0,
    "vCPUs of all powered-on VMs of this hatchery. 0: no limit beside the resource pool's",
);
pub(crate) const MAX_MEMORY_MB: Key = Key::integer(
    "maxMemoryMB",
    0,
    "MB of memory of all powered-on VMs of this hatchery. 0: no limit beside the resource pool's",
);
pub(crate) const MHZ_PER_CPU: Key = Key::integer(
    "mhzPerCpu",
    0,
    "MHz of the resource pool that a vCPU must still find there. 0: some CPU must be left, how much does not matter",
)
.added();
pub(crate) const DEFAULT_FLAVOR: Key = Key::text(
    "defaultFlavor",
    "",
    "Flavor when neither job nor model names one. Empty: the template's size",
)
.json(Json::UnlessEmpty)
.sample(Sample::Set("\"small\""));
pub(crate) const KEEP_SMALLER: Key = Key::integer(
    "countSmallerFlavorToKeep",
    0,
    "Workers of the smallest flavor that must still fit after a larger one. Needs maxCpus or maxMemoryMB",
);

pub(crate) const FLAVORS: Key = Key::tables(
    "flavors",
    Shape::NamedTables,
    "Sizes that jobs can ask for. Also written as tables by name: `[hatchery.vsphere.flavors.small]`",
)
.json(Json::UnlessEmpty);
pub(crate) const FLAVOR_NAME: Key =
    Key::text("flavors[].name", "", "Name; upper and lower case are the same")
        .sample(Sample::Set("\"small\""));
pub(crate) const FLAVOR_CPUS: Key =
    Key::integer("flavors[].cpus", 0, "vCPUs. 0: the template's").sample(Sample::Set("2"));
pub(crate) const FLAVOR_MEMORY_MB: Key =
    Key::integer("flavors[].memoryMB", 0, "MB of memory, a multiple of 4. 0: the template's")
        .sample(Sample::Set("4096"));
pub(crate) const FLAVOR_DISK_GB: Key = Key::integer(
    "flavors[].diskSizeGB",
    0,
    "GB of the first disk, which only grows. 0: the template's. preStartScript may grow the file system",
)
.json(Json::UnlessEmpty);

pub(crate) const NETWORKS: Key = Key::tables(
    "networks",
    Shape::Tables,
    "Addresses for VMs, first network first. None, and no iprange: DHCP",
)
.json(Json::UnlessEmpty);
pub(crate) const NETWORK_IPRANGE: Key =
    Key::text("networks[].iprange", "", "CIDRs, separated by commas. Mandatory")
        .sample(Sample::Shown("\"10.0.0.0/26\""));
pub(crate) const NETWORK_GATEWAY: Key =
    Key::text("networks[].gateway", "", "Their gateway. Mandatory")
        .sample(Sample::Shown("\"10.0.0.62\""));
pub(crate) const NETWORK_MASK: Key =
    Key::text("networks[].subnetMask", "", "Their subnet mask. Mandatory")
        .sample(Sample::Shown("\"255.255.255.192\""));

pub(crate) const MODELS: Key =
    Key::tables("models", Shape::Tables, "What each template needs").json(Json::UnlessEmpty);
pub(crate) const MODEL_VMWARE: Key =
    Key::text("models[].modelVMWare", "", "Name of the template. Mandatory")
        .sample(Sample::Set("\"debian12\""));
pub(crate) const MODEL_USERNAME: Key =
    Key::text("models[].username", "", "User in the guest that starts the worker")
        .json(Json::Hidden)
        .sample(Sample::Set("\"cds\""));
pub(crate) const MODEL_PASSWORD: Key = Key::secret("models[].password", "That user's password")
    .sample(Sample::Set("File = \"/etc/roost/guest-password\""));
pub(crate) const MODEL_PRE_START: Key = Key::text(
    "models[].preStartScript",
    "",
    "Shell script that runs in the guest, to its end and with exit code 0, before the worker starts",
)
// It may hold a password, and many lines.
.json(Json::Hidden);

pub(crate) const PROVISIONING: Key =
    Key::tables("workerProvisioning", Shape::Tables, "Spares to keep: VMs made ahead of their job");
pub(crate) const PROVISIONING_PATH: Key = Key::text(
    "workerProvisioning[].modelPath",
    "",
    "V1 worker model, `group/name`. This or modelVMWare",
)
.sample(Sample::Absent);
pub(crate) const PROVISIONING_VMWARE: Key = Key::text(
    "workerProvisioning[].modelVMWare",
    "",
    "Name of the template, for V2. This or modelPath",
)
.sample(Sample::Set("\"debian12\""));
pub(crate) const PROVISIONING_NUMBER: Key =
    Key::integer("workerProvisioning[].number", 0, "How many").sample(Sample::Set("2"));
pub(crate) const PROVISIONING_FLAVOR: Key = Key::text(
    "workerProvisioning[].flavor",
    "",
    "Flavor that they are made with and kept for. Empty: the template's size, for any flavor",
)
.added();

pub(crate) const CREDENTIALS: Key = Key::tables(
    "guestCredentials",
    Shape::Tables,
    "Users in guests, for templates that are not in models",
)
.json(Json::Hidden)
.deprecated()
.sample(Sample::Absent);
pub(crate) const CREDENTIAL_PATH: Key =
    Key::text("guestCredentials[].modelPath", "", "V1 worker model, `group/name`")
        .json(Json::Hidden)
        .sample(Sample::Absent);
pub(crate) const CREDENTIAL_VMWARE: Key =
    Key::text("guestCredentials[].modelVMWare", "", "Name of the template")
        .json(Json::Hidden)
        .sample(Sample::Absent);
pub(crate) const CREDENTIAL_USERNAME: Key =
    Key::text("guestCredentials[].username", "", "User in the guest that starts the worker")
        .json(Json::Hidden)
        .sample(Sample::Absent);
pub(crate) const CREDENTIAL_PASSWORD: Key =
    Key::secret("guestCredentials[].password", "That user's password").sample(Sample::Absent);

pub(crate) const DEFAULT_MODELS: Key = Key::tables(
    "defaultWorkerModelsV2",
    Shape::Tables,
    "V2 worker models for V1 jobs that name no model",
)
.json(Json::Hidden);
pub(crate) const DEFAULT_MODEL: Key = Key::text(
    "defaultWorkerModelsV2[].workerModelV2",
    "",
    "`PROJECT/vcs/owner/repository/model`, with `@branch` if it is not master. Mandatory",
)
.json(Json::Hidden)
.sample(Sample::Shown("\"PROJ/github/org/repo/debian12@main\""));
pub(crate) const DEFAULT_MODEL_BINARIES: Key = Key::texts(
    "defaultWorkerModelsV2[].binaries",
    &[],
    "Taken for jobs that require at least one of these; the first entry for jobs that require none",
)
.json(Json::Hidden)
.sample(Sample::Shown("[\"git\", \"make\"]"));
