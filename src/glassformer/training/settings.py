"""Settings that are refused where they would have no effect, and left out where they are written down."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, SerializerFunctionWrapHandler, model_serializer, model_validator


class Settings(BaseModel):
    """Frozen; an unknown name is an error, and so is a setting that the others leave without effect."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def idle(self) -> Mapping[str, str]:
        """The settings that have no effect beside the others, each with the reason."""
        return {}

    @model_validator(mode="after")
    def _nothing_without_effect(self) -> Settings:
        for name, reason in self.idle().items():
            if name in self.model_fields_set:
                raise ValueError(f"{name} has no effect: {reason}")
        return self

    @model_serializer(mode="wrap")
    def _what_has_effect(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        idle = self.idle()
        return {name: value for name, value in handler(self).items() if name not in idle}
