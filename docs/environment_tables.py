"""The generated parts of the pages about learning environments."""

from __future__ import annotations

import dataclasses
import inspect
import re
from typing import Any

from markdown_text import code, mark, table


def environments() -> str:
    """Return what each environment asks."""
    from berthline.env.questions import QUESTIONS
    from berthline.env.registration import SEATS, env_id

    sections = []
    for name, seat in SEATS.items():
        question = QUESTIONS[seat]
        rows = (
            ("asked", question.asked),
            ("actions", question.actions),
            ("mask", question.mask),
            ("rows", question.rows),
        )
        lines = "\n".join(f"- {what}: {text}" for what, text in rows)
        about = question.about[0].upper() + question.about[1:]
        sections.append(f"### {name}\n\n`{env_id(name)}`. {about}.\n\n{lines}")
    return "\n\n".join(sections)


def options() -> str:
    """Return the options of the environments, as their docstring has them."""
    from berthline.env.options import Options

    meanings = attributes(Options)
    return table(
        ("option", "default", "meaning"),
        (
            (code(field.name), defaults(field), meanings[field.name])
            for field in dataclasses.fields(Options)
        ),
    )


def attributes(of: type) -> dict[str, str]:
    """Return the attributes that a class's docstring describes, each on one line."""
    _, _, text = (inspect.getdoc(of) or "").partition("Attributes:\n")
    found = re.findall(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", text, re.MULTILINE)
    return {name: " ".join(meaning.split()) for name, meaning in found}


def default(field: dataclasses.Field[Any]) -> str:
    """Return the default of an option as it is written in Python."""
    if field.default_factory is not dataclasses.MISSING:
        return repr(field.default_factory())
    value = field.default
    return "inf" if value == float("inf") else repr(value)


def defaults(field: dataclasses.Field[Any]) -> str:
    """Return the default of an option in most seats, then those of the other seats."""
    from berthline.env.registration import SEATS
    from berthline.env.seat_defaults import SEAT_DEFAULTS

    own = {name: SEAT_DEFAULTS[seat] for name, seat in SEATS.items()}
    plain = default(field)
    by_seat = {n: repr(row[field.name]) if field.name in row else plain for n, row in own.items()}
    values = list(by_seat.values())
    # Where the number of seats is equal, the plain default.
    usual = max(values, key=lambda value: (values.count(value), value == plain))
    others = {value: [n for n in by_seat if by_seat[n] == value] for value in values}
    found = [f"{', '.join(names)}: {code(v)}" for v, names in others.items() if v != usual]
    return "<br>".join([code(usual), *found])


def columns() -> str:
    """Return the named sets of columns."""
    from berthline.env.columns import COLUMN_SETS, TABLES

    return table(
        ("columns", "of", "formulas", "run times"),
        (
            (
                code(name),
                code(part),
                "<br>".join(map(code, getattr(found, part))),
                mark(
                    needed=any(f.uses_estimate for f in found.formulas(part, has_job_at_hand=True))
                ),
            )
            for name, found in COLUMN_SETS.items()
            for part in TABLES
            if getattr(found, part)
        ),
    )


_ABOUT = {
    "job": "the job",
    "cluster": "the cluster",
    "system": "the system",
    "decision": "the decision",
    "finish": "the finish",
    "end": "the episode",
}
"""What words of each scope are about."""


def occasions() -> str:
    """Return the occasions on which terms of rewards are evaluated."""
    from berthline.env.rewards import OCCASIONS, SCOPES

    return table(
        ("occasion", "evaluated", "its words are about"),
        (
            (
                code(name),
                text,
                ", ".join(_ABOUT[scope] for scope in _ABOUT if scope in SCOPES[name]),
            )
            for name, text in OCCASIONS.items()
        ),
    )


def scores() -> str:
    """Return what is known of an episode when it is over."""
    from berthline.env.native_envs import SCORES

    return ", ".join(map(code, SCORES))


def rewards() -> str:
    """Return the named rewards with their terms."""
    from berthline.env.rewards import REWARDS

    def terms(reward: Any) -> str:
        return "<br>".join(
            f"{term.name} ({term.occasion}): "
            + ("" if term.weight == 1 else f"{term.weight:g} x ")
            + code(term.formula)
            for term in reward.terms
        )

    return table(
        ("reward", "meaning", "terms: name (occasion): weight x formula"),
        ((code(r.name), r.meaning, terms(r)) for r in REWARDS.values()),
    )


def reward_words() -> str:
    """Return the words that only rewards are made of."""
    from berthline.policies.reward_words import REWARD_WORDS

    return table(
        ("word", "scope", "unit", "meaning"),
        ((code(w.name), w.scope, w.unit, w.meaning) for w in REWARD_WORDS.values()),
    )


def presets() -> str:
    """Return the presets: their options, and what differs from the originals."""
    from berthline.env.presets import PRESETS
    from berthline.env.registration import SEATS, env_id

    ids = {seat: env_id(name) for name, seat in SEATS.items()}
    sections = []
    for preset in PRESETS.values():
        given = ", ".join(code(f"{name}={value!r}") for name, value in preset.options.items())
        differences = "\n".join(f"- {text}" for text in preset.differences)
        sections.append(
            f"### {preset.name}\n\n{preset.system}. `{ids[preset.seat]}` with\n{given}.\n\n"
            f"What differs from the original:\n\n{differences}"
        )
    return "\n\n".join(sections)


def training_steps() -> str:
    """Return how many steps each algorithm makes, also where an environment has its own number."""
    from berthline.env.registration import SEATS
    from berthline.learn.algorithms.algorithm_table import ALGORITHMS
    from berthline.learn.training.defaults import default_steps

    def steps(algorithm: str) -> str:
        found = {name: default_steps(algorithm, seat) for name, seat in SEATS.items()}
        usual = max(found.values(), key=list(found.values()).count)
        own = [f"on {name} {count:,}" for name, count in found.items() if count != usual]
        return ", ".join([f"{usual:,}", *own])

    return table(
        ("algorithm", "`--steps`"),
        ((code(algorithm), steps(algorithm)) for algorithm in ALGORITHMS),
    )


PARTS = {
    "environments": environments,
    "options of environments": options,
    "columns": columns,
    "occasions": occasions,
    "rewards": rewards,
    "scores of episodes": scores,
    "words of rewards": reward_words,
    "presets of environments": presets,
    "steps of training": training_steps,
}
"""Each generated part and what makes it."""
