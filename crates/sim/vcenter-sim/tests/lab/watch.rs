//! A client that watches.

use roost_vim_wire::methods::{
    CreateFilter, CreatePropertyCollector, ReconfigVmTask, WaitForUpdatesEx,
};
use roost_vim_wire::types::{
    ObjectUpdate, PropertyFilterSpec, PropertySpec, UpdateSet, VirtualMachineConfigSpec,
    WaitOptions,
};
use roost_vim_wire::{Fault, MoRef, Value};

use super::Client;

/// A collector of its own and the version that it has seen.
pub(crate) struct Watch {
    pub(crate) client: Client,
    pub(crate) collector: MoRef,
    pub(crate) version: Option<String>,
}

impl Watch {
    pub(crate) async fn new(client: &Client) -> Self {
        let collector =
            client.call(CreatePropertyCollector { this: client.collector() }).await.unwrap();
        Self { client: client.clone(), collector, version: None }
    }

    pub(crate) async fn on(client: &Client, spec: PropertyFilterSpec) -> Self {
        let watch = Self::new(client).await;
        watch.add(spec).await.unwrap();
        watch
    }

    pub(crate) async fn add(&self, spec: PropertyFilterSpec) -> Result<MoRef, Fault> {
        self.add_with(spec, false).await
    }

    pub(crate) async fn add_with(
        &self,
        spec: PropertyFilterSpec,
        partial_updates: bool,
    ) -> Result<MoRef, Fault> {
        self.client.call(CreateFilter { this: self.collector.clone(), spec, partial_updates }).await
    }

    pub(crate) fn wait_call(
        &self,
        version: Option<&str>,
        seconds: Option<i32>,
        max: Option<i32>,
    ) -> WaitForUpdatesEx {
        WaitForUpdatesEx {
            this: self.collector.clone(),
            version: version.map(ToOwned::to_owned),
            options: Some(WaitOptions { max_wait_seconds: seconds, max_object_updates: max }),
        }
    }

    /// The answer at this version, without waiting, and without moving on to its version.
    pub(crate) async fn look(&self, version: Option<&str>) -> Result<Option<UpdateSet>, Fault> {
        self.client.call(self.wait_call(version, Some(0), None)).await
    }

    /// The next answer without waiting; moves on to its version.
    pub(crate) async fn next(&mut self) -> Option<UpdateSet> {
        let set = self.look(self.version.as_deref()).await.unwrap()?;
        self.version = Some(set.version.clone());
        Some(set)
    }

    /// All updates that are there, through all pages.
    pub(crate) async fn updates(&mut self) -> Vec<ObjectUpdate> {
        let mut all = Vec::new();
        while let Some(set) = self.next().await {
            all.extend(set.filter_set.into_iter().flat_map(|filter| filter.object_set));
            if set.truncated != Some(true) {
                break;
            }
        }
        all
    }

    pub(crate) async fn wait(&self, seconds: Option<i32>) -> Result<Option<UpdateSet>, Fault> {
        self.client.call(self.wait_call(self.version.as_deref(), seconds, None)).await
    }
}

pub(crate) async fn vms(client: &Client, paths: &[&str]) -> PropertyFilterSpec {
    let view = client.view("VirtualMachine").await;
    PropertyFilterSpec::of_view(&view, vec![PropertySpec::new("VirtualMachine", paths)])
}

pub(crate) fn kinds(updates: &[ObjectUpdate]) -> Vec<&str> {
    updates.iter().map(|update| update.kind.as_str()).collect()
}

pub(crate) fn change<'a>(update: &'a ObjectUpdate, path: &str) -> Option<&'a Value> {
    update.change_set.iter().find(|change| change.name == path)?.val.as_ref()
}

pub(crate) async fn annotate(client: &Client, vm: &MoRef, text: &str) {
    let spec = VirtualMachineConfigSpec {
        annotation: Some(text.into()),
        ..VirtualMachineConfigSpec::default()
    };
    let task = client.call(ReconfigVmTask { this: vm.clone(), spec }).await.unwrap();
    client.finish(&task).await.unwrap();
}
