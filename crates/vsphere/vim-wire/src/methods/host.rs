//! What a host is configured with: the subsystems behind its `configManager`.

use jiff::Timestamp;

use crate::{Element, MoRef};

methods! {
    on HostSystem {
        read QueryTpmAttestationReport = "QueryTpmAttestationReport" {} -> Option<Element>;
    }

    on HostNetworkSystem {
        read QueryNetworkHint = "QueryNetworkHint" { device: Vec<String> } -> Vec<Element>;
        change AddVirtualSwitch = "AddVirtualSwitch" needs "Host.Config.Network"
        { vswitch_name "vswitchName": String, spec: Option<Element> } -> ();
        change RemoveVirtualSwitch = "RemoveVirtualSwitch" needs "Host.Config.Network"
        { vswitch_name "vswitchName": String } -> ();
        change AddPortGroup = "AddPortGroup" needs "Host.Config.Network" { portgrp: Element } -> ();
        change RemovePortGroup = "RemovePortGroup" needs "Host.Config.Network"
        { pg_name "pgName": String } -> ();
        change RefreshNetworkSystem = "RefreshNetworkSystem" needs "Host.Config.Network" {} -> ();
    }

    on HostStorageSystem {
        change RescanAllHba = "RescanAllHba" needs "Host.Config.Storage" {} -> ();
        change RescanVmfs = "RescanVmfs" needs "Host.Config.Storage" {} -> ();
        change RefreshStorageSystem = "RefreshStorageSystem" needs "Host.Config.Storage" {} -> ();
    }

    on HostDatastoreSystem {
        change CreateLocalDatastore = "CreateLocalDatastore" needs "Host.Config.Storage"
        { name: String, path: String } -> MoRef;
        change CreateNasDatastore = "CreateNasDatastore" needs "Host.Config.Storage"
        { spec: Element } -> MoRef;
        change RemoveDatastore = "RemoveDatastore" needs "Datastore.Delete" { datastore: MoRef } -> ();
        read QueryAvailableDisksForVmfs = "QueryAvailableDisksForVmfs"
        { datastore: Option<MoRef> } -> Vec<Element>;
    }

    on HostServiceSystem {
        change StartService = "StartService" needs "Host.Config.NetService" { id: String } -> ();
        change StopService = "StopService" needs "Host.Config.NetService" { id: String } -> ();
        change RestartService = "RestartService" needs "Host.Config.NetService" { id: String } -> ();
        change UpdateServicePolicy = "UpdateServicePolicy" needs "Host.Config.NetService"
        { id: String, policy: String } -> ();
        change RefreshServices = "RefreshServices" needs "Host.Config.NetService" {} -> ();
    }

    on HostFirewallSystem {
        change EnableRuleset = "EnableRuleset" needs "Host.Config.NetService" { id: String } -> ();
        change DisableRuleset = "DisableRuleset" needs "Host.Config.NetService" { id: String } -> ();
        change RefreshFirewall = "RefreshFirewall" needs "Host.Config.NetService" {} -> ();
    }

    on HostDateTimeSystem {
        read QueryDateTime = "QueryDateTime" {} -> Timestamp;
        change UpdateDateTimeConfig = "UpdateDateTimeConfig" needs "Host.Config.DateTime"
        { config: Element } -> ();
    }
}
