//! The search index.

use crate::MoRef;

methods! {
    on SearchIndex {
        read FindByInventoryPath = "FindByInventoryPath" { inventory_path "inventoryPath": String } -> Option<MoRef>;
        read FindByUuid = "FindByUuid" {
            datacenter: Option<MoRef>,
            uuid: String,
            vm_search "vmSearch": bool,
            instance_uuid "instanceUuid": Option<bool>,
        } -> Option<MoRef>;
        read FindByIp = "FindByIp" {
            datacenter: Option<MoRef>,
            ip: String,
            vm_search "vmSearch": bool,
        } -> Option<MoRef>;
        read FindByDnsName = "FindByDnsName" {
            datacenter: Option<MoRef>,
            dns_name "dnsName": String,
            vm_search "vmSearch": bool,
        } -> Option<MoRef>;
        read FindChild = "FindChild" { entity: MoRef, name: String } -> Option<MoRef>;
    }
}
