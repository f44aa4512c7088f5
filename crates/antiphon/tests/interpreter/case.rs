//! One case: a program, a client, and the constructors they are written with in the table of kept programs.

use crate::{
    shapes::ServerKind,
    tree::{Ask, Form, Joined, Kind, Name, Node, Program, Raw, Stage, Step, Text},
};
use std::{
    fmt::{self, Formatter},
    sync::Arc,
};

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Carrier {
    Sealed,
    Pushed,
    /// In a session, with `write_ahead` on a store in memory.
    PushedMemory,
    /// In requests, with `write_ahead` on a store in memory.
    Memory,
    /// The same on SQLite.
    Sqlite,
    /// As a task, on a store in memory.
    TaskMemory,
    /// The same on SQLite.
    TaskSqlite,
}

#[derive(Clone)]
pub(crate) struct Case {
    pub(crate) carrier: Carrier,
    pub(crate) program: Arc<Program>,
    pub(crate) seed: u64,
    pub(crate) server: ServerKind,
    /// An interrupted step that is not reconciled runs again.
    pub(crate) reruns: bool,
    /// The first requests of the client. After these, the client answers all questions.
    pub(crate) moves: Vec<Move>,
}

impl Carrier {
    pub(crate) fn is_pushed(self) -> bool {
        matches!(self, Self::Pushed | Self::PushedMemory)
    }

    pub(crate) fn is_task(self) -> bool {
        matches!(self, Self::TaskMemory | Self::TaskSqlite)
    }
}

/// One request of the client; on a session, what the client does next.
#[derive(Clone, Copy, Default)]
pub(crate) struct Move {
    /// The questions that are answered, one bit each.
    pub(crate) answers: u8,
    /// Those of them whose answer does not fit.
    pub(crate) bad: u8,
    /// Adds answers to questions that were not asked now, or never.
    pub(crate) extra: bool,
    pub(crate) reversed: bool,
    /// The version of the world from here on.
    pub(crate) world: u8,
    /// The time that passes before, in [`PAUSES`]. With a store only.
    pub(crate) pause: u8,
    pub(crate) what: MoveKind,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum MoveKind {
    #[default]
    Sends,
    /// The reply is lost. On a session: some time passes first.
    Loses,
    /// The request is dropped at this poll; `rests`: then time passes. On a session: it is cancelled.
    Cuts { polls: u8, rests: bool },
    /// Goes on from an older state. On a session: each answer is sent twice.
    Returns(u8),
    /// Sends two copies at once, to two instances, and goes on from the second reply or the first. On a session: as
    /// `Returns`.
    Twice(bool),
    /// The client hangs up after so many milliseconds, and sends the same request again. With a store only, as all below.
    HangsUp(u8),
    /// The process dies at an operation of its store, which takes effect or not; the same request goes to another one.
    Dies { after: u8, takes_effect: bool },
    /// The task is cancelled.
    Cancels,
}

/// The pauses of a client, in milliseconds.
pub(crate) const PAUSES: [u64; 8] = [0, 0, 1, 5, 20, 60, 1_000, 4_000];

impl Case {
    /// Returns `true` if each leg can be predicted as long as the world does not change.
    pub(crate) fn is_exact(&self) -> bool {
        // In a session a handler may meet two worlds within one request.
        let has_one_world = !self.carrier.is_pushed() || self.moves.iter().all(|one| one.world == 0);
        self.program.is_exact() && has_one_world
    }
}

impl Move {
    /// All questions are answered.
    pub(crate) fn all() -> Self {
        Self { answers: 0xff, ..Self::default() }
    }
}

pub(crate) fn answers(answers: u8) -> Move {
    Move { answers, ..Move::default() }
}

/// The rest of a move, in the order in which it is printed.
#[allow(dead_code, reason = "for the rows to come")]
impl Move {
    pub(crate) fn bad(self, bad: u8) -> Self {
        Self { bad, ..self }
    }

    pub(crate) fn extra(self) -> Self {
        Self { extra: true, ..self }
    }

    pub(crate) fn reversed(self) -> Self {
        Self { reversed: true, ..self }
    }

    pub(crate) fn world(self, world: u8) -> Self {
        Self { world, ..self }
    }

    pub(crate) fn pause(self, pause: u8) -> Self {
        Self { pause, ..self }
    }

    pub(crate) fn what(self, what: MoveKind) -> Self {
        Self { what, ..self }
    }
}

impl fmt::Debug for Move {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "answers({:#x})", self.answers)?;
        if self.bad != 0 {
            write!(f, ".bad({:#x})", self.bad)?;
        }
        if self.extra {
            write!(f, ".extra()")?;
        }
        if self.reversed {
            write!(f, ".reversed()")?;
        }
        if self.world != 0 {
            write!(f, ".world({})", self.world)?;
        }
        if self.pause != 0 {
            write!(f, ".pause({})", self.pause)?;
        }
        match self.what {
            MoveKind::Sends => Ok(()),
            what => write!(f, ".what({what:?})"),
        }
    }
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { carrier, program, seed, server, reruns, moves } = self;
        writeln!(f, "\n    carrier: {carrier:?}, seed: {seed}, server: {server:?}, reruns: {reruns},")?;
        writeln!(f, "    program: {program:?},")?;
        write!(f, "    moves: {moves:?}")
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Awaits(node) => {
                write!(f, "Awaits(")?;
                write_node(node, f, 1)?;
            }
            Self::ByHand(stages, last) => {
                write!(f, "ByHand(vec![")?;
                write_all(stages.iter(), f, |stage, f| write!(f, "{stage:?}"))?;
                write!(f, "], ")?;
                write_node(last, f, 1)?;
            }
            Self::Resolved(resolvers, last) => {
                write!(f, "Resolved([")?;
                write_all(resolvers.iter(), f, |node, f| write_node(node, f, 2))?;
                write!(f, "], ")?;
                write_node(last, f, 1)?;
            }
        }
        write!(f, ")")
    }
}

impl fmt::Debug for Stage {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "stage(")?;
        write_node(&self.before, f, 2)?;
        write!(f, ", [")?;
        write_all(self.asks.iter(), f, |ask, f| write_node(&Node::Ask(*ask), f, 2))?;
        write!(f, "])")
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write_node(self, f, 0)
    }
}

fn write_all<T>(
    all: impl Iterator<Item = T>,
    f: &mut Formatter<'_>,
    write: impl Fn(T, &mut Formatter<'_>) -> fmt::Result,
) -> fmt::Result {
    for (n, one) in all.enumerate() {
        if n > 0 {
            write!(f, ", ")?;
        }
        write(one, f)?;
    }
    Ok(())
}

/// Writes a node as the constructors below.
fn write_node(node: &Node, f: &mut Formatter<'_>, depth: usize) -> fmt::Result {
    let letter = |name: &Name| ["A", "B", "C"][usize::from(name.letter)];
    let block = |head: String, nodes: &[&Node], end: &str, f: &mut Formatter<'_>| {
        let pad = "    ".repeat(depth + 1);
        write!(f, "{head}")?;
        for node in nodes {
            write!(f, "\n    {pad}")?;
            write_node(node, f, depth + 1)?;
            write!(f, ",")?;
        }
        write!(f, "\n    {}{end}", "    ".repeat(depth))
    };
    let all = |nodes: &'_ [Node], head: String, f: &mut Formatter<'_>| {
        block(format!("{head}["), &nodes.iter().collect::<Vec<_>>(), "])", f)
    };
    match node {
        Node::Ask(ask) => {
            write!(f, "ask({}, {:?})", letter(&ask.name), ask.form)?;
            write!(f, "{}", if ask.unwraps { ".unwraps()" } else { "" })?;
            match ask.text {
                Text::Own => Ok(()),
                text => write!(f, ".text({text:?})"),
            }
        }
        Node::Step(Step { name, kind, raw, reconciles }) => {
            write!(f, "step({}, {kind:?}){}", letter(name), if *reconciles { ".reconciles()" } else { "" })?;
            raw.map_or(Ok(()), |raw| write!(f, ".waits_for({raw:?})"))
        }
        Node::Raw(it) => write!(f, "raw({it:?})"),
        Node::Checkpoint { name, now } => write!(f, "checkpoint({}, {now})", letter(name)),
        Node::Panics(name) => write!(f, "panics({})", letter(name)),
        Node::Throws => write!(f, "Throws"),
        Node::Takes => write!(f, "Takes"),
        Node::IntoTask => write!(f, "IntoTask"),
        Node::Feed(joined, first, second) => block(format!("feed({joined:?}, "), &[first, second], ")", f),
        Node::Unwind(name, node) => block(format!("unwind({}, ", letter(name)), &[node], ")", f),
        Node::Seq(nodes) => all(nodes, "seq(".to_owned(), f),
        Node::Join(joined, nodes) => all(nodes, format!("join({joined:?}, "), f),
        Node::Try(name, nodes) => all(nodes, format!("try_join({}, ", letter(name)), f),
        Node::Select(name, nodes) => all(nodes, format!("select({}, ", letter(name)), f),
        Node::Pipe(first, second) => block("pipe(".to_owned(), &[first, second], ")", f),
        Node::Scope(name, node) => block(format!("scope({}, ", letter(name)), &[node], ")", f),
        Node::Loop { name, scoped, most, body } => {
            block(format!("repeat({}, {scoped}, {most}, ", letter(name)), &[body], ")", f)
        }
        Node::If(yes, no) => block("branch(".to_owned(), &[yes, no], ")", f),
        Node::Catch(node) => block("catch(".to_owned(), &[node], ")", f),
        Node::Helper(node) => block("helper(".to_owned(), &[node], ")", f),
    }
}

pub(crate) const A: Name = Name { letter: 0, number: 0 };
pub(crate) const B: Name = Name { letter: 1, number: 0 };
pub(crate) const C: Name = Name { letter: 2, number: 0 };

pub(crate) fn ask(name: Name, form: Form) -> Node {
    Node::Ask(Ask { name, form, unwraps: false, text: Text::Own })
}

/// A round of questions by hand, behind what is awaited before.
pub(crate) fn stage<const N: usize>(before: Node, asks: [Node; N]) -> Stage {
    let asks = asks.into_iter().filter_map(|node| if let Node::Ask(ask) = node { Some(ask) } else { None });
    Stage { before, asks: asks.collect() }
}

pub(crate) fn step(name: Name, kind: Kind) -> Node {
    Node::Step(Step { name, kind, raw: None, reconciles: false })
}

pub(crate) fn seq<const N: usize>(nodes: [Node; N]) -> Node {
    Node::Seq(nodes.into())
}

pub(crate) fn join<const N: usize>(joined: Joined, nodes: [Node; N]) -> Node {
    Node::Join(joined, nodes.into())
}

pub(crate) fn try_join<const N: usize>(name: Name, nodes: [Node; N]) -> Node {
    Node::Try(name, nodes.into())
}

pub(crate) fn catch(node: Node) -> Node {
    Node::Catch(Box::new(node))
}

pub(crate) fn select<const N: usize>(name: Name, nodes: [Node; N]) -> Node {
    Node::Select(name, nodes.into())
}

pub(crate) fn repeat(name: Name, scoped: bool, most: u8, body: Node) -> Node {
    Node::Loop { name, scoped, most, body: Box::new(body) }
}

#[allow(dead_code, reason = "for the rows to come")]
pub(crate) fn pipe(first: Node, second: Node) -> Node {
    Node::Pipe(Box::new(first), Box::new(second))
}

pub(crate) fn feed(joined: Joined, first: Node, second: Node) -> Node {
    Node::Feed(joined, Box::new(first), Box::new(second))
}

pub(crate) fn unwind(name: Name, node: Node) -> Node {
    Node::Unwind(name, Box::new(node))
}

pub(crate) fn raw(raw: Raw) -> Node {
    Node::Raw(raw)
}

impl Node {
    pub(crate) fn unwraps(mut self) -> Self {
        if let Self::Ask(ask) = &mut self {
            ask.unwraps = true;
        }
        self
    }

    pub(crate) fn text(mut self, text: Text) -> Self {
        if let Self::Ask(ask) = &mut self {
            ask.text = text;
        }
        self
    }

    #[allow(dead_code, reason = "for the rows to come")]
    pub(crate) fn reconciles(mut self) -> Self {
        if let Self::Step(step) = &mut self {
            step.reconciles = true;
        }
        self
    }

    /// Waits in the body of this step.
    pub(crate) fn waits_for(mut self, raw: Raw) -> Self {
        if let Self::Step(step) = &mut self {
            step.raw = Some(raw);
        }
        self
    }
}
