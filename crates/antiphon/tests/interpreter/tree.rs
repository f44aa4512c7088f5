//! Programs as trees, and the keys of their questions and steps.

use crate::stop::Stop;

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

/// The words of a question.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Text {
    /// The same words for all such questions.
    Same,
    /// Its path, and the value so far.
    Own,
    /// These, and the version of the world.
    World,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Ask {
    pub(crate) name: Name,
    pub(crate) form: Form,
    /// A refusal ends the branch.
    pub(crate) unwraps: bool,
    pub(crate) text: Text,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    Done,
    Fails,
    /// Made with `step_with`.
    Pinned,
    /// Made with `step_retry`; so many attempts come to no outcome, by an error or a panic.
    Retried {
        fails: u8,
        panics: bool,
    },
    /// Made with `step`; its first attempt comes to no outcome, and so the leg fails.
    Flaky {
        panics: bool,
    },
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) name: Name,
    pub(crate) kind: Kind,
    /// The waiting in the body of the step.
    pub(crate) raw: Option<Raw>,
    /// Finds out if it had its effect, after a crash.
    pub(crate) reconciles: bool,
}

/// Waiting that nobody records.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Raw {
    Yields(u8),
    Task(u8),
    Sleeps(u16),
    /// Waits without end: for a branch that loses.
    Never,
}

/// The function that joins branches.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Joined {
    Ours,
    Futures,
    Macro,
    Unordered,
    /// Runs at most this number at once.
    Buffered(u8),
}

#[derive(Clone)]
pub(crate) enum Node {
    Ask(Ask),
    Step(Step),
    Raw(Raw),
    /// The call becomes a task here, if it can.
    IntoTask,
    /// A checkpoint; `now`: it ends the leg.
    Checkpoint {
        name: Name,
        now: bool,
    },
    /// Panics whenever the handler comes here; only in an `Unwind`.
    Throws,
    /// Catches a panic.
    Unwind(Name, Box<Node>),
    /// The handler panics when it comes here for the first time; not in an `Unwind`.
    Panics(Name),
    Seq(Vec<Node>),
    Join(Joined, Vec<Node>),
    /// Ends with the first error, and drops the others.
    Try(Name, Vec<Node>),
    Select(Name, Vec<Node>),
    /// Two branches: the second waits for the value of the first, through a channel.
    Pipe(Box<Node>, Box<Node>),
    /// Two branches that are joined; `Takes` in the second waits for the value of the first.
    Feed(Joined, Box<Node>, Box<Node>),
    Takes,
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

/// One round of questions that the handler returns.
#[derive(Clone)]
pub(crate) struct Stage {
    pub(crate) before: Node,
    pub(crate) asks: Vec<Ask>,
}

/// A whole handler.
#[derive(Clone)]
pub(crate) enum Program {
    Awaits(Node),
    /// Returns questions, with awaited parts before and behind them.
    ByHand(Vec<Stage>, Node),
    /// Takes the values of three resolvers, `third` and `second`, which takes that of `first`.
    Resolved([Node; 3], Node),
}

/// The scopes of the resolvers, which are their names.
pub(crate) const RESOLVERS: [&str; 3] = ["first", "second", "third"];

/// Counts the uses of each letter in one scope.
#[derive(Default)]
struct Frame([[u64; 3]; 8]);

impl Frame {
    fn number(&mut self, space: usize, name: &mut Name) {
        let used = &mut self.0[space][usize::from(name.letter)];
        name.number = *used;
        *used += 1;
    }
}

/// The kinds of nodes around a node.
#[derive(Clone, Copy, Default)]
struct Inside {
    a_try: bool,
    an_unwind: bool,
    a_feed: bool,
}

impl Node {
    /// Gives every key its number, and every panic what catches it. In a `Try`, several answers that come at once are
    /// in no order: none of them fails there.
    fn name(&mut self, frame: &mut Frame, inside: Inside) {
        match self {
            Self::Ask(ask) => {
                frame.number(0, &mut ask.name);
                ask.unwraps &= !inside.a_try;
            }
            Self::Step(step) => frame.number(1, &mut step.name),
            Self::Raw(_) | Self::IntoTask => {}
            Self::Checkpoint { name, .. } => frame.number(5, name),
            Self::Throws if !inside.an_unwind => *self = Self::Seq(Vec::new()),
            Self::Panics(_) if inside.an_unwind => *self = Self::Throws,
            Self::Throws => {}
            Self::Panics(name) => frame.number(6, name),
            Self::Unwind(name, node) => {
                frame.number(7, name);
                node.name(frame, Inside { an_unwind: true, ..inside });
            }
            Self::Seq(nodes) | Self::Join(_, nodes) => {
                nodes.iter_mut().for_each(|node| node.name(frame, inside));
            }
            Self::Takes if !inside.a_feed => *self = Self::Seq(Vec::new()),
            Self::Takes => {}
            Self::Feed(_, first, second) => {
                first.name(frame, inside);
                second.name(frame, Inside { a_feed: true, ..inside });
            }
            Self::Pipe(first, second) => {
                first.name(frame, inside);
                second.name(frame, inside);
            }
            Self::Try(name, nodes) => {
                frame.number(2, name);
                nodes.iter_mut().for_each(|node| node.name(frame, Inside { a_try: true, ..inside }));
            }
            Self::Select(name, nodes) => {
                frame.number(3, name);
                nodes.iter_mut().for_each(|node| node.name(frame, inside));
            }
            Self::Scope(name, node) => {
                frame.number(4, name);
                node.name(&mut Frame::default(), inside);
            }
            Self::Loop { name, scoped, body, .. } => {
                frame.number(4, name);
                if *scoped {
                    body.name(&mut Frame::default(), inside);
                } else {
                    body.name(frame, inside);
                }
            }
            Self::If(yes, no) => {
                yes.name(frame, inside);
                no.name(frame, inside);
            }
            Self::Catch(node) => node.name(frame, Inside { a_try: false, ..inside }),
            Self::Helper(node) => node.name(frame, inside),
        }
    }

    /// Returns `true` if `holds` does for this node or for one below it.
    pub(crate) fn any(&self, holds: &dyn Fn(&Self) -> bool) -> bool {
        let below = match self {
            Self::Ask(_)
            | Self::Step(_)
            | Self::Raw(_)
            | Self::IntoTask
            | Self::Checkpoint { .. }
            | Self::Panics(_)
            | Self::Takes
            | Self::Throws => false,
            Self::Seq(nodes) | Self::Join(_, nodes) | Self::Try(_, nodes) | Self::Select(_, nodes) => {
                nodes.iter().any(|node| node.any(holds))
            }
            Self::Pipe(first, second) | Self::Feed(_, first, second) | Self::If(first, second) => {
                first.any(holds) || second.any(holds)
            }
            Self::Scope(_, node) | Self::Unwind(_, node) | Self::Catch(node) | Self::Helper(node) => {
                node.any(holds)
            }
            Self::Loop { body, .. } => body.any(holds),
        };
        below || holds(self)
    }

    /// Returns `true` if the node waits for anything but questions, or ends a leg for another reason than a question.
    fn waits(&self) -> bool {
        self.any(&Self::waits_itself)
    }

    /// The same, without what is below the node.
    fn waits_itself(&self) -> bool {
        match self {
            Self::Raw(_) | Self::IntoTask | Self::Panics(_) | Self::Takes => true,
            Self::Checkpoint { now, .. } => *now,
            Self::Step(step) => step.raw.is_some() || matches!(step.kind, Kind::Flaky { .. }),
            _ => false,
        }
    }

    /// Returns `true` if a panic below this node drops branches, and what these have come to is nowhere recorded: another run of
    /// the same leg may see another end of them.
    pub(crate) fn panics_in_a_race(&self) -> bool {
        let panics = |node: &Self| matches!(node, Self::Throws | Self::Panics(_));
        let races = |node: &Self| {
            matches!(
                node,
                Self::Join(..) | Self::Try(..) | Self::Select(..) | Self::Pipe(..) | Self::Feed(..)
            )
        };
        let waits = |node: &Self| !panics(node) && node.waits_itself();
        self.any(&panics) && self.any(&races) && self.any(&waits)
    }

    fn fails(&self) -> bool {
        let fails = |node: &Self| match node {
            Self::Panics(_) => true,
            Self::Step(step) => matches!(step.kind, Kind::Flaky { .. }),
            _ => false,
        };
        self.any(&fails)
    }

    fn retries(&self) -> bool {
        self.any(&|node| {
            matches!(node, Self::Step(Step { kind: Kind::Retried { .. } | Kind::Flaky { .. }, .. }))
        })
    }

    fn promotes(&self) -> bool {
        self.any(&|node| matches!(node, Self::IntoTask))
    }

    fn buffers(&self) -> bool {
        let is_buffered = |joined: &Joined| matches!(joined, Joined::Buffered(_));
        self.any(&|node| match node {
            Self::Join(joined, _) | Self::Feed(joined, ..) => is_buffered(joined),
            _ => false,
        })
    }

    fn leaves_unknown(&self) -> bool {
        self.any(&|node| matches!(node, Self::Step(Step { reconciles: false, .. })))
    }

    fn unwinds(&self) -> bool {
        self.any(&|node| matches!(node, Self::Unwind(..)))
    }

    fn pauses(&self) -> bool {
        self.any(&|node| matches!(node, Self::Checkpoint { now: true, .. }))
    }
}

impl Program {
    /// Returns the program with numbers for all keys.
    pub(crate) fn named(mut self) -> Self {
        let mut frame = Frame::default();
        match &mut self {
            Self::Awaits(node) => node.name(&mut frame, Inside::default()),
            Self::ByHand(stages, last) => {
                stages.iter_mut().for_each(|stage| stage.before.name(&mut frame, Inside::default()));
                last.name(&mut frame, Inside::default());
            }
            Self::Resolved(resolvers, last) => {
                resolvers.iter_mut().for_each(|node| node.name(&mut Frame::default(), Inside::default()));
                last.name(&mut frame, Inside::default());
            }
        }
        self
    }

    pub(crate) fn any(&self, holds: impl Fn(&Node) -> bool) -> bool {
        match self {
            Self::Awaits(node) => holds(node),
            Self::ByHand(stages, last) => stages.iter().any(|stage| holds(&stage.before)) || holds(last),
            Self::Resolved(resolvers, last) => resolvers.iter().any(&holds) || holds(last),
        }
    }

    /// Returns `true` if each leg can be predicted.
    pub(crate) fn is_exact(&self) -> bool {
        !self.any(Node::waits)
    }

    /// Returns `true` if a leg may fail.
    pub(crate) fn fails(&self) -> bool {
        self.any(Node::fails)
    }

    /// Returns `true` if an attempt of a step may come to no outcome.
    pub(crate) fn retries(&self) -> bool {
        self.any(Node::retries)
    }

    /// Returns `true` if the call may become a task.
    pub(crate) fn promotes(&self) -> bool {
        self.any(Node::promotes)
    }

    /// Returns `true` if a branch may wait for another one to begin.
    pub(crate) fn buffers(&self) -> bool {
        self.any(Node::buffers)
    }

    /// Returns `true` if nobody finds out if one of its steps had its effect.
    pub(crate) fn leaves_unknown(&self) -> bool {
        self.any(Node::leaves_unknown)
    }

    /// Returns `true` if a panic may be caught.
    pub(crate) fn unwinds(&self) -> bool {
        self.any(Node::unwinds)
    }

    /// Returns `true` if a leg may end at a checkpoint.
    pub(crate) fn pauses(&self) -> bool {
        self.any(Node::pauses)
    }
}

/// The position of a branch: the scopes, and the number of the present loop round.
#[derive(Clone, Default)]
pub(crate) struct BranchPosition {
    pub(crate) scopes: String,
    pub(crate) round: u64,
    /// The result that `Takes` waits for; only where results are known.
    pub(crate) feed: Option<Result<u64, Stop>>,
}

impl BranchPosition {
    /// Returns the position in the scope of a resolver.
    pub(crate) fn in_resolver(resolver: usize) -> Self {
        Self { scopes: format!("{}/", RESOLVERS[resolver]), ..Self::default() }
    }

    /// The number that the program gives to a key.
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
        (scope, Self { scopes, round: 0, feed: self.feed })
    }

    /// The scope of one round of a loop, or the number it has instead.
    pub(crate) fn looped(&self, name: Name, scoped: bool, round: u8) -> (Option<String>, Self) {
        if scoped {
            let scope = format!("{}{}r{round}", letter(name), self.number(name).unwrap_or(0));
            let scopes = format!("{}{scope}/", self.scopes);
            return (Some(scope), Self { scopes, round: 0, feed: self.feed });
        }
        (None, Self { round: self.round * 5 + u64::from(round) + 1, ..self.clone() })
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

    pub(crate) fn path(&self, at: &BranchPosition) -> String {
        let of_form = match self.form {
            Form::Pick => "pick",
            Form::Sure => "sure",
            Form::Note => "note",
        };
        at.path(self.key().unwrap_or(of_form), self.name)
    }

    /// The key of a question that the handler returns.
    pub(crate) fn by_hand(stage: usize, number: usize) -> String {
        format!("h{stage}q{number}")
    }
}
