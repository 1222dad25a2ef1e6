//! Sysprep: a raw answer file, or the answers one by one.

use roost_vim::wire::Element;
use roost_vim::wire::types::CustomizationIdentitySettings;

use super::customize::{Customize, hidden, script, spec};
use super::network::GuestNetwork;
use super::payload::decode;
use super::{BootstrapError, Secrets, secret_bytes, secret_text};
use crate::api::vm::{Identification, InlineSysprep, Sysprep};

/// The key of a raw Secret behind the named one.
const RAW_KEYS: [&str; 1] = ["unattend"];
/// Greenwich, as Windows numbers time zones.
const GREENWICH: i32 = 85;

pub fn sysprep(
    config: &Sysprep,
    network: &GuestNetwork,
    secrets: &dyn Secrets,
) -> Result<Customize, BootstrapError> {
    let identity = if let Some(raw) = &config.raw_sysprep {
        let text = String::from_utf8(decode(&secret_bytes(secrets, raw, &RAW_KEYS)?));
        let text = text.map_err(|_| BootstrapError::NotText {
            name: raw.name.clone(),
            key: raw.key.clone(),
        })?;
        CustomizationIdentitySettings {
            rest: vec![Element::leaf("value", text)],
            ..CustomizationIdentitySettings::of("CustomizationSysprepText")
        }
    } else {
        let inline = config.sysprep.clone().unwrap_or_default();
        CustomizationIdentitySettings {
            rest: answers(&inline, network, secrets)?,
            ..CustomizationIdentitySettings::of("CustomizationSysprep")
        }
    };
    Ok(Customize(spec(identity, network)?))
}

/// In the order in which vSphere wants them.
fn answers(
    inline: &InlineSysprep,
    network: &GuestNetwork,
    secrets: &dyn Secrets,
) -> Result<Vec<Element>, BootstrapError> {
    let gui = inline.gui_unattended.clone().unwrap_or_default();
    let mut unattended = Element::new("guiUnattended");
    if let Some(password) = &gui.password {
        unattended =
            unattended.with(hidden("password", secret_text(secrets, password, &["password"])?));
    }
    let unattended = unattended
        .with(Element::leaf("timeZone", gui.time_zone.unwrap_or(GREENWICH).to_string()))
        .with(Element::leaf("autoLogon", gui.auto_logon.to_string()))
        .with(Element::leaf("autoLogonCount", gui.auto_logon_count.to_string()));

    let name = Element::new("computerName")
        .typed("CustomizationFixedName")
        .with(Element::leaf("name", network.host_name.clone()));
    let product = match &inline.user_data.product_id {
        Some(secret) => secret_text(secrets, secret, &["product_id"])?,
        None => String::new(),
    };
    let user = Element::new("userData")
        .with(Element::leaf("fullName", inline.user_data.full_name.clone()))
        .with(Element::leaf("orgName", inline.user_data.org_name.clone()))
        .with(name)
        .with(Element::leaf("productId", product));

    let mut all = vec![unattended, user];
    if let Some(once) = inline.gui_run_once.as_ref().filter(|once| !once.commands.is_empty()) {
        let commands =
            once.commands.iter().map(|command| Element::leaf("commandList", command.clone()));
        all.push(commands.fold(Element::new("guiRunOnce"), Element::with));
    }
    all.push(identification(&inline.identification.clone().unwrap_or_default(), network, secrets)?);
    if let Some(license) = &inline.license_file_print_data {
        let mut element = Element::new("licenseFilePrintData")
            .with(Element::leaf("autoMode", license.auto_mode.clone()));
        if let Some(users) = license.auto_users {
            element = element.with(Element::leaf("autoUsers", users.to_string()));
        }
        all.push(element);
    }
    if inline.expire_password_after_next_login {
        all.push(Element::leaf("resetPassword", "true"));
    }
    if let Some(script) = script(inline.script_text.as_ref(), secrets)? {
        all.push(Element::leaf("scriptText", script));
    }
    Ok(all)
}

fn identification(
    wanted: &Identification,
    network: &GuestNetwork,
    secrets: &dyn Secrets,
) -> Result<Element, BootstrapError> {
    let mut element = Element::new("identification");
    if !wanted.join_workgroup.is_empty() {
        return Ok(element.with(Element::leaf("joinWorkgroup", wanted.join_workgroup.clone())));
    }
    if !wanted.domain_admin.is_empty() {
        element = element
            .with(Element::leaf("joinDomain", network.domain_name.clone()))
            .with(Element::leaf("domainAdmin", wanted.domain_admin.clone()));
    }
    if let Some(secret) = &wanted.domain_admin_password {
        let password = secret_text(secrets, secret, &["domain_admin_password"])?;
        element = element.with(hidden("domainAdminPassword", password));
    }
    if !wanted.domain_ou.is_empty() {
        element = element.with(Element::leaf("domainOU", wanted.domain_ou.clone()));
    }
    Ok(element)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::network::DnsDefaults;
    use super::super::tests::{secrets, vm};
    use super::*;

    fn made(config: serde_json::Value) -> Result<Customize, BootstrapError> {
        let all = secrets(&[
            ("win", "unattend", "<unattend/>"),
            ("win", "password", "pw"),
            ("win", "domain_admin_password", "dp"),
        ]);
        let vm = vm(json!({"network": {"hostName": "win-0", "domainName": "corp.example"}}));
        let network = GuestNetwork::of(&vm, &[], &DnsDefaults::default());
        sysprep(&serde_json::from_value(config).unwrap(), &network, &all)
    }

    #[test]
    fn a_raw_answer_file_is_passed_on() {
        let Customize(spec) = made(json!({"rawSysprep": {"name": "win"}})).unwrap();
        assert_eq!(spec.identity.class, "CustomizationSysprepText");
        assert_eq!(spec.identity.rest, [Element::leaf("value", "<unattend/>")]);
    }

    #[test]
    fn answers_come_in_their_order() {
        let Customize(spec) = made(json!({"sysprep": {
            "userData": {"fullName": "IT", "orgName": "Example"},
            "guiUnattended": {"autoLogon": true, "autoLogonCount": 2, "password": {"name": "win"}},
            "guiRunOnce": {"commands": ["a", "b"]},
            "identification": {"domainAdmin": "adm", "domainAdminPassword": {"name": "win"}, "domainOU": "OU=x"},
            "licenseFilePrintData": {"autoMode": "perServer", "autoUsers": 5},
            "scriptText": {"value": "echo"},
        }}))
        .unwrap();
        let names: Vec<_> =
            spec.identity.rest.iter().map(|element| element.name.as_str()).collect();
        let expected = [
            "guiUnattended",
            "userData",
            "guiRunOnce",
            "identification",
            "licenseFilePrintData",
            "scriptText",
        ];
        assert_eq!(names, expected);
        let [gui, user, once, identification, ..] = &spec.identity.rest[..] else { panic!() };
        assert_eq!(gui.child("password").unwrap().text_of("value"), Some("pw"));
        assert_eq!(gui.text_of("timeZone"), Some("85"));
        assert_eq!(user.child("computerName").unwrap().text_of("name"), Some("win-0"));
        assert_eq!(once.children.len(), 2);
        assert_eq!(identification.text_of("joinDomain"), Some("corp.example"));
        assert_eq!(
            identification.child("domainAdminPassword").unwrap().text_of("value"),
            Some("dp")
        );
    }

    #[test]
    fn a_workgroup_needs_no_domain() {
        let Customize(spec) = made(json!({"sysprep": {
            "userData": {"fullName": "IT", "orgName": "Example"}, "identification": {"joinWorkgroup": "WG"},
        }}))
        .unwrap();
        assert_eq!(spec.identity.rest[2].text_of("joinWorkgroup"), Some("WG"));
        assert_eq!(spec.identity.rest[2].child("joinDomain"), None);
    }
}
