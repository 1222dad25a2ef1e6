//! Fast deploy: the image's files must be where the VM goes. What is not there is asked for, and the VM waits without holding anybody up.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::PostParams;
use kube::{Api, ResourceExt as _};
use roost_controller::{Draft, Key};

use super::Context;
use super::outcome::{Flow, Halt};
use crate::api::condition::{
    ConditionType, Reason, find, is_false_because, mark_false, mark_true, remove,
};
use crate::api::names::{annotation, label};
use crate::api::{
    CacheLocation, CacheLocationStatus, VirtualMachine, VirtualMachineImageCache,
    VirtualMachineImageCacheSpec,
};
use crate::images::image_name;
use crate::provider::{Cached, Place, Prereqs, Source};

/// Check VMI cache ready, then get cached source file paths. `None`: this VM is made by vCenter, without the cache.
pub(super) async fn get_source_paths(
    cx: &Context,
    vm: &mut VirtualMachine,
    prereqs: &Prereqs,
    place: &Place,
) -> Flow<Option<Cached>> {
    let kind = ConditionType::ImageCacheReady;
    let Source::Ovf { item, version } = &prereqs.source else {
        remove(&mut vm.status_mut().conditions, kind);
        return Ok(None);
    };
    let Some(mode) = cx.provider.fast_deploy_mode(vm, &prereqs.base) else {
        remove(&mut vm.status_mut().conditions, kind);
        return Ok(None);
    };
    let name = image_name(item);
    let key = Key::new(&cx.settings.pod_namespace, &name);
    let Some(known) = cx.stores.caches.get(&key) else {
        ask_for_cache(cx, &name, item, version).await?;
        return Err(wait(cx, vm, &name, None, "the image is about to be cached"));
    };
    let mut cache = Draft::of(Arc::clone(&known), ());
    if cache.spec.provider_version != *version {
        cache.spec.provider_version.clone_from(version);
        write(cx, &mut cache).await?;
        return Err(wait(cx, vm, &name, None, "the image has another version"));
    }
    if !known.is_hardware_ready() {
        return Err(wait(cx, vm, &name, None, &why_not_ready(&known)));
    }
    let location = location(cx, prereqs, place, &known).await?;
    if !cache.spec.locations.contains(&location) {
        cache.spec.locations.push(location.clone());
        write(cx, &mut cache).await?;
        return Err(wait(cx, vm, &name, Some(&location), "the image is about to be copied"));
    }
    let status = known.location(&location);
    let Some(ready) = status.filter(|of| of.is_ready()) else {
        let failed = status.and_then(why_failed);
        let waits = wait(cx, vm, &name, Some(&location), failed.unwrap_or("the image is copied"));
        // Said once. The next pass waits at the gate until the cache has changed.
        return Err(failed.map_or(waits, |why| Halt::failed(format!("the image cache: {why}"))));
    };
    let Some(descriptor) = descriptor(cx, &known, item, version).await? else {
        cx.provider.copies.doubt(&key, &location.to_string());
        return Err(wait(cx, vm, &name, Some(&location), "the image's descriptor is missing"));
    };
    let disks = cx.provider.places.disk_place(&location_store(&location)).await;
    let disks = disks.map_err(Halt::because("the image cache"))?;
    let cached = Cached { mode, place: disks, files: ready.files.clone(), descriptor };
    if !cx.provider.has_all_files(&cached).await? {
        cx.provider.copies.doubt(&key, &location.to_string());
        return Err(wait(cx, vm, &name, Some(&location), "files of the image are missing"));
    }
    mark_true(&mut vm.status_mut().conditions, kind, cx.now());
    Ok(Some(cached))
}

fn location_store(location: &CacheLocation) -> roost_vim::wire::MoRef {
    let kind = roost_vim::wire::MoType::Datastore;
    roost_vim::wire::MoRef::new(kind, location.datastore_id.as_str())
}

fn why_not_ready(cache: &VirtualMachineImageCache) -> String {
    let conditions = cache.status.as_ref().map(|status| &status.conditions[..]).unwrap_or_default();
    let said = find(conditions, ConditionType::CacheHardwareReady);
    let said = said.map(|said| said.message.as_str()).filter(|said| !said.is_empty());
    said.unwrap_or("the image's descriptor is fetched").to_owned()
}

fn why_failed(status: &CacheLocationStatus) -> Option<&str> {
    let kind = ConditionType::Ready;
    is_false_because(&status.conditions, kind, Reason::Failed)
        .then(|| find(&status.conditions, kind).map(|of| of.message.as_str()))
        .flatten()
}

/// Marks what the VM waits for. It is looked at once more soon: what it waits for may have come before the mark was seen.
fn wait(
    cx: &Context,
    vm: &mut VirtualMachine,
    cache: &str,
    location: Option<&CacheLocation>,
    why: &str,
) -> Halt {
    vm.labels_mut().insert(label::IMAGE_CACHE_NAME.to_owned(), cache.to_owned());
    match location {
        Some(at) => {
            vm.annotations_mut()
                .insert(annotation::IMAGE_CACHE_LOCATION.to_owned(), at.to_string());
        }
        None => {
            vm.annotations_mut().remove(annotation::IMAGE_CACHE_LOCATION);
        }
    }
    let conditions = &mut vm.status_mut().conditions;
    mark_false(conditions, ConditionType::ImageCacheReady, Reason::NotReady, why, cx.now());
    Halt::Requeue(cx.settings.create_requeue)
}

async fn ask_for_cache(cx: &Context, name: &str, item: &str, version: &str) -> Flow {
    let spec = VirtualMachineImageCacheSpec {
        provider_id: item.to_owned(),
        provider_version: version.to_owned(),
        locations: Vec::new(),
    };
    let mut cache = VirtualMachineImageCache::new(name, spec);
    cache.metadata.namespace = Some(cx.settings.pod_namespace.clone());
    let api: Api<VirtualMachineImageCache> =
        Api::namespaced(cx.writer.client().clone(), &cx.settings.pod_namespace);
    match api.create(&PostParams::default(), &cache).await {
        Err(kube::Error::Api(said)) if said.is_already_exists() => Ok(()),
        other => other.map(drop).map_err(Halt::because(format!("making image cache {name}"))),
    }
}

async fn write(cx: &Context, cache: &mut Draft<VirtualMachineImageCache>) -> Flow {
    let name = cache.name_any();
    let saved = cx.writer.save_main(cache).await;
    saved.map(drop).map_err(Halt::because(format!("writing image cache {name}")))
}

/// Where the VM goes: the datastore of its storage class or zone, or one that fits the policy.
async fn location(
    cx: &Context,
    prereqs: &Prereqs,
    place: &Place,
    cache: &VirtualMachineImageCache,
) -> Flow<CacheLocation> {
    let places = &cx.provider.places;
    let failed = |source| Halt::because("storage")(source);
    let datacenter = places.datacenter().await.map_err(failed)?;
    let policy = prereqs.storage.policy.clone();
    let profile = policy.unwrap_or_else(|| CacheLocation::NO_POLICY.to_owned());
    let datastore = if prereqs.storage.policy.is_some() {
        let known = cache.spec.locations.iter().filter(|known| known.profile_id == profile);
        let known: Vec<String> = known.map(|known| known.datastore_id.clone()).collect();
        places.near_image(&profile, &known).await.map_err(failed)?.0
    } else {
        let name = prereqs.storage.datastore.as_ref().or(place.datastore.as_ref());
        let name = name.ok_or_else(|| Halt::failed("no datastore is known"))?;
        places.datastore(name).await.map_err(failed)?
    };
    Ok(CacheLocation {
        datacenter_id: datacenter.id.to_string(),
        datastore_id: datastore.id.to_string(),
        profile_id: profile,
    })
}

/// The descriptor that the cache controller has stored; read once per image.
async fn descriptor(
    cx: &Context,
    cache: &VirtualMachineImageCache,
    item: &str,
    version: &str,
) -> Flow<Option<Arc<str>>> {
    if let Some(known) = cx.provider.descriptors.get(item, version) {
        return Ok(Some(known));
    }
    let Some(ovf) = cache.status.as_ref().and_then(|status| status.ovf.as_ref()) else {
        return Ok(None);
    };
    let api: Api<ConfigMap> =
        Api::namespaced(cx.writer.client().clone(), &cx.settings.pod_namespace);
    let name = &ovf.config_map_name;
    let read = api.get_opt(name).await;
    let read = read.map_err(Halt::because(format!("reading ConfigMap {name}")))?;
    let text = read.and_then(|read| crate::images::stored_descriptor(&read, version));
    Ok(text.map(|text| cx.provider.descriptors.keep(item, version, text)))
}
