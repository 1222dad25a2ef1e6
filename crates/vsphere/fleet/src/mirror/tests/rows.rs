use super::*;

#[test]
fn a_row_is_read_from_its_properties() {
    let mut core = core();
    let mut changes = usual(1);
    changes.extend([
        text("name", "a%2fb%5cc%25d"),
        text("config.annotation", "test:hv1/job-7/10.0.0.9"),
        text("config.uuid", "4210"),
        set("config.createDate", Value::Time(at(5_000))),
        set("parent", Value::Ref(MoRef::new(MoType::Folder, "group-v3"))),
        set("resourcePool", Value::Ref(MoRef::new(MoType::ResourcePool, "resgroup-8"))),
        power("poweredOn"),
        set("runtime.connectionState", Value::Enum("x".into(), "connected".into())),
        set("guest.guestOperationsReady", Value::Bool(true)),
        text("guest.toolsRunningStatus", "guestToolsRunning"),
        text("guest.hostName", "a"),
        text("guest.ipAddress", "10.0.0.9"),
        guest_net(&["10.0.0.9", "10.1.0.9", "fe80::1", "169.254.0.1", "fd00::9"]),
        text("config.somethingNew", "?"),
    ]);
    core.hear(&[enter(1, changes)]);
    let vm = core.row(1);
    assert_eq!(&*vm.name, r"a/b\c%d");
    assert_eq!(
        (vm.cpus, vm.memory_mb, vm.power, vm.connection),
        (2, 2048, Power::On, Connection::Connected)
    );
    assert_eq!(vm.owner().unwrap().as_ref(), "hv1");
    assert_eq!(vm.request().unwrap().as_ref(), "job-7");
    assert_eq!(LENGTHS.of(&vm).as_deref(), Some(&23));
    assert_eq!(vm.annotation.as_deref(), Some("test:hv1/job-7/10.0.0.9"));
    assert_eq!(vm.pool, Some(PoolId::new("resgroup-8")));
    assert_eq!(vm.parent.as_deref(), Some("group-v3"));
    assert_eq!((vm.created, vm.uuid.as_deref()), (Some(at(5_000)), Some("4210")));
    assert!(vm.guest.operations_ready && vm.guest.tools == Tools::Running);
    assert_eq!(vm.guest.nics[0].device, 4000);
    let addresses: Vec<String> = vm.addresses().iter().map(ToString::to_string).collect();
    assert_eq!(addresses, ["10.0.0.9", "10.1.0.9", "fd00::9"], "each once, no link-local ones");
}

#[test]
fn rows_are_found_by_name_owner_job_and_address() {
    let mut core = core();
    core.hear(&[
        enter(1, vec![text("name", "a"), text("config.annotation", "test:hv1/j1/10.0.0.1")]),
        enter(2, vec![text("name", "a"), text("config.annotation", "test:hv2/j2/10.0.0.2")]),
        enter(3, vec![text("name", "ip-10-0-0-3"), text("config.annotation", "test:hv1")]),
        enter(
            4,
            vec![
                text("name", "b"),
                text("config.annotation", "people's notes"),
                power("poweredOn"),
            ],
        ),
        modify(4, vec![guest_net(&["10.0.0.2"])]),
        enter(
            5,
            vec![
                text("name", "debian12"),
                set("config.template", Value::Bool(true)),
                text("config.annotation", "test:hv1//10.0.0.1"),
            ],
        ),
    ]);
    let seen = Snapshot { tables: core.tables.clone(), ..Snapshot::default() };
    assert_eq!(ids(seen.named("a")), ["vm-1", "vm-2"]);
    assert_eq!(ids(seen.owned_by(LAB, "hv1")), ["vm-1", "vm-3", "vm-5"]);
    assert_eq!(ids(seen.serving(&LAB.request("j2"))), ["vm-2"]);
    let using = |address: &str| ids(seen.using(address.parse().unwrap()));
    assert_eq!(using("10.0.0.1"), ["vm-1"], "a template only remembers");
    assert_eq!(using("10.0.0.2"), ["vm-2", "vm-4"]);
    assert_eq!(using("10.0.0.3"), ["vm-3"], "by its name");
    assert_eq!(seen.template("debian12").unwrap().id.as_str(), "vm-5");
    assert!(core.row(4).annotation.is_none(), "other people's notes are not kept");
    assert_eq!(seen.len(), 5);

    core.hear(&[
        modify(1, vec![text("name", "c"), text("config.annotation", "test:hv1/j9/10.0.0.7")]),
        leave(2),
        modify(4, vec![guest_net(&[])]),
    ]);
    let now = &core.tables;
    assert_eq!((ids(now.named("a")), ids(now.named("c"))), (vec![], vec!["vm-1"]));
    assert_eq!(
        (ids(now.serving(&LAB.request("j1"))), ids(now.serving(&LAB.request("j9")))),
        (vec![], vec!["vm-1"])
    );
    assert!(now.using("10.0.0.2".parse().unwrap()).next().is_none());
    assert_eq!(ids(seen.named("a")), ["vm-1", "vm-2"], "a snapshot does not move");

    let newer = Snapshot { tables: core.tables.clone(), ..Snapshot::default() };
    let mut changes: Vec<String> = newer
        .since(&seen)
        .map(|change| match change {
            VmChange::Shown(vm) => format!("+{}", vm.id),
            VmChange::Gone(id) => format!("-{id}"),
        })
        .collect();
    changes.sort();
    assert_eq!(changes, ["+vm-1", "+vm-4", "-vm-2"]);
}

#[test]
fn a_host_out_of_reach_does_not_make_our_vm_a_strangers() {
    let mut core = core();
    core.hear(&[enter(1, usual(1))]);
    let lost = |path| PropertyChange { op: PropertyChangeOp::IndirectRemove, ..unset(path) };
    core.hear(&[modify(
        1,
        vec![
            set("runtime.connectionState", Value::string("inaccessible")),
            lost("config.annotation"),
            lost("config.changeVersion"),
            lost("config.template"),
        ],
    )]);
    assert_eq!(core.row(1).owner().unwrap().as_ref(), "hv1");
    // Also when the whole VM is shown anew in that state.
    core.hear(&[enter(1, vec![text("name", "worker-1")])]);
    assert_eq!(core.row(1).owner().unwrap().as_ref(), "hv1");
    // Somebody who takes the annotation away leaves the rest of the configuration.
    core.hear(&[modify(1, vec![text("config.changeVersion", "3"), unset("config.annotation")])]);
    assert_eq!(core.row(1).owner(), None);
}

#[test]
fn a_guest_says_nothing_while_its_vm_is_off() {
    let mut core = core();
    let mut on = usual(1);
    on.extend([
        power("poweredOn"),
        set("guest.guestOperationsReady", Value::Bool(true)),
        text("guest.ipAddress", "10.0.0.9"),
        guest_net(&["10.0.0.9"]),
    ]);
    core.hear(&[enter(1, on)]);
    core.hear(&[modify(1, vec![power("poweredOff")])]);
    let vm = core.row(1);
    assert!(!vm.guest.operations_ready && vm.guest.address.is_none() && vm.guest.nics.is_empty());
    assert!(core.tables.using("10.0.0.9".parse().unwrap()).next().is_none());

    // This server has not said that they are unset, so at the next boot it may think it has told them.
    core.hear(&[modify(1, vec![power("poweredOn")])]);
    assert!(core.row(1).guest.address.is_none(), "that was the boot before");
    assert_eq!(core.take_doubts(at(1_000)), []);
    assert_eq!(core.take_doubts(at(2_000)), [vm_id(1)]);
    let mut read = usual(1);
    read.extend([power("poweredOn"), text("guest.ipAddress", "10.0.0.9")]);
    core.read(&vm_id(1), Some(&properties(read)), at(2_100));
    assert_eq!(core.row(1).guest.address, Some([10, 0, 0, 9].into()));

    // One that says so is believed without being asked.
    core.hear(&[modify(1, vec![power("poweredOff"), unset("guest.ipAddress")])]);
    core.hear(&[modify(1, vec![power("poweredOn")])]);
    assert_eq!(core.take_doubts(at(60_000)), []);
}

#[test]
fn an_update_that_says_nothing_new_changes_nothing() {
    let mut core = core();
    core.hear(&[enter(1, usual(1))]);
    let generation = core.generation;
    core.hear(&[enter(1, usual(1)), modify(1, vec![text("name", "worker-1")])]);
    assert_eq!(core.generation, generation);
}

#[test]
fn pools_tell_their_room() {
    let mut core = core();
    let pool = |change| Update { obj: MoRef::new(MoType::ResourcePool, "resgroup-8"), change };
    let id = PoolId::new("resgroup-8");
    core.hear(&[pool(Change::Enter(properties(vec![
        text("name", "Resources"),
        set("runtime.memory.unreservedForVm", Value::Long(4 << 30)),
    ])))]);
    assert_eq!(core.tables.pool(&id).unwrap().room(), None, "half an account is none");
    core.hear(&[pool(Change::Modify(vec![
        set("runtime.cpu.unreservedForVm", Value::Long(4_121)),
        set("runtime.cpu.maxUsage", Value::Long(8_000)),
    ]))]);
    let known = core.tables.pool(&id).unwrap();
    assert_eq!(known.room(), Some(crate::PoolRoom { cpu_mhz: 4_121, memory_mb: 4_096 }));
    assert_eq!(&*known.name, "Resources");
    core.hear(&[pool(Change::Leave)]);
    assert!(core.tables.pool(&id).is_none());
}

#[test]
fn a_new_stream_makes_nobody_leave_before_it_is_complete() {
    let mut core = core();
    core.begin_load(1);
    core.hear(&[enter(1, usual(1)), enter(2, usual(2)), enter(3, usual(3))]);
    core.begin_load(1);
    assert!(!core.freshness().complete);
    core.apply(0, &[enter(1, usual(1))], false, false, at(0));
    assert!(core.has(2) && core.has(3), "what is missing may yet come");
    core.apply(0, &[enter(3, usual(3))], true, false, at(0));
    assert!(core.freshness().complete);
    assert!(core.has(1) && !core.has(2) && core.has(3));
}

#[test]
fn a_row_is_small() {
    assert!(size_of::<Vm>() <= 384, "{} bytes", size_of::<Vm>());
}

#[test]
fn a_vm_is_recognised_by_extra_config_and_instance_uuid() {
    let option = |value: &str| {
        let option = OptionValue { key: "lab.owner".into(), value: Some(Value::string(value)) };
        set("config.extraConfig[\"lab.owner\"]", Value::data(option))
    };
    let mut core = core();
    let mut changes = usual(1);
    changes.extend([
        text("config.annotation", ""),
        option("ns-1"),
        text("config.instanceUuid", "u-1"),
    ]);
    core.hear(&[enter(1, changes)]);
    assert_eq!(ids(core.tables.owned_by(LAB, "ns-1")), ["vm-1"]);
    assert_eq!(ids(core.tables.serving(&LAB.request("u-1"))), ["vm-1"]);
    core.hear(&[modify(1, vec![option("ns-2")])]);
    assert_eq!(ids(core.tables.claimed_by(LAB)), ["vm-1"]);
    assert_eq!(core.row(1).owner().unwrap().as_ref(), "ns-2");
    core.hear(&[modify(1, vec![unset("config.extraConfig[\"lab.owner\"]")])]);
    assert!(core.row(1).claim.is_none());

    core.wrote(&vm_id(2), Wrote::new().name("db").extra_config("lab.owner", "ns-1"), at(0));
    assert_eq!(ids(core.tables.owned_by(LAB, "ns-1")), ["vm-2"], "ours from its first instant");
}

#[test]
fn a_vm_that_moves_between_containers_stays() {
    let mut core = core();
    core.begin_load(2);
    core.apply(0, &[enter(1, usual(1))], false, false, at(0));
    core.apply(1, &[enter(2, usual(2))], true, false, at(0));
    assert!(core.has(1) && core.has(2));
    core.apply(1, &[enter(1, usual(1))], true, false, at(0));
    core.apply(0, &[leave(1)], true, false, at(0));
    assert!(core.has(1));
    core.apply(1, &[leave(1)], true, false, at(0));
    assert!(!core.has(1));
}
