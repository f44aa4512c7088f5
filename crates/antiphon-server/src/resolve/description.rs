//! Descriptions of resolvers at compile time, and the errors that are found there.

use crate::resolve::Resolves;

/// One resolver, with the resolvers whose values it takes.
#[derive(Debug)]
pub struct Description {
    /// The resolver's name, which is also its scope.
    pub name: &'static str,
    /// The source location, because two resolvers may have one name; empty below the described depth.
    pub id: &'static str,
    /// The arguments that it takes.
    pub takes: &'static [&'static str],
    /// The resolvers that run before it.
    pub after: &'static [&'static Description],
}

/// A resolver that is described down to a depth: without a limit, a cycle could not be reported.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a resolver",
    label = "no resolver",
    note = "put `#[antiphon::resolver]` above the `async fn` of this name"
)]
pub trait Described<D>: Resolves {
    /// The description.
    const DESCRIPTION: Description;
}

/// One deeper than `D`.
#[derive(Debug)]
pub struct Deeper<D>(D);

/// The end of a depth.
#[derive(Debug)]
pub struct End(());

/// The depth down to which resolvers are described.
pub type Depth = Deeper<Deeper<Deeper<Deeper<Deeper<Deeper<Deeper<Deeper<Deeper<End>>>>>>>>>;

#[diagnostic::do_not_recommend]
impl<R: Resolves> Described<End> for R {
    const DESCRIPTION: Description = Description { name: R::NAME, id: "", takes: &[], after: &[] };
}

/// Refuses a resolver that waits for itself.
///
/// # Panics
/// At compile time, with the path.
#[track_caller]
pub const fn check_cycles(of: &Description) {
    follow(of, of.id, Sentence::new("resolvers wait for each other: ").quoted(of.name));
}

#[track_caller]
const fn follow(of: &Description, home: &str, path: Sentence) {
    let mut at = 0;
    while at < of.after.len() {
        let next = of.after[at];
        let path = path.and(" -> ").quoted(next.name);
        if same(next.id, home) {
            refuse(&path);
        }
        if next.id.is_empty() {
            refuse(&path.and(" ..: they are nested too deeply; call some of them as plain functions"));
        }
        follow(next, home, path);
        at += 1;
    }
}

/// The resolvers of one tool that passed the checks.
#[derive(Clone, Copy, Debug)]
pub struct Checked {
    all: [Option<&'static Description>; MOST],
    count: usize,
}

/// The maximum number of resolvers in one call.
const MOST: usize = 64;

impl Checked {
    /// The empty list.
    pub const NONE: Self = Self { all: [None; MOST], count: 0 };

    /// Returns true. The check itself happens at compile time: resolvers that fail it do not compile.
    pub const fn passed(&self) -> bool {
        true
    }
}

/// Refuses a resolver, or one that it depends on, that does not fit a user ("tool `delete_folder`") with these
/// arguments.
///
/// # Panics
/// At compile time, with the reason.
#[track_caller]
pub const fn check(
    user: &str,
    arguments: &[&str],
    checked: Checked,
    resolver: &'static Description,
) -> Checked {
    check_cycles(resolver);
    add(user, arguments, checked, resolver)
}

#[track_caller]
const fn add(user: &str, arguments: &[&str], mut checked: Checked, one: &'static Description) -> Checked {
    let mut at = 0;
    while at < checked.count {
        if let Some(other) = checked.all[at] {
            if same(other.id, one.id) {
                return checked;
            }
            if same(other.name, one.name) {
                let words = Sentence::new("two resolvers of ").and(user).and(" are called ").quoted(one.name);
                refuse(&words.and(": give one a name of its own, `#[resolver(name = \"..\")]`"));
            }
        }
        at += 1;
    }
    if checked.count == MOST {
        refuse(&Sentence::new(user).and(" has more than 64 resolvers"));
    }
    checked.all[checked.count] = Some(one);
    checked.count += 1;
    let mut at = 0;
    while at < one.takes.len() {
        if !has(arguments, one.takes[at]) {
            refuse(&unknown(user, arguments, one, one.takes[at]));
        }
        at += 1;
    }
    let mut at = 0;
    while at < one.after.len() {
        checked = add(user, arguments, checked, one.after[at]);
        at += 1;
    }
    checked
}

const fn unknown(user: &str, arguments: &[&str], resolver: &Description, name: &str) -> Sentence {
    let words = Sentence::new("resolver ").quoted(resolver.name).and(" takes ").quoted(name);
    let mut words = words.and(", but ").and(user).and(" has no such argument; it has");
    if arguments.is_empty() {
        return words.and(" none");
    }
    words = words.and(":");
    let mut at = 0;
    while at < arguments.len() {
        words = words.and(" ").quoted(arguments[at]);
        at += 1;
    }
    words
}

const fn has(all: &[&str], one: &str) -> bool {
    let mut at = 0;
    while at < all.len() {
        if same(all[at], one) {
            return true;
        }
        at += 1;
    }
    false
}

const fn same(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    if one.len() != other.len() {
        return false;
    }
    let mut at = 0;
    while at < one.len() {
        if one[at] != other[at] {
            return false;
        }
        at += 1;
    }
    true
}

/// A text that is built at compile time. A longer text is cut.
#[derive(Clone, Copy)]
struct Sentence {
    bytes: [u8; 1024],
    length: usize,
}

impl Sentence {
    const fn new(words: &str) -> Self {
        Self { bytes: [0; 1024], length: 0 }.and(words)
    }

    const fn and(mut self, words: &str) -> Self {
        let words = words.as_bytes();
        let mut at = 0;
        while at < words.len() && self.length < self.bytes.len() {
            self.bytes[self.length] = words[at];
            self.length += 1;
            at += 1;
        }
        self
    }

    const fn quoted(self, name: &str) -> Self {
        self.and("`").and(name).and("`")
    }
}

#[track_caller]
const fn refuse(words: &Sentence) -> ! {
    let (words, _) = words.bytes.split_at(words.length);
    match std::str::from_utf8(words) {
        Ok(words) => panic!("{}", words),
        // The text was cut within a character.
        Err(_) => panic!("resolvers do not fit together, and their names are too long to report"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{define::States, errors::BuildError, resolve::Provided};

    impl Resolves for () {
        type Value = ();
        const NAME: &'static str = "end";

        fn provide(_: &States, _: &mut Provided) -> Result<(), BuildError> {
            Ok(())
        }
    }

    const SIZE: Description = Description { name: "size", id: "a:1", takes: &["path"], after: &[] };
    const CONFIRM: Description =
        Description { name: "confirm", id: "a:2", takes: &["force"], after: &[&SIZE] };
    const OTHER: Description = Description { name: "size", id: "b:1", takes: &[], after: &[] };

    fn refused(check: impl FnOnce() + std::panic::UnwindSafe) -> Option<String> {
        let panic = std::panic::catch_unwind(check).err()?;
        panic
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| panic.downcast_ref().map(|text: &&str| text.to_string()))
    }

    #[test]
    fn what_does_not_fit_is_told_in_one_sentence() {
        let check = |arguments: &'static [&'static str], all: &'static [&'static Description]| {
            let one = move |checked, one: &&'static Description| {
                check("tool `delete_folder`", arguments, checked, one)
            };
            refused(move || assert!(all.iter().fold(Checked::NONE, one).passed()))
        };
        assert_eq!(check(&["path", "force"], &[&CONFIRM, &SIZE]), None);
        for (arguments, all, expected) in [
            (
                &["pth", "force"] as &[&str],
                &[&CONFIRM] as &[&Description],
                "resolver `size` takes `path`, but tool `delete_folder` has no such argument; it has: `pth` `force`",
            ),
            (
                &[],
                &[&SIZE],
                "resolver `size` takes `path`, but tool `delete_folder` has no such argument; it has none",
            ),
            (
                &["path", "force"],
                &[&CONFIRM, &OTHER],
                "two resolvers of tool `delete_folder` are called `size`: give one a name of its own, \
                 `#[resolver(name = \"..\")]`",
            ),
        ] {
            assert_eq!(check(arguments, all).as_deref(), Some(expected));
        }
    }

    #[test]
    fn cycles_are_told_with_their_path() {
        const FAR: Description = Description { name: "a", id: "1", takes: &[], after: &[] };
        const B: Description = Description { name: "b", id: "2", takes: &[], after: &[&SIZE, &FAR] };
        const A: Description = Description { name: "a", id: "1", takes: &[], after: &[&B] };
        const END: Description = <() as Described<End>>::DESCRIPTION;
        const DEEP: Description = Description { name: "deep", id: "3", takes: &[], after: &[&END] };
        assert_eq!(refused(|| check_cycles(&CONFIRM)), None);
        assert_eq!(
            refused(|| check_cycles(&DEEP)).as_deref(),
            Some(
                "resolvers wait for each other: `deep` -> `end` ..: they are nested too deeply; call some of them as plain functions"
            )
        );
        assert_eq!(
            refused(|| check_cycles(&A)).as_deref(),
            Some("resolvers wait for each other: `a` -> `b` -> `a`")
        );
    }
}
