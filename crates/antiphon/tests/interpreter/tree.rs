//! Random handlers, as trees, and how they are written down when one fails.

use proptest::prelude::*;
use std::fmt;

/// A key, made unique in its scope by a number.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Name {
    pub(crate) letter: u8,
    pub(crate) number: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Form {
    Pick,
    Sure,
    Note,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Ask {
    pub(crate) name: Name,
    pub(crate) form: Form,
    /// A refusal ends the branch.
    pub(crate) unwraps: bool,
    /// All such questions have one text.
    pub(crate) plain: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    Done,
    Fails,
    /// Made with `step_with`.
    Pinned,
    /// Asks to be run again the first time.
    Flaky,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) name: Name,
    pub(crate) kind: Kind,
    /// What its body waits for.
    pub(crate) raw: Option<Raw>,
}

/// Waiting that nobody records.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Raw {
    Yields(u8),
    Task(u8),
    Sleeps(u8),
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Joined {
    Ours,
    Futures,
    Unordered,
}

#[derive(Clone)]
pub(crate) enum Node {
    Ask(Ask),
    Step(Step),
    Raw(Raw),
    Seq(Vec<Node>),
    Join(Joined, Vec<Node>),
    /// Ends with the first error, and drops the others.
    Try(Name, Vec<Node>),
    Select(Name, Vec<Node>),
    Scope(Name, Box<Node>),
    /// So often at most; each round in a scope of its own, or with numbers.
    Loop {
        name: Name,
        scoped: bool,
        most: u8,
        body: Box<Node>,
    },
    If(Box<Node>, Box<Node>),
    Catch(Box<Node>),
    Helper(Box<Node>),
}

/// How often each letter was used in one scope.
#[derive(Default)]
struct Frame([[u64; 3]; 5]);

impl Frame {
    fn number(&mut self, space: usize, name: &mut Name) {
        let used = &mut self.0[space][usize::from(name.letter)];
        name.number = *used;
        *used += 1;
    }
}

impl Node {
    /// Gives every key its number. In a `Try`, what came first among questions is nobody's to say: they do not fail there.
    fn name(&mut self, frame: &mut Frame, in_try: bool) {
        match self {
            Self::Ask(ask) => {
                frame.number(0, &mut ask.name);
                ask.unwraps &= !in_try;
            }
            Self::Step(step) => frame.number(1, &mut step.name),
            Self::Raw(_) => {}
            Self::Seq(nodes) | Self::Join(_, nodes) => {
                nodes.iter_mut().for_each(|node| node.name(frame, in_try));
            }
            Self::Try(name, nodes) => {
                frame.number(2, name);
                nodes.iter_mut().for_each(|node| node.name(frame, true));
            }
            Self::Select(name, nodes) => {
                frame.number(3, name);
                nodes.iter_mut().for_each(|node| node.name(frame, in_try));
            }
            Self::Scope(name, node) => {
                frame.number(4, name);
                node.name(&mut Frame::default(), in_try);
            }
            Self::Loop { name, scoped, body, .. } => {
                frame.number(4, name);
                if *scoped {
                    body.name(&mut Frame::default(), in_try);
                } else {
                    body.name(frame, in_try);
                }
            }
            Self::If(yes, no) => {
                yes.name(frame, in_try);
                no.name(frame, in_try);
            }
            Self::Catch(node) => node.name(frame, false),
            Self::Helper(node) => node.name(frame, in_try),
        }
    }
}

fn name() -> impl Strategy<Value = Name> {
    (0_u8..3).prop_map(|letter| Name { letter, number: 0 })
}

fn raw() -> impl Strategy<Value = Raw> {
    prop_oneof![
        (1_u8..4).prop_map(Raw::Yields),
        (0_u8..3).prop_map(Raw::Task),
        prop_oneof![1_u8..6, 45_u8..70].prop_map(Raw::Sleeps),
    ]
}

fn leaf(waits: bool) -> BoxedStrategy<Node> {
    let form = prop_oneof![Just(Form::Pick), Just(Form::Sure), Just(Form::Note)];
    let ask = (name(), form, any::<bool>(), any::<bool>())
        .prop_map(|(name, form, unwraps, plain)| Node::Ask(Ask { name, form, unwraps, plain }));
    let kind = prop_oneof![
        6 => Just(Kind::Done),
        2 => Just(Kind::Fails),
        2 => Just(Kind::Pinned),
        u32::from(waits) => Just(Kind::Flaky),
    ];
    let inside = if waits { proptest::option::of(raw()).boxed() } else { Just(None).boxed() };
    let step = (name(), kind, inside).prop_map(|(name, kind, raw)| Node::Step(Step { name, kind, raw }));
    if waits {
        prop_oneof![4 => ask, 4 => step, 2 => raw().prop_map(Node::Raw)].boxed()
    } else {
        prop_oneof![ask, step].boxed()
    }
}

/// A handler; `waits` if there is more in it than questions and steps that end at once.
pub(crate) fn tree(waits: bool) -> impl Strategy<Value = Node> {
    let node = leaf(waits).prop_recursive(5, 28, 4, |inner| {
        let several = |most| proptest::collection::vec(inner.clone(), 2..=most);
        let joined =
            prop_oneof![2 => Just(Joined::Ours), 2 => Just(Joined::Futures), 1 => Just(Joined::Unordered)];
        prop_oneof![
            5 => several(4).prop_map(Node::Seq),
            4 => (joined, several(3)).prop_map(|(joined, nodes)| Node::Join(joined, nodes)),
            2 => (name(), several(3)).prop_map(|(name, nodes)| Node::Try(name, nodes)),
            4 => (name(), several(3)).prop_map(|(name, nodes)| Node::Select(name, nodes)),
            1 => (name(), inner.clone()).prop_map(|(name, node)| Node::Scope(name, Box::new(node))),
            2 => (name(), any::<bool>(), 1_u8..4, inner.clone())
                .prop_map(|(name, scoped, most, body)| Node::Loop { name, scoped, most, body: Box::new(body) }),
            2 => (inner.clone(), inner.clone()).prop_map(|(yes, no)| Node::If(Box::new(yes), Box::new(no))),
            1 => inner.clone().prop_map(|node| Node::Catch(Box::new(node))),
            1 => inner.prop_map(|node| Node::Helper(Box::new(node))),
        ]
    });
    node.prop_map(|mut node| {
        node.name(&mut Frame::default(), false);
        node
    })
}

/// Where a branch stands: the scopes, and the number that loops have come to.
#[derive(Clone, Default)]
pub(crate) struct At {
    pub(crate) scopes: String,
    pub(crate) round: u64,
}

impl At {
    /// What the program gives as a number.
    pub(crate) fn number(&self, name: Name) -> Option<u64> {
        let number = name.number * 100_000 + self.round;
        (number > 0).then_some(number)
    }

    pub(crate) fn path(&self, key: &str, name: Name) -> String {
        match self.number(name) {
            None => format!("{}{key}", self.scopes),
            Some(number) => format!("{}{key}#{number}", self.scopes),
        }
    }

    pub(crate) fn scope(&self, name: Name) -> (String, Self) {
        let scope = format!("{}{}", letter(name), self.number(name).unwrap_or(0));
        let scopes = format!("{}{scope}/", self.scopes);
        (scope, Self { scopes, round: 0 })
    }

    /// The scope of one round of a loop, or the number it has instead.
    pub(crate) fn looped(&self, name: Name, scoped: bool, round: u8) -> (Option<String>, Self) {
        if scoped {
            let scope = format!("{}{}r{round}", letter(name), self.number(name).unwrap_or(0));
            let scopes = format!("{}{scope}/", self.scopes);
            return (Some(scope), Self { scopes, round: 0 });
        }
        (None, Self { scopes: self.scopes.clone(), round: self.round * 5 + u64::from(round) + 1 })
    }
}

pub(crate) fn letter(name: Name) -> &'static str {
    ["a", "b", "c"][usize::from(name.letter)]
}

impl Ask {
    /// The key; `None` for that of the form.
    pub(crate) fn key(&self) -> Option<&'static str> {
        ["a", "b"].get(usize::from(self.name.letter)).copied()
    }

    pub(crate) fn path(&self, at: &At) -> String {
        let of_form = match self.form {
            Form::Pick => "pick",
            Form::Sure => "sure",
            Form::Note => "note",
        };
        at.path(self.key().unwrap_or(of_form), self.name)
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(self, f, 1)
    }
}

fn write(node: &Node, f: &mut fmt::Formatter<'_>, depth: usize) -> fmt::Result {
    let pad = "  ".repeat(depth);
    let key = |name: &Name| match name.number {
        0 => letter(*name).to_owned(),
        number => format!("{}#{number}", letter(*name)),
    };
    let mut block = |head: String, nodes: &[&Node]| {
        writeln!(f, "{pad}{head} {{")?;
        nodes.iter().try_for_each(|node| write(node, f, depth + 1))?;
        writeln!(f, "{pad}}}")
    };
    match node {
        Node::Ask(ask) => {
            let key =
                if ask.key().is_none() { format!("(form)#{}", ask.name.number) } else { key(&ask.name) };
            let (form, outcome) = (ask.form, if ask.unwraps { "?" } else { ".outcome()" });
            writeln!(f, "{pad}ask {key} {form:?}{outcome}{}", if ask.plain { " (same text)" } else { "" })
        }
        Node::Step(step) => {
            let Step { name, kind, raw } = step;
            let raw = raw.map_or(String::new(), |raw| format!(" {raw:?}"));
            writeln!(f, "{pad}step {} {kind:?}{raw}", key(name))
        }
        Node::Raw(raw) => writeln!(f, "{pad}{raw:?}"),
        Node::Seq(nodes) => block("seq".to_owned(), &nodes.iter().collect::<Vec<_>>()),
        Node::Join(joined, nodes) => block(format!("join {joined:?}"), &nodes.iter().collect::<Vec<_>>()),
        Node::Try(name, nodes) => block(format!("try_join {}", key(name)), &nodes.iter().collect::<Vec<_>>()),
        Node::Select(name, nodes) => {
            block(format!("select {}", key(name)), &nodes.iter().collect::<Vec<_>>())
        }
        Node::Scope(name, node) => block(format!("scope {}", key(name)), &[node]),
        Node::Loop { name, scoped, most, body } => {
            let how = if *scoped { "scoped" } else { "numbered" };
            block(format!("loop {} {how} {most}", key(name)), &[body])
        }
        Node::If(yes, no) => block("if".to_owned(), &[yes, no]),
        Node::Catch(node) => block("catch".to_owned(), &[node]),
        Node::Helper(node) => block("helper".to_owned(), &[node]),
    }
}

/// Numbers that say what they are made of.
pub(crate) fn mix(what: &str, path: &str, more: u64) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let bytes = [what.as_bytes(), b"\0", path.as_bytes(), b"\0", &more.to_le_bytes()];
    for byte in bytes.into_iter().flatten() {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    // So that the low bits are as good as the others.
    hash ^ (hash >> 29) ^ (hash >> 47)
}

/// What the person says to a question.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Said {
    Accept(u64),
    Decline,
    Cancel,
}

pub(crate) fn said(seed: u64, path: &str) -> Said {
    let hash = mix("person", path, seed);
    match hash % 10 {
        0 => Said::Decline,
        1 => Said::Cancel,
        _ => Said::Accept((hash >> 8) % 4),
    }
}

/// What a branch has come to after an answer.
pub(crate) fn heard(said: Said, path: &str, ask: &Ask, value: u64) -> Result<u64, Stop> {
    match said {
        Said::Accept(n) => Ok(mix("accepted", path, value ^ n)),
        Said::Decline if ask.unwraps => Err(Stop(mix("declined", path, 0))),
        Said::Decline => Ok(mix("declined", path, value)),
        Said::Cancel if ask.unwraps => Err(Stop(mix("cancelled", path, 0))),
        Said::Cancel => Ok(mix("cancelled", path, value)),
    }
}

/// What a branch has come to after a step.
pub(crate) fn done(path: &str, step: &Step, value: u64) -> Result<u64, Stop> {
    match step.kind {
        Kind::Fails => Err(Stop(mix("failed", path, value))),
        _ => Ok(mix("done", path, value)),
    }
}

/// What joined branches came to together.
pub(crate) fn together(results: Vec<Result<u64, Stop>>) -> Result<u64, Stop> {
    results.into_iter().try_fold(0, |all, one| Ok(mix("join", "", all ^ one?.rotate_left(7))))
}

/// Why a branch ended early.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Stop(pub(crate) u64);

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "stopped {:x}", self.0)
    }
}
