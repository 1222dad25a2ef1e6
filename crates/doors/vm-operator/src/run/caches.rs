//! `VirtualMachineImageCache` objects: the descriptor of an image is stored, and its files are copied to where VMs want them. Copies go on by themselves; a pass only
//! starts them and writes down how they ended.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt as _};
use roost_controller::{Draft, Next, Pass, Reconciler};
use roost_supervise::Chain;

use super::cache_files::{copy_files, item_files};
use super::collect;
use super::owner;
use crate::api::condition::{ConditionType, Reason, is_true, mark_false, mark_true, sort};
use crate::api::{CacheLocation, CacheLocationStatus, CacheOvf, VirtualMachineImageCache};
use crate::flow::{Context, PassError};
use crate::images::{CONTENT_VERSION, VALUE, is_vm_backed, stored_descriptor};
use crate::provider::CopyEnded;

/// What nobody needs is looked for this often. It costs no call.
const LOOK: Duration = Duration::from_mins(10);
/// Until a library has brought the files of an item here.
const FETCHING: Duration = Duration::from_secs(30);
/// A descriptor is text of some pages.
const LARGEST_DESCRIPTOR: u64 = 8 << 20;

pub(crate) struct Caches {
    pub(crate) cx: Arc<Context>,
}

/// The end of a step that did not succeed.
enum Unready {
    Failed(String),
    /// Nothing is wrong; it takes its time.
    Wait(Duration),
}

impl Reconciler for Caches {
    type Object = VirtualMachineImageCache;
    type Error = PassError;

    async fn reconcile(&self, pass: &Pass<VirtualMachineImageCache>) -> Result<Next, PassError> {
        let Some(mut cache) = pass.draft() else { return Ok(Next::AwaitChange) };
        let is_ours = cache.namespace().as_deref() == Some(&self.cx.settings.pod_namespace);
        if cache.is_being_deleted() || !is_ours {
            return Ok(Next::AwaitChange);
        }
        let ended = self.steps(&mut cache).await;
        summarize(&mut cache, self.cx.now());
        let is_unneeded = ended.is_ok() && collect::unneeded(&self.cx, &mut cache);
        self.cx.writer.save(&mut cache).await?;
        if is_unneeded {
            return collect::delete(&self.cx, &cache).await.map(|()| Next::AwaitChange);
        }
        match ended {
            Ok(()) => Ok(Next::After(self.next_look())),
            Err(Unready::Wait(after)) => Ok(Next::After(after)),
            Err(Unready::Failed(why)) => Err(PassError::Failed(vec![why])),
        }
    }
}

impl Caches {
    fn next_look(&self) -> Duration {
        let settings = &self.cx.provider.settings;
        let soonest = settings.image_cache_ttl.unwrap_or(LOOK).min(settings.image_cache_grace);
        soonest.clamp(Duration::from_secs(1), LOOK)
    }

    /// Hardware, provider, files. What fails is said in its own condition.
    async fn steps(&self, cache: &mut Draft<VirtualMachineImageCache>) -> Result<(), Unready> {
        let now = self.cx.now();
        let hardware = self.hardware(cache).await;
        mark(cache, ConditionType::CacheHardwareReady, &hardware, now);
        hardware?;
        let provider = self.provider(cache).await;
        mark(cache, ConditionType::CacheProviderReady, &provider, now);
        provider?;
        let files = self.files(cache);
        mark(cache, ConditionType::CacheFilesReady, &files, now);
        files
    }

    fn maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.cx.writer.client().clone(), &self.cx.settings.pod_namespace)
    }

    /// The descriptor of this version, in a ConfigMap that goes with the object.
    async fn hardware(&self, cache: &mut Draft<VirtualMachineImageCache>) -> Result<(), Unready> {
        let (item, version) = (cache.spec.provider_id.clone(), cache.spec.provider_version.clone());
        if item.is_empty() {
            return Err(Unready::Failed("spec.providerID is empty".to_owned()));
        }
        // A VM of the inventory has its hardware itself.
        if is_vm_backed(&item) {
            return Ok(());
        }
        let status = cache.status.as_ref();
        let stored = status.and_then(|status| status.ovf.as_ref());
        let is_current = stored.is_some_and(|of| of.provider_version == version);
        let is_ready =
            status.is_some_and(|of| is_true(&of.conditions, ConditionType::CacheHardwareReady));
        let (key, copies) = (cache.key(), &self.cx.provider.copies);
        let mut doubted = cache.spec.locations.clone();
        doubted.retain(|at| copies.take_doubt(&key, &at.to_string()));
        if is_current && is_ready && doubted.is_empty() {
            return Ok(());
        }
        if !is_current {
            collect::leave_all(&self.cx, cache);
        }
        // Files of another version are other files, and those that somebody missed are looked for anew.
        let locations = &mut cache.status_mut().locations;
        locations.retain(|known| is_current && !doubted.contains(&known.location));
        let name = cache.name_any();
        let failed = |what: &str, error: &dyn std::error::Error| {
            Unready::Failed(format!("{what}: {}", Chain(error)))
        };
        let known = self.maps().get_opt(&name).await;
        let known = known.map_err(|error| failed("reading the ConfigMap", &error))?;
        let stored = known.as_ref().and_then(|known| stored_descriptor(known, &version));
        let text = if let Some(stored) = stored {
            stored
        } else {
            let text = self.fetch_descriptor(&item).await?;
            let stored = self.store(cache, known.is_some(), &version, &text).await;
            stored.map_err(|error| failed("writing the ConfigMap", &error))?;
            text
        };
        self.cx.provider.descriptors.keep(&item, &version, text);
        cache.status_mut().ovf =
            Some(CacheOvf { config_map_name: name, provider_version: version });
        Ok(())
    }

    async fn fetch_descriptor(&self, item: &str) -> Result<String, Unready> {
        let observer = self.cx.provider.fleet.observer();
        let failed = |error| Unready::Failed(format!("library item {item}: {}", Chain(&error)));
        let files = observer.item_files(item).await.map_err(failed)?;
        let file = files.into_iter().find(|file| file.name.to_ascii_lowercase().ends_with(".ovf"));
        let Some(file) = file else {
            return Err(Unready::Failed(format!("library item {item} has no descriptor")));
        };
        let text = observer.item_file_content(item, &file.name, LARGEST_DESCRIPTOR).await;
        let text = text.map_err(failed)?;
        String::from_utf8(text.to_vec()).map_err(|_| {
            Unready::Failed(format!("the descriptor of library item {item} is no text"))
        })
    }

    async fn store(
        &self,
        cache: &VirtualMachineImageCache,
        is_there: bool,
        version: &str,
        text: &str,
    ) -> Result<(), kube::Error> {
        let name = cache.name_any();
        let data = BTreeMap::from([
            (VALUE.to_owned(), text.to_owned()),
            (CONTENT_VERSION.to_owned(), version.to_owned()),
        ]);
        if is_there {
            let patch = Patch::Merge(serde_json::json!({ "data": data }));
            return self.maps().patch(&name, &PatchParams::default(), &patch).await.map(drop);
        }
        let mut map = ConfigMap { data: Some(data), ..ConfigMap::default() };
        map.metadata.name = Some(name);
        map.metadata.owner_references = Some(vec![owner::of(cache)]);
        self.maps().create(&PostParams::default(), &map).await.map(drop)
    }

    /// The item's files must be at the vCenter before they can be copied there. Asked only while something is to be copied.
    async fn provider(&self, cache: &mut Draft<VirtualMachineImageCache>) -> Result<(), Unready> {
        let item = &cache.spec.provider_id;
        let wants_files = cache
            .spec
            .locations
            .iter()
            .any(|at| !cache.location(at).is_some_and(CacheLocationStatus::is_ready));
        if is_vm_backed(item) || !wants_files {
            return Ok(());
        }
        let failed = |error| Unready::Failed(format!("library item {item}: {}", Chain(&error)));
        let found = self.cx.provider.fleet.observer().library_item(item).await.map_err(failed)?;
        if found.cached {
            return Ok(());
        }
        self.cx.provider.fleet.machines().fetch_library_item(item).await.map_err(failed)?;
        Err(Unready::Wait(FETCHING))
    }

    /// Each location: ready, being copied, or to be copied.
    fn files(&self, cache: &mut Draft<VirtualMachineImageCache>) -> Result<(), Unready> {
        let (key, now) = (cache.key(), self.cx.now());
        let copies = &self.cx.provider.copies;
        let (wanted, version) = (cache.spec.locations.clone(), cache.spec.provider_version.clone());
        // Files that are being removed are not copied at the same time.
        let leaving = collect::being_removed(&self.cx, cache);
        cache.status_mut().locations.retain(|known| wanted.contains(&known.location));
        let mut failed = None;
        for at in &wanted {
            let ended = copies.take_ended(&key, &at.to_string());
            let status = location_mut(cache, at);
            match ended {
                Some(Ok(CopyEnded::Copied { version: of, files })) if of == version => {
                    status.files = files;
                    mark_true(&mut status.conditions, ConditionType::Ready, now);
                    continue;
                }
                Some(Err(why)) => {
                    let conditions = &mut status.conditions;
                    mark_false(conditions, ConditionType::Ready, Reason::Failed, &why, now);
                    failed = Some(why);
                    // Begun again by the pass that the failure asks for.
                    continue;
                }
                // What was removed is wanted again, and what was copied may be of another version by now.
                Some(Ok(_)) | None => {}
            }
            if status.is_ready() || copies.is_running(&key, &at.to_string()) || leaving.contains(at)
            {
                continue;
            }
            let conditions = &mut status.conditions;
            mark_false(conditions, ConditionType::Ready, Reason::NotReady, "files are copied", now);
            self.begin_copy(cache, at);
        }
        match failed {
            None => Ok(()),
            Some(why) => Err(Unready::Failed(why)),
        }
    }

    fn begin_copy(&self, cache: &Draft<VirtualMachineImageCache>, at: &CacheLocation) {
        let cx = Arc::clone(&self.cx);
        let told = cx.provider.copies.begin(&cache.key(), &at.to_string());
        let (name, spec, at) = (cache.name_any(), cache.spec.clone(), at.clone());
        tokio::spawn(async move {
            let copied = async {
                let files = item_files(&cx, &spec.provider_id).await?;
                copy_files(&cx, (&name, &spec.provider_version), &at, &files).await
            };
            let version = spec.provider_version.clone();
            let copied = copied.await.map(|files| CopyEnded::Copied { version, files });
            told(copied.map_err(|error| Chain(&error).to_string()));
        });
    }
}

fn location_mut<'a>(
    cache: &'a mut VirtualMachineImageCache,
    at: &CacheLocation,
) -> &'a mut CacheLocationStatus {
    let locations = &mut cache.status_mut().locations;
    let index = locations.iter().position(|known| known.location == *at).unwrap_or_else(|| {
        locations.push(CacheLocationStatus { location: at.clone(), ..Default::default() });
        locations.len() - 1
    });
    &mut locations[index]
}

fn mark(
    cache: &mut VirtualMachineImageCache,
    kind: ConditionType,
    ended: &Result<(), Unready>,
    now: jiff::Timestamp,
) {
    let conditions = &mut cache.status_mut().conditions;
    match ended {
        Ok(()) => mark_true(conditions, kind, now),
        Err(Unready::Wait(_)) => {
            mark_false(conditions, kind, Reason::NotReady, "the library fetches its files", now)
        }
        Err(Unready::Failed(why)) => mark_false(conditions, kind, Reason::Failed, why, now),
    };
}

/// Files are ready when all locations are, and the whole when all of its parts are.
fn summarize(cache: &mut VirtualMachineImageCache, now: jiff::Timestamp) {
    let status = cache.status_mut();
    let waits = status.locations.iter().filter(|at| !at.is_ready()).count();
    let files = ConditionType::CacheFilesReady;
    if waits > 0 && is_true(&status.conditions, files) {
        let words = format!("{waits} of {} locations are not ready", status.locations.len());
        mark_false(&mut status.conditions, files, Reason::NotReady, &words, now);
    }
    let parts = [ConditionType::CacheHardwareReady, ConditionType::CacheProviderReady, files];
    let missing = parts.into_iter().find(|kind| !is_true(&status.conditions, *kind));
    match missing {
        None => mark_true(&mut status.conditions, ConditionType::Ready, now),
        Some(kind) => {
            let words = format!("{} is not True", kind.as_str());
            let conditions = &mut status.conditions;
            mark_false(conditions, ConditionType::Ready, Reason::NotReady, &words, now)
        }
    };
    sort(&mut status.conditions);
}
