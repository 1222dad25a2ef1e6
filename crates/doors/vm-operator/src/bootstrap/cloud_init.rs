//! cloud-init by `guestinfo`: metadata and userdata as YAML, packed into extraConfig.

use std::fmt;

use roost_vim::wire::types::{
    CustomizationGlobalIPSettings, CustomizationIdentitySettings, CustomizationSpec,
};
use serde_json::{Map, Value, json};

use super::customize::Customize;
use super::network::{GuestCard, GuestNetwork};
use super::payload::{decode, encode};
use super::yaml::to_yaml;
use super::{BootstrapError, Secrets, secret_bytes, secret_text};
use crate::api::VirtualMachine;
use crate::api::names::{annotation, extra_config};
use crate::api::vm::{CloudConfig, CloudInit, SecretKey};

/// How a default gateway is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum GatewayForm {
    /// `routes`, which current netplan wants.
    #[default]
    Routes,
    /// `gateway4` and `gateway6`, which old guests want and current ones warn about.
    Legacy,
}

/// The header that makes a text cloud-config with templates.
const HEADER: &str = "## template: jinja\n#cloud-config\n";
/// The keys of a Secret in which raw cloud-config is looked for behind the named one.
const RAW_KEYS: [&str; 2] = ["user-data", "value"];
/// A key of the raw Secret whose keys are added to the guest's.
const SSH_KEYS: &str = "ssh-public-keys";

fn cloud_init(vm: &VirtualMachine) -> CloudInit {
    vm.spec.bootstrap.as_ref().and_then(|of| of.cloud_init.clone()).unwrap_or_default()
}

/// The metadata: who the guest is, and its network.
pub fn metadata(
    vm: &VirtualMachine,
    network: &GuestNetwork,
    secrets: &dyn Secrets,
    gateways: GatewayForm,
) -> String {
    let config = cloud_init(vm);
    let mut fields = Map::new();
    fields.insert("instance-id".to_owned(), instance_id(vm, &config).into());
    fields.insert("local-hostname".to_owned(), network.fqdn().into());
    fields.insert("hostname".to_owned(), network.fqdn().into());
    let keys = public_keys(&config, secrets);
    if !keys.is_empty() {
        fields.insert("public-keys".to_owned(), keys.into());
    }
    if config.wait_on_network4.is_some() || config.wait_on_network6.is_some() {
        let waits = json!({
            "ipv4": config.wait_on_network4.unwrap_or(false),
            "ipv6": config.wait_on_network6.unwrap_or(false),
        });
        fields.insert("wait-on-network".to_owned(), waits);
    }
    fields.insert("network".to_owned(), netplan(&config, network, gateways));
    to_yaml(&fields.into())
}

fn instance_id(vm: &VirtualMachine, config: &CloudInit) -> String {
    let given = vm.metadata.annotations.as_ref();
    let given = given.and_then(|all| all.get(annotation::CLOUD_INIT_INSTANCE_ID));
    let own = Some(&config.instance_id).filter(|id| !id.is_empty());
    given
        .filter(|id| !id.is_empty())
        .or(own)
        .cloned()
        .or_else(|| vm.metadata.uid.clone())
        .unwrap_or_default()
}

fn public_keys(config: &CloudInit, secrets: &dyn Secrets) -> String {
    let mut keys = config.ssh_authorized_keys.clone();
    if let Some(raw) = &config.raw_cloud_config {
        let wanted = SecretKey { name: raw.name.clone(), key: SSH_KEYS.to_owned() };
        keys.extend(secret_text(secrets, &wanted, &[]).ok());
    }
    keys.join("\n")
}

fn netplan(config: &CloudInit, network: &GuestNetwork, gateways: GatewayForm) -> Value {
    let nameservers = config.use_global_nameservers_as_default.unwrap_or(true);
    let searches = config.use_global_search_domains_as_default.unwrap_or(true);
    let or = |own: &[String], usual: &[String], falls_back: bool| {
        if own.is_empty() && falls_back { usual.to_vec() } else { own.to_vec() }
    };
    let mut ethernets = Map::new();
    for card in &network.cards {
        let mut fields = json!({
            "match": {"macaddress": card.mac},
            "set-name": card.device_name,
            "dhcp4": card.dhcp4,
            "dhcp6": card.dhcp6,
            "accept-ra": card.dhcp6,
        });
        if !card.addresses.is_empty() {
            fields["addresses"] = card.addresses.clone().into();
        }
        if let Some(mtu) = card.mtu {
            fields["mtu"] = mtu.into();
        }
        let servers = or(&card.nameservers, &network.nameservers, nameservers);
        let domains = or(&card.search_domains, &network.search_domains, searches);
        if !servers.is_empty() {
            fields["nameservers"]["addresses"] = servers.into();
        }
        if !domains.is_empty() {
            fields["nameservers"]["search"] = domains.into();
        }
        let routes = routes(card, gateways, &mut fields);
        if !routes.is_empty() {
            fields["routes"] = routes.into();
        }
        ethernets.insert(card.name.clone(), fields);
    }
    let mut plan = json!({"version": 2, "ethernets": ethernets});
    if !network.vlans.is_empty() {
        let vlan = |vlan: &crate::api::vm::Vlan| {
            let fields = json!({
                "id": vlan.id, "link": vlan.link, "dhcp4": false, "dhcp6": false, "accept-ra": false,
            });
            (vlan.name.clone(), fields)
        };
        plan["vlans"] = network.vlans.iter().map(vlan).collect::<Map<_, _>>().into();
    }
    plan
}

fn routes(card: &GuestCard, form: GatewayForm, fields: &mut Value) -> Vec<Value> {
    let mut routes = Vec::new();
    let families =
        [("gateway4", "0.0.0.0/0", &card.gateway4), ("gateway6", "::/0", &card.gateway6)];
    for (name, everywhere, gateway) in families {
        let Some(gateway) = gateway else { continue };
        match form {
            GatewayForm::Legacy => fields[name] = gateway.as_str().into(),
            GatewayForm::Routes => routes.push(json!({"to": everywhere, "via": gateway})),
        }
    }
    routes.extend(card.routes.iter().map(|route| serde_json::to_value(route).unwrap_or_default()));
    routes
}

/// The userdata as plain text; `None` if nothing is asked for.
pub fn userdata(
    vm: &VirtualMachine,
    secrets: &dyn Secrets,
) -> Result<Option<String>, BootstrapError> {
    let config = cloud_init(vm);
    if let Some(raw) = &config.raw_cloud_config {
        let text = decode(&secret_bytes(secrets, raw, &RAW_KEYS)?);
        return match String::from_utf8(text) {
            Ok(text) => Ok(Some(text)),
            Err(_) => Err(BootstrapError::NotText { name: raw.name.clone(), key: raw.key.clone() }),
        };
    }
    let Some(inline) = &config.cloud_config else { return Ok(None) };
    let fields = inline_fields(inline, secrets)?;
    Ok((!fields.is_empty()).then(|| format!("{HEADER}{}", to_yaml(&fields.into()))))
}

fn inline_fields(
    config: &CloudConfig,
    secrets: &dyn Secrets,
) -> Result<Map<String, Value>, BootstrapError> {
    let mut fields = Map::new();
    if !config.timezone.is_empty() {
        fields.insert("timezone".to_owned(), config.timezone.clone().into());
    }
    let mut users: Vec<Value> =
        config.default_user_enabled.then(|| "default".into()).into_iter().collect();
    for user in &config.users {
        let mut entry: Map<String, Value> = user.rest.clone().into_iter().collect();
        entry.insert("name".to_owned(), user.name.clone().into());
        for (field, secret) in [("passwd", &user.passwd), ("hashed_passwd", &user.hashed_passwd)] {
            if let Some(secret) = secret {
                entry.insert(field.to_owned(), secret_text(secrets, secret, &[])?.into());
            }
        }
        users.push(entry.into());
    }
    if !users.is_empty() {
        fields.insert("users".to_owned(), users.into());
    }
    if let Some(commands) = config.runcmd.as_ref().filter(|commands| !commands.is_null()) {
        fields.insert("runcmd".to_owned(), commands.clone());
    }
    let mut files = Vec::new();
    for file in &config.write_files {
        let mut entry: Map<String, Value> = file.rest.clone().into_iter().collect();
        entry.insert("path".to_owned(), file.path.clone().into());
        let wrong = || BootstrapError::FileContent { path: file.path.clone() };
        match &file.content {
            None | Some(Value::Null) => {}
            Some(Value::String(text)) => {
                entry.insert("content".to_owned(), text.clone().into());
            }
            Some(reference @ Value::Object(_)) => {
                let key: SecretKey =
                    serde_json::from_value(reference.clone()).map_err(|_| wrong())?;
                entry.insert("content".to_owned(), secret_text(secrets, &key, &[])?.into());
            }
            Some(_) => return Err(wrong()),
        }
        files.push(entry.into());
    }
    if !files.is_empty() {
        fields.insert("write_files".to_owned(), Value::Array(files));
    }
    if let Some(allowed) = config.ssh_pwauth {
        fields.insert("ssh_pwauth".to_owned(), allowed.into());
    }
    Ok(fields)
}

/// The keys of extraConfig that a guest reads. They hold passwords, so they are not printed.
#[derive(Clone, PartialEq, Eq)]
pub struct CloudInitKeys {
    metadata: String,
    userdata: Option<String>,
}

impl fmt::Debug for CloudInitKeys {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("CloudInitKeys").finish_non_exhaustive()
    }
}

/// What the guest shall find.
pub fn cloud_init_keys(
    vm: &VirtualMachine,
    network: &GuestNetwork,
    secrets: &dyn Secrets,
    gateways: GatewayForm,
) -> Result<CloudInitKeys, BootstrapError> {
    let userdata = userdata(vm, secrets)?;
    Ok(CloudInitKeys { metadata: metadata(vm, network, secrets, gateways), userdata })
}

impl CloudInitKeys {
    /// The metadata as text.
    pub fn metadata(&self) -> &str {
        &self.metadata
    }

    /// The userdata as text.
    pub fn userdata(&self) -> Option<&str> {
        self.userdata.as_deref()
    }

    /// The keys that differ from what the VM has. Payloads are compared unpacked, so another program's way of packing makes no difference. An empty value takes
    /// a key away.
    pub fn differences<'a>(
        &self,
        current: impl Fn(&str) -> Option<&'a str>,
    ) -> Vec<(&'static str, String)> {
        let mut changes = Vec::new();
        let payloads = [
            (extra_config::METADATA, extra_config::METADATA_ENCODING, Some(self.metadata.as_str())),
            (extra_config::USERDATA, extra_config::USERDATA_ENCODING, self.userdata.as_deref()),
        ];
        for (key, encoding, wanted) in payloads {
            let known = current(key).filter(|text| !text.is_empty());
            let is_same = match (known, wanted) {
                (None, None) => true,
                (Some(known), Some(wanted)) => decode(known.as_bytes()) == wanted.as_bytes(),
                _ => false,
            };
            if !is_same {
                changes.push((key, wanted.map(encode).unwrap_or_default()));
            }
            let wanted = wanted.map_or("", |_| extra_config::ENCODING);
            if current(encoding).unwrap_or_default() != wanted {
                changes.push((encoding, wanted.to_owned()));
            }
        }
        changes
    }
}

/// The same by customization, for guests that are told so: needs the annotation `cloudinitprep`.
pub fn cloud_init_prep(keys: &CloudInitKeys) -> Customize {
    let identity = CustomizationIdentitySettings {
        metadata: Some(keys.metadata.clone()),
        userdata: keys.userdata.clone(),
        ..CustomizationIdentitySettings::of("CustomizationCloudinitPrep")
    };
    Customize(CustomizationSpec {
        options: None,
        identity,
        global_ip_settings: CustomizationGlobalIPSettings::default(),
        nic_setting_map: Vec::new(),
    })
}

#[cfg(test)]
#[path = "cloud_init_tests.rs"]
mod tests;
