"""Every input there is: those of a run, and those of the ecosystems it may be about."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from releasekit.config.declaration import PREFIX, Declaration, declared_by
from releasekit.config.inputs import FORGE_TOKEN, STATE_KEY, Inputs
from releasekit.errors import ConfigError, did_you_mean
from releasekit.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from releasekit.config.declaration import EcosystemDeclaration


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """By name, in the order in which they are shown. `inputs` are those with a value, `secrets` the
    others.
    """

    ecosystems: Mapping[str, EcosystemDeclaration]
    inputs: Mapping[str, Declaration]
    secrets: Mapping[str, Declaration]
    everything: Mapping[str, Declaration]

    @classmethod
    def for_ecosystems(cls, ecosystems: Mapping[str, EcosystemDeclaration]) -> Self:
        everything = {each.name: each for each in _everything(ecosystems.values())}
        return cls(
            ecosystems=ecosystems,
            inputs={name: each for name, each in everything.items() if each.kind != "secret"},
            secrets={name: each for name, each in everything.items() if each.kind == "secret"},
            everything=everything,
        )

    def adding(self, inputs: Inputs, texts: Mapping[str, str], labels: Mapping[str, str]) -> Inputs:
        """`inputs` with those of `texts` (name → text; empty means not given) on top.

        `labels` says of each name where it was written. Raises ConfigError for the first value
        that cannot be used.
        """
        written = {name: text for name, text in texts.items() if text.strip()}
        parsed = {
            name: self.inputs[name].parse(text.strip(), labels[name])
            for name, text in written.items()
        }
        given = {self.inputs[name].attribute: labels[name] for name in written}
        of_the_run = {
            declaration.attribute: parsed.pop(name)
            for name, declaration in _OF_THE_RUN.items()
            if name in parsed
        }
        return replace(
            inputs,
            **of_the_run,  # type: ignore[arg-type]
            own={**inputs.own, **parsed},
            given={**inputs.given, **given},
        )

    def from_environment(self, environment: Mapping[str, str]) -> Inputs:
        """What the RELEASEKIT_* variables say; INPUT_* of the platform is never looked at.

        `environment` is the whole environment, so that a misspelt secret is noticed too; the values
        of secrets are not looked at.
        """
        known = {each.variable: each for each in self.everything.values()}
        texts = {}
        for variable in sorted(name for name in environment if name.startswith(PREFIX)):
            if variable not in known:
                raise ConfigError(
                    f"{variable} is no input{did_you_mean(variable, known)}",
                    hint="Every variable that starts with RELEASEKIT_ is taken for one.",
                    problem=Problem.UNKNOWN_NAME,
                )
            declaration = known[variable]
            if declaration.kind != "secret":
                texts[declaration.name] = environment[variable]
        labels = {name: f"input {name} ({self.inputs[name].variable})" for name in texts}
        return self.adding(Inputs(), texts, labels)


_OF_THE_RUN = declared_by(Inputs)


def _everything(ecosystems: Collection[EcosystemDeclaration]) -> Iterator[Declaration]:
    names = tuple(each.name for each in ecosystems)
    for declaration in _OF_THE_RUN.values():
        match declaration.name:
            case "ecosystem":
                listed = ", ".join(f"`{name}`" for name in names)
                help_ = declaration.help.format(ecosystems=listed)
                yield replace(declaration, help=help_, choices=names)
            case "registry":
                # It stands for the registries of all ecosystems, so it comes after them.
                for ecosystem in ecosystems:
                    yield from ecosystem.declarations
                yield declaration
            case "state-directory":
                yield declaration
                yield STATE_KEY
            case "trust-config":
                yield declaration
                yield FORGE_TOKEN
            case _:
                yield declaration
