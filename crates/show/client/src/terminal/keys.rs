//! What a key does: a step from one [`View`] to the next, without a terminal and without anybody being asked.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use roost_door::Action;

use super::list::List;
use super::question::{Question, request_at_hand, vm_at_hand};
use super::view::{Mode, View};
use super::{Look, Opened, Said};

/// What a key leads to beyond what is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Effect {
    Nothing,
    Leave,
    /// Was confirmed.
    Order(Action),
}

/// Lines of a page, where none was drawn yet.
const PAGE: usize = 10;

impl View {
    /// `may_act` is asked before a question is, so that nobody confirms what cannot be done.
    pub(super) fn press(
        &mut self,
        key: KeyEvent,
        look: &Look,
        may_act: impl FnOnce() -> Result<(), String>,
    ) -> Effect {
        if key.kind == KeyEventKind::Release {
            return Effect::Nothing;
        }
        // In the view's hands a terminal sends no signal for Ctrl-C.
        let with_control = key.modifiers.contains(KeyModifiers::CONTROL);
        if with_control && key.code == KeyCode::Char('c') {
            return Effect::Leave;
        }
        self.notice = None;
        match &mut self.mode {
            Mode::Reading => {
                self.mode = Mode::Moving;
                Effect::Nothing
            }
            Mode::Filtering => {
                self.filter_by(key.code, with_control);
                Effect::Nothing
            }
            Mode::Asking(question) => match key.code {
                KeyCode::Char('y' | 'Y') => {
                    let action = question.action().cloned();
                    self.mode = Mode::Moving;
                    action.map_or(Effect::Nothing, Effect::Order)
                }
                KeyCode::Tab | KeyCode::Down | KeyCode::Right => {
                    question.choose_next();
                    Effect::Nothing
                }
                KeyCode::Esc | KeyCode::Char('n' | 'N' | 'q') => {
                    self.mode = Mode::Moving;
                    Effect::Nothing
                }
                _ => Effect::Nothing,
            },
            Mode::Leaving => {
                self.mode = Mode::Moving;
                match key.code {
                    KeyCode::Char('y' | 'Y' | 'q') => Effect::Leave,
                    _ => Effect::Nothing,
                }
            }
            Mode::Moving if with_control => Effect::Nothing,
            Mode::Moving => self.go(key.code, look, may_act),
        }
    }

    fn filter_by(&mut self, code: KeyCode, with_control: bool) {
        match code {
            KeyCode::Enter => self.mode = Mode::Moving,
            KeyCode::Esc => {
                self.filter.clear();
                self.mode = Mode::Moving;
            }
            KeyCode::Backspace => {
                self.filter.pop();
            }
            KeyCode::Char('u') if with_control => self.filter.clear(),
            KeyCode::Char(char) if !with_control => self.filter.push(char),
            _ => {}
        }
    }

    fn go(
        &mut self,
        code: KeyCode,
        look: &Look,
        may_act: impl FnOnce() -> Result<(), String>,
    ) -> Effect {
        let page = isize::try_from(self.page()).unwrap_or(isize::MAX);
        match code {
            KeyCode::Char('q') | KeyCode::Esc => return self.go_back(code, look),
            KeyCode::Char('?' | 'h') | KeyCode::F(1) => self.mode = Mode::Reading,
            KeyCode::Down | KeyCode::Char('j') => self.go_by(look, 1),
            KeyCode::Up | KeyCode::Char('k') => self.go_by(look, -1),
            KeyCode::PageDown | KeyCode::Char(' ') => self.go_by(look, page),
            KeyCode::PageUp => self.go_by(look, -page),
            KeyCode::Home | KeyCode::Char('g') => self.go_by(look, isize::MIN),
            KeyCode::End | KeyCode::Char('G') => self.go_by(look, isize::MAX),
            KeyCode::Enter => self.open_marked(look),
            KeyCode::Char('e') => self.explain(look),
            KeyCode::Char('n') => self.open(Opened::Needs),
            KeyCode::Backspace => {
                self.opened.pop();
                self.scroll = 0;
            }
            _ if self.opened.is_empty() && self.choose_list(code) => {}
            KeyCode::Char(char) => self.ask(char, look, may_act),
            _ => {}
        }
        Effect::Nothing
    }

    fn choose_list(&mut self, code: KeyCode) -> bool {
        match code {
            KeyCode::Tab | KeyCode::Right => self.list = self.list.after(1),
            KeyCode::BackTab | KeyCode::Left => self.list = self.list.after(2),
            KeyCode::Char('1') => self.list = List::Requests,
            KeyCode::Char('2') => self.list = List::Vms,
            KeyCode::Char('3') => self.list = List::Decisions,
            KeyCode::Char('/') => self.mode = Mode::Filtering,
            KeyCode::Char('z') => self.is_wide = !self.is_wide,
            _ => return false,
        }
        true
    }

    fn page(&self) -> usize {
        if self.extent.room > 1 { self.extent.room - 1 } else { PAGE }
    }

    /// Through what is opened, or else through the list.
    fn go_by(&mut self, look: &Look, lines: isize) {
        if self.opened.is_empty() {
            // From where there is no mark yet the first step puts it there, and one to an end goes there at once.
            self.move_mark(look, lines);
            if lines == isize::MIN || lines == isize::MAX {
                self.move_mark(look, lines);
            }
        } else {
            self.scroll = self.scroll.saturating_add_signed(lines).min(self.extent.furthest());
        }
    }

    /// One step at a time, and out of it only where there is nothing left to go back from. `q` does not stop at marks and filters.
    fn go_back(&mut self, code: KeyCode, look: &Look) -> Effect {
        let place = self.list.place();
        if self.opened.pop().is_some() {
            self.scroll = 0;
        } else if code == KeyCode::Esc && !self.filter.is_empty() {
            self.filter.clear();
        } else if code == KeyCode::Esc && self.marks[place].take().is_some() {
            // Without a mark the list follows what is new again.
        } else if code == KeyCode::Esc {
            // Never out of it: Esc is pressed once too often every day.
            self.is_wide = false;
        } else if look.picture.ends_with_view {
            self.mode = Mode::Leaving;
        } else {
            return Effect::Leave;
        }
        Effect::Nothing
    }

    fn open_marked(&mut self, look: &Look) {
        match self.opened.last() {
            None => match self.marked(look) {
                Some(entry) => self.open(entry.opens),
                None => self.move_mark(look, 0),
            },
            // From a request on to its VM, and from a VM to its request.
            Some(Opened::Request(_)) => {
                if let Some(vm) = vm_at_hand(self.opened.last(), look, None) {
                    self.open(Opened::Vm(vm));
                }
            }
            Some(Opened::Vm(_)) => self.explain(look),
            Some(Opened::Decision(_) | Opened::Needs) => {}
        }
    }

    /// The request behind what is marked or opened.
    fn explain(&mut self, look: &Look) {
        let vm = match self.opened.last() {
            Some(Opened::Request(_)) => return,
            Some(Opened::Vm(name)) => look.vms.iter().find(|vm| vm.name == *name || vm.id == *name),
            Some(Opened::Decision(_) | Opened::Needs) => None,
            None => {
                let Some(entry) = self.marked(look) else { return self.move_mark(look, 0) };
                return match entry.request {
                    Some(request) => self.open(Opened::Request(request)),
                    None => self.open(entry.opens),
                };
            }
        };
        match vm.and_then(|vm| vm.request.clone()) {
            Some(request) => self.open(Opened::Request(request)),
            None => self.say("it serves no request"),
        }
    }

    fn ask(&mut self, char: char, look: &Look, may_act: impl FnOnce() -> Result<(), String>) {
        let question = match char {
            'p' => Some(Question::new(Action::PauseSpawning)),
            'r' => Some(Question::new(Action::ResumeSpawning)),
            'D' => Some(Question::new(Action::Drain)),
            'F' => Some(Question::new(Action::FreezeDeletions)),
            'T' => Some(Question::thaw()),
            'x' => self.about_vm(look),
            'w' => self.about_pool(look),
            'c' => self.about_request(look),
            _ => None,
        };
        let Some(question) = question else { return };
        match may_act() {
            Ok(()) => self.mode = Mode::Asking(question),
            Err(why) => self.say(&why),
        }
    }

    fn about_vm(&mut self, look: &Look) -> Option<Question> {
        let marked = self.marked(look).and_then(|entry| entry.vm);
        let vm = vm_at_hand(self.opened.last(), look, marked);
        if vm.is_none() {
            self.say("mark a VM first: 2 lists them");
        }
        vm.map(|vm| Question::new(Action::DeleteVm { vm }))
    }

    fn about_request(&mut self, look: &Look) -> Option<Question> {
        let marked = self.marked(look).and_then(|entry| entry.request);
        let request = request_at_hand(self.opened.last(), marked);
        if request.is_none() {
            self.say("mark a request first: 1 lists them");
        }
        request.map(|request| Question::new(Action::Recheck { request }))
    }

    fn about_pool(&mut self, look: &Look) -> Option<Question> {
        let question = Question::refill(look);
        if question.is_none() {
            self.say("there are no pools");
        }
        question
    }

    fn say(&mut self, words: &str) {
        self.notice = Some(Said { is_done: false, words: words.to_owned() });
    }
}

/// A key as a person types it; a line end is Enter, a tabulator Tab, and an escape Esc.
#[cfg(test)]
pub(super) fn typed(char: char) -> KeyEvent {
    let code = match char {
        '\n' => KeyCode::Enter,
        '\t' => KeyCode::Tab,
        '\u{1b}' => KeyCode::Esc,
        '\u{8}' => KeyCode::Backspace,
        char => KeyCode::Char(char),
    };
    KeyEvent::new(code, KeyModifiers::NONE)
}

#[cfg(test)]
mod tests {
    use roost_door::Found;
    use roost_views::RequestId;

    use super::super::tests::look;
    use super::*;

    /// A view after these keys, and what the last one led to.
    fn after(keys: &str) -> (View, Effect) {
        let mut view = View::default();
        let mut effect = Effect::Nothing;
        for key in keys.chars() {
            effect = view.press(typed(key), &look(), || Ok(()));
        }
        (view, effect)
    }

    fn opened(keys: &str) -> Option<Opened> {
        after(keys).0.opened.pop()
    }

    #[test]
    fn q_and_esc_go_back_step_by_step_and_then_out() {
        assert_eq!(after("q").1, Effect::Leave);
        assert_eq!(after("\u{1b}\u{1b}\u{1b}").1, Effect::Nothing, "Esc never leaves");
        let (view, effect) = after("1j\nq");
        assert_eq!((effect, view.opened.len()), (Effect::Nothing, 0));
        let (view, effect) = after("1zj/x\n\u{1b}");
        assert_eq!((effect, view.filter.as_str()), (Effect::Nothing, ""));
        assert!(view.marks[0].is_some());
        assert_eq!(after("1zj/x\n\u{1b}\u{1b}").0.marks[0], None);
        assert!(!after("1zj/x\n\u{1b}\u{1b}\u{1b}").0.is_wide);
        assert_eq!(after("1zj/x\n\u{1b}\u{1b}\u{1b}\u{1b}").1, Effect::Nothing);
    }

    #[test]
    fn q_asks_before_it_ends_a_demo() {
        let mut demo = look();
        demo.picture.ends_with_view = true;
        let press = |keys: &str| {
            let mut view = View::default();
            let press = |key| view.press(typed(key), &demo, || Ok(()));
            keys.chars().map(press).last()
        };
        assert_eq!(press("q"), Some(Effect::Nothing));
        assert_eq!(press("qy"), Some(Effect::Leave));
        assert_eq!(press("qq"), Some(Effect::Leave));
        for no in ["qn", "q\u{1b}", "qj"] {
            assert_eq!(press(no), Some(Effect::Nothing), "{no:?}");
        }
    }

    #[test]
    fn ctrl_c_leaves_from_everywhere() {
        for keys in ["", "?", "/abc", "1j\n", "p"] {
            let mut view = after(keys).0;
            let key = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
            assert_eq!(view.press(key, &look(), || Ok(())), Effect::Leave, "{keys:?}");
        }
        let mut view = View::default();
        let up = KeyEvent { kind: KeyEventKind::Release, ..typed('q') };
        assert_eq!(view.press(up, &look(), || Ok(())), Effect::Nothing, "only when it goes down");
    }

    #[test]
    fn tab_and_numbers_choose_a_list() {
        for (keys, list) in [
            ("", List::Decisions),
            ("\t", List::Requests),
            ("\t\t", List::Vms),
            ("\t\t\t", List::Decisions),
            ("1", List::Requests),
            ("2", List::Vms),
            ("23", List::Decisions),
        ] {
            assert_eq!(after(keys).0.list, list, "{keys:?}");
        }
    }

    #[test]
    fn the_mark_begins_where_the_eye_is_and_stays_on_its_line() {
        let marked = |keys| after(keys).0.marked(&look()).map(|entry| entry.id);
        assert_eq!(marked("1j").as_deref(), Some("bakery/6f1c7a52-0c7e-4d7e-9a51-3f4f6f1b2c3d"));
        assert_eq!(marked("1jj").as_deref(), Some("bakery/17"));
        assert_eq!(marked("1jjjjj").as_deref(), Some("bakery/17"));
        assert_eq!(marked("1jjk").as_deref(), marked("1j").as_deref());
        assert_eq!(marked("k").as_deref(), Some("33"), "the newest decision");
        assert_eq!(marked("kk").as_deref(), Some("32"));
        assert_eq!(marked("g").as_deref(), Some("1"));
        let (view, _) = after("1jj");
        let mut changed = look();
        changed.requests.rotate_left(1);
        assert_eq!(view.marked(&changed).unwrap().id, "bakery/17", "it goes along");
        changed.requests.retain(|job| job.id.id != "17");
        assert!(view.marked(&changed).is_some(), "its neighbour takes over");
        changed.requests.clear();
        assert!(view.marked(&changed).is_none());
    }

    #[test]
    fn enter_opens_and_goes_from_a_job_to_its_vm_and_back() {
        let (job, vm) =
            (Opened::Request(RequestId::new("bakery", "17")), Opened::Vm("keen-bohr".into()));
        assert_eq!(opened("1jj\n"), Some(job.clone()));
        assert_eq!(opened("1jj\n\n"), Some(vm.clone()));
        assert_eq!(opened("2j\n"), Some(vm.clone()));
        assert_eq!(opened("2j\n\n"), Some(job.clone()));
        assert_eq!(opened("2je"), Some(job), "explain");
        assert_eq!(
            opened("2jje"),
            Some(Opened::Vm("provision-v2-1".into())),
            "it serves no request"
        );
        assert_eq!(opened("k\n"), Some(Opened::Vm("vm-412".into())));
        assert_eq!(opened("kk\n"), Some(Opened::Decision(32)), "a pool has its decision");
        assert_eq!(opened("1jj\n\n\u{8}"), Some(Opened::Request(RequestId::new("bakery", "17"))));
        assert_eq!(opened("\n"), None, "the first Enter only marks");
    }

    #[test]
    fn n_opens_what_needs_a_person_and_goes_back_to_where_it_was() {
        assert_eq!(opened("n"), Some(Opened::Needs));
        assert_eq!(opened("nn"), Some(Opened::Needs));
        assert_eq!(after("nnq").0.opened, [], "once is enough to go back");
        assert_eq!(opened("1jj\nn\u{1b}"), Some(Opened::Request(RequestId::new("bakery", "17"))));
    }

    #[test]
    fn a_filter_is_typed_kept_and_ended() {
        assert_eq!(after("1/bohr").0.filter, "bohr");
        assert_eq!(after("1/bohr").0.mode, Mode::Filtering);
        assert_eq!(after("/pq?x\n").0.filter, "pq?x", "no key does anything else meanwhile");
        assert_eq!(after("/pq\u{8}\n").0.filter, "p");
        assert_eq!(after("/pq\u{1b}").0.filter, "");
        let (view, _) = after("2/provision\nj");
        assert_eq!(view.marked(&look()).unwrap().id, "vm-2");
    }

    #[test]
    fn nothing_is_done_without_a_yes() {
        for (keys, action) in [
            ("py", Action::PauseSpawning),
            ("ry", Action::ResumeSpawning),
            ("Dy", Action::Drain),
            ("Fy", Action::FreezeDeletions),
            ("Ty", Action::ResumeDeletions { found: Found::StartOver }),
            ("T\ty", Action::ResumeDeletions { found: Found::Approve }),
            ("2jxy", Action::DeleteVm { vm: "keen-bohr".into() }),
            ("1jj\nxy", Action::DeleteVm { vm: "keen-bohr".into() }),
            ("wy", Action::RefillPool { pool: "debian12".into() }),
            ("w\ty", Action::RefillPool { pool: "ubuntu24".into() }),
            ("1jjcy", Action::Recheck { request: RequestId::new("bakery", "17") }),
            ("1jj\ncy", Action::Recheck { request: RequestId::new("bakery", "17") }),
        ] {
            assert_eq!(after(keys).1, Effect::Order(action), "{keys:?}");
            let (asked, other) = keys.split_at(keys.len() - 1);
            assert_eq!(other, "y");
            for no in ["n", "\u{1b}", "q", "\n", "x"] {
                assert_eq!(after(&format!("{asked}{no}")).1, Effect::Nothing, "{asked}{no}");
            }
        }
        assert_eq!(after("y").1, Effect::Nothing, "nothing was asked");
    }

    #[test]
    fn what_an_action_needs_is_said_before_it_is_asked_for() {
        let mut view = View::default();
        view.press(typed('p'), &look(), || Err("no token".into()));
        assert_eq!(view.mode, Mode::Moving);
        assert_eq!(view.notice.as_ref().unwrap().words, "no token");
        view.press(typed('j'), &look(), || Ok(()));
        assert_eq!(view.notice, None, "until the next key");
        for (keys, words) in [("x", "mark a VM first"), ("c", "mark a request first")] {
            let notice = after(keys).0.notice.unwrap();
            assert!(notice.words.starts_with(words), "{notice:?}");
        }
    }
}
