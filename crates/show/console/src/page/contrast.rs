//! Whether everybody can read it: the contrast of what is drawn on what, from the style itself, in both modes.

use std::collections::BTreeMap;

const STYLE: &str = include_str!("../../assets/roost.css");

type Colours = BTreeMap<String, [f64; 3]>;

/// The colours of the light and of the dark mode.
fn modes() -> [Colours; 2] {
    let mut roots = STYLE.split(":root {").skip(1).map(|rest| rest.split('}').next().unwrap());
    [roots.next().unwrap(), roots.next().unwrap()].map(colours)
}

fn colours(declared: &str) -> Colours {
    let variables = declared.split(';').filter_map(|line| line.trim().strip_prefix("--"));
    let parsed = variables.map(|variable| {
        let (name, value) = variable.split_once(':').unwrap();
        (name.trim().to_owned(), colour(value.trim()))
    });
    parsed.collect()
}

fn colour(text: &str) -> [f64; 3] {
    let digits: String = match text.strip_prefix('#').unwrap() {
        short if short.len() == 3 => short.chars().flat_map(|digit| [digit, digit]).collect(),
        long => long.to_owned(),
    };
    [0, 2, 4].map(|at| f64::from(u8::from_str_radix(&digits[at..at + 2], 16).unwrap()) / 255.0)
}

/// As WCAG 2 defines it.
fn luminance(colour: [f64; 3]) -> f64 {
    let [red, green, blue] =
        colour.map(
            |part| {
                if part <= 0.03928 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
            },
        );
    0.2126 * red + 0.7152 * green + 0.0722 * blue
}

fn contrast(a: [f64; 3], b: [f64; 3]) -> f64 {
    let (a, b) = (luminance(a), luminance(b));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

fn assert_contrast(fore: &str, back: &str, least: f64) {
    for (mode, colours) in ["light", "dark"].iter().zip(modes()) {
        let found = contrast(colours[fore], colours[back]);
        assert!(found >= least, "{mode}: {fore} on {back} has {found:.2}, needs {least}");
    }
}

#[test]
fn words_are_readable_on_whatever_they_stand() {
    for fore in ["ink", "soft", "link", "good", "busy", "wait", "bad"] {
        for back in ["card", "back"] {
            assert_contrast(fore, back, 4.5);
        }
    }
    for mood in ["good", "busy", "wait", "bad"] {
        let back = format!("{mood}-back");
        for fore in [mood, "ink", "soft", "link"] {
            assert_contrast(fore, &back, 4.5);
        }
    }
    for fore in ["ink", "soft", "link"] {
        assert_contrast(fore, "quiet-back", 4.5);
    }
}

#[test]
fn bars_fields_and_the_mark_of_the_keyboard_are_seen() {
    for fore in ["good", "busy", "wait", "bad", "rest", "soft"] {
        assert_contrast(fore, "room", 3.0);
    }
    for back in ["card", "back"] {
        // The mark of the keyboard, and the edge of a field.
        assert_contrast("link", back, 3.0);
        assert_contrast("soft", back, 3.0);
    }
    assert!(STYLE.contains(":focus-visible { outline: 2px solid var(--link)"));
}

#[test]
fn colours_are_told_in_one_place_and_movement_only_to_those_who_like_it() {
    let rest = STYLE.rsplit(":root {").next().unwrap();
    let rest = &rest[rest.find('}').unwrap()..];
    assert!(!rest.contains('#') || !rest.split('#').skip(1).any(is_colour), "a colour of its own");
    let (quiet, moving) =
        STYLE.split_once("@media (prefers-reduced-motion: no-preference)").unwrap();
    assert!(!quiet.contains("animation") && !quiet.contains("transition"));
    assert!(moving.contains("animation"));
}

/// An id begins with a letter beyond `f`, or has other letters than a colour.
fn is_colour(after: &str) -> bool {
    let word: String =
        after.chars().take_while(|it| it.is_ascii_alphanumeric() || *it == '-').collect();
    matches!(word.len(), 3 | 6) && word.chars().all(|it| it.is_ascii_hexdigit())
}
