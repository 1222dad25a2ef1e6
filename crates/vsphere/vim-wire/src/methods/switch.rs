//! Distributed switches and their port groups.

use crate::{Element, MoRef};

methods! {
    on DistributedVirtualSwitch {
        change AddDvPortgroupTask = "AddDVPortgroup_Task" needs "DVPortgroup.Create" task "DistributedVirtualSwitch.addPortgroups" "Add distributed port groups"
        { spec: Vec<Element> } -> MoRef;
        change CreateDvPortgroupTask = "CreateDVPortgroup_Task" needs "DVPortgroup.Create" task "DistributedVirtualSwitch.createPortgroup" "Create a distributed port group"
        { spec: Element } -> MoRef;
        change ReconfigureDvsTask = "ReconfigureDvs_Task" needs "DVSwitch.Modify" task "DistributedVirtualSwitch.reconfigure" "Reconfigure vSphere Distributed Switch"
        { spec: Element } -> MoRef;
        read FetchDvPorts = "FetchDVPorts" { criteria: Option<Element> } -> Vec<Element>;
    }

    on DistributedVirtualPortgroup {
        change ReconfigureDvPortgroupTask = "ReconfigureDVPortgroup_Task" needs "DVPortgroup.Modify" task "dvs.DistributedVirtualPortgroup.reconfigure" "Reconfigure distributed port group"
        { spec: Element } -> MoRef;
    }
}
