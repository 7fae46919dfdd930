"""Settings that are refused where they would have no effect, and left out where they are written down."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, model_serializer, model_validator

Count = Annotated[int, Field(ge=1, lt=2**63)]
"""From 1 up, as far as machines count."""


class WithoutEffect(ValueError):
    """The setting ``name`` would be ignored; ``why`` goes on after its name: "has no effect: ..."."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"{name} {why}")
        self.name = name
        self.why = why


class Settings(BaseModel):
    """Frozen; an unknown name is an error, and so is a setting that the others leave without effect."""

    # strict: a number given as true or "8" is a mistake, not a number
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    def idle(self) -> Mapping[str, str]:
        """The settings that have no effect beside the others, each with what is said of it: "has no effect: ..."."""
        return {}

    @model_validator(mode="after")
    def _nothing_without_effect(self) -> Settings:
        for name, why in self.idle().items():
            if name in self.model_fields_set:
                raise WithoutEffect(name, why)
        return self

    @model_serializer(mode="wrap")
    def _what_has_effect(self, handler: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
        idle = self.idle()
        return {name: value for name, value in handler(self).items() if name not in idle}


def of_other_kinds(kind: str, belongings: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """What ``idle`` says where some settings belong to certain kinds: ``belongings`` has those of each kind."""
    reasons: dict[str, str] = {}
    for name in sorted({name for names in belongings.values() for name in names}.difference(belongings[kind])):
        kinds = " and ".join(other for other, names in belongings.items() if name in names)
        reasons[name] = f"belongs to {kinds}; {kind} has none"
    return reasons
