//! What the documents say is true: every command in them is run, every link leads somewhere, every key and metric exists.
//!
//! A command is a line of a fenced `sh` block, a line with `$ ` of a `console` block, or a code span that begins with a program's name. It is run
//! as it stands, but for the substitutions of [`world::World::fill_in`], against a service between both simulators. What cannot be run here is in
//! [`rules::LISTED`] with the reason, and is looked at as far as possible. A command that is neither run nor listed is a failure.
#![expect(clippy::unwrap_used, reason = "a test may stop at once")]

mod command;
mod judge;
mod links;
mod names;
mod neutral;
mod page;
mod rules;
#[path = "../wire/mod.rs"]
mod wire;
mod world;

use crate::command::{Line, simple_commands};
use crate::judge::{judge, judge_line};
use crate::page::{Place, Shown, pages};
use crate::rules::{Treatment, treatment};
use crate::world::World;

#[tokio::test]
async fn every_command_in_the_documents_works() {
    let mut world = World::set().await;
    let (mut ran, mut wrong) = (0, Vec::new());
    for page in pages() {
        world.turn_the_page();
        for shown in page.commands() {
            let followed = follow(&mut world, &shown).await;
            println!("{}:{}: {}: {followed:?}", page.path, shown.line, shown.text);
            match followed {
                Ok(is_run) => ran += usize::from(is_run),
                Err(why) => {
                    let Shown { line, text, .. } = &shown;
                    wrong.push(format!("{}:{line}: {text}\n    {why}", page.path));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} commands are wrong:\n\n{}", wrong.len(), wrong.join("\n\n"));
    assert!(ran > 60, "only {ran} commands were run");
}

/// Whether it was run; what cannot be is looked at.
async fn follow(world: &mut World, shown: &Shown) -> Result<bool, String> {
    let mut line = Line::of(shown);
    line.text = world.fill_in(&line.text).await;
    let mut is_listed = false;
    for command in simple_commands(&line.text) {
        match treatment(&command, shown.place)? {
            Treatment::Run => {}
            Treatment::Absent => return Ok(false),
            Treatment::Listed => is_listed = true,
            Treatment::Mentioned => return judge(&command).map(|()| true),
            Treatment::Serves { ready, more } => {
                return world.serve(&line.text, ready, more).map(|()| true);
            }
            Treatment::IsTheService => return world.exchange_service(&line.text).map(|()| true),
            Treatment::Once { more } => line.text.push_str(more),
        }
    }
    if is_listed {
        judge_line(&line.text)?;
        return Ok(false);
    }
    world.run(&line.text).map(|()| true)
}

#[test]
fn no_command_hides_in_a_block_that_is_not_run() {
    for page in pages() {
        for block in page.blocks().filter(|block| !block.has_commands()) {
            let is_command = |line: &&str| line.starts_with("$ ") || line.starts_with("roost ");
            let hidden: Vec<_> =
                block.lines.iter().map(|(_, line)| *line).filter(is_command).collect();
            assert!(hidden.is_empty(), "{}: a block of `sh` or `console`: {hidden:?}", page.path);
        }
    }
}

#[test]
fn spans_and_blocks_are_both_found() {
    let page = page::Page {
        path: "x.md".into(),
        text: "Say `roost status`, not `roost`.\n\n```sh\nroost vms   # all\n\\\n# words\nroost explain \\\n  JOB\n```\n\n```console\n$ roost jobs\nnone\n```\n\n```toml\nroost = 1\n```\n".into(),
    };
    let found: Vec<_> =
        page.commands().map(|shown| (shown.line, shown.text, shown.place)).collect();
    let wanted = [
        (1, "roost status", Place::Span),
        (4, "roost vms   # all", Place::Block),
        (7, "roost explain JOB", Place::Block),
        (12, "roost jobs", Place::Block),
    ];
    assert_eq!(found, wanted.map(|(line, text, place)| (line, text.to_owned(), place)));
}
