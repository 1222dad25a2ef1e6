//! `VirtualMachineService` objects: a Service of the same name without a selector, and Endpoints that are the addresses of the selected VMs.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{
    EndpointAddress, EndpointPort, EndpointSubset, Endpoints, LoadBalancerStatus, Service,
    ServicePort as CorePort, ServiceSpec,
};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::api::{DeleteParams, PostParams};
use kube::{Api, ResourceExt as _};
use roost_controller::{Draft, Key, Next, Object, Pass, Reconciler, Store};

use super::owner;
use crate::api::condition::{ConditionType, find};
use crate::api::names::finalizer;
use crate::api::{
    LoadBalancerIngress, ServicePort, VirtualMachine, VirtualMachineService,
    VirtualMachineServiceSpec,
};
use crate::flow::{Context, PassError};

pub(crate) struct Services {
    pub(crate) cx: Arc<Context>,
    pub(crate) core: Store<Service>,
    pub(crate) endpoints: Store<Endpoints>,
}

/// Whether a VM is behind a service.
pub(crate) fn selects(selector: &BTreeMap<String, String>, vm: &VirtualMachine) -> bool {
    !selector.is_empty() && selector.iter().all(|(key, value)| vm.labels().get(key) == Some(value))
}

/// What a Service gets from us; the rest (addresses, node ports, defaults) is the API server's.
fn fill_in(service: &mut Service, wanted: &VirtualMachineServiceSpec) {
    let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let spec = service.spec.get_or_insert_with(ServiceSpec::default);
    spec.type_ = text(&wanted.type_).or(Some("ClusterIP".to_owned()));
    spec.selector = None;
    spec.external_name = text(&wanted.external_name);
    spec.load_balancer_ip = text(&wanted.load_balancer_ip);
    let ranges = wanted.load_balancer_source_ranges.clone();
    spec.load_balancer_source_ranges = Some(ranges).filter(|ranges| !ranges.is_empty());
    if !wanted.cluster_ip.is_empty() {
        spec.cluster_ip = Some(wanted.cluster_ip.clone());
    }
    let known = spec.ports.take().unwrap_or_default();
    let port = |port: &ServicePort| {
        let name = text(&port.name);
        // The node port stays what it was.
        let mut core = known.iter().find(|of| of.port == port.port && of.name == name).cloned();
        let core = core.get_or_insert_with(CorePort::default);
        CorePort {
            name,
            port: port.port,
            protocol: text(&port.protocol).or(Some("TCP".to_owned())),
            target_port: Some(IntOrString::Int(port.target_port)),
            ..core.clone()
        }
    };
    let ports: Vec<CorePort> = wanted.ports.iter().map(port).collect();
    spec.ports = Some(ports).filter(|ports| !ports.is_empty());
}

/// One address for each VM that has one and is not going. A VM with a probe counts only while it says that it is ready; one whose probe has not
/// spoken yet stays where it was.
fn subsets(
    wanted: &VirtualMachineServiceSpec,
    vms: &[Arc<VirtualMachine>],
    before: &[EndpointSubset],
) -> Vec<EndpointSubset> {
    let was_ready = |ip: &str| {
        let ready = before.iter().flat_map(|subset| subset.addresses.iter().flatten());
        ready.into_iter().any(|address| address.ip == ip)
    };
    let (mut ready, mut not_ready) = (Vec::new(), Vec::new());
    for vm in vms.iter().filter(|vm| selects(&wanted.selector, vm) && !vm.is_being_deleted()) {
        let Some(ip) = vm.primary_ip() else { continue };
        let is_ready = match find(vm.conditions(), ConditionType::Ready) {
            _ if vm.spec.readiness_probe.is_none() => true,
            Some(said) => said.status == "True",
            None => was_ready(ip),
        };
        let list = if is_ready { &mut ready } else { &mut not_ready };
        list.push(EndpointAddress { ip: ip.to_owned(), ..EndpointAddress::default() });
    }
    if ready.is_empty() && not_ready.is_empty() {
        return Vec::new();
    }
    let sorted = |mut list: Vec<EndpointAddress>| {
        list.sort_by(|one, other| one.ip.cmp(&other.ip));
        list.dedup();
        Some(list).filter(|list| !list.is_empty())
    };
    let port = |port: &ServicePort| EndpointPort {
        name: Some(port.name.clone()).filter(|name| !name.is_empty()),
        port: port.target_port,
        protocol: Some(port.protocol.clone()).filter(|of| !of.is_empty()).or(Some("TCP".into())),
        ..EndpointPort::default()
    };
    vec![EndpointSubset {
        addresses: sorted(ready),
        not_ready_addresses: sorted(not_ready),
        ports: Some(wanted.ports.iter().map(port).collect()),
    }]
}

impl Reconciler for Services {
    type Object = VirtualMachineService;
    type Error = PassError;

    async fn reconcile(&self, pass: &Pass<VirtualMachineService>) -> Result<Next, PassError> {
        let Some(mut own) = pass.draft() else { return Ok(Next::AwaitChange) };
        if own.is_being_deleted() {
            return self.end(&mut own).await;
        }
        own.remove_finalizer(finalizer::DEPRECATED_SERVICE);
        own.add_finalizer(finalizer::SERVICE);
        self.cx.writer.save_main(&mut own).await?;
        let key = Key::of(&*own);
        let spec = own.spec.clone();
        let service = self.settle(&own, self.core.get(&key), |service: &mut Service| {
            fill_in(service, &spec);
        });
        let service = service.await?;
        // Without a selector somebody else says where it leads.
        if !spec.selector.is_empty() {
            let namespace = own.namespace().unwrap_or_default();
            let mut vms = self.cx.stores.vms.objects();
            vms.retain(|vm| vm.namespace().as_deref() == Some(&*namespace));
            let known = self.endpoints.get(&key);
            let before = known.as_ref().and_then(|of| of.subsets.clone()).unwrap_or_default();
            let wanted = subsets(&spec, &vms, &before);
            let settled = self.settle(&own, known, |endpoints: &mut Endpoints| {
                endpoints.subsets = Some(wanted.clone()).filter(|subsets| !subsets.is_empty());
            });
            settled.await?;
        }
        let load_balancer = service.status.and_then(|status| status.load_balancer);
        own.status_mut().load_balancer.ingress = ingress(load_balancer);
        self.cx.writer.save(&mut own).await?;
        Ok(Next::AwaitChange)
    }
}

fn ingress(of: Option<LoadBalancerStatus>) -> Vec<LoadBalancerIngress> {
    let all = of.and_then(|of| of.ingress).unwrap_or_default();
    let one = |of: k8s_openapi::api::core::v1::LoadBalancerIngress| LoadBalancerIngress {
        ip: of.ip.unwrap_or_default(),
        hostname: of.hostname.unwrap_or_default(),
    };
    all.into_iter().map(one).collect()
}

impl Services {
    fn api<K>(&self, own: &VirtualMachineService) -> Api<K>
    where
        K: kube::Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>,
    {
        Api::namespaced(self.cx.writer.client().clone(), &own.namespace().unwrap_or_default())
    }

    /// Makes the object of the same name, or changes what differs. One that somebody else made is not touched.
    async fn settle<K>(
        &self,
        own: &VirtualMachineService,
        known: Option<Arc<K>>,
        change: impl Fn(&mut K),
    ) -> Result<K, PassError>
    where
        K: Object<DynamicType = ()>
            + Default
            + kube::Resource<Scope = kube::core::NamespaceResourceScope>,
    {
        let what = || format!("{} {}", K::kind(&()), own.name_any());
        let Some(known) = known else {
            let mut new = K::default();
            new.meta_mut().name = Some(own.name_any());
            new.meta_mut().namespace = own.namespace();
            new.meta_mut().owner_references = Some(vec![owner::of(own)]);
            change(&mut new);
            let made = self.api::<K>(own).create(&PostParams::default(), &new).await;
            return made.map_err(PassError::api(format!("make {}", what())));
        };
        if owner::controller_of(&*known) != own.uid() {
            return Err(PassError::NeedsPerson(format!("{} belongs to somebody else", what())));
        }
        let mut draft = Draft::of(known, ());
        change(&mut draft);
        self.cx.writer.save_main(&mut draft).await?;
        Ok(K::clone(&draft))
    }

    async fn end(&self, own: &mut Draft<VirtualMachineService>) -> Result<Next, PassError> {
        let key = Key::of(&**own);
        let is_ours = |owner: Option<String>| owner.is_some() && owner == own.uid();
        let params = DeleteParams::default();
        let name = own.name_any();
        let mut ended = Vec::new();
        if self.endpoints.get(&key).is_some_and(|of| is_ours(owner::controller_of(&*of))) {
            ended.push(self.api::<Endpoints>(own).delete(&name, &params).await.map(drop));
        }
        if self.core.get(&key).is_some_and(|of| is_ours(owner::controller_of(&*of))) {
            ended.push(self.api::<Service>(own).delete(&name, &params).await.map(drop));
        }
        for ended in ended {
            match ended {
                Err(kube::Error::Api(said)) if said.is_not_found() => {}
                other => other.map_err(PassError::api(format!("delete {name}")))?,
            }
        }
        own.remove_finalizer(finalizer::SERVICE);
        own.remove_finalizer(finalizer::DEPRECATED_SERVICE);
        self.cx.writer.save(own).await?;
        Ok(Next::AwaitChange)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::condition::{Reason, mark_false, mark_true};
    use crate::api::vm::ReadinessProbe;

    fn vm(ip: &str, said: Option<bool>, has_probe: bool) -> Arc<VirtualMachine> {
        let mut vm = VirtualMachine::default();
        vm.labels_mut().insert("app".into(), "web".into());
        vm.spec.readiness_probe = has_probe.then(ReadinessProbe::default);
        let network = vm.status_mut().network.get_or_insert_default();
        network.primary_ip4 = ip.to_owned();
        let now = jiff::Timestamp::UNIX_EPOCH;
        let conditions = &mut vm.status_mut().conditions;
        let kind = ConditionType::Ready;
        match said {
            Some(true) => mark_true(conditions, kind, now),
            Some(false) => mark_false(conditions, kind, Reason::NotReady, "", now),
            None => false,
        };
        Arc::new(vm)
    }

    #[test]
    fn endpoints_are_the_addresses_of_selected_vms_that_are_ready() {
        let wanted = VirtualMachineServiceSpec {
            selector: [("app".to_owned(), "web".to_owned())].into(),
            ports: vec![ServicePort { port: 80, target_port: 8080, ..ServicePort::default() }],
            ..VirtualMachineServiceSpec::default()
        };
        let mut going = VirtualMachine::clone(&vm("10.0.0.9", None, false));
        going.metadata.deletion_timestamp =
            Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(jiff::Timestamp::UNIX_EPOCH));
        let mut other = VirtualMachine::clone(&vm("10.0.0.8", None, false));
        other.labels_mut().insert("app".into(), "db".into());
        let vms = [
            vm("10.0.0.3", Some(true), true),
            vm("10.0.0.1", None, false),
            vm("10.0.0.2", Some(false), true),
            vm("", None, false),
            vm("10.0.0.4", None, true),
            Arc::new(going),
            Arc::new(other),
        ];
        let ips = |list: &Option<Vec<EndpointAddress>>| -> Vec<String> {
            list.iter().flatten().map(|address| address.ip.clone()).collect()
        };
        let got = subsets(&wanted, &vms, &[]);
        assert_eq!(ips(&got[0].addresses), ["10.0.0.1", "10.0.0.3"]);
        assert_eq!(ips(&got[0].not_ready_addresses), ["10.0.0.2", "10.0.0.4"]);
        assert_eq!(got[0].ports.as_ref().unwrap()[0].port, 8080);
        let address = EndpointAddress { ip: "10.0.0.4".into(), ..EndpointAddress::default() };
        let before =
            [EndpointSubset { addresses: Some(vec![address]), ..EndpointSubset::default() }];
        let got = subsets(&wanted, &vms, &before);
        assert_eq!(ips(&got[0].addresses), ["10.0.0.1", "10.0.0.3", "10.0.0.4"], "as it was");
    }
}
