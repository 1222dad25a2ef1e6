//! The sections of the Kubernetes doors in a file, beside `[hatchery.vsphere]`.
//!
//! Each door has the settings of the program that it takes over from, under the names that those have: what was in the environment of that program
//! stands below `environment`, or still in the environment, which wins.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;

use roost_door::Links;
use roost_kubelet::Settings as KubeletSettings;
use roost_settings::{Key, Problems, Reader, Sample, Secret, Section, Surroundings, Table, Value};
use roost_vm_operator::VmOperatorSettings;

const KUBECONFIG: Key = Key::text(
    "kubeconfig",
    "",
    "How the API server is reached; without it as kubectl does: in the pod, or by KUBECONFIG",
);
const CONTEXT: Key =
    Key::text("context", "", "Context of that kubeconfig; without it the current one");
const HOME: Key = Key::text(
    "namespace",
    "",
    "Where its lease is, and its ConfigMap and Secret if it has any; without it that of the context",
);
const LEADER_ELECT: Key = Key::boolean(
    "leaderElect",
    true,
    "Work only while holding the lease of the program it replaces",
);

/// Variables stand below it, so that it is no key.
const ENVIRONMENT: &str = "environment";

/// VirtualMachine objects. How its vCenter is reached stands in the cluster, as for the upstream manager.
pub(crate) const VM_OPERATOR: Section = Section {
    root: "vm-operator",
    variables: None,
    keys: &[&KUBECONFIG, &CONTEXT, &HOME, &LEADER_ELECT],
    former: &[],
    added: "",
};

/// HyperShift NodePools. How vCenters are reached stands in the Secrets of its pools.
pub(crate) const AGENT_FORGE: Section = Section {
    root: "agent-forge",
    variables: None,
    keys: &[&KUBECONFIG, &CONTEXT, &HOME, &LEADER_ELECT],
    former: &[],
    added: "",
};

/// Pods on a virtual node.
pub(crate) const KUBELET: Section = Section {
    root: "kubelet",
    variables: None,
    keys: &[&KUBECONFIG, &CONTEXT],
    former: &[],
    added: "",
};

const ADDR: Key =
    Key::text("addr", "", "Where the page and the API are served; empty is everywhere");
const PORT: Key = Key::integer("port", 8086, "The port of the page, the API and /metrics");
const TOKEN: Key = Key::secret(
    "token",
    "What opens the page from other machines and lets people act; without it only this machine may read, and nobody acts",
)
.sample(Sample::Shown("\"...\""));

const LINK_VM: Key = Key::text(
    "linkVm",
    "",
    "Where a VM is shown in the vSphere client, for links on the page; {id} is its managed object id, {name} its name. Empty: no link",
);
const LINK_DOCS: Key = Key::text(
    "linkDocs",
    "",
    "Where this documentation is, for links to runbooks and gates; {page} is replaced, such as by runbooks/vcenter-link-down.md. Empty: no link",
);

/// For a service without a hatchery, which has these in its own section.
pub(crate) const CONSOLE: Section = Section {
    root: "console",
    variables: Some("ROOST_CONSOLE"),
    keys: &[&ADDR, &PORT, &TOKEN, &LINK_VM, &LINK_DOCS],
    former: &[],
    added: "",
};

/// Those that are documented beside the hatchery's.
pub(crate) const ALL: [&Section; 4] = [&VM_OPERATOR, &AGENT_FORGE, &KUBELET, &CONSOLE];

/// The API server of a door, and where it is at home there.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Cluster {
    pub(crate) kubeconfig: Option<PathBuf>,
    pub(crate) context: Option<String>,
    pub(crate) namespace: Option<String>,
    pub(crate) leader_elect: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct VmOperatorSection {
    pub(crate) cluster: Cluster,
    pub(crate) settings: VmOperatorSettings,
    /// `VC_CREDS_SECRET_NAME`.
    pub(crate) secret: Option<String>,
}

#[derive(Debug, Clone)]
pub(crate) struct KubeletSection {
    pub(crate) cluster: Cluster,
    pub(crate) settings: KubeletSettings,
}

#[derive(Debug, Clone)]
pub(crate) struct ConsoleSection {
    pub(crate) addr: Option<String>,
    pub(crate) port: u16,
    pub(crate) token: Option<Secret>,
    pub(crate) links: Links,
}

/// All that a file says beside the hatchery.
#[derive(Debug, Clone)]
pub(crate) struct Sections {
    pub(crate) vm_operator: Option<VmOperatorSection>,
    pub(crate) agent_forge: Option<Cluster>,
    pub(crate) kubelet: Option<KubeletSection>,
    pub(crate) console: ConsoleSection,
}

/// Whether a file has sections of other doors and none of the hatchery. One without any is taken for a hatchery's that lacks it.
pub(crate) fn are_alone(file: &Table) -> bool {
    let hatchery = file.table("hatchery").and_then(|hatchery| hatchery.table("vsphere"));
    hatchery.is_none() && ALL.iter().any(|section| file.table(section.root).is_some())
}

impl Sections {
    /// A file that says nothing of them.
    pub(crate) fn none() -> Self {
        let console = ConsoleSection { addr: None, port: 0, token: None, links: Links::default() };
        Self { vm_operator: None, agent_forge: None, kubelet: None, console }
    }

    /// Names of the doors in it, in their order.
    pub(crate) fn names(&self) -> Vec<&'static str> {
        let named = [
            (self.vm_operator.is_some(), VM_OPERATOR.root),
            (self.agent_forge.is_some(), AGENT_FORGE.root),
            (self.kubelet.is_some(), KUBELET.root),
        ];
        named.into_iter().filter(|(is_there, _)| *is_there).map(|(_, name)| name).collect()
    }

    /// What is wrong goes to `problems`, each with the path to edit.
    pub(crate) fn read(file: &Table, around: &dyn Surroundings, problems: &Problems) -> Self {
        let at = |section: &'static Section| At::find(section, file, around, problems);
        Self {
            vm_operator: at(&VM_OPERATOR).map(|at| at.vm_operator()),
            agent_forge: at(&AGENT_FORGE).map(|at| at.cluster()),
            kubelet: at(&KUBELET).and_then(|at| at.kubelet()),
            console: console(file, around, problems),
        }
    }
}

pub(crate) fn console(
    file: &Table,
    around: &dyn Surroundings,
    problems: &Problems,
) -> ConsoleSection {
    let table = CONSOLE.find(file, around).unwrap_or_default();
    CONSOLE.check(&table, problems);
    let reader = CONSOLE.reader(&table, problems);
    let port = reader.amount(&PORT, u16::MAX.into()).and_then(|port| u16::try_from(port).ok());
    ConsoleSection {
        addr: reader.host(&ADDR),
        port: port.unwrap_or_default(),
        token: reader.header_secret(&TOKEN, around).map(|(_, token)| token),
        links: Links {
            vm: link(&reader, &LINK_VM),
            docs: link(&reader, &LINK_DOCS),
            ..Links::default()
        },
    }
}

/// A link opens a page, and runs nothing.
fn link(reader: &Reader<'_>, key: &'static Key) -> Option<String> {
    let template = reader.filled(key)?;
    if !template.starts_with("https://") && !template.starts_with("http://") {
        reader.problem(key, format!("must begin with https:// or http://, is {template:?}"));
    }
    Some(template)
}

/// One section that is being read.
struct At<'a> {
    section: &'static Section,
    table: Table,
    around: &'a dyn Surroundings,
    problems: &'a Problems,
}

impl<'a> At<'a> {
    fn find(
        section: &'static Section,
        file: &Table,
        around: &'a dyn Surroundings,
        problems: &'a Problems,
    ) -> Option<Self> {
        let table = section.find(file, around)?;
        let has_environment = section.root != AGENT_FORGE.root;
        let keys = if has_environment { table.without(ENVIRONMENT) } else { table.clone() };
        section.check(&keys, problems);
        Some(Self { section, table, around, problems })
    }

    fn reader(&self) -> Reader<'_> {
        self.section.reader(&self.table, self.problems)
    }

    fn cluster(&self) -> Cluster {
        let reader = self.reader();
        let kubeconfig = reader.filled(&KUBECONFIG).map(PathBuf::from);
        if let Some(path) = kubeconfig.as_ref().filter(|path| !path.exists()) {
            reader.problem(&KUBECONFIG, format!("{} is not there", path.display()));
        }
        let is_kubelet = self.section.root == KUBELET.root;
        Cluster {
            kubeconfig,
            context: reader.filled(&CONTEXT),
            namespace: if is_kubelet { None } else { reader.filled(&HOME) },
            leader_elect: !is_kubelet && reader.boolean(&LEADER_ELECT),
        }
    }

    fn problem(&self, variable: &str, line: Option<usize>, why: &str) {
        let path = format!("{}.{ENVIRONMENT}.{variable}", self.section.root);
        self.problems.problem(path, line, why);
    }

    /// Reads variables, those of the process before those of the file. `read` says what is wrong as `NAME: why`.
    fn environment<T>(
        &self,
        read: impl FnOnce(&dyn Fn(&str) -> Option<String>) -> Result<T, Vec<String>>,
    ) -> Option<T> {
        let none = Table::default();
        let own = self.table.table(ENVIRONMENT).unwrap_or(&none);
        let asked = RefCell::new(BTreeSet::new());
        let get = |name: &str| {
            asked.borrow_mut().insert(name.to_lowercase());
            let written = own.get(name).and_then(|entry| plain(&entry.value));
            self.around.variable(name).or(written)
        };
        let read = read(&get);
        let asked = asked.into_inner();
        for (name, entry) in own.iter() {
            if !asked.contains(name) {
                self.problem(&entry.spelled, entry.line, "is no variable that this door reads");
            } else if plain(&entry.value).is_none() {
                let why = format!("must be text, is {}", entry.value.kind());
                self.problem(&entry.spelled, entry.line, &why);
            }
        }
        let wrong = match read {
            Ok(value) => return Some(value),
            Err(wrong) => wrong,
        };
        for words in wrong {
            let (name, why) = words.split_once(": ").unwrap_or(("", &words));
            self.problem(name, own.get(name).and_then(|entry| entry.line), why);
        }
        None
    }

    fn vm_operator(&self) -> VmOperatorSection {
        let cluster = self.cluster();
        let read = self.environment(|get| {
            let secret = get("VC_CREDS_SECRET_NAME");
            VmOperatorSettings::default().with_environment(get).map(|settings| (settings, secret))
        });
        let (settings, secret) = read.unwrap_or_default();
        VmOperatorSection { cluster, settings, secret }
    }

    /// `None` if there is a problem, which is noted then.
    fn kubelet(&self) -> Option<KubeletSection> {
        let cluster = self.cluster();
        self.environment(|get| {
            KubeletSettings::read(get)
                .map_err(|problems| problems.iter().map(ToString::to_string).collect())
        })
        .map(|settings| KubeletSection { cluster, settings })
    }
}

/// Text, or what can be written as text.
fn plain(value: &Value) -> Option<String> {
    match value {
        Value::Text(text) => Some(text.clone()),
        Value::Integer(number) => Some(number.to_string()),
        Value::Boolean(value) => Some(value.to_string()),
        Value::List(_) | Value::Table(_) | Value::Other(_) => None,
    }
}

/// What `roost config new` shows of them: all of it commented out, because most services have one door.
pub(crate) fn sample() -> String {
    let mut text = String::from(
        "\n# Further doors of the same process, each as its own section. A vCenter that several of them name is logged in to once, and they share its ledger.\n",
    );
    for section in ALL {
        text.push_str(&section.sample());
        let variables = match section.root {
            "vm-operator" => Some("MAX_CONCURRENT_RECONCILES = 20"),
            "kubelet" => Some("VK_NODE_NAME = \"pool-1\""),
            _ => None,
        };
        if let Some(variable) = variables {
            let root = section.root;
            // Writing into memory cannot fail.
            let _ = writeln!(
                text,
                "# Variables of the program that it replaces, by their names\n# [{root}.{ENVIRONMENT}]\n# {variable}"
            );
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::path::Path;

    use super::*;

    #[derive(Debug)]
    struct Nothing;

    impl Surroundings for Nothing {
        fn variable(&self, name: &str) -> Option<String> {
            (name == "SYNC_PERIOD").then(|| "7m".to_owned())
        }

        fn read_file(&self, _: &Path) -> io::Result<String> {
            Ok("s3cret\n".to_owned())
        }
    }

    fn read(text: &str) -> (Sections, Vec<String>) {
        let problems = Problems::default();
        let file = Table::parse(text, &problems).unwrap();
        let sections = Sections::read(&file, &Nothing, &problems);
        let told = match problems.settle(Some(())) {
            Ok(((), warnings)) => warnings,
            Err(invalid) => [invalid.problems, invalid.warnings].concat(),
        };
        (sections, told.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn a_file_says_which_doors_there_are_and_how_they_work() {
        let (sections, told) = read(
            "[vm-operator]\nnamespace = 'vms'\nleaderElect = false\n\
             environment = { MAX_CONCURRENT_RECONCILES = 7, SYNC_PERIOD = '1m' }\n\
             [agent-forge]\n[console]\nport = 9\ntokenFile = 't'\n",
        );
        assert!(told.is_empty(), "{told:?}");
        assert_eq!(sections.names(), ["vm-operator", "agent-forge"]);
        let operator = sections.vm_operator.unwrap();
        assert_eq!(operator.cluster.namespace.as_deref(), Some("vms"));
        assert!(!operator.cluster.leader_elect);
        assert_eq!(operator.settings.workers, 7);
        assert_eq!(operator.settings.resync.as_secs(), 7 * 60, "the process's own variable wins");
        assert!(sections.agent_forge.unwrap().leader_elect);
        assert_eq!(sections.console.port, 9);
        assert_eq!(sections.console.token.as_ref().unwrap().expose(), "s3cret");
        assert!(!format!("{:?}", sections.console).contains("s3cret"));
    }

    #[test]
    fn every_problem_is_told_at_once_with_its_path_and_line() {
        let (_, said) = read(
            "[vm-operator]\nnamespaze = 'x'\nkubeconfig = '/root/nowhere/kubeconfig'\n\
             [vm-operator.environment]\nMAX_CONCURRENT_RECONCILES = 'many'\nMAX_RECONCILES = 3\n\
             [kubelet.environment]\nVK_NODE_NAME = 'n'\nVK_RESERVE_PERCENT = 120\n\
             [console]\nport = 'high'\naddr = '999.1.1.1'\ntoken = \"a\\nb\"\n",
        );
        for (part, line) in [
            ("console.addr: must be an address or a name of this machine, is \"999.1.1.1\"", 12),
            ("console.token: holds characters that no HTTP header can carry", 13),
            ("vm-operator.namespaze: is not a known key", 2),
            ("vm-operator.kubeconfig: /root/nowhere/kubeconfig is not there", 3),
            ("vm-operator.environment.MAX_CONCURRENT_RECONCILES: ", 5),
            ("vm-operator.environment.MAX_RECONCILES: is no variable", 6),
            ("kubelet.environment.VK_RESERVE_PERCENT: ", 9),
            ("console.port: ", 11),
        ] {
            let end = format!("(line {line})");
            let is_told = |words: &String| words.starts_with(part) && words.ends_with(&end);
            assert!(said.iter().any(is_told), "{part} {line} in {said:#?}");
        }
    }

    #[test]
    fn the_sample_is_a_file_when_its_marks_are_taken_off() {
        let sample = sample();
        let lines = sample.lines().filter_map(|line| line.strip_prefix("# "));
        let plain: Vec<_> =
            lines.filter(|line| line.starts_with('[') || line.contains(" = ")).collect();
        let (sections, told) = read(&plain.join("\n"));
        assert_eq!(sections.names(), ["vm-operator", "agent-forge", "kubelet"], "{sample}");
        assert!(told.is_empty(), "{told:?}");
    }

    /// `ROOST_WRITE_DOCS=1 cargo test -p roost sections` writes them anew.
    #[test]
    fn the_page_has_every_key_of_every_section() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/doors.md");
        let page = std::fs::read_to_string(path).unwrap();
        let head = page.split("| Key below").next().unwrap();
        let tables: Vec<_> = ALL.iter().map(|section| section.key_table()).collect();
        let wanted = format!("{head}{}", tables.join("\n"));
        if std::env::var_os("ROOST_WRITE_DOCS").is_some() {
            std::fs::write(path, &wanted).unwrap();
        }
        assert!(
            std::fs::read_to_string(path).unwrap() == wanted,
            "docs/doors.md is not what the code reads"
        );
    }
}
