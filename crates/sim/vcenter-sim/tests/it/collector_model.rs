//! Whatever happens to the inventory, the connection and the client: a client that applies every update holds what a fresh
//! read answers.

use std::collections::BTreeMap;

use crate::lab::watch::{Watch, annotate};
use crate::lab::{Client, Lab};
use roost_clock::Random;
use roost_vcenter_sim::Options;
use roost_vim_wire::methods::{CreateListView, ModifyListView, MoveIntoFolderTask};
use roost_vim_wire::types::{
    ObjectSpec, ObjectUpdateKind, PropertyFilterSpec, PropertySpec, SelectionSpec, UpdateSet,
};
use roost_vim_wire::{MoRef, MoType, Value};

const PATHS: &[&str] = &["name", "parent"];

type State = BTreeMap<MoRef, BTreeMap<String, Value>>;

/// A filter with what a client has made of its updates.
struct Mirror {
    watch: Watch,
    spec: PropertyFilterSpec,
    state: State,
}

impl Mirror {
    async fn of(client: &Client, spec: PropertyFilterSpec) -> Self {
        Self { watch: Watch::on(client, spec.clone()).await, spec, state: State::new() }
    }

    fn apply(&mut self, set: UpdateSet) {
        for update in set.filter_set.into_iter().flat_map(|part| part.object_set) {
            match update.kind {
                ObjectUpdateKind::Enter => {
                    let before = self.state.insert(update.obj.clone(), BTreeMap::new());
                    assert!(before.is_none(), "{} entered twice", update.obj);
                }
                ObjectUpdateKind::Leave => {
                    assert!(
                        self.state.remove(&update.obj).is_some(),
                        "{} left unknown",
                        update.obj
                    );
                    continue;
                }
                _ => {}
            }
            let known = self
                .state
                .get_mut(&update.obj)
                .unwrap_or_else(|| panic!("{} is unknown", update.obj));
            for change in update.change_set {
                match change.val {
                    Some(value) => known.insert(change.name, value),
                    None => known.remove(&change.name),
                };
            }
        }
    }

    /// Reads all updates. Now and then an answer is lost, or the client starts over.
    async fn catch_up(&mut self, random: &mut Random) {
        if random.chance(0.05) {
            (self.watch.version, self.state) = (None, State::new());
        }
        let mut is_reusable = self.watch.version.is_some();
        loop {
            if is_reusable && random.chance(0.3) {
                let _lost = self.watch.look(self.watch.version.as_deref()).await.unwrap();
            }
            let Some(set) = self.watch.next().await else { break };
            let more = set.truncated == Some(true);
            self.apply(set);
            if !more {
                break;
            }
            is_reusable = false;
        }
    }

    async fn check(&self, client: &Client, step: &str) {
        let fresh = client.read_all(self.spec.clone()).await.unwrap();
        let fresh: State = fresh
            .into_iter()
            .map(|object| {
                let values =
                    object.prop_set.into_iter().map(|property| (property.name, property.val));
                (object.obj, values.collect())
            })
            .collect();
        let (known, actual): (Vec<_>, Vec<_>) =
            (self.state.keys().collect(), fresh.keys().collect());
        assert_eq!(known, actual, "{step}");
        assert_eq!(self.state, fresh, "{step}");
    }
}

fn properties() -> Vec<PropertySpec> {
    vec![PropertySpec::new("Folder", PATHS), PropertySpec::new("VirtualMachine", PATHS)]
}

/// Down the folders and up again: a traversal whose objects hold each other in.
fn there_and_back(root: &MoRef) -> PropertyFilterSpec {
    let mut down = SelectionSpec::traverse("Folder", "childEntity");
    let mut up = SelectionSpec::traverse("ManagedEntity", "parent");
    (down.name, up.name) = (Some("down".into()), Some("up".into()));
    down.select_set = vec![SelectionSpec::named("down"), SelectionSpec::named("up")];
    up.select_set = vec![SelectionSpec::named("up")];
    let start = ObjectSpec { obj: root.clone(), skip: Some(true), select_set: vec![down, up] };
    PropertyFilterSpec {
        prop_set: properties(),
        object_set: vec![start],
        ..PropertyFilterSpec::default()
    }
}

async fn random_step(
    client: &Client,
    random: &mut Random,
    root: &MoRef,
    list: &MoRef,
    step: usize,
) -> String {
    let view = client.view_below(root, &["Folder", "VirtualMachine"], true).await.unwrap();
    let all: Vec<MoRef> = client.property(&view, "view").await.unwrap().refs().cloned().collect();
    client.call(roost_vim_wire::methods::DestroyView { this: view }).await.unwrap();
    let mut folders: Vec<MoRef> =
        all.iter().filter(|obj| obj.kind == MoType::Folder).cloned().collect();
    folders.push(root.clone());
    let any = random.pick(&all).unwrap().clone();
    let folder = random.pick(&folders).unwrap().clone();
    match random.below(6) {
        0 => {
            client.create_folder(&folder, &format!("folder-{step}")).await;
            format!("create a folder in {folder}")
        }
        1 => {
            client.rename(&any, &format!("name-{step}")).await;
            format!("rename {any}")
        }
        // Into itself or its own child is refused; then nothing has happened.
        2 | 3 => {
            let call = MoveIntoFolderTask { this: folder.clone(), list: vec![any.clone()] };
            if let Ok(task) = client.call(call).await {
                let _ = client.finish(&task).await;
            }
            format!("move {any} into {folder}")
        }
        4 if any.kind == MoType::Folder => {
            let empty = client
                .property(&any, "childEntity")
                .await
                .is_none_or(|all| all.refs().count() == 0);
            if empty {
                client.destroy(&any).await;
            }
            format!("destroy {any} if empty")
        }
        4 => {
            annotate(client, &any, &format!("note {step}")).await;
            format!("annotate {any}")
        }
        _ => {
            let remove: Vec<MoRef> = random.chance(0.5).then(|| any.clone()).into_iter().collect();
            let add = random.pick(&all).cloned().into_iter().collect();
            client.call(ModifyListView { this: list.clone(), add, remove }).await.unwrap();
            "change the list".into()
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_mirror_that_applies_every_update_equals_a_fresh_read() {
    for seed in 0..8 {
        let mut random = Random::from_seed(seed);
        let lab = Lab::start(Options { page_limit: 3, seed, ..Options::default() }).await;
        let client = lab.login().await;
        let root = client.find("/DC0/vm").await;
        let deep = client.view_below(&root, &["Folder", "VirtualMachine"], true).await.unwrap();
        let flat = client.view_below(&root, &["Folder", "VirtualMachine"], false).await.unwrap();
        let this = client.content.view_manager.clone().unwrap();
        let list = client.call(CreateListView { this, obj: vec![] }).await.unwrap();
        let mut mirrors = Vec::new();
        for view in [&deep, &flat, &list] {
            mirrors
                .push(Mirror::of(&client, PropertyFilterSpec::of_view(view, properties())).await);
        }
        mirrors.push(Mirror::of(&client, there_and_back(&root)).await);
        for step in 0..60 {
            let what = random_step(&client, &mut random, &root, &list, step).await;
            for (index, mirror) in mirrors.iter_mut().enumerate() {
                if random.chance(0.4) {
                    mirror.catch_up(&mut random).await;
                    mirror
                        .check(
                            &client,
                            &format!("seed {seed}, step {step}, filter {index}: {what}"),
                        )
                        .await;
                }
            }
        }
        assert_eq!(lab.vcenter.counters().panics, 0);
    }
}
