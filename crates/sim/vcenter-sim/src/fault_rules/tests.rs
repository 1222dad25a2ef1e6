use roost_vim_wire::MoRef;

use super::*;
use crate::options::Options;

fn rules(all: &[Rule]) -> Rules {
    let options = Options { vms: 0, ..Options::default() };
    let inventory =
        Inventory::build(&options, &mut Random::from_seed(7), jiff::Timestamp::UNIX_EPOCH);
    let mut rules = Rules::new(7);
    for rule in all {
        rules.add(rule.clone(), &inventory);
    }
    rules
}

fn acts(rules: &mut Rules, method: &str, objects: &[&str]) -> Option<Action> {
    let objects = objects.iter().map(ToString::to_string).collect();
    rules.for_call(&Facts { method, objects }).map(|(_, action)| action)
}

#[test]
fn a_rule_acts_on_the_calls_it_names_and_no_others() {
    let rule = Rule::new("Power*VM_Task", Action::Hang).object("worker-*");
    let mut rules = rules(&[rule]);
    assert_eq!(acts(&mut rules, "PowerOnVM_Task", &["vm-1", "web"]), None);
    assert_eq!(acts(&mut rules, "CloneVM_Task", &["worker-1"]), None);
    assert_eq!(acts(&mut rules, "PowerOnVM_Task", &["vm-1", "worker-1"]), Some(Action::Hang));
}

#[test]
fn nth_every_nth_and_a_limit_count_fitting_calls() {
    let fired = |rule: Rule| -> Vec<bool> {
        let mut rules = rules(&[rule]);
        (0..6).map(|_| acts(&mut rules, "CurrentTime", &[]).is_some()).collect()
    };
    let rule = Rule::new("*", Action::Hang);
    assert_eq!(fired(rule.clone().when(When::Nth(3))), [false, false, true, false, false, false]);
    assert_eq!(
        fired(rule.clone().when(When::EveryNth(2))),
        [false, true, false, true, false, true]
    );
    assert_eq!(
        fired(rule.clone().when(When::EveryNth(2)).once()),
        [false, true, false, false, false, false]
    );
    assert_eq!(fired(rule.times(2)), [true, true, false, false, false, false]);
}

#[test]
fn chance_comes_from_the_seed() {
    let draw = || -> Vec<bool> {
        let mut rules = rules(&[Rule::new("*", Action::Hang).when(When::Chance(0.5))]);
        (0..64).map(|_| acts(&mut rules, "CurrentTime", &[]).is_some()).collect()
    };
    let first = draw();
    assert_eq!(first, draw());
    let fired = first.iter().filter(|fired| **fired).count();
    assert!((16..48).contains(&fired), "{fired}");
}

#[test]
fn the_first_rule_that_is_due_acts_and_all_that_fit_count() {
    let mut rules = rules(&[
        Rule::new("*", Action::Hang).when(When::Nth(2)),
        Rule::new("*", Action::CutBefore).when(When::EveryNth(2)),
    ]);
    assert_eq!(acts(&mut rules, "CurrentTime", &[]), None);
    assert_eq!(acts(&mut rules, "CurrentTime", &[]), Some(Action::Hang));
    assert_eq!(acts(&mut rules, "CurrentTime", &[]), None);
    assert_eq!(acts(&mut rules, "CurrentTime", &[]), Some(Action::CutBefore));
    assert_eq!(rules.reports().iter().map(|report| report.matched).collect::<Vec<_>>(), [4, 4]);
}

#[test]
fn task_rules_leave_calls_alone_and_call_rules_leave_tasks_alone() {
    let mut rules = rules(&[
        Rule::new("CloneVM_Task", Action::fail_task("NoDiskSpace", "full")).object("tmpl"),
        Rule::new("PowerOnVM_Task", Action::Hang),
    ]);
    assert_eq!(acts(&mut rules, "CloneVM_Task", &["tmpl"]), None);
    let effect = rules.for_task("CloneVM_Task", &MoRef::vm("vm-1"), "tmpl");
    assert!(matches!(effect, Some(TaskEffect::Fail(fault)) if fault.fault.class == "NoDiskSpace"));
    assert_eq!(rules.for_task("PowerOnVM_Task", &MoRef::vm("vm-1"), "tmpl"), None);
}
