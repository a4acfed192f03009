"""Simple stories from a small grammar, without end: what the example model is trained on.

A story keeps to its hero, friend, place and thing, so that a model has something to remember:

    python stories.py --count 3 --seed 7
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from itertools import islice
from random import Random

Choice = list[str]

HEROES = {
    "she": ["Ada", "Mina", "Rosa", "Lea", "Ivy", "Nora", "Tilda", "Zoe"],
    "he": ["Ben", "Otto", "Finn", "Leo", "Emil", "Noah", "Theo", "Max"],
}
ANIMALS = ["fox", "bear", "mouse", "owl", "rabbit", "frog", "duck", "hedgehog", "squirrel", "cat", "goat", "mole"]
LIKES = ["little", "curious", "brave", "cheerful", "quiet", "clever", "gentle", "lazy", "shy", "busy"]
PLACES = {
    "forest": ["under an old oak", "behind a big rock", "between the ferns", "at the foot of a pine"],
    "garden": ["under the apple tree", "behind the shed", "between the roses", "next to the well"],
    "village": ["behind the mill", "under the stone bridge", "next to the bakery", "in front of the tower"],
    "meadow": ["beside the brook", "under a willow", "in the tall grass", "behind the fence"],
    "harbour": ["under an upturned boat", "behind the nets", "at the end of the pier", "next to the lighthouse"],
    "valley": ["beside the waterfall", "in a dark cave", "on a flat stone", "under a hazel bush"],
}
THINGS = {
    "kite": "fly high",
    "lantern": "shine at night",
    "boat": "float on the pond",
    "drum": "sound like thunder",
    "clock": "tell the time",
    "bell": "ring in the morning",
    "basket": "carry berries",
    "flute": "sing like a bird",
    "wagon": "roll down the hill",
    "blanket": "keep everyone warm",
}
COLOURS = ["red", "blue", "green", "yellow", "silver", "white", "tiny", "round"]
WEATHER = [
    "The sun was shining and the air was warm.",
    "It had rained all night and the grass was wet.",
    "A cold wind blew and the clouds were grey.",
    "Snow lay on every roof and every branch.",
    "The morning was misty and very still.",
]
FOODS = ["honey cake", "plum jam", "warm bread", "nut pie", "berry soup", "apple tart", "pear cake", "cheese"]
OPENINGS = [
    "Once upon a time there was a {like} {kind} whose name was {hero}. {Pro} lived in a {place}.",
    "Once upon a time a {like} {kind} lived in a {place}. Everyone called {obj} {hero}.",
    "Long ago, in a {place} far away, there lived a {like} {kind}. {Poss} name was {hero}.",
    "There once was a {like} {kind} in a {place}. {Poss} name was {hero}, and {pro} loved {food}.",
    "{hero} was a {like} {kind} who lived in a {place}. {Pro} loved {food} more than anything else.",
    "In a small house in the {place} lived a {like} {kind}. {Poss} name was {hero}.",
]
OWNING = [
    "{hero} had a {colour} {thing}. It could {power}.",
    "{Poss} dearest thing in the world was a {colour} {thing}, because it could {power}.",
    "On {poss} birthday {hero} got a {colour} {thing}. It could {power}, and {pro} was proud of it.",
    "{hero} had made a {colour} {thing} with {poss} own hands. It could {power}.",
]
LOSING = [
    "One day the {thing} was gone. {hero} looked in every corner of the house, but it was not there.",
    "One morning {hero} woke up and could not find the {thing}. {Pro} was very sad.",
    "But when {pro} came home one evening, the {thing} was gone. A tear ran down {poss} nose.",
    "Then a storm came and carried the {thing} away. {hero} ran after it, but the wind was faster.",
]
MEETING = [
    'On the way {pro} met a {friend_like} {friend}. "Why do you look so sad?" asked the {friend}.',
    'Soon {pro} saw a {friend_like} {friend} that was eating {food}. "Can I help you?" asked the {friend}.',
    'A {friend_like} {friend} heard {obj} and came closer. "What has happened?" asked the {friend}.',
]
ANSWERING = [
    '"My {colour} {thing} is gone," said {hero}. "Then we will look for it together," said the {friend}.',
    '"I have lost my {thing}," said {hero}. "Two see more than one," said the {friend}, and they went on.',
    '{hero} told the {friend} about the {thing}. "Do not cry," said the {friend}. "I know where to look."',
]
SEARCHING = [
    "They looked {spot}, but there was only {found}.",
    "First they looked {spot}. There they found {found}, and nothing else.",
    "They searched {spot} and saw {found}, but no {thing}.",
    '"Maybe it is {spot}," said {hero}. But all they saw there was {found}.',
]
FOUND = ["an old shoe", "a sleeping snail", "a heap of leaves", "a broken cup", "three blue eggs", "a rusty key"]
FINDING = [
    "At last they looked {last}, and there it was: the {colour} {thing}!",
    'Then the {friend} called, "Look {last}!" And there lay the {thing}, just as {colour} as before.',
    "When it was nearly dark, they came to a place {last}. Something {colour} was lying there. It was the {thing}!",
]
WANTING = [
    "One day {hero} wanted to visit the {friend} on the other side of the {place}.",
    "One morning {hero} heard that the {friend} was ill and had nothing to eat.",
    "It was the day of the great feast, and {hero} had to bring something to eat.",
]
GOING = [
    "So {pro} took some {food}, put it into a bag and went off.",
    "{Pro} packed {food} and {food2} and closed the door.",
    "So {pro} made {food} and sang a song.",
]
HINDERING = [
    "But the bridge was broken, and the water was deep.",
    "But a big stone lay on the path, and nobody could pass.",
    "But soon {pro} lost the way, and it was getting dark.",
    "But a gate was closed, and nobody had the key.",
]
SOLVING = [
    "{hero} thought for a while. Then {pro} took the {thing} out of the bag. Was it not made to {power}? It was, and so"
    " {pro} could go on.",
    '"I will not give up," said {hero}. {Pro} tried once, {pro} tried twice, and the third time it worked.',
    'A {helper} came along and laughed. "I will help you if I may have some {food}," it said. {hero} gave it half of'
    " all {pro} had.",
]
ARRIVING = [
    "When {pro} came to the {friend}, both of them were glad. They ate {food} until the moon came up.",
    'The {friend} was already waiting. "You are a good friend," said the {friend}, and they danced all night.',
    "In the evening {hero} and the {friend} sat by the fire, ate {food} and told each other stories.",
]
THANKING = [
    '"Thank you," said {hero}. "Without you I would never have found it."',
    '{hero} was so happy that {pro} jumped up and down. "Thank you, dear {friend}!"',
    "They laughed and went home, and {hero} gave the {friend} a big piece of {food}.",
]
ENDINGS = [
    "From that day on {hero} and the {friend} were the best of friends.",
    "And that night {hero} slept well and dreamed of the {thing}.",
    "And if the {thing} has not been lost again, {hero} still has it today.",
    "{hero} learned that a friend is worth more than anything.",
    "Since then {hero} always shares {poss} {food} with the {friend}.",
]


def story(random: Random) -> str:
    """One story, a line of text for each paragraph."""
    pro = random.choice(["she", "he"])
    place = random.choice(sorted(PLACES))
    thing = random.choice(sorted(THINGS))
    friend, helper, kind = random.sample(ANIMALS, 3)
    if random.random() < 0.3:
        kind = "girl" if pro == "she" else "boy"
    foods = random.sample(FOODS, 2)
    words = {
        "pro": pro,
        "Pro": pro.capitalize(),
        "obj": "her" if pro == "she" else "him",
        "poss": "her" if pro == "she" else "his",
        "Poss": "Her" if pro == "she" else "His",
        "hero": random.choice(HEROES[pro]),
        "like": random.choice(LIKES),
        "kind": kind,
        "place": place,
        "thing": thing,
        "power": THINGS[thing],
        "colour": random.choice(COLOURS),
        "friend": friend,
        "friend_like": random.choice(LIKES),
        "helper": helper,
        "food": foods[0],
        "food2": foods[1],
    }
    *spots, last = random.sample(PLACES[place], 3)
    words["last"] = last

    def say(*choices: Choice, **more: str) -> str:
        return " ".join(random.choice(choice).format(**words, **more) for choice in choices)

    paragraphs = [say(OPENINGS, OWNING)]
    if random.random() < 0.6:
        pairs = zip(spots, random.sample(FOUND, 2), strict=True)
        looking = [say(SEARCHING, spot=spot, found=found) for spot, found in pairs]
        paragraphs += [say(LOSING), say(MEETING, ANSWERING), " ".join(looking[: random.randint(1, 2)])]
        paragraphs += [say(FINDING, THANKING), say(ENDINGS)]
    else:
        paragraphs += [say(WANTING, WEATHER, GOING), say(HINDERING, SOLVING), say(ARRIVING), say(ENDINGS)]
    text = "\n".join(paragraphs)
    for vowel in "aeiou":
        text = text.replace(f" a {vowel}", f" an {vowel}")
    return text


def stories(seed: int) -> Iterator[str]:
    """Stories without end."""
    random = Random(seed)
    while True:
        yield story(random)


def main() -> None:
    """Prints some stories."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1, help="how many stories")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    for text in islice(stories(arguments.seed), arguments.count):
        print(text, end="\n\n")


if __name__ == "__main__":
    main()
