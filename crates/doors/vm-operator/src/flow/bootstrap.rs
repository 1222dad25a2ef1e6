//! Bootstrap: what the guest is told before it boots, by keys that it reads or by customization.

use kube::ResourceExt as _;
use roost_controller::Key;

use super::Context;
use super::outcome::{Flow, Halt};
use crate::api::VirtualMachine;
use crate::api::names::{annotation, extra_config};
use crate::bootstrap::{
    self, Customize, GatewayForm, GuestNetwork, Provider, cloud_init_keys, cloud_init_prep,
    customize_now, is_customization_disabled, linux_prep, sysprep,
};
use crate::provider::Seen;

pub(super) fn network(cx: &Context, vm: &VirtualMachine, seen: &Seen) -> GuestNetwork {
    let macs: Vec<String> =
        seen.nics().map(|card| card.mac_address.clone().unwrap_or_default()).collect();
    GuestNetwork::of(vm, &macs, &cx.stores.dns_defaults(&cx.settings.pod_namespace))
}

pub(super) fn provider(vm: &VirtualMachine, seen: &Seen) -> Provider {
    bootstrap::provider(vm, seen.text("config.guestId").unwrap_or_default())
}

pub(super) fn is_by_customization(vm: &VirtualMachine) -> bool {
    let kind = vm.annotations().get(annotation::CLOUD_INIT_TYPE);
    kind.is_some_and(|kind| kind == "cloudinitprep")
}

/// The keys for cloud-init that differ, and the intended network in the status. A guest is told its cards by their addresses, so all of them must be there.
pub(super) fn keys(
    cx: &Context,
    vm: &mut VirtualMachine,
    seen: &Seen,
) -> Flow<Vec<(String, String)>> {
    let interfaces = vm
        .spec
        .network
        .as_ref()
        .map_or(0, |network| if network.disabled { 0 } else { network.interfaces.len() });
    if seen.nics().count() != interfaces {
        return Ok(Vec::new());
    }
    let network = network(cx, vm, seen);
    let provider = provider(vm, seen);
    if provider != Provider::None {
        vm.status_mut().network.get_or_insert_default().config = Some(network.config());
    }
    if provider != Provider::CloudInit || is_by_customization(vm) {
        return Ok(Vec::new());
    }
    let namespace = vm.namespace().unwrap_or_default();
    let secrets = |name: &str| cx.stores.secret(&namespace, name);
    let keys = cloud_init_keys(vm, &network, &secrets, GatewayForm::default());
    let keys = keys.map_err(Halt::because("bootstrap"))?;
    let differ = keys.differences(|key| seen.extra_config(key));
    Ok(differ.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}

/// The customization of the guest, if there is one.
fn customization(cx: &Context, vm: &VirtualMachine, seen: &Seen) -> Flow<Option<Customize>> {
    let namespace = vm.namespace().unwrap_or_default();
    let secrets = |name: &str| cx.stores.secret(&namespace, name);
    let network = network(cx, vm, seen);
    let made = match provider(vm, seen) {
        Provider::None | Provider::VApp => return Ok(None),
        Provider::CloudInit if !is_by_customization(vm) => return Ok(None),
        Provider::CloudInit => cloud_init_keys(vm, &network, &secrets, GatewayForm::default())
            .map(|keys| cloud_init_prep(&keys)),
        Provider::LinuxPrep(prep) => linux_prep(&prep, &network, &secrets),
        Provider::Sysprep => {
            let asked = vm.spec.bootstrap.as_ref().and_then(|of| of.sysprep.clone());
            let Some(asked) = asked else { return Ok(None) };
            sysprep(&asked, &network, &secrets)
        }
    };
    made.map(Some).map_err(Halt::because("bootstrap"))
}

/// Customizes the guest before it boots, once per payload. A customization that was done is remembered by its hash.
pub(super) async fn customize(
    cx: &Context,
    key: &Key,
    vm: &mut VirtualMachine,
    seen: &Seen,
) -> Flow {
    if is_customization_disabled(vm) || seen.extra_config(extra_config::DEPLOY_PACKAGE).is_some() {
        return Ok(());
    }
    let Some(customize) = customization(cx, vm, seen)? else { return Ok(()) };
    let hash = customize.hash();
    if cx.provider.steps.take_customized(key) {
        let name = annotation::BOOTSTRAP_HASH_CUSTOM_SPEC.to_owned();
        vm.annotations_mut().insert(name, hash);
        answer_wish(vm);
        return Ok(());
    }
    let last = vm.annotations().get(annotation::BOOTSTRAP_HASH_CUSTOM_SPEC);
    if !customize_now(wish(vm), &hash, last.map(String::as_str)) {
        return Ok(());
    }
    cx.provider.customize(key, seen, customize.0).await
}

fn wish(vm: &VirtualMachine) -> Option<bool> {
    let bootstrap = vm.spec.bootstrap.as_ref()?;
    let linux = bootstrap.linux_prep.as_ref().and_then(|of| of.customize_at_next_power_on);
    let windows = bootstrap.sysprep.as_ref().and_then(|of| of.customize_at_next_power_on);
    linux.or(windows)
}

/// Once is once.
fn answer_wish(vm: &mut VirtualMachine) {
    let Some(bootstrap) = &mut vm.spec.bootstrap else { return };
    let linux = bootstrap.linux_prep.as_mut().map(|of| &mut of.customize_at_next_power_on);
    let windows = bootstrap.sysprep.as_mut().map(|of| &mut of.customize_at_next_power_on);
    for wish in linux.into_iter().chain(windows) {
        if *wish == Some(true) {
            *wish = Some(false);
        }
    }
}
