"""One call that asks, over two instances behind a load balancer."""
from .svg import Picture

CLIENT, BALANCER, A, B = 180, 380, 590, 810


def draw():
    picture = Picture(
        930, 516, "One call over two instances",
        "A sequence diagram. Leg 1: the client sends tools/call to instance A, which answers with the question and the sealed "
        "request state, and keeps nothing. The user answers. Leg 2: the client sends the same call with the answer and the state "
        "to instance B, which opens the state, runs the handler again and returns the result.",
    )
    for x, name, end in ((CLIENT, "client", 500), (BALANCER, "load balancer", 500), (A, "instance A", 330), (B, "instance B", 500)):
        picture.line(x, 52, x, end, "life")
        picture.rect(x - 62, 20, 124, 32, "box", 5)
        picture.text(x, 41, name, "text strong", "middle")

    def message(y, start, end, text):
        picture.arrow(start, end, y)
        left = min(start, end)
        picture.text(left + 12, y - 8, text, "text mono over")

    def leg(top, bottom, name):
        picture.line(92, top, 92, bottom, "wire", 1.6)
        picture.text(82, (top + bottom) / 2 - 3, name, "text strong", "end")
        picture.text(82, (top + bottom) / 2 + 14, "one POST", "muted small", "end")

    leg(88, 226, "leg 1")
    message(96, CLIENT, A, 'tools/call provision {"name": "orders"}')
    picture.note(A, 110, 212, ["the handler runs until it awaits", "ctx.elicit(..), and is dropped;", "its record is sealed"])
    message(218, A, CLIENT, "InputRequiredResult: the question, requestState")
    picture.note(A, 240, 212, ["keeps nothing of the call:", "it may stop now"])
    picture.line(A - 7, 323, A + 7, 337, "cross", 2)
    picture.line(A + 7, 323, A - 7, 337, "cross", 2)
    picture.note(CLIENT, 240, 150, ["the user answers:", "eu-west-1"])

    leg(346, 484, "leg 2")
    message(354, CLIENT, B, "the same call + inputResponses + requestState")
    picture.note(B, 368, 212, ["opens the state: authentic, in", "time, of this call; the handler", "runs again, with the answer"])
    message(476, B, CLIENT, 'result: Provisioned "orders" in eu-west-1.')
    return picture.render()
