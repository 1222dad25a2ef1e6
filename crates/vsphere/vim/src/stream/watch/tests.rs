use roost_vim_wire::Value;
use roost_vim_wire::types::{PropertyChange, PropertyChangeOp};

use super::*;
use crate::Update;

fn watch() -> Watch {
    let spec = WatchSpec::object(MoRef::vm("vm-1"), &["name"]);
    Watch::new(spec, Arc::new(Feed::default()), oneshot::channel().0)
}

fn change(name: &str, val: Option<&str>) -> PropertyChange {
    PropertyChange { name: name.into(), op: PropertyChangeOp::Assign, val: val.map(Value::string) }
}

fn update(kind: ObjectUpdateKind, id: &str, changes: Vec<PropertyChange>) -> ObjectUpdate {
    ObjectUpdate { kind, obj: MoRef::vm(id), change_set: changes, missing_set: Vec::new() }
}

fn enter(id: &str) -> ObjectUpdate {
    update(
        ObjectUpdateKind::Enter,
        id,
        vec![change("name", Some(id)), change("config.annotation", None)],
    )
}

async fn told(watch: &Watch) -> Vec<String> {
    let short = |update: Update| match update.change {
        Change::Enter(properties) => {
            format!("enter {} {}", update.obj.id, properties.iter().count())
        }
        Change::Modify(changes) => format!("modify {} {}", update.obj.id, changes.len()),
        Change::Leave => format!("leave {}", update.obj.id),
    };
    let batch = watch.feed.next().await.unwrap();
    let mut told: Vec<_> = batch.updates.into_iter().map(short).collect();
    told.push(if batch.synced { "synced".into() } else { "loading".into() });
    told
}

#[tokio::test]
async fn objects_enter_change_and_leave() {
    let mut watch = watch();
    watch.apply(enter("vm-1"));
    watch.apply(enter("vm-2"));
    assert_eq!(
        told(&watch).await,
        ["enter vm-1 1", "enter vm-2 1", "loading"],
        "an unset property is not there"
    );
    watch.loaded(Timestamp::UNIX_EPOCH);
    watch.apply(update(ObjectUpdateKind::Modify, "vm-2", vec![change("name", None)]));
    watch.apply(update(ObjectUpdateKind::Leave, "vm-1", vec![]));
    watch.apply(update(ObjectUpdateKind::Leave, "vm-9", vec![]));
    watch.apply(update(ObjectUpdateKind::Other("future".into()), "vm-2", vec![]));
    assert_eq!(told(&watch).await, ["modify vm-2 1", "leave vm-1", "synced"]);
}

#[tokio::test]
async fn a_change_before_the_first_sight_is_a_first_sight() {
    let mut watch = watch();
    watch.apply(update(ObjectUpdateKind::Modify, "vm-1", vec![change("name", Some("a"))]));
    assert_eq!(told(&watch).await, ["enter vm-1 1", "loading"]);
}

#[tokio::test]
async fn after_a_break_only_a_complete_load_makes_objects_leave() {
    let mut watch = watch();
    for id in ["vm-1", "vm-2", "vm-3"] {
        watch.apply(enter(id));
    }
    watch.loaded(Timestamp::UNIX_EPOCH);
    told(&watch).await;

    watch.restart(None);
    assert!(!watch.is_loaded() && !watch.feed.status.borrow().synced);
    watch.apply(enter("vm-2"));
    assert_eq!(told(&watch).await, ["enter vm-2 1", "loading"]);
    // Broken again half-way: what that load had seen so far says nothing.
    watch.restart(None);
    watch.apply(enter("vm-3"));
    watch.apply(enter("vm-4"));
    assert!(watch.loaded(Timestamp::UNIX_EPOCH));
    let told: BTreeSet<String> = told(&watch).await.into_iter().collect();
    assert_eq!(
        told,
        ["enter vm-3 1", "enter vm-4 1", "leave vm-1", "leave vm-2", "synced"]
            .map(String::from)
            .into()
    );
    assert_eq!(watch.feed.status.borrow().resyncs, 1);
}

/// The server's answer to the change of the list is all that is ever said of such an object.
#[tokio::test]
async fn who_named_an_object_that_does_not_exist_is_told_and_may_name_it_again() {
    let mut watch = watch();
    watch.begin_building();
    watch.missing(vec![MoRef::vm("vm-1")]);
    watch.loaded(Timestamp::UNIX_EPOCH);
    let batch = watch.feed.next().await.unwrap();
    assert_eq!((batch.missing, batch.updates), (vec![MoRef::vm("vm-1")], vec![]));
    let list = watch.list.as_mut().unwrap();
    assert!(!list.is_due(Instant::now()), "it is not asked for again");
    list.change(vec![MoRef::vm("vm-1")], &[]);
    assert!(list.is_due(Instant::now()), "unless somebody does");
}
